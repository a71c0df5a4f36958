//! The target `curve_json` with libFuzzer.
#![no_main]

plimsoll_fuzz::fuzzer!(curve_json);
