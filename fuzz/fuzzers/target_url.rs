//! The target `target_url` with libFuzzer.
#![no_main]

plimsoll_fuzz::fuzzer!(target_url);
