//! Test processes that connect to hosts, and ranks on the hosts.

use crate::program::{run_scenario, tell};
use plimsoll_ranks::{
    HostGroup, accept_assignment, connect_hosts, is_assigned_rank, is_reporting_rank,
};
use std::process::ExitCode;

/// Version of the test program, which the hosts' ranks report.
pub const VERSION: &str = "1.0";

/// Runs a rank that another rank has started; the payload of the assignment is the scenario.
pub fn run_assigned() -> ExitCode {
    assert!(!is_assigned_rank());
    let payload = match accept_assignment(VERSION, None) {
        Ok(payload) => String::from_utf8(payload).unwrap(),
        Err(error) => {
            tell(&error.to_string());
            return ExitCode::from(if error.is_usage() { 2 } else { 1 });
        }
    };
    assert!(is_assigned_rank() && !is_reporting_rank());
    let (scenario, numbers) = payload.split_once(' ').unwrap_or((&payload, ""));
    let numbers = numbers.split_whitespace().map(|n| n.parse().unwrap());
    run_scenario(None, scenario, &numbers.collect::<Vec<u32>>())
}

/// Tries to connect to zero hosts with an `ssh` command that does not exist.
pub fn try_hosts() -> ExitCode {
    let group = HostGroup {
        ssh: "no-such-command-2".into(),
        hosts: vec![],
        processes: 1,
        root_works: true,
        version: VERSION.into(),
        payload: vec![],
        copy: None,
    };
    let error = connect_hosts(&group).err().unwrap();
    tell(&error.to_string());
    ExitCode::from(if error.is_usage() { 2 } else { 1 })
}
