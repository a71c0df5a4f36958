//! The target `rpc_record` with libFuzzer.
#![no_main]

plimsoll_fuzz::fuzzer!(rpc_record);
