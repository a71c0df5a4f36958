//! Operation mixes in TOML: any text is parsed, or refused with a place. What is parsed is the same after
//! it was written as TOML, and its Plan passes its own check.

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
    // Numbers that TOML does not have cannot be written.
    if let Ok(written) = to_toml(workload.file()) {
        let again = parse(&written, "fuzz.toml").expect("what was written is a mix");
        assert_eq!(again.file(), workload.file());
    }
    check_mix(&workload, vec![]);
}
