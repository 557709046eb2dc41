#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `purlin profile` costs a program: processes with and without it that live at the same time and take turns.

    python3 bench/gpu/capture_overhead.py --purlin build/release/bin/purlin --programs tiny --cores 0-15 \\
        --seconds-total 200 -o OUT/capture_overhead_tiny.json

The speed of a launch-bound program changes by 15 % within seconds on a virtual machine, in one process; processes that
run one after the other show nothing smaller. So a *group* is one fresh process for each row (of one server that has
imported PyTorch, see capture_programs.py): all set up, pinned to the same two cores, and then given turns of some
hundredths of a second in random order, round after round. What changes meanwhile changes for all of them. A row's ratio in a group is
its time per step over that of `none`, in the rounds that have both; over groups the table has the Hodges–Lehmann
estimate of the log ratio with the exact interval of Wilcoxon's signed ranks, of at least 95 % coverage from 6 groups
on (of fewer: their range; the coverage reached is in the JSON). Processes of one program differ, too, by some 4 %: of
`none` and `default` there are several in each group (--copies), whose mean counts; "A/A" is one half of the `none` over
the other.

A process that waits for its turn makes no launches meanwhile, so a governor that looks at the clock takes it for less
launch-heavy than it is. So the *head*, in which everything is recorded and at whose end it is decided what follows, comes
before all turns: each process of `default` runs by itself for --head-seconds. What the head took is the time that the
steps of the first three quarters took beyond the median ones of the last; "first minute" adds that to 60 seconds. Where
windows follow (graph) the clock matters all along, and the host's noise does not: there each process of a group runs for
one stretch by itself, in random order (--method). Where nothing follows (tiny, training: the note launch_bound) or
everything (gemm) it does not: the coverage, which says which of these it was, is in the document.

Rows: none, default (`purlin profile --torch off`), uncopied (the same with --copies off), hooked (plain `purlin profile`: with a trace of PyTorch in the
head, after which CUPTI is gone), fresh (none, started as hooked is: not by the server, which has imported PyTorch already), on (the library injected by the environment and nothing else, as it is left on everywhere:
a run is recorded or left out as earlier runs of the program tell, docs/guide/profiling.md), present (bench/gpu/bare_cupti.cc:
CUPTI registered and nothing else, what any client of it costs), idle (library injected, CUPTI not touched), full, bare (the
same consumer, recording all), torch (torch.profiler in the program), copies (that consumer, without kernels).

"on" is measured over runs: before the first group of a program it runs by itself for --alone-seconds, as a program's first
run does, which leaves the record that later runs are drawn by; then each group has several processes of it (--several), each
a run of its own, and each draws for itself from that record. What those take that were drawn and those left out, and from both what
a run takes in the mean, goes to a table of its own; they first run alone for --head-seconds, too. After
each group JSON is written and, beside it, a Markdown table. Several documents are put together by --merge.
"""

import argparse
import json
import math
import os
import random
import shlex
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from turns import environment, interval, take_turns

HERE = Path(__file__).resolve().parent
PROGRAMS_FILE = HERE / "capture_programs.py"
TITLES = {"tiny": "(a) loop of tiny launches", "training": "(b) transformer training step", "gemm": "(c) GEMM-bound",
          "graph": "(d) CUDA graph replay", "medium": "(e) training step that keeps the device busy", "cpu": "no GPU"}
ROWS = {"default": "`purlin profile --torch off`", "uncopied": "`--copies off`", "hooked/fresh": "`purlin profile`, after the trace", "A/A": "none against none", "idle": "injected, idle", "full": "`--full`",
        "on": "left on, over runs", "present": "CUPTI registered, nothing recorded", "copies": "copies recorded, no kernels",
        "default/present": "`purlin profile` over that", "bare": "bare CUPTI consumer", "full/bare": "`--full` over bare consumer", "torch": "`torch.profiler`"}
HEAVY = ("full", "bare", "torch")
RECORDS_HEAD = ("default", "uncopied", "hooked")
UNSERVED = ("hooked", "fresh")  # each imports PyTorch itself
STRETCHES = ("graph",)  # programs with windows after the head: see above
BIN_S = 0.05
AGAIN = "+"  # another process of a row


class Server:
    """capture_programs.py with PyTorch imported and CUDA untouched: starts programs by forking."""

    def __init__(self, path, cores):
        self.path = path
        self.process = subprocess.Popen([sys.executable, str(PROGRAMS_FILE), "serve", path],
                                        preexec_fn=lambda: os.sched_setaffinity(0, cores))

    def ready(self):
        while not os.path.exists(self.path):
            if self.process.poll() is not None:
                raise RuntimeError("the server of programs did not start")
            time.sleep(0.02)

    def stop(self):
        if os.path.exists(self.path):
            os.unlink(self.path)
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait()


class Member:
    """One process of a group."""

    def __init__(self, row, process, profile):
        self.row, self.process, self.profile, self.file, self.hello = row, process, profile, None, None  # profile: a file, or a folder that may hold some

    def ask(self, **request):
        try:
            self.file.write(json.dumps(request) + "\n")
            self.file.flush()
        except OSError:
            raise self.ended() from None
        return self.answer()

    def answer(self):
        line = self.file.readline()
        if not line:
            raise self.ended()
        return json.loads(line)

    def ended(self):
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
        return RuntimeError(f"the process of row {self.row} ended by itself, {self.process.returncode}: {self.process.stderr.read()[-3000:]}")


class Group:
    def __init__(self, runner, program, rows, server, number):
        self.runner, self.program, self.members = runner, program, {}
        self.folder = runner.folder / f"group-{number}"
        self.folder.mkdir()
        path = str(self.folder / "turns")
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen(64)
        listener.settimeout(90)
        try:
            for row in rows:
                self.members[row] = self.start(row, path, server)
            for _ in rows:
                connection, _ = listener.accept()
                connection.settimeout(120)
                file = connection.makefile("rw")
                self.members[json.loads(file.readline())["row"]].file = file
            for member in self.members.values():
                member.hello = member.answer()
            for member in self.members.values():
                member.hello.update(member.ask(do="pin", cores=runner.measuring))
        except BaseException:
            self.kill()
            raise

    def start(self, row, path, server):
        arguments, environment = self.runner.arguments, dict(os.environ)
        kind = row.partition(AGAIN)[0]
        command = [sys.executable, *([] if kind in UNSERVED else ["-S"]), str(PROGRAMS_FILE)]
        command += ["run"] if server is None or kind in UNSERVED else ["shim", server.path]
        command += [self.program, path, row]
        profile = self.folder / f"{row}.plprof"
        options = {"default": arguments.default_options, "uncopied": f"{arguments.default_options} --copies off",
                   "full": "--full", "idle": arguments.idle_options, "hooked": arguments.default_options}
        if kind in options:
            command = [arguments.purlin, "profile", *([] if kind == "hooked" else ["--torch", "off"]), "-o", str(profile), *shlex.split(options[kind]), "--", *command]
        elif kind in ("bare", "present", "copies"):
            environment.update(CUDA_INJECTION64_PATH=str(self.runner.bare), BARE_OUT=str(self.folder / f"{row}.txt"),
                               BARE_KINDS={"bare": "kcs", "copies": "cs"}.get(kind, ""))
        elif kind == "on":
            profile = self.folder / f"{row}.spool"
            profile.mkdir()
            environment.update(CUDA_INJECTION64_PATH=self.runner.library, PURLIN_SPOOL=str(profile), PURLIN_PROGRAM=self.program,
                               PURLIN_RUN_ID=self.runner.run_id(self.folder.name, row), PURLIN_STATE=str(self.runner.state(self.program, profile)))
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment,
                                   preexec_fn=lambda: os.sched_setaffinity(0, self.runner.others))
        return Member(row, process, profile if kind in (*options, "on") else None)

    def end(self):
        for member in self.members.values():
            member.file.write('{"do": "end"}\n')
            member.file.flush()
        found = {}
        for row, member in self.members.items():
            if member.process.wait(60) != 0:
                raise RuntimeError(f"row {row} exited {member.process.returncode}: {member.process.stderr.read()[-3000:]}")
            found[row] = {**member.hello, **self.coverage(member)}
        shutil.rmtree(self.folder)
        return found

    def coverage(self, member):
        if member.profile is None:
            return {}
        if member.profile.is_dir():
            files = sorted(member.profile.glob("*.plprof"))
            if not files:
                raise RuntimeError(f"row {member.row} left nothing in its spool")
            found = self.report(files[0])
            if "coverage" not in found:
                raise RuntimeError(f"row {member.row}: {found['report_error']}")
            return {"drawn": "not_sampled" not in {note["cause"] for note in found["coverage"]["notes"]}, **found}
        return self.report(member.profile)

    def report(self, profile):
        report = subprocess.run([self.runner.arguments.purlin, "report", str(profile), "--json"],
                                capture_output=True, text=True)
        if report.returncode != 0:
            return {"report_error": report.stderr[-500:]}
        document = json.loads(report.stdout)
        return {"coverage": document["coverage"], "launches": sum(kernel["count"] for kernel in document["kernels"]),
                "stands_for": [p.get("stands_for", 1) for p in document.get("processes") or []], "profile_bytes": profile.stat().st_size}

    def kill(self):
        for member in self.members.values():
            if member.process.poll() is None:
                member.process.kill()


def number_of(text):
    """FNV-1a, as profile/capture/sampling/process_sampler.cc has it."""
    value = 14695981039346656037
    for byte in text.encode():
        value = (value ^ byte) * 1099511628211 % 2**64
    return value ^ (value >> 32)


def library_of(purlin):
    """The capture library that is installed with it."""
    return str(Path(shutil.which(purlin)).resolve().parent.parent / "lib" / "purlin" / "libpurlin_cuda.so")


class Runner:
    def __init__(self, arguments, folder):
        self.arguments, self.folder = arguments, Path(folder)
        self.bare = self.folder / "bare_cupti.so"
        self.library = library_of(arguments.purlin) if "on" in arguments.rows else None
        self.one_in = {}  # by program, as its first run left it
        cores = arguments.core_list
        self.measuring = cores[:2]
        self.others = cores[2:] or cores
        os.sched_setaffinity(0, self.others)
        if {"bare", "present", "copies"} & set(arguments.rows):
            include = next(p for p in ("/usr/local/cuda/include", "/usr/local/cuda/extras/CUPTI/include")
                           if os.path.exists(f"{p}/cupti.h"))
            subprocess.run(["g++", "-std=c++20", "-O2", "-shared", "-fPIC", "-isystem", include, "-isystem",
                            "/usr/local/cuda/include", str(HERE / "bare_cupti.cc"), "-o", str(self.bare), "-ldl"], check=True)

    def state(self, program, folder):
        """Of one process: what the program's first run left, as often as it is asked for, so that a process which waits for its turn does not
        tell the next ones how little it launches. The first run's own is what it leaves."""
        first = self.folder / f"state-{program}"
        if not first.exists():
            first.mkdir()
            return first
        return shutil.copytree(first, folder / "state")

    def record(self, program):
        """What that is, as text."""
        return [path.read_text() for path in (self.folder / f"state-{program}").glob("capture-cost/*")]

    def measure(self, group, seconds, flips):
        """Turns: {row: {round: [steps, seconds]}}. `head`, `stretches`: {row: bins of [steps, seconds]}."""
        members, result = group.members, {}
        if self.method(group.program) == "stretches":
            order = list(members)
            flips.shuffle(order)
            result["order"], result["stretches"] = order, {}
            light = [row for row in order if row not in HEAVY]
            for row in order:
                length = seconds / len(light) * (0.4 if row in HEAVY else 1)
                length += self.arguments.head_seconds if self.will_record(group, row) else 0
                result["stretches"][row] = members[row].ask(do="stretch", seconds=length, bin=BIN_S)["bins"]
            return result
        for row in [row for row in members if self.will_record(group, row)]:
            result.setdefault("head", {})[row] = members[row].ask(do="stretch", seconds=self.arguments.head_seconds, bin=BIN_S)["bins"]
        turns = result.setdefault("turns", {row: {} for row in members})
        for number, row in take_turns(members, flips, time.monotonic() + seconds, every={row: self.arguments.heavy_every for row in HEAVY}):
            done = members[row].ask(do="turn", seconds=self.arguments.turn, skip=self.arguments.skip)
            turns[row][number] = [done["steps"], done["seconds"]]
        return result

    def will_record(self, group, row):
        """Whether a process has a head: of those left on, who is drawn (is_drawn of profile/capture/sampling/process_sampler.cc); what its profile says is compared at its end."""
        kind = row.partition(AGAIN)[0]
        return kind in RECORDS_HEAD or kind == "on" and number_of(self.run_id(group.folder.name, row)) % self.one_in.get(group.program, 1) == 0

    def run_id(self, group, row):
        return f"{self.arguments.seed}-{group}-{row}"

    def method(self, program):
        if self.arguments.method != "auto":
            return self.arguments.method
        return "stretches" if program in STRETCHES else "turns"


# ---- what the figures say


def per_step(pairs):
    pairs = list(pairs)
    return sum(s for _, s in pairs) / max(1, sum(n for n, _ in pairs))


def named(group, row):
    """The processes of a row in a group."""
    return [name for name in group["rows"] if name.partition(AGAIN)[0] == row]


def mean_of(times):
    return sum(times) / len(times)


def lower_quartile(values):
    values = sorted(values)
    return values[len(values) // 4]


def has_head(group, name):
    return group["rows"][name].get("drawn", name.partition(AGAIN)[0] in RECORDS_HEAD)


def of_turns(group, mine, base):
    """Of processes over others, of time per step: ratio of sums, of the quiet turns (each process' lower quartile: noise
    only adds), and ms of both."""
    turns = group["turns"]
    rounds = sorted(set.intersection(*(set(turns[name]) for name in mine + base)))
    if not rounds:
        return None
    with_it, alone = (mean_of([per_step(turns[name][r] for r in rounds) for name in names]) for names in (mine, base))

    def quiet(names):
        return mean_of([lower_quartile(turns[name][r][1] / turns[name][r][0] for r in rounds) for name in names])

    return {"ratio": with_it / alone, "quiet": quiet(mine) / quiet(base), "ms": with_it * 1e3, "none_ms": alone * 1e3}


def of_stretches(group, mine, base):
    def steady(name):
        skipped = group["head_seconds"] if has_head(group, name) else 0.3
        kept, passed = [], 0.0
        for n, s in group["stretches"][name]:
            passed += s
            if passed > skipped:
                kept.append((n, s))
        return kept

    kept = {name: steady(name) for name in mine + base}
    if not all(kept.values()):
        return None
    with_it, alone = (mean_of([per_step(kept[name]) for name in names]) for names in (mine, base))
    quiet = [mean_of([lower_quartile(s / n for n, s in kept[name]) for name in names]) for names in (mine, base)]
    return {"ratio": with_it / alone, "quiet": quiet[0] / quiet[1], "ms": with_it * 1e3, "none_ms": alone * 1e3}


def ratio_of(group, of, base):
    if not of or not base:
        return None
    return of_turns(group, of, base) if "turns" in group else of_stretches(group, of, base)


def head_extra_s(group, names):
    """What the head took beyond the steps after it, in the mean over processes."""
    extras, head_s = [], group["head_seconds"]
    for name in names:
        bins = group["head"][name] if "head" in group else group["stretches"][name]
        passed, early, late = 0.0, [], []
        for n, s in bins:
            if passed < head_s:
                (early if passed < 0.75 * head_s else late).append((n, s))
            passed += s
        usual = statistics.median(s / n for n, s in late) if late else 0
        extras.append(sum(s - n * usual for n, s in early))
    return mean_of(extras)


def times_of(group):
    """{process: [log time per step]}, without what a turn's round, which is the host's, has in the middle over none and on. Stretches: the
    bins after the head, over the middle of those of the group's `none`."""
    names = named(group, "none") + named(group, "on")
    if "stretches" in group:
        times = {}
        for name in names:
            passed, times[name] = 0.0, []
            for n, s in group["stretches"][name]:
                passed += s
                if n and passed > (group["head_seconds"] if has_head(group, name) else 0.3):
                    times[name].append(math.log(s / n))
        middle = statistics.median(t for name in named(group, "none") for t in times[name])
        return {name: [t - middle for t in mine] for name, mine in times.items()}
    turns, times = group["turns"], {name: [] for name in names}
    for number in sorted(set.intersection(*(set(turns[name]) for name in names))):
        found = {name: math.log(turns[name][number][1] / turns[name][number][0]) for name in names}
        middle = statistics.median(found.values())
        for name, time_of in found.items():
            times[name].append(time_of - middle)
    return times


def over_runs(groups):
    """Of the processes that were left on, time per step over that of the groups' `none`, of those recorded and those left out, and over runs: one in N
    is recorded. `median`: the middle turn of all over the middle one of `none`, which the host's long breaks do not move. `mean`: mean
    of the processes' ratios to the mean of their group's `none`. The head of one that was recorded is added to both as of a run of a minute. Intervals: 95 %
    of 2,000 draws of groups and of processes in them. None where there were none; over runs is None where N differs between groups."""
    groups = [g for g in groups if named(g, "on") and named(g, "none")]
    if not groups:
        return None
    counted = {(g.get("record") or {}).get("one_in") for g in groups}
    n = counted.pop() if len(counted) == 1 else None
    taken = []  # of each group: {kind: [(times, ratio, head's share of a minute)]}
    for group in groups:
        times, mine = times_of(group), {"none": [], "recorded": [], "left_out": []}
        for name in times:
            kind = "none" if name.partition(AGAIN)[0] == "none" else "recorded" if has_head(group, name) else "left_out"
            one = ratio_of(group, [name], named(group, "none"))
            if one is not None and times[name]:
                mine[kind].append((times[name], one["ratio"], head_extra_s(group, [name]) / 60 if kind == "recorded" else 0))
        taken.append(mine)

    def figures(chosen):
        pooled = {kind: [each for mine in chosen for each in mine[kind]] for kind in ("none", "recorded", "left_out")}
        if not pooled["none"]:
            return {}
        base = statistics.median(t for times, _, _ in pooled["none"] for t in times), mean_of([ratio for _, ratio, _ in pooled["none"]])
        found = {}
        for kind in ("recorded", "left_out"):
            if pooled[kind]:
                head = mean_of([head for _, _, head in pooled[kind]])
                found[kind, "median"] = math.exp(statistics.median(t for times, _, _ in pooled[kind] for t in times) - base[0]) + head
                found[kind, "mean"] = mean_of([ratio for _, ratio, _ in pooled[kind]]) / base[1] + head
        for which in ("median", "mean"):
            parts = [found.get((kind, which)) for kind in ("recorded", "left_out")]
            if n == 1 and parts[0]:
                found["over_runs", which] = parts[0]
            elif n and all(parts):
                found["over_runs", which] = parts[0] / n + parts[1] * (1 - 1 / n)
        return found

    drawing, drawn = random.Random(1), {}
    for _ in range(2000):
        again = [{kind: drawing.choices(each, k=len(each)) if each else [] for kind, each in mine.items()} for mine in drawing.choices(taken, k=len(taken))]
        for key, value in figures(again).items():
            drawn.setdefault(key, []).append(value)
    said = {"one_in": n, "groups": len(groups)}
    for kind in ("recorded", "left_out"):
        said[kind] = {"processes": sum(len(mine[kind]) for mine in taken)}
    for (kind, which), value in figures(taken).items():
        found = sorted(drawn[kind, which])
        said.setdefault(kind, {})[which] = {"estimate": value, "low": found[len(found) // 40], "high": found[-1 - len(found) // 40]}
    return said


def estimate_of(ratios):
    estimate, low, high, reached = interval([math.log(r) for r in ratios])
    return {"estimate": estimate, "low": low, "high": high, "coverage": reached}


def summarize(groups):
    rows = []
    for program in dict.fromkeys(g["program"] for g in groups):
        mine = [g for g in groups if g["program"] == program]
        for row in ROWS:
            found = []
            for group in mine:
                of, base = named(group, row), named(group, "none")
                if row == "A/A":
                    of, base = base[len(base) // 2:], base[:len(base) // 2]
                elif "/" in row:
                    of, base = (named(group, each) for each in row.split("/"))
                one = ratio_of(group, of, base)
                if one is not None:
                    one["head_s"] = head_extra_s(group, of) if row in RECORDS_HEAD else 0.0
                    found.append(one)
            if not found:
                continue
            rows.append({
                "program": program, "row": row, "groups": len(found),
                "method": "turns" if "turns" in mine[0] else "stretches",
                "none_ms": statistics.median(f["none_ms"] for f in found), "ms": statistics.median(f["ms"] for f in found),
                "after_head": estimate_of([f["ratio"] for f in found]),
                "quiet_turns": estimate_of([f["quiet"] for f in found]),
                "head_ms": statistics.median(f["head_s"] for f in found) * 1e3,
                "first_minute": estimate_of([f["ratio"] + f["head_s"] / 60 for f in found]),
            })
    return rows


def markdown(document):
    environment = document["environment"]
    lines = [f"# What capture costs: {environment.get('device', 'no GPU')}", "",
             f"Recorded {document['recorded_at']} at {environment['revision']}: " +
             ", ".join(f"`{command}`" for command in document["commands"]) + ".", "",
             "Time per step of the program with capture over its time without. The processes of a group live at the same time on the "
             "same two cores and GPU and take turns of some hundredths of a second in random order; (d) runs in one stretch each. Hodges–Lehmann "
             "estimate over groups of fresh processes with its exact 95 % interval (of fewer than 6 groups: their range).", "",
             "| program | | after the head | 95 % interval | quiet turns | 95 % interval | first minute, head included | alone, ms | with, ms | groups |",
             "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|"]
    for row in document["rows"]:
        after, quiet, minute = row["after_head"], row["quiet_turns"], row["first_minute"]
        first = f"{minute['estimate']:.4f} ({row['head_ms']:+.0f} ms)" if row["row"] == "default" else ""
        lines.append(f"| {TITLES[row['program']]} | {ROWS[row['row']]} | {after['estimate']:.4f} | {after['low']:.4f} … {after['high']:.4f} | "
                     f"{quiet['estimate']:.4f} | {quiet['low']:.4f} … {quiet['high']:.4f} | {first} | {row['none_ms']:.4f} | {row['ms']:.4f} | {row['groups']} |")
    on = [(program, over_runs([g for g in document["groups"] if g["program"] == program])) for program in TITLES]
    if any(each for _, each in on):
        lines += ["", "Left on everywhere (the library injected by the environment, nothing else said), over runs: time per step over that of the group's processes without, the heads of those recorded added as of a "
                  "run of a minute, in brackets 95 % of what groups and processes drawn anew say. Middle turn over middle turn; below it the mean over processes. Over runs: one in N recorded.", "",
                  "| program | | recorded | processes | left out | processes | one run in | over runs | groups |", "|---|---|--:|--:|--:|--:|--:|--:|--:|"]
        for program, each in on:
            for which in ("median", "mean") if each else ():
                cells = {kind: f"{each[kind][which]['estimate']:.4f} ({each[kind][which]['low']:.4f} to {each[kind][which]['high']:.4f})" if which in each.get(kind, {}) else ""
                         for kind in ("recorded", "left_out", "over_runs")}
                lines.append(f"| {TITLES[program]} | {which} | {cells['recorded']} | {each['recorded']['processes']} | {cells['left_out']} | {each['left_out']['processes']} | "
                             f"{each['one_in'] or ''} | {cells['over_runs']} | {each['groups']} |")
    said = []
    for program in dict.fromkeys(g["program"] for g in document["groups"]):
        mine = [g for g in document["groups"] if g["program"] == program]
        own = [c for g in mine for c in (g["rows"].get("default", {}).get("coverage"), g.get("alone")) if c]
        if own:
            coverage = own[-1]
            sampling = coverage.get("sampling") or {}
            said.append(f"| {TITLES[program]} | {coverage['launches_seen']:.0f} | {coverage['overhead_ns'] / 1e6:.0f} | "
                        f"{sampling.get('recorded_ns', 0) / 1e9:.2f} of {sampling.get('governed_ns', 0) / 1e9:.2f} | {sampling.get('windows', 0):.0f} | "
                        f"{100 * (sampling.get('presence') or 0):.1f} % | {sampling.get('one_in') or ''} | "
                        f"{', '.join(n['cause'] for n in coverage['notes'])} |")
    if said:
        lines += ["", "What a profile of the program by itself says (where there is none: the last of the default row):", "",
                  "| program | launches recorded | overhead, ms | s recorded | windows | CUPTI's presence | holds the budget: one run in | notes |",
                  "|---|--:|--:|--:|--:|--:|--:|---|", *said]
    lines += ["", "Environment: " + ", ".join(f"{k} {v}" for k, v in environment.items()) + ".", ""]
    return "\n".join(lines)


def core_list(text):
    if not text:
        return sorted(os.sched_getaffinity(0))
    cores = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        cores += range(int(first), int(last or first) + 1)
    return cores


def rounded(value):
    """To what a clock can tell: the document is kept."""
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    return [rounded(each) for each in value] if isinstance(value, (list, tuple)) else value


def write(document, path):
    text = json.dumps(rounded(document), separators=(",", ":")) + "\n"
    Path(path + ".new").write_text(text)
    os.rename(path + ".new", path)  # whoever is ended now leaves a whole document
    Path(path).with_suffix(".md").write_text(markdown(document))


def merge(paths, output):
    documents = [json.loads(Path(p).read_text()) for p in paths]
    whole = {**documents[0], "commands": [c for d in documents for c in d["commands"]],
             "groups": [{"head_seconds": d.get("head_seconds"), "revision": d["environment"]["revision"], **g} for d in documents for g in d["groups"]]}
    order = list(TITLES)
    whole["groups"].sort(key=lambda g: order.index(g["program"]))
    whole["rows"] = summarize(whole["groups"])
    write(whole, output)
    print(markdown(whole))


def run(arguments):
    programs = arguments.programs.split(",")
    flips, groups, began, costs, alone, records = random.Random(arguments.seed), [], time.monotonic(), {}, {}, {}
    document = {
        "schema": "purlin.bench.capture_overhead/6",
        "recorded_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "commands": [shlex.join(["python3", *sys.argv])],
        "seed": arguments.seed,
        "environment": environment(arguments.purlin),
        "groups": groups,
    }
    heavy_left = dict.fromkeys(programs, arguments.heavy_groups)
    server = next_server = None
    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(arguments, folder)

        def new_server(number):
            return None if set(programs) == {"cpu"} else Server(str(runner.folder / f"server-{number}"), runner.others)

        try:
            next_server = new_server(0)
            for number in range(arguments.groups or 10_000):
                program = programs[number % len(programs)]
                left = arguments.seconds_total - (time.monotonic() - began) if arguments.seconds_total else math.inf
                if left < costs.get(program, arguments.group_seconds + 8):
                    break
                started = time.monotonic()
                rows = [row for row in arguments.rows if row not in HEAVY or heavy_left[program] > 0]
                heavy_left[program] -= 1
                rows += [f"{row}{AGAIN}{n}" for row in rows for n in range(2, arguments.processes.get(row, 1) + 1)]
                flips.shuffle(rows)
                server, next_server = next_server, None
                if server is not None:
                    server.ready()
                if program not in alone and {"on", "default"} & set(arguments.rows):  # as its first run
                    first = "on" if "on" in arguments.rows else "default"
                    group = Group(runner, program, [first], server, f"{number}-alone")
                    try:
                        group.members[first].ask(do="stretch", seconds=arguments.alone_seconds, bin=BIN_S)
                        alone[program] = group.end()[first].get("coverage", {})
                    finally:
                        group.kill()
                    records[program] = {"text": runner.record(program), "one_in": (alone[program].get("sampling") or {}).get("one_in", 1)} if first == "on" else {}
                    print(f"{program} by itself: {json.dumps(alone[program].get('sampling'))} {records[program]}", file=sys.stderr, flush=True)
                    runner.one_in[program] = records[program].get("one_in") or 1
                    started = time.monotonic()
                group = Group(runner, program, rows, server, number)
                try:
                    next_server = new_server(number + 1)
                    if next_server is not None:
                        next_server.ready()  # its import is over before anything is measured
                    measured = runner.measure(group, arguments.group_seconds, flips)
                    found = group.end()
                    costs[program] = time.monotonic() - started
                finally:
                    group.kill()
                    if server is not None:
                        server.stop()
                for row, one in found.items():
                    if row.partition(AGAIN)[0] == "on" and one["drawn"] != runner.will_record(group, row):
                        raise RuntimeError(f"{row} of {program} is {'' if one['drawn'] else 'not '}drawn, against what its number says")
                groups.append({"program": program, "wall_s": costs[program], "rows": found, "alone": alone.get(program, {}), "record": records.get(program, {}), "head_seconds": arguments.head_seconds, "revision": document["environment"]["revision"], **measured})
                document["wall_s"] = time.monotonic() - began
                document["rows"] = summarize(groups)
                for row in document["rows"]:
                    if row["program"] == program:
                        print(f"{program:9s} {row['row']:9s} {row['after_head']['estimate']:.4f} [{row['after_head']['low']:.4f}, "
                              f"{row['after_head']['high']:.4f}]  quiet {row['quiet_turns']['estimate']:.4f}  head {row['head_ms']:+.0f} ms  "
                              f"{row['none_ms']:.4f} -> {row['ms']:.4f} ms  ({row['groups']} groups)", file=sys.stderr, flush=True)
                print(f"group {number}: {costs[program]:.1f} s; " + "; ".join(
                    f"{row} ready {f['ready_s']:.1f}" + (f" notes {[n['cause'] for n in f['coverage']['notes']]} seen {f['coverage']['launches_seen']:.0f}"
                                                         if "coverage" in f else "") for row, f in found.items()), file=sys.stderr, flush=True)
                if arguments.output:
                    write(document, arguments.output)
        finally:
            for one in (server, next_server):
                if one is not None:
                    one.stop()
    print(markdown(document) if groups else "no group was measured: --seconds-total is too short")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--purlin", default="purlin")
    parser.add_argument("--programs", default="tiny,training,gemm,graph")
    parser.add_argument("--rows", default="none,on,default,present,idle,full,bare,torch")
    parser.add_argument("--several", default="none,on=8,default,present", help="rows that have several processes in each group: --copies; on=8: so many")
    parser.add_argument("--copies", type=int, default=4)
    parser.add_argument("--cores", default="", help="0-15: the first two measure, the others set up")
    parser.add_argument("--seconds-total", type=float, default=0, help="no group is begun that would not end by then")
    parser.add_argument("--groups", type=int, default=0)
    parser.add_argument("--group-seconds", type=float, default=13, help="of turns in a group")
    parser.add_argument("--turn", type=float, default=0.06)
    parser.add_argument("--skip", type=float, default=0.01, help="of each turn, before it is timed")
    parser.add_argument("--head-seconds", type=float, default=2, help="of the steps of default and on that may hold a head")
    parser.add_argument("--alone-seconds", type=float, default=12, help="of the first run, whose profile that says how many runs are recorded")
    parser.add_argument("--heavy-every", type=int, default=3, help="full, bare, torch: a turn in so many rounds")
    parser.add_argument("--heavy-groups", type=int, default=1000, help="full, bare, torch: in so many groups of a program")
    parser.add_argument("--method", choices=("auto", "turns", "stretches"), default="auto")
    parser.add_argument("--default-options", default="", help="more options of the default row")
    parser.add_argument("--idle-options", default="--idle", help="what makes the idle row idle")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--merge", nargs="+", metavar="JSON", help="measure nothing: one document and table of these")
    parser.add_argument("-o", "--output")
    arguments = parser.parse_args()
    if arguments.merge:
        return merge(arguments.merge, arguments.output or "capture_overhead.json")
    arguments.processes = {row: int(number or arguments.copies) for row, _, number in (each.partition("=") for each in arguments.several.split(","))}
    arguments.rows = [r for r in arguments.rows.split(",") if r]
    arguments.purlin = os.path.abspath(arguments.purlin) if "/" in arguments.purlin else arguments.purlin
    arguments.core_list = core_list(arguments.cores)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # by way of what ends the processes
    return run(arguments)


if __name__ == "__main__":
    main()
