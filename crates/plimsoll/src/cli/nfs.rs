//! Arguments of the servers, and of the line to one.

use super::values::duration;
use clap::Args;
use plimsoll_nfs::server::FaultRule;
use plimsoll_wan::{BitRate, Link, Namespace};
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

/// Arguments of `wan`.
#[derive(Debug, Args)]
pub struct WanArgs {
    /// Where the relay listens; port 0 takes a free one
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        required_unless_present = "tun",
        requires = "to"
    )]
    pub listen: Option<SocketAddr>,
    /// The server that connections are passed on to
    #[arg(long, value_name = "HOST:PORT", requires = "listen")]
    pub to: Option<String>,
    /// Pass packets between two network namespaces instead, so that TCP goes all the way; `self` is
    /// that of this process. Needs root
    #[arg(long, num_args = 2, value_names = ["NAMESPACE", "NAMESPACE"])]
    #[arg(conflicts_with_all = ["listen", "to"])]
    pub tun: Option<Vec<Namespace>>,
    /// Time of a round trip, at most 10s; half of it each way
    #[arg(long, value_name = "TIME", value_parser = duration, allow_hyphen_values = true)]
    pub rtt: Duration,
    /// Have round trips differ by up to this from that, either way, evenly distributed each way;
    /// nothing overtakes
    #[arg(long, value_name = "TIME", default_value = "0ms", value_parser = duration)]
    #[arg(allow_hyphen_values = true)]
    pub jitter: Duration,
    /// Most bits a second each way, of all connections together, such as 100mbit or 1gbit
    #[arg(long, value_name = "RATE", allow_hyphen_values = true)]
    pub rate: Option<BitRate>,
    /// Probability that a packet is lost. A relay loses none: what would be lost, and what follows it
    /// on its connection, comes a round trip and 200 ms later, as if it had been sent again
    #[arg(
        long,
        value_name = "P",
        default_value_t = 0.0,
        allow_hyphen_values = true
    )]
    pub loss: f64,
}

impl WanArgs {
    /// The line that is asked for.
    pub fn link(&self) -> Link {
        Link {
            rtt: self.rtt,
            jitter: self.jitter,
            rate: self.rate,
            loss: self.loss,
        }
    }
}
