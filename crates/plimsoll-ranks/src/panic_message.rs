//! Panic message, kept for rank 0: the standard error of a rank on another machine is shown only if the connection is
//! lost.

use std::panic::{self, PanicHookInfo};
use std::sync::OnceLock;

static FIRST: OnceLock<String> = OnceLock::new();

/// Installs a hook that keeps the message of the first panic. Panics are still printed.
pub fn keep() {
    let print = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        // Only the first panic is kept, because later panics follow from the first.
        let _ = FIRST.set(message_of(info));
        print(info);
    }));
}

/// Message and location of the first panic; `None` without a panic.
pub fn first() -> Option<&'static str> {
    FIRST.get().map(String::as_str)
}

fn message_of(info: &PanicHookInfo<'_>) -> String {
    let text = info.payload_as_str().unwrap_or("no message");
    match info.location() {
        Some(place) => format!("{text} ({}:{})", place.file(), place.line()),
        None => text.to_owned(),
    }
}
