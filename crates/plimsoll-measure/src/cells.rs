//! Counters that use memory only after the first write to their page.

use plimsoll_runtime::sync::atomic::AtomicU64;

/// Counters in separate memory pages. Written pages return to the system when the counters are dropped; an allocator
/// would keep the pages, and would write zeros to every page for the next use.
#[cfg(not(loom))]
pub(crate) struct Cells(memmap2::MmapMut);

/// Counters that the model checker observes.
#[cfg(loom)]
pub(crate) type Cells = Box<[AtomicU64]>;

/// `count` counters with value 0.
#[cfg(not(loom))]
pub(crate) fn zeroed(count: usize) -> Cells {
    let layout = std::alloc::Layout::array::<AtomicU64>(count).expect("a few hundred KiB");
    let pages = memmap2::MmapMut::map_anon(layout.size());
    Cells(pages.unwrap_or_else(|_| {
        plimsoll_runtime::note_failed_allocation(layout.size());
        std::alloc::handle_alloc_error(layout)
    }))
}

#[cfg(loom)]
pub(crate) fn zeroed(count: usize) -> Cells {
    (0..count).map(|_| AtomicU64::new(0)).collect()
}

#[cfg(not(loom))]
impl std::ops::Deref for Cells {
    type Target = [AtomicU64];

    #[inline]
    fn deref(&self) -> &[AtomicU64] {
        let count = self.0.len() / size_of::<AtomicU64>();
        // SAFETY: the mapping is private, writable, page-aligned, at least as long as `count` cells, and lives as long
        // as `self`, its only owner; zeroed bytes are a valid atomic 0, and nothing accesses the mapping as bytes.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), count) }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use procfs::process::{MemoryPageFlags, PageInfo, Process};
    use std::sync::atomic::Ordering::Relaxed;

    fn pages_in_memory(cells: &Cells) -> usize {
        let mut map = Process::myself().unwrap().pagemap().unwrap();
        let page = procfs::page_size() as usize;
        let first = cells.as_ptr() as usize / page;
        let end = first + size_of_val(&**cells).div_ceil(page);
        let pages = map.get_range_info(first..end).unwrap();
        let is_absent = |page: &&PageInfo| matches!(page, PageInfo::MemoryPage(flags) if !flags.contains(MemoryPageFlags::PRESENT));
        pages.len() - pages.iter().filter(is_absent).count()
    }

    #[test]
    fn cells_take_no_memory_until_they_are_written() {
        for _ in 0..3 {
            let cells = zeroed(33_000);
            assert_eq!((cells.len(), pages_in_memory(&cells)), (33_000, 0));
            for cell in cells.iter() {
                assert_eq!(cell.load(Relaxed), 0);
                cell.store(1, Relaxed);
            }
            assert!(pages_in_memory(&cells) > 0);
        }
    }
}
