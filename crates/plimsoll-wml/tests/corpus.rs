//! Replays the fuzzer's corpora with the stable compiler, so that errors it has found stay fixed.

mod common;

use common::lower_with;
use plimsoll_plan::Overrides;
use std::path::Path;

#[test]
fn the_corpora_of_the_fuzzer_survive() {
    let folders = [
        "../../fuzz/corpus/wml",
        "tests/diagnostics",
        "tests/dialects",
    ];
    let folders = folders.map(|f| Path::new(env!("CARGO_MANIFEST_DIR")).join(f));
    let mut seen = (0, 0);
    for entry in folders.iter().flat_map(|f| std::fs::read_dir(f).unwrap()) {
        let path = entry.unwrap().path();
        let data = std::fs::read(&path).unwrap();
        // The fuzz target skips data that are not text.
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
    // Both outcomes are in the corpora.
    assert!(seen.0 >= 3 && seen.1 >= 5, "{seen:?}");
}
