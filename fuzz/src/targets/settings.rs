//! `--set`: any settings change a built-in workload, or are refused. The first line names the workload.

use crate::plans::{WmlContext, check_mix, check_plan};
use crate::refusals::check_refusal;
use plimsoll_plan::Overrides;
use plimsoll_plan::option_values::setting;

/// Maximum number of settings of an input.
const MAX_SETTINGS: usize = 16;

/// Lowers the built-in workload that the first line of the input names, with the settings in the other lines.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let mut lines = text.lines();
    let name = lines.next().unwrap_or_default();
    let read = lines.take(MAX_SETTINGS).map(setting);
    let Ok(sets) = read.collect::<Result<Vec<_>, _>>() else {
        return;
    };
    for (name, value) in &sets {
        let again = setting(&format!("{name}={value}"));
        assert_eq!(again, Ok((name.clone(), value.clone())));
    }
    if let Some(found) = plimsoll_workload::mix::BUILTINS.find(name) {
        let workload = plimsoll_workload::mix::parse(found.text, name).expect("it is built in");
        check_mix(&workload, sets);
    } else if let Some(found) = plimsoll_workload::wml::BUILTINS.find(name) {
        let workload = plimsoll_workload::wml::parse(found.text, name).expect("it is built in");
        let overrides = Overrides {
            sets,
            ..Overrides::default()
        };
        match plimsoll_workload::wml::lower(&workload, &overrides, &WmlContext::default().get()) {
            Ok(plan) => check_plan(&plan),
            Err(errors) => check_refusal(&errors),
        }
    }
}
