//! Tests of `plimsoll_workload::fio`.

mod command_lines;
mod common;
mod devices;
mod diagnostics;
mod examples;
mod job_files;
mod plans;
