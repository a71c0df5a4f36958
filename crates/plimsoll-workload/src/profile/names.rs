//! Keys of a profile, and names that have changed since profiles were written.

/// Keys that are about the runs and no parameters of a workload.
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

/// Keys that only the defaults have: there is one of each in a profile.
pub(crate) const OF_PROFILE: [&str; 3] = ["stats", "filesystem", "description"];

/// Keys that are not looked at one run at a time: their values are of the whole profile, or are
/// looked at before there are runs.
pub(crate) const PASSED_APART: [&str; 3] = ["stats", "description", "function"];

/// Keys that are about the runs, and are parameters too where a workload has one of the name.
pub(crate) const TAKEN_AND_PASSED: [&str; 4] = ["runtime", "duration", "warmuptime", "filesystem"];

/// Parameters under the name that profiles of Filebench 1.x give them, and under that of a later
/// version of the same workload.
const PARAMETERS: [(&str, &str); 7] = [
    ("dirwidth", "meandirwidth"),
    ("meandirwidth", "dirwidth"),
    ("filesize", "meanfilesize"),
    ("meanfilesize", "filesize"),
    // Sizes of appends of a file server and of a mail server.
    ("meaniosize", "meanappendsize"),
    ("memperthread", "memsize"),
    ("memsize", "memperthread"),
];

/// Workloads that have another name since Filebench 1.3.
const PERSONALITIES: [(&str, &str); 2] = [
    ("multistreamreaddirect", "fivestreamreaddirect"),
    ("multistreamwritedirect", "fivestreamwritedirect"),
];

/// The present name of a personality of an older profile.
#[must_use]
pub fn renamed_personality(name: &str) -> Option<&'static str> {
    let mut all = PERSONALITIES.iter();
    all.find(|(old, _)| *old == name).map(|(_, new)| *new)
}

/// The parameter that a key means: the one of that name, or one of `known` that was renamed.
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
