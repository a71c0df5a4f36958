//! Changes through the results browser: results are deleted, and receive tags and notes.

use super::{copy, results, serve, tag};
use crate::common::Bench;
use serde_json::json;

#[test]
fn results_are_deleted_when_that_is_confirmed() {
    let bench = Bench::on_tmpfs();
    let a = results(&bench, "a");
    let b = copy(&a, "b", &[]);
    let foreign = copy(&a, "foreign", &[]);
    std::fs::write(foreign.join("thesis.tex"), "").unwrap();
    tag(&bench, &b, "keep");
    let browser = serve(&bench, &[]);
    let form = browser.form_of("/results/a/delete");
    assert!(a.exists(), "asking deletes nothing");
    let done = browser.post("/results/a/delete", &[("form", &form)]);
    let end = (done.status, done.header("location"), a.exists());
    assert_eq!(end, (303, "/", false));
    let page = browser.get("/results/b/delete").text;
    assert!(page.contains("name=\"tagged\""), "{page}");
    let tagged = browser.post("/results/b/delete", &[("form", &form)]);
    assert_eq!((tagged.status, b.exists()), (409, true));
    let refused = browser.send("DELETE", "/api/v1/results/b", &[], "");
    assert_eq!((refused.status, b.exists()), (409, true));
    assert_eq!(
        refused.json()["error"],
        "b is tagged (keep): it is deleted only if tagged results are included"
    );
    let sure = browser.send("DELETE", "/api/v1/results/b?tagged=true", &[], "");
    assert_eq!((sure.status, b.exists()), (204, false));
    let kept = browser.send("DELETE", "/api/v1/results/foreign", &[], "");
    assert_eq!(kept.status, 409);
    let error = kept.json()["error"].as_str().unwrap().to_owned();
    let expected = "thesis.tex is not a file of Plimsoll's";
    assert!(error.contains(expected), "{error}");
    assert_eq!(std::fs::read_dir(&foreign).unwrap().count(), 4);
    assert_eq!(browser.names(""), ["foreign"]);
}

#[test]
fn tags_and_notes_are_changed_by_a_form() {
    let bench = Bench::on_tmpfs();
    let a = results(&bench, "a");
    let browser = serve(&bench, &[]);
    let form = browser.form_of("/results/a");
    let own = ("form", form.as_str());
    let fields = [own, ("tags", "x%2C+y"), ("note", "one%0D%0Atwo")];
    let done = browser.post("/results/a/annotations", &fields);
    assert_eq!((done.status, done.header("location")), (303, "/results/a"));
    let entry = browser.get("/api/v1/results/a").json();
    assert_eq!(entry["tags"], json!(["x", "y"]));
    assert_eq!(entry["note"], "one\ntwo");
    let bad = [("form", form.as_str()), ("tags", "%3Cb%3E"), ("note", "")];
    assert_eq!(browser.post("/results/a/annotations", &bad).status, 400);
    assert_eq!(browser.get("/api/v1/results/a").json(), entry);
    let none = [("form", form.as_str()), ("tags", ""), ("note", "")];
    assert_eq!(browser.post("/results/a/annotations", &none).status, 303);
    assert!(!a.join("annotations.json").exists());
}
