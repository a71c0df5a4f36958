//! The operations of sessions, as the compounds that they become.

use super::data::{Open, PendingWriteState};
use super::lane_client::{LaneClient, STAT_ATTRIBUTES};
use super::names::attributes;
use super::of_nfs;
use crate::error::OpError;
use crate::nfs::backend::{NfsBackend, PendingWrite, Stability};
use crate::nfs::cache::{Cache, DelegationId};
use crate::nfs::dir_handle_cache::split;
use crate::session_types;
use crate::session_types::{EntryKind, ListTotals, OpenHow};
use crate::write_data::WriteData;
use plimsoll_lane::Lane;
use plimsoll_nfs::v4::attributes::{Attributes, Bitmap, number};
use plimsoll_nfs::v4::operations::{
    Access, CreateType, GetAttr, GetFh, PutFh, ReadLink, SetAttr, SetAttrArgs, access,
};
use plimsoll_nfs::v4::types::{FileType, Handle, Stable, StateId, Text};
use plimsoll_nfs::v4::{Call, OpenOwner};
use rustix::io::Errno;
use std::rc::Rc;

/// What a statfs asks for.
const STATFS_ATTRIBUTES: Bitmap = {
    use number::{
        FILES_AVAILABLE, FILES_FREE, FILES_TOTAL, SPACE_AVAILABLE, SPACE_FREE, SPACE_TOTAL,
    };
    Bitmap::of(&[
        FILES_AVAILABLE,
        FILES_FREE,
        FILES_TOTAL,
        SPACE_AVAILABLE,
        SPACE_FREE,
        SPACE_TOTAL,
    ])
};

/// What a pathconf asks for.
const PATHCONF_ATTRIBUTES: Bitmap = Bitmap::of(&[number::MAX_LINK, number::MAX_NAME]);

impl LaneClient {
    /// Attributes of a handle.
    pub(super) async fn attributes_of(&self, handle: &Handle) -> Result<Attributes, OpError> {
        self.get_attributes(handle, &STAT_ATTRIBUTES).await
    }

    async fn get_attributes(&self, handle: &Handle, which: &Bitmap) -> Result<Attributes, OpError> {
        let asked = self.client.call(
            Call::GetAttr,
            |c| {
                c.add::<PutFh>(handle).add::<GetAttr>(which);
            },
            |r| {
                r.skip::<PutFh>()?;
                r.get::<GetAttr>()
            },
        );
        asked.await.map_err(of_nfs)
    }
}

impl NfsBackend for LaneClient {
    type Open = Open;
    type Opener = Rc<OpenOwner>;

    fn lane(&self) -> &Lane {
        &self.lane
    }

    fn cache(&self) -> &Cache {
        &self.cache
    }

    /// A delegation that serves what is opened for reading: nobody else writes meanwhile.
    fn delegation_of(&self, path: &[u8]) -> DelegationId {
        let (dir, name) = split(path);
        let dir = match dir {
            b"" => self.config.root,
            dir => self.dirs.get(dir)?,
        };
        self.client.delegation_number(&dir, name)
    }

    fn note_delegation_hit(&self) {
        self.client.promise_served();
    }

    async fn change_dir(&self, dir: &[u8]) -> Result<(), OpError> {
        self.walk(dir).await.map(|_| ()).map_err(of_nfs)
    }

    async fn open(
        &self,
        who: &Rc<OpenOwner>,
        path: &[u8],
        how: OpenHow,
    ) -> Result<Rc<Open>, OpError> {
        self.open_file(who, path, how).await
    }

    /// COMMIT, if unstable data was written since the last one; then CLOSE.
    async fn close(&self, open: &Rc<Open>) -> Result<(), OpError> {
        let committed = match open.is_dirty() {
            true => self.commit_file(open).await,
            false => Ok(()),
        };
        let closed = self.client.close(&open.file).await.map_err(of_nfs);
        committed.and(closed)
    }

    async fn read(
        &self,
        open: &Open,
        offset: u64,
        len: u64,
        sink: impl FnMut(usize, &[u8]),
    ) -> Result<u64, OpError> {
        self.read_range(open, offset, len, sink).await
    }

    async fn write(
        &self,
        open: &Open,
        source: &mut WriteData,
        offset: u64,
        len: u64,
        stable: Stability,
    ) -> Result<(), OpError> {
        let stable = match stable {
            Stability::AsOpened => open.stable,
            Stability::Stable => Stable::FileSync,
        };
        self.write_from(open, source, (offset, len), stable).await
    }

    async fn write_bytes(&self, open: &Open, offset: u64, bytes: &[u8]) -> Result<(), OpError> {
        self.write_all(open, offset, open.stable, bytes).await
    }

    /// The lane writes beside the worker: what waits for a slot must not wait for its worker.
    fn write_later(
        self: &Rc<Self>,
        open: &Rc<Open>,
        source: &mut WriteData,
        offset: u64,
        len: u64,
    ) -> Result<PendingWrite, OpError> {
        let want = usize::try_from(len).map_err(|_| Errno::NOMEM)?;
        let mut bytes = Vec::with_capacity(want);
        while bytes.len() < want {
            let next = source.next_chunk((want - bytes.len()) as u64)?;
            bytes.extend_from_slice(next);
        }
        let job = Rc::new(PendingWriteState::default());
        let (local, open, ending) = (Rc::downgrade(self), open.clone(), job.clone());
        self.lane.spawn_background(Box::pin(async move {
            if let Some(local) = local.upgrade() {
                let written = local.write_all(&open, offset, open.stable, &bytes).await;
                ending.end(written.map(|()| len));
            }
        }));
        Ok(Box::pin(async move { job.ended().await }))
    }

    async fn commit(&self, open: &Open) -> Result<(), OpError> {
        self.commit_file(open).await
    }

    async fn stat_open(&self, open: &Open) -> Result<session_types::Attributes, OpError> {
        attributes(&self.attributes_of(open.file.handle()).await?)
    }

    async fn set_len(&self, open: &Open, len: u64) -> Result<(), OpError> {
        let set = Attributes {
            size: Some(len),
            ..Attributes::default()
        };
        self.set_open(&open.file, set).await
    }

    async fn lock(&self, open: &Open, offset: u64, len: u64) -> Result<(), OpError> {
        let locked = self.client.lock_and_unlock(&open.file, offset, len);
        locked.await.map_err(of_nfs)
    }

    async fn stat(&self, path: &[u8]) -> Result<session_types::Attributes, OpError> {
        if path.is_empty() {
            return attributes(&self.attributes_of(&self.config.root).await?);
        }
        let looked = self.with_entry(path, async |dir, name| self.look_up(dir, name).await);
        attributes(&looked.await?.1)
    }

    async fn lookup(&self, path: &[u8]) -> Result<(), OpError> {
        self.compound_on_name(
            Call::Lookup,
            path,
            |c| {
                c.add::<GetFh>(&());
            },
            |r| r.skip::<GetFh>(),
        )
        .await
    }

    async fn access_read_write(&self, path: &[u8]) -> Result<(), OpError> {
        let wanted = access::READ | access::MODIFY | access::EXTEND;
        let call = match path {
            b"" => Call::Access,
            _ => Call::LookupAccess,
        };
        let granted = self.compound_on_name(
            call,
            path,
            |c| {
                c.add::<Access>(&wanted);
            },
            |r| r.get::<Access>(),
        );
        match granted.await?.granted & wanted == wanted {
            true => Ok(()),
            false => Err(OpError(Errno::ACCESS)),
        }
    }

    async fn chmod(&self, path: &[u8], mode: u32) -> Result<(), OpError> {
        let args = SetAttrArgs {
            state: StateId::ANONYMOUS,
            set: Attributes {
                mode: Some(mode),
                ..Attributes::default()
            },
        };
        let call = match path {
            b"" => Call::SetAttr,
            _ => Call::LookupSetAttr,
        };
        self.compound_on_name(
            call,
            path,
            |c| {
                c.add::<SetAttr>(&args);
            },
            |r| r.skip::<SetAttr>(),
        )
        .await
    }

    async fn remove(&self, path: &[u8]) -> Result<(), OpError> {
        self.remove_entry(path, false).await
    }

    async fn make_dir(&self, path: &[u8]) -> Result<(), OpError> {
        self.make(path, CreateType::Other(FileType::Directory))
            .await
    }

    async fn remove_dir(&self, path: &[u8]) -> Result<(), OpError> {
        self.remove_entry(path, true).await?;
        self.dirs.invalidate(path);
        Ok(())
    }

    async fn rename(&self, from: &[u8], to: &[u8]) -> Result<(), OpError> {
        self.rename_entry(from, to).await
    }

    async fn list(&self, path: &[u8], plus: bool) -> Result<ListTotals, OpError> {
        self.list_dir(path, plus).await
    }

    async fn entries(&self, path: &[u8]) -> Result<Vec<(Vec<u8>, EntryKind)>, OpError> {
        self.entries_of(path).await
    }

    async fn ensure_link(&self, path: &[u8], to: &[u8]) -> Result<(), OpError> {
        if self.links.borrow().contains(path) {
            return Ok(());
        }
        match self.make(path, CreateType::Link(Text(to))).await {
            Ok(()) | Err(OpError(Errno::EXIST)) => {}
            Err(e) => return Err(e),
        }
        self.links.borrow_mut().insert(path.into());
        Ok(())
    }

    async fn read_link(&self, path: &[u8]) -> Result<(), OpError> {
        self.compound_on_name(
            Call::LookupReadLink,
            path,
            |c| {
                c.add::<ReadLink>(&());
            },
            |r| r.skip::<ReadLink>(),
        )
        .await
    }

    async fn statfs(&self) -> Result<(), OpError> {
        let asked = self
            .get_attributes(&self.config.root, &STATFS_ATTRIBUTES)
            .await;
        asked.map(|_| ())
    }

    async fn pathconf(&self) -> Result<(), OpError> {
        let asked = self
            .get_attributes(&self.config.root, &PATHCONF_ATTRIBUTES)
            .await;
        asked.map(|_| ())
    }

    async fn get(&self, who: &Rc<OpenOwner>, path: &[u8]) -> Result<Vec<u8>, OpError> {
        self.get_file(who, path).await
    }

    async fn put(&self, who: &Rc<OpenOwner>, path: &[u8], bytes: &[u8]) -> Result<(), OpError> {
        self.put_file(who, path, bytes).await
    }
}
