//! Reading directories.

use super::lane_client::{LaneClient, entry};
use crate::error::OpError;
use crate::nfs::listing::{ListingCursor, is_name};
use crate::session_types::EntryKind;
use plimsoll_nfs::v3::{
    FileType, GetAttr, Handle, Lookup, ReadDir, ReadDirArgs, ReadDirPlus, ReadDirPlusArgs,
};
use rustix::io::Errno;

pub(super) struct ListedEntry<'a> {
    name: &'a [u8],
    kind: Option<FileType>,
    /// Size of the entry in the message, in bytes.
    pub(super) bytes: usize,
}

impl LaneClient {
    /// Reads a whole directory by READDIR or READDIRPLUS, without `.` and `..`.
    pub(super) async fn read_dir(
        &self,
        dir: Handle,
        plus: bool,
        mut visit: impl FnMut(ListedEntry<'_>),
        part_read: impl Fn(),
    ) -> Result<(), OpError> {
        let size = self.state.config.sizes.list;
        let mut visit_name = |entry: ListedEntry<'_>| {
            if !matches!(entry.name, b"." | b"..") {
                visit(entry);
            }
        };
        let mut cursor = ListingCursor::default();
        loop {
            let (cookie, verifier) = (cursor.cookie, cursor.verifier);
            let part = if plus {
                let args = ReadDirPlusArgs {
                    dir,
                    cookie,
                    verifier,
                    dir_count: size,
                    max_count: size,
                };
                let read = self.client.call::<ReadDirPlus, _>(&args, |listing| {
                    for entry in &listing.entries {
                        let handle = entry.handle.map_or(0, |h| 4 + padded(h.bytes()));
                        let attributes = if entry.attributes.is_some() { 84 } else { 0 };
                        visit_name(ListedEntry {
                            name: entry.name.0,
                            kind: entry.attributes.map(|a| a.kind),
                            bytes: 32 + padded(entry.name.0) + handle + attributes,
                        });
                    }
                    let last = listing.entries.last().map(|e| e.cookie);
                    (last, listing.verifier, listing.eof)
                });
                read.await?
            } else {
                let args = ReadDirArgs {
                    dir,
                    cookie,
                    verifier,
                    count: size,
                };
                let read = self.client.call::<ReadDir, _>(&args, |listing| {
                    for entry in &listing.entries {
                        visit_name(ListedEntry {
                            name: entry.name.0,
                            kind: None,
                            bytes: 24 + padded(entry.name.0),
                        });
                    }
                    let last = listing.entries.last().map(|e| e.cookie);
                    (last, listing.verifier, listing.eof)
                });
                read.await?
            };
            if !cursor.next_part(part)? {
                return Ok(());
            }
            part_read();
            self.state.check_deadline()?;
        }
    }

    /// Names and kinds of the entries of a directory. Looks up each name on a server without
    /// READDIRPLUS.
    pub(super) async fn named_entries(
        &self,
        path: &[u8],
        dir: Handle,
    ) -> Result<Vec<(Vec<u8>, EntryKind)>, OpError> {
        let mut all: Vec<(Vec<u8>, Option<FileType>)> = Vec::new();
        let add = |entry: ListedEntry<'_>| all.push((entry.name.to_vec(), entry.kind));
        let mut listed = self.read_dir(dir, true, add, || ()).await;
        if listed == Err(OpError(Errno::OPNOTSUPP)) {
            all.clear();
            let add = |entry: ListedEntry<'_>| all.push((entry.name.to_vec(), None));
            listed = self.read_dir(dir, false, add, || ()).await;
        }
        if listed == Err(OpError(Errno::STALE)) && !path.is_empty() {
            self.state.dirs.invalidate(path);
            return Err(OpError(Errno::NOENT));
        }
        listed?;
        let mut out = Vec::with_capacity(all.len());
        for (name, kind) in all {
            if !is_name(&name) {
                return Err(OpError(Errno::BADMSG));
            }
            let kind = match kind {
                Some(kind) => kind,
                None => self.kind_in(dir, &name).await?,
            };
            out.push((name, kind.into()));
        }
        Ok(out)
    }

    async fn kind_in(&self, dir: Handle, name: &[u8]) -> Result<FileType, OpError> {
        let at = entry((dir, name));
        let (object, attributes) = self
            .client
            .call::<Lookup, _>(&at, |f| (f.object, f.attributes))
            .await?;
        match attributes {
            Some(attributes) => Ok(attributes.kind),
            None => Ok(self.client.call::<GetAttr, _>(&object, |a| a.kind).await?),
        }
    }
}

/// Size of an XDR value with its padding, in bytes.
fn padded(value: &[u8]) -> usize {
    value.len().next_multiple_of(4)
}
