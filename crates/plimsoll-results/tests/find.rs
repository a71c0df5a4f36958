//! The form of `find.json`.

use plimsoll_results::{FIND_FILE, FindDir, LoadSearch, ResultsError};
use std::path::Path;

#[test]
fn the_schema_in_the_documents_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/find.schema.json");
    let schema = plimsoll_results::schema::<LoadSearch>();
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(&path, &schema).unwrap();
    }
    assert!(
        std::fs::read_to_string(&path).unwrap_or_default() == schema,
        "docs/find.schema.json is out of date: run this test with UPDATE_SCHEMA=1"
    );
}

#[test]
fn what_is_not_a_search_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let search = FindDir::at(dir.path());
    assert!(!search.exists());
    assert!(matches!(search.read(), Err(ResultsError::Lacks { .. })));
    let cases = [
        (
            "{\"schema\": 99}",
            "has schema version 99; this program reads version 3",
        ),
        ("{}", "has no schema version"),
        (
            "{\"schema\": 2}",
            "is not a valid result (search): missing field",
        ),
        ("[", "is not a valid result (search)"),
    ];
    for (text, message) in cases {
        std::fs::write(dir.path().join(FIND_FILE), text).unwrap();
        assert!(search.exists());
        let e = search.read().unwrap_err().to_string();
        assert!(e.contains(message), "{text}: {e}");
    }
}
