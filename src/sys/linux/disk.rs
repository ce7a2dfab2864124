//! Room on the disk: kept, given back, shared with other machines.

use std::fs::File;
use std::io;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, fallocate};
use nix::unistd::{Whence, lseek};

/// Keeps room for `length` bytes, so that a full disk cannot refuse them later; the size stays as it is. File
/// systems that cannot do it are left alone.
pub fn reserve(file: &File, length: i64) -> io::Result<()> {
    match fallocate(file, FallocateFlags::FALLOC_FL_KEEP_SIZE, 0, length) {
        Ok(()) | Err(Errno::EOPNOTSUPP | Errno::ENOSYS | Errno::EINVAL) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Whether a part in the middle of this file can be given back to the file system while it is being written.
/// Asked about a place far beyond its end, where nothing is lost.
pub fn can_punch(file: &File) -> bool {
    punch(file, 1 << 40, 4096).is_ok()
}

/// Gives a part of a file back to the file system; it reads as zeros then, and the size stays as it is.
pub fn punch(file: &File, start: u64, length: u64) -> io::Result<()> {
    let offset = |value: u64| i64::try_from(value).map_err(io::Error::other);
    let flags = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
    Ok(fallocate(file, flags, offset(start)?, offset(length)?)?)
}

/// Where the next bytes are that are really there, see SEEK_DATA in lseek(2); here, where that cannot be told.
pub fn next_data(file: &File, at: u64) -> u64 {
    seek(file, at, Whence::SeekData).unwrap_or(at)
}

/// Where the next hole begins, at the latest the end of the file; never, where that cannot be told.
pub fn next_hole(file: &File, at: u64) -> u64 {
    seek(file, at, Whence::SeekHole).unwrap_or(u64::MAX)
}

fn seek(file: &File, at: u64, whence: Whence) -> Option<u64> {
    let offset = lseek(file, i64::try_from(at).ok()?, whence).ok()?;
    u64::try_from(offset).ok()
}

/// Whether several machines can share the file system, see statfs(2).
pub fn is_shared(path: &Path) -> bool {
    const SHARED: [i64; 8] = [
        0x6969,      // NFS
        0x517b,      // SMB
        0xfe53_4d42, // SMB 2
        0xff53_4d42, // CIFS
        0x0102_1997, // 9p
        0x6573_5546, // FUSE
        0x00c3_6400, // Ceph
        0x5346_414f, // AFS
    ];
    nix::sys::statfs::statfs(path).is_ok_and(|stat| SHARED.contains(&stat.filesystem_type().0))
}
