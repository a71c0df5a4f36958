//! Namespaces of a server: its own network, and a directory in memory.

use crate::process::{Process, bound_command, run, wait_until};
use crate::{TestServerError, only_root, program};
use std::io::{ErrorKind, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{self as unix, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Maximum number of servers at the same time on one machine.
const MAX_SERVERS: u8 = u8::MAX;

/// Directory of the server in its mount namespace. Every system has the directory; the mount hides its content from the
/// server only.
pub(crate) const SERVER_DIR: &str = "/mnt";

/// Shell script of process 1 of the namespaces; all processes in the namespaces end with process 1. Process 1 prints
/// its process number in the outer PID namespace, from the outer `/proc`.
const INIT_SCRIPT: &str = r#"
set -e
mount -t tmpfs -o mode=755 run /run
mount -t tmpfs -o mode=755 bed /mnt
mkdir /run/ganesha /mnt/export
read -r pid rest < /proc/self/stat
echo "$pid"
read -r address
ip link set lo up
ip addr add "$address" dev eth0
ip link set eth0 up
rpcbind -w -f &
wait
"#;

/// Network, mount and PID namespaces of one server, with an address of their own and a port mapper.
pub(crate) struct Namespace {
    slot: AddressSlot,
    holder: Option<Process>,
    pid: u32,
}

/// A reserved range of addresses in 198.18.0.0/15, which is reserved for benchmarks (RFC 2544, appendix C.2.2).
struct AddressSlot {
    number: u8,
    /// Socket with the name of the slot; the system frees the name when the process dies. Abstract names are valid in
    /// one network namespace, as addresses are.
    _name: UnixListener,
}

impl AddressSlot {
    fn take() -> Result<Self, TestServerError> {
        for number in 0..MAX_SERVERS {
            let name = format!("plimsoll-testkit-{number}");
            let at = unix::SocketAddr::from_abstract_name(&name);
            // The name is only a lock, to which no process connects.
            match at.and_then(|at| UnixListener::bind_addr(&at)) {
                Ok(_name) => return Ok(Self { number, _name }),
                Err(e) if e.kind() == ErrorKind::AddrInUse => {}
                Err(e) => return Err(TestServerError::failed(name, e)),
            }
        }
        Err(TestServerError::Full(usize::from(MAX_SERVERS)))
    }

    fn address(&self, last: u8) -> Ipv4Addr {
        Ipv4Addr::new(198, 18, self.number, last)
    }

    /// Name of the network device outside of the namespace.
    fn device(&self) -> String {
        format!("plt{}", self.number)
    }
}

impl Namespace {
    pub(crate) fn new() -> Result<Self, TestServerError> {
        only_root()?;
        program("rpcbind", "rpcbind")?;
        let slot = AddressSlot::take()?;
        let mut command = bound_command("unshare")?;
        command
            .args(["--net", "--mount", "--pid", "--fork", "--kill-child=KILL"])
            .args(["sh", "-c", INIT_SCRIPT])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut holder = Process::start(command)?;
        let said = holder.said.take().unwrap_or_default();
        let pid = said
            .trim()
            .parse()
            .map_err(|_| TestServerError::failed("a network namespace", holder.errors()))?;
        let mut this = Self {
            slot,
            holder: Some(holder),
            pid,
        };
        this.connect()?;
        let failure = || this.holder.as_ref()?.failure(String::new);
        this.wait_for(111, "rpcbind", failure)?;
        Ok(this)
    }

    fn connect(&mut self) -> Result<(), TestServerError> {
        let (device, pid) = (self.slot.device(), self.pid.to_string());
        let ip = |args: &[&str]| {
            let mut command = Command::new(program("ip", "iproute2")?);
            run(command.args(args))
        };
        // The device of a recently killed process may still exist.
        let add = [
            "link", "add", &device, "type", "veth", "peer", "name", "eth0", "netns", &pid,
        ];
        let mut error = String::new();
        let added = || ip(&add).inspect_err(|e| error = e.to_string()).ok();
        wait_until("adding a network device", added, || None)
            .map_err(|_| TestServerError::failed("adding a network device", &error))?;
        let own = format!("{}/30", self.slot.address(1));
        ip(&["addr", "add", &own, "dev", &device])?;
        ip(&["link", "set", &device, "up"])?;
        let input = self.holder.as_mut().and_then(|h| h.input.take());
        let mut input = input.ok_or_else(|| TestServerError::failed("a pipe", "it is missing"))?;
        writeln!(input, "{}/30", self.slot.address(2))
            .map_err(|e| TestServerError::failed("a network namespace", e))
    }

    /// Address of the programs in the namespace.
    pub(crate) fn address(&self) -> IpAddr {
        self.slot.address(2).into()
    }

    /// Addresses of a second machine in the namespace, behind the first machine, and of the first machine on their
    /// common network.
    pub(crate) fn inner(&self) -> (IpAddr, IpAddr) {
        (self.slot.address(6).into(), self.slot.address(5).into())
    }

    /// The path, outside of the namespace, of a path in the namespace.
    pub(crate) fn seen(&self, path: &str) -> PathBuf {
        Path::new("/proc")
            .join(self.pid.to_string())
            .join("root")
            .join(path.trim_start_matches('/'))
    }

    /// A command in the network and mount namespaces, killed when this process dies.
    pub(crate) fn command(&self, program: &Path) -> Result<Command, TestServerError> {
        let mut command = bound_command("nsenter")?;
        command
            .args(["--net", "--mount", "--target", &self.pid.to_string(), "--"])
            .arg(program)
            .stdin(Stdio::null());
        Ok(command)
    }

    /// Runs a shell script in the namespaces to its end.
    pub(crate) fn sh(&self, script: &str) -> Result<String, TestServerError> {
        let mut command = self.command(Path::new("sh"))?;
        run(command.args(["-e", "-c", script]))
    }

    /// Adds a route to the second machine, whose network device is `device`.
    pub(crate) fn route(&self, device: &str) -> Result<(), TestServerError> {
        let (second, first) = self.inner();
        let (outside, inside) = (self.slot.address(1), self.slot.address(2));
        self.sh(&format!(
            "ip tuntap add dev {device} mode tap\n\
             ip addr add {first}/30 dev {device}\n\
             ip link set {device} up\n\
             echo 1 > /proc/sys/net/ipv4/ip_forward\n\
             ip route add default via {outside}"
        ))?;
        let mut ip = Command::new(program("ip", "iproute2")?);
        let (to, via) = (format!("{second}/32"), inside.to_string());
        run(ip.args(["route", "add", &to, "via", &via, "dev", &self.slot.device()]))?;
        Ok(())
    }

    /// Waits until a server listens at a port of the first machine.
    pub(crate) fn wait_for(
        &self,
        port: u16,
        what: &str,
        failure: impl Fn() -> Option<String>,
    ) -> Result<(), TestServerError> {
        wait_for(SocketAddr::new(self.address(), port), what, failure)
    }
}

/// Waits until a TCP connection to `at` succeeds, or fails if `failure` returns a reason why the server `what` will
/// never listen.
pub(crate) fn wait_for(
    at: SocketAddr,
    what: &str,
    failure: impl Fn() -> Option<String>,
) -> Result<(), TestServerError> {
    let connect = || TcpStream::connect_timeout(&at, Duration::from_millis(200)).ok();
    wait_until(&format!("starting {what}"), connect, failure).map(drop)
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // The device is removed before its name becomes free; everything else ends with the last process.
        if let Ok(ip) = program("ip", "iproute2") {
            let _ = run(Command::new(ip).args(["link", "del", &self.slot.device()]));
        }
        self.holder = None;
    }
}
