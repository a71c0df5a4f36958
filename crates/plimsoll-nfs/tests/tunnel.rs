//! TCP through a tunnel, between network namespaces that the tests create.

use plimsoll_nfs::wan::{Link, Namespace, Tunnel, TunnelError};
use plimsoll_testkit::needs_root;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A network namespace, which exists until its process ends with the thread that created it.
struct Space {
    holder: Child,
}

impl Space {
    fn new() -> Self {
        let own = std::fs::read_link("/proc/self/ns/net").unwrap();
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "unshare", "--net", "sleep", "600"]);
        let holder = command.stdin(Stdio::null()).spawn();
        let space = Self {
            holder: holder.expect("`setpriv` and `unshare` of util-linux"),
        };
        let begun = Instant::now();
        while std::fs::read_link(space.path()).is_ok_and(|at| at == own) {
            assert!(
                begun.elapsed() < Duration::from_secs(30),
                "no namespace: unshare(2)"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
        space
    }

    fn path(&self) -> String {
        format!("/proc/{}/ns/net", self.holder.id())
    }

    fn namespace(&self) -> Namespace {
        self.path().parse().unwrap()
    }

    /// Runs a function in the namespace, on a thread of its own.
    fn run<R: Send + 'static>(&self, work: impl FnOnce() -> R + Send + 'static) -> JoinHandle<R> {
        let path = File::open(self.path()).unwrap();
        std::thread::spawn(move || {
            let kind = Some(LinkNameSpaceType::Network);
            move_into_link_name_space(path.as_fd(), kind).unwrap();
            work()
        })
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// Sends data to an echo at the other end; returns the time of one byte, and of the rest.
fn echo(spaces: [&Space; 2], to: Ipv4Addr, bytes: Vec<u8>) -> (Duration, Vec<u8>) {
    let at = SocketAddr::new(to.into(), 7007);
    let listening = spaces[1].run(move || TcpListener::bind(at).unwrap());
    let listener = listening.join().unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut buffer = [0; 65536];
        while let Ok(read @ 1..) = stream.read(&mut buffer) {
            stream.write_all(&buffer[..read]).unwrap();
        }
    });
    let client = spaces[0].run(move || {
        let mut stream = TcpStream::connect_timeout(&at, Duration::from_secs(60)).unwrap();
        stream.set_nodelay(true).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        let begun = Instant::now();
        stream.write_all(b"x").unwrap();
        stream.read_exact(&mut [0]).unwrap();
        let took = begun.elapsed();
        let mut writing = stream.try_clone().unwrap();
        let len = bytes.len();
        let writer = std::thread::spawn(move || writing.write_all(&bytes).unwrap());
        let mut came = vec![0; len];
        stream.read_exact(&mut came).unwrap();
        writer.join().unwrap();
        (took, came)
    });
    let done = client.join().unwrap();
    server.join().unwrap();
    done
}

fn pattern(len: u32) -> Vec<u8> {
    (0..len).map(|i| (i / 251) as u8).collect()
}

#[test]
fn packets_are_delayed() {
    needs_root!();
    let spaces = [Space::new(), Space::new()];
    let link = Link::of_rtt(Duration::from_millis(40));
    let tunnel = Tunnel::start(&spaces[0].namespace(), &spaces[1].namespace(), &link)
        .unwrap_or_else(|e| panic!("{e}"));
    let [_, second] = tunnel.addresses();
    let bytes = pattern(300_000);
    let (took, came) = echo(spaces.each_ref(), second, bytes.clone());
    assert!(took >= link.rtt, "{took:?}");
    assert!(came == bytes);
    let summary = tunnel.stop();
    // The data, and the headers of its packets.
    assert!(
        summary.up.bytes > 300_000 && summary.down.bytes > 300_000,
        "{summary:?}"
    );
    assert!(summary.up.delay_p50.unwrap() >= link.rtt / 2);
    assert_eq!(summary.up.dropped + summary.down.dropped, 0);
    // The devices disappear with the tunnel, once no program of another test holds a copy of them.
    let begun = Instant::now();
    loop {
        let devices = spaces[0].run(|| Command::new("ip").args(["-br", "link"]).output().unwrap());
        let devices = String::from_utf8(devices.join().unwrap().stdout).unwrap();
        assert!(devices.contains("lo "), "{devices}");
        if !devices.contains("plimsoll") {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{devices}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// TCP retransmits lost packets, and every byte arrives.
#[test]
fn packets_are_lost() {
    needs_root!();
    let spaces = [Space::new(), Space::new()];
    let link = Link {
        loss: 0.02,
        jitter: Duration::from_millis(1),
        bandwidth: "200mbit".parse().ok(),
        ..Link::of_rtt(Duration::from_millis(2))
    };
    let tunnel = Tunnel::start(&spaces[0].namespace(), &spaces[1].namespace(), &link)
        .unwrap_or_else(|e| panic!("{e}"));
    let [_, second] = tunnel.addresses();
    let bytes = pattern(1_000_000);
    let (_, came) = echo(spaces.each_ref(), second, bytes.clone());
    assert!(came == bytes);
    let summary = tunnel.stop();
    assert!(summary.up.dropped + summary.down.dropped > 0, "{summary:?}");
}

/// Tunnels that end in the same namespace have addresses of their own.
#[test]
fn two_tunnels_side_by_side() {
    needs_root!();
    let spaces = [Space::new(), Space::new(), Space::new()];
    let [own, near, far] = spaces.each_ref().map(Space::namespace);
    let link = Link::of_rtt(Duration::from_millis(2));
    let start = |other| Tunnel::start(&own, other, &link).unwrap_or_else(|e| panic!("{e}"));
    let (one, other) = (start(&near), start(&far));
    let [mine, its] = other.addresses();
    assert!(!one.addresses().contains(&mine));
    let ends = [&spaces[0], &spaces[2]];
    let (_, came) = echo(ends, its, pattern(1000));
    assert!(came == pattern(1000));
    // The addresses of the first are free again.
    let first = one.addresses();
    drop(one);
    assert_eq!(start(&near).addresses(), first);
    assert!(other.stop().up.bytes > 1000);
}

#[test]
fn what_is_no_pair_of_namespaces_is_refused() {
    let link = Link::default();
    let start = |one: &str, other: &str| {
        let (one, other) = (one.parse().unwrap(), other.parse().unwrap());
        Tunnel::start(&one, &other, &link).err().expect("refused")
    };
    assert!(matches!(
        start("self", "/proc/self/ns/net"),
        TunnelError::Same
    ));
    let missing = start("self", "no-such-namespace");
    assert!(
        missing
            .to_string()
            .contains("`/run/netns/no-such-namespace`"),
        "{missing}"
    );
    let file = start("self", "/etc/passwd").to_string();
    assert!(
        file.starts_with("network namespace `/etc/passwd`: ")
            && file.ends_with(": it is not a namespace"),
        "{file}"
    );
}
