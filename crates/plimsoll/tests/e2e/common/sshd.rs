//! Real servers of ssh: one that an ordinary user may run, with keys of its own.

use crate::common::{Bench, family_of};
use plimsoll_testkit::{Machine, write_executable};
use rustix::process::{Pid, Signal, kill_process};
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Port of every server; each has an address of its own.
const PORT: u16 = 2222;
/// Environment variable of all processes that a server starts.
const VARIABLE: &str = "PLIMSOLL_TEST_SSHD";

static STARTED: AtomicU32 = AtomicU32::new(0);

/// A server, and the configuration of clients that trust it.
pub struct Sshd {
    child: Child,
    dir: PathBuf,
    pub address: IpAddr,
    /// Value of the variable of the processes below it.
    id: String,
}

impl Sshd {
    pub fn start(bench: &Bench) -> Self {
        Self::with(bench, "")
    }

    /// A server with more lines of configuration.
    pub fn with(bench: &Bench, more: &str) -> Self {
        if rustix::process::geteuid().is_root() {
            // Where a server that root starts puts processes without rights.
            std::fs::create_dir_all("/run/sshd").unwrap();
        }
        Self::launch(bench, more, None)
    }

    /// A server on another machine.
    pub fn on(bench: &Bench, machine: &Machine) -> Self {
        Self::launch(bench, "", Some(machine))
    }

    fn launch(bench: &Bench, more: &str, machine: Option<&Machine>) -> Self {
        let number = STARTED.fetch_add(1, Ordering::Relaxed) as u8;
        let pid = std::process::id();
        let address = machine.map_or_else(
            // A loopback address that no other process of these tests uses.
            || Ipv4Addr::new(127, 1 + (pid >> 8) as u8 % 250, pid as u8, 1 + number).into(),
            Machine::address,
        );
        let id = format!("{pid}-{number}");
        let dir = bench.path(&format!("sshd-{number}"));
        std::fs::create_dir(&dir).unwrap();
        std::fs::create_dir_all(bench.path("remote-tmp")).unwrap();
        for key in ["host_key", "user_key"] {
            keygen(&dir.join(key));
        }
        std::fs::copy(dir.join("user_key.pub"), dir.join("authorized_keys")).unwrap();
        let shown = dir.display();
        let config = format!(
            "ListenAddress {address}\nPort {PORT}\nHostKey {shown}/host_key\n\
             AuthorizedKeysFile {shown}/authorized_keys\nPidFile {shown}/pid\nStrictModes no\n\
             UsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n\
             PermitRootLogin prohibit-password\nMaxStartups 200\nMaxSessions 200\n\
             SetEnv {VARIABLE}={id} TMPDIR={}\n{more}\n",
            bench.path("remote-tmp").display()
        );
        std::fs::write(dir.join("sshd_config"), config).unwrap();
        let log = std::fs::File::create(dir.join("log")).unwrap();
        const SERVER: &str = "/usr/sbin/sshd";
        let mut command = match machine {
            None => Command::new(SERVER),
            Some(machine) => {
                // Where the system's own table cannot be read, root may count as locked.
                let script = format!(
                    "mkdir /run/sshd
                     echo 'root:*:19000::::::' > /run/shadow
                     chmod 600 /run/shadow
                     mount --bind /run/shadow /etc/shadow
                     exec {SERVER} \"$@\""
                );
                let mut shell = machine.shell(&script).unwrap_or_else(|e| panic!("{e}"));
                shell.arg("sh");
                shell
            }
        };
        let child = command
            .args(["-D", "-e", "-f"])
            .arg(dir.join("sshd_config"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        let child = match child {
            Err(e) if e.kind() == ErrorKind::NotFound => {
                panic!("/usr/sbin/sshd is missing: `make setup` installs openssh-server")
            }
            child => child.unwrap(),
        };
        let mut server = Self {
            child,
            dir,
            address,
            id,
        };
        server.await_ready();
        server.trust(&server.address(), "ssh_config");
        server
    }

    fn await_ready(&mut self) {
        let begin = Instant::now();
        while TcpStream::connect(self.address()).is_err() {
            let ended = self.child.try_wait().unwrap();
            let log = std::fs::read_to_string(self.dir.join("log")).unwrap();
            assert!(ended.is_none(), "sshd ended: {log}");
            assert!(begin.elapsed() < Duration::from_secs(20), "sshd: {log}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub fn address(&self) -> SocketAddr {
        (self.address, PORT).into()
    }

    /// Writes a configuration with which every name leads to the address, which is this server's own or
    /// leads to it; returns the command `ssh` with it.
    pub fn trust(&self, address: &SocketAddr, name: &str) -> String {
        let key = std::fs::read_to_string(self.dir.join("host_key.pub")).unwrap();
        let known = format!("server {key}");
        std::fs::write(self.dir.join("known_hosts"), known).unwrap();
        let dir = self.dir.display();
        let config = format!(
            "Host *\n  HostName {}\n  Port {}\n  HostKeyAlias server\n  IdentityFile {dir}/user_key\n  \
             IdentitiesOnly yes\n  UserKnownHostsFile {dir}/known_hosts\n  GlobalKnownHostsFile none\n  \
             StrictHostKeyChecking yes\n  ControlMaster no\n",
            address.ip(),
            address.port()
        );
        let path = self.dir.join(name);
        std::fs::write(&path, config).unwrap();
        format!("ssh -F '{}'", path.display())
    }

    /// The configuration in which every name leads to this server.
    pub fn config(&self) -> PathBuf {
        self.dir.join("ssh_config")
    }

    /// The command `ssh` that reaches this server by any name.
    pub fn ssh(&self) -> String {
        format!("ssh -F '{}'", self.config().display())
    }

    /// The same with a file of the configuration replaced.
    pub fn ssh_with(&self, file: &str, other: &str) -> String {
        let text = std::fs::read_to_string(self.dir.join("ssh_config")).unwrap();
        let path = self.dir.join(format!("with_{other}"));
        std::fs::write(&path, text.replace(file, other)).unwrap();
        format!("ssh -F '{}'", path.display())
    }

    /// The ranks that it has started, and those that these have: processes of the program, with their
    /// parents.
    pub fn ranks(&self) -> Vec<(i32, i32)> {
        let is_rank = |pid: &i32| {
            let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            command.split(|b| *b == 0).nth(1) == Some(&b"rank"[..])
        };
        let parent = |pid: i32| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            let (_, rest) = stat.rsplit_once(')')?;
            let mut fields = rest.split_whitespace();
            let state = fields.next()?;
            let parent = fields.next()?.parse().ok()?;
            (state != "Z").then_some((pid, parent))
        };
        let commands = self.commands().into_iter();
        commands.filter(is_rank).filter_map(parent).collect()
    }

    /// The commands that the server's sessions have executed, and their descendants, including processes that have
    /// outlived their session.
    fn commands(&self) -> Vec<i32> {
        let wanted = format!("{VARIABLE}={}", self.id);
        let is_its_own = |pid: &i32| {
            let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environ.split(|b| *b == 0).any(|v| v == wanted.as_bytes())
        };
        let processes = std::fs::read_dir("/proc").unwrap().map(Result::unwrap);
        let pids = processes.filter_map(|e| e.file_name().to_str()?.parse().ok());
        pids.filter(is_its_own).collect()
    }

    /// The server and its sessions. Each session has its own process group, and a session whose client is behind a cut
    /// line does not end by itself.
    fn sessions(&self) -> Vec<i32> {
        family_of(self.child.id() as i32)
    }

    /// Waits until this many of its ranks run.
    #[track_caller]
    pub fn await_ranks(&self, count: usize) -> Vec<(i32, i32)> {
        let begin = Instant::now();
        loop {
            let ranks = self.ranks();
            if ranks.len() == count {
                return ranks;
            }
            assert!(
                begin.elapsed() < Duration::from_secs(60),
                "{count} ranks were expected: {ranks:?}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let kill = |pid: i32, signal| {
            // The process may have ended.
            let _ = kill_process(Pid::from_raw(pid).expect("not 0"), signal);
        };
        // A stopped server starts no further sessions.
        kill(self.child.id() as i32, Signal::STOP);
        for pid in self.sessions().into_iter().chain(self.commands()) {
            kill(pid, Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

fn keygen(path: &Path) {
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(path)
        .stdin(Stdio::null())
        .status();
    match made {
        Err(e) if e.kind() == ErrorKind::NotFound => {
            panic!("ssh-keygen is missing: `make setup` installs openssh-client")
        }
        made => assert!(made.unwrap().success()),
    }
}

/// Writes a program.
pub fn script(path: &Path, text: &str) -> String {
    write_executable(path, format!("#!/bin/sh\n{text}\n"));
    path.to_str().unwrap().to_owned()
}
