//! What profiles of Filebench 1.x hold, through the program.

use crate::common::series::{only_in, parsed, runs_of};
use crate::common::{Bench, Ended};
use plimsoll_results::{Series, SeriesDir, SeriesRun};

/// A workload of 1.x: what it reads and never sets, the profile that runs it sets.
const OPEN: &str = "set $dir=/tmp
set $nthreads=1
define fileset name=s,path=$dir,entries=$count,size=64k,dirwidth=8,prealloc
define process name=p { thread name=t,memsize=1m,instances=$nthreads {
  flowop read name=read1,filesetname=s,iosize=8k,random,workingset=$workingset,directio=$directio
  flowop eventlimit name=limit
} }
";

fn write(bench: &Bench, name: &str, text: &str) {
    let path = bench.path(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn bench(profile: &str) -> Bench {
    let bench = Bench::on_tmpfs();
    write(&bench, "old.prof", profile);
    write(&bench, "open.f", OPEN);
    bench
}

fn call(bench: &Bench, args: &[&str]) -> Ended {
    Ended::of(bench.plimsoll(args))
}

fn profile(bench: &Bench, more: &[&str]) -> Ended {
    let mut args = vec!["profile", "old.prof", "--results=r", "--quiet"];
    args.extend(more);
    call(bench, &args)
}

/// The runs that would be made.
fn planned(bench: &Bench, more: &[&str]) -> Series {
    let mut args = vec!["--dry-run", "--format=json"];
    args.extend(more);
    parsed(&profile(bench, &args).expect_code(0))
}

/// Directory and document of the only profile that was run.
fn made(bench: &Bench) -> (SeriesDir, Series) {
    let dir = only_in(&bench.path("r"));
    let results = dir.read().unwrap();
    (dir, results)
}

fn notes(results: &Series) -> Vec<&str> {
    results.notes.iter().map(|n| n.text.as_str()).collect()
}

fn value<'r>(results: &'r Series, configuration: usize, name: &str) -> &'r str {
    let mut parameters = results.configurations[configuration].plan.parameters.iter();
    let found = parameters.find(|p| p.name == name);
    &found.unwrap_or_else(|| panic!("no {name}")).value
}

#[test]
fn a_rate_loop_measures_ten_rates_each_after_a_warm_up() {
    let text = "DEFAULTS { count = 4; directio = 0; workingset = 0; }
CONFIG rates {
  function = rateloop
  personality = open
  maxrate = 2000
  runtime = 10
  warmuptime = 2
}
";
    let bench = bench(text);
    let on_nothing = ["--target=null:?latency=1us", "--clock=virtual"];
    let listed = profile(&bench, &[&on_nothing[..], &["--dry-run"]].concat()).expect_code(0);
    let warmed = listed.stdout.matches("10s after 2s of warm-up").count();
    assert_eq!(warmed, 10, "{}", listed.stdout);
    profile(&bench, &on_nothing).expect_code(0);
    let (dir, results) = made(&bench);
    let runs = runs_of(&dir);
    assert_eq!(runs.len(), 10);
    for (i, run) in runs.iter().enumerate() {
        let rate = 200.0 * (i + 1) as f64;
        assert_eq!(
            results.configurations[i].name,
            format!("rates,eventrate={rate}")
        );
        // In virtual time, so that it depends on no machine.
        let measured = run.summary.ops_per_s;
        assert!(
            (measured / rate - 1.0).abs() < 0.01,
            "{measured} of {rate} ops/s"
        );
        assert!((run.window_s - 10.0).abs() < 0.01, "{}", run.window_s);
    }
}

#[test]
fn rates_without_a_limiter_are_said_to_have_no_effect() {
    let text = "CONFIG r { function = rateloop; personality = randomread; maxrate = 10; runtime = 1; \
                warmuptime = 0; }";
    let results = planned(&bench(text), &["--target=null"]);
    assert_eq!(results.configurations.len(), 10);
    assert_eq!(
        notes(&results),
        [
            "r: the workload randomread has no limiter, such as eventlimit, so that the event rate has \
          no effect"
        ]
    );
}

#[test]
fn a_memory_size_loop_reads_within_ten_working_sets() {
    let text = "DEFAULTS { runtime = 0.1; filesize = 640k; iosize = 8k; dir = d; }
CONFIG sizes { function = memsizeloop; personality = randomread; }
CONFIG kernel { function = segkpm; personality = randomread; nthreads = 2; }
";
    let bench = bench(text);
    profile(&bench, &[]).expect_code(0);
    let (dir, results) = made(&bench);
    let sizes: Vec<&str> = (0..20).map(|i| value(&results, i, "workingset")).collect();
    let expected: Vec<String> = (1..=10).map(|i| format!("{}k", 64 * i)).collect();
    assert_eq!(sizes[..10], expected[..]);
    assert_eq!(sizes[10..], expected[..]);
    let runs = runs_of(&dir);
    assert!(runs.iter().all(|r| r.summary.ops > 0));
    assert_eq!((runs[0].workers, runs[19].workers), (1, 2));
    let names: Vec<&str> = results
        .configurations
        .iter()
        .map(|c| c.name.as_str())
        .collect();
    assert_eq!(
        (names[0], names[19]),
        ("sizes,workingset=64k", "kernel,workingset=640k")
    );
}

/// As the first releases lay on disk: profiles, configurations and workloads side by side.
fn first_release() -> Bench {
    let bench = Bench::on_tmpfs();
    let text = "DEFAULTS {
\truntime = 60;
\tfilesystem = ufs;
\tdescription = \"nightly\";
\tnthreads = 3;
}

CONFIG {
\tsmall
\trandomread
\tsegkpm
}
";
    write(&bench, "profiles/nightly.prof", text);
    write(
        &bench,
        "config/small.conf",
        "function = generic;\npersonality = open;\ncount = 5;\ndirectio = 0;\nworkingset = 0;\n",
    );
    write(&bench, "workloads/open.f", OPEN);
    bench
}

#[test]
fn a_list_of_personalities_runs_with_the_files_beside_it() {
    let bench = first_release();
    let args = [
        "profile",
        "profiles/nightly.prof",
        "--time=50ms",
        "--set=filesize=1m",
        "--dir=d",
        "--results=r",
        "--quiet",
    ];
    let ended = call(&bench, &args).expect_code(0);
    let (dir, results) = made(&bench);
    let names: Vec<&str> = results
        .configurations
        .iter()
        .map(|c| c.name.as_str())
        .collect();
    assert_eq!(names, ["small", "randomread"]);
    let runs = runs_of(&dir);
    assert_eq!(
        runs.iter().map(|r| r.workers).collect::<Vec<_>>(),
        [3, 3],
        "a key of the defaults"
    );
    assert_eq!(runs[0].filesets[0].files, 5, "a key of its own file");
    assert_eq!(results.as_profile().unwrap().figures.not_run.len(), 1);
    let said = "not run: segkpm: `segkpm` is not a workload";
    assert!(ended.stdout.contains(said), "{}", ended.stdout);
}

#[test]
fn what_cannot_be_run_is_listed_wherever_the_runs_are() {
    let text = "DEFAULTS { runtime = 0.1; filesystem = one, two; dir = d-$filesystem; }
CONFIG lost { personality = filemicro_createfsyncrand; function = generic; }
CONFIG shell { personality = open; function = oltp_xanadu; }
CONFIG here { personality = open; count = 3; directio = 0; workingset = 0; }
";
    let bench = bench(text);
    let lost = "lost was not run: `filemicro_createfsyncrand` is not a workload";
    let shell = "shell was not run: the function `oltp_xanadu` is not known";
    let dry = profile(&bench, &["--dry-run"]).expect_code(0).stdout;
    for said in [lost, shell] {
        let said = format!("not run: {}", said.replacen(" was not run", "", 1));
        assert!(dry.contains(&said), "{dry}");
    }
    let ended = profile(&bench, &[]).expect_code(0);
    let (dir, results) = made(&bench);
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let page = std::fs::read_to_string(dir.path().join("comparison.html")).unwrap();
    for said in [lost, shell] {
        assert!(one_line(&ended.stdout).contains(said), "{}", ended.stdout);
        assert!(page.contains(said), "{said}");
    }
    let left = results.as_profile().unwrap().figures.not_run.iter();
    let left: Vec<&str> = left.map(|n| n.name.as_str()).collect();
    assert_eq!(left, ["lost", "shell"]);
    assert_eq!(results.runs.len(), 2);
    assert!(results.runs.iter().all(SeriesRun::is_valid));
    let shown = dir.path().display().to_string();
    let report = call(&bench, &["report", &shown]).expect_code(0).stdout;
    assert!(one_line(&report).contains(lost), "{report}");
    let twice = call(&bench, &["compare", &shown, &shown]).expect_code(0);
    assert_eq!(one_line(&twice.stdout).matches(lost).count(), 1);
}

#[test]
fn a_profile_with_nothing_left_to_run_is_refused() {
    let text = "CONFIG {\n  segkpm\n  workingset\n}\n";
    let said = profile(&bench(text), &[]).refusal();
    for (place, name) in [("old.prof:2:3", "segkpm"), ("old.prof:3:3", "workingset")] {
        let reason = format!("`{name}` is not a workload");
        assert!(said.contains(place) && said.contains(&reason), "{said}");
    }
    // What was asked for is left, and nothing of it can be run.
    let text = "CONFIG lost { personality = segkpm; }\nCONFIG here { personality = randomread; }\n";
    let said = profile(&bench(text), &["--only=lost"]).refusal();
    assert!(said.contains("`segkpm` is not a workload"), "{said}");
}

#[test]
fn clients_of_a_profile_are_checked_before_any_is_reached() {
    let run = "CONFIG f { personality = randomread; }\n";
    let said = |text: &str, more: &[&str]| profile(&bench(&format!("{text}{run}")), more).refusal();
    let clients = said("MULTICLIENT {\n\tclients = one, two*0;\n}\n", &[]);
    let place = "old.prof:2:12";
    assert!(
        clients.contains("the clients are no hosts: ") && clients.contains(place),
        "{clients}"
    );
    let twice = said("MULTICLIENT { clients = one, one; }\n", &[]);
    assert!(twice.contains("the host one is given twice"), "{twice}");
    // What would be run is listed without them.
    let text = format!("MULTICLIENT {{ targetpath = ./shared; clients = one, two; }}\n{run}");
    let bench = bench(&text);
    let results = planned(&bench, &[]);
    let note = "the clients of MULTICLIENT share the workers of each run";
    assert!(notes(&results).iter().any(|n| n.starts_with(note)));
    assert_eq!(
        results.configurations[0].plan.work_dir.dir,
        bench.path("shared")
    );
}

#[test]
fn keys_go_to_the_workloads_that_use_them_and_are_noted_where_none_does() {
    let text = "DEFAULTS {
  duration = 0.1
  operating_system = Solaris10
  directio = 0
}
CONFIG a {
  personality = open
  count = 4
  workingset = 8k
  memsize = 5m
  nthread = 2
}
";
    let results = planned(&bench(text), &["--target=null"]);
    assert_eq!(
        ["count", "workingset", "directio"].map(|name| value(&results, 0, name)),
        ["4", "8k", "0"]
    );
    let (semicolons, noted): (Vec<&str>, Vec<&str>) = notes(&results)
        .into_iter()
        .partition(|n| n.contains("semicolon"));
    assert_eq!(
        noted,
        [
            "a: the workload open has no parameter `memsize`, which has no effect",
            "a: the workload open has no parameter `nthread`, which has no effect; did you mean \
             `nthreads`?",
            "DEFAULTS: no workload of this profile has the parameter `operating_system`, which has \
             no effect"
        ]
    );
    assert_eq!(
        semicolons[..2],
        [
            "old.prof:2: `duration` has no semicolon behind its value",
            "old.prof:3: `operating_system` has no semicolon behind its value"
        ]
    );
}

#[test]
fn variables_that_a_workload_never_sets_come_from_profiles_or_from_the_command_line() {
    let text = "CONFIG a { personality = open; count = 4; runtime = 0.1; dir = d; }";
    let bench = bench(text);
    let said = profile(&bench, &[]).refusal();
    for name in ["workingset", "directio"] {
        let may = format!("a profile (`{name} = …;`) or --set {name}=… may set it");
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            said.contains(&format!("the variable `${name}` is never set")) && said.contains(&may),
            "{said}"
        );
    }
    assert!(!said.contains("`$count`"), "the profile sets it: {said}");
    let sets = ["--set=workingset=16k", "--set=directio=0"];
    profile(&bench, &sets).expect_code(0);
    let (_, results) = made(&bench);
    assert_eq!(value(&results, 0, "workingset"), "16k");
    // So it is for a run without a profile.
    let file = bench.path("open.f").display().to_string();
    let more = ["--set=count=2", "--time=50ms"];
    let run = bench.run_in_work(&file, &[&sets[..], &more[..]].concat());
    assert_eq!(run.result(0).filesets[0].files, 2);
    let unread = bench.run_in_work(&file, &[&sets[..], &more[..], &["--set=cached=1"]].concat());
    let unread = unread.refusal();
    assert!(
        unread.contains("the workload has no parameter `cached`"),
        "{unread}"
    );
    let shown = call(&bench, &["workloads", "show", &file])
        .expect_code(0)
        .stdout;
    assert!(
        shown.contains("count") && shown.contains("never set in the workload"),
        "{shown}"
    );
}
