//! The target `profile_json` with libFuzzer.
#![no_main]

plimsoll_fuzz::fuzzer!(profile_json);
