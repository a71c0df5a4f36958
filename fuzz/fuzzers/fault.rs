//! The target `fault` with libFuzzer.
#![no_main]

plimsoll_fuzz::fuzzer!(fault);
