"""Builds what is measured, and finds the peers or installs them."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "benches" / "c"
BUILT = ROOT / "target" / "benches"

# Program to look for, and the Debian package that has it.
PACKAGES = {
    "nohup": "coreutils",
    "setsid": "util-linux",
    "bash": "bash",
    "nq": "nq",
    "tsp": "task-spooler",
    "s6-supervise": "s6",
    "runsv": "runit",
    "conmon": "conmon",
}


def say(*words):
    print(*words, file=sys.stderr, flush=True)


def programs():
    """Builds the C programs; where they are, by name."""
    BUILT.mkdir(parents=True, exist_ok=True)
    found = {}
    for source in sorted(SOURCES.glob("*.c")):
        program = BUILT / source.stem
        newest = max(path.stat().st_mtime for path in (source, SOURCES / "shared.h"))
        if not program.exists() or program.stat().st_mtime < newest:
            build = ["gcc", "-O2", "-static", "-Wall", "-Wextra", "-o", str(program), str(source)]
            subprocess.run(build, check=True)
        found[source.stem] = str(program)
    return found


def outlive():
    """Builds the release binary; its path."""
    build = ["cargo", "build", "--release", "--bin", "outlive", "--message-format=json-render-diagnostics"]
    out = subprocess.run(build, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    for line in reversed(out.splitlines()):
        message = json.loads(line)
        if message.get("executable"):
            return message["executable"]
    raise SystemExit("cargo built no outlive")


def find(name):
    """The path of a peer; also where --install puts pueue, and where cargo does."""
    places = [os.environ.get("PATH", ""), str(BUILT / "cargo" / "bin"), os.path.expanduser("~/.cargo/bin")]
    return shutil.which(name, path=":".join(places))


def install():
    """Installs the peers that are missing; what cannot be had is skipped later, loudly."""
    missing = [package for program, package in PACKAGES.items() if not find(program)]
    if missing:
        root = [] if os.geteuid() == 0 else ["sudo", "-n"]
        say("install:", *missing)
        env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        apt = [*root, "apt-get", "install", "-y", "-qq", "--no-install-recommends"]
        subprocess.run([*root, "apt-get", "update", "-qq"], env=env, stdout=sys.stderr)
        for package in missing:
            if subprocess.run([*apt, package], env=env, stdout=sys.stderr).returncode != 0:
                say(f"SKIPPED: {package} cannot be installed")
    if not (find("pueue") and find("pueued")):
        say("install: pueue (by cargo, takes minutes)")
        cargo = ["cargo", "install", "--locked", "--quiet", "--root", str(BUILT / "cargo"), "pueue"]
        # From outside of the repository, whose cargo configuration is for outlive.
        if subprocess.run(cargo, cwd="/", stdout=sys.stderr).returncode != 0:
            say("SKIPPED: pueue cannot be installed")


def peers(skip):
    """Paths of all peers that are there, by program."""
    found = {}
    for program in [*PACKAGES, "pueue"]:
        path = find(program) if program not in skip else None
        if path and (program != "pueue" or find("pueued")):
            found[program] = path
        else:
            say(f"SKIPPED: {program} is not installed (try --install)" if program not in skip else
                f"SKIPPED: {program}, as asked")
    return found
