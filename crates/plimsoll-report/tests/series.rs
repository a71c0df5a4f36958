//! Formats of series.

use crate::fixtures::{Figures, create, curve, make_all, profile, repeats, search};
use crate::formats::measured;
use plimsoll_plan::{Phase, SourceKind, Until};
use plimsoll_report::compare::{ProfileSet, Results, of_profiles, side_by_side};
use plimsoll_report::disclosure::{DisclosureInput, Sut};
use plimsoll_report::document::Document;
use plimsoll_report::terminal::{self, Layout};
use plimsoll_report::{curve, find, markdown, points, profile, repeats, suite_rules};
use plimsoll_results::{
    CriterionResult, LoadCurve, NextRun, Percentiles, Reason, Run, Series, SeriesDir, SeriesKind,
    SeriesOf, SeriesState, Settling, SkippedConfiguration, Unrest, Verdict, read_runs,
};
use std::path::Path;
use std::time::Duration;

const LAYOUT: Layout = Layout {
    width: 100,
    color: false,
};

fn text(document: &Document) -> String {
    terminal::render(document, LAYOUT)
}

/// A series in a temporary directory.
pub(crate) struct Made {
    _root: tempfile::TempDir,
    pub(crate) dir: SeriesDir,
    pub(crate) series: Series,
}

pub(crate) fn made(series: Series, figures: impl FnMut(&NextRun) -> Option<Figures>) -> Made {
    let root = tempfile::tempdir().unwrap();
    let mut writer = create(root.path(), series);
    make_all(&mut writer, figures);
    Made {
        dir: writer.dir().clone(),
        series: writer.series().clone(),
        _root: root,
    }
}

/// Each stream achieves 20 operations per second; load 6 has errors, and higher loads are too slow.
pub(crate) fn of_curve(next: &NextRun) -> Option<Figures> {
    Some(match next.load.unwrap() {
        load @ (2 | 4) => (load * 200, load, &[]),
        6 => (1190, 8, &["errors"]),
        _ => (1400, 30, &["latency", "total_rate"]),
    })
}

fn stopped_curve() -> Made {
    made(curve(), of_curve)
}

fn curve_of(made: &Made) -> SeriesOf<'_, plimsoll_results::LoadCurve> {
    made.series.as_curve().unwrap()
}

#[test]
fn curve_text() {
    let made = stopped_curve();
    insta::assert_snapshot!(text(&curve::document(curve_of(&made))));
}

#[test]
fn curve_markdown() {
    let made = stopped_curve();
    insta::assert_snapshot!(markdown::render(
        &curve::document(curve_of(&made)).named("streams-curve-1")
    ));
}

/// The latency turns up at load 6, with two points beyond, and throughput falls short of 20 operations per second and
/// stream from load 4 on.
#[test]
fn a_bent_curve_has_a_knee_and_a_scalability_law() {
    let bent = made(curve(), |next| {
        Some(match next.load.unwrap() {
            2 => (400, 2, &[]),
            4 => (780, 2, &[]),
            6 => (1090, 2, &[]),
            8 => (1280, 16, &[]),
            _ => (1400, 30, &[]),
        })
    });
    let text = text(&curve::document(curve_of(&bent)));
    let line = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap();
    assert_eq!(
        line("knee"),
        "knee: 6.00 streams, where the response time turns up"
    );
    // On a grid of coefficients, a contention of 0 and a coherency of 0.0054 fit best.
    assert!(
        line("scalability law").contains("contention 0.0000, coherency 0.0054"),
        "{text}"
    );
}

#[test]
fn curve_csv() {
    let made = stopped_curve();
    let csv = points::csv(&[("streams-curve-1", curve_of(&made).series)]);
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 5);
    let cell = |line: &str, name: &str| {
        let column = lines[0].split(',').position(|n| n == name).unwrap();
        line.split(',').nth(column).unwrap().to_owned()
    };
    let of_load_4 = |name: &str| cell(lines[2], name);
    assert_eq!(of_load_4("results"), "streams-curve-1");
    assert_eq!(of_load_4("workload"), "streams");
    assert_eq!(of_load_4("scale"), "0.5");
    assert_eq!(of_load_4("load"), "4");
    assert_eq!(of_load_4("achieved_ops_per_s"), "80");
    assert_eq!(of_load_4("latency_mean_ms"), "4");
    assert_eq!(of_load_4("run"), "point-02-load-4");
    let verdicts: Vec<String> = lines[1..].iter().map(|l| cell(l, "verdict")).collect();
    assert_eq!(verdicts, ["valid", "valid", "invalid", "invalid"]);
}

#[test]
fn curve_lines() {
    let made = stopped_curve();
    let lines: Vec<String> = made.series.runs.iter().map(curve::line).collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn requested_percentiles_are_in_every_format_of_a_curve() {
    let root = tempfile::tempdir().unwrap();
    let wanted: Percentiles = "33,99.95".parse().unwrap();
    let mut writer = create(root.path(), curve());
    make_all(&mut writer, of_curve);
    let series = writer.dir().read_with(Some(&wanted)).unwrap();
    let curve = series.as_curve().unwrap();
    let document = curve::document(curve);
    let (text, markdown) = (text(&document), markdown::render(&document));
    let head = |text: &str, first: &str| {
        let mut lines = text.lines();
        let line = lines.find(|l| l.starts_with(first) && l.contains("mean"));
        line.unwrap_or_else(|| panic!("{text}")).to_owned()
    };
    for head in [head(&text, "load "), head(&markdown, "| load")] {
        assert!(head.contains("p33") && head.contains("p99.95"), "{head}");
        assert!(!head.contains("p50"), "{head}");
    }
    let csv = points::csv(&[("c", curve.series)]);
    let head = csv.lines().next().unwrap();
    assert!(head.contains("latency_p33_ms,latency_p99.95_ms"), "{head}");
}

#[test]
fn a_series_with_missing_runs_says_how_to_resume_it() {
    let at = SeriesDir::at(Path::new("results/streams-curve-1"));
    let hint = "resume with plimsoll resume results/streams-curve-1\n";
    let mut failed = made(curve(), |next| {
        (next.load < Some(4)).then_some((400, 2, &[]))
    });
    failed.series.state = SeriesState::Failed;
    failed.series.stop_reason = Some(Reason::new("failed", "load 4: the disk is gone"));
    let report = curve::document(curve_of(&failed));
    let text_of = |report: Document, series| text(&report.of_series(series, Some(&at)));
    let text = text_of(report, &failed.series);
    assert!(text.ends_with(hint), "{text}");
    assert!(
        text.starts_with("streams, load curve: failed, 1 of 5 load points\n"),
        "{text}"
    );
    assert!(
        text.contains("  failed: load 4: the disk is gone\n"),
        "{text}"
    );
    let stopped = stopped_curve();
    let text = text_of(curve::document(curve_of(&stopped)), &stopped.series);
    assert!(
        text.ends_with("\nresults in results/streams-curve-1\n"),
        "{text}"
    );
    let unfinished = repeats(2);
    let report = repeats::document(unfinished.as_repeats().unwrap(), &[]);
    let text = text_of(report, &unfinished);
    assert!(text.ends_with(hint), "{text}");
}

/// Loads up to 5 are sustained.
pub(crate) fn of_search(next: &NextRun) -> Option<Figures> {
    Some(match next.load.unwrap() {
        load @ ..=5 => (load * 200, load, &[]),
        load => (load * 180, 30, &["latency"]),
    })
}

fn search_of(made: &Made) -> SeriesOf<'_, plimsoll_results::LoadSearch> {
    made.series.as_search().unwrap()
}

#[test]
fn search_text() {
    let made = made(search(), of_search);
    insta::assert_snapshot!(text(&find::document(search_of(&made))));
}

#[test]
fn search_markdown() {
    let made = made(search(), of_search);
    insta::assert_snapshot!(markdown::render(
        &find::document(search_of(&made)).named("streams-search-1")
    ));
}

#[test]
fn search_csv_has_the_purpose_of_each_run() {
    let made = made(search(), of_search);
    let csv = points::csv(&[("s", search_of(&made).series)]);
    let lines: Vec<&str> = csv.lines().collect();
    assert!(
        lines[0].ends_with(",number,purpose,passed,margin"),
        "{}",
        lines[0]
    );
    let last = |line: &str| line.rsplit(',').take(4).collect::<Vec<_>>().join(" ");
    assert!(last(lines[1]).ends_with("true doubling 1"), "{}", lines[1]);
    assert!(
        last(lines[4]).ends_with("false bisection 4"),
        "{}",
        lines[4]
    );
    assert_eq!(lines.len(), made.series.runs.len() + 1);
}

#[test]
fn search_lines() {
    let made = made(search(), of_search);
    let runs = (1..).zip(&made.series.runs);
    let lines: Vec<String> = runs
        .map(|(n, run)| find::line(&made.series, n, run))
        .collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn an_unfinished_search_says_where_the_load_line_lies() {
    let interval = |runs: usize, of: fn(&NextRun) -> Option<Figures>| {
        let mut left = runs;
        let made = made(search(), |next| {
            left = left.checked_sub(1)?;
            of(next)
        });
        find::interval(search_of(&made))
    };
    assert_eq!(interval(0, of_search), None);
    assert_eq!(
        interval(2, of_search).unwrap(),
        "it is 4 streams or more; no load was found that is not sustained, and loads up to 10 remained to be tried"
    );
    assert_eq!(
        interval(3, of_search).unwrap(),
        "it lies from 4 streams up to below 8 streams; the interval is wider than the resolution, or its ends are not confirmed"
    );
    let fails = |_: &NextRun| -> Option<Figures> { Some((100, 30, &["latency"])) };
    assert_eq!(interval(1, fails).unwrap(), "it lies below 2 streams");
}

#[test]
fn repeats_text() {
    let mut done = [1000, 1100, 1200].into_iter();
    let mut made = made(repeats(3), |next| {
        let done = done.next().unwrap();
        let reasons: &[_] = if next.directory == "run-02" {
            &["stalled"]
        } else {
            &[]
        };
        Some((done, done / 100, reasons))
    });
    let settling = |seconds, waited_for: &[Unrest]| {
        Some(Settling {
            seconds,
            waited_for: waited_for.to_vec(),
            ..Settling::default()
        })
    };
    made.series.runs[0].settling = settling(0.5, &[]);
    made.series.runs[2].settling = settling(4.5, &[Unrest::DirtyBytes(120 << 20)]);
    let runs = read_runs(made.dir.path(), None).unwrap();
    let of = made.series.as_repeats().unwrap();
    insta::assert_snapshot!(text(&repeats::document(
        of,
        &runs.iter().collect::<Vec<_>>()
    )));
    let lines: Vec<String> = (0..3).map(|number| repeats::line(of, number)).collect();
    assert_eq!(
        lines[1],
        "run 2 of 3, seed 42: 110 of 200 ops/s, mean 11.0 ms: invalid (stalled)"
    );
}

fn profile_text(made: &Made) -> String {
    let profile = made.series.as_profile().unwrap();
    let sets = ProfileSet::read(profile, &made.dir, None).unwrap();
    text(&profile::document(profile, &sets))
}

#[test]
fn profile_of_one_file_system_text() {
    let mut series = profile(2, &[("read", "ext4"), ("write", "ext4"), ("stat", "ext4")]);
    let SeriesKind::Profile(figures) = &mut series.kind else {
        unreachable!("a profile");
    };
    figures.description = "Small files".into();
    figures.not_run = vec![SkippedConfiguration {
        name: "video".into(),
        reason: "there is no workload `video`".into(),
    }];
    let made = made(series, |next| match next.directory.as_str() {
        "ext4/read/run-01" => Some((1000, 10, &[])),
        "ext4/read/run-02" => Some((2000, 20, &[])),
        "ext4/write/run-01" => Some((500, 40, &["errors"])),
        _ => None,
    });
    insta::assert_snapshot!(profile_text(&made));
    let line = profile::line(made.series.as_profile().unwrap(), 2);
    assert_eq!(
        line,
        "run 3 of 6, write on ext4: 50.0 ops/s, 0.20 MiB/s, mean 40.0 ms: invalid (errors)"
    );
}

#[test]
fn a_check_has_a_row_per_operation_and_a_column_of_qualifiers() {
    let mut series = profile(1, &[("copy", "ext4"), ("stat", "ext4")]);
    let SeriesKind::Profile(figures) = &mut series.kind else {
        unreachable!("a profile");
    };
    figures.by_operation = true;
    let mut copy = measured();
    copy.environment.read_source = Some(plimsoll_results::ReadSource::Memory);
    // Three operations remain, one of which opens its file implicitly.
    copy.outcome.windows[0].totals.rows[4] = Default::default();
    let sets = [ProfileSet {
        name: "ext4".into(),
        profile: "check".into(),
        cases: vec![
            ("copy".into(), vec![Run::assemble(copy)]),
            ("stat".into(), vec![]),
        ],
        not_run: vec![],
    }];
    let wide = Layout {
        width: 120,
        ..LAYOUT
    };
    let document = profile::document(series.as_profile().unwrap(), &sets);
    let text = terminal::render(&document, wide);
    let lines = || text.lines().filter(|line| line.contains("  valid  "));
    let rows: Vec<&str> = lines().filter_map(|line| line.split("  ").next()).collect();
    assert_eq!(
        rows,
        ["copy: createfile1", "copy: wrtfile1", "copy: readfile1"]
    );
    assert!(
        lines().all(|line| line.ends_with("  measures memory, client limited")),
        "{text}"
    );
    let absent = text.lines().find(|line| line.starts_with("stat ")).unwrap();
    assert!(absent.trim_end().ends_with("not run"), "{absent}");
    // The rate of an operation is that of its row: 1000 operations in ten seconds.
    assert!(
        lines().all(|line| line.split_whitespace().nth(2) == Some("100")),
        "{text}"
    );
}

fn two_file_systems() -> Made {
    made(profile(1, &[("read", "ext4"), ("read", "xfs")]), |next| {
        Some(match next.directory.as_str() {
            "ext4/read" => (1000, 10, &[]),
            _ => (2000, 5, &[]),
        })
    })
}

#[test]
fn profile_of_two_file_systems_text() {
    insta::assert_snapshot!(profile_text(&two_file_systems()));
}

#[test]
fn results_are_compared_with_their_kind() {
    let curve = stopped_curve();
    let search = made(search(), of_search);
    let profile = two_file_systems();
    let read = |made: &Made, name: &str| Results::read(made.dir.path(), name, None);
    let both = side_by_side(
        vec![read(&curve, "a").unwrap(), read(&curve, "b").unwrap()],
        None,
    );
    let names = |c: plimsoll_report::compare::Comparison| -> Vec<String> {
        c.sets.into_iter().map(|s| s.name).collect()
    };
    assert_eq!(names(both.unwrap()), ["a", "b"]);
    let of_profile = side_by_side(vec![read(&profile, "p").unwrap()], None).unwrap();
    let sets = ProfileSet::read(profile.series.as_profile().unwrap(), &profile.dir, None).unwrap();
    assert_eq!(of_profiles(&sets, None).rows(), of_profile.rows());
    assert_eq!(names(of_profile), ["p, ext4", "p, xfs"]);
    let error = read(&search, "s").unwrap_err();
    assert!(
        error.starts_with("s is a search for a load line"),
        "{error}"
    );
    let mixed = vec![read(&curve, "c").unwrap(), read(&profile, "p").unwrap()];
    assert_eq!(
        side_by_side(mixed, None).unwrap_err(),
        "c holds a load curve and p, ext4 a profile: only results of one kind can be compared"
    );
    let empty = made(repeats(2), |_| None);
    assert_eq!(read(&empty, "e").unwrap_err(), "e has no run in it");
}

/// A curve of the built-in workload `vda` that keeps every rule of the published suite: ten load points, each measured
/// for 300 s.
fn ruled() -> Series {
    let mut series = curve();
    series.kind = SeriesKind::Curve(LoadCurve::new((1..=10).collect(), None));
    let mut series = made(series, |next| Some((next.load? * 200, 5, &[]))).series;
    series.name = "vda".into();
    let plan = &mut series.configurations[0].plan;
    plan.metric.as_mut().unwrap().scale = 1.0;
    for phase in &mut plan.script {
        if let Phase::Wait { until, .. } = phase {
            let time = Duration::from_secs(300);
            *until = Until::Elapsed { time };
        }
    }
    for (minute, run) in series.runs.iter_mut().enumerate() {
        run.window_s = 300.0;
        run.offered_ops_per_s = Some(run.achieved_ops_per_s);
        run.slowest_process_percent = Some(98.5);
        run.criteria.clear();
        run.started_at = format!("2026-01-01T00:{minute:02}:00Z");
    }
    series
}

/// Rules that a curve breaks, each with its figures.
fn broken(series: &Series) -> Vec<String> {
    let rules = suite_rules::check(series.as_curve().unwrap()).into_iter();
    let broken = rules.filter(|rule| !rule.holds);
    broken.map(|rule| rule.to_string()).collect()
}

#[test]
fn a_curve_that_keeps_the_rules_of_its_suite_shows_each_with_its_figures() {
    let series = ruled();
    let rules = suite_rules::check(series.as_curve().unwrap());
    let rules: Vec<String> = rules.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(rules.join("\n"), @"
    number of load points: holds (10; at least 10 are required)
    even spacing of the loads: holds (every load is at its place, in steps of 1)
    one ascending run: holds (the points were measured in increasing order of load, without interruption)
    warm-up: holds (300 s; 300 s are published)
    measured window: holds (300 s; 300 s are published)
    rate of each process: holds (lowest 98.5 %, at load 1; 75 % are required)
    rate of all processes: holds (lowest 100.0 %, at load 1; 95 % are required)
    no errors: holds (0 operations failed)
    data and rates in full: holds (scale 1, and no changed parameter)
    ");
    let text = text(&curve::document(series.as_curve().unwrap()));
    assert!(text.contains("✓ number of load points"), "{text}");
    assert!(text.contains("never a SPEC result"), "{text}");
    let input =
        DisclosureInput::of_curve(series.as_curve().unwrap(), Sut::default(), "2026".into());
    let report = input.disclosure().unwrap();
    let section = report.section("Rules of the Published Suite").unwrap();
    assert_eq!(
        section.matches(": holds (").count(),
        rules.len(),
        "{section}"
    );
}

#[test]
fn each_broken_rule_is_named_with_its_figure() {
    let says = |change: fn(&mut Series), expected: &[&str]| {
        let mut series = ruled();
        change(&mut series);
        assert_eq!(broken(&series), expected);
    };
    says(
        |s| s.runs.truncate(9),
        &["number of load points: does not hold (9; at least 10 are required)"],
    );
    says(
        |s| s.runs[4].load = Some(4),
        &[
            "even spacing of the loads: does not hold (load 4 is 100.0 % of a step from its place; at most 30 % are \
             allowed)",
        ],
    );
    says(
        |s| s.runs[4].started_at = "2026-02-01T00:00:00Z".into(),
        &[
            "one ascending run: does not hold (the points were not measured in increasing order of load)",
        ],
    );
    says(
        |s| {
            let again = s.runs[3].clone();
            s.runs.insert(3, again);
            s.runs[3].verdict = Verdict::Interrupted;
        },
        &["one ascending run: does not hold (1 of 11 runs failed or were interrupted)"],
    );
    says(
        |s| s.name = "ai-image".into(),
        &["warm-up: does not hold (300 s; 900 s are published)"],
    );
    says(
        |s| s.runs[7].window_s = 60.0,
        &["measured window: does not hold (60 s; 300 s are published)"],
    );
    says(
        |s| s.runs[1].slowest_process_percent = Some(74.0),
        &["rate of each process: does not hold (lowest 74.0 %, at load 2; 75 % are required)"],
    );
    says(
        |s| s.runs[1].offered_ops_per_s = Some(s.runs[1].achieved_ops_per_s / 0.9),
        &["rate of all processes: does not hold (lowest 90.0 %, at load 2; 95 % are required)"],
    );
    says(
        |s| s.runs[9].errors = 2,
        &["no errors: does not hold (2 operations failed)"],
    );
    says(
        |s| s.configurations[0].plan.metric.as_mut().unwrap().scale = 0.5,
        &["data and rates in full: does not hold (scale 0.5)"],
    );
}

#[test]
fn rules_concern_the_points_up_to_the_highest_valid_load_of_published_workloads() {
    // The eleventh point finds the end of the curve.
    let mut series = ruled();
    let mut beyond = series.runs[9].clone();
    (beyond.load, beyond.errors, beyond.verdict) = (Some(16), 3, Verdict::Invalid);
    beyond.started_at = "2026-01-01T00:30:00Z".into();
    series.runs.push(beyond);
    assert_eq!(broken(&series), [""; 0]);
    // A point that met the criterion of the run keeps the rule, because operations were in flight at the end.
    let criterion = |met| CriterionResult {
        code: "process_rate".into(),
        met,
        text: String::new(),
    };
    for met in [true, false] {
        series.runs[0].slowest_process_percent = Some(74.9);
        series.runs[0].criteria = vec![criterion(met)];
        assert_eq!(broken(&series).is_empty(), met);
    }
    let none = |change: fn(&mut Series)| {
        let mut series = ruled();
        change(&mut series);
        assert_eq!(suite_rules::check(series.as_curve().unwrap()), []);
        let text = text(&curve::document(series.as_curve().unwrap()));
        assert!(!text.contains("published suite"), "{text}");
    };
    none(|s| s.name = "streams".into());
    none(|s| s.name = "nfs-sfs2008".into());
    none(|s| s.configurations[0].plan.source.kind = SourceKind::File);
    none(|s| s.runs.clear());
}
