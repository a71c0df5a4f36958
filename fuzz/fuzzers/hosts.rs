//! The target `hosts` with libFuzzer.
#![no_main]

plimsoll_fuzz::fuzzer!(hosts);
