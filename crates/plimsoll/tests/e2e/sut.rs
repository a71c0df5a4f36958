//! `plimsoll results sut`: the description of the system under test through the program.

use crate::common::{Bench, Ended};
use plimsoll_report::disclosure::Sut;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

fn sut(bench: &Bench, args: &[&str]) -> Ended {
    Ended::of(bench.plimsoll(["results", "sut"].iter().chain(args)))
}

#[test]
fn init_describes_this_machine() {
    let bench = Bench::on_tmpfs();
    let dir = bench.root().to_str().unwrap();
    let ended = sut(&bench, &["init", "--dir", dir]).expect_code(0);
    assert_eq!(ended.stdout, "wrote sut.toml; complete it by hand\n");
    let checked = sut(&bench, &["check"]).expect_code(0).stdout;
    let missing = "  product.vendor is not stated\n";
    assert!(checked.contains(missing), "{checked}");
    let text = std::fs::read_to_string(bench.path("sut.toml")).unwrap();
    let sut = Sut::parse(&text, "sut.toml").unwrap();
    assert_eq!(sut.filesystems.kind, "tmpfs");
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut software = sut.software.iter();
    assert!(software.any(|s| s.version.contains(kernel.trim())));
    let memory = std::fs::read_to_string("/proc/meminfo").unwrap();
    let total = memory.lines().find_map(|l| l.strip_prefix("MemTotal:"));
    let kib = total.unwrap().trim().trim_end_matches(" kB");
    let kib: f64 = kib.parse().unwrap();
    assert!((sut.memory[0].size_gib - kib / f64::from(1 << 20)).abs() <= 0.01);
    let processors = std::fs::read_to_string("/proc/cpuinfo").unwrap();
    let processors = processors.lines().filter(|l| l.starts_with("processor"));
    let processors = processors.count();
    assert_eq!(sut.load_generators[0].processors, processors as u64);
    // `sut init` leaves fields empty that the system cannot tell, such as the vendor.
    let left = (&*sut.product.vendor, &*sut.notes.stable_storage);
    assert_eq!(left, ("", ""));
}

#[test]
fn a_file_that_exists_is_never_overwritten() {
    let bench = Bench::new();
    std::fs::write(bench.path("sut.toml"), "# mine\n").unwrap();
    let refused = sut(&bench, &["init"]).refusal();
    let expected = "sut.toml already exists and is not overwritten";
    assert!(refused.contains(expected), "{refused}");
    let mine = std::fs::read_to_string(bench.path("sut.toml"));
    assert_eq!(mine.unwrap(), "# mine\n");
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
    for row in [
        "init --dir none => --dir none is not a directory",
        "init --output=none/sut.toml => cannot write none/sut.toml",
        "check => cannot read sut.toml",
    ] {
        let (args, reason) = row.split_once(" => ").unwrap();
        let refused = sut(&bench, &args.split(' ').collect::<Vec<_>>()).refusal();
        assert!(refused.contains(reason), "{row}: {refused}");
    }
    assert_eq!(bench.left_but(&[]), [] as [String; 0]);
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
const KEEPING: [&str; 5] = [
    "run varmail --set=nfiles=10 --ops=20",
    "run varmail --set=nfiles=10 --ops=20 --repeat=2",
    "curve vda --load=1 --target=null:?latency=10ms&clock=virtual --time=2s --warmup=0s",
    "find vda --max-load=1 --target=null:?latency=10ms&clock=virtual --time=2s --warmup=0s",
    "profile one.prof",
];

/// Command that makes a run or series, with the file `sut` as the description of the system under test
/// (`PLIMSOLL_SUT`).
fn described(bench: &Bench, sut: &str, command: &str, more: &[&str]) -> Command {
    let words = command.split(' ').chain(more.iter().copied());
    let mut command = bench.plimsoll(words);
    command.env("PLIMSOLL_SUT", sut);
    command
}

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
        let more = ["--results=results", "--quiet"];
        let ended = Ended::of(described(&bench, "box.toml", command, &more));
        assert!(
            matches!(ended.code, Some(0 | 3)),
            "{command}: {}",
            ended.stderr
        );
        let dir = bench.results()[0].path().to_owned();
        let kept = std::fs::read_to_string(dir.join("sut.toml")).unwrap();
        assert_eq!(kept, text, "{command:?}");
        // `prune` removes `sut.toml` together with the results.
        make_old(&dir);
        let prune = "results prune --older-than=30d --yes --results=results";
        Ended::of(bench.plimsoll(prune.split(' '))).expect_code(0);
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
            Ended::of(described(&bench, sut, command, &["--results=results"])).refusal()
        };
        let wrong = refused("box.toml");
        for part in [
            "box.toml:2:1",
            "unknown key `vendro`",
            "did you mean `vendor`?",
        ] {
            assert!(wrong.contains(part), "{wrong}");
        }
        let missing = refused("none.toml");
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
        let more = ["--results=results", "--quiet"];
        Ended::of(described(&bench, "box.toml", command, &more)).expect_code(0);
        let dir = bench.results()[0].path().to_str().unwrap().to_owned();
        let report = |more: &[&str]| {
            let all = [&["report", &dir][..], more].concat();
            Ended::of(bench.plimsoll(all)).expect_code(0).stdout
        };
        for format in ["--format=disclosure", "--format=html"] {
            let own = report(&[format]);
            assert!(own.contains("Box 7"), "{command:?} {format}");
            let other = report(&[format, "--sut=crate.toml"]);
            let is_other = other.contains("Crate 8") && !other.contains("Box 7");
            assert!(is_other, "{command} {format}");
        }
        assert!(report(&["--format=html"]).contains("Full disclosure: "));
        std::fs::remove_file(bench.results()[0].path().join("sut.toml")).unwrap();
        assert!(!report(&["--format=html"]).contains("Box 7"));
        std::fs::remove_dir_all(bench.path("results")).unwrap();
    }
}
