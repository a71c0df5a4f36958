//! Test servers start, serve, and end with the process of their test.

use plimsoll_testkit::{Ganesha, GaneshaOptions, Knfsd, MOUNT_PORT, NFS_PORT, needs_root};
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn connects(at: SocketAddr) -> bool {
    TcpStream::connect_timeout(&at, Duration::from_secs(1)).is_ok()
}

fn pid_of(server: &Ganesha) -> String {
    let pid = server.sh("cat /mnt/ganesha.pid").unwrap();
    pid.trim().to_owned()
}

/// Whether a process runs; a zombie has an empty command line, and does not run.
fn runs(pid: &str) -> bool {
    std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty())
}

/// Number of a network device, which the kernel does not reuse, unlike the device's name; `None` if no device has the
/// name.
fn device(name: &str) -> Option<String> {
    let link = Command::new("ip")
        .args(["-o", "link", "show", name])
        .output();
    let link = String::from_utf8(link.unwrap().stdout).unwrap();
    link.split_once(':').map(|(number, _)| number.to_owned())
}

#[test]
fn ganesha_is_stopped_killed_and_started_again() {
    needs_root!();
    let mut server = Ganesha::start().unwrap_or_else(|e| panic!("{e}"));
    let nfs = SocketAddr::new(server.address(), NFS_PORT);
    let mount = SocketAddr::new(server.address(), MOUNT_PORT);
    assert!(connects(nfs) && connects(mount));
    std::fs::write(server.seen().join("f"), "kept").unwrap();
    server.kill().unwrap();
    assert!(!connects(nfs));
    server.start_again().unwrap();
    assert!(connects(nfs));
    server.stop().unwrap();
    assert!(
        !connects(nfs) && server.log().contains("regular exit"),
        "{}",
        server.log()
    );
    server.start_again().unwrap();
    assert_eq!(std::fs::read(server.seen().join("f")).unwrap(), b"kept");
    let known = server.sh("rpcinfo -p").unwrap();
    assert!(
        known.contains(" 2049  nfs") && known.contains(" 20048  mountd"),
        "{known}"
    );
}

#[test]
fn servers_have_addresses_and_files_of_their_own() {
    needs_root!();
    let small = GaneshaOptions {
        size: Some(1 << 20),
        ..GaneshaOptions::default()
    };
    let one = Ganesha::start().unwrap();
    let other = Ganesha::with(&small).unwrap();
    assert_ne!(one.address(), other.address());
    std::fs::write(one.seen().join("f"), vec![1; 2 << 20]).unwrap();
    assert!(!other.seen().join("f").exists());
    std::fs::write(other.seen().join("f"), vec![1; 2 << 20]).unwrap_err();
    let pid = pid_of(&one);
    assert!(runs(&pid));
    drop(one);
    assert!(!runs(&pid));
    assert!(connects(SocketAddr::new(other.address(), NFS_PORT)));
}

#[test]
fn the_kernels_server() {
    needs_root!();
    let mut server = Knfsd::start().unwrap_or_else(|e| panic!("{e}"));
    let nfs = SocketAddr::new(server.address(), NFS_PORT);
    assert!(connects(nfs));
    let versions = server
        .sh("cat /proc/fs/nfsd/versions; echo x > /mnt/export/f")
        .unwrap();
    assert!(versions.contains("+3 +4 +4.1"), "{versions}");
    assert_eq!(server.sh("cat /mnt/export/f").unwrap(), "x\n");
    assert!(server.sh("cat /mnt/export/none").is_err());
    server.stop().unwrap();
    assert!(!connects(nfs));
}

#[test]
#[ignore = "what another test runs"]
fn fails() {
    needs_root!();
    let uid = Command::new("id").arg("-u").output().unwrap().stdout;
    panic!("on purpose, as {}", String::from_utf8_lossy(&uid));
}

/// A failing test fails, whether this process is root or runs the test as root of new namespaces.
#[test]
fn a_test_that_fails_as_root_fails() {
    let done = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "fails"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(
        !done.status.success() && said.contains("on purpose, as 0"),
        "{said}"
    );
}

#[test]
#[ignore = "what another test starts and kills"]
fn holder() {
    let server = Ganesha::start().unwrap();
    println!("\nheld {} {}", pid_of(&server), server.address());
    std::thread::sleep(Duration::from_secs(600));
}

/// When the process of a test is killed, its servers, namespaces and network devices end.
#[test]
fn servers_die_with_their_process() {
    needs_root!();
    let mut holder = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "holder", "--nocapture"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(holder.stdout.take().unwrap()).lines();
    let line = lines.map(Result::unwrap).find(|l| l.starts_with("held "));
    let line = line.expect("the server starts");
    let mut parts = line.split(' ').skip(1);
    let (pid, address) = (parts.next().unwrap(), parts.next().unwrap());
    let at = SocketAddr::new(address.parse().unwrap(), NFS_PORT);
    assert!(connects(at));
    let name = format!("plt{}", address.split('.').nth(2).unwrap());
    let number = device(&name);
    assert!(runs(pid) && number.is_some());
    holder.kill().unwrap();
    holder.wait().unwrap();
    let begun = Instant::now();
    while runs(pid) || device(&name) == number {
        assert!(begun.elapsed() < Duration::from_secs(60), "it still runs");
        std::thread::sleep(Duration::from_millis(20));
    }
}
