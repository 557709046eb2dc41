#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a sampled profile says against one of every launch, of the same work.

    python3 bench/gpu/sampled_vs_full.py --purlin build/release/bin/purlin -o OUT/sampled_vs_full_h200.json

Each program of capture_programs.py runs a fixed number of steps: once alone (how many steps make --seconds), then
under `--full` and under each of --rows. Compared are counts and times in total, the shares of the 20 kernels that own
most, and their p50 and p95. Two runs of `--full` say what differs without sampling. A launch-bound program under a small
budget keeps its beginning only: its totals are then those of that stretch, and the row says so.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent


def run_steps(program, steps):
    sys.path.insert(0, str(HERE))
    import time

    import capture_programs
    import torch

    torch.manual_seed(1)
    step = capture_programs.PROGRAMS[program]()
    for _ in range(5):
        step()
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(steps):
        step()
        torch.cuda.synchronize()
    print(json.dumps({"seconds": time.perf_counter() - began}))


def command(program, steps):
    return [sys.executable, str(HERE / "sampled_vs_full.py"), "--run", program, str(steps)]


def profiled(purlin, options, program, steps, folder):
    file = os.path.join(folder, "run.plprof")
    line = [purlin, "profile", *options, "-o", file, "--", *command(program, steps)]
    subprocess.run(line, check=True, capture_output=True, timeout=300)
    report = subprocess.run([purlin, "report", "--json", file], check=True, capture_output=True, text=True).stdout
    return json.loads(report)


def kernels(report):
    return {k["name"]: k for k in report["kernels"]}


def compare(full, other):
    a, b = kernels(full), kernels(other)
    total_a = sum(k["total_ns"] for k in a.values())
    total_b = sum(k["total_ns"] for k in b.values())
    top = sorted(a.values(), key=lambda k: -k["total_ns"])[:20]
    rows = []
    for k in top:
        o = b.get(k["name"])
        rows.append({
            "kernel": k["name"][:100],
            "share": k["total_ns"] / total_a,
            "share_other": o["total_ns"] / total_b if o else 0,
            "p50_ratio": o["p50_ns"] / k["p50_ns"] if o else None,
            "p95_ratio": o["p95_ns"] / k["p95_ns"] if o else None,
        })
    seen = [r for r in rows if r["p50_ratio"] is not None]
    coverage = other["coverage"]
    return {
        "total_ratio": total_b / total_a,
        "count_ratio": sum(k["count"] for k in b.values()) / sum(k["count"] for k in a.values()),
        "share_points_max": max(abs(r["share"] - r["share_other"]) * 100 for r in rows),
        "p50_off_max": max(abs(r["p50_ratio"] - 1) for r in seen),
        "p95_off_max": max(abs(r["p95_ratio"] - 1) for r in seen),
        "missing": len(rows) - len(seen),
        "launches_seen": coverage["launches_seen"],
        "sampling": coverage.get("sampling"),
        "overhead_ns": coverage["overhead_ns"],
        "wall_ns": other["wall_ns"],
        "notes": [{"cause": n["cause"], "seconds": n["seconds"], "text": n["text"]} for n in coverage["notes"]],
        "rows": rows,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--purlin", default="purlin")
    parser.add_argument("--seconds", type=float, default=12)
    parser.add_argument("--programs", default="training,tiny,gemm,graph")
    parser.add_argument("--rows", default="--full;;--budget 5%;--budget 20%", help="options, separated by ';'")
    parser.add_argument("-o", "--output", default="sampled_vs_full.json")
    parser.add_argument("--run", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.run:
        return run_steps(arguments.run[0], int(arguments.run[1]))
    out = {"schema": "purlin.bench.sampled_vs_full/1", "seconds": arguments.seconds, "programs": []}
    for program in arguments.programs.split(","):
        probe = subprocess.run(command(program, 50), check=True, capture_output=True, text=True).stdout
        steps = max(50, int(50 * arguments.seconds / json.loads(probe)["seconds"]))
        with tempfile.TemporaryDirectory() as folder:
            full = profiled(arguments.purlin, ["--full"], program, steps, folder)
            for row in arguments.rows.split(";"):
                try:
                    other = profiled(arguments.purlin, shlex.split(row), program, steps, folder)
                    result = compare(full, other)
                except Exception as failure:  # noqa: BLE001  a row that fails is told, not the end
                    result = {"failed": repr(failure)}
                result.update(program=program, steps=steps, options=row or "default")
                out["programs"].append(result)
                print(program, row or "default", {k: v for k, v in result.items() if k.endswith(("ratio", "max", "seen", "failed"))}, flush=True)
        Path(arguments.output).write_text(json.dumps(out, indent=1) + "\n")


if __name__ == "__main__":
    main()
