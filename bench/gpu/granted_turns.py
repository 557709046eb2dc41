#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The step of an unmodified program after `purlin profile` has recorded it, over its step without Purlin.

    python3 bench/gpu/granted_turns.py PURLIN PROGRAM… -o OUT.json [--cores 0-15] [--each 3] [--rounds 10]
                                       [--rows alone=5,profiled=3,cycled=3 --bare LIBRARY]

PROGRAM is a name of bench/unmodified (gpt2_train, gpt2_generate, resnet50_train, jax_train, ddp_train), or the path without
.py of a program that calls the clock as those do. A job is a process, or torchrun with its ranks (RANKS). The same program
differs by 10 to 20 % from one minute to the next on a virtual machine, and more while another one runs. So `--each` jobs
without and as many with `purlin profile` live at the same time, and one of them makes steps. `--rows` names other kinds of
jobs (ROWS) and how many of each there are. Those with CUPTI alone need `--bare`, the library of bare_cupti.cc.

Each program makes a call once a step anyway, of the clock mostly (STAMPS). This file runs the program in its own process
(`granted_turns.py run …`). There that call notes the time, and waits while the job has made all the steps that it was granted.
So all ranks stop before the same step, nothing is queued on a GPU, and no kernel spins until another rank goes on.

All jobs import what they need together. Then each runs alone, from the start of the program to `--head` seconds after its
fifth step, in which Purlin records what it records. Then they take turns in random order, of as many steps as take `--turn`
seconds. The steps of a turn's first `--skip` seconds do not count. A job's step is that of its rank 0.

A job's figure is the median over rounds of its median step, over that of the jobs without Purlin in the same round. The
spread of those without Purlin is printed beside it: it is what the method cannot tell apart. `head_lost_s` is what recording
took of the head. A job that ends, or makes no step for long, is in `trouble`: it is ended, and the others go on.
"""

import argparse
import contextlib
import importlib
import json
import math
import mmap
import os
import random
import runpy
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from turns import environment, take_turns

PROGRAMS = Path(__file__).resolve().parent.parent / "unmodified"
# The call that is noted, how often a step makes it, and the module that makes it: others may call it too.
STAMPS = {"gpt2_generate": ("torch", "argmax", 1, "transformers")}
CLOCK = ("time", "perf_counter", 2, "__main__")
RANKS = {"ddp_train": 2}
ENDLESS = {"gpt2_generate": "900"}  # tokens that the model has room for; it starts again
IMPORTS = {"gpt2_train": ["transformers.models.gpt2.modeling_gpt2"], "gpt2_generate": ["transformers.models.gpt2.modeling_gpt2"],
           "resnet50_train": ["torch"], "ddp_train": ["torch"], "jax_train": ["jax"]}
READY_STEPS, LEAST_STEPS = 5, 5
POLL_S, PORTION_S = 0.005, 0.3
START_S, STUCK_S, FORSAKEN_S = 120, 30, 900  # longest waits: for the first steps, for more, for a grant
END = -1  # granted: the program ends instead of its next step


def granted_of(path):
    """One number that all processes of the job see: the steps that they may make."""
    with open(f"{path}.granted", "r+b") as file:
        return memoryview(mmap.mmap(file.fileno(), 8)).cast("q")


def run(path, program):
    """Runs the program. Its noted call waits for a grant, and writes the begin and the end of each step, eight bytes each."""
    name = Path(program).name
    module, function, per_step, caller = STAMPS.get(name, CLOCK)
    granted, clock = granted_of(path), time.perf_counter
    noted = getattr(importlib.import_module(module), function)
    begun = calls = 0

    def wait():
        forsaken = clock() + FORSAKEN_S
        while begun >= granted[0]:
            if granted[0] == END or clock() > forsaken:
                sys.exit(0)
            time.sleep(POLL_S)

    def note(*arguments, **options):
        nonlocal begun, calls
        if sys._getframe(1).f_globals.get("__name__", "").startswith(caller):
            if calls % per_step == 0:
                if begun:
                    file.write(struct.pack("d", clock()))
                wait()
                begun += 1
                file.write(struct.pack("d", clock()))
            calls += 1
        return noted(*arguments, **options)

    setattr(sys.modules[module], function, note)
    for each in IMPORTS.get(name, ()):
        importlib.import_module(each)
    file = open(f"{path}.{os.environ.get('LOCAL_RANK', 0)}", "wb", buffering=0)  # that it is there says: ready
    sys.argv = [f"{name}.py", ENDLESS.get(name, "10000000")]
    try:
        wait()
        while True:
            runpy.run_path(str(PROGRAMS / f"{program}.py"), run_name="__main__")
    finally:
        distributed = getattr(sys.modules.get("torch"), "distributed", None)
        if distributed and distributed.is_available() and distributed.is_initialized():
            distributed.destroy_process_group()


class Row(NamedTuple):
    """A kind of job. `options`: of `purlin profile`; None: without Purlin. `bare`: what bare_cupti.cc is told."""

    options: list | None = None
    bare: dict | None = None

    def records(self):
        return self.options is not None or self.bare is not None


BARE_OFF = {"BARE_KINDS": "k", "BARE_OFF_MS": "2500"}
ROWS = {
    "alone": Row(), "profiled": Row([]), "uncopied": Row(["--copies", "off"]), "idle": Row(["--idle"]),
    "present": Row(bare={"BARE_KINDS": ""}), "recorded": Row(bare={"BARE_KINDS": "k"}),
    "ended": Row(bare=BARE_OFF), "cycled": Row(bare={**BARE_OFF, "BARE_CYCLE": "1"}),
    "copies_stay": Row(bare={**BARE_OFF, "BARE_KINDS": "kcs"}),
    "late": Row(bare={"BARE_KINDS": "k", "BARE_ON_MS": "3500", "BARE_OFF_MS": "4500"}),
    "around": Row(bare={**BARE_OFF, "BARE_AROUND": "1"}),
}


class Job:
    def __init__(self, program, folder, number, name, options):
        self.name, self.row = name, ROWS[name]
        self.profiled, self.path, ranks = self.row.options is not None, Path(folder) / str(number), RANKS.get(Path(program).name, 1)
        self.stamps, self.profile = [Path(f"{self.path}.{rank}") for rank in range(ranks)], f"{self.path}.plprof"
        Path(f"{self.path}.granted").write_bytes(bytes(8))
        self.granted, self.trouble, self.head = granted_of(self.path), None, (0, 0)
        launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(ranks)] if ranks > 1 else []
        command = ["taskset", "-c", options.cores, sys.executable, *launcher, str(Path(__file__).resolve()), "run", str(self.path), program]
        if self.profiled:
            command = [options.purlin, "profile", "--quiet", "-o", self.profile, *self.row.options, "--", *command]
        around = {"CUDA_INJECTION64_PATH": options.bare, **self.row.bare} if self.row.bare is not None else {}
        self.log = Path(f"{self.path}.log")
        with self.log.open("w", encoding="utf-8") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                                            env={**os.environ, **around})

    def made(self):
        """The steps that every rank has made."""
        return min(file.stat().st_size // 16 for file in self.stamps)

    def steps(self, first, last):
        """(begin, end) of those steps of rank 0, in seconds."""
        with self.stamps[0].open("rb") as file:
            file.seek(16 * first)
            data = file.read(16 * (last - first))
        return list(struct.iter_unpack("dd", data[:len(data) // 16 * 16]))

    def steps_in(self, seconds):
        made = self.made()
        lately = statistics.median(end - begin for begin, end in self.steps(max(0, made - 20), made))
        return max(LEAST_STEPS, round(seconds / lately))

    def wait_until(self, reached, longest):
        end = time.monotonic() + longest
        while not self.trouble and not reached():
            if self.process.poll() is not None or time.monotonic() > end:
                self.trouble = self.state()
                self.end()
            time.sleep(POLL_S)

    def start(self, seconds):
        """The first steps, and more for so long. It never waits within them: more are granted before."""
        self.granted[0] = 2 * READY_STEPS
        self.wait_until(lambda: self.made() >= READY_STEPS, START_S)
        if self.trouble:
            return
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.process.poll() is None:
            self.granted[0] = max(self.granted[0], self.made() + self.steps_in(PORTION_S))
            time.sleep(POLL_S)
        self.wait_until(lambda: self.made() >= self.granted[0], STUCK_S)
        self.head = READY_STEPS, self.made()

    def turn(self, seconds):
        """(first, last) step of the turn, which ends once every rank waits again."""
        first = self.made()
        self.granted[0] = first + self.steps_in(seconds)
        self.wait_until(lambda: self.made() >= self.granted[0], STUCK_S + seconds)
        return first, self.made()

    def processes(self):
        """Its living ones, also those that have lost their parent: the job's path is an argument of each."""
        found = []
        for file in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                if str(self.path).encode() in file.read_bytes().split(b"\0"):
                    found.append(int(file.parent.name))
        return found

    def state(self):
        """How far each rank is, and what each thread waits for."""
        found = {"exit": self.process.poll(), "granted": self.granted[0],
                 "made": [file.stat().st_size // 16 if file.exists() else None for file in self.stamps],
                 "log": self.log.read_text(errors="replace")[-3000:]}
        if pids := ",".join(map(str, self.processes())):
            threads = subprocess.run(["ps", "-L", "-o", "pid,tid,stat,wchan:32,comm", "-p", pids], capture_output=True, text=True,
                                     check=False, timeout=30).stdout
            found["threads"] = threads.splitlines()
        return found

    def end(self):
        """Its programs end at their next step. Else by signals, Purlin last: it still writes the profile."""
        self.granted[0] = END
        for patience, number, spared in ((15, signal.SIGINT, None), (5, signal.SIGKILL, self.process.pid), (5, signal.SIGKILL, None)):
            end = time.monotonic() + patience
            while (self.processes() or self.process.poll() is None) and time.monotonic() < end:
                time.sleep(0.1)
            for pid in self.processes():
                if pid != spared:
                    with contextlib.suppress(OSError):
                        os.kill(pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(10)


def notes_of(purlin, profile):
    try:
        out = subprocess.run([purlin, "report", "--json", profile], capture_output=True, text=True, check=False, timeout=60).stdout
        coverage = json.loads(out)["coverage"]
    except (subprocess.TimeoutExpired, ValueError, KeyError):
        return {"error": "no report"}
    return {"notes": coverage.get("notes"), "report_step_ms": (coverage.get("step_ns") or 0) / 1e6 or None,
            "overhead_s": (coverage.get("overhead_ns") or 0) / 1e9}


def measure(program, options, folder):
    began = time.monotonic()
    jobs = [Job(program, folder, number, name, options) for number, name in enumerate(options.rows)]
    medians = {}
    try:
        for job in jobs:
            job.wait_until(lambda: all(file.exists() for file in job.stamps), START_S)
        for job in jobs:
            if not job.trouble:
                job.start(options.head if job.row.records() else options.head / 4)
        for number, which in take_turns(range(len(jobs)), random.Random(options.seed), began + options.seconds, most=options.rounds):
            job = jobs[which]
            if job.trouble:
                continue
            steps = job.steps(*job.turn(options.turn))
            counted = [end - begin for begin, end in steps if begin >= steps[0][0] + options.skip]
            if not job.trouble and len(counted) >= 3:
                medians[number, which] = statistics.median(counted)
    finally:
        for job in jobs:
            job.granted[0] = END
        for job in jobs:
            job.end()
    return summary(program, jobs, medians, options)


def summary(program, jobs, medians, options):
    """`head_lost_s` is what the steps of the head took beyond as many steps of the jobs without Purlin."""
    alone = [which for which, job in enumerate(jobs) if job.name == "alone"]
    of_alone = [value for (_, of), value in medians.items() if of in alone]
    rows = []
    for which, job in enumerate(jobs):
        mine = {number: value for (number, of), value in medians.items() if of == which}
        logs = []
        for number, value in mine.items():
            others = [medians[number, other] for other in alone if other != which and (number, other) in medians]
            if others:
                logs.append(math.log(value / statistics.mean(others)))
        row = {"row": job.name, "profiled": job.profiled, "rounds": len(logs),
               "ratio": math.exp(statistics.median(logs)) if logs else None,
               "step_ms": 1e3 * statistics.median(mine.values()) if mine else None,
               "turns_ms": {number: round(1e3 * value, 4) for number, value in mine.items()}}
        head = job.steps(*job.head) if any(job.head) else []
        if head and of_alone:
            row["head_steps"] = len(head)
            row["head_lost_s"] = head[-1][1] - head[0][0] - len(head) * statistics.median(of_alone)
        if job.trouble:
            row["trouble"] = job.trouble
        elif job.process.returncode:
            row["end"] = job.state()
        if job.profiled:
            row.update(notes_of(options.purlin, job.profile))
        rows.append(row)
    figures = {"in_trouble": sum("trouble" in row or "end" in row for row in rows)}
    for name in dict.fromkeys(job.name for job in jobs):
        ratios = [row["ratio"] for row in rows if row["row"] == name and row["ratio"]]
        if ratios:
            figures[name] = {"mean": statistics.mean(ratios), "least": min(ratios), "most": max(ratios)}
    return {"program": program, "jobs": rows, **figures}


def counted_rows(text):
    """"alone=2,cycled=1": ["alone", "alone", "cycled"]."""
    out = []
    for part in text.split(","):
        name, _, count = part.partition("=")
        if name not in ROWS or not count.isdigit():
            raise argparse.ArgumentTypeError(f"{part!r}: give NAME=COUNT, with a NAME of {', '.join(ROWS)}")
        out += [name] * int(count)
    return out


def main():
    if sys.argv[1:2] == ["run"]:
        return run(*sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("purlin")
    parser.add_argument("programs", nargs="+")
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--cores", default="0-15")
    parser.add_argument("--each", type=int, default=3, help="jobs with and without Purlin")
    parser.add_argument("--rows", type=counted_rows, help="kinds of jobs in place of --each, NAME=COUNT,…: " + ", ".join(ROWS))
    parser.add_argument("--bare", help="library of bare_cupti.cc, for rows with CUPTI alone")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=600, help="of a program, after which no more rounds than two begin")
    parser.add_argument("--turn", type=float, default=0.6, help="seconds")
    parser.add_argument("--skip", type=float, default=0.1, help="of a turn, seconds")
    parser.add_argument("--head", type=float, default=14, help="seconds")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    options.purlin = os.path.abspath(options.purlin)
    options.rows = options.rows or ["alone", "profiled"] * options.each
    if "alone" not in options.rows:
        parser.error("--rows: at least one job has to be alone, to compare with")
    if any(ROWS[name].bare is not None for name in options.rows) and not options.bare:
        parser.error("--rows: jobs with CUPTI alone need --bare, the library of bare_cupti.cc")
    options.bare = options.bare and os.path.abspath(options.bare)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the jobs end too
    document = {"schema": "purlin.granted_turns/1", "command": " ".join(sys.argv),
                "utc": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "environment": environment(options.purlin), "programs": []}
    for program in options.programs:
        with tempfile.TemporaryDirectory() as folder:
            document["programs"].append(measure(program, options, folder))
        print(json.dumps({key: value for key, value in document["programs"][-1].items() if key != "jobs"}), flush=True)
        Path(options.output).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
