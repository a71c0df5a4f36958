//! The full disclosure report of a load curve, or of a run as its only point.

use super::results::{LoadedResult, ResultKind};
use crate::commands::sut;
use crate::exit::CommandError;
use plimsoll_disclosure::{Disclosure, DisclosureInput, Sut};
use plimsoll_html::{RunData, page};
use plimsoll_results::{Run, SUT_FILE, Verdict};
use std::path::Path;

/// The report of the only curve or run that was given; `description` is the file that describes the
/// system under test, without which the report says that nothing of it is stated.
pub(super) fn disclosure(
    found: &[LoadedResult],
    description: Option<&Path>,
) -> Result<String, CommandError> {
    Ok(of_only(found, description)?.1.to_text())
}

/// The page of the only curve that was given, with its disclosure.
pub(super) fn page(
    found: &[LoadedResult],
    description: Option<&Path>,
) -> Result<String, CommandError> {
    let (only, disclosure) = of_only(found, description)?;
    let curve = match &only.what {
        ResultKind::Measured(RunData::Series { name, series, .. }) => {
            series.as_curve().map(|curve| (name, curve))
        }
        _ => None,
    };
    let Some((name, curve)) = curve else {
        return Err(CommandError::usage(format!(
            "{}, and the page of a disclosure is that of a load curve: expected --format disclosure",
            only.shown()
        )));
    };
    Ok(page::disclosed(name, curve, &only.annotations, &disclosure))
}

/// The only curve or run that was given, and its disclosure.
fn of_only<'a>(
    found: &'a [LoadedResult],
    description: Option<&Path>,
) -> Result<(&'a LoadedResult, Disclosure), CommandError> {
    let [only] = found else {
        return Err(CommandError::usage(format!(
            "a disclosure report is made of one load curve or run, and {} results were given",
            found.len()
        )));
    };
    let now = jiff::Zoned::now().strftime("%Y-%m-%d %H:%M:%S").to_string();
    let described = description.map(sut::read).transpose()?;
    let input = match &only.what {
        ResultKind::Measured(RunData::Series { series, .. })
            if let Some(curve) = series.as_curve() =>
        {
            let sut = match (described, only.path.join(SUT_FILE)) {
                (Some(sut), _) => sut,
                // A curve on a test bed has one.
                (None, file) if file.is_file() => sut::read(&file)?,
                (None, _) => Sut::default(),
            };
            DisclosureInput::of_curve(curve, sut, now)
        }
        ResultKind::Measured(RunData::Run(loaded)) => {
            let run = &loaded.run;
            check(run, only)?;
            let bed = run.target.testbed.as_ref();
            let of_bed = || bed.map(|bed| Sut::of_test_bed(bed, &run.environment));
            let sut = described.or_else(of_bed).unwrap_or_default();
            DisclosureInput::of_run(run, sut, now)
        }
        _ => {
            return Err(CommandError::usage(format!(
                "{}, and a disclosure report is made of a load curve or a run: `plimsoll curve` and \
                 `plimsoll run` measure them",
                only.shown()
            )));
        }
    };
    let report = input.disclosure().map_err(|e| {
        let path = only.path.display();
        CommandError::usage(format!("{path} has no disclosure report: {e}"))
    })?;
    Ok((only, report))
}

/// Refuses a run that measured nothing.
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
