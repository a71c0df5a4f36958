//! The writer of a series directory.

use crate::fixtures::{
    create, curve, list, make, names, next, plan_at, profile, repeats, run, search, write,
};
use plimsoll_results::{
    NextRun, Percentile, Percentiles, Reason, ResultsError, Run, RunDir, SUT_FILE, Series,
    SeriesDir, SeriesRun, SeriesState, SeriesWriter, Step, Verdict,
};
use std::path::{Path, PathBuf};

/// The directory of a series after `change`, without a writer.
fn left(root: &Path, series: Series, change: impl FnOnce(&mut SeriesWriter)) -> PathBuf {
    let mut writer = create(root, series);
    change(&mut writer);
    writer.dir().path().to_owned()
}

#[test]
fn a_series_goes_on_where_its_writer_ended() {
    let root = tempfile::tempdir().unwrap();
    let mut writer = create(root.path(), curve());
    let dir = writer.dir().clone();
    make(&mut writer, 400, 2, &[]);
    // The second run is written but not listed, as by a process that was killed in between; the third run is in
    // progress.
    let second = next(writer.series());
    let plan = writer.series().plan(&second).unwrap();
    let second_run = run(plan, 800, 2, &[]);
    write(&writer, &second, &second_run);
    let third = NextRun {
        load: Some(6),
        value: None,
        directory: "point-03-load-6".into(),
        ..second.clone()
    };
    let third_writer = writer
        .dir()
        .run_writer(
            writer.series().clock,
            &third,
            &plan_at(6),
            std::time::SystemTime::UNIX_EPOCH,
        )
        .unwrap();
    assert!(matches!(
        SeriesWriter::resume(dir.path()),
        Err(ResultsError::InUse { .. })
    ));
    drop(writer);
    let mut writer = SeriesWriter::resume(dir.path()).unwrap();
    // The written run is not listed yet, because the stop rules decide whether the curve reaches the run.
    assert_eq!(writer.series().runs.len(), 1);
    assert_eq!(writer.series().next(), Step::Run(second.clone()));
    let unlisted = writer.unlisted(&second);
    let expected = SeriesRun::of(&second_run, &second, "point-02-load-4");
    assert_eq!(unlisted, Some(expected.clone()));
    assert_eq!(writer.unlisted(&third), None);
    writer.add(expected).unwrap();
    assert_eq!(next(writer.series()), third);
    drop(third_writer);
    drop(writer);
    assert_eq!(
        names(dir.path()),
        ["point-01-load-2", "point-02-load-4", "series.json"]
    );
}

#[test]
fn runs_that_were_not_measured_are_dropped_and_made_again() {
    let root = tempfile::tempdir().unwrap();
    let path = left(root.path(), curve(), |writer| {
        make(writer, 400, 2, &[]);
        let interrupted = make(writer, 100, 2, &["interrupted"]);
        assert_eq!(interrupted.directory, "point-02-load-4-interrupted");
        writer.end(SeriesState::Interrupted, None).unwrap();
    });
    let writer = SeriesWriter::resume(&path).unwrap();
    let series = SeriesDir::at(&path).read().unwrap();
    assert_eq!(&series, writer.series());
    let listed: Vec<&str> = series.runs.iter().map(|r| r.directory.as_str()).collect();
    assert_eq!(listed, ["point-01-load-2"]);
    let again = next(&series);
    assert_eq!(
        (again.load, again.directory.as_str()),
        (Some(4), "point-02-load-4")
    );
    // The results directory of the interrupted run stays.
    assert!(path.join("point-02-load-4-interrupted").is_dir());
}

#[test]
fn a_resumed_profile_makes_failed_runs_again() {
    let root = tempfile::tempdir().unwrap();
    let mut series = profile(1, &[("a", "ext4"), ("b", "ext4"), ("c", "ext4")]);
    for verdict in [Verdict::Valid, Verdict::Failed, Verdict::Invalid] {
        list(&mut series, verdict);
    }
    let path = left(root.path(), series, |writer| {
        writer.end(SeriesState::Failed, None).unwrap();
    });
    let writer = SeriesWriter::resume(&path).unwrap();
    let missing = writer.series().kind.strategy().independent(writer.series());
    let directories: Vec<&str> = missing.iter().map(|n| n.directory.as_str()).collect();
    assert_eq!(directories, ["ext4/b"]);
}

/// Results in the directory of the next run are listed only if the results were measured with the load, seed, files and
/// system of the next run.
#[test]
fn only_the_measured_run_itself_is_listed_when_its_turn_comes() {
    let root = tempfile::tempdir().unwrap();
    type Change<'a> = &'a dyn Fn(&mut Run);
    let place = |series: Series, change: Change<'_>| {
        let writer = create(root.path(), series);
        let next = next(writer.series());
        let plan = writer.series().plan(&next).unwrap();
        let mut run = run(plan, 400, 2, &[]);
        let made = write(&writer, &next, &run);
        change(&mut run);
        made.replace_run(&run).unwrap();
        writer.unlisted(&next).map(|run| run.directory)
    };
    for series in [repeats(2), curve(), search(), profile(1, &[("a", "ext4")])] {
        let directory = next(&series).directory;
        assert_eq!(place(series.clone(), &|_| {}), Some(directory.clone()));
        let invalid = |run: &mut Run| run.validity.verdict = Verdict::Invalid;
        assert_eq!(place(series.clone(), &invalid), Some(directory));
        let others: [(&str, Change<'_>); 5] = [
            ("failed", &|run| run.validity.verdict = Verdict::Failed),
            ("interrupted", &|run| {
                run.validity.verdict = Verdict::Interrupted;
            }),
            ("seed", &|run| run.plan.seed += 1),
            ("files", &|run| run.plan.filesets[0].entries += 1),
            ("system", &|run| run.target.system = Some("abc".into())),
        ];
        for (what, change) in others {
            assert_eq!(place(series.clone(), change), None, "{what}");
        }
    }
    let other_load = |run: &mut Run| run.plan.metric.as_mut().unwrap().load += 1;
    assert_eq!(place(curve(), &other_load), None);
}

#[test]
fn runs_of_a_profile_are_below_their_file_system() {
    let root = tempfile::tempdir().unwrap();
    let mut writer = create(root.path(), profile(2, &[("a", "ext4"), ("b", "xfs")]));
    let made: Vec<String> = (0..4)
        .map(|_| make(&mut writer, 100, 2, &[]).directory)
        .collect();
    let expected = [
        "ext4/a/run-01",
        "ext4/a/run-02",
        "xfs/b/run-01",
        "xfs/b/run-02",
    ];
    assert_eq!(made, expected);
    let dir = writer.dir();
    for name in made {
        let results = RunDir::at(&dir.path().join(&name));
        assert_eq!(results.lacks(), [""; 0]);
        assert_eq!(writer.name_of(&results), name);
    }
}

#[test]
fn the_end_and_its_reason_are_written() {
    let root = tempfile::tempdir().unwrap();
    let mut writer = create(root.path(), curve());
    let reason = Reason::new("past_peak", "load 4 achieved less");
    writer
        .end(SeriesState::Stopped, Some(reason.clone()))
        .unwrap();
    let series = writer.dir().read().unwrap();
    assert_eq!(
        (series.state, series.stop_reason),
        (SeriesState::Stopped, Some(reason))
    );
    let hint = writer.dir().resume_hint();
    let path = writer.dir().path().display();
    assert_eq!(hint, format!("resume with plimsoll resume {path}"));
}

#[test]
fn requested_percentiles_are_those_of_all_runs() {
    let root = tempfile::tempdir().unwrap();
    let wanted: Percentiles = "12.5,99.95".parse().unwrap();
    let mut writer = create(root.path(), curve());
    make(&mut writer, 400, 2, &[]);
    make(&mut writer, 800, 2, &[]);
    let written = writer.dir().read().unwrap();
    let series = writer.dir().read_with(Some(&wanted)).unwrap();
    let usual = [Percentile::P50];
    assert_eq!(series.shown_percentiles(&usual), wanted.as_slice());
    for run in &series.runs {
        for percentile in wanted.as_slice() {
            assert!(run.percentile(*percentile).is_some(), "{percentile}");
        }
    }
    assert_eq!(series.percentiles_shown, Some(wanted));
    assert_eq!(writer.dir().read().unwrap(), written, "nothing was written");
}

#[test]
fn a_series_that_was_refused_leaves_nothing() {
    let root = tempfile::tempdir().unwrap();
    let results = root.path().join("results");
    for series in [curve(), profile(2, &[("a", "ext4"), ("b", "xfs")])] {
        let writer = create(&results, series);
        assert_eq!(names(&results).len(), 1);
        writer.write_sut("a description").unwrap();
        // The first run creates the directories of its configuration, and is then refused.
        let next = next(writer.series());
        let plan = writer.series().plan(&next).unwrap();
        drop(writer.dir().run_writer(
            writer.series().clock,
            &next,
            &plan,
            std::time::SystemTime::UNIX_EPOCH,
        ));
        assert!(writer.is_withdrawable());
        writer.withdraw().unwrap();
        assert_eq!(names(root.path()), [""; 0]);
    }
}

#[test]
fn a_series_of_an_earlier_process_or_with_runs_is_not_withdrawn() {
    let root = tempfile::tempdir().unwrap();
    let path = left(root.path(), curve(), |_| ());
    let writer = SeriesWriter::resume(&path).unwrap();
    assert!(!writer.is_withdrawable());
    writer.withdraw().unwrap();
    assert_eq!(SeriesDir::at(&path).read().unwrap(), curve());
    let mut listed = create(root.path(), curve());
    let path = listed.dir().path().to_owned();
    make(&mut listed, 400, 2, &[]);
    assert!(!listed.is_withdrawable());
    listed.withdraw().unwrap();
    assert_eq!(names(&path), ["point-01-load-2", "series.json"]);
    // A new series has a run that is written but not listed.
    let writer = create(root.path(), curve());
    let path = writer.dir().path().to_owned();
    write(
        &writer,
        &next(writer.series()),
        &run(plan_at(2), 400, 2, &[]),
    );
    writer.withdraw().unwrap();
    assert_eq!(names(&path), ["point-01-load-2", "series.json"]);
}

#[test]
fn a_description_of_the_system_is_written_once() {
    let root = tempfile::tempdir().unwrap();
    let writer = create(root.path(), curve());
    writer.write_sut("one").unwrap();
    assert!(writer.write_sut("two").is_err());
    let text = std::fs::read_to_string(writer.dir().path().join(SUT_FILE)).unwrap();
    assert_eq!(text, "one");
    writer.write("page.html", "one").unwrap();
    writer.write("page.html", "two").unwrap();
    let page = std::fs::read_to_string(writer.dir().path().join("page.html")).unwrap();
    assert_eq!(page, "two");
}

#[test]
fn a_run_outside_of_the_directory_is_not_written() {
    let root = tempfile::tempdir().unwrap();
    let writer = create(root.path(), curve());
    for directory in ["../x", "/tmp/x", ""] {
        let next = NextRun {
            directory: directory.into(),
            ..next(writer.series())
        };
        let started = std::time::SystemTime::UNIX_EPOCH;
        let refused = writer
            .dir()
            .run_writer(writer.series().clock, &next, &plan_at(2), started)
            .err();
        let is_refused = matches!(refused, Some(ResultsError::None { .. }));
        assert!(is_refused, "{directory}");
        assert_eq!(writer.unlisted(&next), None);
    }
    assert_eq!(names(root.path()).len(), 1);
}
