#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a sampled profile says against one of every launch, of the same work.

    python3 bench/gpu/sampled_vs_full.py --purlin build/release/bin/purlin -o OUT/sampled_vs_full_h200.json

Each program of capture_programs.py makes a fixed number of steps, once under `--full` and once in each other way: counts
and times in total, the shares of the 20 kernels that own most, p50 and p95 of the 20 rows (kernel and launch shape) that
do: of one kernel in two sizes the median may lie between both. A second `--full` says what differs without any sampling. Where the budget allows the beginning only (a program that is launch bound, as the profile says), the
profile is compared with as many launches from the start of the full one's timeline.

Rows are tried in order until --limit seconds are over; what is done is on disk after each. Exit code 1 where a row is off
by more than 2 % in total, 2 points in a share, 5 % in a p50 or p95, or was not run for want of time.
"""

import argparse
import csv
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from capture_overhead import PROGRAMS_FILE
from turns import environment

# program, steps (ms each on an H200's host), ways besides --full and their part of the steps
PLAN = [("graph", 4200, 3.0, [("--windows", 1), ("", 1)]), ("medium", 250, 40, [("--windows", 1), ("", 1)]), ("training", 360, 14, [("", 0.5), ("--budget 10%", 1)]),
        ("gemm", 180, 16.5, [("", 1)]), ("tiny", 300, 9, [("", 1)]), ("graph", 2000, 3.6, [("--full", 1)])]
START_S = 6  # of a process
WARM_STEPS = 5  # of capture_programs.py
LIMITS = {"total_off": 0.02, "share_points_max": 2, "p50_off_max": 0.05, "p95_off_max": 0.05}
TOP = 20
MOST_LISTED = 1_000_000  # launches whose durations are looked at one by one


class Programs:
    """Starts programs by the server of capture_programs.py."""

    def __init__(self, purlin, folder):
        self.purlin, self.folder, self.socket = purlin, folder, os.path.join(folder, "zygote")
        self.server = subprocess.Popen([sys.executable, str(PROGRAMS_FILE), "serve", self.socket])
        while not os.path.exists(self.socket):
            if self.server.poll() is not None:
                raise RuntimeError("the server of programs did not start")
            time.sleep(0.05)

    def end(self):
        os.unlink(self.socket)
        self.server.wait()

    def run(self, program, steps, options=None):
        """(what the program says, its profile's file)"""
        out, file = os.path.join(self.folder, "out.json"), os.path.join(self.folder, "run.plprof")
        command = [sys.executable, "-S", str(PROGRAMS_FILE), "shim", self.socket, "steps", program, str(steps), out]
        if options is not None:
            command = [self.purlin, "profile", "--quiet", "--torch", "off", *shlex.split(options), "-o", file, "--", *command]
        done = subprocess.run(command, capture_output=True, text=True, timeout=200)
        if done.returncode != 0:
            raise RuntimeError(f"{shlex.join(command)} exited {done.returncode}: {done.stderr[-2000:]}")
        return json.loads(Path(out).read_text()), file


def launch_text(grid, block):
    return "x".join(map(str, grid)) + " " + "x".join(map(str, block))


def rows_of(report):
    """{(name, launch shape): count, total, p50, p95} of the rows of a report by launch."""
    rows = {}
    for k in report["kernels"]:
        key = (k["name"], launch_text(k["launch"]["grid"], k["launch"]["block"]))
        if key not in rows or k["total_ns"] > rows[key]["total_ns"]:
            earlier = rows.get(key, {"count": 0, "total_ns": 0})
            rows[key] = {"count": k["count"] + earlier["count"], "total_ns": k["total_ns"] + earlier["total_ns"],
                         "p50_ns": k["p50_ns"], "p95_ns": k["p95_ns"]}
        else:
            rows[key]["count"] += k["count"]
            rows[key]["total_ns"] += k["total_ns"]
    return rows


def by_kernel(rows):
    """{name: total} over launch shapes."""
    result = {}
    for (name, _), row in rows.items():
        result[name] = result.get(name, 0) + row["total_ns"]
    return result


def durations_of(purlin, file, count):
    """{(name, launch shape): durations, in order} of the first `count` launches of a timeline; None: all."""
    listing = subprocess.Popen([purlin, "export", file, "--format", "csv"], stdout=subprocess.PIPE, text=True)
    kernels = ((int(row["start_ns"]), (row["name"], row["grid"] + " " + row["block"]), int(row["duration_ns"]))
               for row in csv.DictReader(listing.stdout) if row["kind"] == "kernel")
    launches = list(kernels)
    if listing.wait() != 0:
        raise RuntimeError(f"purlin export {file} exited {listing.returncode}")
    by_row = {}
    for _, key, duration in sorted(launches)[:count]:
        by_row.setdefault(key, []).append(duration)
    return {key: sorted(values) for key, values in by_row.items()}


def at(durations, rank):
    return durations[min(len(durations) - 1, int(rank * len(durations)))]


def first_launches(purlin, file, count):
    """As rows_of, of the first `count` launches of a timeline."""
    return {key: {"count": len(v), "total_ns": sum(v), "p50_ns": at(v, 0.5), "p95_ns": at(v, 0.95)}
            for key, v in durations_of(purlin, file, count).items()}


def off_by_rank(result, other, durations):
    """How far percentiles are from all that the truth has within two points of their rank: where a row is of two sizes, half
    of each, the median is either."""
    worst = {}
    for name, rank in (("p50", 0.5), ("p95", 0.95)):
        for row in result["rows"]:
            values, its = durations.get((row["kernel_name"], row["launch"])), other.get((row["kernel_name"], row["launch"]))
            if values and its:
                low, high, seen = at(values, rank - 0.02), at(values, min(1, rank + 0.02)), its[name + "_ns"]
                worst[name] = max(worst.get(name, 0), 1 - seen / low, seen / high - 1)
    return {f"{name}_off_by_rank_max": value for name, value in worst.items()}


def compare(truth, other):
    total, total_other = (sum(k["total_ns"] for k in each.values()) for each in (truth, other))
    shares, shares_other = by_kernel(truth), by_kernel(other)
    top = sorted(shares, key=lambda name: -shares[name])[:TOP]
    points = max(abs(shares[name] / total - shares_other.get(name, 0) / total_other) * 100 for name in top)
    rows = []
    for key in sorted(truth, key=lambda key: -truth[key]["total_ns"])[:TOP]:
        mine, its = truth[key], other.get(key)
        rows.append({"kernel_name": key[0], "launch": key[1], "count": mine["count"], "share": mine["total_ns"] / total,
                     "share_other": its["total_ns"] / total_other if its else 0,
                     "p50_ratio": its["p50_ns"] / mine["p50_ns"] if its else None,
                     "p95_ratio": its["p95_ns"] / mine["p95_ns"] if its else None})
    seen = [row for row in rows if row["p50_ratio"] is not None]
    result = {"total_ratio": total_other / total, "total_off": abs(total_other / total - 1),
              "count_ratio": sum(k["count"] for k in other.values()) / sum(k["count"] for k in truth.values()),
              "share_points_max": points,
              "p50_off_max": max((abs(row["p50_ratio"] - 1) for row in seen), default=None),
              "p95_off_max": max((abs(row["p95_ratio"] - 1) for row in seen), default=None),
              "missing": len(rows) - len(seen), "rows": rows}
    result["within"] = not result["missing"] and all(result[key] <= most for key, most in LIMITS.items())
    return result


def one_row(programs, program, steps, part, options, full_file):
    purlin, made = programs.purlin, max(1, int(steps * part))
    said, file = programs.run(program, made, options)
    report = lambda path: json.loads(  # noqa: E731
        subprocess.run([purlin, "report", "--json", "--by", "launch", path], check=True, capture_output=True, text=True).stdout)
    document = report(file)
    coverage = document["coverage"]
    causes = {note["cause"] for note in coverage["notes"]}
    sampled = rows_of(document)
    what = "head" if {"launch_bound", "no_windows"} & set(causes) else "whole"
    truth = rows_of(report(full_file))
    if what == "head":
        truth = first_launches(purlin, full_file, round(sum(k["count"] for k in sampled.values())))
    elif made < steps:
        launches = sum(k["count"] for k in truth.values())
        truth = first_launches(purlin, full_file, round(launches * (made + WARM_STEPS) / (steps + WARM_STEPS)))
    result = compare(truth, sampled)
    if sum(k["count"] for k in truth.values()) < MOST_LISTED:  # the first of more are no fair part of them
        count = None if what == "whole" and made == steps else round(sum(k["count"] for k in truth.values()))
        result.update(off_by_rank(result, sampled, durations_of(purlin, full_file, count)))
    for row in result["rows"]:
        row["kernel_name"] = row["kernel_name"][:120]
    return {"program": program, "options": options or "default", "steps": made, "compared": what, **result,
            "mean_ms": said["mean_ms"], "launches_seen": coverage["launches_seen"], "launches": sum(k["count"] for k in sampled.values()),
            "sampling": coverage.get("sampling"), "overhead_ns": coverage["overhead_ns"],
            "notes": [{"cause": n["cause"], "seconds": n["seconds"], "text": n["text"]} for n in coverage["notes"]]}


def markdown(document):
    lines = ["# What sampling leaves out", "",
             f"Recorded {document['recorded_at']} at {document['environment']['revision']}: `{document['command']}`, "
             f"{document['wall_s']:.0f} s. Each row against `--full` of the same steps in another process; `--full` against `--full` is "
             "what differs without sampling. Limits: total 2 %, share 2 points, p50 and p95 5 %.", "",
             "| program | options | compared | recorded | windows by ids, by time | total | count | share, points | p50 | p95 | p50, p95 within two points of rank | within |",
             "|---|---|---|---|---|---|---|---|---|---|---|---|"]
    for r in document["programs"]:
        if "failed" in r:
            lines.append(f"| {r['program']} | {r['options']} | failed: {r['failed'][:200]} | | | | | | | | | |")
            continue
        percent = lambda value: "" if value is None else f"{100 * value:.2f} %"  # noqa: E731
        windows = "{counted_windows:.0f}, {timed_windows:.0f}".format_map(r["sampling"]) if r["sampling"] else ""
        lines.append(f"| {r['program']} | {r['options']} | {r['compared']} | {percent(r['launches_seen'] / max(1, r['launches']))} | {windows} | "
                     f"{100 * (r['total_ratio'] - 1):+.2f} % | {100 * (r['count_ratio'] - 1):+.2f} % | {r['share_points_max']:.2f} | "
                     f"{percent(r['p50_off_max'])} | {percent(r['p95_off_max'])} | "
                     f"{percent(r.get('p50_off_by_rank_max'))} {percent(r.get('p95_off_by_rank_max'))} | {'yes' if r['within'] else 'no'} |")
    lines += ["", "Environment: " + ", ".join(f"{k} {v}" for k, v in document["environment"].items()) + ".", ""]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--purlin", default="purlin")
    parser.add_argument("--programs", default="graph,medium,gemm,training,tiny")
    parser.add_argument("--limit", type=float, default=150)
    parser.add_argument("--scale", type=float, default=1, help="of the plan's steps")
    parser.add_argument("-o", "--output", default="sampled_vs_full.json")
    arguments = parser.parse_args()
    began, skipped = time.monotonic(), []
    purlin = os.path.abspath(arguments.purlin) if "/" in arguments.purlin else arguments.purlin
    document = {"schema": "purlin.bench.sampled_vs_full/3", "recorded_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                "command": shlex.join(["python3", *sys.argv]), "limits": LIMITS, "programs": [], "wall_s": 0.0}

    def done(row):
        document["programs"].append(row)
        document["wall_s"] = time.monotonic() - began
        Path(arguments.output).write_text(json.dumps(document, indent=1) + "\n")
        Path(arguments.output).with_suffix(".md").write_text(markdown(document))
        print({k: v for k, v in row.items() if k not in ("rows", "notes")}, file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory() as folder:
        programs = Programs(purlin, folder)
        document["environment"] = environment(purlin)
        try:
            for program, steps, step_ms, ways in PLAN:
                steps = max(20, int(steps * arguments.scale))
                seconds = steps * step_ms / 1e3
                late = lambda runs: time.monotonic() - began + START_S + runs * (seconds + START_S) > arguments.limit  # noqa: E731, B023
                if program not in arguments.programs.split(","):
                    continue
                if late(2):
                    skipped.append(program)
                    continue
                try:
                    _, file = programs.run(program, steps, "--full")
                    os.rename(file, folder + "/full.plprof")
                except Exception as failure:  # noqa: BLE001  the others may do
                    done({"program": program, "options": "--full", "failed": repr(failure)})
                    continue
                for options, part in ways:
                    if late(part):
                        skipped.append(f"{program} {options}".strip())
                        continue
                    try:
                        done(one_row(programs, program, steps, part, options, folder + "/full.plprof"))
                    except Exception as failure:  # noqa: BLE001
                        done({"program": program, "options": options or "default", "failed": repr(failure)})
        finally:
            programs.end()
    print(markdown(document))
    if skipped:
        print(f"not run, --limit {arguments.limit:g} being too short: {', '.join(skipped)}", file=sys.stderr)
    return 0 if not skipped and all(row.get("within") for row in document["programs"]) else 1


if __name__ == "__main__":
    sys.exit(main())
