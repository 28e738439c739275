//! An allocator with limits: a session that exceeds them ends the process. Also does what Rust does at the start of `main`,
//! because here the fuzzer owns `main`.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Maximum size of one allocation, bytes: a record is at most 1 MiB, and a hostile peer must not choose more.
const MAX_ALLOCATION: usize = 32 << 20;
/// Maximum size of all allocations together, including the fuzzer's own in Rust, bytes.
const MAX: usize = 256 << 20;

static LIVE: AtomicUsize = AtomicUsize::new(0);

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn grow(bytes: usize) {
    let live = LIVE.fetch_add(bytes, Ordering::Relaxed) + bytes;
    if bytes > MAX_ALLOCATION || live > MAX {
        eprintln!("a session takes {bytes} bytes at once, and {live} are in use");
        eprintln!("{}", std::backtrace::Backtrace::force_capture());
        std::process::abort();
    }
}

// SAFETY: each call is passed on to the system's allocator, which has the same contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        grow(size);
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.realloc(pointer, layout, size) }
    }
}

unsafe extern "C" {
    fn signal(number: i32, handler: usize) -> usize;
}

/// Makes a write to a closed socket an error, as in a Rust program.
pub fn ignore_broken_pipes() {
    const SIGPIPE: i32 = 13;
    const SIG_IGN: usize = 1;
    // SAFETY: ignoring the signal installs no handler.
    unsafe { signal(SIGPIPE, SIG_IGN) };
}
