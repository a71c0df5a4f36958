//! Reading and writing: pieces of at most `rsize` and `wsize` bytes, several of them under way at
//! once.

use super::local::Local;
use super::of_nfs;
use crate::error::OpError;
use crate::nfs::source::Source;
use plimsoll_nfs::v3::{
    Commit, CommitArgs, Data, Handle, Read, ReadArgs, Sent, Stable, Write, WriteArgs,
};
use rustix::io::Errno;
use std::collections::VecDeque;

/// Pieces of one transfer that are under way at once.
const UNDER_WAY: usize = 8;

/// An open file.
pub(crate) type Open = crate::nfs::open::Open<Handle, Stable>;

/// A piece that is being written.
pub(super) struct Piece {
    offset: u64,
    len: u32,
    sent: Sent<Write>,
}

impl Local {
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
    async fn written(&self, open: &Open, piece: Piece) -> Result<u32, OpError> {
        let done = piece
            .sent
            .done(|w| (w.count, w.committed, w.verifier))
            .await;
        let (count, committed, verifier) = done.map_err(of_nfs)?;
        if committed == Stable::Unstable {
            open.dirty.set(true);
        }
        open.said(verifier);
        match count {
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
        while !bytes.is_empty() {
            let piece = &bytes[..bytes.len().min(self.config.write_size as usize)];
            let piece = self.send_write(open, offset, stable, piece);
            let len = piece.len;
            let done = (len - self.written(open, piece).await?) as usize;
            offset += done as u64;
            bytes = &bytes[done..];
        }
        Ok(())
    }

    /// Writes `len` bytes from a source.
    pub(super) async fn write_from(
        &self,
        open: &Open,
        source: &mut Source,
        offset: u64,
        len: u64,
        stable: Stable,
    ) -> Result<(), OpError> {
        if len <= u64::from(self.config.write_size) {
            // Most transfers are one piece; the queue is not for them.
            let piece = self.send_write(open, offset, stable, source.next(len)?);
            if u64::from(piece.len) == len {
                let left = self.written(open, piece).await?;
                return self
                    .write_rest(open, source, offset + len, left, stable)
                    .await;
            }
            let at = offset + u64::from(piece.len);
            let left = self.written(open, piece).await?;
            self.write_rest(open, source, at, left, stable).await?;
            return Box::pin(self.write_from(open, source, at, offset + len - at, stable)).await;
        }
        let end = offset.checked_add(len).ok_or(OpError(Errno::FBIG))?;
        let mut at = offset;
        let mut pieces = VecDeque::with_capacity(UNDER_WAY);
        while at < end || !pieces.is_empty() {
            while at < end && pieces.len() < UNDER_WAY {
                let bytes = source.next((end - at).min(u64::from(self.config.write_size)))?;
                let piece = self.send_write(open, at, stable, bytes);
                at += u64::from(piece.len);
                pieces.push_back(piece);
            }
            if let Some(piece) = pieces.pop_front() {
                let ends = piece.offset + u64::from(piece.len);
                let left = self.written(open, piece).await?;
                self.write_rest(open, source, ends, left, stable).await?;
            }
        }
        Ok(())
    }

    /// Writes what a server left of a piece that ends at `end`.
    async fn write_rest(
        &self,
        open: &Open,
        source: &mut Source,
        end: u64,
        mut left: u32,
        stable: Stable,
    ) -> Result<(), OpError> {
        while left > 0 {
            let bytes = source.next(u64::from(left))?;
            let piece = self.send_write(open, end - u64::from(left), stable, bytes);
            let len = piece.len;
            left -= len - self.written(open, piece).await?;
        }
        Ok(())
    }

    /// Sends the pieces of a write that nobody waits for yet.
    pub(super) fn send_later(
        &self,
        open: &Open,
        source: &mut Source,
        offset: u64,
        len: u64,
    ) -> Result<Vec<Piece>, OpError> {
        let end = offset.checked_add(len).ok_or(OpError(Errno::FBIG))?;
        let mut at = offset;
        let mut pieces = Vec::new();
        while at < end {
            let bytes = source.next((end - at).min(u64::from(self.config.write_size)))?;
            let piece = self.send_write(open, at, open.stable, bytes);
            at += u64::from(piece.len);
            pieces.push(piece);
        }
        Ok(pieces)
    }

    /// Waits for all pieces of such a write; a short one is an error, since its bytes are gone.
    pub(super) async fn all_written(&self, open: &Open, pieces: Vec<Piece>) -> Result<(), OpError> {
        for piece in pieces {
            if self.written(open, piece).await? > 0 {
                return Err(OpError(Errno::IO));
            }
        }
        Ok(())
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
        open.said(committed.map_err(of_nfs)?);
        open.verifier.set(None);
        match open.lost.replace(false) {
            // The server went and came again, and what it had not committed went with it.
            true => Err(OpError(Errno::IO)),
            false => Ok(()),
        }
    }

    fn send_read(&self, file: Handle, offset: u64, len: u64) -> (u64, u32, Sent<Read>) {
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
        let mut at = offset;
        let mut pieces = VecDeque::new();
        if len > 0 {
            let first = self.send_read(file, at, len);
            at += u64::from(first.1);
            pieces.push_back(first);
        }
        let mut done = offset;
        while let Some((begin, count, sent)) = pieces.pop_front() {
            while at < end && pieces.len() + 1 < UNDER_WAY {
                let piece = self.send_read(file, at, end - at);
                at += u64::from(piece.1);
                pieces.push_back(piece);
            }
            let (mut begin, mut left, mut sent) = (begin, count, sent);
            loop {
                let (read, eof) = self
                    .read_piece(sent, left, (begin - offset) as usize, &mut sink)
                    .await?;
                begin += u64::from(read);
                left -= read;
                done = begin;
                if eof || read == 0 {
                    return Ok(done - offset);
                }
                if left == 0 {
                    break;
                }
                // A server may give less than it was asked for.
                sent = self.send_read(file, begin, u64::from(left)).2;
            }
        }
        Ok(done - offset)
    }

    /// Waits for a piece: how many bytes came, and whether the file ends with them.
    async fn read_piece(
        &self,
        sent: Sent<Read>,
        asked: u32,
        at: usize,
        sink: &mut impl FnMut(usize, &[u8]),
    ) -> Result<(u32, bool), OpError> {
        let done = sent.done(|r| {
            let bytes = r
                .data
                .0
                .get(..r.count as usize)
                .filter(|_| r.count <= asked)?;
            sink(at, bytes);
            Some((r.count, r.eof))
        });
        let read = done.await.map_err(of_nfs)?;
        read.ok_or(OpError(Errno::BADMSG))
    }
}
