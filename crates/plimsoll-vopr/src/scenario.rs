//! Scenarios: the parameters of a simulated run, drawn from a seed.

use crate::files::FilesSpec;
use crate::pattern::PatternSpec;
use crate::workload::{Load, WorkloadSpec};
use plimsoll_runtime::{DiskFault, SimulatedDisk};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::time::Duration;

/// Event from outside that hits a simulated process, such as a signal or a cut connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Disturbance {
    /// Time in microseconds since the start of the processes.
    pub at_us: u64,
    /// Signal, cut connection or clock jump, with the rank that the event hits.
    pub kind: DisturbanceKind,
}

/// Kinds of [`Disturbance`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DisturbanceKind {
    /// `SIGINT` to one rank, as by Ctrl-C.
    Interrupt {
        /// Rank that receives `SIGINT`.
        rank: u32,
    },
    /// `SIGKILL` to one rank, whose process ends at once.
    Kill {
        /// Rank that receives `SIGKILL`.
        rank: u32,
    },
    /// `SIGSTOP` to one rank, followed by `SIGCONT`.
    Stop {
        /// Rank that receives `SIGSTOP` and later `SIGCONT`.
        rank: u32,
        /// Time from `SIGSTOP` to `SIGCONT`, in milliseconds.
        for_ms: u64,
    },
    /// Permanent cut of the connection between a rank and the rank's parent in the tree of ranks.
    Cut {
        /// Rank at the lower end of the cut connection, from 1.
        rank: u32,
    },
    /// Jump of the clock (the time of day) of a rank's machine, forward or back.
    ClockJump {
        /// Rank on whose machine the clock jumps.
        rank: u32,
        /// Size of the clock's jump in seconds; negative for a jump back.
        seconds: i64,
    },
}

/// Time after the planned end at which a run on a silent target is interrupted, in microseconds.
const SILENCE_LIMIT_US: u64 = 20_000_000;

/// Time after the start of the processes in which a run is mostly being prepared, in microseconds.
const PREPARATION_US: u64 = 100_000;

/// Kinds of disturbance among which [`Scenario::draw`] chooses.
#[derive(Debug, Clone, Copy)]
enum DrawnKind {
    Interrupt,
    /// Kills any rank.
    Kill,
    /// Kills a rank other than 0; the other ranks continue.
    KillBelow,
    Stop,
    Cut,
    ClockJump,
}

impl DrawnKind {
    /// A single rank has no connections, and no other rank continues after its end.
    const OF_ONE_RANK: [Self; 3] = [Self::Interrupt, Self::Stop, Self::ClockJump];
    const OF_SEVERAL_RANKS: [Self; 6] = [
        Self::Interrupt,
        Self::Kill,
        Self::KillBelow,
        Self::Stop,
        Self::Cut,
        Self::ClockJump,
    ];
}

/// Stream constant: separates the start times of further runs from the other random choices of a seed.
const AGAIN: u64 = 0x0061_6761_696e;

/// Stream constant: separates the random choices of [`Scenario::draw_claims`] from the choices of [`Scenario::draw`].
const CLAIMS: u64 = 0x636c_6169_6d73;

/// Maximum drift of a synchronised clock: Linux's limit for slewing (adjtimex(2)).
pub(crate) const MAX_DRIFT_PPM: i64 = 500;

/// Calls to the disk before a run begins, and approximate total of most runs.
const DISK_CALLS: [u64; 2] = [22, 50];

/// Draws the disk on which rank 0 writes results: 30 % of the disks have a latency, half of the disks fail at a random
/// call.
pub(crate) fn draw_disk(rng: &mut Xoshiro256PlusPlus) -> SimulatedDisk {
    let latency_us = match rng.random_bool(0.3) {
        true => [100, 5_000, 60_000][rng.random_range(0..3)],
        false => 0,
    };
    let fault = rng.random_bool(0.5).then(|| {
        let call = match rng.random_bool(0.3) {
            true => rng.random_range(0..DISK_CALLS[0]),
            false => rng.random_range(DISK_CALLS[0]..DISK_CALLS[1]),
        };
        let faults = [
            DiskFault::FullFrom,
            DiskFault::BrokenAt,
            DiskFault::BrokenFrom,
        ];
        faults[rng.random_range(0..faults.len())](call)
    });
    SimulatedDisk {
        latency: Duration::from_micros(latency_us),
        fault,
    }
}

/// Draws the start times of further runs, in microseconds: one run in half of the cases, several runs that may compete
/// for the directory in the other half.
fn draw_again(rng: &mut Xoshiro256PlusPlus) -> Vec<u64> {
    let count = [1, 1, 2, 3][rng.random_range(0..4)];
    let end_us = [1, 200, 3_000, 100_000][rng.random_range(0..4)];
    (0..count).map(|_| rng.random_range(0..end_us)).collect()
}

/// A workload, its ranks, and their disturbances.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scenario {
    /// Seed of all random choices.
    pub seed: u64,
    /// The workload.
    pub workload: WorkloadSpec,
    /// Number of ranks.
    pub ranks: u32,
    /// Maximum number of children of a rank in the tree.
    pub fan_out: u32,
    /// Lanes of each rank.
    pub lanes: usize,
    /// Minimum delay of a frame, and maximum additional delay, in microseconds.
    pub delay_us: (u64, u64),
    /// Latency of the target in microseconds.
    pub latency_us: u64,
    /// The files of the target; `None` for a target without files.
    pub files: Option<FilesSpec>,
    /// Stall of a target without files: length, and start in each rank's run, in milliseconds.
    pub stall_ms: Option<(u64, u64)>,
    /// Length of the intervals in milliseconds.
    pub interval_ms: u64,
    /// The disk of the results; `None` for a run without results.
    pub results: Option<SimulatedDisk>,
    /// Clock drift in parts per million: clocks of even ranks run fast, clocks of odd ranks slow.
    pub drift_ppm: i64,
    /// Start time of another run in the same directory, in microseconds since the start of the processes.
    pub concurrent_at_us: Option<u64>,
    /// Disturbances, in any order.
    pub disturbances: Vec<Disturbance>,
}

impl Scenario {
    /// The scenario of a seed. The features of the scenario are drawn first (swarm testing: Groce et al., ISSTA 2012),
    /// so that some seeds have many faults of one kind and none of another.
    #[must_use]
    pub fn draw(seed: u64) -> Self {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let many_ranks = rng.random_bool(0.7);
        let far = rng.random_bool(0.3);
        let stalls = rng.random_bool(0.2);
        let disturbed = rng.random_bool(0.7);
        let workload = WorkloadSpec::draw(&mut rng);
        let ranks = match many_ranks {
            true => rng
                .random_range(2..=16u32)
                .min(workload.workers() as u32)
                .max(1),
            false => 1,
        };
        // Fast targets are included: on slow targets most mixes fall behind their schedule.
        let slowest_us = [500, 2_000, 10_000][rng.random_range(0..3)];
        let mut scenario = Self {
            seed,
            ranks,
            fan_out: rng.random_range(1..=8),
            lanes: rng.random_range(1..=3),
            delay_us: match far {
                true => (rng.random_range(1_000..60_000), rng.random_range(0..20_000)),
                false => (rng.random_range(1..100), rng.random_range(0..100)),
            },
            latency_us: rng.random_range(50..slowest_us),
            files: None,
            stall_ms: stalls.then(|| (rng.random_range(10..1_500), rng.random_range(0..2_000))),
            interval_ms: [50, 100, 300, 1000][rng.random_range(0..4)],
            workload,
            results: None,
            drift_ppm: 0,
            concurrent_at_us: None,
            disturbances: vec![],
        };
        if let Some((length, _)) = scenario.stall_ms.as_mut().filter(|(ms, _)| *ms >= 500) {
            // Most drawn stalls then exceed the stall limit, in a window long enough to contain the stall.
            *length += 1000;
            scenario.workload.time_ms += 2 * *length;
        }
        if let Load::Threads(threads) = &mut scenario.workload.load {
            // A workload that creates and deletes files divides the files among the ranks, and the engine refuses a
            // rank without files.
            threads.files = threads.files.max(scenario.ranks.into());
            // The engine refuses a run if `--ops` is less than the number of ranks.
            threads.ops = threads.ops.map(|ops| ops.max(scenario.ranks.into()));
            // Workers wait for each other's files more often on one lane of one rank than on many lanes or ranks.
            if threads.has_few_files() && rng.random_bool(0.6) {
                (scenario.ranks, scenario.lanes) = (1, 1);
            }
        }
        if disturbed {
            scenario.disturb(&mut rng);
        }
        if rng.random_bool(0.5) {
            let files = FilesSpec::draw(&mut rng, scenario.planned_us());
            if files.faults.silent_from_ns.is_some() {
                // Only three interrupts end the creation of files on a target that does not answer; the third ends the
                // process at once.
                let at_us = scenario.planned_us() + SILENCE_LIMIT_US;
                let kind = DisturbanceKind::Interrupt { rank: 0 };
                scenario.disturbances.push(Disturbance { at_us, kind });
                let (at_us, kind) = (at_us + 10_000_000, DisturbanceKind::Kill { rank: 0 });
                scenario.disturbances.push(Disturbance { at_us, kind });
            }
            scenario.files = Some(files);
            scenario.stall_ms = None;
        }
        if rng.random_bool(0.2) {
            let pattern = PatternSpec::draw(&mut rng, scenario.ranks, scenario.files.is_some());
            scenario.workload.load = Load::Pattern(pattern);
            scenario.workload.warmup_ms = 0;
        }
        if let Some(files) = &mut scenario.files
            && rng.random_bool(0.4)
        {
            files.again_us = draw_again(&mut Xoshiro256PlusPlus::seed_from_u64(seed ^ AGAIN));
        }
        let writes_results = rng.random_bool(0.35);
        let is_pattern = scenario.is_pattern();
        if let Some(files) = &mut scenario.files {
            // Patterns make their directory themselves.
            files.has_dir = !is_pattern && rng.random_bool(0.3);
        }
        let sound_files = scenario.files.as_mut().filter(|files| files.is_sound());
        if let Some(files) = sound_files
            && rng.random_bool(0.3)
        {
            files.fail_calls_of_load(&mut rng);
        }
        if writes_results {
            scenario.results = Some(draw_disk(&mut rng));
            if scenario.ranks == 1 && rng.random_bool(0.5) {
                scenario.kill_while_intervals_are_written(&mut rng);
            }
        }
        if scenario.allows_concurrent_run() && rng.random_bool(0.8) {
            // Ranks claim the directory in the first milliseconds.
            let end_us = match rng.random_range(0..3) {
                0 => 2_000,
                1 => PREPARATION_US,
                _ => scenario.planned_us() * 5 / 4,
            };
            scenario.concurrent_at_us = Some(rng.random_range(0..end_us));
        }
        if rng.random_bool(0.2) {
            scenario.drift_ppm = rng.random_range(1..=MAX_DRIFT_PPM);
        }
        scenario
    }

    /// The scenario of a seed in which several short runs compete for a directory: during the run of the ranks, or
    /// after rank 0 was killed.
    #[must_use]
    pub fn draw_claims(seed: u64) -> Self {
        let mut scenario = Self::draw(seed);
        let rng = &mut Xoshiro256PlusPlus::seed_from_u64(seed ^ CLAIMS);
        let has_dir = !scenario.is_pattern() && rng.random_bool(0.3);
        let mut files = FilesSpec {
            has_dir,
            again_us: draw_again(rng),
            ..FilesSpec::calm(rng.random_range(20..1000))
        };
        // During a slow call of one run, another run makes many calls.
        let is_uneven = rng.random_bool(0.5);
        let slow = (rng.random_range(10_000..200_000), rng.random_range(2..200));
        files.faults.slow = is_uneven.then_some(slow);
        scenario.files = Some(files);
        (scenario.stall_ms, scenario.results) = (None, None);
        scenario.disturbances.clear();
        (scenario.workload.warmup_ms, scenario.workload.time_ms) = (0, rng.random_range(20..200));
        let planned_us = scenario.planned_us();
        if rng.random_bool(0.5) {
            let ends_us = [3_000, 30_000, planned_us + 50_000];
            let end_us = ends_us[rng.random_range(0..ends_us.len())];
            let at_us = rng.random_range(0..end_us);
            let kind = DisturbanceKind::Kill { rank: 0 };
            scenario.disturbances.push(Disturbance { at_us, kind });
            scenario.concurrent_at_us = None;
        } else {
            let ends_us = [200, 3_000, 30_000, planned_us * 5 / 4 + 50_000];
            let end_us = ends_us[rng.random_range(0..ends_us.len())];
            scenario.concurrent_at_us = Some(rng.random_range(0..end_us));
        }
        scenario
    }

    /// Draws disturbances and their times. Half of the scenarios have disturbances of one kind only, because many rules
    /// apply only if no other disturbance affects the run.
    fn disturb(&mut self, rng: &mut Xoshiro256PlusPlus) {
        let possible: &[DrawnKind] = match self.ranks {
            1 => &DrawnKind::OF_ONE_RANK,
            _ => &DrawnKind::OF_SEVERAL_RANKS,
        };
        let allowed = match rng.random_range(0..4) {
            // Kinds that end the windows of the other ranks.
            0 => match self.ranks > 1 && rng.random_bool(0.6) {
                true => vec![DrawnKind::KillBelow],
                false => vec![DrawnKind::Interrupt],
            },
            1 => vec![possible[rng.random_range(0..possible.len())]],
            _ => {
                let mut allowed = possible.to_vec();
                allowed.retain(|_| rng.random_bool(0.5));
                allowed
            }
        };
        if allowed.is_empty() {
            return;
        }
        for _ in 0..rng.random_range(1..4) {
            let kind = self.disturbance(allowed[rng.random_range(0..allowed.len())], rng);
            // The preparation of a run is short, and separate code handles disturbances during the preparation.
            let end_us = match rng.random_bool(0.2) {
                true => PREPARATION_US,
                false => self.planned_us() * 5 / 4,
            };
            let at_us = rng.random_range(0..end_us);
            self.disturbances.push(Disturbance { at_us, kind });
        }
    }

    /// Kills the only rank in its window. A run with several ranks has no intervals before all ranks have ended.
    fn kill_while_intervals_are_written(&mut self, rng: &mut Xoshiro256PlusPlus) {
        let at_us = rng.random_range(self.planned_us() / 4..self.planned_us() + 1);
        let kind = DisturbanceKind::Kill { rank: 0 };
        self.disturbances.push(Disturbance { at_us, kind });
        self.interval_ms = [50, 100][rng.random_range(0..2)];
        let disk = self.results.as_mut().filter(|_| rng.random_bool(0.7));
        disk.into_iter().for_each(|disk| disk.fault = None);
    }

    fn disturbance(&self, kind: DrawnKind, rng: &mut Xoshiro256PlusPlus) -> DisturbanceKind {
        let rank = rng.random_range(0..self.ranks);
        let below = rank.max(1);
        match kind {
            DrawnKind::Interrupt => DisturbanceKind::Interrupt { rank },
            DrawnKind::Kill => DisturbanceKind::Kill { rank },
            DrawnKind::KillBelow => DisturbanceKind::Kill { rank: below },
            DrawnKind::Stop => DisturbanceKind::Stop {
                rank,
                for_ms: rng.random_range(1..2_000),
            },
            DrawnKind::Cut => DisturbanceKind::Cut { rank: below },
            DrawnKind::ClockJump => DisturbanceKind::ClockJump {
                rank,
                seconds: rng.random_range(-100_000..100_000),
            },
        }
    }

    /// Warm-up and window, in microseconds; for a pattern the minimum duration of its operations.
    #[must_use]
    pub fn planned_us(&self) -> u64 {
        if let Load::Pattern(pattern) = &self.workload.load {
            let of_files = self.files.as_ref().map(|f| f.faults.latency_ns / 1000);
            return pattern.ops_of_rank() * of_files.unwrap_or(self.latency_us);
        }
        (self.workload.warmup_ms + self.workload.time_ms) * 1000
    }

    /// Whether the workload is a pattern.
    #[must_use]
    pub fn is_pattern(&self) -> bool {
        matches!(self.workload.load, Load::Pattern(_))
    }

    /// Whether the target has no faults except in timing.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.files.as_ref().is_none_or(FilesSpec::is_sound)
    }

    /// Whether `is_one` accepts every disturbance.
    pub(crate) fn has_only(&self, is_one: impl Fn(DisturbanceKind) -> bool) -> bool {
        self.disturbances.iter().all(|d| is_one(d.kind))
    }

    /// Whether no rank is lost, stopped or interrupted.
    fn ends_by_itself(&self) -> bool {
        self.has_only(|kind| matches!(kind, DisturbanceKind::ClockJump { .. }))
    }

    /// Whether no rank is lost or stopped.
    pub(crate) fn keeps_ranks(&self) -> bool {
        use DisturbanceKind::{ClockJump, Interrupt};
        self.has_only(|kind| matches!(kind, Interrupt { .. } | ClockJump { .. }))
    }

    /// Whether every object of a pattern exists before another rank reads the object. A lost or stopped rank creates no
    /// objects, nor does an interrupted rank, which ends before the other ranks know of the interrupt. A reading rank
    /// that starts early, by at most the jitter of the network, may overtake the creating rank, and so may a reading rank
    /// whose calls are faster than the slow calls of the creating rank.
    pub(crate) fn has_all_objects(&self) -> bool {
        let (Load::Pattern(pattern), Some(files)) = (&self.workload.load, &self.files) else {
            return true;
        };
        let (_, jitter_us) = self.delay_us;
        let faults = &files.faults;
        match pattern.ops_ahead() {
            None => self.keeps_ranks(),
            Some(ops) => {
                self.ends_by_itself()
                    && faults.slow.is_none()
                    && jitter_us * 1000 <= ops * faults.latency_ns
            }
        }
    }

    /// Whether the clocks of ranks differ. The starts of windows in an outcome are times of day.
    pub(crate) fn has_other_clocks(&self) -> bool {
        self.drift_ppm != 0
            || !self.has_only(|kind| !matches!(kind, DisturbanceKind::ClockJump { .. }))
    }

    /// Drift of a rank's clock in parts per million; positive for a fast clock.
    pub(crate) fn drift_of(&self, rank: u32) -> i64 {
        match rank % 2 {
            0 => self.drift_ppm,
            _ => -self.drift_ppm,
        }
    }

    /// Whether another run can begin in the same directory: no fault makes the other run fail too, and no lost rank may
    /// keep running at the same time.
    fn allows_concurrent_run(&self) -> bool {
        self.files.as_ref().is_some_and(FilesSpec::is_calm) && self.keeps_ranks()
    }

    /// Depth of the tree of ranks: maximum number of connections between rank 0 and another rank. Each rank distributes
    /// its descendants evenly among at most `fan_out` children.
    pub(crate) fn tree_depth(&self) -> u64 {
        let (mut ranks, mut depth) = (self.ranks, 0);
        while ranks > 1 {
            ranks = (ranks - 1).div_ceil(self.fan_out);
            depth += 1;
        }
        depth
    }

    /// Whether no fault or disturbance can end the run early or lose a rank.
    #[must_use]
    pub fn is_calm(&self) -> bool {
        self.is_sound() && self.has_sound_disk() && self.ends_by_itself()
    }

    /// Whether the disk of the results has no faults.
    #[must_use]
    pub fn has_sound_disk(&self) -> bool {
        self.results.is_none_or(|disk| disk.fault.is_none())
    }

    /// Whether the run can end: on a target that falls silent, only a kill of rank 0 ends the run, which stands for the
    /// third interrupt.
    #[must_use]
    pub fn can_end(&self) -> bool {
        let files = self.files.as_ref();
        let is_silent = files.is_some_and(|files| files.faults.silent_from_ns.is_some());
        let ends = |d: &Disturbance| d.kind == DisturbanceKind::Kill { rank: 0 };
        !is_silent || self.disturbances.iter().any(ends)
    }

    /// The URL of a target without files.
    #[must_use]
    pub fn target(&self) -> String {
        let mut url = format!("null:?latency={}us&lanes={}", self.latency_us, self.lanes);
        if let Some((length, after)) = self.stall_ms {
            url.push_str(&format!("&stall={length}ms&stall_after={after}ms"));
        }
        url
    }
}
