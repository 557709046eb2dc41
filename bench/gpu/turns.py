# SPDX-License-Identifier: Apache-2.0
"""Programs that take turns: what a row costs, where the machine drifts by more than that within seconds. The order of the
turns, what is concluded from their times, and what of the machine is written down beside them; capture_overhead.py and
capture_full.py measure with it.

A player is a live process, of the same program in every row; it says "ready", then for each line with a number makes so
many steps and answers {"seconds": S} in JSON. All players of a set live at once and play one after the other, in random
order, for a tenth of a second each: what differs between two turns of one round is the row, not the minute. What is left,
one process's memory against another's, is the sets' spread: the interval is over sets.

`python3 turns.py PROGRAM` is such a player, of a program of capture_programs.py.
"""

import json
import math
import os
import platform
import statistics
import subprocess
import sys
import time


def take_turns(rows, flips, until, least=2, most=math.inf, every=()):
    """(round, row) of each turn: rounds of all rows in random order until that time, `least` to `most` of them. A row in
    `every` has a turn in each so many rounds only."""
    number = 0
    while number < least or (number < most and time.monotonic() < until):
        order = [row for row in rows if row not in every or number % every[row] == 0]
        flips.shuffle(order)
        for row in order:
            yield number, row
        number += 1


def signed_rank_counts(n):
    """How many of the 2^n sign patterns give each sum of positive ranks."""
    counts = [1]
    for rank in range(1, n + 1):
        longer = counts + [0] * rank
        for at, count in enumerate(counts):
            longer[at + rank] += count
        counts = longer
    return counts


def interval(logs, coverage=0.95):
    """(estimate, low, high, coverage reached) of the centre of `logs`, as ratios."""
    n = len(logs)
    if n == 0:
        return None
    averages = sorted((logs[i] + logs[j]) / 2 for i in range(n) for j in range(i, n))
    counts, total, tail, cut = signed_rank_counts(n), 2 ** n, 0, 0
    for at, count in enumerate(counts):
        if 2 * (tail + count) / total > 1 - coverage:
            break
        tail += count
        cut = at + 1
    cut = max(cut, 1)  # too few pairs: all there is, and the coverage says so
    reached = 1 - 2 * sum(counts[:cut]) / total
    return (math.exp(statistics.median(averages)), math.exp(averages[cut - 1]), math.exp(averages[-cut]), reached)


def output_of(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=30).stdout.strip()
    except OSError:
        return ""


def environment(purlin):
    found = {"host": platform.platform(), "python": platform.python_version(), "cpus": os.cpu_count(),
             "purlin": output_of(purlin, "--version").splitlines()[0] if output_of(purlin, "--version") else "",
             "revision": output_of("git", "-C", os.path.dirname(os.path.abspath(__file__)), "rev-parse", "--short", "HEAD") or "unknown"}
    gpu = output_of("nvidia-smi", "--query-gpu=name,driver_version,clocks.sm,clocks.max.sm,power.limit", "--format=csv,noheader")
    if gpu:
        found["device"], found["driver"], found["sm_clock"], found["sm_clock_max"], found["power_limit"] = (
            part.strip() for part in gpu.splitlines()[0].split(","))
    versions = output_of(sys.executable, "-c", "import torch; print(torch.__version__, torch.version.cuda)").split()
    if versions:
        found["torch"], found["cuda"] = versions
    return found


class Player:
    def __init__(self, command, environment):
        self.command = command
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env=environment)

    def line(self):
        while True:
            line = self.process.stdout.readline()
            if line == "":
                raise RuntimeError(f"{' '.join(self.command)} ended: {self.process.stderr.read()[-2000:]}")
            if line.startswith(("{", "ready")):  # else a library's chatter
                return line

    def wait_ready(self):
        while not self.line().startswith("ready"):
            pass

    def play(self, steps):
        self.process.stdin.write(f"{steps}\n")
        self.process.stdin.flush()
        return json.loads(self.line())["seconds"]

    def end(self):
        """The rest of what it says, after the end of its input."""
        self.process.stdin.close()
        self.process.stdin = None
        out, err = self.process.communicate(timeout=120)
        if self.process.returncode != 0:
            raise RuntimeError(f"{' '.join(self.command)} exited {self.process.returncode}: {err[-2000:]}")
        return out


def play_set(players, flips, turn_seconds, turns, until=math.inf):
    """{row: seconds per step of each turn}; all rows have as many turns. `players`: {row: Player}."""
    for player in players.values():
        player.wait_ready()
    steps = 1
    while True:  # one size of turn for all, by the first row
        seconds = next(iter(players.values())).play(steps)
        if seconds > turn_seconds / 2:
            break
        steps = max(steps + 1, min(steps * 10, int(steps * turn_seconds / max(seconds, 1e-9))))
    steps = max(1, int(steps * turn_seconds / seconds))
    for player in players.values():  # warm
        player.play(steps)
        player.play(steps)
    times = {row: [] for row in players}
    for _, row in take_turns(players, flips, until, least=1, most=turns):
        times[row].append(players[row].play(steps) / steps)
    return times


def log_ratio(times, top, bottom):
    """Of a set: the median over its rounds, in which both had a turn."""
    return statistics.median(math.log(a / b) for a, b in zip(times[top], times[bottom]))


def main():
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import gc

    import capture_programs
    import torch

    torch.manual_seed(1)
    step = capture_programs.PROGRAMS[sys.argv[1]]()
    for _ in range(5):
        step()
    torch.cuda.synchronize()
    gc.collect()
    gc.disable()
    made = 5
    print("ready", flush=True)
    for line in sys.stdin:
        steps = int(line)
        began = time.perf_counter()
        for _ in range(steps):
            step()
            torch.cuda.synchronize()
        made += steps
        print(json.dumps({"seconds": time.perf_counter() - began}), flush=True)
    print(json.dumps({"steps": made}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
