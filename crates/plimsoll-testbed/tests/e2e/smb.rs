//! The test bed `smb`, with Samba's server and the kernel's client. If this machine's kernel has no CIFS, the test
//! checks that the bed is refused, and runs again in a kernel with CIFS: User-Mode Linux.

use crate::common::Bed;
use plimsoll_testkit::bench::{Ended, wait_until};
use plimsoll_testkit::needs_root;
use plimsoll_testkit::user_mode_linux::{in_another_kernel, needed};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Whether this kernel can mount CIFS, built in or by a module that root can load.
fn has_cifs() -> bool {
    let names = std::fs::read_to_string("/proc/filesystems").unwrap();
    if names
        .lines()
        .any(|l| l.split_whitespace().last() == Some("cifs"))
    {
        return true;
    }
    let mut modprobe = Command::new("modprobe");
    let modprobe = modprobe.args(["--dry-run", "--quiet", "cifs"]);
    let modprobe = modprobe.env("PATH", plimsoll_testbed::needs::path_of_root());
    modprobe.status().is_ok_and(|s| s.success())
}

/// Returns false where the kernel mounts CIFS. Elsewhere checks that the bed is refused, runs the test in User-Mode
/// Linux, and returns true.
fn is_run_elsewhere(test: &str) -> bool {
    if has_cifs() {
        return false;
    }
    assert_refused();
    needed("smbd", "samba");
    needed("mount.cifs", "cifs-utils");
    in_another_kernel(test);
    true
}

/// The bed is refused with the reason before any process is started, and the list shows the reason too.
fn assert_refused() {
    let bed = Bed::new();
    let why = "cannot mount CIFS: /proc/filesystems does not name it";
    let up = Ended::of(bed.beds.command(&["testbed", "up", "smb"])).expect_code(2);
    assert!(up.stderr.contains(why), "{}", up.stderr);
    assert_eq!(up.stderr.lines().count(), 1, "{}", up.stderr);
    let list = bed.beds.done(&["testbed", "list"]);
    let of_kind: Vec<&str> = list
        .lines()
        .skip_while(|l| !l.starts_with("smb "))
        .collect();
    assert!(of_kind[1].contains(why), "{list}");
    let list = bed.beds.done(&["testbed", "list", "--format=json"]);
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    let kinds = list["kinds"].as_array().unwrap();
    let kind = kinds.iter().find(|k| k["name"] == "smb").unwrap();
    assert!(
        kind["unavailable"].as_str().unwrap().contains(why),
        "{kind}"
    );
    bed.assert_gone();
}

/// Waits until the client has reconnected to its server: an attempt from before the restart may still fail ("Host is
/// down").
fn assert_server(bed: &Bed) {
    wait_until("the connection", || {
        Ended::of(bed.script("ls $MNT/before && touch $MNT/connected")).code == Some(0)
    });
}

#[test]
fn a_share_is_loaded_and_its_server_hurt() {
    needs_root!();
    if is_run_elsewhere("smb::a_share_is_loaded_and_its_server_hurt") {
        return;
    }
    let Some(bed) = Bed::up("smb", &["--rtt=2ms", "--size=100m"]) else {
        return;
    };
    let share = bed.data().join("share");
    bed.sh("head -c 3000000 /dev/urandom > $MNT/before; sync $MNT/before");
    // The server has the file in its own directory, which only the bed sees.
    bed.sh(&format!("cmp $MNT/before {}/before", share.display()));
    let kind = bed.sh("stat --file-system --format=%T $MNT");
    assert!(["smb2", "cifs"].contains(&kind.trim()), "{kind}");
    bed.load();
    bed.md("-1");
    bed.hurt(&["server"]);
    bed.cut_and_heal("server");
    bed.cut_and_heal("line");
    bed.fault("delay 1ms");
    assert_eq!(bed.state("line"), "round trip 1ms");
    assert_server(&bed);
    bed.md("-2");
    bed.sh(&format!("cmp $MNT/before {}/before", share.display()));

    bed.fault("fill");
    assert_eq!(bed.state("server"), "running, full");
    let mut full = bed.script("head -c 1000000 /dev/zero > $MNT/more; sync $MNT/more");
    full.env("LC_ALL", "C");
    let full = Ended::of(full);
    assert_ne!(full.code, Some(0));
    assert!(full.stderr.contains("No space left on device"), "{full:?}");
    bed.fault("heal server");
    bed.sh("head -c 1000000 /dev/zero > $MNT/again; sync $MNT/again");

    // The client opens no file without its server, and continues with the server.
    bed.fault("kill server");
    let mut writer = bed.script("echo missed > $MNT/written");
    let writer = writer.stdout(Stdio::piped()).stderr(Stdio::piped());
    let writer = writer.spawn().unwrap();
    bed.fault("restart server");
    // Whether or not the writer's system call was waiting for the server, the writer must end and report whether the
    // data was written.
    let writer = Ended::wait(writer, Instant::now());
    assert_server(&bed);
    match writer.code {
        Some(0) => {
            bed.sh("sync $MNT/written");
            let written = bed.sh(&format!("cat {}/written", share.display()));
            assert_eq!(written, "missed\n");
        }
        _ => assert!(!writer.stderr.trim().is_empty(), "{writer:?}"),
    }
    bed.sh("echo after > $MNT/written; sync $MNT/written");
    assert_eq!(
        bed.sh(&format!("cat {}/written", share.display())),
        "after\n"
    );
    bed.load();
    bed.down();
}

/// The kernel's client waits, with unwritten data, for a server that does not reply; the end of the bed does not wait.
#[test]
fn a_share_without_its_server_is_ended() {
    needs_root!();
    if is_run_elsewhere("smb::a_share_without_its_server_is_ended") {
        return;
    }
    for fault in ["stop server", "kill server", "cut server"] {
        let Some(bed) = Bed::up("smb", &[]) else {
            return;
        };
        bed.sh("echo kept > $MNT/kept");
        bed.fault(fault);
        bed.down();
    }
}
