//! Figures of a pattern's stages, as rows of one table.

use plimsoll_results::{OperationFigures, Run, Stage};

/// Maximum number of stages that are shown individually.
const MAX_STAGES: usize = 12;

/// A row for each stage and kind of operation in the stage, with rates over the longest time of a rank. Empty for a run
/// without stages or with more than [`MAX_STAGES`].
pub(crate) fn operations(run: &Run) -> Vec<OperationFigures> {
    let mut rows = Vec::new();
    for (name, stage) in if_few(run) {
        rows.extend(over_longest_rank(stage).map(|o| OperationFigures {
            name: format!("{name}: {}", o.name),
            ..o
        }));
    }
    rows
}

/// The stages with their names; empty if there are more than [`MAX_STAGES`].
pub(crate) fn if_few(run: &Run) -> impl Iterator<Item = (String, &Stage)> {
    let few = run.stages.len() <= MAX_STAGES;
    named(run).filter(move |_| few)
}

/// The stages of a run with their names; a number follows a name that several stages have.
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

/// Longest time of a rank in a stage, in nanoseconds; 0 without ranks.
#[must_use]
pub fn longest_ns(stage: &Stage) -> u64 {
    stage.ranks.iter().map(|r| r.time_ns).max().unwrap_or(0)
}

/// The operations that occurred in a stage, with rates over the longest time of a rank.
pub fn over_longest_rank(stage: &Stage) -> impl Iterator<Item = OperationFigures> {
    let longest = longest_ns(stage);
    let per_s = move |n: f64| match longest {
        0 => 0.0,
        ns => n * 1e9 / ns as f64,
    };
    let operations = stage.window.operations.iter();
    let occurred = operations.filter(|o| o.ops + o.errors + o.in_flight > 0);
    occurred.map(move |o| OperationFigures {
        ops_per_s: per_s(o.ops as f64),
        bytes_per_s: per_s(o.bytes as f64),
        ..o.clone()
    })
}
