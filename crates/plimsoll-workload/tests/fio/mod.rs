//! Tests of `plimsoll_workload::fio`.

mod command_lines;
mod common;
mod diagnostics;
mod examples;
mod job_files;
mod plans;
