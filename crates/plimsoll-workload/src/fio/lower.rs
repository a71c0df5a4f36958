//! fio's jobs as Plans, one Plan for each group of jobs that run at the same time.

use super::job::{self, At, Engine, Job, LatencyTarget, Sizes, Steady};
use super::text::Input;
use plimsoll_diagnostics::{Diagnostics, Problem, Span};
use plimsoll_plan::{
    Bytes, Condition, Content, Direction, Distribution, Figure, Fileset, FilesetId, Flushes,
    InitialData, JobAccess, JobWork, NameOp, Note, OffsetOrder, OpKind, OperationId, Overrides,
    Pacing, Pauses, Phase, Plan, Program, Promise, QuitMode, RelPath, Relation, Row, Source,
    SourceKind, SourcePosition, Transfers, Until, Value, Variable, VariableId, Warmup, WorkDirSpec,
    WorkerGroup,
};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Maximum number of workers of a group.
const MAX_WORKERS: u64 = 1_000_000;

/// Maximum number of files that a thread keeps open.
const MAX_OPEN_FILES: u32 = 128;

/// Multiple of the size of a worker's buffer, which direct I/O needs.
const BUFFER_ALIGN: u64 = 4096;

/// Environment of lowering.
#[derive(Debug, Clone)]
pub struct Context {
    /// New work directory, used if no directory is given.
    pub temp_dir: PathBuf,
    /// Seed of jobs with `randrepeat=0`, which differs from run to run.
    pub random_seed: u64,
    /// Serial of the block device that jobs may use; `None` if jobs may use only files.
    pub raw_device: Option<String>,
    /// Description of the block device at a path; an error is one sentence.
    pub look_at_device: fn(&str) -> Result<RawDevice, String>,
}

/// A block device that a job names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawDevice {
    /// Model and size, for messages.
    pub description: String,
    /// Where the user finds the serial, as a part of a sentence.
    pub serial_place: String,
    /// Size in bytes.
    pub bytes: u64,
}

/// A group of jobs that run at the same time.
pub struct Group {
    /// Plan of the group.
    pub plan: Plan,
    /// URL of the target on which the engines of the jobs work.
    pub target: String,
    /// Search of the highest depth within `latency_target`; `None` for jobs without a latency limit.
    pub search: Option<DepthSearch>,
}

/// Search of the highest depth of jobs whose run keeps the promises of the Plan, which `latency_target` gives.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DepthSearch {
    /// Highest depth: the `iodepth` of the jobs.
    pub most: u32,
    /// Length of the run at each depth; `None` for the length of the jobs.
    pub time: Option<Duration>,
}

impl Group {
    /// Whether the group only makes files: all its jobs have `create_only`.
    #[must_use]
    pub fn only_populates(&self) -> bool {
        let is_populating = |phase: &Phase| matches!(phase, Phase::Populate { .. });
        self.plan.script.iter().all(is_populating)
    }
}

/// Makes the Plans of the groups of jobs, in order. Each Plan has passed [`Plan::check`].
///
/// # Errors
/// All problems of the jobs, with their places.
pub fn lower(
    input: &Input,
    overrides: &Overrides,
    context: &Context,
) -> Result<Vec<Group>, Diagnostics> {
    let mut problems = Vec::new();
    let jobs: Vec<Job> = input
        .jobs
        .iter()
        .filter_map(|section| job::job(section, context, &mut problems).ok())
        .collect();
    one_device(&jobs, &mut problems);
    let mut groups: Vec<Vec<Job>> = Vec::new();
    for job in jobs {
        let waits = job.begins_group.is_some() || waits_for_group(&job, &groups, &mut problems);
        match groups.last_mut().filter(|_| !waits) {
            Some(group) => group.push(job),
            None => groups.push(vec![job]),
        }
    }
    let count = groups.len();
    let mut lowered = Vec::new();
    for (jobs, number) in groups.iter().zip(0..) {
        let mut lowerer = Lowerer {
            input,
            overrides,
            context,
            problems: &mut problems,
            filesets: BTreeMap::new(),
        };
        lowered.extend(lowerer.group(jobs, (number, count)));
    }
    if problems.is_empty() {
        return Ok(lowered);
    }
    Err(Diagnostics::new(input.sources.clone(), problems))
}

/// Refuses jobs on different block devices, since the serial of one device is given.
fn one_device(jobs: &[Job], problems: &mut Vec<Problem>) {
    let mut devices = jobs.iter().filter_map(|job| job.files.device.as_ref());
    let Some(first) = devices.next() else { return };
    if let Some(other) = devices.find(|other| other.value.path != first.value.path) {
        let message = "`--raw-device` has the serial of one device, and the jobs name two devices";
        let problem = Problem::new(other.span, message, "another device");
        problems.push(problem.help("start `plimsoll fio` once for each device"));
    }
}

/// Whether a job waits for a job of the latest group, so that a new group begins.
fn waits_for_group(job: &Job, groups: &[Vec<Job>], problems: &mut Vec<Problem>) -> bool {
    let Some(At { value: name, span }) = &job.wait_for else {
        return false;
    };
    let is_there = |group: &Vec<Job>| group.iter().any(|j| j.name == *name);
    if groups.last().is_some_and(is_there) {
        return true;
    }
    if !groups.iter().any(is_there) {
        let message = format!("there is no job `{name}` before this job");
        problems.push(Problem::new(
            *span,
            message,
            "expected the name of an earlier job",
        ));
    }
    false
}

/// A fileset of the Plan, and the first job or list of names that uses the fileset.
struct FilesetUse {
    id: FilesetId,
    files: u32,
    /// Whether the files are leaf directories.
    is_of_dirs: bool,
    span: Span,
}

struct Lowerer<'a> {
    input: &'a Input,
    overrides: &'a Overrides,
    context: &'a Context,
    problems: &'a mut Vec<Problem>,
    filesets: BTreeMap<String, FilesetUse>,
}

impl Lowerer<'_> {
    fn fail(&mut self, span: Span, message: impl Into<String>, label: &str, help: &str) {
        self.problems
            .push(Problem::new(span, message, label).help(help));
    }

    fn position(&self, span: Span) -> SourcePosition {
        let source = &self.input.sources[usize::from(span.file)];
        let (line, column) = source.position(span.start as usize);
        SourcePosition {
            file: source.name.clone(),
            line,
            column,
        }
    }

    fn note(&self, plan: &mut Plan, span: Span, text: impl Into<String>) {
        let note = Note {
            text: text.into(),
            location: Some(self.position(span)),
        };
        if !plan.notes.contains(&note) {
            plan.notes.push(note);
        }
    }

    /// The value that all jobs of a group must have in common, because a run has only one value; the first value, if a
    /// later value differs. `get` returns the value of a job with its place, or `None` for a job without the option.
    fn common<T: PartialEq + Clone>(
        &mut self,
        jobs: &[Job],
        name: &str,
        get: impl Fn(&Job) -> Option<At<T>>,
    ) -> Option<T> {
        let message = || format!("`{name}` differs from `{name}` of another job");
        self.common_or(jobs, message, get)
    }

    /// As [`Self::common`], with the message about a later value that differs.
    fn common_or<T: PartialEq + Clone>(
        &mut self,
        jobs: &[Job],
        message: impl Fn() -> String,
        get: impl Fn(&Job) -> Option<At<T>>,
    ) -> Option<T> {
        let mut given = jobs.iter().filter_map(get);
        let first = given.next()?;
        if let Some(other) = given.find(|other| other.value != first.value) {
            let help = "jobs that run at the same time share one value: `stonewall` begins a run of its own";
            self.fail(other.span, message(), "another value", help);
        }
        Some(first.value)
    }

    /// As [`Self::common`], for an option that all jobs of a group or none must have.
    fn common_of_all<T: PartialEq + Clone>(
        &mut self,
        jobs: &[Job],
        name: &str,
        get: impl Fn(&Job) -> Option<At<T>>,
    ) -> Option<T> {
        let value = self.common(jobs, name, &get)?;
        if let Some(job) = jobs.iter().find(|job| get(job).is_none()) {
            let message = format!("another job has `{name}`, and this job does not");
            let help = format!("put `{name}` into [global]: jobs at the same time share one value");
            self.fail(job.span, message, "this job", &help);
        }
        Some(value)
    }

    fn group(&mut self, jobs: &[Job], (number, groups): (usize, usize)) -> Option<Group> {
        let before = self.problems.len();
        let name = self.input.name();
        let name = match groups {
            1 => name.to_owned(),
            _ => format!("{name}-{}", number + 1),
        };
        let mut plan = self.plan(jobs, name);
        let target = self.target(jobs, &mut plan);
        for job in jobs {
            self.job(&mut plan, job);
        }
        plan.script = self.script(jobs, &plan);
        if self.problems.len() > before {
            return None;
        }
        if let Err(e) = plan.check() {
            self.problems
                .push(Problem::new(jobs[0].span, e.to_string(), "this job"));
            return None;
        }
        let search = self.search(jobs);
        (self.problems.len() == before).then_some(Group {
            plan,
            target,
            search,
        })
    }

    fn search(&mut self, jobs: &[Job]) -> Option<DepthSearch> {
        let latency = self.common(jobs, "latency_target", |job| job.latency)?;
        let depth = |job: &Job| {
            Some(At {
                value: job.depth,
                span: job.span,
            })
        };
        Some(DepthSearch {
            most: self.common(jobs, "iodepth", depth)?,
            time: latency.window,
        })
    }

    /// The Plan of a group without filesets and workers.
    fn plan(&mut self, jobs: &[Job], name: String) -> Plan {
        let directory = self.common(jobs, "directory", |job| job.directory.clone());
        let device = jobs.iter().find_map(|job| job.files.device.as_ref());
        let (dir, temporary) = match (&self.overrides.dir, directory) {
            // The target of a device makes no directory.
            _ if let Some(device) = device => (PathBuf::from(&device.value.path), false),
            (Some(dir), _) => (dir.clone(), false),
            (None, Some(dir)) => (PathBuf::from(dir), false),
            (None, None) => (self.context.temp_dir.clone(), true),
        };
        let unseeded = jobs.iter().find_map(|job| job.is_unseeded);
        let seed = self.common(jobs, "randseed", |job| job.seed);
        let seed = self.overrides.seed.or(seed);
        let mut plan = Plan {
            title: jobs
                .iter()
                .map(|job| job.description.as_deref().unwrap_or(&job.name))
                .collect::<Vec<_>>()
                .join(", "),
            source: Source {
                kind: SourceKind::File,
                name: self.input.source_name().into(),
                text: self.input.text(),
            },
            seed: seed.unwrap_or(unseeded.map_or(1, |_| self.context.random_seed)),
            work_dir: WorkDirSpec {
                dir,
                guards: vec![RelPath::default()],
                temporary,
            },
            options: self.overrides.options.clone(),
            quit: QuitMode::AllDone,
            ..Plan::empty(&name)
        };
        plan.options.keep |= jobs.iter().any(|job| job.creates_only.is_some());
        plan.options.verify |= jobs.iter().any(|job| job.verifies.is_some());
        if let Some(content) = self.content(jobs) {
            plan.options.content = content;
        }
        if let Some(content) = self.overrides.content {
            plan.options.content = content;
        }
        if let Some(cpus) = self.common(jobs, "cpus_allowed", |job| job.cpus.clone())
            && plan.options.cpus.is_empty()
        {
            plan.options.cpus = cpus;
        }
        plan
    }

    fn content(&mut self, jobs: &[Job]) -> Option<Content> {
        let writes = |job: &&Job| job.writes;
        // Several options set the contents, so that the place of the message names the option.
        let differs = "the contents of writes differ from the contents of another job";
        let content = self.common_or(jobs, || differs.into(), |job| job.content);
        let plain = jobs.iter().filter(writes).find(|job| job.content.is_none());
        if let (Some(_), Some(job)) = (content, plain) {
            let span = job.span;
            let message = "another job defines the contents of writes, and this job does not";
            let help = "put the contents into [global]: a run has one kind of contents";
            self.fail(span, message, "this job", help);
        }
        content
    }

    /// The target of the jobs' engines.
    fn target(&mut self, jobs: &[Job], plan: &mut Plan) -> String {
        let is_of = |engine: Engine| match engine {
            Engine::Sync | Engine::Mapped | Engine::Names(_) => "system calls",
            Engine::Async => "io_uring",
            Engine::Null => "null",
            Engine::Nfs => "nfs",
        };
        let engine = self.common(jobs, "ioengine", |job| {
            Some(At {
                value: is_of(job.engine.value),
                span: job.engine.span,
            })
        });
        let nfs_url = self.common(jobs, "nfs_url", |job| job.nfs_url.clone());
        let device = jobs.iter().find_map(|job| job.files.device.as_ref());
        let with_files = jobs.iter().find(|job| job.files.device.is_none());
        if let (Some(_), Some(job)) = (device, with_files) {
            let message = "another job uses a device, and this job uses files";
            let help = "`stonewall` begins a run of its own";
            self.fail(job.span, message, "this job", help);
        }
        let local = match device.zip(self.context.raw_device.as_ref()) {
            None => "posix".to_owned(),
            Some((device, serial)) => format!("device:{}?serial={serial}", device.value.path),
        };
        if engine == Some("io_uring") && jobs.iter().any(|job| job.depth > 1) {
            plan.notes.push(Note::from(
                "a depth of N is N workers, which take the transfers of their job in order; the threads of the rings are \
                 as many as the jobs with their clones"
                    .to_owned(),
            ));
        }
        match engine {
            Some("null") => "null:".into(),
            Some("nfs") => match nfs_url {
                Some(url) => nfs_target(&url),
                None => {
                    let span = jobs[0].engine.span;
                    let help = "`nfs_url=nfs://SERVER/EXPORT`, or `--target nfs3://SERVER/EXPORT`";
                    self.fail(span, "`ioengine=nfs` needs `nfs_url`", "this engine", help);
                    String::new()
                }
            },
            _ => local,
        }
    }

    fn script(&mut self, jobs: &[Job], plan: &Plan) -> Vec<Phase> {
        let runtime = self.common_of_all(jobs, "runtime", |job| job.runtime);
        let creates_only = self.common_of_all(jobs, "create_only", |job| job.creates_only);
        let ramp = self.common(jobs, "ramp_time", |job| Some(job.ramp));
        let ramp = ramp.unwrap_or(Duration::ZERO);
        let steady = self.common_of_all(jobs, "steadystate", |job| job.steady);
        let (warmups, window) = match (steady, runtime) {
            (
                Some(Steady {
                    rule,
                    ramp: more,
                    over,
                }),
                Some(runtime),
            ) => {
                let at_most = runtime.saturating_sub(more);
                let warmups = vec![Warmup::Fixed(ramp + more), Warmup::Steady { rule, at_most }];
                (warmups, Some(over))
            }
            _ => (vec![Warmup::Fixed(ramp)], runtime),
        };
        let warmups = self.overrides.warmup.map_or(warmups, |warmup| vec![warmup]);
        let window = self.overrides.time.or(window);
        let filesets = (0..plan.filesets.len() as u32).map(FilesetId).collect();
        let commands = |which: usize| {
            let all = jobs
                .iter()
                .filter_map(move |job| job.commands[which].clone());
            all.map(|command| Phase::System { command })
        };
        // A device needs no population: its bytes exist.
        let is_made = jobs.iter().all(|job| job.files.device.is_none());
        let populate = is_made.then_some(Phase::Populate { filesets });
        let mut script: Vec<Phase> = populate.into_iter().collect();
        if creates_only.is_some() {
            if plan.work_dir.temporary {
                let span = jobs[0].creates_only.map_or(jobs[0].span, |at| at.span);
                let help = "`directory=DIR`, or `--dir DIR`: a later run finds the files there";
                self.fail(span, "`create_only` needs a directory", "this option", help);
            }
            return script;
        }
        script.extend(commands(0));
        script.push(Phase::Start);
        let warmups = warmups.into_iter().filter(|warmup| !warmup.is_zero());
        script.extend(warmups.map(|warmup| Phase::wait(warmup.into())));
        script.push(Phase::OpenWindow);
        let endless = jobs.iter().any(|job| job.time_based.is_some());
        script.push(Phase::wait(match window.filter(|_| endless) {
            Some(time) => Until::window(time, self.overrides.precision),
            None => Until::Done { at_most: window },
        }));
        script.extend([Phase::CloseWindow, Phase::Stop]);
        script.extend(commands(1));
        script
    }

    fn job(&mut self, plan: &mut Plan, job: &Job) {
        let workers = u64::from(job.clones) * u64::from(job.depth);
        if workers + plan.workers() > MAX_WORKERS {
            let message = format!("the jobs have more than {MAX_WORKERS} transfers in flight");
            self.fail(
                job.span,
                message,
                "from this job on",
                "fewer `numjobs`, or a smaller `iodepth`",
            );
            return;
        }
        for (span, name, why) in &job.without_effect {
            self.note(plan, *span, format!("`{name}` has no effect: {why}"));
        }
        for (span, text) in &job.notes {
            self.note(plan, *span, text.clone());
        }
        let Some((fileset, file_bytes)) = self.fileset(plan, job) else {
            return;
        };
        let name = unique_name(plan, &job.name);
        let location = Some(self.position(job.span));
        let mut row = |what: &str, kind: OpKind| {
            plan.add_row(format!("{name}.{what}"), kind, location.clone())
        };
        let mut promises = vec![];
        let work = match job.engine.value {
            Engine::Names(op) => JobWork::Names {
                op,
                row: row(name_of(op), kind_of(op)),
                passes: job.time_based.is_none().then_some(job.loops),
            },
            _ => {
                self.check_room(job, file_bytes);
                let kinds = match job.engine.value {
                    Engine::Mapped => [OpKind::MmapRead, OpKind::MmapWrite],
                    _ => [OpKind::Read, OpKind::Write],
                };
                let reads = job.reads.then(|| row("read", kinds[0]));
                let writes = job.writes.then(|| row("write", kinds[1]));
                let flush = flushes(job).then(|| row("fsync", OpKind::Fsync));
                let start = job.rate.map(|_| row("start", OpKind::Start));
                if let Some(At { value: limit, .. }) = job.latency {
                    let given = ["read", "write"].into_iter().zip([reads, writes]);
                    for (what, _) in given.filter(|(_, row)| row.is_some()) {
                        promises.push(latency_promise(&name, what, limit));
                    }
                }
                let rows = [reads, writes, flush, start];
                JobWork::Transfers(Box::new(self.transfers(plan, job, rows, file_bytes)))
            }
        };
        plan.promises.append(&mut promises);
        let prepare = plan.add_row(format!("{name}.open"), OpKind::Prepare, location.clone());
        let largest = job.sizes.iter().map(Sizes::largest).max().unwrap_or(0);
        let shares_files = !job.files.names.is_empty();
        let program = plimsoll_plan::Job {
            fileset,
            first_file: 0,
            files: job.files.count,
            shares_files,
            open_files: job
                .files
                .open
                .unwrap_or(job.files.count)
                .min(MAX_OPEN_FILES),
            prepare,
            start_delay: job.start_delay,
            work,
        };
        plan.groups.push(WorkerGroup {
            thread_instances: job.depth,
            memory: largest.next_multiple_of(BUFFER_ALIGN),
            nice: job.nice,
            location,
            ..WorkerGroup::new(&name, job.clones, "io", Program::Job(Box::new(program)))
        });
    }

    /// The fileset of a job, and the size of its files in bytes.
    fn fileset(&mut self, plan: &mut Plan, job: &Job) -> Option<(FilesetId, u64)> {
        let files = &job.files;
        let count = u64::from(files.count);
        let given = match &files.device {
            Some(device) => {
                self.check_reach(job, device.value.bytes)?;
                if job.writes {
                    let text = format!("the job overwrites the content of `{}`", device.value.path);
                    self.note(plan, device.span, text);
                }
                Some(device.value.bytes)
            }
            None => files.file_bytes.map(|each| each.value),
        };
        let bytes = match (given, files.bytes) {
            (Some(each), _) => each,
            (None, Some(all)) => {
                // All files have one size, which the clone with the last offset needs.
                last_offset(job).saturating_add(all.value / count)
            }
            (None, None) if matches!(job.engine.value, Engine::Names(_)) => 0,
            (None, None) => {
                let help =
                    "`size=SIZE` of all files of the job together, or `filesize=SIZE` of each file";
                self.fail(job.span, "the job has no `size`", "this job", help);
                return None;
            }
        };
        let key = match files.names.first() {
            // A fileset has a relative path, which the target of a device ignores.
            Some(first) => first.trim_start_matches('/').replace('/', "_"),
            None => job.name.replace('/', "_"),
        };
        // Files with names are shared by all clones.
        let (span, clones) = if files.names.is_empty() {
            (job.span, job.clones)
        } else {
            (files.names_span, 1)
        };
        let Some(entries) = files.count.checked_mul(clones) else {
            self.fail(
                span,
                "the job has too many files",
                "this job",
                "fewer `nrfiles`",
            );
            return None;
        };
        let initially = match job.engine.value {
            Engine::Names(NameOp::Create | NameOp::MakeDir) => None,
            _ if job.reads || files.overwrites || files.device.is_some() => {
                Some(InitialData::Written)
            }
            _ if matches!(job.engine.value, Engine::Names(_)) => Some(InitialData::Written),
            // Only existing bytes can be mapped.
            Engine::Mapped if files.initially == InitialData::Empty => Some(InitialData::Sparse),
            _ => Some(files.initially),
        };
        // fio drops the cached pages of the files of a job before the job.
        let is_of_dirs = matches!(job.engine.value, Engine::Names(op) if op.is_on_dirs());
        let is_of_kernel = !matches!(job.engine.value, Engine::Null | Engine::Nfs);
        let cached = (job.invalidates && is_of_kernel).then_some(false);
        if let Some(used) = self.filesets.get(&key) {
            if (used.files, used.is_of_dirs) != (entries, is_of_dirs) {
                let what = match used.is_of_dirs == is_of_dirs {
                    true => "number",
                    false => "kind",
                };
                let message = format!("`{key}` has another {what} of files in another job");
                let problem = Problem::new(span, message, "these files")
                    .also(used.span, "the other job")
                    .help("give both jobs the same `filename` list, or other names");
                self.problems.push(problem);
                return None;
            }
            let id = used.id;
            let fileset = &mut plan.filesets[id.0 as usize];
            fileset.cached = fileset.cached.or(cached);
            let size = fileset.size.constant().unwrap_or(0).max(bytes);
            fileset.size = Value::Const(size);
            if let Some(initially) = initially {
                // The job that needs the most finds what the job needs.
                fileset.initially = fileset.initially.min(initially);
            }
            return Some((id, bytes));
        }
        let id = FilesetId(plan.filesets.len() as u32);
        plan.filesets.push(Fileset {
            width: plimsoll_plan::EntriesPerDir {
                mean: f64::from(entries.max(2)),
                gamma_shape: None,
            },
            prealloc_percent: if initially.is_some() { 100 } else { 0 },
            initially: initially.unwrap_or_default(),
            cached,
            location: Some(self.position(span)),
            entries: if is_of_dirs { 0 } else { u64::from(entries) },
            leaf_dirs: if is_of_dirs { u64::from(entries) } else { 0 },
            ..Fileset::new(&key, 0, Value::Const(bytes))
        });
        self.filesets.insert(
            key,
            FilesetUse {
                id,
                files: entries,
                is_of_dirs,
                span,
            },
        );
        Some((id, bytes))
    }

    /// Refuses a job that reaches beyond the end of its device of `bytes` bytes.
    fn check_reach(&mut self, job: &Job, bytes: u64) -> Option<()> {
        let span = job.files.bytes.map_or(job.span, |at| at.span);
        if job.files.bytes.is_none() && job.offset_increment > 0 && job.clones > 1 {
            let message = "clones with different offsets on a device need a `size`";
            let help = "`size=SIZE` of the part of each clone";
            self.fail(span, message, "this job", help);
            return None;
        }
        let end = last_offset(job).saturating_add(job.files.bytes.map_or(1, |at| at.value));
        if end > bytes {
            let message = format!(
                "the job ends {} bytes beyond the end of the device",
                end - bytes
            );
            let label = format!("the device has {bytes} bytes");
            self.fail(span, message, &label, "a smaller `size` or `offset`");
            return None;
        }
        Some(())
    }

    /// Refuses a job of which a clone has no room for a transfer in its files of `file_bytes` bytes.
    fn check_room(&mut self, job: &Job, file_bytes: u64) {
        let used = [job.reads, job.writes].into_iter().zip(&job.sizes);
        let used = used.filter_map(|(is_used, sizes)| is_used.then_some(sizes));
        let block = used.map(|sizes| align_of(job, sizes)).max().unwrap_or(1);
        let room = file_bytes.saturating_sub(last_offset(job));
        if span_of(job).unwrap_or(room).min(room) < block {
            let given = job.files.file_bytes.or(job.files.bytes);
            let span = given.map_or(job.span, |at| at.span);
            let message = format!("no transfer of {} fits into a file", Bytes(block));
            let help = "a larger size of each file, or a smaller `bs`";
            self.fail(
                span,
                message,
                "too small, with `nrfiles` and `offset`",
                help,
            );
        }
    }

    fn transfers(
        &self,
        plan: &mut Plan,
        job: &Job,
        [reads, writes, flush, start]: [Option<OperationId>; 4],
        file_bytes: u64,
    ) -> Transfers {
        let mut direction = |row: Option<OperationId>, sizes: &Sizes, what: &str| {
            row.map(|row| Direction {
                row,
                size: size(plan, sizes, &format!("{}.{what} size", job.name)),
                align: align_of(job, sizes),
            })
        };
        let reads = direction(reads, &job.sizes[0], "read");
        let writes = direction(writes, &job.sizes[1], "write");
        let order = match &job.spread {
            None => OffsetOrder::Sequential { skip: job.skip },
            Some(spread) => OffsetOrder::Random {
                spread: spread.clone(),
                percent: job.random_percent,
            },
        };
        let is_endless = job.time_based.is_some();
        let pacing = job.rate.zip(start).map(|(rate, start)| {
            let sizes = &job.sizes[usize::from(!job.reads)];
            let each = if rate.is_bytes { sizes.mean() } else { 1.0 };
            Pacing {
                rate: rate.value.value / each / f64::from(job.depth),
                arrivals: rate.arrivals,
                start,
            }
        });
        Transfers {
            reads,
            writes,
            read_percent: job.read_percent,
            access: JobAccess {
                direct: job.direct,
                dsync: job.dsync,
                mapped: job.engine.value == Engine::Mapped,
                no_read_ahead: job.advises && job.spread.is_some(),
                queued: job.engine.value == Engine::Async,
            },
            order,
            run: job.run,
            repeats_offset: job.repeats_offset,
            offset: job.offset,
            offset_increment: job.offset_increment,
            span: span_of(job).unwrap_or(0),
            next_file: job.next_file,
            transfers_per_file: job.transfers_per_file,
            bytes: (!is_endless).then(|| bytes_of(job, file_bytes)),
            transfers: job.transfers.filter(|_| !is_endless),
            flushes: flush.map(|row| Flushes {
                row,
                after_writes: job.fsync.or(job.fdatasync).filter(|_| job.writes),
                data_only: job.fdatasync.is_some(),
                at_end: job.flushes_at_end,
            }),
            pauses: job.pause.map(|(nanoseconds, after_transfers)| Pauses {
                nanoseconds,
                after_transfers,
            }),
            pacing,
        }
    }
}

/// Whether the job flushes files; a job that only reads does not.
fn flushes(job: &Job) -> bool {
    job.writes && (job.flushes_at_end || job.fsync.is_some() || job.fdatasync.is_some())
}

/// First byte of each file that the last clone accesses.
fn last_offset(job: &Job) -> u64 {
    let increments = job
        .offset_increment
        .saturating_mul(u64::from(job.clones - 1));
    job.offset.saturating_add(increments)
}

/// Multiple of bytes at which offsets lie.
fn align_of(job: &Job, sizes: &Sizes) -> u64 {
    job.align.map_or(sizes.smallest(), |at| at.value).max(1)
}

/// Number of bytes that each clone accesses in each file; `None` for all bytes from the offset on.
fn span_of(job: &Job) -> Option<u64> {
    // fio's `size` bounds the part of a file only if `filesize` does not give the whole file.
    match (job.files.file_bytes, job.files.bytes) {
        (None, Some(all)) => Some(all.value / u64::from(job.files.count)),
        _ => None,
    }
}

/// Bytes after which each clone of the job ends: of all loops together.
fn bytes_of(job: &Job, file_bytes: u64) -> u64 {
    let block = match (job.reads, job.writes) {
        (true, false) => job.sizes[0].smallest(),
        (false, _) => job.sizes[1].smallest(),
        (true, true) => job.sizes[0].smallest().min(job.sizes[1].smallest()),
    };
    let block = block.max(1);
    let room = span_of(job).unwrap_or(file_bytes.saturating_sub(job.offset));
    let step = block.saturating_add(job.skip);
    let blocks = room.checked_sub(block).map_or(0, |left| left / step + 1);
    let pass = (blocks * block).saturating_mul(u64::from(job.files.count));
    let once = match (job.files.io_bytes, job.files.bytes) {
        (Some(io), _) if io > 0 => io,
        // A rest of a file that is shorter than a block is not transferred.
        (_, Some(all)) => all.value.min(pass),
        (_, None) => pass,
    };
    once.saturating_mul(job.loops)
}

/// The size of a transfer: a constant, or a random variable, which is added to the Plan.
fn size(plan: &mut Plan, sizes: &Sizes, name: &str) -> Value {
    let mut add = |variable: Variable| {
        plan.variables.push(variable);
        Value::Draw(VariableId(plan.variables.len() as u32 - 1))
    };
    match sizes {
        Sizes::Same(size) => Value::Const(*size),
        Sizes::Range(low, high) => {
            let (least, most) = (*low as f64, (high / low * low) as f64);
            // Half a step beyond the bounds, which rounding to multiples then makes as likely as all other multiples.
            let half = least / 2.0;
            add(Variable {
                round: *low,
                min: Some(least),
                max: Some(most),
                ..Variable::new(
                    name,
                    Distribution::Uniform {
                        lower: least - half,
                        upper: most + half,
                    },
                )
            })
        }
        Sizes::Split(parts) => add(Variable::new(
            name,
            Distribution::Table {
                rows: parts
                    .iter()
                    .map(|(size, percent)| Row {
                        percent: *percent,
                        min: *size as f64,
                        max: *size as f64,
                    })
                    .collect(),
            },
        )),
    }
}

/// Promise that the latency of a job's reads or writes is within the job's limit.
fn latency_promise(job: &str, what: &str, target: LatencyTarget) -> Promise {
    Promise::from(Condition {
        operation: Some(format!("{job}.{what}")),
        figure: Figure::Percentile(target.percentile),
        relation: Relation::AtMost,
        limit: target.limit.as_secs_f64(),
    })
}

/// Name of a job that no other group of the Plan has.
fn unique_name(plan: &Plan, name: &str) -> String {
    let is_used = |name: &str| plan.groups.iter().any(|g| g.process == name);
    let names = std::iter::once(name.to_owned()).chain((2..).map(|n| format!("{name}-{n}")));
    let mut free = names.filter(|name| !is_used(name));
    free.next().expect("the list of names has no end")
}

fn name_of(op: NameOp) -> &'static str {
    match op {
        NameOp::Create => "create",
        NameOp::Stat | NameOp::StatDir => "stat",
        NameOp::Delete => "delete",
        NameOp::MakeDir => "mkdir",
        NameOp::RemoveDir => "rmdir",
    }
}

fn kind_of(op: NameOp) -> OpKind {
    match op {
        NameOp::Create => OpKind::Create,
        NameOp::Stat | NameOp::StatDir => OpKind::Stat,
        NameOp::Delete => OpKind::Delete,
        NameOp::MakeDir => OpKind::MakeDir,
        NameOp::RemoveDir => OpKind::RemoveDir,
    }
}

/// URL of the target for a URL of libnfs, whose options Plimsoll does not have.
fn nfs_target(url: &str) -> String {
    let (place, options) = url.split_once('?').unwrap_or((url, ""));
    let is_version_4 = options.split('&').any(|o| o == "version=4");
    let scheme = if is_version_4 { "nfs4" } else { "nfs3" };
    match place.strip_prefix("nfs://") {
        Some(rest) => format!("{scheme}://{rest}"),
        None => url.to_owned(),
    }
}
