//! The target `wml` with libFuzzer.
#![no_main]

plimsoll_fuzz::fuzzer!(wml);
