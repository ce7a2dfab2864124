//! Who holds a lock.

/// POSIX does not tell whose an open file is.
pub fn holders(_: u64) -> Vec<i32> {
    Vec::new()
}
