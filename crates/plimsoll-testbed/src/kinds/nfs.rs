//! `nfs`: nfs-ganesha on a file system of this machine, NFS versions 3, 4.0 and 4.1.

use super::{IP, Kind, Rights, no_status};
use crate::BedError;
use crate::bed::Bed;
use crate::daemon::{CommandLine, Ready};
use crate::needs::Need;
use crate::options::BedOptions;
use crate::preload;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

pub(super) const KIND: Kind = Kind {
    name: "nfs",
    summary: "nfs-ganesha, NFS versions 3, 4.0 and 4.1, optionally behind a line",
    options: &["--nfs-version", "--rtt", "--size"],
    choice: None,
    needs,
    rights: |_| Rights::UserNamespace,
    up,
    status: no_status,
};

/// Port of NFS.
pub(super) const NFS_PORT: u16 = 2049;

/// Port of MOUNT.
pub(super) const MOUNT_PORT: u16 = 20048;

/// Port of the port mapper.
const PORT_MAPPER_PORT: u16 = 111;

/// Number of the lines' address.
const LINE: u8 = 3;

/// Ports of lines before NFS and MOUNT: nfs-ganesha occupies its own ports at all addresses.
pub(super) const LINE_PORT: u16 = 12049;
const MOUNT_LINE_PORT: u16 = 12048;

/// Path of the export for NFSv4.
pub(super) const PSEUDO: &str = "/export";

/// Programs of an nfs-ganesha that serves a local file system.
pub(super) const NEEDS: [Need; 4] = [
    IP,
    Need::debian("ganesha.nfsd", "nfs-ganesha"),
    Need::debian("rpcbind", "rpcbind"),
    Need::debian("cc", "gcc"),
];

/// NFS versions, the default first.
const VERSIONS: [&str; 3] = ["4.1", "4.0", "3"];

/// The NFS version that `--nfs-version` selects.
pub(super) fn version(options: &BedOptions) -> Result<&'static str, BedError> {
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
    let server = Ganesha::new(bed, "server", address)?;
    bed.node("port-mapper", "port mapper", Some(address));
    server.start_port_mapper(bed, "port-mapper")?;
    let fsal = format!("FSAL {{ Name = VFS; }} Path = {};", quoted(&export));
    bed.node("server", "NFS server", Some(address))
        .note_file_system(&export);
    server.start(bed, "server", &fsal)?;
    let place = reached(bed, address)?;
    add_versions(bed, version, &place, &export, PSEUDO);
    bed.note("one NFS server on a file system of this machine");
    Ok(())
}

/// Addresses of NFS and MOUNT of a server, as seen by a client.
pub(super) struct Place {
    nfs: SocketAddr,
    mount_port: u16,
}

/// The client's addresses of a server: the server's own, or a line's with `--rtt`. Clients call MOUNT at the address of
/// NFS, so MOUNT has a line at the same address.
pub(super) fn reached(bed: &mut Bed, server: IpAddr) -> Result<Place, BedError> {
    let at = SocketAddr::new(server, NFS_PORT);
    let Some(rtt) = bed.options.rtt else {
        return Ok(Place {
            nfs: at,
            mount_port: MOUNT_PORT,
        });
    };
    let address = bed.address(LINE)?;
    let listen = SocketAddr::new(address, LINE_PORT);
    bed.add_line("line", listen, at, rtt)?;
    let mount = SocketAddr::new(server, MOUNT_PORT);
    bed.add_line(
        "mount-line",
        SocketAddr::new(address, MOUNT_LINE_PORT),
        mount,
        rtt,
    )?;
    Ok(Place {
        nfs: listen,
        mount_port: MOUNT_LINE_PORT,
    })
}

/// Adds a target for each version, `chosen` first.
pub(super) fn add_versions(
    bed: &mut Bed,
    chosen: &str,
    place: &Place,
    export: &Path,
    pseudo: &str,
) {
    let others = VERSIONS.iter().filter(|v| **v != chosen);
    for version in std::iter::once(&chosen).chain(others) {
        bed.add_url(&format!("v{version}"), url(version, place, export, pseudo));
    }
}

/// URL of an export for a version: `export` is its path for NFSv3, `pseudo` for NFSv4.
fn url(version: &str, place: &Place, export: &Path, pseudo: &str) -> String {
    let Place { nfs, mount_port } = place;
    match version {
        "3" => format!("nfs3://{nfs}{}?mountport={mount_port}", export.display()),
        version => format!("nfs4://{nfs}{pseudo}?minorversion={}", &version[2..]),
    }
}

/// A path as a string of nfs-ganesha's configuration.
pub(super) fn quoted(path: &Path) -> String {
    format!("\"{}\"", path.display())
}

/// An nfs-ganesha, optionally with its port mapper.
pub(super) struct Ganesha {
    address: IpAddr,
    /// Directory mounted over `/run` for nfs-ganesha and the port mapper.
    run_dir: PathBuf,
    recovery_dir: PathBuf,
    library: PathBuf,
}

impl Ganesha {
    /// Prepares an nfs-ganesha at an address, as the daemon of a node.
    pub(super) fn new(bed: &mut Bed, node: &str, address: IpAddr) -> Result<Self, BedError> {
        bed.progress(&format!("preparing nfs-ganesha for {node}"));
        let run_dir = bed.data(&format!("{node}-run"))?;
        bed.data(&format!("{node}-run/ganesha"))?;
        let recovery_dir = bed.data(&format!("{node}-recovery"))?;
        let library = recovery_dir.join("handles.so");
        let bytes = preload::HANDLES.bytes()?;
        std::fs::write(&library, bytes).map_err(BedError::at(&library))?;
        bed.software(
            "nfs-ganesha",
            node,
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

    /// Starts a server of versions 3 and 4 as the daemon of a node. The server needs the port mapper; `export` is the
    /// `FSAL` part of its export.
    pub(super) fn start(&self, bed: &mut Bed, node: &str, export: &str) -> Result<(), BedError> {
        self.start_versions(bed, node, "3, 4", NFS_PORT, export)
    }

    /// Starts the server of version 4 only as a node, at a port.
    pub(super) fn start_v4(
        &self,
        bed: &mut Bed,
        node: &str,
        port: u16,
        export: &str,
    ) -> Result<(), BedError> {
        self.start_versions(bed, node, "4", port, export)
    }

    /// nfs-ganesha listens at its ports of all addresses, whatever `Bind_addr` is.
    fn start_versions(
        &self,
        bed: &mut Bed,
        node: &str,
        versions: &str,
        port: u16,
        export: &str,
    ) -> Result<(), BedError> {
        let text = format!(
            "NFS_CORE_PARAM {{ Protocols = {versions}; NFS_Port = {port}; MNT_Port = {MOUNT_PORT};
                Bind_addr = {address}; Enable_NLM = false; Enable_RQUOTA = false; }}
            NFSv4 {{ Graceless = true; Lease_Lifetime = 30; Delegations = true;
                RecoveryBackend = fs; RecoveryRoot = {recovery}; Minor_Versions = 0, 1, 2; }}
            EXPORT_DEFAULTS {{ Access_Type = RW; Squash = No_Root_Squash; SecType = sys;
                Transports = TCP; Protocols = {versions}; PrivilegedPort = false; }}
            EXPORT {{ Export_Id = 1; Pseudo = {PSEUDO}; {export} }}
            LOG {{ Default_Log_Level = EVENT; }}\n",
            address = self.address,
            recovery = quoted(&self.recovery_dir),
        );
        let file = bed.write(&format!("{node}.conf"), &text)?;
        let pid_file = self.run_dir.join(format!("{node}.pid"));
        let data = self.run_dir.parent().expect("it is in the data of the bed");
        let line = CommandLine::new("ganesha.nfsd")
            .arg("-F")
            .arg("-f")
            .arg(file)
            .args(["-L", "STDOUT", "-p"])
            .arg(pid_file)
            .env("LD_PRELOAD", &self.library)
            // Restricts the search for an unknown handle to the data of the bed.
            .env("PLIMSOLL_EXPORTS", data)
            .private(&self.run_dir, "/run");
        bed.start_and_wait(node, line, Ready::Logged("NFS SERVER INITIALIZED"))
    }
}
