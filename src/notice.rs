//! Words to the user, on stderr. Whoever closed it wants to hear nothing: that is no reason to fail.

/// Writes to stderr as it is, at once: what others write there does not land in the middle.
macro_rules! tell {
    ($($words:tt)*) => {{
        use std::io::Write;
        let _ = std::io::stderr().write_all(format!($($words)*).as_bytes());
    }};
}

/// Writes a line that begins with the name of the program. It is one line, whatever words of others are in it.
macro_rules! notice {
    ($($words:tt)*) => {
        tell!("outlive: {}\n", $crate::words::printable(&format!($($words)*)))
    };
}
