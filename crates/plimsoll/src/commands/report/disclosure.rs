//! Full disclosure report of a load curve, or of a run as a curve of one point.

use super::results::{LoadedResult, ResultKind};
use crate::commands::sut;
use crate::exit::CommandError;
use plimsoll_report::disclosure::{Disclosure, DisclosureInput, Sut};
use plimsoll_report::html::{RunData, page};
use plimsoll_results::{Run, SUT_FILE, Verdict};
use std::path::{Path, PathBuf};

/// The disclosure report of the single given curve or run. `description` is the file that describes the system under
/// test; the default is the file beside the results, if present.
///
/// # Errors
/// If several results were given, if the result cannot be disclosed, or if the description is invalid.
pub(super) fn disclosure(
    found: &[LoadedResult],
    description: Option<&Path>,
) -> Result<String, CommandError> {
    Ok(of_only(found, description)?.disclosure.to_text())
}

/// HTML page of the single given curve or run, with its disclosure report; `None` if neither `description` nor the file
/// `sut.toml` beside the results describes the system under test, or if the results cannot be disclosed.
///
/// # Errors
/// With `description`, the errors of [`disclosure`]; without, an error only if the file `sut.toml` is invalid.
pub(super) fn page(
    found: &[LoadedResult],
    description: Option<&Path>,
) -> Result<Option<String>, CommandError> {
    let kept = match found {
        [only] => kept_description(only),
        _ => None,
    };
    match (description, kept) {
        (None, None) => return Ok(None),
        // A result without measurements cannot be disclosed, and gets a page without a disclosure.
        (None, Some(_)) if input(&found[0], Sut::default()).is_err() => return Ok(None),
        _ => {}
    }
    let Disclosed {
        data,
        input,
        disclosure,
    } = of_only(found, description)?;
    let report = data.document().annotated(data.annotations());
    let page = page::disclosed(&report, &disclosure, &input.sections());
    Ok(Some(page))
}

/// A curve or run with its disclosure report, and the input of the report.
struct Disclosed<'a> {
    data: &'a RunData,
    input: DisclosureInput,
    disclosure: Disclosure,
}

/// The single given curve or run, and its disclosure report; several results are a usage error.
fn of_only<'a>(
    found: &'a [LoadedResult],
    description: Option<&Path>,
) -> Result<Disclosed<'a>, CommandError> {
    let [only] = found else {
        return Err(CommandError::usage(format!(
            "a disclosure report is made of one load curve or run, and {} results were given",
            found.len()
        )));
    };
    let given = description.map(Path::to_owned);
    let sut = match given.or_else(|| kept_description(only)) {
        Some(file) => sut::read(&file)?.0,
        None => Sut::default(),
    };
    input(only, sut)
}

/// Path of the description of the system under test in a results directory; `None` if the directory has no description.
fn kept_description(results: &LoadedResult) -> Option<PathBuf> {
    let file = results.path.join(SUT_FILE);
    file.is_file().then_some(file)
}

/// Disclosure report of a curve, or of a run as a curve of one point, on the system that `sut` describes.
fn input(result: &LoadedResult, sut: Sut) -> Result<Disclosed<'_>, CommandError> {
    let none = || {
        CommandError::usage(format!(
            "{}, and a disclosure report is made of a load curve or a run: `plimsoll curve` and \
             `plimsoll run` measure them",
            result.shown()
        ))
    };
    let now = jiff::Zoned::now().strftime("%Y-%m-%d %H:%M:%S").to_string();
    let ResultKind::Measured(data) = &result.what else {
        return Err(none());
    };
    let input = match data {
        RunData::Series { series, .. } => {
            let curve = series.as_curve().ok_or_else(none)?;
            DisclosureInput::of_curve(curve, sut, now)
        }
        RunData::Run(loaded) => {
            check(&loaded.run, result)?;
            DisclosureInput::of_run(&loaded.run, sut, now)
        }
    };
    let disclosure = input.disclosure().map_err(|e| {
        let path = result.path.display();
        CommandError::usage(format!("{path} has no disclosure report: {e}"))
    })?;
    Ok(Disclosed {
        data,
        input,
        disclosure,
    })
}

/// Refuses the disclosure of a run without measurements, such as a run that failed before its measured window.
fn check(run: &Run, result: &LoadedResult) -> Result<(), CommandError> {
    let why = match run.validity.verdict {
        Verdict::Failed => "the run failed",
        Verdict::Interrupted => "the run was interrupted",
        Verdict::Valid | Verdict::Invalid if run.summary.ops == 0 => "the run completed nothing",
        Verdict::Valid | Verdict::Invalid => return Ok(()),
    };
    let path = result.path.display();
    Err(CommandError::usage(format!(
        "{path} has no disclosure report: {why}"
    )))
}
