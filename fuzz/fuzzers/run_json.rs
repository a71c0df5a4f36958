//! The target `run_json` with libFuzzer.
#![no_main]

plimsoll_fuzz::fuzzer!(run_json);
