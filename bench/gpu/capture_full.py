#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`purlin profile --full` against a bare CUPTI consumer, on a program that does nothing but launch.

    python3 bench/gpu/capture_full.py --purlin build/release/bin/purlin -o OUT/capture_full_h200.json

Rounds of (none, bare, full) in random order over --launches launches of an empty kernel through the driver API, each
program timing its own loop: the ratio of full to bare. Then --many launches once under --full: launches counted by the
program against launches in the profile, and bytes of the profile per launch. Peak memory of the captured process is
beside it. Exit code 1 where a launch was lost or a launch took more than 8 bytes; the ratio is reported, not judged.
"""

import argparse
import json
import math
import os
import random
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from capture_overhead import environment, interval

HERE = Path(__file__).resolve().parent


def build(folder):
    include = next(p for p in ("/usr/local/cuda/include", "/usr/local/cuda/extras/CUPTI/include") if os.path.exists(f"{p}/cupti.h"))
    subprocess.run(["g++", "-std=c++20", "-O2", "-shared", "-fPIC", "-isystem", include, "-isystem", "/usr/local/cuda/include",
                    str(HERE / "bare_cupti.cc"), "-o", f"{folder}/bare_cupti.so", "-ldl"], check=True)
    subprocess.run(["nvcc", "-std=c++17", "-O2", "-arch=native", str(HERE / "launch_many.cu"), "-o", f"{folder}/launch_many", "-ldl"],
                   check=True)


def run(purlin, folder, row, launches, streams):
    command = [f"{folder}/launch_many", str(launches), "1000", str(streams)]
    environment = dict(os.environ)
    if row == "full":
        command = [purlin, "profile", "--full", "--quiet", "-o", f"{folder}/full.plprof", "--", *command]
    elif row == "bare":
        environment.update(CUDA_INJECTION64_PATH=f"{folder}/bare_cupti.so", BARE_OUT=f"{folder}/bare.txt")
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        raise RuntimeError(f"{shlex.join(command)} exited {done.returncode}:\n{done.stdout}\n{done.stderr}")
    result = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
    if row == "full":
        document = json.loads(subprocess.run([purlin, "report", f"{folder}/full.plprof", "--json"], capture_output=True, text=True,
                                             check=True).stdout)
        result.update(row=row, recorded=sum(k["count"] for k in document["kernels"]), coverage=document["coverage"],
                      bytes=os.path.getsize(f"{folder}/full.plprof"))
        result["bytes_per_launch"] = result["bytes"] / result["launches"]
    elif row == "bare":
        result["records"] = [int(n) for n in Path(f"{folder}/bare.txt").read_text().split()]
    return {**result, "row": row, "streams": streams}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--purlin", default="purlin")
    parser.add_argument("--launches", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--many", type=int, default=10_000_000)
    parser.add_argument("--streams", type=int, default=1)
    parser.add_argument("-o", "--output")
    arguments = parser.parse_args()
    purlin = os.path.abspath(arguments.purlin) if "/" in arguments.purlin else arguments.purlin
    flips, runs, began = random.Random(7), [], time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        build(folder)
        for index in range(arguments.rounds):
            order = ["none", "bare", "full"]
            flips.shuffle(order)
            for row in order:
                runs.append({**run(purlin, folder, row, arguments.launches, arguments.streams), "round": index})
                print(f"{row:5s} {runs[-1]['per_launch_us']:.3f} us", file=sys.stderr, flush=True)
        many = run(purlin, folder, "full", arguments.many, arguments.streams) if arguments.many else None
    value = {row: [r["per_launch_us"] for r in runs if r["row"] == row] for row in ("none", "bare", "full")}
    ratios = {}
    for name, top, bottom in (("full over bare", "full", "bare"), ("full over none", "full", "none"), ("bare over none", "bare", "none")):
        if runs:
            estimate, low, high, reached = interval([math.log(t / b) for t, b in zip(value[top], value[bottom])])
            ratios[name] = {"estimate": estimate, "low": low, "high": high, "coverage": reached}
    checked = [r for r in [*runs, many] if r and r["row"] == "full"]
    lost = sum(r["launches"] - r["recorded"] for r in checked)
    fat = [r for r in checked if r["bytes_per_launch"] > 8]
    document = {"schema": "purlin.bench.capture_full/1", "recorded_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                "command": shlex.join(["python3", *sys.argv]), "wall_s": time.monotonic() - began, "environment": environment(purlin),
                "per_launch_us": {row: statistics.median(times) for row, times in value.items() if times}, "ratios": ratios,
                "many": many, "lost": lost, "runs": runs}
    lines = ["# Every launch: `--full` against a bare CUPTI consumer", "",
             f"Recorded {document['recorded_at']} at {document['environment']['revision']}: `{document['command']}`. An empty kernel "
             f"launched {arguments.launches:,} times through the driver API, {arguments.rounds} rounds in random order.", "",
             "| | µs per launch |", "|---|---|", *(f"| {row} | {time_us:.3f} |" for row, time_us in document["per_launch_us"].items()), "",
             "| ratio | estimate | interval |", "|---|---|---|",
             *(f"| {name} | {r['estimate']:.4f} | {r['low']:.4f} … {r['high']:.4f} |" for name, r in ratios.items()), ""]
    if many:
        lines += [f"{many['launches']:,} launches in one process: {many['recorded']:,.0f} in the profile, "
                  f"{many['bytes_per_launch']:.2f} bytes each ({many['bytes']:,} in all), {many['per_launch_us']:.3f} µs per launch.", ""]
    lines += ["Environment: " + ", ".join(f"{k} {v}" for k, v in document["environment"].items()) + ".", ""]
    if arguments.output:
        Path(arguments.output).write_text(json.dumps(document, indent=1) + "\n")
        Path(arguments.output).with_suffix(".md").write_text("\n".join(lines))
    print("\n".join(lines))
    if lost or fat:
        print(f"capture_full: {lost:.0f} launches lost; {len(fat)} runs over 8 bytes a launch", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
