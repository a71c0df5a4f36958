//! Profiles of Filebench, through the program: on nothing in virtual time, and on real directories.

use crate::common::schema::faults;
use crate::common::series::{only_in, parsed, run_of, runs_of};
use crate::common::{Bench, Ended, tree};
use plimsoll_results::{Configuration, Document, Series, SeriesDir, SeriesState, Verdict};
use serde_json::Value;

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
        let args = "--results=r --quiet --format=json --target=null:?latency=5ms&clock=virtual --time=50ms";
        let args: Vec<&str> = ["profile", &file]
            .into_iter()
            .chain(args.split(' '))
            .collect();
        let ended = call(&bench, &args).expect_code(0);
        let profile = parsed(&ended);
        let skipped = profile.as_profile().unwrap().figures.not_run.len();
        let found = (profile.configurations.len(), profile.runs.len(), skipped);
        assert_eq!(found, (runs, runs, not_run), "{name}");
        assert!(is_complete(&profile), "{name}");
        let dir = only_in(&bench.path("r"));
        for (run, configuration) in runs_of(&dir).iter().zip(&profile.configurations) {
            assert!(run.summary.ops > 0, "{name}, {}", configuration.name);
            assert_eq!(run.workload, configuration.plan.name);
        }
    }
}

#[test]
fn several_file_systems_are_measured_and_compared() {
    let bench = bench(SMALL);
    let ended = call(&bench, &["profile", "study.prof"]).expect_code(0);
    let dir = made(&bench);
    let results = dir.read().unwrap();
    let written: Value = serde_json::from_str(&results.to_json()).unwrap();
    let schema = call(&bench, &["docs", "schema", "series"]).expect_code(0);
    let schema: Value = serde_json::from_str(&schema.stdout).unwrap();
    assert_eq!(faults(&schema, &written), [""; 0]);
    let filesystem = |c: &Configuration| c.filesystem.clone().unwrap();
    let run_on = results.configurations.iter();
    let run_on: Vec<String> = run_on
        .map(|c| format!("{} on {}", c.name, filesystem(c)))
        .collect();
    let names = ["reading,iosize=4k", "reading,iosize=16k", "making"];
    let expected = names.map(|name| ["ext4", "xfs"].map(|on| format!("{name} on {on}")));
    assert_eq!(run_on, expected.concat());
    assert!(results.runs.iter().all(|run| run.verdict == Verdict::Valid));
    let runs = runs_of(&dir);
    for (run, configuration) in runs.iter().zip(&results.configurations) {
        assert_eq!(run.workers, 2, "a default of the profile");
        assert!((run.window_s - 0.3).abs() < 0.25, "{}", run.window_s);
        let work = run.environment.work_dir.as_ref().unwrap();
        let expected = format!("files-{}", filesystem(configuration));
        assert!(work.path.ends_with(&expected), "{}", work.path.display());
    }
    assert_eq!(runs[4].filesets[0].files, 12);
    assert!(ended.stdout.contains("ext4: profile study") && ended.stdout.contains("xfs: profile"));
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
    let first = ["profile", "study.prof", "--quiet"];
    let fast = "--filesystem=fast=null:?latency=1ms&clock=virtual";
    let slow = "--filesystem=slow=null:?latency=4ms&clock=virtual";
    call(&bench, &[&first[..], &[fast, slow]].concat()).expect_code(0);
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
        // The second target has four times the latency, so the rate falls by three quarters.
        assert!((change + 0.75).abs() < 0.05, "{change}");
    }
    assert_eq!(seen, 12);
    // Without a name, a condition is about every configuration.
    let condition = "--fail-if=mean > +100%";
    let ended = call(&bench, &["compare", &shown, &shown, condition]).expect_code(3);
    let lines = ended.stderr.lines().filter(|l| l.contains("slow"));
    assert_eq!(lines.count(), 6, "{}", ended.stderr);
}

#[test]
fn repeated_runs_say_whether_a_difference_is_real() {
    let bench = bench(SMALL);
    let args = "profile study.prof --quiet --repeat=4 --only=making \
                --filesystem=a=null:?latency=1ms&clock=virtual \
                --filesystem=b=null:?latency=2ms&clock=virtual";
    let ended = call(&bench, &args.split_whitespace().collect::<Vec<_>>()).expect_code(0);
    let real = "the difference is real";
    assert!(ended.stdout.contains(real), "{}", ended.stdout);
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
    let expected = [Verdict::Failed, Verdict::Invalid, Verdict::Valid];
    assert_eq!(verdicts, expected);
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
    let is_placed = said.contains("making on xfs: ") && said.contains("files-xfs");
    assert!(is_placed, "{said}");
    assert!(!bench.path("stats").exists() && !bench.path("files-ext4").exists());
    let listed = call(&bench, &["profile", "study.prof", "--dry-run"]).expect_code(2);
    let line = "6  making on xfs";
    assert!(listed.stdout.contains(line), "{}", listed.stdout);
    assert!(listed.stderr.contains("refused: "), "{}", listed.stderr);
}

#[test]
fn slips_of_the_hand_on_the_command_line_are_refused() {
    let bench = bench(SMALL);
    for row in [
        "study.prof --only=reeding => did you mean `reading`?",
        "study.prof --set=nthread=3 => no workload of the profile has the parameter `nthread`",
        "study.prof --filesystem=xfs => expected NAME=DIRECTORY or NAME=URL",
        "study.prof --dir=d => are the same directory",
        "study.prof --results=files-xfs/r => --results chooses another place",
        "filemakro => did you mean `filemacro`?",
        "none.prof => cannot read the profile none.prof",
    ] {
        let (args, said) = row.split_once(" => ").unwrap();
        let args: Vec<&str> = ["profile"].into_iter().chain(args.split(' ')).collect();
        let message = call(&bench, &args).refusal();
        assert!(message.contains(said), "{row}: {message}");
    }
}

#[test]
fn a_wrong_value_names_the_configuration_and_the_key() {
    let bench = bench(&SMALL.replace("nfiles = 12", "nfiles = many"));
    let said = call(&bench, &["profile", "study.prof"]).refusal();
    let place = "study.prof:15: the configuration making";
    assert!(said.contains(place), "{said}");
    assert!(said.contains("nfiles"), "{said}");
}
