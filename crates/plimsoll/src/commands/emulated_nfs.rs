//! `emulate nfs`: an in-memory NFS server.

use crate::cli::NfsArgs;
use crate::exit::{CommandError, Exit};
use plimsoll_nfs::server::{Server, ServerOptions, Tree};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::{Arc, Mutex};

/// Serves until a signal arrives.
pub fn run(args: &NfsArgs) -> Result<Exit, CommandError> {
    // Catch signals before announcing the server, so that any signal ends the server in order.
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])
        .map_err(|e| CommandError::failed(format!("cannot catch Ctrl-C: {e}")))?;
    let behaviour = ServerOptions {
        delay: args.reply_delay,
        faults: args.inject_fault.clone(),
    };
    let tree = Arc::new(Mutex::new(Tree::new(args.max_memory)));
    let server = Server::start(args.listen, tree, behaviour)
        .map_err(|e| CommandError::usage(format!("cannot listen on {}: {e}", args.listen)))?;
    let (at, port) = (server.address(), server.address().port());
    super::print(&format!("nfs3://{at}/?mountport={port}\n"))?;
    signals.forever().next();
    server.stop();
    Ok(Exit::Valid)
}
