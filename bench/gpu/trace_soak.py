#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs under plain `purlin profile`, each through its trace of PyTorch, until SECONDS are over: what stops, fails or lacks a trace.

    python3 bench/gpu/trace_soak.py PURLIN SECONDS OUT

Eight programs run at a time on one GPU: ResNet-50 in training and a small transformer. Each is stopped for moments at
random (SIGSTOP), also within its trace, as a machine with other work does. A program that lives longer than 75 s counts as
hung. The stacks of one that hangs or fails are in OUT, by cuda-gdb. Prints the counts in JSON, last.
"""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

AT_ONCE, LONGEST_S, LAST_START_S = 8, 75, 25
HERE = Path(__file__).resolve().parent.parent.parent
PROGRAMS = [["bench/unmodified/resnet50_train.py", "120"], ["tests/gpu/torch_hook.py", "train", "5", "512"]]


def family(pid):
    """The process's descendants."""
    found = [pid]
    for each in found:
        try:
            found += map(int, Path(f"/proc/{each}/task/{each}/children").read_text(encoding="utf-8").split())
        except OSError:
            pass
    return found[1:]


def send(pids, number):
    for pid in pids:
        try:
            os.kill(pid, number)
        except OSError:
            pass


class Run:
    def __init__(self, purlin, folder, number):
        self.log, self.profile = Path(folder) / f"{number}.log", Path(folder) / f"{number}.plprof"
        self.purlin, self.number, self.began = purlin, number, time.monotonic()
        command = [purlin, "profile", "--quiet", "-o", str(self.profile), "--", "python3", *PROGRAMS[number % len(PROGRAMS)]]
        quick = {**os.environ, "PURLIN_TORCH_SETTLE": "1", "PURLIN_TORCH_AFTER": "0.3"}
        with self.log.open("w") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=quick, cwd=HERE)

    def stacks(self):
        text = self.log.read_text(errors="replace")[-2000:]
        for pid in family(self.process.pid):
            seen = subprocess.run(["timeout", "60", "cuda-gdb", "-p", str(pid), "-batch", "-ex", "thread apply all bt 40"],
                                  capture_output=True, text=True, check=False)
            text += f"\n== {pid}\n{seen.stdout[-50000:]}"
        return text

    def notes(self):
        out = subprocess.run([self.purlin, "report", "--json", str(self.profile)], capture_output=True, text=True, check=False).stdout
        try:
            return {note["cause"]: note["text"] for note in json.loads(out)["coverage"]["notes"]}
        except (ValueError, KeyError):
            return {"no_report": ""}


def main():
    purlin, seconds, out = os.path.abspath(sys.argv[1]), float(sys.argv[2]), Path(sys.argv[3])
    out.mkdir(parents=True, exist_ok=True)
    end, flips, live, number = time.monotonic() + seconds, random.Random(5), [], 0
    counts = {"ended": 0, "traced": 0, "cupti_shut_down": 0, "failed": 0, "hung": 0, "without_trace": []}

    def over(run):
        notes = run.notes()
        counts["ended"] += 1
        counts["failed"] += run.process.returncode != 0
        counts["traced"] += "torch_trace" in notes
        counts["cupti_shut_down"] += "torch_end" in notes
        if "torch_trace" not in notes:
            counts["without_trace"].append(notes.get("torch_no_trace", "no report")[:200])

    with tempfile.TemporaryDirectory() as folder:
        while live or time.monotonic() < end - LAST_START_S:
            if len(live) < AT_ONCE and time.monotonic() < end - LAST_START_S:
                live.append(Run(purlin, folder, number))
                number += 1
                time.sleep(0.4)
            for run in list(live):
                hung = time.monotonic() - run.began > LONGEST_S
                if run.process.poll() is None and not hung:
                    continue
                if run.process.poll() is None or run.process.returncode != 0:
                    (out / f"{run.number}.txt").write_text(run.stacks(), encoding="utf-8")
                live.remove(run)
                if run.process.poll() is None:
                    counts["hung"] += 1
                    send([*family(run.process.pid), run.process.pid], signal.SIGKILL)
                    run.process.wait()
                else:
                    over(run)
            if live and flips.random() < 0.6:
                pids = family(flips.choice(live).process.pid)
                send(pids, signal.SIGSTOP)
                time.sleep(flips.uniform(0.05, 0.5))
                send(pids, signal.SIGCONT)
            else:
                time.sleep(0.1)
    print(json.dumps(counts))
    return 1 if counts["hung"] or counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
