//! How the program is compiled for a first try, for its users and for its benchmarks, and how it is
//! installed: looked at without compiling it.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[track_caller]
fn done(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
    output
}

/// Compiler settings of a package in a cargo profile, as far as they matter for speed and stack traces.
#[derive(Debug, Clone, PartialEq)]
pub struct Compiled {
    level: String,
    lto: String,
    units: u64,
    debug: String,
}

/// Cargo's units of the libraries and programs that `package` consists of; what only runs while others are compiled is
/// left out.
fn linked_units(profile: &str, package: &str) -> Vec<Value> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(root());
    cargo.args(["build", "--locked", "--offline", "--profile", profile]);
    cargo.args(["-p", package, "--unit-graph", "-Zunstable-options"]);
    // The option `--unit-graph` is unstable, which a stable cargo accepts only with RUSTC_BOOTSTRAP=1.
    let output = done(cargo.env("RUSTC_BOOTSTRAP", "1"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("did not match"), "{said}");
    let graph: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut units = graph["units"].as_array().unwrap().clone();
    units.retain(|u| {
        let kind = u["target"]["kind"][0].as_str().unwrap();
        // What runs on the compiling machine has no units of its own.
        matches!(kind, "lib" | "bin" | "rlib") && !u["profile"]["codegen_units"].is_null()
    });
    units
}

/// How the libraries and programs are compiled that `package` consists of, by name and version.
pub fn compiled(profile: &str, package: &str) -> BTreeMap<String, Compiled> {
    let text = |v: &Value| v.as_str().map_or_else(|| v.to_string(), str::to_owned);
    let units = linked_units(profile, package).into_iter();
    units
        .map(|u| {
            let profile = &u["profile"];
            let compiled = Compiled {
                level: text(&profile["opt_level"]),
                lto: text(&profile["lto"]),
                units: profile["codegen_units"].as_u64().unwrap(),
                debug: text(&profile["debuginfo"]),
            };
            (package_of(u["pkg_id"].as_str().unwrap()), compiled)
        })
        .collect()
}

/// Name and version of a package as `name@version`. Cargo leaves the name out where it is that of
/// the directory.
fn package_of(id: &str) -> String {
    let (place, package) = id.split_once('#').unwrap();
    match package.contains('@') {
        true => package.to_owned(),
        false => format!("{}@{package}", place.rsplit('/').next().unwrap()),
    }
}

/// Packages that execute during the measured window, besides the `plimsoll-` dependencies of plimsoll-engine; every
/// cargo profile for benchmarks must optimise them.
const HOT: [&str; 11] = [
    "hashlink",
    "hdrhistogram",
    "io-uring",
    "plimsoll-results",
    "polling",
    "quanta",
    "rand",
    "rand_distr",
    "rand_xoshiro",
    "rustix",
    "zlib-rs",
];

/// Dependencies `plimsoll-` of plimsoll-engine that execute only before a run.
const COLD: [&str; 1] = ["plimsoll-diagnostics"];

#[test]
fn what_works_while_a_run_is_measured_is_optimised_in_each_profile() {
    let name = |id: &str| id.split('@').next().unwrap().to_owned();
    let engine = compiled("release", "plimsoll-engine");
    let ours = engine.keys().map(|id| name(id));
    let ours = ours.filter(|n| n.starts_with("plimsoll-") && !COLD.contains(&n.as_str()));
    let hot: BTreeSet<String> = ours.chain(HOT.map(str::to_owned)).collect();
    assert!(hot.contains("plimsoll-target"), "{hot:?}");
    for profile in ["release", "shipping", "dist", "bench"] {
        let compiled = compiled(profile, "plimsoll");
        for hot in &hot {
            let id = compiled.keys().find(|id| name(id) == *hot);
            let id = id.unwrap_or_else(|| panic!("no {hot} in {:?}", compiled.keys()));
            assert_eq!(compiled[id].level, "3", "{profile}: {id}");
        }
    }
}

#[test]
fn what_tests_simulate_is_in_no_program_of_users() {
    let with_simulation = |package: &str| {
        let units = linked_units("shipping", package).into_iter();
        let simulating = units.filter(|u| {
            let features = u["features"].as_array().unwrap();
            features.iter().any(|f| f == "simulation")
        });
        simulating
            .map(|u| package_of(u["pkg_id"].as_str().unwrap()))
            .map(|id| id.split('@').next().unwrap().to_owned())
            .collect::<BTreeSet<_>>()
    };
    for program in ["plimsoll", "plimsoll-testbed"] {
        assert_eq!(with_simulation(program), BTreeSet::new(), "{program}");
    }
    let simulator = ["plimsoll-ranks", "plimsoll-runtime", "plimsoll-target"];
    let simulator = simulator.map(str::to_owned).into();
    assert_eq!(with_simulation("plimsoll-vopr"), simulator);
}

#[test]
fn what_is_benchmarked_is_compiled_as_what_is_installed() {
    let shipped = compiled("shipping", "plimsoll");
    let measured = compiled("bench", "plimsoll-benches");
    let common = measured.iter().filter(|(id, _)| shipped.contains_key(*id));
    let mut found = 0;
    for (id, how) in common {
        assert_eq!(how, &shipped[id], "{id}");
        found += usize::from(id.starts_with("plimsoll"));
    }
    assert!(found >= 10, "{:?}", measured.keys());
    for (id, how) in &shipped {
        assert_eq!(how.lto, "thin", "{id}");
        assert_eq!(how.debug, "line-tables-only", "{id}");
        assert_ne!(how.level, "0", "{id}: lowered for good");
    }
    let plan = |target: &str| {
        let mut make = Command::new("make");
        make.env_remove("MAKEFLAGS").env_remove("MAKELEVEL");
        let output = done(make.current_dir(root()).args(["-n", target]));
        String::from_utf8(output.stdout).unwrap()
    };
    let install = plan("install");
    let build = "scripts/build-program \"plimsoll plimsoll-testbed\" shipping ";
    assert!(install.contains(build), "{install}");
    assert!(plan("bench").starts_with("cargo bench "));
}

#[test]
fn the_first_try_waits_for_no_optimisation_across_crates() {
    for (id, how) in compiled("release", "plimsoll") {
        let found = (how.lto.as_str(), how.units, how.debug.as_str());
        assert_eq!(found, ("off", 4, "0"), "{id}");
    }
}

#[test]
fn an_installation_names_missing_tools_and_the_next_step() {
    let dir = tempfile::tempdir().unwrap();
    let script = root().join("scripts/install-notes");
    let say = |arguments: &[&str], path: &Path| {
        let mut bash = Command::new("/bin/bash");
        bash.arg(&script).args(arguments).env("PATH", path);
        bash.output().unwrap()
    };
    let refused = say(&["before"], dir.path());
    assert_eq!(refused.status.code(), Some(1));
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(
        said.contains("make install needs objcopy (package binutils)"),
        "{said}"
    );

    let prefix = dir.path().join("a prefix");
    let path = std::env::var_os("PATH").unwrap();
    let hint = |path: &Path| {
        let output = say(&["after", prefix.to_str().unwrap()], path);
        String::from_utf8(output.stdout)
            .unwrap()
            .contains("is not on the PATH")
    };
    assert!(hint(Path::new(&path)));
    let mut with_prefix = prefix.join("bin").into_os_string();
    with_prefix.push(":");
    with_prefix.push(&path);
    assert!(!hint(Path::new(&with_prefix)));
}

/// Source of a program that panics in a nested function, to test the stack traces of the cargo profile `shipping`.
const PROGRAM: &str = "\
#[inline(never)]
fn deepest(n: usize) -> usize {
    std::hint::black_box(vec![0; 3])[n]
}

fn main() {
    std::process::exit(deepest(std::env::args().count() + 6) as i32);
}
";

#[test]
fn an_installed_program_finds_its_symbols_beside_it() {
    let dir = tempfile::tempdir().unwrap();
    let place = |name: &str| dir.path().join(name);
    std::fs::write(place("tried.rs"), PROGRAM).unwrap();
    let mut rustc = Command::new("rustc");
    rustc.current_dir(dir.path());
    done(rustc.args(["-Cdebuginfo=line-tables-only", "-Copt-level=1", "tried.rs"]));
    let mut install = Command::new(root().join("scripts/install-program"));
    install.current_dir(dir.path());
    done(install.args(["tried", "prefix/bin"]));

    let installed = place("prefix/bin/tried");
    let trace = || {
        let mut command = Command::new(&installed);
        let ended = command.env("RUST_BACKTRACE", "1").output().unwrap();
        String::from_utf8(ended.stderr).unwrap()
    };
    let with_symbols = trace();
    assert!(with_symbols.contains(" deepest"), "{with_symbols}");
    assert!(with_symbols.contains("tried.rs:7"), "{with_symbols}");
    std::fs::rename(place("prefix/bin/.debug"), place("away")).unwrap();
    let without = trace();
    assert!(without.contains("index out of bounds"), "{without}");
    assert!(!without.contains("deepest"), "{without}");
    let size = |path: PathBuf| std::fs::metadata(path).unwrap().len();
    assert!(size(installed.clone()) < size(place("tried")) / 2);
}
