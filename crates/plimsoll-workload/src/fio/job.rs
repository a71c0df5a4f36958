//! A job of fio: the settings of a section as typed values.

use super::lower::Context;
use super::text::{Section, Setting};
use super::values::{self, KbBase};
use crate::report::Reported;
use plimsoll_diagnostics::{Problem, Span};
use plimsoll_plan::{
    Arrivals, InitialData, NameOp, Percentile, Spread, SteadyRule, Zone, parse_percent,
    show_duration,
};
use std::time::Duration;

/// Sizes of the transfers in one direction.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Sizes {
    Same(u64),
    /// Multiples of the smallest size, between two bounds.
    Range(u64, u64),
    /// Sizes with their percentages.
    Split(Vec<(u64, f64)>),
}

impl Sizes {
    pub(super) fn smallest(&self) -> u64 {
        match self {
            Self::Same(size) | Self::Range(size, _) => *size,
            Self::Split(parts) => parts.iter().map(|p| p.0).min().unwrap_or(0),
        }
    }

    pub(super) fn largest(&self) -> u64 {
        match self {
            Self::Same(size) | Self::Range(_, size) => *size,
            Self::Split(parts) => parts.iter().map(|p| p.0).max().unwrap_or(0),
        }
    }

    /// Mean size in bytes.
    pub(super) fn mean(&self) -> f64 {
        match self {
            Self::Same(size) => *size as f64,
            Self::Range(low, high) => (*low as f64 + *high as f64) / 2.0,
            Self::Split(parts) => parts.iter().map(|(size, p)| *size as f64 * p / 100.0).sum(),
        }
    }
}

/// Engine of a job: how transfers are executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Engine {
    /// System calls, one at a time.
    Sync,
    /// Many transfers in flight.
    Async,
    Mapped,
    /// No transfers at all.
    Null,
    /// NFS without the kernel.
    Nfs,
    Names(NameOp),
}

/// A value with its place in the text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct At<T> {
    pub(super) value: T,
    pub(super) span: Span,
}

/// Block device that a job names.
#[derive(Debug)]
pub(super) struct Device {
    pub(super) path: String,
    pub(super) bytes: u64,
}

/// Files of a job.
#[derive(Debug)]
pub(super) struct Files {
    /// Names of files that all clones of the job share; empty for files of the job's own.
    pub(super) names: Vec<String>,
    pub(super) names_span: Span,
    /// Block device, if the only name is the path of a block device.
    pub(super) device: Option<At<Device>>,
    pub(super) count: u32,
    pub(super) file_bytes: Option<At<u64>>,
    pub(super) bytes: Option<At<u64>>,
    pub(super) io_bytes: Option<u64>,
    pub(super) open: Option<u32>,
    /// State of files that the job only writes when the job starts.
    pub(super) initially: InitialData,
    pub(super) overwrites: bool,
}

/// A rate of a job.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rate {
    pub(super) value: At<f64>,
    /// Whether the rate is in bytes, instead of transfers, per second.
    pub(super) is_bytes: bool,
    pub(super) arrivals: Arrivals,
}

/// Latency limit of a job.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LatencyTarget {
    pub(super) limit: Duration,
    /// Percentile of the transfers that the limit is for.
    pub(super) percentile: Percentile,
    /// Length of the run at each depth of the search; `None` for the `runtime` of the job.
    pub(super) window: Option<Duration>,
}

/// A measurement that begins when the rate is steady.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Steady {
    pub(super) rule: SteadyRule,
    /// Length of the load before the rule judges the rate.
    pub(super) ramp: Duration,
    /// Length of the part of the load that the rule judges, and of the measured window.
    pub(super) over: Duration,
}

/// A job of fio.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) name: String,
    pub(super) span: Span,
    /// Settings that have no effect, for notes.
    pub(super) without_effect: Vec<(Span, &'static str, &'static str)>,
    /// Notes on differences between fio and Plimsoll.
    pub(super) notes: Vec<(Span, String)>,
    pub(super) begins_group: Option<Span>,
    pub(super) wait_for: Option<At<String>>,
    /// Whether the job only makes its files.
    pub(super) creates_only: Option<At<bool>>,
    pub(super) directory: Option<At<String>>,
    pub(super) nfs_url: Option<At<String>>,
    pub(super) engine: At<Engine>,
    pub(super) depth: u32,
    pub(super) clones: u32,
    pub(super) files: Files,
    pub(super) reads: bool,
    pub(super) writes: bool,
    pub(super) description: Option<String>,
    pub(super) sizes: [Sizes; 2],
    pub(super) sizes_span: Span,
    pub(super) align: Option<At<u64>>,
    pub(super) read_percent: u8,
    /// Spread of random offsets; `None` for sequential offsets.
    pub(super) spread: Option<Spread>,
    pub(super) random_percent: u8,
    pub(super) run: u32,
    pub(super) repeats_offset: bool,
    pub(super) skip: u64,
    pub(super) offset: u64,
    pub(super) offset_increment: u64,
    pub(super) next_file: plimsoll_plan::FileOrder,
    pub(super) transfers_per_file: u32,
    pub(super) transfers: Option<u64>,
    pub(super) loops: u64,
    pub(super) direct: bool,
    pub(super) dsync: bool,
    pub(super) advises: bool,
    pub(super) invalidates: bool,
    pub(super) fsync: Option<u64>,
    pub(super) fdatasync: Option<u64>,
    pub(super) flushes_at_end: bool,
    pub(super) runtime: Option<At<Duration>>,
    pub(super) time_based: Option<Span>,
    pub(super) ramp: At<Duration>,
    pub(super) steady: Option<At<Steady>>,
    pub(super) start_delay: Duration,
    pub(super) rate: Option<Rate>,
    pub(super) pause: Option<(u64, u64)>,
    pub(super) latency: Option<At<LatencyTarget>>,
    pub(super) seed: Option<At<u64>>,
    /// Whether the seed differs from run to run.
    pub(super) is_unseeded: Option<Span>,
    pub(super) verifies: Option<Span>,
    pub(super) content: Option<At<plimsoll_plan::Content>>,
    pub(super) nice: i8,
    pub(super) cpus: Option<At<Vec<u32>>>,
    pub(super) commands: [Option<String>; 2],
}

/// Reader of the settings of a section.
struct Reader<'a> {
    section: &'a Section,
    context: &'a Context,
    problems: &'a mut Vec<Problem>,
    base: KbBase,
    notes: Vec<(Span, String)>,
}

/// Makes a job of a section; problems are added to `problems`.
pub(super) fn job(
    section: &Section,
    context: &Context,
    problems: &mut Vec<Problem>,
) -> Result<Job, Reported> {
    let before = problems.len();
    let mut reader = Reader {
        section,
        context,
        problems,
        base: KbBase::Binary,
        notes: vec![],
    };
    let job = reader.job();
    let failed = reader.problems.len() > before;
    job.filter(|_| !failed).ok_or(Reported)
}

impl Reader<'_> {
    /// The last setting of an option; earlier settings are replaced.
    fn setting(&self, name: &str) -> Option<&Setting> {
        let mut settings = self.section.settings.iter().rev();
        settings.find(|s| s.option.name == name)
    }

    fn span(&self, name: &str) -> Span {
        self.setting(name).map_or(self.section.span, |s| s.span)
    }

    fn fail(&mut self, span: Span, message: impl Into<String>, label: &str, help: &str) {
        let problem = Problem::new(span, message, label);
        self.problems.push(if help.is_empty() {
            problem
        } else {
            problem.help(help)
        });
    }

    /// Parses the value of an option; reports a value that is not as expected.
    fn parsed<T>(
        &mut self,
        name: &str,
        parse: impl FnOnce(&str, KbBase) -> Result<T, String>,
    ) -> Option<At<T>> {
        let setting = self.setting(name)?;
        let span = setting.value_span;
        let value = setting.value.clone().unwrap_or_default();
        match parse(value.trim(), self.base) {
            Ok(value) => Some(At { value, span }),
            Err(expected) => {
                let message = format!("`{value}` is no value of `{name}`");
                self.fail(span, message, &expected, "");
                None
            }
        }
    }

    fn bytes(&mut self, name: &str) -> Option<At<u64>> {
        self.parsed(name, |text, base| {
            if text.ends_with('%') {
                return Err(
                    "expected a size in bytes: Plimsoll makes the files, which have no size before"
                        .into(),
                );
            }
            values::bytes(text, base)
        })
    }

    fn whole(&mut self, name: &str) -> Option<At<u64>> {
        self.parsed(name, |text, _| values::whole(text))
    }

    /// A whole number of at least 1.
    fn count(&mut self, name: &str, max: u64) -> Option<u64> {
        let count = self.parsed(name, |text, _| match values::whole(text)? {
            n if (1..=max).contains(&n) => Ok(n),
            _ => Err(format!("expected a whole number from 1 to {max}")),
        });
        count.map(|at| at.value)
    }

    fn percent(&mut self, name: &str) -> Option<u8> {
        let percent = self.parsed(name, |text, _| match values::whole(text)? {
            n @ 0..=100 => Ok(n as u8),
            _ => Err("expected a percentage from 0 to 100".into()),
        });
        percent.map(|at| at.value)
    }

    /// Whether a true or false option is on; an option without a value is on.
    fn is_on(&mut self, name: &str) -> Option<bool> {
        let setting = self.setting(name)?;
        if setting.value.is_none() {
            return Some(true);
        }
        self.parsed(name, |text, _| values::truth(text))
            .map(|at| at.value)
    }

    fn is_set(&mut self, name: &str) -> bool {
        self.is_on(name).unwrap_or(false)
    }

    fn text(&self, name: &str) -> Option<At<String>> {
        let setting = self.setting(name)?;
        let value = setting.value.clone().unwrap_or_default();
        Some(At {
            value,
            span: setting.value_span,
        })
    }

    fn note(&mut self, name: &str, text: &str) {
        let span = self.span(name);
        self.notes.push((span, text.to_owned()));
    }

    fn job(&mut self) -> Option<Job> {
        let base = self.parsed("kb_base", |text, _| match text {
            "1024" => Ok(KbBase::Binary),
            "1000" => Ok(KbBase::Decimal),
            _ => Err("expected 1024 or 1000".into()),
        });
        self.base = base.map_or(KbBase::Binary, |at| at.value);
        let engine = self.engine();
        let access = self.access()?;
        let sizes = self.sizes();
        let files = self.files();
        let depth = self.depth(engine.value);
        let pause = self.pause(depth);
        let rate = self.rate(&access);
        let flushes_at_end = self.is_set("end_fsync") | self.is_set("fsync_on_close");
        let spread = self.spread(access.is_random);
        let (next_file, transfers_per_file) = self.next_file();
        let transfers = self.whole("number_ios").map(|at| at.value);
        let time_based = self.is_set("time_based").then(|| self.span("time_based"));
        let direct = self.is_on("direct");
        let buffered = self.is_on("buffered");
        let zero = At {
            value: Duration::ZERO,
            span: self.section.span,
        };
        let commands = ["exec_prerun", "exec_postrun"].map(|name| self.text(name).map(|t| t.value));
        if flushes_at_end && access.writes && self.setting("runtime").is_some() {
            let name = if self.is_set("end_fsync") {
                "end_fsync"
            } else {
                "fsync_on_close"
            };
            self.note(
                name,
                "files are flushed after the last transfer of a job, not at the end of `runtime`",
            );
        }
        let every = |at: Option<At<u64>>| at.map(|at| at.value).filter(|n| *n > 0);
        let without_effect = self
            .section
            .settings
            .iter()
            .filter_map(|s| match s.option.handling {
                super::options::Handling::NoEffect(why) => Some((s.span, s.option.name, why)),
                _ => None,
            });
        let mut without_effect: Vec<_> = without_effect.collect();
        if let Some(directory) = self.setting("directory").filter(|_| files.device.is_some()) {
            let why = "a device is in no directory of the run";
            without_effect.push((directory.span, "directory", why));
        }
        let job = Job {
            name: self
                .text("name")
                .map_or_else(|| self.section.name.clone(), |t| t.value),
            span: self.section.span,
            without_effect,
            begins_group: self.is_set("stonewall").then(|| self.span("stonewall")),
            wait_for: self.text("wait_for"),
            creates_only: self.is_set("create_only").then(|| At {
                value: true,
                span: self.span("create_only"),
            }),
            directory: self.text("directory"),
            nfs_url: self.text("nfs_url"),
            engine,
            depth,
            clones: self.count("numjobs", 100_000).unwrap_or(1) as u32,
            files,
            reads: access.reads,
            writes: access.writes,
            description: self.text("description").map(|t| t.value),
            sizes_span: ["bssplit", "bsrange", "bs"]
                .into_iter()
                .find(|name| self.setting(name).is_some())
                .map_or(self.section.span, |name| self.span(name)),
            sizes,
            align: self.bytes("ba"),
            read_percent: self.read_percent(),
            spread,
            random_percent: self.percent("percentage_random").unwrap_or(100),
            run: access.run,
            repeats_offset: access.repeats_offset,
            skip: access.skip,
            offset: self.bytes("offset").map_or(0, |at| at.value),
            offset_increment: self.bytes("offset_increment").map_or(0, |at| at.value),
            next_file,
            transfers_per_file,
            transfers,
            loops: self.count("loops", u64::from(u32::MAX)).unwrap_or(1),
            direct: direct.unwrap_or(false) || buffered == Some(false),
            dsync: self.sync(),
            advises: self.advises(),
            invalidates: self.is_on("invalidate").unwrap_or(true),
            fsync: every(self.whole("fsync")),
            fdatasync: every(self.whole("fdatasync")),
            flushes_at_end,
            runtime: self
                .parsed("runtime", |text, _| values::time(text))
                .filter(|at| !at.value.is_zero()),
            time_based,
            ramp: self
                .parsed("ramp_time", |text, _| values::time(text))
                .unwrap_or(zero),
            steady: self.steady(),
            start_delay: self.start_delay(),
            rate,
            pause,
            latency: self.latency_target(),
            seed: self.whole("randseed"),
            is_unseeded: self.unseeded(),
            verifies: self.verifies(),
            content: self.content(),
            nice: self.nice(),
            cpus: self.parsed("cpus_allowed", |text, _| {
                plimsoll_plan::option_values::cpu_list(text)
            }),
            commands,
            notes: std::mem::take(&mut self.notes),
        };
        self.check(&job);
        Some(job)
    }

    /// Refuses combinations of options that contradict each other or that Plimsoll does not have.
    fn check(&mut self, job: &Job) {
        if job.time_based.is_some() && job.runtime.is_none() {
            let span = self.span("time_based");
            self.fail(span, "`time_based` needs a `runtime`", "without an end", "");
        }
        if let Some(steady) = job.steady {
            let Steady { ramp, over, .. } = steady.value;
            let runtime = job.runtime.map(|at| at.value);
            if job.time_based.is_none() {
                let message = "`steadystate` needs `time_based` and `runtime`";
                let help = "a measured window of `steadystate_duration` follows the steady rate";
                self.fail(steady.span, message, "the job may end before", help);
            } else if runtime.is_some_and(|runtime| runtime < ramp + over) {
                let span = self.span("runtime");
                let message = "`runtime` ends before the rate can be judged";
                let help = "at least `steadystate_ramp_time` and `steadystate_duration` together";
                self.fail(span, message, "too short for `steadystate`", help);
            }
        }
        let creates = [NameOp::Create, NameOp::MakeDir].map(Engine::Names);
        if !creates.contains(&job.engine.value) && self.is_set("create_on_open") {
            let span = self.span("create_on_open");
            let message = "`create_on_open` is not supported";
            let help = "files are created before the run; `ioengine=filecreate` measures creations";
            self.fail(span, message, "this option", help);
        }
        if job.fsync.is_some() && job.fdatasync.is_some() {
            let span = self.span("fdatasync");
            let message = "`fsync` and `fdatasync` together are not supported";
            self.fail(
                span,
                message,
                "the second of both",
                "`fsync` flushes the data too",
            );
        }
        if let Engine::Names(op) = job.engine.value {
            if let Some(At { span, .. }) = job.latency {
                let message = "`latency_target` is for reads and writes";
                self.fail(span, message, "this option", "");
            }
            if let Some(span) = job.verifies {
                let message = "a job of operations on names has no data to verify";
                self.fail(span, message, "this option", "");
            }
            let repeats = job.loops > 1 || job.time_based.is_some();
            let message = match op {
                NameOp::Delete => Some("`filedelete` removes each file once"),
                NameOp::MakeDir => Some("`dircreate` creates each directory once"),
                NameOp::RemoveDir => Some("`dirdelete` removes each directory once"),
                NameOp::Create | NameOp::Stat | NameOp::StatDir => None,
            };
            if let Some(message) = message.filter(|_| repeats) {
                let help = "leave out `loops` and `time_based`";
                self.fail(job.engine.span, message, "this engine", help);
            }
            if job.rate.is_some() || job.pause.is_some() {
                let span = job.engine.span;
                let message = "operations on names have no `rate` and no `thinktime`";
                self.fail(span, message, "this engine", "leave out both options");
            }
        }
        if job.files.device.is_some() {
            self.check_device(job);
        }
        let is_random = job.spread.is_some();
        if !is_random && job.random_percent < 100 {
            let span = self.span("percentage_random");
            let message = "`percentage_random` needs random offsets";
            self.fail(
                span,
                message,
                "`rw` is sequential",
                "`rw=randread` or another random `rw`",
            );
        }
        let blocks = [&job.sizes[0], &job.sizes[1]].map(Sizes::smallest);
        if job.spread == Some(Spread::Once) && job.reads && job.writes && blocks[0] != blocks[1] {
            let message = "each block can be visited once only if reads and writes have the same smallest size";
            self.fail(
                job.sizes_span,
                message,
                "these sizes differ",
                "add `norandommap=1`: blocks may be visited more than once",
            );
        }
        if let Some(align) = job.align
            && job.spread == Some(Spread::Once)
            && (align.value != job.sizes[0].smallest() || align.value != job.sizes[1].smallest())
        {
            let message =
                "each block can be visited once only if offsets are multiples of the size";
            self.fail(
                align.span,
                message,
                "another alignment",
                "add `norandommap=1`",
            );
        }
    }

    fn engine(&mut self) -> At<Engine> {
        use plimsoll_plan::NameOp::{Create, Delete, MakeDir, RemoveDir, Stat, StatDir};
        let parsed = self.parsed("ioengine", |text, _| {
            Ok(match text {
                "sync" | "psync" | "vsync" | "pvsync" | "pvsync2" => Engine::Sync,
                "libaio" | "io_uring" | "posixaio" => Engine::Async,
                "mmap" => Engine::Mapped,
                "null" => Engine::Null,
                "nfs" => Engine::Nfs,
                "filecreate" => Engine::Names(Create),
                "filestat" => Engine::Names(Stat),
                "filedelete" => Engine::Names(Delete),
                "dircreate" => Engine::Names(MakeDir),
                "dirstat" => Engine::Names(StatDir),
                "dirdelete" => Engine::Names(RemoveDir),
                "ftruncate" | "falloc" => {
                    return Err("not supported: operation mixes have `truncate`".into());
                }
                _ => {
                    return Err(
                        "not supported: expected sync, psync, libaio, io_uring, posixaio, mmap, null, nfs, \
                         filecreate, filestat, filedelete, dircreate, dirstat or dirdelete"
                            .into(),
                    );
                }
            })
        });
        let text = self.text("ioengine").map(|t| t.value);
        match text.as_deref().map(str::trim) {
            Some("libaio" | "posixaio") => self.note(
                "ioengine",
                "transfers of local files and devices go through io_uring",
            ),
            Some("vsync" | "pvsync" | "pvsync2") => {
                self.note("ioengine", "each transfer is one pread(2) or pwrite(2)");
            }
            Some("sync") => {
                self.note(
                    "ioengine",
                    "transfers are pread(2) and pwrite(2), without lseek(2)",
                );
            }
            Some("mmap") => self.note(
                "ioengine",
                "each transfer maps its bytes, copies and unmaps them; fio maps a file once",
            ),
            _ => {}
        }
        let default = At {
            value: Engine::Sync,
            span: self.section.span,
        };
        parsed.unwrap_or(default)
    }

    fn depth(&mut self, engine: Engine) -> u32 {
        let depth = self.count("iodepth", 100_000).unwrap_or(1) as u32;
        match engine {
            Engine::Async | Engine::Nfs | Engine::Null => depth,
            Engine::Sync | Engine::Mapped | Engine::Names(_) => {
                if depth > 1 {
                    self.note(
                        "iodepth",
                        "`iodepth` has no effect: the engine executes one transfer at a time, as in fio",
                    );
                }
                1
            }
        }
    }

    fn sizes(&mut self) -> [Sizes; 2] {
        let split = self.parsed("bssplit", split_of_directions);
        let range = self.parsed("bsrange", |text, base| {
            let [reads, writes] = values::of_directions(text);
            let range = |text: &str| match values::range(text, base)? {
                (0, _) => Err("expected sizes of at least 1 byte".to_owned()),
                (low, high) if low == high => Ok(Sizes::Same(low)),
                (low, high) => Ok(Sizes::Range(low, high)),
            };
            Ok([range(reads)?, range(writes)?])
        });
        let same = self.parsed("bs", |text, base| {
            let [reads, writes] = values::of_directions(text);
            let size = |text: &str| match values::bytes(
                if text.is_empty() { "4096" } else { text },
                base,
            )? {
                0 => Err("expected a size of at least 1 byte".to_owned()),
                size => Ok(Sizes::Same(size)),
            };
            Ok([size(reads)?, size(writes)?])
        });
        let given = split.or(range).or(same);
        given.map_or([Sizes::Same(4096), Sizes::Same(4096)], |at| at.value)
    }

    fn files(&mut self) -> Files {
        let names = self.text("filename").map_or(vec![], |t| {
            let names = file_names(&t.value).into_iter();
            names.filter(|name| !name.is_empty()).collect()
        });
        let names_span = self.span("filename");
        for name in &names {
            let message = format!("`{name}` is no name of a file below the directory");
            if !name.starts_with("/dev/") && (name.contains('/') || name == "." || name == "..") {
                let help = "Plimsoll works only in directories that are empty, new or its own: give the directory by \
                            `--dir DIR` or `directory=DIR`, and here a name without `/`";
                self.fail(names_span, message, "outside of the directory", help);
            }
        }
        let device = self.device(&names);
        let bytes = match &device {
            Some(device) => self.part_of(device.value.bytes),
            None => self.bytes("size"),
        };
        let count = match names.len() {
            0 => self.count("nrfiles", 1_000_000).unwrap_or(1) as u32,
            n => n as u32,
        };
        let fallocate = self.parsed("fallocate", |text, _| match text {
            "none" | "0" => Ok(InitialData::Empty),
            "native" | "posix" | "1" => Ok(InitialData::Allocated),
            "truncate" => Ok(InitialData::Sparse),
            _ => Err("expected none, native, posix or truncate".into()),
        });
        Files {
            names,
            names_span,
            device,
            count,
            file_bytes: self.bytes("filesize"),
            bytes,
            io_bytes: self.bytes("io_size").map(|at| at.value),
            open: self.count("openfiles", 1_000_000).map(|n| n as u32),
            initially: fallocate.map_or(InitialData::Allocated, |at| at.value),
            overwrites: self.is_set("overwrite"),
        }
    }

    /// The block device among the names of a job; reports a device that the job may not use.
    fn device(&mut self, names: &[String]) -> Option<At<Device>> {
        let path = names.iter().find(|name| name.starts_with("/dev/"))?.clone();
        let span = self.text("filename")?.span;
        let found = match (self.context.look_at_device)(&path) {
            Ok(found) => found,
            Err(why) => {
                let help = "below /dev, `filename` takes a block device; `--dir DIR` is for files";
                self.fail(span, why, "this name", help);
                return None;
            }
        };
        if names.len() > 1 {
            let help = "give one device, or files below the directory";
            self.fail(span, "a job on a device has one name", "these names", help);
            return None;
        }
        if self.context.raw_device.is_none() {
            let message = format!("`{path}` is a raw device: {}", found.description);
            let help = format!(
                "`--raw-device SERIAL` permits the jobs to read and overwrite the device: SERIAL is the serial of the \
                 device, which {} has",
                found.serial_place
            );
            self.fail(span, message, "a device", &help);
            return None;
        }
        let bytes = found.bytes;
        Some(At {
            value: Device { path, bytes },
            span,
        })
    }

    /// The value of `size` on a device of `all` bytes, in bytes or as a percentage of the device.
    fn part_of(&mut self, all: u64) -> Option<At<u64>> {
        self.parsed("size", |text, base| match text.strip_suffix('%') {
            None => values::bytes(text, base),
            Some(percent) => match values::whole(percent)? {
                percent @ 1..=100 => Ok((u128::from(all) * u128::from(percent) / 100) as u64),
                _ => Err("expected a percentage of the device from 1% to 100%".into()),
            },
        })
    }

    /// Refuses options without a meaning on a device.
    fn check_device(&mut self, job: &Job) {
        let refused = match job.engine.value {
            Engine::Sync | Engine::Async | Engine::Mapped => None,
            Engine::Null | Engine::Nfs | Engine::Names(_) => Some(job.engine.span),
        };
        let allocates = job.files.initially != InitialData::Empty;
        let fallocate = self.setting("fallocate").filter(|_| allocates);
        for (span, message) in [
            (refused, "this engine does not work on a device"),
            (
                job.verifies,
                "Plimsoll does not verify the content of a device",
            ),
            (
                fallocate.map(|s| s.span),
                "a device has all of its blocks: `fallocate` has no meaning",
            ),
            (
                job.files.file_bytes.map(|at| at.span),
                "a device has a size of its own: `size` gives the part that the job uses",
            ),
        ] {
            if let Some(span) = span {
                self.fail(span, message, "on a device", "leave out the option");
            }
        }
    }

    fn access(&mut self) -> Option<Access> {
        let parsed = self.parsed("rw", |text, base| {
            let (name, number) = match text.split_once(':') {
                Some((name, number)) => (name, Some(number)),
                None => (text, None),
            };
            let (is_random, reads, writes) = match name {
                "read" => (false, true, false),
                "write" => (false, false, true),
                "randread" => (true, true, false),
                "randwrite" => (true, false, true),
                "rw" | "readwrite" => (false, true, true),
                "randrw" => (true, true, true),
                "trim" | "randtrim" | "trimwrite" | "randtrimwrite" => {
                    return Err("not supported: Plimsoll does not trim".into());
                }
                _ => {
                    return Err("expected read, write, randread, randwrite, rw or randrw".into());
                }
            };
            let mut access = Access {
                is_random,
                reads,
                writes,
                run: 1,
                skip: 0,
                repeats_offset: false,
            };
            match (number, is_random) {
                (None, _) => {}
                (Some(number), true) => match values::whole(number)? {
                    n @ 1..=1_000_000 => access.run = n as u32,
                    _ => {
                        return Err(
                            "expected 1 to 1000000 transfers from each random offset on".into()
                        );
                    }
                },
                (Some(number), false) if number.starts_with('-') => {
                    return Err("not supported: reading backwards".into());
                }
                (Some(number), false) => access.skip = values::bytes(number, base)?,
            }
            Ok(access)
        });
        let mut access = match parsed {
            Some(at) => at.value,
            None if self.setting("rw").is_some() => return None,
            None => Access {
                is_random: false,
                reads: true,
                writes: false,
                run: 1,
                skip: 0,
                repeats_offset: false,
            },
        };
        let repeats = self.parsed("rw_sequencer", |text, _| match text {
            "sequential" => Ok(false),
            "identical" => Ok(true),
            _ => Err("expected sequential or identical".into()),
        });
        access.repeats_offset = repeats.is_some_and(|at| at.value) && access.is_random;
        Some(access)
    }

    fn spread(&mut self, is_random: bool) -> Option<Spread> {
        let drawn = self.parsed("random_distribution", |text, _| spread_of(text));
        let repeats = self.is_set("norandommap");
        let drawn = drawn.map(|at| at.value);
        if !is_random {
            return None;
        }
        Some(match drawn {
            Some(Some(spread)) => spread,
            _ if repeats => Spread::Uniform,
            _ => Spread::Once,
        })
    }

    fn next_file(&mut self) -> (plimsoll_plan::FileOrder, u32) {
        use plimsoll_plan::FileOrder;
        let parsed = self.parsed("file_service_type", |text, _| {
            let (name, number) = match text.split_once(':') {
                Some((name, number)) => (
                    name,
                    values::whole(number)?.clamp(1, u64::from(u32::MAX)) as u32,
                ),
                None => (text, 1),
            };
            Ok(match name {
                "roundrobin" => (FileOrder::RoundRobin, number),
                "sequential" => (FileOrder::Sequential, number),
                "random" => (FileOrder::Random, number),
                _ => return Err("expected roundrobin, sequential or random".into()),
            })
        });
        parsed.map_or((FileOrder::RoundRobin, 1), |at| at.value)
    }

    fn read_percent(&mut self) -> u8 {
        let reads = self.percent("rwmixread");
        let writes = self.percent("rwmixwrite");
        reads.or(writes.map(|writes| 100 - writes)).unwrap_or(50)
    }

    fn sync(&mut self) -> bool {
        let parsed = self.parsed("sync", |text, _| match text {
            "none" | "0" => Ok((false, false)),
            "sync" | "1" => Ok((true, true)),
            "dsync" => Ok((true, false)),
            _ => Err("expected none, sync or dsync".into()),
        });
        let (is_sync, is_full) = parsed.map_or((false, false), |at| at.value);
        if is_full {
            self.note(
                "sync",
                "files are opened with O_DSYNC: a write returns when its data are on stable storage, not all times of the file",
            );
        }
        is_sync
    }

    fn advises(&mut self) -> bool {
        let advises = self.parsed("fadvise_hint", |text, _| match text {
            "0" | "none" => Ok(false),
            "1" => Ok(true),
            "random" | "sequential" | "noreuse" => {
                Err("not supported: one kind of advice; expected 0 or 1".into())
            }
            _ => Err("expected 0 or 1".into()),
        });
        advises.is_none_or(|at| at.value)
    }

    fn start_delay(&mut self) -> Duration {
        let delay = self.parsed("startdelay", |text, _| {
            if text.contains('-') {
                return Err("not supported: a random delay; expected one time".into());
            }
            values::time(text)
        });
        delay.map_or(Duration::ZERO, |at| at.value)
    }

    fn steady(&mut self) -> Option<At<Steady>> {
        let time = |text: &str, _| values::time(text);
        let over = self.parsed("steadystate_duration", time);
        let ramp = self.parsed("steadystate_ramp_time", time);
        let rule = self.parsed("steadystate", |text, _| {
            const EXPECTED: &str = "expected a metric with a limit, such as iops_slope:0.3%";
            let (metric, limit) = text.split_once(':').ok_or(EXPECTED)?;
            let is_slope = match metric {
                "iops" | "bw" => false,
                "iops_slope" | "bw_slope" => true,
                _ => return Err("not supported: expected iops, bw, iops_slope or bw_slope".into()),
            };
            if !limit.ends_with('%') {
                return Err(
                    "not supported: expected a percentage of the mean rate, such as iops:2%".into(),
                );
            }
            Ok((metric.starts_with("bw"), is_slope, parse_percent(limit)?))
        });
        let Some(At { value: rule, span }) = rule else {
            let given = over.or(ramp).filter(|at| !at.value.is_zero());
            if let (Some(time), None) = (given, self.setting("steadystate")) {
                let message = "a time of `steadystate` needs `steadystate`";
                let help = "`steadystate=iops_slope:0.3%` gives the metric and the limit";
                self.fail(time.span, message, "this time", help);
            }
            return None;
        };
        let (is_bandwidth, is_slope, percent) = rule;
        let least = SteadyRule::MIN_OVER;
        let Some(over) = over.map(|at| at.value).filter(|over| *over >= least) else {
            let span = self
                .setting("steadystate_duration")
                .map_or(span, |s| s.value_span);
            let least = show_duration(least);
            let message =
                format!("`steadystate` needs a `steadystate_duration` of at least {least}");
            let help = "the rule judges rates of a second, and a window of this length is measured";
            self.fail(span, message, "without a length to judge", help);
            return None;
        };
        self.note(
            "steadystate",
            "a measured window of `steadystate_duration` follows the steady rate; fio reports the time before",
        );
        if is_bandwidth {
            let text = "the judged rate is of transfers, which is the bandwidth if all transfers have one size";
            self.note("steadystate", text);
        }
        let rule = match is_slope {
            true => SteadyRule::Slope { percent, over },
            false => SteadyRule::Deviation { percent, over },
        };
        let ramp = ramp.map_or(Duration::ZERO, |at| at.value);
        let value = Steady { rule, ramp, over };
        Some(At { value, span })
    }

    fn pause(&mut self, depth: u32) -> Option<(u64, u64)> {
        let time = self.parsed("thinktime", |text, _| values::time_in_micros(text))?;
        let after = self
            .count("thinktime_blocks", u64::from(u32::MAX))
            .unwrap_or(1);
        self.parsed("thinktime_blocks_type", |text, _| match text {
            "complete" => Ok(()),
            _ => Err("not supported: expected complete".into()),
        });
        if time.value.is_zero() {
            return None;
        }
        if depth > 1 {
            let message = "`thinktime` needs an `iodepth` of 1";
            let help = "give more jobs by `numjobs`, each with its own pauses";
            self.fail(time.span, message, "with several transfers in flight", help);
        }
        let nanoseconds = u64::try_from(time.value.as_nanos()).unwrap_or(u64::MAX);
        Some((nanoseconds, after))
    }

    fn latency_target(&mut self) -> Option<At<LatencyTarget>> {
        let limit = self.parsed("latency_target", |text, _| {
            match values::time_in_micros(text)? {
                Duration::ZERO => Err("expected a time above 0".into()),
                limit => Ok(limit),
            }
        });
        let percentile = self.parsed("latency_percentile", |text, _| {
            text.parse::<Percentile>().map_err(|e| e.to_string())
        });
        let window = self.parsed("latency_window", |text, _| values::time_in_micros(text));
        let Some(At { value: limit, span }) = limit else {
            for name in ["latency_percentile", "latency_window"] {
                if self.setting(name).is_some() && self.setting("latency_target").is_none() {
                    let message = format!("`{name}` needs a `latency_target`");
                    self.fail(self.span(name), message, "without a limit", "");
                }
            }
            return None;
        };
        let all: Percentile = "100".parse().expect("100 is a percentile");
        let value = LatencyTarget {
            limit,
            percentile: percentile.map_or(all, |at| at.value),
            window: window.map(|at| at.value).filter(|time| !time.is_zero()),
        };
        Some(At { value, span })
    }

    fn rate(&mut self, access: &Access) -> Option<Rate> {
        let arrivals = self.parsed("rate_process", |text, _| match text {
            "linear" => Ok(Arrivals::Constant),
            "poisson" => Ok(Arrivals::Poisson),
            _ => Err("expected linear or poisson".into()),
        });
        let arrivals = arrivals.map_or(Arrivals::Constant, |at| at.value);
        let used = [access.reads, access.writes];
        // The larger rate of the directions that the job uses; 0 without a rate.
        let largest =
            |text: &str, parse: &dyn Fn(&str) -> Result<u64, String>| -> Result<u64, String> {
                let given = values::of_directions(text).into_iter().zip(used);
                let given = given.filter(|(text, is_used)| *is_used && !text.is_empty());
                given
                    .map(|(text, _)| parse(text))
                    .try_fold(0, |max, rate| Ok(rate?.max(max)))
            };
        let bytes = self.parsed("rate", |text, base| {
            largest(text, &|text| values::bytes(text, base))
        });
        let transfers = self.parsed("rate_iops", |text, _| largest(text, &values::whole));
        let (given, is_bytes) = match (bytes, transfers) {
            (Some(_), Some(at)) => {
                let message = "`rate` and `rate_iops` together are not supported";
                self.fail(at.span, message, "the second rate", "give one of both");
                return None;
            }
            (Some(at), None) => (at, true),
            (None, Some(at)) => (at, false),
            (None, None) => return None,
        };
        if given.value == 0 {
            return None;
        }
        if access.reads && access.writes {
            let message = "a job that reads and writes has no `rate`";
            let help = "fio limits reads and writes separately: give one job for each";
            self.fail(given.span, message, "this rate", help);
            return None;
        }
        Some(Rate {
            value: At {
                value: given.value as f64,
                span: given.span,
            },
            is_bytes,
            arrivals,
        })
    }

    fn unseeded(&mut self) -> Option<Span> {
        let repeats = self.is_on("randrepeat").unwrap_or(true);
        let all = self.is_on("allrandrepeat").unwrap_or(false);
        let is_unseeded = !repeats && !all && self.setting("randseed").is_none();
        is_unseeded.then(|| self.span("randrepeat"))
    }

    fn verifies(&mut self) -> Option<Span> {
        let verify = self.text("verify")?;
        if matches!(verify.value.as_str(), "0" | "null") {
            return None;
        }
        self.note(
            "verify",
            "every read is checked against Plimsoll's own record of what was written, and all files are read again at \
             the end; the kind of checksum has no effect",
        );
        Some(verify.span)
    }

    fn content(&mut self) -> Option<At<plimsoll_plan::Content>> {
        use plimsoll_plan::Content;
        if self.is_set("zero_buffers") {
            return Some(At {
                value: Content::Zero,
                span: self.span("zero_buffers"),
            });
        }
        let compressible = self
            .percent("buffer_compress_percentage")
            .filter(|p| *p > 0);
        let dedupable = self.percent("dedupe_percentage").filter(|p| *p > 0);
        let block = self.parsed("buffer_compress_chunk", |text, base| {
            match values::bytes(text, base)? {
                n if plimsoll_plan::is_block(n) => Ok(n),
                _ => Err("expected a power of two from 512 to 64k".into()),
            }
        });
        let name = match (compressible, dedupable) {
            (None, None) => return None,
            (Some(_), _) => "buffer_compress_percentage",
            (None, Some(_)) => "dedupe_percentage",
        };
        Some(At {
            value: Content::Blocks {
                compressible_percent: f64::from(compressible.unwrap_or(0)),
                dedupable_percent: f64::from(dedupable.unwrap_or(0)),
                block: block.map_or(4096, |at| at.value),
                groups: 64,
            },
            span: self.span(name),
        })
    }

    fn nice(&mut self) -> i8 {
        let nice = self.parsed("nice", |text, _| match text.parse::<i8>() {
            Ok(nice @ -20..=19) => Ok(nice),
            _ => Err("expected a number from -20 to 19".into()),
        });
        nice.map_or(0, |at| at.value)
    }
}

/// Value of `rw`.
struct Access {
    is_random: bool,
    reads: bool,
    writes: bool,
    run: u32,
    skip: u64,
    repeats_offset: bool,
}

/// Parses `bssplit`: sizes with percentages for reads and for writes.
fn split_of_directions(text: &str, base: KbBase) -> Result<[Sizes; 2], String> {
    let [reads, writes] = values::of_directions(text);
    Ok([split(reads, base)?, split(writes, base)?])
}

/// Parses sizes with percentages, `4k/60:8k/40`. Sizes without a percentage share the rest equally.
fn split(text: &str, base: KbBase) -> Result<Sizes, String> {
    const EXPECTED: &str = "expected sizes with percentages, such as 4k/60:8k/40";
    let mut parts = Vec::new();
    for part in text.split(':') {
        let (size, percent) = match part.split_once('/') {
            Some((size, "")) => (size, None),
            Some((size, percent)) => {
                let percent: f64 = percent.parse().map_err(|_| EXPECTED)?;
                (size, Some(percent))
            }
            None => (part, None),
        };
        let size = values::bytes(size, base).map_err(|_| EXPECTED)?;
        if size == 0 || percent.is_some_and(|p| !(0.0..=100.0).contains(&p)) {
            return Err(EXPECTED.into());
        }
        parts.push((size, percent));
    }
    let given: f64 = parts.iter().filter_map(|p| p.1).sum();
    let open = parts.iter().filter(|p| p.1.is_none()).count();
    if given > 100.0 + 1e-9 || (open == 0 && (given - 100.0).abs() > 1e-9) {
        return Err(format!("the percentages sum to {given}, expected 100"));
    }
    let share = (100.0 - given) / open.max(1) as f64;
    let parts: Vec<(u64, f64)> = parts
        .into_iter()
        .map(|(s, p)| (s, p.unwrap_or(share)))
        .collect();
    Ok(match parts[..] {
        [(size, _)] => Sizes::Same(size),
        _ => Sizes::Split(parts),
    })
}

/// Parses `random_distribution`; `None` for the default, `random`.
fn spread_of(text: &str) -> Result<Option<Spread>, String> {
    let (name, parameter) = match text.split_once(':') {
        Some((name, parameter)) => (name, Some(parameter)),
        None => (text, None),
    };
    let number = |default: Option<f64>| match parameter {
        // fio's second parameter is the place of the centre.
        Some(p) if p.contains(':') => Err("not supported: a centre of the distribution".to_owned()),
        Some(p) => values::number(p),
        None => default.ok_or_else(|| format!("expected a parameter, such as {name}:20")),
    };
    let spread = match name {
        "random" => return Ok(None),
        "zipf" => Spread::Zipf {
            theta: number(Some(1.1))?,
        },
        "pareto" => Spread::Pareto {
            h: number(Some(0.2))?,
        },
        "normal" | "gauss" => Spread::Normal {
            deviation_percent: number(None)?,
        },
        "zoned" => Spread::Zones {
            zones: zones(parameter.unwrap_or(""))?,
        },
        "zoned_abs" => {
            return Err("not supported: expected zoned, with percentages of the size".into());
        }
        _ => return Err("expected random, zipf, pareto, normal or zoned".into()),
    };
    spread.check()?;
    Ok(Some(spread))
}

/// Splits a list of names at colons. A backslash before a colon makes the colon a part of the name.
fn file_names(list: &str) -> Vec<String> {
    let mut names = vec![String::new()];
    let mut letters = list.chars().peekable();
    while let Some(letter) = letters.next() {
        let escaped = (letter == '\\').then(|| letters.next_if_eq(&':')).flatten();
        match (letter, escaped, names.last_mut()) {
            (':', None, _) | (_, _, None) => names.push(String::new()),
            (_, _, Some(name)) => name.push(escaped.unwrap_or(letter)),
        }
    }
    names
}

/// Parses zones: percentages of the transfers and of the size, `60/10:40/90`. Zones without a percentage of the size
/// share the rest equally.
fn zones(text: &str) -> Result<Vec<Zone>, String> {
    const EXPECTED: &str =
        "expected percentages of transfers and of the size, such as zoned:60/10:40/90";
    let mut zones = Vec::new();
    for part in text.split(':') {
        let (transfers, size) = part.split_once('/').unwrap_or((part, ""));
        let transfers: f64 = transfers.parse().map_err(|_| EXPECTED)?;
        let size: Option<f64> = match size {
            "" => None,
            size => Some(size.parse().map_err(|_| EXPECTED)?),
        };
        zones.push((transfers, size));
    }
    let given: f64 = zones.iter().filter_map(|zone| zone.1).sum();
    let open = zones.iter().filter(|zone| zone.1.is_none()).count();
    let share = (100.0 - given) / open.max(1) as f64;
    let zone = |(transfers_percent, size): (f64, Option<f64>)| Zone {
        transfers_percent,
        size_percent: size.unwrap_or(share),
    };
    Ok(zones.into_iter().map(zone).collect())
}
