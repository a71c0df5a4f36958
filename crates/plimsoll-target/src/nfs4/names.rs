//! Operations on names: opening, listing, and small files.

use super::data::Open;
use super::lane_client::{LaneClient, is_stale};
use super::of_nfs;
use crate::error::OpError;
use crate::nfs::dir_handle_cache::split;
use crate::nfs::listing::{ListingCursor, is_name};
use crate::nfs::url::CreateMode;
use crate::nfs::work_dir::{DIR_MODE, FILE_MODE};
use crate::session_types;
use crate::session_types::{EntryKind, ListTotals, OpenHow, OpenMode};
use plimsoll_nfs::v4::attributes::{Attributes, Bitmap, number};
use plimsoll_nfs::v4::operations::{
    Create, CreateArgs, CreateType, GetFh, ListEntry, Lookup, NVerify, Op, PutFh, ReadDir,
    ReadDirArgs, Remove, Rename, RenameArgs, SaveFh, Verify,
};
use plimsoll_nfs::v4::state::{OpenHow as How, share};
use plimsoll_nfs::v4::types::{FileType, Handle, Stable, Status, Text};
use plimsoll_nfs::v4::{Call, Compound, NfsError, OpenFile, OpenOwner, Results};
use rustix::io::Errno;
use std::rc::Rc;

/// Longest small file that is read whole, in bytes.
const MAX_WHOLE_READ_BYTES: u64 = 64 << 20;

/// What a listing asks of each entry.
const READDIR_ATTRIBUTES: Bitmap = Bitmap::of(&[number::KIND, number::READ_ERROR, number::FILE_ID]);

/// What a listing with attributes asks of each entry.
const READDIR_PLUS_ATTRIBUTES: Bitmap =
    Bitmap(super::lane_client::STAT_ATTRIBUTES.0 | 1 << number::HANDLE | 1 << number::READ_ERROR);

pub(super) fn kind_of(kind: FileType) -> EntryKind {
    match kind {
        FileType::Regular => EntryKind::File,
        FileType::Directory => EntryKind::Dir,
        FileType::Link => EntryKind::Link,
        _ => EntryKind::Other,
    }
}

/// What a stat tells; a server has to give both.
pub(super) fn attributes(a: &Attributes) -> Result<session_types::Attributes, OpError> {
    match (a.kind, a.size) {
        (Some(kind), Some(size)) => Ok(session_types::Attributes {
            kind: kind_of(kind),
            size,
        }),
        _ => Err(OpError(Errno::BADMSG)),
    }
}

/// Bytes of an entry in the message.
fn bytes_of(entry: &ListEntry<'_>) -> u64 {
    use plimsoll_nfs::xdr::Encode;
    let mut values = Vec::new();
    entry.attributes.encode(&mut values);
    (16 + entry.name.0.len().next_multiple_of(4) + values.len()) as u64
}

/// A file, and its attributes if they came.
type OpenedFile = (OpenFile, Option<session_types::Attributes>);

impl LaneClient {
    /// OPEN, which also makes the file if it is to be made; SETATTR if it is to be cut and was
    /// not made.
    pub(super) async fn open_file(
        &self,
        owner: &OpenOwner,
        path: &[u8],
        how: OpenHow,
    ) -> Result<Rc<Open>, OpError> {
        let access = match how.mode {
            OpenMode::Read => share::READ,
            OpenMode::Write => share::WRITE,
            OpenMode::ReadWrite => share::READ | share::WRITE,
        };
        let stable = match how.dsync {
            true => Stable::DataSync,
            false => Stable::Unstable,
        };
        if path.is_empty() {
            return Err(OpError(Errno::ISDIR));
        }
        let made = match how.create {
            true => self.create(owner, path, access, how.truncate).await?,
            false => None,
        };
        let cut = how.truncate && made.is_none();
        let opened = match made {
            Some(made) => made,
            None => self.open_named(owner, path, access, How::Existing).await?,
        };
        if cut {
            let set = Attributes {
                size: Some(0),
                ..Attributes::default()
            };
            if let Err(e) = self.set_open(&opened.0, set).await {
                let _ = self.client.close(&opened.0).await;
                return Err(e);
            }
        }
        let (reads, writes) = (access & share::READ != 0, access & share::WRITE != 0);
        Ok(Open::new(opened, reads, writes, stable))
    }

    async fn open_named(
        &self,
        owner: &OpenOwner,
        path: &[u8],
        access: u32,
        how: How,
    ) -> Result<OpenedFile, OpError> {
        let opened = self.with_entry(path, async |dir, name| {
            self.client.open(owner, (dir, name), access, how).await
        });
        let (file, found) = opened.await?;
        match found.kind.map(check_kind) {
            None | Some(Ok(())) => Ok((file, attributes(&found).ok())),
            Some(Err(e)) => {
                let _ = self.client.close(&file).await;
                Err(e)
            }
        }
    }

    /// Makes a file, or takes one that is there; `None` if that is to be opened like any other.
    async fn create(
        &self,
        owner: &OpenOwner,
        path: &[u8],
        access: u32,
        truncate: bool,
    ) -> Result<Option<OpenedFile>, OpError> {
        let set = Attributes {
            mode: Some(FILE_MODE),
            size: truncate.then_some(0),
            ..Attributes::default()
        };
        let only_mode = Attributes {
            mode: Some(FILE_MODE),
            ..Attributes::default()
        };
        let how = match (self.config.create, self.client.minor()) {
            (CreateMode::Unchecked, _) => How::Unchecked(set),
            (CreateMode::Guarded, _) => How::Guarded(set),
            (CreateMode::Exclusive, 0) => How::Exclusive(self.verifiers.next()),
            (CreateMode::Exclusive, _) => How::ExclusiveWith(self.verifiers.next(), only_mode),
        };
        let made = match self.open_named(owner, path, access, how).await {
            Err(OpError(Errno::EXIST)) => return Ok(None),
            made => made?,
        };
        if let How::Exclusive(_) = how {
            // The verifier may be kept in its attributes, so that they have to be set now
            // (RFC 7530, 16.16.5).
            self.set_open(&made.0, only_mode).await?;
        }
        Ok(Some(made))
    }

    /// Does something to what a name stands for, with its directory as the current handle first:
    /// one compound.
    pub(super) async fn compound_on_name<R>(
        &self,
        call: Call,
        path: &[u8],
        build: impl Fn(&mut Compound<'_>),
        mut take: impl FnMut(&mut Results<'_>) -> Result<R, NfsError>,
    ) -> Result<R, OpError> {
        if path.is_empty() {
            let root = self.config.root;
            let done = self.client.call(
                call,
                |c| {
                    c.add::<PutFh>(&root);
                    build(c);
                },
                |r| {
                    r.skip::<PutFh>()?;
                    take(r)
                },
            );
            return done.await.map_err(of_nfs);
        }
        let take = std::cell::RefCell::new(take);
        self.with_entry(path, async |dir, name| {
            let done = self.client.call(
                call,
                |c| {
                    c.add::<PutFh>(&dir).add::<Lookup>(&Text(name));
                    build(c);
                },
                |r| {
                    r.skip::<PutFh>()?;
                    r.skip::<Lookup>()?;
                    (take.borrow_mut())(r)
                },
            );
            done.await
        })
        .await
    }

    /// Makes a directory or a symbolic link.
    pub(super) async fn make(&self, path: &[u8], what: CreateType<'_>) -> Result<(), OpError> {
        if path.is_empty() {
            return Err(OpError(Errno::EXIST));
        }
        let mode = match what {
            CreateType::Link(_) => None,
            _ => Some(DIR_MODE),
        };
        self.with_entry(path, async |dir, name| {
            let args = CreateArgs {
                what,
                name: Text(name),
                set: Attributes {
                    mode,
                    ..Attributes::default()
                },
            };
            let made = self.client.call_once(
                Call::Create,
                |c| {
                    c.add::<PutFh>(&dir).add::<Create>(&args);
                },
                |r| {
                    r.skip::<PutFh>()?;
                    r.skip::<Create>()
                },
                |status| status == Status::Exist,
            );
            made.await
        })
        .await
    }

    /// RENAME. Of the two directories either may be stale, and the status does not say which.
    pub(super) async fn rename_entry(&self, from: &[u8], to: &[u8]) -> Result<(), OpError> {
        let (from_dir, from_name) = split(from);
        let (to_dir, to_name) = split(to);
        let rename = async || {
            let (from, to) = (self.walk(from_dir).await?, self.walk(to_dir).await?);
            let args = RenameArgs {
                from: Text(from_name),
                to: Text(to_name),
            };
            let done = self.client.call_once(
                Call::Rename,
                |c| {
                    c.add::<PutFh>(&from).add::<SaveFh>(&());
                    c.add::<PutFh>(&to).add::<Rename>(&args);
                },
                |r| {
                    r.skip::<PutFh>()?;
                    r.skip::<SaveFh>()?;
                    r.skip::<PutFh>()?;
                    r.skip::<Rename>()
                },
                |status| status == Status::NoEnt,
            );
            self.client.forget_name(&from, from_name);
            self.client.forget_name(&to, to_name);
            done.await
        };
        let done = match rename().await {
            Err(e) if is_stale(e) => {
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

    /// REMOVE, which removes files and directories alike; so the same compound makes sure before
    /// it of which the name is.
    pub(super) async fn remove_entry(&self, path: &[u8], is_dir: bool) -> Result<(), OpError> {
        let directory = Attributes {
            kind: Some(FileType::Directory),
            ..Attributes::default()
        };
        let removed = self.with_entry(path, async |dir, name| {
            self.client.forget_name(&dir, name);
            let removed = self.client.call_once(
                Call::Remove,
                |c| {
                    c.add::<PutFh>(&dir).add::<Lookup>(&Text(name));
                    match is_dir {
                        true => c.add::<Verify>(&directory),
                        false => c.add::<NVerify>(&directory),
                    };
                    c.add::<PutFh>(&dir).add::<Remove>(&Text(name));
                },
                |r| {
                    r.skip::<PutFh>()?;
                    r.skip::<Lookup>()?;
                    match is_dir {
                        true => r.skip::<Verify>()?,
                        false => r.skip::<NVerify>()?,
                    }
                    r.skip::<PutFh>()?;
                    r.skip::<Remove>()
                },
                |status| status == Status::NoEnt,
            );
            match removed.await {
                Err(NfsError::Status(_, Status::Same)) => {
                    Err(NfsError::Status(Some(Op::NVerify), Status::IsDir))
                }
                Err(NfsError::Status(_, Status::NotSame)) => {
                    Err(NfsError::Status(Some(Op::Verify), Status::NotDir))
                }
                removed => removed,
            }
        });
        removed.await
    }

    /// Reads a directory to its end: the first part together with the LOOKUP of its name.
    async fn read_dir(
        &self,
        path: &[u8],
        attributes: Bitmap,
        mut visit: impl FnMut(&ListEntry<'_>),
    ) -> Result<(), OpError> {
        let size = self.config.sizes.list;
        let mut args = ReadDirArgs {
            cookie: 0,
            verifier: [0; 8],
            dir_count: size,
            max_count: size,
            attributes,
        };
        let mut part = |r: &mut Results<'_>| {
            let listing = r.get::<ReadDir>()?;
            let mut next = None;
            for entry in listing.entries() {
                next = Some(entry.cookie);
                visit(&entry);
            }
            Ok((next, listing.verifier, listing.eof))
        };
        let call = match path {
            b"" => Call::ReadDir,
            _ => Call::LookupReadDir,
        };
        let first = self.compound_on_name(
            call,
            path,
            |c| {
                c.add::<GetFh>(&()).add::<ReadDir>(&args);
            },
            |r| Ok((r.get::<GetFh>()?, part(r)?)),
        );
        let (dir, mut end): (Handle, _) = first.await?;
        let mut place = ListingCursor::default();
        while place.next_part(end)? {
            (args.cookie, args.verifier) = (place.cookie, place.verifier);
            if self.lane.now() >= self.lane.deadline() {
                return Err(OpError(Errno::CANCELED));
            }
            let read = self.client.call(
                Call::ReadDir,
                |c| {
                    c.add::<PutFh>(&dir).add::<ReadDir>(&args);
                },
                |r| {
                    r.skip::<PutFh>()?;
                    part(r)
                },
            );
            end = read.await.map_err(of_nfs)?;
        }
        Ok(())
    }

    /// How many entries a directory has.
    pub(super) async fn list_dir(&self, path: &[u8], plus: bool) -> Result<ListTotals, OpError> {
        let mut listed = ListTotals::default();
        let asked = if plus {
            READDIR_PLUS_ATTRIBUTES
        } else {
            READDIR_ATTRIBUTES
        };
        let count = |entry: &ListEntry<'_>| {
            listed.entries += 1;
            listed.bytes += bytes_of(entry);
        };
        self.read_dir(path, asked, count).await?;
        Ok(listed)
    }

    /// Names and kinds of a directory's entries.
    pub(super) async fn entries_of(
        &self,
        path: &[u8],
    ) -> Result<Vec<(Vec<u8>, EntryKind)>, OpError> {
        // A symbolic link is not listed, nor is what is behind it.
        self.walk(path).await.map_err(of_nfs)?;
        let mut all = Vec::new();
        let mut strange = false;
        let add = |entry: &ListEntry<'_>| match entry.attributes.kind {
            Some(kind) if is_name(entry.name.0) => {
                all.push((entry.name.0.to_vec(), kind_of(kind)));
            }
            _ => strange = true,
        };
        self.read_dir(path, READDIR_ATTRIBUTES, add).await?;
        match strange {
            true => Err(OpError(Errno::BADMSG)),
            false => Ok(all),
        }
    }

    /// Contents of a small file.
    pub(super) async fn get_file(
        &self,
        owner: &OpenOwner,
        path: &[u8],
    ) -> Result<Vec<u8>, OpError> {
        let how = OpenHow::plain(OpenMode::Read);
        let open = self.open_file(owner, path, how).await?;
        let read = self.get_open(&open).await;
        let closed = self.client.close(&open.file).await.map_err(of_nfs);
        let read = read?;
        closed.map(|()| read)
    }

    async fn get_open(&self, open: &Open) -> Result<Vec<u8>, OpError> {
        let size = self.attributes_of(open.file.handle()).await?;
        let size = attributes(&size)?.size;
        if size > MAX_WHOLE_READ_BYTES {
            return Err(OpError(Errno::FBIG));
        }
        let mut out = vec![0; size as usize];
        let put = |at: usize, bytes: &[u8]| {
            // `read_range` gives no more than it was asked for.
            out[at..at + bytes.len()].copy_from_slice(bytes);
        };
        let read = self.read_range(open, 0, size, put).await?;
        out.truncate(read as usize);
        Ok(out)
    }

    /// Makes or replaces a small file: written beside and renamed, so that a crash leaves the old
    /// one or the new one whole.
    pub(super) async fn put_file(
        &self,
        owner: &OpenOwner,
        path: &[u8],
        bytes: &[u8],
    ) -> Result<(), OpError> {
        let beside = [path, b".new"].concat();
        let set = Attributes {
            mode: Some(FILE_MODE),
            ..Attributes::default()
        };
        let how = How::Guarded(set);
        let made = match self.open_named(owner, &beside, share::WRITE, how).await {
            // Left by a crash, or another name of somebody's file: it is never written to.
            Err(OpError(Errno::EXIST)) => {
                self.remove_entry(&beside, false).await?;
                self.open_named(owner, &beside, share::WRITE, how).await?
            }
            other => other?,
        };
        let open = Open::new(made, false, true, Stable::FileSync);
        let written = self.write_all(&open, 0, Stable::FileSync, bytes).await;
        let closed = self.client.close(&open.file).await.map_err(of_nfs);
        match written.and(closed) {
            Ok(()) => self.replace(&beside, path).await,
            Err(e) => {
                // What could not be written whole must not stay behind half.
                let _ = self.remove_entry(&beside, false).await;
                Err(e)
            }
        }
    }

    /// Renames a file onto another, or removes it where that cannot be. Servers may refuse to replace a
    /// file that they have open, be it for what they keep themselves (RFC 8881, 18.26.3): it is removed
    /// before then.
    async fn replace(&self, from: &[u8], to: &[u8]) -> Result<(), OpError> {
        let Err(refused) = self.rename_entry(from, to).await else {
            return Ok(());
        };
        let is_open = Status::of_errno(refused.0) == Some(Status::FileOpen);
        if is_open && self.remove_entry(to, false).await.is_ok() {
            // Whatever comes of it, the new one stays: it is the only one.
            return self.rename_entry(from, to).await;
        }
        let _ = self.remove_entry(from, false).await;
        Err(refused)
    }
}

/// What can be opened and read like a file.
fn check_kind(kind: FileType) -> Result<(), OpError> {
    match kind {
        FileType::Regular => Ok(()),
        FileType::Directory => Err(OpError(Errno::ISDIR)),
        FileType::Link => Err(OpError(Errno::LOOP)),
        _ => Err(OpError(Errno::INVAL)),
    }
}
