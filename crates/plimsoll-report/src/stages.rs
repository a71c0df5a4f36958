//! Figures of a pattern's stages, as rows of one table.

use plimsoll_results::{OperationFigures, Run, Stage};

/// Most stages whose rows are shown one by one.
const MOST_STAGES: usize = 12;

/// A row for each stage and kind of operation that it did, with rates over the time that the
/// longest rank took. Empty for a run without stages, or with more than anybody reads.
pub(crate) fn operations(run: &Run) -> Vec<OperationFigures> {
    if run.stages.len() > MOST_STAGES {
        return vec![];
    }
    let repeated = |s: &Stage| run.stages.iter().filter(|o| o.name == s.name).count() > 1;
    let mut rows = Vec::new();
    for (at, stage) in run.stages.iter().enumerate() {
        let before = &run.stages[..at];
        let name = match repeated(stage) {
            true => {
                let number = before.iter().filter(|o| o.name == stage.name).count() + 1;
                format!("{} {number}", stage.name)
            }
            false => stage.name.clone(),
        };
        rows.extend(of_stage(&name, stage));
    }
    rows
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
    let done = operations.filter(|o| o.ops + o.errors > 0);
    done.map(move |o| OperationFigures {
        name: format!("{name}: {}", o.name),
        ops_per_s: per_s(o.ops),
        bytes_per_s: per_s(o.bytes),
        ..o.clone()
    })
}
