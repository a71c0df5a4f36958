//! Report on an IO500-style suite: the phases, and the scores with the reasons why a score is invalid.

pub mod files;

use crate::document::{Block, Document, Figure, Line, Table, Tone};
use crate::format::duration_text;
use crate::percentiles::{PercentileKind, bounded, shown};
use crate::series::{append, remarks, state};
use plimsoll_plan::ScoreGroup;
use plimsoll_results::{
    Percentile, PhaseResult, SeriesOf, SeriesRun, Suite, SuitePhase, SuiteScore, suite_figure,
};

/// Explanation below the heading of the table of phases.
const ABOUT: &str = "The figure of a phase is over the time of the slowest rank. From memory is the share of the bytes \
                     read that the client's own memory served. The verdict is Plimsoll's own, on the run of the phase; \
                     a phase counts in the score unless the last column has a mark.";

/// Statement that every report on a suite has once.
const STYLE: &str = "IO500-style, not an IO500 result";

/// Mark of an invalid phase or score.
const INVALID: &str = " [INVALID]";

/// Report on a suite: scores, and a table of the phases.
#[must_use]
pub fn document(of: SeriesOf<'_, Suite>) -> Document {
    let suite = of.figures;
    let (words, mut tone) = state(&of);
    let counts = suite.score.as_ref().map(SuiteScore::is_valid);
    let state = match counts {
        Some(true) => format!("{words}, valid"),
        Some(false) => format!("{words}, invalid"),
        None => {
            let all = suite.run_phases().count();
            format!("{words}, {} of {all} phases", of.measured().count())
        }
    };
    if counts == Some(false) {
        tone = Tone::Doubtful;
    }
    let title = format!("{}, {} mode", suite.file, suite.mode());
    let mut document = Document::new(title, state, tone);
    document.head = head(of);
    document.section("score", "Score", score(suite));
    let table = Block::table(table(of));
    let reasons = suite.results.iter().flat_map(|result| {
        let reasons = result.reasons.iter();
        reasons.map(|reason| Line::of(&result.name, reason))
    });
    let phases: Vec<Block> = table
        .into_iter()
        .chain(reasons)
        .chain(repeated(of))
        .chain(remarks(&of))
        .collect();
    document.explained_section("phases", "Phases", ABOUT, phases);
    append(&mut document, &of);
    document
}

fn head(of: SeriesOf<'_, Suite>) -> Vec<Block> {
    let suite = of.figures;
    let mut head: Vec<Block> = vec![Block::sentence(STYLE)];
    head.extend(Block::reasons(of.stop_reason.as_slice()));
    let facts = vec![
        Figure::new("data", &suite.data_dir),
        Figure::new("target", &suite.target),
        Figure::count(suite.pattern_ranks.into(), "rank", "ranks"),
        Figure::new("stonewall", duration_text(suite.stonewall_s)),
        Figure::time("started", &of.started_at),
        Figure::new(&of.program.name, &of.program.version),
    ];
    head.push(Block::facts(facts));
    head.extend(Block::notes(&of.notes));
    head.extend(of.unremoved.iter().map(|text| Line::of("note", text)));
    head
}

fn score(suite: &Suite) -> Vec<Block> {
    let mut blocks = Vec::new();
    for (tag, score) in scores(suite) {
        blocks.push(Line::code("", score_line(tag, score)));
        let own = score
            .reasons
            .iter()
            .filter(|text| suite.reasons.contains(text));
        blocks.extend(own.map(|text| Line::nested("invalid", text)));
    }
    blocks
}

/// The scores of a suite, each with IO500's tag.
fn scores(suite: &Suite) -> impl Iterator<Item = (&'static str, &SuiteScore)> {
    let scores = [("SCORE ", &suite.score), ("SCOREX", &suite.extended_score)];
    scores
        .into_iter()
        .filter_map(|(tag, score)| Some((tag, score.as_ref()?)))
}

/// Line of a score in IO500's form.
fn score_line(tag: &str, score: &SuiteScore) -> String {
    let [bandwidth, metadata, total] =
        [score.bandwidth, score.metadata, score.total].map(suite_figure);
    let mark = if score.is_valid() { "" } else { INVALID };
    format!("[{tag}] Bandwidth {bandwidth} GiB/s : IOPS {metadata} kiops : TOTAL {total}{mark}")
}

/// Line of a phase in IO500's form.
fn result_line(phase: &SuitePhase, result: &PhaseResult) -> String {
    let tag = match phase.group {
        ScoreGroup::Unscored => "[      ]",
        ScoreGroup::Metadata | ScoreGroup::Bandwidth => "[RESULT]",
    };
    let mark = if result.reasons.is_empty() {
        ""
    } else {
        INVALID
    };
    format!(
        "{tag} {:>20} {:>15} {} : time {:.3} seconds{mark}",
        phase.name,
        suite_figure(result.figure),
        phase.unit(),
        result.time_s
    )
}

/// One line on the completed phase with the number `number` among the runs, from 0.
#[must_use]
pub fn line(of: SeriesOf<'_, Suite>, number: usize) -> String {
    let run = &of.runs[number];
    let found = of.figures.phase_of(run.configuration);
    let result = found.and_then(|(at, phase)| Some((phase, of.figures.results.get(at)?)));
    match result {
        Some((phase, result)) => result_line(phase, result),
        None => format!("{}: {}", run.directory, run.verdict),
    }
}

fn table(of: SeriesOf<'_, Suite>) -> Table {
    let head = "phase|figure|unit|time|p50|p99|max|from memory|stalls|verdict|score";
    let suite = of.figures;
    let rows = suite.phases.iter().zip(&suite.results);
    let rows = rows.map(|(phase, result)| {
        let run = suite.run_of(&phase.name, &of.series.runs);
        let percentile = |at| {
            let figure = run.and_then(|run: &SeriesRun| run.percentile(at));
            shown(figure, PercentileKind::Latency)
        };
        let figures = run.and_then(|run| run.phase.as_ref());
        let max = run.and_then(|run| Some(bounded(run.max_ms?, run.max_at_least)));
        let share = figures.and_then(|figures| figures.hit_ratio);
        let counts = match (phase.group, result.reasons.is_empty()) {
            (_, false) => "invalid",
            (ScoreGroup::Unscored, true) => "none",
            (ScoreGroup::Bandwidth, true) => "bandwidth",
            (ScoreGroup::Metadata, true) => "metadata",
        };
        vec![
            phase.name.clone(),
            suite_figure(result.figure),
            phase.unit().into(),
            duration_text(result.time_s),
            percentile(Percentile::P50),
            percentile(Percentile::P99),
            max.unwrap_or("-".into()),
            share.map_or("-".into(), |share| format!("{:.0} %", share * 100.0)),
            figures.map_or("-".into(), |figures| figures.stalls.to_string()),
            run.map_or("not run".into(), |run| run.verdict.to_string()),
            counts.into(),
        ]
    });
    Table::new("Phases", head.split('|')).with_rows(rows)
}

/// A line for each phase whose files were made again.
fn repeated(of: SeriesOf<'_, Suite>) -> impl Iterator<Item = Block> {
    let phases = of.figures.phases.iter().enumerate();
    let repeated = phases.filter(move |(at, phase)| of.is_repeated(*at) && phase.runs());
    repeated.map(|(_, phase)| {
        let text = "an earlier attempt did not end: the phase began again, on new files";
        Line::of(&phase.name, text)
    })
}
