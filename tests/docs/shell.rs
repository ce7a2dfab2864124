//! What a shell makes of an example.

use std::process::Command;

/// The words of each `outlive` in a script, which is a function here that tells them. Nothing else is executed.
pub(crate) fn commands(script: &str) -> Vec<Vec<String>> {
    const TELL: &str = r#"exec 3>&1 >/dev/null; PATH=; outlive() { printf '%s\0' outlive "$@" END >&3; }"#;
    let told = Command::new("/bin/sh").args(["-c", &format!("{TELL}\n{script}")]).output().unwrap();
    let told = String::from_utf8(told.stdout).unwrap();
    let words = |command: &str| command.split('\0').map(str::to_owned).collect();
    told.split_terminator("\0END\0").map(words).collect()
}

#[test]
fn a_script_is_taken_apart() {
    let found = commands("a=$(outlive run -- sh -c 'b c')\noutlive ls | nosuch || outlive wait \"$a\"");
    assert_eq!(found[0], ["outlive", "run", "--", "sh", "-c", "b c"]);
    assert_eq!(found[1..], [vec!["outlive", "ls"], vec!["outlive", "wait", ""]]);
}
