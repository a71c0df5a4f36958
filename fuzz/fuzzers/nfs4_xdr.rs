//! The target `nfs4_xdr` with libFuzzer.
#![no_main]

plimsoll_fuzz::fuzzer!(nfs4_xdr);
