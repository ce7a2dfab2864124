//! Memory that is nobody else's, not even the allocator's.

use std::io;

use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// Anonymous memory that goes back to the kernel as a whole when dropped.
#[derive(Debug)]
pub struct Mapping {
    start: std::ptr::NonNull<std::ffi::c_void>,
    length: usize,
}

impl Mapping {
    pub fn new(length: usize) -> io::Result<Self> {
        let size = std::num::NonZeroUsize::new(length.max(1)).ok_or(io::ErrorKind::InvalidInput)?;
        // SAFETY: a new private mapping at an address of the kernel's choice.
        let start = unsafe {
            mmap_anonymous(None, size, ProtFlags::PROT_READ | ProtFlags::PROT_WRITE, MapFlags::MAP_PRIVATE)?
        };
        Ok(Self { start, length })
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping is readable for `length` bytes and lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().cast(), self.length) }
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and writable; `self` is borrowed for as long.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().cast(), self.length) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: our own mapping; no slice of it outlives `self`.
        let _ = unsafe { munmap(self.start, self.length.max(1)) };
    }
}
