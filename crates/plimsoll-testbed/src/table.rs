//! The servers that others wrote, and ours: which versions of NFS they speak, what is run on them, and
//! how it ends. `docs/nfs.md` shows the table, and tests run what it says.
//!
//! A server is an implementation of [`NfsServer`] and a row of [`ROWS`].

use crate::{
    BedError, Fsal, Ganesha, GaneshaOptions, Knfsd, MOUNT_PORT, NFS_PORT, Nfs3Server, Rclone,
    ServeNfs, Viewer,
};
use std::net::SocketAddr;

/// A version of NFS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// RFC 1813.
    V3,
    /// RFC 7530.
    V40,
    /// RFC 8881.
    V41,
}

impl Version {
    /// As it is written.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::V3 => "3",
            Self::V40 => "4.0",
            Self::V41 => "4.1",
        }
    }

    /// Options of a URL, and more.
    fn options(self, more: &str) -> String {
        let minor = match self {
            Self::V3 => return more.to_owned(),
            Self::V40 => "minor=0",
            Self::V41 => "minor=1",
        };
        let mark = if more.is_empty() { "" } else { "&" };
        format!("{minor}{mark}{more}")
    }
}

/// A server that was started.
pub trait NfsServer: Send {
    /// URL of the target that speaks this version; `more` is options, such as `nconnect=2&rsize=4k`.
    fn url(&self, version: Version, more: &str) -> String;

    /// Where NFS is.
    fn nfs_address(&self) -> SocketAddr;

    /// A client by which the files are seen, which every server has.
    ///
    /// # Errors
    /// What the server said.
    fn viewer(&self) -> Result<Viewer, BedError> {
        let nfs = self.nfs_address();
        Viewer::connect(nfs, nfs.port(), "/")
    }

    /// Kills it.
    ///
    /// # Errors
    /// If it does not end.
    fn kill(&mut self) -> Result<(), BedError>;

    /// Starts it again after it was killed.
    ///
    /// # Errors
    /// What was said of the failure.
    fn start_again(&mut self) -> Result<(), BedError>;
}

impl NfsServer for Ganesha {
    fn url(&self, version: Version, more: &str) -> String {
        match version {
            Version::V3 => self.nfs3_url(more),
            _ => self.nfs4_url(&version.options(more)),
        }
    }

    fn nfs_address(&self) -> SocketAddr {
        SocketAddr::new(self.address(), NFS_PORT)
    }

    fn viewer(&self) -> Result<Viewer, BedError> {
        Viewer::connect(self.nfs_address(), MOUNT_PORT, Self::EXPORT)
    }

    fn kill(&mut self) -> Result<(), BedError> {
        self.kill()
    }

    fn start_again(&mut self) -> Result<(), BedError> {
        self.start_again()
    }
}

impl NfsServer for Knfsd {
    fn url(&self, version: Version, more: &str) -> String {
        match version {
            Version::V3 => self.nfs3_url(more),
            _ => self.nfs4_url(&version.options(more)),
        }
    }

    fn nfs_address(&self) -> SocketAddr {
        SocketAddr::new(self.address(), NFS_PORT)
    }

    fn viewer(&self) -> Result<Viewer, BedError> {
        Viewer::connect(self.nfs_address(), MOUNT_PORT, Self::EXPORT)
    }

    fn kill(&mut self) -> Result<(), BedError> {
        self.kill_server()
    }

    fn start_again(&mut self) -> Result<(), BedError> {
        self.start_server_again()
    }
}

impl NfsServer for Rclone {
    fn url(&self, _: Version, more: &str) -> String {
        self.nfs3_url(more)
    }

    fn nfs_address(&self) -> SocketAddr {
        self.address()
    }

    fn kill(&mut self) -> Result<(), BedError> {
        self.kill()
    }

    fn start_again(&mut self) -> Result<(), BedError> {
        self.start_again()
    }
}

impl NfsServer for Nfs3Server {
    fn url(&self, _: Version, more: &str) -> String {
        self.nfs3_url(more)
    }

    fn nfs_address(&self) -> SocketAddr {
        self.address()
    }

    fn kill(&mut self) -> Result<(), BedError> {
        self.kill();
        Ok(())
    }

    fn start_again(&mut self) -> Result<(), BedError> {
        self.start_again()
    }
}

impl NfsServer for ServeNfs {
    fn url(&self, _: Version, more: &str) -> String {
        self.nfs3_url(more)
    }

    fn nfs_address(&self) -> SocketAddr {
        self.address()
    }

    fn kill(&mut self) -> Result<(), BedError> {
        self.kill();
        Ok(())
    }

    fn start_again(&mut self) -> Result<(), BedError> {
        self.start_again()
    }
}

/// What a server has of its files once it was killed and started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Files {
    /// All of them.
    Kept,
    /// None: they were in its memory.
    Lost,
}

/// A case of the conformance suite that a server fails, and whose fault that is.
#[derive(Debug, Clone, Copy)]
pub struct Exception {
    /// The case: module and name.
    pub case: &'static str,
    /// Versions by which it fails.
    pub versions: &'static [Version],
    /// What the server does otherwise.
    pub why: &'static str,
}

/// A server, and how things end on it: workloads and `md` are valid on all of them.
pub struct Row {
    /// Its name.
    pub server: &'static str,
    /// What is to be known of it, for the table.
    pub note: &'static str,
    /// What it speaks.
    pub versions: &'static [Version],
    /// What it has after a kill.
    pub files: Files,
    /// Cases of the conformance suite that it fails.
    pub exceptions: &'static [Exception],
    start: fn() -> Result<Box<dyn NfsServer>, BedError>,
}

impl Row {
    /// The row of a server.
    ///
    /// # Panics
    /// If there is none of that name.
    #[must_use]
    pub fn of(server: &str) -> &'static Self {
        let row = ROWS.iter().find(|r| r.server == server);
        row.unwrap_or_else(|| panic!("the table has no server {server}"))
    }

    /// Whether a case of the conformance suite is known to fail by this version.
    #[must_use]
    pub fn fails(&self, case: &str, version: Version) -> bool {
        let mut exceptions = self.exceptions.iter();
        exceptions.any(|e| e.case == case && e.versions.contains(&version))
    }

    /// Starts the server, with an empty export.
    ///
    /// # Errors
    /// What is missing, or what was said of the failure.
    pub fn start(&self) -> Result<Box<dyn NfsServer>, BedError> {
        (self.start)()
    }
}

const V3: &[Version] = &[Version::V3];
const ALL: &[Version] = &[Version::V3, Version::V40, Version::V41];

/// The servers.
pub const ROWS: &[Row] = &[
    Row {
        server: "nfs-ganesha, FSAL VFS",
        note: "",
        versions: ALL,
        files: Files::Kept,
        exceptions: &[],
        start: || Ok(Box::new(Ganesha::start()?)),
    },
    Row {
        server: "nfs-ganesha, FSAL MEM",
        note: "",
        versions: ALL,
        files: Files::Lost,
        exceptions: &[],
        start: || {
            Ok(Box::new(Ganesha::with(&GaneshaOptions {
                fsal: Fsal::Mem,
                ..GaneshaOptions::default()
            })?))
        },
    },
    Row {
        server: "Linux kernel",
        note: "",
        versions: ALL,
        files: Files::Kept,
        exceptions: &[],
        start: || Ok(Box::new(Knfsd::start()?)),
    },
    Row {
        server: "nfs3_server",
        note: "",
        versions: V3,
        files: Files::Lost,
        exceptions: &[],
        start: || Ok(Box::new(Nfs3Server::start()?)),
    },
    Row {
        server: "rclone (go-nfs)",
        note: "",
        versions: V3,
        files: Files::Kept,
        exceptions: &[],
        start: || Ok(Box::new(Rclone::start()?)),
    },
    Row {
        server: "serve-nfs",
        note: "",
        versions: V3,
        files: Files::Lost,
        exceptions: &[],
        start: || Ok(Box::new(ServeNfs::start()?)),
    },
];
