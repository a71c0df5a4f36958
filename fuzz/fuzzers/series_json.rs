//! The target `series_json` with libFuzzer.
#![no_main]

plimsoll_fuzz::fuzzer!(series_json);
