//! What somebody reads who has made a mistake: one line, which names what is wrong and then says what to do.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use crate::env::TestEnv;

/// Words, how it ends, what is said. `@` stands for the state directory.
type Row = (&'static [&'static str], i32, &'static str);

#[track_caller]
fn check(env: &TestEnv, rows: &[Row]) {
    for (words, code, said) in rows {
        let out = env.outlive(words.iter());
        let said = said.replace('@', &env.state().display().to_string());
        assert_eq!((out.code, &*out.stderr), (*code, &*format!("outlive: {said}\n")), "{words:?}");
        assert_eq!(out.stdout, "", "{words:?}");
    }
}

#[test]
fn words_that_make_no_command() {
    check(
        &TestEnv::new(),
        &[
            (&["lgos"], 2, "there is no command 'lgos' (did you mean 'outlive logs'?)"),
            (&["kill", "web"], 2, "there is no command 'kill' (did you mean 'outlive stop'?)"),
            (&["status"], 2, "there is no command 'status' (did you mean 'outlive show'?)"),
            (&["start", "web"], 2, "there is no command 'start' (did you mean 'outlive run'?)"),
            (&["rm", "web"], 2, "there is no command 'rm' (did you mean 'outlive prune'?)"),
            (&["make", "-j4"], 2, "there is no command 'make' (to launch it: outlive run -- make)"),
            (&["help", "nosuch"], 2, "there is no command 'nosuch' (see 'outlive help')"),
            (&["help", "agent"], 2, "there is no command 'agent' (did you mean 'outlive help agents'?)"),
            (&["--json"], 2, "no command is given (see 'outlive help')"),
            (&["--foo"], 2, "outlive has no option '--foo' (see 'outlive help')"),
            (&["--state-dir"], 2, "'--state-dir' needs a value (see 'outlive help')"),
            (
                &["--color", "pink", "ls"],
                2,
                "'pink' is not a value of '--color' (one of: auto, always, never)",
            ),
            (&["--", "run", "true"], 2, "'run' is one word too many (see 'outlive help')"),
        ],
    );
}

#[test]
fn options_that_do_not_exist_or_do_not_fit() {
    const NOT_RUNS: &str = "(options of the command go after it; see 'outlive help run')";
    let unknown = format!("outlive: 'run' has no option '-x' {NOT_RUNS}\n");
    let env = TestEnv::new();
    assert_eq!(env.outlive(["run", "-x", "true"]).ended(125).stderr, unknown);
    check(
        &env,
        &[
            (&["run", "--nmae", "web", "true"], 125, "'run' has no option '--nmae' (did you mean '--name'?)"),
            (&["ls", "--foo"], 2, "'ls' has no option '--foo' (see 'outlive help ls')"),
            (&["run"], 125, "'run' needs a COMMAND (outlive run -- COMMAND [ARGUMENT]...)"),
            (&["run", "--"], 125, "'run' needs a COMMAND (outlive run -- COMMAND [ARGUMENT]...)"),
            (&["stop", "--force", "x"], 2, "'stop' has no option '--force' (to kill at once: -t 0)"),
            (&["stop", "-9", "x"], 2, "'stop' has no option '-9' (to kill at once: -s KILL)"),
            (&["stop", "-KILL", "x"], 2, "'stop' has no option '-K' (to kill at once: -s KILL)"),
            (&["logs", "--tail", "5", "x"], 2, "'logs' has no option '--tail' (the last lines: -n NUMBER)"),
            (&["logs", "-20", "x"], 2, "'logs' has no option '-2' (the last lines: -n NUMBER)"),
            (&["run", "-n", "web", "true"], 125, "'run' has no option '-n' (a name: --name NAME)"),
            (&["run", "-d", "true"], 125, "'run' has no option '-d' (it always lets go of the command)"),
            (
                &["run", "--ready-timeout", "5", "true"],
                125,
                "'--ready-timeout' needs '--ready-log', '--ready-port', '--ready-file' or '--ready-cmd' as well \
                 (see 'outlive help run')",
            ),
            (&["stop"], 2, "'stop' needs a JOB (an id or a name, see 'outlive ls')"),
            (&["logs", "a", "b"], 2, "'b' is one word too many (see 'outlive help logs')"),
            (&["run", "--reuse", "true"], 125, "'run' needs '--name NAME' as well (see 'outlive help run')"),
            (
                &["run", "--on-owner-exit", "stop", "true"],
                125,
                "'run' needs '--owner PID|parent' as well (see 'outlive help run')",
            ),
            (
                &["run", "--name", "a", "--name", "b", "true"],
                125,
                "'--name' can be given only once (see 'outlive help run')",
            ),
            (
                &["run", "--wait", "--ready-port", "80", "true"],
                125,
                "'--wait' and '--ready-port' cannot go together (see 'outlive help run')",
            ),
            (&["wait", "-t"], 125, "'--timeout' needs a value (see 'outlive help wait')"),
            (&["ls", "--watch"], 2, "--watch draws on a terminal (for a program: outlive events --follow)"),
        ],
    );
}

#[test]
fn values_that_are_none() {
    check(
        &TestEnv::new(),
        &[
            (
                &["wait", "-t", "abc"],
                125,
                "--timeout: 'abc' is not a duration (examples: 10, 1.5s, 500ms, 5m, 1h30m)",
            ),
            (
                &["run", "-t", "99999999999999999999", "true"],
                125,
                "--timeout: '99999999999999999999' is too large for a duration",
            ),
            (
                &["stop", "-t", "-5", "web"],
                2,
                "--grace: '-5' is not a duration (examples: 10, 1.5s, 500ms, 5m, 1h30m)",
            ),
            (
                &["stop", "-s", "FOO", "web"],
                2,
                "--signal: 'FOO' is not a signal (examples: TERM, SIGINT, hup, 9)",
            ),
            (
                &["run", "--max-output", "-1", "true"],
                125,
                "--max-output: '-1' is not a size (examples: 500k, 10M, 1GiB, none)",
            ),
            (&["events", "--since", "abc"], 2, "--since: 'abc' is not a number (examples: 0, 20)"),
            (&["logs", "-n", "-5", "web"], 2, "--lines: '-5' is not a number (examples: 0, 20)"),
            (&["prune", "--keep", "x"], 2, "--keep: 'x' is not a number (examples: 0, 20)"),
            (&["ls", "--owner", "x"], 2, "--owner: 'x' is not a PID (see 'ps')"),
            (&["run", "--ready-port", "0", "x"], 125, "--ready-port: '0' is not a TCP port (1 to 65535)"),
            (&["run", "-e", "FOO", "true"], 125, "--env: 'FOO' is not K=V (example: LANG=C)"),
            (&["run", "-l", "=x", "true"], 125, "--label: '=x' is not K=V (example: team=a)"),
            (
                &["run", "--secret-env", "", "true"],
                125,
                "--secret-env: '' is not the name of a variable (examples: TOKEN, AWS_*)",
            ),
            (
                &["run", "--ready-log", "(", "true"],
                125,
                "--ready-log: '(' is not a regular expression: found open group without closing ')'",
            ),
            (
                &["ls", "--state", "runing"],
                2,
                "'runing' is not a value of '--state' (did you mean 'running'?)",
            ),
            (
                &["reap", "--orphans", "kill"],
                2,
                "'kill' is not a value of '--orphans' (one of: stop, adopt, keep)",
            ),
            (
                &["run", "--name", "a b", "true"],
                125,
                "--name: 'a b' is not a name (letters, digits, '.', '_' and '-', not starting with '-' or '.')",
            ),
            (
                &["run", "--name", "k3f9a7b", "true"],
                125,
                "--name: 'k3f9a7b' is shaped like a job id (choose another name)",
            ),
            (
                &["run", "--owner", "abc", "true"],
                125,
                "owner 'abc' is not a PID (name a number, or 'parent')",
            ),
        ],
    );
}

#[test]
fn commands_that_cannot_be_executed() {
    let env = TestEnv::new();
    let file = |name: &str, text: &str, mode| {
        fs::write(env.work().join(name), text).unwrap();
        fs::set_permissions(env.work().join(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    file("plain", "x", 0o644);
    file("script", "#!/nosuch/interpreter\n", 0o755);
    fs::create_dir(env.work().join("dir")).unwrap();
    check(
        &env,
        &[
            (
                &["run", "make && ./server"],
                127,
                "cannot execute 'make && ./server': no such file or directory \
                 (is it a line for the shell? outlive run -- sh -c 'make && ./server')",
            ),
            (
                &["run", "cd", "/"],
                127,
                "cannot execute 'cd': not found in PATH (is it a line for the shell? outlive run -- sh -c '...')",
            ),
            (
                &["run", "FOO=/bar", "true"],
                127,
                "cannot execute 'FOO=/bar': no such file or directory \
                 (a variable is set by an option: outlive run -e FOO=/bar -- COMMAND)",
            ),
            (
                &["run", "~/x"],
                127,
                "cannot execute '~/x': no such file or directory (only a shell expands '~': write \"$HOME/x\")",
            ),
            (&["run", "nosuch", "x"], 127, "cannot execute 'nosuch': not found in PATH"),
            (&["run", "./nosuch"], 127, "cannot execute './nosuch': no such file or directory"),
            (&["run", ""], 127, "cannot execute '': it is empty"),
            (&["run", "./dir"], 126, "cannot execute './dir': it is a directory"),
            (&["run", "./plain"], 126, "cannot execute './plain': permission denied (chmod +x it?)"),
            (
                &["run", "./script"],
                127,
                "cannot execute './script': no such file or directory \
                 (it is there: the interpreter in its first line is not)",
            ),
            (
                &["run", "-C", "/nosuch", "true"],
                125,
                "cannot use directory /nosuch: no such file or directory",
            ),
            (
                &["run", "-o", "/nosuch/x", "true"],
                125,
                "cannot write output to /nosuch/x: no such file or directory",
            ),
            (
                &["run", "--stdin", "/nosuch", "true"],
                125,
                "cannot read stdin from /nosuch: no such file or directory",
            ),
        ],
    );
    let reason = env.json(["ls", "--state", "failed"])[0]["reason"].clone();
    assert_eq!(reason, "no such file or directory", "it is recorded in the same words");
}

#[test]
fn jobs_that_do_not_exist() {
    let env = TestEnv::new();
    check(
        &env,
        &[
            (&["show", "web"], 1, "no job 'web' (@ has none; start one: outlive run -- COMMAND)"),
            (&["ls"], 0, "no jobs in @ (start one: outlive run -- COMMAND)"),
            (&["wait"], 0, "no job is alive: there is nothing to wait for"),
            (&["wait", "--any"], 125, "no job to wait for (see 'outlive ls --all')"),
        ],
    );
    let id = env.run(["--name", "web", "--", "true"]);
    env.outlive(["wait", "web"]).ok();
    let last = if id.ends_with('x') { "y" } else { "x" };
    let near = format!("did you mean '{id}'?");
    env.outlive(["show", &id[..3]]).refused(1, &near);
    env.outlive(["show", &format!("{}{last}", &id[..6])]).refused(1, &near);
    check(
        &env,
        &[
            (&["stop", "wbe"], 1, "no job 'wbe' (did you mean 'web'?)"),
            (
                &["stop", ""],
                1,
                "no job '': the id or name is empty (did the command fail that was to print it?)",
            ),
            (&["stop", "nosuch"], 1, "no job 'nosuch' (see 'outlive ls --all')"),
            (
                &["stop", "1"],
                1,
                "no job '1' (a job is called by its id or name, not by a PID; see 'outlive ls --all')",
            ),
        ],
    );
}

/// What has the label and is over is no mistake: a script's clean-up says nothing then.
#[test]
fn labels_that_no_job_has() {
    let env = TestEnv::new();
    let id = env.run(["-l", "team=a", "--", "true"]);
    env.outlive(["wait", &id]).ok();
    for command in ["stop", "reap", "ls"] {
        let said = |label| env.outlive([command, "-l", label]).ok().stderr;
        assert_eq!(said("teem=a"), "outlive: no job has the label teem=a\n", "{command}");
        assert!(!said("team=a").contains("no job"), "{command}");
        let both = env.outlive([command, "-l", "team=a", "-l", "x=y"]).ok().stderr;
        assert_eq!(both, "outlive: no job has the labels team=a, x=y\n", "{command}");
        assert_eq!(env.outlive([command, "--json", "-l", "teem=a"]).ok().stderr, "", "{command}");
    }
    assert_eq!(env.outlive(["ls", "-q", "-l", "teem=a"]).ok().stderr, "");
}

/// Nobody's directory is made by looking, be it under the wrong user or in the wrong home.
#[test]
fn who_only_looks_leaves_nothing_behind() {
    let env = TestEnv::new();
    for words in [
        &["ls", "-a"][..],
        &["show", "x"],
        &["wait"],
        &["wait", "x"],
        &["logs", "x"],
        &["events"],
        &["stop", "--all"],
        &["stop", "x"],
        &["reap"],
        &["prune"],
        &["doctor"],
        &["run", "--name", "a b", "true"],
        &["help"],
    ] {
        env.outlive(words);
        assert!(!env.state().exists(), "{words:?}");
    }
    let above: Vec<_> = fs::read_dir(env.state().parent().unwrap()).unwrap().flatten().collect();
    assert_eq!(above.len(), 2, "home and work: {above:?}");
}

#[test]
fn state_directories_that_are_none() {
    let env = TestEnv::new();
    fs::write(env.state(), "").unwrap();
    let none = "state directory @ is not a directory (set OUTLIVE_STATE_DIR to another)";
    check(&env, &[(&["ls"], 125, none), (&["run", "true"], 125, none), (&["doctor"], 125, none)]);
    fs::remove_file(env.state()).unwrap();
    symlink("/nosuch", env.state()).unwrap();
    let none = "cannot look at state directory @: no such file or directory \
                (set OUTLIVE_STATE_DIR to a directory of yours)";
    check(&env, &[(&["ls"], 125, none), (&["run", "true"], 125, none)]);
    fs::remove_file(env.state()).unwrap();
    let state = ["--state-dir", "/proc/nosuch"];
    let out = env.outlive(state.iter().chain(&["run", "true"]));
    out.refused(125, "cannot create /proc/nosuch: no such file or directory (set OUTLIVE_STATE_DIR to ");
    let lacks = env.outlive(state.iter().chain(&["doctor"])).ended(1).stdout;
    assert!(lacks.contains("LACK  files can be made in the state directory: "), "{lacks}");
}

#[test]
fn a_variable_that_says_neither_is_refused() {
    let env = TestEnv::new();
    let with = |value: &str| {
        let mut command = env.command(["run", "true"]);
        crate::env::Output::of(command.env("OUTLIVE_SYNC", value))
    };
    with("maybe").refused(125, "outlive: OUTLIVE_SYNC is 'maybe' (set it to 'on' or 'off')\n");
    for value in ["on", "off", ""] {
        with(value).ok();
    }
}

/// Escape, bell, delete, and the control characters of Latin-1: in names, paths, labels, process names and output.
const OBEYED: &str = "\x1b[2J\x07\x7f\u{9b}2J";
const SHOWN: &str = "\\u{1b}[2J\\u{7}\\u{7f}\\u{9b}2J";

#[track_caller]
fn is_printable(text: &str) {
    assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
}

#[test]
fn what_a_terminal_obeys_is_shown_escaped() {
    let env = TestEnv::new();
    let odd = env.work().join(OBEYED);
    fs::create_dir(&odd).unwrap();
    let (dir, label, script) = (odd.to_str().unwrap(), format!("k={OBEYED}"), format!("printf '{OBEYED}\n'"));
    let words = ["run", "-C", dir, "-l", &label, "-o", "out", "--", "sh", "-c", &script];
    let id = env.outlive(words).ok().id();
    env.outlive(["wait", "--group", &id]).ok();
    let shown = env.outlive(["show", &id]).ok().stdout;
    is_printable(&shown);
    // The command, directory, label and last line.
    assert_eq!(shown.matches(SHOWN).count(), 4, "{shown}");
    let table = env.outlive(["ls", "-a"]).ok().stdout;
    is_printable(&table);
    assert!(table.contains(SHOWN), "{table}");
    assert_eq!(env.outlive(["logs", &id]).ok().stdout, format!("{OBEYED}\n"), "data stays what it is");
    fs::remove_dir(&odd).unwrap();
    for (words, code) in [
        (vec!["show", OBEYED], 1),
        (vec![OBEYED], 2),
        (vec!["run", "--name", OBEYED, "true"], 125),
        (vec!["run", OBEYED], 127),
        (vec!["run", "-C", dir, "true"], 125),
        (vec!["restart", &id], 1),
        (vec!["run", "--ready-cmd", "false", "--", "sh", "-c", &format!("{script}; exit 3")], 3),
    ] {
        let said = env.outlive(&words).ended(code).stderr;
        is_printable(&said);
        assert!(said.contains(SHOWN), "{words:?}: {said}");
    }
    let two = env.outlive(["show", "a\noutlive: b"]).ended(1).stderr;
    assert_eq!(two.lines().count(), 1, "{two}");
}

/// What could not be written was not told, be it help or the id of a job.
#[test]
fn a_full_or_closed_stdout_is_an_error() {
    let env = TestEnv::new();
    let said = "cannot write to stdout: it is closed, or the disk that it leads to is full\n";
    // Where the standard library begins the program, it has put /dev/null there.
    let own_main = cfg!(all(target_os = "linux", target_env = "gnu", not(feature = "portable")));
    let closes = if own_main { &["/dev/full", "&-"][..] } else { &["/dev/full"] };
    for to in closes {
        for words in ["--help", "--version", "help run", "run --help", "help agents", "ls --json"] {
            env.bash(&format!("$O {words} >{to}"), &[]).refused(125, said);
        }
        let out = env.bash(&format!("$O run -- sleep 1000 >{to}"), &[]).ended(125);
        let id = env.json(["ls"])[0]["id"].as_str().unwrap().to_owned();
        assert!(
            out.stderr.contains(&format!("job {id} was launched")) && out.stderr.contains(said),
            "{out:?}"
        );
        env.outlive(["stop", &id]).ok();
    }
}
