//! Load curves: loads of a mix that are measured one after the other on one data set, in several attempts. Every
//! attempt except the last is disturbed, and the next attempt resumes the curve.

mod check;
mod execution;
mod files;
mod host;

pub use check::check_curve;
pub use execution::{Attempt, AttemptEnd, CurveExecution, run_curve};
pub use host::MeasuredPoint;

use crate::files::FilesSpec;
use crate::scenario::{Disturbance, DisturbanceKind, MAX_DRIFT_PPM, Scenario, draw_disk};
use crate::shrink::smallest;
use crate::workload::{Load, MixSpec, WorkloadSpec};
use plimsoll_plan::{OnError, Plan};
use plimsoll_runtime::SimulatedDisk;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Parameters of a simulated load curve: mix, loads, ranks, and the disturbances of each attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CurveScenario {
    /// The mix at the highest load, on files without faults, with the ranks and their network. The scenario has no
    /// disturbances.
    pub scenario: Scenario,
    /// Loads of the curve in business metrics, in increasing order; the last is the load of the mix in `scenario`.
    pub loads: Vec<u64>,
    /// Whether the work directory is the curve's own temporary directory, which is removed whenever the curve ends.
    pub temporary: bool,
    /// Disturbances of each attempt except the last attempt, which is not disturbed.
    pub attempts: Vec<AttemptScenario>,
}

/// Disturbances of one attempt at a curve: events of the processes, and faults of the disk for results.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AttemptScenario {
    /// Interrupts, kills and other events that hit the attempt's processes.
    pub disturbances: Vec<Disturbance>,
    /// Disk on which rank 0 writes results, with latency and faults.
    pub disk: SimulatedDisk,
}

/// Time in microseconds that a load takes in addition to its window: files are created, and ranks agree.
const PREPARATION_US: u64 = 150_000;

impl CurveScenario {
    /// Draws from `seed` the loads and the mix of a curve, the ranks, and up to three disturbed attempts.
    #[must_use]
    pub fn draw(seed: u64) -> Self {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut load = 0;
        let loads: Vec<u64> = (0..rng.random_range(2..5))
            .map(|_| {
                load += rng.random_range(1..3);
                load
            })
            .collect();
        let mix = MixSpec {
            load,
            ..MixSpec::draw(&mut rng)
        };
        // Each rank has a worker at every load.
        let max_ranks = (loads[0] * mix.processes).min(8) as u32;
        let ranks = match max_ranks > 1 && rng.random_bool(0.7) {
            true => rng.random_range(2..=max_ranks),
            false => 1,
        };
        let far = rng.random_bool(0.3);
        let mut curve = Self {
            scenario: Scenario {
                seed,
                workload: WorkloadSpec {
                    load: Load::Mix(mix),
                    warmup_ms: [0, 50][rng.random_range(0..2)],
                    time_ms: rng.random_range(100..600),
                },
                ranks,
                fan_out: rng.random_range(1..=3),
                lanes: rng.random_range(1..=3),
                delay_us: match far {
                    true => (rng.random_range(1_000..20_000), rng.random_range(0..10_000)),
                    false => (rng.random_range(1..100), rng.random_range(0..100)),
                },
                latency_us: 0,
                files: Some(FilesSpec::calm(rng.random_range(20..1000))),
                stall_ms: None,
                interval_ms: [50, 100, 300][rng.random_range(0..3)],
                results: None,
                drift_ppm: 0,
                concurrent_at_us: None,
                disturbances: vec![],
            },
            loads,
            temporary: rng.random_bool(0.4),
            attempts: vec![],
        };
        for _ in 0..rng.random_range(0..4) {
            let disturbances = 0..rng.random_range(1..3);
            let drawn = disturbances.map(|_| curve.draw_disturbance(&mut rng));
            let disturbances = drawn.collect();
            let disk = SimulatedDisk::default();
            curve.attempts.push(AttemptScenario { disturbances, disk });
        }
        if rng.random_bool(0.2) {
            curve.scenario.drift_ppm = rng.random_range(1..=MAX_DRIFT_PPM);
        }
        // In half of the curves, the disk for results may be slow or fail in each attempt.
        if rng.random_bool(0.5) {
            for attempt in &mut curve.attempts {
                attempt.disk = draw_disk(&mut rng);
                // In half of the attempts with a drawn disk, nothing but the disk disturbs the processes.
                if rng.random_bool(0.5) {
                    attempt.disturbances.clear();
                }
            }
        }
        curve
    }

    fn draw_disturbance(&self, rng: &mut Xoshiro256PlusPlus) -> Disturbance {
        let rank = rng.random_range(0..self.scenario.ranks);
        let kind = match rng.random_range(0..8) {
            0 | 1 => DisturbanceKind::Kill { rank: 0 },
            2 | 3 => DisturbanceKind::Kill { rank },
            4 | 5 => DisturbanceKind::Interrupt { rank },
            6 if rank > 0 => DisturbanceKind::Cut { rank },
            _ => DisturbanceKind::Stop {
                rank,
                for_ms: rng.random_range(1..2_000),
            },
        };
        let at_us = rng.random_range(0..self.planned_us());
        Disturbance { at_us, kind }
    }

    /// Approximate duration of all loads, in microseconds.
    #[must_use]
    pub fn planned_us(&self) -> u64 {
        self.loads.len() as u64 * (self.scenario.planned_us() + PREPARATION_US)
    }

    /// The Plan of the highest load, whose files are laid out for all loads.
    pub(crate) fn plan(&self) -> Plan {
        let scenario = &self.scenario;
        let most = self.loads.last().copied();
        let mut plan = scenario.workload.plan_for(scenario.seed, most);
        plan.options.on_error = OnError::Count;
        plan.work_dir.temporary = self.temporary;
        plan
    }

    /// The scenario of the processes of an attempt.
    pub(crate) fn of_attempt(&self, number: usize) -> Scenario {
        let attempt = self.attempts.get(number).cloned().unwrap_or_default();
        Scenario {
            results: Some(attempt.disk),
            disturbances: attempt.disturbances,
            ..self.scenario.clone()
        }
    }

    /// The scenario of the run at a load in an attempt.
    pub(crate) fn at(&self, load: u64, attempt: usize) -> Scenario {
        let mut scenario = self.of_attempt(attempt);
        if let Load::Mix(mix) = &mut scenario.workload.load {
            mix.load = load;
        }
        scenario
    }

    /// The smallest scenario for which `fails` still holds.
    #[must_use]
    pub fn shrink(&self, fails: impl FnMut(&Self) -> bool) -> Self {
        smallest(self, Self::simpler, fails)
    }

    /// Scenarios that are simpler in one respect.
    fn simpler(&self) -> Vec<Self> {
        let mut all = Vec::new();
        let mut add = |change: &dyn Fn(&mut Self)| {
            let mut curve = self.clone();
            change(&mut curve);
            if curve != *self {
                all.push(curve);
            }
        };
        for attempt in 0..self.attempts.len() {
            add(&|c| {
                c.attempts.remove(attempt);
            });
            add(&|c| c.attempts[attempt].disk = SimulatedDisk::default());
            for number in 0..self.attempts[attempt].disturbances.len() {
                add(&|c| {
                    c.attempts[attempt].disturbances.remove(number);
                });
            }
        }
        if self.attempts.is_empty() {
            add(&|c| c.scenario.ranks = 1);
        }
        // The lowest load has a worker for each rank, and the highest load is the load of the mix.
        for number in 1..self.loads.len() - 1 {
            add(&|c| {
                c.loads.remove(number);
            });
        }
        add(&|c| c.temporary = false);
        add(&|c| c.scenario.drift_ppm = 0);
        add(&|c| c.scenario.lanes = 1);
        add(&|c| c.scenario.workload.warmup_ms = 0);
        add(&|c| c.scenario.delay_us = (1, 0));
        all
    }
}
