//! Figures of a pattern's stages, as rows of one table.

use plimsoll_results::{OperationFigures, Run, Stage};

/// Most stages whose rows are shown one by one.
const MAX_STAGES: usize = 12;

/// A row for each stage and kind of operation that it did, with rates over the time that the
/// longest rank took. Empty for a run without stages, or with more than anybody reads.
pub(crate) fn operations(run: &Run) -> Vec<OperationFigures> {
    let stages = if_few(run);
    let rows = stages.map(|(name, stage)| of_stage(&name, stage).collect::<Vec<_>>());
    rows.flatten().collect()
}

/// The stages by their names, none if there are more than anybody reads.
pub(crate) fn if_few(run: &Run) -> impl Iterator<Item = (String, &Stage)> {
    let few = run.stages.len() <= MAX_STAGES;
    named(run).filter(move |_| few)
}

/// The stages of a run, with a number behind names that several have.
pub fn named(run: &Run) -> impl Iterator<Item = (String, &Stage)> {
    run.stages.iter().enumerate().map(|(at, stage)| {
        let same = |stages: &[Stage]| stages.iter().filter(|o| o.name == stage.name).count();
        let name = match same(&run.stages) {
            1 => stage.name.clone(),
            _ => format!("{} {}", stage.name, same(&run.stages[..at]) + 1),
        };
        (name, stage)
    })
}

fn of_stage<'a>(
    name: &'a str,
    stage: &'a Stage,
) -> impl Iterator<Item = OperationFigures> + use<'a> {
    let longest = stage.ranks.iter().map(|r| r.time_ns).max().unwrap_or(0);
    let per_s = move |n: u64| match longest {
        0 => 0.0,
        ns => n as f64 * 1e9 / ns as f64,
    };
    let operations = stage.window.operations.iter();
    let done = operations.filter(|o| o.ops + o.errors + o.in_flight > 0);
    done.map(move |o| OperationFigures {
        name: format!("{name}: {}", o.name),
        ops_per_s: per_s(o.ops),
        bytes_per_s: per_s(o.bytes),
        ..o.clone()
    })
}
