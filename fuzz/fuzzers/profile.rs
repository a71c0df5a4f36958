//! The target `profile` with libFuzzer.
#![no_main]

plimsoll_fuzz::fuzzer!(profile);
