//! The target `nfs4_compound` with libFuzzer.
#![no_main]

plimsoll_fuzz::fuzzer!(nfs4_compound);
