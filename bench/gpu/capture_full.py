#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`purlin profile --full` against a bare CUPTI consumer.

    python3 bench/gpu/capture_full.py --purlin build/release/bin/purlin -o OUT/capture_full_h200.json

For each program sets of live processes that take turns (turns.py): alone, with a bare consumer (bare_cupti.cc) and under
`--full`; a set's ratio is the median over its rounds, the interval is over sets. Programs: `launches`, an empty kernel
launched through the driver API and nothing else (launch_many.cu), and those of capture_programs.py. --asides adds rows that
take the cost apart: `bare_sync` (the kind SYNCHRONIZATION too), `bare_flush` (a flush every 250 ms from another thread),
`idle` (Purlin injected, nothing on).

Then --many launches in one process under `--full`: launches counted by the program against launches in the profile, and
bytes of the profile per launch. Every set's `--full` is counted too. What is done is on disk after each set; --limit is the
time after which no other set begins. Exit code 1 where a launch was lost or took more than 8 bytes; ratios are reported, not judged.
"""

import argparse
import json
import os
import random
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from turns import Player, environment, interval, log_ratio, play_set

HERE = Path(__file__).resolve().parent
ROWS = ["none", "bare", "full"]
ASIDES = {"bare_sync": {"BARE_KINDS": "kcsy"}, "bare_flush": {"BARE_FLUSH_MS": "250"}}
RATIOS = [("full", "bare"), ("full", "none"), ("bare", "none"), ("bare_sync", "bare"), ("bare_flush", "bare"), ("idle", "none")]
TITLES = {"launches": "an empty kernel, driver API", "training": "transformer training step, PyTorch", "tiny": "tiny launches, PyTorch",
          "graph": "CUDA graph replay, PyTorch", "gemm": "GEMM-bound, PyTorch"}


def build(folder):
    include = next(p for p in ("/usr/local/cuda/include", "/usr/local/cuda/extras/CUPTI/include") if os.path.exists(f"{p}/cupti.h"))
    library = subprocess.Popen(["g++", "-std=c++20", "-O2", "-shared", "-fPIC", "-isystem", include, "-isystem", "/usr/local/cuda/include",
                                str(HERE / "bare_cupti.cc"), "-o", f"{folder}/bare_cupti.so", "-ldl"])
    subprocess.run(["nvcc", "-std=c++17", "-O2", "-arch=native", str(HERE / "launch_many.cu"), "-o", f"{folder}/launch_many", "-ldl"],
                   check=True)
    if library.wait() != 0:
        raise RuntimeError("bare_cupti.cc did not compile")


def program_command(folder, program):
    if program == "launches":
        return [f"{folder}/launch_many", "-", "1000"]
    return [sys.executable, str(HERE / "turns.py"), program]


def player(purlin, folder, row, command):
    around = dict(os.environ)
    if command[0].endswith("launch_many"):
        around["LAUNCH_CPU"] = str(min(os.sched_getaffinity(0)))
    if row in ("full", "idle"):
        command = [purlin, "profile", f"--{row}", "--quiet", "-o", f"{folder}/{row}.plprof", "--", *command]
    elif row != "none":
        around.update(CUDA_INJECTION64_PATH=f"{folder}/bare_cupti.so", BARE_OUT=f"{folder}/{row}.txt", **ASIDES.get(row, {}))
    return Player(command, around)


def profile_of(purlin, path):
    document = json.loads(subprocess.run([purlin, "report", path, "--json"], capture_output=True, text=True, check=True).stdout)
    recorded = sum(k["count"] for k in document["kernels"])
    return {"recorded": recorded, "bytes": os.path.getsize(path), "coverage": document["coverage"]}


def counted(text):
    """What a program says at its end: the launches it made, where it counts them."""
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return next((line for line in lines if "launches" in line), {})


def one_set(purlin, folder, program, rows, flips, turns, turn_seconds):
    players = {row: player(purlin, folder, row, program_command(folder, program)) for row in rows}
    try:
        times = play_set(players, flips, turn_seconds, turns)
        ends = {row: p.end() for row, p in players.items()}
    except BaseException:
        for p in players.values():
            p.process.kill()
        raise
    result = {"program": program, "per_step_us": {row: [t * 1e6 for t in each] for row, each in times.items()},
              "log_ratios": {f"{a}/{b}": log_ratio(times, a, b) for a, b in RATIOS if a in times and b in times},
              "full": {**profile_of(purlin, f"{folder}/full.plprof"), **counted(ends["full"])}}
    for row in rows:
        if row.startswith("bare"):
            names = ("kernels", "copies", "sets", "dropped", "flushes", "longest_flush_us")
            result[row] = dict(zip(names, map(int, Path(f"{folder}/{row}.txt").read_text().split())))
    return result


def many_launches(purlin, folder, launches):
    around = {**os.environ, "LAUNCH_CPU": str(min(os.sched_getaffinity(0)))}
    began = time.monotonic()
    done = subprocess.run([purlin, "profile", "--full", "--quiet", "-o", f"{folder}/many.plprof", "--", f"{folder}/launch_many",
                           str(launches), "1000"], capture_output=True, text=True, env=around)
    if done.returncode != 0:
        raise RuntimeError(f"{launches} launches: exit {done.returncode}: {done.stdout} {done.stderr[-2000:]}")
    result = {**counted(done.stdout), "process_s": time.monotonic() - began, **profile_of(purlin, f"{folder}/many.plprof")}
    return {**result, "bytes_per_launch": result["bytes"] / result["launches"]}


def summarize(document):
    """[{program, row, over, estimate, low, high, …}], of the sets so far."""
    rows = []
    for program in dict.fromkeys(s["program"] for s in document["sets"]):
        mine = [s for s in document["sets"] if s["program"] == program]
        for a, b in RATIOS:
            logs = [s["log_ratios"][f"{a}/{b}"] for s in mine if f"{a}/{b}" in s["log_ratios"]]
            if logs:
                estimate, low, high, reached = interval(logs)
                us = [statistics.median(statistics.median(s["per_step_us"][row]) for s in mine) for row in (a, b)]
                rows.append({"program": program, "row": a, "over": b, "sets": len(logs), "estimate": estimate, "low": low, "high": high,
                             "coverage": reached, "us": us[0], "over_us": us[1]})
    return rows


def markdown(document):
    lines = ["# Every launch: `--full` against a bare CUPTI consumer", "",
             f"Recorded {document['recorded_at']} at {document['environment']['revision']}: `{document['command']}`, "
             f"{document['wall_s']:.0f} s. Live processes taking turns of {document['turn_seconds'] * 1e3:.0f} ms in random order; "
             "estimate and interval (95 % from 6 sets on; of fewer their range) over sets of processes.", "",
             "| program | | ratio | interval | µs a step | over | sets |", "|---|---|---|---|---|---|---|"]
    for r in document["ratios"]:
        lines.append(f"| {TITLES.get(r['program'], r['program'])} | {r['row']} over {r['over']} | {r['estimate']:.4f} | "
                     f"{r['low']:.4f} … {r['high']:.4f} | {r['us']:.3f} | {r['over_us']:.3f} | {r['sets']} |")
    lines.append("")
    many = document.get("many")
    if many:
        lines += [f"{many['launches']:,} launches in one process: {many['recorded']:,.0f} in the profile, "
                  f"{many['bytes_per_launch']:.2f} bytes each ({many['bytes']:,} in all), {many['per_launch_us']:.3f} µs per launch.", ""]
    lines += ["Environment: " + ", ".join(f"{k} {v}" for k, v in document["environment"].items()) + ".", ""]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--purlin", default="purlin")
    parser.add_argument("--programs", default="launches,training")
    parser.add_argument("--sets", type=int, default=6)
    parser.add_argument("--turns", type=int, default=14, help="of each row in a set")
    parser.add_argument("--turn-seconds", type=float, default=0.12)
    parser.add_argument("--many", type=int, default=10_000_000)
    parser.add_argument("--asides", action="store_true")
    parser.add_argument("--limit", type=float, default=150, help="seconds after which no set begins")
    parser.add_argument("-o", "--output")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    began, flips = time.monotonic(), random.Random()
    purlin = os.path.abspath(arguments.purlin) if "/" in arguments.purlin else arguments.purlin
    document = {"schema": "purlin.bench.capture_full/2", "recorded_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                "command": shlex.join(["python3", *sys.argv]), "turn_seconds": arguments.turn_seconds,
                "environment": environment(purlin), "sets": [], "ratios": []}

    def save():
        document["wall_s"] = time.monotonic() - began
        document["ratios"] = summarize(document)
        if arguments.output:
            Path(arguments.output).write_text(json.dumps(document, indent=1) + "\n")
            Path(arguments.output).with_suffix(".md").write_text(markdown(document))

    rows = [*ROWS, *([*ASIDES, "idle"] if arguments.asides else [])]
    with tempfile.TemporaryDirectory() as folder:
        build(folder)
        if arguments.many:
            document["many"] = many_launches(purlin, folder, arguments.many)
            save()
        for _ in range(arguments.sets):
            for program in arguments.programs.split(","):
                if time.monotonic() - began > arguments.limit:
                    break
                document["sets"].append(one_set(purlin, folder, program, rows, flips, arguments.turns, arguments.turn_seconds))
                save()
                print(program, {k: round(2.718281828 ** v, 4) for k, v in document["sets"][-1]["log_ratios"].items()},
                      f"{time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    print(markdown(document))
    checked = [run for run in [document.get("many"), *(s["full"] for s in document["sets"])] if run and "launches" in run]
    lost = sum(run["launches"] - run["recorded"] for run in checked)
    fat = sum(run["bytes"] / run["launches"] > 8 for run in checked)
    if lost or fat:
        print(f"capture_full: {lost:.0f} launches lost; {fat} runs over 8 bytes a launch", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
