//! Exhausted descriptors and threads, and clocks that are set back or are beyond the year 9999.

use super::{READS_AND_WRITES, written};
use crate::common::{Bench, Ended, row};
use plimsoll_results::Verdict;
use plimsoll_testkit::needs_root;
use std::os::fd::AsRawFd;
use std::os::unix::fs::chown;
use std::process::Command;

/// The command with limits of `prlimit`.
pub fn limited(limits: &[&str], plimsoll: &Command) -> Command {
    let mut command = Command::new("prlimit");
    command.args(limits).arg("--").arg(plimsoll.get_program());
    command.args(plimsoll.get_args());
    command.current_dir(plimsoll.get_current_dir().unwrap());
    for (name, value) in plimsoll.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    command
}

/// Descriptors that are taken by others once the run was admitted.
#[test]
fn descriptors_that_run_out() {
    let bench = Bench::on_tmpfs();
    // Each worker opens files until no descriptor is left: opens of other numbers stay open.
    let opens: String = (1..=60)
        .map(|n| format!("flowop openfile name=open{n},filesetname=s,fd={n}\n"))
        .collect();
    let workload = bench.workload(&format!(
        "define fileset name=s,path=files,entries=100,dirwidth=200,size=0,prealloc\n\
         define process name=p {{ thread name=t,memsize=1m {{\n{opens}}} }}\nrun 3600\n"
    ));
    let plimsoll = bench.command_in_work(&workload, &[]);
    let ended = Ended::of(limited(&["--nofile=48:48"], &plimsoll));
    match ended.code {
        Some(2) => assert!(ended.stderr.contains("the limit is 48"), "{}", ended.stderr),
        _ => {
            let run = ended.result(1);
            let failure = run.failure.as_ref().unwrap();
            assert!(failure.error.contains("EMFILE"), "{failure:?}");
            assert_eq!(written(&bench), run);
        }
    }
    assert!(!bench.work().exists());
}

/// A user that may start no more threads.
#[test]
fn threads_that_run_out() {
    needs_root!();
    // The user `nobody`, of whom no other process runs.
    const UID: u32 = 4277;
    let bench = Bench::on_tmpfs();
    chown(bench.root(), Some(UID), Some(UID)).unwrap();
    let workload = bench.workload(&READS_AND_WRITES.replace("instances=2", "instances=64"));
    // By its descriptor: that user may have no way to the program.
    let program = std::fs::File::open(env!("CARGO_BIN_EXE_plimsoll")).unwrap();
    rustix::io::fcntl_setfd(&program, rustix::io::FdFlags::empty()).unwrap();
    let plimsoll = bench.command_in_work(&workload, &[]);
    let mut command = Command::new("setpriv");
    command.args([format!("--reuid={UID}"), format!("--regid={UID}")]);
    command.args(["--clear-groups", "prlimit", "--nproc=20:20", "--"]);
    command.arg(format!("/proc/self/fd/{}", program.as_raw_fd()));
    command.args(plimsoll.get_args());
    command
        .env("TMPDIR", bench.root())
        .current_dir(bench.root());
    let ended = Ended::of(command);
    let said = format!("{}{}", ended.stderr, ended.stdout);
    assert_eq!(ended.code, Some(1), "{said}");
    assert!(said.contains("cannot start thread"), "{said}");
    assert!(!said.contains("panicked"), "{said}");
    assert!(!bench.work().exists(), "{said}");
}

/// Compiles a library for `LD_PRELOAD`.
fn library(bench: &Bench, source: &str) -> std::path::PathBuf {
    std::fs::write(bench.path("clock.c"), source).unwrap();
    let library = bench.path("clock.so");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o"]);
    compiler.arg(&library).arg(bench.path("clock.c"));
    Ended::of(compiler).expect_code(0);
    library
}

/// A clock that is about 9500 years ahead.
const FAR_AHEAD: &str = "\
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *now)
{
	int done = (int)syscall(SYS_clock_gettime, clock, now);

	if (clock == CLOCK_REALTIME && done == 0)
		now->tv_sec += 300000000000;
	return done;
}
";

/// Times have years of four digits: every command is refused at once if the clock's year has more digits.
#[test]
fn a_clock_beyond_the_year_9999() {
    let bench = Bench::on_tmpfs();
    let library = library(&bench, FAR_AHEAD);
    let workload = bench.workload(READS_AND_WRITES);
    let run = bench.command_in_work(&workload, &["--time=1s"]);
    for mut command in [run, bench.plimsoll(["workloads", "list"])] {
        command.env("LD_PRELOAD", &library);
        let ended = Ended::of(command).expect_code(1);
        let message =
            "the clock of this machine is wrong: its time is not within the years -9999 to 9999";
        assert!(ended.stderr.contains(message), "{}", ended.stderr);
    }
    assert_eq!(bench.left_but(&["w.f", "clock.c", "clock.so"]), [""; 0]);
}

/// A clock that goes back by an hour when it was read for half a second.
const SET_BACK: &str = "\
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *now)
{
	static __thread int known;
	static struct timespec first;
	struct timespec steady;
	int done = (int)syscall(SYS_clock_gettime, clock, now);

	if (clock != CLOCK_REALTIME || done != 0)
		return done;
	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &steady);
	if (!known && first.tv_sec == 0)
		first = steady;
	known = 1;
	if ((steady.tv_sec - first.tv_sec) * 1000 + (steady.tv_nsec - first.tv_nsec) / 1000000 > 500)
		now->tv_sec -= 3600;
	return done;
}
";

/// The clock of the system is set back by an hour while the run measures: it is measured by another clock, and
/// the results have the time at which it began.
#[test]
fn a_clock_that_is_set_back() {
    let bench = Bench::on_tmpfs();
    let library = library(&bench, SET_BACK);
    let workload = bench.workload(READS_AND_WRITES);
    let more = ["--time=1500ms", "--interval=100ms"];
    let mut command = bench.command_in_work(&workload, &more);
    let before = jiff::Timestamp::now().as_second();
    command.env("LD_PRELOAD", &library);
    let run = Ended::of(command).result(0);
    assert_eq!(run.validity.verdict, Verdict::Valid);
    assert!((1.5..2.5).contains(&run.window_s), "{}", run.window_s);
    let began: jiff::Timestamp = run.started_at.parse().unwrap();
    let is_before = (before..before + 60).contains(&began.as_second());
    assert!(is_before, "{began} {before}");
    let rows = bench.results()[0].read_intervals().unwrap();
    let reads = rows.iter().filter(|r| r.operation == "read");
    let reads: u64 = reads.map(|r| r.ops).sum();
    assert_eq!(reads, row(&run, "read").ops);
    assert!(rows.iter().all(|r| r.length_s > 0.0 && r.length_s < 1.0));
    assert_eq!(written(&bench), run);
    let left = bench.left_but(&["w.f", "results", "clock.c", "clock.so"]);
    assert_eq!(left, [""; 0]);
}
