//! What a search begins with: the Plan of the greatest load, and how the loads are chosen.

use crate::cli::FindArgs;
use crate::commands::run;
use crate::exit::CommandError;
use crate::load_runner::{self, LoadTestConfig, PreparedRun, files_of};
use plimsoll_plan::show_duration;
use plimsoll_points::{LoadLine, Search, SearchEnd};
use plimsoll_results::{ClockKind, FIND_SCHEMA, FindWriter, LoadSearch, Program, Target};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Without `--start-load`, a search begins at this part of the greatest load.
const DEFAULT_START_DIVISOR: u64 = 8;

/// Reads what is asked for; rank 0 calls this.
pub(super) fn ready(args: &FindArgs, ranks: u32) -> Result<PreparedRun<FindWriter>, CommandError> {
    if let Some(dir) = &args.resume {
        return resumed(dir, ranks);
    }
    // Both are there, or the arguments would have been refused.
    let (name, max) = (args.workload.as_deref(), args.max_load.unwrap_or(1));
    let rules = rules(args, max)?;
    let name = name.unwrap_or_default();
    let ground = LoadTestConfig::new(name, &args.how, &args.criteria, max)?;
    let hooks = args.manner.hooks.hooks(args.how.allow_commands)?;
    let target = ground.check(&args.results)?;
    let started = SystemTime::now();
    let search = LoadSearch {
        hooks,
        ..begun(&ground, rules, target, ranks, started)
    };
    let root = args.results.clone();
    Ok(PreparedRun::new(ground, move || {
        FindWriter::create(&root, search, started)
    }))
}

/// A search that goes on.
fn resumed(dir: &Path, ranks: u32) -> Result<PreparedRun<FindWriter>, CommandError> {
    let writer = FindWriter::resume(dir).map_err(CommandError::usage)?;
    let search = writer.search();
    if !search.can_resume() {
        return Err(CommandError::usage(format!(
            "the search in {} has come to its end: there is nothing to resume",
            dir.display()
        )));
    }
    load_runner::check_ranks("search", search.ranks, ranks)?;
    let ground = LoadTestConfig {
        plan: search.plan.clone(),
        target: search.target.url.clone(),
        is_virtual: search.clock == ClockKind::Virtual,
        lanes: search.lanes,
        interval: Duration::try_from_secs_f64(search.interval_s).unwrap_or(Duration::from_secs(1)),
    };
    Ok(PreparedRun::new(ground, move || Ok(writer)))
}

/// How the loads are chosen.
fn rules(args: &FindArgs, max: u64) -> Result<Search, CommandError> {
    let start = args
        .start_load
        .unwrap_or((max / DEFAULT_START_DIVISOR).max(1));
    let search = Search::new(start, max).map_err(|_| {
        CommandError::usage(format!(
            "--start-load {start} is above --max-load {max}: a search goes from the first to the greatest load"
        ))
    })?;
    Ok(Search {
        resolution: args.resolution,
        confirm_runs: args.confirm_runs,
        max_runs: args.max_runs,
        ..search
    })
}

fn begun(
    ground: &LoadTestConfig,
    search: Search,
    target: String,
    ranks: u32,
    started: SystemTime,
) -> LoadSearch {
    let plan = &ground.plan;
    let metric = plan.metric.as_ref();
    let (warmup, time) = load_runner::times(plan);
    let stamp = jiff::Timestamp::try_from(started).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    LoadSearch {
        schema_version: FIND_SCHEMA,
        workload: plan.name.clone(),
        metric: metric.map(|m| m.name.clone()).unwrap_or_default(),
        scale: metric.map_or(1.0, |m| m.scale),
        comparable: !metric.is_some_and(|m| m.is_scaled()),
        seed: plan.seed,
        started_at: stamp.to_string(),
        search,
        load_line: LoadLine {
            sustained: None,
            not_sustained: None,
            termination: SearchEnd::Unfinished,
        },
        failure: None,
        warmup_s: warmup.as_secs_f64(),
        measure_s: time.as_secs_f64(),
        criteria: metric.map(|m| m.criteria.clone()).unwrap_or_default(),
        runs: vec![],
        percentiles_shown: None,
        program: Program {
            name: "plimsoll".into(),
            version: env!("CARGO_PKG_VERSION").into(),
        },
        target: Target {
            url: ground.target.clone(),
            description: target,
        },
        clock: match ground.is_virtual {
            true => ClockKind::Virtual,
            false => ClockKind::Real,
        },
        lanes: ground.lanes,
        interval_s: ground.interval.as_secs_f64(),
        ranks,
        hooks: None,
        notes: plan.notes.clone(),
        environment: run::environment(plan, &ground.settings()),
        plan: plan.clone(),
    }
}

/// The first line: what is looked for, and how long each run takes.
pub(super) fn headline(search: &LoadSearch, ground: &LoadTestConfig, ranks: u32) -> String {
    let length = |s: f64| show_duration(Duration::try_from_secs_f64(s).unwrap_or_default());
    let clock = match ground.is_virtual {
        true => " of virtual time",
        false => "",
    };
    let scaled = match search.comparable {
        true => "",
        false => " (scaled: not comparable)",
    };
    let ranks = match ranks {
        1 => String::new(),
        n => format!(", {n} ranks"),
    };
    let made = match search.runs.len() {
        0 => String::new(),
        n => format!(", {n} of them made before"),
    };
    format!(
        "{}{scaled}: the load line from {} up to {} {}, at most {} runs{made}, each {} of warm-up and {} \
         measured{clock}; {}, target {}{ranks}",
        search.workload,
        search.search.start_load,
        search.search.max_load,
        search.metric,
        search.search.max_runs,
        length(search.warmup_s),
        length(search.measure_s),
        files_of(ground),
        ground.target
    )
}
