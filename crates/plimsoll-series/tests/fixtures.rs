//! Series of a small operation mix on a target that has a capacity.

use crate::host::TestHost;
use crate::results_fixtures::{self, series, target};
pub use crate::results_fixtures::{create, names};
use plimsoll_plan::{OnError, Overrides, Plan, RunOptions, SourceKind, Warmup};
use plimsoll_ranks::Ranks;
use plimsoll_results::{
    Configuration, HISTOGRAMS_FILE, LoadCurve, LoadSearch, Profile, Repeats, STOP_AFTER_INVALID,
    SearchRules, Series, SeriesDir, SeriesKind, SeriesRun, SeriesWriter,
};
use plimsoll_series::{Communicator, RunContext, SeriesError, drive};
use plimsoll_workload::mix::{Context, lower, parse};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// An operation mix of one process per stream, with 10 reads per second.
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

/// A target with one server and a service time of 10 ms: a capacity of 100 operations per second, or 10 streams.
pub const CAPACITY_OF_10: &str = "null:?latency=10ms&servers=1&clock=virtual";

/// A target of unlimited capacity.
pub const UNLIMITED: &str = "null:?latency=10ms&clock=virtual";

/// Maximum load of [`plan`].
const MAX_LOAD: u64 = 64;

/// The Plan for [`MAX_LOAD`], with 1 s of warm-up and a window of 10 s.
fn plan() -> Plan {
    let overrides = Overrides {
        load: Some(MAX_LOAD),
        most: Some(MAX_LOAD),
        seed: Some(41),
        time: Some(Duration::from_secs(10)),
        warmup: Some(Warmup::Fixed(Duration::from_secs(1))),
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
        target: target(url),
        ..results_fixtures::configuration(plan())
    }
}

/// A series of repeated runs with 4 streams.
pub fn repeats(requested_runs: u32) -> Series {
    let mut only = configuration(CAPACITY_OF_10);
    only.plan = only.plan.at_load(4).unwrap();
    let kind = SeriesKind::Repeats(Repeats {
        requested_runs,
        settle: None,
    });
    series(kind, vec![only])
}

/// A load curve on a target with a capacity of 10 streams: higher loads are invalid.
pub fn curve(loads: &[u64]) -> Series {
    let curve = LoadCurve::new(loads.to_vec(), Some(STOP_AFTER_INVALID));
    let only = configuration(CAPACITY_OF_10);
    series(SeriesKind::Curve(curve), vec![only])
}

/// A search for the load line from 4 to [`MAX_LOAD`] streams.
pub fn search() -> Series {
    let rules = SearchRules::new(4, MAX_LOAD).unwrap();
    let only = configuration(CAPACITY_OF_10);
    series(SeriesKind::Search(LoadSearch::new(rules)), vec![only])
}

/// A profile of one workload with 4 streams, on `targets` as file systems `a`, `b`, `c` and so on.
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
        by_operation: false,
    });
    series(kind, ('a'..).zip(targets).map(of).collect())
}

/// A series of each kind, with several runs and no failed run.
pub fn every_kind() -> [Series; 4] {
    [
        repeats(3),
        curve(&[2, 4, 8]),
        search(),
        profile(&[CAPACITY_OF_10, UNLIMITED]),
    ]
}

/// Calls `use_it` with the context of a single rank and of `host`.
pub fn with_context<T>(host: &TestHost, use_it: impl FnOnce(RunContext<'_>) -> T) -> T {
    let communicator = Communicator::new(Ranks::alone());
    use_it(RunContext::new(&communicator, host))
}

/// Makes the missing runs of a series, up to `jobs` at a time.
pub fn drive_jobs(
    host: &TestHost,
    writer: SeriesWriter,
    jobs: usize,
) -> Result<SeriesWriter, SeriesError> {
    let jobs = NonZeroUsize::new(jobs).unwrap();
    with_context(host, |context| drive(context, writer, jobs))
}

/// Makes the missing runs of a series, one at a time.
pub fn drive_one(host: &TestHost, writer: SeriesWriter) -> Result<SeriesWriter, SeriesError> {
    drive_jobs(host, writer, 1)
}

/// Makes a whole series in a new directory below `root`, and returns the directory and the document.
pub fn whole(root: &Path, series: Series) -> (PathBuf, Series) {
    let ended = drive_one(&TestHost::default(), create(root, series)).unwrap();
    let dir = ended.dir().path().to_owned();
    (dir, ended.series().clone())
}

/// Names of the results directories of a series' runs, in order.
pub fn directories(series: &Series) -> Vec<&str> {
    let runs = series.runs.iter();
    runs.map(|run| run.directory.as_str()).collect()
}

/// The runs of a series with their latency histograms, without their start times.
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
