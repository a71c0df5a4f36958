//! Result files of IO500 as its versions wrote them, with checksums that another program computed.

use plimsoll_plan::ScoreGroup;
use plimsoll_report::suite::files::Checked;

/// Phases with scores of whole numbers, whose means are 2 GiB/s and 4 kIOPS.
const PHASES: [(&str, u32); 12] = [
    ("ior-easy-write", 2),
    ("mdtest-easy-write", 8),
    ("ior-hard-write", 1),
    ("mdtest-hard-write", 2),
    ("find", 8),
    ("ior-easy-read", 4),
    ("mdtest-easy-stat", 8),
    ("ior-hard-read", 2),
    ("mdtest-hard-stat", 2),
    ("mdtest-easy-delete", 8),
    ("mdtest-hard-read", 2),
    ("mdtest-hard-delete", 2),
];

fn result(run: &str, hash: &str) -> String {
    let mut text = format!("{run}version         = io500-x\nconfig-hash     = 350928F6\n\n");
    for (name, score) in PHASES {
        text += &format!("[{name}]\nscore           = {score}.000000\n\n");
    }
    text + &format!(
        "[SCORE]\nMD              = 4.000000\nBW              = 2.000000\nSCORE           = 2.828427 \n\
         hash            = {hash}\n"
    )
}

fn checked(text: &str) -> Checked {
    Checked::read(text, |name| {
        let (name, _) = PHASES.iter().find(|(known, _)| *known == name)?;
        Some(match name.starts_with("ior") {
            true => ScoreGroup::Bandwidth,
            false => ScoreGroup::Metadata,
        })
    })
}

#[test]
fn checksums_of_every_version_are_recomputed() {
    for run in ["[run]\n", ""] {
        for (hash, is_valid) in [
            ("AB993095", Some(true)),
            ("AB904292", Some(false)),
            // Checksums without the means, as in ISC21_v1.
            ("AB7EB095", Some(true)),
            ("AB77C292", Some(false)),
            ("AB993096", None),
        ] {
            let checked = checked(&result(run, hash));
            assert_eq!(checked.is_valid, is_valid, "{run}{hash}");
            assert_eq!(checked.recomputed, "AB993095");
            assert_eq!(checked.version.as_deref(), Some("io500-x"));
            assert_eq!(checked.config_hash.as_deref(), Some("350928F6"));
            assert_eq!(checked.differences, Vec::<String>::new());
        }
    }
}

#[test]
fn a_changed_score_is_a_difference() {
    let text = result("[run]\n", "AB993095").replace("MD              = 4", "MD              = 5");
    let checked = checked(&text);
    assert_eq!(checked.is_valid, None);
    assert_eq!(checked.differences.len(), 1, "{:?}", checked.differences);
    assert!(checked.differences[0].starts_with("MD: the file states 5"));
}
