//! An allocator that ends the program with an error message when memory runs out.
//!
//! The standard library aborts the program after an unhandled allocation failure, and has no stable function that
//! changes the abort. The allocator therefore records each failure, and a handler of SIGABRT ends the program with exit
//! code 1 and a message if a failure was recorded. Code that handles the failure (`try_reserve`) continues.

use rustix::process::{Resource, getrlimit};
use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Size of the latest allocation that failed, in bytes; 0 if no allocation failed.
static FAILED_BYTES: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, which records allocation failures.
pub struct NotingAllocator;

#[inline]
fn noted(memory: *mut u8, bytes: usize) -> *mut u8 {
    if memory.is_null() {
        note_failed_allocation(bytes);
    }
    memory
}

// SAFETY: every call is passed on to the system's allocator unchanged, so the obligations of caller and allocator are
// unchanged.
unsafe impl GlobalAlloc for NotingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        noted(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        noted(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller promises.
        noted(unsafe { System.realloc(memory, layout, size) }, size)
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }
}

/// Records that memory of this size could not be mapped. Must be called before the program is aborted because of the
/// failure.
pub fn note_failed_allocation(bytes: usize) {
    FAILED_BYTES.store(bytes, Relaxed);
}

/// Prepares the program for memory limits. Must be called before threads start. A program that runs out of memory ends
/// with an error message. With limited address space and glibc, all threads allocate from one heap instead of reserving
/// 64 MiB each.
///
/// # Errors
/// The system's error if the handler of SIGABRT is refused.
pub fn prepare_for_memory_limits() -> std::io::Result<()> {
    #[cfg(target_env = "gnu")]
    if limit_option().is_some() {
        // SAFETY: `mallopt` takes two numbers and no pointers, and there is no other thread yet.
        unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
    }
    // SAFETY: the handler allocates nothing and takes no lock: it reads limits, writes to standard error, and ends the
    // program at once.
    let handler = unsafe { signal_hook::low_level::register(libc::SIGABRT, end) };
    handler.map(drop)
}

/// The option of `ulimit` that limits the memory that this process may map; `None` without a limit.
fn limit_option() -> Option<&'static str> {
    let limits = [(Resource::As, "-v"), (Resource::Data, "-d")];
    let mut limits = limits
        .iter()
        .filter(|(r, _)| getrlimit(*r).current.is_some());
    limits.next().map(|(_, option)| *option)
}

/// Ends the program with an error if an allocation failed. For any other abort, returns without effect.
fn end() {
    let bytes = FAILED_BYTES.load(Relaxed);
    if bytes == 0 {
        return;
    }
    let mut text = [0u8; 256];
    let mut rest = &mut text[..];
    // The text is shorter than the array.
    let _ = write!(
        rest,
        "error: no memory is left: an allocation of {bytes} bytes failed"
    );
    let _ = match limit_option() {
        Some(option) => writeln!(
            rest,
            "; `ulimit {option}` limits what this process may have"
        ),
        None => writeln!(rest),
    };
    let left = rest.len();
    let written = text.len() - left;
    let _ = rustix::io::write(rustix::stdio::stderr(), &text[..written]);
    // SAFETY: `_exit` takes a number and does not return.
    unsafe { libc::_exit(1) }
}
