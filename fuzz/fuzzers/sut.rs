//! The target `sut` with libFuzzer.
#![no_main]

plimsoll_fuzz::fuzzer!(sut);
