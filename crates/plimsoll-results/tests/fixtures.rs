//! Runs and series with figures that a test chooses.

use plimsoll_measure::{Latency, OpTotals, WindowTotals};
use plimsoll_plan::ScoreGroup;
use plimsoll_plan::{
    Access, BusinessMetric, Criteria, EntriesPerDir, Fileset, FilesetId, InitialData, MixFiles,
    MixFlags, MixOp, MixRow, OpKind, Operation, OperationId, Overrides, Pacing, Phase, Plan,
    Program, RelPath, SizeTable, Until, Value, WorkerGroup, WorkingSet,
};
use plimsoll_results::{
    ClockKind, Configuration, Document, Environment, LoadCurve, LoadSearch, MeasuredRun, NextRun,
    Outcome, PairedComparison, PrimaryFigure, ProcessCounts, Profile, Reason, Recipe, Repeats, Run,
    RunDir, STOP_AFTER_INVALID, ScheduleCounts, SearchRules, SearchedParameter, Series, SeriesKind,
    SeriesRun, SeriesState, SeriesWriter, Side, SparseInterval, Step, Suite, SuitePhase, Sweep,
    Target, VariedParameter, Verdict,
};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

pub const SECOND: u64 = 1_000_000_000;

/// Highest load of the Plan of curves and searches.
pub const MAX_LOAD: u32 = 10;

/// Seed of the Plan, and of the first run of a series.
pub const SEED: u64 = 41;

pub fn target(url: &str) -> Target {
    Target {
        url: url.into(),
        description: "nothing".into(),
        system: None,
    }
}

fn fileset() -> Fileset {
    Fileset {
        name: "data".into(),
        path: RelPath::default(),
        entries: 20,
        leaf_dirs: 0,
        width: EntriesPerDir {
            mean: 20.0,
            gamma_shape: None,
        },
        depth: None,
        size: Value::Const(1 << 20),
        prealloc_percent: 100,
        parallel_prealloc: false,
        reuse: false,
        trust_tree: false,
        grows: true,
        access: Access::ReadWrite,
        cached: None,
        letters: None,
        initially: InitialData::default(),
        content: None,
        location: None,
    }
}

/// A Plan for the load [`MAX_LOAD`]: two processes per stream, each with 10 operations per second, half of them reads and
/// half of them read-modify-writes; one second of warm-up, and ten seconds measured.
pub fn plan() -> Plan {
    let mut plan = Plan::empty("streams");
    plan.seed = SEED;
    let operation = |name: &str, kind| Operation {
        name: name.into(),
        kind,
        location: None,
    };
    plan.operations = vec![
        operation("read", OpKind::Read),
        operation("rmw", OpKind::Rmw),
        operation("prepare", OpKind::Prepare),
        operation("start", OpKind::Start),
    ];
    plan.filesets = vec![fileset()];
    let row = |op, row| MixRow {
        op,
        percent: 50.0,
        row: OperationId(row),
    };
    let mix = plimsoll_plan::Mix {
        table: vec![row(MixOp::Read, 0), row(MixOp::Rmw, 1)],
        prepare: OperationId(2),
        pacing: Some(Pacing {
            rate: 10.0,
            arrivals: Default::default(),
            start: OperationId(3),
        }),
        delay: Duration::ZERO,
        reads: SizeTable::fixed(4096),
        writes: SizeTable::fixed(4096),
        files: MixFiles {
            data: FilesetId(0),
            turnover: None,
            empty: None,
            shared: false,
            parts: 20,
        },
        working_set: WorkingSet::default(),
        flags: MixFlags::default(),
    };
    plan.groups = vec![WorkerGroup {
        process: "CAMERA".into(),
        process_instances: 2 * MAX_LOAD,
        thread: "worker".into(),
        thread_instances: 1,
        memory: 4096,
        nice: 0,
        io_priority: None,
        program: Program::Mix(Box::new(mix)),
        location: None,
    }];
    plan.metric = Some(BusinessMetric {
        name: "streams".into(),
        load: u64::from(MAX_LOAD),
        scale: 0.5,
        data: 1 << 20,
        rate: Some(20.0),
        criteria: Criteria {
            latency: Some(Duration::from_millis(20)),
            ..Criteria::default()
        },
    });
    let wait = |seconds| Phase::Wait {
        until: Until::Elapsed {
            time: Duration::from_secs(seconds),
        },
        snapshots: None,
    };
    plan.script = vec![
        Phase::Start,
        wait(1),
        Phase::OpenWindow,
        wait(10),
        Phase::CloseWindow,
        Phase::Stop,
    ];
    plan
}

/// The Plan of [`plan`] at a load of at most [`MAX_LOAD`].
pub fn plan_at(load: u64) -> Plan {
    plan()
        .at_load(load)
        .expect("the load is at most the highest")
}

/// A measured run with a window of 10 s, in which `done` scheduled operations completed, each with a response time of `ms`
/// milliseconds and half that service time. `reasons` are the codes of reasons against the run. The code
/// `interrupted` also marks the run as interrupted.
pub fn measured(plan: Plan, done: u64, ms: u64, reasons: &[&str]) -> MeasuredRun {
    let row = |ops: u64| OpTotals {
        ops,
        bytes: u128::from(ops) * 4096,
        service: Latency::of((0..ops).map(|_| ms * 500_000)),
        response: Latency::of((0..ops).map(|_| ms * 1_000_000)),
        paced: ops,
        ..OpTotals::default()
    };
    let late = OpTotals {
        ops: done,
        service: Latency::of((0..done).map(|_| 250_000)),
        ..OpTotals::default()
    };
    let totals = WindowTotals {
        number: 1,
        start: SECOND,
        end: 11 * SECOND,
        rows: vec![row(done / 2), row(done / 2), OpTotals::default(), late],
        ..WindowTotals::default()
    };
    let load = plan.metric.as_ref().map_or(0, |metric| metric.load);
    let (due, half) = (load * 100, done / 2);
    let process = |done| ProcessCounts {
        group: 0,
        number: 0,
        counts: ScheduleCounts {
            scheduled: due,
            completed: done,
            dropped: 0,
        },
    };
    let reason = |code: &&str| Reason::new(code, format!("{code} was missed"));
    let started = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    MeasuredRun {
        clock: ClockKind::Virtual,
        outcome: Outcome {
            windows: vec![totals.into()],
            processes: vec![process(half.saturating_sub(10)), process(half + 10)],
            interrupted: reasons.contains(&"interrupted"),
            reasons: reasons.iter().map(reason).collect(),
            lanes: 1,
            ..Outcome::default()
        },
        ..MeasuredRun::new(plan, target("null"), started)
    }
}

/// A run of `plan`, assembled from the measurements of [`measured`].
pub fn run(plan: Plan, done: u64, ms: u64, reasons: &[&str]) -> Run {
    Run::assemble(measured(plan, done, ms, reasons))
}

/// A series without runs.
pub fn series(kind: SeriesKind, configurations: Vec<Configuration>) -> Series {
    let run = run(plan(), 0, 1, &[]);
    Series {
        schema_version: Series::SCHEMA,
        name: "streams".into(),
        started_at: run.started_at,
        state: SeriesState::Unfinished,
        stop_reason: None,
        kind,
        runs: vec![],
        configurations,
        percentiles_shown: None,
        program: run.program,
        clock: ClockKind::Virtual,
        interval_s: 1.0,
        ranks: 1,
        events: vec![],
        notes: vec![],
        unremoved: vec![],
        environment: Environment::default(),
    }
}

pub fn configuration(plan: Plan) -> Configuration {
    Configuration {
        name: String::new(),
        filesystem: None,
        directory: String::new(),
        before: vec![],
        target: target("null"),
        plan,
    }
}

/// A series of repeated runs of [`plan`], without runs.
pub fn repeats(requested_runs: u32) -> Series {
    let kind = SeriesKind::Repeats(Repeats {
        requested_runs,
        settle: None,
    });
    series(kind, vec![configuration(plan())])
}

/// A curve of the loads 2, 4, 6, 8 and 10.
pub fn curve() -> Series {
    let curve = LoadCurve::new(vec![2, 4, 6, 8, 10], Some(STOP_AFTER_INVALID));
    series(SeriesKind::Curve(curve), vec![configuration(plan())])
}

/// A search from load 2 to load 10.
pub fn search() -> Series {
    let rules = SearchRules::new(2, u64::from(MAX_LOAD)).unwrap();
    let kind = SeriesKind::Search(LoadSearch::new(rules));
    series(kind, vec![configuration(plan())])
}

/// A profile; each configuration is a name and a file system.
pub fn profile(repeat: u32, configurations: &[(&str, &str)]) -> Series {
    let of = |(name, filesystem): &(&str, &str)| Configuration {
        name: (*name).into(),
        filesystem: Some((*filesystem).into()),
        directory: format!("{filesystem}/{name}"),
        ..configuration(plan())
    };
    let kind = SeriesKind::Profile(Profile {
        file: "study.prof".into(),
        text: String::new(),
        description: String::new(),
        repeat,
        not_run: vec![],
        by_operation: false,
    });
    series(kind, configurations.iter().map(of).collect())
}

/// A paired comparison of two variants of [`plan`] by operations per second, without runs.
pub fn paired(pairs: u32, until: Option<f64>) -> Series {
    let variant = |side: Side| Configuration {
        name: side.to_string(),
        ..configuration(plan())
    };
    let comparison = PairedComparison::new(PrimaryFigure::OpsPerS, SEED, pairs, until, None);
    series(SeriesKind::Ab(comparison), Side::BOTH.map(variant).into())
}

/// A sweep over parameters, each with its values, whose configurations have the Plans that `plan_of` makes from the values.
pub fn sweep(parameters: &[(&str, &str)], plan_of: impl Fn(&[(String, String)]) -> Plan) -> Series {
    let parameter = |(name, values): &(&str, &str)| VariedParameter {
        name: (*name).into(),
        values: values.split(',').map(str::to_owned).collect(),
    };
    let parameters: Vec<VariedParameter> = parameters.iter().map(parameter).collect();
    let mut configurations: Vec<Configuration> = Vec::new();
    for cell in Sweep::cells(&parameters) {
        let (name, directory) = Sweep::names(&cell, &configurations);
        configurations.push(Configuration {
            name,
            directory,
            ..configuration(plan_of(&cell))
        });
    }
    let sweep = Sweep::new(parameters, &configurations);
    series(SeriesKind::Sweep(sweep), configurations)
}

/// A search over the parameter `nthreads` in steps of a thousand from 2k, without a highest value, with the configuration
/// of the first value.
pub fn search_over_parameter() -> Series {
    let parameter = SearchedParameter {
        name: "nthreads".into(),
        unit: "k".into(),
        recipe: Box::new(Recipe {
            source: plan().source,
            path: PathBuf::new(),
            current_dir: "/".into(),
            overrides: Overrides::default(),
            has_dir: true,
            target: "null".into(),
            until: vec![],
        }),
    };
    let first = Configuration {
        name: parameter.configuration(2),
        ..configuration(plan())
    };
    let rules = SearchRules::new(2, None).unwrap();
    series(
        SeriesKind::Search(LoadSearch::over(parameter, rules)),
        vec![first],
    )
}

/// A suite of phases, each with the reason why the phase is not run, and a configuration for each phase that is run.
pub fn suite(phases: &[(&str, ScoreGroup, Option<&str>)]) -> Series {
    let phase = |(name, group, not_run): &(&str, ScoreGroup, Option<&str>)| SuitePhase {
        name: (*name).into(),
        group: *group,
        is_extended: false,
        is_timed: name.ends_with("write"),
        is_unrepeatable: name.ends_with("write") || name.ends_with("delete"),
        not_run: not_run.map(Into::into),
    };
    let phases: Vec<SuitePhase> = phases.iter().map(phase).collect();
    let configurations = phases.iter().filter(|phase| phase.runs());
    let configurations = configurations.map(|phase| Configuration {
        name: phase.name.clone(),
        ..configuration(plan())
    });
    let configurations = configurations.collect();
    let suite = Suite {
        file: "config.ini".into(),
        text: String::new(),
        complete: String::new(),
        config_hash: "1".into(),
        version: "plimsoll-0".into(),
        data_dir: "/data".into(),
        target: "null".into(),
        pattern_ranks: 2,
        ranks_per_host: 2,
        seed: SEED,
        stonewall_s: 1.0,
        least_s: 300.0,
        pause_dir: None,
        shows_times: true,
        made_dirs: vec![],
        reasons: vec!["`stonewall-time` is 1 s, and the rules require 300 s".into()],
        phases,
        repeated: vec![0],
        results: vec![],
        score: None,
        extended_score: None,
    };
    series(SeriesKind::Suite(Box::new(suite)), configurations)
}

/// The next run of a series.
pub fn next(series: &Series) -> NextRun {
    match series.next() {
        Step::Run(next) => next,
        Step::End(state, reason) => panic!("the series ended: {state:?}, {reason:?}"),
    }
}

/// Lists the next run of a series with a verdict, without results and without a margin.
pub fn list(series: &mut Series, verdict: Verdict) -> NextRun {
    let next = next(series);
    let mut run = run(series.plan(&next).unwrap(), 0, 1, &[]);
    run.validity.verdict = verdict;
    let entry = SeriesRun {
        margin: None,
        ..SeriesRun::of(&run, &next, &next.directory)
    };
    series.runs.push(entry);
    next
}

/// Creates the directory of a series below `root`.
pub fn create(root: &Path, series: Series) -> SeriesWriter {
    SeriesWriter::create(root, series, SystemTime::UNIX_EPOCH).unwrap()
}

/// Writes the results of a run into the directory of `next` without listing the run.
pub fn write(writer: &SeriesWriter, next: &NextRun, run: &Run) -> RunDir {
    let started = SystemTime::UNIX_EPOCH;
    let results = writer
        .dir()
        .run_writer(writer.series().clock, next, &run.plan, started);
    let results = results.unwrap();
    results.finish(run).unwrap()
}

/// Makes and lists the next run, with the figures of [`measured`].
pub fn make(writer: &mut SeriesWriter, done: u64, ms: u64, reasons: &[&str]) -> SeriesRun {
    let next = next(writer.series());
    let plan = writer.series().plan(&next).unwrap();
    let results = write(writer, &next, &run(plan, done, ms, reasons));
    let entry = writer.entry(&next, &results).unwrap();
    writer.add(entry.clone()).unwrap();
    entry
}

/// Figures of a run for [`measured`]: completed operations, response time in milliseconds, and codes of reasons.
pub type Figures = (u64, u64, &'static [&'static str]);

/// Makes the runs of a series and ends the series; stops earlier if `figures` returns `None` for a run.
pub fn make_all(writer: &mut SeriesWriter, mut figures: impl FnMut(&NextRun) -> Option<Figures>) {
    loop {
        match writer.series().next() {
            Step::Run(next) => match figures(&next) {
                Some((done, ms, reasons)) => _ = make(writer, done, ms, reasons),
                None => return,
            },
            Step::End(state, reason) => return writer.end(state, reason).unwrap(),
        }
    }
}

/// Names of the entries in a directory, sorted.
pub fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    let mut names: Vec<String> = entries
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Reads all distributions in the `histograms.hlog` of a run.
pub fn logged(dir: &RunDir) -> Vec<SparseInterval> {
    let mut lines = Vec::new();
    dir.each_histogram(&mut |line| lines.push(line)).unwrap();
    lines
}
