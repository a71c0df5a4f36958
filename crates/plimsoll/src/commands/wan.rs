//! `emulate wan`: a relay that emulates a long-distance link between client and server.

use crate::cli::WanArgs;
use crate::exit::{CommandError, Exit};
use plimsoll_nfs::wan::{DirectionTotals, Namespace, Relay, Summary, Tunnel};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::net::{SocketAddr, ToSocketAddrs};

/// Relays until a signal arrives, and prints the transferred amounts.
pub fn run(args: &WanArgs) -> Result<Exit, CommandError> {
    args.link().check().map_err(CommandError::usage)?;
    // Catch signals before announcing the relay, so that any signal ends the relay in order.
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])
        .map_err(|e| CommandError::failed(format!("cannot catch Ctrl-C: {e}")))?;
    let text = match (args.tun.as_deref(), args.listen, &args.upstream) {
        (Some([first, second]), ..) => tunnel(args, first, second, &mut signals)?,
        (None, Some(listen), Some(to)) => relay(args, listen, to, &mut signals)?,
        // The parser guarantees exactly one of both.
        _ => {
            return Err(CommandError::usage(
                "expected --listen and --upstream, or --tun",
            ));
        }
    };
    super::print(&text)
}

fn relay(
    args: &WanArgs,
    listen: SocketAddr,
    to: &str,
    signals: &mut Signals,
) -> Result<String, CommandError> {
    let server = addresses(to)?;
    let relay = Relay::start(listen, &server, &args.link())
        .map_err(|e| CommandError::usage(format!("cannot listen on {listen}: {e}")))?;
    let at = relay.address();
    let server: Vec<String> = server.iter().map(ToString::to_string).collect();
    let server = server.join(" or ");
    super::print(&format!("TCP relay at {at} to {server}: {}\n", args.link()))?;
    signals.forever().next();
    let done = relay.stop();
    let taken = done.connections - done.refused;
    Ok(format!(
        "TCP relay: no slow start seen\n\
         {} passed on, {} not accepted by the server\n{}",
        connections(taken),
        done.refused,
        ways(&done, ["to the server", "to the client"])
    ))
}

fn tunnel(
    args: &WanArgs,
    first: &Namespace,
    second: &Namespace,
    signals: &mut Signals,
) -> Result<String, CommandError> {
    let tunnel = Tunnel::start(first, second, &args.link()).map_err(CommandError::usage)?;
    let [one, other] = tunnel.addresses();
    let [one_device, other_device] = tunnel.devices();
    super::print(&format!(
        "tunnel between {one} ({one_device}) and {other} ({other_device}): {}\n",
        args.link()
    ))?;
    signals.forever().next();
    let done = tunnel.stop();
    Ok(ways(&done, ["to the second", "to the first"]))
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

fn connections(count: u64) -> String {
    match count {
        1 => "1 connection".into(),
        n => format!("{n} connections"),
    }
}

fn ways(done: &Summary, names: [&str; 2]) -> String {
    let line = |name: &str, passed: &DirectionTotals| format!("{name}: {passed}\n");
    line(names[0], &done.up) + &line(names[1], &done.down)
}
