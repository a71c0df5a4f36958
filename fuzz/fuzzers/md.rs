//! The target `md` with libFuzzer.
#![no_main]

plimsoll_fuzz::fuzzer!(md);
