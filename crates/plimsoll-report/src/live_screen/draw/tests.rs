use super::*;
use crate::live_screen::view::OperationRow;
use plimsoll_plan::LoadTime;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use std::collections::BTreeMap;
use std::time::Duration;

/// A view of a run of four minutes with an outage.
fn view() -> LiveView {
    let mut view = LiveView {
        title: [
            "varmail",
            "files below work",
            "target posix:",
            "intervals of 1s",
        ]
        .map(String::from)
        .to_vec(),
        phase: "measuring".into(),
        elapsed: Some(Duration::from_secs(240)),
        planned: Some(LoadTime {
            at_most: Duration::from_secs(600),
            is_fixed: true,
        }),
        bytes_per_s: 12.5 * MIB,
        machine: Some(Machine {
            process_cpus: Some(0.75),
            quota: None,
            busy: Some((0.5, 2)),
            disks: vec![("vda".into(), 0.0, 11.0 * MIB, 0.25)],
            network: Some((0.0, 0.0)),
        }),
        events: vec![
            "60.0 s  sh stop-server".into(),
            "90.0 s  sh start-server".into(),
        ],
        ..LiveView::default()
    };
    for at in 1..=240_u32 {
        let down = (60..90).contains(&at);
        let at_s = f64::from(at);
        let value = if down { 0.0 } else { 1000.0 };
        view.push_rate((at_s, value));
        if !down {
            view.push_latency(at_s, 2.0, 8.0);
        }
    }
    for name in ["createfile2", "appendfilerand2", "fsyncfile2", "readfile4"] {
        view.operations.push(OperationRow {
            name: name.into(),
            ops_per_s: 250.0,
            bytes_per_s: 4.0 * MIB,
            mean_ms: Some(2.0),
            p99_ms: Some(8.0),
            max_ms: Some(12.5),
            errors: 0,
        });
    }
    view.operations[3].errors = 3;
    view.errors.insert("ENOSPC".into(), 3);
    view.push_message("making bigfileset: 1000 files, 16 MiB");
    view
}

/// The view on a screen of this size, a text line per row.
fn drawn(view: &LiveView, columns: u16, rows: u16) -> String {
    drawn_as(view, Choice::default(), columns, rows)
}

fn drawn_as(view: &LiveView, choice: Choice, columns: u16, rows: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    terminal
        .draw(|frame| draw(frame, view, choice, Palette { color: true }))
        .unwrap();
    let buffer = terminal.backend().buffer();
    let line = |y| {
        (0..columns)
            .map(|x| buffer[(x, y)].symbol())
            .collect::<String>()
    };
    (0..rows)
        .map(|y| format!("{}\n", line(y).trim_end()))
        .collect()
}

#[test]
fn a_screen_has_figures_charts_operations_and_lists() {
    insta::assert_snapshot!(drawn(&view(), 100, 32));
}

#[test]
fn the_picture_in_the_document_is_this_one() {
    let document = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/live.md");
    let document = std::fs::read_to_string(document).unwrap();
    let (_, rest) = document
        .split_once("<!-- the screen of a test -->\n```text\n")
        .unwrap();
    let (picture, _) = rest.split_once("\n```").unwrap();
    // Empty rows are left out.
    let screen = drawn(&view(), 100, 32);
    let rows: Vec<&str> = screen.lines().filter(|row| !row.is_empty()).collect();
    assert_eq!(picture, rows.join("\n"));
}

#[test]
fn every_size_is_drawn_with_what_matters_most() {
    for (columns, rows) in [(1, 1), (20, 5), (40, 12), (80, 24), (120, 40), (300, 100)] {
        let text = drawn(&view(), columns, rows);
        assert_eq!(text.lines().count(), usize::from(rows));
        assert_eq!(
            text.contains("operations per second"),
            rows >= MIN_ROWS_WITH_CHARTS,
            "{text}"
        );
        if columns >= 80 {
            for part in [
                "varmail",
                "0:04:00, 0:06:00 left",
                "1 000 ops/s",
                "3 errors (ENOSPC 3)",
                "client 0.75 CPUs",
            ] {
                assert!(text.contains(part), "no {part} in\n{text}");
            }
            for name in ["createfile2", "appendfilerand2", "fsyncfile2", "readfile4"] {
                assert!(text.contains(name), "no {name} in\n{text}");
            }
            assert!(
                text.contains("start-server") && text.contains("making bigfileset"),
                "{text}"
            );
        }
    }
    // A view before the first figures.
    let text = drawn(
        &LiveView {
            phase: "making files".into(),
            ..LiveView::default()
        },
        80,
        24,
    );
    assert!(text.contains("making files"), "{text}");
}

#[test]
fn a_narrow_table_drops_columns_and_cuts_no_figure() {
    let names = |width| -> Vec<&str> { columns_that_fit(width).iter().map(|c| c.name).collect() };
    assert_eq!(
        names(76),
        ["ops/s", "mean", "p99", "errors", "max", "MiB/s"]
    );
    assert_eq!(names(75), ["ops/s", "mean", "p99", "errors", "max"]);
    assert_eq!(names(60), ["ops/s", "mean", "p99", "errors"]);
    assert_eq!(names(30), ["ops/s"]);
    assert_eq!(names(20), [""; 0]);
    let text = drawn(&view(), 60, 24);
    let row = text.lines().find(|line| line.starts_with("createfile2"));
    let cells: Vec<&str> = row
        .unwrap()
        .split("  ")
        .filter(|cell| !cell.is_empty())
        .collect();
    let cells: Vec<&str> = cells.into_iter().map(str::trim).collect();
    assert_eq!(cells, ["createfile2", "250", "2.00 ms", "8.00 ms", "0"]);
}

#[test]
fn latencies_have_an_axis_of_decades() {
    let axis = |values: &[f64]| {
        let points = values.iter().map(|value| (0.0, *value)).collect();
        let mut curves = [(points, Style::new())];
        let axis = logarithmic(&mut curves);
        let drawn: Vec<f64> = curves[0].0.iter().map(|point| point.1).collect();
        (axis.bounds, axis.labels, drawn)
    };
    let (bounds, labels, drawn) = axis(&[0.2, 100.0]);
    assert_eq!(bounds, [-1.0, 2.0]);
    assert_eq!(labels, ["100 µs", "1.00 ms", "10.0 ms", "100 ms"]);
    assert!((drawn[0] - 0.2f64.log10()).abs() < 1e-12 && drawn[1] == 2.0);
    // A single power of ten has a decade, and latencies of zero have a place.
    assert_eq!(axis(&[1.0]).0, [0.0, 1.0]);
    assert_eq!(axis(&[0.0]).0, [-6.0, -5.0]);
    assert!(axis(&[]).1.is_empty());
}

#[test]
fn choices_of_the_user_are_shown() {
    let paused = Choice {
        is_paused: true,
        ..Choice::default()
    };
    assert!(drawn_as(&view(), paused, 80, 24).contains("display paused"));
    let help = Choice {
        shows_help: true,
        ..Choice::default()
    };
    for (columns, rows) in [(1, 1), (20, 5), (80, 24)] {
        let text = drawn_as(&view(), help, columns, rows);
        assert_eq!(text.contains("Second line: phase"), columns == 80, "{text}");
    }
    let rule = LiveView {
        planned: Some(LoadTime {
            at_most: Duration::from_secs(200),
            is_fixed: false,
        }),
        ..view()
    };
    let text = drawn(&rule, 80, 24);
    assert!(text.contains("0:04:00, at most 0:00:00 left"), "{text}");
}

#[test]
fn colours_can_be_left_out() {
    let coloured = |color| {
        let mut terminal = Terminal::new(TestBackend::new(100, 32)).unwrap();
        terminal
            .draw(|frame| draw(frame, &view(), Choice::default(), Palette { color }))
            .unwrap();
        let buffer = terminal.backend().buffer();
        buffer.content().iter().any(|cell| cell.fg != Color::Reset)
    };
    assert!(coloured(true) && !coloured(false));
}

#[test]
fn a_quota_is_beside_the_processors_that_the_client_uses() {
    let line = |quota| {
        let machine = Machine {
            process_cpus: Some(0.1),
            quota,
            ..Machine::default()
        };
        fitted(machine_parts(&machine), " │ ", 80).to_string()
    };
    assert_eq!(line(None), "client 0.10 CPUs");
    let expected = "client 0.10 CPUs │ quota 0.1, threads waited 0.90 s/s";
    assert_eq!(line(Some((Some(0.1), 0.9))), expected);
    let hidden = "client 0.10 CPUs │ quota, threads waited 1.80 s/s";
    assert_eq!(line(Some((None, 1.8))), hidden);
}

/// Head lines (title, state, machine) and key line of the live screen, drawn with `columns` columns.
fn head_and_keys(view: &LiveView, choice: Choice, columns: u16) -> Vec<String> {
    let text = drawn_as(view, choice, columns, 24);
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    [&lines[..3], &lines[23..]].concat()
}

#[test]
fn a_narrow_head_drops_parts_and_cuts_no_figure() {
    let head = |columns| head_and_keys(&view(), Choice::default(), columns);
    assert_eq!(
        head(120),
        [
            "varmail: files below work, target posix:, intervals of 1s",
            "measuring  0:04:00, 0:06:00 left  1 000 ops/s  12.5 MiB/s  3 errors (ENOSPC 3)",
            "client 0.75 CPUs │ machine 50 % of 2 │ vda 25 % busy, 0.0 MiB/s read, 11.0 written │ network 0.0 MiB/s in, \
             0.0 out",
            "q end the run   space pause the display   ? help",
        ]
    );
    assert_eq!(
        head(80),
        [
            "varmail: files below work, target posix:, intervals of 1s",
            "measuring  0:04:00, 0:06:00 left  1 000 ops/s  12.5 MiB/s  3 errors (ENOSPC 3)",
            "client 0.75 CPUs │ machine 50 % of 2 │ vda 25 % busy",
            "q end the run   space pause the display   ? help",
        ]
    );
    assert_eq!(
        head(60),
        [
            "varmail: files below work, target posix:, intervals of 1s",
            "measuring  0:04:00, 0:06:00 left  1 000 ops/s  3 errors",
            "client 0.75 CPUs │ machine 50 % of 2 │ vda 25 % busy",
            "q end the run   space pause the display   ? help",
        ]
    );
    assert_eq!(
        head(40),
        [
            "varmail: files below work, target posix:",
            "measuring  1 000 ops/s  3 errors",
            "client 0.75 CPUs │ machine 50 % of 2",
            "q end the run   ? help",
        ]
    );
    let flawless = LiveView {
        errors: BTreeMap::new(),
        ..view()
    };
    let lines = head_and_keys(&flawless, Choice::default(), 40);
    assert_eq!(lines[1], "measuring  0:06:00 left  1 000 ops/s");
}

#[test]
fn the_keys_of_a_paused_display_fit() {
    let paused = Choice {
        is_paused: true,
        ..Choice::default()
    };
    let keys = |columns| head_and_keys(&view(), paused, columns).remove(3);
    let all = "display paused, the run continues   space continue   q end the run   ? help";
    assert_eq!(keys(80), all);
    let without_the_run = "display paused   space continue   q end the run   ? help";
    assert_eq!(keys(60), without_the_run);
    assert_eq!(keys(40), "display paused   space continue   ? help");
}

#[test]
fn the_machine_keeps_the_busiest_disk_and_the_network() {
    let disk = |name: &str, busy| (name.to_owned(), 0.0, 0.0, busy);
    let machine = Machine {
        disks: vec![disk("vda", 0.2), disk("vdb", 0.9)],
        network: Some((0.0, 0.0)),
        ..Machine::default()
    };
    let line = |width| fitted(machine_parts(&machine), " │ ", width).to_string();
    let network = "network 0.0 MiB/s in, 0.0 out";
    let written = "0.0 MiB/s read, 0.0 written";
    let all = format!("vdb 90 % busy, {written} │ vda 20 % busy, {written} │ {network}");
    assert_eq!(line(150), all);
    let one = format!("vdb 90 % busy, {written} │ vda 20 % busy │ {network}");
    assert_eq!(line(100), one);
    assert_eq!(line(80), format!("vdb 90 % busy, {written} │ {network}"));
    assert_eq!(line(60), format!("vdb 90 % busy │ {network}"));
    assert_eq!(line(40), "vdb 90 % busy");
}
