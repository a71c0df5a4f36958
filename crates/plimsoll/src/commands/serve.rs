//! `results serve`: the results browser.

use crate::cli::ServeArgs;
use crate::exit::{CommandError, Exit};
use crate::signals::of_server;
use plimsoll_serve::{Server, Settings};

/// Environment variable with the access token of the results browser, read if `--token` is not given.
const TOKEN_VARIABLE: &str = "PLIMSOLL_TOKEN";

/// Serves the results browser over HTTP until SIGINT, SIGTERM or SIGHUP, and prints the URL of the server.
pub fn run(args: &ServeArgs) -> Result<Exit, CommandError> {
    // Catch signals before announcing the server, so that any signal ends the server in order.
    let mut signals = of_server()?;
    let server = bind(args)?;
    let address = server
        .address()
        .map_err(|e| CommandError::failed(format!("cannot tell the address: {e}")))?;
    super::print(&format!("http://{address}/\n"))?;
    let until_a_signal_comes = move || _ = signals.forever().next();
    server
        .run(until_a_signal_comes)
        .map_err(CommandError::failed)?;
    Ok(Exit::Valid)
}

fn bind(args: &ServeArgs) -> Result<Server, CommandError> {
    let token = match &args.token {
        Some(token) => Some(token.clone()),
        None => std::env::var(TOKEN_VARIABLE).ok(),
    };
    let settings = Settings {
        root: args.root.clone(),
        token,
        hosts: args.allowed_host.clone(),
    };
    Server::bind(args.listen, settings).map_err(CommandError::usage)
}
