//! The target `mix` with libFuzzer.
#![no_main]

plimsoll_fuzz::fuzzer!(mix);
