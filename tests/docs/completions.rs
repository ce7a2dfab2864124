//! What bash, zsh and fish offer, asked of the shells themselves: in bash of readline on a terminal, in zsh of a
//! compadd that tells (shells/capture.zsh), in fish of `complete -C`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

use clap::CommandFactory;
use clap_complete::Shell as Generated;

use crate::pty::Terminal;
use crate::scratch::Scratch;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shell {
    Bash,
    /// With the package bash-completion.
    BashCompletion,
    Zsh,
    Fish,
}

const BASH_COMPLETION: &str = "/usr/share/bash-completion/bash_completion";

impl Shell {
    /// Those that are here. What is missing is told, whatever cargo does with the output of tests.
    fn all() -> Vec<Self> {
        let installed = |program: &str| Command::new(program).arg("--version").output().is_ok();
        let all = [
            (Self::Bash, installed("bash")),
            (Self::BashCompletion, installed("bash") && Path::new(BASH_COMPLETION).exists()),
            (Self::Zsh, installed("zsh")),
            (Self::Fish, installed("fish")),
        ];
        for (shell, _) in all.iter().filter(|(_, here)| !here) {
            let _ = writeln!(
                std::io::stderr(),
                "SKIPPED: {shell:?} is not installed: its completion was not tried"
            );
        }
        all.into_iter().filter(|(_, here)| *here).map(|(shell, _)| shell).collect()
    }

    /// What this shell offers in place of the last word of each line, with descriptions where it shows them.
    fn offers(self, scratch: &Scratch, lines: &[&str]) -> Vec<Vec<Offer>> {
        match self {
            Self::Bash | Self::BashCompletion => readline(scratch, lines, self == Self::BashCompletion),
            Self::Zsh => {
                let mut zsh = scratch.command("zsh");
                zsh.arg("-f").arg(crate::path("tests/docs/shells/capture.zsh"));
                let told = pairs(zsh.arg(crate::path("completions")).args(lines));
                told.split(|(word, _)| word == "end").take(lines.len()).map(<[Offer]>::to_vec).collect()
            }
            Self::Fish => {
                let script = crate::path("completions/outlive.fish");
                let offers = |line: &&str| {
                    let mut fish = scratch.command("fish");
                    let code = "source $argv[1]; complete -C $argv[2]";
                    pairs(fish.args(["--no-config", "-c", code]).arg(&script).arg(line))
                };
                lines.iter().map(offers).collect()
            }
        }
    }
}

/// A candidate and its description.
type Offer = (String, String);

fn pairs(command: &mut Command) -> Vec<Offer> {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    text.lines()
        .map(|line| line.split_once('\t').unwrap_or((line, "")))
        .map(|(word, about)| (word.to_owned(), about.to_owned()))
        .collect()
}

/// An interactive bash is given each line and told to insert all completions of its last word.
fn readline(scratch: &Scratch, lines: &[&str], package: bool) -> Vec<Vec<Offer>> {
    let rc = format!(
        "PS1='READY>'\n{}\nsource '{}'\n\
         bind 'set enable-bracketed-paste off'\nbind '\"\\C-t\": insert-completions'\n\
         show() {{ printf '\\n<<%s>>\\n' \"$READLINE_LINE\"; READLINE_LINE=; }}\nbind -x '\"\\C-k\": show'\n",
        if package { format!("source {BASH_COMPLETION}") } else { "complete -r".to_owned() },
        crate::path("completions/outlive.bash").display(),
    );
    let rc_file = scratch.home.join(format!(".rc-{package}"));
    std::fs::write(&rc_file, rc).unwrap();
    let mut terminal = Terminal::new(50, 2000);
    let mut bash = scratch.command("bash");
    bash.args(["--noprofile", "--rcfile"]).arg(rc_file).arg("-i").env("TERM", "dumb");
    bash.stdin(terminal.stdio()).stdout(terminal.stdio()).stderr(terminal.stdio());
    let mut child = bash.spawn().unwrap();
    terminal.until("READY>");
    let offers = |line: &&str| {
        terminal.master.write_all(format!("{line}\x14\x0b").as_bytes()).unwrap();
        terminal.until("<<");
        inserted(line, terminal.until(">>").trim_end_matches(">>"))
    };
    let all = lines.iter().map(offers).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    all
}

/// The words that readline has put in place of a line's last.
fn inserted(line: &str, now: &str) -> Vec<Offer> {
    let (before, last) = line.split_at(line.rfind(' ').map_or(0, |at| at + 1));
    let words = now.strip_prefix(before).unwrap_or_else(|| panic!("{line:?} became {now:?}"));
    if words == last {
        return Vec::new();
    }
    // Of what follows a '=' or ':' the rest only is inserted.
    let kept = &last[..last.rfind(['=', ':']).map_or(0, |at| at + 1)];
    let whole = |(at, word): (usize, &str)| if at == 0 { word.to_owned() } else { format!("{kept}{word}") };
    words.split_ascii_whitespace().enumerate().map(|word| (whole(word), String::new())).collect()
}

/// A place with a running, a paused, a nameless and an ended job, files and a command of its own.
fn furnished(name: &str) -> (Scratch, BTreeMap<&'static str, String>) {
    let scratch = Scratch::new(name);
    let mut ids = BTreeMap::new();
    let mut run = |key, words: &[&str]| {
        let id = scratch.outlive(&[&["run"], words].concat());
        ids.insert(key, id.trim().to_owned());
    };
    run("web", &["--name", "web", "-l", "team=a", "--", "sleep", "600"]);
    run("asleep", &["--name", "asleep", "-l", "url=http://x", "--", "sleep", "601"]);
    run("nameless", &["-l", "team=b", "--", "sleep", "602"]);
    run("ended", &["--name", "over", "-l", "team=old", "--", "false"]);
    scratch.outlive(&["wait", "over"]);
    scratch.outlive(&["pause", "asleep"]);
    scratch.outlive(&["events", "--reader", "inbox"]);
    std::fs::create_dir(scratch.home.join("folder-of-ours")).unwrap();
    std::fs::write(scratch.home.join("file-of-ours"), "").unwrap();
    (scratch, ids)
}

/// The last word of a line, and all that may be offered for it.
#[test]
fn each_shell_offers_what_fits() {
    let (scratch, ids) = furnished("offers");
    let id = |key: &str| ids[key].as_str();
    let begun = format!("outlive show {}", &ids["web"][..4]);
    let state_dir = scratch.state_dir();
    let elsewhere = format!("outlive --state-dir {} stop ", state_dir.display());
    let nowhere = format!("outlive --state-dir={}/nowhere stop ", scratch.home.display());
    let table: Vec<(&str, Vec<&str>)> = vec![
        ("outlive sto", vec!["stop"]),
        ("outlive help age", vec!["agents"]),
        ("outlive stop ", vec!["asleep", "web", id("nameless")]),
        ("outlive stop web ", vec!["asleep", id("nameless")]),
        ("outlive wait ", vec!["asleep", "web", id("nameless")]),
        ("outlive wait ov", vec!["over"]),
        ("outlive restart ", vec!["asleep", "web", id("nameless")]),
        ("outlive pause ", vec!["web", id("nameless")]),
        ("outlive resume ", vec!["asleep"]),
        ("outlive prune ", vec!["over"]),
        ("outlive show ", vec!["asleep", "over", "web", id("nameless")]),
        ("outlive logs we", vec!["web"]),
        (&begun, vec![id("web")]),
        (&elsewhere, vec!["asleep", "web", id("nameless")]),
        (&nowhere, vec![]),
        ("outlive stop -l ", vec!["team=a", "team=b", "url=http://x"]),
        ("outlive stop -l team=", vec!["team=a", "team=b"]),
        ("outlive stop --label=url=http:", vec!["--label=url=http://x"]),
        ("outlive ls -l team=o", vec!["team=old"]),
        ("outlive stop -s KIL", vec!["KILL"]),
        ("outlive run --stop-signal=KIL", vec!["--stop-signal=KILL"]),
        ("outlive ls --state paus", vec!["paused"]),
        ("outlive ls --state=ru", vec!["--state=running"]),
        ("outlive reap --orphans ", vec!["adopt", "keep", "stop"]),
        ("outlive events --reader ", vec!["inbox"]),
        ("outlive stop --gra", vec!["--grace"]),
        ("outlive reap --dry-run --d", vec![]),
        ("outlive run --cwd fol", vec!["folder-of-ours/"]),
        ("outlive run --output=file", vec!["--output=file-of-ours"]),
        ("outlive run mkfif", vec!["mkfifo"]),
        ("outlive run -- mkfif", vec!["mkfifo"]),
        ("outlive run --wait -- cat file-o", vec!["file-of-ours"]),
        ("outlive run cat -- file-o", vec!["file-of-ours"]),
        ("outlive nosuch x", vec![]),
    ];
    for shell in Shell::all() {
        let lines: Vec<&str> = table.iter().map(|(line, _)| *line).collect();
        let offers = shell.offers(&scratch, &lines);
        assert_eq!(offers.len(), table.len(), "{shell:?}");
        for ((line, expected), offers) in table.iter().zip(offers) {
            let mut found: Vec<String> = offers.iter().map(|(word, _)| plain(word)).collect();
            found.sort();
            found.dedup();
            let mut expected: Vec<String> = expected.iter().map(|word| plain(word)).collect();
            expected.sort();
            assert_eq!(found, expected, "{shell:?}: {line:?}");
        }
    }
}

/// Some shells show a directory with its slash, and some quote a colon.
fn plain(word: &str) -> String {
    word.trim_end_matches('/').replace('\\', "")
}

#[test]
fn jobs_have_descriptions_where_the_shell_shows_them() {
    let (scratch, _) = furnished("descriptions");
    for shell in Shell::all().into_iter().filter(|shell| matches!(shell, Shell::Zsh | Shell::Fish)) {
        let table = [
            ("outlive stop we", "web", "running: sleep 600"),
            ("outlive show ov", "over", "exited 1: false"),
            ("outlive rea", "reap", "Settle what ended unseen"),
        ];
        let offers = shell.offers(&scratch, &table.map(|(line, ..)| line));
        for ((line, word, about), found) in table.into_iter().zip(offers) {
            let fits = |(offered, told): &Offer| offered == word && told.contains(about);
            assert!(found.iter().any(fits), "{shell:?}: {line:?}: {found:?}");
        }
    }
}

/// The words that the scripts ask with.
fn ask(scratch: &Scratch, words: &[&str]) -> Command {
    let mut command = scratch.command("outlive");
    command.arg("outlive:complete").args(words);
    command
}

fn answer(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Everything below a directory: content and the time of its last change.
fn snapshot(dir: &Path) -> BTreeMap<OsString, (SystemTime, Vec<u8>)> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let meta = entry.metadata().unwrap();
        let content = if meta.is_file() { std::fs::read(entry.path()).unwrap() } else { Vec::new() };
        all.insert(entry.path().into_os_string(), (meta.modified().unwrap(), content));
        if meta.is_dir() {
            all.extend(snapshot(&entry.path()));
        }
    }
    all
}

#[test]
fn asking_makes_and_changes_nothing() {
    let (scratch, ids) = furnished("asking");
    // An end that nobody saw stays unsettled, and a torn ledger torn.
    let exit = scratch.state_dir().join("jobs").join(&ids["ended"]).join("1/exit.json");
    std::fs::write(exit, "{\"exec").unwrap();
    let ledger = scratch.state_dir().join("ledger.jsonl");
    File::options().append(true).open(&ledger).unwrap().write_all(b"{\"v\":1,\"se").unwrap();
    std::fs::remove_file(scratch.state_dir().join("ledger.lock")).unwrap();
    let before = snapshot(&scratch.state_dir());
    for words in
        [&["stop", ""][..], &["show", ""], &["prune", ""], &["stop", "-l", ""], &["events", "--reader", ""]]
    {
        answer(&mut ask(&scratch, words));
    }
    assert!(answer(&mut ask(&scratch, &["stop", ""])).contains("web\t"), "a torn ledger hides no job");
    assert_eq!(snapshot(&scratch.state_dir()), before);

    let elsewhere = scratch.home.join("elsewhere");
    let asked = answer(ask(&scratch, &["stop", ""]).env("OUTLIVE_STATE_DIR", &elsewhere));
    assert_eq!((asked.as_str(), elsewhere.exists()), ("words job\n", false));
}

#[test]
fn asking_never_fails_aloud() {
    let scratch = Scratch::new("aloud");
    for state_dir in ["/dev/null", "/etc/passwd/x", "/proc/1", "~/nowhere", ""] {
        assert_eq!(
            answer(&mut ask(&scratch, &["--state-dir", state_dir, "stop", ""])),
            "words job\n",
            "{state_dir}"
        );
    }
    assert_eq!(answer(ask(&scratch, &["stop", ""]).env_remove("HOME")), "words job\n");
    assert_eq!(answer(&mut ask(&scratch, &[])), "words nothing\n");
    let not_text = std::os::unix::ffi::OsStringExt::from_vec(vec![0xff]);
    let not_text: OsString = not_text;
    assert_eq!(answer(ask(&scratch, &["stop"]).arg(not_text)), "words job\n");
}

/// A shell whose PATH has no outlive shows no error at its prompt.
#[test]
fn without_the_program_nothing_is_offered() {
    let scratch = Scratch::new("without");
    let bin = scratch.home.join("bin");
    std::fs::create_dir(&bin).unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let found = Command::new("sh").args(["-c", &format!("command -v {shell}")]).output().unwrap();
        let found = String::from_utf8(found.stdout).unwrap();
        if !found.is_empty() {
            std::os::unix::fs::symlink(found.trim(), bin.join(shell)).unwrap();
        }
    }
    let quiet = |program: &str, words: &[&str], script: &str| {
        let mut shell = scratch.command(program);
        let output = shell.args(words).arg(crate::path(script)).env("PATH", &bin).output().unwrap();
        assert!(output.stderr.is_empty() && output.stdout == b"0\n", "{program}: {output:?}");
    };
    for shell in Shell::all() {
        match shell {
            Shell::Bash => quiet(
                "bash",
                &[
                    "--norc",
                    "-c",
                    "source $0; COMP_LINE='outlive stop ' COMP_POINT=13 COMP_WORDS=(outlive stop '') COMP_CWORD=2; _outlive; echo ${#COMPREPLY[@]}",
                ],
                "completions/outlive.bash",
            ),
            Shell::Fish => quiet(
                "fish",
                &["--no-config", "-c", "source $argv[1]; count (complete -C 'outlive stop '); or true"],
                "completions/outlive.fish",
            ),
            // Its own completion system is not to be had without the tools it needs; the call is the same as in bash.
            Shell::Zsh | Shell::BashCompletion => {}
        }
    }
}

/// For these the options only, as clap writes them.
#[test]
fn other_shells_have_what_clap_generates() {
    for (shell, name) in
        [(Generated::Elvish, "completions/outlive.elv"), (Generated::PowerShell, "completions/outlive.ps1")]
    {
        let mut generated = Vec::new();
        clap_complete::generate(shell, &mut outlive::cli::Cli::command(), "outlive", &mut generated);
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(crate::path(name), &generated).unwrap();
        }
        let same = std::fs::read(crate::path(name)).is_ok_and(|kept| kept == generated);
        assert!(same, "{name} is out of date; write it with: UPDATE=1 cargo test --test docs");
    }
}

/// Each script is read by its own shell, where that is installed.
#[test]
fn the_scripts_are_understood_by_their_shells() {
    let scripts = [
        ("bash", "completions/outlive.bash", &["--noprofile", "--norc", "-n"][..]),
        ("zsh", "completions/_outlive", &["-f", "-n"][..]),
        ("fish", "completions/outlive.fish", &["--no-config", "--no-execute"][..]),
    ];
    for (shell, script, options) in scripts {
        let Ok(output) = Command::new(shell).args(options).arg(crate::path(script)).output() else {
            continue;
        };
        assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
