//! A configuration with its mode and circumstances: checks, and the Plans of the phases.

use super::config::{Checks, Config};
use super::phases::{Mode, PHASES, Phase};
use crate::md::{self, Arguments, Options, Part, PatternName};
use plimsoll_diagnostics::Diagnostics;
use plimsoll_plan::{
    MARKER, OpKind, Plan, RankShift, RelPath, Rounds, StageWork, TransferLoop, TransferOrder,
    TreeSearch, counted, parse_size,
};
use std::path::PathBuf;
use std::time::Duration;

/// Seconds that a writing phase must last in IO500, and by the rules of the Student Cluster Competition.
const LEAST_SECONDS: u64 = 300;
const LEAST_SECONDS_SCC: u64 = 30;

/// Data sets of a rank in MD-Workbench's phases.
const SETS: u32 = 10;

/// Maximum number of seconds for which MD-Workbench creates objects before its benchmark, at the rate of
/// mdtest-easy-write.
const PRECREATE_SECONDS: u64 = 60;

/// Rate of mdtest-easy-write that MD-Workbench's phases assume if the phase was not run, in kIOPS.
const ASSUMED_KIOPS: f64 = 10.0;

/// Facts about the run that are not in the configuration file.
#[derive(Debug, Clone, PartialEq)]
pub struct Circumstances {
    /// Number of ranks.
    pub ranks: u32,
    /// Number of ranks on the machine of rank 0.
    pub ranks_per_host: u32,
    /// URL of the target.
    pub target: String,
    /// Whether the target keeps files.
    pub keeps_files: bool,
    /// Data directory, with the time in its name if the configuration asks for the time.
    pub data_dir: PathBuf,
    /// Seed of the contents of the files.
    pub seed: u64,
}

/// Figures of an earlier phase on which Plans of later phases depend.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Earlier {
    /// Rounds that each rank completed: files of mdtest, transfers of IOR.
    pub rounds: u64,
    /// Figure of the phase in kIOPS or GiB/s.
    pub rate: f64,
}

/// Checked configuration of a run, with only supported options.
#[derive(Debug, Clone)]
pub struct Request {
    config: Config,
    mode: Mode,
    at: Circumstances,
}

/// Result of an earlier phase by name; `None` for a phase that was not run.
pub type EarlierPhases<'a> = &'a dyn Fn(&str) -> Option<Earlier>;

impl Request {
    /// Checks that Plimsoll supports the options of a configuration.
    ///
    /// # Errors
    /// The options that Plimsoll does not support, with their places.
    pub fn new(config: Config, mode: Mode, at: Circumstances) -> Result<Self, Diagnostics> {
        let mut checks = config.checks();
        check(&config, mode, &at, &mut checks);
        checks.end()?;
        Ok(Self { config, mode, at })
    }

    /// The phases of the mode, each with the reason why the phase is not run; `None` for a phase that is run.
    pub fn phases(&self) -> impl Iterator<Item = (&'static Phase, Option<String>)> {
        let extended = self.mode == Mode::Extended;
        let of_mode = PHASES.iter().filter(move |p| extended || !p.is_extended);
        of_mode.map(|phase| (phase, self.not_run(phase)))
    }

    /// The reason why a phase is not run; `None` for a phase that is run.
    fn not_run(&self, phase: &Phase) -> Option<String> {
        if !self.config.runs(phase.common, phase.name) {
            return Some("the configuration says `run = FALSE`".into());
        }
        let maker = match phase.common {
            None if !self.at.keeps_files => {
                return Some("the target keeps no files to search".into());
            }
            None if phase.name == "find-easy" => "mdtest-easy-write".to_owned(),
            None => SEARCH_MAKER.into(),
            Some("mdworkbench") => "mdworkbench-create".to_owned(),
            Some(common) => format!("{common}-write"),
        };
        let maker = PHASES
            .iter()
            .find(|made| made.name == maker && made.name != phase.name)?;
        let is_made = self.config.runs(maker.common, maker.name);
        (!is_made).then(|| {
            format!(
                "`{}` makes the files of the phase, and is not run",
                maker.name
            )
        })
    }

    /// Least time of a writing phase by the rules.
    #[must_use]
    pub fn least(&self) -> Duration {
        Duration::from_secs(match self.config.flag("global", "scc") {
            true => LEAST_SECONDS_SCC,
            false => LEAST_SECONDS,
        })
    }

    /// Time after which no rank of a writing phase begins further work.
    #[must_use]
    pub fn stonewall(&self) -> Duration {
        let seconds = self.config.whole("debug", "stonewall-time");
        Duration::from_secs(seconds.unwrap_or(LEAST_SECONDS))
    }

    /// Directory in which a file with the name of a phase makes the phase wait; `None` without such a directory.
    #[must_use]
    pub fn pause_dir(&self) -> Option<&str> {
        self.config.get("debug", "pause-dir")
    }

    /// Configuration of the run, with the text of the file.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Ranks, target and data directory of the run.
    #[must_use]
    pub fn circumstances(&self) -> &Circumstances {
        &self.at
    }

    /// Parent of the results directory.
    #[must_use]
    pub fn result_dir(&self) -> PathBuf {
        self.config.get("global", "resultdir").unwrap_or(".").into()
    }

    /// Whether the result file has the times at which phases began and ended.
    #[must_use]
    pub fn shows_times(&self) -> bool {
        self.config.whole("global", "verbosity") != Some(0)
    }

    /// Maximum number of rounds of each rank in the writing phase of mdtest or IOR with the name `phase`; 0 for another
    /// phase.
    #[must_use]
    pub fn most_rounds(&self, phase: &str) -> u64 {
        match phase.strip_suffix("-write") {
            Some(common @ ("mdtest-easy" | "mdtest-hard")) => {
                self.config.whole(common, "n").unwrap_or(0)
            }
            Some("ior-easy") => self.size("blockSize") / self.size("transferSize"),
            Some("ior-hard") => self.config.whole("ior-hard", "segmentCount").unwrap_or(0),
            _ => 0,
        }
    }

    /// Reasons in the configuration that make every score of the run invalid.
    #[must_use]
    pub fn reasons(&self) -> Vec<String> {
        let (stonewall, least) = (self.stonewall().as_secs(), self.least().as_secs());
        let other = (stonewall != least)
            .then(|| format!("`stonewall-time` is {stonewall} s, and the rules require {least} s"));
        let pauses = self
            .pause_dir()
            .map(|dir| format!("`pause-dir` is set: files in `{dir}` can make phases wait"));
        other.into_iter().chain(pauses).collect()
    }

    /// The Plan of a phase. `earlier` has the figures of earlier phases. `again` asks for a Plan that needs no files of
    /// an earlier attempt: a phase that changes its files makes the files first, unmeasured.
    ///
    /// # Errors
    /// A sentence if the Plan is impossible, such as too many files.
    pub fn plan(
        &self,
        phase: &Phase,
        earlier: EarlierPhases<'_>,
        again: bool,
    ) -> Result<Plan, String> {
        let mut plan = match phase.common {
            Some("mdworkbench") => self.workbench(phase, earlier, again)?,
            Some("mdtest-easy" | "mdtest-hard") => self.mdtest(phase, earlier, again)?,
            Some(_) if phase.name == RANDOM_READS => self.random_reads(phase)?,
            Some(_) => self.ior(phase, earlier)?,
            None => self.find(phase, earlier)?,
        };
        plan.name = phase.name.into();
        Ok(plan)
    }

    /// Arguments that all phases share, of a pattern in the directory `root` of the data directory.
    fn arguments(&self, pattern: PatternName, root: &str) -> Arguments {
        Arguments {
            pattern,
            seed: self.at.seed,
            dir: Some(self.at.data_dir.clone()),
            root_dir: Some(root.into()),
            target: Some(self.at.target.clone()),
            drop_caches: self
                .config
                .flag("global", "drop-caches")
                .then_some(md::ColdKind::System),
            ..Arguments::default()
        }
    }

    /// Rounds of the phase that made the files of a pattern; an error if that phase was not run.
    fn made(&self, common: &str, earlier: EarlierPhases<'_>) -> Result<u64, String> {
        let maker = format!("{common}-write");
        let made = earlier(&maker)
            .ok_or_else(|| format!("`{maker}` makes the files of this phase, and was not run"));
        made.map(|made| made.rounds)
    }

    fn mdtest(
        &self,
        phase: &Phase,
        earlier: EarlierPhases<'_>,
        again: bool,
    ) -> Result<Plan, String> {
        let common = phase.common.expect("mdtest has common options");
        let options = self.mdtest_options(common)?;
        let write = format!("{common}-write");
        let make = ["make directories", write.as_str()];
        let part = match phase.name {
            name if name == write => Part {
                measured: &make,
                prepares: &[],
                made: None,
            },
            name => Part {
                measured: &[name, "remove directories"]
                    [..1 + usize::from(name.ends_with("delete"))],
                prepares: if again { &make } else { &[] },
                made: Some(self.made(common, earlier)?),
            },
        };
        md::lower_part(&options, self.at.ranks, None, Some(&part))
    }

    fn ior(&self, phase: &Phase, earlier: EarlierPhases<'_>) -> Result<Plan, String> {
        let common = phase.common.expect("IOR has common options");
        let options = self.ior_options(common, phase)?;
        let made = match phase.is_timed {
            true => None,
            false => Some(self.made(common, earlier)?),
        };
        let part = Part {
            measured: &[phase.name],
            prepares: &[],
            made,
        };
        md::lower_part(&options, self.at.ranks, None, Some(&part))
    }

    fn mdtest_options(&self, common: &str) -> Result<Options, String> {
        let is_hard = common == "mdtest-hard";
        let pattern = match is_hard {
            true => PatternName::MdtestHard,
            false => PatternName::MdtestEasy,
        };
        Options::new(&Arguments {
            files: self.config.whole(common, "n"),
            stonewall_timer: Some(self.stonewall()),
            offset: Some(1),
            verify_read: is_hard && self.at.keeps_files,
            ..self.arguments(pattern, common)
        })
    }

    fn ior_options(&self, common: &str, phase: &Phase) -> Result<Options, String> {
        let is_hard = common == "ior-hard";
        let (pattern, transfers, transfer_size) = match is_hard {
            true => (
                PatternName::IorHard,
                self.config.whole(common, "segmentCount"),
                None,
            ),
            false => {
                let (block, transfer) = (self.size("blockSize"), self.size("transferSize"));
                (PatternName::IorEasy, Some(block / transfer), Some(transfer))
            }
        };
        Options::new(&Arguments {
            transfers,
            transfer_size,
            stonewall_timer: Some(self.stonewall()),
            offset: Some(i64::from(self.at.ranks_per_host % self.at.ranks)),
            direct: self.is_direct(common, phase.name),
            ..self.arguments(pattern, common)
        })
    }

    /// Size of ior-easy in bytes; the checks have refused other texts.
    fn size(&self, key: &str) -> u64 {
        let text = self.config.get("ior-easy", key).unwrap_or_default();
        parse_size(text).unwrap_or(1)
    }

    fn is_direct(&self, common: &str, phase: &str) -> bool {
        let own = self.config.get(phase, "API");
        let api = own.or_else(|| self.config.get(common, "API"));
        let api = api.or_else(|| self.config.get("global", "api"));
        api.is_some_and(|api| api.contains(DIRECT))
    }

    fn workbench(
        &self,
        phase: &Phase,
        earlier: EarlierPhases<'_>,
        again: bool,
    ) -> Result<Plan, String> {
        let precreate = self.config.whole("mdworkbench", "precreatePerSet");
        let objects = precreate.unwrap_or_else(|| {
            let measured = earlier("mdtest-easy-write").map_or(0.0, |e| e.rate);
            let kiops = if measured > 0.0 {
                measured
            } else {
                ASSUMED_KIOPS
            };
            let seconds = self.stonewall().as_secs().min(PRECREATE_SECONDS);
            let all = kiops * seconds as f64 * 1000.0 / f64::from(self.at.ranks);
            all as u64 / u64::from(SETS)
        });
        let rounds = self.config.whole("mdworkbench", "filesPerProc");
        let rounds = rounds.unwrap_or(objects);
        let [creates, runs, deletes] =
            ["create", "bench", "delete"].map(|part| phase.name.ends_with(part));
        let before = earlier("mdworkbench-bench").filter(|_| !again);
        let options = Options::new(&Arguments {
            precreate_per_set: Some(objects),
            obj_per_proc: Some(rounds),
            data_sets: Some(SETS),
            iterations: Some(BENCH_ITERATIONS),
            offset: Some(1),
            waiting_time: self.config.decimal("mdworkbench", "waitingTime"),
            verify_read: self.at.keeps_files,
            run_precreate: creates || again,
            run_benchmark: runs,
            run_cleanup: deletes,
            start_item: (!creates && !again).then(|| {
                let passed = before.filter(|_| deletes);
                passed.map_or(0, |_| rounds * u64::from(BENCH_ITERATIONS))
            }),
            ..self.arguments(PatternName::MdWorkbench, "mdworkbench")
        })?;
        if !creates && earlier("mdworkbench-create").is_none() {
            return Err(
                "`mdworkbench-create` makes the files of this phase, and was not run".into(),
            );
        }
        let part = Part {
            measured: match (creates, runs) {
                (true, _) => &[md::PRECREATE],
                (_, true) => &[md::BENCHMARK],
                _ => &[md::CLEANUP],
            },
            prepares: match again && !creates {
                true => &[md::PRECREATE],
                false => &[],
            },
            made: (!creates).then_some(objects),
        };
        md::lower_part(&options, self.at.ranks, None, Some(&part))
    }

    /// Random reads of the files of ior-easy, until the stonewall; all ranks then read as often as the fastest rank.
    fn random_reads(&self, phase: &Phase) -> Result<Plan, String> {
        let options = self.ior_options("ior-easy", phase)?;
        let ahead = 2 * self.at.ranks_per_host % self.at.ranks;
        let seed = self.at.seed;
        let stonewall = Some(self.stonewall()).filter(|time| !time.is_zero());
        md::lower_stage(&options, self.at.ranks, phase.name, stonewall, |rows| {
            StageWork::Transfers(TransferLoop {
                owner: RankShift {
                    constant: i64::from(ahead),
                    per_set: 0,
                },
                write: false,
                size: RANDOM_READ_BYTES,
                rounds: Rounds::Count(MOST_RANDOM_READS),
                block: 1,
                strided: false,
                order: TransferOrder::Random { seed },
                reorder: None,
                barriers: false,
                open: rows.id(md::row::OPEN, OpKind::Open),
                transfer: rows.id(md::row::READ, OpKind::Read),
                sync: None,
                close: rows.id(md::row::CLOSE, OpKind::Close),
            })
        })
    }

    /// A search among the files of mdtest-easy, of mdtest-hard, or in the whole data directory.
    fn find(&self, phase: &Phase, earlier: EarlierPhases<'_>) -> Result<Plan, String> {
        let is_easy = phase.name == "find-easy";
        let common = if is_easy {
            "mdtest-easy"
        } else {
            "mdtest-hard"
        };
        let top = if phase.name == "find" { "" } else { common };
        let top = RelPath::new(top).map_err(|e| e.to_string())?;
        // IO500 makes a file after the easy writing phases, and matches only files that changed later. Here the file is
        // the marker of the phase that follows the easy writing phases, which no phase before the searches changes again.
        let since = earlier("ior-hard-write").map(|_| format!("ior-hard/{MARKER}"));
        let since = since.map(|path| RelPath::new(&path).expect("names without dots alone"));
        let options = self.mdtest_options(common)?;
        md::lower_stage(&options, self.at.ranks, phase.name, None, |rows| {
            StageWork::Search(TreeSearch {
                top,
                name_contains: SEARCHED_NAME.into(),
                size: (!is_easy).then_some(md::MDTEST_HARD_SIZE),
                changed_since: since.filter(|_| !is_easy),
                list: rows.id("list", OpKind::ListDir),
                stat: rows.id(md::row::STAT, OpKind::Stat),
            })
        })
    }
}

/// Name of the phase whose files a search matches.
const SEARCH_MAKER: &str = "mdtest-hard-write";

/// Part of a name that the searches match, as `*01*`.
const SEARCHED_NAME: &str = "01";

/// Bytes of a random read, and maximum number of random reads of a rank.
const RANDOM_READ_BYTES: u64 = 4096;
const MOST_RANDOM_READS: u64 = 10_000_000;

/// Name of the phase with random reads.
const RANDOM_READS: &str = "ior-rnd4K-easy-read";

/// Iterations of MD-Workbench's benchmark, of which the last counts.
const BENCH_ITERATIONS: u32 = 2;

/// Option of the POSIX interface that bypasses the page cache.
const DIRECT: &str = "--posix.odirect";

/// Refuses the options that Plimsoll does not support, each at its place in the file.
fn check(config: &Config, mode: Mode, at: &Circumstances, checks: &mut Checks<'_>) {
    check_apis(config, checks);
    check_global(config, checks);
    check_ior(config, checks);
    for section in ["find-easy", "find", "find-hard"] {
        check_find(config, section, at, checks);
    }
    if config.get("mdtest-hard", "files-per-dir").is_some() {
        let why = "mdtest-hard has one directory";
        checks.refuse("mdtest-hard", "files-per-dir", why, "");
    }
    let numbers = ["precreatePerSet", "filesPerProc"];
    if let [Some(given), None] | [None, Some(given)] =
        numbers.map(|key| config.get("mdworkbench", key).map(|_| key))
    {
        let why = "`precreatePerSet` and `filesPerProc` need each other";
        checks.refuse("mdworkbench", given, why, "set both keys, or none");
    }
    if mode == Mode::Extended {
        for section in config.old_sections() {
            let why = "only earlier versions of IO500 have this phase";
            checks.refuse(section, "run", why, "leave the section out");
        }
    }
}

fn check_apis(config: &Config, checks: &mut Checks<'_>) {
    let of_phases = PHASES
        .iter()
        .flat_map(|p| p.common.into_iter().chain([p.name]));
    let sections = std::iter::once(("global", "api"));
    let mut sections: Vec<_> = sections
        .chain(of_phases.map(|name| (name, "API")))
        .collect();
    sections.dedup();
    let mut seen = Vec::new();
    for (section, key) in sections {
        let has_key = !section.starts_with("find") && !section.starts_with("mdworkbench-");
        if seen.contains(&section) || !has_key {
            continue;
        }
        seen.push(section);
        let Some(api) = config.get(section, key) else {
            continue;
        };
        let mut words = api.split_whitespace();
        if !words.next().unwrap_or("").eq_ignore_ascii_case("POSIX") {
            let help = "`--target URL` measures a target other than files";
            checks.refuse(section, key, "expected POSIX", help);
            continue;
        }
        let is_easy = section.starts_with("ior-easy") || section.starts_with("ior-rnd4K");
        for option in words {
            let why = match (option == DIRECT, is_easy) {
                (true, true) => continue,
                (true, false) => "only transfers of ior-easy can bypass the page cache",
                (false, _) => "the only option of POSIX is `--posix.odirect`",
            };
            checks.refuse(section, key, why, "");
            break;
        }
    }
}

fn check_global(config: &Config, checks: &mut Checks<'_>) {
    if config.flag("global", "io-buffers-on-gpu") {
        let why = "buffers are in the memory of the host";
        checks.refuse("global", "io-buffers-on-gpu", why, "");
    }
    if !config.flag("global", "timestamp-resultdir") {
        let why = "every run has a results directory of its own below `resultdir`";
        checks.refuse("global", "timestamp-resultdir", why, "");
    }
    let command = config.get("global", "drop-caches-cmd");
    if config.flag("global", "drop-caches") && command != Some(super::options::DROP_CACHES) {
        let why = "Plimsoll drops the caches of each machine itself, and needs root for this";
        let help = "leave `drop-caches-cmd` out";
        checks.refuse("global", "drop-caches-cmd", why, help);
    }
    if config
        .whole("global", "verbosity")
        .is_some_and(|level| level > 1)
    {
        let why = "levels above 1 print messages of IO500's own program";
        checks.refuse(
            "global",
            "verbosity",
            why,
            "0 leaves the times out of result.txt",
        );
    }
    let content = config.get("global", "dataPacketType").unwrap_or_default();
    if !["timestamp", "incompressible", "random"].contains(&content) {
        let why = "contents are incompressible and differ between files and runs";
        let help = "expected timestamp, incompressible or random";
        checks.refuse("global", "dataPacketType", why, help);
    }
}

fn check_ior(config: &Config, checks: &mut Checks<'_>) {
    for section in ["ior-hard", "ior-hard-write", "ior-hard-read"] {
        if config.flag(section, "collective") {
            let why = "collective transfers are calls of MPI, not of POSIX";
            checks.refuse(section, "collective", why, "");
        }
    }
    for section in ["ior-easy", "ior-hard", "mdworkbench"] {
        if config
            .whole(section, "verbosity")
            .is_some_and(|level| level > 0)
        {
            let why = "run.json of the phase has the figures of each rank";
            checks.refuse(section, "verbosity", why, "");
        }
    }
    if !config.flag("ior-easy", "filePerProc") {
        let why = "each rank has a file of its own";
        checks.refuse("ior-easy", "filePerProc", why, "");
    }
    if config.flag("ior-easy", "uniqueDir") {
        let why = "the files of all ranks are in one directory";
        checks.refuse("ior-easy", "uniqueDir", why, "");
    }
    let sizes = ["transferSize", "blockSize"].map(|key| {
        let text = config.get("ior-easy", key).unwrap_or_default();
        let size = parse_size(text).ok().filter(|size| *size > 0);
        if size.is_none() {
            let help = "expected a whole number with k, m, g or t, such as 2m";
            checks.refuse("ior-easy", key, "not a size", help);
        }
        size
    });
    if let [Some(transfer), Some(block)] = sizes
        && block % transfer != 0
    {
        let why = "the block is no multiple of `transferSize`";
        checks.refuse("ior-easy", "blockSize", why, "");
    }
}

fn check_find(config: &Config, section: &str, at: &Circumstances, checks: &mut Checks<'_>) {
    for key in [
        "external-script",
        "external-mpi-args",
        "external-extra-args",
    ] {
        if config
            .get(section, key)
            .is_some_and(|value| !value.is_empty())
        {
            let why = "Plimsoll searches itself, with all ranks";
            checks.refuse(section, key, why, "");
        }
    }
    let other = |ranks: &u64| *ranks != u64::from(at.ranks);
    if let Some(ranks) = config.whole(section, "nproc").filter(other) {
        let why = format!("all {} ranks search", at.ranks);
        let started = counted(ranks, "rank", "ranks");
        let help = format!("leave `nproc` out, or start {started}");
        checks.refuse(section, "nproc", &why, &help);
    }
    let own = "pfind-queue-length";
    if config.whole(section, own) != Some(10_000) {
        checks.refuse(section, own, "the search of Plimsoll has no such queue", "");
    }
    let flags = [
        "pfind-steal-next",
        "pfind-parallelize-single-dir-access-using-hashing",
    ];
    for key in flags {
        if config.flag(section, key) {
            checks.refuse(
                section,
                key,
                "the search of Plimsoll divides its work itself",
                "",
            );
        }
    }
}
