//! A line of packets between two network namespaces.

use crate::delay::{DeliveryOrder, LineDirection};
use crate::figures::{Counters, Direction, Summary};
use crate::link::Link;
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
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// Addresses of the two ends of the tunnel of this number: of 198.18.0.0/15, which is for
/// benchmarks (RFC 2544, C.2.2).
fn addresses(number: u8) -> [Ipv4Addr; 2] {
    [1, 2].map(|last| Ipv4Addr::new(198, 19, number, last))
}

/// Packets that a device keeps for us while we are not looking; it drops what comes then.
const DEVICE_QUEUE_PACKETS: &str = "10000";

/// Longest packet that a device gives, in bytes.
const MAX_PACKET_BYTES: usize = 64 << 10;

/// Most packets of one direction that are on their way; what comes then is dropped.
const MAX_IN_FLIGHT_PACKETS: usize = 1 << 16;

/// Longest time that packets wait for a line of limited rate, as in the buffer of a router; what
/// comes then is dropped.
const MAX_LINE_WAIT: Duration = Duration::from_millis(100);

/// The file system that namespaces are files of: `NSFS_MAGIC` of Linux's `magic.h`.
const NSFS_MAGIC: FsWord = 0x6e73_6673;

/// Time between two looks whether the tunnel is to end.
const STOP_POLL_INTERVAL: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};

/// A network namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Namespace {
    /// That of this process, `self`.
    Own,
    /// One by a name that `ip netns add` gave it, or by a path, such as `/proc/1/ns/net`.
    At(PathBuf),
}

impl FromStr for Namespace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "self" => Ok(Self::Own),
            "" | "." | ".." => Err(format!("`{text}` is no network namespace")),
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
            // Those of others' processes, which a tunnel would need root for in any case.
            ErrorKind::PermissionDenied if !is_root() => TunnelError::NotRoot,
            _ => TunnelError::Namespace { path, error },
        })
    }
}

/// Why there is no tunnel.
#[derive(Debug, thiserror::Error)]
pub enum TunnelError {
    /// Devices are for root.
    #[error("a tunnel needs root: it makes network devices")]
    NotRoot,
    /// No such namespace.
    #[error("network namespace `{}`: {error}{}", path.display(), hint(error, "`ip netns add NAME` makes one"))]
    Namespace {
        /// Its path.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// Both ends in one place.
    #[error("both ends are in the same network namespace: nothing would go through the tunnel")]
    Same,
    /// All addresses are taken.
    #[error("256 tunnels end in these network namespaces: there are no more addresses")]
    Full,
    /// No device.
    #[error("/dev/net/tun: {}{}", .0, hint(.0, "`modprobe tun` may help"))]
    Device(io::Error),
    /// The device has no address.
    #[error("`ip {command}`: {said}")]
    Address {
        /// The arguments.
        command: String,
        /// What was said of it.
        said: String,
    },
    /// No threads.
    #[error("a tunnel needs threads: {0}")]
    Threads(io::Error),
}

/// What helps against an error, after a colon.
fn hint(error: &io::Error, missing: &str) -> String {
    match error.kind() {
        ErrorKind::NotFound => format!(": {missing}"),
        ErrorKind::PermissionDenied => {
            ": root of a container without CAP_NET_ADMIN and CAP_SYS_ADMIN has no right to".into()
        }
        ErrorKind::InvalidInput => ": it is none".into(),
        _ => String::new(),
    }
}

/// A tunnel that runs. Dropping it removes both devices.
pub struct Tunnel {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    names: [String; 2],
    addresses: [Ipv4Addr; 2],
}

/// What the threads share.
struct Shared {
    counters: Counters,
    stop: AtomicBool,
    ends: [File; 2],
    pipes: [Pipe; 2],
}

#[derive(Default)]
struct Pipe {
    packets: Mutex<VecDeque<Packet>>,
    more: Condvar,
}

struct Packet {
    bytes: Vec<u8>,
    came: Instant,
    due: Instant,
}

impl Pipe {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Packet>> {
        self.packets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tunnel {
    /// Makes a device in each namespace, and passes packets between them.
    ///
    /// # Errors
    /// What is missing: the right to, a namespace, a device, `ip`.
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

    /// Addresses of the first and of the second end, which no other device in their namespaces had.
    #[must_use]
    pub fn addresses(&self) -> [Ipv4Addr; 2] {
        self.addresses
    }

    /// Names of the devices of the first and of the second end.
    #[must_use]
    pub fn devices(&self) -> &[String; 2] {
        &self.names
    }

    /// What went through it so far.
    #[must_use]
    pub fn summary(&self) -> Summary {
        self.shared.counters.summary()
    }

    /// Removes both devices; returns what went through.
    #[must_use]
    pub fn stop(mut self) -> Summary {
        self.end();
        self.summary()
    }

    fn end(&mut self) {
        self.shared.stop.store(true, Relaxed);
        for pipe in &self.shared.pipes {
            // Whoever looks at the flag under the lock, and waits then, is woken.
            drop(pipe.lock());
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

/// Does something in a namespace. The thread that enters it ends with that, so that no other is in a
/// place it does not expect.
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

/// Makes a device with an address.
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

/// Numbers of the tunnels that end here, or of which something else has the addresses.
fn networks_in_use() -> Result<Vec<u8>, TunnelError> {
    Ok(numbers(&ip(&["-4", "-o", "addr", "show"])?))
}

/// Reads the lines of `ip -o addr`, in which the address follows the word `inet`.
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

/// Calls `ip`; returns what it printed.
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
    let done = done.map_err(|e| failed(format!("{e}: the package iproute2 has it")))?;
    match done.status.success() {
        true => Ok(String::from_utf8_lossy(&done.stdout).into_owned()),
        false => Err(failed(
            String::from_utf8_lossy(&done.stderr).trim().to_owned(),
        )),
    }
}

/// What the kernel is asked for with [`TUNSETIFF`]: `struct ifreq` of netdevice(7), of which a
/// device of this kind uses the name and the flags.
#[repr(C)]
#[derive(Clone, Copy)]
struct Request {
    name: [u8; 16],
    flags: u16,
    rest: [u8; 22],
}

/// `TUNSETIFF` of `linux/if_tun.h`.
const TUNSETIFF: Opcode = opcode::write::<i32>(b'T', 202);

/// `IFF_TUN | IFF_NO_PI`: packets of IP, with nothing before them.
const FLAGS: u16 = 0x0001 | 0x1000;

/// Makes a device in the namespace of this thread. It goes with the file.
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
    // 16 bytes of name and a short of flags, as `Request` does; every byte of it is initialised,
    // and any bytes are valid in it. It outlives the call.
    unsafe { ioctl(&end, Updater::<TUNSETIFF, Request>::new(&mut request)) }?;
    let name = request.name.split(|b| *b == 0).next().unwrap_or_default();
    let name = String::from_utf8_lossy(name).into_owned();
    Ok((end, name))
}

/// The figures of the direction that begins at this end.
fn counters(shared: &Shared, from: usize) -> &Direction {
    match from {
        0 => &shared.counters.up,
        _ => &shared.counters.down,
    }
}

/// Takes packets from an end until the tunnel is to end.
fn take(shared: &Shared, from: usize, link: &Link) {
    let (mut end, pipe) = (&shared.ends[from], &shared.pipes[from]);
    let counters = counters(shared, from);
    let (mut wire, mut order) = (
        LineDirection::new(link),
        DeliveryOrder::new(link, from as u64),
    );
    let mut bytes = vec![0; MAX_PACKET_BYTES];
    while !shared.stop.load(Relaxed) {
        let read = match end.read(&mut bytes) {
            Ok(read) => read,
            Err(e) if e.kind() == ErrorKind::WouldBlock => {
                let mut waits = [PollFd::new(end, PollFlags::IN)];
                // Whatever it says, reading says it better.
                let _ = poll(&mut waits, Some(&STOP_POLL_INTERVAL));
                continue;
            }
            // A device that somebody took down may come up again.
            Err(_) => {
                std::thread::sleep(Duration::from_millis(10));
                continue;
            }
        };
        let came = Instant::now();
        let full = pipe.lock().len() >= MAX_IN_FLIGHT_PACKETS || wire.backlog(came) > MAX_LINE_WAIT;
        if full || order.loses() {
            counters.dropped();
            continue;
        }
        let left = wire.leaves(came, read);
        let packet = Packet {
            due: order.comes(left),
            bytes: bytes[..read].to_vec(),
            came,
        };
        let mut packets = pipe.lock();
        packets.push_back(packet);
        // Only the first is waited for: nothing overtakes.
        if packets.len() == 1 {
            pipe.more.notify_one();
        }
    }
}

/// Puts packets into the other end when they are due.
fn put(shared: &Shared, from: usize) {
    let (mut end, pipe) = (&shared.ends[1 - from], &shared.pipes[from]);
    let counters = counters(shared, from);
    // A kernel that cannot do it wakes the thread up to 50 µs later, which is little here.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    let mut packets = pipe.lock();
    while !shared.stop.load(Relaxed) {
        let now = Instant::now();
        packets = match packets.front().map(|p| p.due) {
            None => pipe
                .more
                .wait(packets)
                .unwrap_or_else(PoisonError::into_inner),
            Some(due) if due > now => {
                let waited = pipe.more.wait_timeout(packets, due - now);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
            Some(_) => {
                let packet = packets.pop_front();
                drop(packets);
                if let Some(packet) = packet {
                    // A device takes a packet whole or not at all.
                    match end.write_all(&packet.bytes) {
                        Ok(()) => counters.passed(packet.bytes.len(), packet.came.elapsed()),
                        // A device that is down takes none: it is lost, as on any line.
                        Err(_) => counters.dropped(),
                    }
                }
                pipe.lock()
            }
        };
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
        assert_eq!(numbers("no list\ninet\ninet x/3\n"), []);
    }

    /// What the kernel reads is a `struct ifreq`.
    #[test]
    fn the_request_has_the_kernels_form() {
        assert_eq!(size_of::<Request>(), 40);
        assert_eq!(std::mem::offset_of!(Request, flags), 16);
        assert_eq!(TUNSETIFF, 0x4004_54ca);
    }
}
