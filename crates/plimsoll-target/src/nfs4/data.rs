//! Open files; reading and writing: pieces of at most `rsize` and `wsize` bytes, several of them
//! under way at once as far as there are slots.

use super::lane_client::LaneClient;
use super::of_nfs;
use crate::error::OpError;
use crate::write_data::WriteData;
use plimsoll_nfs::v4::operations::{
    Commit, PutFh, Range, Read, ReadArgs, SetAttr, SetAttrArgs, Write, WriteArgs,
};
use plimsoll_nfs::v4::types::{Stable, StateId, Text};
use plimsoll_nfs::v4::{
    Call, NfsError, OpenFile, PendingCall, Permit, RetryState, attributes::Attributes,
};
use rustix::io::Errno;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::task::{Poll, Waker};

/// Pieces of one transfer that are under way at once.
const MAX_PIPELINED_CALLS: usize = 8;

/// An open file.
pub(crate) type Open = crate::nfs::open::Open<OpenFile, Stable>;

/// A piece that is being written or read.
struct Piece {
    offset: u64,
    len: u32,
    /// What the server knew the file by when it was sent.
    known_by: StateId,
    sent: PendingCall,
}

impl LaneClient {
    fn send_write(
        &self,
        open: &Open,
        permit: Permit,
        (offset, bytes): (u64, &[u8]),
        stable: Stable,
    ) -> Result<Piece, OpError> {
        let args = WriteArgs {
            state: open.file.state().map_err(of_nfs)?,
            offset,
            stable,
            data: Text(bytes),
        };
        if stable == Stable::Unstable {
            open.dirty.set(true);
        }
        self.client.changes(&open.file);
        let sent = self.client.send(Call::Write, permit, |c| {
            c.add::<PutFh>(open.file.handle()).add::<Write>(&args);
        });
        Ok(Piece {
            known_by: open.file.known_by(),
            offset,
            len: bytes.len() as u32,
            sent,
        })
    }

    /// Waits for a piece; returns how much of it was not written: all of it if it is to be sent
    /// again.
    async fn written(
        &self,
        open: &Open,
        piece: Piece,
        patience: &mut RetryState,
    ) -> Result<u32, OpError> {
        let done = piece.sent.done(|r| {
            r.skip::<PutFh>()?;
            r.get::<Write>()
        });
        let written = match done.await {
            Ok(written) => written,
            Err(e) => {
                let (client, file) = (&self.client, &open.file);
                let again = client.wait_to_repeat(file, piece.known_by, e, patience);
                return again.await.map(|()| piece.len).map_err(of_nfs);
            }
        };
        if written.committed == Stable::Unstable {
            open.dirty.set(true);
        }
        open.note_verifier(written.verifier);
        match written.count {
            // Nothing, or more than there was, is no answer to this.
            0 if piece.len > 0 => Err(OpError(Errno::IO)),
            n => piece.len.checked_sub(n).ok_or(OpError(Errno::BADMSG)),
        }
    }

    /// Writes these bytes.
    pub(super) async fn write_all(
        &self,
        open: &Open,
        mut offset: u64,
        stable: Stable,
        mut bytes: &[u8],
    ) -> Result<(), OpError> {
        let mut patience = RetryState::default();
        while !bytes.is_empty() {
            let permit = self.client.permit().await.map_err(of_nfs)?;
            let piece = &bytes[..bytes.len().min(self.config.sizes.write as usize)];
            let piece = self.send_write(open, permit, (offset, piece), stable)?;
            let len = piece.len;
            let done = (len - self.written(open, piece, &mut patience).await?) as usize;
            if done > 0 {
                patience = RetryState::default();
            }
            offset += done as u64;
            bytes = &bytes[done..];
        }
        Ok(())
    }

    /// Leave to send the next piece; `None` if one that is under way has to be waited for first.
    async fn permit_for<P>(&self, pieces: &VecDeque<P>) -> Result<Option<Permit>, OpError> {
        match pieces.is_empty() {
            true => self.client.permit().await.map(Some).map_err(of_nfs),
            // Who has a slot must not wait for another, or all might.
            false => Ok(self.client.try_permit()),
        }
    }

    /// Writes `len` bytes from a source.
    pub(super) async fn write_from(
        &self,
        open: &Open,
        source: &mut WriteData,
        (offset, len): (u64, u64),
        stable: Stable,
    ) -> Result<(), OpError> {
        let end = offset.checked_add(len).ok_or(OpError(Errno::FBIG))?;
        let mut pieces = VecDeque::new();
        let range = (offset, end);
        let done = self
            .write_pieces(open, source, range, stable, &mut pieces)
            .await;
        // If one failed the others are under way still. They are waited for, so that nothing of an
        // operation comes to the server after it, and all of its calls are counted.
        for piece in pieces {
            let late = piece.sent.done(|r| {
                r.skip::<PutFh>()?;
                r.get::<Write>()
            });
            if let Ok(written) = late.await {
                open.note_verifier(written.verifier);
            }
        }
        done
    }

    async fn write_pieces(
        &self,
        open: &Open,
        source: &mut WriteData,
        (mut at, end): (u64, u64),
        stable: Stable,
        pieces: &mut VecDeque<Piece>,
    ) -> Result<(), OpError> {
        let most = u64::from(self.config.sizes.write);
        while at < end || !pieces.is_empty() {
            while at < end && pieces.len() < MAX_PIPELINED_CALLS {
                let Some(permit) = self.permit_for(pieces).await? else {
                    break;
                };
                let bytes = source.next_chunk((end - at).min(most))?;
                let piece = self.send_write(open, permit, (at, bytes), stable)?;
                at += u64::from(piece.len);
                pieces.push_back(piece);
            }
            if let Some(piece) = pieces.pop_front() {
                let ends = piece.offset + u64::from(piece.len);
                let mut patience = RetryState::default();
                let left = self.written(open, piece, &mut patience).await?;
                let rest = self.write_rest(open, source, (ends, left), stable, patience);
                rest.await?;
            }
        }
        Ok(())
    }

    /// Writes what a server left of a piece that ends at `end`.
    async fn write_rest(
        &self,
        open: &Open,
        source: &mut WriteData,
        (end, mut left): (u64, u32),
        stable: Stable,
        mut patience: RetryState,
    ) -> Result<(), OpError> {
        while left > 0 {
            let permit = self.client.permit().await.map_err(of_nfs)?;
            let bytes = source.next_chunk(u64::from(left))?;
            let piece = self.send_write(open, permit, (end - u64::from(left), bytes), stable)?;
            let len = piece.len;
            let done = len - self.written(open, piece, &mut patience).await?;
            if done > 0 {
                patience = RetryState::default();
            }
            left -= done;
        }
        Ok(())
    }

    /// Puts what was written on stable storage, and makes sure that it was all there still.
    pub(super) async fn commit_file(&self, open: &Open) -> Result<(), OpError> {
        open.dirty.set(false);
        let all = Range {
            offset: 0,
            count: 0,
        };
        let committed = self.client.call(
            Call::Commit,
            |c| {
                c.add::<PutFh>(open.file.handle()).add::<Commit>(&all);
            },
            |r| {
                r.skip::<PutFh>()?;
                r.get::<Commit>()
            },
        );
        open.committed(committed.await.map_err(of_nfs))
    }

    fn send_read(
        &self,
        open: &Open,
        permit: Permit,
        offset: u64,
        len: u64,
    ) -> Result<Piece, OpError> {
        let count = len.min(u64::from(self.config.sizes.read)) as u32;
        let args = ReadArgs {
            state: open.file.state().map_err(of_nfs)?,
            offset,
            count,
        };
        let sent = self.client.send(Call::Read, permit, |c| {
            c.add::<PutFh>(open.file.handle()).add::<Read>(&args);
        });
        Ok(Piece {
            known_by: open.file.known_by(),
            offset,
            len: count,
            sent,
        })
    }

    /// Reads up to `len` bytes, which `sink` is given with their place in the range; returns how
    /// many there were.
    pub(super) async fn read_range(
        &self,
        open: &Open,
        offset: u64,
        len: u64,
        mut sink: impl FnMut(usize, &[u8]),
    ) -> Result<u64, OpError> {
        let end = offset.checked_add(len).ok_or(OpError(Errno::OVERFLOW))?;
        let mut pieces = VecDeque::new();
        let done = self
            .read_pieces(open, (offset, end), &mut sink, &mut pieces)
            .await;
        // The file ended before them, or one failed: they are waited for, so that all calls of the
        // operation are counted, and are in its time.
        for piece in pieces {
            let late = piece.sent.done(|r| {
                r.skip::<PutFh>()?;
                r.skip::<Read>()
            });
            let _ = late.await;
        }
        done
    }

    async fn read_pieces(
        &self,
        open: &Open,
        (offset, end): (u64, u64),
        sink: &mut impl FnMut(usize, &[u8]),
        pieces: &mut VecDeque<Piece>,
    ) -> Result<u64, OpError> {
        let (mut at, mut done) = (offset, offset);
        while at < end || !pieces.is_empty() {
            while at < end && pieces.len() < MAX_PIPELINED_CALLS {
                let Some(permit) = self.permit_for(pieces).await? else {
                    break;
                };
                let piece = self.send_read(open, permit, at, end - at)?;
                at += u64::from(piece.len);
                pieces.push_back(piece);
            }
            let Some(mut piece) = pieces.pop_front() else {
                continue;
            };
            let mut patience = RetryState::default();
            loop {
                let place = (piece.offset - offset) as usize;
                let (begin, left, known_by) = (piece.offset, piece.len, piece.known_by);
                let read = match self.read_piece(piece, place, sink).await? {
                    Ok((read, eof)) => {
                        patience = RetryState::default();
                        done = begin + u64::from(read);
                        if eof || read == 0 {
                            return Ok(done - offset);
                        }
                        read
                    }
                    Err(e) => {
                        let (client, file) = (&self.client, &open.file);
                        let again = client.wait_to_repeat(file, known_by, e, &mut patience);
                        again.await.map_err(of_nfs)?;
                        0
                    }
                };
                if read == left {
                    break;
                }
                // A server may give less than it was asked for.
                let permit = self.client.permit().await.map_err(of_nfs)?;
                let (begin, left) = (begin + u64::from(read), u64::from(left - read));
                piece = self.send_read(open, permit, begin, left)?;
            }
        }
        Ok(done - offset)
    }

    /// Waits for a piece: how many bytes came, and whether the file ends with them; what the
    /// server says if they did not come.
    async fn read_piece(
        &self,
        piece: Piece,
        at: usize,
        sink: &mut impl FnMut(usize, &[u8]),
    ) -> Result<Result<(u32, bool), NfsError>, OpError> {
        let asked = piece.len as usize;
        let done = piece.sent.done(|r| {
            r.skip::<PutFh>()?;
            let read = r.get::<Read>()?;
            let bytes = Some(read.data.0).filter(|b| b.len() <= asked);
            Ok(bytes.map(|bytes| {
                sink(at, bytes);
                (bytes.len() as u32, read.eof)
            }))
        });
        match done.await {
            Ok(Some(read)) => Ok(Ok(read)),
            Ok(None) => Err(OpError(Errno::BADMSG)),
            Err(e) => Ok(Err(e)),
        }
    }

    /// Sets attributes of an open file.
    pub(super) async fn set_open(&self, file: &OpenFile, set: Attributes) -> Result<(), OpError> {
        self.client.changes(file);
        let mut patience = RetryState::default();
        loop {
            let permit = self.client.permit().await.map_err(of_nfs)?;
            let state = file.state().map_err(of_nfs)?;
            let known_by = file.known_by();
            let sent = self.client.send(Call::SetAttr, permit, |c| {
                c.add::<PutFh>(file.handle())
                    .add::<SetAttr>(&SetAttrArgs { state, set });
            });
            let done = sent.done(|r| {
                r.skip::<PutFh>()?;
                r.skip::<SetAttr>()
            });
            let Err(e) = done.await else {
                return Ok(());
            };
            let again = self.client.wait_to_repeat(file, known_by, e, &mut patience);
            again.await.map_err(of_nfs)?;
        }
    }
}

/// What becomes of an asynchronous write, which the lane carries out beside the worker.
#[derive(Default)]
pub(super) struct PendingWriteState {
    result: Cell<Option<Result<u64, OpError>>>,
    waker: RefCell<Option<Waker>>,
}

impl PendingWriteState {
    /// It is over.
    pub(super) fn end(&self, result: Result<u64, OpError>) {
        self.result.set(Some(result));
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// Waits for its end.
    pub(super) async fn ended(&self) -> Result<u64, OpError> {
        std::future::poll_fn(|context| match self.result.take() {
            Some(result) => Poll::Ready(result),
            None => {
                *self.waker.borrow_mut() = Some(context.waker().clone());
                Poll::Pending
            }
        })
        .await
    }
}
