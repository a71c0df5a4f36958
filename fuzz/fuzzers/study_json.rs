//! The target `study_json` with libFuzzer.
#![no_main]

plimsoll_fuzz::fuzzer!(study_json);
