//! The crates as they are packaged.

use crate::common::python::{printed, source_tree};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Files of the source tree that a crate's sources name with `include_str!` and its relatives.
fn included(dir: &Path, found: &mut Vec<(PathBuf, String)>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            included(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            for macro_name in ["include_str!(", "include_bytes!("] {
                for rest in text.split(macro_name).skip(1) {
                    // A file name that another macro forms, such as `concat!`, is no literal and is skipped.
                    if let Some(rest) = rest.trim_start().strip_prefix('"') {
                        let name = rest.split('"').next().unwrap().to_owned();
                        found.push((path.parent().unwrap().to_owned(), name));
                    }
                }
            }
        }
    }
}

#[test]
fn crates_have_all_that_their_sources_read() {
    let mut metadata = Command::new(env!("CARGO"));
    metadata.current_dir(source_tree());
    metadata.args(["metadata", "--offline", "--no-deps", "--format-version=1"]);
    let metadata: serde_json::Value = serde_json::from_str(&printed(metadata)).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let published: Vec<&serde_json::Value> =
        packages.iter().filter(|p| p["publish"].is_null()).collect();
    assert!(published.len() > 10, "{}", published.len());
    for package in published {
        let name = package["name"].as_str().unwrap();
        for field in ["description", "license", "readme", "rust_version"] {
            assert!(package[field].is_string(), "{name} has no {field}");
        }
        for dependency in package["dependencies"].as_array().unwrap() {
            let is_path = dependency["path"].is_string();
            let is_dev = dependency["kind"] == "dev";
            assert!(
                !is_path || is_dev || dependency["req"] != "*",
                "{name}: {} has no version",
                dependency["name"]
            );
        }
        let mut list = Command::new(env!("CARGO"));
        list.current_dir(source_tree());
        list.args([
            "package",
            "--offline",
            "--list",
            "--allow-dirty",
            "-p",
            name,
        ]);
        let list = printed(list);
        let files: BTreeSet<&str> = list.lines().collect();
        let manifest = Path::new(package["manifest_path"].as_str().unwrap());
        let root = manifest.parent().unwrap();
        let mut wanted = Vec::new();
        included(&root.join("src"), &mut wanted);
        for (dir, file) in wanted {
            // Without links that lead out of the crate.
            let mut path = dir.strip_prefix(root).unwrap().to_owned();
            for part in Path::new(&file).components() {
                match part {
                    std::path::Component::ParentDir => assert!(
                        path.pop(),
                        "{name}: {file}, which {dir:?} includes, is outside of the crate"
                    ),
                    other => path.push(other),
                }
            }
            assert!(files.contains(path.to_str().unwrap()), "{name}: {path:?}");
        }
        for file in ["README.md", "LICENSE-APACHE", "LICENSE-MIT"] {
            assert!(files.contains(file), "{name} has no {file}");
        }
        let of = |dir: &str, end: &str| {
            let is_of = |f: &&&str| f.starts_with(dir) && f.ends_with(end);
            files.iter().filter(is_of).count()
        };
        let builtin = |dir: &str, end: &str| {
            let entries = std::fs::read_dir(source_tree().join(dir)).unwrap();
            let names = entries.map(|e| e.unwrap().file_name().into_string().unwrap());
            names.filter(|n| n.ends_with(end)).count()
        };
        if name == "plimsoll-workload" {
            for (dir, end) in [
                ("workloads", ".f"),
                ("workloads", ".toml"),
                ("profiles", ".prof"),
            ] {
                assert_eq!(of(dir, end), builtin(dir, end), "{dir} {end}");
            }
        }
    }
}
