//! Tests of `plimsoll_workload::mix`.

mod common;
mod diagnostics;
mod files;
mod netmist;
mod plans;
