//! The target `netmist` with libFuzzer.
#![no_main]

plimsoll_fuzz::fuzzer!(netmist);
