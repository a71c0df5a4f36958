//! `plimsoll mdtest`: calls, files and lines of mdtest's command lines.

use crate::common::{Bench, Ended, tree};
use regex::Regex;
use std::collections::BTreeMap;
use std::process::Command;

fn mdtest(bench: &Bench, more: &[&str]) -> Ended {
    let mut command = bench.plimsoll(["mdtest", "--results"]);
    command.arg(bench.path("results")).args(more);
    Ended::of(command)
}

fn refused(ended: &Ended, why: &str) {
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains(why), "{ended:?}");
}

/// Calls on the names of mdtest that the threads of a run made, in order of time, without the path of the test directory.
fn calls(bench: &Bench, options: &[&str]) -> Vec<String> {
    let logs = bench.path("strace");
    std::fs::create_dir(&logs).unwrap();
    let program = bench.plimsoll(["mdtest"]);
    let mut command = Command::new("strace");
    let traced = "trace=mkdirat,renameat,unlinkat,newfstatat,openat2";
    command.args(["-ff", "-ttt", "-qq", "-s", "512", "-e", traced, "-o"]);
    command.arg(logs.join("log")).arg(program.get_program());
    command
        .args(program.get_args())
        .args(["--results", "results"]);
    command.args(options).current_dir(bench.path(""));
    Ended::of(command).expect_code(0);
    let call = Regex::new(r#"^([\d.]+) (\w+)\((.*)\) += \d+$"#).unwrap();
    let name = Regex::new(r#""out/test-dir.0-0/(mdtest_tree[^"]*)""#).unwrap();
    let files = std::fs::read_dir(&logs).unwrap();
    let texts = files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap());
    let texts: Vec<String> = texts.collect();
    let mut lines: Vec<&str> = texts.iter().flat_map(|text| text.lines()).collect();
    // Each line begins with its time, in digits of one number.
    lines.sort_unstable();
    let mut all = Vec::new();
    for line in lines {
        let Some(found) = call.captures(line) else {
            continue;
        };
        let names: Vec<&str> = name
            .captures_iter(&found[3])
            .map(|c| c.get(1).unwrap().as_str())
            .collect();
        let what = match &found[2] {
            "mkdirat" => "mkdir",
            "renameat" => "rename",
            "newfstatat" => "stat",
            "unlinkat" if found[3].contains("AT_REMOVEDIR") => "rmdir",
            "unlinkat" => "unlink",
            _ if found[3].contains("O_CREAT") => "create",
            // Directories are opened to check that a path stays below the work directory.
            _ if found[3].contains("O_PATH") || found[3].contains("O_DIRECTORY") => continue,
            _ => "read",
        };
        if !names.is_empty() {
            all.push(format!("{what} {}", names.join(" ")));
        }
    }
    all
}

/// A tree of mdtest, by mdtest's numbers: child c of directory d has the number d · branch + c, from 1.
struct Model {
    top: String,
    branch: u32,
    depth: u32,
    leaf_only: bool,
    per_dir: u32,
    calls: Vec<String>,
}

impl Model {
    fn dir(&self, number: u32) -> String {
        match number {
            0 => format!("{}.0", self.top),
            _ => format!(
                "{}/{}.{number}",
                self.dir((number - 1) / self.branch),
                self.top
            ),
        }
    }

    /// Calls `visit` with each directory, depth first, before and after the directories in it.
    fn walk(&mut self, number: u32, level: u32, visit: &mut impl FnMut(&mut Self, u32, u32, bool)) {
        visit(self, number, level, true);
        if level < self.depth {
            for child in 1..=self.branch {
                self.walk(number * self.branch + child, level + 1, visit);
            }
        }
        visit(self, number, level, false);
    }

    fn tree(&mut self, make: bool) {
        self.walk(0, 0, &mut |model, number, _, before| {
            let call = if make { "mkdir" } else { "rmdir" };
            if before == make {
                model.calls.push(format!("{call} {}", model.dir(number)));
            }
        });
    }

    /// Names of the items of a rank, in the order of creation.
    fn items(&mut self, kind: &str, rank: u32) -> Vec<(u32, String)> {
        let mut items = Vec::new();
        self.walk(0, 0, &mut |model, number, level, before| {
            if before && (!model.leaf_only || level == model.depth) {
                for item in number * model.per_dir..(number + 1) * model.per_dir {
                    let dir = model.dir(number);
                    items.push((item, format!("{dir}/{kind}.mdtest.{rank}.{item}")));
                }
            }
        });
        items
    }

    fn each(&mut self, call: &str, items: &[(u32, String)]) {
        let calls = items.iter().map(|(_, path)| format!("{call} {path}"));
        self.calls.extend(calls);
    }
}

#[test]
fn calls_are_those_of_mdtest_in_mdtests_order() {
    for leaf_only in [false, true] {
        let bench = Bench::on_tmpfs();
        let options = ["-I=2", "-z=2", "-b=2", "-w=5", "-e=5"];
        let leaf: &[&str] = if leaf_only { &["-L"] } else { &[] };
        let done = calls(&bench, &[&options[..], leaf].concat());
        let mut model = Model {
            top: "mdtest_tree".into(),
            branch: 2,
            depth: 2,
            leaf_only,
            per_dir: 2,
            calls: vec![],
        };
        model.tree(true);
        let created = model.items("dir", 0);
        let mut numbered = created.clone();
        numbered.sort();
        model.each("mkdir", &created);
        model.each("stat", &numbered);
        // Each directory gets the name of the directory before; the first gets a free name, and then the last name but one.
        let free = format!("{}-XX", numbered[0].1);
        let mut to = free.clone();
        for (i, (_, path)) in numbered.iter().enumerate() {
            let from = if i + 1 == numbered.len() { &free } else { path };
            model.calls.push(format!("rename {from} {to}"));
            to.clone_from(path);
        }
        model.each("rmdir", &created);
        let created = model.items("file", 0);
        let mut numbered = created.clone();
        numbered.sort();
        model.each("create", &created);
        model.each("stat", &numbered);
        model.each("read", &numbered);
        model.each("unlink", &created);
        model.tree(false);
        assert_eq!(done, model.calls);
        assert_eq!(bench.left_but(&["results", "strace"]), Vec::<String>::new());
    }
}

#[test]
fn a_stride_and_a_random_order_change_whose_files_are_used_and_when() {
    let bench = Bench::on_tmpfs();
    let options = ["--processes=3", "-n=40", "-F", "-u", "-N=1", "-R"];
    let name = r"^(\w+) mdtest_tree\.(\d)\.0/file\.mdtest\.(\d)\.(\d+)$";
    let name = Regex::new(name).unwrap();
    // The numbers of the files, by call and by the rank whose files are used. Each stage of a rank is a thread.
    let mut orders: BTreeMap<(String, u32), Vec<u32>> = BTreeMap::new();
    for call in calls(&bench, &options) {
        if let Some(found) = name.captures(&call) {
            let [tree, owner]: [u32; 2] = [2, 3].map(|i| found[i].parse().unwrap());
            // mdtest puts the files of a rank into the tree of the rank one stride further.
            assert_eq!(tree, (owner + 1) % 3, "{call}");
            let key = (found[1].to_owned(), owner);
            orders
                .entry(key)
                .or_default()
                .push(found[4].parse().unwrap());
        }
    }
    assert_eq!(orders.len(), 4 * 3);
    let in_order: Vec<u32> = (0..40).collect();
    let order = |call: &str, owner: u32| &orders[&(call.to_owned(), owner % 3)];
    for rank in 0..3 {
        assert_eq!(order("create", rank), &in_order);
        assert_eq!(order("unlink", rank + 3), &in_order);
        // A rank has one random order.
        let random = order("stat", rank + 1);
        assert_eq!(order("read", rank + 2), random);
        assert_ne!(order("stat", rank), random);
        let mut sorted = random.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, in_order);
        assert_ne!(random, &in_order);
    }
}

#[test]
fn phases_of_separate_runs_use_the_same_files() {
    let bench = Bench::on_tmpfs();
    let shape = ["--processes=2", "-z=1", "-b=2", "-I=3", "-d=md"];
    let run = |more: &[&str]| mdtest(&bench, &[&shape[..], more].concat());
    run(&["-C", "-w=100"]).expect_code(0);
    let left = tree(&bench.path("md"));
    let files = left.0.keys().filter(|name| name.contains("/file.mdtest."));
    let dirs = left.1.iter().filter(|name| name.contains("/dir.mdtest."));
    // Two ranks with three items in each of three directories.
    assert_eq!((files.count(), dirs.count()), (18, 18), "{left:?}");
    run(&["-T", "-E", "-R", "-w=100", "-e=100"]).expect_code(0);
    run(&["-U", "-w=100"]).expect_code(0);
    run(&["-E", "-w=100", "-e=40"]).expect_code(0);
    let read = bench.results().pop().unwrap().read().unwrap();
    assert_eq!(read.summary.bytes, 18 * 40);
    assert_eq!(tree(&bench.path("md")), left);
    let other = mdtest(&bench, &["--processes=2", "-I=3", "-d=md", "-T", "-w=100"]);
    refused(
        &other,
        "holds objects of another pattern: data sets of a rank: 3 there, 1 here",
    );
    refused(&run(&["-C"]), "holds objects of an earlier run");
    run(&["-r", "-w=100"]).expect_code(0);
    assert_eq!(tree(&bench.path("md")), Default::default());
    refused(&run(&["-T"]), "holds no objects of this pattern");
    // Names of a rotation that was interrupted are removed too.
    run(&["-C", "-D"]).expect_code(0);
    let top = bench.path("md/test-dir.0-0/mdtest_tree.0");
    let (from, to) = ("dir.mdtest.0.0", "dir.mdtest.0.0-XX");
    std::fs::rename(top.join(from), top.join(to)).unwrap();
    Ended::of(bench.plimsoll(["clean", "md"])).expect_code(0);
    assert!(!top.exists(), "{:?}", tree(&bench.path("md")));
}

#[test]
fn a_script_finds_mdtests_lines() {
    let bench = Bench::on_tmpfs();
    // Two tasks of 10 items, with 1 ms for each call.
    let target = "--target=null:?latency=1ms&clock=virtual";
    let out = mdtest(&bench, &["--processes=2", "-n=10", "-i=2", target]);
    let out = out.expect_code(0).stdout;
    for name in [
        "Directory creation",
        "Directory stat",
        "Directory rename",
        "File stat",
    ] {
        let line = format!(r"(?m)^   {name} +(2000\.000 +){{3}}0\.000$");
        assert!(Regex::new(&line).unwrap().is_match(&out), "{name}\n{out}");
    }
    for line in [
        r"(?m)^-- started at .* --$",
        r"(?m)^2 tasks, 20 files/directories$",
        r"(?m)^SUMMARY rate \(in ops/sec\): \(of 2 iterations\)$",
        r"(?m)^   Tree creation +(1000\.000 +){3}0\.000$",
        r"(?m)^-- finished at .* --$",
    ] {
        assert!(Regex::new(line).unwrap().is_match(&out), "{line}\n{out}");
    }
}

#[test]
fn what_mdtest_verifies_and_refuses_is_said() {
    let bench = Bench::on_tmpfs();
    let files = ["-n=5", "-F", "-w=4096", "-e=4096", "-X"];
    let run = |more: &[&str]| mdtest(&bench, &[&files[..], more].concat());
    run(&["-C", "-E"]).expect_code(0);
    let damaged = bench.path("out/test-dir.0-0/mdtest_tree.0/file.mdtest.0.3");
    let mut bytes = std::fs::read(&damaged).unwrap();
    bytes[100] ^= 1;
    std::fs::write(&damaged, bytes).unwrap();
    let ended = run(&["-E"]).expect_code(1);
    assert!(
        ended
            .stdout
            .contains("file.mdtest.0.3` does not hold what was written"),
        "{}",
        ended.stdout
    );
    run(&["-r", "-E"]).expect_code(1);
    let shared = mdtest(&bench, &["-n=5", "-S"]);
    refused(
        &shared,
        "-S of mdtest is not supported: tasks do not share files",
    );
}
