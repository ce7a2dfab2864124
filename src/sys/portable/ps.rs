//! ps(1), run and read. POSIX has its options and the columns but for `stat`, `rss` and `lstart`, which all systems
//! have; the environments of one's own processes, too, are shown everywhere.

use std::collections::HashMap;
use std::io::{self, Read};
use std::process::{Command, Stdio};
use std::time::SystemTime;

use crate::env;
use crate::sys::proc::Stat;

/// Which processes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Which {
    All,
    One(i32),
}

/// The option by which ps shows environments behind the command lines.
const ENVIRONMENT: &str = if cfg!(target_vendor = "apple") { "-E" } else { "e" };

/// The option that names processes. With the usual one, Linux's ps looks at every process all the same.
const NAMED: &str = if cfg!(target_os = "linux") { "-q" } else { "-p" };

/// What a row is about: the number, and the second it began in.
type Key = (i32, u64);

/// Rows of columns, but for that of ps itself. Of processes that are gone there is none.
fn rows(which: Which, options: &[&str], columns: &[&str]) -> io::Result<Vec<String>> {
    let mut ps = Command::new("ps");
    ps.args(options).arg("-ww");
    match which {
        Which::All => ps.arg("-A"),
        Which::One(pid) => ps.arg(NAMED).arg(pid.to_string()),
    };
    for column in columns {
        ps.arg("-o").arg(format!("{column}="));
    }
    ps.env_clear()
        .env("PATH", "/bin:/usr/bin")
        .env("TZ", "UTC0")
        .env("LC_TIME", "C")
        .env("LC_CTYPE", "C.UTF-8")
        // Of no job, whoever asks.
        .env(env::JOB_ID, "");
    let (own, text) = output_of(&mut ps)?;
    let own = own.to_string();
    let about_ps = |row: &&str| row.split_ascii_whitespace().next() == Some(&own);
    Ok(text.lines().filter(|row| !about_ps(row)).map(str::to_owned).collect())
}

/// Runs a program for what it prints, and says which process it was. A caller that ignores the ends of its children is
/// not told of this one's.
pub(super) fn output_of(command: &mut Command) -> io::Result<(u32, String)> {
    let name = command.get_program().to_string_lossy().into_owned();
    // That it cannot be run says nothing about the process that was asked for.
    let cannot = |error| io::Error::other(format!("cannot run {name}: {error}"));
    command.stdin(Stdio::null()).stderr(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(cannot)?;
    let mut raw = Vec::new();
    if let Some(mut stdout) = child.stdout.take() {
        stdout.read_to_end(&mut raw)?;
    }
    let _ = child.wait();
    Ok((child.id(), String::from_utf8_lossy(&raw).into_owned()))
}

pub(super) fn table(which: Which) -> io::Result<Vec<Stat>> {
    let columns = ["pid", "ppid", "pgid", "stat", "rss", "time", "lstart", "args"];
    Ok(rows(which, &[], &columns)?.iter().filter_map(|row| parse_stat(row.as_bytes())).collect())
}

/// Reads one row of [`table`].
pub fn parse_stat(row: &[u8]) -> Option<Stat> {
    let (fields, args) = split(std::str::from_utf8(row).ok()?, 11)?;
    let number = |at: usize| fields[at].parse::<i32>().ok();
    let pid = number(0)?;
    let state = fields[3].as_bytes();
    Some(Stat {
        pid,
        comm: shown(args).as_bytes().to_vec(),
        state: *state.first()?,
        ppid: number(1)?,
        pgid: number(2)?,
        sid: nix::unistd::getsid(Some(nix::unistd::Pid::from_raw(pid))).map_or(0, nix::unistd::Pid::as_raw),
        // Linux's ps says that a zombie's other threads go on.
        threads: if state.contains(&b'l') { 2 } else { 1 },
        start_time: start(&fields[6..])?,
        cpu_ticks: seconds(fields[5])?.checked_mul(crate::sys::clock::ticks_per_second())?,
        rss_bytes: fields[4].parse::<u64>().ok()?.checked_mul(1024)?,
    })
}

pub(super) fn exiting(pid: i32) -> bool {
    rows(Which::One(pid), &[], &["pid", "stat"]).is_ok_and(|rows| rows.iter().any(|row| row.contains('E')))
}

/// As what a process shows itself: one of ours by the word that it was executed with.
fn shown(args: &str) -> &str {
    args.strip_prefix("outlive ").filter(|word| word.starts_with("outlive:")).unwrap_or(args)
}

/// The first words of a row, and what follows them.
fn split(row: &str, words: usize) -> Option<(Vec<&str>, &str)> {
    let mut fields = Vec::with_capacity(words);
    let mut rest = row;
    for _ in 0..words {
        rest = rest.trim_ascii_start();
        let end = rest.find(' ').unwrap_or(rest.len());
        fields.push(rest.get(..end).filter(|field| !field.is_empty())?);
        rest = &rest[end..];
    }
    Some((fields, rest.strip_prefix(' ').unwrap_or(rest)))
}

/// `Mon Nov 30 01:20:00 2026`, in seconds since 1970.
fn start(words: &[&str]) -> Option<u64> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let [_, month, day, time, year] = words else { return None };
    let month = MONTHS.iter().position(|name| name == month)? + 1;
    let time = humantime::parse_rfc3339(&format!("{year}-{month:02}-{day:0>2}T{time}Z")).ok()?;
    Some(time.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_secs())
}

/// `[[dd-]hh:]mm:ss`, some with hundredths.
fn seconds(text: &str) -> Option<u64> {
    let (days, text) = text.split_once('-').unwrap_or(("0", text));
    let whole = text.split('.').next()?;
    let more = |sum: u64, part: &str| sum.checked_mul(60)?.checked_add(part.parse().ok()?);
    let of_day = whole.split(':').try_fold(0, more)?;
    days.parse::<u64>().ok()?.checked_mul(86_400)?.checked_add(of_day)
}

/// What ps shows of environments, as `K=V` and NUL, and whose could not be told: they have executed something since the
/// table was read.
pub(super) type Environments = (HashMap<i32, Vec<u8>>, Vec<i32>);

pub(super) fn environments(which: Which, table: &[Stat]) -> io::Result<Environments> {
    let known: HashMap<Key, &Stat> = table.iter().map(|stat| ((stat.pid, stat.start_time), stat)).collect();
    let (mut found, mut changed) = (HashMap::new(), Vec::new());
    for row in rows(which, &[ENVIRONMENT], &["pid", "lstart", "args"])? {
        let Some((stat, text)) = known_row(&row, &known) else { continue };
        // What stands before it are the arguments, whatever they look like.
        match std::str::from_utf8(&stat.comm).ok().and_then(|args| shown(text).strip_prefix(args)) {
            Some("") => {}
            Some(behind) if begins_with_entry(behind) => {
                found.extend(entries(&behind[1..]).map(|environment| (stat.pid, environment)));
            }
            _ => changed.push(stat.pid),
        }
    }
    Ok((found, changed))
}

fn known_row<'a, 'b>(row: &'a str, known: &HashMap<Key, &'b Stat>) -> Option<(&'b Stat, &'a str)> {
    let (fields, text) = split(row, 6)?;
    Some((known.get(&(fields[0].parse().ok()?, start(&fields[1..])?))?, text))
}

/// Values may hold spaces; an entry begins with a word that has a `=`. What is not clear about the mark is no mark.
fn entries(text: &str) -> Option<Vec<u8>> {
    let mut raw = String::with_capacity(text.len());
    let mut marks = 0;
    for word in text.split(' ') {
        let name = name_of(word);
        if !raw.is_empty() {
            raw.push(if name.is_some() { '\0' } else { ' ' });
        }
        marks += usize::from(name == Some(env::JOB_ID));
        raw.push_str(word);
    }
    (!text.is_empty() && marks <= 1).then(|| raw.into_bytes())
}

fn begins_with_entry(behind: &str) -> bool {
    behind
        .strip_prefix(' ')
        .and_then(|text| text.split(' ').next())
        .is_some_and(|word| name_of(word).is_some())
}

/// The name in `NAME=value`.
fn name_of(word: &str) -> Option<&str> {
    let (name, _) = word.split_once('=')?;
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let fits = !name.is_empty() && name.bytes().all(allowed) && !name.as_bytes()[0].is_ascii_digit();
    fits.then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_several_systems_are_read() {
        let linux = "    1234     1    1234 Ss     1000 00:01:05 Mon Nov  2 01:20:03 2026 sh -c  a  b";
        let macos = " 1234     1  1234 S+     1000   1:05.25 Mon  2 Nov 01:20:03 2026 x";
        let seen = parse_stat(linux.as_bytes()).unwrap();
        assert_eq!((seen.pid, seen.ppid, seen.pgid, seen.state), (1234, 1, 1234, b'S'));
        assert_eq!((seen.rss_bytes, seen.threads), (1_024_000, 1));
        assert_eq!((seen.start_time, seen.comm.as_slice()), (1_793_582_403, &b"sh -c  a  b"[..]));
        assert_eq!(seen.cpu_ticks, 65 * crate::sys::clock::ticks_per_second());
        assert_eq!(parse_stat(macos.as_bytes()), None, "a date in another order is none");
        assert!(parse_stat(b"1 2 3").is_none() && parse_stat(b"").is_none());
    }

    #[test]
    fn times_have_days_or_hundredths() {
        assert_eq!(
            ["1:05.25", "00:01:05", "2-01:00:00", "x"].map(seconds),
            [Some(65), Some(65), Some(176_400), None]
        );
    }

    #[test]
    fn an_environment_is_split_at_its_names() {
        let of = |text: &str| entries(text).map(|raw| String::from_utf8(raw).unwrap());
        assert_eq!(of("A=1 B=x y=2 =z C=").as_deref(), Some("A=1\0B=x\0y=2 =z\0C="));
        assert_eq!(of("OUTLIVE_STATE_DIR=/a b/c D=1").as_deref(), Some("OUTLIVE_STATE_DIR=/a b/c\0D=1"));
        assert_eq!(of(""), None);
        assert_eq!(of("X=OUTLIVE_JOB_ID=a OUTLIVE_JOB_ID=b").as_deref().map(str::len), Some(35));
        assert_eq!(of("X=1 OUTLIVE_JOB_ID=a OUTLIVE_JOB_ID=b"), None, "one of them is in somebody's value");
    }

    #[test]
    fn this_process_shows_its_own_environment_and_not_its_arguments() {
        let pid = i32::try_from(std::process::id()).unwrap();
        let seen = table(Which::One(pid)).unwrap();
        let raw = &environments(Which::One(pid), &seen).unwrap().0[&pid];
        let path = format!("PATH={}", std::env::var("PATH").unwrap());
        assert!(raw.split(|&byte| byte == 0).any(|entry| entry == path.as_bytes()));
    }
}
