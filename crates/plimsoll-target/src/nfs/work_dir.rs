//! The work directory of a run on a server.

use crate::connect::{MAX_CREATIONS, Purpose, TargetError};
use crate::error::OpError;
use crate::session_types::Space;
use rustix::io::Errno;
use std::path::{Component, Path, PathBuf};

/// Permissions of created files.
pub(crate) const FILE_MODE: u32 = 0o644;

/// Permissions of created directories.
pub(crate) const DIR_MODE: u32 = 0o755;

/// A connection for requests outside the load.
pub(crate) trait ServerProbe {
    /// The server's identifier of a file.
    type Handle: Copy;

    /// Looks up a name; returns the handle of the object, and whether the object is a directory.
    fn look_up(&mut self, dir: Self::Handle, name: &[u8]) -> Result<(Self::Handle, bool), OpError>;

    /// Creates a directory; returns the handle of the new object, and whether the object is a directory.
    fn make_dir(&mut self, dir: Self::Handle, name: &[u8])
    -> Result<(Self::Handle, bool), OpError>;

    /// Removes an empty directory.
    fn remove_dir(&mut self, dir: Self::Handle, name: &[u8]) -> Result<(), OpError>;

    /// Whether this client may add and remove names in a directory.
    fn is_writable(&mut self, dir: Self::Handle) -> Result<bool, OpError>;

    /// The free space; `None` if the server does not report space.
    fn space(&mut self, dir: Self::Handle) -> Result<Option<Space>, OpError>;

    /// Ends the connection; an NFSv4 server also forgets the client.
    fn end(self);
}

/// The work directory, or its parent if the work directory does not exist.
pub(crate) struct WorkDir<H> {
    /// The handle of the work directory; of its parent if the work directory does not exist.
    pub(crate) dir: H,
    /// The parent directory and the name of the work directory; `None` for the root.
    pub(crate) parent: Option<(H, Vec<u8>)>,
    pub(crate) exists: bool,
    pub(crate) created: bool,
}

impl<H: Copy> WorkDir<H> {
    /// Resolves the path of the work directory from the root. A missing last component is created
    /// if the purpose is load.
    pub(crate) fn find(
        server: &mut impl ServerProbe<Handle = H>,
        root: H,
        dir: &Path,
        purpose: Purpose,
    ) -> Result<Self, TargetError> {
        use std::os::unix::ffi::OsStrExt;
        let failed = |path: &Path, error| TargetError::Place {
            path: path.into(),
            error,
        };
        let mut work = Self {
            dir: root,
            parent: None,
            exists: true,
            created: false,
        };
        let mut path = PathBuf::from("/");
        let mut components = dir.components().peekable();
        while let Some(component) = components.next() {
            let name = match component {
                Component::Normal(name) => name.as_bytes(),
                Component::RootDir | Component::CurDir => continue,
                Component::ParentDir | Component::Prefix(_) => {
                    return Err(failed(dir, OpError(Errno::INVAL)));
                }
            };
            let last = components.peek().is_none();
            let holder = path.clone();
            path.push(component);
            let (found, is_dir) = match server.look_up(work.dir, name) {
                Ok(found) => found,
                Err(OpError(Errno::NOENT)) if !last => return Err(TargetError::NoParent(path)),
                Err(OpError(Errno::NOENT)) if purpose == Purpose::Inspect => {
                    work.exists = false;
                    return Ok(work);
                }
                Err(OpError(Errno::NOENT)) => {
                    let made = make_last(server, work.dir, name);
                    let (made, created) = made.map_err(|e| failed(&path, e))?;
                    work.created = created;
                    made
                }
                Err(OpError(Errno::NOTDIR)) => return Err(TargetError::NotDir(holder)),
                Err(e) => return Err(failed(&path, e)),
            };
            if !is_dir {
                return Err(TargetError::NotDir(path));
            }
            work.parent = Some((work.dir, name.to_vec()));
            work.dir = found;
        }
        Ok(work)
    }
}

/// Creates the last component of a path unless another client creates the component first. Returns the component, as
/// [`ServerProbe::look_up`] does, and whether this client created the component.
fn make_last<S: ServerProbe>(
    server: &mut S,
    dir: S::Handle,
    name: &[u8],
) -> Result<((S::Handle, bool), bool), OpError> {
    for _ in 0..MAX_CREATIONS {
        match server.make_dir(dir, name) {
            // Another client created the directory, or this client created the directory and the reply to the first
            // transmission of the call was lost.
            Err(OpError(Errno::EXIST)) => {}
            made => return Ok((made?, true)),
        }
        match server.look_up(dir, name) {
            // Another client has removed the component.
            Err(OpError(Errno::NOENT)) => {}
            found => return Ok((found?, false)),
        }
    }
    Err(OpError(Errno::NOENT))
}
