//! Series of a small operation mix on a target that has a capacity.

use crate::host::TestHost;
use plimsoll_plan::{OnError, Overrides, Plan, RunOptions, SourceKind};
use plimsoll_ranks::Solo;
use plimsoll_results::{
    ClockKind, Configuration, Document, Environment, HISTOGRAMS_FILE, LoadCurve, LoadSearch,
    Profile, Program, Repeats, SearchRules, Series, SeriesDir, SeriesKind, SeriesRun, SeriesState,
    SeriesWriter, StopRules, Target,
};
use plimsoll_series::{Communicator, RunContext, SeriesEnd, SeriesError, drive};
use plimsoll_workload::mix::{Context, lower, parse};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// One process per stream, with 10 reads per second.
const MIX: &str = r#"
title = "reads"

[metric]
name = "streams"
data = "1m"

[[component]]
name = "READER"
processes = 1
rate = 10

[component.mix]
read = 100

[component.files]
count = 1
size = "1m"
"#;

/// A target whose only server takes 10 ms for an operation: 100 operations per second, 10 streams.
pub const CAPACITY_OF_10: &str = "null:?latency=10ms&servers=1";

/// A target of unlimited capacity.
pub const UNLIMITED: &str = "null:?latency=10ms";

/// Highest load of the Plan.
const MAX_LOAD: u64 = 64;

/// The Plan for the highest load: a second of warm-up and ten seconds measured.
fn plan() -> Plan {
    let overrides = Overrides {
        load: Some(MAX_LOAD),
        most: Some(MAX_LOAD),
        seed: Some(41),
        time: Some(Duration::from_secs(10)),
        warmup: Some(Duration::from_secs(1)),
        options: RunOptions {
            on_error: OnError::Count,
            ..RunOptions::default()
        },
        ..Overrides::default()
    };
    let context = Context {
        kind: SourceKind::File,
        temp_dir: "/nowhere".into(),
    };
    lower(&parse(MIX, "reads.toml").unwrap(), &overrides, &context).unwrap()
}

fn configuration(url: &str) -> Configuration {
    Configuration {
        name: String::new(),
        filesystem: None,
        directory: String::new(),
        target: Target {
            url: url.into(),
            description: String::new(),
            system: None,
        },
        plan: plan(),
    }
}

fn series(kind: SeriesKind, configurations: Vec<Configuration>) -> Series {
    Series {
        schema_version: Series::SCHEMA,
        name: "reads".into(),
        started_at: "2026-01-01T00:00:00Z".into(),
        state: SeriesState::Unfinished,
        stop_reason: None,
        kind,
        runs: vec![],
        configurations,
        percentiles_shown: None,
        program: Program::plimsoll(),
        clock: ClockKind::Virtual,
        lanes: None,
        interval_s: 1.0,
        ranks: 1,
        events: vec![],
        notes: vec![],
        environment: Environment::default(),
    }
}

/// Repeated runs of four streams.
pub fn repeats(requested_runs: u32) -> Series {
    let mut only = configuration(CAPACITY_OF_10);
    only.plan = only.plan.at_load(4).unwrap();
    series(SeriesKind::Repeats(Repeats { requested_runs }), vec![only])
}

/// A curve, of which the loads above 10 are invalid.
pub fn curve(loads: &[u64]) -> Series {
    let curve = LoadCurve::new(loads.to_vec(), StopRules::default());
    let only = configuration(CAPACITY_OF_10);
    series(SeriesKind::Curve(curve), vec![only])
}

/// A search that begins at 4 streams.
pub fn search() -> Series {
    let rules = SearchRules::new(4, MAX_LOAD).unwrap();
    let only = configuration(CAPACITY_OF_10);
    series(SeriesKind::Search(LoadSearch::new(rules)), vec![only])
}

/// A profile of four streams on these targets: file systems a, b, c and so on.
pub fn profile(targets: &[&str]) -> Series {
    let of = |(name, url): (char, &&str)| Configuration {
        name: "reads".into(),
        filesystem: Some(name.into()),
        directory: format!("{name}/reads"),
        plan: plan().at_load(4).unwrap(),
        ..configuration(url)
    };
    let kind = SeriesKind::Profile(Profile {
        file: "reads.prof".into(),
        text: String::new(),
        description: String::new(),
        repeat: 1,
        not_run: vec![],
    });
    series(kind, ('a'..).zip(targets).map(of).collect())
}

/// Every kind, each of several runs of which none fails.
pub fn every_kind() -> [Series; 4] {
    [
        repeats(3),
        curve(&[2, 4, 8]),
        search(),
        profile(&[CAPACITY_OF_10, UNLIMITED]),
    ]
}

/// A new directory of a series below `root`.
pub fn create(root: &Path, series: Series) -> SeriesWriter {
    SeriesWriter::create(root, series, SystemTime::UNIX_EPOCH).unwrap()
}

/// Calls `use_it` with the context of one rank around which this host is.
pub fn with_context<T>(host: &TestHost, use_it: impl FnOnce(RunContext<'_>) -> T) -> T {
    let communicator = Communicator::new(Box::new(Solo::new()));
    use_it(RunContext::new(&communicator, host))
}

/// Makes the missing runs of a series, up to `jobs` at a time.
pub fn drive_jobs(
    host: &TestHost,
    writer: SeriesWriter,
    jobs: usize,
) -> Result<SeriesEnd, SeriesError> {
    let jobs = NonZeroUsize::new(jobs).unwrap();
    with_context(host, |context| drive(context, writer, jobs))
}

/// Makes the missing runs of a series, one at a time.
pub fn drive_one(host: &TestHost, writer: SeriesWriter) -> Result<SeriesEnd, SeriesError> {
    drive_jobs(host, writer, 1)
}

/// Makes a whole series in a new directory below `root`, and returns the directory and the document.
pub fn whole(root: &Path, series: Series) -> (PathBuf, Series) {
    let ended = drive_one(&TestHost::default(), create(root, series)).unwrap();
    let dir = ended.writer.dir().path().to_owned();
    (dir, ended.writer.series().clone())
}

/// Names of the directories of the runs.
pub fn directories(series: &Series) -> Vec<&str> {
    let runs = series.runs.iter();
    runs.map(|run| run.directory.as_str()).collect()
}

/// The runs of a series with the distributions of their latencies, without the times of day at which they began.
pub fn measured(dir: &Path) -> Vec<(SeriesRun, Vec<u8>)> {
    let dir = SeriesDir::at(dir);
    let of = |run: SeriesRun| {
        let results = dir.run(&run).unwrap();
        let log = std::fs::read(results.path().join(HISTOGRAMS_FILE)).unwrap();
        let run = SeriesRun {
            started_at: String::new(),
            ..run
        };
        (run, log)
    };
    dir.read().unwrap().runs.into_iter().map(of).collect()
}

/// Names in a directory, sorted.
pub fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    let mut names: Vec<String> = entries
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}
