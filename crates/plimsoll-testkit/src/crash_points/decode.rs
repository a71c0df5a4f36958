//! Translation of system calls into changes of files.

use crate::crash_points::Change;
use crate::crash_points::seccomp::Call;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::path::{Component, Path, PathBuf};

/// Maximum length of a path in bytes.
const MAX_PATH_BYTES: usize = 4096;

/// Suffix of the link of a descriptor whose file has no name any more.
const DELETED: &[u8] = b" (deleted)";

/// The caller of a system call, and the root directory of recorded changes.
pub(crate) struct Caller<'a> {
    thread: u32,
    root: &'a Path,
}

impl<'a> Caller<'a> {
    pub(crate) fn of(call: &Call, root: &'a Path) -> Self {
        Self {
            thread: call.pid,
            root,
        }
    }

    /// The change that a successful call makes below the root; `None` for calls without a change and for calls that
    /// will fail because of existing or missing files.
    ///
    /// # Errors
    /// If the caller's memory cannot be read, or if the kind of change is not supported.
    pub(crate) fn change(&self, call: &Call) -> io::Result<Option<Change>> {
        let a = call.data.args;
        let fd = |n: usize| a[n] as i32;
        match i64::from(call.data.nr) {
            libc::SYS_openat => self.open(fd(0), a[1], a[2] as i32),
            libc::SYS_openat2 => {
                let flags = self.number(a[2])?;
                self.open(fd(0), a[1], flags as i32)
            }
            libc::SYS_write => self.write(fd(0), None, &[(a[1], a[2])]),
            libc::SYS_pwrite64 => self.write(fd(0), Some(a[3]), &[(a[1], a[2])]),
            libc::SYS_writev => self.write(fd(0), None, &self.parts(a[1], a[2])?),
            libc::SYS_pwritev | libc::SYS_pwritev2 => {
                self.write(fd(0), Some(a[3]), &self.parts(a[1], a[2])?)
            }
            libc::SYS_ftruncate => {
                let file = self.file(fd(0))?;
                Ok(file.map(|path| Change::Resize(path, a[1])))
            }
            libc::SYS_truncate => {
                let path = self.existing(libc::AT_FDCWD, a[0])?;
                Ok(path.map(|path| Change::Resize(path, a[1])))
            }
            libc::SYS_fsync | libc::SYS_fdatasync => Ok(self.file(fd(0))?.map(Change::Sync)),
            libc::SYS_renameat => self.rename((fd(0), a[1]), (fd(2), a[3]), 0),
            libc::SYS_renameat2 => self.rename((fd(0), a[1]), (fd(2), a[3]), a[4] as u32),
            libc::SYS_linkat => self.link((fd(0), a[1]), (fd(2), a[3])),
            libc::SYS_unlinkat => self.remove(fd(0), a[1], fd(2) & libc::AT_REMOVEDIR != 0),
            libc::SYS_mkdirat => self.make_dir(fd(0), a[1]),
            number => self.older(number, a),
        }
    }

    /// Calls that only older instruction sets have, and calls that no recorded program makes.
    fn older(&self, number: i64, a: [u64; 6]) -> io::Result<Option<Change>> {
        let here = libc::AT_FDCWD;
        #[cfg(target_arch = "x86_64")]
        match number {
            libc::SYS_open => return self.open(here, a[0], a[1] as i32),
            libc::SYS_creat => {
                let flags = libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC;
                return self.open(here, a[0], flags);
            }
            libc::SYS_rename => return self.rename((here, a[0]), (here, a[1]), 0),
            libc::SYS_link => return self.link((here, a[0]), (here, a[1])),
            libc::SYS_unlink => return self.remove(here, a[0], false),
            libc::SYS_rmdir => return self.remove(here, a[0], true),
            libc::SYS_mkdir => return self.make_dir(here, a[0]),
            _ => {}
        }
        let touched = match number {
            libc::SYS_fallocate | libc::SYS_sendfile => self.file(a[0] as i32)?,
            libc::SYS_copy_file_range => self.file(a[2] as i32)?,
            libc::SYS_symlinkat => self.path(a[1] as i32, a[2])?,
            #[cfg(target_arch = "x86_64")]
            libc::SYS_symlink => self.path(here, a[1])?,
            // Other calls change no file, or sync more than is recorded, such as `sync`.
            _ => None,
        };
        match touched {
            Some(path) => Err(io::Error::other(format!(
                "system call {number} on {} is not recorded",
                path.display()
            ))),
            None => Ok(None),
        }
    }

    fn open(&self, dir: i32, name: u64, flags: i32) -> io::Result<Option<Change>> {
        if flags & (libc::O_CREAT | libc::O_TRUNC) == 0
            || flags & libc::O_TMPFILE == libc::O_TMPFILE
        {
            return Ok(None);
        }
        let Some(path) = self.path(dir, name)? else {
            return Ok(None);
        };
        let found = self.root.join(&path).symlink_metadata();
        Ok(match found {
            Err(_) if flags & libc::O_CREAT != 0 => Some(Change::Create(path)),
            Ok(meta) if flags & libc::O_TRUNC != 0 && flags & libc::O_EXCL == 0 => {
                (meta.len() > 0).then_some(Change::Resize(path, 0))
            }
            _ => None,
        })
    }

    fn write(
        &self,
        fd: i32,
        offset: Option<u64>,
        parts: &[(u64, u64)],
    ) -> io::Result<Option<Change>> {
        let Some(path) = self.file(fd)? else {
            return Ok(None);
        };
        let (position, flags) = self.position(fd)?;
        let offset = match offset {
            _ if flags & libc::O_APPEND != 0 => self.root.join(&path).metadata()?.len(),
            Some(offset) => offset,
            None => position,
        };
        let mut bytes = Vec::new();
        for (at, length) in parts {
            bytes.extend(self.memory(*at, *length as usize)?);
        }
        Ok(Some(Change::Write {
            path,
            offset,
            bytes,
        }))
    }

    fn rename(
        &self,
        (from_dir, from): (i32, u64),
        (to_dir, to): (i32, u64),
        flags: u32,
    ) -> io::Result<Option<Change>> {
        let (from, to) = (self.path(from_dir, from)?, self.path(to_dir, to)?);
        let (Some(from), Some(to)) = (from, to) else {
            return Ok(None);
        };
        if flags & !libc::RENAME_NOREPLACE != 0 {
            return Err(io::Error::other("an exchange of names is not recorded"));
        }
        let there = self.root.join(&to);
        let is_taken = match there.symlink_metadata() {
            Err(_) => false,
            Ok(_) if flags & libc::RENAME_NOREPLACE != 0 => true,
            Ok(meta) => meta.is_dir() && std::fs::read_dir(&there)?.next().is_some(),
        };
        let is_missing = self.root.join(&from).symlink_metadata().is_err();
        Ok((!is_taken && !is_missing && from != to).then_some(Change::Rename { from, to }))
    }

    fn link(
        &self,
        (from_dir, from): (i32, u64),
        (to_dir, to): (i32, u64),
    ) -> io::Result<Option<Change>> {
        let from = self.existing(from_dir, from)?;
        let to = self.path(to_dir, to)?;
        let (Some(from), Some(to)) = (from, to) else {
            return Ok(None);
        };
        let is_taken = self.root.join(&to).symlink_metadata().is_ok();
        Ok((!is_taken).then_some(Change::Link { from, to }))
    }

    fn remove(&self, dir: i32, name: u64, is_dir: bool) -> io::Result<Option<Change>> {
        let Some(path) = self.existing(dir, name)? else {
            return Ok(None);
        };
        let place = self.root.join(&path);
        let fits = match place.symlink_metadata()?.is_dir() {
            true => is_dir && std::fs::read_dir(&place)?.next().is_none(),
            false => !is_dir,
        };
        Ok(fits.then_some(Change::Remove(path)))
    }

    fn make_dir(&self, dir: i32, name: u64) -> io::Result<Option<Change>> {
        let Some(path) = self.path(dir, name)? else {
            return Ok(None);
        };
        let place = self.root.join(&path);
        let is_possible =
            place.symlink_metadata().is_err() && place.parent().is_some_and(Path::is_dir);
        Ok(is_possible.then_some(Change::MakeDir(path)))
    }

    /// Path that a system call's arguments name, relative to the recorded directory; `None` unless a file or directory
    /// exists at the path.
    fn existing(&self, dir: i32, name: u64) -> io::Result<Option<PathBuf>> {
        let path = self.path(dir, name)?;
        Ok(path.filter(|path| self.root.join(path).symlink_metadata().is_ok()))
    }

    /// Path that a system call's directory descriptor and name (by address) refer to, relative to the recorded
    /// directory; `None` for a path outside of the recorded directory, or if the descriptor is not open.
    fn path(&self, dir: i32, name: u64) -> io::Result<Option<PathBuf>> {
        let name = self.text(name)?;
        let base = match dir {
            _ if name.is_absolute() => PathBuf::from("/"),
            libc::AT_FDCWD => std::fs::read_link(self.proc("cwd"))?,
            dir => match std::fs::read_link(self.proc(&format!("fd/{dir}"))) {
                Ok(base) => base,
                // The call will fail.
                Err(_) => return Ok(None),
            },
        };
        let mut path = PathBuf::new();
        for part in base.join(name).components() {
            match part {
                Component::CurDir => {}
                Component::ParentDir => _ = path.pop(),
                other => path.push(other),
            }
        }
        Ok(path.strip_prefix(self.root).ok().map(Path::to_owned))
    }

    /// Path of the file or directory that the recorded program has open as descriptor `fd`; `None` if the file is
    /// deleted or outside of the recorded directory.
    fn file(&self, fd: i32) -> io::Result<Option<PathBuf>> {
        let Ok(path) = std::fs::read_link(self.proc(&format!("fd/{fd}"))) else {
            return Ok(None);
        };
        let is_named = !path.as_os_str().as_encoded_bytes().ends_with(DELETED);
        let below = path.strip_prefix(self.root).ok().filter(|_| is_named);
        Ok(below.map(Path::to_owned))
    }

    /// File offset and open flags of the recorded program's descriptor `fd`.
    fn position(&self, fd: i32) -> io::Result<(u64, i32)> {
        let info = std::fs::read_to_string(self.proc(&format!("fdinfo/{fd}")))?;
        let field = |name: &str| {
            let line = info.lines().find_map(|line| line.strip_prefix(name));
            line.map(str::trim).unwrap_or_default().to_owned()
        };
        let position = field("pos:").parse().map_err(io::Error::other)?;
        let flags = i32::from_str_radix(&field("flags:"), 8).map_err(io::Error::other)?;
        Ok((position, flags))
    }

    /// Addresses and lengths of the parts of a vectored write.
    fn parts(&self, at: u64, count: u64) -> io::Result<Vec<(u64, u64)>> {
        let part = |i: u64| Ok((self.number(at + 16 * i)?, self.number(at + 16 * i + 8)?));
        (0..count).map(part).collect()
    }

    fn number(&self, at: u64) -> io::Result<u64> {
        let bytes = self.memory(at, 8)?;
        Ok(u64::from_ne_bytes(bytes.try_into().expect("eight bytes")))
    }

    /// A text that ends with a zero.
    fn text(&self, at: u64) -> io::Result<PathBuf> {
        let memory = File::open(self.proc("mem"))?;
        let mut bytes = vec![0; MAX_PATH_BYTES];
        // The page after the text may not be mapped.
        let read = memory.read_at(&mut bytes, at)?;
        bytes.truncate(read);
        let end = bytes.iter().position(|b| *b == 0);
        bytes.truncate(end.ok_or_else(|| io::Error::other("a path without an end"))?);
        Ok(std::ffi::OsString::from_vec(bytes).into())
    }

    fn memory(&self, at: u64, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        File::open(self.proc("mem"))?.read_exact_at(&mut bytes, at)?;
        Ok(bytes)
    }

    fn proc(&self, name: &str) -> String {
        format!("/proc/{}/{name}", self.thread)
    }
}
