//! The target `annotations_json` with libFuzzer.
#![no_main]

plimsoll_fuzz::fuzzer!(annotations_json);
