//! Report on a paired comparison: the answer in a sentence, and the effect on every figure.

use crate::compare::{ALL, Effect, Metric, PairedEffects, letter, note_on_real, of_pairs};
use crate::document::{self, Block, Cell, Document, Figure, Line, Table, Tone};
use crate::format::precise_percent;
use crate::html::chart::Chart;
use crate::series::{self, append, rate_and_mean, runs, settled, state};
use crate::text::reason_codes;
use plimsoll_measure::compare::{FALSE_DISCOVERY_RATE, PairedRatio};
use plimsoll_plan::{counted, scaled};
use plimsoll_results::{
    PairedComparison, Percentiles, PrimaryFigure, ResultsError, Run, RunDir, SeriesDir, SeriesOf,
    SeriesRun, Side,
};

/// Explanation below the heading of the effects.
const ABOUT: &str = "A ratio is the geometric mean of the ratios within the pairs, B by A. Interval and test are \
                     Student's t on the logarithms of the ratios.";

/// Reads the runs of the pairs that count, with the requested percentiles, and compares the runs.
///
/// # Errors
/// An error if a run cannot be read.
pub fn read_effects(
    of: SeriesOf<'_, PairedComparison>,
    dir: &SeriesDir,
    percentiles: Option<&Percentiles>,
) -> Result<PairedEffects, ResultsError> {
    let runs = read_pairs(of, dir, |run| run.read_with(percentiles))?;
    Ok(effects_of(&runs, of.figures.primary, percentiles))
}

/// Compares runs in pairs, with the requested percentiles, which the runs must have.
pub(crate) fn effects_of(
    runs: &[(Run, Run)],
    primary: PrimaryFigure,
    percentiles: Option<&Percentiles>,
) -> PairedEffects {
    let pairs: Vec<(&Run, &Run)> = runs.iter().map(|(a, b)| (a, b)).collect();
    of_pairs(&pairs, metric(primary), percentiles)
}

/// Reads both runs of each pair that counts, A before B, with `read`.
pub(crate) fn read_pairs<T>(
    of: SeriesOf<'_, PairedComparison>,
    dir: &SeriesDir,
    read: impl Fn(&RunDir) -> Result<T, ResultsError>,
) -> Result<Vec<(T, T)>, ResultsError> {
    let mut pairs = Vec::new();
    for pair in of.figures.pairs(&of.runs) {
        if pair.figures(of.figures.primary).is_none() {
            continue;
        }
        let (a, b) = pair.runs().expect("a pair with figures has runs");
        // Plimsoll writes no run outside of the directory of its series.
        if let (Some(a), Some(b)) = (dir.run(a), dir.run(b)) {
            pairs.push((read(&a)?, read(&b)?));
        }
    }
    Ok(pairs)
}

/// The compared figure of the tables that is the primary figure.
pub(crate) fn metric(primary: PrimaryFigure) -> Metric {
    match primary {
        PrimaryFigure::OpsPerS => Metric::OpsPerS,
        PrimaryFigure::BytesPerS => Metric::MibPerS,
        PrimaryFigure::MeanMs => Metric::MeanMs,
        PrimaryFigure::Percentile(percentile) => Metric::PercentileMs(percentile),
    }
}

/// The primary figure in the unit of the tables.
fn in_unit(primary: PrimaryFigure, value: f64) -> f64 {
    match primary {
        PrimaryFigure::BytesPerS => value / crate::format::MIB,
        _ => value,
    }
}

/// The report on a paired comparison, with its charts.
#[must_use]
pub fn document(
    of: SeriesOf<'_, PairedComparison>,
    effects: &PairedEffects,
    charts: Vec<Chart>,
) -> Document {
    let (state, tone) = state(&of);
    let pairs = of.figures.pairs(&of.runs);
    let counting = pairs
        .iter()
        .filter(|p| p.figures(of.figures.primary).is_some());
    let state = format!(
        "{state}, {} of {} counted",
        counting.count(),
        counted(pairs.len() as u64, "pair", "pairs")
    );
    let tone = match (tone, of.figures.effect) {
        (Tone::Good, None) => Tone::Doubtful,
        _ => tone,
    };
    let mut document = Document::new(format!("{}, A against B", of.name), state, tone);
    document.head = head(of, effects);
    let faults = pairs.iter().filter_map(|p| p.fault(of.figures.primary));
    document.head.extend(faults.map(Block::warning));
    document.head.extend(circumstances(of));
    let (main, others) = effect_tables(of, effects);
    document.explained_section("effects", "Effects", ABOUT, main);
    document.section("charts", "Effects and distributions", Block::charts(charts));
    document.section("other-effects", "Effects on other figures", others);
    let table = runs(
        &of,
        "Runs, in their order",
        &["run", "pair", "variant", "verdict"],
        |number, run| {
            vec![
                number.to_string(),
                of.figures.pair_number(run).to_string(),
                variant(run),
                run.verdict.to_string(),
            ]
        },
    );
    let settled = settled(&of, |_, run| {
        let pair = of.figures.pair_number(run);
        format!("before pair {pair}, {}", variant(run))
    });
    document.section(
        "runs",
        "Runs",
        Block::table(table).into_iter().chain(settled).collect(),
    );
    append(&mut document, &of);
    document
}

/// The answer, and warnings about its limits.
fn head(of: SeriesOf<'_, PairedComparison>, effects: &PairedEffects) -> Vec<Block> {
    let mut head = vec![Block::sentence(answer(of, effects))];
    head.extend(Block::reasons(of.stop_reason.as_slice()));
    head.extend(series::qualifiers(&of));
    if of.is_like_with_like() {
        head.push(Block::sentence(
            "like against like: A and B have the same settings, so that every difference is chance",
        ));
    }
    if !of.is_comparable() {
        head.push(Block::warning(scaled(of.scale())));
    }
    if let (Some(until), Some(effect)) = (of.figures.until, of.figures.effect)
        && effect.half_width() > until
    {
        head.push(Block::warning(format!(
            "the interval reaches {} above the ratio; {} were requested",
            precise_percent(effect.half_width()),
            precise_percent(until)
        )));
    }
    head
}

/// The variants and their differences, and facts about the series.
fn circumstances(of: SeriesOf<'_, PairedComparison>) -> Vec<Block> {
    let mut blocks = Vec::new();
    for difference in of.differences() {
        let (a, b) = (&difference.a, &difference.b);
        blocks.push(Line::of(difference.what, format!("A: {a}; B: {b}")));
    }
    let requested = match of.figures.until {
        None => counted(of.figures.first.len() as u64, "pair", "pairs"),
        Some(until) => format!("an interval of ±{}", precise_percent(until)),
    };
    let own = [
        Figure::new("primary figure", of.figures.primary.to_string()),
        Figure::new("seed of the order", of.figures.seed.to_string()),
    ];
    blocks.extend(series::facts(&of, requested, "in each run", own));
    blocks
}

/// The answer in a sentence: the ratio of the primary figure with its interval, or the size of a difference that would
/// have been found; then the largest real change of a latency.
fn answer(of: SeriesOf<'_, PairedComparison>, effects: &PairedEffects) -> String {
    let primary = metric(of.figures.primary);
    let Some(effect) = of.figures.effect else {
        return format!(
            "no answer: {} of B by A is not known, because fewer than two pairs count",
            primary.title()
        );
    };
    let first = primary_answer(primary, &effect);
    match largest_latency_change(primary, effects) {
        Some(change) => format!("{first}; {change}"),
        None => first,
    }
}

fn primary_answer(primary: Metric, effect: &PairedRatio) -> String {
    let figure = primary.title();
    let pairs = counted(effect.pairs.into(), "pair", "pairs");
    let interval = interval(effect);
    if effect.is_significant() {
        let ratio = ratio_text(effect, effect.ratio);
        let what = match primary {
            Metric::OpsPerS => format!("B is {ratio} times as fast as A"),
            _ => format!("{figure} of B is {ratio} times that of A"),
        };
        return format!("{what} (95 % interval {interval}, {pairs})");
    }
    let largest = precise_percent(effect.largest_difference());
    let detectable = precise_percent(effect.detectable);
    format!(
        "no difference of {figure} larger than {largest} was found (95 % interval of the ratio {interval}); {pairs} would \
         have shown one of {detectable}"
    )
}

/// The largest real change of a percentile of the latency, or else of a mean latency, other than the primary figure, in
/// words.
fn largest_latency_change(primary: Metric, effects: &PairedEffects) -> Option<String> {
    let size = |row: &&Effect| row.ratio.ratio.ln().abs();
    let largest = |is_it: fn(Metric) -> bool| {
        let rows = effects.rows.iter();
        let real = rows.filter(|row| row.is_real && is_it(row.metric));
        real.filter(|row| row.operation != ALL || row.metric != primary)
            .max_by(|a, b| size(a).total_cmp(&size(b)))
    };
    let row = largest(|m| matches!(m, Metric::PercentileMs(_)))
        .or_else(|| largest(|m| m == Metric::MeanMs))?;
    let of = match row.operation == ALL {
        true => "all operations".to_owned(),
        false => format!("`{}`", row.operation),
    };
    let verb = if row.ratio.ratio > 1.0 {
        "rises"
    } else {
        "falls"
    };
    let (a, b) = row.means;
    let (a, b) = (row.metric.show(a), row.metric.show(b));
    Some(format!(
        "{} of {of} {verb} from {a} to {b}",
        row.metric.title()
    ))
}

/// A ratio with as many decimals as the width of its interval justifies, and none from 100 on.
fn ratio_text(effect: &PairedRatio, ratio: f64) -> String {
    let half = effect.ratio * effect.half_width();
    let decimals = match half > 0.0 {
        _ if ratio >= 100.0 => 0,
        true => (-half.log10()).ceil().clamp(2.0, 4.0) as usize,
        false => 2,
    };
    format!("{ratio:.decimals$}")
}

fn interval(effect: &PairedRatio) -> String {
    let [low, high] = [effect.interval.0, effect.interval.1].map(|r| ratio_text(effect, r));
    format!("{low} to {high}")
}

/// The table of the primary figure; a table for each other figure, and sentences on the tests.
fn effect_tables(
    of: SeriesOf<'_, PairedComparison>,
    effects: &PairedEffects,
) -> (Vec<Block>, Vec<Block>) {
    let (mut main, mut blocks): (Vec<Block>, Vec<Block>) = (vec![], vec![]);
    for shown in effects.metrics() {
        let title = shown.title();
        let head = [
            &title,
            &letter(0),
            &letter(1),
            "B / A",
            "95 % interval",
            "p",
            "pairs",
        ];
        let mut table = Table::new(&title, head);
        let rows = effects.rows.iter().filter(|row| row.metric == shown);
        table.rows.extend(rows.map(row));
        match shown == metric(of.figures.primary) {
            true => main.extend(Block::table(table)),
            false => blocks.extend(Block::table(table)),
        }
    }
    if main.is_empty() && blocks.is_empty() {
        return (main, blocks);
    }
    let primary = metric(of.figures.primary).title();
    let percent = 100.0 * FALSE_DISCOVERY_RATE;
    blocks.push(Block::sentence(format!(
        "the primary figure, {primary} of all operations, was chosen before the runs and is tested by itself (paired t-test \
         of the logarithms, 5 %)"
    )));
    if effects.tested > 0 {
        let figures = counted(
            effects.tested as u64,
            "other figure was",
            "other figures were",
        );
        blocks.push(Block::sentence(format!(
            "{figures} tested with a false discovery rate of {percent} % for all of them together (Benjamini-Hochberg)"
        )));
    }
    if effects.rows.iter().any(|row| row.is_real) {
        blocks.push(Block::sentence(note_on_real()));
    }
    (main, blocks)
}

fn row(effect: &Effect) -> document::Row {
    let (a, b) = effect.means;
    let show = |value| effect.metric.show(value);
    let ratio = &effect.ratio;
    let mark = if effect.is_real { " *" } else { "" };
    let p = match ratio.p {
        p if p < 0.001 => "< 0.001".to_owned(),
        p => format!("{p:.3}"),
    };
    let changed = Cell {
        text: format!("{}{mark}", ratio_text(ratio, ratio.ratio)),
        tone: match (effect.is_real, effect.is_better()) {
            (true, true) => Tone::Good,
            (true, false) => Tone::Bad,
            (false, _) => Tone::Plain,
        },
    };
    let plain = |text: String| Cell::from(text);
    document::Row {
        cells: vec![
            plain(effect.operation.clone()),
            plain(show(a)),
            plain(show(b)),
            changed,
            plain(interval(ratio)),
            plain(p),
            plain(ratio.pairs.to_string()),
        ],
        nested: false,
    }
}

/// Variant of a run, as a letter.
fn variant(run: &SeriesRun) -> String {
    letter(run.configuration as usize)
}

/// One line on a completed run; `number` is its index in the document, from 0.
#[must_use]
pub fn line(of: SeriesOf<'_, PairedComparison>, number: usize) -> String {
    let run = &of.runs[number];
    let pairs = match of.figures.until {
        None => format!(" of {}", of.figures.first.len()),
        Some(_) => String::new(),
    };
    let line = format!(
        "pair {}{pairs}, {}: {}: {}{}",
        of.figures.pair_number(run),
        variant(run),
        rate_and_mean(run),
        run.verdict,
        reason_codes(&run.reasons)
    );
    // The ratio so far tells the user whether more pairs are needed.
    let pairs = of.figures.pairs(&of.runs[..=number]);
    let so_far: Vec<(f64, f64)> = pairs
        .iter()
        .filter_map(|p| p.figures(of.figures.primary))
        .collect();
    let completes = pairs.iter().any(|p| {
        p.number == of.figures.pair_number(run) && p.figures(of.figures.primary).is_some()
    });
    match PairedRatio::of(&so_far).filter(|_| completes) {
        Some(effect) => format!(
            "{line}; B / A {} ({}) so far",
            ratio_text(&effect, effect.ratio),
            interval(&effect)
        ),
        None => line,
    }
}

/// Values of the primary figure by variant, in the order of the runs; `None` for a run of the other variant and for a run
/// without the figure.
pub(crate) fn primary_in_order(of: SeriesOf<'_, PairedComparison>, side: Side) -> Vec<Option<f64>> {
    let primary = of.figures.primary;
    let of_side = |run: &SeriesRun| {
        let value = primary
            .of(run)
            .filter(|_| run.configuration == side.configuration());
        value.map(|v| in_unit(primary, v))
    };
    of.runs.iter().map(of_side).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effect(pairs: &[(f64, f64)]) -> PairedRatio {
        PairedRatio::of(pairs).unwrap()
    }

    #[test]
    fn a_real_difference_is_stated_with_its_interval() {
        let pairs = [
            (100.0, 128.0),
            (100.0, 130.0),
            (100.0, 129.0),
            (100.0, 129.5),
        ];
        let said = primary_answer(Metric::OpsPerS, &effect(&pairs));
        assert_eq!(
            said,
            "B is 1.29 times as fast as A (95 % interval 1.28 to 1.30, 4 pairs)"
        );
        let p99 = Metric::of_name("p99").unwrap();
        let said = primary_answer(p99, &effect(&pairs));
        assert!(
            said.starts_with("p99 latency of B is 1.29 times that of A ("),
            "{said}"
        );
    }

    #[test]
    fn without_a_difference_the_detectable_one_is_stated() {
        let pairs = [(100.0, 103.0), (100.0, 98.0), (100.0, 101.0), (100.0, 97.0)];
        let said = primary_answer(Metric::OpsPerS, &effect(&pairs));
        // Logarithms 0.02956, -0.02020, 0.00995, -0.03046 with mean -0.00279, standard error 0.01377, and quantiles of
        // Student's t with three degrees of freedom 3.182 and 0.978: -0.0466 to 0.0410, and 0.0573 detectable.
        let expected = "no difference of ops/s larger than 4.6 % was found (95 % interval of the ratio 0.95 to 1.04); 4 \
                        pairs would have shown one of 5.9 %";
        assert_eq!(said, expected);
    }

    #[test]
    fn a_ratio_has_the_decimals_that_its_interval_justifies() {
        let narrow = effect(&[(1000.0, 1002.0), (1000.0, 1002.4), (1000.0, 1002.2)]);
        assert_eq!(ratio_text(&narrow, narrow.ratio), "1.0022");
        let equal = effect(&[(1.0, 2.0), (2.0, 4.0)]);
        assert_eq!(interval(&equal), "2.00 to 2.00");
        assert_eq!(
            [
                precise_percent(0.125),
                precise_percent(0.031),
                precise_percent(0.0004)
            ],
            ["12 %", "3.1 %", "0.04 %"]
        );
    }
}
