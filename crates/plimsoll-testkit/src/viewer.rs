//! An independent client, with which tests check and change files on a server.

use crate::TestServerError;
use nfs3_client::nfs3_types::nfs3::{
    CREATE3args, GETATTR3args, LINK3args, LOOKUP3args, MKDIR3args, Nfs3Option, Nfs3Result,
    READ3args, READDIR3args, READLINK3args, REMOVE3args, RMDIR3args, SETATTR3args, SYMLINK3args,
    WRITE3args, cookieverf3, createhow3, diropargs3, fattr3, filename3, ftype3, nfs_fh3, nfspath3,
    nfsstat3, sattr3, sattrguard3, stable_how, symlinkdata3,
};
use nfs3_client::nfs3_types::rpc::{auth_unix, opaque_auth};
use nfs3_client::nfs3_types::xdr_codec::Opaque;
use nfs3_client::tokio::{TokioConnector, TokioIo};
use nfs3_client::{Nfs3Connection, Nfs3ConnectionBuilder, RpcError};
use std::net::SocketAddr;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;

/// Maximum size in bytes of a WRITE, and of the reply to a READDIR, which every server supports.
const WRITE_CHUNK_BYTES: u32 = 32 << 10;

/// Size of a READ in bytes; servers may return less.
const READ_REQUEST_BYTES: u32 = 1 << 20;

/// Mask of the permission bits in a file's mode, including the set-user-ID, set-group-ID and sticky bits.
const PERMISSIONS: u32 = 0o7777;

/// The client of the crate `nfs3_client`, as root, with one call in flight. Paths are relative to the
/// export; `""` is the export itself.
pub struct Viewer {
    runtime: Runtime,
    connection: Nfs3Connection<TokioIo<TcpStream>>,
}

/// Kind of a directory entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Dir,
    /// A symbolic link.
    Link,
    /// Something else.
    Other,
}

/// Result of an NFS call; an error of the call, or a status other than NFS3_OK, becomes a [`TestServerError`].
fn done<T, E>(
    what: &str,
    called: Result<Nfs3Result<T, E>, RpcError>,
) -> Result<T, TestServerError> {
    match called {
        Ok(Nfs3Result::Ok(result)) => Ok(result),
        Ok(Nfs3Result::Err((status, _))) => {
            Err(TestServerError::failed(what, format!("{status:?}")))
        }
        Err(e) => Err(TestServerError::failed(what, e)),
    }
}

fn at<'a>(dir: &nfs_fh3, name: &'a [u8]) -> diropargs3<'a> {
    diropargs3 {
        dir: dir.clone(),
        name: filename3(Opaque::borrowed(name)),
    }
}

fn with_mode(mode: u32) -> sattr3 {
    sattr3 {
        mode: Nfs3Option::Some(mode),
        ..sattr3::default()
    }
}

/// Splits a path into the path of its parent and its last component.
fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|b| *b == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (b"", path),
    }
}

impl Viewer {
    /// Connects to a server's NFS port and to MOUNT at `mount_port` of the same address, and mounts the directory
    /// `export`.
    pub fn connect(
        nfs: SocketAddr,
        mount_port: u16,
        export: &str,
    ) -> Result<Self, TestServerError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()
            .map_err(|e| TestServerError::failed("a runtime", e))?;
        let host = nfs.ip().to_string();
        let builder = Nfs3ConnectionBuilder::new(TokioConnector, host, export)
            .nfs3_port(nfs.port())
            .mount_port(mount_port)
            .connect_from_privileged_port(false)
            .credential(opaque_auth::auth_unix(&auth_unix::default()));
        let connection = runtime.block_on(builder.mount());
        let connection = connection
            .map_err(|e| TestServerError::failed(format!("mounting {export} of {nfs}"), e))?;
        Ok(Self {
            runtime,
            connection,
        })
    }

    /// Looks up a path; returns `None` if it does not exist.
    fn handle(&mut self, path: &[u8]) -> Result<Option<nfs_fh3>, TestServerError> {
        let mut dir = self.connection.root_nfs_fh3();
        for name in path.split(|b| *b == b'/').filter(|n| !n.is_empty()) {
            let args = LOOKUP3args {
                what: at(&dir, name),
            };
            let found = self.runtime.block_on(self.connection.lookup(&args));
            if let Ok(Nfs3Result::Err((nfsstat3::NFS3ERR_NOENT, _))) = found {
                return Ok(None);
            }
            dir = done("LOOKUP", found)?.object;
        }
        Ok(Some(dir))
    }

    /// Looks up a path that must exist.
    fn existing(&mut self, path: &[u8]) -> Result<nfs_fh3, TestServerError> {
        let found = self.handle(path)?;
        found.ok_or_else(|| {
            TestServerError::failed(String::from_utf8_lossy(path), "it is not there")
        })
    }

    fn attributes(&mut self, object: nfs_fh3) -> Result<fattr3, TestServerError> {
        let args = GETATTR3args { object };
        let got = self.runtime.block_on(self.connection.getattr(&args));
        done("GETATTR", got).map(|ok| ok.obj_attributes)
    }

    /// Kind of a path, without following a link; `None` if it does not exist.
    pub fn kind(&mut self, path: impl AsRef<[u8]>) -> Result<Option<Kind>, TestServerError> {
        let Some(handle) = self.handle(path.as_ref())? else {
            return Ok(None);
        };
        let kind = match self.attributes(handle)?.type_ {
            ftype3::NF3REG => Kind::File,
            ftype3::NF3DIR => Kind::Dir,
            ftype3::NF3LNK => Kind::Link,
            _ => Kind::Other,
        };
        Ok(Some(kind))
    }

    /// Permission bits of the file or directory at a path, including the set-user-ID, set-group-ID and sticky bits.
    pub fn mode(&mut self, path: impl AsRef<[u8]>) -> Result<u32, TestServerError> {
        let handle = self.existing(path.as_ref())?;
        Ok(self.attributes(handle)?.mode & PERMISSIONS)
    }

    /// Names in a directory, sorted, without `.` and `..`.
    pub fn names(&mut self, path: impl AsRef<[u8]>) -> Result<Vec<Vec<u8>>, TestServerError> {
        let dir = self.existing(path.as_ref())?;
        let (mut names, mut cookie, mut verifier) = (Vec::new(), 0, cookieverf3::default());
        loop {
            let args = READDIR3args {
                dir: dir.clone(),
                cookie,
                cookieverf: verifier,
                count: WRITE_CHUNK_BYTES,
            };
            let listed = self.runtime.block_on(self.connection.readdir(&args));
            let listed = done("READDIR", listed)?;
            verifier = listed.cookieverf;
            let before = cookie;
            for entry in listed.reply.entries.0 {
                cookie = entry.cookie;
                names.push(entry.name.0.as_ref().to_vec());
            }
            if listed.reply.eof || cookie == before {
                break;
            }
        }
        names.retain(|name| name != b"." && name != b"..");
        names.sort();
        Ok(names)
    }

    /// Whole content of a file, read from the server.
    pub fn bytes(&mut self, path: impl AsRef<[u8]>) -> Result<Vec<u8>, TestServerError> {
        let file = self.existing(path.as_ref())?;
        let mut bytes = Vec::new();
        loop {
            let args = READ3args {
                file: file.clone(),
                offset: bytes.len() as u64,
                count: READ_REQUEST_BYTES,
            };
            let read = self.runtime.block_on(self.connection.read(&args));
            let read = done("READ", read)?;
            bytes.extend_from_slice(read.data.as_ref());
            if read.eof || read.data.as_ref().is_empty() {
                return Ok(bytes);
            }
        }
    }

    /// Replaces the content of a file by `bytes`; creates a missing file.
    pub fn write(&mut self, path: impl AsRef<[u8]>, bytes: &[u8]) -> Result<(), TestServerError> {
        let path = path.as_ref();
        let file = match self.handle(path)? {
            Some(file) => {
                let size = Nfs3Option::Some(0);
                self.set(
                    &file,
                    sattr3 {
                        size,
                        ..sattr3::default()
                    },
                )?;
                file
            }
            None => {
                let (dir, name) = split(path);
                let args = CREATE3args {
                    where_: at(&self.existing(dir)?, name),
                    how: createhow3::UNCHECKED(with_mode(0o644)),
                };
                let made = self.runtime.block_on(self.connection.create(&args));
                done("CREATE", made)?;
                self.existing(path)?
            }
        };
        let mut offset = 0;
        for piece in bytes.chunks(WRITE_CHUNK_BYTES as usize) {
            let args = WRITE3args {
                file: file.clone(),
                offset,
                count: piece.len() as u32,
                stable: stable_how::FILE_SYNC,
                data: Opaque::borrowed(piece),
            };
            let wrote = self.runtime.block_on(self.connection.write(&args));
            let wrote = done("WRITE", wrote)?.count;
            if wrote as usize != piece.len() {
                return Err(TestServerError::failed(
                    "WRITE",
                    format!("only {wrote} bytes"),
                ));
            }
            offset += piece.len() as u64;
        }
        Ok(())
    }

    fn set(&mut self, object: &nfs_fh3, new_attributes: sattr3) -> Result<(), TestServerError> {
        let args = SETATTR3args {
            object: object.clone(),
            new_attributes,
            guard: sattrguard3::None,
        };
        let set = self.runtime.block_on(self.connection.setattr(&args));
        done("SETATTR", set).map(drop)
    }

    /// Sets the permissions of a path.
    pub fn set_mode(&mut self, path: impl AsRef<[u8]>, mode: u32) -> Result<(), TestServerError> {
        let handle = self.existing(path.as_ref())?;
        self.set(&handle, with_mode(mode))
    }

    /// Creates a directory and its missing parent directories.
    pub fn make_dirs(&mut self, path: impl AsRef<[u8]>) -> Result<(), TestServerError> {
        let path = path.as_ref();
        if self.handle(path)?.is_some() {
            return Ok(());
        }
        let (above, name) = split(path);
        self.make_dirs(above)?;
        let args = MKDIR3args {
            where_: at(&self.existing(above)?, name),
            attributes: with_mode(0o755),
        };
        let made = self.runtime.block_on(self.connection.mkdir(&args));
        done("MKDIR", made).map(drop)
    }

    /// Creates a symbolic link.
    pub fn link(&mut self, path: impl AsRef<[u8]>, to: &[u8]) -> Result<(), TestServerError> {
        let (dir, name) = split(path.as_ref());
        let args = SYMLINK3args {
            where_: at(&self.existing(dir)?, name),
            symlink: symlinkdata3 {
                symlink_attributes: sattr3::default(),
                symlink_data: nfspath3(Opaque::borrowed(to)),
            },
        };
        let made = self.runtime.block_on(self.connection.symlink(&args));
        done("SYMLINK", made).map(drop)
    }

    /// Target of a symbolic link.
    pub fn read_link(&mut self, path: impl AsRef<[u8]>) -> Result<Vec<u8>, TestServerError> {
        let symlink = self.existing(path.as_ref())?;
        let args = READLINK3args { symlink };
        let read = self.runtime.block_on(self.connection.readlink(&args));
        Ok(done("READLINK", read)?.data.0.as_ref().to_vec())
    }

    /// Creates a hard link to a file.
    pub fn hard_link(
        &mut self,
        of: impl AsRef<[u8]>,
        path: impl AsRef<[u8]>,
    ) -> Result<(), TestServerError> {
        let (dir, name) = split(path.as_ref());
        let args = LINK3args {
            file: self.existing(of.as_ref())?,
            link: at(&self.existing(dir)?, name),
        };
        let made = self.runtime.block_on(self.connection.link(&args));
        done("LINK", made).map(drop)
    }

    /// Removes a directory with its content.
    pub fn remove_all(&mut self, path: impl AsRef<[u8]>) -> Result<(), TestServerError> {
        let path = path.as_ref();
        for name in self.names(path)? {
            let below = [path, b"/", &name].concat();
            match self.kind(&below)? {
                Some(Kind::Dir) => self.remove_all(&below)?,
                Some(_) => self.remove(&below)?,
                None => {}
            }
        }
        let (dir, name) = split(path);
        let args = RMDIR3args {
            object: at(&self.existing(dir)?, name),
        };
        let removed = self.runtime.block_on(self.connection.rmdir(&args));
        done("RMDIR", removed).map(drop)
    }

    /// Removes a file or a link.
    pub fn remove(&mut self, path: impl AsRef<[u8]>) -> Result<(), TestServerError> {
        let (dir, name) = split(path.as_ref());
        let args = REMOVE3args {
            object: at(&self.existing(dir)?, name),
        };
        let removed = self.runtime.block_on(self.connection.remove(&args));
        done("REMOVE", removed).map(drop)
    }
}
