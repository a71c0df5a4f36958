//! The libFuzzer program of all fuzz targets. The environment variable `FUZZ_TARGET` selects the target that the
//! program runs.
#![no_main]

use plimsoll_fuzz::targets::{ALL, Target};
use plimsoll_fuzz::{libfuzzer_sys, limits};
use std::sync::LazyLock;

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("FUZZ_TARGET").expect("FUZZ_TARGET names a target");
    let target = ALL.iter().find(|(known, _)| *known == name);
    *target.unwrap_or_else(|| panic!("there is no fuzz target `{name}`"))
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let (_, run) = *TARGET;
    limits::within(|| run(data));
});
