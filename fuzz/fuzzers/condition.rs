//! The target `condition` with libFuzzer.
#![no_main]

plimsoll_fuzz::fuzzer!(condition);
