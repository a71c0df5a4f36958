//! Memory taken so that caches have less of it.

use super::{Stop, preflight};
use memmap2::MmapMut;

/// Bytes taken at a time.
const PIECE: usize = 16 << 20;

/// Bytes of a page, or fewer: each is touched.
const PAGE: usize = 4096;

/// Memory that is held until this goes.
pub(crate) struct Held {
    _pieces: Vec<MmapMut>,
}

impl Held {
    /// Takes memory until only `leave` bytes are available on the machine, or none is to be had,
    /// or the run is to stop. Other processes may do the same at the same time: each looks again
    /// after every piece.
    pub(crate) fn until_free(leave: u64, stop: &Stop) -> Self {
        let mut pieces = Vec::new();
        while !stop.is_requested()
            && preflight::available_memory().is_some_and(|free| free > leave + PIECE as u64)
        {
            let Ok(mut piece) = MmapMut::map_anon(PIECE) else {
                break;
            };
            for at in (0..PIECE).step_by(PAGE) {
                piece[at] = 1;
            }
            pieces.push(piece);
        }
        Self { _pieces: pieces }
    }
}
