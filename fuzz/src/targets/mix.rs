//! Target for operation mixes in TOML: any text is parsed, or refused with a place. Writing a mix as TOML and parsing
//! the written text does not change the mix. The Plan of a mix passes its own check.

use crate::plans::check_mix;
use crate::refusals::check_refusal;
use plimsoll_workload::mix::{parse, to_toml};

/// Parses the input as an operation mix, writes the mix as TOML, and lowers the mix to a Plan.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let workload = match parse(text, "fuzz.toml") {
        Ok(workload) => workload,
        Err(errors) => return check_refusal(&errors),
    };
    // `to_toml` refuses numbers that TOML cannot represent.
    if let Ok(written) = to_toml(workload.file()) {
        let again = parse(&written, "fuzz.toml").expect("what was written is a mix");
        assert_eq!(again.file(), workload.file());
    }
    check_mix(&workload, vec![]);
}
