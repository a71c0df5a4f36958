//! The message of a panic, which a rank on another machine sends to rank 0: its standard error is shown only if
//! the connection is lost.

use std::panic::{self, PanicHookInfo};
use std::sync::OnceLock;

static FIRST: OnceLock<String> = OnceLock::new();

/// Keeps the message of the first panic of this process from now on. It is printed as before.
pub fn keep() {
    let print = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        // That of the first is the cause.
        let _ = FIRST.set(message_of(info));
        print(info);
    }));
}

/// The message of the first panic and its place, if it was kept.
pub fn first() -> Option<&'static str> {
    FIRST.get().map(String::as_str)
}

fn message_of(info: &PanicHookInfo<'_>) -> String {
    let payload = info.payload();
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let text = text.unwrap_or("no message");
    match info.location() {
        Some(place) => format!("{text} ({}:{})", place.file(), place.line()),
        None => text.to_owned(),
    }
}
