//! The target `intervals` with libFuzzer.
#![no_main]

plimsoll_fuzz::fuzzer!(intervals);
