//! [`Session::on_file`] and [`Session::copy`] on files whose contents are verified.

use super::record::FileRecord;
use super::session_state::VerifyingSession;
use crate::any::AnyHandle;
use crate::error::OpError;
use crate::rare_operation::FileOperation;
use crate::session::Session;
use std::sync::Arc;

impl VerifyingSession {
    /// Implements [`Session::on_file`] for a file with a record: checks what the operation reads, and notes what the
    /// operation writes.
    pub(super) async fn on_verified_file(
        &mut self,
        handle: &AnyHandle,
        record: &Arc<FileRecord>,
        operation: FileOperation<'_>,
    ) -> Result<u64, OpError> {
        match operation {
            FileOperation::Truncate(len) | FileOperation::Allocate(len) => {
                let epoch = record.begin_truncate(len);
                let done = self.inner.on_file(handle, operation).await;
                record.end_truncate(epoch, len, done.is_ok());
                done
            }
            FileOperation::WriteStable { offset, len } => {
                match offset {
                    Some(offset) => {
                        let range = (offset, len);
                        self.write_stamped(handle, record, range, true).await?;
                    }
                    None => self.append_stamped(handle, record, len, true).await?,
                }
                Ok(len)
            }
            // The contents of the range are written, not the bytes that were read, which may be the zeros of a hole
            // that another worker has filled since.
            FileOperation::Modify { offset, len } => {
                let (_, read) = self.read_kept(handle, record, (offset, len)).await?;
                let range = (offset, read);
                self.write_stamped(handle, record, range, false).await?;
                Ok(2 * read)
            }
            FileOperation::MapRead { offset, len } => {
                let room = self.room(len)?;
                let begun = self.begin_read(record);
                let bytes = self.found.bytes(&room);
                let map_read = FileOperation::MapReadBytes { offset, bytes };
                self.inner.on_file(handle, map_read).await?;
                self.keep(room, len, &begun, (offset, len));
                Ok(len)
            }
            FileOperation::MapWrite { offset, len, flush } => {
                let stamp = self.ledger.stamp_of(record);
                let before = record.begin_write(offset + len);
                if self.composed.bytes(stamp, offset, len)?.len() as u64 != len {
                    self.composed.prepare(stamp, offset, len)?;
                }
                let map_write = FileOperation::MapWriteBytes {
                    offset,
                    bytes: self.composed.bytes(stamp, offset, len)?,
                    flush,
                };
                self.inner.on_file(handle, map_write).await?;
                self.acknowledge(record, before, offset, offset + len);
                Ok(len)
            }
            FileOperation::FlushData => {
                let done = self.inner.on_file(handle, operation).await;
                if done.is_err() {
                    record.set_unknown();
                }
                done
            }
            // A dropped cache, advice and a lock leave the contents of the file unchanged.
            FileOperation::DropCache
            | FileOperation::AdviseUnneeded
            | FileOperation::Lock { .. } => self.inner.on_file(handle, operation).await,
            FileOperation::WriteBytesStable { .. }
            | FileOperation::MapReadBytes { .. }
            | FileOperation::MapWriteBytes { .. } => {
                unreachable!("contents follow from the place, so no workload gives bytes")
            }
        }
    }

    /// Copies a range of one file to another file and verifies the bytes read; returns the number of bytes.
    pub(super) async fn copy_stamped(
        &mut self,
        (from, source): (&AnyHandle, &Arc<FileRecord>),
        (to, copy): (&AnyHandle, &Arc<FileRecord>),
        (offset, len): (u64, u64),
    ) -> Result<u64, OpError> {
        copy.take_contents_of(source);
        let before = source.known();
        let (room, read) = self.read_kept(from, source, (offset, len)).await?;
        // Beyond the first hole of the source, the copy may have zeros too.
        let solid = source.known_since(before).solid;
        let begun = copy.begin_write(offset + read);
        let bytes = &self.found.bytes(&room)[..read as usize];
        self.inner.write_bytes(to, offset, bytes).await?;
        let end = (offset + read).min(solid).max(offset);
        self.acknowledge(copy, begun, offset, end);
        Ok(read)
    }
}
