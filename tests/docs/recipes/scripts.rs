//! bash, make, cron, ssh.

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use super::{free_port, has, job, place, run, state, write};
use crate::scratch::Scratch;

#[test]
fn steps_side_by_side() {
    let scratch = Scratch::new("steps");
    let script = place(&scratch, "bash.md", "steps.sh");
    let bash = || {
        let mut bash = scratch.command("bash");
        bash.arg(&script);
        bash
    };
    let (code, told) = run(&mut bash());
    assert_eq!((code, told.as_str()), (Some(0), "linted\ntested\ndocumented\n"));

    // The first failure ends the script, and what is left ends with it.
    let (code, told) = run(bash().env("UNIT", "echo it does not fit; exit 3").env("DOCS", "exec sleep 600"));
    let said = "the step 'unit' has failed with status 3; its last lines:\nit does not fit\n";
    assert!(code == Some(3) && told.starts_with(said) && told.matches("the step").count() == 1, "{told}");
    let jobs: serde_json::Value = serde_json::from_str(&scratch.outlive(&["ls", "--json", "--all"])).unwrap();
    let states: Vec<_> = jobs.as_array().unwrap().iter().map(|job| job["state"].as_str().unwrap()).collect();
    assert_eq!(states.iter().filter(|&&state| state == "stopped").count(), 1, "{states:?}");
    assert_eq!(scratch.outlive(&["ls", "-q"]), "");

    // A step that cannot be started is a failure, too.
    let text = super::file("bash.md", "steps.sh")
        .replace("start -- sh -c \"${UNIT:-echo tested}\"", "start -- nosuch");
    let (code, told) = run(scratch.command("bash").arg(write(&scratch, "broken.sh", &text)));
    assert!(code == Some(127) && told.contains("cannot execute 'nosuch'"), "{code:?} {told}");
    assert_eq!(scratch.outlive(&["ls", "-q"]), "");

    // Killed, it leaves nothing either.
    mkfifo(&scratch.home.join("up"), Mode::from_bits_truncate(0o600)).unwrap();
    let mut killed = bash().env("UNIT", "echo >up; exec sleep 600").spawn().unwrap();
    std::fs::read(scratch.home.join("up")).unwrap();
    killed.kill().unwrap();
    killed.wait().unwrap();
    scratch.outlive(&["wait", "--timeout", "60"]);
    assert_eq!(scratch.outlive(&["ls", "-q"]), "");
}

#[test]
fn the_first_that_ends_decides() {
    let scratch = Scratch::new("first");
    let script = place(&scratch, "bash.md", "first.sh");
    let (code, told) = run(scratch.command("bash").arg(&script));
    assert_eq!((code, told.as_str()), (Some(0), "from here\n"));
    assert_eq!(scratch.outlive(&["ls", "-q"]), "");
    let (code, _) =
        run(scratch.command("bash").arg(&script).env("ONE", "exec sleep 600").env("OTHER", "exit 4"));
    assert_eq!(code, Some(4));
    assert_eq!(scratch.outlive(&["ls", "-q"]), "");
}

#[test]
fn a_service_that_targets_share() {
    if !(has("make") && has("curl") && has("python3")) {
        return;
    }
    let scratch = Scratch::new("make");
    place(&scratch, "make.md", "Makefile");
    let port = free_port();
    let name = format!("web-{port}");
    let make = |target: &str| {
        let mut make = scratch.command("make");
        // As from inside of another make, whose job server has to be let go of.
        make.args(["-j2", &format!("PORT={port}"), target]);
        run(make.env_remove("MAKEFLAGS").env_remove("MFLAGS"))
    };
    let (code, told) = make("check");
    assert_eq!(code, Some(0), "{told}");
    let first = job(&scratch, &name);
    assert_eq!(first["state"], "running");
    assert_eq!(make("check").0, Some(0));
    assert_eq!(job(&scratch, &name)["pid"], first["pid"], "it is the same one");
    let (code, told) = make("down");
    assert!(code == Some(0) && told.contains("GET / HTTP/1.1"), "{told}");
    assert_eq!(state(&scratch, &name), "stopped");
}

#[test]
fn lines_of_a_crontab() {
    let scratch = Scratch::new("cron");
    let fifo = scratch.home.join("go-on");
    mkfifo(&fifo, Mode::from_bits_truncate(0o600)).unwrap();
    write(&scratch, "backup", "#!/bin/sh\nread line <go-on\nexit 7\n");
    let table = super::file("cron.md", "crontab");
    let lines: Vec<&str> =
        table.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit())).collect();
    // Five fields of time, and the rest is the shell's; mailed is what it prints.
    let cron = |nth: usize| {
        let command: Vec<&str> = lines[nth].split_ascii_whitespace().skip(5).collect();
        let mut shell = scratch.command("/bin/sh");
        let path =
            shell.get_envs().find(|(name, _)| *name == "PATH").and_then(|(_, path)| path).unwrap().to_owned();
        shell
            .env_clear()
            .env("HOME", &scratch.home)
            .env("LOGNAME", "me")
            .env("SHELL", "/bin/sh")
            .env("PATH", path);
        run(shell.args(["-c", &command.join(" ")]))
    };
    assert_eq!(cron(0), (Some(0), String::new()), "it returns at once, and there is nothing to mail");
    assert_eq!(cron(1).1, "");
    let (code, mail) = cron(0);
    assert!(code == Some(125) && mail.contains("nightly"), "{code:?} {mail}");
    std::fs::write(&fifo, "\n").unwrap();
    scratch.outlive(&["wait", "nightly"]);
    scratch.outlive(&["run", "--wait", "true"]);
    let (code, mail) = cron(1);
    assert!(code == Some(0) && mail.lines().count() == 1 && mail.contains("\"exit_code\":7"), "{mail}");
    assert_eq!(cron(1).1, "", "each end is told once");
    assert_eq!(cron(2), (Some(0), String::new()));
    assert_eq!(state(&scratch, "nightly"), "exited", "it is not old enough to be forgotten");
}

#[test]
fn a_build_on_another_host() {
    let scratch = Scratch::new("ssh");
    let script = place(&scratch, "ssh.md", "remote.sh");
    write(&scratch, "build", "#!/bin/sh\necho built\nexit 3\n");
    // What sshd and ssh do: a session of its own, one line for the shell there, and an end when nobody holds the
    // pipes any longer. The connection of the first wait breaks.
    // With the host `nowhere` none ever lasts.
    let stand_in = "#!/bin/bash\nset -o pipefail\nif [[ $1 == nowhere && $* != *' run '* ]]; then echo >>lost; exit 255; fi\n\
        shift\necho \"$*\" >>calls\n\
        if [[ $* == *' wait '* && $(grep -c ' wait ' calls) == 1 ]]; then exit 255; fi\n\
        setsid --wait sh -c \"$*\" </dev/null 2>&1 | cat\n";
    std::fs::create_dir(scratch.home.join("bin")).unwrap();
    write(&scratch, "bin/ssh", stand_in);
    let remote = |host: &str| {
        let mut bash = scratch.command("bash");
        let path =
            bash.get_envs().find(|(name, _)| *name == "PATH").and_then(|(_, path)| path).unwrap().to_owned();
        let path = format!("{}:{}", scratch.home.join("bin").display(), path.to_string_lossy());
        run(bash.arg(&script).arg(host).env("PATH", path).env("PAUSE", "0"))
    };
    let (code, told) = remote("build-host");
    assert_eq!(code, Some(3), "{told}");
    assert!(told.ends_with("built\n"), "{told}");
    let calls = std::fs::read_to_string(scratch.home.join("calls")).unwrap();
    assert_eq!(calls.lines().count(), 4, "{calls}");

    // A host that has gone is not asked for ever.
    let (code, told) = remote("nowhere");
    assert_eq!(code, Some(255), "{told}");
    let lost = std::fs::read_to_string(scratch.home.join("lost")).unwrap();
    assert_eq!(lost.lines().count(), 20 + 1, "{lost}");
}
