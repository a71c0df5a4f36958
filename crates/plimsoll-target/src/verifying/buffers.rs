//! The buffers of a verifying session: bytes that a read returned, until their check; and bytes for a write, composed
//! before the write is timed.

use super::ledger::Ledger;
use super::record::Known;
use super::stamp::Stamp;
use crate::error::OpError;
use memmap2::MmapMut;
use rustix::io::Errno;
use std::ops::Range;

/// Alignment of reads in bytes, for direct I/O.
const ALIGNMENT: usize = 4096;

/// Maximum bytes kept by the reads of one operation. Beyond this limit, earlier reads are checked while the operation
/// is timed.
const MAX_KEPT_BYTES: usize = 64 << 20;

/// Maximum bytes composed before a write begins; the rest of a longer write is composed between the calls of the write.
pub(super) const MAX_COMPOSED_BYTES: u64 = 4 << 20;

/// Allocates page-aligned memory.
///
/// # Errors
/// `ENOMEM` if the memory cannot be allocated.
pub(super) fn memory(len: u64) -> Result<MmapMut, OpError> {
    let len = usize::try_from(len).map_err(|_| Errno::NOMEM)?;
    Ok(MmapMut::map_anon(len.max(1)).map_err(|_| Errno::NOMEM)?)
}

/// A part of a `ReadBuffer` for one read.
#[derive(Clone)]
pub(super) struct Room {
    segment: usize,
    bytes: Range<usize>,
}

/// A read that was not checked yet.
struct KeptRead {
    room: Room,
    stamp: Stamp,
    known: Known,
    offset: u64,
    wanted: u64,
}

/// The bytes that an operation has read.
#[derive(Default)]
pub(super) struct ReadBuffer {
    segments: Vec<MmapMut>,
    /// The segment of the next read, and the used bytes of the segment.
    segment: usize,
    used: usize,
    reads: Vec<KeptRead>,
}

impl ReadBuffer {
    /// A buffer for an operation that reads `len` bytes and then the end of the file.
    pub(super) fn new(len: u64) -> Result<Self, OpError> {
        let mut buffer = Self::default();
        buffer.reads.reserve(64);
        buffer.reserve(len)?;
        Ok(buffer)
    }

    /// Allocates room for reads of `len` bytes.
    pub(super) fn reserve(&mut self, len: u64) -> Result<(), OpError> {
        let twice = len.saturating_mul(2).max(2 * ALIGNMENT as u64);
        if !self.reads.is_empty()
            || self
                .segments
                .first()
                .is_some_and(|s| s.len() as u64 >= twice)
        {
            return Ok(());
        }
        self.segments.clear();
        (self.segment, self.used) = (0, 0);
        self.segments.push(memory(twice)?);
        Ok(())
    }

    /// Room for a read of `len` bytes; `None` if earlier reads must be checked first. Later
    /// operations reuse the allocated memory.
    pub(super) fn room(&mut self, len: u64) -> Result<Option<Room>, OpError> {
        let len = usize::try_from(len).map_err(|_| Errno::NOMEM)?;
        while let Some(segment) = self.segments.get(self.segment) {
            if segment.len() - self.used >= len {
                let bytes = self.used..self.used + len;
                let segment = self.segment;
                return Ok(Some(Room { segment, bytes }));
            }
            (self.segment, self.used) = (self.segment + 1, 0);
        }
        let kept: usize = self.segments.iter().map(|s| s.len()).sum();
        if !self.reads.is_empty() && kept + len > MAX_KEPT_BYTES {
            return Ok(None);
        }
        // The total size doubles each time, up to the limit.
        let more = kept.min(MAX_KEPT_BYTES.saturating_sub(kept));
        self.segments.push(memory(len.max(more) as u64)?);
        let segment = self.segment;
        Ok(Some(Room {
            segment,
            bytes: 0..len,
        }))
    }

    pub(super) fn bytes(&mut self, room: &Room) -> &mut [u8] {
        &mut self.segments[room.segment][room.bytes.clone()]
    }

    /// Keeps the first `len` bytes of a room until the check.
    pub(super) fn keep(
        &mut self,
        mut room: Room,
        len: u64,
        (stamp, known): (Stamp, Known),
        (offset, wanted): (u64, u64),
    ) {
        room.bytes.end = room.bytes.start + len as usize;
        self.used = room.bytes.end.next_multiple_of(ALIGNMENT);
        let end = self.segments[room.segment].len();
        self.used = self.used.min(end);
        self.reads.push(KeptRead {
            room,
            stamp,
            known,
            offset,
            wanted,
        });
    }

    /// Checks and forgets all kept reads. Returns the number of wrong reads.
    #[inline]
    pub(super) fn check(&mut self, ledger: &Ledger) -> u64 {
        if self.reads.is_empty() {
            return 0;
        }
        let mut wrong = 0;
        for read in self.reads.drain(..) {
            let found = &self.segments[read.room.segment][read.room.bytes];
            let place = (read.offset, read.wanted);
            wrong += u64::from(!ledger.check_read(read.stamp, read.known, place, found));
        }
        (self.segment, self.used) = (0, 0);
        wrong
    }
}

pub(super) struct ComposedWrite {
    memory: MmapMut,
    stamp: Option<Stamp>,
    range: Range<u64>,
}

impl ComposedWrite {
    pub(super) fn new() -> Result<Self, OpError> {
        Ok(Self {
            memory: memory(ALIGNMENT as u64)?,
            stamp: None,
            range: 0..0,
        })
    }

    /// Composes `len` bytes of a file from `offset` on.
    pub(super) fn prepare(&mut self, stamp: Stamp, offset: u64, len: u64) -> Result<(), OpError> {
        let range = offset..offset.checked_add(len).ok_or(Errno::FBIG)?;
        if self.stamp == Some(stamp) && self.range == range {
            return Ok(());
        }
        if len > self.memory.len() as u64 {
            self.memory = memory(len)?;
        }
        stamp.fill(offset, &mut self.memory[..len as usize]);
        (self.stamp, self.range) = (Some(stamp), range);
        Ok(())
    }

    /// Stamped bytes for a write at `offset` of a file: at most `len`, and at least one unless `len` is 0. Bytes that
    /// no call of [`Self::prepare`] has composed are composed by [`Self::bytes`].
    pub(super) fn bytes(&mut self, stamp: Stamp, offset: u64, len: u64) -> Result<&[u8], OpError> {
        if self.stamp != Some(stamp) || !self.range.contains(&offset) {
            self.prepare(stamp, offset, len.min(MAX_COMPOSED_BYTES))?;
        }
        let begin = (offset - self.range.start) as usize;
        let len = len.min(self.range.end - offset) as usize;
        Ok(&self.memory[begin..begin + len])
    }
}
