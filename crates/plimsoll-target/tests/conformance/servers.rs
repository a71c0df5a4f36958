//! All cases of targets with files on every server of the table of `docs/nfs.md`, by every version that it
//! speaks, but for nfs-ganesha with FSAL VFS, on which each case is a test of its own.

use crate::support::FileCase;
use plimsoll_testbed::needs_root;
use plimsoll_testbed::table::Row;

/// Cases of how a client waits for gigabytes, which are no question to a server.
const OF_CLIENTS: [&str; 2] = ["aio::cut_short", "aio::cut_short_from_outside"];

/// Name of a case as the table has it: its module and its own.
fn name(case: &FileCase) -> &'static str {
    case.path
        .split_once("::")
        .map_or(case.path, |(_, path)| path)
}

/// Runs all cases; those that the table says to fail must fail.
fn all_on(server: &str) {
    let row = Row::of(server);
    let server = row.start().unwrap_or_else(|e| panic!("{e}"));
    let mut cases: Vec<_> = inventory::iter::<FileCase>.into_iter().collect();
    cases.retain(|case| !OF_CLIENTS.contains(&name(case)));
    cases.sort_by_key(|case| case.path);
    assert!(cases.len() > 40, "cases are missing");
    for exception in row.exceptions {
        let known = cases.iter().any(|case| name(case) == exception.case);
        assert!(known, "there is no case {}", exception.case);
    }
    let mut wrong = Vec::new();
    for version in row.versions {
        for case in &cases {
            let fails = row.fails(name(case), *version);
            let case_name = name(case);
            let begun = std::time::Instant::now();
            let done = (case.run)(&*server, *version);
            eprintln!("TIME {case_name} {version:?} {:?}", begun.elapsed());
            match done {
                Ok(()) if fails => wrong.push(format!("{case_name} by {version:?} passes")),
                Err(why) if !fails => wrong.push(format!("{case_name} by {version:?}: {why}")),
                _ => {}
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn ganesha_mem() {
    needs_root!();
    all_on("nfs-ganesha, FSAL MEM");
}

#[test]
fn the_kernels() {
    needs_root!();
    all_on("Linux kernel");
}

#[test]
fn nfs3_server() {
    needs_root!();
    all_on("nfs3_server");
}

#[test]
fn rclone() {
    needs_root!();
    all_on("rclone (go-nfs)");
}

#[test]
fn serve_nfs() {
    needs_root!();
    all_on("serve-nfs");
}
