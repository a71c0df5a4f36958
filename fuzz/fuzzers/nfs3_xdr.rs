//! The target `nfs3_xdr` with libFuzzer.
#![no_main]

plimsoll_fuzz::fuzzer!(nfs3_xdr);
