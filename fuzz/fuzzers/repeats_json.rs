//! The target `repeats_json` with libFuzzer.
#![no_main]

plimsoll_fuzz::fuzzer!(repeats_json);
