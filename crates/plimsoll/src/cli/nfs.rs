//! Arguments of `systems wan` and `systems nfs`: properties of an emulated WAN link, and behaviour of an NFSv3 server
//! in memory.

use super::values::duration;
use clap::Args;
use plimsoll_nfs::server::FaultRule;
use plimsoll_nfs::wan::{BitRate, Link};
use std::net::SocketAddr;
use std::time::Duration;

/// Arguments of `systems nfs`.
#[derive(Debug, Args)]
pub struct NfsArgs {
    /// Address on which the server listens; port 0 selects a free port
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
    /// Delay between a call and its reply; calls do not wait for each other
    #[arg(long, value_name = "TIME", default_value = "0ms", value_parser = duration)]
    #[arg(allow_hyphen_values = true)]
    pub reply_delay: Duration,
    /// Inject a fault into a fraction of the calls of a procedure (or `all`); repeatable, and the first
    /// match applies
    #[arg(long, value_name = "PROCEDURE=FAULT:FRACTION")]
    pub inject_fault: Vec<FaultRule>,
    /// Maximum memory for the files on the server, such as 512m; a full server replies NFS3ERR_NOSPC
    #[arg(long, value_name = "SIZE", default_value = "1g", value_parser = plimsoll_plan::parse_size)]
    pub max_memory: u64,
}

/// Arguments of `systems wan`.
#[derive(Debug, Args)]
pub struct WanArgs {
    /// Address on which the relay listens; port 0 selects a free port
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: SocketAddr,
    /// Server to which connections are passed on
    #[arg(long, value_name = "HOST:PORT")]
    pub upstream: String,
    /// Round-trip time that the relay adds, at most 10s; half of the time in each direction
    #[arg(long, value_name = "TIME", value_parser = duration, allow_hyphen_values = true)]
    pub rtt: Duration,
    /// Maximum deviation of round-trip times, uniformly distributed in each direction; data stays in
    /// order
    #[arg(long, value_name = "TIME", default_value = "0ms", value_parser = duration)]
    #[arg(allow_hyphen_values = true)]
    pub jitter: Duration,
    /// Maximum bits per second in each direction, of all connections together, such as 100mbit or 1gbit
    #[arg(long, value_name = "RATE", allow_hyphen_values = true)]
    pub bandwidth: Option<BitRate>,
    /// Probability, for each packet, of a loss: the packet's data, and later data of the same connection, arrive one
    /// round trip plus 200 ms late, as if retransmitted
    #[arg(
        long,
        value_name = "P",
        default_value_t = 0.0,
        allow_hyphen_values = true
    )]
    pub loss: f64,
}

impl WanArgs {
    /// Parameters of the relay's emulated link, as given by the options of `systems wan`.
    pub fn link(&self) -> Link {
        Link {
            rtt: self.rtt,
            jitter: self.jitter,
            bandwidth: self.bandwidth,
            loss: self.loss,
        }
    }
}
