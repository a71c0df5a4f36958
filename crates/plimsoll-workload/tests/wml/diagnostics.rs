//! Golden tests of the diagnostics: each `tests/wml/diagnostics/*.f` has a file with the expected output beside it. A
//! line `# --set name=value` stands for an option of the command line.
//!
//! `BLESS=1 cargo test -p plimsoll-workload wml::diagnostics` rewrites the expected outputs; read the difference before
//! committing.

use super::common;

use plimsoll_plan::Overrides;
use std::fs;
use std::path::{Path, PathBuf};

/// Minimum number of invalid workloads with an expected output.
const LEAST_CASES: usize = 60;

fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wml/diagnostics");
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "f"))
        .collect();
    paths.sort();
    paths
}

fn overrides(text: &str) -> Overrides {
    let sets = text.lines().filter_map(|l| l.strip_prefix("# --set "));
    let split = |s: &str| {
        s.split_once('=')
            .map(|(n, v)| (n.to_string(), v.to_string()))
    };
    Overrides {
        sets: sets.filter_map(split).collect(),
        ..Overrides::default()
    }
}

#[test]
fn every_picture_is_as_reviewed() {
    let bless = std::env::var_os("BLESS").is_some();
    let mut wrong = Vec::new();
    let cases = cases();
    assert!(cases.len() >= LEAST_CASES, "{} cases", cases.len());
    for path in cases {
        let text = fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let Err(e) = common::lower_with(&text, &overrides(&text)) else {
            panic!("{name} is accepted");
        };
        let picture = e.to_string();
        let golden = path.with_extension("txt");
        if bless {
            fs::write(&golden, &picture).unwrap();
        } else if fs::read_to_string(&golden).unwrap_or_default() != picture {
            wrong.push(format!("{name}:\n{picture}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_error_has_its_place() {
    for path in cases() {
        let text = fs::read_to_string(&path).unwrap();
        let Err(e) = common::lower_with(&text, &overrides(&text)) else {
            panic!("{} is accepted", path.display());
        };
        for f in e.findings() {
            let lines = text.lines().count() as u32;
            let in_setting = f.file.starts_with("--set");
            assert!(
                f.line >= 1 && f.column >= 1 && (in_setting || f.line <= lines),
                "{f:?}"
            );
            assert!(!f.message.is_empty() && !f.message.ends_with('.'), "{f:?}");
        }
    }
}

#[test]
fn colour_is_only_there_when_asked_for() {
    let Err(e) = common::lower_with("rn 60", &Overrides::default()) else {
        panic!("accepted");
    };
    assert!(e.render(true, 80).contains('\u{1b}'));
    assert!(!e.render(false, 80).contains('\u{1b}'));
}

#[test]
fn a_text_that_is_too_large_is_not_shown() {
    let text = "x".repeat(3_000_000);
    let Err(e) = common::lower_with(&text, &Overrides::default()) else {
        panic!("accepted");
    };
    assert_eq!(
        e.to_string(),
        "  × test.f: the file has 3000000 bytes; a workload is at most 1048576\n"
    );
}

#[test]
fn long_lines_are_cut_around_the_caret() {
    let text = format!(
        "set $a=\"{}\" rn 60 # {}\n",
        "y".repeat(3000),
        "z".repeat(2000)
    );
    let Err(e) = common::lower_with(&text, &Overrides::default()) else {
        panic!("accepted");
    };
    let picture = e.to_string();
    assert!(picture.contains("test.f:1:3011"), "{picture}");
    assert!(picture.contains("yyy\" rn 60 # zzz"), "{picture}");
    assert!(picture.len() < 1500, "{} bytes: {picture}", picture.len());
}
