//! Paired comparison: two variants of a run, measured in pairs whose order is random.
//!
//! Both runs of a pair have one seed, and follow each other, so that a slow change of the machine affects both alike.
//! In two successive pairs, each variant runs first once; a draw decides in which of the two.

use crate::series::next::missing_of;
use crate::series::{
    Configuration, NextRun, Series, SeriesOf, SeriesRun, SettleRule, Step, Strategy,
};
use crate::{Percentile, SeriesState, Verdict};
use plimsoll_measure::compare::PairedRatio;
use plimsoll_plan::{Figure, Stream, counted};
use rand::RngExt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use strum::Display;

/// Maximum number of pairs of a paired comparison.
pub const MAX_PAIRS: u32 = 1000;

/// Minimum number of counted pairs before the width of the interval can end a paired comparison: the spread of fewer
/// pairs is hardly known.
pub const MIN_PAIRS_UNTIL: u32 = 4;

/// Paired comparison of two variants, A and B: the rule that chooses the runs, and the effect on the primary figure.
/// The first configuration of the series is A, the second is B.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PairedComparison {
    /// Figure that the question is about, chosen before the first run.
    pub primary: PrimaryFigure,
    /// Seed of both runs of the first pair; the seed of each later pair is 1 more. The order within the pairs is drawn
    /// from this seed too.
    pub seed: u64,
    /// Variant that runs first in each pair: one entry for each pair of the series, or at most so many pairs if `until`
    /// can end the series earlier.
    pub first: Vec<Side>,
    /// Half-width of the interval of the primary figure's ratio, as a fraction of the ratio, at which the series ends;
    /// null if the number of pairs is fixed.
    pub until: Option<f64>,
    /// Wait before each run for the machine to come to rest; null in virtual time.
    pub settle: Option<SettleRule>,
    /// Effect on the primary figure over the pairs that count: B by A. Null until two pairs count.
    pub effect: Option<PairedRatio>,
}

/// One of the two variants of a paired comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Display)]
pub enum Side {
    /// The first variant, the base of the ratios.
    A,
    /// The second variant.
    B,
}

impl Side {
    /// Both variants, in the order of the configurations.
    pub const BOTH: [Self; 2] = [Self::A, Self::B];

    /// The other variant.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }

    /// Number of the variant's configuration in the series.
    #[must_use]
    pub fn configuration(self) -> u32 {
        match self {
            Self::A => 0,
            Self::B => 1,
        }
    }
}

/// Figure of all operations of a run together, by which variants are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PrimaryFigure {
    /// Operations per second.
    OpsPerS,
    /// Bytes per second.
    BytesPerS,
    /// Mean latency: response time of paced operations, service time of other operations.
    MeanMs,
    /// Percentile of the latency, of those that every run stores.
    Percentile(Percentile),
}

impl PrimaryFigure {
    /// The figure with a name on the command line: `ops/s`, `MiB/s`, `mean`, or a percentile such as `p99`; `None` for
    /// other names, and for a percentile that runs do not store.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        match Figure::of_name(name)? {
            Figure::OpsPerS => Some(Self::OpsPerS),
            Figure::MibPerS => Some(Self::BytesPerS),
            Figure::Mean => Some(Self::MeanMs),
            Figure::Percentile(p) => Percentile::DEFAULT_STORED
                .contains(&p)
                .then_some(Self::Percentile(p)),
            _ => None,
        }
    }

    /// Names of all figures on the command line.
    #[must_use]
    pub fn names() -> Vec<String> {
        let named = [Self::OpsPerS, Self::BytesPerS, Self::MeanMs];
        let percentiles = Percentile::DEFAULT_STORED.map(Self::Percentile);
        let all = named.iter().chain(&percentiles);
        all.map(ToString::to_string).collect()
    }

    /// Whether a greater value is better.
    #[must_use]
    pub fn more_is_better(self) -> bool {
        matches!(self, Self::OpsPerS | Self::BytesPerS)
    }

    /// The figure of a valid run, above 0; `None` for other runs, for a percentile of too few operations, and for a lower
    /// bound.
    #[must_use]
    pub fn of(self, run: &SeriesRun) -> Option<f64> {
        if !run.is_valid() {
            return None;
        }
        let value = match self {
            Self::OpsPerS => Some(run.achieved_ops_per_s),
            Self::BytesPerS => Some(run.bytes_per_s),
            Self::MeanMs => run.mean_ms,
            Self::Percentile(percentile) => {
                let figure = run.percentile(percentile);
                let exact = figure.filter(|f| f.enough_samples && !f.at_least);
                exact.map(|f| f.ms)
            }
        };
        value.filter(|v| v.is_finite() && *v > 0.0)
    }
}

impl fmt::Display for PrimaryFigure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let figure = match *self {
            Self::OpsPerS => Figure::OpsPerS,
            Self::BytesPerS => Figure::MibPerS,
            Self::MeanMs => Figure::Mean,
            Self::Percentile(percentile) => Figure::Percentile(percentile),
        };
        figure.fmt(f)
    }
}

/// The listed runs of a pair.
#[derive(Debug, Clone, Copy)]
pub struct Pair<'a> {
    /// Number of the pair, from 1.
    pub number: u32,
    /// Listed run of variant A; `None` if the run is missing.
    pub a: Option<&'a SeriesRun>,
    /// Listed run of variant B; `None` if the run is missing.
    pub b: Option<&'a SeriesRun>,
}

impl<'a> Pair<'a> {
    /// Listed run of a variant; `None` if the run is missing.
    #[must_use]
    pub fn run(&self, side: Side) -> Option<&'a SeriesRun> {
        match side {
            Side::A => self.a,
            Side::B => self.b,
        }
    }

    /// Both runs of the pair, A before B; `None` if a run is missing.
    #[must_use]
    pub fn runs(&self) -> Option<(&'a SeriesRun, &'a SeriesRun)> {
        self.a.zip(self.b)
    }

    /// Figures of both runs; `None` if the pair does not count, because a run is missing or lacks the figure.
    #[must_use]
    pub fn figures(&self, primary: PrimaryFigure) -> Option<(f64, f64)> {
        let (a, b) = self.runs()?;
        Some((primary.of(a)?, primary.of(b)?))
    }

    /// Reason why a pair with both runs does not count, in a sentence; `None` if the pair counts or a run is missing.
    #[must_use]
    pub fn fault(&self, primary: PrimaryFigure) -> Option<String> {
        let (a, b) = self.runs()?;
        let fault = |(side, run): (Side, &SeriesRun)| {
            if primary.of(run).is_some() {
                return None;
            }
            let reasons: Vec<&str> = run.reasons.iter().map(|r| r.text.as_str()).collect();
            let why = match (run.verdict, reasons.is_empty()) {
                (Verdict::Valid, _) => format!("has no exact {primary} above 0"),
                (verdict, true) => format!("is {verdict}"),
                (verdict, false) => format!("is {verdict} ({})", reasons.join("; ")),
            };
            Some(format!("the run of {side} {why}"))
        };
        let faults = [(Side::A, a), (Side::B, b)].into_iter().filter_map(fault);
        let faults: Vec<String> = faults.collect();
        let number = self.number;
        (!faults.is_empty()).then(|| {
            let faults = faults.join(", and ");
            format!("pair {number} does not count: {faults}")
        })
    }
}

impl PairedComparison {
    /// A paired comparison of at most `pairs` pairs, which the half-width `until` may end earlier; draws the order
    /// within the pairs.
    #[must_use]
    pub fn new(
        primary: PrimaryFigure,
        seed: u64,
        pairs: u32,
        until: Option<f64>,
        settle: Option<SettleRule>,
    ) -> Self {
        let mut rng = Stream::new(seed).named("order within pairs").rng();
        let mut first = Vec::new();
        for _ in 0..pairs.div_ceil(2) {
            let side = Side::BOTH[usize::from(rng.random_bool(0.5))];
            first.extend([side, side.other()]);
        }
        first.truncate(pairs as usize);
        Self {
            primary,
            seed,
            first,
            until,
            settle,
            effect: None,
        }
    }

    /// Number of a run's pair, from 1; 0 for a run whose seed belongs to no pair.
    #[must_use]
    pub fn pair_number(&self, run: &SeriesRun) -> u32 {
        let index = usize::try_from(run.seed.wrapping_sub(self.seed)).ok();
        let index = index.filter(|i| *i < self.first.len());
        index.map_or(0, |i| i as u32 + 1)
    }

    /// The pairs of which a run is listed, in order.
    #[must_use]
    pub fn pairs<'a>(&self, runs: &'a [SeriesRun]) -> Vec<Pair<'a>> {
        let mut pairs: Vec<Pair<'a>> = (1..)
            .zip(&self.first)
            .map(|(number, _)| Pair {
                number,
                a: None,
                b: None,
            })
            .collect();
        for run in runs {
            let Some(index) = self.pair_number(run).checked_sub(1) else {
                continue;
            };
            let pair = &mut pairs[index as usize];
            match run.configuration == Side::A.configuration() {
                true => pair.a = Some(run),
                false => pair.b = Some(run),
            }
        }
        pairs.retain(|pair| pair.a.or(pair.b).is_some());
        pairs
    }

    /// The planned runs of the first `pairs` pairs, in the order in which the series makes the runs.
    fn planned(&self, pairs: usize) -> impl Iterator<Item = NextRun> {
        let first = self.first.iter().take(pairs).enumerate();
        first.flat_map(|(index, first)| {
            [*first, first.other()].map(|side| NextRun {
                configuration: side.configuration(),
                load: None,
                value: None,
                purpose: None,
                seed: self.seed.wrapping_add(index as u64),
                directory: format!("pair-{:02}-{side}", index + 1),
            })
        })
    }

    /// The missing runs of the first `pairs` pairs, in order.
    fn missing(&self, runs: &[SeriesRun], pairs: usize) -> Vec<NextRun> {
        missing_of(self.planned(pairs), runs)
    }

    /// Effect on the primary figure over the pairs that count.
    fn effect_of(&self, runs: &[SeriesRun]) -> Option<PairedRatio> {
        let pairs = self.pairs(runs);
        let counted = pairs.iter().filter_map(|pair| pair.figures(self.primary));
        PairedRatio::of(&counted.collect::<Vec<_>>())
    }

    /// Number of pairs that the series makes as far as the listed runs tell: all pairs, or with `until` the begun pairs
    /// and one more pair if the interval is too wide.
    fn wanted(&self, runs: &[SeriesRun]) -> usize {
        let Some(until) = self.until else {
            return self.first.len();
        };
        let begun = self
            .pairs(runs)
            .last()
            .map_or(0, |pair| pair.number as usize);
        let is_narrow = self
            .effect_of(runs)
            .is_some_and(|effect| effect.pairs >= MIN_PAIRS_UNTIL && effect.half_width() <= until);
        match is_narrow {
            true => begun,
            false => self.first.len().min(begun + 1),
        }
    }
}

impl Strategy for PairedComparison {
    fn next(&self, series: &Series) -> Step {
        // The wanted pairs include all begun pairs, so that a begun pair is completed before the next pair.
        let missing = self.missing(&series.runs, self.wanted(&series.runs));
        match missing.into_iter().next() {
            Some(run) => Step::Run(run),
            None => Step::End(SeriesState::Complete, None),
        }
    }

    fn independent(&self, series: &Series) -> Vec<NextRun> {
        match self.until {
            Some(_) => vec![],
            None => self.missing(&series.runs, self.first.len()),
        }
    }

    fn conclude(&mut self, runs: &[SeriesRun]) {
        self.effect = self.effect_of(runs);
    }

    /// The pairs that count have valid runs only; other pairs do not enter the figures.
    fn is_valid(&self, _: &[SeriesRun]) -> bool {
        self.effect.is_some()
    }

    /// A pair with a failed run does not count, and other pairs may succeed.
    fn ends_with_a_failed_run(&self) -> bool {
        false
    }

    fn settle(&self) -> Option<SettleRule> {
        self.settle
    }

    fn check(&self, series: &Series) -> Result<(), String> {
        let variants = series.configurations.len();
        if variants != Side::BOTH.len() {
            return Err(format!(
                "a paired comparison has 2 configurations, not {variants}"
            ));
        }
        if !(1..=MAX_PAIRS as usize).contains(&self.first.len()) {
            let pairs = counted(self.first.len() as u64, "pair is", "pairs are");
            return Err(format!("{pairs} planned: expected 1 to {MAX_PAIRS}"));
        }
        if let Some(until) = self.until
            && !(until.is_finite() && until > 0.0)
        {
            return Err(format!("the half-width {until} is not a number above 0"));
        }
        if let Some(run) = series.runs.iter().find(|run| self.pair_number(run) == 0) {
            return Err(format!("the run {} has the seed of no pair", run.directory));
        }
        self.settle.map_or(Ok(()), |settle| settle.check())
    }
}

/// A difference between the variants' settings: what differs, and its value for A and for B.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingDifference {
    /// Name of the setting, such as `directory` or `parameter nthreads`.
    pub what: String,
    /// Value of the setting for A.
    pub a: String,
    /// Value of the setting for B.
    pub b: String,
}

impl SeriesOf<'_, PairedComparison> {
    /// Configuration of a variant.
    #[must_use]
    pub fn side(&self, side: Side) -> &Configuration {
        self.configuration(side.configuration())
    }

    /// Whether the variants have the same settings, so that every difference is chance.
    #[must_use]
    pub fn is_like_with_like(&self) -> bool {
        let [a, b] = Side::BOTH.map(|side| self.side(side));
        (&a.plan, &a.target, &a.before) == (&b.plan, &b.target, &b.before)
    }

    /// The settings that differ between the variants; may be empty although the Plans differ, for instance in operations
    /// that a parameter without a name in the Plan changes.
    #[must_use]
    pub fn differences(&self) -> Vec<SettingDifference> {
        let [a, b] = Side::BOTH.map(|side| self.side(side));
        let parameters = a.plan.parameters.iter().map(|parameter| {
            let name = &parameter.name;
            let other = b.plan.parameters.iter().find(|p| p.name == *name);
            let other = other.map_or_else(String::new, |p| p.value.clone());
            (
                format!("parameter {name}"),
                [parameter.value.clone(), other],
            )
        });
        let of = |what: &str, value: fn(&Configuration) -> String| {
            (what.to_owned(), [value(a), value(b)])
        };
        let named = [
            of("target", |c| c.target.url.clone()),
            of("directory", |c| c.plan.work_dir.dir.display().to_string()),
            of("load", |c| {
                let load = c.plan.metric.as_ref().map(|m| m.load);
                load.map_or_else(String::new, |load| load.to_string())
            }),
            of("content", |c| {
                let contents = c.plan.contents().into_iter();
                let contents: Vec<_> = contents.map(|content| content.to_string()).collect();
                contents.join("; ")
            }),
            of("command before each run", |c| c.before.join("; ")),
        ];
        let all = named.into_iter().chain(parameters);
        all.filter(|(_, [a, b])| a != b)
            .map(|(what, [a, b])| SettingDifference { what, a, b })
            .collect()
    }
}
