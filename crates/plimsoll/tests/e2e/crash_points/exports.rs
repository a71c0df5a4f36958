//! Files that are made of results: reports, tables, pictures, descriptions.

use super::*;
use std::collections::BTreeMap;

/// The contents of the files that a command has made in `out`, by name; hidden ones are not made yet.
fn made(bench: &Bench) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(bench.path("out")).into_iter().flatten();
    let named = entries.map(|e| {
        let path = e.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        (name, std::fs::read(path).unwrap())
    });
    named.filter(|(name, _)| !name.starts_with('.')).collect()
}

/// A file that has its name is whole after any crash, and what was begun does not hinder another attempt.
#[test]
fn exports_are_whole_or_not_there_after_any_crash() {
    let commands: [&[&str]; 5] = [
        &[
            "report",
            "results/run",
            "--format=html",
            "--output=out/run.html",
        ],
        &["report", "results/run", "--format=parquet", "--output=out"],
        &["report", "results/run", "--format=svg", "--output=out"],
        &[
            "compare",
            "results/run",
            "results/run",
            "--format=json",
            "--output=out/c.json",
        ],
        &["results", "sut", "init", "--output=out/sut.toml"],
    ];
    let bench = with_results();
    for command in commands {
        std::fs::create_dir(bench.path("out")).unwrap();
        let recording = record(&bench, bench.plimsoll(command));
        assert_eq!(recording.status.code(), Some(0), "{}", recording.stderr);
        let (end, expected) = (recording.changes.len(), made(&bench));
        assert!(!expected.is_empty());
        check_each(&recording, |bench, state| {
            let found = made(bench);
            let is_same = found
                .iter()
                .all(|(name, content)| expected.get(name) == Some(content));
            ensure(is_same, || format!("{:?} are not whole", found.keys()))?;
            let is_killed_late = state.crash == Crash::Kill && state.changes == end;
            ensure(!is_killed_late || found.len() == expected.len(), || {
                "some are lost".into()
            })?;
            if !is_by_program(state) {
                return Ok(());
            }
            for name in found.keys() {
                std::fs::remove_file(bench.path("out").join(name)).map_err(|e| e.to_string())?;
            }
            call_well(bench, command)?;
            let again = made(bench);
            ensure(again.keys().eq(expected.keys()), || {
                format!("{:?} again", again.keys())
            })
        });
        std::fs::remove_dir_all(bench.path("out")).unwrap();
    }
}
