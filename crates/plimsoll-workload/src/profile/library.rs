//! The compiled-in profiles: the profiles that Filebench ships, without their author's work directory, results directory
//! and file system; and the profile `nfs4-opens`, for the study of plimsoll-testbed with this name.

/// Names and texts.
const TEXTS: [(&str, &str); 4] = [
    ("fileio", include_str!("../../profiles/fileio.prof")),
    ("filemacro", include_str!("../../profiles/filemacro.prof")),
    ("filemicro", include_str!("../../profiles/filemicro.prof")),
    ("nfs4-opens", include_str!("../../profiles/nfs4-opens.prof")),
];

/// The text of the profile of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static str> {
    TEXTS
        .iter()
        .find(|(n, _)| *n == name)
        .map(|(_, text)| *text)
}

/// Names of the profiles that are compiled in, sorted.
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
