//! The target `rank_frame` with libFuzzer.
#![no_main]

plimsoll_fuzz::fuzzer!(rank_frame);
