//! The target `http` with libFuzzer.
#![no_main]

plimsoll_fuzz::fuzzer!(http);
