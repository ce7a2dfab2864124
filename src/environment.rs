//! The environment of a job: kept for `restart`, but for what is secret, in a file of its own.
//!
//! `jobs/<id>/env` holds `K=V` and NUL for each variable, and one more NUL at its end; 0600 in a 0700 directory, and
//! gone when the job is pruned. Values are in no other file and in no message. It is not flushed: after a crash it may
//! be cut short or hold zeros, and then it is refused, because half an environment is another environment.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use anyhow::{Context, Result};

use crate::env;
use crate::fs;
use crate::paths::JobDir;

/// `K=V` for each variable.
pub fn encode_env(env: &[(OsString, OsString)]) -> Vec<Vec<u8>> {
    env.iter().map(|(key, value)| [key.as_bytes(), b"=", value.as_bytes()].concat()).collect()
}

/// Keeps each variable that is not secret.
pub fn write_env(job: &JobDir, env: &[(OsString, OsString)], secret: &[String]) -> Result<()> {
    let keep: Vec<_> = env.iter().filter(|(key, _)| !is_secret(key, secret)).cloned().collect();
    let mut text = encode_env(&keep).join(&0);
    text.extend([0, 0]);
    let path = job.env();
    fs::write_new(&path, &text).with_context(|| format!("cannot write {}", path.display()))
}

/// Reads what [`write_env`] kept.
pub fn read_env(job: &JobDir) -> Result<Vec<(OsString, OsString)>> {
    let path = job.env();
    let raw = fs::read_regular(&path)
        .with_context(|| format!("cannot read the environment of the job from {}", path.display()))?;
    decode_env(&raw).with_context(|| {
        format!("the environment of the job is not whole in {}: a crash took it", path.display())
    })
}

/// None for anything that was not written to its end.
pub fn decode_env(raw: &[u8]) -> Option<Vec<(OsString, OsString)>> {
    let whole = raw.strip_suffix(b"\0\0")?;
    let entry = |entry: &[u8]| {
        let at = entry.iter().skip(1).position(|&byte| byte == b'=')? + 1;
        Some((OsStr::from_bytes(&entry[..at]).to_owned(), OsStr::from_bytes(&entry[at + 1..]).to_owned()))
    };
    if whole.is_empty() {
        return Some(Vec::new());
    }
    whole.split(|&byte| byte == 0).map(entry).collect()
}

/// Whether a variable is named by one of the patterns, in which `*` stands for anything.
pub fn is_secret(name: &OsStr, patterns: &[String]) -> bool {
    patterns.iter().any(|pattern| glob(pattern.as_bytes(), name.as_bytes()))
}

fn glob(pattern: &[u8], text: &[u8]) -> bool {
    match pattern.split_first() {
        None => text.is_empty(),
        Some((b'*', rest)) => (0..=text.len()).any(|at| glob(rest, &text[at..])),
        Some((first, rest)) => {
            text.split_first().is_some_and(|(byte, text)| byte == first && glob(rest, text))
        }
    }
}

/// What of the environment is secret: the patterns, and the names they met. A restart has to find each of those
/// names again; a name that the job never had is nothing to ask anybody for.
pub fn secrets(env: &[(OsString, OsString)], patterns: Vec<String>) -> Vec<String> {
    let met = env.iter().filter(|(key, _)| is_secret(key, &patterns));
    let names: BTreeSet<String> = met.filter_map(|(key, _)| key.to_str().map(str::to_owned)).collect();
    let wild = patterns.into_iter().filter(|pattern| pattern.contains('*'));
    wild.chain(names).collect()
}

/// A job started from inside a job is a job of its own.
pub fn unmark(variables: &mut Vec<(OsString, OsString)>) {
    variables.retain(|(key, _)| key != env::JOB_ID && key != env::RUN && key != env::STATE_DIR);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_an_environment_is_none() {
        let pair = |key: &str, value: &str| (OsString::from(key), OsString::from(value));
        let env = [pair("A", "1"), pair("B", ""), pair("=C:", "x=y")];
        let mut raw = encode_env(&env).join(&0);
        raw.extend([0, 0]);
        assert_eq!(decode_env(&raw).unwrap(), env);
        for cut in 0..raw.len() {
            assert_eq!(decode_env(&raw[..cut]), None, "cut at {cut}");
        }
        assert_eq!(decode_env(&[0; 512]), None, "a crash may leave zeros");
        assert_eq!(decode_env(&[0, 0]), Some(Vec::new()));
    }

    #[test]
    fn globs_match_whole_names() {
        let secret = |name: &str, pattern: &str| is_secret(OsStr::new(name), &[pattern.to_owned()]);
        assert!(secret("AWS_SECRET", "AWS_*") && secret("TOKEN", "TOKEN") && secret("MY_TOKEN_2", "*TOKEN*"));
        assert!(!secret("AWS", "AWS_*") && !secret("TOKENS", "TOKEN") && !secret("X", ""));
    }
}
