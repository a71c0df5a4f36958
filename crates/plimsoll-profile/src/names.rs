//! Keys of a profile, and names that have changed since profiles were written.

/// Keys that are about the runs and no parameters of a workload.
pub(crate) const KEYS: [&str; 9] = [
    "runtime",
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

/// Parameters under the name that profiles of Filebench 1.x give them, and under that of a later
/// version of the same workload.
const PARAMETERS: [(&str, &str); 6] = [
    ("dirwidth", "meandirwidth"),
    ("meandirwidth", "dirwidth"),
    ("filesize", "meanfilesize"),
    ("meanfilesize", "filesize"),
    // What a file server and a mail server append.
    ("meaniosize", "meanappendsize"),
    ("memperthread", "memsize"),
];

/// Workloads that have another name since Filebench 1.3.
const PERSONALITIES: [(&str, &str); 3] = [
    ("filemicro_createfsyncrand", "filemicro_createrand"),
    ("multistreamreaddirect", "fivestreamreaddirect"),
    ("multistreamwritedirect", "fivestreamwritedirect"),
];

/// The name that a personality of an older profile has now.
#[must_use]
pub fn renamed_personality(name: &str) -> Option<&'static str> {
    let mut all = PERSONALITIES.iter();
    all.find(|(old, _)| *old == name).map(|(_, new)| *new)
}

/// The parameter that a key means: the one of that name, or one of `known` that was renamed.
pub(crate) fn parameter<'a>(key: &'a str, known: &'a [String]) -> Option<&'a str> {
    let has = |name: &str| known.iter().any(|k| k == name);
    if has(key) {
        return Some(key);
    }
    let renamed = PARAMETERS.iter().filter(|(old, _)| *old == key);
    renamed.map(|(_, new)| *new).find(|new| has(new))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(names: &[&str]) -> Vec<String> {
        names.iter().map(|n| (*n).to_owned()).collect()
    }

    #[test]
    fn a_key_means_the_parameter_of_its_name_before_a_renamed_one() {
        let both = known(&["dirwidth", "meandirwidth"]);
        assert_eq!(parameter("dirwidth", &both), Some("dirwidth"));
        let new = known(&["meandirwidth", "nfiles"]);
        assert_eq!(parameter("dirwidth", &new), Some("meandirwidth"));
        assert_eq!(parameter("sync", &new), None);
    }

    #[test]
    fn streams_past_the_page_cache_have_another_name() {
        let now = renamed_personality("multistreamreaddirect");
        assert_eq!(now, Some("fivestreamreaddirect"));
        assert_eq!(renamed_personality("multistreamread"), None);
    }
}
