//! The target `find_json` with libFuzzer.
#![no_main]

plimsoll_fuzz::fuzzer!(find_json);
