//! MD-Workbench's pattern.

use super::{
    LoweredPattern, RowTable, by_set, countable, object_step, parameter, row, squeeze, stage,
    template,
};
use crate::md::options::{Options, Workbench};
use crate::md::run_info::Position;
use plimsoll_plan::{
    ObjectLoop, ObjectOp, ObjectOrder, ObjectStep, OnError, OpKind, Parameter, Pattern, RankShift,
    RootHandling, Rounds, Stage, StageProgress, StageWork, Stonewall, pattern_names,
};

/// Names of the phases in output lines.
pub(crate) const PRECREATE: &str = "precreate";
pub(crate) const BENCHMARK: &str = "benchmark";
pub(crate) const CLEANUP: &str = "cleanup";

/// Maximum number of iterations; each iteration is a stage of the Plan and of the results.
const MAX_ITERATIONS: u128 = 10_000;

/// Name of iterations that are not measured.
const WARM_UP: &str = "warm-up";

/// Waiting factors of an iteration with adaptive waiting: 0, and 0.0625 doubled up to six times.
pub(crate) const ADAPTIVE: [f64; 8] = [0.0, 0.0625, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0];

pub(super) fn lower(
    options: &Options,
    w: &Workbench,
    ranks: u32,
    position: Option<&Position>,
    rows: &mut RowTable,
) -> Result<LoweredPattern, String> {
    Ok(LoweredPattern {
        title: "each set a queue: the oldest objects are read and removed by one rank, new ones made by \
                another",
        notes: notes(w, ranks),
        pattern: pattern(options, w, ranks, position, rows)?,
        parameters: parameters(options, w),
    })
}

fn pattern(
    options: &Options,
    w: &Workbench,
    ranks: u32,
    position: Option<&Position>,
    rows: &mut RowTable,
) -> Result<Pattern, String> {
    let position = match (w.start_item, position) {
        (Some(item), _) => Position(vec![item]),
        (None, Some(position)) if w.reads_position() => position.clone(),
        _ => Position(vec![0]),
    };
    let first = position.of_rank_0();
    let positions = match position.0.as_slice() {
        [_] => vec![],
        _ => position.0,
    };
    if !positions.is_empty() && positions.len() != ranks as usize {
        return Err(format!(
            "{} has the positions of {} ranks, but there are {ranks}: start the same number \
             with --processes or the launcher",
            w.run_info_file.display(),
            positions.len()
        ));
    }
    let max = positions.iter().copied().max();
    check_size(w, ranks, max.unwrap_or(first))?;
    Ok(Pattern {
        root_is: match w.phases.precreate {
            true => RootHandling::New,
            false => RootHandling::Kept,
        },
        leaves_objects: !w.phases.cleanup,
        set_name: template(pattern_names::MD_WORKBENCH_SET),
        object_name: template(pattern_names::MD_WORKBENCH_OBJECT),
        sets: w.sets,
        objects: w.precreate,
        object_size: w.object_size,
        position: first,
        positions,
        ..super::pattern(options, ranks, stages(options, w, rows))
    })
}

fn stages(options: &Options, w: &Workbench, rows: &mut RowTable) -> Vec<Stage> {
    let mut stages = Vec::new();
    if w.phases.precreate {
        stages.push(precreate(w, rows));
    }
    if w.phases.benchmark {
        let factors: &[f64] = if w.adaptive { &ADAPTIVE } else { &[w.waiting] };
        for iteration in 0..w.warmup {
            stages.push(Stage {
                name: WARM_UP.into(),
                warm_up: true,
                ..benchmark(options, w, iteration, factors[0], rows)
            });
        }
        for iteration in 0..w.iterations {
            for factor in factors {
                stages.push(benchmark(options, w, iteration, *factor, rows));
            }
        }
    }
    if w.phases.cleanup {
        stages.push(cleanup(options, w, rows));
    }
    squeeze(&mut stages, options, !w.phases.precreate);
    stages
}

/// Refuses numbers of iterations, objects or bytes beyond their maximum.
fn check_size(w: &Workbench, ranks: u32, position: u64) -> Result<(), String> {
    let factors = if w.adaptive {
        ADAPTIVE.len() as u128
    } else {
        1
    };
    let runs = u128::from(w.iterations) * factors + u128::from(w.warmup);
    if runs > MAX_ITERATIONS {
        return Err(format!(
            "-R, -T and --warmup make {runs} iterations: each has results of its own, and a run at most \
             {MAX_ITERATIONS} of them"
        ));
    }
    let per_set = u128::from(w.rounds) * runs + u128::from(w.precreate);
    let last = u128::from(position) + per_set;
    countable("the number of the last object", last)?;
    let all_sets = u128::from(w.sets) * u128::from(ranks);
    let what = "the number of objects (-D · (-I · -R + -P) · processes)";
    countable(what, per_set * all_sets)?;
    let working_set = all_sets * u128::from(w.precreate);
    countable(
        "the size of the working set in bytes (-D · -P · -S · processes)",
        working_set.saturating_mul(u128::from(w.object_size)),
    )
}

fn notes(w: &Workbench, ranks: u32) -> Vec<&'static str> {
    let mut notes = Vec::new();
    if w.rounds > w.precreate && w.phases.benchmark {
        notes.push(
            "more objects are read from a set than are made in it before (-I above -P): those that \
             are made meanwhile may not be there yet",
        );
    }
    if w.precreate == 0 && w.rounds == 0 {
        notes.push("no object is made, read or removed (-P 0 and -I 0)");
    }
    let differ = ranks > 1 && w.stonewall.is_some() && !w.wear_out && !w.read_only;
    if differ && w.phases.benchmark && !w.phases.cleanup {
        notes.push(
            "a stonewall without -W: each rank ends an iteration at a round of its own, so that \
             ranks differ in what they did; the run-info file keeps the position of each, of which \
             MD-Workbench itself reads only that of rank 0",
        );
    }
    notes
}

fn precreate(w: &Workbench, rows: &mut RowTable) -> Stage {
    let create = object_step(ObjectOp::Create { sync: false }, rows, RankShift::default());
    let work = ObjectLoop {
        make_sets: Some(rows.id(row::MAKE_SET, OpKind::MakeDir)),
        ..ObjectLoop::new(Rounds::Count(w.precreate), vec![create])
    };
    let on_error = match w.ignore_precreate_errors {
        true => OnError::Count,
        false => OnError::Stop,
    };
    stage(PRECREATE, StageWork::Objects(work), on_error)
}

fn benchmark(
    options: &Options,
    w: &Workbench,
    iteration: u32,
    waiting_factor: f64,
    rows: &mut RowTable,
) -> Stage {
    // A rank reads, in each set, the objects of another rank at a distance that grows with the set's number. A failed
    // stat skips the other steps of the object, so a missing object is neither read nor removed, and no object is
    // created.
    let (read_from, write_to) = (by_set(-options.offset), by_set(options.offset));
    let stat = ObjectStep {
        gates: true,
        ..object_step(ObjectOp::Stat, rows, read_from)
    };
    let mut steps = vec![stat, object_step(ObjectOp::Read, rows, read_from)];
    if !w.read_only {
        steps.push(object_step(ObjectOp::Delete, rows, read_from));
        steps.push(ObjectStep {
            offset: w.precreate,
            ..object_step(ObjectOp::Create { sync: false }, rows, write_to)
        });
    }
    let work = ObjectLoop {
        advances: match w.read_only {
            true => StageProgress::Nothing,
            false => StageProgress::Position,
        },
        ..ObjectLoop::new(Rounds::Count(w.rounds), steps)
    };
    Stage {
        iteration,
        waiting_factor,
        stonewall: w.stonewall.map(|after| Stonewall {
            after,
            wear_out: w.wear_out,
        }),
        ..stage(BENCHMARK, StageWork::Objects(work), OnError::Count)
    }
}

fn cleanup(options: &Options, w: &Workbench, rows: &mut RowTable) -> Stage {
    let rounds = Rounds::Left {
        window: w.precreate,
        deleted_by: by_set(options.offset),
        made_by: by_set(-options.offset),
    };
    let delete = object_step(ObjectOp::Delete, rows, RankShift::default());
    let work = ObjectLoop {
        order: ObjectOrder::Sets,
        remove_sets: Some(rows.id(row::REMOVE_SET, OpKind::RemoveDir)),
        ..ObjectLoop::new(rounds, vec![delete])
    };
    stage(CLEANUP, StageWork::Objects(work), OnError::Count)
}

fn parameters(options: &Options, w: &Workbench) -> Vec<Parameter> {
    let mut all = vec![
        parameter("offset", options.offset, 1, "ranks from writer to reader"),
        parameter("obj-per-proc", w.rounds, 1000, "rounds of an iteration"),
        parameter("precreate-per-set", w.precreate, 3000, "objects of a set"),
        parameter("data-sets", w.sets, 10, "sets of a rank"),
        parameter("object-size", w.object_size, 3901, "bytes of an object"),
        parameter("iterations", w.iterations, 3, "runs of the benchmark phase"),
    ];
    if w.warmup > 0 {
        let meaning = "runs before those that are measured";
        all.push(parameter("warmup", w.warmup, 0, meaning));
    }
    if w.adaptive {
        let meaning = "each iteration with eight waiting times";
        all.push(parameter("adaptive-waiting", "on", "off", meaning));
    } else {
        let meaning = "waiting after an operation, in its own lengths";
        all.push(parameter("waiting-time", w.waiting, 0, meaning));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_factors_double() {
        let positive = &ADAPTIVE[1..];
        assert!(positive.windows(2).all(|w| w[1] == 2.0 * w[0]));
        assert_eq!((positive.len(), positive[0], positive[6]), (7, 0.0625, 4.0));
    }
}
