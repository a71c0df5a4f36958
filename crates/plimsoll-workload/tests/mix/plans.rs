//! Plans of workloads at different loads and scales.

use super::common;
#[path = "plans/schema.rs"]
mod schema;

use common::{SMALL, plan};
use plimsoll_plan::{
    Choice, Content, FilesetId, Layout, Mix, MixOp, OnError, Overrides, Phase, Plan, SourceKind,
    Until,
};
use plimsoll_workload::mix::{BUILTINS, Context, lower, parse, to_toml};
use std::time::Duration;

fn builtin(name: &str, change: impl FnOnce(&mut Overrides)) -> Plan {
    let b = BUILTINS.find(name).unwrap();
    let workload = parse(b.text, b.name).unwrap_or_else(|e| panic!("{e}"));
    let mut overrides = Overrides::default();
    change(&mut overrides);
    let context = Context {
        kind: SourceKind::Builtin,
        temp_dir: "/tmp/fresh".into(),
    };
    lower(&workload, &overrides, &context).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn mixes(plan: &Plan) -> Vec<(&str, u64, &Mix)> {
    let of = |g: &'_ plimsoll_plan::WorkerGroup| g.workers();
    plan.groups
        .iter()
        .map(|g| (g.process.as_str(), of(g), g.program.mix().unwrap()))
        .collect()
}

/// Scheduled rate of all processes together, in operations per second.
fn rate(plan: &Plan) -> f64 {
    let all = mixes(plan).into_iter();
    all.map(|(_, workers, m)| workers as f64 * m.pacing.unwrap().rate)
        .sum()
}

#[test]
fn a_rate_of_the_command_line_is_divided_as_the_workload_divides_its_rate() {
    let of = |rate| {
        builtin("vda", |o| {
            (o.rate, o.load, o.scale) = (rate, Some(4), Some(0.5));
        })
    };
    let (own, changed) = (of(None), of(Some(100.0)));
    // Four streams of 10 operations per second, at half the rate.
    assert_eq!(rate(&own), 20.0);
    assert!((rate(&changed) - 100.0).abs() < 1e-9, "{}", rate(&changed));
    for ((_, workers, before), (_, _, after)) in mixes(&own).into_iter().zip(mixes(&changed)) {
        let [before, after] = [before, after].map(|m| m.pacing.unwrap().rate * workers as f64);
        assert!((after - 5.0 * before).abs() < 1e-9, "{before} {after}");
    }
    assert_eq!(changed.filesets, own.filesets);
    assert_eq!(changed.metric.unwrap().rate, Some(50.0));
}

#[test]
fn promises_of_the_text_are_in_the_plan() {
    let promises = "[[promise]]\nname = \"quick\"\ncondition = \"stat:p99 <= 5ms\"\n\n\
                    [[promise]]\ncondition = \"errors<1%\"\n\n[[component]]";
    let plan = plan(&SMALL.replacen("[[component]]", promises, 1), |_| ());
    let shown: Vec<String> = plan.promises.iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["quick: stat:p99 <= 5ms", "errors < 1%"]);
    assert!(
        plan.to_string()
            .contains("\npromises\n  quick: stat:p99 <= 5ms\n  errors < 1%\n")
    );
}

/// Bytes of the data files.
fn data(plan: &Plan) -> u128 {
    let of = |(_, _, m): &(&str, u64, &Mix)| {
        let layout = Layout::new(plan, m.files.data).unwrap();
        layout.size_summary(false).total
    };
    mixes(plan).iter().map(of).sum()
}

#[test]
fn rates_processes_and_data_are_those_published_or_recalled() {
    for (name, processes, ops, gib) in [
        ("ai-image", 17, 435.0, 100.0),
        ("genomics", 4, 1000.0, 3.5),
        ("vda", 2, 10.0, 24.0),
        ("swbuild", 5, 500.0, 5.0),
        ("vdi", 2, 200.0, 12.0),
        ("database", 17, 288.0, 24.0),
        ("eda", 5, 450.0, 11.0),
    ] {
        let one = builtin(name, |_| ());
        assert_eq!((one.workers(), rate(&one)), (processes, ops), "{name}");
        assert_eq!(one.metric.as_ref().unwrap().rate, Some(ops));
        let bytes = data(&one) as f64 / f64::from(1 << 30);
        // A hundredth of the files of genomics have two thirds of the bytes, so that the sum of drawn sizes varies.
        let tolerance = if name == "genomics" { 0.4 } else { 0.05 };
        assert!((bytes / gib - 1.0).abs() < tolerance, "{name}: {bytes} GiB");
        let ten = builtin(name, |o| o.load = Some(10));
        assert_eq!((ten.workers(), rate(&ten)), (10 * processes, 10.0 * ops));
    }
}

#[test]
fn a_unit_of_load_moves_the_bytes_of_published_results() {
    for (name, published) in [("vda", 4.61e6), ("swbuild", 4.07e6), ("eda", 7.25e6)] {
        let plan = builtin(name, |_| ());
        let size = |set: FilesetId| {
            let total = Layout::new(&plan, set).unwrap().size_summary(false).total;
            total as f64 / plan.filesets[set.0 as usize].entries as f64
        };
        let bytes = |(_, workers, m): &(&str, u64, &Mix)| {
            let of = |op: MixOp| match op {
                MixOp::Rmw => 2.0 * m.writes.mean(),
                MixOp::ReadFile => size(m.files.data),
                MixOp::WriteFile => size(m.files.turnover.unwrap()),
                _ if op.reads() => m.reads.mean(),
                _ if op.writes() => m.writes.mean(),
                _ => 0.0,
            };
            let each: f64 = m.table.iter().map(|r| r.percent / 100.0 * of(r.op)).sum();
            each * m.pacing.unwrap().rate * *workers as f64
        };
        let all: f64 = mixes(&plan).iter().map(bytes).sum();
        let error = all / published - 1.0;
        assert!(error.abs() < 0.03, "{name}: {all} bytes a second");
    }
}

#[test]
fn mixes_are_those_published() {
    let component = |name: &str, component: &str| {
        let plan = builtin(name, |_| ());
        let of = mixes(&plan).into_iter().find(|(n, ..)| *n == component);
        let (_, processes, mix) = of.unwrap();
        let rows = mix.table.iter().filter(|r| r.percent > 0.0);
        let rows: Vec<String> = rows.map(|r| format!("{} {}", r.op, r.percent)).collect();
        let pace = format!("{processes} × {}", mix.pacing.unwrap().rate);
        (pace, rows.join(", "))
    };
    // Section 6 of the SPECstorage Solution 2020 User's Guide; `database` is in the SFS 2014 User's Guide.
    for (name, of, pace, expected) in [
        (
            "swbuild",
            "SWBUILD",
            "5 × 100",
            "read_file 6, write_file 7, mkdir 1, unlink 2, create 1, access 6, stat 70, \
          chmod 5, readdir 2",
        ),
        ("vda", "VDA1", "1 × 9", "write 100"),
        (
            "vda",
            "VDA2",
            "1 × 1",
            "read 5, read_rand 84, rmw 2, unlink 1, create 1, access 2, stat 2, readdir 3",
        ),
        (
            "eda",
            "EDA_FRONTEND",
            "3 × 100",
            "read_file 7, read_rand 8, write_file 10, write_rand 15, mkdir 1, unlink 1, \
          unlink2 1, create 2, access 15, stat 39, chmod 1",
        ),
        ("eda", "EDA_BACKEND", "2 × 75", "read 50, write 50"),
        ("ai-image", "AI_SF", "4 × 100", "read 37, access 7, stat 56"),
        ("ai-image", "AI_TF", "2 × 2", "write 100"),
        ("ai-image", "AI_TR", "10 × 3", "read 95, stat 5"),
        ("ai-image", "AI_CP", "1 × 1", "write 95, stat 5"),
        (
            "genomics",
            "GENOMICS",
            "4 × 250",
            "read 70, read_rand 2, write 8, write_rand 1, unlink 1, create 1, access 4, \
          stat 12, chmod 1",
        ),
        (
            "database",
            "DB_TABLE",
            "16 × 16",
            "read 1, read_rand 79, write_rand 20",
        ),
        ("database", "DB_LOG", "1 × 32", "write 80, write_rand 20"),
    ] {
        let expected = (pace.to_owned(), expected.to_owned());
        assert_eq!(component(name, of), expected, "{name} {of}");
    }
    let nfs = builtin("nfs-sfs2008", |_| ());
    let table = &mixes(&nfs)[0].2.table;
    assert!(
        table
            .iter()
            .any(|r| r.op == MixOp::Lookup && r.percent == 24.0)
    );
}

#[test]
fn options_of_transfers_are_those_published() {
    // Percentages of commit, direct, O_SYNC and geometric choice, from the same section.
    for (name, of, expected) in [
        ("swbuild", "SWBUILD", [33.0, 0.0, 0.0, 10.0]),
        ("vda", "VDA1", [5.0, 0.0, 0.0, 0.0]),
        ("vda", "VDA2", [0.0, 0.0, 0.0, 0.0]),
        ("eda", "EDA_FRONTEND", [15.0, 0.0, 0.0, 50.0]),
        ("eda", "EDA_BACKEND", [15.0, 50.0, 5.0, 50.0]),
        ("ai-image", "AI_SF", [0.0, 0.0, 0.0, 10.0]),
        ("ai-image", "AI_TF", [30.0, 0.0, 0.0, 0.0]),
        ("ai-image", "AI_TR", [0.0, 0.0, 0.0, 0.0]),
        ("ai-image", "AI_CP", [30.0, 0.0, 0.0, 10.0]),
        ("genomics", "GENOMICS", [0.0, 0.0, 0.0, 50.0]),
    ] {
        let plan = builtin(name, |_| ());
        let (_, _, mix) = mixes(&plan).into_iter().find(|(n, ..)| *n == of).unwrap();
        let geometric = match mix.working_set.choice {
            Choice::Geometric { percent } => percent,
            _ => 0.0,
        };
        let flags = &mix.flags;
        let found = [
            flags.commit_percent,
            flags.direct_percent,
            flags.osync_percent,
            geometric,
        ];
        assert_eq!(found, expected, "{name} {of}");
        let advice = flags.fadvise.map(|f| (f.sequential, f.dontneed));
        assert_eq!(advice, (of == "GENOMICS").then_some((20.0, 100.0)), "{of}");
    }
}

#[test]
fn scaling_shrinks_data_and_rates_together() {
    for name in ["vda", "swbuild", "vdi", "database", "eda"] {
        let whole = builtin(name, |_| ());
        for scale in [0.5, 0.1, 0.01] {
            let part = builtin(name, |o| o.scale = Some(scale));
            assert_eq!(part.workers(), whole.workers());
            let rates = rate(&part) / rate(&whole);
            let is_exact = (rates / scale - 1.0).abs() < 1e-9;
            assert!(is_exact, "{name}: {rates} of {scale}");
            let bytes = data(&part) as f64 / data(&whole) as f64;
            // Sizes are drawn, so the sum over few files varies.
            let is_near = (bytes / scale - 1.0).abs() < 0.1;
            assert!(is_near, "{name}: {bytes} of {scale}");
            let metric = part.metric.unwrap();
            assert_eq!((metric.scale, metric.is_scaled()), (scale, true));
            assert_eq!(Some(metric.data), whole.metric.as_ref().map(|m| m.data));
        }
        assert!(!whole.metric.unwrap().is_scaled());
    }
}

#[test]
fn loads_up_to_the_greatest_share_their_files() {
    let of = |load| {
        plan(SMALL, |o| {
            o.load = Some(load);
            o.most = Some(8);
        })
    };
    let (two, eight) = (of(2), of(8));
    assert_eq!(two.filesets, eight.filesets);
    assert_eq!((two.workers(), eight.workers()), (4, 16));
    let print = |p: &Plan| Layout::new(p, FilesetId(0)).unwrap().fingerprint();
    assert_eq!(print(&two), print(&eight));
    assert_eq!(mixes(&two)[0].2.files.parts, 16);
}

#[test]
fn times_are_the_workloads_or_the_command_lines() {
    let waits = |p: &Plan| -> Vec<u64> {
        let wait = |phase: &Phase| match phase {
            Phase::Wait {
                until: Until::Elapsed { time },
                ..
            } => Some(time.as_secs()),
            _ => None,
        };
        p.script.iter().filter_map(wait).collect()
    };
    assert_eq!(waits(&plan(SMALL, |_| ())), [10, 60]);
    let changed = plan(SMALL, |o| {
        o.time = Some(Duration::from_secs(5));
        o.warmup = Some(plimsoll_plan::Warmup::Fixed(Duration::ZERO));
    });
    assert_eq!(waits(&changed), [5]);
}

#[test]
fn a_delay_has_any_unit_of_time_and_no_rate_beside_it() {
    for (value, millis) in [("\"250us\"", 0.25), ("\"2m\"", 120_000.0), ("0.5", 500.0)] {
        let text = SMALL.replacen("rate = 50", &format!("delay = {value}"), 1);
        let plan = plan(&text, |_| {});
        let delay = mixes(&plan)[0].2.delay;
        assert_eq!(delay.as_secs_f64() * 1e3, millis, "{value}");
    }
    let both = SMALL.replacen("rate = 50", "rate = 50\ndelay = \"1s\"", 1);
    let found = &common::refusal(&both).findings()[0];
    let message = &found.message;
    let expected = "a delay must have no rate beside it";
    assert!(message.contains(expected), "{message}");
    let line = both.lines().position(|l| l.starts_with("delay")).unwrap() + 1;
    assert_eq!(found.line as usize, line);
}

#[test]
fn settings_change_keys_and_are_told() {
    let sets = [
        ("looker.rate", "80"),
        ("looker.files.count", "7"),
        ("metric.latency", "5ms"),
    ];
    let plan = plan(SMALL, |o| {
        o.sets = sets
            .iter()
            .map(|(n, v)| ((*n).into(), (*v).into()))
            .collect();
    });
    assert_eq!(mixes(&plan)[0].2.pacing.unwrap().rate, 80.0);
    assert_eq!(plan.fileset(FilesetId(0)).entries, 14);
    let metric = plan.metric.unwrap();
    assert_eq!(metric.criteria.latency, Some(Duration::from_millis(5)));
    let told: Vec<(&str, &str, &str)> = plan
        .parameters
        .iter()
        .map(|p| (p.name.as_str(), p.value.as_str(), p.default.as_str()))
        .collect();
    assert_eq!(
        told,
        [
            ("looker.rate", "80", "50"),
            ("looker.files.count", "7", "100"),
            ("metric.latency", "5ms", "none")
        ]
    );
    assert_eq!(
        plan.source.text, SMALL,
        "the text is the one that was given"
    );
}

#[test]
fn a_plan_has_the_seed_and_the_options_of_the_command_line() {
    assert_eq!(plan(SMALL, |_| ()).seed, 1);
    let changed = plan(SMALL, |o| {
        o.seed = Some(7);
        o.options.on_error = OnError::Count;
    });
    assert_eq!(
        (changed.seed, changed.options.on_error),
        (7, OnError::Count)
    );
}

/// With several components, the name of a row begins with the name of the component.
#[test]
fn rows_are_named_by_operation_and_component() {
    let rows =
        |plan: Plan| -> Vec<String> { plan.operations.into_iter().map(|row| row.name).collect() };
    assert_eq!(rows(plan(SMALL, |_| ())), ["stat", "prepare", "start"]);
    let (_, component) = SMALL.split_once("[[component]]").unwrap();
    let second = component.replace("looker", "other");
    let two = format!("{SMALL}\n[[component]]{second}");
    let components = ["looker", "other"];
    let names =
        components.map(|name| ["stat", "prepare", "start"].map(|row| format!("{name}/{row}")));
    assert_eq!(rows(plan(&two, |_| ())), names.concat());
}

#[test]
fn contents_are_the_workloads_unless_asked_for_otherwise() {
    let text = SMALL.replace(
        "[run]",
        "[content]\ncompressible = 50\ndedupable = 10\n\n[run]",
    );
    let content = |given| plan(&text, |o| o.content = given).options.content;
    assert_eq!(
        content(None),
        Content::Blocks {
            compressible_percent: 50.0,
            dedupable_percent: 10.0,
            block: 4096,
            groups: 64
        }
    );
    assert_eq!(content(Some(Content::Zero)), Content::Zero);
    assert_eq!(plan(SMALL, |_| ()).options.content, Content::Random);
}

/// Contents of the data files of each component.
fn contents(plan: &Plan) -> Vec<Content> {
    plan.groups
        .iter()
        .map(|group| plan.content_of_group(group))
        .collect()
}

#[test]
fn a_component_may_write_a_content_of_its_own() {
    let (_, component) = SMALL.split_once("[[component]]").unwrap();
    let second = component.replace("looker", "other");
    let own = "[component.content]\ncompressible = 0\ngroups = 2\n";
    let text = SMALL.replace(
        "[run]",
        "[content]\ncompressible = 50\ndedupable = 10\nblock = 8192\n\n[run]",
    );
    let text = format!("{text}\n[[component]]{second}\n{own}");
    let blocks = |compressible_percent, groups| Content::Blocks {
        compressible_percent,
        dedupable_percent: 10.0,
        block: 8192,
        groups,
    };
    let mixed = plan(&text, |_| ());
    assert_eq!(contents(&mixed), [blocks(50.0, 64), blocks(0.0, 2)]);
    assert_eq!(mixed.contents(), contents(&mixed));
    let set = plan(&text, |o| {
        o.sets = vec![("looker.content.groups".into(), "3".into())]
    });
    assert_eq!(contents(&set), [blocks(50.0, 3), blocks(0.0, 2)]);
    // The content of the command line replaces the contents of all components.
    let zero = plan(&text, |o| o.content = Some(Content::Zero));
    assert_eq!(zero.contents(), [Content::Zero]);
    // Files of another content are made anew.
    let tree = |plan: &Plan, id| Layout::new(plan, FilesetId(id)).unwrap().fingerprint();
    let without = plan(&text.replace(own, ""), |_| ());
    assert_eq!(tree(&mixed, 0), tree(&without, 0));
    assert_ne!(tree(&mixed, 1), tree(&without, 1));
}

#[test]
fn published_contents_belong_to_their_components() {
    let published = |name: &str| contents(&builtin(name, |_| ()));
    let blocks = |compressible_percent, dedupable_percent| Content::Blocks {
        compressible_percent,
        dedupable_percent,
        block: 4096,
        groups: 64,
    };
    assert_eq!(published("eda"), [blocks(50.0, 50.0), blocks(20.0, 40.0)]);
    let two = blocks(2.0, 2.0);
    assert_eq!(published("ai-image"), [two, two, two, Content::Random]);
}

#[test]
fn every_single_value_is_a_parameter() {
    let text = SMALL.replacen(
        "size = \"4k\"",
        "size = [{ size = \"4k\", percent = 100 }]\nspots = { percent = 5, accesses = 7 }",
        1,
    );
    let parameters = parse(&text, "test.toml").unwrap().parameters();
    let mut actual: Vec<(&str, &str)> = parameters
        .iter()
        .map(|p| (p.name.as_str(), p.value.as_str()))
        .collect();
    assert!(parameters.iter().all(|p| p.value == p.default));
    actual.sort_unstable();
    let expected = [
        ("looker.files.count", "100"),
        ("looker.files.spots.accesses", "7"),
        ("looker.files.spots.percent", "5"),
        ("looker.mix.stat", "100"),
        ("looker.processes", "2"),
        ("looker.rate", "50"),
        ("metric.name", "users"),
        ("run.time", "1m"),
        ("run.warmup", "10s"),
    ];
    assert_eq!(actual, expected);
    // Setting every parameter to its printed value gives the same Plan, so every parameter name and value is accepted.
    let sets = parameters.iter().map(|p| (p.name.clone(), p.value.clone()));
    let same = plan(&text, |o| o.sets = sets.collect());
    let (same, given) = (&same.groups[0].program, plan(&text, |_| ()));
    assert_eq!(same, &given.groups[0].program);
}

#[test]
fn settings_may_be_new_keys_of_any_table() {
    let plan = plan(SMALL, |o| {
        o.sets = [
            ("title", "looks again"),
            ("run.warmup", "3s"),
            ("content.compressible", "50"),
            ("looker.transfers.direct", "25"),
        ]
        .map(|(name, value)| (name.into(), value.into()))
        .to_vec();
    });
    assert_eq!(plan.title, "looks again");
    assert_eq!(mixes(&plan)[0].2.flags.direct_percent, 25.0);
    assert!(matches!(
        plan.options.content,
        Content::Blocks {
            compressible_percent: 50.0,
            dedupable_percent: 0.0,
            ..
        }
    ));
    let defaults: Vec<&str> = plan.parameters.iter().map(|p| p.default.as_str()).collect();
    assert_eq!(defaults, ["looks", "10s", "none", "none"]);
}

#[test]
fn what_is_not_stated_has_a_default() {
    let text = SMALL.replacen("processes = 2\nrate = 50\n", "", 1);
    let text = text.replacen("[run]\nwarmup = \"10s\"\ntime = \"1m\"\n", "", 1);
    let plan = plan(&text, |_| ());
    let metric = plan.metric.as_ref().unwrap();
    let criteria = &metric.criteria;
    assert_eq!(
        (criteria.process_percent, criteria.total_percent),
        (75.0, 95.0)
    );
    assert_eq!((criteria.latency, metric.rate), (None, None));
    assert_eq!((plan.workers(), metric.load, metric.scale), (1, 1, 1.0));
    let mix = mixes(&plan)[0].2;
    assert_eq!((mix.pacing, mix.delay), (None, Duration::ZERO));
    assert_eq!((mix.reads.mean(), mix.writes.mean()), (65536.0, 65536.0));
    assert!(mix.flags.overwrite && mix.flags.keep_open);
    let minutes = Duration::from_secs(300);
    let expected = [
        Phase::Populate {
            filesets: vec![FilesetId(0)],
        },
        Phase::Start,
        Phase::wait_for(minutes),
        Phase::OpenWindow,
        Phase::wait_for(minutes),
        Phase::CloseWindow,
        Phase::Stop,
    ];
    assert_eq!(plan.script, expected);
}

/// The rate and the data of a metric are sums over the processes of all components; a component without a rate adds no
/// rate.
#[test]
fn rates_and_data_are_sums_over_all_processes() {
    let (head, component) = SMALL.split_once("[[component]]").unwrap();
    let second = component
        .replace("looker", "other")
        .replace("processes = 2\nrate = 50", "processes = 3\nrate = 0.5")
        .replace("count = 100\nsize = \"4k\"", "count = 7\nsize = 1000");
    let third = component
        .replace("looker", "third")
        .replace("rate = 50\n", "");
    let text = [head, component, &second, &third].join("[[component]]");
    let metric = plan(&text, |o| o.load = Some(4)).metric.unwrap();
    assert_eq!(metric.rate, Some(2.0 * 50.0 + 3.0 * 0.5));
    assert_eq!(metric.data, 2 * 100 * 4096 + 3 * 7 * 1000 + 2 * 100 * 4096);
    assert_eq!(metric.load, 4);
}

#[test]
fn percentages_of_nothing_are_no_operations() {
    let text = SMALL.replacen(
        "stat = 100",
        "stat = 60\nread = 0\naccess = 40\ncustom1 = 0\ncustom2 = 0",
        1,
    );
    let plan = plan(&text, |_| ());
    let mut table: Vec<(MixOp, f64)> = mixes(&plan)[0]
        .2
        .table
        .iter()
        .map(|r| (r.op, r.percent))
        .collect();
    table.sort_by(|a, b| a.1.total_cmp(&b.1));
    assert_eq!(table, [(MixOp::Access, 40.0), (MixOp::Stat, 60.0)]);
}

#[test]
fn a_workload_has_the_name_of_its_file_and_its_temporary_directory() {
    let b = BUILTINS.find("vda").unwrap();
    let lowered = |name: &str, kind, dir: Option<&str>| {
        let overrides = Overrides {
            dir: dir.map(Into::into),
            sets: vec![("run.time".into(), "7s".into())],
            ..Overrides::default()
        };
        let context = Context {
            kind,
            temp_dir: "/tmp/fresh".into(),
        };
        lower(&parse(b.text, name).unwrap(), &overrides, &context).unwrap()
    };
    let file = lowered("some/where/video.toml", SourceKind::File, Some("/work"));
    assert_eq!(file.source.name, "some/where/video.toml");
    assert_eq!(file.source.text, b.text);
    assert_eq!(file.work_dir.dir.to_str(), Some("/work"));
    assert!(!file.work_dir.temporary);
    let built_in = lowered("vda", SourceKind::Builtin, None);
    assert_eq!(
        (built_in.source.name.as_str(), built_in.title.as_str()),
        ("vda", parse(b.text, b.name).unwrap().title())
    );
    assert_eq!(built_in.work_dir.dir.to_str(), Some("/tmp/fresh"));
    assert!(built_in.work_dir.temporary);
}

#[test]
fn a_workload_is_written_without_its_defaults() {
    let short = to_toml(parse(SMALL, "x").unwrap().file()).unwrap();
    let omitted = "delay arrivals turnover empty spare_directories data latency names spots";
    for key in omitted.split(' ') {
        assert!(!short.contains(&format!("{key} =")), "{key}: {short}");
    }
    let long = SMALL
        .replacen("rate = 50", "delay = \"2s\"\narrivals = \"poisson\"", 1)
        .replacen("stat = 100", "mkdir = 40\nunlink = 40\ncreate = 20", 1);
    let long = format!("{long}turnover = 3\nempty = 4\nspare_directories = 5\n");
    let file = parse(&long, "x").unwrap();
    let written = to_toml(file.file()).unwrap();
    let back = parse(&written, "x").unwrap();
    assert_eq!(back.file(), file.file(), "{written}");
}

#[test]
fn a_plan_is_printed_with_its_load() {
    let text = SMALL.replace("stat = 100", "stat = 60\nread_rand = 40");
    insta::assert_snapshot!(plan(&text, |o| {
        o.load = Some(3);
        o.scale = Some(0.5);
    }));
}

#[test]
fn a_plan_of_the_greatest_load_holds_those_of_the_others() {
    for b in BUILTINS.all() {
        let of = |load, most| {
            builtin(b.name, |o| {
                o.load = Some(load);
                o.most = Some(most);
                o.scale = Some(0.01);
            })
        };
        let greatest = of(7, 7);
        let text = greatest.to_string();
        assert!(text.contains("scaled: not comparable"), "{text}");
        assert!(greatest.filesets.iter().all(|f| f.grows), "{}", b.name);
        for load in 1..=7 {
            let point = greatest.at_load(load).unwrap();
            assert_eq!(point, of(load, 7), "{} at {load}", b.name);
        }
        assert_eq!(greatest.at_load(8), None);
        // Without a maximum load, filesets do not grow.
        let alone = builtin(b.name, |o| o.load = Some(7));
        assert!(alone.filesets.iter().all(|f| !f.grows));
    }
}
