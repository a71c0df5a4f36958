//! The target `rank_handshake` with libFuzzer.
#![no_main]

plimsoll_fuzz::fuzzer!(rank_handshake);
