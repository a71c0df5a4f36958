//! Occupying memory, so that less memory is available to caches.

use super::{Stop, host};
use memmap2::MmapMut;

/// Bytes of each allocation that occupies memory; the available memory is checked before each allocation.
const ALLOCATION_STEP_BYTES: usize = 16 << 20;

/// Smallest page size in bytes: every page of an allocation is written once.
const MIN_PAGE_BYTES: usize = 4096;

/// Memory that stays occupied until the allocation is dropped.
pub(crate) struct PressureAllocation {
    _pieces: Vec<MmapMut>,
}

impl PressureAllocation {
    /// Allocates memory in steps of [`ALLOCATION_STEP_BYTES`] as long as more than `leave` bytes stay available to this
    /// process, until an allocation fails or the run is to stop. Allocates nothing if the available memory is unknown.
    /// Other processes may allocate at the same time, so the available memory is checked before every allocation.
    pub(crate) fn fill_until_available(leave: u64, stop: &Stop) -> Self {
        let mut pieces = Vec::new();
        while !stop.is_requested()
            && host::available_memory()
                .is_some_and(|free| free.bytes > leave + ALLOCATION_STEP_BYTES as u64)
        {
            let Ok(mut piece) = MmapMut::map_anon(ALLOCATION_STEP_BYTES) else {
                break;
            };
            for at in (0..ALLOCATION_STEP_BYTES).step_by(MIN_PAGE_BYTES) {
                piece[at] = 1;
            }
            pieces.push(piece);
        }
        Self { _pieces: pieces }
    }
}
