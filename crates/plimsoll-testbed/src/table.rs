//! The servers that others wrote, and ours: which versions of NFS they speak, what is run on them, and
//! how it ends. `docs/nfs.md` shows the table, and tests run what it says.
//!
//! A server is an implementation of [`NfsServer`] and a row of [`ROWS`].

use crate::loopback;
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
            Self::V40 => "minorversion=0",
            Self::V41 => "minorversion=1",
        };
        let mark = if more.is_empty() { "" } else { "&" };
        format!("{minor}{mark}{more}")
    }
}

/// A server that was started.
pub trait NfsServer: Send {
    /// URL of the target that speaks this version; `more` is options, such as `nconnect=2&rsize=4k`.
    /// Without another word, that of a server of version 3 with MOUNT at the port of NFS, which exports
    /// `/`.
    fn url(&self, version: Version, more: &str) -> String {
        debug_assert_eq!(version, Version::V3);
        loopback::nfs3_url(self.nfs_address(), more)
    }

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

/// What a server has of its files once it was killed and started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilesAfterRestart {
    /// All of them.
    Kept,
    /// None: they were in its memory.
    Lost,
}

/// Cases of the conformance suite that a server fails, and why: what it does otherwise than it should.
#[derive(Debug, Clone, Copy)]
pub struct Exception {
    /// What the server does.
    pub why: &'static str,
    /// Versions by which the cases fail.
    pub versions: &'static [Version],
    /// The cases: module and name.
    pub cases: &'static [&'static str],
}

/// A server, and how things end on it.
pub struct ServerRow {
    /// Its name.
    pub server: &'static str,
    /// What it speaks.
    pub versions: &'static [Version],
    /// Versions by which no workload can run on it, and why.
    pub unusable: Option<(&'static [Version], &'static str)>,
    /// What it has after a kill.
    pub files: FilesAfterRestart,
    /// What every run by it notes.
    pub noted: Option<&'static str>,
    /// Cases of the conformance suite that it fails.
    pub exceptions: &'static [Exception],
    start: fn() -> Result<Box<dyn NfsServer>, BedError>,
}

impl ServerRow {
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
        exceptions.any(|e| e.cases.contains(&case) && e.versions.contains(&version))
    }

    /// Whether workloads run by this version.
    #[must_use]
    pub fn is_usable(&self, version: Version) -> bool {
        self.unusable.is_none_or(|(not, _)| !not.contains(&version))
    }

    /// Starts the server, with an empty export.
    ///
    /// # Errors
    /// What is missing, or what was said of the failure.
    pub fn start(&self) -> Result<Box<dyn NfsServer>, BedError> {
        (self.start)()
    }

    /// Its lines in the table, one for each version.
    fn lines(&self, notes: &mut Vec<String>) -> String {
        let numbers: Vec<_> = self
            .exceptions
            .iter()
            .map(|e| {
                let cases: Vec<_> = e.cases.iter().map(|c| format!("`{c}`")).collect();
                notes.push(format!(
                    "{}: {} ({}).",
                    self.server,
                    e.why,
                    cases.join(", ")
                ));
                notes.len()
            })
            .collect();
        let unusable = self.unusable.map(|(_, why)| {
            notes.push(format!("{}: {why}.", self.server));
            notes.len()
        });
        let mut lines = String::new();
        for version in self.versions {
            let failing = self.exceptions.iter().zip(&numbers);
            let failing = failing.filter(|(e, _)| e.versions.contains(version));
            let (mut count, mut marks) = (0, Vec::new());
            for (exception, number) in failing {
                count += exception.cases.len();
                marks.push(number.to_string());
            }
            let conformance = match count {
                0 => "all".to_owned(),
                n => format!("all but {n} [{}]", marks.join(", ")),
            };
            let ends = match (self.is_usable(*version), unusable) {
                (false, Some(note)) => format!("cannot run [{note}] | cannot run | cannot run | –"),
                _ => format!("valid | valid | valid | {}", self.files.after_a_kill()),
            };
            let (server, version) = (self.server, version.name());
            lines += &format!("| {server} | {version} | {conformance} | {ends} |\n");
        }
        lines
    }
}

impl FilesAfterRestart {
    const fn after_a_kill(self) -> &'static str {
        match self {
            Self::Kept => "the run goes on",
            Self::Lost => "files are lost, the run fails and says so",
        }
    }
}

/// The table, with its notes, as `docs/nfs.md` has it.
#[must_use]
pub fn markdown() -> String {
    let mut text = "| server | version | conformance suite | `fileserver` | `varmail` | `md -X` | killed and started again |\n\
                    | --- | --- | --- | --- | --- | --- | --- |\n"
        .to_owned();
    let mut notes = Vec::new();
    for row in ROWS {
        text += &row.lines(&mut notes);
    }
    text += "\n";
    for (number, note) in (1..).zip(notes) {
        text += &format!("{number}. {note}\n");
    }
    text
}

/// Makes a test for each of these servers, which begins with [`needs_root!`](crate::needs_root) and calls
/// a function with the server's name, and the list `TESTED` of the names.
#[macro_export]
macro_rules! server_tests {
    ($run:path: $($test:ident = $server:literal),* $(,)?) => {
        const TESTED: &[&str] = &[$($server),*];

        $(
            #[test]
            fn $test() {
                $crate::needs_root!();
                $run($server);
            }
        )*
    };
}

const V3: &[Version] = &[Version::V3];
const ALL: &[Version] = &[Version::V3, Version::V40, Version::V41];

/// The servers.
pub const ROWS: &[ServerRow] = &[
    ServerRow {
        server: "nfs-ganesha, FSAL VFS",
        versions: ALL,
        unusable: None,
        files: FilesAfterRestart::Kept,
        noted: None,
        exceptions: &[],
        start: || Ok(Box::new(Ganesha::start()?)),
    },
    ServerRow {
        server: "nfs-ganesha, FSAL MEM",
        versions: ALL,
        unusable: Some((
            V3,
            "a RENAME onto a file that it has open fails with NFS3ERR_IO, and it has files open that were \
             read; the marker of the work directory is replaced so. Version 4 says NFS4ERR_FILE_OPEN, and the \
             file is removed before. Workers on it are few here: with 32 and more CREATE and REMOVE of a \
             client under way it crashes",
        )),
        files: FilesAfterRestart::Lost,
        noted: None,
        exceptions: &[
            Exception {
                why: "keeps the first bytes of a file only, here 64 KiB",
                versions: ALL,
                cases: &[
                    "aio::closing_drains",
                    "aio::direct",
                    "aio::hundred_writes",
                    "aio::long_writes",
                    "files::writing_more_than_the_pool",
                    "mix_operations::copying",
                    "names::small_files",
                ],
            },
            Exception {
                why: "shows again what SETATTR cut off when the file grows",
                versions: ALL,
                cases: &["mix_operations::setting_a_length"],
            },
            Exception {
                why: "says that symbolic links have 0 bytes",
                versions: ALL,
                cases: &["names::attributes"],
            },
            Exception {
                why: "does not replace a file that it has open, or names the wrong reason for not replacing a directory",
                versions: ALL,
                cases: &["mix_operations::renaming", "names::putting_in_vain"],
            },
            Exception {
                why: "the same, and by version 3 the reason is not told",
                versions: V3,
                cases: &["names::putting_is_atomic"],
            },
        ],
        start: || {
            Ok(Box::new(Ganesha::with(&GaneshaOptions {
                fsal: Fsal::Mem,
                ..GaneshaOptions::default()
            })?))
        },
    },
    ServerRow {
        server: "Linux kernel",
        versions: ALL,
        unusable: None,
        files: FilesAfterRestart::Kept,
        noted: None,
        exceptions: &[],
        start: || {
            let mut server = Knfsd::start()?;
            server.forget_clients()?;
            Ok(Box::new(server))
        },
    },
    ServerRow {
        server: "nfs3_server",
        versions: V3,
        unusable: None,
        files: FilesAfterRestart::Lost,
        noted: None,
        exceptions: &[
            Exception {
                why: "has no symbolic links",
                versions: V3,
                cases: &[
                    "mix_operations::asking_for_access",
                    "mix_operations::finding_nothing",
                    "mix_operations::renaming_links",
                    "names::attributes",
                    "names::entries",
                    "safety::measured_names",
                    "safety::putting_on_a_link",
                    "safety::removing_a_link",
                ],
            },
            Exception {
                why: "has no LINK",
                versions: V3,
                cases: &["names::putting_after_a_crash"],
            },
            Exception {
                why: "refuses a WRITE behind the end of a file with NFS3ERR_INVAL",
                versions: V3,
                cases: &[
                    "aio::hundred_writes",
                    "files::writing",
                    "files::writing_more_than_the_pool",
                ],
            },
            Exception {
                why: "removes directories by REMOVE and files by RMDIR, and a MKDIR of a directory that is there succeeds",
                versions: V3,
                cases: &[
                    "names::making_directories",
                    "names::removing",
                    "names::removing_directories",
                    "names::unlinking",
                ],
            },
            Exception {
                why: "says NFS3ERR_NOTDIR of a RENAME onto a directory",
                versions: V3,
                cases: &["mix_operations::renaming", "names::putting_in_vain"],
            },
        ],
        start: || Ok(Box::new(Nfs3Server::start()?)),
    },
    ServerRow {
        server: "rclone (go-nfs)",
        versions: V3,
        unusable: None,
        files: FilesAfterRestart::Kept,
        noted: Some("the server's FSSTAT replies are 4 bytes longer than RFC 1813 says"),
        exceptions: &[
            Exception {
                why: "empties a file that is there at an UNCHECKED CREATE",
                versions: V3,
                cases: &["files::opening"],
            },
            Exception {
                why: "says NFS3ERR_IO of a RENAME onto a directory, or replaces it if the file is not yet written out of its cache",
                versions: V3,
                cases: &["mix_operations::renaming", "names::putting_in_vain"],
            },
            Exception {
                why: "makes a directory of a file by MKDIR",
                versions: V3,
                cases: &["names::making_directories"],
            },
            Exception {
                why: "has no LINK, and its answer to one is cut short",
                versions: V3,
                cases: &["names::putting_after_a_crash"],
            },
            Exception {
                why: "says NFS3ERR_IO of a RMDIR of a directory that is not empty",
                versions: V3,
                cases: &["names::removing", "names::removing_directories"],
            },
            Exception {
                why: "removes directories by REMOVE, and links by RMDIR",
                versions: V3,
                cases: &[
                    "names::unlinking",
                    "safety::measured_names",
                    "safety::removing_a_link",
                ],
            },
        ],
        start: || Ok(Box::new(Rclone::start()?)),
    },
    ServerRow {
        server: "serve-nfs",
        versions: V3,
        unusable: None,
        files: FilesAfterRestart::Lost,
        noted: None,
        exceptions: &[],
        start: || Ok(Box::new(ServeNfs::start()?)),
    },
];
