use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU32;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::sockopt::Plain;

/// A packet socket's ring: memory shared with the kernel.
#[derive(Debug)]
pub(super) struct Mapping {
    memory: NonNull<u8>,
    length: usize,
}

// SAFETY: the mapping belongs to this value alone.
unsafe impl Send for Mapping {}

// SAFETY: integers and arrays of them.
unsafe impl Plain for libc::tpacket2_hdr {}
// SAFETY: integers, and a union of one structure of integers.
unsafe impl Plain for libc::tpacket3_hdr {}
// SAFETY: integers, and unions of integers.
unsafe impl Plain for libc::tpacket_hdr_v1 {}
// SAFETY: integers and arrays of them.
unsafe impl Plain for libc::sockaddr_ll {}

impl Mapping {
    /// Maps the whole ring of `socket`, `length` bytes long.
    pub(super) fn new(socket: BorrowedFd<'_>, length: usize) -> io::Result<Mapping> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, which nothing refers to yet.
        let memory = unsafe { mmap(ptr::null_mut(), length, access, MapFlags::SHARED, socket, 0) }?;
        let memory = NonNull::new(memory.cast()).ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(Mapping { memory, length })
    }

    /// The word at `at`, through which kernel and program pass ownership back and forth.
    pub(super) fn word(&self, at: usize) -> &AtomicU32 {
        let place = self.place(at, size_of::<u32>(), align_of::<u32>());
        // SAFETY: inside the mapping and aligned; both sides access such a word atomically.
        unsafe { AtomicU32::from_ptr(place.cast()) }
    }

    /// Reads the structure at `at`, which the kernel must have passed to user space.
    pub(super) fn read<T: Plain>(&self, at: usize) -> T {
        let place = self.place(at, size_of::<T>(), align_of::<T>());
        // SAFETY: inside the mapping and aligned; every bit pattern is a value.
        unsafe { place.cast::<T>().read_volatile() }
    }

    /// The `length` bytes at `at`.
    ///
    /// # Safety
    /// The kernel must have passed them to user space, and they must not be returned while the
    /// slice lives.
    pub(super) unsafe fn bytes(&self, at: usize, length: usize) -> &[u8] {
        let place = self.place(at, length, 1);
        // SAFETY: inside the mapping; the caller guarantees that nothing writes to it.
        unsafe { std::slice::from_raw_parts(place, length) }
    }

    fn place(&self, at: usize, size: usize, alignment: usize) -> *mut u8 {
        let inside = at.checked_add(size).is_some_and(|end| end <= self.length);
        assert!(inside && at.is_multiple_of(alignment), "{size} bytes at {at} of {}", self.length);
        self.memory.as_ptr().wrapping_add(at)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping made in `new`, to which no reference remains.
        let _ = unsafe { munmap(self.memory.as_ptr().cast(), self.length) };
    }
}
