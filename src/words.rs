//! Errors in words: what failed, why, and then what to do next.

use std::borrow::Cow;
use std::io;

use nix::errno::Errno;

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
    // Whatever could not be done for it, and whatever would help otherwise.
    if error.chain().any(is_full) {
        next = format!(" ({FULL})");
    }
    said.join(": ") + &next
}

/// Without control characters, which a terminal would obey: what others have named is not ours to vouch for.
pub fn printable(text: &str) -> Cow<'_, str> {
    escape(text, "")
}

/// The same for lines of output, which may have newlines and tabs.
pub fn printable_lines(raw: &[u8]) -> String {
    escape(&String::from_utf8_lossy(raw), "\n\t").into_owned()
}

fn escape<'a>(text: &'a str, but: &str) -> Cow<'a, str> {
    let bad = |c: char| c.is_control() && !but.contains(c);
    if !text.contains(bad) {
        return text.into();
    }
    let shown = |c: char| if bad(c) { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(shown).collect::<String>().into()
}

/// JSON in which nothing is left that a terminal obeys; it says the same. Control characters below a space are
/// escaped already, but for those between the values.
pub fn printable_json(raw: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(raw);
    let shown = |c: char| match c {
        '\u{7f}'..='\u{9f}' => format!("\\u{:04x}", u32::from(c)),
        _ => c.to_string(),
    };
    text.chars().map(shown).collect::<String>().into_bytes()
}

/// What to do about a full disk.
pub const FULL: &str =
    "free some room, for example by 'outlive prune', or set OUTLIVE_STATE_DIR to another disk";

fn is_full(cause: &(dyn std::error::Error + 'static)) -> bool {
    let errno = cause.downcast_ref::<Errno>().copied();
    let errno = errno.or_else(|| Some(Errno::from_raw(cause.downcast_ref::<io::Error>()?.raw_os_error()?)));
    matches!(errno, Some(Errno::ENOSPC | Errno::EDQUOT))
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
    cause.downcast_ref::<Errno>().map_or_else(|| cause.to_string(), |&errno| plain(&io::Error::from(errno)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    #[test]
    fn the_next_step_comes_last() {
        let error = Err::<(), _>(io::Error::from(Errno::EACCES)).context("cannot create /x (set Y)");
        let error = error.context("job a was not started").unwrap_err();
        assert_eq!(of(&error), "job a was not started: cannot create /x: permission denied (set Y)");
        let error = Err::<(), _>(io::Error::from(Errno::ENOSPC)).context("cannot create /x (set Y)");
        let said = format!("cannot create /x: no space left on device ({FULL})");
        assert_eq!(of(&error.unwrap_err()), said);
        assert_eq!(of(&anyhow::Error::from(Errno::EIO)), "input/output error");
        assert_eq!(of(&anyhow::anyhow!("no job 'x' (see y)")), "no job 'x' (see y)");
    }

    #[test]
    fn what_a_terminal_obeys_is_shown_and_not_done() {
        assert_eq!(printable("a\x1b[2J\u{9b}\x07\x7fä\n"), "a\\u{1b}[2J\\u{9b}\\u{7}\\u{7f}ä\\n");
        assert_eq!(printable_lines(b"a\tb\r\n\xff"), "a\tb\\r\n\u{fffd}");
        let json = printable_json("{\"a\":\"\u{9b}\u{7f}ä\"}\n".as_bytes());
        assert_eq!(json, "{\"a\":\"\\u009b\\u007fä\"}\n".as_bytes());
    }

    #[test]
    fn errors_of_the_system_begin_small() {
        assert_eq!(plain(&io::Error::from(Errno::ENOENT)), "no such file or directory");
        assert_eq!(plain(&io::Error::other("RPC failed")), "RPC failed");
        assert_eq!(plain(&io::Error::other("")), "");
    }
}
