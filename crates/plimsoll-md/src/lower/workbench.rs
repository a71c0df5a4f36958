//! MD-Workbench's pattern.

use super::{
    RowTable, by_set, countable, memory, parameter, row, samples, squeeze, stage, template,
};
use crate::options::{Options, Workbench};
use crate::run_info::Position;
use plimsoll_plan::{
    NamePiece, ObjectLoop, ObjectOp, ObjectStep, OnError, OpKind, Parameter, Pattern, RankShift,
    RootHandling, Rounds, Stage, StageProgress, StageWork, Stonewall,
};

/// Names of the phases, as they are printed.
pub(crate) const PRECREATE: &str = "precreate";
pub(crate) const BENCHMARK: &str = "benchmark";
pub(crate) const CLEANUP: &str = "cleanup";

/// Name of the iterations that are not measured.
const WARM_UP: &str = "warm-up";

/// Waiting factors of an iteration with adaptive waiting: none, then doubled six times.
pub(crate) const ADAPTIVE: [f64; 8] = [0.0, 0.0625, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0];

pub(super) fn pattern(
    options: &Options,
    w: &Workbench,
    ranks: u32,
    position: Option<&Position>,
    rows: &mut RowTable,
) -> Result<Pattern, String> {
    let position = match (w.start_item, position) {
        (Some(item), _) => Position::Common(item),
        (None, Some(position)) if w.reads_position() => position.clone(),
        _ => Position::Common(0),
    };
    let positions = match &position {
        Position::Common(_) => vec![],
        Position::PerRank(each) => each.clone(),
    };
    if !positions.is_empty() && positions.len() != ranks as usize {
        return Err(format!(
            "{} has the positions of {} ranks, but there are {ranks}: --processes, or the \
             launcher, has to start as many",
            w.run_info_file.display(),
            positions.len()
        ));
    }
    let greatest = positions.iter().copied().max();
    check_size(w, ranks, greatest.unwrap_or(position.of_rank_0()))?;
    let mut stages = Vec::new();
    if w.phases.precreate {
        stages.push(precreate(w, rows));
    }
    if w.phases.benchmark {
        for iteration in 0..w.warmup {
            let factor = if w.adaptive { 0.0 } else { w.waiting };
            stages.push(Stage {
                name: WARM_UP.into(),
                warm_up: true,
                ..benchmark(options, w, iteration, factor, rows)
            });
        }
        for iteration in 0..w.iterations {
            let factors: &[f64] = if w.adaptive { &ADAPTIVE } else { &[w.waiting] };
            for factor in factors {
                stages.push(benchmark(options, w, iteration, *factor, rows));
            }
        }
    }
    if w.phases.cleanup {
        stages.push(cleanup(options, w, rows));
    }
    squeeze(&mut stages, options, !w.phases.precreate);
    Ok(Pattern {
        root: options.place.root.clone(),
        root_is: if w.phases.precreate {
            RootHandling::New
        } else {
            RootHandling::Kept
        },
        leaves_objects: !w.phases.cleanup,
        set_name: template([NamePiece::Rank(1), super::text("_"), NamePiece::Set]),
        object_name: template([super::text("file-"), NamePiece::Object]),
        ranks,
        sets: w.sets,
        objects: w.precreate,
        object_size: w.object_size,
        position: position.of_rank_0(),
        positions,
        verify: options.verify,
        content: options.content,
        direct: options.direct,
        samples: samples(options),
        hold_memory: memory(options.hold_memory_mib),
        stages,
    })
}

/// Refuses numbers that leave the range of a counter.
fn check_size(w: &Workbench, ranks: u32, position: u64) -> Result<(), String> {
    let runs = u128::from(w.iterations)
        * if w.adaptive {
            ADAPTIVE.len() as u128
        } else {
            1
        };
    let runs = runs + u128::from(w.warmup);
    let per_set = u128::from(w.rounds) * runs + u128::from(w.precreate);
    countable(
        "the number of the last object",
        u128::from(position) + per_set,
    )?;
    let objects = per_set * u128::from(w.sets) * u128::from(ranks);
    countable(
        "the number of objects (-D · (-I · -R + -P) · processes)",
        objects,
    )?;
    let working_set = u128::from(w.sets) * u128::from(ranks) * u128::from(w.precreate);
    countable(
        "the size of the working set in bytes (-D · -P · -S · processes)",
        working_set.saturating_mul(u128::from(w.object_size)),
    )
}

/// What is to be known of a run after which the ranks' positions may differ.
pub(super) fn warning(w: &Workbench, ranks: u32) -> Option<&'static str> {
    let differ = ranks > 1 && w.stonewall.is_some() && !w.wear_out && !w.read_only;
    (differ && w.phases.benchmark && !w.phases.cleanup).then_some(
        "a stonewall without -W: each rank ends an iteration at a round of its own, so that ranks \
         differ in what they did; the run-info file keeps the position of each, of which \
         MD-Workbench itself reads only that of rank 0",
    )
}

fn step(op: ObjectOp, rows: &mut RowTable, owner: RankShift, offset: u64) -> ObjectStep {
    let (name, kind) = match op {
        ObjectOp::Create { .. } => (row::CREATE, OpKind::ObjectCreate),
        ObjectOp::Stat => (row::STAT, OpKind::Stat),
        ObjectOp::Read => (row::READ, OpKind::ObjectRead),
        ObjectOp::Delete => (row::DELETE, OpKind::Delete),
    };
    ObjectStep {
        row: rows.id(name, kind),
        op,
        owner,
        offset,
        // An object that is not there is neither read nor removed, and none is added for it.
        gates: op == ObjectOp::Stat,
    }
}

fn precreate(w: &Workbench, rows: &mut RowTable) -> Stage {
    let work = ObjectLoop {
        make_sets: Some(rows.id(row::MAKE_SET, OpKind::MakeDir)),
        rounds: Rounds::Count(w.precreate),
        set_by_set: false,
        steps: vec![step(
            ObjectOp::Create { sync: false },
            rows,
            RankShift::default(),
            0,
        )],
        advances: StageProgress::Nothing,
        remove_sets: None,
    };
    let on_error = if w.ignore_precreate_errors {
        OnError::Count
    } else {
        OnError::Stop
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
    // A reader's objects are those of the rank that lies the distance before it.
    let (read_from, write_to) = (by_set(-options.offset), by_set(options.offset));
    let mut steps = vec![
        step(ObjectOp::Stat, rows, read_from, 0),
        step(ObjectOp::Read, rows, read_from, 0),
    ];
    if !w.read_only {
        steps.push(step(ObjectOp::Delete, rows, read_from, 0));
        let make = ObjectOp::Create { sync: false };
        steps.push(step(make, rows, write_to, w.precreate));
    }
    let work = ObjectLoop {
        make_sets: None,
        rounds: Rounds::Count(w.rounds),
        set_by_set: false,
        steps,
        advances: if w.read_only {
            StageProgress::Nothing
        } else {
            StageProgress::Position
        },
        remove_sets: None,
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
    let work = ObjectLoop {
        make_sets: None,
        rounds: Rounds::Left {
            window: w.precreate,
            deleted_by: by_set(options.offset),
            made_by: by_set(-options.offset),
        },
        set_by_set: true,
        steps: vec![step(ObjectOp::Delete, rows, RankShift::default(), 0)],
        advances: StageProgress::Nothing,
        remove_sets: Some(rows.id(row::REMOVE_SET, OpKind::RemoveDir)),
    };
    stage(CLEANUP, StageWork::Objects(work), OnError::Count)
}

pub(super) fn parameters(options: &Options, w: &Workbench) -> Vec<Parameter> {
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
        all.push(parameter(
            "adaptive-waiting",
            "on",
            "off",
            "each iteration with eight waiting times",
        ));
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
