//! The file, descriptor and position of an operation on a data file.

use super::choice::{Extent, PlacementBounds, block_alignment, whole_blocks};
use super::{MixState, Position, Worker, WorkerExit};
use crate::worker::context::OpSubject;
use plimsoll_plan::{DIRECT_BLOCK, FileId};
use plimsoll_target::{AccessAdvice, FileOperation, OpenHow, OpenMode, Session};
use rand::RngExt;

impl MixState {
    /// Returns `true` with a probability of `percent` percent.
    pub(super) fn with_probability(&mut self, percent: f64) -> bool {
        percent > 0.0 && self.rng.random::<f64>() * 100.0 < percent
    }

    /// Draws whether a write is stable, and whether a flush follows the write.
    pub(super) fn draw_durability(&mut self) -> (bool, bool) {
        let flags = self.program.mix.flags;
        let stable = self.with_probability(flags.osync_percent);
        (stable, self.with_probability(flags.commit_percent))
    }

    /// Draws whether the next transfer uses direct I/O.
    pub(super) fn is_direct(&mut self) -> bool {
        self.with_probability(self.program.mix.flags.direct_percent)
    }

    /// Draws the advice that the kernel gets when a data file is opened.
    fn draw_advice(&mut self) -> Option<AccessAdvice> {
        let advice = self.program.mix.flags.fadvise?;
        self.with_probability(advice.sequential)
            .then_some(AccessAdvice::Sequential)
    }

    /// Draws whether the kernel is advised, when a data file is closed, that the pages of the file are not needed.
    fn draw_unneeded(&mut self) -> bool {
        let advice = self.program.mix.flags.fadvise;
        advice.is_some_and(|advice| self.with_probability(advice.dontneed))
    }

    /// Draws a file of the working set; returns the file's number in the working set.
    pub(super) fn member(&mut self) -> u64 {
        self.chooser.draw(&mut self.rng)
    }

    /// The current size of a file of the working set, in bytes.
    pub(super) fn size(&self, member: u64) -> u64 {
        self.sizes.get(member)
    }

    pub(super) fn set_size(&self, member: u64, size: u64) {
        self.sizes.set(member, size);
    }

    /// Records that a file was written up to `end`.
    pub(super) fn grow(&self, member: u64, end: u64) {
        self.sizes.grow(member, end);
    }

    /// The number in the fileset of a file of the working set.
    pub(super) fn file(&self, member: u64) -> FileId {
        FileId(self.program.mix.working_set.file(member) as u32)
    }

    /// The subject of an operation on a file of the working set.
    pub(super) fn subject(&self, member: u64) -> OpSubject {
        OpSubject::file(self.program.mix.files.data.0, self.file(member))
    }

    /// The file and offset of a sequential transfer: after the previous transfer, or at the beginning of another file
    /// if the previous transfer ended at or after `bound`. The flag tells whether the file is another file.
    pub(super) fn next_place(
        &mut self,
        at: Position,
        bound: impl Fn(&Self, u64) -> u64,
    ) -> (u64, u64, bool) {
        match at.member {
            Some(member) if at.offset < bound(self, member) => (member, at.offset, false),
            _ => (self.member(), 0, true),
        }
    }

    /// The file of a random transfer of `len` bytes, and a position that ends within `bound` bytes.
    pub(super) fn random_place(
        &mut self,
        len: u64,
        direct: bool,
        bound: impl Fn(&Self, u64) -> u64,
    ) -> (u64, Extent) {
        let Self {
            spot, chooser, rng, ..
        } = self;
        let in_spot = spot.as_mut().and_then(|s| {
            let (member, part) = s.draw(chooser, rng)?;
            Some((member, part, s.is_geometric()))
        });
        let (member, part, geometric) = match in_spot {
            Some(found) => found,
            None => (self.member(), 0.0..1.0, false),
        };
        let size = bound(self, member);
        let align = self.program.mix.flags.align;
        let (len, align) = match direct {
            true => (whole_blocks(len), block_alignment(align)),
            false => (len, align),
        };
        let room = PlacementBounds {
            size,
            align,
            part,
            geometric,
        };
        let mut place = room.draw(len, &mut self.rng);
        if direct {
            // With direct I/O, the last block of a file may extend beyond the end of the file.
            place.len = whole_blocks(place.len);
        }
        (member, place)
    }
}

/// Rounds an offset down to a block of direct I/O.
pub(super) fn block_of(offset: u64) -> u64 {
    offset - offset % DIRECT_BLOCK
}

impl<S: Session> Worker<S> {
    /// The planned size of a file of the working set, in bytes.
    pub(super) fn planned(&self, state: &MixState, member: u64) -> u64 {
        let data = state.program.mix.files.data.0 as usize;
        self.context.shared.filesets[data]
            .layout
            .size(state.file(member))
    }

    /// Passes the path of a file of the working set to the session for its next operation.
    pub(super) fn locate_member(&mut self, state: &MixState, member: u64) {
        let data = state.program.mix.files.data.0 as usize;
        self.context.shared.filesets[data].locate(state.file(member), &mut self.session);
    }

    /// The slot in which a file of the working set is open. Opens the file if necessary, as preparation of an
    /// operation; `None` if the open failed and failures are counted.
    pub(super) async fn mix_slot(
        &mut self,
        row: u32,
        state: &mut MixState,
        member: u64,
        direct: bool,
    ) -> Result<Option<usize>, WorkerExit> {
        let keep_open = state.program.mix.flags.keep_open;
        if let Some(slot) = state.handles.find(member, direct).filter(|_| keep_open) {
            return Ok(Some(slot));
        }
        let prepare = state.program.prepare;
        let slot = state.handles.make_room();
        if let Some(old) = self.slots[slot].handle.take() {
            let unneeded = state.draw_unneeded();
            let session = &mut self.session;
            let close = async {
                let advised = match unneeded {
                    true => session.on_file(&old, FileOperation::AdviseUnneeded).await,
                    false => Ok(0),
                };
                session.close(old).await.and(advised)
            };
            self.context
                .timed(prepare, OpSubject::NO_SUBJECT, |_| 0, close)
                .await?;
        }
        let lengthened = state.program.maps_data && state.size(member) == 0;
        let mode = match state.program.writes_data || lengthened {
            true => OpenMode::ReadWrite,
            false => OpenMode::Read,
        };
        let how = OpenHow {
            direct,
            advice: state.draw_advice(),
            planned_size: state.size(member),
            ..OpenHow::plain(mode)
        };
        self.locate_member(state, member);
        let open = self.session.open(how);
        let subject = state.subject(member);
        let handle = self.context.timed(prepare, subject, |_| 0, open).await?;
        if handle.is_none() {
            self.context.not_issued(row)?;
            return Ok(None);
        }
        let before = std::mem::replace(&mut self.slots[slot].handle, handle);
        assert!(before.is_none(), "a slot is filled that is open");
        state.handles.hold(slot, member, direct);
        Ok(Some(slot))
    }

    /// Sets the size of an open file of the working set, as preparation of an operation; `false` if the change failed
    /// and failures are counted.
    pub(super) async fn mix_resize(
        &mut self,
        state: &mut MixState,
        member: u64,
        slot: usize,
        size: u64,
    ) -> Result<bool, WorkerExit> {
        let row = state.program.prepare;
        self.mix_set_size(row, state, member, slot, size).await
    }

    /// Sets the size of an open file of the working set, in an operation of row `row`; `false` if the operation failed
    /// and failures are counted.
    pub(super) async fn mix_set_size(
        &mut self,
        row: u32,
        state: &mut MixState,
        member: u64,
        slot: usize,
        size: u64,
    ) -> Result<bool, WorkerExit> {
        let truncate = FileOperation::Truncate(size);
        let cut = self.session.on_file(self.slots[slot].opened(), truncate);
        let done = self.context.timed(row, state.subject(member), |_| 0, cut);
        let done = done.await?.is_some();
        if done {
            state.set_size(member, size);
        }
        Ok(done)
    }
}
