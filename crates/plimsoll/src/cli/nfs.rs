//! Arguments of the servers.

use super::values::duration;
use clap::Args;
use plimsoll_nfs::server::FaultRule;
use std::net::SocketAddr;
use std::time::Duration;

/// Arguments of `serve-nfs`.
#[derive(Debug, Args)]
pub struct ServeNfsArgs {
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
    /// Time between a call and its answer; calls do not wait for each other
    #[arg(long, value_name = "TIME", default_value = "0ms", value_parser = duration)]
    #[arg(allow_hyphen_values = true)]
    pub delay: Duration,
    /// Have a share of the calls of a procedure (or all) come to a fault; may be given again, and
    /// the first that applies counts
    #[arg(long, value_name = "PROCEDURE=FAULT:RATE")]
    pub fail: Vec<FaultRule>,
    /// Most memory that files may take, such as 512m
    #[arg(long, value_name = "SIZE", default_value = "1g", value_parser = plimsoll_plan::parse_size)]
    pub memory: u64,
}
