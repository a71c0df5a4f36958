//! Reading and writing: pieces of at most `rsize` and `wsize` bytes, several of them under way at
//! once.

use super::lane_client::LaneClient;
use super::of_nfs;
use crate::error::OpError;
use crate::write_data::WriteData;
use plimsoll_nfs::v3::{
    Commit, CommitArgs, Data, Handle, NfsError, PendingCall, Read, ReadArgs, Stable, Write,
    WriteArgs,
};
use rustix::io::Errno;
use std::collections::VecDeque;

/// Pieces of one transfer that are under way at once.
const MAX_PIPELINED_CALLS: usize = 8;

/// An open file.
pub(crate) type Open = crate::nfs::open::Open<Handle, Stable>;

/// A piece that is being written.
pub(super) struct Piece {
    offset: u64,
    len: u32,
    sent: PendingCall<Write>,
}

impl LaneClient {
    fn send_write(&self, open: &Open, offset: u64, stable: Stable, bytes: &[u8]) -> Piece {
        let args = WriteArgs {
            file: open.file,
            offset,
            count: bytes.len() as u32,
            stable,
            data: Data(bytes),
        };
        if stable == Stable::Unstable {
            open.dirty.set(true);
        }
        Piece {
            offset,
            len: bytes.len() as u32,
            sent: self.client.send::<Write>(&args),
        }
    }

    /// Waits for a piece; returns how much of it was not written.
    async fn ended(&self, open: &Open, piece: Piece) -> Result<Result<u32, NfsError>, OpError> {
        let done = piece
            .sent
            .done(|w| (w.count, w.committed, w.verifier))
            .await;
        let (count, committed, verifier) = match done {
            Ok(written) => written,
            Err(e) => return Ok(Err(e)),
        };
        if committed == Stable::Unstable {
            open.dirty.set(true);
        }
        open.note_verifier(verifier);
        match count {
            // Nothing, or more than there was, is no answer to this.
            0 if piece.len > 0 => Err(OpError(Errno::IO)),
            n => piece
                .len
                .checked_sub(n)
                .map(Ok)
                .ok_or(OpError(Errno::BADMSG)),
        }
    }

    /// The same: all of it if it is to be sent again, after it was sent again `tries` times.
    async fn written(&self, open: &Open, piece: Piece, tries: u32) -> Result<u32, OpError> {
        let len = piece.len;
        match self.ended(open, piece).await? {
            Ok(left) => Ok(left),
            Err(e) => {
                let again = self.client.wait_to_repeat(e, tries).await;
                again.map(|()| len).map_err(of_nfs)
            }
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
        let mut tries = 0;
        while !bytes.is_empty() {
            let piece = &bytes[..bytes.len().min(self.config.write_size as usize)];
            let piece = self.send_write(open, offset, stable, piece);
            let len = piece.len;
            let done = (len - self.written(open, piece, tries).await?) as usize;
            tries = if done > 0 { 0 } else { tries + 1 };
            offset += done as u64;
            bytes = &bytes[done..];
        }
        Ok(())
    }

    /// Writes `len` bytes from a source.
    pub(super) async fn write_from(
        &self,
        open: &Open,
        source: &mut WriteData,
        offset: u64,
        len: u64,
        stable: Stable,
    ) -> Result<(), OpError> {
        let end = offset.checked_add(len).ok_or(OpError(Errno::FBIG))?;
        let mut at = offset;
        if len <= u64::from(self.config.write_size) {
            // Most transfers are one piece; the queue is not for them.
            let piece = self.send_write(open, offset, stable, source.next_chunk(len)?);
            at += u64::from(piece.len);
            let left = self.written(open, piece, 0).await?;
            self.write_rest(open, source, (at, left), stable).await?;
            if at == end {
                return Ok(());
            }
        }
        let mut pieces = VecDeque::with_capacity(MAX_PIPELINED_CALLS);
        let range = (at, end);
        let done = self
            .write_pieces(open, source, range, stable, &mut pieces)
            .await;
        // If one failed the others are under way still. They are waited for, so that nothing of an
        // operation comes to the server after it, and all of its calls are counted.
        for piece in pieces {
            if let Ok(verifier) = piece.sent.done(|w| w.verifier).await {
                open.note_verifier(verifier);
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
        while at < end || !pieces.is_empty() {
            while at < end && pieces.len() < MAX_PIPELINED_CALLS {
                let bytes = source.next_chunk((end - at).min(u64::from(self.config.write_size)))?;
                let piece = self.send_write(open, at, stable, bytes);
                at += u64::from(piece.len);
                pieces.push_back(piece);
            }
            if let Some(piece) = pieces.pop_front() {
                let ends = piece.offset + u64::from(piece.len);
                let left = self.written(open, piece, 0).await?;
                self.write_rest(open, source, (ends, left), stable).await?;
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
    ) -> Result<(), OpError> {
        let mut tries = 1;
        while left > 0 {
            let bytes = source.next_chunk(u64::from(left))?;
            let piece = self.send_write(open, end - u64::from(left), stable, bytes);
            let len = piece.len;
            let done = len - self.written(open, piece, tries).await?;
            tries = if done > 0 { 1 } else { tries + 1 };
            left -= done;
        }
        Ok(())
    }

    /// Sends the pieces of a write that nobody waits for yet.
    pub(super) fn send_later(
        &self,
        open: &Open,
        source: &mut WriteData,
        offset: u64,
        len: u64,
    ) -> Result<Vec<Piece>, OpError> {
        let end = offset.checked_add(len).ok_or(OpError(Errno::FBIG))?;
        let mut at = offset;
        let mut pieces = Vec::new();
        while at < end {
            let bytes = source.next_chunk((end - at).min(u64::from(self.config.write_size)))?;
            let piece = self.send_write(open, at, open.stable, bytes);
            at += u64::from(piece.len);
            pieces.push(piece);
        }
        Ok(pieces)
    }

    /// Waits for all pieces of such a write; a short one is an error, since its bytes are gone.
    pub(super) async fn all_written(&self, open: &Open, pieces: Vec<Piece>) -> Result<(), OpError> {
        let mut all = Ok(());
        for piece in pieces {
            let left = self.ended(open, piece).await;
            let whole = match left {
                Ok(Ok(0)) => Ok(()),
                Ok(Ok(_)) => Err(OpError(Errno::IO)),
                Ok(Err(e)) => Err(of_nfs(e)),
                Err(e) => Err(e),
            };
            all = all.and(whole);
        }
        all
    }

    /// Puts what was written on stable storage, and makes sure that it was all there still.
    pub(super) async fn commit_file(&self, open: &Open) -> Result<(), OpError> {
        let args = CommitArgs {
            file: open.file,
            offset: 0,
            count: 0,
        };
        open.dirty.set(false);
        let committed = self.client.call::<Commit, _>(&args, |c| c.verifier).await;
        open.committed(committed.map_err(of_nfs))
    }

    fn send_read(&self, file: Handle, offset: u64, len: u64) -> (u64, u32, PendingCall<Read>) {
        let count = len.min(u64::from(self.config.read_size)) as u32;
        let args = ReadArgs {
            file,
            offset,
            count,
        };
        (offset, count, self.client.send::<Read>(&args))
    }

    /// Reads up to `len` bytes, which `sink` is given with their place in the range; returns how
    /// many there were.
    pub(super) async fn read_range(
        &self,
        file: Handle,
        offset: u64,
        len: u64,
        mut sink: impl FnMut(usize, &[u8]),
    ) -> Result<u64, OpError> {
        let end = offset.checked_add(len).ok_or(OpError(Errno::OVERFLOW))?;
        let mut pieces = VecDeque::new();
        let done = self
            .read_pieces(file, (offset, end), &mut sink, &mut pieces)
            .await;
        // The file ended before them, or one failed: they are waited for, so that all calls of the
        // operation are counted, and are in its time.
        for (.., late) in pieces {
            let _ = late.done(|_| ()).await;
        }
        done
    }

    async fn read_pieces(
        &self,
        file: Handle,
        (offset, end): (u64, u64),
        sink: &mut impl FnMut(usize, &[u8]),
        pieces: &mut VecDeque<(u64, u32, PendingCall<Read>)>,
    ) -> Result<u64, OpError> {
        let (mut at, mut done) = (offset, offset);
        loop {
            while at < end && pieces.len() < MAX_PIPELINED_CALLS {
                let piece = self.send_read(file, at, end - at);
                at += u64::from(piece.1);
                pieces.push_back(piece);
            }
            let Some((mut begin, mut left, mut sent)) = pieces.pop_front() else {
                return Ok(done - offset);
            };
            let mut tries = 0;
            loop {
                let place = (begin - offset) as usize;
                match self.read_piece(sent, left, place, sink).await? {
                    Ok((read, eof)) => {
                        begin += u64::from(read);
                        left -= read;
                        (done, tries) = (begin, 0);
                        if eof || read == 0 {
                            return Ok(done - offset);
                        }
                    }
                    Err(e) => {
                        let again = self.client.wait_to_repeat(e, tries).await;
                        again.map_err(of_nfs)?;
                        tries += 1;
                    }
                }
                if left == 0 {
                    break;
                }
                // A server may give less than it was asked for.
                sent = self.send_read(file, begin, u64::from(left)).2;
            }
        }
    }

    /// Waits for a piece: how many bytes came, and whether the file ends with them; what the server
    /// says if they did not come.
    async fn read_piece(
        &self,
        sent: PendingCall<Read>,
        asked: u32,
        at: usize,
        sink: &mut impl FnMut(usize, &[u8]),
    ) -> Result<Result<(u32, bool), NfsError>, OpError> {
        let done = sent.done(|r| {
            let bytes = r
                .data
                .0
                .get(..r.count as usize)
                .filter(|_| r.count <= asked)?;
            sink(at, bytes);
            Some((r.count, r.eof))
        });
        match done.await {
            Ok(read) => read.map(Ok).ok_or(OpError(Errno::BADMSG)),
            Err(e) => Ok(Err(e)),
        }
    }
}
