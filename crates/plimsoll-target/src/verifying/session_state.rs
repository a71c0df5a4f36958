//! The state of a session of a verified run, and functions that its operations share.

use super::buffers::{ComposedWrite, ReadBuffer, Room};
use super::ledger::{Ledger, Located, Presence};
use super::record::{FileRecord, Known};
use super::stamp::Stamp;
use crate::any::{AnyHandle, AnySession};
use crate::error::OpError;
use crate::rare_operation::FileOperation;
use crate::session::Session;
use crate::session_types::OpenHow;
use memmap2::MmapMut;
use rustix::io::Errno;
use std::sync::Arc;

/// A session of a verifying target: writes stamped contents to the files of filesets, and checks the contents of reads.
/// Files outside filesets, such as the marker of the work directory, are not verified.
pub(crate) struct VerifyingSession {
    pub(super) inner: AnySession,
    pub(super) ledger: Arc<Ledger>,
    pub(super) located: Option<Located>,
    pub(super) destination: Option<Located>,
    pub(super) found: ReadBuffer,
    pub(super) composed: ComposedWrite,
    /// Position of the prepared append.
    pub(super) append_at: Option<u64>,
    /// Bytes of the prepared asynchronous write.
    pub(super) detached: Option<MmapMut>,
    /// Asynchronous writes; the index is the tag of the write in the inner session.
    pub(super) queued: Vec<Option<QueuedWrite>>,
    /// Acknowledged writes that the records do not contain yet.
    pub(super) acknowledged: Vec<WrittenRange>,
    /// Wrong reads of the current operation that were found before its end.
    pub(super) wrong_reads: u64,
}

/// An open file of the wrapped target, with the record of a file of a fileset; without a record for a file outside
/// filesets.
pub(crate) struct VerifyingHandle {
    pub(super) inner: AnyHandle,
    pub(super) record: Option<Arc<FileRecord>>,
}

/// The byte range of a successful write, and the record's state before the write.
pub(super) struct WrittenRange {
    pub(super) record: Arc<FileRecord>,
    pub(super) before: Known,
    pub(super) begin: u64,
    pub(super) end: u64,
}

pub(super) struct QueuedWrite {
    pub(super) tag: u32,
    pub(super) range: Option<WrittenRange>,
}

impl VerifyingSession {
    /// A session whose reads are mostly at most `buffer` bytes long.
    pub(super) fn new(
        inner: AnySession,
        ledger: Arc<Ledger>,
        buffer: u64,
    ) -> Result<Self, OpError> {
        Ok(Self {
            inner,
            ledger,
            located: None,
            destination: None,
            found: ReadBuffer::new(buffer)?,
            composed: ComposedWrite::new()?,
            append_at: None,
            detached: None,
            queued: Vec::new(),
            acknowledged: Vec::with_capacity(16),
            wrong_reads: 0,
        })
    }

    /// Room for a read of `len` bytes.
    pub(super) fn room(&mut self, len: u64) -> Result<Room, OpError> {
        if let Some(room) = self.found.room(len)? {
            return Ok(room);
        }
        self.wrong_reads += self.found.check(&self.ledger);
        let room = self.found.room(len)?;
        Ok(room.expect("without reads that are kept there is room"))
    }

    /// Keeps the bytes of a read until the check.
    pub(super) fn keep(
        &mut self,
        room: Room,
        read: u64,
        begun: &ReadBegin,
        (offset, len): (u64, u64),
    ) {
        let known = begun.record.known_since(begun.known);
        if !begun.record.is_unknown() {
            self.found
                .keep(room, read, (begun.stamp, known), (offset, len));
        }
    }

    pub(super) fn begin_read(&self, record: &Arc<FileRecord>) -> ReadBegin {
        ReadBegin {
            stamp: self.ledger.stamp_of(record),
            known: record.known(),
            record: record.clone(),
        }
    }

    /// Reads into the buffer; returns the room and the number of bytes.
    pub(super) async fn read_kept(
        &mut self,
        handle: &AnyHandle,
        record: &Arc<FileRecord>,
        (offset, len): (u64, u64),
    ) -> Result<(Room, u64), OpError> {
        let room = self.room(len)?;
        let begun = self.begin_read(record);
        let bytes = self.found.bytes(&room);
        let read = self.inner.read_bytes(handle, offset, bytes).await?;
        self.keep(room.clone(), read, &begun, (offset, len));
        Ok((room, read))
    }

    /// Writes the contents of a range of the file.
    pub(super) async fn write_stamped(
        &mut self,
        handle: &AnyHandle,
        record: &Arc<FileRecord>,
        (offset, len): (u64, u64),
        is_stable: bool,
    ) -> Result<(), OpError> {
        let end = offset.checked_add(len).ok_or(Errno::FBIG)?;
        let stamp = self.ledger.stamp_of(record);
        let before = record.begin_write(end);
        let mut at = offset;
        while at < end {
            let bytes = self.composed.bytes(stamp, at, end - at)?;
            match is_stable {
                true => {
                    let offset = at;
                    let write = FileOperation::WriteBytesStable { offset, bytes };
                    self.inner.on_file(handle, write).await?;
                }
                false => self.inner.write_bytes(handle, at, bytes).await?,
            }
            at += bytes.len() as u64;
        }
        self.acknowledge(record, before, offset, end);
        Ok(())
    }

    /// Notes an acknowledged write; called after the end time of the operation.
    pub(super) fn acknowledge(
        &mut self,
        record: &Arc<FileRecord>,
        before: Known,
        begin: u64,
        end: u64,
    ) {
        if let Some(last) = self.acknowledged.last_mut()
            && Arc::ptr_eq(&last.record, record)
            && last.end == begin
            && last.before.is_same_epoch(before)
        {
            last.end = end;
            return;
        }
        self.acknowledged.push(WrittenRange {
            record: record.clone(),
            before,
            begin,
            end,
        });
    }

    /// Appends at the prepared position, or at a position that is reserved now.
    pub(super) async fn append_stamped(
        &mut self,
        handle: &AnyHandle,
        record: &Arc<FileRecord>,
        len: u64,
        is_stable: bool,
    ) -> Result<(), OpError> {
        if !self.inner.is_immediate() {
            // The request for the size is part of an append over NFS.
            self.inner.stat_handle(handle).await?;
        }
        let offset = match self.append_at.take() {
            Some(at) => at,
            None => record.reserve_append(len),
        };
        self.write_stamped(handle, record, (offset, len), is_stable)
            .await
    }

    /// Queues a write in the inner session; this session keeps the caller's tag.
    pub(super) fn queue(
        &mut self,
        tag: u32,
        range: Option<WrittenRange>,
        queue: impl FnOnce(&mut AnySession, u32) -> Result<(), OpError>,
    ) -> Result<(), OpError> {
        let free = self.queued.iter().position(Option::is_none);
        let number = free.unwrap_or_else(|| {
            self.queued.push(None);
            self.queued.len() - 1
        });
        queue(&mut self.inner, number as u32)?;
        self.queued[number] = Some(QueuedWrite { tag, range });
        Ok(())
    }

    /// Notes that an open of the located file may create or truncate the file; returns the epoch of
    /// the truncation.
    pub(super) fn begin_open(located: &Located, how: OpenHow) -> Option<u64> {
        let is_there = located.presence == Presence::There;
        if how.create && !is_there {
            located.name.set(Presence::Unknown);
        }
        (how.truncate && is_there).then(|| located.record.begin_truncate(0))
    }

    /// Notes that the located file was opened; returns the file's record if the contents are known.
    pub(super) fn end_open(located: Located, how: OpenHow) -> Option<Arc<FileRecord>> {
        match located.presence {
            Presence::There => Some(located.record),
            // The file is new, or truncated and so without earlier contents.
            _ if how.create && (located.presence == Presence::Gone || how.truncate) => {
                located.name.install(located.record.clone());
                Some(located.record)
            }
            _ => None,
        }
    }

    /// Notes that a removal of the located name begins.
    pub(super) fn begin_remove(&mut self) -> Option<Located> {
        let located = self.located.take()?;
        located.name.set(Presence::Unknown);
        Some(located)
    }
}

pub(super) struct ReadBegin {
    pub(super) record: Arc<FileRecord>,
    pub(super) stamp: Stamp,
    pub(super) known: Known,
}
