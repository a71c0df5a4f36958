//! The runs of a profile in a terminal or a text file.

use crate::compare::{self, Metric, ProfileSet, of_profiles};
use crate::format::{latency, mib_per_s, rate};
use crate::percentiles::{PercentileKind, UNCERTAIN_MARK, UNCERTAIN_NOTE, any_doubtful, bounded};
use crate::study;
use crate::table::Table;
use crate::terminal::Layout;
use crate::text::{Paint, paragraph};
use plimsoll_plan::counted;
use plimsoll_results::{
    Percentile, PercentileFigure, Percentiles, ProfileCase, ProfileDir, ProfileResults,
    ResultsError, Run, Verdict,
};
use std::path::Path;

/// Percentiles of the table, where no others were requested.
const DEFAULT_PERCENTILES: [Percentile; 1] = [Percentile::P99];

/// The runs of a profile by file system, in the order of the profile, with the requested percentiles;
/// `dir` is where they lie.
///
/// # Errors
/// If a run that is listed cannot be read.
pub fn sets(
    results: &ProfileResults,
    dir: &ProfileDir,
    percentiles: Option<&Percentiles>,
) -> Result<Vec<ProfileSet>, ResultsError> {
    let percentiles = percentiles.or(results.percentiles_shown.as_ref());
    let set = |filesystem: &str| {
        let cases = results.cases.iter().filter(|c| c.filesystem == filesystem);
        let cases = cases.map(|c| Ok((c.name.clone(), dir.runs(c, percentiles)?)));
        Ok(ProfileSet {
            name: filesystem.to_owned(),
            profile: results.profile.clone(),
            cases: cases.collect::<Result<_, ResultsError>>()?,
            not_run: results
                .not_run
                .iter()
                .map(|n| (n.name.clone(), n.reason.clone()))
                .collect(),
        })
    };
    results.filesystems().into_iter().map(set).collect()
}

/// The whole report: how far the profile has come, and its figures. Several file systems stand
/// side by side.
#[must_use]
pub fn render(
    results: &ProfileResults,
    sets: &[ProfileSet],
    dir: Option<&Path>,
    layout: Layout,
) -> String {
    if study::is_study(results) {
        return study::render(results, sets, dir, layout);
    }
    let paint = Paint(layout.color);
    let mut out = String::new();
    headline(&mut out, results, layout);
    let measured = sets
        .iter()
        .any(|s| s.cases.iter().any(|(_, r)| !r.is_empty()));
    // A comparison says it itself.
    if !(measured && sets.len() > 1) {
        for left in &results.not_run {
            let label = format!("  not run: {}: ", left.name);
            paragraph(&mut out, &label, &left.reason, layout.columns());
        }
    }
    if measured {
        out.push('\n');
        match sets {
            [one] => {
                table(one).render(&mut out, layout.columns(), paint);
                let mut runs = one.cases.iter().flat_map(|(_, runs)| runs);
                let doubtful = |r: &Run| {
                    let shown = r.shown_percentiles(&DEFAULT_PERCENTILES).iter();
                    any_doubtful(shown.map(|p| r.summary.percentile(*p)))
                };
                if runs.any(doubtful) {
                    paragraph(&mut out, "  ", UNCERTAIN_NOTE, layout.columns());
                }
            }
            several => {
                let mut runs = several.iter().flat_map(|s| &s.cases).flat_map(|(_, r)| r);
                let asked = runs.find_map(|r| r.percentiles_shown.as_ref());
                out.push_str(&compare::text(&of_profiles(several, asked), layout));
            }
        }
        reasons(&mut out, sets, layout);
    }
    place(&mut out, results, dir, layout);
    out
}

/// Where the results are, and how what is missing is measured.
pub(crate) fn place(
    out: &mut String,
    results: &ProfileResults,
    dir: Option<&Path>,
    layout: Layout,
) {
    let Some(path) = dir else {
        return;
    };
    let path = path.display().to_string();
    let shown = Paint(layout.color).bold(&path);
    out.push_str(&format!("\nresults in {shown}\n"));
    if results.missing() > 0 {
        out.push_str(&format!("resume with plimsoll profile --resume {path}\n"));
    }
}

pub(crate) fn headline(out: &mut String, results: &ProfileResults, layout: Layout) {
    let paint = Paint(layout.color);
    let (all, missing) = (results.cases.len(), results.missing());
    let state = match (missing, results.interrupted) {
        (0, _) => paint.good("complete"),
        (_, true) => paint.doubtful("interrupted"),
        (_, false) => paint.bad("not complete"),
    };
    let systems = results.filesystems().len() as u64;
    out.push_str(&format!(
        "profile {}: {state}, {} of {} on {}\n",
        paint.bold(&results.profile),
        all - missing,
        counted(all as u64, "run", "runs"),
        counted(systems, "file system", "file systems"),
    ));
    let columns = layout.columns();
    if !results.description.is_empty() {
        paragraph(out, "  ", &results.description, columns);
    }
    for note in &results.notes {
        paragraph(out, "  note: ", note, columns);
    }
}

/// A row a configuration, with the means of repeated runs.
fn table(set: &ProfileSet) -> Table {
    let runs = || set.cases.iter().flat_map(|(_, runs)| runs);
    let paced = runs().any(|r| r.summary.service.is_some());
    let shown = runs().next().map_or(&DEFAULT_PERCENTILES[..], |r| {
        r.shown_percentiles(&DEFAULT_PERCENTILES)
    });
    let named = |what: &str| {
        let percentiles = shown.iter().map(|p| format!("{what}{p}"));
        let all = std::iter::once(format!("{what}mean")).chain(percentiles);
        all.collect::<Vec<_>>()
    };
    let mut head = ["configuration", "ops/s", "MiB/s"]
        .map(str::to_owned)
        .to_vec();
    head.extend(named(""));
    if paced {
        head.extend(named("service "));
    }
    head.extend(["CPU µs/op", "verdict"].map(str::to_owned));
    let mut table = Table::new(&head);
    for (name, runs) in &set.cases {
        let mut row = vec![name.clone()];
        match runs.is_empty() {
            true => {
                row.resize(head.len() - 1, "-".into());
                row.push("not run".into());
            }
            false => row.extend(figures(runs, shown, paced)),
        }
        table.row(row);
    }
    table
}

/// The figures of a configuration's runs.
fn figures(runs: &[Run], shown: &[Percentile], paced: bool) -> Vec<String> {
    let mean = |pick: &dyn Fn(&Run) -> f64| runs.iter().map(pick).sum::<f64>() / runs.len() as f64;
    let done = runs.iter().all(|r| r.summary.ops > 0);
    let time = |ms: f64| if done { latency(ms) } else { "-".into() };
    // The mean of a percentile over runs, in doubt if it is in one of them.
    let percentile = |at: Percentile, of: PercentileKind| {
        let figures: Option<Vec<PercentileFigure>> =
            runs.iter().map(|r| r.summary.percentile(at)).collect();
        let Some(figures) = figures else {
            return "-".to_owned();
        };
        let ms = figures.iter().map(|f| of.ms(f)).sum::<f64>() / figures.len() as f64;
        let at_least = figures.iter().any(|f| of.at_least(f));
        let doubt = any_doubtful(figures.into_iter().map(Some));
        bounded(ms, at_least) + if doubt { UNCERTAIN_MARK } else { "" }
    };
    let cpu: Option<Vec<f64>> = runs.iter().map(|r| r.summary.cpu_us_per_op).collect();
    let cpu = cpu.map(|all| all.iter().sum::<f64>() / all.len() as f64);
    let worst = runs.iter().map(|r| r.validity.verdict);
    let worst = worst.max_by_key(|v| *v as u8).unwrap_or(Verdict::Valid);
    let mut cells = vec![
        rate(mean(&|r| r.summary.ops_per_s)),
        mib_per_s(mean(&|r| r.summary.bytes_per_s)),
        time(mean(&|r| r.summary.mean_ms)),
    ];
    cells.extend(
        shown
            .iter()
            .map(|p| percentile(*p, PercentileKind::Latency)),
    );
    if paced {
        cells.push(time(mean(&|r| r.summary.service().mean_ms)));
        cells.extend(
            shown
                .iter()
                .map(|p| percentile(*p, PercentileKind::Service)),
        );
    }
    cells.push(cpu.map_or("-".into(), |c| Metric::CpuUsPerOp.show(c)));
    cells.push(worst.to_string());
    cells
}

/// Why runs are not valid.
pub(crate) fn reasons(out: &mut String, sets: &[ProfileSet], layout: Layout) {
    for set in sets {
        for (name, runs) in &set.cases {
            for reason in runs.iter().flat_map(|r| &r.validity.reasons) {
                let label = format!("{}/{name}: {}: ", set.name, reason.code);
                paragraph(out, &label, &reason.text, layout.columns());
            }
        }
    }
}

/// A run in one line, for when it has just ended; `number` counts from 1.
#[must_use]
pub fn line(number: usize, of: usize, case: &ProfileCase, run: &Run) -> String {
    let codes: Vec<&str> = run
        .validity
        .reasons
        .iter()
        .map(|r| r.code.as_str())
        .collect();
    let why = match codes.is_empty() {
        true => String::new(),
        false => format!(" ({})", codes.join(", ")),
    };
    let mean = match run.summary.ops {
        0 => String::new(),
        _ => format!(", mean {}", latency(run.summary.mean_ms).replace("  ", " ")),
    };
    format!(
        "run {number} of {of}, {} on {}: {} ops/s, {} MiB/s{mean}: {}{why}",
        case.name,
        case.filesystem,
        rate(run.summary.ops_per_s),
        mib_per_s(run.summary.bytes_per_s),
        run.validity.verdict
    )
}
