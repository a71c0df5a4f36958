//! `profile` with profiles, workloads and configuration keys of Filebench 1.x.

use crate::common::series::{only_in, parsed, runs_of};
use crate::common::{Bench, Ended};
use plimsoll_results::{Series, SeriesDir, SeriesRun};

/// A workload of Filebench 1.x, which reads variables that only the profile sets, such as `$count`.
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

/// Directory and `series.json` of the only profile in the bench's results.
fn made(bench: &Bench) -> (SeriesDir, Series) {
    let dir = only_in(&bench.path("r"));
    let results = dir.read().unwrap();
    (dir, results)
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
    let args =
        "profile profiles/nightly.prof --time=50ms --set=filesize=1m --dir=d --results=r --quiet";
    let ended = Ended::of(bench.plimsoll(args.split(' '))).expect_code(0);
    let (dir, results) = made(&bench);
    let names = results.configurations.iter().map(|c| c.name.as_str());
    assert_eq!(names.collect::<Vec<_>>(), ["small", "randomread"]);
    let runs = runs_of(&dir);
    // `nthreads` of the block DEFAULTS sets the number of workers in every configuration.
    let workers = runs.iter().map(|r| r.workers);
    assert_eq!(workers.collect::<Vec<_>>(), [3, 3]);
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
        // A page shows words in backticks as code.
        let said = said.replacen('`', "<code>", 1).replacen('`', "</code>", 1);
        assert!(page.contains(&said), "{said}");
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
fn clients_of_a_profile_are_checked_before_any_is_reached() {
    let run = "CONFIG f { personality = randomread; }\n";
    let said = |text: &str, more: &[&str]| profile(&bench(&format!("{text}{run}")), more).refusal();
    let clients = said("MULTICLIENT {\n\tclients = one, two*0;\n}\n", &[]);
    for part in ["the clients are no hosts: ", "old.prof:2:12"] {
        assert!(clients.contains(part), "{clients}");
    }
    let twice = said("MULTICLIENT { clients = one, one; }\n", &[]);
    assert!(twice.contains("the host one is given twice"), "{twice}");
    // `profile --dry-run` lists the planned runs without a connection to the clients of MULTICLIENT.
    let text = format!("MULTICLIENT {{ targetpath = ./shared; clients = one, two; }}\n{run}");
    let bench = bench(&text);
    let results = parsed(&profile(&bench, &["--dry-run", "--format=json"]).expect_code(0));
    let note = "the clients of MULTICLIENT share the workers of each run";
    assert!(results.notes.iter().any(|n| n.text.starts_with(note)));
    let work_dir = &results.configurations[0].plan.work_dir.dir;
    assert_eq!(*work_dir, bench.path("shared"));
}
