//! `serve`: the results browser.

use crate::cli::ServeArgs;
use crate::console;
use crate::exit::{CommandError, Exit};
use plimsoll_serve::{ServeError, Server, Settings};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

/// Variable that may hold the token.
const TOKEN_VARIABLE: &str = "PLIMSOLL_TOKEN";

/// Serves until a signal comes.
pub fn run(args: &ServeArgs) -> Result<Exit, CommandError> {
    // Before anybody can know of the server, so that a signal always ends it in order.
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])
        .map_err(|e| CommandError::failed(format!("cannot catch Ctrl-C: {e}")))?;
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
    let mut settings = Settings {
        root: args.root.clone(),
        index: args.index.clone(),
        token,
        hosts: args.allowed_host.clone(),
        rebuild: args.rebuild_index,
    };
    if args.index.is_some() {
        return Server::bind(args.listen, settings).map_err(CommandError::usage);
    }
    // Without a directory for it, the index is rebuilt each time.
    let remark = match cached(&args.root) {
        Ok(path) => {
            settings.index = Some(path);
            match Server::bind(args.listen, settings.clone()) {
                Err(e @ (ServeError::Index(_) | ServeError::IndexAmongResults(_))) => e.to_string(),
                bound => return bound.map_err(CommandError::usage),
            }
        }
        Err(remark) => remark,
    };
    console::err(&format!("note: the index is kept in memory: {remark}\n"));
    settings.index = None;
    Server::bind(args.listen, settings).map_err(CommandError::usage)
}

/// The file of a root's index in the user's cache directory, which is made if it is missing.
fn cached(root: &Path) -> Result<PathBuf, String> {
    let absolute = |name: &str| {
        let path = std::env::var_os(name).map(PathBuf::from);
        path.filter(|p| p.is_absolute())
    };
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    let dir = cache
        .ok_or("neither HOME nor XDG_CACHE_HOME is set")?
        .join("plimsoll");
    std::fs::create_dir_all(&dir).map_err(|e| format!("cannot make {}: {e}", dir.display()))?;
    // Each root has its own index; a collision of names only causes a rebuild.
    let mut hasher = DefaultHasher::new();
    let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    root.hash(&mut hasher);
    Ok(dir.join(format!("index-{:016x}.sqlite", hasher.finish())))
}
