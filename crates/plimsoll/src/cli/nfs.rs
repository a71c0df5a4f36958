//! Arguments of `emulate`.

use super::examples::{NFS_EXAMPLES, WAN_EXAMPLES};
use super::values::duration;
use clap::{Args, Subcommand};
use plimsoll_nfs::server::FaultRule;
use plimsoll_nfs::wan::{BitRate, Link, Namespace};
use std::net::SocketAddr;
use std::time::Duration;

/// Subcommands of `emulate`.
#[derive(Debug, Subcommand)]
pub enum EmulateCommand {
    /// Emulate a WAN link between a client and a server: delay, jitter, bandwidth and losses
    #[command(after_help = WAN_EXAMPLES)]
    Wan(WanArgs),
    /// Serve files in memory over NFSv3, for trying out the nfs3 target
    #[command(after_help = NFS_EXAMPLES)]
    Nfs(NfsArgs),
}

/// Arguments of `emulate nfs`.
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
    /// Maximum memory for files, such as 512m
    #[arg(long, value_name = "SIZE", default_value = "1g", value_parser = plimsoll_plan::parse_size)]
    pub max_memory: u64,
}

/// Arguments of `emulate wan`.
#[derive(Debug, Args)]
pub struct WanArgs {
    /// Address on which the relay listens; port 0 selects a free port
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        required_unless_present = "tun",
        requires = "upstream"
    )]
    pub listen: Option<SocketAddr>,
    /// Server to which connections are passed on
    #[arg(long, value_name = "HOST:PORT", requires = "listen")]
    pub upstream: Option<String>,
    /// Pass packets between two network namespaces instead, so that TCP runs end to end; `self` is the
    /// namespace of this process. Needs root
    #[arg(long, num_args = 2, value_names = ["NAMESPACE", "NAMESPACE"])]
    #[arg(conflicts_with_all = ["listen", "upstream"])]
    pub tun: Option<Vec<Namespace>>,
    /// Round-trip time, at most 10s; half of it in each direction
    #[arg(long, value_name = "TIME", value_parser = duration, allow_hyphen_values = true)]
    pub rtt: Duration,
    /// Maximum deviation of round-trip times, uniformly distributed in each direction; packets are not
    /// reordered
    #[arg(long, value_name = "TIME", default_value = "0ms", value_parser = duration)]
    #[arg(allow_hyphen_values = true)]
    pub jitter: Duration,
    /// Maximum bits per second in each direction, of all connections together, such as 100mbit or 1gbit
    #[arg(long, value_name = "RATE", allow_hyphen_values = true)]
    pub bandwidth: Option<BitRate>,
    /// Probability that a packet is lost. A relay loses none: data that would be lost, and what
    /// follows it on that connection, arrives one round trip plus 200 ms late, as if retransmitted
    #[arg(
        long,
        value_name = "P",
        default_value_t = 0.0,
        allow_hyphen_values = true
    )]
    pub loss: f64,
}

impl WanArgs {
    /// The requested link.
    pub fn link(&self) -> Link {
        Link {
            rtt: self.rtt,
            jitter: self.jitter,
            bandwidth: self.bandwidth,
            loss: self.loss,
        }
    }
}
