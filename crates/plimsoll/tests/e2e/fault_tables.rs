//! The tables of `docs/reliability.md` and `docs/threats.md`: no cell is empty, and every row names existing tests.

use std::path::{Path, PathBuf};

/// Faults that must each have a row in the tables, given by the beginning of the first cell of the row.
const FAULTS: [&str; 38] = [
    "Disk full while files are made",
    "Disk full while measuring",
    "Disk full while results are written",
    "Quota used up",
    "Inodes used up",
    "File system becomes read-only",
    "EIO on some reads",
    "Device gone",
    "Directory removed",
    "Directory renamed",
    "NFS server killed",
    "NFS server restarted",
    "NFS server silent",
    "NFS server wrong",
    "NFS server: stale handles",
    "NFS server out of state",
    "Line cut for 1 s",
    "Line cut for 60 s",
    "Line cut for ever",
    "Rank killed",
    "Rank 0 killed",
    "Rank stopped",
    "Host lost",
    "Out of memory",
    "Descriptors used up",
    "Threads used up",
    "Clock set back",
    "Clock beyond the year 9999",
    "Ctrl-C once",
    "Ctrl-C twice",
    "Ctrl-C three times",
    "SIGHUP",
    "SIGUSR1, SIGUSR2, SIGALRM, SIGXCPU",
    "SIGTERM",
    "SIGKILL",
    "Terminal closed",
    "Second run in the directory",
    "Full pipe on standard output",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Rows of all tables of a document that have a column of tests: line number and cells, without the head rows.
fn rows(document: &str) -> Vec<(usize, Vec<String>)> {
    let path = root().join("docs").join(document);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{document}: {e}"));
    let (mut found, mut columns, mut names_tests) = (Vec::new(), None, false);
    let lines: Vec<&str> = text.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        let Some(cells) = line.strip_prefix('|').and_then(|l| l.strip_suffix('|')) else {
            columns = None;
            continue;
        };
        let cells: Vec<String> = cells.split('|').map(|c| c.trim().to_owned()).collect();
        let is_head = lines
            .get(at + 1)
            .is_some_and(|next| next.starts_with("| ---"));
        if is_head {
            names_tests = cells.last().is_some_and(|c| c == "tests");
        }
        if is_head || line.starts_with("| ---") {
            columns = Some(cells.len());
            continue;
        }
        assert_eq!(Some(cells.len()), columns, "{document}:{}: {line}", at + 1);
        if names_tests {
            found.push((at + 1, cells));
        }
    }
    assert!(!found.is_empty(), "{document} has no table");
    found
}

/// Texts between backticks in a table cell that look like paths of tests, because they contain `::`.
fn tests_in(cell: &str) -> Vec<&str> {
    let quoted = cell.split('`').skip(1).step_by(2);
    quoted.filter(|q| q.contains("::")).collect()
}

fn sources(below: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(below) else {
        return;
    };
    for path in entries.map(|e| e.unwrap().path()) {
        match path.is_dir() {
            true => sources(&path, found),
            false if path.extension().is_some_and(|e| e == "rs") => found.push(path),
            false => {}
        }
    }
}

/// Module path of a source file, relative to the directory `below`.
fn modules(path: &Path, below: &Path) -> Vec<String> {
    let path = path.strip_prefix(below).unwrap().with_extension("");
    let names = path.iter().map(|c| c.to_str().unwrap().to_owned());
    names
        .filter(|n| !["mod", "lib", "main", "tests"].contains(&n.as_str()))
        .collect()
}

/// Finds the function of a test: `module::name` is an end-to-end test, `CRATE::module::name` a test of a crate. An
/// `Err` is a sentence that says why the test was not found.
fn look_up(test: &str) -> Result<(), String> {
    let mut names: Vec<&str> = test.split("::").filter(|n| *n != "tests").collect();
    let name = names.pop().unwrap();
    let of_crate = root()
        .join("crates")
        .join(names.first().copied().unwrap_or_default());
    let places = match !names.is_empty() && of_crate.is_dir() {
        true => {
            names.remove(0);
            vec![of_crate.join("src"), of_crate.join("tests")]
        }
        false => vec![root().join("crates/plimsoll/tests/e2e")],
    };
    for place in places {
        let mut files = Vec::new();
        sources(&place, &mut files);
        for file in files.iter().filter(|f| modules(f, &place) == names) {
            let text = std::fs::read_to_string(file).unwrap();
            let Some(at) = text.find(&format!("fn {name}(")) else {
                continue;
            };
            let before = &text[..at];
            let item = &before[before.rfind("\n\n").unwrap_or(0)..];
            let item = &item[item.rfind("}\n").unwrap_or(0)..];
            return match (item.contains("#[test]"), item.contains("#[ignore")) {
                (true, false) => Ok(()),
                (true, true) => Err(format!("{test} is ignored")),
                (false, _) => Err(format!("{test} is not a test")),
            };
        }
    }
    Err(format!("no test is named {test}"))
}

#[track_caller]
fn check(document: &str) -> Vec<(usize, Vec<String>)> {
    let rows = rows(document);
    for (line, cells) in &rows {
        for (number, cell) in (1..).zip(cells) {
            let says = cell.chars().any(char::is_alphanumeric);
            assert!(says, "{document}:{line}: cell {number} is empty");
        }
        let tests = tests_in(cells.last().unwrap());
        assert!(!tests.is_empty(), "{document}:{line}: no test");
        for test in tests {
            look_up(test).unwrap_or_else(|e| panic!("{document}:{line}: {e}"));
        }
    }
    rows
}

#[test]
fn every_fault_has_its_row_and_its_test() {
    let rows = check("reliability.md");
    for fault in FAULTS {
        let has_row = rows.iter().any(|(_, cells)| cells[0].starts_with(fault));
        assert!(has_row, "no row of {fault}");
    }
    for (line, cells) in rows {
        assert_eq!(cells.len(), 6, "reliability.md:{line}");
    }
}

#[test]
fn every_rule_against_an_attack_has_its_test() {
    check("threats.md");
}

#[test]
fn tests_that_do_not_exist_are_found() {
    let here = "fault_tables::tests_that_do_not_exist_are_found";
    assert_eq!(look_up(here), Ok(()));
    assert_eq!(
        look_up("plimsoll-serve::guard::tests::only_our_own_names_are_ours"),
        Ok(())
    );
    for (wrong, why) in [
        ("fault_tables::nothing", "no test is named"),
        ("fault_tables::look_up", "is not a test"),
        (
            "elsewhere::tests_that_do_not_exist_are_found",
            "no test is named",
        ),
        ("plimsoll-serve::guard::tests::guard", "is not a test"),
    ] {
        let said = look_up(wrong).unwrap_err();
        assert!(said.contains(why), "{said}");
    }
    assert_eq!(tests_in("a `b` and `c::d`, `e::f`"), ["c::d", "e::f"]);
}
