//! `report`: prints results, or converts them to another format.

mod disclosure;
mod monitoring;
mod parquet;
mod results;

use super::print;
use crate::cli::{ReportArgs, ReportFormat};
use crate::console::{self, Stream};
use crate::exit::{CommandError, Exit};
use crate::new_file;
use plimsoll_diagnostics::foreign;
use plimsoll_report::document::Document;
use plimsoll_report::html::chart::standalone;
use plimsoll_report::html::{RunData, page};
use plimsoll_report::{csv, markdown, points, profile, repeats, terminal};
use plimsoll_results::{Document as _, Percentiles, Run, SeriesDir};
use results::{LoadedResult, ResultKind, runs_below, subjects};
use std::path::{Path, PathBuf};

/// Reads the results given to `report`, with `--recover` recovered from killed runs, and writes a report in the
/// requested format.
pub fn run(args: &ReportArgs) -> Result<Exit, CommandError> {
    let disclosing = [ReportFormat::Disclosure, ReportFormat::Html].contains(&args.format);
    if args.sut.is_some() && !disclosing {
        return Err(CommandError::usage(
            "--sut describes the system in a disclosure report: it needs --format disclosure or \
             --format html",
        ));
    }
    let tables = [
        ReportFormat::Text,
        ReportFormat::Json,
        ReportFormat::Csv,
        ReportFormat::Markdown,
        ReportFormat::Html,
    ];
    let percentiles = args.percentiles.as_ref();
    if percentiles.is_some() && !tables.contains(&args.format) {
        return Err(CommandError::usage(
            "--percentiles is for tables: it needs --format text, json, csv, markdown or html",
        ));
    }
    if args.details && ![ReportFormat::Text, ReportFormat::Markdown].contains(&args.format) {
        return Err(CommandError::usage(
            "--details needs --format text or markdown; a page always has the details",
        ));
    }
    let recovered = match args.recover {
        true => recovered(&args.results)?,
        false => args.results.clone(),
    };
    let output = args.output.as_deref();
    let directories = [ReportFormat::Svg, ReportFormat::Parquet];
    if let Some(file) = output.filter(|_| !directories.contains(&args.format)) {
        new_file::refuse_existing(file)?;
    }
    match args.format {
        ReportFormat::Parquet => return parquet::write(&recovered, output),
        ReportFormat::Openmetrics | ReportFormat::Influx | ReportFormat::Otlp => {
            let text = monitoring::text(&recovered, args.format)?;
            return write_output(&text, output);
        }
        _ => {}
    }
    let found = recovered.iter().map(|p| LoadedResult::read(p, percentiles));
    let found: Vec<LoadedResult> = found.collect::<Result<_, _>>()?;
    let text = match args.format {
        ReportFormat::Text => text(&found, args),
        ReportFormat::Json => json(&found)?,
        ReportFormat::Disclosure => disclosure::disclosure(&found, args.sut.as_deref())?,
        ReportFormat::Csv => csv(&subjects(found, "csv", percentiles)?)?,
        ReportFormat::Parquet
        | ReportFormat::Openmetrics
        | ReportFormat::Influx
        | ReportFormat::Otlp => unreachable!("written above, of the files themselves"),
        ReportFormat::Markdown => {
            let documents = measured(&found, "markdown", percentiles)?;
            let documents = documents
                .into_iter()
                .map(|document| detailed(document, args));
            let each: Vec<String> = documents.map(|d| markdown::render(&d)).collect();
            each.join("\n")
        }
        ReportFormat::Html => match disclosure::page(&found, args.sut.as_deref())? {
            Some(page) => page,
            None => page::report(&measured(&found, "html", percentiles)?),
        },
        ReportFormat::Svg => return pictures(&subjects(found, "svg", percentiles)?, output),
    };
    write_output(&text, output)
}

/// Recovers the results of killed runs from each path in `left`, a killed run's hidden directory or a directory above
/// hidden directories; returns the paths of the recovered results.
///
/// # Errors
/// If a path has no killed run, or no killed run can be recovered; a warning names a run that, unlike another run,
/// cannot be recovered.
fn recovered(left: &[PathBuf]) -> Result<Vec<PathBuf>, CommandError> {
    let mut made = Vec::new();
    let mut wrong = Vec::new();
    for path in left {
        for results in plimsoll_results::recover(path).map_err(CommandError::usage)? {
            match results {
                Ok(dir) => made.push(dir.path().to_owned()),
                Err(e) => wrong.push(e),
            }
        }
    }
    if made.is_empty()
        && let Some(e) = wrong.pop()
    {
        return Err(CommandError::usage(e));
    }
    for e in wrong {
        console::err(&format!("warning: {e}\n"));
    }
    Ok(made)
}

/// Writes a text to the new file `output`; `None` writes to standard output.
pub fn write_output(text: &str, output: Option<&Path>) -> Result<Exit, CommandError> {
    let Some(path) = output else {
        return print(text);
    };
    // The text may be displayed with `cat`, so unprintable characters are escaped. Escaped JSON is equivalent.
    new_file::create(path, foreign::escaped_lines(text).as_bytes()).map(|()| Exit::Valid)
}

fn text(found: &[LoadedResult], args: &ReportArgs) -> String {
    let mut layout = Stream::Out.layout();
    layout.color &= args.output.is_none();
    let documents = found.iter().map(|found| detailed(document(found), args));
    let each = documents.map(|document| terminal::render(&document, layout));
    each.collect::<Vec<_>>().join("\n")
}

fn detailed(document: Document, args: &ReportArgs) -> Document {
    match args.details {
        true => document.with_details(),
        false => document,
    }
}

/// Report on results that Plimsoll measured. An HTML page also has the reports on repeated runs and on the runs of a
/// profile, for the charts.
fn measured(
    found: &[LoadedResult],
    format: &str,
    percentiles: Option<&Percentiles>,
) -> Result<Vec<Document>, CommandError> {
    let mut all = Vec::new();
    for result in found {
        result.check_measured(format)?;
        all.push(document(result));
        if format != "html" {
            continue;
        }
        match &result.what {
            ResultKind::Repeats { runs, .. } => all.extend(runs.iter().map(RunData::document)),
            ResultKind::Profile { series, .. } => {
                let shown = percentiles.or(series.percentiles_shown.as_ref());
                let runs = runs_below(&result.path, shown)?;
                all.extend(runs.iter().map(RunData::document));
            }
            ResultKind::Measured(_) | ResultKind::Published(_) => {}
        }
    }
    Ok(all)
}

/// Report document of results, with the user's tags and note.
fn document(found: &LoadedResult) -> Document {
    let dir = SeriesDir::at(&found.path);
    let document = match &found.what {
        ResultKind::Measured(data @ RunData::Run(_)) => data.document().at(Some(&found.path)),
        ResultKind::Measured(data @ RunData::Series { series, .. }) => {
            data.document().of_series(series, Some(&dir))
        }
        ResultKind::Repeats { series, runs } => {
            let repeated = series.as_repeats().expect("the series of repeated runs");
            let runs: Vec<&Run> = runs.iter().filter_map(as_run).collect();
            repeats::document(repeated, &runs).of_series(series, Some(&dir))
        }
        ResultKind::Profile { series, sets } => {
            let profile = series.as_profile().expect("the series of a profile");
            profile::document(profile, sets).of_series(series, Some(&dir))
        }
        ResultKind::Published(report) => report.document(),
    };
    document.annotated(&found.annotations)
}

fn as_run(data: &RunData) -> Option<&Run> {
    match data {
        RunData::Run(loaded) => Some(&loaded.run),
        RunData::Series { .. } => None,
    }
}

fn json(found: &[LoadedResult]) -> Result<String, CommandError> {
    let one = |found: &LoadedResult| {
        Ok(match &found.what {
            ResultKind::Measured(RunData::Run(loaded)) => loaded.run.to_json(),
            ResultKind::Measured(RunData::Series { series, .. })
            | ResultKind::Repeats { series, .. }
            | ResultKind::Profile { series, .. } => series.to_json(),
            ResultKind::Published(report) => {
                let json = serde_json::to_string_pretty(report);
                json.map_err(|e| CommandError::failed(format!("cannot print the report: {e}")))?
                    + "\n"
            }
        })
    };
    let texts: Vec<String> = found.iter().map(one).collect::<Result<_, CommandError>>()?;
    Ok(match &texts[..] {
        [one] => one.clone(),
        many => format!("[\n{}]\n", many.join(",\n")),
    })
}

/// CSV of runs, of curves or of searches. Results of different kinds are refused, because their columns differ.
fn csv(subjects: &[RunData]) -> Result<String, CommandError> {
    let (mut runs, mut all_series) = (vec![], vec![]);
    let mut first: Option<(&str, &str)> = None;
    for subject in subjects {
        let name = subject.name();
        let kind = match subject {
            RunData::Run(loaded) => {
                runs.push((name, &loaded.run));
                "a run"
            }
            RunData::Series { series, .. } => {
                all_series.push((name, &**series));
                series.kind.kind().words()
            }
        };
        let (first, other) = *first.get_or_insert((name, kind));
        if other != kind {
            return Err(CommandError::usage(format!(
                "{first} is {other} and {name} {kind}, whose tables have different columns; make \
                 a csv of each kind"
            )));
        }
    }
    Ok(match all_series.is_empty() {
        true => csv::render(&runs),
        false => points::csv(&all_series),
    })
}

/// Writes an SVG file per chart to the directory `output`, with a subdirectory per result if there are several results.
fn pictures(subjects: &[RunData], output: Option<&Path>) -> Result<Exit, CommandError> {
    let Some(output) = output else {
        return Err(CommandError::usage(
            "pictures are several files: --output says which directory they are put in",
        ));
    };
    let mut files = Vec::new();
    for (i, subject) in subjects.iter().enumerate() {
        let dir = match subjects.len() {
            1 => output.to_owned(),
            _ => output.join(format!("{}-{}", i + 1, subject.name().replace('/', "-"))),
        };
        for chart in subject.charts() {
            let path = dir.join(format!("{}.svg", chart.id));
            files.push((path, standalone(&chart).into_bytes()));
        }
    }
    new_file::create_all(&files)?;
    let names = files
        .iter()
        .map(|(path, _)| format!("{}\n", path.display()));
    print(&names.collect::<String>())
}
