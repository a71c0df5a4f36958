//! Files and streams to which commands write, and result files that commands refuse to read.

use crate::command_line::LOOKER;
use crate::common::{Bench, Ended};

/// What cannot be printed is an error, for help and for results alike; results are written all the
/// same.
#[test]
fn a_full_standard_output_is_an_error() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(LOOKER);
    let md: &[&str] = &["md", "-q", "-D=2", "-I=3", "-P=4", "-w=0"];
    let run: &[&str] = &["run", &workload, "--ops=5", "--dir=work"];
    for args in [
        &["--help"][..],
        &["run", "--help"],
        md,
        run,
        &["workloads", "list"],
    ] {
        let mut command = bench.plimsoll(args);
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
        command.stdout(full.unwrap());
        command.stderr(std::process::Stdio::piped());
        let child = command.spawn().unwrap();
        let ended = Ended::wait(child, std::time::Instant::now()).expect_code(1);
        let said = ended.stderr;
        assert!(said.contains("standard output"), "{args:?}: {said}");
    }
    let results = std::fs::read_dir(bench.path("plimsoll-results")).unwrap();
    assert_eq!(results.count(), 2);
}

/// A pipe in the place of a file of results is refused, not waited for.
#[test]
fn a_pipe_among_results_is_refused() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(LOOKER);
    bench.run_in_work(&workload, &["--ops=5"]).expect_code(0);
    let good = bench.results()[0].path().to_owned();
    for file in ["run.json", "intervals.csv", "histograms.hlog"] {
        let bad = bench.path(&format!("bad-{file}"));
        std::fs::create_dir(&bad).unwrap();
        for entry in std::fs::read_dir(&good).unwrap() {
            let entry = entry.unwrap();
            std::fs::copy(entry.path(), bad.join(entry.file_name())).unwrap();
        }
        assert!(bad.join(file).exists(), "{file}");
        std::fs::remove_file(bad.join(file)).unwrap();
        let fifo = rustix::fs::FileType::Fifo;
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, bad.join(file), fifo, mode, 0).unwrap();
        let bad = bad.to_str().unwrap();
        let report = ["report", "--format=html", "--percentiles=50", bad];
        for args in [&report[..], &["compare", bad, good.to_str().unwrap()]] {
            let ended = Ended::of(bench.plimsoll(args));
            if ended.code == Some(0) {
                // A command may succeed without the damaged file, unless the file is `run.json`.
                assert_ne!(file, "run.json");
                continue;
            }
            let refused = ended.refusal();
            let expected = "it is not a regular file";
            assert!(refused.contains(expected), "{file}: {refused}");
        }
    }
}

/// `--output` never overwrites a file, but writes to streams such as `/dev/stdout`.
#[test]
fn outputs_overwrite_no_file() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(LOOKER);
    bench.run_in_work(&workload, &["--ops=5"]).expect_code(0);
    let dir = bench.results()[0].path().to_str().unwrap().to_owned();
    std::fs::create_dir(bench.path("pictures")).unwrap();
    let taken = ["mine", "pictures/percentiles.svg"];
    for file in taken {
        std::fs::write(bench.path(file), "mine\n").unwrap();
    }
    let calls: [&[&str]; 4] = [
        &["report", &dir, "--format=html", "--output=mine"],
        &["report", &dir, "--format=svg", "--output=pictures"],
        &["compare", &dir, &dir, "--output=mine", "--fail-if=mean>+1%"],
        &["results", "sut", "init", "--output=mine"],
    ];
    for args in calls {
        let refused = Ended::of(bench.plimsoll(args)).refusal();
        let expected = "already exists and is not overwritten";
        assert!(refused.contains(expected), "{args:?}: {refused}");
    }
    for file in taken {
        assert_eq!(std::fs::read_to_string(bench.path(file)).unwrap(), "mine\n");
    }
    let pictures = std::fs::read_dir(bench.path("pictures")).unwrap();
    assert_eq!(pictures.count(), 1);

    let to_stream = |args: &[&str]| Ended::of(bench.plimsoll(args)).expect_code(0).stdout;
    let printed = to_stream(&["report", &dir]);
    let streamed = to_stream(&["report", &dir, "--output=/dev/stdout"]);
    assert_eq!(streamed, printed);
    let sut = to_stream(&["results", "sut", "init", "--output=/dev/stdout"]);
    assert!(sut.parse::<toml::Table>().is_ok(), "{sut}");
    assert_eq!(to_stream(&["report", &dir, "--output=/dev/null"]), "");
}
