//! Runs on a server that speaks NFS version 4: nfs-ganesha.

use crate::common::{Bench, row};
use plimsoll_results::{OperationFigures, Run, Verdict};
use plimsoll_testkit::{Ganesha, needs_root};

fn procedure<'a>(run: &'a Run, name: &str) -> &'a OperationFigures {
    let found = run.procedures.iter().find(|p| p.name == name);
    found.expect(name)
}

fn left(server: &Ganesha) -> Vec<String> {
    let all = std::fs::read_dir(server.seen()).unwrap();
    all.map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect()
}

/// Every operation of a mix.
const ALL: &str = "\
    [metric]\nname = \"users\"\n\
    [[component]]\nname = \"user\"\nprocesses = 4\nrate = 400\n\
    mix = { read = 2, read_file = 4, read_rand = 4, write = 4, write_file = 4, write_rand = 4, rmw = 4, \
    mkdir = 4, rmdir = 4, unlink = 4, unlink2 = 4, create = 4, append = 4, lock = 4, access = 4, stat = 4, \
    neg_stat = 4, chmod = 4, readdir = 4, copyfile = 4, rename = 4, statfs = 3, pathconf = 3, truncate = 3, \
    fsync = 2, lookup = 3, readlink = 2, readdirplus = 2 }\n\
    files = { count = 30, size = \"8k\", turnover = 10, empty = 5, spare_directories = 5 }\n";

#[test]
fn workloads_over_both_minor_versions() {
    needs_root!();
    let server = Ganesha::start().unwrap_or_else(|e| panic!("{e}"));
    for minor in ["0", "1"] {
        let bench = Bench::new();
        let url = server.nfs4_url(&format!("minorversion={minor}"));
        fileserver(&bench, &url);
        everything(&url);
        assert_eq!(left(&server), Vec::<String>::new(), "a run left something");
    }
}

fn fileserver(bench: &Bench, url: &str) {
    let url = format!("{url}&clients=2");
    let more = ["--target", &url, "--time=500ms"];
    let more = [&more[..], &["--set=nfiles=100", "--set=nthreads=8"]].concat();
    let run = bench.run("fileserver", &more).result(0);
    assert_eq!(run.validity.verdict, Verdict::Valid);
    // Each opening is one compound; operations at the borders of the window differ a little.
    let opens = ["createfile1", "openfile1", "openfile2"];
    let opens: u64 = opens.iter().map(|o| row(&run, o).ops).sum();
    let workers = 8;
    assert!(opens.abs_diff(procedure(&run, "OPEN").ops) <= workers);
    assert!(opens.abs_diff(procedure(&run, "CLOSE").ops) <= 3 * workers);
    let deleted = row(&run, "deletefile1").ops;
    assert!(deleted.abs_diff(procedure(&run, "REMOVE").ops) <= workers);
    assert!(run.procedures.iter().all(|p| p.errors == 0));
}

fn everything(url: &str) {
    let bench = Bench::new();
    std::fs::write(bench.path("all.toml"), ALL).unwrap();
    let workload = bench.path("all.toml").display().to_string();
    let args = ["--time=1s", "--warmup=0s", "--target", url];
    let ended = bench.run(&workload, &args);
    let run = ended.parsed().unwrap_or_else(|| panic!("{}", ended.stderr));
    assert_eq!(run.summary.errors, 0, "{}", ended.stdout);
    let names =
        "OPEN LOCK LOCKU RENAME CREATE LOOKUP+ACCESS LOOKUP+SETATTR LOOKUP+READLINK LOOKUP+READDIR";
    for compound in names.split(' ') {
        assert!(procedure(&run, compound).ops > 0, "{compound}");
    }
}
