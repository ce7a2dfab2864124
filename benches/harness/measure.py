"""The measurements. Contenders take turns within each, so that a machine that slows down slows everybody."""

import json
import os
import shutil
import statistics
import subprocess
import time
from pathlib import Path

from .build import say
from .driver import Board, Broken, fifo

STATUS = 7  # what a job ends with where its status is waited for
TSP_JOBS = 900  # the server of task-spooler has select(2), and hangs on more connections than that can hold


def spread(values):
    """What is kept of a list of samples."""
    ordered = sorted(values)
    at = lambda share: ordered[min(len(ordered) - 1, int(share * len(ordered)))]
    return {"n": len(ordered), "median": statistics.median(ordered), "p10": at(0.1), "p90": at(0.9)}


def turns(names, rounds):
    """Names in turn, each round from another one on."""
    names = list(names)
    for number in range(rounds):
        shift = number % len(names)
        yield from names[shift:] + names[:shift]


def launch_latency(world, driver, options):
    """Until the call returned, and until the first instruction of the job."""
    pipe = fifo(world.scratch / "stamp")
    job = world.job("stamp", pipe)
    ways = world.launchers()
    returned, first = {name: [] for name in ways}, {name: [] for name in ways}
    warm = 3
    for name in list(turns(ways, warm)) + list(turns(ways, options.rounds)):
        command, env = ways[name]
        a, b = driver.launch(pipe, command(job), env(job))
        returned[name].append(a)
        first[name].append(b)
        # What is left to do after the job is not the next one's burden.
        time.sleep(options.settle / 1e3)
    skip = warm
    accounted(world, world.states["outlive"], options.rounds + warm)
    accounted(world, world.states["outlive, flushed"], options.rounds + warm)
    return {
        "returned": {name: spread(values[skip:]) for name, values in returned.items()},
        "first": {name: spread(values[skip:]) for name, values in first.items()},
        "flush": driver.flush(world.scratch / "flushed", max(20, options.rounds)),
    }


def accounted(world, state, count, end="exited"):
    """Every launched job is there and has ended as it should; else the run fails."""
    env = {"OUTLIVE_STATE_DIR": str(state)}
    if end == "exited":
        world.outlive("wait", env=env)
    jobs = world.json("ls", "-a", env=env)
    wrong = [job for job in jobs if job["state"] != end or (end == "exited" and job["exit_code"] != 0)]
    if len(jobs) != count or wrong:
        raise Broken(f"{count} jobs were launched, {len(jobs)} are recorded, {len(wrong)} not {end}: {wrong[:1]}")


def bursts(world, driver, options):
    """Launches one after the other, and by 8 callers at once, per second; how many failed."""
    ways = world.launchers()
    job = world.job("nop")
    count, rounds = options.launches, options.burst_rounds
    each = max(8, count // rounds)
    results = {}
    for kind, workers in (("in sequence", 1), ("8 at once", 8)):
        rates, failures = {name: [] for name in ways}, dict.fromkeys(ways, 0)
        for name in turns(ways, rounds):
            command, env = ways[name]
            part = each // 10 if name == "pueue" and each >= 80 else each
            took, failed = driver.many(part, workers, command(job), env(job))
            rates[name].append(part / took)
            failures[name] += failed
            drain(world, name, env(job))
        results[kind] = {name: {**spread(rates[name]), "failed": failures[name]} for name in ways}
    for name in ("outlive", "outlive, flushed"):
        lost = sum(results[kind][name]["failed"] for kind in results)
        if lost:
            raise Broken(f"{lost} launches of {name} failed: {driver.errors()}")
        accounted(world, world.states[name], 2 * rounds * each)
    return results


def drain(world, name, env):
    """Lets what was launched end before the next contender's turn."""
    if name == "nq":
        world.run([world.peers["nq"], "-w"], env=env)
    elif name.startswith("outlive"):
        world.outlive("wait", env=env)
    end = time.monotonic() + 20
    while any(comm(pid) == "job" for pid in world.marked()) and time.monotonic() < end:
        time.sleep(0.01)
    time.sleep(0.1)


def comm(pid):
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def wait_latency(world, driver, options):
    """From the exit of the job until whoever waits for it has returned."""
    pipe, board = fifo(world.scratch / "go"), Board(world.scratch / "board")
    job = world.job("hold", board.path, pipe, STATUS)
    state = {kind: world.fresh("state") for kind in ("off", "on")}

    def outlive(sync):
        env = {"OUTLIVE_STATE_DIR": str(state[sync]), **({"OUTLIVE_SYNC": "off"} if sync == "off" else {})}
        def start():
            return [world.bin, "wait", world.outlive("run", "--", *job, env=env)], env, None
        return start

    def floor():
        driver.time([world.c["floor"], "exec", *job])
        return [world.c["floor"], "wait", str(board.ready())], {}, None

    def bash():
        return [world.peers["bash"], "-c", '"$@" & wait $!', "bash", *job], {}, None

    def by_id(name, *wait):
        command, env = getattr(world, name)()
        def start():
            number = world.run(list(map(str, command(job))), env={k: str(v) for k, v in env(job).items()})
            return [world.peers[name], *wait, number.split()[0]], env(job), None
        return start

    def s6():
        directory, child = world.s6(job)
        return ["s6-svwait", "-D", str(directory)], {}, lambda: world.end_service(directory, child)

    ways = {"outlive": outlive("off"), "outlive, flushed": outlive("on"), "floor": floor}
    if "bash" in world.peers:
        ways["bash wait"] = bash
    if "nq" in world.peers:
        ways["nq -w"] = by_id("nq", "-w")
    if "tsp" in world.peers:
        ways["tsp -w"] = by_id("tsp", "-w")
    if "s6-supervise" in world.peers:
        ways["s6-svwait"] = s6
    if "pueue" in world.peers:
        ways["pueue wait"] = by_id("pueue", "wait", "--quiet")
    taken, told = {name: [] for name in ways}, {}
    for name in turns(ways, options.rounds):
        if name == "pueue wait" and len(taken[name]) >= max(3, options.rounds // 10):
            continue
        board.clear()
        command, env, after = ways[name]()
        if name != "bash wait":
            board.ready()
        took, status = driver.wait(board, pipe, command, env)
        if name.startswith("outlive") and status != STATUS:
            raise Broken(f"outlive wait returned {status}, not {STATUS}: {driver.errors()}")
        taken[name].append(took)
        told[name] = status == STATUS
        if after:
            after()
    return {name: {**spread(values), "tells": told[name]} for name, values in taken.items()}


def stop_latency(world, driver, options):
    """From the call of stop until the job is gone and the call has returned."""
    board = Board(world.scratch / "victim")
    job = world.job("pause", board.path)
    state = {kind: world.fresh("state") for kind in ("off", "on")}
    floor_dir = world.fresh("floor")

    def outlive(sync):
        env = {"OUTLIVE_STATE_DIR": str(state[sync]), **({"OUTLIVE_SYNC": "off"} if sync == "off" else {})}
        def start():
            return [world.bin, "stop", world.outlive("run", "--", *job, env=env)], env, None
        return start

    def floor():
        driver.time([world.c["floor"], "run", str(floor_dir), *job])
        return [world.c["floor"], "stop", str(board.ready())], {}, None

    def kill():
        driver.time([world.c["floor"], "run", str(floor_dir), *job])
        script = 'kill "$1"; exec "$2" wait "$1"'
        return ["/bin/sh", "-c", script, "sh", str(board.ready()), world.c["floor"]], {}, None

    def by_id(name, *stop):
        command, env = getattr(world, name)()
        def start():
            number = world.run(list(map(str, command(job))), env={k: str(v) for k, v in env(job).items()})
            return [world.peers[name], *stop, number.split()[0]], env(job), None
        return start

    def s6():
        directory, child = world.s6(job)
        return ["s6-svc", "-wD", "-d", str(directory)], {}, lambda: world.end_service(directory, child)

    def runit():
        directory = world.service(job)
        child = world.background([world.peers["runsv"], directory])
        board.ready()
        return ["sv", "-w", "10", "down", str(directory)], {}, lambda: world.end_service(directory, child)

    ways = {"outlive": outlive("off"), "outlive, flushed": outlive("on"), "floor": floor, "kill, pidfd wait": kill}
    if "tsp" in world.peers:
        ways["tsp -k"] = by_id("tsp", "-k")
    if "s6-supervise" in world.peers:
        ways["s6-svc -wD -d"] = s6
    if "runsv" in world.peers:
        ways["sv down"] = runit
    if "pueue" in world.peers:
        ways["pueue kill"] = by_id("pueue", "kill")
    taken = {name: [] for name in ways}
    for name in turns(ways, options.rounds):
        slow = name in ("pueue kill", "sv down")
        if slow and len(taken[name]) >= max(3, options.rounds // 10):
            continue
        board.clear()
        command, env, after = ways[name]()
        taken[name].append(driver.gone(board.ready(), command, env))
        if after:
            after()
    accounted(world, state["off"], options.rounds, "stopped")
    accounted(world, state["on"], options.rounds, "stopped")
    return {name: spread(values) for name, values in taken.items()}


def memory(world, driver, options):
    """What a live job costs: the processes that look after it, asleep."""
    results = {}
    for count in options.alive:
        results[str(count)] = {}
        for name, start in living(world, driver).items():
            if name in ("s6-supervise", "runsv", "pueue", "conmon", "nq") and count > options.alive_peers:
                continue
            many = min(count, TSP_JOBS) if name == "tsp" else count
            if many < count:
                say(f"  {name}: {many} jobs, it serves no more")
            say(f"  {many} jobs of {name}")
            pids, end = start(many)
            if len(pids) < many and name != "pueue":
                raise Broken(f"{many} jobs of {name} were started, {len(pids)} are looked after")
            time.sleep(options.rest)  # a supervisor looks at the output once, a second after the start
            results[str(count)][name if many == count else f"{name}, {many} jobs"] = sample(pids, many, options.idle)
            end()
    return results


def living(world, driver):
    """For each contender: starts jobs that sleep; the processes that look after them, and an end to it."""
    job = world.job("pause")

    def named(name):
        return [pid for pid in world.marked() if comm(pid) == name]

    def end_jobs():
        for child in world.children:
            if child.poll() is None and comm(child.pid) != "pueued":
                child.terminate()
        end = time.monotonic() + 60
        while True:
            left = named("job")
            if not left:
                break
            for pid in left:
                world.end(pid)
            if time.monotonic() > end:
                raise Broken("jobs that do not end")
            time.sleep(0.02)
        time.sleep(0.2)

    def outlive(count):
        env = {"OUTLIVE_STATE_DIR": str(world.fresh("state")), "OUTLIVE_SYNC": "off"}
        _, failed = driver.many(count, 8, [world.bin, "run", "--", *job], env)
        jobs = world.json("ls", env=env)
        if failed or len(jobs) != count or any(job["state"] != "running" for job in jobs):
            raise Broken(f"{count} launched, {failed} failed, {len(jobs)} alive: {driver.errors()}")

        def end():
            everybody = subprocess.Popen(
                [world.bin, "wait"], env={**world.env, **env}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
            )
            time.sleep(0.3)
            world.outlive("stop", "--all", env=env)
            if everybody.wait(60) != 128 + 15:
                raise Broken(f"outlive wait for {count} stopped jobs returned {everybody.returncode}")
            accounted(world, env["OUTLIVE_STATE_DIR"], count, "stopped")

        return [job["supervisor"]["pid"] for job in jobs], end

    def floor(count):
        driver.many(count, 8, [world.c["floor"], "run", str(world.fresh("floor")), *job])
        return named("floor"), end_jobs

    def each(name, program):
        def start(count):
            for _ in range(count):
                command, env = getattr(world, name)()
                driver.time(command(job), env(job))
            deadline = time.monotonic() + 20
            while len(named("job")) < count and time.monotonic() < deadline:
                time.sleep(0.05)
            return named(program), end_jobs
        return start

    def tsp(count):
        command, env = world.tsp(slots=count + 1)
        driver.many(count, 8, command(job), env(job))
        pids = named("tsp")
        def end():
            end_jobs()
            world.run([world.peers["tsp"], "-K"], env=env(job))
        return pids, end

    def s6(count):
        for _ in range(count):
            world.s6(job)
        return named("s6-supervise"), end_jobs

    def runit(count):
        for _ in range(count):
            world.background([world.peers["runsv"], world.service(job)])
        deadline = time.monotonic() + 20
        while len(named("job")) < count and time.monotonic() < deadline:
            time.sleep(0.05)
        return named("runsv"), end_jobs

    def pueue(count):
        command, env = world.pueue()
        for _ in range(count):
            driver.time(command(job), env(job))
        deadline = time.monotonic() + 60
        while len(named("job")) < count and time.monotonic() < deadline:
            time.sleep(0.05)
        return named("pueued") + named("sh"), end_jobs

    ways = {"outlive": outlive, "floor": floor}
    if "nq" in world.peers:
        ways["nq"] = each("nq", "nq")
    if "tsp" in world.peers:
        ways["tsp"] = tsp
    if "conmon" in world.peers:
        ways["conmon"] = each("conmon", "conmon")
    if "s6-supervise" in world.peers:
        ways["s6-supervise"] = s6
    if "runsv" in world.peers:
        ways["runsv"] = runit
    if "pueue" in world.peers:
        ways["pueue"] = pueue
    return ways


def sample(pids, count, idle):
    """Memory in KiB, threads, descriptors, and how often the processes were woken while nothing happened."""
    seen = []
    for pid in pids:
        rollup = table(f"/proc/{pid}/smaps_rollup")
        status = table(f"/proc/{pid}/status")
        seen.append({
            "pss": rollup["Pss"], "private": rollup["Private_Clean"] + rollup["Private_Dirty"],
            "anonymous": rollup["Anonymous"], "threads": status["Threads"],
            "descriptors": len(os.listdir(f"/proc/{pid}/fd")),
        })
    before = sum(switches(pid) for pid in pids)
    time.sleep(idle)
    woken = sum(switches(pid) for pid in pids) - before
    median = {key: statistics.median(one[key] for one in seen) for key in seen[0]}
    return {**median, "processes": len(pids), "pss per job": sum(one["pss"] for one in seen) / count,
            "pss in all": sum(one["pss"] for one in seen), "wake-ups": woken, "seconds": idle}


def table(path):
    """The numbers of a file of `Name: number` lines."""
    numbers = {}
    for line in Path(path).read_text().splitlines():
        name, _, rest = line.partition(":")
        words = rest.split()
        if words and words[0].isdigit():
            numbers[name] = int(words[0])
    return numbers


def switches(pid):
    status = table(f"/proc/{pid}/status")
    return status["voluntary_ctxt_switches"] + status["nonvoluntary_ctxt_switches"]


def sizes(world, driver, options):
    """What it costs to list, and to launch, with so many jobs on record."""
    pipe = fifo(world.scratch / "sized")
    job = world.job("stamp", pipe)
    states, first, listed, launched = {}, {}, {}, {}
    for count in options.sizes:
        states[count] = {"OUTLIVE_STATE_DIR": str(record(world, count)), "OUTLIVE_SYNC": "off"}
        begin = time.monotonic()
        done = subprocess.run([world.bin, "ls", "-a", "--json"], env={**world.env, **states[count]},
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=world.cwd)
        first[count] = (time.monotonic() - begin) * 1e6
        jobs = json.loads(done.stdout)
        if done.returncode != 0 or done.stderr or len(jobs) != count:
            raise Broken(f"of {count} recorded jobs {len(jobs)} are listed: {done.stderr[:300]!r}")
        listed[count], launched[count] = [], []
    for count in turns(options.sizes, options.list_rounds):
        listed[count].append(driver.time([world.bin, "ls", "-a", "--json"], states[count]))
    for count in turns(options.sizes, options.rounds):
        launched[count].append(driver.launch(pipe, [world.bin, "run", "--", *job], states[count])[0])
        time.sleep(options.settle / 1e3)
    peers = {}
    for name, show in (("tsp", ["-l"]), ("pueue", ["status", "--json"])):
        if name not in world.peers:
            continue
        command, env = world.tsp(slots=64) if name == "tsp" else world.pueue()
        there = 0
        for count in [count for count in options.sizes if count <= options.list_peers]:
            driver.many(count - there, 4, command(world.job("nop")), env(job))
            there = count
            drain(world, name, env(job))
            times = [driver.time([world.peers[name], *show], env(job)) for _ in range(options.list_rounds)]
            peers.setdefault(name, {})[count] = spread(times)
    return {"first list": first, "list": {count: spread(v) for count, v in listed.items()},
            "launch": {count: spread(v) for count, v in launched.items()}, "list of peers": peers}


def record(world, count):
    """A state directory with so many ended jobs: one real, the others after its pattern."""
    state = world.fresh("state")
    env = {"OUTLIVE_STATE_DIR": str(state), "OUTLIVE_SYNC": "off"}
    world.outlive("wait", world.outlive("run", "--", *world.job("nop"), env=env), env=env)
    ledger = state / "ledger.jsonl"
    # The end is told to whoever waits first, and to the ledger right after.
    end = time.monotonic() + 10
    while len(lines := ledger.read_text().splitlines()) < 2:
        if time.monotonic() > end:
            raise Broken("the end of a job did not come into the ledger")
        time.sleep(0.001)
    real = [json.loads(line) for line in lines]
    if [line["kind"] for line in real] != ["launched", "exited"]:
        raise Broken(f"a ledger of other kinds than expected: {lines}")
    seq = len(real)
    with open(ledger, "a", encoding="ascii") as out:
        for number in range(count - 1):
            for pattern in real:
                seq += 1
                pattern.update(id=made_id(number), seq=seq)
                out.write(json.dumps(pattern, separators=(",", ":")) + "\n")
    (state / "ledger.lock").unlink()
    return state


def made_id(number):
    """An id, letters and digits in turn, that differs for each number."""
    text = ""
    for at in range(7):
        base = 26 if at % 2 == 0 else 10
        text += chr((ord("a") if at % 2 == 0 else ord("0")) + number % base)
        number //= base
    return text


def output(world, driver, options):
    """How fast a job can write, by who keeps its output."""
    results = {}
    for kind in ("lines", "blocks"):
        ways = writers(world, driver)
        rates = {name: [] for name in ways}
        for name in turns(ways, options.output_rounds):
            size = options.output // (16 if name in ("conmon", "pueue") else 1)
            board = Board(world.scratch / f"writer.{next(world.number)}")
            directory = world.fresh("output")
            after = ways[name](world.job(kind, size, board.path), directory)
            rates[name].append(size / board.seconds() / 1e6)
            if after:
                after()
            os.unlink(board.path)
            shutil.rmtree(directory, ignore_errors=True)
        results[kind] = {name: spread(values) for name, values in rates.items()}
    return results


def writers(world, driver):
    """For each contender: starts a job whose output goes to a file below a directory."""
    def direct(job, directory):
        with open(directory / "out", "ab") as out:
            child = subprocess.Popen(job, stdin=subprocess.DEVNULL, stdout=out, env=world.env, cwd=world.cwd)
        return lambda: child.wait()

    def outlive(job, directory):
        env = {"OUTLIVE_STATE_DIR": str(directory), "OUTLIVE_SYNC": "off"}
        os.chmod(directory, 0o700)
        name = world.outlive("run", "--", *job, env=env)
        return lambda: world.outlive("wait", "--group", name, env=env)

    def nohup(job, directory):
        driver.time(["/bin/sh", "-c", 'nohup "$@" >"$OUT" 2>&1 &', "sh", *job], env={"OUT": str(directory / "out")})

    def nq(job, directory):
        world.run([world.peers["nq"], *job], env={"NQDIR": str(directory)})

    def tsp(job, directory):
        env = {"TS_SOCKET": str(directory / "socket"), "TMPDIR": str(directory)}
        world.run([world.peers["tsp"], *job], env=env)
        def after():
            world.run([world.peers["tsp"], "-w"], env=env)
            world.run([world.peers["tsp"], "-K"], env=env)
        return after

    def conmon(job, directory):
        command, env = world.conmon(log=directory / "log")
        driver.time(command(job), env(job))
        return lambda: drain(world, "conmon", {})

    def pueue(job, directory):
        command, env = world.pueue()
        number = world.run(command(job), env=env(job))
        def after():
            world.run([world.peers["pueue"], "wait", "--quiet", number], env=env(job))
            world.run([world.peers["pueue"], "clean"], env=env(job))
        return after

    ways = {"file": direct, "outlive": outlive}
    for name, way in (("nohup", nohup), ("nq", nq), ("tsp", tsp), ("conmon", conmon), ("pueue", pueue)):
        if name in world.peers:
            ways[name] = way
    return ways
