//! The permitted content of `series.json`.

use crate::fixtures::{
    create, curve, list, paired, plan, profile, repeats, search, search_over_parameter, suite,
    sweep,
};
use plimsoll_plan::ScoreGroup;
use plimsoll_results::{
    Document, Kind, ResultsError, RunDir, SERIES_FILE, Series, SeriesDir, SeriesKind, SeriesWriter,
    Verdict, run_dirs,
};
use std::path::Path;

#[test]
fn every_kind_is_read_back() {
    let root = tempfile::tempdir().unwrap();
    let kinds = [
        (repeats(2), Kind::Repeats),
        (curve(), Kind::Curve),
        (search(), Kind::Search),
        (profile(1, &[("a", "ext4")]), Kind::Profile),
        (paired(2, None), Kind::Ab),
        (sweep(&[("n", "1,2")], |_| plan()), Kind::Sweep),
        (search_over_parameter(), Kind::Search),
        (suite(&[("find", ScoreGroup::Metadata, None)]), Kind::Suite),
    ];
    for (mut series, kind) in kinds {
        list(&mut series, Verdict::Valid);
        let writer = create(root.path(), series);
        let dir = writer.dir();
        assert_eq!(&dir.read().unwrap(), writer.series());
        assert_eq!(writer.series().kind.kind(), kind);
        assert_eq!(Kind::of(dir.path()).unwrap(), kind);
        assert!(
            dir.name().starts_with(&format!("streams-{kind}-")),
            "{dir:?}"
        );
        let tag = serde_json::to_value(writer.series()).unwrap()["kind"].clone();
        assert_eq!(tag, kind.to_string());
    }
}

#[test]
fn a_document_with_a_fault_is_refused_by_name() {
    let fault = |series: Series| {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join(SERIES_FILE), series.to_json()).unwrap();
        let error = SeriesDir::at(root.path()).read().unwrap_err();
        assert!(matches!(error, ResultsError::Json { .. }), "{error}");
        let resumed = SeriesWriter::resume(root.path()).err().unwrap();
        assert_eq!(error.to_string(), resumed.to_string());
        let text = error.to_string();
        let (_, fault) = text.split_once("(series): ").unwrap();
        fault.to_owned()
    };
    let with = |mut series: Series, change: fn(&mut Series)| {
        change(&mut series);
        fault(series)
    };
    let one_run = |mut series: Series| {
        list(&mut series, Verdict::Valid);
        series
    };
    assert_eq!(
        with(repeats(2), |s| s.configurations.clear()),
        "the series has no configuration"
    );
    let wrong = with(one_run(repeats(2)), |s| s.runs[0].configuration = 1);
    assert_eq!(
        wrong,
        "the run run-01 has the configuration 1, and there are 1"
    );
    let plan = with(repeats(2), |s| s.configurations[0].plan.filesets.clear());
    assert!(plan.starts_with("the Plan: "), "{plan}");
    let many = "1001 runs of a configuration are requested: expected 1 to 1000";
    assert_eq!(fault(repeats(1001)), many);
    assert_eq!(fault(profile(1001, &[("a", "ext4")])), many);
    assert!(fault(repeats(0)).starts_with("0 runs of a configuration"));
    for series in [curve(), search()] {
        let no_metric = with(series.clone(), |s| s.configurations[0].plan.metric = None);
        assert_eq!(no_metric, "the Plan has no business metric to be a load of");
        let no_load = with(one_run(series), |s| s.runs[0].load = None);
        assert!(
            no_load.starts_with("the run ") && no_load.ends_with(" has no load"),
            "{no_load}"
        );
    }
    let mut disordered = curve();
    list(&mut disordered, Verdict::Valid);
    list(&mut disordered, Verdict::Valid);
    assert_eq!(
        with(disordered, |s| s.runs.reverse()),
        "the points of the curve are not in increasing order of load"
    );
    let backwards = with(search(), |s| {
        let SeriesKind::Search(search) = &mut s.kind else {
            unreachable!("a search");
        };
        (search.rules.start_load, search.rules.max_load) = (5, Some(4));
    });
    assert_eq!(
        backwards,
        "the search begins at 5, above the highest load 4"
    );
}

#[test]
fn what_is_not_a_series_is_refused_and_left_as_it_is() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join(SERIES_FILE);
    let error = |text: &str| {
        std::fs::write(&file, text).unwrap();
        let error = SeriesWriter::resume(root.path()).err().unwrap();
        let read = SeriesDir::at(root.path()).read().unwrap_err();
        assert_eq!(read.to_string(), error.to_string());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        error.to_string()
    };
    let path = file.display();
    assert_eq!(
        error("{\"schema_version\": 7}"),
        format!("{path} has schema version 7; this program reads version 1")
    );
    assert!(error("{}").ends_with("has no schema version; this program reads version 1"));
    let cut = error(&curve().to_json()[..400]);
    assert!(
        cut.starts_with(&format!("{path} is not a valid result (series): EOF")),
        "{cut}"
    );
    assert!(error("{\"schema_version\": 1}").contains("missing field `name`"));
    let kind = curve().to_json().replace("\"curve\"", "\"course\"");
    assert!(error(&kind).contains("unknown variant `course`"));
    std::fs::remove_file(&file).unwrap();
    let gone = SeriesWriter::resume(root.path()).err().unwrap().to_string();
    assert!(
        gone.ends_with("is not a complete result: it lacks series.json"),
        "{gone}"
    );
    assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 0);
}

#[test]
fn names_that_lead_out_of_the_directory_are_not_followed() {
    let root = tempfile::tempdir().unwrap();
    let mut series = repeats(5);
    for name in ["../x", "/etc", "a/../../b", "", "a/run-05"] {
        list(&mut series, Verdict::Valid);
        series.runs.last_mut().unwrap().directory = name.into();
    }
    let writer = create(root.path(), series);
    let dir = writer.dir();
    let inside = RunDir::at(&dir.path().join("a/run-05"));
    assert_eq!(run_dirs(dir.path()).unwrap(), vec![inside.clone()]);
    let runs = writer.series().runs.iter();
    let found: Vec<_> = runs.map(|run| dir.run(run)).collect();
    assert_eq!(found, [None, None, None, None, Some(inside)]);
}

#[test]
fn a_directory_of_one_run_is_that_run() {
    let dir = Path::new("/r");
    assert_eq!(run_dirs(dir).unwrap(), [RunDir::at(dir)]);
}

#[test]
fn the_schema_in_the_documents_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/series.schema.json");
    let schema = plimsoll_results::schema::<Series>();
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(&path, &schema).unwrap();
    }
    assert!(
        std::fs::read_to_string(&path).unwrap_or_default() == schema,
        "docs/series.schema.json is out of date: run this test with UPDATE_SCHEMA=1"
    );
}
