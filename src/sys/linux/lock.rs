//! Who holds a lock, see proc_locks(5).

/// Who holds a flock on the file with this inode, for a message: the PIDs in /proc/locks.
pub fn holders(inode: u64) -> Vec<i32> {
    let Ok(locks) = std::fs::read_to_string("/proc/locks") else { return Vec::new() };
    let ends = format!(":{inode}");
    let holder = |line: &str| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let at = words.iter().position(|word| word.ends_with(&ends))?;
        words.get(at.checked_sub(1)?)?.parse().ok()
    };
    locks.lines().filter(|line| !line.contains("->")).filter_map(holder).collect()
}
