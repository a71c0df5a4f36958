//! Reads and writes: split into calls of at most `rsize` or `wsize` bytes, with several calls in
//! flight.

use super::open::Open;
use super::sizes::TransferSizes;
use crate::error::OpError;
use crate::write_data::WriteData;
use plimsoll_nfs::v3::Stable;
use rustix::io::Errno;
use std::collections::VecDeque;

/// Maximum calls of one transfer in flight.
const MAX_PIPELINED_CALLS: usize = 8;

/// The reply to a WRITE.
pub(crate) struct Written {
    /// Number of bytes that the server has written; a further WRITE continues a short WRITE.
    pub(crate) count: u32,
    /// Whether the server may lose the written data until a COMMIT (`UNSTABLE`).
    pub(crate) unstable: bool,
    pub(crate) verifier: [u8; 8],
}

/// The reply to a READ, without the data.
pub(crate) struct PieceRead {
    /// Number of bytes in the reply to a READ, at most the number that the READ requested.
    pub(crate) count: u32,
    /// Whether the reply to a READ reports the end of the file after the returned bytes.
    pub(crate) eof: bool,
}

/// The READ and WRITE calls of one version.
pub(crate) trait TransferCalls {
    type File;
    /// The permission to make one call.
    type Permit;
    /// A WRITE in flight.
    type Write;
    /// A READ in flight.
    type Read;
    /// The error of a failed READ or WRITE, by which `wait_to_repeat` decides whether the call is repeated.
    type CallError;
    /// Repetitions of READ or WRITE calls since the latest successful call, as `wait_to_repeat` counts the repetitions.
    type Retries: Default;

    fn sizes(&self) -> &TransferSizes;

    async fn permit(&self) -> Result<Self::Permit, OpError>;

    /// Returns a permit if one is available without waiting.
    fn try_permit(&self) -> Option<Self::Permit>;

    fn send_write(
        &self,
        file: &Self::File,
        permit: Self::Permit,
        offset: u64,
        bytes: &[u8],
        stability: Stable,
    ) -> Result<Self::Write, OpError>;

    async fn write_reply(&self, sent: Self::Write) -> Result<Written, Self::CallError>;

    fn send_read(
        &self,
        file: &Self::File,
        permit: Self::Permit,
        offset: u64,
        count: u32,
    ) -> Result<Self::Read, OpError>;

    /// Waits for the reply to a READ of at most `limit` bytes, and passes the data to `sink`; `None` if the server sent
    /// more than `limit` bytes.
    async fn read_reply(
        &self,
        sent: Self::Read,
        limit: u32,
        sink: impl FnOnce(&[u8]),
    ) -> Result<Option<PieceRead>, Self::CallError>;

    /// Waits until a failed call may be repeated.
    ///
    /// # Errors
    /// The call's error if the call must not be repeated.
    async fn wait_to_repeat(
        &self,
        file: &Self::File,
        e: Self::CallError,
        retries: &mut Self::Retries,
    ) -> Result<(), OpError>;
}

/// A part of a transfer, in flight.
pub(crate) struct Piece<C> {
    offset: u64,
    len: u32,
    call: C,
}

/// Sends a WRITE of `bytes`, at most `wsize`.
pub(crate) fn send_write<T: TransferCalls>(
    calls: &T,
    open: &Open<T::File>,
    permit: T::Permit,
    (offset, bytes): (u64, &[u8]),
    stability: Stable,
) -> Result<Piece<T::Write>, OpError> {
    debug_assert!(
        bytes.len() <= calls.sizes().write as usize,
        "a piece of {} bytes is longer than wsize",
        bytes.len()
    );
    let call = calls.send_write(&open.file, permit, offset, bytes, stability)?;
    if stability == Stable::Unstable {
        open.set_dirty();
    }
    Ok(Piece {
        offset,
        len: bytes.len() as u32,
        call,
    })
}

/// Waits for a WRITE that cannot be repeated because its bytes are gone: a short write is an error.
pub(crate) async fn written_whole<T: TransferCalls<CallError: Into<OpError>>>(
    calls: &T,
    open: &Open<T::File>,
    piece: Piece<T::Write>,
) -> Result<(), OpError> {
    let written = calls.write_reply(piece.call).await.map_err(Into::into)?;
    match take_written(open, piece.len, written)? {
        0 => Ok(()),
        _ => Err(OpError(Errno::IO)),
    }
}

/// Takes the reply to a WRITE of `len` bytes; returns the number of unwritten bytes.
fn take_written<F>(open: &Open<F>, len: u32, written: Written) -> Result<u32, OpError> {
    if written.unstable {
        open.set_dirty();
    }
    open.note_verifier(written.verifier);
    match written.count {
        0 if len > 0 => Err(OpError(Errno::IO)),
        n => len.checked_sub(n).ok_or(OpError(Errno::BADMSG)),
    }
}

/// Waits for a WRITE; returns the number of unwritten bytes, which is all bytes if the WRITE must
/// be repeated.
async fn written<T: TransferCalls>(
    calls: &T,
    open: &Open<T::File>,
    piece: Piece<T::Write>,
    retries: &mut T::Retries,
) -> Result<u32, OpError> {
    match calls.write_reply(piece.call).await {
        Ok(written) => {
            *retries = T::Retries::default();
            take_written(open, piece.len, written)
        }
        Err(e) => {
            let repeated = calls.wait_to_repeat(&open.file, e, retries);
            repeated.await.map(|()| piece.len)
        }
    }
}

/// Writes `bytes` with one call at a time.
pub(crate) async fn write_bytes<T: TransferCalls>(
    calls: &T,
    open: &Open<T::File>,
    mut offset: u64,
    mut bytes: &[u8],
    stability: Stable,
) -> Result<(), OpError> {
    let mut retries = T::Retries::default();
    while !bytes.is_empty() {
        let permit = calls.permit().await?;
        let piece = &bytes[..bytes.len().min(calls.sizes().write as usize)];
        let len = piece.len();
        let piece = send_write(calls, open, permit, (offset, piece), stability)?;
        let done = len - written(calls, open, piece, &mut retries).await? as usize;
        offset += done as u64;
        bytes = &bytes[done..];
    }
    Ok(())
}

/// Writes `len` bytes from a source with several calls in flight. Calls `piece_done` after every piece except the last.
pub(crate) async fn write<T: TransferCalls>(
    calls: &T,
    open: &Open<T::File>,
    source: &mut WriteData,
    (offset, len): (u64, u64),
    stability: Stable,
    piece_done: impl Fn(),
) -> Result<(), OpError> {
    let end = offset.checked_add(len).ok_or(OpError(Errno::FBIG))?;
    let mut at = offset;
    if len > 0 && len <= u64::from(calls.sizes().write) {
        // Most transfers are one piece and do not use the queue.
        let permit = calls.permit().await?;
        let bytes = source.next_chunk(len)?;
        let piece = send_write(calls, open, permit, (offset, bytes), stability)?;
        at += u64::from(piece.len);
        finish_piece(calls, open, source, piece, stability).await?;
        if at == end {
            return Ok(());
        }
    }
    let mut pieces = VecDeque::with_capacity(MAX_PIPELINED_CALLS);
    let range = (at, end);
    let written = write_pieces(
        calls,
        open,
        source,
        range,
        stability,
        &mut pieces,
        piece_done,
    );
    let done = written.await;
    // After a failed WRITE, the other WRITEs of the operation are still in flight. Their replies are awaited, so that
    // no WRITE reaches the server after the end of the operation, and all calls are counted.
    for piece in pieces {
        if let Ok(written) = calls.write_reply(piece.call).await {
            open.note_verifier(written.verifier);
        }
    }
    done
}

async fn write_pieces<T: TransferCalls>(
    calls: &T,
    open: &Open<T::File>,
    source: &mut WriteData,
    (mut at, end): (u64, u64),
    stability: Stable,
    pieces: &mut VecDeque<Piece<T::Write>>,
    piece_done: impl Fn(),
) -> Result<(), OpError> {
    let max = u64::from(calls.sizes().write);
    while at < end || !pieces.is_empty() {
        while at < end && pieces.len() < MAX_PIPELINED_CALLS {
            let Some(permit) = next_permit(calls, pieces).await? else {
                break;
            };
            let bytes = source.next_chunk((end - at).min(max))?;
            let piece = send_write(calls, open, permit, (at, bytes), stability)?;
            at += u64::from(piece.len);
            pieces.push_back(piece);
        }
        let piece = pieces.pop_front().expect("a piece is in flight");
        finish_piece(calls, open, source, piece, stability).await?;
        if at < end || !pieces.is_empty() {
            piece_done();
        }
    }
    Ok(())
}

/// The permission to send the next piece; `None` if the worker must first wait for a piece in
/// flight.
async fn next_permit<T: TransferCalls, P>(
    calls: &T,
    pieces: &VecDeque<P>,
) -> Result<Option<T::Permit>, OpError> {
    match pieces.is_empty() {
        true => calls.permit().await.map(Some),
        // A worker that holds a slot must not wait for another slot: all workers might wait for
        // each other.
        false => Ok(calls.try_permit()),
    }
}

/// Waits for a WRITE, and writes the bytes that the server did not write.
async fn finish_piece<T: TransferCalls>(
    calls: &T,
    open: &Open<T::File>,
    source: &mut WriteData,
    piece: Piece<T::Write>,
    stability: Stable,
) -> Result<(), OpError> {
    let end = piece.offset + u64::from(piece.len);
    let mut retries = T::Retries::default();
    let mut left = written(calls, open, piece, &mut retries).await?;
    while left > 0 {
        let permit = calls.permit().await?;
        let bytes = source.next_chunk(u64::from(left))?;
        let offset = end - u64::from(left);
        let piece = send_write(calls, open, permit, (offset, bytes), stability)?;
        left -= piece.len;
        left += written(calls, open, piece, &mut retries).await?;
    }
    Ok(())
}

/// Reads up to `len` bytes and passes the data to `sink` with the position in the range; returns
/// the number of bytes. Calls `piece_done` after every piece except the last.
pub(crate) async fn read<T: TransferCalls>(
    calls: &T,
    open: &Open<T::File>,
    (offset, len): (u64, u64),
    mut sink: impl FnMut(usize, &[u8]),
    piece_done: impl Fn(),
) -> Result<u64, OpError> {
    let end = offset.checked_add(len).ok_or(OpError(Errno::OVERFLOW))?;
    let mut pieces = VecDeque::new();
    let range = (offset, end);
    let done = read_pieces(calls, open, range, &mut sink, &mut pieces, piece_done).await;
    // At the end of the file or after a failed READ, further READs of the operation are still in flight. Their replies
    // are awaited, so that all calls are counted and belong to the time of the operation.
    for piece in pieces {
        let _ = calls.read_reply(piece.call, piece.len, |_| ()).await;
    }
    done
}

fn send_read<T: TransferCalls>(
    calls: &T,
    open: &Open<T::File>,
    permit: T::Permit,
    (offset, end): (u64, u64),
) -> Result<Piece<T::Read>, OpError> {
    let len = (end - offset).min(u64::from(calls.sizes().read)) as u32;
    Ok(Piece {
        offset,
        len,
        call: calls.send_read(&open.file, permit, offset, len)?,
    })
}

async fn read_pieces<T: TransferCalls>(
    calls: &T,
    open: &Open<T::File>,
    (offset, end): (u64, u64),
    sink: &mut impl FnMut(usize, &[u8]),
    pieces: &mut VecDeque<Piece<T::Read>>,
    piece_done: impl Fn(),
) -> Result<u64, OpError> {
    let (mut at, mut done) = (offset, offset);
    while at < end || !pieces.is_empty() {
        while at < end && pieces.len() < MAX_PIPELINED_CALLS {
            let Some(permit) = next_permit(calls, pieces).await? else {
                break;
            };
            let piece = send_read(calls, open, permit, (at, end))?;
            at += u64::from(piece.len);
            pieces.push_back(piece);
        }
        let mut piece = pieces.pop_front().expect("a piece is in flight");
        let mut retries = T::Retries::default();
        loop {
            let (begin, len) = (piece.offset, piece.len);
            let position = (begin - offset) as usize;
            let take = |bytes: &[u8]| sink(position, bytes);
            let read = match calls.read_reply(piece.call, len, take).await {
                Ok(read) => {
                    let read = read.ok_or(OpError(Errno::BADMSG))?;
                    retries = T::Retries::default();
                    done = begin + u64::from(read.count);
                    if read.eof || read.count == 0 {
                        return Ok(done - offset);
                    }
                    read.count
                }
                Err(e) => {
                    calls.wait_to_repeat(&open.file, e, &mut retries).await?;
                    0
                }
            };
            if read == len {
                break;
            }
            // A server may return fewer bytes than requested.
            let permit = calls.permit().await?;
            let rest = (begin + u64::from(read), begin + u64::from(len));
            piece = send_read(calls, open, permit, rest)?;
        }
        if at < end || !pieces.is_empty() {
            piece_done();
        }
    }
    Ok(done - offset)
}
