//! Other users of the machine: what they put in the place of files and directories, and what they can reach.

use crate::common::{Bench, Ended, MARKER, children_of, started, tree, wait_until};
use crate::reliability::READS_AND_WRITES;
use plimsoll_testkit::needs_root;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::collections::HashSet;
use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};
use std::path::Path;
use std::process::Stdio;

/// A user who is not this one.
const OTHER: u32 = 4278;

fn mode(path: &Path, bits: u32) {
    std::fs::set_permissions(path, PermissionsExt::from_mode(bits)).unwrap();
}

/// A directory as `/tmp` is.
fn shared(bench: &Bench) -> std::path::PathBuf {
    let shared = bench.path("shared");
    std::fs::create_dir(&shared).unwrap();
    mode(&shared, 0o1777);
    shared
}

/// In a directory that everyone may write to, a work directory that another user made, or that user's link
/// to one of ours, is not used: its owner could put anything in the place of our files.
#[test]
fn a_directory_that_another_user_made_is_not_used() {
    needs_root!();
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(READS_AND_WRITES);
    let shared = shared(&bench);
    let theirs = shared.join("theirs");
    std::fs::create_dir(&theirs).unwrap();
    chown(&theirs, Some(OTHER), Some(OTHER)).unwrap();
    let mine = bench.path("mine");
    std::fs::create_dir(&mine).unwrap();
    let link = shared.join("link");
    symlink(&mine, &link).unwrap();
    lchown(&link, Some(OTHER), Some(OTHER)).unwrap();
    let run = |dir: &Path| {
        let mut command = bench.command(&workload, &["--ops=10"]);
        command.arg("--dir").arg(dir);
        Ended::of(command)
    };
    for dir in [&theirs, &link] {
        let refusal = run(dir).refusal();
        assert!(refusal.contains("belongs to user 4278"), "{refusal}");
        assert_eq!(std::fs::read_dir(dir).unwrap().count(), 0);
    }
    let mut clean = bench.plimsoll(["clean"]);
    clean.arg(&theirs);
    Ended::of(clean).refusal();
    // In a directory that everyone may write, a run accepts only a work directory that belongs to the user of the run.
    // In a directory that only its owner may write, a run accepts a work directory of another user.
    run(&shared.join("own")).expect_code(0);
    mode(&shared, 0o755);
    run(&theirs).expect_code(0);
    assert_eq!(std::fs::read_dir(&theirs).unwrap().count(), 0);
}

/// A pipe, a device, a link or a hole in the place of the marker is refused, and not waited for, followed or
/// read to its end.
#[test]
fn what_lies_in_the_place_of_a_marker_is_refused() {
    let put = |what: &str, path: &Path| match what {
        "pipe" => {
            let mode = Mode::from_raw_mode(0o666);
            mknodat(CWD, path, FileType::Fifo, mode, 0).unwrap();
        }
        "link" => symlink("/etc/passwd", path).unwrap(),
        "hole" => {
            let file = std::fs::File::create(path).unwrap();
            file.set_len(100 << 30).unwrap();
        }
        _ => std::fs::create_dir(path).unwrap(),
    };
    for what in ["pipe", "link", "hole", "directory"] {
        let bench = Bench::on_tmpfs();
        let workload = bench.workload(READS_AND_WRITES);
        std::fs::create_dir(bench.work()).unwrap();
        put(what, &bench.work().join(MARKER));
        let calls = [
            vec!["clean", "work"],
            vec!["run", &workload, "--dir=work", "--ops=1"],
        ];
        for call in calls {
            let refusal = Ended::of(bench.plimsoll(&call)).refusal();
            let is_safe = refusal.contains("work") && !refusal.contains("root:");
            assert!(is_safe, "{what}: {refusal}");
        }
        let marker = bench.work().join(MARKER);
        assert!(marker.symlink_metadata().is_ok(), "{what}");
    }
}

/// `clean` refuses a marker that names files outside the directory of the marker.
#[test]
fn a_marker_that_leads_out_removes_nothing() {
    let bench = Bench::on_tmpfs();
    let victim = bench.path("victim");
    std::fs::create_dir(&victim).unwrap();
    std::fs::write(victim.join("00000001"), "precious").unwrap();
    std::fs::create_dir(bench.work()).unwrap();
    let absolute = victim.to_str().unwrap();
    for root in ["../victim", "..", "a/../../victim", absolute] {
        let marker = serde_json::json!({
            "plimsoll": 1, "workload": "w", "seed": 1, "guard": "", "made_dir": false,
            "trees": [{"root": root, "fingerprint": "0", "state": "used"}],
        });
        std::fs::write(bench.work().join(MARKER), marker.to_string()).unwrap();
        let ended = Ended::of(bench.plimsoll(["clean", "work"]));
        assert!(victim.join("00000001").exists(), "{root}: {ended:?}");
        assert!(matches!(ended.code, Some(0..=2)), "{root}: {ended:?}");
    }
}

/// A marker that lists the names of the user's files is none, in a directory of the user where it was
/// unpacked with something else.
#[test]
fn a_marker_that_lists_other_names_removes_nothing() {
    let bench = Bench::on_tmpfs();
    let work = bench.work();
    std::fs::create_dir_all(work.join("1")).unwrap();
    let mine = [work.join("thesis-2026"), work.join("1/key")];
    for path in &mine {
        std::fs::write(path, "precious").unwrap();
    }
    let text = |text: &str| serde_json::json!([{ "text": text }]);
    for (set, object) in [
        (
            serde_json::json!([]),
            serde_json::json!([{"text": "thesis-"}, "object"]),
        ),
        (serde_json::json!([{"rank": 1}]), text("key")),
        (text("1"), text("key")),
        (text("1"), serde_json::json!(vec!["object"; 40])),
    ] {
        let marker = serde_json::json!({
            "plimsoll": 1, "workload": "w", "seed": 1, "guard": "", "made_dir": false,
            "trees": [{"root": "", "fingerprint": "0", "state": "used",
                       "names": {"set": set, "object": object}}],
        });
        std::fs::write(work.join(MARKER), marker.to_string()).unwrap();
        let refusal = Ended::of(bench.plimsoll(["clean", "work"])).refusal();
        assert!(refusal.contains("names that no pattern gives"), "{refusal}");
        assert!(mine.iter().all(|path| path.exists()), "{marker}");
    }
}

/// `clean` accepts the file names in the marker of every pattern, and removes the files of a killed run.
#[test]
fn markers_of_every_pattern_are_read() {
    for pattern in [
        &["-P=100000", "-D=2"][..],
        &["--pattern=mdtest-easy"],
        &["--pattern=mdtest-hard"],
        &["--pattern=ior-easy", "--transfers=100"],
        &["--pattern=ior-hard", "--transfers=100"],
    ] {
        let bench = Bench::on_tmpfs();
        let mut command = bench.plimsoll([&["md", "--dir=work"], pattern].concat());
        command.args(["--results=results", "-q"]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        wait_until("no file is made", || !tree(&bench.work()).0.is_empty());
        child.kill().unwrap();
        child.wait().unwrap();
        Ended::of(bench.plimsoll(["clean", "work"])).expect_code(0);
        let left = tree(&bench.work()).0;
        assert!(left.is_empty(), "{pattern:?}: {left:?}");
    }
}

/// Inodes of the sockets that a process has open.
fn sockets_of(pid: i32) -> HashSet<String> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd"));
    let links = entries.into_iter().flatten().flatten();
    let targets = links.filter_map(|entry| std::fs::read_link(entry.path()).ok());
    targets
        .filter_map(|target| {
            let name = target.to_str()?;
            Some(name.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())
        })
        .collect()
}

/// Ranks of one machine are connected by unnamed sockets, to which no other process can connect.
#[test]
fn ranks_of_a_machine_listen_nowhere() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(READS_AND_WRITES);
    let command = bench.command_in_work(&workload, &["--processes=2"]);
    let run = started(command, "measuring");
    let pid = run.child.id() as i32;
    let all = [vec![pid], children_of(pid)].concat();
    assert_eq!(all.len(), 2);
    let open: HashSet<String> = all.iter().flat_map(|pid| sockets_of(*pid)).collect();
    assert!(open.len() >= 2, "{open:?}");
    let unix = std::fs::read_to_string("/proc/net/unix").unwrap();
    for line in unix.lines().skip(1) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_ours = words.get(6).is_some_and(|inode| open.contains(*inode));
        assert!(!is_ours || words.len() == 7, "it has a name: {line}");
    }
    for file in ["/proc/net/tcp", "/proc/net/tcp6", "/proc/net/udp"] {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let ours = text.lines().filter(|line| {
            let inode = line.split_whitespace().nth(9);
            inode.is_some_and(|inode| open.contains(inode))
        });
        assert_eq!(ours.count(), 0, "{file}");
    }
    run.interrupt();
    run.end().expect_code(130);
}

/// Results are written under an unpredictable name, and published under one that is free: what
/// others have put there is neither followed nor replaced.
#[test]
fn results_replace_and_follow_nothing() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(READS_AND_WRITES);
    std::fs::create_dir(bench.path("results")).unwrap();
    std::fs::create_dir(bench.path("victim")).unwrap();
    // Names of all seconds in which it may begin.
    let now = jiff::Timestamp::now().as_second();
    let name = |second: i64| {
        let stamp = jiff::Timestamp::from_second(second).unwrap();
        let local = stamp.to_zoned(jiff::tz::TimeZone::system());
        format!("w-{}", local.strftime("%Y%m%d-%H%M%S"))
    };
    let names: Vec<String> = (now..now + 60).map(name).collect();
    for name in &names {
        symlink(bench.path("victim"), bench.path("results").join(name)).unwrap();
    }
    let run = bench.run_in_work(&workload, &["--ops=20"]).result(0);
    assert_eq!(std::fs::read_dir(bench.path("victim")).unwrap().count(), 0);
    let real = std::fs::read_dir(bench.path("results")).unwrap().flatten();
    let real: Vec<_> = real.filter(|e| e.file_type().unwrap().is_dir()).collect();
    assert_eq!(real.len(), 1);
    let written = plimsoll_results::RunDir::at(&real[0].path()).read();
    assert_eq!(written.unwrap(), run);
    let mode = real[0].metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o022, 0, "others may not write there");
}
