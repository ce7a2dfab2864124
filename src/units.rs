//! How people write durations, signals and sizes.

use std::time::Duration;

use nix::sys::signal::Signal;

/// `10` and `1.5` are seconds; `500ms`, `1.5s`, `5m`, `1h30m` say their unit; `0` is none at all.
pub fn duration(text: &str) -> Result<Duration, String> {
    let bad = || format!("'{text}' is not a duration (examples: 10, 1.5s, 500ms, 5m, 1h30m)");
    let number = |word: &str| word.parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0);
    let large = || format!("'{text}' is too large for a duration");
    let seconds = |n: f64| Duration::try_from_secs_f64(n).map_err(|_| large());
    if text.starts_with(['+', '-']) || text.contains(['e', 'E', 'i', 'I', 'N']) && number(text).is_some() {
        return Err(bad());
    }
    if let Some(n) = number(text) {
        return seconds(n);
    }
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(bad)?;
    let (count, unit) = text.split_at(unit_at);
    if count.contains('.') {
        let scale = match unit {
            "ms" => 0.001,
            "s" => 1.0,
            "m" | "min" => 60.0,
            "h" => 3600.0,
            "d" => 86400.0,
            _ => return Err(bad()),
        };
        return seconds(number(count).ok_or_else(bad)? * scale);
    }
    humantime::parse_duration(text).map_err(|error| match error {
        humantime::DurationError::NumberOverflow => large(),
        _ => bad(),
    })
}

/// `TERM`, `SIGTERM`, `term` and `15` are the same signal.
pub fn signal(text: &str) -> Result<i32, String> {
    let bad = || format!("'{text}' is not a signal (examples: TERM, SIGINT, hup, 9)");
    if let Ok(number) = text.parse::<i32>() {
        return if (1..=crate::sys::highest_signal()).contains(&number) { Ok(number) } else { Err(bad()) };
    }
    let upper = text.to_ascii_uppercase();
    let name = upper.strip_prefix("SIG").unwrap_or(&upper);
    format!("SIG{name}").parse::<Signal>().map(|signal| signal as i32).map_err(|_| bad())
}

/// `SIGTERM` for 15; real-time signals have a number only.
pub fn signal_name(number: i32) -> String {
    Signal::try_from(number).map_or_else(|_| format!("SIG{number}"), |signal| signal.as_str().to_owned())
}

/// `500k`, `10M`, `1GiB`: powers of 1024, `none` for no limit.
pub fn size(text: &str) -> Result<Option<u64>, String> {
    let bad = || format!("'{text}' is not a size (examples: 500k, 10M, 1GiB, none)");
    if text == "none" {
        return Ok(None);
    }
    let at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (count, unit) = text.split_at(at);
    let shift = match unit.to_ascii_lowercase().trim_end_matches("ib").trim_end_matches('b') {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        _ => return Err(bad()),
    };
    let count: u64 = count.parse().map_err(|_| bad())?;
    count.checked_mul(1 << shift).map(Some).ok_or_else(bad)
}

/// A whole number, 0 or above.
pub fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits).ok_or_else(|| format!("'{text}' is not a number (examples: 0, 20)"))
}

/// A process has a number above 0.
pub fn pid(text: &str) -> Result<i32, String> {
    number(text).ok().filter(|&pid| pid > 0).ok_or_else(|| format!("'{text}' is not a PID (see 'ps')"))
}

pub fn port(text: &str) -> Result<u16, String> {
    number(text)
        .ok()
        .filter(|&port| port > 0)
        .ok_or_else(|| format!("'{text}' is not a TCP port (1 to 65535)"))
}

/// A size for people.
pub fn show_size(bytes: u64) -> String {
    let mut value = bytes as f64;
    let mut unit = "B";
    for next in ["KiB", "MiB", "GiB", "TiB"] {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    if unit == "B" { format!("{bytes} B") } else { format!("{value:.1} {unit}") }
}

/// A duration for people: its two largest units.
pub fn show_duration(milliseconds: u64) -> String {
    let seconds = milliseconds / 1000;
    match seconds {
        0 => format!("{milliseconds}ms"),
        1..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3600..86400 => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d{:02}h", seconds / 86400, seconds / 3600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for (text, millis) in [
            ("10", 10_000),
            ("0", 0),
            ("1.5", 1500),
            ("1.5s", 1500),
            ("500ms", 500),
            ("5m", 300_000),
            ("1h30m", 5_400_000),
            ("0s", 0),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for bad in ["", "-1", "+1", "x", "1x", "1e9", "inf", "nan", "1.5.s", "1.2parsec", " "] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_no_duration_can_hold_is_too_large() {
        for text in ["99999999999999999999", "99999999999999999999h", "9999999999999999.5h"] {
            assert_eq!(duration(text), Err(format!("'{text}' is too large for a duration")), "{text}");
        }
    }

    #[test]
    fn signals() {
        for text in ["TERM", "SIGTERM", "term", "sigterm", "15"] {
            assert_eq!(signal(text), Ok(15), "{text}");
        }
        for bad in ["", "0", "-9", "65", "NOPE", "SIG"] {
            assert!(signal(bad).is_err(), "{bad}");
        }
        assert_eq!((signal_name(9).as_str(), signal_name(40).as_str()), ("SIGKILL", "SIG40"));
    }

    #[test]
    fn sizes() {
        for (text, bytes) in
            [("0", 0), ("500", 500), ("1k", 1024), ("10M", 10 << 20), ("1GiB", 1 << 30), ("2gb", 2 << 30)]
        {
            assert_eq!(size(text), Ok(Some(bytes)), "{text}");
        }
        assert_eq!(size("none"), Ok(None));
        for bad in ["", "k", "1x", "-1", "99999999999999T", "1.5G"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn numbers() {
        assert_eq!((number("0"), pid("1"), port("65535")), (Ok(0_u64), Ok(1), Ok(65535)));
        for bad in ["", "-1", "+1", "x", "1.5", "99999999999999999999", " 1"] {
            assert!(number::<u64>(bad).is_err() && pid(bad).is_err() && port(bad).is_err(), "{bad}");
        }
        assert!(pid("0").is_err() && port("0").is_err() && port("65536").is_err());
    }
}
