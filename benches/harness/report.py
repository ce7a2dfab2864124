"""Tables and budgets from what was measured."""

BEFORE = "returns before it is known whether the command exists"
NOTES = {"nq": BEFORE, "tsp": BEFORE, "setsid -f": BEFORE, "nohup &": BEFORE, "conmon": BEFORE, "pueue": BEFORE,
         "floor: exec": BEFORE}
FLUSHED = "outlive, flushed"


def number(value, digits=0):
    return f"{value:,.{digits}f}"


def median(entry):
    return entry["median"]


def tables(result):
    """Every measurement as (title, header, rows)."""
    if "latency" in result:
        latency, base = result["latency"], {"first": "floor: exec", "returned": "floor: run"}
        for key, title in (("first", "From the call to the first instruction of the job, µs"),
                           ("returned", "From the call to its return, µs")):
            floor = median(latency[key][base[key]])
            rows = [[name, number(median(entry)), number(entry["p10"]), number(entry["p90"]),
                     f"{median(entry) / floor:.2f}", NOTES.get(name, "") if key == "returned" else ""]
                    for name, entry in in_order(latency[key])]
            yield title, ["", "median", "p10", "p90", "× floor", ""], rows
    if "bursts" in result:
        kinds = result["bursts"]
        names = sorted(kinds["in sequence"], key=lambda name: -median(kinds["in sequence"][name]))
        rows = [[name] + [number(median(kinds[kind][name])) for kind in kinds]
                + [str(sum(kinds[kind][name]["failed"] for kind in kinds))] for name in names]
        yield "Launches a second", ["", *kinds, "failed"], rows
    for key, title in (("wait", "From the exit of a job to the return of who waits for it, µs"),
                       ("stop", "From the call of stop to the end of the job and of the call, µs")):
        if key in result:
            floor = median(result[key]["floor"])
            rows = [[name, number(median(entry)), number(entry["p10"]), number(entry["p90"]),
                     f"{median(entry) / floor:.2f}"]
                    + ([("yes" if entry["tells"] else "no")] if key == "wait" else [])
                    for name, entry in in_order(result[key])]
            yield title, ["", "median", "p10", "p90", "× floor"] + (["tells the status"] if key == "wait" else []), rows
    for count, entries in result.get("memory", {}).items():
        rows = [[name, number(entry["pss per job"]), number(entry["private"]), number(entry["anonymous"]),
                 number(entry["pss in all"] / 1024, 1), number(entry["threads"]), number(entry["descriptors"]),
                 f"{entry['wake-ups']} in {entry['seconds']:g} s"]
                for name, entry in sorted(entries.items(), key=lambda item: item[1]["pss per job"])]
        yield (f"{count} live jobs: what looks after one of them, KiB",
               ["", "PSS per job", "private", "anonymous", "PSS in all, MiB", "threads", "descriptors", "wake-ups, all"], rows)
    if "sizes" in result:
        sizes = result["sizes"]
        peers = sizes["list of peers"]
        rows = [[number(int(count)), number(median(sizes["launch"][count])), number(median(sizes["list"][count])),
                 number(sizes["first list"][count]),
                 *(number(median(peers[name][count])) if count in peers[name] else "" for name in peers)]
                for count in sizes["list"]]
        yield ("By the number of recorded jobs, µs",
               ["recorded jobs", "run", "ls -a --json", "the first one, from a ledger never folded",
                *(f"list of {name}" for name in peers)], rows)
    if "output" in result:
        for kind, title in (("lines", "A job that writes 64-byte lines, MB/s"), ("blocks", "64-KiB blocks, MB/s")):
            entries = result["output"][kind]
            base = median(entries["file"])
            rows = [[name, number(median(entry)), f"{median(entry) / base:.2f}"]
                    for name, entry in sorted(entries.items(), key=lambda item: -median(item[1]))]
            yield title, ["", "median", "× file"], rows


def in_order(entries):
    return sorted(entries.items(), key=lambda item: median(item[1]))


def peers_of(entries):
    return {name: entry for name, entry in entries.items() if not name.startswith(("outlive", "floor", "file"))}


def budgets(result):
    """What was promised, what was measured, and whether it holds."""
    def row(what, value, bound, holds, unit=""):
        return {"what": what, "value": value, "bound": bound, "ok": bool(holds), "unit": unit}

    def ahead(what, entries, best=min, only=lambda name: True):
        rivals = {name: median(entry) for name, entry in peers_of(entries).items() if only(name)}
        if not rivals:
            return
        name = best(rivals, key=rivals.get)
        own = median(entries["outlive"])
        yield row(f"{what}: ahead of every peer", number(own), f"{name} {number(rivals[name])}",
                  own < rivals[name] if best is min else own > rivals[name])

    if "latency" in result:
        first, returned, flush = (result["latency"][key] for key in ("first", "returned", "flush"))
        ratio = median(first["outlive"]) / median(first["floor: exec"])
        yield row("first instruction of the job", f"{ratio:.2f} × floor", "≤ 1.20", ratio <= 1.2)
        yield from ahead("first instruction of the job", first)
        floor = median(returned["floor: run"])
        ratio = median(returned["outlive"]) / floor
        yield row("run returns, with the exec confirmed", f"{ratio:.2f} × floor", "≤ 1.25", ratio <= 1.25)
        bound = 1.25 * floor + flush
        own = median(returned[FLUSHED])
        yield row("run returns, with flushes", f"{number(own)} µs", f"≤ {number(bound)} (1.25 × floor + a flush of {number(flush)})",
                  own <= bound)
    if "bursts" in result:
        sequence, at_once = result["bursts"]["in sequence"], result["bursts"]["8 at once"]
        if "nq" in sequence:
            ratio = median(sequence["outlive"]) / median(sequence["nq"])
            yield row("launches in sequence", f"{ratio:.2f} × nq", "≥ 0.90", ratio >= 0.9)
        yield from ahead("launches, 8 at once", at_once, best=max)
        failed = sum(kind[name]["failed"] for kind in (sequence, at_once) for name in ("outlive", FLUSHED))
        yield row("launches that failed, jobs that were lost", str(failed), "0", failed == 0)
    if "wait" in result:
        entries = result["wait"]
        ratio = median(entries["outlive"]) / median(entries["floor"])
        yield row("exit of the job to the return of wait", f"{ratio:.2f} × floor", "≤ 1.50", ratio <= 1.5)
        yield from ahead("wait, of those that tell the status", entries, only=lambda name: entries[name]["tells"])
        if "tsp -w" in entries:
            own, theirs = median(entries["outlive"]), median(entries["tsp -w"])
            yield row("wait: ahead of tsp", number(own), number(theirs), own < theirs)
    if "stop" in result:
        ratio = median(result["stop"]["outlive"]) / median(result["stop"]["floor"])
        yield row("stop of a sleep", f"{ratio:.2f} × floor", "≤ 1.50", ratio <= 1.5)
    memory = result.get("memory", {})
    for count, entries in memory.items():
        own = entries["outlive"]
        if int(count) > 1:
            # The pages of the program itself are shared by two supervisors or more.
            yield row(f"private memory of a supervisor, {count} jobs", f"{number(own['private'])} KiB", "≤ 96",
                      own["private"] <= 96)
            rivals = {name: entry["private"] for name, entry in entries.items() if name not in ("outlive", "floor", "pueue")}
            if rivals:
                best = min(rivals, key=rivals.get)
                yield row(f"private memory, {count} jobs: ahead of every peer", number(own["private"]),
                          f"{best} {number(rivals[best])}", own["private"] < rivals[best])
        yield row(f"idle, {count} jobs: threads, descriptors, wake-ups",
                  f"{own['threads']:g}, {own['descriptors']:g}, {own['wake-ups']}", "1, ≤ 6, 0",
                  own["threads"] == 1 and own["descriptors"] <= 6 and own["wake-ups"] == 0)
        if int(count) >= 1000:
            yield row(f"{count} jobs alive, memory in all", f"{number(own['pss in all'] / 1024, 1)} MiB", "≤ 100",
                      own["pss in all"] / 1024 <= 100)
    if "sizes" in result:
        sizes = result["sizes"]
        counts = list(sizes["launch"])
        few, most = counts[0], counts[-1]
        ratio = median(sizes["launch"][most]) / median(sizes["launch"][few])
        yield row(f"run with {number(int(most))} recorded jobs", f"{ratio:.2f} × that with {few}", "≤ 1.10", ratio <= 1.1)
        own = {int(count): median(entry) for count, entry in sizes["list"].items()}
        if 10_000 in own:
            yield row("ls -a --json, 10,000 jobs", f"{number(own[10_000])} µs", "≤ 30,000", own[10_000] <= 30_000)
            if 100_000 in own:
                growth = own[100_000] / own[10_000]
                yield row("ls -a --json, 100,000 jobs", f"{growth:.1f} × that of 10,000", "≤ 12 (linear)", growth <= 12)
    for kind, entries in result.get("output", {}).items():
        ratio = median(entries["outlive"]) / median(entries["file"])
        yield row(f"output in {kind}", f"{ratio:.2f} × file", "1.00 (≥ 0.97)", ratio >= 0.97)


def verdicts(result):
    bounded = result["options"]["bounds"]
    rows = [[one["what"], one["value"], one["bound"], ("ok" if one["ok"] else "MISS") if bounded else "not judged"]
            for one in result["budgets"]]
    return "Budgets" + ("" if bounded else " (too few samples to judge)"), ["", "measured", "bound", ""], rows


def text(result):
    """The whole report for a terminal."""
    parts = [heading(result)]
    for title, header, rows in [*tables(result), verdicts(result)]:
        width = [max(len(row[at]) for row in [header, *rows]) for at in range(len(header))]
        numeric = lambda at: at > 0
        line = lambda row: "  ".join(
            cell.rjust(width[at]) if numeric(at) and at < len(row) - 1 else cell.ljust(width[at])
            for at, cell in enumerate(row)
        ).rstrip()
        parts.append("\n".join([title, line(header), *map(line, rows)]))
    return "\n\n".join(parts) + "\n"


def markdown(result):
    """The same as Markdown."""
    parts = [heading(result)]
    for title, header, rows in [verdicts(result), *tables(result)]:
        lines = ["| " + " | ".join(header) + " |", "|" + "|".join([" --- "] + [" ---: "] * (len(header) - 1)) + "|"]
        lines += ["| " + " | ".join(row) + " |" for row in rows]
        parts.append(f"### {title}\n\n" + "\n".join(lines))
    return "\n\n".join(parts) + "\n"


def heading(result):
    machine, options = result["machine"], result["options"]
    return (f"{machine['date']}, {machine['system']}, {machine['processors']} processors ({machine['model']}), "
            f"scratch directory on {machine['file system']}, load {machine['load before']} before and "
            f"{machine['load after']} after; outlive {machine['outlive']}; {options['rounds']} rounds, medians.")
