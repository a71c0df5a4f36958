//! Options of a pattern: arguments with defaults filled in and contradictions refused.

use crate::md::arguments::{Arguments, ColdKind, PatternName};
use clap::Args;
use plimsoll_plan::{Cold, RelPath};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

/// Stonewall of IO500's patterns.
pub(super) const IO500_STONEWALL: Duration = Duration::from_secs(300);

/// Bytes of an ior-hard transfer, and of an mdtest-hard file, in IO500.
const IOR_HARD_SIZE: u64 = 47_008;
pub(crate) const MDTEST_HARD_SIZE: u64 = 3_901;

/// Files of each rank in IO500's mdtest.
const IO500_FILES: u64 = 1_000_000;

/// Bytes of each rank's file in IO500's ior-easy, and number of each rank's transfers in ior-hard.
const IO500_EASY_BYTES: u64 = 9_920_000 << 20;
const IO500_SEGMENTS: u64 = 10_000_000;

/// The options of `plimsoll md`, complete and without contradictions.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Sizes and counts of the pattern of MD-Workbench, mdtest or IOR.
    pub pattern: PatternOptions,
    /// Distance in ranks from an object's writer to its reader.
    pub offset: i64,
    /// Work directory and root directory.
    pub place: Place,
    /// Interface as on the command line: MD-Workbench's name, or a target's URL.
    pub interface: String,
    /// The target's URL.
    pub target: String,
    /// Caches to drop before each phase.
    pub cold: Cold,
    /// The parsed command line, for options without a default, such as `--latency`.
    pub arguments: Arguments,
}

/// Work directory and root directory of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Parent of the root.
    pub dir: PathBuf,
    /// Name of the root directory below `dir`, one component.
    pub root: RelPath,
    /// The root directory as given on the command line.
    pub asked: String,
}

/// Sizes and counts of a pattern, such as rounds, objects and bytes, by the program that the pattern imitates.
#[derive(Debug, Clone, PartialEq)]
pub enum PatternOptions {
    /// MD-Workbench.
    Workbench(Workbench),
    /// mdtest-easy or mdtest-hard.
    Mdtest(Io500),
    /// ior-easy or ior-hard.
    Ior(Io500),
}

/// Numbers of MD-Workbench's pattern.
#[derive(Debug, Clone, PartialEq)]
pub struct Workbench {
    /// Rounds of an iteration, each over every data set.
    pub rounds: u64,
    /// Objects of a data set that exist before the benchmark phase.
    pub precreate: u64,
    /// Data sets of a rank, at least 1.
    pub sets: u32,
    /// Bytes of an object.
    pub object_size: u64,
    /// Iterations of the benchmark phase that are measured.
    pub iterations: u32,
    /// Iterations before the measured iterations.
    pub warmup: u32,
    /// Wait after each operation, as a multiple of its service time.
    pub waiting: f64,
    /// Whether each iteration runs with eight waiting factors.
    pub adaptive: bool,
    /// Whether the benchmark phase only stats and reads objects.
    pub read_only: bool,
    /// Number of the first object, instead of the position in the run-info file; `None`: not given.
    pub start_item: Option<u64>,
    /// Phases that are run.
    pub phases: Phases,
    /// Time limit of an iteration; `None`: no limit.
    pub stonewall: Option<Duration>,
    /// Whether all ranks complete as many rounds as the fastest after the stonewall.
    pub wear_out: bool,
    /// Whether errors of the precreate phase are only counted.
    pub ignore_precreate_errors: bool,
    /// File that stores the position between runs.
    pub run_info_file: PathBuf,
}

/// Phases of MD-Workbench that a run has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Phases {
    /// Whether the run has the precreate phase, in which the ranks create the data sets and their objects.
    pub precreate: bool,
    /// Whether the run has the benchmark phase, in which the measured iterations run.
    pub benchmark: bool,
    /// Whether the run has the cleanup phase, in which the ranks remove the objects and the data sets.
    pub cleanup: bool,
}

/// Sizes and counts of a pattern of mdtest or IOR, in the variants of IO500.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Io500 {
    /// Whether the pattern is the hard variant. mdtest-hard has files of 3901 bytes in one directory for all ranks,
    /// mdtest-easy has empty files in one directory per rank. ior-hard has transfers strided over one shared file,
    /// ior-easy has one file per rank.
    pub hard: bool,
    /// Maximum number of files (mdtest) or transfers (IOR) of each rank; the stonewall may end the writing phase
    /// earlier.
    pub number: u64,
    /// Size of a file (mdtest) or of a transfer (IOR) in bytes; 0 for mdtest-easy.
    pub size: u64,
    /// Time limit of the writing phase, after which all ranks write as much as the fastest rank has written; `None`: no
    /// limit.
    pub stonewall: Option<Duration>,
}

impl Options {
    /// Checks arguments and fills in defaults.
    ///
    /// # Errors
    /// One sentence that states the contradiction and how to correct it.
    pub fn new(args: &Arguments) -> Result<Self, String> {
        refuse_unsupported(args)?;
        refuse_of_other_patterns(args)?;
        let pattern = match args.pattern {
            PatternName::MdWorkbench => PatternOptions::Workbench(workbench(args)?),
            _ => io500(args)?,
        };
        let interface = args.interface.as_deref().or(args.target.as_deref());
        let interface = interface.unwrap_or("posix").to_owned();
        let target = target_of_interface(&interface, args.target.is_some())?;
        check_direct(args, &pattern, &target)?;
        Ok(Self {
            cold: cold(args, &target)?,
            pattern,
            offset: args.offset.unwrap_or(1),
            place: place(args)?,
            target,
            interface,
            arguments: args.clone(),
        })
    }
}

impl Workbench {
    /// Whether the run starts at the position in the run-info file.
    #[must_use]
    pub fn reads_position(&self) -> bool {
        !self.phases.precreate && self.start_item.is_none()
    }

    /// Whether the run writes its position to the run-info file at the end.
    #[must_use]
    pub fn writes_position(&self) -> bool {
        !self.phases.cleanup
    }
}

/// Refuses unsupported options of the original benchmarks, and unsupported values.
fn refuse_unsupported(args: &Arguments) -> Result<(), String> {
    let refused = [
        (
            args.data_offset.is_some(),
            "-G is not supported: contents follow from the object, or with -X from --seed",
        ),
        (
            args.incompressible_data,
            "--incompressible-data is not supported: the contents of -X are incompressible, and those \
             of --content random",
        ),
        (
            args.gpu_buffers.is_some(),
            "--allocateBufferOnGPU is not supported: buffers are in the memory of the host",
        ),
        (
            args.verbose > 1,
            "-v is supported once: it names the operations that failed; MD-Workbench's second \
             -v prints every operation, whose times -L keeps",
        ),
    ];
    match refused.into_iter().find(|(given, _)| *given) {
        Some((_, why)) => Err(why.into()),
        None => Ok(()),
    }
}

/// Refuses options that only other patterns have.
fn refuse_of_other_patterns(args: &Arguments) -> Result<(), String> {
    use PatternName::{IorEasy, IorHard, MdWorkbench, MdtestEasy, MdtestHard};
    let workbench: &[PatternName] = &[MdWorkbench];
    let given: [(&str, bool, &[PatternName]); 24] = [
        ("-I", args.obj_per_proc.is_some(), workbench),
        ("-P", args.precreate_per_set.is_some(), workbench),
        ("-D", args.data_sets.is_some(), workbench),
        ("-S", args.object_size.is_some(), workbench),
        ("-R", args.iterations.is_some(), workbench),
        ("-t", args.waiting_time.is_some(), workbench),
        ("-T", args.adaptive_waiting, workbench),
        ("--read-only", args.read_only, workbench),
        ("--start-item", args.start_item.is_some(), workbench),
        ("-1", args.run_precreate, workbench),
        ("-2", args.run_benchmark, workbench),
        ("-3", args.run_cleanup, workbench),
        ("-W", args.stonewall_wear_out, workbench),
        ("--run-info-file", args.run_info_file.is_some(), workbench),
        ("--warmup", args.warmup.is_some(), workbench),
        (
            "--ignore-precreate-errors",
            args.ignore_precreate_errors,
            workbench,
        ),
        (
            "--print-detailed-stats",
            args.print_detailed_stats,
            workbench,
        ),
        ("--process-reports", args.process_reports, workbench),
        ("what follows --", !args.plugin.is_empty(), workbench),
        ("-X", args.verify_read, &[MdWorkbench, MdtestHard]),
        // mdtest-easy writes no data.
        (
            "--content",
            args.content.is_some(),
            &[MdWorkbench, MdtestHard, IorEasy, IorHard],
        ),
        ("-n", args.files.is_some(), &[MdtestEasy, MdtestHard]),
        ("--transfers", args.transfers.is_some(), &[IorEasy, IorHard]),
        ("--transfer-size", args.transfer_size.is_some(), &[IorEasy]),
    ];
    let strange = given
        .iter()
        .find(|(_, is, of)| *is && !of.contains(&args.pattern));
    let Some((option, _, of)) = strange else {
        return Ok(());
    };
    let of: Vec<&str> = of.iter().map(|p| p.as_str()).collect();
    let own = match args.pattern {
        MdWorkbench => "-I, -P, -D, -S and -R",
        MdtestEasy => "-n, -w and -O",
        MdtestHard => "-n, -w, -O and -X",
        IorEasy => "--transfers, --transfer-size, -w and -O",
        IorHard => "--transfers, -w and -O",
    };
    Err(format!(
        "{option} belongs to the pattern {}; {} takes {own}",
        of.join(" or "),
        args.pattern.as_str(),
    ))
}

fn workbench(args: &Arguments) -> Result<Workbench, String> {
    let all = !(args.run_precreate || args.run_benchmark || args.run_cleanup);
    let phases = Phases {
        precreate: args.run_precreate || all,
        benchmark: args.run_benchmark || all,
        cleanup: args.run_cleanup || all,
    };
    let stonewall = args.stonewall_timer.filter(|t| !t.is_zero());
    let wear_out = args.stonewall_wear_out && stonewall.is_some();
    let precreate = args.precreate_per_set.unwrap_or(3000);
    let rounds = args.obj_per_proc.unwrap_or(1000);
    let sets = args.data_sets.unwrap_or(10);
    if sets == 0 {
        return Err("-D 0 leaves nothing to do: a rank needs at least one data set".into());
    }
    if precreate == 0 && phases.benchmark && rounds > 0 {
        let why = "it needs objects that were created before";
        return Err(format!(
            "-P 0 leaves the benchmark phase nothing to read: {why}"
        ));
    }
    let iterations = args.iterations.unwrap_or(3);
    let only_benchmark = !phases.precreate && !phases.cleanup;
    if only_benchmark && (iterations == 0 || rounds == 0) {
        let needs = "at least one iteration (-R) of at least one round (-I)";
        return Err(format!("the benchmark phase alone (-2) needs {needs}"));
    }
    let warmup = args.warmup.unwrap_or(0);
    if warmup > 0 && (!phases.benchmark || iterations == 0) {
        let why = "of which this run has no iteration";
        return Err(format!("--warmup prepares the benchmark phase, {why}"));
    }
    if args.stonewall_wear_out && args.stonewall_timer.is_none() {
        return Err("-W takes effect after the stonewall; set one with -w SECONDS".into());
    }
    if args.adaptive_waiting && args.waiting_time.is_some() {
        return Err("-T chooses the waiting times itself; leave out -t".into());
    }
    let run_info_file = args.run_info_file.clone();
    Ok(Workbench {
        rounds,
        precreate,
        sets,
        object_size: args.object_size.unwrap_or(3901),
        iterations,
        warmup,
        waiting: args.waiting_time.unwrap_or(0.0),
        adaptive: args.adaptive_waiting,
        read_only: args.read_only,
        start_item: args.start_item,
        phases,
        stonewall,
        wear_out,
        ignore_precreate_errors: args.ignore_precreate_errors,
        run_info_file: run_info_file.unwrap_or_else(|| "mdtest.status".into()),
    })
}

/// Smallest block size of disks in bytes: every block size is a multiple.
const SECTOR_BYTES: u64 = 512;

/// Whether a target is this machine's file system, which uses the page cache.
fn has_page_cache(target: &str) -> bool {
    target.split(':').next() == Some("posix")
}

/// Caches to drop before each phase, from `--drop-caches`.
fn cold(args: &Arguments, target: &str) -> Result<Cold, String> {
    match args.drop_caches {
        Some(_) if !has_page_cache(target) => Err(format!(
            "--drop-caches is for this machine's page cache, which the target `{target}` does not use"
        )),
        None => Ok(Cold::No),
        Some(ColdKind::Files) => Ok(Cold::Files),
        Some(ColdKind::System) => Ok(Cold::System),
    }
}

/// Refuses direct I/O without a file system, and direct I/O with sizes that no disk supports.
fn check_direct(args: &Arguments, pattern: &PatternOptions, target: &str) -> Result<(), String> {
    if !args.direct {
        return Ok(());
    }
    if !has_page_cache(target) {
        return Err(format!(
            "--direct bypasses this machine's page cache, which the target `{target}` does not use"
        ));
    }
    let (size, instead) = match pattern {
        PatternOptions::Workbench(w) => (w.object_size, "; -S 4096 would do"),
        PatternOptions::Ior(i) if !i.hard => (i.size, "; --transfer-size 2m would do"),
        PatternOptions::Mdtest(i) | PatternOptions::Ior(i) => (i.size, ""),
    };
    if size == 0 {
        return Err("--direct is for reads and writes, and these files are empty".into());
    }
    if size % SECTOR_BYTES != 0 {
        return Err(format!(
            "--direct takes sizes that are multiples of a disk's blocks, of at least {SECTOR_BYTES} \
             bytes, which {size} is not{instead}"
        ));
    }
    Ok(())
}

fn io500(args: &Arguments) -> Result<PatternOptions, String> {
    let is_ior = matches!(args.pattern, PatternName::IorEasy | PatternName::IorHard);
    let hard = matches!(args.pattern, PatternName::MdtestHard | PatternName::IorHard);
    let size = match (is_ior, hard) {
        (false, false) => 0,
        (false, true) => MDTEST_HARD_SIZE,
        (true, false) => args.transfer_size.unwrap_or(2 << 20),
        (true, true) => IOR_HARD_SIZE,
    };
    if is_ior && size == 0 {
        return Err("--transfer-size must be at least 1 byte".into());
    }
    let most = match (is_ior, hard) {
        (false, _) => IO500_FILES,
        (true, false) => IO500_EASY_BYTES / size,
        (true, true) => IO500_SEGMENTS,
    };
    let stonewall = args.stonewall_timer.unwrap_or(IO500_STONEWALL);
    let numbers = Io500 {
        hard,
        number: args.files.or(args.transfers).unwrap_or(most),
        size,
        stonewall: Some(stonewall).filter(|t| !t.is_zero()),
    };
    Ok(match is_ior {
        true => PatternOptions::Ior(numbers),
        false => PatternOptions::Mdtest(numbers),
    })
}

/// Interfaces of MD-Workbench and of IOR that Plimsoll does not support.
const UNSUPPORTED_INTERFACES: &[&str] = &[
    "mpi", "mpiio", "mpi-io", "s3", "s3-libs3", "s3-plus", "s3-emc", "postgres", "mongo", "hdf5",
    "hdfs", "ncmpi", "mmap", "rados", "cephfs", "dfs", "ime", "gfarm", "pmdk", "aio", "libnfs",
];

/// Options of IOR and mdtest for the API, and Plimsoll's option for a target.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct ApiArguments {
    /// API: POSIX or DUMMY [default: POSIX]
    #[arg(short = 'a', value_name = "API", help_heading = "Target")]
    api: Option<String>,
    /// Target URL, as in `run`
    #[arg(
        long,
        value_name = "URL",
        conflicts_with = "api",
        help_heading = "Target"
    )]
    target: Option<String>,
}

impl ApiArguments {
    /// URL of the target.
    ///
    /// # Errors
    /// If Plimsoll does not have the API.
    pub(crate) fn target(&self) -> Result<String, String> {
        let interface = self.api.as_deref().or(self.target.as_deref());
        target_of_interface(interface.unwrap_or("posix"), self.target.is_some())
            .map_err(|e| format!("-a: {e}"))
    }

    /// Name of the API as on the command line, or else the URL `target`.
    pub(crate) fn name<'a>(&'a self, target: &'a str) -> &'a str {
        self.api.as_deref().unwrap_or(target)
    }
}

/// The target's URL for an interface name; with `url`, the interface already is a URL.
fn target_of_interface(interface: &str, url: bool) -> Result<String, String> {
    let lower = interface.to_ascii_lowercase();
    match lower.as_str() {
        _ if url => Ok(interface.into()),
        "posix" => Ok("posix".into()),
        "dummy" | "null" => Ok("null".into()),
        name if UNSUPPORTED_INTERFACES.contains(&name) => Err(format!(
            "the interface `{interface}` is not in Plimsoll; `plimsoll md -i list` names those that are"
        )),
        _ => Ok(interface.into()),
    }
}

/// Work directory and root directory. A root that is given twice, or an absolute root beside `--dir`, is refused.
fn place(args: &Arguments) -> Result<Place, String> {
    let default = match args.pattern {
        PatternName::MdWorkbench => "out",
        other => other.as_str(),
    };
    let plugin = plugin_root(&args.plugin)?;
    let root = match (&args.root_dir, plugin) {
        (Some(_), Some(_)) => {
            return Err("the root directory is given twice: by -o and after --".into());
        }
        (Some(root), None) => root.clone(),
        (None, Some(root)) => root,
        (None, None) => default.into(),
    };
    place_of(args.dir.as_deref(), &root)
}

/// The place of the root directory `root`, which is below `dir` if relative.
///
/// # Errors
/// If the root has no name of its own, or is absolute beside `dir`.
pub(crate) fn place_of(dir: Option<&Path>, root: &Path) -> Result<Place, String> {
    if root.is_absolute() && dir.is_some() {
        return Err(format!(
            "the root directory {} is an absolute path, so --dir would have no effect",
            root.display()
        ));
    }
    let dir = dir.unwrap_or(Path::new(""));
    let (above, name) = split(root)?;
    let dir: PathBuf = dir.join(above).components().collect();
    Ok(Place {
        dir: match dir.as_os_str().is_empty() {
            true => ".".into(),
            false => dir,
        },
        root: name,
        asked: root.display().to_string(),
    })
}

/// Splits a root into its parent directory and its name.
fn split(root: &Path) -> Result<(&Path, RelPath), String> {
    let wrong = || {
        format!(
            "the root directory `{}` does not end in a name of its own, such as `out`",
            root.display()
        )
    };
    let last = match root.components().next_back() {
        Some(Component::Normal(name)) => name.to_str(),
        _ => None,
    };
    let name = RelPath::new(last.ok_or_else(wrong)?).map_err(|_| wrong())?;
    Ok((root.parent().unwrap_or(Path::new("")), name))
}

/// The root directory from the plug-in options after `--`; `None` without options. The last option counts; an unknown
/// option is an error.
fn plugin_root(options: &[OsString]) -> Result<Option<PathBuf>, String> {
    let mut root = None;
    let mut rest = options.iter().map(|o| o.as_bytes());
    while let Some(option) = rest.next() {
        let (name, value) = match option.iter().position(|b| *b == b'=') {
            Some(at) => (&option[..at], Some(&option[at + 1..])),
            None => (option, None),
        };
        let shown = |bytes| OsStr::from_bytes(bytes).display();
        if name != b"-D" && name != b"--root-dir" {
            return Err(format!(
                "unknown plug-in option `{}`: expected -D=DIR or --root-dir=DIR after --",
                shown(option)
            ));
        }
        let value = value.or_else(|| rest.next());
        let Some(value) = value.filter(|v| !v.is_empty()) else {
            let name = shown(name);
            return Err(format!("`{name}` after -- needs a directory: {name}=DIR"));
        };
        root = Some(OsStr::from_bytes(value).into());
    }
    Ok(root)
}
