//! The target `histograms` with libFuzzer.
#![no_main]

plimsoll_fuzz::fuzzer!(histograms);
