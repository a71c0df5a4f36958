//! The runs of each kind of results, and the columns that identify the series of a run.

use crate::fixtures::{create, curve, make, plan_at, profile, repeats, run, search};
use plimsoll_report::parquet::{ParquetError, RunSource, sources};
use plimsoll_results::{RunWriter, Series, SeriesWriter};
use std::path::Path;
use std::time::SystemTime;

/// Creates a series and makes its first two runs.
fn two_runs(root: &Path, series: Series) -> SeriesWriter {
    let mut writer = create(root, series);
    for _ in 0..2 {
        make(&mut writer, 400, 2, &[]);
    }
    writer
}

#[test]
fn runs_of_a_series_have_their_directory_load_and_configuration() {
    let root = tempfile::tempdir().unwrap();
    let of = |series: Series| {
        let writer = two_runs(root.path(), series);
        let dir = writer.dir();
        let found = sources(dir.path()).unwrap();
        for source in &found {
            assert_eq!(source.results, dir.name());
            assert_eq!(source.kind, writer.series().kind.kind().to_string());
            assert_eq!(source.path, dir.path().join(&source.run_path));
        }
        found
    };
    let facts = |source: &RunSource| {
        let load = source.load.zip(source.load_metric.clone());
        let configuration = source
            .profile_filesystem
            .clone()
            .zip(source.profile_case.clone());
        (source.run_path.clone(), load, configuration)
    };
    let all = |series| of(series).iter().map(facts).collect::<Vec<_>>();
    let at = |directory: &str, load| {
        let load = Some((load, "streams".to_owned()));
        (directory.to_owned(), load, None)
    };
    assert_eq!(
        all(curve()),
        [at("point-01-load-2", 2), at("point-02-load-4", 4)]
    );
    assert_eq!(
        all(search()),
        [at("run-01-load-2", 2), at("run-02-load-4", 4)]
    );
    let plain = |directory: &str| (directory.to_owned(), None, None);
    assert_eq!(all(repeats(2)), [plain("run-01"), plain("run-02")]);
    let of_profile = |directory: &str, filesystem: &str| {
        let configuration = Some((filesystem.to_owned(), "a".to_owned()));
        (directory.to_owned(), None, configuration)
    };
    assert_eq!(
        all(profile(1, &[("a", "ext4"), ("a", "xfs")])),
        [of_profile("ext4/a", "ext4"), of_profile("xfs/a", "xfs")]
    );
}

#[test]
fn a_run_is_its_own_results_and_a_series_without_runs_has_none() {
    let root = tempfile::tempdir().unwrap();
    let plan = plan_at(2);
    let writer = RunWriter::create(
        root.path(),
        &plan,
        SystemTime::UNIX_EPOCH,
        plimsoll_results::ClockKind::Virtual,
        None,
    );
    let results = writer.unwrap().finish(&run(plan, 400, 2, &[])).unwrap();
    let found = sources(results.path()).unwrap();
    let expected = RunSource {
        path: results.path().to_owned(),
        results: results.name(),
        kind: "run".into(),
        run_path: ".".into(),
        ..RunSource::default()
    };
    assert_eq!(found, [expected]);
    let empty = create(root.path(), curve());
    assert!(matches!(
        sources(empty.dir().path()),
        Err(ParquetError::NoRun { .. })
    ));
}
