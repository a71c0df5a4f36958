//! Simulated systems under every front end: figures of their stations, and what reports make of them.

use crate::common::series::{only_results, parsed};
use crate::common::{Bench, Ended, row};
use plimsoll_results::{OperationTime, Run, SimulationFigures, Verdict};

/// A filer whose disks limit it: 4 disks of 2 ms carry 2000 reads a second.
const FILER: &str = r#"title = "A filer with four disks"

[station.processors]
servers = 2
service = "20us"
distribution = "exponential"

[station.disk]
count = 4
choose = "random"
service = "2ms"

[link.network]
latency = "100us"
bandwidth = "1 GB/s"

[cache.memory]
bytes = "40m"
block = "4k"
begins = "full"
miss = "from_disk"

[log.nvram]
bytes = "1m"
drain = "to_disk"
in_flight = 4

[path]
metadata_read = ["network.request", "processors", "network.reply"]
metadata_change = ["network.request", "processors", "nvram", "network.reply"]
data_read = ["network.request", "processors", "memory", "network.reply"]
data_write = ["network.request", "processors", "nvram", "network.reply"]
from_disk = ["disk"]
to_disk = ["disk"]
"#;

/// Users of one process, which read 4 KiB of a file 80 times a second and look at one 20 times.
const READERS: &str = r#"title = "readers"

[metric]
name = "users"

[[component]]
name = "reader"
processes = 1
rate = 100

[component.mix]
read_rand = 80
stat = 20

[component.transfers]
read = "4k"

[component.files]
count = 1000
size = "4k"
"#;

pub(crate) fn filer() -> Bench {
    let bench = Bench::on_tmpfs();
    std::fs::write(bench.path("filer.toml"), FILER).unwrap();
    std::fs::write(bench.path("readers.toml"), READERS).unwrap();
    bench
}

fn readers(bench: &Bench, load: u32, more: &[&str]) -> Run {
    let load = format!("--load={load}");
    let args = [
        "--target=sim:./filer.toml",
        "--time=10s",
        "--warmup=2s",
        &load,
    ];
    let run = bench.run("readers.toml", &[&args, more].concat());
    serde_json::from_str(&run.stdout).unwrap_or_else(|e| panic!("{e}: {}", run.stderr))
}

#[track_caller]
fn simulation(run: &Run) -> &SimulationFigures {
    run.simulation.as_ref().expect("figures of the system")
}

#[track_caller]
fn near(figure: f64, expected: f64, tolerance: f64) {
    assert!(
        (figure / expected - 1.0).abs() <= tolerance,
        "{figure} is not within {tolerance} of {expected}"
    );
}

#[test]
fn figures_of_stations_agree_with_each_other_and_with_arithmetic() {
    let bench = filer();
    let run = readers(&bench, 20, &[]);
    let figures = simulation(&run);
    assert_eq!(run.validity.verdict, Verdict::Valid);
    for s in figures.stations.iter().filter(|s| s.requests > 0) {
        // Little's law, apart from what was there at both ends of the window.
        if let Some(wait_ms) = s.mean_wait_ms.filter(|_| s.mean_waiting > 0.1) {
            let expected = s.requests as f64 * wait_ms / 1e3 / run.window_s;
            near(s.mean_waiting, expected, 0.02);
        }
        // The utilisation law.
        if let (Some(busy), Some(servers)) = (s.utilisation, s.servers) {
            let service_s = s.mean_service_ms.expect("it served requests") / 1e3;
            let offered = s.requests as f64 * service_s / run.window_s;
            near(busy, offered / f64::from(servers * s.instances), 0.02);
        }
    }
    // 20 users have 20 000 files of a block each, of which 10 240 fit; LRU holds each block with the
    // same probability.
    let hit_ratio = figures.caches[0].hit_ratio.expect("there were reads");
    near(hit_ratio, 10_240.0 / 20_000.0, 0.03);
    let mut stations = figures.stations.iter();
    let disk = stations.find(|s| s.name == "disk").unwrap();
    let reads = row(&run, "read_rand").ops as f64;
    let misses = reads * (1.0 - 10_240.0 / 20_000.0);
    near(disk.requests as f64, misses, 0.03);
    near(disk.mean_service_ms.expect("it was used"), 2.0, 1e-3);
}

#[test]
fn the_time_of_an_operation_is_the_sum_of_its_parts() {
    let bench = filer();
    let run = readers(&bench, 20, &[]);
    let of = |name: &str| -> &OperationTime {
        let mut operations = simulation(&run).operations.iter();
        operations.find(|o| o.name == name).expect(name)
    };
    for name in ["read_rand", "stat"] {
        let sum: f64 = of(name).elements.iter().map(|e| e.mean_ms).sum();
        let service = row(&run, name).service();
        near(sum, service.mean_ms, 1e-6);
        assert_eq!(of(name).ops, row(&run, name).ops);
        assert_eq!(of(name).requests, of(name).ops);
    }
    let names = |name: &str| -> Vec<&str> {
        let elements = of(name).elements.iter();
        elements.map(|e| e.element.as_str()).collect()
    };
    let mut read = names("read_rand");
    read.sort_unstable();
    assert_eq!(read, ["disk", "network", "processors"]);
    assert!(!names("stat").contains(&"disk"));
}

#[test]
fn a_curve_names_the_station_that_saturates_first() {
    let bench = filer();
    let args = "curve readers.toml --load=10,30,50,70 --target=sim:./filer.toml --time=10s \
                --warmup=2s --format=json --stop-after-invalid=0 --results=results";
    let command = bench.plimsoll(args.split_whitespace());
    let curve = parsed(&Ended::of(command));
    // 4 disks carry 2000 reads a second; 50 users miss the cache 4000 × 0.795 times, 30 users 2400 × 0.66.
    let (load, station) = curve.saturated_from().expect("the disks are saturated");
    assert_eq!((load, station.station.as_str()), (50, "disk"));
    for point in &curve.runs {
        let sum: f64 = point.time_at.iter().map(|t| t.mean_ms).sum();
        let service = point.service_mean_ms.expect("operations completed");
        near(sum, service, 0.01);
    }
    let mut command = bench.plimsoll(["report"]);
    command.arg(only_results(&bench));
    let text = Ended::of(command).expect_code(0).stdout;
    let bottleneck = "bottleneck: disk from 50 users on, ";
    assert!(text.contains(bottleneck), "{text}");
    let mut command = bench.plimsoll(["report", "--format=html"]);
    command.arg(only_results(&bench));
    let page = Ended::of(command).expect_code(0).stdout;
    for part in [
        "Where the response time went",
        "<strong>bottleneck</strong>: disk from",
    ] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn reports_of_a_run_show_stations_and_where_the_time_went() {
    let bench = filer();
    readers(&bench, 20, &[]);
    let mut command = bench.plimsoll(["report"]);
    command.arg(only_results(&bench));
    let text = Ended::of(command).expect_code(0).stdout;
    for (begin, part) in [
        ("station ", "requests/s"),
        ("disk ×4 ", "2.00 ms"),
        ("time of ", "disk"),
        ("memory: ", "block references were hits"),
        ("bottleneck: ", "disk, "),
    ] {
        let line = text.lines().find(|l| l.starts_with(begin));
        assert!(line.is_some_and(|l| l.contains(part)), "{begin}: {text}");
    }
    let mut command = bench.plimsoll(["report", "--format=html"]);
    command.arg(only_results(&bench));
    let page = Ended::of(command).expect_code(0).stdout;
    for part in [
        "Simulated system",
        "Where the time of each operation went",
        "disk ×4",
    ] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn filebench_workloads_and_patterns_run_on_a_system() {
    let bench = filer();
    let small = [
        "--target=sim:./filer.toml",
        "--time=2s",
        "--set=nfiles=1000",
    ];
    let run = bench.run("fileserver", &small).result(0);
    let mut operations = simulation(&run).operations.iter();
    assert!(operations.any(|o| o.name == "readfile1"));
    let md =
        "md -P=20 -D=2 -I=10 -R=1 -i=sim:./filer.toml --dir=/md --results=results --format=json";
    let md = Ended::of(bench.plimsoll(md.split(' '))).result(0);
    assert_eq!(md.validity.verdict, Verdict::Valid);
    let stages: Vec<&str> = md.stages.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(stages, ["precreate", "benchmark", "cleanup"]);
    // One system over all stages: the log drains on between them.
    for stage in &md.stages {
        let figures = stage.window.simulation.as_ref().unwrap();
        let operations: u64 = stage.window.operations.iter().map(|o| o.ops).sum();
        let timed: u64 = figures.operations.iter().map(|o| o.ops).sum();
        assert_eq!(timed, operations, "{}", stage.name);
    }
    // The report names the bottleneck station of the stage `benchmark`.
    let benchmark = md.stages[1].window.simulation.as_ref().unwrap();
    let station = &benchmark.bottleneck.as_ref().unwrap().station;
    let mut dirs = bench.results().into_iter();
    let dir = dirs.find(|dir| !dir.read().unwrap().stages.is_empty());
    let mut command = bench.plimsoll(["report"]);
    command.arg(dir.expect("the results of md").path());
    let report = Ended::of(command).expect_code(0).stdout;
    let expected = format!("bottleneck of benchmark: {station}, ");
    assert!(report.contains(&expected), "{expected}: {report}");
}

/// Mean response times of a curve on a built-in system, in milliseconds.
fn mean_times(bench: &Bench, args: &[&str]) -> Vec<f64> {
    let first = [
        "curve",
        "--format=json",
        "--results=results",
        "--stop-after-invalid=0",
    ];
    let curve = parsed(&Ended::of(bench.plimsoll(first.iter().chain(args))));
    let means = curve.runs.iter().map(|p| p.mean_ms);
    means
        .map(|mean| mean.expect("operations completed"))
        .collect()
}

/// The whole curves, with the windows of the published runs, are in docs/systems.md.
#[test]
fn built_in_systems_come_near_the_published_points() {
    let bench = Bench::on_tmpfs();
    let measured = |args: &str| mean_times(&bench, &args.split(' ').collect::<Vec<_>>());
    let flash = "vda --load=170,680,1190,1530 --time=5s --warmup=1s --target=sim:flash-2-replicas";
    let flash = measured(flash);
    for (modelled, published) in flash.iter().zip([1.6, 2.3, 2.8, 3.9]) {
        near(*modelled, published, 0.15);
    }
    let edge = "nfs-sfs2008 --load=1651,4958 --time=1s --warmup=300ms --target=sim:edge-32";
    let edge = measured(edge);
    for (modelled, published) in edge.iter().zip([0.3, 0.5]) {
        near(*modelled, published, 0.20);
    }
}

#[test]
fn a_search_names_the_station_that_limits_the_first_load_beyond_the_line() {
    let bench = filer();
    let args = "find readers.toml --target=sim:./filer.toml --quiet --max-load=70 --start-load=60 \
                --resolution=30 --confirm-runs=1 --time=5s --warmup=1s --results=results";
    let ended = Ended::of(bench.plimsoll(args.split_whitespace()));
    let text = ended.expect_code(0).stdout;
    assert!(text.contains("\n  bottleneck: disk, "), "{text}");
}

#[test]
fn compared_curves_are_drawn_over_each_other() {
    let bench = filer();
    for (name, latency) in [("near", "1ms"), ("far", "2ms")] {
        let args = format!(
            "curve readers.toml --load=1,2 --time=10s --target=null:?latency={latency}&clock=virtual --warmup=100ms --results={name}"
        );
        let command = bench.plimsoll(args.split_whitespace());
        Ended::of(command).expect_code(0);
    }
    let only = |name: &str| {
        let mut entries = std::fs::read_dir(bench.path(name)).unwrap();
        entries.next().expect("a curve").unwrap().path()
    };
    let compare = |more: &[&str]| {
        let mut command = bench.plimsoll(["compare"]);
        command.arg(only("near")).arg(only("far")).args(more);
        Ended::of(command)
    };
    compare(&["--format=svg", "--output=curves.svg"]).expect_code(0);
    let svg = std::fs::read_to_string(bench.path("curves.svg")).unwrap();
    // The chart has a circle for each of the two points of both curves.
    assert_eq!(svg.matches("<circle").count(), 4);
    assert!(
        svg.contains(">\nnear\n<") && svg.contains(">\nfar\n<"),
        "{svg}"
    );
    let page = compare(&["--format=html"]).expect_code(0).stdout;
    assert!(page.contains("Response time over load"));
    let printed = compare(&["--format=svg"]).expect_code(0).stdout;
    assert_eq!(printed, svg);
}
