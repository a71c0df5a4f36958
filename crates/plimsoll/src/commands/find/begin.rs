//! What a search begins with: the Plan of the greatest load, and how the loads are chosen.

use crate::cli::{ClockArg, FindArgs};
use crate::commands::run;
use crate::exit::Stopped;
use crate::points::{self, Ground, files_of};
use plimsoll_plan::show_duration;
use plimsoll_points::{Ended, LoadLine, Search};
use plimsoll_results::{ClockKind, FIND_SCHEMA, FindWriter, LoadSearch, Program, Target};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// Without `--start`, a search begins at this part of the greatest load.
const PART_OF_MAX: u64 = 8;

/// A search before its first run.
pub(super) struct Ready {
    pub(super) ground: Ground,
    root: PathBuf,
    search: Box<LoadSearch>,
    started: SystemTime,
}

impl Ready {
    /// The results, with nothing measured yet.
    pub(super) fn open(self) -> Result<FindWriter, Stopped> {
        FindWriter::create(&self.root, *self.search, self.started).map_err(|e| {
            Stopped::usage(format!(
                "{e}; --results chooses another place for the results"
            ))
        })
    }
}

/// Reads what is asked for; rank 0 calls this.
pub(super) fn ready(args: &FindArgs, ranks: u32) -> Result<Ready, Stopped> {
    let rules = rules(args)?;
    let plan = points::plan(&args.workload, &args.how, &args.criteria, args.max)?;
    let ground = Ground {
        target: args.how.target.clone(),
        is_virtual: args.how.clock == ClockArg::Virtual,
        lanes: args.how.lanes.map(u64::from),
        interval: args.how.interval,
        plan,
    };
    let settings = ground.settings();
    run::refuse_results_among_files(&args.results, &ground.plan, &settings)?;
    let look = plimsoll_engine::preflight(&ground.plan, &settings).map_err(Stopped::usage)?;
    if !look.refusals.is_empty() {
        return Err(Stopped::usage(look.refusals.join("\n")));
    }
    let started = SystemTime::now();
    Ok(Ready {
        search: Box::new(begun(&ground, rules, look.target, ranks, started)),
        root: args.results.clone(),
        started,
        ground,
    })
}

/// How the loads are chosen.
fn rules(args: &FindArgs) -> Result<Search, Stopped> {
    let start = args.start.unwrap_or((args.max / PART_OF_MAX).max(1));
    let search = Search::new(start, args.max).map_err(|_| {
        Stopped::usage(format!(
            "--start {start} is above --max {}: a search goes from the first to the greatest load",
            args.max
        ))
    })?;
    Ok(Search {
        resolution: args.resolution,
        confirm: args.confirm,
        most_runs: args.runs,
        ..search
    })
}

fn begun(
    ground: &Ground,
    search: Search,
    target: String,
    ranks: u32,
    started: SystemTime,
) -> LoadSearch {
    let plan = &ground.plan;
    let metric = plan.metric.as_ref();
    let (warmup, time) = points::times(plan);
    let stamp = jiff::Timestamp::try_from(started).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    LoadSearch {
        schema: FIND_SCHEMA,
        workload: plan.name.clone(),
        metric: metric.map(|m| m.name.clone()).unwrap_or_default(),
        scale: metric.map_or(1.0, |m| m.scale),
        comparable: !metric.is_some_and(|m| m.is_scaled()),
        seed: plan.seed,
        started: stamp.to_string(),
        search,
        line: LoadLine {
            carried: None,
            not_carried: None,
            ended: Ended::Interrupted,
        },
        failure: None,
        warmup_s: warmup.as_secs_f64(),
        time_s: time.as_secs_f64(),
        criteria: metric.map(|m| m.criteria.clone()).unwrap_or_default(),
        runs: vec![],
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
        ranks,
        notes: plan.notes.clone(),
        environment: run::environment(plan, &ground.settings()),
        plan: plan.clone(),
    }
}

/// The first line: what is looked for, and how long each run takes.
pub(super) fn headline(search: &LoadSearch, ground: &Ground, ranks: u32) -> String {
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
    format!(
        "{}{scaled}: the load line from {} up to {} {}, at most {} runs, each {} of warm-up and {} \
         measured{clock}; {}, target {}{ranks}",
        search.workload,
        search.search.start,
        search.search.max,
        search.metric,
        search.search.most_runs,
        length(search.warmup_s),
        length(search.time_s),
        files_of(ground),
        ground.target
    )
}
