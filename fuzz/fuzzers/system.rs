//! The target `system` with libFuzzer.
#![no_main]

plimsoll_fuzz::fuzzer!(system);
