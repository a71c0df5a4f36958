//! Values, defaults and checksums of configuration files.

use plimsoll_workload::io500::Config;

/// The settings of a published configuration (AI400X2-I, submission 752 of 2025) that differ from the defaults, and the
/// sections of phases that later versions of IO500 do not have.
const PUBLISHED: &str = "\
[global]
datadir = /exafs/io500
[ior-easy]
API = POSIX --posix.odirect
transferSize = 4m
[mdtest-easy]
n = 100000
[ior-hard]
segmentCount = 50000
[mdtest-hard]
n = 500000
[ior-rnd4K]
[ior-rnd4K-write]
[ior-rnd1MB]
[ior-rnd1MB-write]
[ior-rnd4K-read]
[ior-rnd1MB-read]
";

#[test]
fn the_checksum_of_a_published_configuration_is_recomputed() {
    let config = Config::parse(PUBLISHED, "config.ini").unwrap();
    assert_eq!(config.hash().to_string(), "B8FFA261");
    // The checksum of `run = TRUE` in the section that is left out is 97DB9.
    assert_eq!(config.hash_until_sc24().to_string(), "B8F6DFD8");
    let complete = Config::parse(&config.complete(), "config.ini").unwrap();
    assert_eq!(complete.hash(), config.hash());
    assert_eq!(complete.complete(), config.complete());
    let changed = PUBLISHED.replace("segmentCount = 50000", "segmentCount = 50001");
    let changed = Config::parse(&changed, "config.ini").unwrap();
    assert_ne!(changed.hash(), config.hash());
}

#[test]
fn names_ignore_case_comments_are_left_out_and_empty_values_leave_the_default() {
    let text = "[ Global ] # first\nDATADIR = /mnt ; here\nresultdir =\n[DEBUG]\nstonewall-time=7\nscc\t= 1";
    let refused = Config::parse(text, "x.ini").unwrap_err();
    assert_eq!(refused.findings().len(), 1, "{refused}");
    let text = text.replace("scc\t= 1", "[global]\nscc\t= 1");
    let complete = Config::parse(&text, "x.ini").unwrap().complete();
    for line in [
        "datadir = /mnt\n",
        "resultdir = ./results\n",
        "stonewall-time = 7\n",
        "scc = TRUE\n",
    ] {
        assert!(complete.contains(line), "{complete}");
    }
}
