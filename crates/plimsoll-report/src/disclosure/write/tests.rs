use super::*;
use crate::disclosure::import;
use crate::disclosure::model::Section;
use crate::disclosure::sut::{Material, Memory, Parameter, Storage, Tuning};
use crate::terminal::{Layout, render};
use plimsoll_measure::curve::Rule;
use plimsoll_results::WorkDir;
use proptest::prelude::*;

fn summary(d: &Disclosure) -> String {
    let (width, color) = (80, false);
    render(&d.document(), Layout { width, color })
}

fn measured(load: f64, ops: f64, latency_ms: f64) -> MeasuredPoint {
    MeasuredPoint {
        load,
        asked_ops_per_s: Some(load * 10.0),
        ops_per_s: ops,
        mb_per_s: ops * 0.461,
        latency_ms: Some(latency_ms),
        verdict: PointVerdict::Valid,
        reasons: vec![],
    }
}

/// Three valid points and one that missed its rate.
fn sample() -> DisclosureInput {
    let mut sut = Sut::default();
    sut.product.vendor = "Sample Company".into();
    sut.product.name = "A Box – the “second”".into();
    sut.product.description = "First paragraph.\n\nSecond paragraph = shorter.\n".into();
    sut.materials = vec![
        Material::default(),
        Material {
            quantity: 2,
            kind: "Server".into(),
            vendor: "Sample Company".into(),
            model: "S1".into(),
            description: "a server with a description that does not fit on one line of the table"
                .into(),
        },
    ];
    sut.software_tuning = vec![Tuning {
        group: "mount of /mnt/test".into(),
        parameters: vec![Parameter {
            name: "noatime".into(),
            value: "set".into(),
            description: "mount option".into(),
        }],
    }];
    sut.storage = vec![Storage {
        quantity: 12,
        description: "disk".into(),
        protection: "RAID 6".into(),
        stable: true,
        usable: "40 TiB".into(),
    }];
    sut.memory = vec![Memory {
        description: "server memory".into(),
        size_gib: 32.0,
        quantity: 4,
        nonvolatile: false,
    }];
    sut.notes.stable_storage = "A battery.".into();
    let mut points = vec![
        measured(10.0, 100.0, 1.0),
        measured(20.0, 200.04, 1.5),
        measured(30.0, 299.1, 2.25),
        measured(40.0, 301.7, 18.123_456),
    ];
    points[3].verdict = PointVerdict::Invalid;
    points[3].reasons = vec![
        "75.4 % of the rate, 95 % are asked for".into(),
        "2 of 8 processes below 75 % of theirs".into(),
    ];
    DisclosureInput {
        workload: "vda".into(),
        unit: "streams".into(),
        points,
        criteria: vec![
            "all processes together at least 95 % of their rate".into(),
            "no failed operation".into(),
        ],
        rules: vec![],
        scale: 0.01,
        sut,
        environment: Environment {
            host: "client1".into(),
            kernel: "Linux 6.1".into(),
            cpus: 8,
            memory_bytes: Some(64 << 30),
            work_dir: Some(WorkDir {
                path: "/mnt/test/d".into(),
                fs_type: Some("xfs".into()),
                ..WorkDir::default()
            }),
            ..Environment::default()
        },
        notes: vec!["The clients share one switch.".into()],
        version: "0.1.0".into(),
        date: "2026-01-02 03:04:05".into(),
        started_at: "2025-12-31T23:00:00Z".into(),
    }
}

#[test]
fn the_date_of_the_test_is_stated_or_that_of_the_measurement() {
    let tested = |input: &DisclosureInput| {
        let disclosure = input.disclosure().unwrap();
        let product = disclosure.section("Product and Test Information").unwrap();
        let line = product.lines().find_map(|l| l.strip_prefix("Date Tested"));
        line.unwrap().trim().to_owned()
    };
    let mut input = sample();
    input.sut.product.date_tested = String::new();
    assert_eq!(tested(&input), "Dec 2025");
    input.sut.product.date_tested = "Nov 2025".into();
    assert_eq!(tested(&input), "Nov 2025");
    input.sut.product.date_tested = String::new();
    input.started_at = String::new();
    assert_eq!(tested(&input), "Not stated");
}

#[track_caller]
fn back(text: &str) -> Disclosure {
    let read = import(text.as_bytes(), "ours.txt").unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!(read.warnings, [] as [&str; 0], "{text}");
    read.disclosure
}

fn collapsed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_whole_report() {
    let text = sample().disclosure().unwrap().to_text();
    assert!(
        text.is_ascii() && text.lines().all(|l| l.len() <= 80),
        "{text}"
    );
    insta::assert_snapshot!(text);
}

#[test]
fn figures_rest_on_valid_points() {
    let d = sample().disclosure().unwrap();
    assert_eq!(
        (d.peak, d.unit.as_str(), d.rule),
        (30.0, "Streams", Rule::Sfs2014)
    );
    // (1.0 + 1.5)/2 and (1.5 + 2.25)/2, over two load intervals of 10.
    assert_eq!(d.ort_ms, Some(1.5625));
    assert_eq!(d.ort_published_ms, Some(1.563));
    assert_eq!(d.points[3].latency_ms, Some(18.123));
    let none = DisclosureInput {
        points: vec![MeasuredPoint {
            verdict: PointVerdict::Invalid,
            ..measured(5.0, 1.0, 9.0)
        }],
        ..sample()
    };
    let d = none.disclosure().unwrap();
    assert_eq!((d.peak, d.ort_ms, d.ort_published_ms), (0.0, None, None));
    assert!(
        d.to_text()
            .contains("= 0 Streams (Overall Response Time = n/a)")
    );
    assert_eq!(back(&d.to_text()), d);
}

#[test]
fn the_sections_have_the_order_of_the_form() {
    let d = sample().disclosure().unwrap();
    let names: Vec<&str> = d.sections.iter().map(|s| s.name.as_str()).collect();
    let published = import(
        include_bytes!("../../../tests/published/vda2014.txt"),
        "vda2014.txt",
    );
    let published = published.unwrap().disclosure;
    let common: Vec<&str> = names
        .iter()
        .copied()
        .filter(|n| published.sections.iter().any(|s| s.name == *n))
        .collect();
    let order: Vec<&str> = published.sections.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(common, order);
}

#[test]
fn sections_of_2008_appear_once_they_are_filled_in() {
    let mut input = sample();
    let has = |i: &DisclosureInput, n: &str| i.disclosure().unwrap().section(n).is_some();
    assert!(!has(&input, "Load Generators") && !has(&input, "Uniform Access Rule Compliance"));
    input
        .sut
        .load_generators
        .push(crate::disclosure::sut::LoadGenerator {
            name: "LG1".into(),
            ..Default::default()
        });
    input.sut.notes.uniform_access = "All mounts alike.".into();
    assert!(has(&input, "Load Generators") && has(&input, "Uniform Access Rule Compliance"));
}

#[test]
fn nothing_claims_to_be_a_spec_result() {
    for workload in [
        "SPECsfs2008_nfs.v3",
        "SPEC SFS2014_vda",
        "spec sfs",
        "SPECstorage(TM) Solution 2020",
    ] {
        let input = DisclosureInput {
            workload: workload.into(),
            ..sample()
        };
        let e = input.disclosure().unwrap_err();
        assert_eq!(e, NotDisclosable::ClaimsSpec(workload.into()));
        assert!(e.to_string().contains("would claim a SPEC result"), "{e}");
    }
    for (workload, metric, rule) in [
        ("vda", "SFS 2014 VDA-style", Rule::Sfs2014),
        ("eda", "Storage 2020 EDA_BLENDED-style", Rule::Sfs2014),
        ("nfs-sfs2008", "SFS 2008 NFSv3-style", Rule::Sfs2008),
        ("My Result (R)", "workload my result -r-", Rule::Sfs2014),
    ] {
        let input = DisclosureInput {
            workload: workload.into(),
            ..sample()
        };
        let d = input.disclosure().unwrap();
        assert_eq!((d.metric.as_str(), d.rule), (metric, rule));
        assert!(d.remark.contains("not a SPEC result") && d.remark.contains("not comparable"));
        assert!(!d.metric.contains("SPEC") && !d.title.contains("SPEC"));
        assert_eq!(back(&d.to_text()), d);
    }
}

/// Built-in workloads, and the names of their business metrics.
fn built_in() -> Vec<(String, String)> {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads");
    let files = std::fs::read_dir(dir).unwrap().map(|f| f.unwrap().path());
    let mixes = files.filter(|f| f.extension().is_some_and(|e| e == "toml"));
    let metric = |file: std::path::PathBuf| {
        let text = std::fs::read_to_string(&file).unwrap();
        let mix: toml::Table = text.parse().unwrap();
        let name = mix.get("metric")?["name"].as_str().unwrap().to_owned();
        Some((file.file_stem().unwrap().to_str().unwrap().to_owned(), name))
    };
    mixes.filter_map(metric).collect()
}

#[test]
fn every_built_in_metric_fits_the_page_and_is_read_back() {
    let all = built_in();
    assert!(all.iter().any(|(name, _)| name == "nfs-sfs2008"), "{all:?}");
    assert!(all.len() >= 8, "{all:?}");
    let of_users = [
        "operations".repeat(5),
        "a_b".repeat(12),
        "x".into(),
        String::new(),
    ];
    let of_users = of_users.map(|unit| ("other".to_owned(), unit));
    for (workload, unit) in all.into_iter().chain(of_users) {
        let mut input = DisclosureInput {
            workload,
            unit,
            ..sample()
        };
        input.points.push(MeasuredPoint {
            verdict: PointVerdict::Invalid,
            ..measured(123_456_789.0, 1_234_567.891, 123_456.789)
        });
        let d = input.disclosure().unwrap();
        let text = d.to_text();
        assert!(text.lines().all(|l| l.len() <= 80), "{text}");
        assert!(
            summary(&d).lines().all(|l| l.len() <= 80),
            "{}",
            summary(&d)
        );
        assert_eq!(back(&text), d);
    }
}

#[test]
fn a_long_unit_is_broken_between_its_words() {
    let input = DisclosureInput {
        workload: "nfs-sfs2008".into(),
        unit: "hundreds of operations a second".into(),
        ..sample()
    };
    let text = input.disclosure().unwrap().to_text();
    let from = text.find("Performance").unwrap();
    let rows: Vec<&str> = text[from..].lines().skip(3).take(8).collect();
    insta::assert_snapshot!(rows.join("\n"));
}

#[test]
fn a_scaled_curve_says_so_wherever_it_is_read() {
    let says = "scaled: not comparable (data and rates are 0.01 of the full ones)";
    let d = sample().disclosure().unwrap();
    assert!(d.remark.contains(says), "{}", d.remark);
    let read = back(&d.to_text());
    assert!(
        collapsed(&summary(&read)).contains(says),
        "{}",
        summary(&read)
    );
    let json = serde_json::to_value(&read).unwrap();
    assert!(json["remark"].as_str().unwrap().contains(says), "{json}");
    let full = DisclosureInput {
        scale: 1.0,
        ..sample()
    };
    let full = full.disclosure().unwrap();
    assert!(!full.remark.contains("scaled"), "{}", full.remark);
    assert!(collapsed(&summary(&full)).contains("not a SPEC result."));
}

#[test]
fn where_nothing_was_done_there_is_no_latency() {
    let mut input = sample();
    input.points.push(MeasuredPoint {
        latency_ms: None,
        ..measured(50.0, 0.0, 0.0)
    });
    let d = input.disclosure().unwrap();
    let last = &d.points[4];
    // A point without a latency does not count, even if its verdict is valid.
    assert_eq!(
        (last.latency_ms, last.verdict),
        (None, PointVerdict::Invalid)
    );
    assert_eq!((d.peak, d.ort_ms), (30.0, Some(1.5625)));
    let text = d.to_text();
    let row = text
        .lines()
        .find(|l| l.ends_with("INVALID_RUN") && l.contains("n/a"));
    let cells: Vec<&str> = row.unwrap().split_whitespace().collect();
    assert_eq!(cells, ["50", "n/a", "0.00", "0.000", "INVALID_RUN"]);
    let table = d.section("Load Points").unwrap();
    let row = table.lines().find(|l| l.trim_start().starts_with("50 "));
    let row: Vec<&str> = row.unwrap().split_whitespace().collect();
    assert_eq!(row, ["50", "500.0", "0.0", "0.0", "%", "n/a", "INVALID"]);
    assert_eq!(back(&text), d);
    // Loads must increase, including the load of a point without a latency.
    input.points[4].load = 40.0;
    let e = input.disclosure().unwrap_err();
    assert!(e.to_string().contains("point 5 is at 40 after 40"), "{e}");
}

#[test]
fn what_cannot_be_reported_has_a_reason() {
    let with = |points: Vec<MeasuredPoint>| {
        DisclosureInput { points, ..sample() }
            .disclosure()
            .unwrap_err()
    };
    assert_eq!(with(vec![]), NotDisclosable::NoPoints);
    let backwards = with(vec![measured(2.0, 2.0, 1.0), measured(1.0, 1.0, 1.0)]);
    assert!(
        matches!(backwards, NotDisclosable::Points(_)),
        "{backwards}"
    );
    for bad in [
        measured(0.0, 1.0, 1.0),
        measured(1.0, f64::NAN, 1.0),
        measured(1.0, 1.0, 1e16),
        measured(1.0, -1.0, 1.0),
    ] {
        assert_eq!(with(vec![bad]), NotDisclosable::OutOfRange { point: 1 });
    }
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ a-z=:()\n-]{0,80}",
        "\\PC{0,40}",
        prop::sample::select(vec![
            "Result",
            "===== ==========",
            "Performance\n===========\n",
            "Generated on\n",
            "(Overall Response Time = 1 msec)",
            "a : b = c",
            "INVALID_RUN",
            "---- ---- ----",
            "Other Notes\n===========",
            "",
        ])
        .prop_map(str::to_owned),
    ]
}

fn input() -> impl Strategy<Value = DisclosureInput> {
    let point = (
        0.001f64..1e4,
        0.0f64..1e6,
        0.0f64..1e4,
        any::<bool>(),
        text(),
    );
    (
        prop::collection::vec(point, 1..14),
        prop::collection::vec(text(), 24),
        0.0001f64..1.0,
        0u64..1 << 50,
        prop::sample::select(vec!["vda", "nfs-sfs2008", "other", "a b"]),
    )
        .prop_map(|(points, t, scale, number, workload)| {
            let mut load = 0.0;
            let points = points
                .into_iter()
                .map(|(step, ops, latency_ms, valid, reason)| {
                    load += step;
                    MeasuredPoint {
                        verdict: if valid {
                            PointVerdict::Valid
                        } else {
                            PointVerdict::Invalid
                        },
                        reasons: vec![reason],
                        // A tenth of the points completed no operation.
                        latency_ms: (latency_ms >= 1e3).then_some(latency_ms),
                        ..measured(load, ops, latency_ms)
                    }
                });
            let mut input = DisclosureInput {
                workload: workload.into(),
                unit: t[0].clone(),
                points: points.collect(),
                criteria: vec![t[1].clone(), t[2].clone()],
                scale,
                notes: vec![t[3].clone()],
                ..sample()
            };
            let s = &mut input.sut;
            s.product.vendor = t[4].clone();
            s.product.name = t[5].clone();
            s.product.description = t[6].clone();
            s.materials[1].description = t[7].clone();
            s.materials[1].quantity = number;
            s.software_tuning[0].group = t[8].clone();
            s.software_tuning[0].parameters[0].value = t[9].clone();
            s.filesystems.configuration = t[10].clone();
            s.notes.dataflow = t[11].clone();
            s.notes.stable_storage = t[12].clone();
            s.notes.benchmark_network = t[13].clone();
            s.notes.report = t[14].clone();
            s.load_generation.testbed = t[15].clone();
            input.environment.host = t[16].clone();
            input
        })
}

proptest! {
    #[test]
    fn our_report_is_read_back(input in input()) {
        let d = input.disclosure().unwrap();
        let text = d.to_text();
        prop_assert!(text.is_ascii());
        let read = import(text.as_bytes(), "ours.txt");
        prop_assert!(read.is_ok(), "{}\n{}", read.unwrap_err(), text);
        let read = read.unwrap();
        prop_assert_eq!(&read.disclosure, &d);
        prop_assert_eq!(read.warnings, Vec::<String>::new());
        // The import without line breaks yields the same report, except for the layout of the sections.
        let read = import(collapsed(&text).as_bytes(), "ours.txt");
        prop_assert!(read.is_ok(), "{}\n{}", read.unwrap_err(), text);
        let flat = |d: Disclosure| Disclosure {
            sections: d.sections.into_iter().map(|s| Section { text: collapsed(&s.text), ..s }).collect(),
            ..d
        };
        prop_assert_eq!(read.unwrap().disclosure, flat(d));
    }
}

#[test]
fn a_published_report_can_be_written_again() {
    for bytes in [
        &include_bytes!("../../../tests/published/vda2014.txt")[..],
        include_bytes!("../../../tests/published/nfs2008.txt"),
        include_bytes!("../../../tests/published/swbuild2020.txt"),
    ] {
        let d = import(bytes, "published.txt").unwrap().disclosure;
        assert_eq!(back(&d.to_text()), d);
    }
}

#[test]
fn metrics_are_those_of_workloads() {
    let workloads = ["eda", "nfs-sfs2008", "swbuild", "vda", "vdi", "x"];
    let of = |metric: &str| crate::disclosure::workload_of(metric, workloads.into_iter());
    assert_eq!(of("SPEC SFS2014_vda"), Some("vda"));
    assert_eq!(of("SPEC SFS(R)2014_vda"), Some("vda"));
    assert_eq!(of("SPECsfs2008_nfs.v3"), Some("nfs-sfs2008"));
    assert_eq!(of("SPECstorage Solution 2020_swbuild"), Some("swbuild"));
    assert_eq!(of("SPECstorage(TM) Solution 2020_eda_blended"), Some("eda"));
    assert_eq!(of("SPECstorage Solution 2020_eda_blended"), Some("eda"));
    assert_eq!(of("SPECsfs2008_cifs"), None);
    for workload in workloads {
        assert_eq!(
            of(&crate::disclosure::style(workload).unwrap()),
            Some(workload)
        );
    }
}
