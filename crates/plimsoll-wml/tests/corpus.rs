//! Replays the fuzzer's corpus with the stable compiler: what was once found stays fixed.

mod common;

use common::lower_with;
use plimsoll_plan::Overrides;
use std::path::Path;

#[test]
fn the_corpus_of_the_fuzzer_survives() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/wml");
    let mut seen = (0, 0);
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let data = std::fs::read(&path).unwrap();
        // The target skips what is not text; so does the program, with a message of its own.
        let Ok(text) = String::from_utf8(data) else {
            continue;
        };
        match lower_with(&text, &Overrides::default()) {
            Ok(plan) => {
                plan.check()
                    .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
                seen.0 += 1;
            }
            Err(e) => {
                assert!(!e.findings().is_empty() && !e.to_string().is_empty());
                seen.1 += 1;
            }
        }
    }
    // Both ways out are in the corpus, or it proves little.
    assert!(seen.0 >= 3 && seen.1 >= 5, "{seen:?}");
}
