//! Words to the user, on stderr. Whoever closed it wants to hear nothing: that is no reason to fail.

/// Writes to stderr as it is.
macro_rules! tell {
    ($($words:tt)*) => {{
        use std::io::Write;
        let _ = write!(std::io::stderr(), $($words)*);
    }};
}

/// Writes a line that begins with the name of the program. It is one line, whatever words of others are in it.
macro_rules! notice {
    ($($words:tt)*) => {
        tell!("outlive: {}\n", $crate::words::printable(&format!($($words)*)))
    };
}
