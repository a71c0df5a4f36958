//! Table of the tested NFS servers: versions, known failures, and expected results. `docs/nfs.md` shows the table, and
//! a test compares the document with the table.
//!
//! A server is an implementation of [`NfsServer`] and a row of [`ROWS`].

use crate::loopback;
use crate::{
    Fsal, Ganesha, GaneshaOptions, Knfsd, MOUNT_PORT, NFS_PORT, Nfs3Server, Rclone, ServeNfs,
    TestServerError, Viewer, with_options,
};
use std::net::SocketAddr;

/// A tested version of NFS.
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
    /// Version number as text, such as `4.1`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::V3 => "3",
            Self::V40 => "4.0",
            Self::V41 => "4.1",
        }
    }
}

/// Running NFS server that a test kills, restarts and accesses.
pub trait NfsServer: Send {
    /// URL of the target for a version, with options such as `nconnect=2&rsize=4k`. By default the URL of a server of
    /// version 3 that has MOUNT at the port of NFS and exports `/`.
    fn url(&self, version: Version, options: &str) -> String {
        assert_eq!(version, Version::V3, "the server has only this version");
        loopback::nfs3_url(self.nfs_address(), options)
    }

    /// Address and port at which the server serves all its versions of NFS.
    fn nfs_address(&self) -> SocketAddr;

    /// Connects an independent NFSv3 client, with which a test checks and changes the server's files.
    fn viewer(&self) -> Result<Viewer, TestServerError> {
        let nfs = self.nfs_address();
        Viewer::connect(nfs, nfs.port(), "/")
    }

    /// Ends the server at once, as a crash would, without an orderly shutdown.
    fn kill(&mut self) -> Result<(), TestServerError>;

    /// Starts the server again after a kill, at the same address.
    fn start_again(&mut self) -> Result<(), TestServerError>;
}

/// The NFSv3 or NFSv4 URL with options; the NFSv4 URL also gets the minor version.
fn url_of_version(version: Version, nfs3_url: &str, nfs4_url: &str, options: &str) -> String {
    let url = match version {
        Version::V3 => nfs3_url.to_owned(),
        Version::V40 => with_options(nfs4_url, "minorversion=0"),
        Version::V41 => with_options(nfs4_url, "minorversion=1"),
    };
    with_options(&url, options)
}

impl NfsServer for Ganesha {
    fn url(&self, version: Version, options: &str) -> String {
        url_of_version(version, &self.nfs3_url(""), &self.nfs4_url(""), options)
    }

    fn nfs_address(&self) -> SocketAddr {
        SocketAddr::new(self.address(), NFS_PORT)
    }

    fn viewer(&self) -> Result<Viewer, TestServerError> {
        Viewer::connect(self.nfs_address(), MOUNT_PORT, Self::EXPORT)
    }

    fn kill(&mut self) -> Result<(), TestServerError> {
        self.kill()
    }

    fn start_again(&mut self) -> Result<(), TestServerError> {
        self.start_again()
    }
}

impl NfsServer for Knfsd {
    fn url(&self, version: Version, options: &str) -> String {
        url_of_version(version, &self.nfs3_url(""), &self.nfs4_url(""), options)
    }

    fn nfs_address(&self) -> SocketAddr {
        SocketAddr::new(self.address(), NFS_PORT)
    }

    fn viewer(&self) -> Result<Viewer, TestServerError> {
        Viewer::connect(self.nfs_address(), MOUNT_PORT, Self::EXPORT)
    }

    fn kill(&mut self) -> Result<(), TestServerError> {
        self.kill_server()
    }

    fn start_again(&mut self) -> Result<(), TestServerError> {
        self.start_server_again()
    }
}

/// Whether a server's files survive a kill and a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilesAfterRestart {
    /// Files survive a kill of the server, because they are on a file system that outlives the server's process.
    Kept,
    /// Files are lost at a kill of the server, because they were in the memory of the server's process.
    Lost,
}

/// Cases of the NFS conformance suite that a server is known to fail, and the reason.
#[derive(Debug, Clone, Copy)]
pub struct Exception {
    /// The behaviour of the server that fails the cases.
    pub why: &'static str,
    /// Versions with which the cases fail.
    pub versions: &'static [Version],
    /// Names of the cases: module and function.
    pub cases: &'static [&'static str],
}

/// Row of the table of NFS servers: a server, and the results that tests expect of it.
pub struct ServerRow {
    /// Name of the server in tests and `docs/nfs.md`, such as `knfsd`.
    pub server: &'static str,
    /// NFS versions with which tests access the server.
    pub versions: &'static [Version],
    /// Versions with which no workload can run on the server, and the reason; `None` if every version works.
    pub unusable: Option<(&'static [Version], &'static str)>,
    /// Whether the server's files survive a kill and a restart.
    pub files: FilesAfterRestart,
    /// Note that the results of every run on the server must contain; `None` if no note is expected.
    pub noted: Option<&'static str>,
    /// Cases of the conformance suite that the server is known to fail; empty if the server passes all.
    pub exceptions: &'static [Exception],
    start: fn() -> Result<Box<dyn NfsServer>, TestServerError>,
}

impl ServerRow {
    /// Row of [`ROWS`] for the server with the name `server`.
    ///
    /// # Panics
    /// If no server has the name.
    pub fn of(server: &str) -> &'static Self {
        let row = ROWS.iter().find(|r| r.server == server);
        row.unwrap_or_else(|| panic!("the table has no server {server}"))
    }

    /// Whether a case of the conformance suite is known to fail with this version.
    pub fn fails(&self, case: &str, version: Version) -> bool {
        let mut exceptions = self.exceptions.iter();
        exceptions.any(|e| e.cases.contains(&case) && e.versions.contains(&version))
    }

    /// Whether workloads can run with this version.
    pub fn is_usable(&self, version: Version) -> bool {
        self.unusable.is_none_or(|(not, _)| !not.contains(&version))
    }

    /// Starts the server, with an empty export.
    pub fn start(&self) -> Result<Box<dyn NfsServer>, TestServerError> {
        (self.start)()
    }

    /// The lines of the server in the table, one line for each version; appends notes.
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

/// The table with its notes, as in `docs/nfs.md`.
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

/// Defines a test for each of the servers, and the list `TESTED` of the names. Each test begins with
/// [`needs_root!`](crate::needs_root) and calls a function with the name of the server.
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

/// Rows of all tested servers, in the order of the table in `docs/nfs.md`.
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
            "the server refuses a RENAME onto an open file with NFS3ERR_IO, and keeps files open that clients \
             have read, such as the marker of the work directory. The error of version 4 is NFS4ERR_FILE_OPEN, and \
             Plimsoll removes the file before a second RENAME. The tests have few workers, because the server \
             crashes with 32 or more CREATE and REMOVE calls of a client in flight",
        )),
        files: FilesAfterRestart::Lost,
        noted: None,
        exceptions: &[
            Exception {
                why: "stores only the first 64 KiB of a file, as configured here",
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
                why: "returns truncated bytes again after the file grows",
                versions: ALL,
                cases: &["mix_operations::setting_a_length"],
            },
            Exception {
                why: "reports symbolic links with a size of 0",
                versions: ALL,
                cases: &["names::attributes"],
            },
            Exception {
                why: "does not replace an open file by RENAME, and answers a RENAME onto a directory with a wrong error",
                versions: ALL,
                cases: &["mix_operations::renaming", "names::putting_in_vain"],
            },
            Exception {
                why: "does not replace an open file by RENAME, with an error in version 3 that does not name the reason",
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
                why: "does not support symbolic links",
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
                why: "does not support LINK",
                versions: V3,
                cases: &["names::putting_after_a_crash"],
            },
            Exception {
                why: "answers a WRITE beyond the end of a file with NFS3ERR_INVAL",
                versions: V3,
                cases: &[
                    "aio::hundred_writes",
                    "files::writing",
                    "files::writing_more_than_the_pool",
                ],
            },
            Exception {
                why: "REMOVE removes directories, RMDIR removes files, and MKDIR of an existing directory succeeds",
                versions: V3,
                cases: &[
                    "names::making_directories",
                    "names::removing",
                    "names::removing_directories",
                    "names::unlinking",
                ],
            },
            Exception {
                why: "answers a RENAME onto a directory with NFS3ERR_NOTDIR",
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
                why: "truncates an existing file at an UNCHECKED CREATE",
                versions: V3,
                cases: &["files::opening"],
            },
            Exception {
                why: "answers a RENAME onto a directory with NFS3ERR_IO, or replaces the directory if rclone's cache still holds the file",
                versions: V3,
                cases: &["mix_operations::renaming", "names::putting_in_vain"],
            },
            Exception {
                why: "merges two directories when a RENAME has a non-empty directory as its destination",
                versions: V3,
                cases: &["mix_operations::renaming_directories"],
            },
            Exception {
                why: "replaces a file with a directory when a MKDIR has the file's name",
                versions: V3,
                cases: &["names::making_directories"],
            },
            Exception {
                why: "does not support LINK, and truncates the reply to a LINK",
                versions: V3,
                cases: &["names::putting_after_a_crash"],
            },
            Exception {
                why: "answers a RMDIR of a non-empty directory with NFS3ERR_IO",
                versions: V3,
                cases: &["names::removing", "names::removing_directories"],
            },
            Exception {
                why: "REMOVE removes directories, and RMDIR removes links",
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
