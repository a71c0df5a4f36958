//! Search for the load line: the highest load that is sustained.
//!
//! The next load is a function of the runs so far ([`SearchRules::next`]). An interrupted search can therefore be
//! resumed, and a search can be tested against systems that are only a formula.

use crate::series::next::check_metric;
use crate::series::{NextRun, Series, SeriesRun, SeriesState, Step, Strategy};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Codes of reasons that blame the measuring machine.
const CLIENT_REASONS: [&str; 3] = ["client_saturated", "client_start_delay", "client_throttled"];

/// Limit to which margins are clamped before their spread is computed: the amount of overload says nothing about the
/// variation near the criteria.
const MAX_COMPARED_MARGIN: f64 = 0.25;

/// Default resolution of a search: the sustained load divided by this number.
const DEFAULT_RESOLUTION_DIVISOR: u64 = 50;

/// A search for the load line of a workload: the highest load that is sustained.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadSearch {
    /// Rules by which the loads are selected.
    pub rules: SearchRules,
    /// Load line as far as the runs determine it.
    pub load_line: LoadLine,
}

impl LoadSearch {
    /// A search without runs.
    #[must_use]
    pub fn new(rules: SearchRules) -> Self {
        Self {
            rules,
            load_line: rules.load_line(&[]),
        }
    }
}

/// The measured runs as input of the search rules.
fn trials(runs: &[SeriesRun]) -> Vec<TrialRun> {
    let measured = runs.iter().filter(|run| run.is_measured());
    measured
        .filter_map(|run| {
            Some(TrialRun {
                load: run.load?,
                passed: run.is_valid(),
                margin: run.margin,
                client_limited: run.is_client_limited(),
            })
        })
        .collect()
}

impl Strategy for LoadSearch {
    fn next(&self, series: &Series) -> Step {
        match self.rules.next(&trials(&series.runs)) {
            SearchStep::Done(_) => Step::End(SeriesState::Complete, None),
            SearchStep::Measure(load, purpose) => Step::Run(NextRun {
                configuration: 0,
                load: Some(load),
                purpose: Some(purpose),
                seed: series.first_plan().seed,
                directory: format!("run-{:02}-load-{load}", series.measured().count() + 1),
            }),
        }
    }

    fn conclude(&mut self, runs: &[SeriesRun]) {
        self.load_line = self.rules.load_line(&trials(runs));
    }

    fn is_valid(&self, _: &[SeriesRun]) -> bool {
        match self.load_line.termination {
            SearchEnd::Found | SearchEnd::MaxLoadSustained => true,
            SearchEnd::NoneSustained | SearchEnd::MaxRunsReached | SearchEnd::Unfinished => false,
        }
    }

    fn shares_files(&self) -> bool {
        true
    }

    fn check(&self, series: &Series) -> Result<(), String> {
        check_metric(series)?;
        self.rules.check()
    }
}

impl SeriesRun {
    /// Whether the measuring machine limited the run, which then says little about the system under test.
    #[must_use]
    pub fn is_client_limited(&self) -> bool {
        let mut codes = self.reasons.iter().map(|r| r.code.as_str());
        codes.any(|code| CLIENT_REASONS.contains(&code))
    }
}

/// Settings of the search for the load line.
///
/// Loads are doubled from [`start_load`](Self::start_load) until one is not sustained; then the
/// interval is bisected. A load is judged by one run; a run with a narrow margin, or one that the
/// client limited, is repeated. At the end both ends of the interval are run until each has
/// [`confirm_runs`](Self::confirm_runs) runs. A load is sustained if it passed in more than half of its runs; if a
/// repeated run reverses the judgement of a load, the search continues from that load.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchRules {
    /// First load, at least 1.
    pub start_load: u64,
    /// Highest load that is tried, at least `start_load`.
    pub max_load: u64,
    /// Maximum width of the final interval, at least 1; null for 2 % of the sustained load, at least 1.
    pub resolution: Option<u64>,
    /// Runs of each end of the interval, at least 1.
    pub confirm_runs: u32,
    /// Minimum spread of margins assumed for repeats, as a fraction of the criterion; a greater one
    /// that is observed in repeats is used instead.
    pub min_margin_spread: f64,
    /// Maximum number of runs, at least 1.
    pub max_runs: u32,
}

/// One run of a load.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialRun {
    /// The load.
    pub load: u64,
    /// Whether it met every criterion.
    pub passed: bool,
    /// Distance of the run from the criteria, see [`SeriesRun::margin`]; null without a comparable figure.
    pub margin: Option<f64>,
    /// Whether the client limited it and not the system, so that another run may differ at any margin.
    pub client_limited: bool,
}

/// Purpose of a run.
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

/// Next step of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchStep {
    /// A run at this load, for this purpose.
    Measure(u64, Purpose),
    /// End of the search.
    Done(LoadLine),
}

/// The interval in which the load line lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LoadLine {
    /// The highest load that is sustained; null if none is.
    pub sustained: Option<Agreement>,
    /// The lowest load that is not sustained; null if the highest one tried is sustained.
    pub not_sustained: Option<Agreement>,
    /// The end of the search.
    pub termination: SearchEnd,
}

/// Agreement of the runs of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Agreement {
    /// The load.
    pub load: u64,
    /// Runs of it that met every criterion.
    pub passed: u32,
    /// Runs of it.
    pub runs: u32,
}

/// Ends of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SearchEnd {
    /// The interval is narrow enough, and both its ends are confirmed.
    Found,
    /// The maximum load is sustained: the load line lies above it.
    MaxLoadSustained,
    /// No load is sustained.
    NoneSustained,
    /// The maximum number of runs was made before the search was complete.
    MaxRunsReached,
    /// Runs are missing.
    Unfinished,
}

impl fmt::Display for SearchEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Found => "found",
            Self::MaxLoadSustained => "maximum load sustained",
            Self::NoneSustained => "no load sustained",
            Self::MaxRunsReached => "maximum runs reached",
            Self::Unfinished => "unfinished",
        })
    }
}

/// Counts and margins of the runs at one load.
#[derive(Debug, Clone, Copy, Default)]
struct LoadTally {
    passed: u32,
    runs: u32,
    /// Minimum and maximum margin, clamped to ±[`MAX_COMPARED_MARGIN`].
    margins: Option<(f64, f64)>,
    /// Minimum absolute margin of a run.
    nearest: Option<f64>,
    /// Whether the client limited any run.
    client_limited: bool,
}

impl LoadTally {
    fn is_sustained(&self) -> bool {
        2 * self.passed > self.runs
    }

    /// Whether the remaining runs, up to a total of `all`, cannot change the judgement.
    fn is_decided(&self, all: u32) -> bool {
        let missed = self.runs - self.passed;
        self.runs >= all || 2 * self.passed > all || 2 * missed >= all
    }
}

impl SearchRules {
    /// Rules of a search from `start` to `max`, with three runs of each end of the interval, a resolution of 2 % of the
    /// load, a minimum margin spread of 2 %, and at most 60 runs.
    ///
    /// # Errors
    /// One sentence if `start` is 0 or above `max`.
    pub fn new(start: u64, max: u64) -> Result<Self, String> {
        let rules = Self {
            start_load: start,
            max_load: max,
            resolution: None,
            confirm_runs: 3,
            min_margin_spread: 0.02,
            max_runs: 60,
        };
        rules.check().map(|()| rules)
    }

    fn check(&self) -> Result<(), String> {
        let (start, max) = (self.start_load, self.max_load);
        if start == 0 {
            return Err("the search begins at load 0: expected at least 1".into());
        }
        if start > max {
            return Err(format!(
                "the search begins at {start}, above the highest load {max}"
            ));
        }
        Ok(())
    }

    /// Measures until the search ends; `earlier` runs count like new runs. Returns the load line and all runs, in
    /// order.
    ///
    /// # Errors
    /// An error of `measure` ends the search.
    pub fn run<E>(
        &self,
        earlier: &[TrialRun],
        mut measure: impl FnMut(u64, Purpose) -> Result<TrialRun, E>,
    ) -> Result<(LoadLine, Vec<TrialRun>), E> {
        let mut trials = earlier.to_vec();
        loop {
            match self.next(&trials) {
                SearchStep::Measure(load, purpose) => trials.push(measure(load, purpose)?),
                SearchStep::Done(line) => return Ok((line, trials)),
            }
        }
    }

    /// The next step after `trials`.
    #[must_use]
    pub fn next(&self, trials: &[TrialRun]) -> SearchStep {
        let tallies = tally(trials);
        let (sustained, not_sustained) = bounds(&tallies);
        let step = self.step(&tallies, sustained, not_sustained);
        match step {
            SearchStep::Measure(..) if trials.len() >= self.max_runs.max(1) as usize => {
                SearchStep::Done(line(&tallies, SearchEnd::MaxRunsReached))
            }
            step => step,
        }
    }

    /// The load line as far as `trials` determine it; unfinished unless the search has ended.
    #[must_use]
    pub fn load_line(&self, trials: &[TrialRun]) -> LoadLine {
        match self.next(trials) {
            SearchStep::Done(line) => line,
            SearchStep::Measure(..) => line(&tally(trials), SearchEnd::Unfinished),
        }
    }

    fn step(
        &self,
        tallies: &BTreeMap<u64, LoadTally>,
        sustained: Option<u64>,
        not_sustained: Option<u64>,
    ) -> SearchStep {
        let ends = || sustained.into_iter().chain(not_sustained);
        let of = |load: &u64| tallies.get(load).copied().unwrap_or_default();
        let spread = self.spread(tallies);
        let near = |load: &u64| {
            let load = of(load);
            load.client_limited || load.nearest.is_some_and(|m| m <= spread)
        };
        let confirm = self.confirm_runs.max(1);
        if let Some(load) = ends().find(|l| near(l) && !of(l).is_decided(confirm)) {
            return SearchStep::Measure(load, Purpose::Repeat);
        }
        match (sustained, not_sustained) {
            (None, None) => {
                return SearchStep::Measure(self.start_load.min(self.max_load), Purpose::Doubling);
            }
            (Some(load), None) if load < self.max_load => {
                let next = load.saturating_mul(2).min(self.max_load);
                return SearchStep::Measure(next, Purpose::Doubling);
            }
            (Some(_), None) => {}
            (sustained, Some(upper)) => {
                let lower = sustained.unwrap_or(0);
                if upper - lower > self.resolution_at(lower) {
                    let middle = lower + (upper - lower) / 2;
                    return SearchStep::Measure(middle, Purpose::Bisection);
                }
            }
        }
        if let Some(load) = ends().find(|l| of(l).runs < confirm) {
            return SearchStep::Measure(load, Purpose::Confirmation);
        }
        let ended = match (sustained, not_sustained) {
            (_, None) => SearchEnd::MaxLoadSustained,
            (None, Some(_)) => SearchEnd::NoneSustained,
            (Some(_), Some(_)) => SearchEnd::Found,
        };
        SearchStep::Done(line(tallies, ended))
    }

    /// Maximum width of the final interval above a sustained load, in business metrics.
    fn resolution_at(&self, sustained: u64) -> u64 {
        self.resolution
            .unwrap_or(sustained / DEFAULT_RESOLUTION_DIVISOR)
            .max(1)
    }

    /// Maximum difference between the margins of runs at one load, at least the configured minimum.
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
        tally.passed += u32::from(trial.passed);
        tally.client_limited |= trial.client_limited;
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

/// The highest sustained load below the lowest load that is not sustained, and the latter.
fn bounds(tallies: &BTreeMap<u64, LoadTally>) -> (Option<u64>, Option<u64>) {
    let not_sustained = tallies
        .iter()
        .find(|(_, t)| !t.is_sustained())
        .map(|(l, _)| *l);
    let below = tallies.range(..not_sustained.unwrap_or(u64::MAX));
    (below.map(|(l, _)| *l).next_back(), not_sustained)
}

fn line(tallies: &BTreeMap<u64, LoadTally>, ended: SearchEnd) -> LoadLine {
    let (sustained, not_sustained) = bounds(tallies);
    let support = |load: u64| {
        let tally = tallies.get(&load).copied().unwrap_or_default();
        Agreement {
            load,
            passed: tally.passed,
            runs: tally.runs,
        }
    };
    LoadLine {
        sustained: sustained.map(support),
        not_sustained: not_sustained.map(support),
        termination: ended,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_decided_when_no_further_run_can_change_its_majority() {
        for all in 1..=7 {
            for (runs, passed) in (0..=all).flat_map(|runs| (0..=runs).map(move |p| (runs, p))) {
                let with = |more_passed| LoadTally {
                    passed: passed + more_passed,
                    runs: all,
                    ..LoadTally::default()
                };
                let first = with(0).is_sustained();
                let expected = (0..=all - runs).all(|more| with(more).is_sustained() == first);
                let so_far = LoadTally {
                    passed,
                    runs,
                    ..LoadTally::default()
                };
                assert_eq!(
                    so_far.is_decided(all),
                    expected,
                    "{passed} of {runs}, {all} runs"
                );
            }
        }
        let more_than_planned = LoadTally {
            passed: 2,
            runs: 4,
            ..LoadTally::default()
        };
        assert!(more_than_planned.is_decided(3));
    }

    #[test]
    fn names_of_purposes_and_ends_differ_and_can_be_padded() {
        let purposes = [
            Purpose::Doubling,
            Purpose::Bisection,
            Purpose::Repeat,
            Purpose::Confirmation,
        ];
        for purpose in purposes {
            let name = serde_json::to_value(purpose).unwrap();
            assert_eq!(name.as_str(), Some(purpose.to_string().as_str()));
        }
        let ends = [
            (SearchEnd::Found, "found"),
            (SearchEnd::MaxLoadSustained, "maximum load sustained"),
            (SearchEnd::NoneSustained, "no load sustained"),
            (SearchEnd::MaxRunsReached, "maximum runs reached"),
            (SearchEnd::Unfinished, "unfinished"),
        ];
        for (end, name) in ends {
            assert_eq!(format!("{end:>30}"), format!("{name:>30}"));
        }
    }
}
