//! The target `settings` with libFuzzer.
#![no_main]

plimsoll_fuzz::fuzzer!(settings);
