//! The target `loads` with libFuzzer.
#![no_main]

plimsoll_fuzz::fuzzer!(loads);
