#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a stream takes from one queued kernel to the next, and what recording adds to that on the device.

    python3 bench/gpu/queued_gaps.py --purlin build/release/bin/purlin -o OUT/queued_gaps.json    (15 s)

bench/gpu/queued_gaps.cu by itself and under `purlin profile --full`, by turns. Of both: the time per kernel by events around
800 that are queued behind a long one. Of the recorded ones also their durations, as recorded. The difference between the
time per kernel of the program by itself and the recorded duration is what DeviceBusy::kStreamGapNs stands for: what of a
gap is the stream's own. It must not be more than that.
"""

import argparse
import csv
import io
import json
import statistics
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
SPINS = ["2000", "10000", "50000", "150000"]


def each(command):
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    lines = [json.loads(line) for line in out.splitlines() if line.startswith('{"spin_ns"')]
    return {line["spin_ns"]: statistics.median(line["each_ns"]) for line in lines}


def durations(purlin, file):
    """{spin: (median, mean) duration}: kernels come in the order of their sizes, as many of each."""
    text = subprocess.run([purlin, "export", file, "--format", "csv"], check=True, capture_output=True, text=True).stdout
    rows = sorted((int(r["start_ns"]), int(r["duration_ns"])) for r in csv.DictReader(io.StringIO(text))
                  if r["kind"] == "kernel" and "queued" in r["name"])
    part = len(rows) // len(SPINS)
    by_spin = {int(spin): rows[i * part:(i + 1) * part] for i, spin in enumerate(SPINS)}
    result = {}
    for spin, launches in by_spin.items():
        gaps = [b[0] - a[0] - a[1] for a, b in zip(launches, launches[1:])]
        gaps = sorted(gap for gap in gaps if gap < 50_000)
        result[spin] = {"mean_ns": statistics.fmean(d for _, d in launches), "gap_p01_ns": gaps[len(gaps) // 100],
                        "gap_p50_ns": statistics.median(gaps), "gap_p99_ns": gaps[len(gaps) * 99 // 100]}
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--purlin", default="purlin")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("-o", "--output", default="queued_gaps.json")
    arguments = parser.parse_args()
    rounds = []
    with tempfile.TemporaryDirectory() as folder:
        program, file = folder + "/queued_gaps", folder + "/run.plprof"
        subprocess.run(["nvcc", "-std=c++17", "-O2", "-arch=sm_90", str(HERE / "queued_gaps.cu"), "-o", program], check=True)
        command = [program, "5", *SPINS]
        for _ in range(arguments.rounds):
            alone = each(command)
            recorded = each([arguments.purlin, "profile", "--full", "--quiet", "-o", file, "--", *command])
            rounds.append({"alone": alone, "recorded": recorded, "durations": durations(arguments.purlin, file)})
    rows = []
    for spin in map(int, SPINS):
        alone = statistics.median(r["alone"][spin] for r in rounds)
        recorded = statistics.median(r["recorded"][spin] for r in rounds)
        mean = statistics.median(r["durations"][spin]["mean_ns"] for r in rounds)
        rows.append({"spin_ns": spin, "alone_ns": alone, "recorded_ns": recorded, "duration_ns": mean, "added_ns": recorded - alone,
                     "own_gap_ns": alone - mean, **{f"gap_{p}_ns": rounds[0]["durations"][spin][f"gap_{p}_ns"] for p in ("p01", "p50", "p99")}})
    document = {"schema": "purlin.bench.queued_gaps/1", "rows": rows, "rounds": rounds}
    Path(arguments.output).write_text(json.dumps(document, indent=1) + "\n")
    for row in rows:
        print({key: round(value, 1) for key, value in row.items()})


if __name__ == "__main__":
    main()
