//! The preflight of a run: space, memory and descriptors that the run needs, and whether the run may begin.

use super::claim::RemoteOwner;
use super::marker::{self, GuardState, Tree};
use super::run_target;
use super::setup_pool::SetupPool;
use super::tree::initial_dirs;
use super::{EngineError, Settings};
use crate::run_state::data_set;
use plimsoll_measure::{ClockKind, LongReplies, MIN_INTERVALS};
use plimsoll_plan::{
    ByteSum, Bytes, Cold, FileId, FilesetId, Layout, Pattern, Phase, Plan, Requirement,
    SizeSummary, StageWork, Until, show_duration,
};
use plimsoll_target::{DirectIo, Purpose, Space};
use std::sync::Arc;
use std::time::Duration;

/// Rates at which a pool creates files (per second) and writes bytes (per second), for an estimate of the duration of
/// populating. The rates are typical of a local file system.
const ESTIMATED_FILES_PER_S: f64 = 20_000.0;
const ESTIMATED_BYTES_PER_S: f64 = 600e6;

/// Maximum number of looks at the filesets' roots; each look but the last finds files that another run may have made
/// since the look at the guarded directories.
const MAX_LOOKS_AT_ROOTS: u32 = 3;

/// The requirements of a run, and the reasons why the run may not begin.
#[derive(Debug)]
pub struct Preflight {
    /// Trees of the filesets, in the Plan's order.
    pub layouts: Vec<Arc<Layout>>,
    /// For each fileset, whether the marker allows reusing the tree of an earlier run. The check of the files follows
    /// in the run.
    pub reusable: Vec<bool>,
    /// For each growing fileset, the number of files that earlier load points created.
    made: Vec<u64>,
    /// Bytes that populating needs on the target, in whole blocks.
    pub bytes_needed: ByteSum,
    /// Number of inodes that populating needs.
    pub inodes_needed: u64,
    /// Bytes that the filesets would need if every file existed with its planned size.
    pub bytes_at_most: ByteSum,
    /// Free space of the target; `None` if the target keeps no files.
    pub space: Option<Space>,
    /// Estimated duration of populating.
    pub populate_estimate: Duration,
    /// Bytes of the workers' I/O buffers; 0 on a target that moves no data.
    pub buffer_bytes: u128,
    /// Description of the target, as the target gives it.
    pub target: String,
    /// Reasons why the run would be refused, as sentences; empty if the run may begin.
    pub refusals: Vec<String>,
    /// Settings of the workload without effect, and remarks of the target, as sentences.
    pub notes: Vec<String>,
    /// Server replies that were longer than the protocol allows.
    pub long_replies: Vec<LongReplies>,
}

/// Determines the requirements of a run and whether the run may begin; changes nothing on the target.
///
/// # Errors
/// [`EngineError::Refused`] if the requirements cannot be determined.
pub fn preflight(plan: &Plan, settings: &Settings) -> Result<Preflight, EngineError> {
    look(plan, settings, 1)
}

/// Support for direct I/O of a run's target at the work directory of the Plan.
///
/// # Errors
/// If the target cannot be inspected.
pub fn direct_io(plan: &Plan, settings: &Settings) -> Result<DirectIo, EngineError> {
    let target = run_target::connect(&settings.target, &plan.work_dir, Purpose::Inspect, None);
    let pool = super::setup_pool(target.map_err(EngineError::refused)?, plan)?;
    Ok(pool.target.direct_io())
}

/// The preflight of a run of `ranks` ranks.
pub(super) fn look(plan: &Plan, settings: &Settings, ranks: u32) -> Result<Preflight, EngineError> {
    plan.check().map_err(EngineError::refused)?;
    let target = run_target::connect(&settings.target, &plan.work_dir, Purpose::Inspect, None);
    let pool = super::setup_pool(target.map_err(EngineError::refused)?, plan)?;
    let mut found = inspect(&pool, plan, settings, ranks, layouts(plan)?)?;
    found.long_replies = pool.target.take_long_replies();
    Ok(found)
}

/// Lays out every fileset of a Plan.
pub(crate) fn layouts(plan: &Plan) -> Result<Vec<Arc<Layout>>, EngineError> {
    let ids = (0..plan.filesets.len() as u32).map(FilesetId);
    ids.map(|id| {
        Layout::new(plan, id)
            .map(Arc::new)
            .map_err(EngineError::refused)
    })
    .collect()
}

pub(crate) fn inspect(
    pool: &SetupPool,
    plan: &Plan,
    settings: &Settings,
    ranks: u32,
    layouts: Vec<Arc<Layout>>,
) -> Result<Preflight, EngineError> {
    let space = pool.target.space().map_err(|e| {
        let why = pool.target.explain(e);
        EngineError::Refused(format!("`{}`: {why}", plan.work_dir.dir.display()))
    })?;
    let mut found = Preflight::of(pool, plan, ranks, layouts);
    found.space = space;
    found.block_device(pool, plan, settings, ranks);
    found.guards(pool, plan);
    if pool.target.keeps_files() {
        match plan.pattern() {
            Some(_) => found.pattern(plan),
            None => found.sizes(plan),
        }
    }
    found.direct(pool, plan);
    found.limits(pool, plan, ranks);
    found.settings(pool, plan, settings);
    let idle_options = super::idle_settings::refusals(&*pool.target, plan);
    found.refusals.extend(idle_options);
    found.notes = super::idle_settings::notes(plan);
    let data_set = || data_set(plan, found.layouts.iter().map(|layout| &**layout));
    let remarks = pool.target.remarks(&data_set);
    found.notes.extend(remarks);
    Ok(found)
}

/// Reasons why a rank cannot take part in a run that rank 0 has begun.
pub(super) fn of_member(
    pool: &SetupPool,
    plan: &Plan,
    settings: &Settings,
    ranks: u32,
) -> Vec<String> {
    let mut found = Preflight::of(pool, plan, ranks, vec![]);
    found.limits(pool, plan, ranks);
    found.settings(pool, plan, settings);
    found.refusals
}

impl Preflight {
    /// The preflight before any check.
    fn of(pool: &SetupPool, plan: &Plan, ranks: u32, layouts: Vec<Arc<Layout>>) -> Self {
        Self {
            reusable: vec![false; layouts.len()],
            made: vec![0; layouts.len()],
            bytes_needed: ByteSum::default(),
            inodes_needed: 0,
            bytes_at_most: ByteSum::default(),
            space: None,
            populate_estimate: Duration::ZERO,
            buffer_bytes: super::limits::buffers(&*pool.target, plan, ranks),
            target: pool.target.describe(),
            refusals: vec![],
            notes: vec![],
            long_replies: vec![],
            layouts,
        }
    }

    fn refuse(&mut self, reason: impl Into<String>) {
        self.refusals.push(reason.into());
    }

    /// Refuses a Plan whose files are not the one block device of the target.
    fn block_device(&mut self, pool: &SetupPool, plan: &Plan, settings: &Settings, ranks: u32) {
        let Some(bytes) = pool.target.block_device_bytes() else {
            return;
        };
        let target = &settings.target;
        let files: u64 = self.layouts.iter().map(|l| u64::from(l.files())).sum();
        match &self.layouts[..] {
            [layout] if files == 1 && plan.pattern().is_none() => {
                let size = layout.size(FileId(0));
                if size > bytes {
                    let (size, bytes) = (Bytes(size), Bytes(bytes));
                    self.refuse(format!(
                        "target `{target}` has {bytes}, and the file of the workload has {size}"
                    ));
                }
            }
            _ => self.refuse(format!(
                "target `{target}` is one block device, which serves a workload with one file: the workload has \
                 other files"
            )),
        }
        if ranks > 1 {
            self.refuse(format!(
                "target `{target}` is one block device, which one process opens exclusively: the run has {ranks} \
                 ranks"
            ));
        }
    }

    fn guards(&mut self, pool: &SetupPool, plan: &Plan) {
        for look in 1.. {
            let trees = self.trees(pool, plan);
            if !self.refusals.is_empty() {
                return;
            }
            let in_the_way = self.filesets(pool, plan, &trees);
            if in_the_way.is_empty() || look == MAX_LOOKS_AT_ROOTS {
                self.refusals.extend(in_the_way);
                break;
            }
        }
        let verifies = plan.options.verify || plan.pattern().is_some_and(|p| p.verify);
        if !pool.target.keeps_files() && verifies {
            self.refuse("this target stores no files, so there is nothing to verify");
        }
        let searches = |p: &Pattern| {
            p.stages
                .iter()
                .any(|s| matches!(s.work, StageWork::Search(_)))
        };
        if !pool.target.keeps_files() && plan.pattern().is_some_and(searches) {
            self.refuse("this target stores no files, so there is nothing to find");
        }
        if pool.target.keeps_files()
            && let Err(e) = pool.target.writable()
        {
            let place = plan.work_dir.dir.display();
            let why = pool.target.explain(e);
            self.refuse(format!("`{place}` cannot be written to: {why}"));
        }
    }

    /// Trees in the guarded directories; refuses directories that the run cannot use.
    fn trees(&mut self, pool: &SetupPool, plan: &Plan) -> Vec<Tree> {
        let mut trees = Vec::new();
        for guard in &plan.work_dir.guards {
            match marker::look(pool, plan, guard, RemoteOwner::Refuse) {
                Err(e) => self.refuse(e.to_string()),
                Ok(found) => {
                    // A target that keeps no files has no objects of an earlier pattern.
                    let keeps = pool.target.keeps_files();
                    if let Some(why) = marker::pattern_refusal(plan, &found).filter(|_| keeps) {
                        self.refuse(why);
                    }
                    if let GuardState::Marked(marker) = found {
                        trees.extend(marker.trees);
                    }
                }
            }
        }
        trees
    }

    /// Determines which filesets can be reused. Returns a reason for each fileset whose root has files that are in no
    /// tree of `trees`.
    fn filesets(&mut self, pool: &SetupPool, plan: &Plan, trees: &[Tree]) -> Vec<String> {
        let mut in_the_way = Vec::new();
        for (i, fileset) in plan.filesets.iter().enumerate() {
            let root = plan.root_of(FilesetId(i as u32));
            let layout = &self.layouts[i];
            match trees.iter().find(|t| t.root == root) {
                // The tree will be created again, with contents that can be verified.
                Some(_) if plan.options.verify => {}
                Some(t) if fileset.grows => {
                    self.made[i] = t.files_made(layout).unwrap_or(0);
                    let used = plan.files_used(FilesetId(i as u32));
                    self.reusable[i] = self.made[i] >= used.end;
                }
                Some(t) => {
                    self.reusable[i] = t.is_whole(layout);
                }
                None => {
                    let found = marker::check_vacant(pool, plan, &root);
                    in_the_way.extend(found.err().map(|e| e.to_string()));
                }
            }
        }
        in_the_way
    }

    /// Refuses a pattern with direct I/O that the target's file system does not support.
    fn direct(&mut self, pool: &SetupPool, plan: &Plan) {
        let Some(pattern) = plan.pattern().filter(|p| p.direct) else {
            return;
        };
        let place = plan.work_dir.dir.display();
        match pool.target.direct_io() {
            DirectIo::Refused => self.refuse(format!(
                "`{place}` is on a file system that does not take direct I/O (O_DIRECT): tmpfs \
                 before Linux 6.6 and other file systems in memory do not; without it, --drop-caches \
                 drops what the page cache holds"
            )),
            DirectIo::Aligned { to } => {
                let sizes = pattern.transfer_sizes();
                if let Some(size) = sizes.iter().find(|s| *s % to != 0) {
                    self.refuse(format!(
                        "direct I/O (O_DIRECT) on `{place}` takes multiples of {to} bytes, which \
                         {size} is not"
                    ));
                }
            }
            DirectIo::Unknown => {}
        }
    }

    /// Determines and checks the space that a pattern needs.
    fn pattern(&mut self, plan: &Plan) {
        let (Some(pattern), Some(space)) = (plan.pattern(), self.space) else {
            return;
        };
        let needs = pattern.needs(space.block);
        self.bytes_needed = ByteSum::exact(needs.bytes);
        self.bytes_at_most = self.bytes_needed;
        self.inodes_needed = needs.objects.saturating_add(needs.sets);
        let advice = [": fewer or smaller ones are needed", ": fewer are needed"];
        self.check_space(plan, "the objects take", advice);
    }

    /// Refuses a run for which the target has too little space. `advice` has a text for missing bytes and a text for
    /// missing inodes.
    fn check_space(&mut self, plan: &Plan, what: &str, advice: [&str; 2]) {
        let Some(space) = self.space else { return };
        let place = plan.work_dir.dir.display();
        if self.bytes_needed.bytes > space.bytes.into() {
            let (needed, free) = (self.bytes_needed, Bytes(space.bytes));
            let advice = advice[0];
            self.refuse(format!(
                "{what} {needed} and `{place}` has {free} free{advice}"
            ));
        }
        if let Some(free) = space.inodes.filter(|free| self.inodes_needed > *free) {
            let (needed, advice) = (self.inodes_needed, advice[1]);
            self.refuse(format!(
                "{what} {needed} inodes and `{place}` has {free} free{advice}"
            ));
        }
    }

    fn sizes(&mut self, plan: &Plan) {
        let block = self.space.map_or(1, |s| s.block.max(1));
        let mut files = 0;
        for (i, layout) in self.layouts.iter().enumerate() {
            let (id, made) = (FilesetId(i as u32), self.made[i]);
            let end = plan.files_used(id).end;
            let initial = layout.size_summary_of(made..end, true);
            let all = layout.size_summary_of(0..end, false);
            // On average half of the last block of a file is unused.
            let bytes = |s: &SizeSummary| {
                let mut sum = s.sum();
                sum += ByteSum::exact(u128::from(s.files) * u128::from(block / 2));
                sum
            };
            self.bytes_at_most += bytes(&all);
            if self.reusable[i] {
                continue;
            }
            files += initial.files;
            self.bytes_needed += bytes(&initial);
            self.inodes_needed += initial.files + initial_dirs(plan, id, layout);
        }
        let bytes = self.bytes_needed.bytes as f64;
        let seconds = files as f64 / ESTIMATED_FILES_PER_S + bytes / ESTIMATED_BYTES_PER_S;
        self.populate_estimate = Duration::from_secs_f64(seconds);
        let advice = ["; make the filesets smaller with --set", ""];
        self.check_space(plan, "populating takes", advice);
    }

    fn limits(&mut self, pool: &SetupPool, plan: &Plan, ranks: u32) {
        self.refusals
            .extend(super::limits::refusals(pool, plan, ranks));
        if plan.workers() == 0 && plan.script.contains(&Phase::Start) {
            self.refuse("the workload starts no workers: it has no thread with instances above 0");
        }
    }

    /// Refuses operations of mixes and jobs, and all operations on a block device, that the target does not support,
    /// grouped by reason.
    fn operations(&mut self, pool: &SetupPool, plan: &Plan, settings: &Settings) {
        // A Plan without a load only creates files, which needs no support for operations.
        if !plan.script.iter().any(Phase::begins_load) {
            return;
        }
        let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
        let mixes = plan.groups.iter().filter_map(|g| g.program.mix());
        let of_mixes = mixes.flat_map(|m| &m.table);
        let of_mixes = of_mixes.map(|row| (row.op.kind(), row.op.to_string()));
        let mut of_jobs = Vec::new();
        for job in plan.groups.iter().filter_map(|g| g.program.job()) {
            job.for_each_row(&mut |row| {
                let operation = plan.operation(row);
                of_jobs.push((operation.kind, operation.name.clone()));
            });
        }
        // No operation on a name of a file may reach a block device.
        let of_device = plan.operations.iter();
        let is_device = pool.target.block_device_bytes().is_some();
        // A Plan that the device cannot serve at all needs no refusal of single operations.
        let of_device = of_device.filter(|_| is_device && self.refusals.is_empty());
        let of_device = of_device.map(|operation| (operation.kind, operation.name.clone()));
        for (kind, name) in of_mixes.chain(of_jobs).chain(of_device) {
            let Some(why) = pool.target.unsupported_reason(kind) else {
                continue;
            };
            let op = format!("`{name}`");
            match reasons.iter_mut().find(|(known, _)| *known == why) {
                Some((_, ops)) if ops.contains(&op) => {}
                Some((_, ops)) => ops.push(op),
                None => reasons.push((why, vec![op])),
            }
        }
        for (why, ops) in reasons {
            let target = &settings.target;
            self.refuse(format!(
                "target `{target}` cannot do {}: {why}",
                ops.join(", ")
            ));
        }
    }

    fn settings(&mut self, pool: &SetupPool, plan: &Plan, settings: &Settings) {
        if settings.clock() == ClockKind::Virtual {
            let windows = |load: &[Phase]| load.iter().filter(|p| **p == Phase::OpenWindow).count();
            let mut loads = plan.script.split(Phase::begins_load);
            let is_command = |p: &Phase| matches!(p, Phase::System { .. });
            if loads.any(|load| windows(load) > 1) || plan.script.iter().any(is_command) {
                self.refuse(
                    "virtual time supports only one measured window between the start and the stop of \
                     the workers, and no shell commands",
                );
            }
        }
        self.operations(pool, plan, settings);
        for cpu in &plan.options.cpus {
            if !plimsoll_lane::os::may_run_on(*cpu) {
                self.refuse(format!(
                    "--cpus names processor {cpu}, which this process may not use"
                ));
            }
        }
        if plan.options.drop_caches == Cold::System && !rustix::process::geteuid().is_root() {
            self.refuse("--drop-caches=system drops the whole machine's caches and needs root");
        }
        self.requirements(plan, settings);
    }

    /// Refuses requirements that a run of the planned length cannot meet.
    fn requirements(&mut self, plan: &Plan, settings: &Settings) {
        let is_until_done = |phase: &Phase| {
            matches!(
                phase,
                Phase::Wait {
                    until: Until::Done { .. },
                    ..
                }
            )
        };
        let required = &plan.options.require;
        if settings.clock() == ClockKind::Virtual {
            let of_client = [
                (Requirement::Storage, "storage"),
                (Requirement::Quiet, "quiet"),
            ];
            for (_, word) in of_client.iter().filter(|(r, _)| required.contains(r)) {
                self.refuse(format!("--require {word} needs a target in real time"));
            }
        }
        let mut cached = plan.filesets.iter().filter(|f| f.cached == Some(true));
        if required.contains(&Requirement::Storage)
            && let Some(fileset) = cached.next()
        {
            self.refuse(format!(
                "--require storage excludes cached files, which fileset `{}` requests",
                fileset.name
            ));
        }
        let (_, window) = plan.times();
        if required.contains(&Requirement::Steady)
            && !plan.script.iter().any(is_until_done)
            && window < settings.interval * MIN_INTERVALS
        {
            self.refuse(format!(
                "--require steady needs at least {MIN_INTERVALS} intervals of {} in the measured window, which is {} \
                 long: choose a longer --time or a shorter --interval",
                show_duration(settings.interval),
                show_duration(window)
            ));
        }
    }
}
