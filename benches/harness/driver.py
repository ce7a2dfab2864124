"""The C programs at work: the driver that takes the times, and the board that jobs write to."""

import mmap
import os
import select
import struct
import subprocess
import time
from pathlib import Path


# Seconds after which something that is timed counts as hanging.
PATIENCE = 300


class Broken(Exception):
    """Something that must work did not: the run fails."""


class Driver:
    """`c/drive.c`, kept running: one small process that spawns everything that is timed."""

    def __init__(self, program, env, cwd, log):
        self.log = log
        self.process = subprocess.Popen(
            [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=open(log, "ab"), env=env, cwd=cwd, text=True
        )

    def _ask(self, *fields, command=None, env=None):
        words = [str(field) for field in fields]
        if command is not None:
            given = [f"{key}={value}" for key, value in (env or {}).items()]
            words += [str(len(given)), *given, *map(str, command)]
        self.process.stdin.write("\x1f".join(words) + "\n")
        self.process.stdin.flush()
        if not select.select([self.process.stdout], [], [], PATIENCE)[0]:
            raise Broken(f"no answer in {PATIENCE} s: {' '.join(words)}")
        answer = self.process.stdout.readline().split()
        if not answer:
            raise Broken(f"the driver died: {self.errors()}")
        return [int(word) for word in answer]

    def errors(self):
        return Path(self.log).read_text(errors="replace")[-500:].strip()

    def launch(self, fifo, command, env=None):
        """Times until the command returned and until the job's first instruction, in µs."""
        returned, first, status = self._ask("launch", fifo, command=command, env=env)
        if status != 0:
            raise Broken(f"status {status} from {' '.join(map(str, command))}: {self.errors()}")
        return returned / 1e3, first / 1e3

    def time(self, command, env=None, expect=0):
        took, status = self._ask("time", command=command, env=env)
        if status != expect:
            raise Broken(f"status {status} from {' '.join(map(str, command))}: {self.errors()}")
        return took / 1e3

    def wait(self, board, fifo, command, env=None):
        took, status = self._ask("wait", board.path, fifo, command=command, env=env)
        if status == 254:
            raise Broken(f"the job was not let go: {' '.join(map(str, command))}")
        return took / 1e3, status

    def gone(self, pid, command, env=None):
        took, status = self._ask("gone", pid, command=command, env=env)
        if status == 254:
            raise Broken(f"not stopped by {' '.join(map(str, command))}")
        return took / 1e3

    def many(self, count, workers, command, env=None):
        """Seconds in all, and how many failed."""
        took, failed = self._ask("many", count, workers, command=command, env=env)
        return took / 1e9, failed

    def flush(self, path, count):
        return self._ask("flush", path, count)[0] / 1e3

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(1)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Board:
    """`struct board` of `c/shared.h`: numbers that a job leaves behind."""

    def __init__(self, path):
        self.path = str(path)
        with open(path, "wb") as file:
            file.truncate(32)
        with open(path, "r+b") as file:
            self.map = mmap.mmap(file.fileno(), 32)

    def _number(self, at):
        return struct.unpack_from("Q", self.map, at * 8)[0]

    def clear(self):
        self.map[:] = bytes(32)

    def ready(self, seconds=20):
        """The PID of the job, once it runs."""
        end = time.monotonic() + seconds
        while not self._number(0):
            if time.monotonic() > end:
                raise Broken("a job did not start")
            time.sleep(0.0005)
        return self._number(1)

    def seconds(self, limit=3600):
        """How long the job wrote, once it is done."""
        end = time.monotonic() + limit
        while not self._number(3):
            if time.monotonic() > end:
                raise Broken("a job did not come to its end")
            time.sleep(0.005)
        return (self._number(3) - self._number(2)) / 1e9


def quiet(command, env=None, cwd=None):
    """Runs a command that is not timed; what it printed. Not for what leaves its output to a job: that would hang."""
    done = subprocess.run(
        [str(word) for word in command], env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, errors="replace", timeout=600,
    )
    if done.returncode != 0:
        raise Broken(f"status {done.returncode} from {' '.join(map(str, command))}: {done.stderr.strip()}")
    return done.stdout.strip()


def fifo(path):
    os.mkfifo(path)
    return str(path)
