#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The step of an unmodified program after `purlin profile` has recorded it, over its step without Purlin.

    python3 bench/gpu/stopped_turns.py PURLIN PROGRAM… -o OUT.json [--cores 0-15] [--each 3] [--rounds 10]

PROGRAM is a name of bench/unmodified (gpt2_train, gpt2_generate, resnet50_train, jax_train). The same program differs by
10 to 20 % from one minute to the next on a virtual machine, and more while another one runs. So `--each` processes without
and as many with `purlin profile` live at the same time, and all but one of them are stopped (SIGSTOP). They import what they need
together. Then each runs alone, from the start of the program to `--head` seconds after its fifth step, in which Purlin records
what it records. Then they take turns of `--turn` seconds in random order.

A step is the time between two calls that the program makes once a step anyway: the clock's (STAMPS). This file runs the
program in its own process to note those times (`stopped_turns.py run …`). Only steps that lie within a turn count, without
its first `--skip` seconds. A process's figure is the median over rounds of its median step, over that of the processes without
Purlin in the same round. `head_lost_s` is what recording took of the head. The spread of those without Purlin is printed beside it: it is what the method cannot tell apart.
"""

import argparse
import importlib
import json
import math
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

from turns import environment

HERE = Path(__file__).resolve().parent
PROGRAMS = HERE.parent / "unmodified"
# The call that is noted, and how often a step makes it.
STAMPS = {"gpt2_generate": ("torch", "argmax", 1)}
CLOCK = ("time", "perf_counter", 2)
ENDLESS = {"gpt2_generate": "900"}  # tokens that the model has room for; it starts again
IMPORTS = {"gpt2_train": ["transformers.models.gpt2.modeling_gpt2"], "gpt2_generate": ["transformers.models.gpt2.modeling_gpt2"],
           "resnet50_train": ["torch"]}
READY_STEPS = 5


def run(path, name):
    """Runs the program with its call noted in the file at `path`, eight bytes each."""
    module, function, _ = STAMPS.get(name, CLOCK)
    file = open(path, "wb", buffering=0)
    clock = time.perf_counter
    noted = getattr(importlib.import_module(module), function)

    def note(*arguments, **options):
        file.write(struct.pack("d", clock()))
        return noted(*arguments, **options)

    setattr(sys.modules[module], function, note)
    for each in IMPORTS.get(name, ()):
        importlib.import_module(each)
    Path(f"{path}.ready").touch()
    while not Path(f"{path}.go").exists():
        time.sleep(0.05)
    sys.argv = [f"{name}.py", ENDLESS.get(name, "10000000")]
    while True:
        runpy.run_path(str(PROGRAMS / f"{name}.py"), run_name="__main__")


class Process:
    def __init__(self, name, folder, number, purlin, cores):
        self.stamps, self.profile = Path(folder) / f"{number}.stamps", Path(folder) / f"{number}.plprof"
        self.profiled, self.per_step = purlin is not None, STAMPS.get(name, CLOCK)[2]
        self.stopped_at = None
        command = ["taskset", "-c", cores, sys.executable, str(Path(__file__).resolve()), "run", str(self.stamps), name]
        if purlin:
            command = [purlin, "profile", "--quiet", "-o", str(self.profile), "--", *command]
        self.log = open(f"{self.stamps}.log", "w")
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log, start_new_session=True)

    def signal(self, number):
        os.killpg(self.process.pid, number)

    def steps(self):
        """(begin, end) of each step so far, in seconds."""
        data = self.stamps.read_bytes() if self.stamps.exists() else b""
        times = [value for value, in struct.iter_unpack("d", data[:len(data) // 8 * 8])][::self.per_step]
        return list(zip(times, times[1:]))

    def wait_until(self, reached):
        end = time.monotonic() + 120
        while not reached():
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"the program ended or hangs: {Path(self.log.name).read_text()[-1500:]}")
            time.sleep(0.02)

    def trouble(self, end):
        """What its threads wait for, where it has ended or made no step for two seconds before `end`."""
        steps = self.steps()
        if self.process.poll() is None and steps and steps[-1][1] > end - 2:
            return None
        threads = subprocess.run(["ps", "-L", "-o", "pid,tid,stat,wchan:32,comm", "-s", str(self.process.pid)],
                                 capture_output=True, text=True, check=False).stdout
        return {"exit": self.process.poll(), "log": Path(self.log.name).read_text()[-1500:], "threads": threads.splitlines()}

    def run_for(self, seconds):
        self.signal(signal.SIGCONT)
        begin = time.perf_counter()
        time.sleep(seconds)
        end = time.perf_counter()
        self.signal(signal.SIGSTOP)
        return begin, end

    def end(self):
        """The notes of the profile, where there is one."""
        subprocess.run(["pkill", "-INT", "-s", str(self.process.pid), "-f", "stopped_turns.py run"], check=False)
        self.signal(signal.SIGCONT)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.signal(signal.SIGKILL)
        self.log.close()


def notes_of(purlin, profile):
    out = subprocess.run([purlin, "report", "--json", str(profile)], capture_output=True, text=True, check=False).stdout
    try:
        coverage = json.loads(out)["coverage"]
    except (ValueError, KeyError):
        return {"error": "no report"}
    return {"notes": coverage.get("notes"), "report_step_ms": (coverage.get("step_ns") or 0) / 1e6 or None,
            "overhead_s": (coverage.get("overhead_ns") or 0) / 1e9}


def measure(name, options, folder):
    processes = [Process(name, folder, number, options.purlin if number % 2 else None, options.cores)
                 for number in range(2 * options.each)]
    try:
        for process in processes:
            process.wait_until(lambda: Path(f"{process.stamps}.ready").exists())
        heads = []
        for process in processes:
            Path(f"{process.stamps}.go").touch()
            process.wait_until(lambda: len(process.steps()) >= READY_STEPS)
            heads.append(process.run_for(options.head if process.profiled else options.head / 4))
            process.stopped_at = process.trouble(heads[-1][1])
        turns = []
        flips = random.Random(options.seed)
        for number in range(options.rounds):
            order = list(range(len(processes)))
            flips.shuffle(order)
            turns += [(number, which, *processes[which].run_for(options.turn)) for which in order]
        medians = {}
        for which, process in enumerate(processes):
            steps = process.steps()
            for number, of, begin, end in turns:
                inside = [b - a for a, b in steps if of == which and a >= begin + options.skip and b <= end]
                if len(inside) >= 3:
                    medians[number, which] = statistics.median(inside)
    finally:
        for process in processes:
            process.end()
    return summary(name, processes, medians, heads, options)


def summary(name, processes, medians, heads, options):
    """`head_lost_s` is what the steps of the head took beyond as many steps of the processes without Purlin."""
    alone = [which for which, process in enumerate(processes) if not process.profiled]
    of_alone = [value for (_, of), value in medians.items() if of in alone]
    rows = []
    for which, process in enumerate(processes):
        begin, end = heads[which]
        inside = [(a, b) for a, b in process.steps() if a >= begin and b <= end]
        logs = []
        for number in range(options.rounds):
            others = [medians[number, other] for other in alone if other != which and (number, other) in medians]
            if others and (number, which) in medians:
                logs.append(math.log(medians[number, which] / statistics.mean(others)))
        row = {"profiled": process.profiled, "rounds": len(logs),
               "ratio": math.exp(statistics.median(logs)) if logs else None,
               "step_ms": 1e3 * statistics.median(value for (_, of), value in medians.items() if of == which) if logs else None}
        if inside and of_alone:
            row["head_steps"] = len(inside)
            row["head_lost_s"] = inside[-1][1] - inside[0][0] - len(inside) * statistics.median(of_alone)
        if process.stopped_at:
            row["trouble"] = process.stopped_at
        if process.profiled:
            row.update(notes_of(options.purlin, process.profile))
        rows.append(row)
    figures = {}
    for profiled in (False, True):
        ratios = [row["ratio"] for row in rows if row["profiled"] == profiled and row["ratio"]]
        if ratios:
            figures["profiled" if profiled else "alone"] = {"mean": statistics.mean(ratios), "least": min(ratios), "most": max(ratios)}
    return {"program": name, "processes": rows, **figures}


def main():
    if sys.argv[1:2] == ["run"]:
        return run(*sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("purlin")
    parser.add_argument("programs", nargs="+")
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--cores", default="0-15")
    parser.add_argument("--each", type=int, default=3, help="processes with and without Purlin")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--turn", type=float, default=0.6, help="seconds")
    parser.add_argument("--skip", type=float, default=0.1, help="of a turn, seconds")
    parser.add_argument("--head", type=float, default=14, help="seconds")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    options.purlin = os.path.abspath(options.purlin)
    document = {"schema": "purlin.stopped_turns/1", "command": " ".join(sys.argv),
                "utc": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "environment": environment(options.purlin), "programs": []}
    for name in options.programs:
        with tempfile.TemporaryDirectory() as folder:
            try:
                document["programs"].append(measure(name, options, folder))
            except RuntimeError as fault:
                document["programs"].append({"program": name, "error": str(fault)})
        print(json.dumps({key: value for key, value in document["programs"][-1].items() if key != "processes"}), flush=True)
        Path(options.output).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
