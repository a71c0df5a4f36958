//! The full disclosure report of a load curve.

use super::results::{LoadedResult, ResultKind};
use crate::commands::sut;
use crate::exit::CommandError;
use plimsoll_disclosure::{Disclosure, DisclosureInput, Sut};
use plimsoll_html::{RunData, page};
use plimsoll_results::{LoadCurve, SUT_FILE};
use std::path::Path;

/// The report of the only curve that was given; `description` is the file that describes the
/// system under test, without which the report says that nothing of it is stated.
pub(super) fn disclosure(
    found: &[LoadedResult],
    description: Option<&Path>,
) -> Result<String, CommandError> {
    Ok(of_curve(found, description)?.2.to_text())
}

/// The page of the only curve that was given, with its disclosure.
pub(super) fn page(
    found: &[LoadedResult],
    description: Option<&Path>,
) -> Result<String, CommandError> {
    let (name, curve, disclosure) = of_curve(found, description)?;
    // There is only one.
    let said = found.first().map(|f| f.annotations.clone());
    let said = said.unwrap_or_default();
    Ok(page::disclosed(name, curve, &said, &disclosure))
}

/// The only curve that was given, with its name and its disclosure.
fn of_curve<'a>(
    found: &'a [LoadedResult],
    description: Option<&Path>,
) -> Result<(&'a str, &'a LoadCurve, Disclosure), CommandError> {
    let [only] = found else {
        return Err(CommandError::usage(format!(
            "a disclosure report is made of one load curve, and {} results were given",
            found.len()
        )));
    };
    let ResultKind::Measured(RunData::Curve { name, curve, .. }) = &only.what else {
        return Err(CommandError::usage(format!(
            "{}, and a disclosure report is made of a load curve: `plimsoll curve` measures one",
            only.shown()
        )));
    };
    let sut = match description {
        Some(file) => sut::read(file)?,
        // A curve on a test bed has one.
        None => match only.path.join(SUT_FILE) {
            file if file.is_file() => sut::read(&file)?,
            _ => Sut::default(),
        },
    };
    let now = jiff::Zoned::now().strftime("%Y-%m-%d %H:%M:%S").to_string();
    let report = DisclosureInput::of_curve(curve, sut, now).disclosure();
    let report = report.map_err(|e| {
        let path = only.path.display();
        CommandError::usage(format!("there is no disclosure report of {path}: {e}"))
    })?;
    Ok((name, curve, report))
}
