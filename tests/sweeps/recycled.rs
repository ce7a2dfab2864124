//! Numbers that have come to mean somebody else, for real: in a PID namespace the next number can be chosen.

use crate::env::TestEnv;

/// Loses a job, gives its number to a stranger, and lets everything loose on the job.
const SCRIPT: &str = r#"
id=$("$O" run -- sleep 1000)
pid=$("$O" --json show "$id" | sed -n 's/.*"pid":\([0-9]*\),"pgid".*/\1/p')
supervisor=$("$O" --json show "$id" | sed -n 's/.*"supervisor":{"pid":\([0-9]*\).*/\1/p')
kill -9 "$supervisor" "$pid"
while [ -e "/proc/$pid" ] || [ -e "/proc/$supervisor" ]; do :; done
echo $((pid - 1)) 2>/dev/null >/proc/sys/kernel/ns_last_pid || { echo SKIPPED; exit 0; }
eval "$1" &
[ "$!" = "$pid" ] || { echo "SKIPPED: got $! for $pid"; exit 0; }
member=$pid
if [ -n "$2" ]; then
  # The stranger leaves its group behind.
  until member=$(pgrep -g "$pid" -x sleep); do :; done
  kill -9 "$pid"
  while [ -e "/proc/$pid" ]; do :; done
else
  while [ "$(cut -d' ' -f6 <"/proc/$pid/stat")" != "$pid" ]; do :; done
fi
unharmed() {
  state=$(sed 's/.*) \(.\).*/\1/' <"/proc/$member/stat") || { echo "$1 killed the stranger"; exit 1; }
  case $state in S | R) ;; *) echo "$1 left the stranger in state $state"; exit 1 ;; esac
}
"$O" ls -a >/dev/null; unharmed ls
"$O" pause "$id" 2>/dev/null && exit 1; unharmed pause
"$O" stop -t 0 "$id" || [ -n "$2" ]; unharmed stop
"$O" reap; unharmed reap
"$O" reap --orphans adopt; unharmed adopt
# What is left of a session that could be the job's own is not known to be a stranger's: it is left alone.
"$O" --json show "$id" | grep -q "\"state\":\"${2:-interrupted}\""
"$O" restart -t 0 "$id" || [ -n "$2" ]; unharmed restart
"$O" stop -t 0 "$id" || [ -n "$2" ]; unharmed 'stop of the next run'
echo unharmed
"#;

fn recycled(stranger: &str, group: bool) {
    let env = TestEnv::new();
    let left = if group { "unknown" } else { "" };
    let mut command = env.program("unshare");
    command.args(["-pf", "--mount-proc", "--kill-child", "bash", "-ec", SCRIPT, "bash", stranger, left]);
    let output = crate::env::Output::of(&mut command);
    if output.stdout.contains("SKIPPED") || output.stderr.contains("Operation not permitted") {
        println!("SKIPPED: a number cannot be chosen here: {output:?}");
        return;
    }
    assert!(output.code == 0 && output.stdout.ends_with("unharmed\n"), "{output:#?}");
}

#[test]
fn another_program() {
    recycled("exec setsid tail -f /dev/null", false);
}

#[test]
fn the_same_program_with_other_arguments() {
    recycled("exec setsid sleep 2000", false);
}

#[test]
fn the_very_same_command() {
    recycled("exec setsid sleep 1000", false);
}

#[test]
fn a_group_whose_leader_has_gone() {
    recycled("exec setsid sh -c 'sleep 1000 & wait'", true);
}
