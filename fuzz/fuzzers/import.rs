//! The target `import` with libFuzzer.
#![no_main]

plimsoll_fuzz::fuzzer!(import);
