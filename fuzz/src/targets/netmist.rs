//! netmist's custom workload files: any text is converted to an operation mix, or refused with a place.

use crate::plans::check_mix;
use crate::refusals::check_refusal;
use plimsoll_workload::mix::{netmist, parse, to_toml};

/// Parses the input as a custom workload file, converts the file to TOML, and lowers the workload to a Plan.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let _ = netmist::is_custom_workload(text);
    match netmist::parse(text, "fuzz.txt") {
        Ok(workload) => {
            let written = to_toml(workload.file()).expect("its numbers are those of TOML");
            let again = parse(&written, "fuzz.toml").expect("what was written is a mix");
            assert_eq!(again.file(), workload.file());
            check_mix(&workload, vec![]);
        }
        Err(errors) => check_refusal(&errors),
    }
}
