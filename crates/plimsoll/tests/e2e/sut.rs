//! `plimsoll results sut`: the description of the system under test through the program.

use crate::common::{Bench, Ended};
use plimsoll_report::disclosure::Sut;
use serde_json::Value;
use std::path::Path;

fn sut(bench: &Bench, args: &[&str]) -> Ended {
    Ended::of(bench.plimsoll(["results", "sut"].iter().chain(args)))
}

#[test]
fn init_describes_this_machine() {
    let bench = Bench::on_tmpfs();
    let dir = bench.root().to_str().unwrap();
    let ended = sut(&bench, &["init", "--dir", dir]).expect_code(0);
    assert_eq!(ended.stdout, "wrote sut.toml; complete it by hand\n");
    let text = std::fs::read_to_string(bench.path("sut.toml")).unwrap();
    let sut = Sut::parse(&text, "sut.toml").unwrap();
    assert_eq!(sut.filesystems.kind, "tmpfs");
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    assert!(
        sut.software
            .iter()
            .any(|s| s.version.contains(kernel.trim()))
    );
    let memory = std::fs::read_to_string("/proc/meminfo").unwrap();
    let kib: f64 = memory
        .lines()
        .find_map(|l| {
            l.strip_prefix("MemTotal:")?
                .trim()
                .split(' ')
                .next()?
                .parse()
                .ok()
        })
        .unwrap();
    assert!((sut.memory[0].size_gib - kib / f64::from(1 << 20)).abs() <= 0.01);
    let processors = std::fs::read_to_string("/proc/cpuinfo").unwrap();
    let processors = processors
        .lines()
        .filter(|l| l.starts_with("processor"))
        .count();
    assert_eq!(sut.load_generators[0].processors, processors as u64);
    // What only a person knows is left to complete.
    assert_eq!(
        (
            sut.product.vendor.as_str(),
            sut.notes.stable_storage.as_str()
        ),
        ("", "")
    );
}

#[test]
fn a_file_that_exists_is_never_overwritten() {
    let bench = Bench::new();
    std::fs::write(bench.path("sut.toml"), "# mine\n").unwrap();
    let refused = sut(&bench, &["init"]).refusal();
    assert!(
        refused.contains("sut.toml already exists and is not overwritten"),
        "{refused}"
    );
    assert_eq!(
        std::fs::read_to_string(bench.path("sut.toml")).unwrap(),
        "# mine\n"
    );
    sut(&bench, &["init", "--output", "other.toml"]).expect_code(0);
    assert!(bench.path("other.toml").is_file());
    // A link that leads nowhere is something too.
    std::os::unix::fs::symlink("nowhere", bench.path("link.toml")).unwrap();
    let refused = sut(&bench, &["init", "--output", "link.toml"]).refusal();
    assert!(refused.contains("link.toml already exists"), "{refused}");
    assert!(!bench.path("nowhere").exists());
}

#[test]
fn bad_places_are_named() {
    let bench = Bench::new();
    let refused = sut(&bench, &["init", "--dir", "none"]).refusal();
    assert!(
        refused.contains("--dir none is not a directory"),
        "{refused}"
    );
    let refused = sut(&bench, &["init", "--output", "none/sut.toml"]).refusal();
    assert!(refused.contains("cannot write none/sut.toml"), "{refused}");
    let refused = sut(&bench, &["check"]).refusal();
    assert!(refused.contains("cannot read sut.toml"), "{refused}");
    assert_eq!(bench.left_but(&[]), [] as [String; 0]);
}

#[test]
fn check_lists_what_is_not_stated() {
    let bench = Bench::new();
    sut(&bench, &["init"]).expect_code(0);
    let text = std::fs::read_to_string(bench.path("sut.toml")).unwrap();
    let before = sut(&bench, &["check"]).expect_code(0).stdout;
    assert!(
        before.contains("  product.vendor is not stated\n"),
        "{before}"
    );
    let completed = text.replacen("vendor = \"\"", "vendor = \"us\"", 1);
    std::fs::write(bench.path("sut.toml"), completed).unwrap();
    let after = sut(&bench, &["check"]).expect_code(0).stdout;
    assert!(!after.contains("product.vendor"), "{after}");
    assert_eq!(after.lines().count() + 1, before.lines().count());
}

#[test]
fn check_shows_a_mistake_at_its_place() {
    let bench = Bench::new();
    std::fs::write(bench.path("sut.toml"), "[product]\nvendro = \"us\"\n").unwrap();
    let refused = sut(&bench, &["check"]).refusal();
    assert!(refused.contains("unknown key `vendro`"), "{refused}");
    assert!(
        refused.contains("sut.toml:2:1") && refused.contains("did you mean `vendor`?"),
        "{refused}"
    );
}

#[test]
fn schemas_are_printed() {
    let bench = Bench::new();
    for (form, key) in [
        ("run", "validity"),
        ("disclosure", "ort_published_ms"),
        ("sut", "materials"),
    ] {
        let ended = Ended::of(bench.plimsoll(["docs", "schema", form])).expect_code(0);
        let schema: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
        assert!(schema["properties"].get(key).is_some(), "{form}");
    }
    let default = Ended::of(bench.plimsoll(["docs", "schema"]))
        .expect_code(0)
        .stdout;
    assert_eq!(
        default,
        Ended::of(bench.plimsoll(["docs", "schema", "run"])).stdout
    );
}

/// A profile of one configuration.
const PROFILE: &str = "CONFIG one {
  personality = varmail;
  nfiles = 10;
  nthreads = 1;
  runtime = 0.3;
}
";

/// Short commands of every kind that keeps a description (`sut.toml`).
const KEEPING: [&[&str]; 5] = [
    &["run", "varmail", "--set=nfiles=10", "--ops=20"],
    &[
        "run",
        "varmail",
        "--set=nfiles=10",
        "--ops=20",
        "--repeat=2",
    ],
    &[
        "curve",
        "vda",
        "--load=1",
        "--target=null:?latency=10ms",
        "--clock=virtual",
        "--time=2s",
        "--warmup=0s",
    ],
    &[
        "find",
        "vda",
        "--max-load=1",
        "--target=null:?latency=10ms",
        "--clock=virtual",
        "--time=2s",
        "--warmup=0s",
    ],
    &["profile", "one.prof"],
];

/// Sets the start time of results to the year 2020.
fn make_old(dir: &Path) {
    let files = ["run.json", "series.json"].map(|file| dir.join(file));
    let file = files.iter().find(|file| file.exists()).unwrap();
    let mut document: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    assert!(document["started_at"].is_string());
    document["started_at"] = "2020-01-01T00:00:00Z".into();
    std::fs::write(file, document.to_string()).unwrap();
}

/// The copy `sut.toml` includes the user's comments.
#[test]
fn a_description_is_kept_beside_results() {
    let text = "# mine\n[product]\nname = \"Box 7\"\n";
    for command in KEEPING {
        let bench = Bench::on_tmpfs();
        std::fs::write(bench.path("box.toml"), text).unwrap();
        std::fs::write(bench.path("one.prof"), PROFILE).unwrap();
        let all = [command, &["--sut=box.toml", "--results=results", "--quiet"]].concat();
        let ended = Ended::of(bench.plimsoll(all));
        assert!(
            matches!(ended.code, Some(0 | 3)),
            "{command:?}: {}",
            ended.stderr
        );
        let dir = bench.results()[0].path().to_owned();
        let kept = std::fs::read_to_string(dir.join("sut.toml")).unwrap();
        assert_eq!(kept, text, "{command:?}");
        // `prune` removes `sut.toml` together with the results.
        make_old(&dir);
        let prune = bench.plimsoll([
            "results",
            "prune",
            "--older-than=30d",
            "--yes",
            "--results=results",
        ]);
        Ended::of(prune).expect_code(0);
        assert!(!dir.exists(), "{command:?}");
    }
}

#[test]
fn a_wrong_description_is_refused_before_the_run() {
    for command in KEEPING {
        let bench = Bench::on_tmpfs();
        std::fs::write(bench.path("box.toml"), "[product]\nvendro = \"us\"\n").unwrap();
        std::fs::write(bench.path("one.prof"), PROFILE).unwrap();
        let refused = |sut: &str| {
            let all = [command, &[sut, "--results=results"]].concat();
            Ended::of(bench.plimsoll(all)).refusal()
        };
        let wrong = refused("--sut=box.toml");
        assert!(
            wrong.contains("box.toml:2:1") && wrong.contains("did you mean `vendor`?"),
            "{wrong}"
        );
        let missing = refused("--sut=none.toml");
        assert!(missing.contains("cannot read none.toml"), "{missing}");
        assert!(!bench.path("results").exists(), "{command:?}");
    }
}

/// A report uses the kept description unless `report --sut` gives another description.
#[test]
fn a_kept_description_is_disclosed() {
    let bench = Bench::on_tmpfs();
    for (file, name) in [("box.toml", "Box 7"), ("crate.toml", "Crate 8")] {
        std::fs::write(bench.path(file), format!("[product]\nname = \"{name}\"\n")).unwrap();
    }
    for command in [KEEPING[0], KEEPING[2]] {
        let all = [command, &["--sut=box.toml", "--results=results", "--quiet"]].concat();
        Ended::of(bench.plimsoll(all)).expect_code(0);
        let dir = bench.results()[0].path().to_str().unwrap().to_owned();
        let report = |more: &[&str]| {
            let all = [&["report", &dir][..], more].concat();
            Ended::of(bench.plimsoll(all)).expect_code(0).stdout
        };
        for format in ["--format=disclosure", "--format=html"] {
            let own = report(&[format]);
            assert!(own.contains("Box 7"), "{command:?} {format}");
            let other = report(&[format, "--sut=crate.toml"]);
            assert!(
                other.contains("Crate 8") && !other.contains("Box 7"),
                "{command:?} {format}"
            );
        }
        assert!(report(&["--format=html"]).contains("Full disclosure: "));
        std::fs::remove_file(bench.results()[0].path().join("sut.toml")).unwrap();
        assert!(!report(&["--format=html"]).contains("Box 7"));
        std::fs::remove_dir_all(bench.path("results")).unwrap();
    }
}
