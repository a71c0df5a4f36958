//! `systems nfs`: an in-memory NFS server.

use crate::cli::NfsArgs;
use crate::exit::{CommandError, Exit};
use crate::signals::of_server;
use plimsoll_nfs::server::{Server, ServerOptions, Tree};
use std::sync::{Arc, Mutex};

/// Serves files in memory over NFSv3 until SIGINT, SIGTERM or SIGHUP, which end the server with exit code 0.
pub fn run(args: &NfsArgs) -> Result<Exit, CommandError> {
    // Catch signals before announcing the server, so that any signal ends the server in order.
    let mut signals = of_server()?;
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
    drop(server);
    Ok(Exit::Valid)
}
