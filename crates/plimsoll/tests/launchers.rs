//! Runs of several processes, started by `--processes` or, with the feature `mpi`, by `mpiexec`. Runs of `--processes`
//! and runs of `mpiexec` pass the same tests.

#[path = "e2e/common/mod.rs"]
mod common;
#[cfg(feature = "mpi")]
#[path = "processes/mpiexec.rs"]
mod mpiexec;

use common::{Bench, Ended, rank_of, row, series, signal, started, tree};
use plimsoll_results::{Run, Verdict};
use rustix::process::Signal;
use std::process::Command;
use std::time::{Duration, Instant};

/// Who starts the ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Launcher {
    Processes,
    #[cfg(feature = "mpi")]
    Mpiexec,
}

/// Each test with each launcher.
macro_rules! with_each_launcher {
    ($($test:ident),* $(,)?) => {
        mod processes {
            $(#[test] fn $test() { super::$test(super::Launcher::Processes) })*
        }
        #[cfg(feature = "mpi")]
        mod mpi {
            $(#[test] fn $test() { super::$test(super::Launcher::Mpiexec) })*
        }
    };
}

with_each_launcher!(
    ranks_share_the_workers,
    ranks_are_those_of_md_workbench,
    an_interrupted_rank_ends_all_with_their_results,
    a_killed_rank_ends_all,
    wrong_arguments_are_named_once,
    ranks_measure_load_points,
);

impl Launcher {
    /// The program with these arguments, as so many ranks.
    fn command(self, bench: &Bench, ranks: u32, args: &[&str]) -> Command {
        match self {
            Self::Processes => {
                let mut command = bench.plimsoll(args);
                command.args(["--processes", &ranks.to_string()]);
                command
            }
            #[cfg(feature = "mpi")]
            Self::Mpiexec => {
                let mut command = mpiexec::Library::built_with().mpiexec(ranks);
                command.arg(env!("CARGO_BIN_EXE_plimsoll")).args(args);
                command.current_dir(bench.root());
                command
            }
        }
    }

    /// `run varmail` with eight workers, files in `work` and results in `results`.
    fn varmail(self, bench: &Bench, ranks: u32, more: &[&str]) -> Command {
        let first = "run varmail --format=json --results=results --dir=work --set=nfiles=200 --set=nthreads=8";
        let args = [&first.split(' ').collect::<Vec<_>>(), more];
        self.command(bench, ranks, &args.concat())
    }
}

fn ranks_share_the_workers(launcher: Launcher) {
    for ranks in [2, 4] {
        let bench = Bench::on_tmpfs();
        let args = ["--time=500ms", "--interval=100ms", "--per-rank"];
        let ended = Ended::of(launcher.varmail(&bench, ranks, &args));
        let run = ended.result(0);
        assert_eq!(run.validity.verdict, Verdict::Valid);
        assert_eq!((run.ranks, run.workers), (ranks, 8));

        let dir = &bench.results()[0];
        assert_eq!(dir.read().unwrap(), run);
        let of_rank = |rank: u32| -> Run {
            let path = dir.path().join(format!("ranks/rank-{rank}.json"));
            serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
        };
        let each: Vec<Run> = (0..ranks).map(of_rank).collect();
        for operation in &run.operations {
            let name = operation.name.as_str();
            let sum = |of: fn(&plimsoll_results::OperationFigures) -> u128| {
                each.iter().map(|r| of(row(r, name))).sum::<u128>()
            };
            assert!(operation.ops > 0, "{name}");
            assert_eq!(u128::from(operation.ops), sum(|o| o.ops.into()), "{name}");
            assert_eq!(operation.bytes, sum(|o| o.bytes), "{name}");
        }
        let lanes = |r: &Run| r.lanes == u64::from(8 / ranks);
        assert!(each.iter().all(lanes), "a thread a worker");
        assert!(each.iter().all(|r| r.summary.ops > 0));
        assert_eq!(bench.left_but(&["results"]), [""; 0], "files are removed");
    }
}

fn ranks_are_those_of_md_workbench(launcher: Launcher) {
    let bench = Bench::on_tmpfs();
    let phase = |name: &str| {
        let mut args = vec!["md", "-q", "--results=results", "--dir=work", name];
        args.extend(["-P=30", "-I=10", "-D=2", "-R=1", "-S=100"]);
        let ended = Ended::of(launcher.command(&bench, 4, &args)).expect_code(0);
        let lines = ended.stdout.matches(" process max:").count();
        assert_eq!(lines, 1, "{ended:?}");
        ended.stdout
    };
    let objects = || {
        let (mut files, _) = tree(&bench.work());
        files.retain(|name, _| name.contains("/file-"));
        files
    };
    let all: Vec<String> = (0..4 * 2 * 30)
        .map(|i| format!("{}_{}/file-{}", i / 60, i / 30 % 2, i % 30))
        .collect();
    phase("-1");
    let made = objects();
    assert_eq!(made.len(), all.len());
    for name in &all {
        // Each rank has created its own objects, and every byte of an object is the number of the rank.
        let name = format!("out/{name}");
        assert_eq!(made.get(&name), Some(&100), "{name}");
        let bytes = std::fs::read(bench.work().join(&name)).unwrap();
        let rank = name.as_bytes()[4] - b'0';
        assert_eq!(bytes, [rank; 100], "{name}");
    }
    // Each rank reads ten objects of each of its two data sets.
    let line = phase("-2");
    assert!(line.contains(" objects:80 "), "{line}");
    assert_eq!(objects().len(), all.len());
    phase("-3");
    assert_eq!(objects().len(), 0);
}

fn an_interrupted_rank_ends_all_with_their_results(launcher: Launcher) {
    let bench = Bench::on_tmpfs();
    let going = started(launcher.varmail(&bench, 4, &["--time=1h"]), "measuring");
    std::thread::sleep(Duration::from_millis(300));
    signal(rank_of(going.child.id(), 2), Signal::INT);
    let ended = going.end();
    let run = ended.result(130);
    assert_eq!(run.validity.verdict, Verdict::Interrupted);
    assert!(run.summary.ops > 0 && run.window_s > 0.1);
    assert_eq!(bench.results()[0].read().unwrap(), run);
    assert_eq!(bench.left_but(&["results"]), [""; 0]);
}

fn a_killed_rank_ends_all(launcher: Launcher) {
    let bench = Bench::on_tmpfs();
    let going = started(launcher.varmail(&bench, 4, &["--time=1h"]), "measuring");
    let victim = rank_of(going.child.id(), 3);
    signal(victim, Signal::KILL);
    let ended = going.end();
    assert!(ended.code.is_some_and(|code| code != 0), "{ended:?}");
    if launcher == Launcher::Processes {
        let run = ended.result(1);
        assert_eq!(run.validity.verdict, Verdict::Failed);
        let failure = format!("{:?}", run.failure);
        assert!(failure.contains("rank 3: died (signal 9)"), "{failure}");
    }
    // A launcher may have ended all before anything could be removed; and it may end before those it
    // has killed are gone.
    let begun = Instant::now();
    while bench.work().exists() {
        let clean = Ended::of(bench.plimsoll(["clean", "work"]));
        if clean.code != Some(0) {
            assert!(clean.stderr.contains("in use by another run"), "{clean:?}");
            assert!(begun.elapsed() < common::PATIENCE, "{clean:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// A rank of three may write no more than 15 MB to a file, and fails in the middle of the run.
#[cfg(feature = "mpi")]
#[test]
fn mpi_the_error_of_one_rank_ends_all_with_its_reason() {
    let bench = Bench::on_tmpfs();
    let program = env!("CARGO_BIN_EXE_plimsoll");
    // Every rank makes some of the files, which are small when the run begins.
    let grows = bench.workload(
        "define fileset name=logs,path=files,entries=3,dirwidth=20,size=0,prealloc
         define process name=p { thread name=t,memsize=1m,instances=3 {
           flowop appendfile name=grow,filesetname=logs,iosize=16k
         } }
         run 3600",
    );
    let args = format!("run {grows} --format=json --results=results --dir=work");
    let limited = format!("trap '' XFSZ; ulimit -f 30000; exec {program} {args}");
    let mut command = mpiexec::Library::built_with().mpiexec(2);
    command.arg(program).args(args.split_whitespace());
    command.args([":", "-n", "1", "sh", "-c", &limited]);
    command.current_dir(bench.root());
    let run = Ended::of(command).result(1);
    assert_eq!(run.validity.verdict, Verdict::Failed);
    let failure = run.failure.as_ref().unwrap();
    assert_eq!(failure.error, "rank 2: File too large (EFBIG)");
    assert!(
        row(&run, "grow:append").ops > 0,
        "what was measured is kept"
    );
    assert_eq!(bench.left_but(&["results", "w.f"]), [""; 0]);
}

/// Open MPI's launcher gives its processes a terminal, whatever its own output goes to.
#[cfg(feature = "mpi")]
#[test]
fn mpi_a_file_gets_no_colours_and_no_width_of_a_terminal() {
    let bench = Bench::on_tmpfs();
    let into_file = |args: &[&str]| {
        let file = bench.path("output");
        let mut command = Launcher::Mpiexec.command(&bench, 2, args);
        command
            .env("TERM", "xterm")
            .env_remove("NO_COLOR")
            .env_remove("CLICOLOR")
            .env_remove("COLUMNS")
            .stdout(std::fs::File::create(&file).unwrap())
            .stderr(std::process::Stdio::piped());
        let ended = Ended::wait(command.spawn().unwrap(), Instant::now()).expect_code(0);
        (std::fs::read_to_string(file).unwrap(), ended.stderr)
    };
    let mut piped = bench.plimsoll(["run", "--help"]);
    piped.env_remove("CLICOLOR_FORCE").env_remove("COLUMNS");
    let (help, _) = into_file(&["run", "--help"]);
    assert_eq!(help, Ended::of(piped).expect_code(0).stdout);

    let run =
        "run varmail --dir=work --results=results --time=300ms --set=nfiles=20 --set=nthreads=2";
    let (report, said) = into_file(&run.split(' ').collect::<Vec<_>>());
    let is_whole = report.contains("valid") && said.contains("measuring");
    assert!(is_whole, "{report}{said}");
    let is_coloured = report.contains('\u{1b}') || said.contains('\u{1b}');
    assert!(!is_coloured, "{report:?}{said:?}");
}

fn wrong_arguments_are_named_once(launcher: Launcher) {
    let bench = Bench::on_tmpfs();
    let cases: [(&[&str], &str); 4] = [
        (&["run", "--nonesuch"], "unexpected argument '--nonesuch'"),
        (&["run", "nonesuch"], "`nonesuch` is not a workload"),
        (&["run", "varmail", "--dir=/proc/none"], "`/proc/none`"),
        (
            &["run", "varmail", "--dir=work", "--results=work/results"],
            "--results chooses another place",
        ),
    ];
    for (args, message) in cases {
        let ended = Ended::of(launcher.command(&bench, 3, args));
        let ended = ended.expect_code(2);
        let errors = ended.stderr.matches("error:").count();
        assert_eq!(errors, 1, "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(message), "{args:?}: {}", ended.stderr);
        assert_eq!(ended.stdout, "");
    }
}

fn ranks_measure_load_points(launcher: Launcher) {
    let bench = Bench::on_tmpfs();
    let text = "\
        [metric]\nname = \"users\"\n\
        [[component]]\nname = \"looker\"\nprocesses = 2\nrate = 50\n\
        mix = { stat = 100 }\nfiles = { count = 50, size = \"4k\" }\n";
    std::fs::write(bench.path("users.toml"), text).unwrap();
    let args = "curve users.toml --load=1,3 --time=300ms --warmup=100ms --stop-after-invalid=0 \
                --format=json --results=results --dir=work";
    let args: Vec<&str> = args.split_whitespace().collect();
    let ended = Ended::of(launcher.command(&bench, 2, &args));
    let curve = series::parsed(&ended);
    assert_eq!(curve.ranks, 2);
    assert_eq!(series::loads(&curve), [1, 3]);
    let dir = series::only(&bench);
    assert_eq!(dir.read().unwrap(), curve);
    for (run, load) in series::runs_of(&dir).iter().zip([1, 3]) {
        assert_eq!((run.ranks, run.workers), (2, 2 * load));
        assert_eq!(run.filesets[0].files, 100 * load);
        assert!(run.summary.ops > 0 && run.summary.errors == 0);
    }
    assert_eq!(bench.left_but(&["results", "users.toml"]), [""; 0]);
}
