//! The target `recover` with libFuzzer.
#![no_main]

plimsoll_fuzz::fuzzer!(recover);
