//! Operation mixes in TOML: any text is parsed, or refused with a place. A mix does not change when it is written as
//! TOML and parsed again, and its Plan passes its own check.

use crate::plans::check_mix;
use crate::refusals::check_refusal;
use plimsoll_workload::mix::{parse, to_toml};

/// Parses, writes and lowers a text.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let workload = match parse(text, "fuzz.toml") {
        Ok(workload) => workload,
        Err(errors) => return check_refusal(&errors),
    };
    // Some numbers have no form in TOML, and cannot be written.
    if let Ok(written) = to_toml(workload.file()) {
        let again = parse(&written, "fuzz.toml").expect("what was written is a mix");
        assert_eq!(again.file(), workload.file());
    }
    check_mix(&workload, vec![]);
}
