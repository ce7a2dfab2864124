//! What is named as secret is written nowhere.

use std::fs;
use std::path::Path;

use crate::env::{Output, TestEnv};

const PRINT: &str = "echo A=$AWS_KEY B=$AWS_ID T=$TOKEN P=$PLAIN >&3";

/// Every file below the directory that holds this text, in its name or in itself.
fn holding(dir: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            found.extend(holding(&path, text));
        } else if kind.is_file() {
            let raw = fs::read(&path).unwrap();
            if raw.windows(text.len()).any(|window| window == text.as_bytes()) {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

/// Runs outlive with these variables in its environment.
fn with(env: &TestEnv, words: &[&str], variables: &[(&str, &str)]) -> Output {
    Output::of(env.command(words).envs(variables.iter().copied()))
}

#[test]
fn secrets_are_not_written_and_come_from_whoever_restarts() {
    let all = [("AWS_KEY", "sesame-1"), ("AWS_ID", "sesame-2"), ("TOKEN", "sesame-3"), ("PLAIN", "plain")];
    // By name, by pattern, and for everybody who wants it always.
    let by_option = (&["--secret-env", "TOKEN", "--secret-env", "AWS_*"][..], None);
    let always = (&[][..], Some(("OUTLIVE_SECRET_ENV", "AWS_*, TOKEN:NOT_SET")));
    let mixed = (&["--secret-env", "*OKEN"][..], Some(("OUTLIVE_SECRET_ENV", "AWS_KEY AWS_ID")));
    for (options, variable) in [by_option, always, mixed] {
        let env = TestEnv::new();
        let mut fifo = env.fifo("life");
        let script = format!("exec 3>\"$1\"; {PRINT}; exec sleep 1000");
        let words: Vec<&str> = ["run"]
            .iter()
            .chain(options)
            .chain(&["-e", "EXTRA=1", "--", "sh", "-c", &script, "sh", fifo.path()])
            .copied()
            .collect();
        let variables: Vec<(&str, &str)> = all.into_iter().chain(variable).collect();
        let id = with(&env, &words, &variables).ok().id();
        assert_eq!(fifo.line(), "A=sesame-1 B=sesame-2 T=sesame-3 P=plain");
        env.outlive(["show", &id]).ok();
        env.outlive(["pause", &id]).ok();
        env.outlive(["resume", &id]).ok();
        assert_eq!(holding(&env.state(), "sesame"), Vec::<String>::new());
        assert_eq!(holding(&env.state(), "plain").len(), 1, "the rest is kept for restart");

        // Refused before the job is stopped, and with the names of what is missing.
        let missing = with(&env, &["restart", &id], &[("AWS_ID", "sesame-5")]);
        let missing = missing.refused(1, "TOKEN");
        assert!(missing.stderr.contains("AWS_KEY") && !missing.stderr.contains("sesame"), "{missing:?}");
        assert!(!missing.stderr.contains("NOT_SET"), "the job never had it: {missing:?}");
        assert_eq!((env.state_of(&id), env.job(&id)["run"].as_u64()), ("running".into(), Some(1)));

        let caller =
            [("AWS_KEY", "sesame-4"), ("AWS_ID", "sesame-5"), ("TOKEN", "sesame-6"), ("PLAIN", "other")];
        let taken = with(&env, &["restart", &id], &caller).ok();
        for name in ["AWS_KEY", "AWS_ID", "TOKEN"] {
            assert!(taken.stderr.contains(name), "{taken:?}");
        }
        assert!(!taken.stderr.contains("sesame") && !taken.stderr.contains("PLAIN"), "{taken:?}");
        assert_eq!(fifo.line(), "A=sesame-4 B=sesame-5 T=sesame-6 P=plain");
        assert_eq!(holding(&env.state(), "sesame"), Vec::<String>::new());
    }
}

/// A list of what is always secret asks nothing of a job that has none of it.
#[test]
fn what_a_job_never_had_is_not_missing() {
    let env = TestEnv::new();
    let always = [("OUTLIVE_SECRET_ENV", "TOKEN,AWS_*")];
    let id = with(&env, &["run", "sh", "-c", "echo T=$TOKEN"], &always).ok().id();
    env.outlive(["wait", &id]).ok();
    let again = env.outlive(["restart", &id]).ok();
    assert_eq!(again.stderr, "");
    env.outlive(["wait", &id]).ok();
    assert_eq!(env.outlive(["logs", "--run", "2", &id]).ok().stdout, "T=\n");
}

/// A variable set for the job alone can be secret too.
#[test]
fn a_secret_given_as_an_option_is_secret() {
    let env = TestEnv::new();
    let id = env.run(["--secret-env", "TOKEN", "-e", "TOKEN=sesame", "--", "sh", "-c", "echo ${#TOKEN}"]);
    env.outlive(["wait", &id]).ok();
    assert_eq!(env.outlive(["logs", &id]).ok().stdout, "6\n");
    assert_eq!(holding(&env.state(), "sesame"), Vec::<String>::new());
    env.outlive(["restart", &id]).refused(1, "TOKEN");
}
