//! Command lines, and results of ranks that never ran.

use plimsoll_measure::{OpTotals, RankRow, RankStage};
use plimsoll_plan::{Pattern, Plan};
use plimsoll_workload::md::{Options, Position, lower};

/// The options of a command line; the error is the reason for a refusal.
pub fn options(line: &str) -> Result<Options, String> {
    Options::new(&crate::arguments(line)?)
}

#[track_caller]
pub fn plan(line: &str, ranks: u32) -> Plan {
    let options = options(line).unwrap();
    let plan = lower(&options, ranks, Some(&Position(vec![0]))).unwrap();
    plan.check().unwrap();
    plan
}

pub fn pattern(plan: &Plan) -> &Pattern {
    plan.groups[0].program.pattern().unwrap()
}

/// Results of one kind of operation on one rank.
pub struct Did {
    pub row: &'static str,
    pub times_ns: Vec<u64>,
    pub bytes: u64,
    pub errors: u64,
}

/// Results of a stage, as the engine reports them, from the time in nanoseconds and the operations of each rank.
pub fn stage(plan: &Plan, ranks: Vec<(u64, Vec<Did>)>) -> (Vec<RankStage>, Vec<OpTotals>) {
    let rows = plan.operations.len();
    let mut merged = vec![OpTotals::default(); rows];
    let mut out = Vec::new();
    let slowest = ranks.iter().map(|(t, _)| *t).max().unwrap_or(0);
    for (rank, (time_ns, did)) in (0..).zip(ranks) {
        let mut own = vec![OpTotals::default(); rows];
        for d in did {
            let at = plan
                .operations
                .iter()
                .position(|o| o.name == d.row)
                .unwrap();
            let totals = &mut own[at];
            totals.ops = d.times_ns.len() as u64;
            totals.bytes = d.bytes.into();
            d.times_ns.iter().for_each(|t| totals.service.record(*t));
            if d.errors > 0 {
                totals.errors.insert("ENOENT".into(), d.errors);
            }
            merged[at].add(totals);
        }
        out.push(RankStage {
            rank,
            time_ns,
            time_with_barrier_ns: slowest,
            rounds: 10,
            matches: None,
            stonewall_rounds: None,
            stonewall_ns: None,
            rows: own.iter().map(RankRow::from).collect(),
        });
    }
    (out, merged)
}
