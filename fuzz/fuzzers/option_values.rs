//! The target `option_values` with libFuzzer.
#![no_main]

plimsoll_fuzz::fuzzer!(option_values);
