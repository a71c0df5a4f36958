use super::*;

fn plan(script: Vec<Phase>) -> Plan {
    let mut plan = Plan::empty("w");
    plan.operations = ["a", "b"]
        .map(|name| plimsoll_plan::Operation {
            name: name.into(),
            kind: plimsoll_plan::OpKind::Read,
            location: None,
        })
        .to_vec();
    plan.script = script;
    plan
}

#[test]
fn a_window_that_is_open_when_the_next_one_opens_is_dropped() {
    use Phase::{CloseWindow, OpenWindow, Start, Stop};
    for (script, expected) in [
        (
            vec![Start, OpenWindow, CloseWindow, OpenWindow, CloseWindow],
            vec![],
        ),
        (vec![OpenWindow, OpenWindow, OpenWindow, Stop], vec![1, 2]),
        (
            vec![OpenWindow, Stop, OpenWindow, Start, OpenWindow],
            vec![2],
        ),
        (
            vec![OpenWindow, CloseWindow, OpenWindow, OpenWindow],
            vec![2],
        ),
    ] {
        assert_eq!(dropped(&plan(script)), expected.into_iter().collect());
    }
}

#[test]
fn windows_belong_to_the_stage_that_was_started_before() {
    use Phase::{CloseWindow, OpenWindow, StartStage, Stop};
    let plan = plan(vec![
        OpenWindow,
        StartStage { stage: 0 },
        OpenWindow,
        CloseWindow,
        StartStage { stage: 4 },
        OpenWindow,
        OpenWindow,
        Stop,
    ]);
    let numbers = |windows| {
        stages(&plan, windows)
            .into_iter()
            .map(|s| s.stage)
            .collect::<Vec<_>>()
    };
    assert_eq!(numbers(9), [0, 4, 4]);
    assert_eq!(numbers(2), [0, 4]);
    assert_eq!(numbers(0), [0; 0]);
}

#[test]
fn notes_say_what_the_figures_are_of() {
    let message_of = |windows: usize, has_dropped, ranks| {
        let window = MeasuredWindow::default();
        let whole = CompleteIntervals {
            windows: vec![window; windows],
            has_dropped,
            ..CompleteIntervals::default()
        };
        whole.said(ranks)
    };
    for (ranks, has_dropped) in [(2, false), (3, true)] {
        let in_progress = format!("its {ranks} processes are gathered when");
        assert!(message_of(1, has_dropped, ranks).contains(&in_progress));
        let none = format!("the figures of its {ranks} processes were not gathered");
        assert!(message_of(0, has_dropped, ranks).contains(&none));
    }
    for ranks in [0, 1] {
        assert!(message_of(2, true, ranks).contains("those of the intervals that were complete"));
        assert!(message_of(0, false, ranks).ends_with("had measured an interval"));
        assert!(message_of(0, true, ranks).contains("an interval that counts"));
    }
}

#[test]
fn runs_are_looked_for_three_levels_deep_but_not_in_hidden_directories() {
    let root = tempfile::tempdir().unwrap();
    let deep = root.path().join("a/b/c/d");
    std::fs::create_dir_all(&deep).unwrap();
    std::fs::create_dir_all(root.path().join("a/.b/c")).unwrap();
    std::fs::write(root.path().join("file"), "").unwrap();
    std::os::unix::fs::symlink(&deep, root.path().join("link")).unwrap();
    let mut found = Vec::new();
    add_directories(root.path(), MAX_SEARCH_DEPTH, &mut found);
    found.sort();
    assert_eq!(
        found,
        ["a", "a/b", "a/b/c"].map(|path| root.path().join(path))
    );
}

#[test]
fn only_complete_lines_of_a_series_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(INTERVALS_FILE);
    for (text, complete) in [("", ""), ("a", ""), ("a\n", "a\n"), ("a\nb\nc", "a\nb\n")] {
        std::fs::write(&path, text).unwrap();
        assert_eq!(written(&path).unwrap(), complete.as_bytes());
    }
    truncate_to_complete(&path, 2).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"a\n");
    assert_eq!(text_of(b"ab\xffcd"), "ab");
    assert_eq!(text_of(b""), "");
}

#[test]
fn seconds_become_whole_nanoseconds() {
    assert_eq!([-1.0, 0.0, 2.6e-9, 2.0].map(ns), [0, 0, 3, 2_000_000_000]);
}

/// Content of `intervals.csv` and `histograms.hlog` as a writer creates the files, with intervals of a window that
/// opens at 10 s.
fn series(plan: &Plan, intervals: &[plimsoll_measure::Interval]) -> (Vec<u8>, String) {
    let dir = tempfile::tempdir().unwrap();
    let series = crate::interval_series::IntervalSeriesWriter::create(
        dir.path(),
        &plan.operations,
        SystemTime::UNIX_EPOCH,
    );
    let mut series = series.unwrap();
    for interval in intervals {
        series.write(interval, &[]).unwrap();
    }
    series.finish().unwrap();
    let read = |name| std::fs::read(dir.path().join(name)).unwrap();
    (
        read(INTERVALS_FILE),
        String::from_utf8(read(HISTOGRAMS_FILE)).unwrap(),
    )
}

const SECOND: u64 = 1_000_000_000;

fn interval(window: u32, index: u64, rows: [OpTotals; 2]) -> plimsoll_measure::Interval {
    plimsoll_measure::Interval {
        window,
        index,
        opened: 10 * SECOND,
        start: index * SECOND,
        length: SECOND / (1 + index % 2),
        rows: rows.to_vec(),
        completions: plimsoll_measure::Completions::default(),
    }
}

fn row(samples: &[u64], response: &[u64], errors: u64) -> OpTotals {
    let mut row = OpTotals {
        ops: samples.len() as u64,
        bytes: 100 * samples.len() as u128,
        paced: response.len() as u64,
        service: Latency::of(samples.iter().copied()),
        response: Latency::of(response.iter().copied()),
        ..OpTotals::default()
    };
    if errors > 0 {
        row.errors.insert("unknown".into(), errors);
    }
    row
}

#[test]
fn intervals_that_are_whole_add_up_to_their_windows() {
    let plan = plan(vec![
        Phase::OpenWindow,
        Phase::CloseWindow,
        Phase::OpenWindow,
        Phase::CloseWindow,
    ]);
    let intervals = [
        interval(1, 0, [row(&[1000, 3000], &[], 0), row(&[500], &[700], 1)]),
        interval(1, 1, [row(&[2000], &[], 0), row(&[], &[], 2)]),
        interval(2, 0, [row(&[], &[], 0), row(&[900], &[950], 0)]),
    ];
    let (rows, lines) = series(&plan, &intervals);
    let whole = CompleteIntervals::of(&plan, &rows, &lines);
    assert_eq!((whole.rows_end, whole.lines_end), (rows.len(), lines.len()));
    let of = |n: usize| &whole.windows[n].totals;
    assert_eq!(whole.windows.len(), 2);
    let bounds = |n: usize| (of(n).number, of(n).start, of(n).end);
    assert_eq!(bounds(0), (1, 10 * SECOND, 11 * SECOND + SECOND / 2));
    assert_eq!(bounds(1), (2, 10 * SECOND, 11 * SECOND));
    let mut first = row(&[1000, 3000], &[], 0);
    first.add(&row(&[2000], &[], 0));
    let figures = |t: &OpTotals| {
        (
            t.ops,
            t.bytes,
            t.paced,
            t.error_count(),
            t.service.sum(),
            t.response.max(),
        )
    };
    assert_eq!(figures(&of(0).rows[0]), figures(&first));
    assert_eq!(figures(&of(0).rows[1]), figures(&row(&[500], &[700], 3)));
    assert_eq!(figures(&of(1).rows[1]), figures(&row(&[900], &[950], 0)));
    let mut counts = plimsoll_measure::IntervalCounts::default();
    [(0, SECOND, 3), (1, SECOND / 2, 1)]
        .into_iter()
        .for_each(|(index, length, ops)| counts.add_ops(index, length, ops));
    assert_eq!(of(0).counts, counts);
}

#[test]
fn an_interval_without_all_of_its_lines_is_cut_off_with_all_after_it() {
    let plan = plan(vec![Phase::OpenWindow, Phase::CloseWindow]);
    let one = |index| interval(1, index, [row(&[1000], &[], 0), row(&[500], &[700], 0)]);
    let intervals = [one(0), one(1), one(2)];
    let (rows, lines) = series(&plan, &intervals);
    let (rows_of_one, lines_of_one) = series(&plan, &intervals[..1]);
    let lines_before: Vec<usize> = lines.match_indices('\n').map(|(at, _)| at + 1).collect();
    let ends = |rows: &[u8], lines: &str| {
        let whole = CompleteIntervals::of(&plan, rows, lines);
        let ops: u64 = whole.windows.iter().map(|w| w.totals.rows[0].ops).sum();
        (ops, whole.rows_end, whole.lines_end)
    };
    assert_eq!(ends(&rows, &lines), (3, rows.len(), lines.len()));
    let one = (1, rows_of_one.len(), lines_of_one.len());
    // Each interval has three distributions: the second interval is incomplete without its third distribution.
    let n = lines_before.len();
    assert_eq!(ends(&rows, &lines[..lines_before[n - 5]]), one);
    // Without any complete interval, only the headers of both files remain.
    let (head, _) = series(&plan, &[]);
    let (ops, rows_end, lines_end) = ends(&rows, &lines[..lines_before[n - 9]]);
    assert_eq!((ops, rows_end), (0, head.len()));
    let (_, head) = series(&plan, &[]);
    assert_eq!(lines_end, head.len());
    // A row of an operation that the Plan does not contain makes the interval incomplete.
    let other = String::from_utf8(rows.clone())
        .unwrap()
        .replacen(",b,", ",c,", 1);
    assert_eq!(ends(other.as_bytes(), &lines).0, 0);
}

#[test]
fn a_row_needs_the_distributions_of_its_operations() {
    let plan = plan(vec![]);
    let (_, lines) = series(
        &plan,
        &[interval(
            1,
            0,
            [row(&[1000, 3000], &[4000], 0), row(&[], &[], 0)],
        )],
    );
    let first = IntervalRow {
        window: 1,
        operation: "a".into(),
        kind: plimsoll_plan::OpKind::Read.to_string(),
        ops: 2,
        bytes: 7,
        paced_ops: 1,
        errors: 3,
        mean_ms: 0.004,
        max_ms: 0.004,
        service_mean_ms: Some(0.002),
        service_max_ms: Some(0.003),
        ..IntervalRow::default()
    };
    let read = |row: &IntervalRow, lines: &str| {
        let mut lines = LogLines::new(lines);
        of_row(row, &mut lines)
    };
    let (total, opened) = read(&first, &lines).unwrap();
    assert_eq!(
        (total.ops, total.bytes, total.paced, total.error_count()),
        (2, 7, 1, 3)
    );
    assert_eq!((total.service.sum(), total.service.max()), (4000, 3000));
    assert_eq!((total.response.sum(), total.response.max()), (4000, 4000));
    assert_eq!(opened, Some(10 * SECOND));
    let without_response = &lines[..lines.trim_end().rfind('\n').unwrap() + 1];
    assert!(read(&first, without_response).is_none());
    let unpaced = IntervalRow {
        paced_ops: 0,
        ..first.clone()
    };
    assert!(read(&unpaced, without_response).is_some());
    for wrong in [
        IntervalRow {
            ops: 3,
            ..first.clone()
        },
        IntervalRow {
            window: 2,
            ..first.clone()
        },
        IntervalRow {
            operation: "b".into(),
            ..first.clone()
        },
    ] {
        assert!(read(&wrong, &lines).is_none(), "{wrong:?}");
    }
    let nothing = IntervalRow { ops: 0, ..first };
    let (total, opened) = read(&nothing, "").unwrap();
    assert_eq!((total.error_count(), opened), (3, None));
}
