//! The schema and the example in the documents.

use super::*;

#[test]
fn the_schema_describes_every_key() {
    let schema: serde_json::Value =
        serde_json::from_str(&plimsoll_workload::mix::schema()).unwrap();
    let operations = &schema["$defs"]["Operations"]["properties"];
    for op in MixOp::ALL {
        assert!(operations[op.name()].is_object(), "{op}");
    }
    assert_eq!(schema["additionalProperties"], false);
    assert_eq!(
        schema["$defs"]["Files"]["required"],
        serde_json::json!(["count", "size"])
    );
}

#[test]
fn the_schema_in_the_documents_is_this_one() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/mix.schema.json");
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(&path, plimsoll_workload::mix::schema()).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap();
    assert!(
        kept == plimsoll_workload::mix::schema(),
        "docs/mix.schema.json is out of date: run this test with UPDATE_SCHEMA=1"
    );
}

#[test]
fn the_example_in_the_documents_is_a_workload() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/mix.md");
    let text = std::fs::read_to_string(path).unwrap();
    let begin = text.find("```toml\n").unwrap() + 8;
    let example = &text[begin..begin + text[begin..].find("```").unwrap()];
    let plan = plan(example, |o| o.load = Some(2));
    assert_eq!(plan.workers(), 10);
    assert_eq!(rate(&plan), 2.0 * (4.0 * 20.0 + 2.0));
}
