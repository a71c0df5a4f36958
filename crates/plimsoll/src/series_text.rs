//! Texts that `curve`, `find`, `ab`, `profile`, `io500`, `resume` and `run --repeat` print: first line, a line per run, and the
//! report.

use crate::console_host::{files_of, ranks_of};
use crate::exit::CommandError;
use crate::io500;
use plimsoll_plan::{Bytes, counted, show_duration};
use plimsoll_report::compare::{self, ProfileSet, of_profiles};
use plimsoll_report::html::page;
use plimsoll_report::series::document;
use plimsoll_report::terminal::{self, Layout};
use plimsoll_report::{
    ab, clock_note, curve, duration_text, find, precise_percent, profile, repeats, suite, sweep,
};
use plimsoll_results::{
    COMPARISON_FILE, LoadCurve, LoadSearch, NextRun, PairedComparison, Profile, ResultsError,
    Series, SeriesKind, SeriesOf, SeriesWriter, Suite, Sweep,
};
use std::time::Duration;

/// Origin of a run, which decides the form of the run's line in the output of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunLine {
    /// Run that this process, or a child process of `--jobs`, has made.
    New,
    /// Run that was made before `resume` continued the series.
    Earlier,
}

/// First line about a series, printed before its runs: the planned runs or loads, and their approximate duration.
pub fn headline(series: &Series, jobs: usize) -> String {
    match &series.kind {
        SeriesKind::Repeats(repeats) => {
            let runs = counted(u64::from(repeats.requested_runs), "run", "runs");
            format!("{}: {runs} with seeds that follow each other", series.name)
        }
        SeriesKind::Curve(figures) => curve_headline(SeriesOf { series, figures }, jobs),
        SeriesKind::Search(figures) => search_headline(SeriesOf { series, figures }),
        SeriesKind::Profile(figures) => profile_headline(SeriesOf { series, figures }),
        SeriesKind::Ab(figures) => paired_headline(SeriesOf { series, figures }),
        SeriesKind::Sweep(figures) => sweep_headline(SeriesOf { series, figures }, jobs),
        SeriesKind::Suite(figures) => suite_headline(SeriesOf { series, figures }),
    }
}

/// Line of the run with index `number`, from 0.
pub fn line(series: &Series, number: usize, how: RunLine) -> String {
    let run = &series.runs[number];
    let line = match &series.kind {
        SeriesKind::Repeats(figures) => repeats::line(SeriesOf { series, figures }, number),
        SeriesKind::Curve(_) => curve::line(run),
        SeriesKind::Search(_) => find::line(series, number + 1, run),
        SeriesKind::Profile(figures) => profile::line(SeriesOf { series, figures }, number),
        SeriesKind::Ab(figures) => ab::line(SeriesOf { series, figures }, number),
        SeriesKind::Sweep(figures) => sweep::line(SeriesOf { series, figures }, number),
        SeriesKind::Suite(figures) => suite::line(SeriesOf { series, figures }, number),
    };
    match how {
        RunLine::New => line,
        RunLine::Earlier => format!("{line} (measured before)"),
    }
}

/// Report on a series that has ended. For a profile, also writes the page that compares the file systems; for a
/// suite, the files in IO500's forms.
///
/// # Errors
/// If runs cannot be read, or the page cannot be written.
pub fn report(writer: &SeriesWriter, layout: Layout) -> Result<String, CommandError> {
    render(writer, layout).map_err(CommandError::failed)
}

fn render(writer: &SeriesWriter, layout: Layout) -> Result<String, ResultsError> {
    let (series, dir) = (writer.series(), writer.dir());
    io500::finish(writer)?;
    if let Some(profile) = series.as_profile() {
        let sets = ProfileSet::read(profile, dir, None)?;
        if sets.len() > 1 {
            let comparison = compare::document(&of_profiles(&sets, None));
            writer.write(COMPARISON_FILE, &page::report(&[comparison]))?;
        }
    }
    Ok(terminal::render(&document(series, dir)?, layout))
}

fn scaled(series: &Series) -> &'static str {
    if series.is_comparable() {
        ""
    } else {
        " (scaled: not comparable)"
    }
}

fn curve_headline(curve: SeriesOf<'_, LoadCurve>, jobs: usize) -> String {
    let left = curve.kind.strategy().independent(&curve);
    let left: Vec<u64> = left.into_iter().filter_map(|run| run.load).collect();
    let count = counted(left.len() as u64, "load point", "load points");
    let count = if left.len() == curve.figures.loads.len() {
        count
    } else {
        format!("{count} left")
    };
    let range = match left[..] {
        [] => String::new(),
        [only] => format!(" at {only} {}", curve.metric_name()),
        [first, .., last] => format!(" from {first} to {last} {}", curve.metric_name()),
    };
    let (plan, target) = (curve.first_plan(), &curve.first_target().url);
    let filling = if plimsoll_target::keeps_files(target) {
        let data = curve
            .metric()
            .map_or(0.0, |m| m.data as f64 * m.load as f64 * m.scale);
        format!(" and what making {} takes", Bytes(data.round() as u64))
    } else {
        String::new()
    };
    let jobs = at_a_time(jobs, left.len(), "points");
    let (warmup_s, window_s) = curve.times_s();
    format!(
        "{}{}: {count}{range}, each {} of warm-up and {} measured: about {}{}{filling}; {}, target {target}{}{jobs}",
        curve.name,
        scaled(&curve),
        duration_text(warmup_s),
        duration_text(window_s),
        duration_text((warmup_s + window_s) * left.len() as f64),
        clock_note(curve.clock),
        files_of(plan, target),
        ranks_of(curve.ranks),
    )
}

/// Words on the number of runs that are made at the same time; empty for one run at a time.
fn at_a_time(jobs: usize, left: usize, runs: &str) -> String {
    match jobs.min(left) {
        0 | 1 => String::new(),
        n => format!(", {n} {runs} at a time"),
    }
}

fn search_headline(search: SeriesOf<'_, LoadSearch>) -> String {
    let rules = &search.figures.rules;
    let made = match search.runs.len() {
        0 => String::new(),
        n => format!(", {n} of them made before"),
    };
    let target = &search.first_target().url;
    let (warmup_s, window_s) = search.times_s();
    let first = match search.searched() {
        None => rules.start_load.to_string(),
        Some(parameter) => parameter.configuration(rules.start_load),
    };
    let most = rules.max_load.map(|max| search.load_words(max));
    let most = most.map_or_else(String::new, |max| format!(" up to {max}"));
    format!(
        "{}{}: the load line from {first}{most}, at most {} runs{made}, each {} of warm-up and {} \
         measured{}; {}, target {target}{}",
        search.name,
        scaled(&search),
        rules.max_runs,
        duration_text(warmup_s),
        duration_text(window_s),
        clock_note(search.clock),
        files_of(search.first_plan(), target),
        ranks_of(search.ranks),
    )
}

fn sweep_headline(sweep: SeriesOf<'_, Sweep>, jobs: usize) -> String {
    let missing = sweep.kind.strategy().independent(&sweep).len();
    let runs = counted(missing as u64, "run", "runs");
    let left = if missing == sweep.configurations.len() {
        ""
    } else {
        " left"
    };
    let parameters = sweep.figures.parameters.iter();
    let parameters: Vec<String> = parameters
        .map(|p| format!("{}={}", p.name, p.values.join(",")))
        .collect();
    let jobs = at_a_time(jobs, missing, "runs");
    format!(
        "{}{}: {runs}{left} over {}: about {}{} plus the time to create the files; {}, target {}{}{jobs}",
        sweep.name,
        scaled(&sweep),
        parameters.join(" "),
        show_duration(missing_length(&sweep)),
        clock_note(sweep.clock),
        files_of(sweep.first_plan(), &sweep.first_target().url),
        sweep.first_target().url,
        ranks_of(sweep.ranks),
    )
}

fn suite_headline(suite: SeriesOf<'_, Suite>) -> String {
    let figures = suite.figures;
    let left = figures.run_phases().count() - suite.runs.len();
    let phases = counted(left as u64, "phase", "phases");
    let left = if suite.runs.is_empty() { "" } else { " left" };
    let files = match plimsoll_target::keeps_files(&figures.target) {
        true => format!("files in {} (removed afterwards)", figures.data_dir),
        false => "no files".into(),
    };
    format!(
        "{}, {} mode, IO500-style, not an IO500 result: {phases}{left}, stonewall {}{}; {files}, target {}{}",
        figures.file,
        figures.mode(),
        duration_text(figures.stonewall_s),
        clock_note(suite.clock),
        figures.target,
        ranks_of(figures.pattern_ranks),
    )
}

fn profile_headline(profile: SeriesOf<'_, Profile>) -> String {
    let missing = profile.kind.strategy().independent(&profile);
    let runs = if missing.len() as u64 == profile.requested_runs() {
        let configurations = counted(profile.configurations.len() as u64, "run", "runs");
        let each = match profile.figures.repeat {
            1 => String::new(),
            n => format!(", each {n} times"),
        };
        format!(
            "{configurations} on {}{each}",
            profile.filesystems().join(", ")
        )
    } else {
        let runs = counted(missing.len() as u64, "run", "runs");
        format!("{runs} left on {}", profile.filesystems().join(", "))
    };
    format!(
        "profile {}: {runs}: about {}{} plus the time to create the files",
        profile.name,
        show_duration(missing_length(&profile)),
        clock_note(profile.clock),
    )
}

fn paired_headline(of: SeriesOf<'_, PairedComparison>) -> String {
    let pairs = counted(of.figures.first.len() as u64, "pair", "pairs");
    let (pairs, total) = match of.figures.until {
        None => {
            let length = show_duration(missing_length(&of));
            (
                pairs,
                format!(", together about {length}{}", clock_note(of.clock)),
            )
        }
        Some(until) => (
            format!(
                "at most {pairs}, until the interval is ±{}",
                precise_percent(until)
            ),
            String::new(),
        ),
    };
    let made = match of.runs.len() {
        0 => String::new(),
        n => format!(", {} made before", counted(n as u64, "run", "runs")),
    };
    let alike = match of.is_like_with_like() {
        true => " (like against like)",
        false => "",
    };
    let (warmup_s, window_s) = of.times_s();
    format!(
        "{}{}: A against B{alike}, {pairs} of runs{made}, each run {} of warm-up and {} measured{total}; primary figure {}, \
         order within the pairs from seed {}{}",
        of.name,
        scaled(&of),
        duration_text(warmup_s),
        duration_text(window_s),
        of.figures.primary,
        of.figures.seed,
        ranks_of(of.ranks),
    )
}

/// Sum of the warm-up and measured times of all runs that a series still has to make; only for series whose runs do not
/// depend on each other.
pub fn missing_length(series: &Series) -> Duration {
    let missing = series.kind.strategy().independent(series);
    let of_one = |run: &NextRun| {
        let (warmup, time) = series.configuration(run.configuration).plan.times();
        warmup + time
    };
    missing.iter().map(of_one).sum()
}
