//! Built-in profiles: Filebench's profiles without their author's work directory, results directory and file system,
//! and the profile `nfs4-opens` for the plimsoll-testbed study of the same name.

/// Names and texts, sorted by name.
const TEXTS: [(&str, &str); 4] = [
    ("fileio", include_str!("../../profiles/fileio.prof")),
    ("filemacro", include_str!("../../profiles/filemacro.prof")),
    ("filemicro", include_str!("../../profiles/filemicro.prof")),
    ("nfs4-opens", include_str!("../../profiles/nfs4-opens.prof")),
];

/// Text of the built-in profile with this name; `None` if the name is unknown.
#[must_use]
pub fn find(name: &str) -> Option<&'static str> {
    TEXTS
        .iter()
        .find(|(n, _)| *n == name)
        .map(|(_, text)| *text)
}

/// Names of the built-in profiles, sorted.
pub fn names() -> impl Iterator<Item = &'static str> {
    TEXTS.iter().map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_is_one_and_has_its_place_in_the_list() {
        let mut sorted: Vec<_> = names().collect();
        sorted.sort_unstable();
        assert!(names().eq(sorted));
        for name in names() {
            let text = find(name).unwrap();
            let profile = crate::profile::parse(text, name).unwrap_or_else(|d| panic!("{d}"));
            assert!(profile.configs().count() >= 2, "{name}");
        }
    }
}
