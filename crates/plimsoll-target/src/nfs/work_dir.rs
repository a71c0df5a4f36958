//! Where a run works on a server.

use crate::error::OpError;
use crate::registry::{Purpose, TargetError};
use rustix::io::Errno;
use std::path::{Component, Path, PathBuf};

/// Smallest longest reply that is taken, in bytes: a server may give more of a directory than it
/// was asked for.
pub(crate) const MIN_MAX_REPLY_BYTES: usize = 2 << 20;

/// Most bytes of a transfer, if neither side asks for less.
pub(crate) const DEFAULT_MAX_TRANSFER_BYTES: u32 = 1 << 20;

/// Bytes of a message around the data of a READ or WRITE, and a little more.
pub(crate) const MESSAGE_OVERHEAD_BYTES: u32 = 4 << 10;

/// Permissions of files that are made.
pub(crate) const FILE_MODE: u32 = 0o644;

/// Permissions of directories that are made.
pub(crate) const DIR_MODE: u32 = 0o755;

/// A server that is asked before a run.
pub(crate) trait DirProbe {
    /// How it knows a file.
    type Handle: Copy;

    /// What has a name in a directory, and whether it is a directory itself.
    fn look_up(&mut self, dir: Self::Handle, name: &[u8]) -> Result<(Self::Handle, bool), OpError>;

    /// Makes a directory; says the same of it.
    fn make_dir(&mut self, dir: Self::Handle, name: &[u8])
    -> Result<(Self::Handle, bool), OpError>;
}

/// The work directory as it was found.
pub(crate) struct WorkDir<H> {
    /// The work directory; of one that is missing, the directory that would hold it.
    pub(crate) dir: H,
    /// Where it is, for making and removing it.
    pub(crate) parent: Option<(H, Vec<u8>)>,
    pub(crate) exists: bool,
    pub(crate) created: bool,
}

impl<H: Copy> WorkDir<H> {
    /// Goes from the root to the work directory, of which the last component is made if it is
    /// missing, unless it is only looked for.
    pub(crate) fn find(
        server: &mut impl DirProbe<Handle = H>,
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
                    work.created = true;
                    let made = server.make_dir(work.dir, name);
                    made.map_err(|e| failed(&path, e))?
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
