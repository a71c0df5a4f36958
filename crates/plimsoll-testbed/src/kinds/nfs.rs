//! `nfs`: nfs-ganesha with a file system of this machine, NFS versions 3, 4.0 and 4.1.

use super::{IP, Kind, Rights, apply, no_status, no_stop};
use crate::BedError;
use crate::bed::Bed;
use crate::daemon::{CommandLine, Ready};
use crate::needs::Need;
use crate::options::BedOptions;
use crate::preload;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

/// The kind.
pub(super) const KIND: Kind = Kind {
    name: "nfs",
    summary: "nfs-ganesha, NFS versions 3, 4.0 and 4.1, optionally behind a line",
    options: &["--nfs-version", "--rtt", "--size"],
    needs,
    rights: |_| Rights::UserNamespace,
    up,
    apply,
    status: no_status,
    stop: no_stop,
};

/// Port of NFS.
pub(super) const NFS_PORT: u16 = 2049;

/// Distance of the ports of a line from those of the server.
const LINE_PORTS: u16 = 10_000;

/// Port of MOUNT.
const MOUNT_PORT: u16 = 20048;

/// Port of the port mapper.
const PORT_MAPPER_PORT: u16 = 111;

/// Path of the export for NFSv4.
const PSEUDO: &str = "/export";

/// Programs of an nfs-ganesha that serves a local file system.
pub(super) const NEEDS: [Need; 4] = [
    IP,
    Need::debian("ganesha.nfsd", "nfs-ganesha"),
    Need::debian("rpcbind", "rpcbind"),
    Need::debian("cc", "gcc"),
];

/// The versions, the default one first.
const VERSIONS: [&str; 3] = ["4.1", "4.0", "3"];

fn version(options: &BedOptions) -> Result<&'static str, BedError> {
    BedOptions::choice("--nfs-version", options.nfs_version.as_deref(), &VERSIONS)
}

fn needs(options: &BedOptions) -> Result<Vec<Need>, BedError> {
    version(options)?;
    Ok(NEEDS.to_vec())
}

fn up(bed: &mut Bed) -> Result<(), BedError> {
    let version = version(&bed.options)?;
    let address = bed.address(2)?;
    let export = bed.limited_data("export")?;
    let server = Ganesha::new(bed, address)?;
    bed.node("port-mapper", "port mapper", Some(address));
    server.start_port_mapper(bed, "port-mapper")?;
    let fsal = format!("FSAL {{ Name = VFS; }} Path = {};", quoted(&export));
    bed.node("server", "NFS server", Some(address))
        .has_file_system(&export);
    server.start(bed, "server", &fsal)?;
    let mut at = SocketAddr::new(address, NFS_PORT);
    let mut mount = SocketAddr::new(address, MOUNT_PORT);
    if let Some(rtt) = bed.options.rtt {
        // The server listens at its ports of all addresses. MOUNT is asked at the address of NFS.
        at = bed.add_line("line", (3, at.port() + LINE_PORTS), at, rtt)?;
        mount = bed.add_line("mount-line", (3, mount.port() + LINE_PORTS), mount, rtt)?;
    }
    let others = VERSIONS.iter().filter(|v| **v != version);
    for version in std::iter::once(&version).chain(others) {
        bed.add_url(&format!("v{version}"), url(version, at, mount, &export));
    }
    bed.note("one NFS server on a file system of this machine");
    Ok(())
}

/// URL of an export for a version.
fn url(version: &str, nfs: SocketAddr, mount: SocketAddr, export: &Path) -> String {
    match version {
        "3" => format!(
            "nfs3://{nfs}{}?mountport={}",
            export.display(),
            mount.port()
        ),
        version => format!("nfs4://{nfs}{PSEUDO}?minorversion={}", &version[2..]),
    }
}

/// A path in a configuration of nfs-ganesha.
pub(super) fn quoted(path: &Path) -> String {
    format!("\"{}\"", path.display())
}

/// An nfs-ganesha with its port mapper.
pub(super) struct Ganesha {
    address: IpAddr,
    /// What is `/run` for both.
    run_dir: PathBuf,
    recovery_dir: PathBuf,
    library: PathBuf,
}

impl Ganesha {
    /// Prepares one at an address.
    pub(super) fn new(bed: &mut Bed, address: IpAddr) -> Result<Self, BedError> {
        bed.progress("preparing nfs-ganesha");
        let run_dir = bed.data("run")?;
        bed.data("run/ganesha")?;
        let recovery_dir = bed.data("recovery")?;
        let library = recovery_dir.join("handles.so");
        let bytes = preload::HANDLES.bytes()?;
        std::fs::write(&library, bytes).map_err(BedError::at(&library))?;
        bed.software(
            "nfs-ganesha",
            "NFS server",
            &CommandLine::new("ganesha.nfsd").arg("-v"),
        );
        Ok(Self {
            address,
            run_dir,
            recovery_dir,
            library,
        })
    }

    /// Starts the port mapper as a node.
    pub(super) fn start_port_mapper(&self, bed: &mut Bed, node: &str) -> Result<(), BedError> {
        let line = CommandLine::new("rpcbind")
            .args(["-w", "-f"])
            .private(&self.run_dir, "/run");
        let at = SocketAddr::new(self.address, PORT_MAPPER_PORT);
        bed.start_and_wait(node, line, Ready::Listening(vec![at]))
    }

    /// Starts the server as a node; `export` is the file system of its export.
    pub(super) fn start(&self, bed: &mut Bed, node: &str, export: &str) -> Result<(), BedError> {
        let text = format!(
            "NFS_CORE_PARAM {{ Protocols = 3, 4; NFS_Port = {NFS_PORT}; MNT_Port = {MOUNT_PORT};
                Bind_addr = {address}; Enable_NLM = false; Enable_RQUOTA = false; }}
            NFSv4 {{ Graceless = true; Lease_Lifetime = 30; Delegations = true;
                RecoveryBackend = fs; RecoveryRoot = {recovery}; Minor_Versions = 0, 1, 2; }}
            EXPORT_DEFAULTS {{ Access_Type = RW; Squash = No_Root_Squash; SecType = sys;
                Transports = TCP; Protocols = 3, 4; PrivilegedPort = false; }}
            EXPORT {{ Export_Id = 1; Pseudo = {PSEUDO}; {export} }}
            LOG {{ Default_Log_Level = EVENT; }}\n",
            address = self.address,
            recovery = quoted(&self.recovery_dir),
        );
        let file = bed.write(&format!("{node}.conf"), &text)?;
        let pid_file = self.run_dir.join(format!("{node}.pid"));
        let line = CommandLine::new("ganesha.nfsd")
            .arg("-F")
            .arg("-f")
            .arg(file)
            .args(["-L", "STDOUT", "-p"])
            .arg(pid_file)
            .env("LD_PRELOAD", &self.library)
            .private(&self.run_dir, "/run");
        bed.start_and_wait(node, line, Ready::Logged("NFS SERVER INITIALIZED"))
    }
}
