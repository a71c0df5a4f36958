//! The target `nfs4_callback` with libFuzzer.
#![no_main]

plimsoll_fuzz::fuzzer!(nfs4_callback);
