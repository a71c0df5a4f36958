//! Built-in systems.

use plimsoll_diagnostics::nearest;
use std::fs::File;
use std::io::Read;

/// Maximum size of a system file in bytes; the built-in files have a few KiB.
const MAX_SYSTEM_BYTES: u64 = 1 << 20;

/// Names and texts of the built-in systems, sorted by name.
pub const BUILTIN: [(&str, &str); 3] = [
    ("edge-32", include_str!("../systems/edge-32.toml")),
    (
        "flash-2-replicas",
        include_str!("../systems/flash-2-replicas.toml"),
    ),
    ("small-filer", include_str!("../systems/small-filer.toml")),
];

/// Text of the system file of the built-in system `name`; `None` if no built-in system has the name.
#[must_use]
pub fn builtin(name: &str) -> Option<&'static str> {
    BUILTIN
        .iter()
        .find(|(n, _)| *n == name)
        .map(|(_, text)| *text)
}

/// Text of a system. `name` is a built-in name, or the path of a file: a path has a slash or ends in `.toml`.
///
/// # Errors
/// A sentence if the name is unknown, or if the file cannot be read.
pub fn find(name: &str) -> Result<String, String> {
    if name.contains('/') || name.ends_with(".toml") {
        return read(name);
    }
    if let Some(text) = builtin(name) {
        return Ok(text.to_owned());
    }
    let names = || BUILTIN.iter().map(|(name, _)| *name);
    let hint = match nearest(name, names()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!(
            "expected {} or the path of a file, such as ./mine.toml",
            names().collect::<Vec<_>>().join(", ")
        ),
    };
    Err(format!("`{name}` is not a built-in system: {hint}"))
}

fn read(path: &str) -> Result<String, String> {
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(MAX_SYSTEM_BYTES + 1).read_to_string(&mut text))
        .map_err(|e| format!("cannot read the system {path}: {e}"))?;
    match text.len() as u64 {
        0..=MAX_SYSTEM_BYTES => Ok(text),
        _ => Err(format!("{path} is not a system: it has more than 1 MiB")),
    }
}
