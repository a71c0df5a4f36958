//! Filebench's language: any text is parsed, or refused with a place. A Plan passes its own check, prints, and can be
//! read from its JSON form.

use crate::plans::{WmlContext, check_plan};
use crate::refusals::check_refusal;
use plimsoll_plan::Overrides;
use plimsoll_workload::wml::{lower, parameters, parse, title, usage};
use std::hint::black_box;

/// Parses the input as a workload in WML, and lowers the workload to a Plan.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let workload = match parse(text, "fuzz.f") {
        Ok(workload) => workload,
        Err(errors) => return check_refusal(&errors),
    };
    black_box((title(&workload), parameters(&workload), usage(&workload)));
    match lower(
        &workload,
        &Overrides::default(),
        &WmlContext::default().get(),
    ) {
        Ok(plan) => check_plan(&plan),
        Err(errors) => check_refusal(&errors),
    }
}
