//! Runs whose filesets are used up, from files of Filebench 1.x that do not say how they end.

use crate::common::{Bench, Ended, PATIENCE, find_row, row};
use plimsoll_results::{RunDir, Verdict, tag_of};

/// `deletefiles` as releases before 1.5 had it: without `set mode quit`.
const DELETE_FILES: &str = "\
set $dir=/tmp
set $nfiles=200
define fileset name=bigfileset,path=$dir,size=1k,entries=$nfiles,dirwidth=20,prealloc=100
define process name=filedelete,instances=1
{
  thread name=filedeletethread,memsize=10m,instances=4
  {
    flowop deletefile name=deletefile1,filesetname=bigfileset
  }
}
";

/// `copyfiles` of the same time.
const COPY_FILES: &str = "\
set $dir=/tmp
set $nfiles=200
define fileset name=bigfileset,path=$dir,size=1k,entries=$nfiles,dirwidth=20,prealloc=100
define fileset name=destfiles,path=$dir,size=1k,entries=$nfiles,dirwidth=20
define process name=filereader,instances=1
{
  thread name=filereaderthread,memsize=10m,instances=4
  {
    flowop openfile name=openfile1,filesetname=bigfileset,fd=1
    flowop readwholefile name=readfile1,fd=1
    flowop createfile name=createfile2,filesetname=destfiles,fd=2
    flowop writewholefile name=writefile2,filesetname=destfiles,fd=2,srcfd=1
    flowop closefile name=closefile1,fd=1
    flowop closefile name=closefile2,fd=2
  }
}
";

/// Two threads: one deletes until there is nothing left, the other would go on.
const DELETE_AND_LOOK: &str = "\
define fileset name=gone,path=/tmp/a,size=1k,entries=20,dirwidth=20,prealloc
define fileset name=still,path=/tmp/b,size=1k,entries=20,dirwidth=20,prealloc
define process name=p {
  thread name=deleter,memsize=1m { flowop deletefile name=delete,filesetname=gone }
  thread name=looker,memsize=1m { flowop statfile name=look,filesetname=still }
}
run 3600
";

/// What `plan` says of a workload in the work directory.
fn planned(bench: &Bench, workload: &str) -> Ended {
    let mut command = bench.plimsoll(["run", workload, "--dry-run", "--dir"]);
    command.arg(bench.work());
    Ended::of(command).expect_code(0)
}

/// Every operation of the last window is in the intervals and in the histograms.
fn assert_complete(dir: &RunDir, run: &plimsoll_results::Run) {
    let series = std::fs::read_to_string(dir.intervals_path()).unwrap();
    let histograms = crate::common::distributions(dir, run.window_number);
    for op in run.operations.iter().filter(|o| o.ops > 0) {
        let rows = series.lines().map(|l| l.split(',').collect::<Vec<_>>());
        let counts = rows
            .filter(|r| r[4] == op.name)
            .map(|r| r[6].parse::<u64>());
        let counted: u64 = counts.map(Result::unwrap).sum();
        let histogram = &histograms[&tag_of(&op.name, op.kind)];
        assert_eq!([counted, histogram.count()], [op.ops; 2], "{}", op.name);
    }
}

#[test]
fn old_files_that_end_by_themselves_are_valid() {
    for (text, done) in [(DELETE_FILES, "deletefile1"), (COPY_FILES, "writefile2")] {
        let bench = Bench::on_tmpfs();
        let workload = bench.workload(text);
        let planned = planned(&bench, &workload);
        let end = "ends early when its filesets are used up";
        assert!(planned.stdout.contains(end), "{}", planned.stdout);

        let run = bench.run_in_work(&workload, &["--time=1h"]).result(0);
        assert_eq!(run.validity.verdict, Verdict::Valid);
        assert_eq!(row(&run, done).ops, 200, "{done}");
        assert!(run.window_s < PATIENCE.as_secs_f64());
        let mut noted = run.notes.iter().map(|n| &n.text);
        let noted = noted
            .by_ref()
            .filter(|text| text.contains("ended by themselves"));
        assert_eq!(noted.count(), 1);
        assert_complete(&bench.results()[0], &run);
    }
}

#[test]
fn other_work_that_runs_out_is_invalid_and_measured_until_then() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(DELETE_AND_LOOK);
    let planned = planned(&bench, &workload);
    let warning = "makes it invalid";
    assert!(planned.stdout.contains(warning), "{}", planned.stdout);

    let run = bench.run_in_work(&workload, &[]).result(3);
    assert_eq!(run.validity.verdict, Verdict::Invalid);
    assert!(run.failure.is_none());
    let [reason] = &run.validity.reasons[..] else {
        panic!("{:?}", run.validity);
    };
    assert_eq!(reason.code, "fileset_exhausted");
    let flowop = "no existing file of fileset `gone` was left for `delete` (";
    assert!(reason.text.starts_with(flowop), "{}", reason.text);
    // The measured window ends 1 ns after the fileset is exhausted, so that operations that complete at the instant of
    // exhaustion count.
    let end_s = run.window_s - 1e-9;
    let place = format!("w.f:4:43) after {end_s:.3} s of the measured window");
    assert!(reason.text.contains(&place), "{end_s} {}", reason.text);
    assert_eq!(row(&run, "delete").ops, 20);
    let dir = &bench.results()[0];
    assert_complete(dir, &run);
}

#[test]
fn a_rank_that_runs_out_ends_all() {
    let bench = Bench::on_tmpfs();
    // Rank 0 has the worker that stats files, and rank 1 has the worker that deletes the rank's half of the files.
    let mut lines: Vec<&str> = DELETE_AND_LOOK.lines().collect();
    lines.swap(3, 4);
    let workload = bench.workload(&lines.join("\n"));
    let run = bench.run_in_work(&workload, &["--processes=2"]).result(3);
    let reasons = run.validity.reasons.iter();
    let codes: Vec<_> = reasons.map(|r| r.code.as_str()).collect();
    assert_eq!(codes, ["fileset_exhausted"]);
    assert_eq!(row(&run, "delete").ops, 10, "its half of the files");
    // The looker may have come too late to look.
    assert!(find_row(&run, "look").is_ok());
    assert!(run.window_s < PATIENCE.as_secs_f64());
    assert_complete(&bench.results()[0], &run);

    // Work that ends by itself does so at each rank in its own time.
    let workload = bench.workload(DELETE_FILES);
    let run = bench.run(&workload, &["--processes=2", "--time=1h"]);
    let run = run.result(0);
    assert_eq!(row(&run, "deletefile1").ops, 200);
    assert_eq!(run.validity.verdict, Verdict::Valid);
}
