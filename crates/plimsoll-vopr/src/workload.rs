//! Workloads of scenarios: texts of the Workload Model Language, and operation mixes.

use crate::files::WORK_DIR;
use crate::pattern::PatternSpec;
use plimsoll_plan::{OnError, OpsLimit, Overrides, Plan, QuitMode, RunOptions, SourceKind, Warmup};
use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

/// A part of a thread's program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Requests the attributes of a file: one operation.
    Stat,
    /// Opens, reads and closes a file: three operations.
    ReadWhole,
    /// Creates, writes and closes a file and deletes another: four operations.
    Replace,
    /// Appends to a file with a flush: four operations.
    Append,
    /// Waits 3 ms, without an operation of the target.
    Delay,
}

/// Operation mix whose processes offer operations at a fixed mean rate (open loop).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MixSpec {
    /// Load of the mix: number of business metrics.
    pub load: u64,
    /// Number of processes of each business metric.
    pub processes: u64,
    /// Mean offered rate of each process in operations per second.
    pub rate: u64,
    /// Whether intended starts form a Poisson process; otherwise the distances between intended starts are constant.
    pub poisson: bool,
    /// Whether the mix creates and removes files and directories, besides reads and stats.
    pub turns_over: bool,
}

impl MixSpec {
    pub(crate) fn draw(rng: &mut Xoshiro256PlusPlus) -> Self {
        Self {
            load: rng.random_range(1..5),
            processes: rng.random_range(1..5),
            rate: rng.random_range(5..200),
            poisson: rng.random_bool(0.5),
            turns_over: rng.random_bool(0.5),
        }
    }

    /// Number of data files of all processes together.
    pub(crate) fn files(&self) -> u64 {
        FILES_PER_PROCESS * self.load * self.processes
    }

    fn text(&self) -> String {
        let Self {
            processes, rate, ..
        } = self;
        let arrivals = match self.poisson {
            true => "poisson",
            false => "constant",
        };
        let files = match self.turns_over {
            true => "turnover = 10\nturnover_size = \"4k\"\nempty = 10\nspare_directories = 6\n",
            false => "",
        };
        let mut mix = String::new();
        for (operation, percent) in self.percents() {
            let _ = writeln!(mix, "{operation} = {percent}");
        }
        let kib = FILES_PER_PROCESS * FILE_KIB * processes;
        format!(
            "title = \"drawn\"\n\
             [metric]\nname = \"metrics\"\ndata = \"{kib}k\"\n\
             [run]\nwarmup = \"0s\"\ntime = \"1s\"\n\
             [[component]]\nname = \"c\"\nprocesses = {processes}\nrate = {rate}\n\
             arrivals = \"{arrivals}\"\n\
             [component.mix]\n{mix}\
             [component.transfers]\nread = \"64k\"\nwrite = \"64k\"\n\
             [component.files]\ncount = {FILES_PER_PROCESS}\nsize = \"{FILE_KIB}k\"\n\
             directories = 2\n{files}"
        )
    }

    /// The operations and their percentages.
    fn percents(&self) -> &'static [(&'static str, u32)] {
        match self.turns_over {
            true => &[
                ("read_file", 20),
                ("stat", 20),
                ("write_file", 20),
                ("unlink2", 15),
                ("create", 8),
                ("unlink", 8),
                ("mkdir", 5),
                ("rmdir", 4),
            ],
            false => &[("read_file", 30), ("stat", 50), ("access", 20)],
        }
    }

    /// Fraction of the mix's operations that have the name `operation`, from 0 to 1; `None` if the mix lacks the
    /// operation.
    pub(crate) fn fraction(&self, operation: &str) -> Option<f64> {
        let mut percents = self.percents().iter();
        let found = percents.find(|(name, _)| *name == operation);
        found.map(|(_, percent)| f64::from(*percent) / 100.0)
    }

    fn plan(&self, overrides: Overrides) -> Plan {
        let text = self.text();
        let workload = plimsoll_workload::mix::parse(&text, "drawn.toml");
        let workload = workload.unwrap_or_else(|e| panic!("{e}\n{text}"));
        let context = plimsoll_workload::mix::Context {
            kind: SourceKind::File,
            temp_dir: WORK_DIR.into(),
        };
        let overrides = Overrides {
            load: Some(self.load),
            quit: None,
            ..overrides
        };
        plimsoll_workload::mix::lower(&workload, &overrides, &context)
            .unwrap_or_else(|e| panic!("{e}\n{text}"))
    }
}

/// Size in bytes of a file on which closed-loop threads work.
pub(crate) const FILE_BYTES: u64 = 8 << 10;

/// Maximum number of files that counts as few: fewer than most numbers of workers.
const MAX_FEW_FILES: u64 = 8;

/// Files of each process of a mix, and their size in KiB.
const FILES_PER_PROCESS: u64 = 20;
const FILE_KIB: u64 = 64;

/// Closed loops: threads that repeat a program of steps on the files of a fileset, written in the Workload Model
/// Language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadsSpec {
    /// Number of files in the fileset before the run creates or deletes files.
    pub files: u64,
    /// Number of threads of each of two kinds, and the steps of their programs. The second kind may have no threads.
    pub threads: [(u32, Vec<Step>); 2],
    /// Number of operations of all workers together after which the run ends (`--ops`); `None` without a limit.
    pub ops: Option<u64>,
}

/// Load that the workers of all ranks generate: closed loops, an open loop, or a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Load {
    /// Closed loops: each thread begins an operation when the thread's previous operation has ended.
    Threads(ThreadsSpec),
    /// Open loop: a schedule starts operations at a fixed mean rate, whether or not earlier operations have ended.
    Mix(MixSpec),
    /// Stages of a pattern, such as MD-Workbench's, executed by one worker per rank.
    Pattern(PatternSpec),
}

/// Load, warm-up and window of a scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkloadSpec {
    /// Load that the workers of all ranks generate together.
    pub load: Load,
    /// Length of the warm-up before the measured window, in milliseconds; 0 for none.
    pub warmup_ms: u64,
    /// Length of the measured window in milliseconds.
    pub time_ms: u64,
}

impl WorkloadSpec {
    pub(crate) fn draw(rng: &mut Xoshiro256PlusPlus) -> Self {
        const STEPS: [Step; 5] = [
            Step::Stat,
            Step::ReadWhole,
            Step::Replace,
            Step::Append,
            Step::Delay,
        ];
        let program = |rng: &mut Xoshiro256PlusPlus| {
            let steps = rng.random_range(1..5);
            let mut program: Vec<Step> = (0..steps)
                .map(|_| STEPS[rng.random_range(0..STEPS.len())])
                .collect();
            if program.iter().all(|step| *step == Step::Delay) {
                program.push(Step::Stat);
            }
            (rng.random_range(1..9), program)
        };
        let first = program(rng);
        let second = match rng.random_bool(0.5) {
            true => program(rng),
            false => (0, vec![]),
        };
        let mut threads = ThreadsSpec {
            // Few files make workers wait for each other's open files; with many files, workers seldom wait.
            files: match rng.random_bool(0.4) {
                true => rng.random_range(1..=MAX_FEW_FILES),
                false => rng.random_range(40..400),
            },
            threads: [first, second],
            ops: rng.random_bool(0.2).then(|| rng.random_range(1..2000)),
        };
        if threads.has_few_files() {
            // Appends would make a few files many megabytes long, and every read would copy the whole file.
            if threads.has(Step::ReadWhole) {
                threads.replace(Step::Append, Step::Stat);
            }
            if rng.random_bool(0.7) {
                threads.crowd();
            }
        }
        Self {
            load: match rng.random_bool(0.3) {
                true => Load::Mix(MixSpec::draw(rng)),
                false => Load::Threads(threads),
            },
            warmup_ms: [0, 0, 100, 700][rng.random_range(0..4)],
            time_ms: rng.random_range(100..3000),
        }
    }

    /// Number of workers of all ranks together.
    #[must_use]
    pub fn workers(&self) -> u64 {
        match &self.load {
            Load::Mix(mix) => mix.load * mix.processes,
            Load::Pattern(pattern) => u64::from(pattern.ranks),
            Load::Threads(threads) => threads.workers(),
        }
    }

    /// Number of operations of all workers together after which the run ends (`--ops`); `None` without a limit.
    #[must_use]
    pub fn ops_limit(&self) -> Option<u64> {
        match &self.load {
            Load::Threads(threads) => threads.ops,
            Load::Mix(_) | Load::Pattern(_) => None,
        }
    }

    /// Plan of the workload, whose random choices come from `seed`.
    ///
    /// # Panics
    /// If the parser refuses the text of the workload.
    #[must_use]
    pub fn plan(&self, seed: u64) -> Plan {
        self.plan_for(seed, None)
    }

    /// Plan of the workload; for a curve, `most` is the highest load, for which the files are laid out.
    pub(crate) fn plan_for(&self, seed: u64, most: Option<u64>) -> Plan {
        let ops = self.ops_limit();
        let overrides = Overrides {
            dir: Some(WORK_DIR.into()),
            seed: Some(seed),
            most,
            time: Some(Duration::from_millis(self.time_ms)),
            warmup: (self.warmup_ms > 0)
                .then(|| Warmup::Fixed(Duration::from_millis(self.warmup_ms))),
            quit: Some(QuitMode::Timeout),
            options: RunOptions {
                ops: ops.map(OpsLimit::Total),
                on_error: OnError::default(),
                ..RunOptions::default()
            },
            ..Overrides::default()
        };
        match &self.load {
            Load::Threads(threads) => threads.plan(&overrides),
            Load::Mix(mix) => mix.plan(overrides),
            Load::Pattern(pattern) => pattern.plan(WORK_DIR, seed),
        }
    }
}

impl ThreadsSpec {
    /// Whether the program of any thread contains `step`.
    #[must_use]
    pub fn has(&self, step: Step) -> bool {
        self.threads.iter().any(|(_, steps)| steps.contains(&step))
    }

    /// Whether the files may be fewer than the workers.
    pub(crate) fn has_few_files(&self) -> bool {
        self.files <= MAX_FEW_FILES
    }

    /// Adds threads and replaces creation and deletion by stats, so that workers wait only for files that other workers
    /// hold open.
    fn crowd(&mut self) {
        for (threads, _) in self.threads.iter_mut().filter(|(n, _)| *n > 0) {
            *threads += 4;
        }
        self.replace(Step::Replace, Step::Stat);
    }

    /// Replaces every occurrence of a step in the threads' programs by another step.
    fn replace(&mut self, old: Step, new: Step) {
        let steps = self.threads.iter_mut().flat_map(|(_, steps)| steps);
        steps
            .filter(|step| **step == old)
            .for_each(|step| *step = new);
    }

    /// Number of workers.
    #[must_use]
    pub fn workers(&self) -> u64 {
        self.threads.iter().map(|(n, _)| u64::from(*n)).sum()
    }

    fn text(&self) -> String {
        let mut text = format!(
            "define fileset name=f, path=files, size={FILE_BYTES}, entries={}, dirwidth=20, prealloc=80\n\
             define process name=p, instances=1 {{\n",
            self.files
        );
        let mut number = 0;
        for (kind, (threads, steps)) in self.threads.iter().enumerate() {
            if *threads == 0 {
                continue;
            }
            let _ = writeln!(
                text,
                "  thread name=t{kind}, memsize=1m, instances={threads} {{"
            );
            for step in steps {
                number += 1;
                text.push_str(&flowops(*step, number));
            }
            text.push_str("  }\n");
        }
        text.push_str("}\nrun 1\n");
        text
    }

    fn plan(&self, overrides: &Overrides) -> Plan {
        let dir = Path::new(WORK_DIR);
        let context = plimsoll_workload::wml::Context {
            kind: SourceKind::File,
            temp_dir: dir.into(),
            current_dir: dir.into(),
            load: &|_| None,
            date: "today".into(),
            hostname: "here".into(),
        };
        let text = self.text();
        let workload = plimsoll_workload::wml::parse(&text, "drawn.f");
        let workload = workload.unwrap_or_else(|e| panic!("{e}\n{text}"));
        plimsoll_workload::wml::lower(&workload, overrides, &context)
            .unwrap_or_else(|e| panic!("{e}\n{text}"))
    }
}

/// The flowops of a step, with names that are unique in the workload.
fn flowops(step: Step, n: usize) -> String {
    match step {
        Step::Stat => format!("    flowop statfile name=stat{n}, filesetname=f\n"),
        Step::ReadWhole => format!(
            "    flowop openfile name=open{n}, filesetname=f, fd={n}\n    \
             flowop readwholefile name=read{n}, fd={n}, iosize=1m\n    \
             flowop closefile name=close{n}, fd={n}\n"
        ),
        Step::Replace => format!(
            "    flowop deletefile name=delete{n}, filesetname=f\n    \
             flowop createfile name=create{n}, filesetname=f, fd={n}\n    \
             flowop writewholefile name=write{n}, fd={n}, iosize=1m\n    \
             flowop closefile name=close{n}, fd={n}\n"
        ),
        Step::Append => format!(
            "    flowop openfile name=open{n}, filesetname=f, fd={n}\n    \
             flowop appendfilerand name=append{n}, fd={n}, iosize=4k\n    \
             flowop fsync name=fsync{n}, fd={n}\n    \
             flowop closefile name=close{n}, fd={n}\n"
        ),
        Step::Delay => format!("    flowop delay name=pause{n}, value=3ms\n"),
    }
}
