//! Simultaneous runs, each made by a separate process of this test program.

use crate::fixtures::{
    UNLIMITED, create, curve, directories, drive_jobs, measured, names, profile, repeats, search,
    whole, with_context,
};
use crate::host::TestHost;
use plimsoll_results::{SeriesDir, SeriesState};
use plimsoll_series::{REFUSED_EXIT_CODE, SeriesError, make_alone};
use std::path::Path;
use std::process::ExitCode;

crate::trials![
    runs_at_the_same_time_equal_runs_one_after_the_other,
    runs_beyond_the_end_are_removed,
    an_interruption_ends_the_processes,
    a_refused_run_ends_the_series,
    a_killed_process_ends_the_series,
    only_a_missing_run_is_made_alone,
];

/// Directory of the run whose process aborts, in a series with the name `killed`.
const KILLED: &str = "b/reads";

/// Makes one run of a series and prints the name of its results: `[--per-rank] -- SERIES DIRECTORY`.
pub fn make_run(arguments: &[String]) -> ExitCode {
    let [.., series, directory] = arguments else {
        return ExitCode::from(REFUSED_EXIT_CODE as u8);
    };
    let dir = SeriesDir::at(Path::new(series));
    let host = TestHost::default();
    let made = dir.read().map_err(SeriesError::refused).and_then(|series| {
        if series.name == "killed" && directory == KILLED {
            std::process::abort();
        }
        with_context(&host, |context| {
            make_alone(&context, &dir, &series, directory)
        })
    });
    match made {
        Ok(directory) => {
            println!("{directory}");
            ExitCode::SUCCESS
        }
        Err(e) => {
            eprintln!("error: {e}");
            let is_refused = matches!(e, SeriesError::Refused(_));
            ExitCode::from(if is_refused {
                REFUSED_EXIT_CODE as u8
            } else {
                1
            })
        }
    }
}

fn runs_at_the_same_time_equal_runs_one_after_the_other() {
    let root = tempfile::tempdir().unwrap();
    for series in [repeats(4), curve(&[2, 4, 8]), profile(&[UNLIMITED; 3])] {
        let (one_dir, one) = whole(root.path(), series.clone());
        let host = TestHost::default();
        let ended = drive_jobs(&host, create(root.path(), series), 3).unwrap();
        let (dir, both) = (ended.dir().path(), ended.series());
        assert_eq!((both.state, &both.kind), (one.state, &one.kind));
        assert_eq!(measured(dir), measured(&one_dir));
        assert!(host.listed().iter().all(|(_, how)| *how == "beside"));
        assert_eq!(host.complaints(), [""; 0]);
        assert_eq!(names(dir), names(&one_dir));
    }
    // A search makes one run at a time, because each load depends on the earlier runs.
    let host = TestHost::default();
    drive_jobs(&host, create(root.path(), search()), 3).unwrap();
    assert!(host.listed().iter().all(|(_, how)| *how == "now"));
}

/// Loads above 10 are invalid, and two consecutive invalid points end the curve.
fn runs_beyond_the_end_are_removed() {
    let root = tempfile::tempdir().unwrap();
    let writer = create(root.path(), curve(&[4, 16, 24, 32, 40, 48, 56, 64]));
    let host = TestHost::default();
    let ended = drive_jobs(&host, writer, 8).unwrap();
    let series = ended.series();
    assert_eq!(series.state, SeriesState::Stopped);
    let expected = ["point-01-load-4", "point-02-load-16", "point-03-load-24"];
    assert_eq!(directories(series), expected);
    let mut names = names(ended.dir().path());
    assert_eq!(names.pop().as_deref(), Some("series.json"));
    assert_eq!(names, expected);
}

fn an_interruption_ends_the_processes() {
    let root = tempfile::tempdir().unwrap();
    let writer = create(root.path(), repeats(6));
    let host = TestHost {
        stop_after: Some(2),
        ..TestHost::default()
    };
    let ended = drive_jobs(&host, writer, 2).unwrap();
    let series = ended.series();
    assert_eq!(series.state, SeriesState::Interrupted);
    assert_eq!(directories(series), ["run-01", "run-02"]);
    let dir = ended.dir().path().to_owned();
    drop(ended);
    let again = plimsoll_series::resume(&dir, 1, false);
    drive_jobs(&TestHost::default(), again.unwrap(), 2).unwrap();
    let (whole_dir, _) = whole(root.path(), repeats(6));
    assert_eq!(measured(&dir), measured(&whole_dir));
}

fn a_refused_run_ends_the_series() {
    let root = tempfile::tempdir().unwrap();
    let series = profile(&[UNLIMITED, "nonsense:", UNLIMITED]);
    let ended = drive_jobs(&TestHost::default(), create(root.path(), series), 2).unwrap();
    let series = ended.series();
    assert_eq!(directories(series), ["a/reads"]);
    assert_eq!(series.state, SeriesState::Failed);
    let reason = series.stop_reason.clone().unwrap();
    assert!(
        reason.code == "refused"
            && reason.text.contains("nonsense")
            && !reason.text.contains("error:"),
        "{reason:?}"
    );
    let first = create(root.path(), profile(&["nonsense:", UNLIMITED]));
    let dir = first.dir().path().to_owned();
    let refused = drive_jobs(&TestHost::default(), first, 2).err().unwrap();
    assert!(matches!(refused, SeriesError::Refused(_)), "{refused:?}");
    assert!(!dir.exists(), "{:?}", names(&dir));
}

fn a_killed_process_ends_the_series() {
    let root = tempfile::tempdir().unwrap();
    let mut series = profile(&[UNLIMITED; 4]);
    series.name = "killed".into();
    let host = TestHost::default();
    let ended = drive_jobs(&host, create(root.path(), series), 4).unwrap();
    let series = ended.series();
    assert_eq!(directories(series), ["a/reads"]);
    assert_eq!(series.state, SeriesState::Failed);
    let text = "b/reads: the process that measures it died (signal 6)";
    assert_eq!(series.stop_reason.as_ref().unwrap().text, text);
    assert_eq!(host.complaints(), [text]);
}

fn only_a_missing_run_is_made_alone() {
    let root = tempfile::tempdir().unwrap();
    let (dir, series) = whole(root.path(), repeats(1));
    let dir = SeriesDir::at(&dir);
    let host = TestHost::default();
    for directory in ["run-01", "run-02", "../x", ""] {
        let made = with_context(&host, |context| {
            make_alone(&context, &dir, &series, directory)
        });
        let text = made.unwrap_err().to_string();
        let expected = format!(
            "{directory} is not a missing run of the series in {}",
            dir.path().display()
        );
        assert_eq!(text, expected);
    }
}
