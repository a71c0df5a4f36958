//! Search for the load line: the highest load, or the highest value of a parameter, that is sustained.
//!
//! The rules and the load line call every searched value a load. The next load is a function of the runs so far
//! ([`SearchRules::next`]). An interrupted search can therefore be resumed, and a search can be tested against systems
//! that are only a formula.

use crate::series::next::{check_metric, directory_name};
use crate::series::{MAX_LOAD, NextRun, Recipe, Series, SeriesRun, SeriesState, Step, Strategy};
use plimsoll_plan::Requirement;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use strum::Display;

/// Codes of reasons that blame the measuring machine.
const CLIENT_REASONS: [&str; 4] = [
    "client_saturated",
    "client_start_delay",
    "client_throttled",
    Requirement::Quiet.reason_code(),
];

/// Limit to which margins are clamped before their spread is computed: the amount of overload says nothing about the
/// variation near the criteria.
const MAX_COMPARED_MARGIN: f64 = 0.25;

/// Default resolution of a search: the sustained load divided by this number.
const DEFAULT_RESOLUTION_DIVISOR: u64 = 50;

/// Maximum growth of throughput over two doublings of the load, as a fraction, of a system whose throughput has stopped
/// growing. The first and the last of the three loads have [`SearchRules::confirm_runs`] runs before their mean rates
/// decide.
const MAX_SATURATED_GROWTH: f64 = 0.05;

/// Search for the load line of a workload, the highest sustained load or value of a parameter: rules, and the load line
/// so far.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadSearch {
    /// Parameter whose values the search varies; null if the search varies the load in business metrics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameter: Option<SearchedParameter>,
    /// Settings from which the search chooses the next load.
    pub rules: SearchRules,
    /// Load line, as far as the runs so far determine the interval in which the load line lies.
    pub load_line: LoadLine,
}

impl LoadSearch {
    /// A search whose load line is unfinished, before the first run.
    #[must_use]
    pub fn new(rules: SearchRules) -> Self {
        Self {
            parameter: None,
            rules,
            load_line: rules.load_line(&[]),
        }
    }

    /// A search over the values of a parameter, before the first run.
    #[must_use]
    pub fn over(parameter: SearchedParameter, rules: SearchRules) -> Self {
        Self {
            parameter: Some(parameter),
            ..Self::new(rules)
        }
    }

    /// The next run of the search, at a load or at a value of the parameter. The configuration of a new value follows
    /// the configurations of the series.
    fn run(&self, series: &Series, load: u64, purpose: Purpose) -> NextRun {
        let number = series.measured().count() + 1;
        let next = NextRun {
            configuration: 0,
            load: None,
            value: None,
            purpose: Some(purpose),
            seed: series.first_plan().seed,
            directory: format!("run-{number:02}-load-{load}"),
        };
        let Some(parameter) = &self.parameter else {
            return NextRun {
                load: Some(load),
                ..next
            };
        };
        let name = parameter.configuration(load);
        let known = series.configurations.iter().position(|c| c.name == name);
        NextRun {
            configuration: known.unwrap_or(series.configurations.len()) as u32,
            value: Some(load),
            directory: directory_name(&format!(
                "run-{number:02}-{}-{}",
                parameter.name,
                parameter.value(load)
            )),
            ..next
        }
    }
}

/// Parameter whose values a search varies, each with a Plan of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchedParameter {
    /// Name of the parameter: a parameter of the workload, `load`, `rate`, or an option of the target's URL.
    pub name: String,
    /// Unit that follows each value, such as `k` or `ms`; empty for values without a unit.
    pub unit: String,
    /// Workload, settings and target from which the configuration of each value is made.
    pub recipe: Box<Recipe>,
}

impl SearchedParameter {
    /// Text of a value with its unit, such as `16k`.
    #[must_use]
    pub fn value(&self, value: u64) -> String {
        format!("{value}{}", self.unit)
    }

    /// Parameter with the unit of its values, such as `iosize in k`.
    #[must_use]
    pub fn quantity(&self) -> String {
        match self.unit.as_str() {
            "" => self.name.clone(),
            unit => format!("{} in {unit}", self.name),
        }
    }

    /// Name of the configuration of a value, such as `iosize=16k`.
    #[must_use]
    pub fn configuration(&self, value: u64) -> String {
        format!("{}={}", self.name, self.value(value))
    }
}

/// Converts the measured runs of a series into the input of the search rules.
fn trials(runs: &[SeriesRun]) -> Vec<TrialRun> {
    let measured = runs.iter().filter(|run| run.is_measured());
    measured
        .filter_map(|run| {
            Some(TrialRun {
                load: run.load_or_value()?,
                passed: run.is_valid(),
                margin: run.margin,
                ops_per_s: run.achieved_ops_per_s,
                client_limited: run.is_client_limited(),
            })
        })
        .collect()
}

impl Strategy for LoadSearch {
    fn next(&self, series: &Series) -> Step {
        match self.rules.next(&trials(&series.runs)) {
            SearchStep::Done(_) => Step::End(SeriesState::Complete, None),
            SearchStep::Measure(load, purpose) => Step::Run(self.run(series, load, purpose)),
        }
    }

    fn conclude(&mut self, runs: &[SeriesRun]) {
        self.load_line = self.rules.load_line(&trials(runs));
    }

    fn is_valid(&self, _: &[SeriesRun]) -> bool {
        match self.load_line.termination {
            SearchEnd::Found | SearchEnd::MaxLoadSustained | SearchEnd::Saturated => true,
            SearchEnd::NoneSustained | SearchEnd::MaxRunsReached | SearchEnd::Unfinished => false,
        }
    }

    fn shares_files(&self, series: &Series) -> bool {
        self.parameter.is_none() || series.has_one_place()
    }

    fn check(&self, series: &Series) -> Result<(), String> {
        if self.parameter.is_none() {
            check_metric(series)?;
        } else if let Some(run) = series.runs.iter().find(|run| run.value.is_none()) {
            return Err(format!(
                "the run {} has no value of the parameter",
                run.directory
            ));
        }
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
/// Loads are doubled from [`start_load`](Self::start_load) until a load is not sustained; then the interval between the
/// highest sustained load and the lowest load that is not sustained is bisected. A load is judged by one run; a run
/// with a narrow margin, or a run that the client limited, is repeated. At the end both ends of the interval are run
/// until each end has [`confirm_runs`](Self::confirm_runs) runs. A load is sustained if more than half of its runs
/// passed; if a repeated run reverses the judgement of a load, the search continues from that load.
///
/// In a search over a parameter, the loads are values of the parameter, in its unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchRules {
    /// First load of the search, in business metrics or in units of the parameter; at least 1.
    pub start_load: u64,
    /// Highest load that the search tries, at least `start_load`; null without a requested limit.
    pub max_load: Option<u64>,
    /// Whether the search ends where throughput stops growing although each load is sustained.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub until_saturated: bool,
    /// Resolution: the maximum width of the final load interval, at least 1; null for 2 % of the sustained load, at least
    /// 1.
    pub resolution: Option<u64>,
    /// Number of runs at each end of the final load interval, at least 1.
    pub confirm_runs: u32,
    /// Minimum spread of margins between runs of one load, as a fraction of the criterion. A larger observed spread of
    /// margins replaces the minimum spread. A load with a margin up to the spread of margins is run again.
    pub min_margin_spread: f64,
    /// Maximum number of runs of the search, at least 1.
    pub max_runs: u32,
}

/// A measured run of the search, as input of the search rules.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialRun {
    /// Offered load of the run in business metrics, or value of the parameter.
    pub load: u64,
    /// Whether the run is valid: the run met every criterion and kept every promise.
    pub passed: bool,
    /// Margin of the run: the smallest relative distance from the criteria ([`SeriesRun::margin`]); null without a
    /// comparable figure.
    pub margin: Option<f64>,
    /// Achieved rate of the run in operations per second.
    pub ops_per_s: f64,
    /// Whether the client instead of the system limited the run, so that another run may differ whatever the margin.
    pub client_limited: bool,
}

/// Purpose of a run in a search: which rule chose the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Display)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Purpose {
    /// The run extends the search upwards: the first load, or twice the highest sustained load so far, at most the
    /// maximum load.
    Doubling,
    /// The run halves the load interval: its load is the middle between the highest sustained load and the lowest load
    /// that is not sustained.
    Bisection,
    /// The run repeats a load whose margin was narrow, or at which the client limited a run.
    Repeat,
    /// The run repeats an end of the final load interval, up to the requested number of confirmation runs.
    Confirmation,
}

/// Next step of a search: a run, or the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchStep {
    /// The search needs a run at a load for a purpose.
    Measure(u64, Purpose),
    /// The search has ended with a load line.
    Done(LoadLine),
}

/// Load interval in which the load line lies, and the reason why the search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LoadLine {
    /// Lower end of the load interval: the highest sustained load below `not_sustained`, with its runs; null if no load
    /// below `not_sustained` is sustained.
    pub sustained: Option<Agreement>,
    /// Upper end of the load interval: the lowest load that is not sustained, with its runs; null if every measured
    /// load is sustained.
    pub not_sustained: Option<Agreement>,
    /// Lowest load from which throughput did not grow; null unless the search ended there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saturated_at: Option<u64>,
    /// Reason why the search ended; `unfinished` if runs are missing.
    pub termination: SearchEnd,
}

/// A load at an end of the load interval, with the numbers of its runs and of its passed runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Agreement {
    /// Offered load of the runs in business metrics, or value of the parameter.
    pub load: u64,
    /// Number of valid runs of the load.
    pub passed: u32,
    /// Number of runs of the load, passed or not.
    pub runs: u32,
}

/// Reason why a search for the load line ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Display)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum SearchEnd {
    /// The load interval is as narrow as the resolution, and both ends of the interval are confirmed.
    Found,
    /// The maximum load is sustained: the load line is at or above the maximum load.
    #[strum(to_string = "maximum load sustained")]
    MaxLoadSustained,
    /// The lowest measured load is not sustained: the load line is below the lowest measured load.
    #[strum(to_string = "no load sustained")]
    NoneSustained,
    /// Throughput stopped growing although every load was sustained.
    #[strum(to_string = "throughput stopped growing")]
    Saturated,
    /// The search made its maximum number of runs before the load line was found.
    #[strum(to_string = "maximum runs reached")]
    MaxRunsReached,
    /// Runs are missing: the search is in progress, or was ended.
    Unfinished,
}

/// Counts and margins of the runs of a search at one load.
#[derive(Debug, Clone, Copy, Default)]
struct LoadTally {
    passed: u32,
    runs: u32,
    /// Minimum and maximum margin of the runs, clamped to ±[`MAX_COMPARED_MARGIN`]; `None` if no run has a margin.
    margins: Option<(f64, f64)>,
    /// Minimum absolute margin of the runs; `None` if no run has a margin.
    nearest: Option<f64>,
    /// Whether the client limited at least one of the runs.
    client_limited: bool,
    /// Sum of the achieved rates of the runs, in operations per second.
    ops_per_s: f64,
}

impl LoadTally {
    fn is_sustained(&self) -> bool {
        2 * self.passed > self.runs
    }

    fn mean_ops_per_s(&self) -> f64 {
        self.ops_per_s / f64::from(self.runs)
    }

    /// Whether the remaining runs, up to a total of `all` runs of the load, cannot change whether the load is
    /// sustained.
    fn is_decided(&self, all: u32) -> bool {
        let missed = self.runs - self.passed;
        self.runs >= all || 2 * self.passed > all || 2 * missed >= all
    }
}

impl SearchRules {
    /// Rules of a search from `start` to `max`, or to [`MAX_LOAD`] without `max`, with three runs at each end of the
    /// interval, a resolution of 2 % of the load, a minimum margin spread of 2 %, and at most 60 runs.
    ///
    /// # Errors
    /// One sentence if `start` is 0 or above `max`.
    pub fn new(start: u64, max: impl Into<Option<u64>>) -> Result<Self, String> {
        let rules = Self {
            start_load: start,
            max_load: max.into(),
            until_saturated: false,
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
        if let Some(max) = max.filter(|max| start > *max) {
            return Err(format!(
                "the search begins at {start}, above the highest load {max}"
            ));
        }
        Ok(())
    }

    /// The next step of a search whose runs so far are `trials`.
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
                let first = self.start_load.min(self.greatest());
                return SearchStep::Measure(first, Purpose::Doubling);
            }
            (Some(load), None) => {
                if let Some(step) = self.saturation(tallies, load) {
                    return step;
                }
                if load < self.greatest() {
                    let next = load.saturating_mul(2).min(self.greatest());
                    return SearchStep::Measure(next, Purpose::Doubling);
                }
            }
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

    /// Highest load that the search may try.
    fn greatest(&self) -> u64 {
        self.max_load.unwrap_or(MAX_LOAD)
    }

    /// The end of a search whose throughput did not grow over the last two doublings up to the load `highest`, or the run
    /// that confirms the end; `None` if the search continues.
    fn saturation(&self, tallies: &BTreeMap<u64, LoadTally>, highest: u64) -> Option<SearchStep> {
        if !self.until_saturated || !highest.is_multiple_of(4) {
            return None;
        }
        let of = |load: u64| tallies.get(&load);
        let (before, last) = (of(highest / 4)?, of(highest)?);
        let greatest = last.mean_ops_per_s().max(of(highest / 2)?.mean_ops_per_s());
        if greatest > before.mean_ops_per_s() * (1.0 + MAX_SATURATED_GROWTH) {
            return None;
        }
        let confirm = self.confirm_runs.max(1);
        let unsure = [(highest / 4, before), (highest, last)];
        if let Some((load, _)) = unsure.into_iter().find(|(_, t)| t.runs < confirm) {
            return Some(SearchStep::Measure(load, Purpose::Confirmation));
        }
        Some(SearchStep::Done(LoadLine {
            saturated_at: Some(highest / 4),
            ..line(tallies, SearchEnd::Saturated)
        }))
    }

    /// Maximum width of the final load interval above a sustained load.
    fn resolution_at(&self, sustained: u64) -> u64 {
        self.resolution
            .unwrap_or(sustained / DEFAULT_RESOLUTION_DIVISOR)
            .max(1)
    }

    /// Spread of margins: the maximum difference between the margins of runs at one load, over all loads, at least
    /// `min_margin_spread`.
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
        tally.ops_per_s += trial.ops_per_s;
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

/// The highest sustained load below the lowest load that is not sustained, and the lowest load that is not sustained.
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
        saturated_at: None,
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
            (SearchEnd::Saturated, "throughput stopped growing"),
            (SearchEnd::MaxRunsReached, "maximum runs reached"),
            (SearchEnd::Unfinished, "unfinished"),
        ];
        for (end, name) in ends {
            assert_eq!(format!("{end:>30}"), format!("{name:>30}"));
        }
    }
}
