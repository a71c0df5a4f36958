//! The JSON schema of system files.
#![allow(missing_docs)]

use serde_json::Value;

#[test]
fn the_schema_describes_every_table() {
    let schema: Value = serde_json::from_str(&plimsoll_sim::schema()).unwrap();
    assert_eq!(schema["additionalProperties"], false);
    for table in [
        "node", "station", "link", "cache", "log", "limit", "tokens", "path", "event",
    ] {
        assert!(schema["properties"][table].is_object(), "{table}");
    }
    assert_eq!(schema["required"], serde_json::json!(["title", "path"]));
    let station = &schema["$defs"]["Station"];
    assert_eq!(station["additionalProperties"], false);
    assert!(station["properties"]["squared_cv"].is_object());
}

#[test]
fn the_schema_in_the_documents_is_this_one() {
    let path =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/system.schema.json");
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(&path, plimsoll_sim::schema()).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap();
    assert!(
        kept == plimsoll_sim::schema(),
        "docs/system.schema.json is out of date: run this test with UPDATE_SCHEMA=1"
    );
}
