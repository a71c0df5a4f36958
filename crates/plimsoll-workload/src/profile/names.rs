//! Keys of a profile, and changed names of parameters and workloads.

/// Keys that Plimsoll interprets. A workload that has a parameter with the same name also gets the keys of
/// [`TAKEN_AND_PASSED`], `stats` and `description`; `eventrate` goes to such a workload only, and otherwise to the
/// limiters.
pub(crate) const KEYS: [&str; 11] = [
    "runtime",
    "duration",
    "warmuptime",
    "dir",
    "stats",
    "filesystem",
    "description",
    "personality",
    "function",
    "target",
    "eventrate",
];

/// Keys that only DEFAULTS may have, once per profile.
pub(crate) const OF_PROFILE: [&str; 3] = ["stats", "filesystem", "description"];

/// Keys that are not applied run by run: they apply to the whole profile, or before the runs are known.
pub(crate) const PASSED_APART: [&str; 3] = ["stats", "description", "function"];

/// Keys that apply to runs and are passed to workloads that have a parameter with the same name.
pub(crate) const TAKEN_AND_PASSED: [&str; 4] = ["runtime", "duration", "warmuptime", "filesystem"];

/// Names of renamed parameters: name in a profile, and name in another version of the workload.
const PARAMETERS: [(&str, &str); 7] = [
    ("dirwidth", "meandirwidth"),
    ("meandirwidth", "dirwidth"),
    ("filesize", "meanfilesize"),
    ("meanfilesize", "filesize"),
    // Sizes of appends of `fileserver` and `varmail`.
    ("meaniosize", "meanappendsize"),
    ("memperthread", "memsize"),
    ("memsize", "memperthread"),
];

/// Workloads that Filebench renamed after 1.3: old name, new name.
const PERSONALITIES: [(&str, &str); 2] = [
    ("multistreamreaddirect", "fivestreamreaddirect"),
    ("multistreamwritedirect", "fivestreamwritedirect"),
];

/// Present name of a renamed personality; `None` for other names.
#[must_use]
pub fn renamed_personality(name: &str) -> Option<&'static str> {
    let mut all = PERSONALITIES.iter();
    all.find(|(old, _)| *old == name).map(|(_, new)| *new)
}

/// The parameter that a key sets: the parameter with the key's name, else a renamed parameter in `known`.
pub(crate) fn parameter<'a>(key: &'a str, known: &[&str]) -> Option<&'a str> {
    let has = |name: &str| known.contains(&name);
    if has(key) {
        return Some(key);
    }
    let renamed = PARAMETERS.iter().filter(|(old, _)| *old == key);
    renamed.map(|(_, new)| *new).find(|new| has(new))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_means_the_parameter_of_its_name_before_a_renamed_one() {
        let both = ["dirwidth", "meandirwidth"];
        assert_eq!(parameter("dirwidth", &both), Some("dirwidth"));
        let new = ["meandirwidth", "nfiles"];
        assert_eq!(parameter("dirwidth", &new), Some("meandirwidth"));
        assert_eq!(parameter("sync", &new), None);
        assert_eq!(
            parameter("memsize", &["memperthread"]),
            Some("memperthread")
        );
    }

    #[test]
    fn streams_past_the_page_cache_have_another_name() {
        let now = renamed_personality("multistreamreaddirect");
        assert_eq!(now, Some("fivestreamreaddirect"));
        assert_eq!(renamed_personality("multistreamread"), None);
    }
}
