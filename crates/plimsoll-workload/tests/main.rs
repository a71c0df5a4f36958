//! Tests of the front ends, through their public functions.

mod md;
mod mix;
mod profile;
mod tables;
mod wml;
