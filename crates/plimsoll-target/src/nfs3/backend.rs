//! The operations of sessions, as the procedures that they become.

use super::data::Open;
use super::lane_client::LaneClient;
use super::names::attributes;
use super::of_nfs;
use crate::error::OpError;
use crate::nfs::backend::{NfsBackend, PendingWrite, Stability};
use crate::nfs::cache::Cache;
use crate::session_types::{Attributes, EntryKind, ListTotals, OpenHow};
use crate::write_data::WriteData;
use plimsoll_lane::Lane;
use plimsoll_nfs::v3::{FsStat, GetAttr, PathConf, ReadLink, RmDir, Setting, Stable, access};
use rustix::io::Errno;
use std::rc::Rc;

impl NfsBackend for LaneClient {
    type Open = Open;
    type Opener = ();

    fn lane(&self) -> &Lane {
        &self.lane
    }

    fn cache(&self) -> &Cache {
        &self.cache
    }

    async fn change_dir(&self, dir: &[u8]) -> Result<(), OpError> {
        self.walk(dir).await.map(|_| ()).map_err(of_nfs)
    }

    async fn open(&self, (): &(), path: &[u8], how: OpenHow) -> Result<Rc<Open>, OpError> {
        self.open_file(path, how).await
    }

    /// COMMIT, if unstable data was written since the last one: what is closed is there for
    /// others, as it is with the clients of kernels. Else nothing, since the server knows no open
    /// files.
    async fn close(&self, open: &Rc<Open>) -> Result<(), OpError> {
        match open.is_dirty() {
            true => self.commit(open).await,
            false => Ok(()),
        }
    }

    async fn read(
        &self,
        open: &Open,
        offset: u64,
        len: u64,
        sink: impl FnMut(usize, &[u8]),
    ) -> Result<u64, OpError> {
        self.read_range(open.file, offset, len, sink).await
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
        self.write_from(open, source, offset, len, stable).await
    }

    async fn write_bytes(&self, open: &Open, offset: u64, bytes: &[u8]) -> Result<(), OpError> {
        self.write_all(open, offset, open.stable, bytes).await
    }

    fn write_later(
        self: &Rc<Self>,
        open: &Rc<Open>,
        source: &mut WriteData,
        offset: u64,
        len: u64,
    ) -> Result<PendingWrite, OpError> {
        let pieces = self.send_later(open, source, offset, len)?;
        let (local, open) = (self.clone(), open.clone());
        Ok(Box::pin(async move {
            local.all_written(&open, pieces).await.map(|()| len)
        }))
    }

    async fn commit(&self, open: &Open) -> Result<(), OpError> {
        self.commit_file(open).await
    }

    async fn stat_open(&self, open: &Open) -> Result<Attributes, OpError> {
        let asked = self
            .client
            .call::<GetAttr, _>(&open.file, |a| attributes(&a));
        asked.await.map_err(of_nfs)
    }

    async fn set_len(&self, open: &Open, len: u64) -> Result<(), OpError> {
        self.set_size(open.file, len).await
    }

    async fn lock(&self, _: &Open, _: u64, _: u64) -> Result<(), OpError> {
        Err(OpError(Errno::NOLCK))
    }

    async fn stat(&self, path: &[u8]) -> Result<Attributes, OpError> {
        let (_, found) = self.find(path).await?;
        Ok(attributes(&found))
    }

    async fn lookup(&self, path: &[u8]) -> Result<(), OpError> {
        self.object(path).await.map(|_| ())
    }

    async fn access_read_write(&self, path: &[u8]) -> Result<(), OpError> {
        let object = self.object(path).await?;
        let wanted = access::READ | access::MODIFY | access::EXTEND;
        self.may(object, wanted).await
    }

    async fn chmod(&self, path: &[u8], mode: u32) -> Result<(), OpError> {
        let object = self.object(path).await?;
        let set = Setting {
            mode: Some(mode),
            ..Setting::NOTHING
        };
        self.set(object, set).await
    }

    async fn remove(&self, path: &[u8]) -> Result<(), OpError> {
        self.remove_file(path).await
    }

    async fn make_dir(&self, path: &[u8]) -> Result<(), OpError> {
        self.make_directory(path).await
    }

    async fn remove_dir(&self, path: &[u8]) -> Result<(), OpError> {
        let removed = self.with_entry(path, async |entry| {
            self.client.call::<RmDir, _>(&entry, |_| ()).await
        });
        removed.await?;
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
        self.make_link(path, to).await
    }

    async fn read_link(&self, path: &[u8]) -> Result<(), OpError> {
        let link = self.object(path).await?;
        let read = self.client.call::<ReadLink, _>(&link, |_| ());
        read.await.map_err(of_nfs)
    }

    async fn statfs(&self) -> Result<(), OpError> {
        let asked = self.client.call::<FsStat, _>(&self.config.root, |_| ());
        asked.await.map_err(of_nfs)
    }

    async fn pathconf(&self) -> Result<(), OpError> {
        let asked = self.client.call::<PathConf, _>(&self.config.root, |_| ());
        asked.await.map_err(of_nfs)
    }

    async fn get(&self, (): &(), path: &[u8]) -> Result<Vec<u8>, OpError> {
        self.get_file(path).await
    }

    async fn put(&self, (): &(), path: &[u8], bytes: &[u8]) -> Result<(), OpError> {
        self.put_file(path, bytes).await
    }
}
