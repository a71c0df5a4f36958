#![allow(missing_docs)]
mod common;
mod crash_points;
