#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `purlin profile` costs a program, by interleaved pairs of processes.

    python3 bench/gpu/capture_overhead.py --purlin build/release/bin/purlin -o OUT/capture_overhead_h200.json

For every round and program the rows run once each in random order, among them `none`, the program alone; a row's ratio
in a round is its mean time per step over that of the round's `none`. Each process warms up and then times its own loop
as a whole, so that the duty cycle's windows count for as much as they take. Rows with small effects (default, idle) run
for --seconds in --pairs rounds; rows with large ones (full, bare, torch) for --heavy-seconds in --heavy-pairs rounds of
their own. "A/A" is each `none` over the one of the round before: what the same method says of no difference.

The interval is the Hodges–Lehmann estimate of the log ratio with the exact interval of Wilcoxon's signed ranks, of at
least 95 % coverage where the number of pairs allows it (from 6; the coverage reached is in the JSON).

Rows: default, idle (library injected, capture off for the run), full, bare (bench/gpu/bare_cupti.cc), torch
(torch.profiler in the program). Writes JSON and, beside it, a Markdown table.
"""

import argparse
import json
import math
import os
import platform
import random
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROGRAMS_FILE = HERE / "capture_programs.py"
LIGHT, HEAVY = ("default", "idle"), ("full", "bare", "torch")
TITLES = {"tiny": "(a) loop of tiny launches", "training": "(b) transformer training step", "gemm": "(c) GEMM-bound",
          "graph": "(d) CUDA graph replay", "cpu": "no GPU"}
ROWS = {"default": "default settings", "idle": "injected, idle", "full": "`--full`", "bare": "bare CUPTI consumer",
        "torch": "`torch.profiler`", "A/A": "none against none"}


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


class Runner:
    """Starts programs through the server of capture_programs.py, so that a pair costs two forks, not two imports."""

    def __init__(self, arguments, folder):
        self.arguments, self.folder, self.zygote = arguments, Path(folder), None
        self.socket = str(self.folder / "zygote")
        self.bare = self.folder / "bare_cupti.so"
        self.profile = self.folder / "run.plprof"
        if "bare" in arguments.rows:
            include = next(p for p in ("/usr/local/cuda/include", "/usr/local/cuda/extras/CUPTI/include")
                           if os.path.exists(f"{p}/cupti.h"))
            subprocess.run(["g++", "-std=c++20", "-O2", "-shared", "-fPIC", "-isystem", include, "-isystem",
                            "/usr/local/cuda/include", str(HERE / "bare_cupti.cc"), "-o", str(self.bare), "-ldl"], check=True)

    def start(self):
        self.stop()
        self.zygote = subprocess.Popen([sys.executable, str(PROGRAMS_FILE), "serve", self.socket])
        while not os.path.exists(self.socket):
            if self.zygote.poll() is not None:
                raise RuntimeError("the server of programs did not start")
            time.sleep(0.05)

    def stop(self):
        if self.zygote is None:
            return
        os.unlink(self.socket)
        self.zygote.wait()
        self.zygote = None

    def run(self, program, row, seconds):
        out = self.folder / "result.json"
        out.unlink(missing_ok=True)
        self.profile.unlink(missing_ok=True)
        command = [sys.executable, "-S", str(PROGRAMS_FILE)]
        command += ["run"] if program == "cpu" and self.zygote is None else ["shim", self.socket]
        command += [program, str(seconds), str(self.arguments.warm_up), str(out), *(["profiler"] if row == "torch" else [])]
        environment = dict(os.environ)
        options = {"default": self.arguments.default_options, "full": "--full", "idle": self.arguments.idle_options}
        if row in options:
            command = [self.arguments.purlin, "profile", "--quiet", "-o", str(self.profile), *shlex.split(options[row]), "--", *command]
        elif row == "bare":
            environment.update(CUDA_INJECTION64_PATH=str(self.bare), BARE_OUT=str(self.folder / "bare.txt"))
        began = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        if done.returncode != 0 or not out.exists():
            raise RuntimeError(f"{shlex.join(command)} exited {done.returncode}:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
        result = json.loads(out.read_text())
        result.update(program=program, row=row, process_s=time.perf_counter() - began)
        if row in options:
            result["profile_bytes"] = self.profile.stat().st_size
            report = subprocess.run([self.arguments.purlin, "report", str(self.profile), "--json"], capture_output=True, text=True)
            if report.returncode == 0:
                document = json.loads(report.stdout)
                result["coverage"] = document["coverage"]
                result["launches"] = sum(kernel["count"] for kernel in document["kernels"])
        elif row == "bare":
            result["records"] = [int(n) for n in (self.folder / "bare.txt").read_text().split()]
        return result


def one_group(runner, rows, rounds, seconds, programs, flips, done):
    for pair in rounds:
        for program in programs:
            order = ["none", *rows]
            flips.shuffle(order)
            for row in order:
                result = runner.run(program, row, seconds)
                result.update(round=pair, seconds=seconds, order=order.index(row))
                done(result)
                print(f"{program:9s} {row:8s} mean {result['mean_ms']:9.4f} ms  median {result['median_ms']:9.4f} ms  "
                      f"({result['process_s']:.1f} s)", file=sys.stderr, flush=True)


def by_round(runs, program, row, seconds, value):
    return {r["round"]: r[value] for r in runs if (r["program"], r["row"], r["seconds"]) == (program, row, seconds)}


def summarize(runs, programs, groups):
    rows = []
    for program in programs:
        for names, seconds in groups:
            for row in names:
                for value in ("mean_ms", "median_ms"):
                    alone, with_it = (by_round(runs, program, r, seconds, value) for r in ("none", row))
                    if row == "A/A":
                        with_it = {r: alone[r + 1] for r in alone if r + 1 in alone}
                    common = sorted(alone.keys() & with_it.keys())
                    if not common:
                        continue
                    estimate, low, high, reached = interval([math.log(with_it[r] / alone[r]) for r in common])
                    if value == "mean_ms":
                        rows.append({"program": program, "row": row, "pairs": len(common), "seconds": seconds,
                                     "none_ms": statistics.median(alone[r] for r in common),
                                     "ms": statistics.median(with_it[r] for r in common)})
                    rows[-1]["ratio" if value == "mean_ms" else "ratio_of_medians"] = {
                        "estimate": estimate, "low": low, "high": high, "coverage": reached}
            if {"full", "bare"} <= set(names):
                full, bare = (by_round(runs, program, r, seconds, "mean_ms") for r in ("full", "bare"))
                common = sorted(full.keys() & bare.keys())
                if common:
                    estimate, low, high, reached = interval([math.log(full[r] / bare[r]) for r in common])
                    rows.append({"program": program, "row": "full/bare", "pairs": len(common), "seconds": seconds,
                                 "none_ms": statistics.median(bare.values()), "ms": statistics.median(full.values()),
                                 "ratio": {"estimate": estimate, "low": low, "high": high, "coverage": reached}})
    return rows


def markdown(document):
    lines = [f"# What capture costs: {document['environment'].get('device', 'no GPU')}", "",
             f"Recorded {document['recorded_at']} at {document['environment']['revision']}: `{document['command']}`, "
             f"{document['wall_s'] / 60:.1f} minutes.", "",
             "Time per step of the program with capture over its time without, in pairs of processes run next to each other in "
             "random order; Hodges–Lehmann estimate with its exact 95 % interval (of fewer than 6 pairs: their range).", "",
             "| program | | ratio | 95 % interval | alone, ms | with, ms | pairs × s |", "|---|---|---|---|---|---|---|"]
    for row in document["rows"]:
        ratio = row["ratio"]
        name = ROWS.get(row["row"], "`--full` over bare consumer")
        lines.append(f"| {TITLES[row['program']]} | {name} | {ratio['estimate']:.4f} | {ratio['low']:.4f} … {ratio['high']:.4f} | "
                     f"{row['none_ms']:.4f} | {row['ms']:.4f} | {row['pairs']} × {row['seconds']:g} |")
    own = [r for r in document["runs"] if r["row"] == "default" and "coverage" in r]
    if own:
        lines += ["", "What the profiles of the default rows say of themselves (medians):", "",
                  "| program | launches in the report | coverage block's numbers |", "|---|---|---|"]
        for program in dict.fromkeys(r["program"] for r in own):
            mine = [r for r in own if r["program"] == program]
            middle = mine[len(mine) // 2]
            numbers = {k: v for k, v in middle["coverage"].items() if isinstance(v, (int, float))}
            lines.append(f"| {TITLES[program]} | {middle['launches']:.0f} | " +
                         ", ".join(f"{k} {v:.6g}" for k, v in numbers.items()) + " |")
    lines += ["", "Environment: " + ", ".join(f"{k} {v}" for k, v in document["environment"].items()) + ".", ""]
    return "\n".join(lines)


def output_of(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=30).stdout.strip()
    except OSError:
        return ""


def environment(purlin):
    found = {"host": platform.platform(), "python": platform.python_version(), "cpus": os.cpu_count(),
             "purlin": output_of(purlin, "--version").splitlines()[0] if output_of(purlin, "--version") else "",
             "revision": output_of("git", "-C", str(HERE), "rev-parse", "--short", "HEAD") or "unknown"}
    gpu = output_of("nvidia-smi", "--query-gpu=name,driver_version,clocks.sm,clocks.max.sm,power.limit", "--format=csv,noheader")
    if gpu:
        found["device"], found["driver"], found["sm_clock"], found["sm_clock_max"], found["power_limit"] = (
            part.strip() for part in gpu.splitlines()[0].split(","))
    versions = output_of(sys.executable, "-c", "import torch; print(torch.__version__, torch.version.cuda)").split()
    if versions:
        found["torch"], found["cuda"] = versions
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--purlin", default="purlin")
    parser.add_argument("--programs", default="tiny,training,gemm,graph")
    parser.add_argument("--rows", default="default,full,bare,torch")
    parser.add_argument("--pairs", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--heavy-pairs", type=int, default=2)
    parser.add_argument("--heavy-seconds", type=float, default=2)
    parser.add_argument("--warm-up", type=float, default=0.5,
                        help="seconds of steps before the timed ones; the governor's head, which records all, lasts up to 10")
    parser.add_argument("--default-options", default="", help="more options of the default row")
    parser.add_argument("--idle-options", default="--idle", help="what makes the idle row idle")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--fresh", type=int, default=2, help="rounds after which the server is started anew (other addresses)")
    parser.add_argument("-o", "--output")
    arguments = parser.parse_args()
    arguments.rows = [r for r in arguments.rows.split(",") if r]
    programs = arguments.programs.split(",")
    arguments.purlin = os.path.abspath(arguments.purlin) if "/" in arguments.purlin else arguments.purlin
    flips, runs, began = random.Random(arguments.seed), [], time.monotonic()
    light = [r for r in arguments.rows if r in LIGHT]
    heavy = [r for r in arguments.rows if r in HEAVY]
    groups = [(rows, seconds, pairs) for rows, seconds, pairs in (
        (light, arguments.seconds, arguments.pairs), (heavy, arguments.heavy_seconds, arguments.heavy_pairs)) if rows and pairs]
    document = {
        "schema": "purlin.bench.capture_overhead/2",
        "recorded_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "command": shlex.join(["python3", *sys.argv]),
        "seed": arguments.seed,
        "environment": environment(arguments.purlin),
        "runs": runs,
    }

    # After each run: what is cut short has what it had.
    def done(run):
        runs.append(run)
        document["wall_s"] = time.monotonic() - began
        document["rows"] = summarize(
            runs, programs, [([*rows, *(["A/A"] if rows is light else [])], seconds) for rows, seconds, _ in groups])
        if arguments.output:
            Path(arguments.output).write_text(json.dumps(document, indent=1) + "\n")
            Path(arguments.output).with_suffix(".md").write_text(markdown(document))

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # by way of runner.stop()
    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(arguments, folder)
        try:
            for rows, seconds, pairs in groups:
                for first in range(0, pairs, arguments.fresh):
                    if programs != ["cpu"]:
                        runner.start()
                    one_group(runner, rows, range(first, min(first + arguments.fresh, pairs)), seconds, programs, flips, done)
        finally:
            runner.stop()
    print(markdown(document))


if __name__ == "__main__":
    main()
