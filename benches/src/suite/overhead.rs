//! The cost of an operation on a target that does nothing.

use crate::bench::Bench;
use crate::error::{BenchError, plausible};
use crate::load::{BenchConditions, run};
use crate::rounds::{Contender, Figures, interleave};
use crate::table::{Goal, Row, Unit};

const GOAL: Goal = Goal::AtMost(60.0);

/// Every operation chooses the next of 100 000 files.
const STAT: &str = "
define fileset name=files, path=/bench, entries=100000, dirwidth=1000, prealloc=100
define process name=p { thread name=t { flowop statfile name=op, filesetname=files } }
run 1
";

/// The file is opened once, and is so large that a sequential reader does not reach the end in a run.
const READ: &str = "
define file name=file, path=/bench, size=1024t, prealloc
define process name=p { thread name=t, memsize=4k {
  flowop read name=op, filename=file, iosize=4k } }
run 1
";

pub(crate) fn measure(bench: &Bench) -> Result<Vec<Row>, BenchError> {
    let dir = bench.dir("overhead")?;
    let (how, dir) = (BenchConditions::new("null", bench.time(400)), &dir);
    let how = &how;
    let contender = |text: &'static str, bytes: u64| -> Contender<'_> {
        Box::new(move || {
            let load = run(text, dir, how)?;
            let row = load.row("op");
            plausible("overhead", row.bytes == u128::from(row.ops * bytes), || {
                format!("{} operations moved {} bytes", row.ops, row.bytes)
            })?;
            Ok(load.ns_per_op())
        })
    };
    let figures = interleave(
        bench.rounds(),
        vec![contender(STAT, 0), contender(READ, 4096)],
    )?;
    let names = [
        "statfile of 100 k files, null target: time per operation, all included",
        "4 KiB reads of one file, null target: time per operation, all included",
    ];
    let row = |(name, f): (_, &Figures)| Row::median(name, Unit::Nanoseconds, f, GOAL);
    Ok(names.into_iter().zip(&figures).map(row).collect())
}
