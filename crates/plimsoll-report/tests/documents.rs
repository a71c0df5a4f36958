//! Every text of a report appears in its terminal, Markdown and HTML rendering.

use crate::fixtures::{SECOND, curve, paired, plan, profile, repeats, search, suite, sweep};
use crate::formats::{measured, system};
use crate::series::{Made, made, of_curve, of_search};
use plimsoll_measure::{
    Bottleneck, CacheFigures, IntervalCounts, StartFigures, StationFigures, Stationarity,
};
use plimsoll_plan::ScoreGroup;
use plimsoll_plan::{Condition, Verification, VerificationFailure};
use plimsoll_report::ab;
use plimsoll_report::compare::{self, ProfileSet, RunSet, of_profiles, of_runs};
use plimsoll_report::document::{Block, Document, LineKind};
use plimsoll_report::html::chart::ChartOverlay;
use plimsoll_report::html::{RunData, page};
use plimsoll_report::markdown::{self, escaped};
use plimsoll_report::terminal::{self, Layout};
use plimsoll_report::{
    curve, find, profile, repeats, run, suite as suite_report, sweep as sweep_report,
};
use plimsoll_results::{
    Annotations, HostFigures, MixFigures, Qualifier, QualifierKind, Run, ScheduledFigures,
    SimulationFigures, read_runs,
};

/// No line is wrapped and no table broken.
const LAYOUT: Layout = Layout {
    width: 100_000,
    color: false,
};

/// A rendering of a report: its name, its text with single spaces, and how it writes a text.
struct Rendering {
    format: &'static str,
    text: String,
    write: fn(&str) -> String,
}

/// With single spaces: a terminal lines up units and marks.
fn single_spaces(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A text on a page, on which backticks enclose code.
fn html(text: &str) -> String {
    let mut pieces = text.split('`');
    let first = pieces.next().unwrap_or_default().to_owned();
    let text = pieces.enumerate().fold(first, |text, (number, piece)| {
        let tag = if number % 2 == 0 { '\u{1}' } else { '\u{2}' };
        format!("{text}{tag}{piece}")
    });
    let text = escaped_html(&text);
    text.replace('\u{1}', "<code>").replace('\u{2}', "</code>")
}

fn escaped_html(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}

fn renderings(document: &Document) -> [Rendering; 3] {
    let rendering = |format, text: String, write| Rendering {
        format,
        text: single_spaces(&text),
        write,
    };
    let text = terminal::render(document, LAYOUT);
    let page = page::report(std::slice::from_ref(document));
    [
        rendering("text", text, str::to_owned),
        rendering("Markdown", markdown::render(document), escaped),
        rendering("HTML", page, html),
    ]
}

/// The texts of a block that all formats show.
fn texts(block: &Block) -> Vec<String> {
    match block {
        Block::Line(line) if line.kind == LineKind::Code => vec![],
        Block::Line(line) => vec![line.label.clone(), line.text.clone()],
        Block::Figures(figures) => {
            let items = figures.items.iter();
            // A page shows a time also in the zone of the machine.
            let each = items.flat_map(|f| [Some(&f.name), Some(&f.value).filter(|_| !f.is_time)]);
            each.flatten().cloned().collect()
        }
        Block::Table(table) => {
            let cells = table.rows.iter().flat_map(|row| &row.cells);
            let cells = cells.map(|cell| cell.text.clone());
            let all = table.head.iter().cloned().chain(cells);
            all.chain(table.notes.iter().cloned()).collect()
        }
        Block::Note(note) => note.lines().map(str::to_owned).collect(),
        Block::Chart(_) | Block::Source(_) => vec![],
    }
}

#[track_caller]
fn assert_same(document: &Document) {
    let sections = document.sections.iter().flat_map(|s| &s.blocks);
    let mut all: Vec<String> = document
        .head
        .iter()
        .chain(sections)
        .flat_map(texts)
        .collect();
    all.push(document.title.clone());
    all.extend(document.state.iter().map(|s| s.text.clone()));
    assert!(all.len() > 3, "{document:?}");
    for Rendering {
        format,
        text,
        write,
    } in renderings(document)
    {
        for expected in &all {
            let expected = single_spaces(&write(&expected.replace('\u{a0}', " ")));
            assert!(text.contains(&expected), "{format}: {expected}\n{text}");
        }
        let codes = document.sections.iter().flat_map(|s| &s.blocks);
        for code in codes {
            if let Block::Line(line) = code
                && line.kind == LineKind::Code
            {
                let code = single_spaces(&line.text);
                assert!(text.contains(&code), "{format}: {code}\n{text}");
            }
        }
    }
}

/// Judgement of a rate that is the same in each of 20 seconds.
fn steady() -> Option<Stationarity> {
    let mut counts = IntervalCounts::default();
    (0..20).for_each(|n| counts.add_ops(n, SECOND, 1000));
    Stationarity::of(&counts, 20 * SECOND)
}

fn not_steady() -> Qualifier {
    Qualifier {
        kind: QualifierKind::NotSteady,
        share: None,
        text: "falling, <5 %> a minute | *".into(),
    }
}

/// A run with everything that a report has a place for.
fn full() -> Run {
    let mut run = Run::assemble(measured());
    let mut calls = run.operations[0].clone();
    calls.name = "LOOKUP".into();
    calls.errors = 2;
    calls.error_codes = [("NFS3ERR_STALE".to_owned(), 2)].into();
    run.procedures = vec![calls.clone()];
    calls.name = "completion".into();
    run.completion_delay = Some(calls);
    run.hosts = ["a", "b"]
        .map(|host| HostFigures {
            host: format!("node-{host}"),
            ranks: 2,
            workers: 4,
            ops: 100,
            ops_per_s: 10.0,
            bytes: 4096,
            errors: 0,
            mean_ms: 1.5,
            max_ms: 20.0,
            cpu_s: 3.25,
            machine_busy: Some(0.5),
            received_bytes: Some(1 << 20),
            sent_bytes: None,
        })
        .into();
    run.stationarity = steady();
    run.qualifiers.insert(0, not_steady());
    run.ranks = 4;
    run.starts = Some(StartFigures {
        spread_ms: 0.5,
        round_trip_ms: 0.25,
    });
    run.mix = Some(MixFigures {
        load: 7,
        metric: "<streams>".into(),
        scale: 0.5,
        total: ScheduledFigures {
            offered_ops_per_s: Some(321.0),
            achieved_ops_per_s: 320.0,
            scheduled: 100,
            completed: 50,
            dropped: 3,
            slowest_process_percent: Some(98.0),
            response: None,
            start_delay: None,
        },
        components: vec![],
    });
    run.verification = Some(Verification {
        files: 5,
        missing: 1,
        examples: vec![VerificationFailure {
            path: "d/f|g".into(),
            problem: "missing".into(),
            offset: None,
        }],
        ..Verification::default()
    });
    run.simulation = Some(SimulationFigures {
        system: "filer".into(),
        bottleneck: Some(Bottleneck {
            station: "disk*".into(),
            utilisation: 0.99,
        }),
        stations: vec![StationFigures {
            name: "disk*".into(),
            instances: 3,
            servers: Some(1),
            requests: 1000,
            utilisation: Some(0.99),
            max_utilisation: Some(1.0),
            mean_waiting: 2.5,
            max_waiting: 9,
            mean_wait_ms: Some(3.0),
            mean_service_ms: Some(4.0),
        }],
        caches: vec![CacheFigures {
            name: "cache".into(),
            references: 10,
            hit_ratio: Some(0.5),
            sampling_error: 0.0,
        }],
        buffers: vec![],
        operations: vec![],
    });
    run.system = system();
    run
}

#[test]
fn a_run_is_the_same_in_all_formats() {
    let annotations = Annotations {
        tags: ["new", "disk"].map(|t| t.parse().unwrap()).into(),
        note: "-40 °C, <i>new</i>\nsecond | line".into(),
        ..Annotations::default()
    };
    let document = run::document(&full()).named("x-1").annotated(&annotations);
    let ids: Vec<&str> = document.sections.iter().map(|s| s.id).collect();
    assert_eq!(
        ids,
        [
            "achieved",
            "load",
            "operations",
            "hosts",
            "system",
            "verification",
            "client",
            "workload"
        ]
    );
    assert_same(&document);
    assert_same(&run::document(&Run::assemble(measured())));
}

#[test]
fn a_series_is_the_same_in_all_formats() {
    let mut of = made(curve(), of_curve);
    of.series.runs[1].qualifiers = vec![not_steady()];
    let document = curve::document(of.series.as_curve().unwrap());
    assert_same(&document);
    let text = terminal::render(&document, LAYOUT);
    assert!(text.contains("not steady: 1 of 4 runs; run 2: "), "{text}");
    let of = made(search(), of_search);
    assert_same(&find::document(of.series.as_search().unwrap()));
    let mut of = made(repeats(2), |_| Some((1000, 10, &[])));
    for (run, share) in of.series.runs.iter_mut().zip([0.6, 0.7]) {
        run.qualifiers = vec![Qualifier {
            kind: QualifierKind::MachineShared,
            share: Some(share),
            text: format!("{share} of the processors"),
        }];
    }
    let runs = read_runs(of.dir.path(), None).unwrap();
    let document = repeats::document(
        of.series.as_repeats().unwrap(),
        &runs.iter().collect::<Vec<_>>(),
    );
    assert_same(&document);
    let text = terminal::render(&document, LAYOUT);
    let expected = "machine shared: 2 of 2 runs; run 2: 0.7 of the processors";
    assert!(text.contains(expected), "{text}");
}

fn profiled(systems: &[(&str, &str)]) -> (Made, Vec<ProfileSet>) {
    let made = made(profile(2, systems), |next| {
        Some(match next.directory.contains("ext4") {
            true => (1000, 10, &[]),
            false => (2000, 20, &["errors"]),
        })
    });
    let sets = ProfileSet::read(made.series.as_profile().unwrap(), &made.dir, None).unwrap();
    (made, sets)
}

#[test]
fn a_profile_and_a_comparison_are_the_same_in_all_formats() {
    for systems in [&[("read", "xfs")][..], &[("read", "ext4"), ("read", "xfs")]] {
        let (made, sets) = profiled(systems);
        let profile = made.series.as_profile().unwrap();
        assert_same(&profile::document(profile, &sets));
        assert_same(&compare::document(&of_profiles(&sets, None)));
    }
    let runs = [Run::assemble(measured())];
    let sets = ["a|b", "<c>"].map(|name| RunSet { name, runs: &runs });
    assert_same(&compare::document(&of_runs(&sets, None)));
}

#[test]
fn a_suite_is_the_same_in_all_formats() {
    let phases = [
        ("ior-easy-write", ScoreGroup::Bandwidth, None),
        (
            "find",
            ScoreGroup::Metadata,
            Some("the target keeps no files to search"),
        ),
        ("mdtest-easy-delete", ScoreGroup::Metadata, None),
    ];
    let made = made(suite(&phases), |_| Some((1000, 10, &["stalled"])));
    let document = suite_report::document(made.series.as_suite().unwrap());
    assert_same(&document);
    let text = terminal::render(&document, LAYOUT);
    for part in [
        "config.ini, standard mode: complete, invalid",
        "[SCORE ] Bandwidth 0.000000 GiB/s : IOPS 0.000000 kiops : TOTAL 0.000000 [INVALID]",
        "find: not run: the target keeps no files to search",
        "ior-easy-write: an earlier attempt did not end",
        "invalid: `stonewall-time` is 1 s",
    ] {
        assert!(text.contains(part), "{text}");
    }
    assert_eq!(text.matches("IO500-style, not an IO500 result").count(), 1);
}

#[test]
fn a_sweep_is_the_same_in_all_formats() {
    let of = |parameters: &[(&str, &str)]| {
        let mut made = made(sweep(parameters, |_| plan()), |next| {
            Some(match next.configuration {
                0 => (1000, 10, &[]),
                1 => (2000, 40, &[]),
                _ => (3000, 80, &["promise_broken"]),
            })
        });
        for configuration in &mut made.series.configurations {
            let promise = "mean <= 50ms".parse::<Condition>().unwrap();
            configuration.plan.promises = vec![promise.into()];
        }
        made
    };
    let made = of(&[("nthreads", "1,8,64")]);
    let document = sweep_report::document(made.series.as_sweep().unwrap());
    assert_same(&document);
    let text = terminal::render(&document, LAYOUT);
    assert!(text.contains("ops/s, mean 40.0 ms at nthreads=8"), "{text}");
    assert!(text.contains("ops/s, mean 10.0 ms at nthreads=1"), "{text}");
    let charts = document.charts(false);
    let ids: Vec<&str> = charts.iter().map(|c| c.id.as_str()).collect();
    assert_eq!(ids, ["percentiles", "latency-throughput", "throughput"]);
    assert_eq!(charts[0].at, [1.0, 8.0, 64.0]);
    // The limit of the promise is in milliseconds.
    let limits: Vec<(f64, &str)> = charts[0].limits.iter().map(|l| (l.at, &*l.text)).collect();
    assert_eq!(limits, [(50.0, "limit mean <= 50ms")]);
    // The first axis has the throughput of each value.
    let rates = made.series.runs.iter().map(|run| run.achieved_ops_per_s);
    assert_eq!(charts[1].at, rates.collect::<Vec<_>>());

    let made = of(&[("size", "1k,2k"), ("mode", "a,b")]);
    let document = sweep_report::document(made.series.as_sweep().unwrap());
    assert_same(&document);
    let matrix = document.sections.iter().find(|s| s.id == "matrix").unwrap();
    let Block::Table(table) = &matrix.blocks[0] else {
        panic!("a table");
    };
    let cells = |row: usize| -> Vec<&str> {
        table.rows[row]
            .cells
            .iter()
            .map(|c| c.text.as_str())
            .collect()
    };
    assert_eq!(table.head, ["size, mode", "a", "b"]);
    assert_eq!(cells(0), ["1k", "100", "200"]);
    assert_eq!(cells(1), ["2k", "300 !", "300 !"]);
    assert!(document.charts(false).is_empty(), "words have no axis");

    let made = of(&[("size", "1k,2k"), ("nthreads", "1,4,64")]);
    let document = sweep_report::document(made.series.as_sweep().unwrap());
    assert_same(&document);
    let charts = document.charts(false);
    assert_eq!(charts[0].id, "throughput-map");
    let scale = "from 100 in the lightest cell to 300 in the darkest";
    assert!(charts[0].about.contains(scale), "{}", charts[0].about);
    let ChartOverlay::Heat(cells) = &charts[0].extra else {
        panic!("a heat map");
    };
    let depths: Vec<f64> = cells.iter().map(|c| (c.depth * 1000.0).round()).collect();
    // The depth of 200 is 0.12 + 0.88 · ln 2 / ln 3.
    assert_eq!(depths, [120.0, 675.0, 1000.0, 1000.0, 1000.0, 1000.0]);
    // Cells meet half-way between the values: on the logarithmic axis at 2 and 16, on the linear axis at 1536 bytes.
    let ends: Vec<(f64, f64)> = cells
        .iter()
        .map(|c| (c.x.1.round(), c.y.1.round()))
        .collect();
    assert_eq!(ends[..2], [(2.0, 1536.0), (16.0, 1536.0)]);
    assert_eq!(charts[0].at, [1.0, 4.0, 64.0]);
}

#[test]
fn a_paired_comparison_is_the_same_in_all_formats() {
    let made = made(paired(4, None), |next| {
        Some(match (next.directory.as_str(), next.configuration) {
            ("pair-03-B", _) => (2000, 10, &["errors"]),
            (_, 0) => (1000, 10, &[]),
            _ => (2000, 20, &[]),
        })
    });
    let of = made.series.as_paired().unwrap();
    let effects = ab::read_effects(of, &made.dir, None).unwrap();
    assert!(effects.rows.iter().all(|row| row.ratio.pairs == 3));
    let document = ab::document(of, &effects, vec![]);
    assert_same(&document);
    let text = terminal::render(&document, LAYOUT);
    assert!(
        text.contains("B is 2.00 times as fast as A (95 % interval 2.00 to 2.00, 3 pairs)"),
        "{text}"
    );
    assert!(text.contains("rises from 10.0 ms to 20.0 ms"), "{text}");
    assert!(
        text.contains("pair 3 does not count: the run of B is invalid"),
        "{text}"
    );
    // The primary figure is tested by itself.
    assert!(
        text.contains("other figures were tested with a false discovery rate of 5 %"),
        "{text}"
    );
    let data = RunData::read(made.dir.path(), None).unwrap();
    // The schedule of the load sets ops/s, which have no forest plot.
    let ids: Vec<String> = data.charts().into_iter().map(|c| c.id).collect();
    assert!(
        ids.contains(&"effect-p99-ms".to_owned()) && ids.contains(&"order".to_owned()),
        "{ids:?}"
    );
}

/// Each chart that is exported as a picture is also on the HTML page of the report.
#[test]
fn pages_and_pictures_have_the_same_charts() {
    let of = made(curve(), of_curve);
    let data = RunData::read(of.dir.path(), None).unwrap();
    let charts = data.document().charts(false);
    assert_eq!(charts.len(), 2);
    let page = page::report(&[data.document()]);
    for chart in charts {
        assert!(page.contains(&format!("<figure class=\"chart\" id=\"{}\"", chart.id)));
        assert!(page.contains(&html(&chart.title)), "{}", chart.title);
    }
}
