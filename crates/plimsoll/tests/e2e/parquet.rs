//! `report --format parquet`: the tables hold what the results say, for results of every kind.

use crate::common::python::{printed, python, source_tree};
use crate::common::{Bench, Ended, series};
use plimsoll_report::parquet::FILES;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The command that makes the tables of results in `DIR/tables`.
fn tables(bench: &Bench, results: &[&Path]) -> Command {
    let mut command = bench.plimsoll(["report", "--format=parquet", "--output=tables"]);
    command.args(results);
    command
}

/// Writes the Parquet tables of results and compares the tables with the results; returns the numbers of compared runs
/// and compared percentiles.
#[track_caller]
fn checked(results: &Path) -> (usize, usize) {
    let bench = Bench::on_tmpfs();
    let names = printed(tables(&bench, &[results]));
    let expected: String = FILES.map(|f| format!("tables/{f}\n")).concat();
    assert_eq!(names, expected);
    let mut check = python();
    check.arg(source_tree().join("crates/plimsoll/tests/e2e/parquet/check.py"));
    check.arg(bench.path("tables")).arg(results);
    check.arg(env!("CARGO_BIN_EXE_plimsoll"));
    let said = printed(check);
    let numbers: Vec<usize> = said.split(' ').filter_map(|w| w.parse().ok()).collect();
    let [runs, percentiles] = numbers[..] else {
        panic!("{said}");
    };
    (runs, percentiles)
}

/// Rows of a query on the files of `bench`, as text with a comma between cells.
#[track_caller]
fn queried(bench: &Bench, query: &str) -> Vec<String> {
    let mut duckdb = python();
    duckdb.current_dir(bench.root());
    let script = "import sys, duckdb\n\
                  for row in duckdb.execute(sys.argv[1]).fetchall():\n    \
                  print(','.join('' if cell is None else str(cell) for cell in row))";
    duckdb.args(["-c", script, query]);
    printed(duckdb).lines().map(str::to_owned).collect()
}

/// Results of a kind, measured in virtual time, and the directory that holds them.
fn made(kind: &str) -> (Bench, PathBuf) {
    let profile = "DEFAULTS { function = generic; personality = randomread; runtime = 1; }
        CONFIG a { iosize = 4k; }
        CONFIG b { iosize = 16k; }";
    let slow = "--target=null:?latency=2ms&clock=virtual";
    let stalled = "--target=null:?latency=2ms&stall=1500ms&stall_after=1s&clock=virtual";
    let (args, target, code) = match kind {
        "mix" => ("run vda --warmup=0s --time=2s", slow, 0),
        "md" => ("md -P=10 -D=1 -I=5 -R=1", slow, 0),
        "stalled" => ("run randomread --time=4s", stalled, 3),
        "repeats" => ("run randomread --time=1s --repeat=2", slow, 0),
        "profile" => (
            "profile study.prof",
            "--filesystem=local=null:?latency=2ms&clock=virtual",
            0,
        ),
        _ => panic!("{kind} is no kind of results"),
    };
    let bench = Bench::on_tmpfs();
    std::fs::write(bench.path("study.prof"), profile).unwrap();
    let mut command = bench.plimsoll(args.split(' ').chain([target]));
    command.args(["--quiet", "--results=results"]);
    Ended::of(command).expect_code(code);
    let results = series::only_results(&bench);
    (bench, results)
}

#[test]
fn tables_of_every_kind_of_results_hold_what_they_say() {
    let all = ["mix", "md", "stalled", "repeats", "profile"];
    for (kind, runs) in all.into_iter().zip([1, 1, 1, 2, 2]) {
        let (_bench, results) = made(kind);
        assert_eq!(checked(&results).0, runs, "{kind}");
    }
}

#[test]
fn tables_of_a_run_of_now_hold_what_it_measured() {
    let bench = Bench::on_tmpfs();
    let more = ["--set", "nfiles=50", "--time=300ms", "--interval=100ms"];
    bench.run_in_work("varmail", &more).expect_code(0);
    let (runs, percentiles) = checked(&series::only_results(&bench));
    assert_eq!(runs, 1);
    assert!(percentiles >= 5, "{percentiles}");
}

/// Workers begin in a window that the workload drops; one that is measured follows, another that is dropped, and the
/// last, whose figures are those of the run.
#[test]
fn windows_before_the_last_and_dropped_ones_are_parts_of_their_own() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(
        "define fileset name=f, path=files, size=4k, entries=20, prealloc
         define process name=p { thread name=t, memsize=1m, instances=1 {
           flowop statfile name=stat, filesetname=f } }
         create files
         create processes
         sleep 1
         stats clear
         sleep 1
         stats snap
         stats clear
         sleep 1
         stats clear
         sleep 1
         stats snap
         shutdown processes",
    );
    let run = bench.run_in_work(&workload, &["--interval=200ms"]);
    let run = run.result(0);
    let earlier: Vec<u32> = run.earlier_windows.iter().map(|w| w.number).collect();
    assert_eq!((earlier, run.window_number), (vec![2], 4));
    let results = series::only_results(&bench);
    assert_eq!(checked(&results).0, 1);
    printed(tables(&bench, &[&results]));
    let parts = "SELECT DISTINCT part, window_number, time IS NULL FROM 'tables/intervals.parquet' \
                 ORDER BY window_number";
    let expected = [
        "dropped_window,1,True",
        "earlier_window,2,False",
        "dropped_window,3,True",
        "run,4,False",
    ];
    assert_eq!(queried(&bench, parts), expected);
    let parts = "SELECT DISTINCT part, window_number FROM 'tables/operations.parquet' ORDER BY 2";
    assert_eq!(queried(&bench, parts), ["earlier_window,2", "run,4"]);
}

/// The clock begins after what precedes the first phase: by its times the window opens after the command that is run
/// before the load has ended, and half a second before the event.
#[test]
fn times_of_day_are_those_of_the_clock() {
    let bench = Bench::on_tmpfs();
    let date = |name: &str| format!("sh date +%s.%N >{}", bench.path(name).display());
    let before = format!("--event=before {}", date("before"));
    let event = format!("--event=500ms {}", date("event"));
    let more = ["--set=nfiles=50", "--time=1s", &before, &event];
    let run = bench.run_in_work("varmail", &more).result(0);
    let clock: jiff::Timestamp = run.clock_started_at.as_ref().unwrap().parse().unwrap();
    let opened = clock.as_microsecond() as f64 / 1e6 + run.window_start_s;
    let written = |name: &str| -> f64 {
        let text = std::fs::read_to_string(bench.path(name)).unwrap();
        text.trim().parse().unwrap()
    };
    let (before, event) = (written("before"), written("event"));
    assert!(before < opened, "{before} {opened}");
    assert!(event > opened + 0.499, "{event} {opened}");
}

#[test]
fn completion_delays_are_a_level_of_their_own() {
    if plimsoll_target::uring_unavailable().is_some() {
        // The tests of the module `uring` check that a run is refused on a machine without io_uring.
        return;
    }
    let bench = Bench::on_tmpfs();
    let more = [
        "--target=posix:?io=uring",
        "--set",
        "nfiles=50",
        "--time=300ms",
    ];
    bench.run_in_work("varmail", &more).expect_code(0);
    assert_eq!(checked(&series::only_results(&bench)).0, 1);
}

#[test]
fn curves_and_searches_have_a_load_in_every_row() {
    let bench = Bench::on_tmpfs();
    let target = "--target=null:?latency=4ms&servers=8&clock=virtual";
    let virtually = ["--time=3s", "--warmup=1s", target];
    let mut curve = series::command(&bench, "curve", &virtually);
    curve.arg("--load=5..15/5");
    Ended::of(curve).expect_code(0);
    let curve = series::only_results(&bench);
    assert_eq!(checked(&curve).0, 3);

    let searched = Bench::on_tmpfs();
    let mut find = series::command(&searched, "find", &virtually);
    find.arg("--max-load=16");
    Ended::of(find).expect_code(0);
    let find = series::only_results(&searched);
    let (runs, _) = checked(&find);
    assert!(runs >= 2, "{runs}");

    printed(tables(&bench, &[&curve, &find]));
    for file in FILES {
        let query = format!(
            "SELECT DISTINCT results_kind, load_metric, load IS NULL, clock \
             FROM 'tables/{file}' ORDER BY 1"
        );
        let kinds = ["curve,users,False,virtual", "search,users,False,virtual"];
        assert_eq!(queried(&bench, &query), kinds);
    }
    // Each user of the workload executes 100 operations per second for three seconds, so 300 operations.
    let off = queried(
        &bench,
        "SELECT load, abs(sum(ops) / (load * 300) - 1) < 0.1 FROM 'tables/operations.parquet' \
         WHERE results_kind = 'curve' AND level = 'summary' GROUP BY load ORDER BY load",
    );
    assert_eq!(off, ["5,True", "10,True", "15,True"]);
}

#[test]
fn runs_of_profiles_say_which_they_are() {
    let bench = Bench::on_tmpfs();
    let (_made, profile) = made("profile");
    printed(tables(&bench, &[&profile]));
    let rows = queried(
        &bench,
        "SELECT results_kind, run_path, profile_filesystem, profile_case \
         FROM 'tables/operations.parquet' WHERE part = 'run' AND level = 'summary'",
    );
    assert_eq!(rows, ["profile,local/a,local,a", "profile,local/b,local,b"]);
}

#[test]
fn the_same_results_are_the_same_bytes_and_the_same_run_wherever_they_are() {
    let (here, there) = (Bench::on_tmpfs(), Bench::on_tmpfs());
    let copy = there.path("copy");
    let (_made, md) = made("md");
    let copied = Command::new("cp").arg("-r").args([&md, &copy]).status();
    assert!(copied.unwrap().success());
    printed(tables(&here, &[&md]));
    printed(tables(&there, &[&md]));
    for file in FILES {
        let bytes = |b: &Bench| std::fs::read(b.path("tables").join(file)).unwrap();
        assert!(bytes(&here) == bytes(&there), "{file}");
    }
    std::fs::remove_dir_all(there.path("tables")).unwrap();
    printed(tables(&there, &[&copy, &md]));
    let ids =
        "SELECT count(DISTINCT run_id), count(DISTINCT results) FROM 'tables/intervals.parquet'";
    assert_eq!(queried(&there, ids), ["1,2"]);
}

#[test]
fn what_tables_cannot_be_made_of_is_refused_and_nothing_is_left() {
    let bench = Bench::on_tmpfs();
    let (_made, mix) = made("mix");
    let mix = mix.to_str().unwrap();
    let refused = |args: &[&str]| {
        let first = ["report", "--format=parquet"];
        Ended::of(bench.plimsoll(first.iter().chain(args))).refusal()
    };
    std::fs::write(bench.path("published.txt"), "SPEC").unwrap();
    for row in [
        "MIX => --output says which directory",
        "MIX --output=t --percentiles=99.5 => --percentiles is for tables",
        ". --output=t => holds no results of Plimsoll",
        "published.txt --output=t => is made of results directories",
    ] {
        let (args, reason) = row.split_once(" => ").unwrap();
        let said = refused(&args.replace("MIX", mix).split(' ').collect::<Vec<_>>());
        assert!(said.contains(reason), "{row}: {said}");
    }
    assert_eq!(bench.left_but(&["published.txt"]), [""; 0]);

    // A damaged line of the log is found when the other tables are written already.
    let damaged = bench.path("damaged");
    let copied = Command::new("cp").args(["-r", mix]).arg(&damaged).status();
    assert!(copied.unwrap().success());
    let log = damaged.join("histograms.hlog");
    let text = std::fs::read_to_string(&log).unwrap();
    std::fs::write(&log, text + "Tag=x/read,0.0,1.0,5.0,AAAA\n").unwrap();
    let said = refused(&["damaged", "--output=t"]);
    assert!(said.contains("histograms.hlog:"), "{said}");
    assert_eq!(std::fs::read_dir(bench.path("t")).unwrap().count(), 0);

    std::fs::write(bench.path("t/intervals.parquet"), "mine").unwrap();
    let said = refused(&[mix, "--output=t"]);
    let expected = "already exists and is not overwritten";
    assert!(said.contains(expected), "{said}");
    let left = std::fs::read_to_string(bench.path("t/intervals.parquet")).unwrap();
    assert_eq!(left, "mine");
    assert_eq!(std::fs::read_dir(bench.path("t")).unwrap().count(), 1);
}

/// The part of docs/reports.md on tables.
fn documented() -> String {
    let text = std::fs::read_to_string(source_tree().join("docs/reports.md")).unwrap();
    let (_, part) = text.split_once("\n## Parquet tables\n").unwrap();
    let end = part.find("\n## ").unwrap_or(part.len());
    part[..end].to_owned()
}

#[test]
fn every_column_is_described_and_every_described_column_is_there() {
    let bench = Bench::on_tmpfs();
    let (_made, results) = made("mix");
    printed(tables(&bench, &[&results]));
    let columns = FILES.map(|file| {
        let query = format!("SELECT column_name FROM (DESCRIBE SELECT * FROM 'tables/{file}')");
        (file, queried(&bench, &query))
    });
    let described: Vec<String> = documented()
        .lines()
        .filter_map(|line| line.strip_prefix("| `"))
        .flat_map(|line| {
            let (names, _) = line.split_once(" |").unwrap();
            let names = names.split(['`', ',', ' ']);
            let names = names.filter(|n| !n.is_empty());
            names.map(str::to_owned).collect::<Vec<_>>()
        })
        .collect();
    for (file, columns) in &columns {
        for column in columns {
            assert!(described.contains(column), "{file}: {column}");
        }
    }
    for name in &described {
        let is_column = columns.iter().any(|(_, columns)| columns.contains(name));
        assert!(is_column || FILES.contains(&name.as_str()), "{name}");
    }
}

#[test]
fn the_queries_in_the_document_are_answered() {
    let bench = Bench::on_tmpfs();
    let text = documented();
    let (_, commands) = text.split_once("```sh\n").unwrap();
    let (commands, _) = commands.split_once("```").unwrap();
    let mut shell = Command::new("sh");
    let program = Path::new(env!("CARGO_BIN_EXE_plimsoll")).parent().unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    shell.args(["-ec", commands]).current_dir(bench.root());
    shell.env("PATH", format!("{}:{path}", program.display()));
    printed(shell);
    let parts = text.split("```sql\n").skip(1);
    let queries: Vec<&str> = parts
        .map(|rest| rest.split_once("```").unwrap().0)
        .collect();
    assert!(queries.len() >= 2, "{queries:?}");
    for query in queries {
        let rows = queried(&bench, query);
        assert!(!rows.is_empty(), "{query}");
    }
}
