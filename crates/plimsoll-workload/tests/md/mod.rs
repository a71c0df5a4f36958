//! Tests of `plimsoll_workload::md`.

mod arguments;
mod common;
mod latency;
mod lines;
mod plans;
