//! A link that passes packets between two network namespaces.

use crate::lock::{lock, wait};
use crate::wan::delay::{DeliveryOrder, LinkDirection};
use crate::wan::figures::{Counters, Direction, Summary};
use crate::wan::link::Link;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FsWord, fstatfs};
use rustix::io::Errno;
use rustix::ioctl::{Opcode, Updater, ioctl, opcode};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::collections::{HashSet, VecDeque};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::net::Ipv4Addr;
use std::num::NonZeroU64;
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::PathBuf;
use std::process::Command;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// The addresses of the two ends of tunnel number `number`, from 198.18.0.0/15, which is reserved
/// for benchmarks (RFC 2544, C.2.2).
fn addresses(number: u8) -> [Ipv4Addr; 2] {
    [1, 2].map(|last| Ipv4Addr::new(198, 19, number, last))
}

/// The maximum number of unread packets in a device's queue; the device drops further packets.
const DEVICE_QUEUE_PACKETS: &str = "10000";

/// The maximum number of bytes of a packet.
const MAX_PACKET_BYTES: usize = 64 << 10;

/// The maximum number of packets in flight in one direction; further packets are dropped.
const MAX_IN_FLIGHT_PACKETS: usize = 1 << 16;

/// The maximum time that packets wait for a link of limited bandwidth, as in a router's buffer;
/// further packets are dropped.
const MAX_LINK_WAIT: Duration = Duration::from_millis(100);

/// The file system type of namespaces: `NSFS_MAGIC` of Linux's `magic.h`.
const NSFS_MAGIC: FsWord = 0x6e73_6673;

/// The time between two checks for the end of the tunnel.
const STOP_POLL_INTERVAL: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};

/// A network namespace, given by this process or by a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Namespace {
    /// The namespace of this process, `self`.
    Own,
    /// A namespace by its path, such as `/proc/1/ns/net`, or by its name of `ip netns add`.
    At(PathBuf),
}

impl FromStr for Namespace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "self" => Ok(Self::Own),
            "" | "." | ".." => Err(format!("`{text}` is not a network namespace")),
            path if path.contains('/') => Ok(Self::At(path.into())),
            name => Ok(Self::At(PathBuf::from("/run/netns").join(name))),
        }
    }
}

impl Namespace {
    fn path(&self) -> PathBuf {
        match self {
            Self::Own => PathBuf::from("/proc/thread-self/ns/net"),
            Self::At(path) => path.clone(),
        }
    }

    fn open(&self) -> Result<File, TunnelError> {
        let path = self.path();
        let opened = File::open(&path).and_then(|file| match fstatfs(&file)?.f_type {
            NSFS_MAGIC => Ok(file),
            _ => Err(Errno::INVAL.into()),
        });
        opened.map_err(|error| match error.kind() {
            // The namespace belongs to another user's process; a tunnel needs root in any case.
            ErrorKind::PermissionDenied if !is_root() => TunnelError::NotRoot,
            _ => TunnelError::Namespace { path, error },
        })
    }
}

/// An error at the start of a tunnel.
#[derive(Debug, thiserror::Error)]
pub enum TunnelError {
    /// Only root may create devices.
    #[error("a tunnel needs root: it creates network devices")]
    NotRoot,
    /// The namespace cannot be opened.
    #[error("network namespace `{}`: {error}{}", path.display(), hint(error, "`ip netns add NAME` creates one"))]
    Namespace {
        /// The path of the namespace.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// Both ends are in one namespace.
    #[error("both ends are in the same network namespace: no packets would use the tunnel")]
    Same,
    /// All tunnel addresses are in use.
    #[error("256 tunnels end in these network namespaces: there are no more addresses")]
    Full,
    /// The device cannot be created.
    #[error("/dev/net/tun: {}{}", .0, hint(.0, "`modprobe tun` may help"))]
    Device(io::Error),
    /// The device cannot be configured.
    #[error("`ip {command}`: {said}")]
    Address {
        /// The arguments of `ip`.
        command: String,
        /// The error message of `ip`.
        said: String,
    },
    /// A thread cannot be started.
    #[error("a tunnel needs threads: {0}")]
    Threads(io::Error),
}

/// A hint at the cause of an error, after a colon.
fn hint(error: &io::Error, missing: &str) -> String {
    match error.kind() {
        ErrorKind::NotFound => format!(": {missing}"),
        ErrorKind::PermissionDenied => {
            ": root of a container needs CAP_NET_ADMIN and CAP_SYS_ADMIN".into()
        }
        ErrorKind::InvalidInput => ": it is not a namespace".into(),
        _ => String::new(),
    }
}

/// A running tunnel. Dropping the value removes both devices.
pub struct Tunnel {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    names: [String; 2],
    addresses: [Ipv4Addr; 2],
}

/// The state that the threads of a tunnel share.
struct Shared {
    counters: Counters,
    stop: AtomicBool,
    ends: [File; 2],
    pipes: [Pipe; 2],
}

#[derive(Default)]
struct Pipe {
    packets: Mutex<VecDeque<Packet>>,
    /// Notified when a packet is added or the tunnel ends.
    more: Condvar,
}

struct Packet {
    bytes: Vec<u8>,
    came: Instant,
    due: Instant,
}

impl Tunnel {
    /// Creates a device in each namespace, and passes packets between them.
    ///
    /// # Errors
    /// See [`TunnelError`].
    pub fn start(first: &Namespace, second: &Namespace, link: &Link) -> Result<Self, TunnelError> {
        let spaces = [first.open()?, second.open()?];
        if is_same(&spaces[0], &spaces[1]) {
            return Err(TunnelError::Same);
        }
        if !is_root() {
            return Err(TunnelError::NotRoot);
        }
        let mut taken = HashSet::new();
        for (space, at) in spaces.iter().zip([first, second]) {
            within(space, at, || {
                taken.extend(networks_in_use()?);
                Ok(())
            })?;
        }
        let free = (0..=u8::MAX).find(|n| !taken.contains(n));
        let addresses = addresses(free.ok_or(TunnelError::Full)?);
        let end_at = |i: usize, at| within(&spaces[i], at, || end(addresses[i]));
        let (one, one_name) = end_at(0, first)?;
        let (other, other_name) = end_at(1, second)?;
        let shared = Arc::new(Shared {
            counters: Counters::default(),
            stop: AtomicBool::new(false),
            ends: [one, other],
            pipes: Default::default(),
        });
        let mut this = Self {
            shared,
            threads: Vec::new(),
            names: [one_name, other_name],
            addresses,
        };
        for from in [0, 1] {
            let (shared, link) = (this.shared.clone(), link.clone());
            this.spawn("wan-take", move || take(&shared, from, &link))?;
            let shared = this.shared.clone();
            this.spawn("wan-put", move || put(&shared, from))?;
        }
        Ok(this)
    }

    fn spawn(
        &mut self,
        name: &str,
        work: impl FnOnce() + Send + 'static,
    ) -> Result<(), TunnelError> {
        let thread = Builder::new().name(name.into()).spawn(work);
        self.threads.push(thread.map_err(TunnelError::Threads)?);
        Ok(())
    }

    /// Addresses of the first and the second end, which no other device in their namespaces used at
    /// the start.
    #[must_use]
    pub fn addresses(&self) -> [Ipv4Addr; 2] {
        self.addresses
    }

    /// Device names of the first and the second end.
    #[must_use]
    pub fn devices(&self) -> &[String; 2] {
        &self.names
    }

    /// The totals so far.
    #[must_use]
    pub fn summary(&self) -> Summary {
        self.shared.counters.summary()
    }

    /// Removes both devices; returns the totals.
    #[must_use]
    pub fn stop(mut self) -> Summary {
        self.end();
        self.summary()
    }

    fn end(&mut self) {
        self.shared.stop.store(true, Relaxed);
        for pipe in &self.shared.pipes {
            // A thread checks the flag under the lock before it waits, so no wakeup is lost.
            drop(lock(&pipe.packets));
            pipe.more.notify_all();
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        self.end();
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn is_same(one: &File, other: &File) -> bool {
    match (one.metadata(), other.metadata()) {
        (Ok(one), Ok(other)) => (one.dev(), one.ino()) == (other.dev(), other.ino()),
        _ => false,
    }
}

/// Runs `work` in a network namespace, on a separate thread, so that the namespaces of other
/// threads do not change.
fn within<R: Send>(
    space: &File,
    at: &Namespace,
    work: impl FnOnce() -> Result<R, TunnelError> + Send,
) -> Result<R, TunnelError> {
    std::thread::scope(|scope| {
        let entered = Builder::new()
            .name("wan-namespace".into())
            .spawn_scoped(scope, || {
                move_into_link_name_space(space.as_fd(), Some(LinkNameSpaceType::Network))
                    .map_err(|e| TunnelError::Namespace {
                        path: at.path(),
                        error: e.into(),
                    })?;
                work()
            });
        let entered = entered.map_err(TunnelError::Threads)?;
        entered
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Creates a device with an address.
fn end(address: Ipv4Addr) -> Result<(File, String), TunnelError> {
    let (end, name) = device().map_err(TunnelError::Device)?;
    ip(&["addr", "add", &format!("{address}/30"), "dev", &name])?;
    ip(&[
        "link",
        "set",
        &name,
        "mtu",
        "1500",
        "txqueuelen",
        DEVICE_QUEUE_PACKETS,
        "up",
    ])?;
    Ok((end, name))
}

/// The numbers of tunnels whose addresses are in use in this namespace.
fn networks_in_use() -> Result<Vec<u8>, TunnelError> {
    Ok(numbers(&ip(&["-4", "-o", "addr", "show"])?))
}

/// Parses the output of `ip -o addr`, in which each address follows the word `inet`.
fn numbers(listed: &str) -> Vec<u8> {
    let address = |line: &str| {
        let mut words = line.split_whitespace().skip_while(|w| *w != "inet").skip(1);
        let address = words.next()?.split('/').next()?;
        address.parse::<Ipv4Addr>().ok()
    };
    let ours = |address: Ipv4Addr| match address.octets() {
        [198, 19, number, _] => Some(number),
        _ => None,
    };
    listed
        .lines()
        .filter_map(address)
        .filter_map(ours)
        .collect()
}

/// Runs `ip`; returns its output.
fn ip(args: &[&str]) -> Result<String, TunnelError> {
    let failed = |said: String| TunnelError::Address {
        command: args.join(" "),
        said,
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut dirs: Vec<PathBuf> = std::env::split_paths(&path).collect();
    dirs.extend(["/usr/sbin".into(), "/sbin".into()]);
    let program = dirs.iter().map(|d| d.join("ip")).find(|p| p.is_file());
    let done = Command::new(program.unwrap_or_else(|| "ip".into()))
        .args(args)
        .output();
    let done = done.map_err(|e| failed(format!("{e}: it is in the package iproute2")))?;
    match done.status.success() {
        true => Ok(String::from_utf8_lossy(&done.stdout).into_owned()),
        false => Err(failed(
            String::from_utf8_lossy(&done.stderr).trim().to_owned(),
        )),
    }
}

/// The argument of [`TUNSETIFF`]: `struct ifreq` of netdevice(7); only the name and the flags are
/// used.
#[repr(C)]
#[derive(Clone, Copy)]
struct Request {
    name: [u8; 16],
    flags: u16,
    rest: [u8; 22],
}

/// `TUNSETIFF` of `linux/if_tun.h`.
const TUNSETIFF: Opcode = opcode::write::<i32>(b'T', 202);

/// `IFF_TUN | IFF_NO_PI`: IP packets without a header.
const FLAGS: u16 = 0x0001 | 0x1000;

/// Creates a device in the network namespace of this thread; the device disappears when the file is
/// closed.
fn device() -> io::Result<(File, String)> {
    let end = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed())
        .open("/dev/net/tun")?;
    let mut request = Request {
        name: *b"plimsoll%d\0\0\0\0\0\0",
        flags: FLAGS,
        rest: [0; 22],
    };
    // SAFETY: TUNSETIFF reads and writes a `struct ifreq`, which is 40 bytes long and begins with
    // 16 bytes of name and a short of flags, as `Request` does. Every byte of `Request` is
    // initialised, any bytes are valid in `Request`, and the value outlives the call.
    unsafe { ioctl(&end, Updater::<TUNSETIFF, Request>::new(&mut request)) }?;
    let name = request.name.split(|b| *b == 0).next();
    let name = name.expect("a split has a first part");
    let name = String::from_utf8_lossy(name).into_owned();
    Ok((end, name))
}

/// The totals of the direction that begins at the end `from`.
fn counters(shared: &Shared, from: usize) -> &Direction {
    match from {
        0 => &shared.counters.up,
        _ => &shared.counters.down,
    }
}

/// Reads packets from an end until the tunnel ends.
fn take(shared: &Shared, from: usize, link: &Link) {
    let (mut end, pipe) = (&shared.ends[from], &shared.pipes[from]);
    let counters = counters(shared, from);
    let mut direction = LinkDirection::new(link);
    let mut order = DeliveryOrder::new(link, from as u64);
    let mut bytes = vec![0; MAX_PACKET_BYTES];
    while !shared.stop.load(Relaxed) {
        let read = match end.read(&mut bytes) {
            Ok(read) => read,
            Err(e) if e.kind() == ErrorKind::WouldBlock => {
                let mut waits = [PollFd::new(end, PollFlags::IN)];
                // The read below reports errors.
                let _ = poll(&mut waits, Some(&STOP_POLL_INTERVAL));
                continue;
            }
            // The device is down; it may come up again.
            Err(_) => {
                std::thread::sleep(Duration::from_millis(10));
                continue;
            }
        };
        let came = Instant::now();
        let full = lock(&pipe.packets).len() >= MAX_IN_FLIGHT_PACKETS
            || direction.backlog(came) > MAX_LINK_WAIT;
        if full || order.loses() {
            counters.dropped();
            continue;
        }
        let sent = direction.sent_at(came, read);
        let packet = Packet {
            due: order.arrives_at(sent),
            bytes: bytes[..read].to_vec(),
            came,
        };
        let mut packets = lock(&pipe.packets);
        packets.push_back(packet);
        // The other thread waits only for the first packet, since packets stay in order.
        if packets.len() == 1 {
            pipe.more.notify_one();
        }
    }
}

/// Writes packets to the other end when they are due.
fn put(shared: &Shared, from: usize) {
    let (mut end, pipe) = (&shared.ends[1 - from], &shared.pipes[from]);
    let counters = counters(shared, from);
    // Without this setting the kernel may wake the thread 50 µs late; the error is small, so a
    // failure is ignored.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    let mut packets = lock(&pipe.packets);
    while !shared.stop.load(Relaxed) {
        let now = Instant::now();
        let Some(packet) = packets.pop_front_if(|p| p.due <= now) else {
            let pause = packets.front().map(|p| p.due - now);
            packets = wait(&pipe.more, packets, pause);
            continue;
        };
        drop(packets);
        // A device accepts a whole packet or nothing.
        match end.write_all(&packet.bytes) {
            Ok(()) => counters.passed(packet.bytes.len(), packet.came.elapsed()),
            // A device that is down loses packets, as any link does.
            Err(_) => counters.dropped(),
        }
        packets = lock(&pipe.packets);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_are_read() {
        let at = |path: &str| Ok(Namespace::At(path.into()));
        assert_eq!("self".parse(), Ok(Namespace::Own));
        assert_eq!("filer".parse(), at("/run/netns/filer"));
        assert_eq!("/proc/1/ns/net".parse(), at("/proc/1/ns/net"));
        for wrong in ["", ".", ".."] {
            assert!(wrong.parse::<Namespace>().is_err());
        }
    }

    #[test]
    fn addresses_in_use_are_found() {
        let listed = "\
1: lo    inet 127.0.0.1/8 scope host lo\\       valid_lft forever preferred_lft forever
7: plimsoll0    inet 198.19.0.1/30 scope global plimsoll0\\       valid_lft forever
8: veth0    inet 198.19.7.200/24 brd 198.19.7.255 scope global veth0
9: veth1    inet 198.18.3.1/30 scope global veth1
";
        assert_eq!(numbers(listed), [0, 7]);
        assert_eq!(numbers("no list\ninet\ninet x/3\n"), [0_u8; 0]);
    }

    /// `Request` has the layout of the kernel's `struct ifreq`.
    #[test]
    fn the_request_has_the_kernels_form() {
        assert_eq!(size_of::<Request>(), 40);
        assert_eq!(std::mem::offset_of!(Request, flags), 16);
        assert_eq!(TUNSETIFF, 0x4004_54ca);
    }
}
