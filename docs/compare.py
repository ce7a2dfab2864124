#!/usr/bin/env python3
"""What the comparison in the README rests on: does the same things with each tool that is installed, and prints what
came of it, a line each. Whatever is left alive ends with the PID namespace that this runs in: as root, or where users
may make namespaces.

    docs/compare.py [TOOL]...
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

FILES = {
    "fails.sh": "exit 3",
    "tree.sh": "setsid sleep 1001 & (sleep 1001 &) ; (setsid sleep 1001 &) ; sleep 1001",
    "idle.sh": "exec sleep 1002",
}
TREE, IDLE = "-f '^sleep 1001'", "-f '^sleep 1002'"
SOON = 20  # seconds after which something counts as never coming


def sh(line, check=False):
    """Runs a line of shell; its status and what it printed."""
    done = subprocess.run(["sh", "-c", line], text=True, timeout=60, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if check and done.returncode:
        raise SystemExit(f"{line}: {done.stdout}")
    return done.returncode, done.stdout.strip()


def last_word(line):
    return sh(line, check=True)[1].split()[-1]


def alive(processes):
    """How many there are; options of pgrep."""
    return int(sh(f"pgrep -c {processes}")[1])


class Nohup:
    version = "nohup --version | head -n 1"
    keeper = None

    def start(self, command):
        return last_word(f"nohup {command} >/dev/null 2>&1 & echo $!")

    def substitute(self, command):
        return f"nohup {command} & echo $!"

    def code(self, job):
        return "nobody knows it"

    def stop(self, job):
        sh(f"kill {job}")


class Nq:
    version = "dpkg-query -W nq"
    keeper = "-x nq"

    def start(self, command):
        return last_word(f"nq {command}")

    def substitute(self, command):
        return f"nq {command}"

    def code(self, job):
        status = sh(f"nq -w {job}")[0]
        return f"nq -w: {status}; in its output: {sh(f'tail -n 1 {job}')[1]}"

    def stop(self, job):
        sh(f"kill {job.split('.')[-1]}")

    def says(self, job):
        return "running" if sh(f"nq -t {job}")[0] else "not running"


class Tsp:
    version = "dpkg-query -W task-spooler"
    keeper = "-x tsp"

    def start(self, command):
        return last_word(f"tsp {command}")

    def substitute(self, command):
        return f"tsp {command}"

    def code(self, job):
        return f"tsp -w: {sh(f'tsp -w {job}')[0]}"

    def stop(self, job):
        sh(f"tsp -k {job}")

    def says(self, job):
        return sh(f"tsp -s {job}")[1]


class Pueue:
    version = "pueue --version"
    keeper = "-x pueued"

    def __init__(self):
        self.serve()
        sh("pueue parallel 9")

    def serve(self):
        subprocess.run(["pueued", "-d"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        eventually(lambda: sh("pueue status")[0] == 0)

    def start(self, command):
        return last_word(f"pueue add --print-task-id -- {command}")

    def substitute(self, command):
        return f"pueue add -- {command}"

    def status(self, job):
        return json.dumps(json.loads(sh("pueue status --json")[1])["tasks"][job]["status"])

    def code(self, job):
        status = sh(f"pueue wait --quiet {job}")[0]
        return f"pueue wait: {status}; in its list: {self.status(job)}"

    def stop(self, job):
        sh(f"pueue kill {job}")

    def says(self, job):
        self.serve()
        return self.status(job)


class Pm2:
    version = "pm2 --version 2>/dev/null | tail -n 1"
    keeper = "-f 'God Daemon'"

    def start(self, command):
        sh(f"pm2 start {command} --name {os.path.basename(command)} --no-autorestart", check=True)
        return os.path.basename(command)

    def substitute(self, command):
        return f"pm2 start {command} --name substitute --no-autorestart"

    def find(self, job):
        return [one for one in json.loads(sh("pm2 jlist")[1].splitlines()[-1]) if one["name"] == job]

    def code(self, job):
        eventually(lambda: self.find(job)[0]["pm2_env"]["status"] == "stopped")
        return f"in its list: {self.find(job)[0]['pm2_env'].get('exit_code')}"

    def stop(self, job):
        sh(f"pm2 stop {job}")

    def says(self, job):
        return self.find(job) or "no such job"


class SystemdRun:
    """With a manager for this user, started here. That of the system cannot be killed."""

    version = "systemctl --version | head -n 1"
    keeper = None

    def __init__(self):
        subprocess.Popen(["/lib/systemd/systemd", "--user"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        eventually(lambda: sh("systemctl --user show")[0] == 0)

    def start(self, command):
        unit = os.path.basename(command)
        sh(f"systemd-run --user --unit={unit} {os.path.abspath(command)}", check=True)
        return unit

    def substitute(self, command):
        return f"systemd-run --user {os.path.abspath(command)}"

    def code(self, job):
        time.sleep(1)
        failure = sh(f"systemctl --user show {job} -p LoadState -p ExecMainStatus")[1].split()
        sh("systemd-run --user --unit=succeeds true", check=True)
        time.sleep(1)
        success = sh("systemctl --user show succeeds -p LoadState -p ExecMainStatus")[1].split()
        return f"of a failure: {failure}; of a success: {success}"

    def stop(self, job):
        sh(f"systemctl --user stop {job}")


class Outlive:
    version = "outlive --version"
    keeper = "-f ^outlive:"

    def start(self, command):
        return last_word(f"outlive run {command}")

    def substitute(self, command):
        return f"outlive run {command}"

    def code(self, job):
        return f"outlive wait: {sh(f'outlive wait {job}')[0]}"

    def stop(self, job):
        sh(f"outlive stop {job}")

    def says(self, job):
        return json.loads(sh(f"outlive show --json {job}")[1])["state"]


TOOLS = {
    "nohup": Nohup, "nq": Nq, "tsp": Tsp, "pueue": Pueue, "pm2": Pm2, "systemd-run": SystemdRun, "outlive": Outlive,
}

CLAIMED = [
    "outlive wait: 3", "status 127", "of 4 sleepers 0 are left", "the job is alive, and it says orphaned", "returns",
]


def eventually(holds):
    end = time.monotonic() + SOON
    while not holds() and time.monotonic() < end:
        time.sleep(0.05)


def substitutes(tool):
    line = tool.substitute("./idle.sh")
    try:
        subprocess.run(["sh", "-c", f"x=$({line})"], timeout=5, check=False, stderr=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return "does not return before the job has ended"
    return "returns"


def missing(tool):
    return f"status {sh(tool.substitute('./nosuch').replace(os.path.abspath('nosuch'), '/nosuch'))[0]}"


def stops(tool):
    job = tool.start("./tree.sh")
    eventually(lambda: alive(TREE) == 4)
    before = alive(TREE)
    tool.stop(job)
    time.sleep(2)
    left = alive(TREE)
    # In a queue they would keep the next job waiting.
    sh(f"kill -9 $(pgrep {TREE})")
    return f"of {before} sleepers {left} are left"


def loses_its_keeper(tool):
    if tool.keeper is None:
        return "-"
    job = tool.start("./idle.sh")
    eventually(lambda: alive(IDLE) == 1)
    sh(f"kill -9 $(pgrep {tool.keeper})")
    eventually(lambda: alive(tool.keeper) == 0)
    return f"the job is {'alive' if alive(IDLE) else 'dead'}, and it says {tool.says(job)}"


def probe(name):
    print(f"{name}\n  version: {sh(TOOLS[name].version)[1]}", flush=True)
    tool = TOOLS[name]()
    answers = []
    for what, answer in [
        ("the status of a job that exits with 3", lambda: tool.code(tool.start("./fails.sh"))),
        ("the launch of a command that does not exist", lambda: missing(tool)),
        ("a stop of a tree with daemons in it", lambda: stops(tool)),
        ("what looks after it is killed", lambda: loses_its_keeper(tool)),
        ("job=$(launch)", lambda: substitutes(tool)),
    ]:
        answers.append(answer())
        print(f"  {what}: {answers[-1]}", flush=True)
    if name == "outlive" and answers != CLAIMED:
        raise SystemExit(f"of outlive, the README says {CLAIMED}")


def main():
    inside = "COMPARE_HOME" in os.environ
    if not inside:
        names = sys.argv[1:] or [name for name in TOOLS if shutil.which(name)]
        for name in names:
            # One that is run by the others' leftovers would not be compared fairly: each has a world of its own.
            with tempfile.TemporaryDirectory() as home:
                unshare = ["unshare", "--map-root-user", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"]
                subprocess.run(
                    unshare + [sys.executable, os.path.abspath(__file__), name],
                    env={**os.environ, "COMPARE_HOME": home}, check=True,
                )
        return
    home = os.environ["COMPARE_HOME"]
    os.chdir(home)
    os.environ.update(
        HOME=home, TMPDIR=home, TS_SOCKET=f"{home}/ts", PM2_HOME=f"{home}/pm2", XDG_RUNTIME_DIR="/run/user",
        OUTLIVE_STATE_DIR=f"{home}/outlive",
    )
    # A manager for users starts only where there is one for the system.
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)
    os.makedirs("/run/systemd/system")
    os.mkdir("/run/user", 0o700)
    for file, line in FILES.items():
        with open(file, "w") as out:
            out.write(f"#!/bin/sh\n{line}\n")
        os.chmod(file, 0o755)
    probe(sys.argv[1])


main()
