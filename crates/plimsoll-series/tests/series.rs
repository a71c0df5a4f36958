//! A series from its first run to its end.

use crate::fixtures::{
    CAPACITY_OF_10, UNLIMITED, create, curve, directories, drive_one, every_kind, names, profile,
    repeats, whole,
};
use crate::host::{Report, TestHost};
use plimsoll_results::{RunDir, SearchEnd, Series, SeriesKind, SeriesState, Status, Verdict};

crate::trials![
    runs_are_made_in_the_order_of_the_rule,
    a_search_finds_the_capacity_of_its_target,
    a_curve_ends_by_its_rule,
    a_failed_run_ends_a_curve,
    a_failed_run_does_not_end_a_profile,
    a_series_whose_first_run_is_refused_leaves_nothing,
    a_later_refusal_fails_the_series,
    results_that_cannot_be_written_end_the_series,
    commands_know_their_run_and_their_failures_are_noted,
];

fn runs_are_made_in_the_order_of_the_rule() {
    let root = tempfile::tempdir().unwrap();
    let expected: [&[&str]; 4] = [
        &["run-01", "run-02", "run-03"],
        &["point-01-load-2", "point-02-load-4", "point-03-load-8"],
        &["run-01-load-4", "run-02-load-8", "run-03-load-16"],
        &["a/reads", "b/reads"],
    ];
    for (series, expected) in every_kind().into_iter().zip(expected) {
        let host = TestHost::default();
        let ended = drive_one(&host, create(root.path(), series)).unwrap();
        let series = ended.series();
        let made = directories(series);
        assert!(made.starts_with(expected), "{made:?}");
        assert!(series.as_search().is_some() || made.len() == expected.len());
        assert_eq!(
            (series.state, series.status()),
            (SeriesState::Complete, Status::Valid)
        );
        assert_eq!(&ended.dir().read().unwrap(), series);
        let now = |(number, directory): (usize, &&str)| {
            Report::Listed(number, (*directory).to_owned(), "now")
        };
        let mut reports = vec![Report::Begin(0)];
        reports.extend((1..).zip(&made).map(now));
        assert_eq!(*host.reports.borrow(), reports);
        for entry in &series.runs {
            let run = ended.dir().run(entry).unwrap().read().unwrap();
            assert_eq!(run.plan.seed, entry.seed);
            let load = entry.load.unwrap_or(4);
            assert_eq!(run.plan.metric.unwrap().load, load);
            // Each stream achieves 10 operations per second, up to the target's capacity of 100 operations per second.
            let expected = (10 * load).min(100) as f64;
            let achieved = entry.achieved_ops_per_s;
            assert!((achieved - expected).abs() <= 0.1 * expected, "{achieved}");
        }
    }
}

fn a_search_finds_the_capacity_of_its_target() {
    let root = tempfile::tempdir().unwrap();
    let [.., search, _] = every_kind();
    let (_, series) = whole(root.path(), search);
    let SeriesKind::Search(search) = series.kind else {
        unreachable!("a search");
    };
    let line = search.load_line;
    assert_eq!(line.termination, SearchEnd::Found);
    // A load is sustained if 95 % of the scheduled operations complete.
    let sustained = line.sustained.unwrap().load;
    assert!((9..=10).contains(&sustained), "{line:?}");
    assert_eq!(line.not_sustained.unwrap().load, sustained + 1);
}

fn a_curve_ends_by_its_rule() {
    let root = tempfile::tempdir().unwrap();
    let (dir, series) = whole(root.path(), curve(&[4, 8, 16, 24, 32, 64]));
    assert_eq!(series.state, SeriesState::Stopped);
    assert_eq!(series.stop_reason.unwrap().code, "consecutive_invalid");
    let verdicts: Vec<Verdict> = series.runs.iter().map(|run| run.verdict).collect();
    use Verdict::{Invalid, Valid};
    assert_eq!(verdicts, [Valid, Valid, Invalid, Invalid]);
    assert_eq!(names(&dir).len(), 5);
}

/// A series whose hook before the load fails if the shell condition holds.
fn failing(mut series: Series, condition: &str) -> Series {
    series.events = vec![format!("before sh ! {condition}")];
    series
}

fn a_failed_run_ends_a_curve() {
    let root = tempfile::tempdir().unwrap();
    let (_, series) = whole(
        root.path(),
        failing(curve(&[2, 4, 8]), "test $PLIMSOLL_LOAD = 4"),
    );
    assert_eq!(
        directories(&series),
        ["point-01-load-2", "point-02-load-4-failed"]
    );
    assert_eq!(
        (series.state, series.status()),
        (SeriesState::Failed, Status::Failed)
    );
    let reason = series.stop_reason.unwrap();
    assert_eq!(reason.code, "failed");
    assert!(reason.text.starts_with("load 4: "), "{reason:?}");
    assert_eq!(series.runs[0].verdict, Verdict::Valid);
}

fn a_failed_run_does_not_end_a_profile() {
    let root = tempfile::tempdir().unwrap();
    let series = failing(
        profile(&[UNLIMITED, CAPACITY_OF_10, UNLIMITED]),
        "test \"$PLIMSOLL_CONFIGURATION\" = \"reads on b\"",
    );
    let (_, series) = whole(root.path(), series);
    assert_eq!(
        directories(&series),
        ["a/reads", "b/reads-failed", "c/reads"]
    );
    assert_eq!(series.state, SeriesState::Failed);
    assert_eq!(series.stop_reason.unwrap().text, "1 run failed");
}

fn a_series_whose_first_run_is_refused_leaves_nothing() {
    let root = tempfile::tempdir().unwrap();
    let results = root.path().join("results");
    let nonsense = profile(&["nonsense:", UNLIMITED]);
    let mut event = curve(&[2]);
    event.events = vec!["1s kill server".into()];
    for (series, expected) in [(nonsense, "nonsense"), (event, "needs a simulated system")] {
        let host = TestHost::default();
        let refused = drive_one(&host, create(&results, series)).err().unwrap();
        let plimsoll_series::SeriesError::Refused(text) = &refused else {
            panic!("{refused:?}");
        };
        assert!(text.contains(expected), "{text}");
        assert_eq!(names(root.path()), [""; 0], "{text}");
    }
}

fn a_later_refusal_fails_the_series() {
    let root = tempfile::tempdir().unwrap();
    let (dir, series) = whole(root.path(), profile(&[UNLIMITED, "nonsense:", UNLIMITED]));
    assert_eq!(directories(&series), ["a/reads"]);
    assert_eq!(series.state, SeriesState::Failed);
    let reason = series.stop_reason.unwrap();
    assert_eq!(reason.code, "refused");
    assert!(reason.text.contains("nonsense"), "{reason:?}");
    assert!(RunDir::at(&dir.join("a/reads")).read().is_ok());
}

/// A directory in the place of `series.json` prevents the replacement of the document.
fn results_that_cannot_be_written_end_the_series() {
    let root = tempfile::tempdir().unwrap();
    let writer = create(root.path(), repeats(3));
    let dir = writer.dir().path().to_owned();
    let file = dir.join(plimsoll_results::SERIES_FILE);
    let host = TestHost {
        on_listed: Some(Box::new(move |_| {
            std::fs::remove_file(&file).unwrap();
            std::fs::create_dir_all(file.join("full")).unwrap();
        })),
        ..TestHost::default()
    };
    let failed = drive_one(&host, writer).err().unwrap();
    let plimsoll_series::SeriesError::Failed(text) = &failed else {
        panic!("{failed:?}");
    };
    assert!(text.contains("series.json"), "{text}");
    let hint = format!("resume with plimsoll resume {}", dir.display());
    assert!(text.ends_with(&hint), "{text}");
    // The second run was measured but not listed.
    assert_eq!(host.listed(), [("run-01".to_owned(), "now")]);
    assert_eq!(names(&dir), ["run-01", "run-02", "series.json"]);
}

fn commands_know_their_run_and_their_failures_are_noted() {
    let root = tempfile::tempdir().unwrap();
    let mut series = repeats(2);
    let said = root.path().join("said");
    series.events = vec![
        format!(
            "before sh echo $PLIMSOLL_RUN $PLIMSOLL_PHASE \"$PLIMSOLL_LOAD\" >> {}",
            said.display()
        ),
        "after timeout 60s sh test $PLIMSOLL_RUN = 1".into(),
    ];
    let (_, series) = whole(root.path(), series);
    let said = std::fs::read_to_string(said).unwrap();
    let loads: Vec<&str> = said.lines().filter(|l| l.contains("load")).collect();
    assert_eq!(loads, ["1 load ", "2 load "]);
    assert_eq!(series.state, SeriesState::Complete);
    let notes: Vec<String> = series.notes.iter().map(|n| n.text.clone()).collect();
    assert!(
        !notes.is_empty() && notes.iter().all(|n| n.starts_with("run-02: ")),
        "{notes:?}"
    );
}
