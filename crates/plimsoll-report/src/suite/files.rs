//! The files of a suite in IO500's forms, which programs of IO500's users read.

use super::{STYLE, result_line, score_line, scores};
use plimsoll_measure::RankStage;
use plimsoll_plan::hash::PairHash;
use plimsoll_plan::{Plan, ScoreGroup};
use plimsoll_results::{
    PhaseFigures, PhaseResult, Run, SeriesOf, SeriesRun, Stage, Suite, SuitePhase, SuiteScore,
    per_second, suite_figure,
};
use std::fmt::Write;

/// Name of the file with a line for each phase and score.
pub const SUMMARY_FILE: &str = "result_summary.txt";

/// Name of the file with a section for each phase and score.
pub const RESULT_FILE: &str = "result.txt";

/// Name of the file with the complete configuration.
pub const CONFIG_FILE: &str = "config.ini";

/// Name of the file with the text of the configuration file.
pub const ORIGINAL_FILE: &str = "config-orig.ini";

/// Name of IO500's phase that only takes the time, after the easy writing phases.
const TIMESTAMP: &str = "timestamp";

/// Phases that follow IO500's time stamp: the first in the extended mode, the second in the standard mode.
const FIRST_AFTER_TIMESTAMP: [&str; 2] = ["find-easy", "ior-hard-write"];

/// Columns of mdtest's file for each rank, without the columns of the rank and the number of items.
const MDTEST_COLUMNS: [&str; 11] = [
    "Directory creation",
    "Directory stat",
    "Directory read",
    "Directory rename",
    "Directory removal",
    "File creation",
    "File stat",
    "File read",
    "File removal",
    "Tree creation",
    "Tree removal",
];

/// Phases that have ended, each with its result, and whether IO500's time stamp precedes the phase.
fn ended(suite: &Suite) -> impl Iterator<Item = (bool, &SuitePhase, &PhaseResult)> {
    let first = |p: &&SuitePhase| FIRST_AFTER_TIMESTAMP.contains(&p.name.as_str());
    let first = suite.phases.iter().find(first).map(|p| p.name.as_str());
    let both = suite.phases.iter().zip(&suite.results);
    both.map(move |(phase, result)| (first == Some(phase.name.as_str()), phase, result))
}

/// Contents of `result_summary.txt`.
#[must_use]
pub fn summary(suite: &Suite) -> String {
    let mut out = format!("{STYLE}: {} ({})\n", suite.version, suite.mode());
    for (is_after_timestamp, phase, result) in ended(suite) {
        if is_after_timestamp {
            let zero = suite_figure(0.0);
            let line = format!("[      ] {TIMESTAMP:>20} {zero:>15} kIOPS : time 0.000 seconds\n");
            out.push_str(&line);
        }
        out.push_str(&result_line(phase, result));
        out.push('\n');
    }
    for (tag, score) in scores(suite) {
        out.push_str(&score_line(tag, score));
        out.push('\n');
    }
    out
}

/// Appends a line `key = value` in IO500's form.
fn pair(out: &mut String, key: &str, value: impl std::fmt::Display) {
    writeln!(out, "{key:<15} = {value}").expect("writing to a string does not fail");
}

/// Contents of `result.txt`; `result_dir` is the directory of the file.
#[must_use]
pub fn result(of: SeriesOf<'_, Suite>, result_dir: &str) -> String {
    let suite = of.figures;
    let mut out = String::from("[run]\n");
    pair(&mut out, "procs", suite.pattern_ranks);
    pair(&mut out, "version", &suite.version);
    pair(&mut out, "config-hash", &suite.config_hash);
    pair(&mut out, "result-dir", result_dir);
    pair(&mut out, "mode", suite.mode());
    if suite.shows_times {
        out.push_str(&format!("; START {}\n", local(&of.started_at, 0.0)));
    }
    for reason in &suite.reasons {
        out.push_str(&format!("; ERROR INVALID {reason}\n"));
    }
    for (is_after_timestamp, phase, result) in ended(suite) {
        let run = suite.run_of(&phase.name, &of.series.runs);
        if is_after_timestamp {
            section(
                &mut out,
                TIMESTAMP,
                run.filter(|_| suite.shows_times),
                0.0,
                |_| {},
            );
        }
        let timed = run.filter(|_| suite.shows_times);
        section(&mut out, &phase.name, timed, result.time_s, |out| {
            if let Some(run) = run {
                pair(
                    out,
                    "exe",
                    command(&of.configuration(run.configuration).plan),
                );
                figures(out, phase, run, suite.pattern_ranks);
            }
            for reason in &result.reasons {
                out.push_str(&format!("; ERROR INVALID {reason}\n"));
            }
            pair(out, "score", suite_figure(result.figure));
        });
    }
    let sections = ["SCORE", "SCOREX"].into_iter().zip(scores(suite));
    for (name, (_, score)) in sections {
        out.push_str(&format!("\n[{name}]\n"));
        pair(&mut out, "MD", suite_figure(score.metadata));
        pair(&mut out, "BW", suite_figure(score.bandwidth));
        let mark = if score.is_valid() { "" } else { super::INVALID };
        pair(
            &mut out,
            "SCORE",
            format!("{}{mark}", suite_figure(score.total)),
        );
        pair(&mut out, "hash", &score.hash);
    }
    out
}

/// Appends a section with the times at which a phase began and ended, unless `run` is `None`; `fill` appends the other
/// lines.
fn section(
    out: &mut String,
    name: &str,
    run: Option<&SeriesRun>,
    time_s: f64,
    fill: impl FnOnce(&mut String),
) {
    out.push_str(&format!("\n[{name}]\n"));
    if let Some(run) = run {
        pair(out, "t_start", local(&run.started_at, 0.0));
    }
    fill(out);
    if let Some(run) = run {
        pair(out, "t_delta", format!("{time_s:.4}"));
        pair(out, "t_end", local(&run.started_at, time_s));
    }
}

/// Appends the figures of a phase besides its score: the rate at the stonewall, and the files that a search found.
fn figures(out: &mut String, phase: &SuitePhase, run: &SeriesRun, ranks: u32) {
    let Some(figures) = &run.phase else { return };
    if let (true, Some(seconds), Some(rounds)) = (
        phase.is_timed,
        figures.stonewall_s,
        figures.stonewall_rounds,
    ) {
        match phase.unit() {
            "GiB/s" => {
                let all = f64::from(ranks) * figures.rounds.max(1) as f64;
                let gib = figures.bytes as f64 * rounds as f64 / all / (1u64 << 30) as f64;
                pair(out, "throughput-stonewall", format!("{:.2}", gib / seconds));
            }
            _ => pair(
                out,
                "rate-stonewall",
                suite_figure(rounds as f64 / seconds / 1e3),
            ),
        }
    }
    if let Some(matches) = figures.matches {
        pair(out, "found", matches);
        pair(out, "total-files", figures.items);
    }
}

/// The time `seconds` after `stamp` (RFC 3339), in IO500's form and the local time zone.
fn local(stamp: &str, seconds: f64) -> String {
    let Ok(stamp) = stamp.parse::<jiff::Timestamp>() else {
        return stamp.to_owned();
    };
    let later = jiff::SignedDuration::try_from_secs_f64(seconds).unwrap_or_default();
    let then = stamp.checked_add(later).unwrap_or(stamp);
    let zoned = then.to_zoned(jiff::tz::TimeZone::system());
    zoned.strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// Command line of `plimsoll md` with the pattern and the options of the phase, and in parentheses the stages of the
/// phase.
#[must_use]
pub fn command(plan: &Plan) -> String {
    let options: Vec<&str> = plan.source.text.lines().collect();
    let stages = plan.pattern().map(|p| &p.stages[..]).unwrap_or_default();
    let stages: Vec<&str> = stages.iter().map(|stage| stage.name.as_str()).collect();
    let dir = plimsoll_plan::shell_word(&plan.work_dir.dir.display().to_string()).to_string();
    format!(
        "plimsoll md --pattern {} --dir {dir} {} ({})",
        plan.source.name,
        options.join(" "),
        stages.join(", ")
    )
}

/// Contents of the file with a line for each rank of a phase, in the form of IOR, mdtest or IO500's find; `None` for
/// phases of MD-Workbench, for which IO500 writes no such file.
#[must_use]
pub fn ranks(phase: &SuitePhase, run: &Run) -> Option<String> {
    let stage = PhaseFigures::stage(run)?;
    let name = phase.name.as_str();
    match name {
        _ if name.starts_with("ior") => Some(of_ior(name, stage)),
        _ if name.starts_with("mdtest") => Some(of_mdtest(name, stage)),
        _ if name.starts_with("find") => Some(of_find(stage)),
        _ => None,
    }
}

/// A number in the form of C's `%.10e`.
fn exponential(value: f64) -> String {
    let text = format!("{value:.10e}");
    match text.split_once('e') {
        Some((digits, exponent)) => {
            let exponent: i32 = exponent.parse().unwrap_or(0);
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.abs())
        }
        None => text,
    }
}

fn of_ior(phase: &str, stage: &Stage) -> String {
    let access = match phase.ends_with("write") {
        true => "write",
        false => "read",
    };
    let mut out = String::from(
        "access,rank,runtime-with-openclose,runtime,throughput-withopenclose,throughput\n",
    );
    for rank in &stage.ranks {
        let seconds = rank.time_ns as f64 / 1e9;
        let bytes: u128 = rank.rows.iter().map(|row| row.bytes).sum();
        let rate = per_second(bytes, seconds);
        let [seconds, rate] = [seconds, rate].map(exponential);
        out.push_str(&format!(
            "{access},{},{seconds},{seconds},{rate},{rate}\n",
            rank.rank
        ));
    }
    out
}

fn of_find(stage: &Stage) -> String {
    let seconds = stage
        .ranks
        .iter()
        .map(|rank| rank.time_ns)
        .max()
        .unwrap_or(0) as f64
        / 1e9;
    let all: u64 = stage.ranks.iter().map(|rank| rank.rounds).sum();
    let rate = per_second(all, seconds);
    let mut out = format!("runtime: {seconds:.6} rate: {rate:.6}\n");
    out.push_str("rank, errors, unknown, found, total, checked\n");
    for rank in &stage.ranks {
        let errors: u64 = rank.rows.iter().map(|row| row.errors).sum();
        let (found, total) = (rank.matches.unwrap_or(0), rank.rounds);
        out.push_str(&format!(
            "{}, {errors}, 0, {found}, {total}, {total}\n",
            rank.rank
        ));
    }
    out
}

fn of_mdtest(phase: &str, stage: &Stage) -> String {
    let column = match phase.rsplit('-').next() {
        Some("write") => 5,
        Some("stat") => 6,
        Some("read") => 7,
        _ => 8,
    };
    let mut out = String::from("rank,items");
    for name in MDTEST_COLUMNS {
        out.push_str(&format!(",rate-{name},time-{name}"));
    }
    out.push('\n');
    let mut row = |first: &str, items: u64, seconds: f64| {
        let rate = per_second(items, seconds);
        out.push_str(first);
        for at in 0..MDTEST_COLUMNS.len() {
            match at == column {
                true => {
                    let [rate, seconds] = [rate, seconds].map(exponential);
                    out.push_str(&format!(",{rate},{seconds}"));
                }
                false => out.push_str(",,"),
            }
        }
        out.push('\n');
    };
    let items = |rank: &RankStage| rank.rows.iter().map(|r| r.ops).sum::<u64>();
    let seconds = |rank: &RankStage| rank.time_ns as f64 / 1e9;
    let all: u64 = stage.ranks.iter().map(items).sum();
    let longest = stage.ranks.iter().map(seconds).fold(0.0, f64::max);
    let each = stage
        .ranks
        .iter()
        .map(|rank| rank.rounds)
        .max()
        .unwrap_or(0);
    row(&format!("all,{each}"), all, longest);
    for rank in &stage.ranks {
        row(&format!("{},", rank.rank), items(rank), seconds(rank));
    }
    out
}

/// Checksums and scores of a result file, as stated in the file and recomputed from the figures of the phases.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Version of IO500 that the file states.
    pub version: Option<String>,
    /// Checksum of the configuration that the file states.
    pub config_hash: Option<String>,
    /// Checksum of the scores that the file states.
    pub score_hash: Option<String>,
    /// Recomputed checksum of valid scores.
    pub recomputed: String,
    /// Whether the stated checksum is of valid scores, or of scores with the mark of an invalid result; `None` if the
    /// scores have another checksum.
    pub is_valid: Option<bool>,
    /// Stated scores that the figures of the phases contradict, each with the recomputed score.
    pub differences: Vec<String>,
}

/// Keys of the scores in the section `[SCORE]`, in the order of [`SuiteScore::scores`].
const SCORE_KEYS: [&str; 3] = ["BW", "MD", "SCORE"];

/// The settings of a result file: section, key and value.
fn settings(text: &str) -> impl Iterator<Item = (&str, &str, &str)> {
    let mut section = "";
    text.lines().map(str::trim).filter_map(move |line| {
        if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            section = name.trim();
            return None;
        }
        let (key, value) = line.split_once('=').filter(|_| !line.starts_with(';'))?;
        Some((section, key.trim(), value.trim()))
    })
}

impl Checked {
    /// Reads the text of a result file. `group_of` returns the score to which the phase with a name contributes, and
    /// `None` for a phase that only the extended mode has.
    #[must_use]
    pub fn read(text: &str, group_of: impl Fn(&str) -> Option<ScoreGroup>) -> Self {
        let mut checked = Self::default();
        // The checksum of ISC21_v1 lacks both means.
        let (mut hash, mut without_means) = (PairHash::default(), PairHash::default());
        let mut figures = Vec::new();
        let mut stated = [None::<f64>; 3];
        for (section, key, value) in settings(text) {
            let number = value.split_whitespace().next().unwrap_or_default();
            let score = SCORE_KEYS.iter().position(|known| *known == key);
            match (section, key, score) {
                // Versions of 2020 have no section `run`.
                ("run" | "", "version", _) => {
                    hash.add(key, value);
                    without_means.add(key, value);
                    checked.version = Some(value.into());
                }
                ("run" | "", "config-hash", _) => checked.config_hash = Some(value.into()),
                ("SCORE", "hash", _) => checked.score_hash = Some(value.into()),
                ("SCORE", _, Some(at)) => {
                    hash.add(key, number);
                    if key == "SCORE" {
                        without_means.add(key, number);
                    }
                    stated[at] = number.parse().ok();
                }
                (phase, "score", _) => {
                    let scored = group_of(phase).filter(|group| *group != ScoreGroup::Unscored);
                    if let Some(group) = scored {
                        hash.add(phase, number);
                        without_means.add(phase, number);
                        figures.push((group, number.parse().unwrap_or(0.0)));
                    }
                }
                _ => {}
            }
        }
        checked.recomputed = hash.to_string();
        for mut hash in [hash, without_means] {
            let is_stated = |hash: PairHash| checked.score_hash == Some(hash.to_string());
            let as_valid = is_stated(hash);
            hash.add("valid", "NO");
            if as_valid || is_stated(hash) {
                checked.is_valid = Some(as_valid);
            }
        }
        let computed = SuiteScore::scores(figures.into_iter());
        for (key, (stated, computed)) in SCORE_KEYS.iter().zip(stated.into_iter().zip(computed)) {
            // The figures of the phases have six decimal places, so the last digits of their mean are uncertain.
            let near = |stated: f64| (stated - computed).abs() <= 1e-5 * computed.abs().max(1.0);
            if !stated.is_some_and(near) {
                let stated = stated.map_or("nothing".into(), suite_figure);
                let computed = suite_figure(computed);
                checked.differences.push(format!(
                    "{key}: the file states {stated}, and its phases give {computed}"
                ));
            }
        }
        checked
    }
}
