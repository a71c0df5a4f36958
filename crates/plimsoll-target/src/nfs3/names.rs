//! Operations on names besides those that the session's trait lists one by one: opening, listing,
//! and small files.

use super::data::Open;
use super::lane_client::LaneClient;
use super::of_nfs;
use crate::error::OpError;
use crate::nfs::dir_handle_cache::split;
use crate::nfs::listing::{ListingCursor, is_name};
use crate::nfs::url::CreateMode;
use crate::nfs::work_dir::{DIR_MODE, FILE_MODE};
use crate::session_types::{Attributes, EntryKind, ListTotals, OpenHow, OpenMode};
use plimsoll_nfs::v3::{
    self, Access, AccessArgs, Create, CreateArgs, CreateHow, Entry, FileType, GetAttr, Handle,
    Lookup, MkDir, MkDirArgs, NfsError, ReadDir, ReadDirArgs, ReadDirPlus, ReadDirPlusArgs, Remove,
    Rename, RenameArgs, SetAttr, SetAttrArgs, Setting, Stable, Status, SymLink, SymLinkArgs,
    access,
};
use rustix::io::Errno;
use std::rc::Rc;

/// Longest small file that is read whole, in bytes.
const MAX_WHOLE_READ_BYTES: u64 = 64 << 20;

pub(super) fn kind_of(kind: FileType) -> EntryKind {
    match kind {
        FileType::Regular => EntryKind::File,
        FileType::Directory => EntryKind::Dir,
        FileType::Link => EntryKind::Link,
        _ => EntryKind::Other,
    }
}

pub(super) fn attributes(a: &v3::Attributes) -> Attributes {
    Attributes {
        kind: kind_of(a.kind),
        size: a.size,
    }
}

/// An entry of a directory, and how many bytes of the message it took.
pub(super) struct DirEntryName<'a> {
    name: &'a [u8],
    kind: Option<FileType>,
    bytes: u64,
}

impl LaneClient {
    /// LOOKUP, ACCESS and GETATTR; CREATE before them if the file is to be made.
    pub(super) async fn open_file(&self, path: &[u8], how: OpenHow) -> Result<Rc<Open>, OpError> {
        let (reads, writes) = match how.mode {
            OpenMode::Read => (true, false),
            OpenMode::Write => (false, true),
            OpenMode::ReadWrite => (true, true),
        };
        let stable = match how.dsync {
            true => Stable::DataSync,
            false => Stable::Unstable,
        };
        if path.is_empty() {
            return Err(OpError(Errno::ISDIR));
        }
        let made = match how.create {
            true => self.create(path, how.truncate).await?,
            false => None,
        };
        let opened = match made {
            Some(made) => made,
            None => {
                let file = self.object(path).await?;
                self.check_access(file, reads, writes).await?;
                let found = self.client.call::<GetAttr, _>(&file, |a| a).await;
                let found = found.map_err(of_nfs)?;
                check_kind(found.kind)?;
                if how.truncate {
                    self.set_size(file, 0).await?;
                }
                (file, Some(attributes(&found)))
            }
        };
        Ok(Open::new(opened, reads, writes, stable))
    }

    async fn check_access(&self, object: Handle, read: bool, write: bool) -> Result<(), OpError> {
        let mut wanted = 0;
        if read {
            wanted |= access::READ;
        }
        if write {
            wanted |= access::MODIFY | access::EXTEND;
        }
        self.may(object, wanted).await
    }

    /// Asks whether all of this may be done.
    pub(super) async fn may(&self, object: Handle, wanted: u32) -> Result<(), OpError> {
        let args = AccessArgs { object, wanted };
        let granted = self.client.call::<Access, _>(&args, |a| a.granted).await;
        match granted.map_err(of_nfs)? & wanted == wanted {
            true => Ok(()),
            false => Err(OpError(Errno::ACCESS)),
        }
    }

    /// Makes a file, or takes one that is there; `None` if that is to be opened like any other.
    async fn create(
        &self,
        path: &[u8],
        truncate: bool,
    ) -> Result<Option<(Handle, Option<Attributes>)>, OpError> {
        let set = Setting {
            mode: Some(FILE_MODE),
            size: truncate.then_some(0),
            ..Setting::NOTHING
        };
        let how = match self.config.create {
            CreateMode::Unchecked => CreateHow::Unchecked(set),
            CreateMode::Guarded => CreateHow::Guarded(set),
            CreateMode::Exclusive => CreateHow::Exclusive(self.verifiers.next()),
        };
        let made = self
            .with_entry(path, async |at| {
                let args = CreateArgs { at, how };
                let made = self
                    .client
                    .call::<Create, _>(&args, |m| (m.object, m.attributes));
                match made.await {
                    Err(NfsError::Status(Status::Exist)) => Ok(None),
                    other => other.map(Some),
                }
            })
            .await?;
        let Some((object, said)) = made else {
            return Ok(None);
        };
        let file = match object {
            Some(file) => file,
            None => self.object(path).await?,
        };
        if let Some(said) = said {
            check_kind(said.kind)?;
        }
        if let CreateHow::Exclusive(_) = how {
            // The verifier may be kept in its attributes, so that they have to be set now
            // (RFC 1813, 3.3.8).
            self.set(
                file,
                Setting {
                    mode: Some(FILE_MODE),
                    ..Setting::NOTHING
                },
            )
            .await?;
        }
        Ok(Some((file, said.as_ref().map(attributes))))
    }

    pub(super) async fn set(&self, object: Handle, set: Setting) -> Result<(), OpError> {
        let args = SetAttrArgs {
            object,
            set,
            guard: None,
        };
        let done = self.client.call::<SetAttr, _>(&args, |_| ()).await;
        done.map_err(of_nfs)
    }

    pub(super) async fn set_size(&self, file: Handle, size: u64) -> Result<(), OpError> {
        self.set(
            file,
            Setting {
                size: Some(size),
                ..Setting::NOTHING
            },
        )
        .await
    }

    /// What a name is: LOOKUP, whose answer has the attributes unless the server leaves them out.
    pub(super) async fn find(&self, path: &[u8]) -> Result<(Handle, v3::Attributes), OpError> {
        let found = match path {
            b"" => Ok((self.config.root, None)),
            path => {
                self.with_entry(path, async |entry| {
                    let found = self.client.call::<Lookup, _>(&entry, |f| f);
                    found.await.map(|f| (f.object, f.attributes))
                })
                .await
            }
        };
        match found? {
            (object, Some(attributes)) => Ok((object, attributes)),
            (object, None) => {
                let asked = self.client.call::<GetAttr, _>(&object, |a| a).await;
                Ok((object, asked.map_err(of_nfs)?))
            }
        }
    }

    /// Makes a symbolic link, unless the name is there.
    pub(super) async fn make_link(&self, path: &[u8], to: &[u8]) -> Result<(), OpError> {
        if self.links.borrow().contains(path) {
            return Ok(());
        }
        let made = self
            .with_entry(path, async |at| {
                let args = SymLinkArgs {
                    at,
                    set: Setting::NOTHING,
                    path: v3::Name(to),
                };
                self.client.call::<SymLink, _>(&args, |_| ()).await
            })
            .await;
        match made {
            Ok(()) | Err(OpError(Errno::EXIST)) => {}
            Err(e) => return Err(e),
        }
        self.links.borrow_mut().insert(path.into());
        Ok(())
    }

    pub(super) async fn make_directory(&self, path: &[u8]) -> Result<(), OpError> {
        if path.is_empty() {
            return Err(OpError(Errno::EXIST));
        }
        let set = Setting {
            mode: Some(DIR_MODE),
            ..Setting::NOTHING
        };
        self.with_entry(path, async |at| {
            self.client
                .call::<MkDir, _>(&MkDirArgs { at, set }, |_| ())
                .await
        })
        .await
    }

    /// RENAME. Of the two directories either may be stale, and the status does not say which.
    pub(super) async fn rename_entry(&self, from: &[u8], to: &[u8]) -> Result<(), OpError> {
        let (from_dir, from_name) = split(from);
        let (to_dir, to_name) = split(to);
        let rename = async || {
            let entry = |dir, name| Entry {
                dir,
                name: v3::Name(name),
            };
            let args = RenameArgs {
                from: entry(self.walk(from_dir).await?, from_name),
                to: entry(self.walk(to_dir).await?, to_name),
            };
            self.client.call::<Rename, _>(&args, |_| ()).await
        };
        let done = match rename().await {
            Err(NfsError::Status(Status::Stale)) => {
                self.dirs.invalidate_path(from_dir);
                self.dirs.invalidate_path(to_dir);
                rename().await
            }
            done => done,
        };
        // What was a directory has another path now.
        self.dirs.invalidate(from);
        self.dirs.invalidate(to);
        done.map_err(of_nfs)
    }

    pub(super) async fn remove_file(&self, path: &[u8]) -> Result<(), OpError> {
        self.with_entry(path, async |entry| {
            self.client.call::<Remove, _>(&entry, |_| ()).await
        })
        .await
    }

    /// Reads a directory to its end by READDIR; `.` and `..` are left out.
    pub(super) async fn read_dir(
        &self,
        dir: Handle,
        mut visit: impl FnMut(DirEntryName<'_>),
    ) -> Result<(), OpError> {
        let mut args = ReadDirArgs {
            dir,
            cookie: 0,
            verifier: [0; 8],
            count: self.config.list_size,
        };
        let mut place = ListingCursor::default();
        loop {
            let read = self.client.call::<ReadDir, _>(&args, |listing| {
                let mut cookie = None;
                for entry in &listing.entries {
                    cookie = Some(entry.cookie);
                    if !matches!(entry.name.0, b"." | b"..") {
                        visit(DirEntryName {
                            name: entry.name.0,
                            kind: None,
                            bytes: 24 + entry.name.0.len().next_multiple_of(4) as u64,
                        });
                    }
                }
                (cookie, listing.verifier, listing.eof)
            });
            if !place.next_part(read.await.map_err(of_nfs)?)? {
                return Ok(());
            }
            (args.cookie, args.verifier) = (place.cookie, place.verifier);
            self.check_time()?;
        }
    }

    /// The same by READDIRPLUS.
    pub(super) async fn read_dir_plus(
        &self,
        dir: Handle,
        mut visit: impl FnMut(DirEntryName<'_>),
    ) -> Result<(), OpError> {
        let size = self.config.list_size;
        let mut args = ReadDirPlusArgs {
            dir,
            cookie: 0,
            verifier: [0; 8],
            dir_count: size,
            max_count: size,
        };
        let mut place = ListingCursor::default();
        loop {
            let read = self.client.call::<ReadDirPlus, _>(&args, |listing| {
                let mut cookie = None;
                for entry in &listing.entries {
                    cookie = Some(entry.cookie);
                    if !matches!(entry.name.0, b"." | b"..") {
                        let handle = entry
                            .handle
                            .map_or(0, |h| 4 + h.bytes().len().next_multiple_of(4));
                        let attributes = if entry.attributes.is_some() { 84 } else { 0 };
                        let name = entry.name.0.len().next_multiple_of(4);
                        visit(DirEntryName {
                            name: entry.name.0,
                            kind: entry.attributes.map(|a| a.kind),
                            bytes: (32 + name + handle + attributes) as u64,
                        });
                    }
                }
                (cookie, listing.verifier, listing.eof)
            });
            if !place.next_part(read.await.map_err(of_nfs)?)? {
                return Ok(());
            }
            (args.cookie, args.verifier) = (place.cookie, place.verifier);
            self.check_time()?;
        }
    }

    /// Between two calls of an operation that may have many.
    fn check_time(&self) -> Result<(), OpError> {
        match self.lane.now() >= self.lane.deadline() {
            true => Err(OpError(Errno::CANCELED)),
            false => Ok(()),
        }
    }

    /// How many entries a directory has, by READDIR or READDIRPLUS.
    pub(super) async fn list_dir(&self, path: &[u8], plus: bool) -> Result<ListTotals, OpError> {
        let dir = self.object(path).await?;
        let mut listed = ListTotals::default();
        let count = |entry: DirEntryName<'_>| {
            listed.entries += 1;
            listed.bytes += entry.bytes;
        };
        match plus {
            true => self.read_dir_plus(dir, count).await?,
            false => self.read_dir(dir, count).await?,
        }
        Ok(listed)
    }

    /// Names and kinds of a directory's entries. A server without READDIRPLUS is asked for each.
    pub(super) async fn entries_of(
        &self,
        path: &[u8],
    ) -> Result<Vec<(Vec<u8>, EntryKind)>, OpError> {
        let dir = self.walk(path).await.map_err(of_nfs)?;
        let mut all: Vec<(Vec<u8>, Option<FileType>)> = Vec::new();
        let add = |entry: DirEntryName<'_>| all.push((entry.name.to_vec(), entry.kind));
        match self.read_dir_plus(dir, add).await {
            Err(OpError(Errno::OPNOTSUPP)) => {
                all.clear();
                let add = |entry: DirEntryName<'_>| all.push((entry.name.to_vec(), None));
                self.read_dir(dir, add).await?;
            }
            Err(OpError(Errno::STALE)) if !path.is_empty() => {
                self.dirs.invalidate(path);
                return Err(OpError(Errno::NOENT));
            }
            other => other?,
        }
        let mut out = Vec::with_capacity(all.len());
        for (name, kind) in all {
            if !is_name(&name) {
                return Err(OpError(Errno::BADMSG));
            }
            let kind = match kind {
                Some(kind) => kind,
                None => self.kind_in(dir, &name).await?,
            };
            out.push((name, kind_of(kind)));
        }
        Ok(out)
    }

    async fn kind_in(&self, dir: Handle, name: &[u8]) -> Result<FileType, OpError> {
        let name = v3::Name(name);
        let found = self
            .client
            .call::<Lookup, _>(&Entry { dir, name }, |f| f)
            .await;
        let found = found.map_err(of_nfs)?;
        match found.attributes {
            Some(attributes) => Ok(attributes.kind),
            None => {
                let asked = self
                    .client
                    .call::<GetAttr, _>(&found.object, |a| a.kind)
                    .await;
                asked.map_err(of_nfs)
            }
        }
    }

    /// Contents of a small file.
    pub(super) async fn get_file(&self, path: &[u8]) -> Result<Vec<u8>, OpError> {
        let (file, found) = self.find(path).await?;
        check_kind(found.kind)?;
        if found.size > MAX_WHOLE_READ_BYTES {
            return Err(OpError(Errno::FBIG));
        }
        let mut out = vec![0; found.size as usize];
        let put = |at: usize, bytes: &[u8]| {
            // `read_range` gives no more than it was asked for.
            out[at..at + bytes.len()].copy_from_slice(bytes);
        };
        let read = self.read_range(file, 0, found.size, put).await?;
        out.truncate(read as usize);
        Ok(out)
    }

    /// Makes or replaces a small file: written beside and renamed, so that a crash leaves the old
    /// one or the new one whole.
    pub(super) async fn put_file(&self, path: &[u8], bytes: &[u8]) -> Result<(), OpError> {
        let beside = [path, b".new"].concat();
        let set = Setting {
            mode: Some(FILE_MODE),
            ..Setting::NOTHING
        };
        let create = async || {
            self.with_entry(&beside, async |at| {
                let args = CreateArgs {
                    at,
                    how: CreateHow::Guarded(set),
                };
                self.client.call::<Create, _>(&args, |m| m.object).await
            })
            .await
        };
        let made = match create().await {
            // Left by a crash, or another name of somebody's file: it is never written to.
            Err(OpError(Errno::EXIST)) => {
                self.remove_file(&beside).await?;
                create().await?
            }
            other => other?,
        };
        let file = match made {
            Some(file) => file,
            None => self.object(&beside).await?,
        };
        let open = Open::new((file, None), false, true, Stable::FileSync);
        let written = self.write_all(&open, 0, Stable::FileSync, bytes).await;
        let done = match written {
            Ok(()) => self.rename_entry(&beside, path).await,
            Err(e) => Err(e),
        };
        if done.is_err() {
            // What could not be written whole must not stay behind half.
            let _ = self.remove_file(&beside).await;
        }
        done
    }
}

/// What can be opened and read like a file.
pub(super) fn check_kind(kind: FileType) -> Result<(), OpError> {
    match kind {
        FileType::Regular => Ok(()),
        FileType::Directory => Err(OpError(Errno::ISDIR)),
        FileType::Link => Err(OpError(Errno::LOOP)),
        _ => Err(OpError(Errno::INVAL)),
    }
}
