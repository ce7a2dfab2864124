//! Errors in words: what failed, why, and then what to do next.

use std::io;

/// The whole chain on one line. What stands in parentheses at the end of a part is what to do next, and is said
/// last.
pub fn of(error: &anyhow::Error) -> String {
    let (mut said, mut next) = (Vec::new(), String::new());
    for cause in error.chain() {
        let text = cause.downcast_ref::<io::Error>().map_or_else(|| plain_errno(cause), plain);
        match text.rfind(" (").filter(|_| text.ends_with(')')) {
            Some(at) => {
                next.push_str(&text[at..]);
                said.push(text[..at].to_owned());
            }
            None => said.push(text),
        }
    }
    said.join(": ") + &next
}

/// An error of the system as the rest of a sentence: `no such file or directory`, without its number.
pub fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error ").next().unwrap_or_default();
    let mut chars = text.chars();
    match (chars.next(), chars.clone().next()) {
        // Not an abbreviation.
        (Some(first), Some(second)) if !second.is_uppercase() => first.to_lowercase().chain(chars).collect(),
        _ => text.to_owned(),
    }
}

fn plain_errno(cause: &(dyn std::error::Error + 'static)) -> String {
    cause
        .downcast_ref::<nix::errno::Errno>()
        .map_or_else(|| cause.to_string(), |&errno| plain(&io::Error::from(errno)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;
    use nix::errno::Errno;

    #[test]
    fn the_next_step_comes_last() {
        let error = Err::<(), _>(io::Error::from(Errno::EACCES)).context("cannot create /x (set Y)");
        let error = error.context("job a was not started").unwrap_err();
        assert_eq!(of(&error), "job a was not started: cannot create /x: permission denied (set Y)");
        assert_eq!(of(&anyhow::Error::from(Errno::EIO)), "input/output error");
        assert_eq!(of(&anyhow::anyhow!("no job 'x' (see y)")), "no job 'x' (see y)");
    }

    #[test]
    fn errors_of_the_system_begin_small() {
        assert_eq!(plain(&io::Error::from(Errno::ENOENT)), "no such file or directory");
        assert_eq!(plain(&io::Error::other("RPC failed")), "RPC failed");
        assert_eq!(plain(&io::Error::other("")), "");
    }
}
