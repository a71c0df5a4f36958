//! `systems wan`: a relay that emulates a long-distance link between client and server.

use crate::cli::WanArgs;
use crate::exit::{CommandError, Exit};
use crate::signals::of_server;
use plimsoll_nfs::wan::Relay;
use plimsoll_plan::counted;
use std::net::{SocketAddr, ToSocketAddrs};

/// Relays until a signal arrives, and prints the transferred amounts.
pub fn run(args: &WanArgs) -> Result<Exit, CommandError> {
    args.link().check().map_err(CommandError::usage)?;
    // Catch signals before announcing the relay, so that any signal ends the relay in order.
    let mut signals = of_server()?;
    let server = addresses(&args.upstream)?;
    let relay = Relay::start(args.listen, &server, &args.link())
        .map_err(|e| CommandError::usage(format!("cannot listen on {}: {e}", args.listen)))?;
    let at = relay.address();
    let server: Vec<String> = server.iter().map(ToString::to_string).collect();
    let server = server.join(" or ");
    super::print(&format!("TCP relay at {at} to {server}: {}\n", args.link()))?;
    signals.forever().next();
    let done = relay.stop();
    super::print(&format!(
        "TCP relay: no slow start seen\n\
         {} passed on, {} not accepted by the server\n\
         to the server: {}\nto the client: {}\n",
        counted(done.connections - done.refused, "connection", "connections"),
        done.refused,
        done.up,
        done.down
    ))
}

/// Resolves a host to all its addresses: a name such as `localhost` may have an address on which the server does not
/// listen.
fn addresses(to: &str) -> Result<Vec<SocketAddr>, CommandError> {
    let failed =
        |why: String| CommandError::usage(format!("--upstream {to}: {why}: expected HOST:PORT"));
    let found = to.to_socket_addrs().map_err(|e| failed(e.to_string()))?;
    let mut all: Vec<SocketAddr> = Vec::new();
    for address in found {
        if address.port() == 0 {
            return Err(failed("nothing listens at port 0".into()));
        }
        if !all.contains(&address) {
            all.push(address);
        }
    }
    match all.is_empty() {
        true => Err(failed("it has no address".into())),
        false => Ok(all),
    }
}
