//! The target `nfs3_server` with libFuzzer.
#![no_main]

plimsoll_fuzz::fuzzer!(nfs3_server);
