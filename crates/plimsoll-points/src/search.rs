//! The search for the load line: the highest load that is carried.
//!
//! What comes next follows from the runs there are and from nothing else ([`Search::next`]), so
//! that a search that was interrupted goes on where it was, and can be tested against systems
//! that are only a formula.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Margins beyond this count as this where repeats are compared: how far a system is overloaded
/// says nothing of how much it wavers at its limit.
const MAX_COMPARED_MARGIN: f64 = 0.25;

/// Without a resolution of its own, a search ends when the interval is at most this part of the
/// sustained load.
const DEFAULT_RESOLUTION_DIVISOR: u64 = 50;

/// Settings of the search for the load line.
///
/// Loads are doubled from [`start_load`](Self::start_load) until one is not sustained; then the
/// interval is bisected. A load is judged by one run; a run with a narrow margin, or one that the
/// client limited, is repeated. At the end both ends of the interval are run until each has [`confirm_runs`](Self::confirm_runs) runs. A load is sustained if it passed in
/// more than half of its runs; a judgement that turns sends the search on from there.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Search {
    /// First load, at least 1.
    pub start_load: u64,
    /// Greatest load that is tried, at least `start`.
    pub max_load: u64,
    /// Widest interval the search ends with, at least 1; null for 2 % of the load carried, at
    /// least 1.
    pub resolution: Option<u64>,
    /// Runs of each end of the interval, at least 1.
    pub confirm_runs: u32,
    /// Least spread of margins that repeats are taken to have, as a share of the criterion; a
    /// greater one that is seen in repeats counts instead.
    pub min_margin_spread: f64,
    /// Most runs in all, at least 1.
    pub max_runs: u32,
}

/// One run of a load.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialRun {
    /// The load.
    pub load: u64,
    /// Whether it met every criterion.
    pub passed: bool,
    /// How near it came to a criterion, see [`margin`](crate::margin()); null if nothing can
    /// be compared.
    pub margin: Option<f64>,
    /// Whether another run may say otherwise, however near this one came to a criterion: the
    /// client limited it, and not the system.
    pub client_limited: bool,
}

/// What a run is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// The first load, and the doubled ones.
    Doubling,
    /// The middle of the interval.
    Bisection,
    /// Again a load with a narrow margin, or one that the client limited.
    Repeat,
    /// An end of the interval, again.
    Confirmation,
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Doubling => "doubling",
            Self::Bisection => "bisection",
            Self::Repeat => "repeat",
            Self::Confirmation => "confirmation",
        })
    }
}

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// This load is to be run.
    Measure(u64, Purpose),
    /// The search has ended.
    Done(LoadLine),
}

/// Where the load line lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LoadLine {
    /// The highest load that is carried; null if none is.
    pub sustained: Option<Agreement>,
    /// The lowest load that is not; null if the greatest that was tried is carried.
    pub not_sustained: Option<Agreement>,
    /// How the search ended.
    pub termination: SearchEnd,
}

/// How sure a judgement of a load is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Agreement {
    /// The load.
    pub load: u64,
    /// Runs of it that met every criterion.
    pub passed: u32,
    /// Runs of it.
    pub runs: u32,
}

/// How a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SearchEnd {
    /// The interval is as narrow as it was to be, and both its ends are confirmed.
    Found,
    /// The greatest load is carried: the load line lies above it.
    MaxLoadSustained,
    /// No load is carried.
    NoneSustained,
    /// As many runs as there may be were made before the search was through.
    MaxRunsReached,
    /// The user ended it.
    Interrupted,
    /// It is in progress, or its process was killed.
    Unfinished,
}

impl fmt::Display for SearchEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Found => "found",
            Self::MaxLoadSustained => "maximum load sustained",
            Self::NoneSustained => "no load sustained",
            Self::MaxRunsReached => "maximum runs reached",
            Self::Interrupted => "interrupted",
            Self::Unfinished => "unfinished",
        })
    }
}

/// The runs of one load.
#[derive(Debug, Clone, Copy, Default)]
struct LoadTally {
    held: u32,
    runs: u32,
    /// Least and greatest margin, within ±[`MAX_COMPARED_MARGIN`].
    margins: Option<(f64, f64)>,
    /// Distance from a criterion of the run that came nearest to one.
    nearest: Option<f64>,
    /// Whether any run is doubtful.
    doubtful: bool,
}

impl LoadTally {
    fn is_sustained(&self) -> bool {
        2 * self.held > self.runs
    }

    /// Whether `all` runs would say the same, however those still missing go.
    fn is_decided(&self, all: u32) -> bool {
        let missed = self.runs - self.held;
        self.runs >= all || 2 * self.held > all || 2 * missed >= all
    }
}

impl Search {
    /// A search from `start` to `max`, with three runs of each end of the interval, a resolution
    /// of 2 % of the load, a least noise of 2 %, and at most 60 runs.
    ///
    /// # Errors
    /// One sentence if `start` is 0 or above `max`.
    pub fn new(start: u64, max: u64) -> Result<Self, String> {
        if start == 0 {
            return Err("the search begins at a load of at least 1".into());
        }
        if start > max {
            return Err(format!(
                "the search begins at {start}, above the greatest load {max}"
            ));
        }
        Ok(Self {
            start_load: start,
            max_load: max,
            resolution: None,
            confirm_runs: 3,
            min_margin_spread: 0.02,
            max_runs: 60,
        })
    }

    /// Measures until the load line is found; `earlier` runs count as if they were made now.
    /// Returns all runs, in the order they were made.
    ///
    /// # Errors
    /// What `measure` returns; it ends the search.
    pub fn run<E>(
        &self,
        earlier: &[TrialRun],
        mut measure: impl FnMut(u64, Purpose) -> Result<TrialRun, E>,
    ) -> Result<(LoadLine, Vec<TrialRun>), E> {
        let mut trials = earlier.to_vec();
        loop {
            match self.next(&trials) {
                Step::Measure(load, purpose) => trials.push(measure(load, purpose)?),
                Step::Done(line) => return Ok((line, trials)),
            }
        }
    }

    /// What comes after `trials`.
    #[must_use]
    pub fn next(&self, trials: &[TrialRun]) -> Step {
        let tallies = tally(trials);
        let (carried, not_carried) = bounds(&tallies);
        let step = self.step(&tallies, carried, not_carried);
        match step {
            Step::Measure(..) if trials.len() >= self.max_runs.max(1) as usize => {
                Step::Done(line(&tallies, SearchEnd::MaxRunsReached))
            }
            step => step,
        }
    }

    /// The load line as far as `trials` tell; unfinished unless they end the search.
    #[must_use]
    pub fn load_line(&self, trials: &[TrialRun]) -> LoadLine {
        match self.next(trials) {
            Step::Done(line) => line,
            Step::Measure(..) => line(&tally(trials), SearchEnd::Unfinished),
        }
    }

    fn step(
        &self,
        tallies: &BTreeMap<u64, LoadTally>,
        carried: Option<u64>,
        not_carried: Option<u64>,
    ) -> Step {
        let ends = || carried.into_iter().chain(not_carried);
        let of = |load: &u64| tallies.get(load).copied().unwrap_or_default();
        let spread = self.spread(tallies);
        let near = |load: &u64| {
            let load = of(load);
            load.doubtful || load.nearest.is_some_and(|m| m <= spread)
        };
        let confirm = self.confirm_runs.max(1);
        if let Some(load) = ends().find(|l| near(l) && !of(l).is_decided(confirm)) {
            return Step::Measure(load, Purpose::Repeat);
        }
        match (carried, not_carried) {
            (None, None) => {
                return Step::Measure(self.start_load.min(self.max_load), Purpose::Doubling);
            }
            (Some(load), None) if load < self.max_load => {
                let next = load.saturating_mul(2).min(self.max_load);
                return Step::Measure(next, Purpose::Doubling);
            }
            (Some(_), None) => {}
            (carried, Some(upper)) => {
                let lower = carried.unwrap_or(0);
                if upper - lower > self.resolution_at(lower) {
                    let middle = lower + (upper - lower) / 2;
                    return Step::Measure(middle, Purpose::Bisection);
                }
            }
        }
        if let Some(load) = ends().find(|l| of(l).runs < confirm) {
            return Step::Measure(load, Purpose::Confirmation);
        }
        let ended = match (carried, not_carried) {
            (_, None) => SearchEnd::MaxLoadSustained,
            (None, Some(_)) => SearchEnd::NoneSustained,
            (Some(_), Some(_)) => SearchEnd::Found,
        };
        Step::Done(line(tallies, ended))
    }

    /// Widest interval above a load that is carried.
    fn resolution_at(&self, carried: u64) -> u64 {
        self.resolution
            .unwrap_or(carried / DEFAULT_RESOLUTION_DIVISOR)
            .max(1)
    }

    /// How much runs of one load differ in their margins.
    fn spread(&self, tallies: &BTreeMap<u64, LoadTally>) -> f64 {
        let seen = tallies.values().filter_map(|t| t.margins);
        seen.map(|(least, most)| most - least)
            .fold(self.min_margin_spread, f64::max)
    }
}

fn tally(trials: &[TrialRun]) -> BTreeMap<u64, LoadTally> {
    let mut tallies: BTreeMap<u64, LoadTally> = BTreeMap::new();
    for trial in trials {
        let tally = tallies.entry(trial.load).or_default();
        tally.runs += 1;
        tally.held += u32::from(trial.passed);
        tally.doubtful |= trial.client_limited;
        if let Some(margin) = trial.margin.filter(|m| !m.is_nan()) {
            let nearest = tally.nearest.unwrap_or(f64::INFINITY);
            tally.nearest = Some(nearest.min(margin.abs()));
            let margin = margin.clamp(-MAX_COMPARED_MARGIN, MAX_COMPARED_MARGIN);
            let (least, most) = tally.margins.unwrap_or((margin, margin));
            tally.margins = Some((least.min(margin), most.max(margin)));
        }
    }
    tallies
}

/// The highest load that is carried below the lowest that is not, and that one.
fn bounds(tallies: &BTreeMap<u64, LoadTally>) -> (Option<u64>, Option<u64>) {
    let not_carried = tallies
        .iter()
        .find(|(_, t)| !t.is_sustained())
        .map(|(l, _)| *l);
    let below = tallies.range(..not_carried.unwrap_or(u64::MAX));
    (below.map(|(l, _)| *l).next_back(), not_carried)
}

fn line(tallies: &BTreeMap<u64, LoadTally>, ended: SearchEnd) -> LoadLine {
    let (carried, not_carried) = bounds(tallies);
    let support = |load: u64| {
        let tally = tallies.get(&load).copied().unwrap_or_default();
        Agreement {
            load,
            passed: tally.held,
            runs: tally.runs,
        }
    };
    LoadLine {
        sustained: carried.map(support),
        not_sustained: not_carried.map(support),
        termination: ended,
    }
}
