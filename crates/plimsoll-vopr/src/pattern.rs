//! Patterns of scenarios: MD-Workbench's, mdtest's and IOR's, and the rules for their stages.

use crate::execution::Execution;
use crate::scenario::Scenario;
use crate::violation::{Violation, must};
use plimsoll_measure::{OpTotals, Outcome, StageOutcome};
use plimsoll_plan::Plan;
use plimsoll_workload::md::{Arguments, Options, PatternName};
use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::BTreeMap;
use std::time::Duration;

/// The root directory of a pattern, in the work directory of scenarios.
pub(crate) const ROOT: &str = "out";

/// Parameters of MD-Workbench's, mdtest's or IOR's pattern; each pattern uses only a part of the parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PatternSpec {
    /// Name of the pattern: MD-Workbench, or mdtest or IOR, easy or hard.
    pub name: PatternName,
    /// Number of ranks that execute the pattern, each a process.
    pub ranks: u32,
    /// Number of data sets of each rank (MD-Workbench).
    pub sets: u32,
    /// Number of objects of each data set (MD-Workbench), or of files (mdtest) or transfers (IOR) of each rank.
    pub objects: u64,
    /// Number of rounds of each iteration (MD-Workbench).
    pub rounds: u64,
    /// Number of iterations of the benchmark stage (MD-Workbench).
    pub iterations: u32,
    /// Distance in ranks from the writer of an object to its reader; may be negative.
    pub offset: i64,
    /// Time limit (stonewall) in milliseconds of the stages that support a stonewall; `None` without a time limit.
    pub stonewall_ms: Option<u64>,
    /// Whether the run verifies contents (`--verify`), if the pattern supports verification.
    pub verifies: bool,
}

impl PatternSpec {
    pub(crate) fn draw(rng: &mut Xoshiro256PlusPlus, ranks: u32, has_files: bool) -> Self {
        const NAMES: [PatternName; 6] = [
            // MD-Workbench is drawn twice as often as other patterns, because most parameters are MD-Workbench's.
            PatternName::MdWorkbench,
            PatternName::MdWorkbench,
            PatternName::MdtestEasy,
            PatternName::MdtestHard,
            PatternName::IorEasy,
            PatternName::IorHard,
        ];
        Self {
            name: NAMES[rng.random_range(0..NAMES.len())],
            ranks,
            sets: rng.random_range(1..4),
            objects: rng.random_range(1..21),
            rounds: rng.random_range(1..21),
            iterations: rng.random_range(1..3),
            offset: rng.random_range(-2..4),
            stonewall_ms: rng.random_bool(0.3).then(|| rng.random_range(1..2_000)),
            verifies: has_files && rng.random_bool(0.3),
        }
    }

    fn is_workbench(&self) -> bool {
        self.name == PatternName::MdWorkbench
    }

    /// Number of operations of one rank in all stages together, unless a stage ends early.
    pub(crate) fn ops_of_rank(&self) -> u64 {
        let rounds = self.rounds * u64::from(self.iterations);
        match self.is_workbench() {
            true => (2 * self.objects + 4 * rounds) * u64::from(self.sets),
            false => 4 * self.objects,
        }
    }

    /// Number of operations that a rank of MD-Workbench executes on precreated objects before the rank reads the first
    /// object that another rank creates in the same stage; `None` for mdtest and IOR, whose ranks read only objects of
    /// earlier stages.
    pub(crate) fn ops_ahead(&self) -> Option<u64> {
        let ops = 4 * self.objects * u64::from(self.sets);
        self.is_workbench().then_some(ops)
    }

    /// Plan of the pattern, whose files are below `dir`.
    ///
    /// # Panics
    /// If the pattern refuses the drawn options.
    pub(crate) fn plan(&self, dir: &str, seed: u64) -> Plan {
        let own = self.is_workbench().then_some(());
        let files = [PatternName::MdtestEasy, PatternName::MdtestHard].contains(&self.name);
        let transfers = [PatternName::IorEasy, PatternName::IorHard].contains(&self.name);
        let arguments = Arguments {
            pattern: self.name,
            offset: Some(self.offset),
            obj_per_proc: own.map(|()| self.rounds),
            precreate_per_set: own.map(|()| self.objects),
            data_sets: own.map(|()| self.sets),
            iterations: own.map(|()| self.iterations),
            files: files.then_some(self.objects),
            transfers: transfers.then_some(self.objects),
            transfer_size: (self.name == PatternName::IorEasy).then_some(64 << 10),
            verify_read: self.verifies
                && [PatternName::MdWorkbench, PatternName::MdtestHard].contains(&self.name),
            // IO500's patterns have a stonewall by default.
            stonewall_timer: Some(Duration::from_millis(self.stonewall_ms.unwrap_or(0))),
            stonewall_wear_out: self.is_workbench() && self.stonewall_ms.is_some(),
            dir: Some(dir.into()),
            root_dir: Some(ROOT.into()),
            seed,
            ..Arguments::default()
        };
        let options = Options::new(&arguments).unwrap_or_else(|e| panic!("{e}\n{self:?}"));
        plimsoll_workload::md::lower(&options, self.ranks, None)
            .unwrap_or_else(|e| panic!("{e}\n{self:?}"))
    }

    /// Expected operations of all ranks, by row name.
    fn expected(&self) -> BTreeMap<&'static str, u64> {
        let ranks = u64::from(self.ranks);
        let (objects, sets) = (self.objects * ranks, u64::from(self.sets) * ranks);
        match self.name {
            PatternName::MdWorkbench => {
                let precreated = self.objects * sets;
                let rounds = self.rounds * u64::from(self.iterations) * sets;
                BTreeMap::from([
                    ("make set", sets),
                    ("create", precreated + rounds),
                    ("stat", rounds),
                    ("read", rounds),
                    ("delete", precreated + rounds),
                    ("remove set", sets),
                ])
            }
            PatternName::MdtestEasy => {
                BTreeMap::from([("create", objects), ("stat", objects), ("delete", objects)])
            }
            PatternName::MdtestHard => BTreeMap::from([
                ("create", objects),
                ("stat", objects),
                ("read", objects),
                ("delete", objects),
            ]),
            PatternName::IorEasy | PatternName::IorHard => {
                BTreeMap::from([("write", objects), ("read", objects)])
            }
        }
    }
}

/// The stages execute the operations of the pattern, and the figures of ranks add up to the figures of stages.
pub(crate) fn check(
    scenario: &Scenario,
    spec: &PatternSpec,
    execution: &Execution,
    outcome: &Outcome,
) -> Result<(), Violation> {
    for (stage, window) in outcome.stages.iter().zip(&outcome.windows) {
        if !outcome.interrupted && outcome.failure.is_none() && outcome.hung_workers.is_empty() {
            check_ranks(execution, stage, &window.totals.rows)?;
        }
    }
    if !scenario.is_calm() {
        return Ok(());
    }
    // Operations on objects that do not exist yet fail, and then the counts are below the pattern's numbers.
    if spec.stonewall_ms.is_none() && scenario.has_all_objects() {
        let mut counted = BTreeMap::<&str, u64>::new();
        for window in &outcome.windows {
            let rows = execution.plan.operations.iter().zip(&window.totals.rows);
            for (operation, totals) in rows {
                *counted.entry(&operation.name).or_default() += totals.ops;
            }
        }
        for (name, ops) in spec.expected() {
            let counted = counted.get(name).copied();
            must!(
                "patterns execute every operation",
                counted == Some(ops),
                "{name}: {counted:?}, not {ops}"
            );
        }
    }
    for stage in &outcome.stages {
        let rounds = || stage.ranks.iter().map(|rank| rank.rounds);
        must!(
            "ranks do as many rounds as the fastest",
            rounds().min() == rounds().max() && stage.ranks.len() == spec.ranks as usize,
            "stage {}: {:?}",
            stage.stage,
            rounds().collect::<Vec<_>>()
        );
    }
    Ok(())
}

fn check_ranks(
    execution: &Execution,
    stage: &StageOutcome,
    rows: &[OpTotals],
) -> Result<(), Violation> {
    for ((row, totals), operation) in rows.iter().enumerate().zip(&execution.plan.operations) {
        let sum = |figure: fn(&plimsoll_measure::RankRow) -> u128| -> u128 {
            stage.ranks.iter().map(|rank| figure(&rank.rows[row])).sum()
        };
        let of_ranks = (
            sum(|r| r.ops.into()),
            sum(|r| r.bytes),
            sum(|r| r.errors.into()),
        );
        let of_stage = (totals.ops.into(), totals.bytes, totals.error_count().into());
        must!(
            "ranks add up to their stage",
            of_ranks == of_stage,
            "stage {}, {}: {of_ranks:?}, not {of_stage:?}",
            stage.stage,
            operation.name
        );
    }
    Ok(())
}
