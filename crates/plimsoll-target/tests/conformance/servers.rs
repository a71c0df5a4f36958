//! All cases of targets with files, by each NFS version of each server of the table in `docs/nfs.md`, except
//! nfs-ganesha with FSAL VFS, on which each case is a test of its own.

use crate::support::FileCase;
use plimsoll_testkit::server_tests;
use plimsoll_testkit::table::{ROWS, ServerRow};

/// Cases about a client's wait for gigabytes of writes, which test no property of a server.
const OF_CLIENTS: [&str; 2] = ["aio::cut_short", "aio::cut_short_from_outside"];

/// Name of a case as in the table: its module and its own name.
fn name(case: &FileCase) -> &'static str {
    case.path
        .split_once("::")
        .map_or(case.path, |(_, path)| path)
}

/// Runs all cases on a server; asserts that exactly the cases fail for which the table says so.
fn all_on(server: &str) {
    let row = ServerRow::of(server);
    let server = row.start().unwrap_or_else(|e| panic!("{e}"));
    let mut cases: Vec<_> = inventory::iter::<FileCase>.into_iter().collect();
    cases.retain(|case| !OF_CLIENTS.contains(&name(case)));
    cases.sort_by_key(|case| case.path);
    assert!(cases.len() > 40, "cases are missing");
    for exception in row.exceptions {
        for case in exception.cases {
            let known = cases.iter().any(|c| name(c) == *case);
            assert!(known, "there is no case {case}");
        }
    }
    let mut wrong = Vec::new();
    for version in row.versions {
        for case in &cases {
            let fails = row.fails(name(case), *version);
            let case_name = name(case);
            match (case.run)(&*server, *version) {
                Ok(()) if fails => wrong.push(format!("{case_name} by {version:?} passes")),
                Err(why) if !fails => wrong.push(format!("{case_name} by {version:?}: {why}")),
                _ => {}
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

server_tests! { all_on:
    ganesha_mem = "nfs-ganesha, FSAL MEM",
    the_kernels = "Linux kernel",
    nfs3_server = "nfs3_server",
    rclone = "rclone (go-nfs)",
    serve_nfs = "serve-nfs",
}

#[test]
fn every_server_is_tested() {
    let others = ROWS.iter().map(|row| row.server);
    let others: Vec<_> = others.filter(|server| !TESTED.contains(server)).collect();
    assert_eq!(others, ["nfs-ganesha, FSAL VFS"]);
}
