//! Rare operations on names and open files.

use super::NfsSession;
use crate::error::OpError;
use crate::nfs::backend::NfsBackend;
use crate::nfs::dir_handle_cache::{check, split};
use crate::nfs::handle::NfsHandle;
use crate::nfs::transfer;
use crate::rare_operation::{FileOperation, NameOperation, missing, modify_blocks};
use crate::session::Session;
use plimsoll_nfs::v3::Stable;
use rustix::io::Errno;

/// Maximum size in bytes of a buffer that a worker keeps for the next operation; each of thousands
/// of workers has a buffer.
const RETAINED_BUFFER_BYTES: usize = 16 << 10;

impl<B: NfsBackend> NfsSession<B> {
    /// Implements [`Session::on_name`] by calls of the NFS version.
    pub(super) async fn operate_on_name(
        &mut self,
        operation: NameOperation,
    ) -> Result<u64, OpError> {
        match operation {
            NameOperation::StatMissing => return missing(self.stat().await),
            NameOperation::Access => self.client.access_read_write(&self.name).await?,
            NameOperation::Chmod(mode) => {
                let changed = self.client.chmod(&self.name, mode & 0o777).await;
                self.cache().invalidate(&self.name);
                changed?;
            }
            NameOperation::Lookup => self.client.lookup(&self.name).await?,
            NameOperation::PrepareLink => {
                check(&self.name)?;
                // A relative link is resolved from the directory of the link.
                let to = split(&self.destination).1;
                self.client.ensure_link(&self.name, to).await?;
            }
            NameOperation::ReadLink => self.client.read_link(&self.name).await?,
            NameOperation::ListPlus => {
                let listed = self.client.list(&self.name, true, &self.signs).await?;
                return Ok(listed.bytes);
            }
            NameOperation::StatFs => self.client.statfs().await?,
            NameOperation::PathConf => self.client.pathconf().await?,
        }
        Ok(0)
    }

    /// Implements [`Session::on_file`] by calls of the NFS version.
    pub(super) async fn operate_on_file(
        &mut self,
        handle: &NfsHandle<B::File>,
        operation: FileOperation<'_>,
    ) -> Result<u64, OpError> {
        let open = &handle.open;
        match operation {
            // The NFS client caches no file data after a close.
            FileOperation::DropCache | FileOperation::AdviseUnneeded => Ok(0),
            FileOperation::FlushData => self.fsync(handle).await.map(|()| 0),
            FileOperation::Truncate(len) => {
                open.check_writable().map_err(|_| Errno::INVAL)?;
                self.client.set_len(&open.file, len).await?;
                if let Some(cached) = &handle.cached {
                    cached.note_truncate(len);
                    self.cache().invalidate_other_opens(cached);
                }
                Ok(0)
            }
            FileOperation::Lock { offset, len } => {
                self.client.lock(&open.file, offset, len).await?;
                Ok(0)
            }
            FileOperation::WriteStable { offset, len } => {
                open.check_writable()?;
                let offset = match offset {
                    Some(offset) => offset,
                    None => self.stat_handle(handle).await?.size,
                };
                let range = (offset, len);
                self.write_content(handle, range, Stable::FileSync).await?;
                Ok(len)
            }
            FileOperation::WriteBytesStable { offset, bytes } => {
                let written = self.write_given(handle, offset, bytes, Stable::FileSync);
                written.await?;
                Ok(bytes.len() as u64)
            }
            FileOperation::Modify { offset, len } => {
                let range = (offset, len);
                let modified = self.copy_through_buffer(handle, handle, range, modify_blocks);
                Ok(2 * modified.await?)
            }
            // Only files of a kernel file system can be mapped.
            _ => Err(OpError(Errno::OPNOTSUPP)),
        }
    }

    /// Reads up to `len` bytes of one file, passes the bytes to `change`, and writes the result at
    /// the same offset of another file; returns the number of bytes.
    pub(super) async fn copy_through_buffer(
        &mut self,
        from: &NfsHandle<B::File>,
        to: &NfsHandle<B::File>,
        (offset, len): (u64, u64),
        change: impl FnOnce(&mut [u8]),
    ) -> Result<u64, OpError> {
        from.open.check_readable()?;
        to.open.check_writable()?;
        let size = usize::try_from(len).map_err(|_| Errno::NOMEM)?;
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        buffer.resize(size, 0);
        let sink = |at: usize, bytes: &[u8]| buffer[at..at + bytes.len()].copy_from_slice(bytes);
        let read = transfer::read(&*self.client, &from.open, (offset, len), sink, || {
            self.signs.call_completed()
        })
        .await?;
        buffer.truncate(read as usize);
        change(&mut buffer);
        let stability = to.open.stability;
        let written = transfer::write_bytes(&*self.client, &to.open, offset, &buffer, stability);
        let written = written.await;
        if buffer.capacity() <= RETAINED_BUFFER_BYTES {
            self.buffer = buffer;
        }
        written?;
        self.note_write(to, offset, read);
        Ok(read)
    }
}
