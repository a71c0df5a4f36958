//! Tests of the front ends, through their public functions.

mod fio;
mod io500;
mod ior;
mod md;
mod mdtest;
mod mix;
mod profile;
mod tables;
mod wml;
