//! The target `event` with libFuzzer.
#![no_main]

plimsoll_fuzz::fuzzer!(event);
