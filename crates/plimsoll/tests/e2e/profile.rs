//! Profiles of Filebench, through the program: on nothing in virtual time, and on real directories.

use crate::common::schema::faults;
use crate::common::series::{only_in, parsed, run_of, runs_of};
use crate::common::{Bench, Ended, tree};
use plimsoll_results::{Configuration, Document, Series, SeriesDir, SeriesState, Verdict};
use serde_json::Value;

/// A short profile on a target that does nothing.
const ON_NOTHING: [&str; 5] = [
    "profile",
    "study.prof",
    "--filesystem=n=null",
    "--quiet",
    "--time=100ms",
];

const SMALL: &str = "DEFAULTS {
  runtime = 0.3;
  filesystem = ext4, xfs;
  dir = files-$filesystem;
  stats = stats;
  description = \"two, side by side\";
  nthreads = 2;
}
CONFIG reading {
  function = generic;
  personality = randomread;
  filesize = 256k;
  iosize = 4k, 16k;
}
CONFIG making {
  function = generic;
  personality = mine;
  nfiles = 12;
}
";

/// A workload beside the profile.
const MINE: &str = "set $dir=/tmp
set $nfiles=3
set $nthreads=1
define fileset name=s,path=$dir,entries=$nfiles,size=4k,dirwidth=8,prealloc
define process name=p { thread name=t,memsize=1m,instances=$nthreads {
  flowop statfile name=stat1,filesetname=s
} }
";

fn bench(profile: &str) -> Bench {
    let bench = Bench::on_tmpfs();
    std::fs::write(bench.path("study.prof"), profile).unwrap();
    std::fs::write(bench.path("mine.f"), MINE).unwrap();
    bench
}

fn call(bench: &Bench, args: &[&str]) -> Ended {
    Ended::of(bench.plimsoll(args))
}

/// A profile of Filebench with the keys that its author's machine had.
fn as_shipped(bench: &Bench, name: &str) -> String {
    let text = call(bench, &["profile", name, "--print-source"])
        .expect_code(0)
        .stdout;
    let own = "DEFAULTS {\n\tfilesystem = nfsv3_5210;\n        dir = /home/me/filebench;\n        \
               stats = /home/me/filemicro/stats;\n";
    let file = format!("{name}.prof");
    std::fs::write(bench.path(&file), text.replace("DEFAULTS {\n", own)).unwrap();
    file
}

/// Series directory of the only profile in `stats`.
#[track_caller]
fn made(bench: &Bench) -> SeriesDir {
    only_in(&bench.path("stats"))
}

/// Whether every requested run was measured.
fn is_complete(profile: &Series) -> bool {
    let requested = profile.as_profile().unwrap().requested_runs();
    profile.measured().count() as u64 == requested
}

/// A parameter's value in the Plan of a configuration.
fn parameter(profile: &Series, configuration: usize, name: &str) -> String {
    let parameters = &profile.configurations[configuration].plan.parameters;
    let found = parameters.iter().find(|p| p.name == name);
    found.unwrap_or_else(|| panic!("no {name}")).value.clone()
}

#[test]
fn profiles_of_filebench_run_as_they_stand() {
    for (name, runs, not_run) in [
        ("fileio", 14, 0),
        ("filemacro", 8, 0),
        // Nobody has the text of filemicro_createfsyncrand.
        ("filemicro", 18, 1),
    ] {
        let bench = Bench::on_tmpfs();
        let file = as_shipped(&bench, name);
        let more = [
            "--target=null:?latency=5ms",
            "--clock=virtual",
            "--time=50ms",
        ];
        let mut args = vec!["profile", &file, "--results=r", "--quiet", "--format=json"];
        args.extend(more);
        let ended = call(&bench, &args).expect_code(0);
        let profile = parsed(&ended);
        let skipped = profile.as_profile().unwrap().figures.not_run.len();
        assert_eq!(
            (profile.configurations.len(), profile.runs.len(), skipped),
            (runs, runs, not_run),
            "{name}"
        );
        assert!(is_complete(&profile), "{name}");
        let dir = only_in(&bench.path("r"));
        for (run, configuration) in runs_of(&dir).iter().zip(&profile.configurations) {
            assert!(run.summary.ops > 0, "{name}, {}", configuration.name);
            assert_eq!(run.workload, configuration.plan.name);
        }
    }
}

#[test]
fn keys_of_a_profile_arrive_in_the_plans_of_its_runs() {
    let bench = Bench::on_tmpfs();
    let file = as_shipped(&bench, "filemacro");
    let args = [
        "profile",
        &file,
        "--target=null",
        "--dry-run",
        "--format=json",
    ];
    let ended = call(&bench, &args).expect_code(0);
    let results = parsed(&ended);
    let oltp = results
        .configurations
        .iter()
        .position(|c| c.name == "large_db_oltp_8k_uncached")
        .unwrap();
    for (name, value) in [
        ("iosize", "8k"),
        ("directio", "1"),
        ("nshadows", "200"),
        ("filesize", "1g"),
    ] {
        assert_eq!(parameter(&results, oltp, name), value, "{name}");
    }
    // An older name of the parameter.
    assert_eq!(parameter(&results, 0, "meanappendsize"), "16k");
    let figures = results.as_profile().unwrap().figures;
    assert_eq!(figures.description, "whole applications");
    let no_effect = results
        .notes
        .iter()
        .filter(|n| n.text.contains("`cached`, which has no effect"));
    assert_eq!(no_effect.count(), 4);
    assert_eq!(
        bench.left_but(&["filemacro.prof"]),
        Vec::<String>::new(),
        "nothing was run"
    );
}

#[test]
fn several_file_systems_are_measured_and_compared() {
    let bench = bench(SMALL);
    let ended = call(&bench, &["profile", "study.prof"]).expect_code(0);
    let dir = made(&bench);
    let results = dir.read().unwrap();
    let written: Value = serde_json::from_str(&results.to_json()).unwrap();
    let schema = call(&bench, &["docs", "schema", "series"])
        .expect_code(0)
        .stdout;
    let schema: Value = serde_json::from_str(&schema).unwrap();
    assert_eq!(faults(&schema, &written), [""; 0]);
    let run_on: Vec<(&str, &str)> = results
        .configurations
        .iter()
        .map(|c| (c.name.as_str(), c.filesystem.as_deref().unwrap()))
        .collect();
    assert_eq!(
        run_on,
        [
            ("reading,iosize=4k", "ext4"),
            ("reading,iosize=4k", "xfs"),
            ("reading,iosize=16k", "ext4"),
            ("reading,iosize=16k", "xfs"),
            ("making", "ext4"),
            ("making", "xfs")
        ]
    );
    assert!(results.runs.iter().all(|run| run.verdict == Verdict::Valid));
    let runs = runs_of(&dir);
    for (run, (_, filesystem)) in runs.iter().zip(run_on) {
        assert_eq!(run.workers, 2, "a default of the profile");
        assert!((run.window_s - 0.3).abs() < 0.25, "{}", run.window_s);
        let work = run.environment.work_dir.as_ref().unwrap();
        let expected = format!("files-{filesystem}");
        assert!(work.path.ends_with(&expected), "{}", work.path.display());
    }
    assert_eq!(runs[4].filesets[0].files, 12);
    assert!(ended.stdout.contains("A: ext4: profile study") && ended.stdout.contains("B: xfs"));
    let page = std::fs::read_to_string(dir.path().join("comparison.html")).unwrap();
    assert!(page.contains("reading,iosize=16k"));
    for system in ["ext4", "xfs"] {
        let (files, _) = tree(&bench.path(&format!("files-{system}")));
        assert!(files.is_empty(), "{files:?}");
    }
}

#[test]
fn the_figures_of_a_comparison_are_those_of_the_runs() {
    let bench = bench(SMALL);
    let on = [
        "--filesystem=fast=null:?latency=1ms",
        "--filesystem=slow=null:?latency=4ms",
    ];
    let mut args = vec!["profile", "study.prof", "--clock=virtual", "--quiet"];
    args.extend(on);
    call(&bench, &args).expect_code(0);
    let dir = made(&bench);
    let shown = dir.path().display().to_string();
    let ended = call(&bench, &["compare", &shown, &shown, "--format=json"]).expect_code(0);
    let comparison: Value = serde_json::from_str(&ended.stdout).unwrap();
    let results = dir.read().unwrap();
    let mut seen = 0;
    for row in comparison["rows"].as_array().unwrap() {
        if row["metric"] != "ops_per_s" {
            continue;
        }
        for (side, system) in [(0, "fast"), (1, "slow"), (2, "fast"), (3, "slow")] {
            let is_it = |c: &Configuration| {
                row["operation"] == c.name.as_str() && c.filesystem.as_deref() == Some(system)
            };
            let number = results.configurations.iter().position(is_it).unwrap();
            let run = results.runs_of(number as u32).next().unwrap();
            let measured = run_of(&dir, run).summary.ops_per_s;
            assert_eq!(row["values"][side]["mean"].as_f64(), Some(measured));
            seen += 1;
        }
        let change = row["values"][1]["change"].as_f64().unwrap();
        assert!(
            (change + 0.75).abs() < 0.05,
            "four times the latency: {change}"
        );
    }
    assert_eq!(seen, 12);
    // Without a name, a condition is about every configuration.
    let ended = call(
        &bench,
        &["compare", &shown, &shown, "--fail-if=mean > +100%"],
    )
    .expect_code(3);
    let lines = ended.stderr.lines().filter(|l| l.contains("slow"));
    assert_eq!(lines.count(), 6, "{}", ended.stderr);
}

#[test]
fn repeated_runs_say_whether_a_difference_is_real() {
    let bench = bench(SMALL);
    let mut args = vec![
        "profile",
        "study.prof",
        "--clock=virtual",
        "--quiet",
        "--repeat=4",
    ];
    args.extend([
        "--only=making",
        "--filesystem=a=null:?latency=1ms",
        "--filesystem=b=null:?latency=2ms",
    ]);
    let ended = call(&bench, &args).expect_code(0);
    assert!(
        ended.stdout.contains("the difference is real"),
        "{}",
        ended.stdout
    );
    let dir = made(&bench);
    let listed = dir.read().unwrap().runs;
    let of: Vec<(u32, u64)> = listed.iter().map(|r| (r.configuration, r.seed)).collect();
    let expected = [0, 1].map(|n| [1, 2, 3, 4].map(|seed| (n, seed)));
    assert_eq!(of, expected.concat());
    let seeds: Vec<u64> = runs_of(&dir).iter().map(|run| run.seed).collect();
    assert_eq!(seeds, [1, 2, 3, 4, 1, 2, 3, 4]);
}

#[test]
fn a_run_that_fails_is_shown_and_the_next_one_follows() {
    let text = "DEFAULTS { runtime = 0.1; dir = d; stats = stats; }
CONFIG wrong { personality = broken; }
CONFIG short { personality = scarce; }
CONFIG right { personality = mine; }
";
    let bench = bench(text);
    let broken = "set $dir=/tmp
define fileset name=s,path=$dir,entries=2,size=4k,dirwidth=8,prealloc
define process name=p { thread name=t,memsize=1m {
  flowop openfile name=open1,filesetname=s,fd=1
} }
";
    std::fs::write(bench.path("broken.f"), broken).unwrap();
    let scarce = broken.replace(
        "openfile name=open1,filesetname=s,fd=1",
        "deletefile name=del1,filesetname=s } thread name=u,memsize=1m { flowop delay name=d,value=1",
    );
    std::fs::write(bench.path("scarce.f"), scarce).unwrap();
    let ended = call(&bench, &["profile", "study.prof"]).expect_code(1);
    let results = made(&bench).read().unwrap();
    let verdicts: Vec<Verdict> = results.runs.iter().map(|run| run.verdict).collect();
    assert_eq!(
        verdicts,
        [Verdict::Failed, Verdict::Invalid, Verdict::Valid]
    );
    assert_eq!(results.state, SeriesState::Failed);
    assert_eq!(results.stop_reason.unwrap().text, "1 run failed");
    assert!(ended.stdout.contains("local/wrong: "), "{}", ended.stdout);
}

#[test]
fn what_would_be_refused_is_refused_before_anything_is_run() {
    let bench = bench(SMALL);
    std::fs::create_dir(bench.path("files-xfs")).unwrap();
    std::fs::write(bench.path("files-xfs/thesis.tex"), "years of work").unwrap();
    let said = call(&bench, &["profile", "study.prof"]).refusal();
    assert!(
        said.contains("making on xfs: ") && said.contains("files-xfs"),
        "{said}"
    );
    assert!(!bench.path("stats").exists() && !bench.path("files-ext4").exists());
    let listed = call(&bench, &["profile", "study.prof", "--dry-run"]).expect_code(2);
    assert!(
        listed.stdout.contains("6  making on xfs"),
        "{}",
        listed.stdout
    );
    assert!(listed.stderr.contains("refused: "), "{}", listed.stderr);
}

#[test]
fn slips_of_the_hand_on_the_command_line_are_refused() {
    let bench = bench(SMALL);
    for (args, said) in [
        (
            &["--only=reeding"][..],
            "has no configuration `reeding`: did you mean `reading`?",
        ),
        (
            &["--set=nthread=3"][..],
            "no workload of the profile has the parameter `nthread`",
        ),
        (
            &["--filesystem=xfs"][..],
            "expected NAME=DIRECTORY or NAME=URL",
        ),
        (&["--dir=d"][..], "are the same directory"),
        (&["--repeat=0"][..], "invalid value '0'"),
        (
            &["--results=files-xfs/r"][..],
            "--results chooses another place",
        ),
    ] {
        let mut all = vec!["profile", "study.prof"];
        all.extend(args);
        let message = call(&bench, &all).refusal();
        assert!(message.contains(said), "{args:?}: {message}");
    }
    let near = call(&bench, &["profile", "filemakro"]).refusal();
    assert!(near.contains("did you mean `filemacro`?"), "{near}");
    let none = call(&bench, &["profile", "none.prof"]).refusal();
    assert!(none.contains("cannot read the profile none.prof"), "{none}");
}

#[test]
fn a_wrong_value_names_the_configuration_and_the_key() {
    let bench = bench(&SMALL.replace("nfiles = 12", "nfiles = many"));
    let said = call(&bench, &["profile", "study.prof"]).refusal();
    assert!(
        said.contains("study.prof:15: the configuration making"),
        "{said}"
    );
    assert!(said.contains("nfiles"), "{said}");
}

#[test]
fn reports_are_made_of_a_profile_as_of_its_runs() {
    let bench = bench(SMALL);
    let printed = call(&bench, &ON_NOTHING).expect_code(0).stdout;
    let shown = made(&bench).path().display().to_string();
    let again = call(&bench, &["report", &shown.replace("/study", "//study")])
        .expect_code(0)
        .stdout;
    let same = |text: &str| {
        text.trim()
            .lines()
            .take(6)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(same(&printed), same(&again));
    let csv = call(&bench, &["report", &shown, "--format=csv"])
        .expect_code(0)
        .stdout;
    assert!(csv.contains("randomread") && csv.contains("stat1"), "{csv}");
    let page = call(&bench, &["report", &shown, "--format=html"])
        .expect_code(0)
        .stdout;
    assert!(page.contains("4 reports"), "the profile and three runs");
    let json = call(&bench, &["report", &shown, "--format=json"])
        .expect_code(0)
        .stdout;
    assert!(is_complete(&serde_json::from_str(&json).unwrap()));
}

#[test]
fn ranks_make_the_runs_of_a_profile_together() {
    let bench = bench(SMALL);
    let args = [
        "profile",
        "study.prof",
        "--only=making",
        "--processes=2",
        "--repeat=2",
        "--time=200ms",
    ];
    call(&bench, &args).expect_code(0);
    let dir = made(&bench);
    assert_eq!(dir.read().unwrap().ranks, 2);
    let ranks: Vec<u32> = runs_of(&dir).iter().map(|run| run.ranks).collect();
    assert_eq!(ranks, [2; 4]);
}
