//! The target `live_json` with libFuzzer.
#![no_main]

plimsoll_fuzz::fuzzer!(live_json);
