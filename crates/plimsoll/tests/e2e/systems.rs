//! Simulated systems: their list, their text, and what happens to them.

use crate::common::series::{self, cut, edit, only, resume, run_of};
use crate::common::{Bench, Ended, schema};
use plimsoll_results::{SeriesState, Verdict};
use serde_json::Value;

/// Ten servers of 1 ms, two at each of five nodes, and 100 µs of network.
pub const FARM: &str = "\
title = \"Five nodes\"

[node.server]
count = 5
when_down = \"fail\"

[link.network]
latency = \"50us\"

[station.processor]
node = \"server\"
servers = 2
service = \"1ms\"

[path]
serve = [\"network.request\", { node = \"server\", choose = \"round_robin\" }, \"processor\", \"network.reply\"]
data_read = [\"serve\"]
data_write = [\"serve\"]
metadata_read = [\"serve\"]
metadata_change = [\"serve\"]
commit = [\"serve\"]
";

fn farm(bench: &Bench) -> &'static str {
    std::fs::write(bench.path("farm.toml"), FARM).unwrap();
    "--target=sim:./farm.toml"
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

#[test]
fn the_list_has_every_system_and_show_prints_it_as_it_is() {
    let bench = Bench::on_tmpfs();
    let call = |args: &[&str]| Ended::of(bench.plimsoll(args)).expect_code(0).stdout;
    let text = call(&["systems", "list"]);
    let list = json(&call(&["systems", "list", "--format=json"]));
    let list = list.as_array().unwrap();
    assert!(list.len() >= 3, "{list:?}");
    let form = json(&call(&["docs", "schema", "system"]));
    for system in list {
        let name = system["name"].as_str().unwrap();
        let title = system["title"].as_str().unwrap();
        let is_listed = text.contains(&format!("{name}  ")) && text.contains(title);
        assert!(is_listed, "{text}");
        let shown = call(&["systems", "show", name]);
        let is_published = !title.contains("no published system");
        assert_eq!(shown.contains("# P"), is_published, "{shown}");
        assert!(shown.contains("source = \"A\""), "{shown}");
        let read: Value = toml::from_str(&shown).unwrap();
        assert_eq!(schema::faults(&form, &read), [""; 0], "{name}");
        std::fs::write(bench.path("mine.toml"), &shown).unwrap();
        assert_eq!(call(&["systems", "show", "./mine.toml"]), shown);
    }
    let wrong: Value = toml::from_str("title = 1\npath = {}\nstations = 2\n").unwrap();
    assert_eq!(schema::faults(&form, &wrong).len(), 2);
}

#[test]
fn events_count_from_the_beginning_of_the_run() {
    let bench = Bench::on_tmpfs();
    let target = farm(&bench);
    let run = |events: &[&str]| {
        let args = [
            target,
            "--load=20",
            "--warmup=2s",
            "--time=4s",
            "--on-error=count",
        ];
        bench.run("vda", &[&args[..], events].concat())
    };
    let sound = run(&[]).result(0);
    assert_eq!(sound.validity.verdict, Verdict::Valid);
    // Both events, at 0.5 s and 1 s, are in the warm-up of 2 s, and the second event restores the speed.
    let early = run(&["--event=500ms slow server 100", "--event=1s slow server 1"]).result(0);
    assert!(early.summary.mean_ms < 1.1 * sound.summary.mean_ms);
    let late = run(&["--event=4s slow server.2 10"]).result(0);
    // In half of the measured window, the slow server makes one operation in five take 9 ms more.
    let more = late.summary.mean_ms - sound.summary.mean_ms;
    assert!((0.5..1.6).contains(&more), "{more} ms");
    assert_eq!(late.target.url, "sim:./farm.toml?event=4s,slow,server.2,10");
    let down = run(&["--event=3s down server.2", "--event=4s up server.2"]).result(3);
    let errors: u64 = down.operations.iter().map(|o| o.errors).sum();
    // A fifth of the 200 operations of that second.
    assert!((30..=50).contains(&errors), "{errors}");
}

#[test]
fn events_of_systems_are_checked() {
    let bench = Bench::on_tmpfs();
    let bad = FARM.replace("\"network.request\", {", "\"net.request\", { ");
    std::fs::write(bench.path("bad.toml"), bad).unwrap();
    for row in [
        "null: | 1s down server => needs a simulated system (sim:SYSTEM)",
        "sim:edge-32 | 1s fall server => expected TIME down WHAT, TIME up WHAT or TIME slow",
        "sim:edge-32?event=1s,fall,server => expected TIME down WHAT",
        "sim:edge-32?latency=1ms => unknown option: expected event=",
        "sim:something => is not a built-in system: expected edge-32, ",
        // All faults are reported at once.
        "sim:./bad.toml | 2s up server.5 => `net` is not a link",
        "sim:./bad.toml | 2s up server.5 => the numbers of `server` are",
        "sim:./bad.toml | 2s up server.5 => [--event:1:7]",
    ] {
        let (given, expected) = row.split_once(" => ").unwrap();
        let mut given = given.split(" | ");
        let mut args = vec![format!("--target={}", given.next().unwrap())];
        args.extend(given.map(|event| format!("--event={event}")));
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let said = bench.run("vda", &args).refusal();
        assert!(said.contains(expected), "{row}: {said}");
    }
}

/// A curve of two points on the farm.
fn curve_of_the_farm(bench: &Bench, more: &[&str]) -> Ended {
    let target = farm(bench);
    let curve = ["curve", "vda", "--load=10,20", target, "--quiet"];
    let short = ["--warmup=0s", "--time=2s", "--results=results"];
    let args = [&curve[..], &short, more].concat();
    Ended::of(bench.plimsoll(args))
}

#[test]
fn a_curve_is_of_one_system_from_its_first_point_to_its_last() {
    let bench = Bench::on_tmpfs();
    curve_of_the_farm(&bench, &[]).expect_code(0);
    let dir = only(&bench);
    let read = || dir.read().unwrap();
    let whole = read();
    let target = whole.first_target();
    let file = bench.path("farm.toml").canonicalize().unwrap();
    assert_eq!(target.url, format!("sim:{}", file.display()));
    assert_eq!(&run_of(&dir, &whole.runs[0]).target, target);
    assert_eq!(target.system.as_ref().map(String::len), Some(16));

    // `resume` from another working directory uses the same system file, because the recorded path is absolute.
    let elsewhere = bench.path("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let resume = |jobs: &str| {
        let mut command = bench.plimsoll(["resume", "--quiet", jobs]);
        command.arg(dir.path()).current_dir(&elsewhere);
        Ended::of(command)
    };
    cut(&dir, 1);
    resume("--jobs=1").expect_code(0);
    assert_eq!(read().runs[1].mean_ms, whole.runs[1].mean_ms);

    // `resume` refuses a system file whose text has changed, even if only a comment was added.
    cut(&dir, 1);
    let before = read();
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{text}\n# Edited.\n")).unwrap();
    for jobs in ["--jobs=1", "--jobs=2"] {
        let refused = resume(jobs).refusal();
        let expected = format!("sim:{} has changed since the first run", file.display());
        assert!(refused.contains(&expected), "{refused}");
        assert_eq!(read(), before);
    }
    std::fs::write(&file, text).unwrap();
    resume("--jobs=2").expect_code(0);
}

#[test]
fn a_built_in_system_that_differs_is_refused_with_the_version_that_has_it() {
    let bench = Bench::on_tmpfs();
    let curve = "curve vda --load=10,20 --target=sim:flash-2-replicas --warmup=0s --time=2s \
                 --results=results --quiet";
    Ended::of(bench.plimsoll(curve.split_whitespace())).expect_code(0);
    let dir = only(&bench);
    cut(&dir, 1);
    let program = edit(&dir, |curve| {
        curve.configurations[0].target.system = Some("0123456789abcdef".into());
    })
    .program;
    let refused = resume(&bench, &dir, &[]).refusal();
    let expected = format!(
        "the built-in system `flash-2-replicas` differs in this version of Plimsoll: resume with version \
         {}, or start a new measurement",
        program.version
    );
    assert!(refused.contains(&expected), "{refused}");
}

#[test]
fn a_system_that_is_edited_between_two_points_ends_the_curve() {
    let bench = Bench::on_tmpfs();
    let file = bench.path("farm.toml");
    let edit = format!("--event=after sh echo '# Edited.' >> {}", file.display());
    let ended = curve_of_the_farm(&bench, &[&edit, "--format=json"]);
    let curve = series::parsed(&ended.expect_code(1));
    assert_eq!((curve.runs.len(), curve.state), (1, SeriesState::Failed));
    let reason = curve.stop_reason.as_ref().unwrap();
    assert_eq!(reason.code, "refused");
    assert!(reason.text.contains("farm.toml has changed"), "{reason:?}");
}

/// The farm with a cache of this size for what is read.
fn cached_farm(bench: &Bench, bytes: &str) -> &'static str {
    let cache = format!("[cache.memory]\nbytes = \"{bytes}\"\nblock = \"1m\"\nmiss = \"serve\"\n");
    let cached = FARM
        .replace("[path]", &format!("{cache}\n[path]"))
        .replace("data_read = [\"serve\"]", "data_read = [\"memory\"]");
    std::fs::write(bench.path("cached.toml"), cached).unwrap();
    "--target=sim:./cached.toml"
}

/// Whether the latest run notes that the cache is larger than what it caches.
fn is_cache_noted(bench: &Bench) -> bool {
    let run = bench.results().last().unwrap().read().unwrap();
    let mut notes = run.notes.iter();
    notes.any(|n| n.text.contains("the cache `memory` is larger"))
}

#[test]
fn a_cache_that_holds_everything_is_noted() {
    let bench = Bench::on_tmpfs();
    let target = cached_farm(&bench, "100g");
    for (load, noted) in [("--load=2", true), ("--load=10", false)] {
        let args = [target, "--time=1s", "--warmup=0s", load];
        bench.run("vda", &args).expect_code(0);
        assert_eq!(is_cache_noted(&bench), noted, "{load}");
    }
}

/// The objects of a pattern are what its runs work on: those that the run creates, if a stonewall does
/// not end their creation early, and those that an earlier run left.
#[test]
fn a_cache_is_compared_with_the_objects_of_a_pattern() {
    let bench = Bench::on_tmpfs();
    // 40 objects of 1 MiB, and a file of 40 MiB.
    let runs = [
        "-P=20 -D=2 -I=5 -R=1 -S=1m",
        "-P=20 -D=2 -I=5 -R=1 -S=1m -2 --start-item=0",
        "--pattern=ior-easy --transfers=20 --transfer-size=2m",
    ];
    for (cache, noted) in [("10m", false), ("100m", true)] {
        let target = cached_farm(&bench, cache);
        for run in runs {
            let first = ["md", target, "--results=results"];
            let command = bench.plimsoll(first.into_iter().chain(run.split(' ')));
            Ended::of(command).expect_code(0);
            assert_eq!(is_cache_noted(&bench), noted, "{cache} {run:?}");
        }
    }
}
