"""How outlive, the floor and each peer are called."""

import itertools
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

from .driver import Broken, quiet

SEPARATOR = "\x1e"  # of the words of a job in a variable, see c/runtime.c


class World:
    """One scratch directory, in which every contender keeps what it keeps."""

    def __init__(self, scratch, programs, outlive, peers):
        self.scratch = Path(scratch)
        self.c = programs
        self.bin = outlive
        self.peers = peers
        self.number = itertools.count(1)
        self.children = []
        for name in ("tmp", "home", "cwd", "runtime"):
            (self.scratch / name).mkdir()
        os.chmod(self.scratch / "runtime", 0o700)
        self.env = {
            "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin",
            "HOME": str(self.scratch / "home"),
            "TMPDIR": str(self.scratch / "tmp"),
            "XDG_RUNTIME_DIR": str(self.scratch / "runtime"),
            "LC_ALL": "C",
            # By this, what is left of a run is found again.
            "OUTLIVE_BENCH": str(self.scratch),
        }

    @property
    def cwd(self):
        return str(self.scratch / "cwd")

    def fresh(self, stem):
        path = self.scratch / f"{stem}.{next(self.number)}"
        path.mkdir(mode=0o700)
        return path

    def job(self, *words):
        return [self.c["job"], *map(str, words)]

    def run(self, command, env=None, cwd=None):
        """Runs something that is not timed; what it printed."""
        return quiet(command, env={**self.env, **(env or {})}, cwd=cwd or self.cwd)

    def background(self, command, env=None, cwd=None):
        """Starts a process that stays a child of this script."""
        child = subprocess.Popen(
            [str(word) for word in command], env={**self.env, **(env or {})}, cwd=cwd or self.cwd, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )
        self.children.append(child)
        return child

    def outlive(self, *words, env=None):
        return self.run([self.bin, *words], env=env)

    def json(self, *words, env=None):
        return json.loads(self.outlive("--json", *words, env=env))

    # Every contender is a function from a job's words to a command and its variables. What it needs besides
    # is made here, before anything is timed.

    def launchers(self):
        """All ways to start a job and come back, by name."""
        floor, job_dir = self.c["floor"], str(self.fresh("floor"))
        state_on, state_off = self.fresh("state"), self.fresh("state")
        ways = {
            "outlive": (lambda job: [self.bin, "run", "--", *job],
                        lambda job: {"OUTLIVE_STATE_DIR": state_off, "OUTLIVE_SYNC": "off"}),
            "outlive, flushed": (lambda job: [self.bin, "run", "--", *job],
                                 lambda job: {"OUTLIVE_STATE_DIR": state_on}),
            "floor: exec": (lambda job: [floor, "exec", *job], lambda job: {}),
            "floor: run": (lambda job: [floor, "run", job_dir, *job], lambda job: {}),
            "floor: run, flushed": (lambda job: [floor, "run", job_dir, *job], lambda job: {"FLOOR_SYNC": "1"}),
        }
        self.states = {"outlive": state_off, "outlive, flushed": state_on}
        if "setsid" in self.peers:
            ways["setsid -f"] = (lambda job: [self.peers["setsid"], "-f", *job], lambda job: {})
        if "nohup" in self.peers:
            script = 'nohup "$@" >/dev/null 2>&1 &'
            ways["nohup &"] = (lambda job: ["/bin/sh", "-c", script, "sh", *job], lambda job: {})
        for name in ("nq", "tsp", "conmon", "pueue"):
            if name in self.peers:
                ways[name] = getattr(self, name)()
        return ways

    def nq(self):
        directory = self.fresh("nq")
        return (lambda job: [self.peers["nq"], *job], lambda job: {"NQDIR": directory})

    def tsp(self, slots=1000):
        directory = self.fresh("tsp")
        env = {"TS_SOCKET": directory / "socket", "TS_SLOTS": slots, "TS_MAXFINISHED": 100000, "TMPDIR": directory,
               "TS_MAXCONN": 2000}
        env = {key: str(value) for key, value in env.items()}
        self.run([self.peers["tsp"]], env=env)
        return (lambda job: [self.peers["tsp"], *job], lambda job: env)

    def conmon(self, log=None):
        directory = self.fresh("conmon")
        command = [self.peers["conmon"], "-b", directory, "-c", "c", "-u", "u", "-n", "n", "-r", self.c["runtime"],
                   "-p", directory / "pid", "-l", log or directory / "log", "--socket-dir-path", directory,
                   "--exit-dir", directory]
        return (lambda job: command, lambda job: {"JOB": SEPARATOR.join(map(str, job))})

    def pueue(self):
        if not hasattr(self, "pueue_env"):
            directory = self.fresh("pueue")
            self.pueue_env = {"XDG_CONFIG_HOME": str(directory), "XDG_DATA_HOME": str(directory),
                              "XDG_RUNTIME_DIR": str(directory)}
            daemon = shutil.which("pueued", path=os.path.dirname(self.peers["pueue"]))
            self.background([daemon], env=self.pueue_env)
            end = time.monotonic() + 20
            while True:
                try:
                    self.run([self.peers["pueue"], "parallel", "1000"], env=self.pueue_env)
                    break
                except Broken:
                    if time.monotonic() > end:
                        raise
                    time.sleep(0.1)
        return (lambda job: [self.peers["pueue"], "add", "--print-task-id", "--", *job], lambda job: self.pueue_env)

    def service(self, job, start=True):
        """A directory for s6-supervise or runsv."""
        directory = self.fresh("service")
        run = directory / "run"
        run.write_text("#!/bin/sh\nexec " + " ".join(map(str, job)) + "\n")
        run.chmod(0o755)
        if not start:
            (directory / "down").touch()
        return directory

    def s6(self, job):
        """A service that is run once, by a supervisor of its own."""
        directory = self.service(job, start=False)
        child = self.background([self.peers["s6-supervise"], directory])
        end = time.monotonic() + 20
        while not (directory / "supervise" / "control").exists() or not (directory / "supervise" / "status").exists():
            if time.monotonic() > end:
                raise Broken("s6-supervise did not start")
            time.sleep(0.001)
        control = shutil.which("s6-svc", path=self.env["PATH"]) or "s6-svc"
        self.run([control, "-o", directory])
        return directory, child

    def end_service(self, directory, child):
        if (directory / "supervise" / "control").exists() and child.poll() is None:
            child.send_signal(signal.SIGTERM)
        child.wait()

    def clean_up(self):
        """Ends everything that was started here: first as each program wants it, then by its mark."""
        for child in self.children:
            if child.poll() is None:
                child.terminate()
        for _ in range(50):
            left = list(self.marked())
            if not left:
                break
            for pid in left:
                self.end(pid, signal.SIGKILL)
            for child in self.children:
                child.poll()
            time.sleep(0.02)
        shutil.rmtree(self.scratch, ignore_errors=True)

    def end(self, pid, how=signal.SIGTERM):
        """Signals a process of ours, or none: it is looked at again once it is held."""
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            return
        try:
            if self.is_marked(pid):
                signal.pidfd_send_signal(handle, how)
        except ProcessLookupError:
            pass
        finally:
            os.close(handle)

    def is_marked(self, pid):
        try:
            environ = Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            return False
        return f"OUTLIVE_BENCH={self.scratch}".encode() in environ.split(b"\0")

    def marked(self):
        for entry in os.listdir("/proc"):
            if entry.isdigit() and int(entry) != os.getpid() and self.is_marked(entry):
                yield int(entry)

