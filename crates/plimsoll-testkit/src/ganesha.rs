//! nfs-ganesha, with its file system VFS or MEM.

use crate::namespace::{Namespace, SERVER_DIR};
use crate::process::{Process, wait_until};
use crate::{MOUNT_PORT, NFS_PORT, TestServerError, program, with_options};
use plimsoll_testbed::preload;
use rustix::process::Signal;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// File name of the library with which nfs-ganesha finds files in namespaces of an ordinary user.
const LIBRARY: &str = "handles.so";

/// A file system abstraction layer of nfs-ganesha.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fsal {
    /// FSAL VFS: the export is a directory of a file system of the kernel.
    Vfs,
    /// FSAL MEM, in the server's memory: files end with the server's process, and other processes cannot see them. FSAL
    /// MEM keeps only the first [`MEM_FILE`] bytes of a file. Many CREATE and REMOVE calls in flight (32 of one client)
    /// crash a server with FSAL MEM.
    Mem,
}

/// Number of bytes of a file that [`Fsal::Mem`] keeps; the rest is lost.
pub const MEM_FILE: u32 = 64 << 10;

impl Fsal {
    /// File name of the FSAL's library of nfs-ganesha, and the library's Debian package.
    const fn library(self) -> (&'static str, &'static str) {
        match self {
            Self::Vfs => ("libfsalvfs.so", "nfs-ganesha-vfs"),
            Self::Mem => ("libfsalmem.so", "nfs-ganesha-mem"),
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Vfs => "VFS",
            Self::Mem => "MEM",
        }
    }
}

/// Options of nfs-ganesha.
#[derive(Debug, Clone)]
pub struct GaneshaOptions {
    /// File system of the export.
    pub fsal: Fsal,
    /// Whether the export is read-only.
    pub read_only: bool,
    /// Size of the export in bytes; by default a quarter of the machine's memory.
    pub size: Option<u64>,
    /// Lease time of NFSv4, in seconds.
    pub lease_seconds: u32,
}

impl Default for GaneshaOptions {
    fn default() -> Self {
        Self {
            fsal: Fsal::Vfs,
            read_only: false,
            size: None,
            lease_seconds: 30,
        }
    }
}

/// An nfs-ganesha: NFSv3, 4.0, 4.1 and 4.2, without delegations.
pub struct Ganesha {
    // `server` is declared before `namespace`, so that nfs-ganesha ends before the processes of the namespace.
    server: Option<Process>,
    namespace: Namespace,
    fsal: Fsal,
}

impl Ganesha {
    /// Path of the export for NFSv3, and in the server's namespace.
    pub const EXPORT: &str = "/mnt/export";

    /// Path of the export for NFSv4.
    pub const PSEUDO: &str = "/export";

    /// Starts nfs-ganesha with default options and an empty export.
    pub fn start() -> Result<Self, TestServerError> {
        Self::with(&GaneshaOptions::default())
    }

    /// Starts nfs-ganesha with `options` and an empty export.
    pub fn with(options: &GaneshaOptions) -> Result<Self, TestServerError> {
        Self::configured(options, &configuration(options))
    }

    fn configured(options: &GaneshaOptions, text: &str) -> Result<Self, TestServerError> {
        program("ganesha.nfsd", "nfs-ganesha")?;
        let namespace = Namespace::new()?;
        if let Some(size) = options.size {
            namespace.sh(&format!(
                "mount -t tmpfs -o mode=755,size={size} export {}",
                Self::EXPORT
            ))?;
        }
        let mut this = Self {
            server: None,
            namespace,
            fsal: options.fsal,
        };
        this.write("ganesha.conf", text)?;
        this.write(LIBRARY, preload::HANDLES.bytes()?)?;
        std::fs::create_dir(this.namespace.seen(SERVER_DIR).join("recovery"))
            .map_err(|e| TestServerError::failed("a directory for recovery", e))?;
        this.start_again()?;
        Ok(this)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> Result<(), TestServerError> {
        let path = self.namespace.seen(SERVER_DIR).join(name);
        std::fs::write(&path, text)
            .map_err(|e| TestServerError::failed(path.display().to_string(), e))
    }

    /// Address of the server; NFS is at [`NFS_PORT`], MOUNT at [`MOUNT_PORT`], and the port mapper at port 111 returns
    /// both ports.
    pub fn address(&self) -> IpAddr {
        self.namespace.address()
    }

    /// URL of the target `nfs3`, which finds the ports by the port mapper, with options such as
    /// `nconnect=2&rsize=4k`.
    pub fn nfs3_url(&self, options: &str) -> String {
        with_options(
            &format!("nfs3://{}{}", self.address(), Self::EXPORT),
            options,
        )
    }

    /// URL of the target `nfs4`, with options such as `minorversion=0&open_owner=shared`.
    pub fn nfs4_url(&self, options: &str) -> String {
        with_options(
            &format!("nfs4://{}{}", self.address(), Self::PSEUDO),
            options,
        )
    }

    /// Path of the exported directory for this process; empty with [`Fsal::Mem`].
    pub fn seen(&self) -> PathBuf {
        self.namespace.seen(Self::EXPORT)
    }

    /// The server's log; empty before it is created.
    pub fn log(&self) -> String {
        let log = self.namespace.seen(SERVER_DIR).join("ganesha.log");
        std::fs::read_to_string(log).unwrap_or_default()
    }

    /// Runs a shell script in the server's namespaces; returns its output.
    pub fn sh(&self, script: &str) -> Result<String, TestServerError> {
        self.namespace.sh(script)
    }

    /// Kills the server.
    pub fn kill(&mut self) -> Result<(), TestServerError> {
        self.end(Signal::KILL)
    }

    /// Stops the server in order.
    pub fn stop(&mut self) -> Result<(), TestServerError> {
        self.end(Signal::TERM)
    }

    /// Suspends the server: connections stay, and the server sends no replies until [`Ganesha::go_on`].
    pub fn pause(&self) {
        if let Some(server) = &self.server {
            server.signal(Signal::STOP);
        }
    }

    /// Resumes a suspended server.
    pub fn go_on(&self) {
        if let Some(server) = &self.server {
            server.signal(Signal::CONT);
        }
    }

    fn end(&mut self, signal: Signal) -> Result<(), TestServerError> {
        if let Some(server) = self.server.take() {
            server.end(signal)?;
        }
        Ok(())
    }

    /// Starts nfs-ganesha again after a stop or kill; files of [`Fsal::Vfs`] are still there, files of [`Fsal::Mem`]
    /// are lost.
    pub fn start_again(&mut self) -> Result<(), TestServerError> {
        let path = program("ganesha.nfsd", "nfs-ganesha")?;
        let (before, length) = (self.starts(), self.log().len());
        // `env` sets LD_PRELOAD for nfs-ganesha only, not for `nsenter` and other programs that start nfs-ganesha.
        let mut command = self.namespace.command(Path::new("env"))?;
        command
            .arg(preload::variable(&[Path::new(SERVER_DIR).join(LIBRARY)]))
            .arg(path)
            .args(["-F", "-f", "/mnt/ganesha.conf", "-L", "/mnt/ganesha.log"])
            .args(["-p", "/mnt/ganesha.pid"])
            .stdout(Stdio::null());
        let server = Process::start(command)?;
        let written = || self.log().get(length..).unwrap_or_default().to_owned();
        let failure = || server.failure(written);
        for port in [MOUNT_PORT, NFS_PORT] {
            self.namespace.wait_for(port, "nfs-ganesha", failure)?;
        }
        // nfs-ganesha listens before it registers with the port mapper, so the start waits for an open port and also
        // for the line in the log.
        let ready = || (self.starts() > before).then_some(());
        wait_until("starting nfs-ganesha", ready, failure)?;
        // Without the FSAL's library, nfs-ganesha serves without exports.
        if self.log().contains("Failed to load FSAL") {
            let (program, package) = self.fsal.library();
            return Err(TestServerError::Missing { program, package });
        }
        self.server = Some(server);
        Ok(())
    }

    /// Number of lines in nfs-ganesha's log that report an initialised server: one for each start.
    fn starts(&self) -> usize {
        self.log().matches("NFS SERVER INITIALIZED").count()
    }
}

impl Drop for Ganesha {
    fn drop(&mut self) {
        // A server that does not stop in order is killed with its namespace.
        let _ = self.stop();
    }
}

/// The configuration. The server caches no attributes and directories, because tests change files directly.
fn configuration(options: &GaneshaOptions) -> String {
    let access = if options.read_only { "RO" } else { "RW" };
    format!(
        "NFS_CORE_PARAM {{ Protocols = 3, 4; NFS_Port = {NFS_PORT}; MNT_Port = {MOUNT_PORT};
            Enable_NLM = false; Enable_RQUOTA = false; }}
        NFSv4 {{ Graceless = true; Lease_Lifetime = {lease}; Delegations = true;
            RecoveryBackend = fs; RecoveryRoot = \"{SERVER_DIR}/recovery\"; Minor_Versions = 0, 1, 2; }}
        {cache}
        EXPORT_DEFAULTS {{ {attributes} Access_Type = {access}; Squash = No_Root_Squash; SecType = sys;
            Transports = TCP; Protocols = 3, 4; PrivilegedPort = false; }}
        EXPORT {{ Export_Id = 1; Path = {export}; Pseudo = {pseudo}; FSAL {{ Name = {fsal}; }} }}
        MEM {{ Inode_Size = {MEM_FILE}; }}
        LOG {{ Default_Log_Level = EVENT; }}\n",
        cache = if options.fsal == Fsal::Vfs { "MDCACHE { Dir_Chunk = 0; }" } else { "" },
        attributes = if options.fsal == Fsal::Vfs { "Attr_Expiration_Time = 0;" } else { "" },
        fsal = options.fsal.name(),
        lease = options.lease_seconds,
        export = Ganesha::EXPORT,
        pseudo = Ganesha::PSEUDO,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::needs_root;

    fn fails_to_start(text: &str) -> String {
        match Ganesha::configured(&GaneshaOptions::default(), text) {
            Ok(_) => panic!("it starts"),
            Err(e) => e.to_string(),
        }
    }

    #[test]
    fn one_with_a_broken_configuration_is_known_by_its_log() {
        needs_root!();
        let said = fails_to_start("NFS_CORE_PARAM { NFS_Port = banana; }\n");
        let begin = "starting nfs-ganesha: it ended (exit status: 2): ";
        let first = said.lines().next().unwrap();
        assert!(
            first.starts_with(begin) && first.contains(":FATAL :"),
            "{said}"
        );
        assert!(
            said.contains("ganesha.conf:1): Expected a number"),
            "{said}"
        );
    }

    /// nfs-ganesha would serve with another configuration.
    #[test]
    fn one_that_cannot_read_its_configuration_is_known_by_its_log() {
        needs_root!();
        let said = fails_to_start("NFS_CORE_PARAM { Protocols = 3, 4;\n");
        let first = said.lines().next().unwrap();
        assert!(first.starts_with("starting nfs-ganesha: "), "{said}");
        assert!(
            first.contains("ganesha.conf:2) error: syntax error"),
            "{said}"
        );
    }
}
