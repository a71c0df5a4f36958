//! Series that ended before their last run and are resumed.

use crate::fixtures::{
    CAPACITY_OF_10, UNLIMITED, create, curve, directories, drive_one, every_kind, measured, names,
    profile, repeats, whole, with_context,
};
use crate::host::{Report, TestHost};
use plimsoll_results::{Series, SeriesDir, SeriesState, SeriesWriter, Status, Verdict};
use plimsoll_series::{make_alone, resume};
use std::path::{Path, PathBuf};
use std::time::Duration;

crate::trials![
    a_series_that_is_interrupted_between_runs_ends_as_if_it_had_not_been,
    an_interrupted_run_is_made_again,
    failed_runs_are_made_again,
    runs_that_are_there_are_listed_in_their_turn,
    runs_beyond_the_end_stay_and_are_named,
    what_cannot_be_resumed_is_refused,
];

/// Opens a series for resumption. A process that another test forks holds the lock of a closed series until the process
/// executes its program, so opening is retried while the lock is held.
fn open(dir: &Path) -> SeriesWriter {
    for _ in 0..1000 {
        match resume(dir, 1, false) {
            Err(e) if e.to_string().contains("is being written") => {
                std::thread::sleep(Duration::from_millis(5));
            }
            opened => return opened.unwrap(),
        }
    }
    panic!("the lock of {} is never released", dir.display());
}

/// Drives a series with a host; returns the directory of the series.
fn driven(root: &Path, series: Series, host: &TestHost) -> PathBuf {
    let ended = drive_one(host, create(root, series)).unwrap();
    ended.dir().path().to_owned()
}

fn a_series_that_is_interrupted_between_runs_ends_as_if_it_had_not_been() {
    let root = tempfile::tempdir().unwrap();
    for series in every_kind() {
        let (whole_dir, whole) = whole(root.path(), series.clone());
        let host = TestHost {
            stop_after: Some(1),
            ..TestHost::default()
        };
        let dir = driven(root.path(), series, &host);
        let interrupted = SeriesDir::at(&dir).read().unwrap();
        assert_eq!(
            (interrupted.state, interrupted.status()),
            (SeriesState::Interrupted, Status::Interrupted)
        );
        assert_eq!(directories(&interrupted), directories(&whole)[..1]);
        let host = TestHost::default();
        let ended = drive_one(&host, open(&dir)).unwrap();
        assert_eq!(ended.series().state, SeriesState::Complete);
        assert_eq!(ended.series().kind, whole.kind);
        assert_eq!(host.reports.borrow()[0], Report::Begin(1));
        assert_eq!(host.listed().len(), whole.runs.len() - 1);
        assert_eq!(measured(&dir), measured(&whole_dir));
    }
}

fn an_interrupted_run_is_made_again() {
    let root = tempfile::tempdir().unwrap();
    let host = TestHost {
        stop_in_load: Some(4),
        ..TestHost::default()
    };
    let dir = driven(root.path(), curve(&[2, 4, 8]), &host);
    let interrupted = SeriesDir::at(&dir).read().unwrap();
    assert_eq!(interrupted.state, SeriesState::Interrupted);
    assert_eq!(
        directories(&interrupted),
        ["point-01-load-2", "point-02-load-4-interrupted"]
    );
    assert_eq!(interrupted.runs[1].verdict, Verdict::Interrupted);
    drive_one(&TestHost::default(), open(&dir)).unwrap();
    let (whole_dir, _) = whole(root.path(), curve(&[2, 4, 8]));
    assert_eq!(measured(&dir), measured(&whole_dir));
    assert!(dir.join("point-02-load-4-interrupted").is_dir());
}

fn failed_runs_are_made_again() {
    let root = tempfile::tempdir().unwrap();
    let mut series = profile(&[UNLIMITED, CAPACITY_OF_10]);
    let broken = root.path().join("broken");
    std::fs::write(&broken, "").unwrap();
    series.events = vec![format!("before sh ! test -e {}", broken.display())];
    let dir = driven(root.path(), series, &TestHost::default());
    let failed = SeriesDir::at(&dir).read().unwrap();
    assert_eq!(directories(&failed), ["a/reads-failed", "b/reads-failed"]);
    std::fs::remove_file(broken).unwrap();
    let refused = resume(&dir, 1, false).err().unwrap();
    assert!(
        refused.to_string().contains("--allow-commands"),
        "{refused}"
    );
    let writer = resume(&dir, 1, true).unwrap();
    let ended = drive_one(&TestHost::default(), writer).unwrap();
    let series = ended.series();
    assert_eq!(directories(series), ["a/reads", "b/reads"]);
    assert_eq!(series.status(), Status::Valid);
}

/// Makes the runs with the given results directories without listing the runs in `series.json`.
fn make(writer: &SeriesWriter, directories: &[&str]) {
    let host = TestHost::default();
    for directory in directories {
        with_context(&host, |context| {
            make_alone(&context, writer.dir(), writer.series(), directory).unwrap();
        });
    }
}

fn runs_that_are_there_are_listed_in_their_turn() {
    let root = tempfile::tempdir().unwrap();
    let (whole_dir, _) = whole(root.path(), repeats(4));
    let writer = create(root.path(), repeats(4));
    let dir = writer.dir().path().to_owned();
    make(&writer, &["run-04", "run-02"]);
    let host = TestHost::default();
    drive_one(&host, writer).unwrap();
    let listed = host.listed();
    let listed: Vec<(&str, &str)> = listed.iter().map(|(d, how)| (d.as_str(), *how)).collect();
    assert_eq!(
        listed,
        [
            ("run-01", "now"),
            ("run-02", "earlier"),
            ("run-03", "now"),
            ("run-04", "earlier")
        ]
    );
    assert_eq!(measured(&dir), measured(&whole_dir));
}

fn runs_beyond_the_end_stay_and_are_named() {
    let root = tempfile::tempdir().unwrap();
    let writer = create(root.path(), curve(&[4, 16, 24, 32, 64]));
    let dir = writer.dir().path().to_owned();
    make(&writer, &["point-04-load-32", "point-05-load-64"]);
    let host = TestHost::default();
    let ended = drive_one(&host, writer).unwrap();
    assert_eq!(ended.series().state, SeriesState::Stopped);
    assert_eq!(
        host.complaints(),
        [
            "beyond the end of the series, point-04-load-32, point-05-load-64 were measured by an earlier process \
             and stay"
        ]
    );
    assert_eq!(names(&dir).len(), 6);
}

fn what_cannot_be_resumed_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let refused = |dir: &Path, ranks| {
        let refused = resume(dir, ranks, false).err().unwrap();
        refused.to_string()
    };
    let (complete, _) = whole(root.path(), repeats(1));
    let text = refused(&complete, 1);
    assert!(
        text.starts_with("the repeats in ")
            && text.ends_with("is complete: there is nothing to resume"),
        "{text}"
    );
    let unfinished = |change: fn(&mut Series)| {
        let mut series = curve(&[2, 4]);
        change(&mut series);
        create(root.path(), series).dir().path().to_owned()
    };
    let alone = unfinished(|_| ());
    assert!(refused(&alone, 2).contains("was started with 1 process and there are 2 now"));
    let event = unfinished(|series| series.events = vec!["1s kill server".into()]);
    assert!(refused(&event, 1).contains("needs a simulated system"));
    let system = unfinished(|series| {
        series.configurations[0].target.url = "sim:edge-32".into();
        series.configurations[0].target.system = Some("0".into());
    });
    let text = refused(&system, 1);
    assert!(
        text.starts_with("the built-in system `edge-32` differs in this version of Plimsoll"),
        "{text}"
    );
    let commands = unfinished(|series| {
        series.events = vec!["before load sh /bin/true".into(), "1s sh date".into()];
    });
    let text = refused(&commands, 1);
    assert!(text.contains("would run: `/bin/true`, `date`."), "{text}");
    let missing = refused(root.path(), 1);
    assert!(missing.contains("series.json"), "{missing}");
}
