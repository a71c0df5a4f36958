//! The start of a search: the Plan of the highest load, and how the loads are selected.

use crate::cli::FindArgs;
use crate::exit::CommandError;
use crate::load_runner::{LoadTestArgs, LoadTestConfig, PreparedRun, files_of, ranks_of};
use plimsoll_engine::ClockKind;
use plimsoll_plan::show_duration;
use plimsoll_points::Search;
use plimsoll_results::{FindDir, FindWriter, LoadSearch, SearchRuns, SearchSettings, SearchState};
use std::time::{Duration, SystemTime};

/// Fraction of the highest load at which a search without `--start-load` begins.
const DEFAULT_START_DIVISOR: u64 = 8;

/// Prepares the search; rank 0 calls this.
pub(super) fn ready(args: &FindArgs, ranks: u32) -> Result<PreparedRun<FindWriter>, CommandError> {
    if let Some(dir) = &args.resume {
        // As it was left: the last run may be published and not listed, and then only the rest of the search is
        // missing, which is the report and the removal of files.
        let left = FindDir::at(dir).read().map_err(CommandError::usage)?;
        let can_resume = left.can_resume();
        let writer = FindWriter::resume(dir).map_err(CommandError::usage)?;
        let allowed = args.how.allow_commands;
        let config = LoadTestConfig::resume(&writer, can_resume, ranks, None, allowed)?;
        return Ok(PreparedRun::new(config, move || Ok(writer)));
    }
    let required = "clap requires it without --resume";
    let (name, max) = (
        args.workload.as_deref().expect(required),
        args.max_load.expect(required),
    );
    let rules = rules(args, max)?;
    let config = LoadTestConfig::new(name, &args.how, &args.criteria, max)?;
    let root = args.root.results.clone();
    let shared = LoadTestArgs {
        how: &args.how,
        output: &args.manner,
        events: &args.events.event,
        root: &root,
        ranks,
    };
    let parts = (
        SearchState::new(rules),
        SearchRuns::default(),
        SearchSettings {},
    );
    let started = SystemTime::now();
    let search = config.document(&shared, parts, started)?;
    Ok(PreparedRun::new(config, move || {
        FindWriter::create(&root, search, started)
    }))
}

/// The rules by which the loads are selected.
fn rules(args: &FindArgs, max: u64) -> Result<Search, CommandError> {
    let start = args
        .start_load
        .unwrap_or((max / DEFAULT_START_DIVISOR).max(1));
    let search = Search::new(start, max).map_err(|_| {
        CommandError::usage(format!(
            "--start-load {start} is above --max-load {max}: a search goes from the first to the highest load"
        ))
    })?;
    Ok(Search {
        resolution: args.resolution,
        confirm_runs: args.confirm_runs,
        max_runs: args.max_runs,
        ..search
    })
}

/// The first line: what is looked for, and how long each run takes.
pub(super) fn headline(search: &LoadSearch, config: &LoadTestConfig, ranks: u32) -> String {
    let length = |s: f64| show_duration(Duration::try_from_secs_f64(s).unwrap_or_default());
    let clock = match config.clock {
        ClockKind::Virtual => " of virtual time",
        ClockKind::Real => "",
    };
    let scaled = match search.comparable {
        true => "",
        false => " (scaled: not comparable)",
    };
    let ranks = ranks_of(ranks);
    let rules = &search.selection.search;
    let made = match search.runs.len() {
        0 => String::new(),
        n => format!(", {n} of them made before"),
    };
    format!(
        "{}{scaled}: the load line from {} up to {} {}, at most {} runs{made}, each {} of warm-up and {} \
         measured{clock}; {}, target {}{ranks}",
        search.workload,
        rules.start_load,
        rules.max_load,
        search.metric,
        rules.max_runs,
        length(search.warmup_s),
        length(search.measure_s),
        files_of(&config.plan, &config.target),
        config.target
    )
}
