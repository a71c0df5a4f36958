//! Built-in systems.

/// Names and texts of the built-in systems, by name.
pub const BUILTIN: [(&str, &str); 2] = [
    ("edge-32", include_str!("../systems/edge-32.toml")),
    (
        "flash-2-replicas",
        include_str!("../systems/flash-2-replicas.toml"),
    ),
];

/// The text of a built-in system.
#[must_use]
pub fn builtin(name: &str) -> Option<&'static str> {
    BUILTIN
        .iter()
        .find(|(n, _)| *n == name)
        .map(|(_, text)| *text)
}
