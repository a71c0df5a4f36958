//! Simulated systems under every front end: figures of their stations, and what reports make of them.

use crate::common::series::{only_results, parsed};
use crate::common::{Bench, Ended, row};
use crate::wan::Line;
use plimsoll_results::{OperationTime, Run, SimulationFigures, Verdict};
use plimsoll_testkit::{Ganesha, GaneshaOptions, NFS_PORT, needs_root};
use serde_json::Value;

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
            near(
                s.mean_waiting,
                s.requests as f64 * wait_ms / 1e3 / run.window_s,
                0.02,
            );
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
    let memory = &figures.caches[0];
    near(
        memory.hit_ratio.expect("there were reads"),
        10_240.0 / 20_000.0,
        0.03,
    );
    let disk = figures
        .stations
        .iter()
        .find(|s| s.name == "disk")
        .expect("it is in the file");
    let reads = row(&run, "read_rand").ops as f64;
    near(
        disk.requests as f64,
        reads * (1.0 - 10_240.0 / 20_000.0),
        0.03,
    );
    near(disk.mean_service_ms.expect("it was used"), 2.0, 1e-3);
}

#[test]
fn the_time_of_an_operation_is_the_sum_of_its_parts() {
    let bench = filer();
    let run = readers(&bench, 20, &[]);
    let of = |name: &str| -> &OperationTime {
        let mut operations = simulation(&run).operations.iter();
        operations
            .find(|o| o.name == name)
            .expect("it is in the workload")
    };
    for name in ["read_rand", "stat"] {
        let sum: f64 = of(name).elements.iter().map(|e| e.mean_ms).sum();
        let service = row(&run, name).service();
        near(sum, service.mean_ms, 1e-6);
        assert_eq!(of(name).ops, row(&run, name).ops);
        assert_eq!(of(name).requests, of(name).ops);
    }
    let names = |name: &str| -> Vec<&str> {
        of(name)
            .elements
            .iter()
            .map(|e| e.element.as_str())
            .collect()
    };
    let mut read = names("read_rand");
    read.sort_unstable();
    assert_eq!(read, ["disk", "network", "processors"]);
    assert!(!names("stat").contains(&"disk"));
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let bench = filer();
    readers(&bench, 20, &[]);
    readers(&bench, 20, &[]);
    readers(&bench, 20, &["--seed=2"]);
    let results = bench.results();
    let read = |run: usize, file: &str| std::fs::read(results[run].path().join(file)).unwrap();
    for file in ["histograms.hlog", "intervals.csv"] {
        assert_eq!(read(0, file), read(1, file), "{file}");
        assert_ne!(read(0, file), read(2, file), "{file}");
    }
    let figures: Vec<Run> = results.iter().map(|r| r.read().unwrap()).collect();
    assert_eq!(figures[0].simulation, figures[1].simulation);
    assert_ne!(figures[0].simulation, figures[2].simulation);
}

#[test]
fn a_curve_names_the_station_that_saturates_first() {
    let bench = filer();
    let args = [
        "curve",
        "readers.toml",
        "--load=10,30,50,70",
        "--target=sim:./filer.toml",
    ];
    let mut command = bench.plimsoll(args);
    command.args(["--time=10s", "--warmup=2s", "--format=json", "--results"]);
    command.args([
        bench.path("results").to_str().unwrap(),
        "--stop-after-invalid=0",
    ]);
    let curve = parsed(&Ended::of(command));
    // 4 disks carry 2000 reads a second; 50 users miss the cache 4000 × 0.795 times, 30 users 2400 × 0.66.
    let (load, station) = curve.saturated_from().expect("the disks are saturated");
    assert_eq!((load, station.station.as_str()), (50, "disk"));
    for point in &curve.runs {
        let sum: f64 = point.time_at.iter().map(|t| t.mean_ms).sum();
        let service = point.service_mean_ms.expect("operations completed");
        near(sum, service, 0.01);
    }
    let dir = only_results(&bench);
    let shown = |args: &[&str]| {
        let mut command = bench.plimsoll(["report"]);
        command.arg(&dir).args(args);
        Ended::of(command).expect_code(0).stdout
    };
    let text = shown(&[]);
    assert!(
        text.contains("bottleneck: disk from 50 users on, "),
        "{text}"
    );
    let markdown = shown(&["--format=markdown"]);
    let expected = "\n- **bottleneck**: disk from 50 users on, ";
    assert!(markdown.contains(expected), "{markdown}");
    let page = shown(&["--format=html"]);
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
    let dir = only_results(&bench);
    let shown = |format: &str| {
        let mut command = bench.plimsoll(["report", format]);
        command.arg(&dir);
        Ended::of(command).expect_code(0).stdout
    };
    let text = shown("--format=text");
    let line = |begin: &str| {
        let mut lines = text.lines();
        lines
            .find(|l| l.starts_with(begin))
            .unwrap_or_else(|| panic!("no {begin}: {text}"))
            .to_owned()
    };
    assert!(line("station ").contains("requests/s"));
    assert!(line("disk ×4 ").contains("2.00 ms"));
    assert!(line("time of ").contains("disk"));
    assert!(line("memory: ").contains("block references were hits"));
    assert!(line("bottleneck: ").contains("disk, "));
    let markdown = shown("--format=markdown");
    for part in [
        "\n| station | requests/s | busy |",
        "\n| disk ×4 | ",
        "\n| time of | mean | ",
        "\n- **memory**: ",
        "\n- **bottleneck**: disk, ",
    ] {
        assert!(markdown.contains(part), "{part}: {markdown}");
    }
    let page = shown("--format=html");
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
    let run = bench.run(
        "fileserver",
        &[
            "--target=sim:./filer.toml",
            "--time=2s",
            "--set=nfiles=1000",
        ],
    );
    let run = run.result(0);
    assert!(
        simulation(&run)
            .operations
            .iter()
            .any(|o| o.name == "readfile1")
    );
    let md = [
        "md",
        "-P=20",
        "-D=2",
        "-I=10",
        "-R=1",
        "-i=sim:./filer.toml",
        "--dir=/md",
    ];
    let mut md = bench.plimsoll(md);
    md.args(["--results=results", "--format=json"]);
    let md = Ended::of(md).result(0);
    assert_eq!(md.validity.verdict, Verdict::Valid);
    let stages: Vec<&str> = md.stages.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(stages, ["precreate", "benchmark", "cleanup"]);
    // One system over all stages: the log drains on between them.
    for stage in &md.stages {
        let figures = stage
            .window
            .simulation
            .as_ref()
            .expect("each stage has its figures");
        let operations: u64 = stage.window.operations.iter().map(|o| o.ops).sum();
        let timed: u64 = figures.operations.iter().map(|o| o.ops).sum();
        assert_eq!(timed, operations, "{}", stage.name);
    }
    // Every report names the station that limits a stage.
    let benchmark = md.stages[1].window.simulation.as_ref().unwrap();
    let station = &benchmark.bottleneck.as_ref().unwrap().station;
    let mut dirs = bench.results().into_iter();
    let dir = dirs.find(|dir| !dir.read().unwrap().stages.is_empty());
    let dir = dir.expect("the results of md").path().to_owned();
    for (format, name) in [
        ("--format=text", "bottleneck of benchmark: "),
        ("--format=markdown", "**bottleneck of benchmark**: "),
        (
            "--format=html",
            "<strong>bottleneck of benchmark</strong>: ",
        ),
    ] {
        let mut command = bench.plimsoll(["report", format]);
        command.arg(&dir);
        let report = Ended::of(command).expect_code(0).stdout;
        let expected = format!("{name}{station}, ");
        assert!(report.contains(&expected), "{expected}: {report}");
    }
}

#[test]
fn time_goes_on_in_a_system_that_takes_none() {
    let bench = Bench::on_tmpfs();
    let system = "title = \"memory\"\n[cache.memory]\nfiles = 10000000\nbegins = \"full\"\nmiss = \"disk_path\"\n\
                  [station.disk]\nservice = \"1ms\"\n[path]\nmetadata_read = [\"memory\"]\nmetadata_change = [\"disk\"]\n\
                  data_read = [\"memory\"]\ndata_write = [\"disk\"]\ndisk_path = [\"disk\"]\n";
    std::fs::write(bench.path("memory.toml"), system).unwrap();
    let args = ["--target=sim:./memory.toml", "--time=10ms"];
    let run = bench.run("filemicro_statfile", &args).expect_code(0);
    let run: Run = serde_json::from_str(&run.stdout).unwrap();
    // Each operation takes a microsecond, so that each of the threads completes 9999 within 10 ms.
    let threads = run.workers;
    assert_eq!(run.summary.ops, threads * 9_999);
}

#[test]
fn ranks_and_lanes_are_refused_in_one_sentence() {
    let bench = filer();
    let more = |option: &str| {
        let args = ["--target=sim:./filer.toml", "--time=1s", "--load=1", option];
        bench.run("readers.toml", &args).refusal()
    };
    assert!(more("--processes=2").contains("supports only one process"));
    assert!(more("--lanes=2").contains("has a single lane"));
}

/// Mean response times of a curve on a built-in system, in milliseconds.
fn mean_times(bench: &Bench, args: &[&str]) -> Vec<f64> {
    let mut command =
        bench.plimsoll([&["curve", "--format=json", "--results=results"], args].concat());
    command.arg("--continue-past-peak");
    let curve = parsed(&Ended::of(command));
    let means = curve
        .runs
        .iter()
        .map(|p| p.mean_ms.expect("operations completed"));
    means.collect()
}

/// The whole curves, with the windows of the published runs, are in docs/systems.md.
#[test]
fn built_in_systems_come_near_the_published_points() {
    let bench = Bench::on_tmpfs();
    let flash = [
        "vda",
        "--load=170,680,1190,1530",
        "--time=5s",
        "--warmup=1s",
    ];
    let flash = mean_times(
        &bench,
        &[&flash[..], &["--target=sim:flash-2-replicas"]].concat(),
    );
    for (modelled, published) in flash.iter().zip([1.6, 2.3, 2.8, 3.9]) {
        near(*modelled, published, 0.15);
    }
    let edge = [
        "nfs-sfs2008",
        "--load=1651,4958",
        "--time=1s",
        "--warmup=300ms",
    ];
    let edge = mean_times(&bench, &[&edge[..], &["--target=sim:edge-32"]].concat());
    for (modelled, published) in edge.iter().zip([0.3, 0.5]) {
        near(*modelled, published, 0.20);
    }
}

/// 60 users miss the cache 4000 times a second, and the disks carry half of that.
#[test]
fn a_load_beyond_the_capacity_ends_by_the_criteria() {
    let bench = filer();
    let run = readers(&bench, 60, &[]);
    assert_eq!(run.validity.verdict, Verdict::Invalid);
    let disk = simulation(&run)
        .bottleneck
        .as_ref()
        .expect("the disks are saturated");
    assert_eq!(disk.station, "disk");
    assert!(disk.utilisation > 0.95, "{disk:?}");
}

#[test]
fn a_search_names_the_station_that_limits_the_first_load_beyond_the_line() {
    let bench = filer();
    let args = [
        "find",
        "readers.toml",
        "--target=sim:./filer.toml",
        "--quiet",
    ];
    let mut command = bench.plimsoll(args);
    command.args(["--max-load=70", "--start-load=60", "--resolution=30"]);
    command.args(["--confirm-runs=1", "--time=5s", "--warmup=1s", "--results"]);
    command.arg(bench.path("results"));
    let text = Ended::of(command).expect_code(0).stdout;
    assert!(text.contains("\n  bottleneck: disk, "), "{text}");
    for (format, part) in [
        ("--format=markdown", "  - **bottleneck**: disk, "),
        ("--format=html", "<strong>bottleneck</strong>: disk, "),
    ] {
        let mut command = bench.plimsoll(["report", format]);
        command.arg(only_results(&bench));
        let report = Ended::of(command).expect_code(0).stdout;
        assert!(report.contains(part), "{part}: {report}");
    }
}

#[test]
fn compared_curves_are_drawn_over_each_other() {
    let bench = filer();
    for (name, latency) in [("near", "1ms"), ("far", "2ms")] {
        let target = format!("--target=null:?latency={latency}");
        let mut command = bench.plimsoll(["curve", "readers.toml", "--load=1,2", "--time=10s"]);
        command.args([
            &target,
            "--clock=virtual",
            "--warmup=100ms",
            "--results",
            name,
        ]);
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
    // A dot for each point of both, which are at the same loads.
    assert_eq!(svg.matches("<circle").count(), 4);
    assert!(svg.contains("A: ") && svg.contains("B: "), "{svg}");
    assert!(
        compare(&["--format=html"])
            .expect_code(0)
            .stdout
            .contains("Response time over load")
    );
    assert!(compare(&["--format=svg"]).refusal().contains("--output"));
}

/// Users of 8 processes, which read 32 KiB or look at a file, 12 times a second each.
const FAR_USERS: &str = r#"title = "far users"

[metric]
name = "users"

[run]
warmup = "500ms"
time = "2s"

[[component]]
name = "user"
processes = 8
rate = 12

[component.mix]
read = 40
stat = 60

[component.transfers]
read = "32k"

[component.files]
count = 10
size = "256k"
"#;

/// The line is known, the time of the server is not.
const FAR_SERVER: &str = r#"title = "A server behind a long line"

[link.line]
latency = "10ms"
bandwidth = "400 Mbit/s"

[station.server]
queue = "delay"
service = { value = "2ms", source = "A", free = ["100us", "50ms"] }

[path]
request = ["line.request", "server", "line.reply"]
data_read = ["request"]
data_write = ["request"]
metadata_read = ["request"]
metadata_change = ["request"]
"#;

/// nfs-ganesha behind a relay at four loads; a model that is fitted to two of them predicts the others.
/// The line takes most of the time, so the prediction does not depend on the machine.
#[test]
fn a_model_of_a_real_server_predicts_its_other_loads() {
    needs_root!();
    let bench = Bench::new();
    let options = GaneshaOptions {
        lease_seconds: 4,
        ..GaneshaOptions::default()
    };
    let server = Ganesha::with(&options).unwrap_or_else(|e| panic!("{e}"));
    let upstream = format!("{}:{NFS_PORT}", server.address());
    let line = [
        "--listen=127.0.0.1:0",
        "--rtt=20ms",
        "--bandwidth=400mbit",
        "--upstream",
    ];
    let relay = Line::start(&bench, &[&line[..], &[&upstream]].concat());
    let port = relay.said.split_once("127.0.0.1:").expect("its address").1;
    let port: u16 = port.split(' ').next().unwrap().parse().expect("its port");
    std::fs::write(bench.path("far.toml"), FAR_USERS).unwrap();
    std::fs::write(bench.path("server.toml"), FAR_SERVER).unwrap();
    let target = format!("--target=nfs4://127.0.0.1:{port}{}", Ganesha::PSEUDO);
    let mut measure = bench.plimsoll(["curve", "far.toml", "--load=1..4", "--results=real"]);
    measure.args([&target, "--stop-after-invalid=0", "--continue-past-peak"]);
    let measured = Ended::of(measure);
    assert!(matches!(measured.code, Some(0 | 3)), "{}", measured.stderr);
    let mut curves = std::fs::read_dir(bench.path("real")).unwrap();
    let curve = curves.next().expect("a curve").unwrap().path();
    let mut fit = bench.plimsoll([
        "systems",
        "fit",
        "server.toml",
        "--hold-out=2,4",
        "--format=json",
    ]);
    fit.arg("--to")
        .arg(&curve)
        .args(["--max-trials=40", "--output=fitted.toml"]);
    let fitted = Ended::of(fit).expect_code(0).stdout;
    let fitted: Value = serde_json::from_str(&fitted).expect("JSON");
    let points = fitted["points"].as_array().expect("points");
    assert_eq!(points.len(), 4);
    for point in points {
        let ms = |key: &str| point[key].as_f64().expect("a time");
        let (measured, modelled) = (ms("measured_ms"), ms("modelled_ms"));
        assert!(measured >= 20.0 && modelled >= 20.0, "{point}");
        assert!((0.5..2.0).contains(&(modelled / measured)), "{point}");
    }
    relay.end();
}
