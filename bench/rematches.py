#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What rematches change (docs/design/rematches.md), on a fake GPU whose compilers take 0.1 s a config:

    python3 bench/rematches.py --purlin build/release/bin/purlin --before before/purlin

The space is that of the gemm sample. Its times lie 0.4 % apart, in an order that no model learns, and a sample has a
noise of 2 %. So luck decides much. A row: how much slower the winner is than the best config that the session
evaluated, by the known times; configs evaluated, finalists, samples of the finals. The peer is the binary before.
"""
import argparse
import json
import os
import statistics
import subprocess
import tempfile
from pathlib import Path

SPEC = Path(__file__).resolve().parents[1] / "kernels" / "gemm" / "gemm.toml"
WEIGHTS = {"BM": 3, "BN": 5, "BK": 7, "TM": 11, "TN": 13, "VECTOR": 17, "STAGES": 19, "GROUP": 23, "PAD": 29}
SHAPE = ",".join(f"{name}=64" for name in "MNK")


def true_ms(config):
    return 2 * (1 + 0.004 * (sum(config[name] * weight for name, weight in WEIGHTS.items()) % 61))


def session(program, seed, seconds):
    order = " + ".join(f"{name} * {weight}" for name, weight in WEIGHTS.items())
    with tempfile.TemporaryDirectory() as folder:
        fake = Path(folder, "fake.json")
        fake.write_text(json.dumps({"time_ms": f"2 * (1 + 0.004 * (({order}) % 61))", "noise": 0.02,
                                    "compile_s": 0.1, "seed": seed}))
        command = [program, "tune", str(SPEC), "--device", f"fake:{fake}", "--shape", SHAPE, "--budget",
                   f"{seconds}s", "--jobs", "2", "--seed", str(seed), "--fresh", "--no-store", "--json", "-q"]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, env={**os.environ, "XDG_CACHE_HOME": folder})
    document = json.loads(done.stdout)
    finalists = document["finals"]["finalists"]
    best = min(true_ms(one["config"]) for one in document["evaluations"])
    return {"slower": true_ms(document["best"]["config"]) / best - 1, "configs": len(document["evaluations"]),
            "finalists": len(finalists), "samples": sum(len(one["samples_ms"]) for one in finalists),
            "rounds": document.get("rematches", {}).get("rounds", 0)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--purlin", default="build/release/bin/purlin")
    parser.add_argument("--before", help="the peer: a Purlin without rematches")
    parser.add_argument("--repeats", type=int, default=24)
    parser.add_argument("--seconds", type=int, default=7)
    options = parser.parse_args()
    arms = {"with rematches": options.purlin} | ({"before": options.before} if options.before else {})
    rows = {name: [] for name in arms}
    for seed in range(1, options.repeats + 1):
        for name, program in arms.items():  # by turns
            rows[name].append(session(program, seed, options.seconds))
    print("| binary | winner slower, mean | most | configs | finalists | samples of the finals | rematch rounds |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for name, made in rows.items():
        mean = {key: statistics.fmean(one[key] for one in made) for key in made[0]}
        print(f"| {name} | {100 * mean['slower']:.2f} % | {100 * max(one['slower'] for one in made):.1f} % | "
              f"{mean['configs']:.0f} | {mean['finalists']:.1f} | {mean['samples']:.0f} | {mean['rounds']:.0f} |")


if __name__ == "__main__":
    main()
