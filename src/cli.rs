//! The command line, as clap sees it. Nothing is decided here.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use regex_lite::Regex;

use crate::job::check_name;
use crate::state::State;
use crate::units;

/// Run commands that outlive you, and know how they ended.
#[derive(Debug, Parser)]
#[command(
    name = "outlive",
    version = env!("OUTLIVE_VERSION"),
    max_term_width = 100,
    after_help = "\
Start with:  id=$(outlive run -- make)     outlive ls     outlive wait \"$id\"

JOB is an id, a name, or the first 4 or more characters of an id.
More: 'man outlive', 'man outlive-run'; for programs: 'outlive help agents'."
)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

/// One command alone: a launch need not lay out what every other command takes.
#[derive(Debug, Parser)]
#[command(name = "outlive")]
struct Just<T: Args> {
    #[command(flatten)]
    global: Global,
    #[command(flatten)]
    args: T,
}

impl Cli {
    /// Parses these words, the program's name first.
    pub fn from_words(words: &[OsString]) -> Result<Self, clap::Error> {
        // Help and errors are left to the whole definition: they are to say the same whoever asks.
        match Self::plain(words).or_else(|| Self::alone(words)) {
            Some(cli) => Ok(cli),
            None => Self::try_parse_from(words),
        }
    }

    /// The commonest lines of scripts have no option, and then there is nothing to parse.
    fn plain(words: &[OsString]) -> Option<Self> {
        let (command, rest) = words.get(1..)?.split_first()?;
        let is_option = |word: &OsString| word.as_encoded_bytes().starts_with(b"-");
        let command = match command.to_str()? {
            "run" => {
                let command = match rest.split_first()? {
                    (first, rest) if first == "--" => rest,
                    (first, _) if is_option(first) => return None,
                    _ => rest,
                };
                let command = Some(command.to_vec()).filter(|command| !command.is_empty())?;
                Command::Run(Box::new(Run { command, ..Run::default() }))
            }
            name @ ("wait" | "stop") if !rest.is_empty() && !rest.iter().any(is_option) => {
                let jobs = rest.iter().map(|word| word.to_str().map(str::to_owned)).collect::<Option<_>>()?;
                match name {
                    "wait" => Command::Wait(Wait { jobs, ..Wait::default() }),
                    _ => Command::Stop(Stop { jobs, ..Stop::default() }),
                }
            }
            _ => return None,
        };
        Some(Self { global: Global::default(), command })
    }

    fn alone(words: &[OsString]) -> Option<Self> {
        fn parse<T: Args>(words: &[OsString], command: impl Fn(T) -> Command) -> Option<Cli> {
            let words = words.iter().take(1).chain(words.iter().skip(2));
            let Just { global, args } = Just::try_parse_from(words).ok()?;
            Some(Cli { global, command: command(args) })
        }
        match words.get(1)?.to_str()? {
            "run" => parse(words, |args| Command::Run(Box::new(args))),
            "ls" => parse(words, Command::Ls),
            "wait" => parse(words, Command::Wait),
            "stop" => parse(words, Command::Stop),
            _ => None,
        }
    }
}

#[derive(Debug, Default, Args)]
pub struct Global {
    /// Where everything is kept [default: $OUTLIVE_STATE_DIR, else ~/.local/state/outlive]
    #[arg(long, global = true, help_heading = "Global options", value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub state_dir: Option<PathBuf>,
    /// Print JSON
    #[arg(long, global = true, help_heading = "Global options")]
    pub json: bool,
    /// When to use colour
    #[arg(long, global = true, help_heading = "Global options", value_name = "WHEN", default_value = "auto")]
    pub color: Color,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Color {
    #[default]
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Launch a command and let go of it
    Run(Box<Run>),
    /// List jobs
    #[command(visible_aliases = ["ps", "list"])]
    Ls(Ls),
    /// Wait for jobs to end and return their status
    Wait(Wait),
    /// Stop jobs, whole process trees
    Stop(Stop),
    /// Settle what ended unseen, stop what nobody owns any more
    Reap(Reap),
    /// Stop jobs and run the same commands again
    Restart(Restart),
    /// Pause jobs
    Pause(Jobs),
    /// Let paused jobs go on
    Resume(Jobs),
    /// Print the output of a job
    Logs(Logs),
    /// Print everything known about a job, and how it is known
    Show(Show),
    /// Print what happened to jobs, a JSON line each
    Events(Events),
    /// Forget finished jobs and delete their files
    Prune(Prune),
    /// Check the state directory and what this machine can do
    #[command(after_help = "\
Examples:
  outlive doctor | grep ^LACK         only what lacks

Exit status: 0 nothing lacks, 1 something does, 125 outlive itself failed.")]
    Doctor,
}

#[derive(Debug, Default, Args)]
#[command(
    override_usage = "outlive run [OPTIONS] [--] COMMAND [ARGUMENT]...",
    after_help = "\
Examples:
  id=$(outlive run -- make -j4)             start it, keep its id
  outlive run --name web --reuse -- python3 -m http.server 8000
  outlive run -- sh -c 'make && ./server'   a line for the shell
  outlive run --wait -t 10m -- ./test.sh    stay, and return its status

Exit status: 0 launched, 126 not executable, 127 not found, 125 outlive itself
failed. With --wait: see 'outlive help wait'."
)]
pub struct Run {
    /// A name to call the job by: letters, digits, '.', '_', '-'
    #[arg(long, value_parser = name)]
    pub name: Option<String>,
    /// The command's directory [default: the current one]
    #[arg(short = 'C', long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub cwd: Option<PathBuf>,
    /// Set a variable of the command's environment
    #[arg(short, long = "env", value_name = "K=V", value_parser = OsStringValueParser::new().try_map(variable))]
    pub env: Vec<(OsString, OsString)>,
    /// Do not write these variables to disk; restart takes them from its caller ('*' matches anything)
    #[arg(long, value_name = "NAME", value_parser = variable_name)]
    pub secret_env: Vec<String>,
    /// Attach a label
    #[arg(short, long = "label", value_name = "K=V", value_parser = key_value)]
    pub labels: Vec<(String, String)>,
    /// Append the output to this file [default: a file of the job's own]
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Append stderr to this file, apart from stdout
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub stderr: Option<PathBuf>,
    /// A file to read, or 'inherit' [default: nothing to read]
    #[arg(long, value_name = "FILE|inherit", value_hint = clap::ValueHint::FilePath)]
    pub stdin: Option<PathBuf>,
    /// The process on whose behalf the job runs
    #[arg(long, value_name = "PID|parent")]
    pub owner: Option<String>,
    /// When the owner has ended: keep the job for good, or stop it at once [default: the next reap stops it]
    #[arg(long, value_name = "WHAT", requires = "owner")]
    pub on_owner_exit: Option<OnOwner>,
    /// Stop the job after this long; 0: never
    #[arg(short, long, value_name = "DURATION", value_parser = units::duration, allow_negative_numbers = true)]
    pub timeout: Option<Duration>,
    /// The signal that asks the job to stop [default: TERM]
    #[arg(long, value_name = "SIGNAL", value_parser = units::signal, allow_negative_numbers = true)]
    pub stop_signal: Option<i32>,
    /// How long a stop waits before it kills [default: 10 s]
    #[arg(long, value_name = "DURATION", value_parser = units::duration, allow_negative_numbers = true)]
    pub grace: Option<Duration>,
    /// Run this shell command once the end of the job is recorded; OUTLIVE_* variables tell it how it ended
    #[arg(long, value_name = "COMMAND", value_hint = clap::ValueHint::CommandString)]
    pub on_exit: Option<OsString>,
    /// Keep the first 1 MiB and the newest SIZE of the output, or 'none' [default: 1GiB; with --output: none]
    #[arg(long, value_name = "SIZE", value_parser = max_output, allow_negative_numbers = true)]
    pub max_output: Option<MaxOutput>,
    /// Return once a line of the output matches this regular expression
    #[arg(long, value_name = "REGEX", value_parser = regex)]
    pub ready_log: Option<Regex>,
    /// Return once the job listens on this TCP port
    #[arg(long, value_name = "PORT", value_parser = units::port)]
    pub ready_port: Option<u16>,
    /// Return once this file appears
    #[arg(long, value_name = "PATH", value_hint = clap::ValueHint::FilePath)]
    pub ready_file: Option<PathBuf>,
    /// Return once this shell command succeeds
    #[arg(long, value_name = "COMMAND", value_hint = clap::ValueHint::CommandString)]
    pub ready_cmd: Option<OsString>,
    /// How long readiness may take; then 124 is returned and the job left alive [default: 60 s]
    #[arg(long, value_name = "DURATION", value_parser = units::duration, allow_negative_numbers = true)]
    pub ready_timeout: Option<Duration>,
    /// Stay: copy the output through, and return the job's status
    #[arg(short, long, conflicts_with_all = ["ready_log", "ready_port", "ready_file", "ready_cmd"])]
    pub wait: bool,
    /// If a job of this name is starting, running or paused, print its id instead
    #[arg(long, requires = "name", conflicts_with = "replace")]
    pub reuse: bool,
    /// If a job of this name is alive, stop it first
    #[arg(long, requires = "name")]
    pub replace: bool,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND", value_hint = clap::ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OnOwner {
    Keep,
    Stop,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlive ls                          what is not over
  outlive ls --all                    what is over, too
  outlive ls -q -l team=a             the ids of the jobs with this label")]
pub struct Ls {
    /// Ended jobs too
    #[arg(short, long)]
    pub all: bool,
    /// Ids only
    #[arg(short, long)]
    pub quiet: bool,
    /// A live table on a terminal, until interrupted
    #[arg(short, long, conflicts_with = "quiet")]
    pub watch: bool,
    /// Only jobs with this label
    #[arg(short, long = "label", value_name = "K=V", value_parser = key_value)]
    pub labels: Vec<(String, String)>,
    /// Only jobs in this state
    #[arg(long, value_name = "STATE")]
    pub state: Vec<State>,
    /// Only jobs that run on behalf of this process
    #[arg(long, value_name = "PID", value_parser = units::pid, allow_negative_numbers = true)]
    pub owner: Option<i32>,
    /// Only these
    #[arg(value_name = "JOB")]
    pub jobs: Vec<String>,
}

#[derive(Debug, Default, Args)]
#[command(after_help = "\
Examples:
  outlive wait web                    sleep until it has ended
  outlive wait -t 20 web              ask for at most 20 seconds
  outlive wait --any web worker       whichever ends first

Exit status: the job's own code; 128+n if signal n ended it; 124 timed out (the
job goes on) or ended by its --timeout; 122 interrupted or unknown; 125 outlive
itself failed. Several jobs: the first that is not 0.")]
pub struct Wait {
    /// Return when the first of them ends
    #[arg(long)]
    pub any: bool,
    /// Wait at most this long; 0 asks and returns
    #[arg(short, long, value_name = "DURATION", value_parser = units::duration, allow_negative_numbers = true)]
    pub timeout: Option<Duration>,
    /// Wait until nothing of the job is left, not only its leader
    #[arg(long)]
    pub group: bool,
    /// The jobs [default: every job alive now]
    #[arg(value_name = "JOB")]
    pub jobs: Vec<String>,
}

#[derive(Debug, Default, Args)]
#[command(after_help = "\
Examples:
  outlive stop web                    TERM, and KILL after its grace
  outlive stop -s INT -t 1m web       INT, and KILL after a minute
  outlive stop --all -t 0             kill every job at once

Exit status: 0 nothing of the jobs is left, 1 something is (or no such job),
125 outlive itself failed.")]
pub struct Stop {
    /// The signal to ask with [default: the job's own, else TERM]
    #[arg(short, long, value_name = "SIGNAL", value_parser = units::signal, allow_negative_numbers = true)]
    pub signal: Option<i32>,
    /// How long to wait before killing; 0: kill at once [default: the job's own, else 10 s]
    #[arg(short = 't', long, value_name = "DURATION", value_parser = units::duration, allow_negative_numbers = true)]
    pub grace: Option<Duration>,
    /// Every job with this label
    #[arg(short, long = "label", value_name = "K=V", value_parser = key_value)]
    pub labels: Vec<(String, String)>,
    /// Every job
    #[arg(long)]
    pub all: bool,
    /// The jobs
    #[arg(value_name = "JOB", required_unless_present_any = ["all", "labels"])]
    pub jobs: Vec<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlive reap --dry-run              look first
  outlive reap                        put things in order
  outlive reap --orphans adopt        supervise again what is alive

Exit status: 0 done, 1 something is still alive or could not be settled, 125
outlive itself failed.")]
pub struct Reap {
    /// Say what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Jobs whose supervisor is gone: stop them, adopt them (each gets a new one), or keep them as they are
    #[arg(long, value_name = "WHAT", default_value = "stop")]
    pub orphans: Orphans,
    /// Only jobs with this label
    #[arg(short, long = "label", value_name = "K=V", value_parser = key_value)]
    pub labels: Vec<(String, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Orphans {
    Stop,
    Adopt,
    Keep,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlive restart web                 the same command, directory, environment
  outlive restart -t 0 web            kill it first, without a grace
  TOKEN=... outlive restart web       with a secret that is not on disk

Exit status: 0 launched, 1 refused (it says why), 125 outlive itself failed.")]
pub struct Restart {
    /// How long to wait before killing what is alive [default: the job's own, else 10 s]
    #[arg(short = 't', long, value_name = "DURATION", value_parser = units::duration, allow_negative_numbers = true)]
    pub grace: Option<Duration>,
    /// A new owner for the next run
    #[arg(long, value_name = "PID|parent")]
    pub owner: Option<String>,
    /// The jobs
    #[arg(value_name = "JOB", required = true)]
    pub jobs: Vec<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlive pause web                   SIGSTOP to every process of the job
  outlive resume web                  SIGCONT

Exit status: 0 all are as asked, 1 one is not, 125 outlive itself failed.")]
pub struct Jobs {
    /// The jobs
    #[arg(value_name = "JOB", required = true)]
    pub jobs: Vec<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlive logs web                    all that it wrote
  outlive logs -f -n 20 web           the newest lines, and what comes
  outlive logs --run 1 web            what its first run wrote")]
pub struct Logs {
    /// Go on until the job has ended
    #[arg(short, long)]
    pub follow: bool,
    /// The same, and when the job is restarted, go on with its next run
    #[arg(short = 'F', long, conflicts_with = "run")]
    pub follow_restarts: bool,
    /// Only the last N lines
    #[arg(short = 'n', long, value_name = "N", value_parser = units::number::<usize>, allow_negative_numbers = true)]
    pub lines: Option<usize>,
    /// Only what this run wrote
    #[arg(long, value_name = "N", value_parser = units::number::<u32>, allow_negative_numbers = true)]
    pub run: Option<u32>,
    /// From this byte of the file on; the offset to continue from is told on stderr
    #[arg(long, value_name = "BYTES", conflicts_with = "lines", value_parser = units::number::<u64>, allow_negative_numbers = true)]
    pub since_offset: Option<u64>,
    /// No more than this many bytes; what was dropped counts for nothing
    #[arg(long, value_name = "BYTES", conflicts_with_all = ["follow", "follow_restarts"], value_parser = units::number::<u64>, allow_negative_numbers = true)]
    pub max_bytes: Option<u64>,
    /// The job
    #[arg(value_name = "JOB")]
    pub job: String,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlive show web
  outlive show --json web             the job object; see outlive-show(1)")]
pub struct Show {
    /// The job
    #[arg(value_name = "JOB")]
    pub job: String,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlive events --ends --reader me   what has ended since I last asked
  outlive events -f --since 0         everything, and what comes")]
pub struct Events {
    /// Go on as things happen
    #[arg(short, long)]
    pub follow: bool,
    /// Only records after this number
    #[arg(long, value_name = "SEQ", conflicts_with = "reader", value_parser = units::number::<u64>, allow_negative_numbers = true)]
    pub since: Option<u64>,
    /// Remember, under this name, what has been printed: each record once
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub reader: Option<String>,
    /// Only the ends of runs
    #[arg(long)]
    pub ends: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlive prune --dry-run             look first: the ids
  outlive prune --older-than 30d      what ended more than a month ago
  outlive prune --keep 100            all but the newest hundred

Exit status: 0 done, 1 a job is not over or does not exist, 125 outlive itself
failed.")]
pub struct Prune {
    /// Print the ids of those that would be forgotten, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Only jobs that ended at least this long ago
    #[arg(long, value_name = "DURATION", value_parser = units::duration, allow_negative_numbers = true)]
    pub older_than: Option<Duration>,
    /// Keep the newest N
    #[arg(long, value_name = "N", value_parser = units::number::<usize>, allow_negative_numbers = true)]
    pub keep: Option<usize>,
    /// Only these [default: every finished job]
    #[arg(value_name = "JOB")]
    pub jobs: Vec<String>,
}

/// A cap on the output, or none at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaxOutput(pub Option<u64>);

fn max_output(text: &str) -> Result<MaxOutput, String> {
    units::size(text).map(MaxOutput)
}

fn name(text: &str) -> Result<String, String> {
    check_name(text).map(|()| text.to_owned())
}

fn regex(text: &str) -> Result<Regex, String> {
    Regex::new(text).map_err(|why| format!("'{text}' is not a regular expression: {why}"))
}

fn variable_name(text: &str) -> Result<String, String> {
    let good = !text.is_empty() && !text.contains('=');
    good.then(|| text.to_owned())
        .ok_or_else(|| format!("'{text}' is not the name of a variable (examples: TOKEN, AWS_*)"))
}

/// Bytes, as all of an environment is.
fn variable(pair: OsString) -> Result<(OsString, OsString), String> {
    let bytes = pair.as_bytes();
    let at = bytes.iter().position(|&byte| byte == b'=').filter(|&at| at > 0);
    let at = at.ok_or_else(|| format!("'{}' is not K=V (example: LANG=C)", pair.to_string_lossy()))?;
    let part = |raw: &[u8]| OsStr::from_bytes(raw).to_owned();
    Ok((part(&bytes[..at]), part(&bytes[at + 1..])))
}

fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(format!("'{text}' is not K=V (example: team=a)")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_command_alone_is_read_as_the_whole_definition_reads_it() {
        let lines = [
            "outlive run true",
            "outlive run -- true",
            "outlive run true --json -- x",
            "outlive run -- --json",
            "outlive run --",
            "outlive run -",
            "outlive wait",
            "outlive wait a b",
            "outlive wait a -- b",
            "outlive wait -t 5 --any --json a",
            "outlive stop",
            "outlive stop a b",
            "outlive stop a -s INT",
            "outlive stop --all --state-dir /s",
            "outlive stop -x",
            "outlive ls",
            "outlive ls -a --json",
            "outlive ls --help",
            "outlive --json run x",
            "outlive",
            "outlive run --json --name web -l a=b -l c=d -t 5m --grace 1 -- sh -c x",
            "outlive run -C / -e A=1 --owner parent --on-owner-exit stop --stop-signal INT sleep --help -- -V",
            "outlive run --state-dir /s --color never --wait --max-output 1M run run",
            "outlive run --help",
            "outlive run -V",
            "outlive run",
            "outlive run --nonsense x",
            "outlive run --reuse true",
            "outlive run --on-owner-exit keep true",
        ];
        for line in lines {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let text =
                |cli: Result<Cli, clap::Error>| cli.map(|cli| format!("{cli:?}")).map_err(|e| e.to_string());
            assert_eq!(text(Cli::from_words(&words)), text(Cli::try_parse_from(&words)), "{line}");
        }
    }

    #[test]
    fn options_end_at_the_first_word_of_the_command() {
        let cli =
            Cli::try_parse_from(["outlive", "run", "--name", "x", "sleep", "--help", "--", "-C"]).unwrap();
        let Command::Run(run) = cli.command else { panic!("not run") };
        assert_eq!(run.command, ["sleep", "--help", "--", "-C"]);
        let cli = Cli::try_parse_from(["outlive", "run", "--", "--json", "--"]).unwrap();
        let Command::Run(run) = cli.command else { panic!("not run") };
        assert_eq!((run.command, cli.global.json), (vec!["--json".into(), "--".into()], false));
    }
}
