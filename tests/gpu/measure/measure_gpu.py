# SPDX-License-Identifier: Apache-2.0
"""The parts of measure_gpu.sh: each prints a table and what it found wanting."""

import csv
import io
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
KERNELS = next((p for p in (HERE.parents[2] / "kernels", Path(sys.argv[1]).resolve().parents[1] /
                            "share/purlin/kernels") if p.is_dir()), None)
PURLIN = sys.argv[1]
problems, results = [], {}


def expect(condition, text):
    if not condition:
        problems.append(text)
        print("  WANTING:", text)


def tune(spec, *arguments, code=0):
    done = subprocess.run([PURLIN, "tune", str(spec), "--device", "cuda:0", "--no-store", "--no-transfer",
                           "--fresh", "--json", "-q", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != code:
        sys.exit(f"measure_gpu: tune {spec} {arguments} ended with {done.returncode}:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout) if done.stdout else {"stderr": done.stderr}


def profiler_durations(tmp):
    """Median duration in us of each kernel of spin_program, by Nsight Compute and by purlin profile."""
    program = tmp / "spin_program"
    subprocess.run(["nvcc", "-O2", "-arch=native", str(HERE / "spin_program.cu"), "-o", str(program)], check=True)
    ncu, cupti = {}, {}
    if shutil.which("ncu"):
        out = subprocess.run(["ncu", "--csv", "--metrics", "gpu__time_duration.sum", "--clock-control", "none",
                              "--cache-control", "none", "--launch-skip", "3000", str(program)],
                             capture_output=True, text=True, check=False).stdout
        start = out.find('"ID"')
        for row in csv.DictReader(io.StringIO(out[start:])) if start >= 0 else []:
            value = float(row["Metric Value"].replace(",", ""))
            scale = {"ns": 1e-3, "nsecond": 1e-3, "us": 1, "usecond": 1, "ms": 1e3, "msecond": 1e3}
            name = re.search(r"spin_(\d+)", row["Kernel Name"])
            if name:
                ncu.setdefault(int(name[1]), []).append(value * scale[row["Metric Unit"]])
    profile = tmp / "spin.purlin"
    subprocess.run([PURLIN, "profile", "-o", str(profile), "--full", "-q", "--", str(program)], check=True,
                   capture_output=True)
    report = json.loads(subprocess.run([PURLIN, "report", str(profile), "--json"], check=True, capture_output=True,
                                       text=True).stdout)
    for kernel in report["kernels"]:
        name = re.search(r"spin_(\d+)", kernel["name"])
        if name:
            cupti[int(name[1])] = kernel["p50_ns"] * 1e-3
    return {k: statistics.median(v) for k, v in ncu.items()}, cupti


def short_kernels(tmp):
    print("short kernels: us by purlin, by Nsight Compute (gpu__time_duration) and by CUPTI (purlin profile)")
    document = tune(HERE / "spin.toml", "--strategy", "exhaustive", "--finals", "0", "--samples", "20")
    ncu, cupti = profiler_durations(tmp)
    rows = []
    for evaluation in document["evaluations"]:
        cycles, us = evaluation["config"]["CYCLES"], evaluation.get("time_ms", 0) * 1e3
        expect(evaluation["status"] == "ok", f"CYCLES={cycles}: {evaluation['status']} {evaluation.get('message', '')}")
        rows.append({"cycles": cycles, "us": us, "how": evaluation.get("how"), "samples": len(evaluation["samples_ms"]),
                     "ncu_us": ncu.get(cycles), "cupti_us": cupti.get(cycles)})
    for row in sorted(rows, key=lambda r: r["cycles"]):
        known = row["cupti_us"] or row["ncu_us"]
        print(f"  {row['cycles']:7d} cycles: {row['us']:8.2f}  ncu {row['ncu_us'] or 0:8.2f}  CUPTI {row['cupti_us'] or 0:8.2f}  "
              f"{row['how']}")
        if row["us"] < 500:
            expect(row["how"].startswith("graph"), f"{row['cycles']} cycles were not timed as a graph: {row['how']}")
        if known:
            # A step from launch to launch more than the kernel alone, no less than it by more than noise.
            expect(-1 - 0.02 * known < row["us"] - known < 1 + 0.02 * known,
                   f"{row['cycles']} cycles: {row['us']:.2f} us, a profiler says {known:.2f}")
    results["short_kernels"] = rows


def rotating(tmp):
    print("reused and rotating inputs")
    rows = []
    for name, shape, budget in (("elementwise", "R=512,C=1024", "40"), ("elementwise", "R=64,C=1024", "40"),
                                ("gemm_bf16", "M=64,N=4096,K=4096", "150")):
        row = {"kernel": name, "shape": shape}
        for inputs in ("reuse", "rotate"):
            document = tune(KERNELS / name / f"{name}.toml", "--shape", shape, "--budget", budget, "--inputs", inputs)
            best = document["best"]
            sets = max(e.get("input_sets", 1) for e in document["evaluations"])
            times = {json.dumps(e["config"]): e["time_ms"] for e in document["evaluations"]
                     if e["status"] == "ok" and not e.get("raced_out")}
            row[inputs] = {"best_us": best["time_ms"] * 1e3, "config": best["config"], "sets": sets, "times": times}
        both = row["reuse"]["times"].keys() & row["rotate"]["times"].keys()
        row["ratio"] = row["rotate"]["best_us"] / row["reuse"]["best_us"]
        print(f"  {name} {shape}: reused {row['reuse']['best_us']:.2f} us, rotating {row['rotate']['best_us']:.2f} us "
              f"({row['rotate']['sets']} sets), {row['ratio']:.2f}x; {len(both)} configs timed in full both ways; winner "
              f"{'the same' if row['reuse']['config'] == row['rotate']['config'] else 'another'}")
        expect(row["reuse"]["sets"] == 1 and row["rotate"]["sets"] > 1, f"{name}: sets of inputs")
        for inputs in ("reuse", "rotate"):
            del row[inputs]["times"]
        rows.append(row)
    expect(rows[0]["ratio"] > 1.1, "reading 4 MiB from memory takes no longer than from L2")
    results["rotating"] = rows


def energy(tmp):
    print("energy")
    rows = []
    for name, shape in (("elementwise", "large"), ("gemm_bf16", "large")):
        seen = {}  # of the same configs, measured by two sessions
        for attempt in range(2):
            document = tune(KERNELS / name / f"{name}.toml", "--shape", shape, "--strategy", "random", "--budget", "2",
                            "--finals", "0", "--objective", "energy")
            for e in document["evaluations"]:
                if not e.get("energy_mj"):
                    continue
                row = {"kernel": name, "shape": shape, "config": e["config"], "ms": e["time_ms"], "mj": e["energy_mj"],
                       "w": e["power_w"], "error": e["energy_error"], "pace": e["energy_mj"] / e["power_w"] / e["time_ms"]}
                rows.append(row)
                seen.setdefault(json.dumps(e["config"], sort_keys=True), []).append(row)
                print(f"  {name} {shape}: {row['ms']:.4f} ms, {row['mj']:.3f} mJ, {row['w']:.0f} W, stated error "
                      f"{row['error']:.1%}; launches took {row['pace']:.3f}x as long meanwhile")
                expect(70 < row["w"] < 800, f"{name}: {row['w']:.0f} W")
                expect(row["error"] <= 0.05, f"{name}: an error of {row['error']:.1%}")
        for first, *others in seen.values():
            for other in others:
                change = other["mj"] / first["mj"] - 1
                print(f"  {name}: the same config in another session: {change:+.1%}")
                expect(abs(change) < 0.05 + first["error"] + other["error"],
                       f"{name}: the same config measured again: {change:+.1%}")
    refused = tune(KERNELS / "elementwise" / "elementwise.toml", "--shape", "large", "--strategy", "random", "--budget",
                   "2", "--limit", "power_w < 20", code=2)
    failures = refused.get("failures", {}).get("invalid", {})
    expect("power_w < 20" in failures.get("first_message", ""), f"a limit of 20 W: {failures}")
    results["energy"] = rows


def nvcc(tmp):
    print("a kernel that takes nvcc")
    document = tune(HERE / "scaled.toml", "--strategy", "exhaustive", "--finals", "1")
    again = tune(HERE / "scaled.toml", "--strategy", "exhaustive", "--finals", "1")
    statuses = [e["status"] for e in document["evaluations"]]
    seconds = [e["compile_s"] for e in document["evaluations"]]
    print(f"  {len(statuses)} configs, {statuses.count('ok')} ok, {statistics.fmean(seconds):.1f} s each to compile; "
          f"{sum(e['cached_binary'] for e in again['evaluations'])} from the cache when run again")
    expect(statuses == ["ok"] * 8, f"statuses {statuses}: " +
           next((e.get("message", "") for e in document["evaluations"] if e["status"] != "ok"), ""))
    expect(all(e["cached_binary"] for e in again["evaluations"]), "binaries were compiled again")
    results["nvcc"] = {"statuses": statuses, "compile_s": seconds}


with tempfile.TemporaryDirectory() as folder:
    for part in (short_kernels, energy, nvcc, rotating):
        if sys.argv[2:] and part.__name__ not in sys.argv[2:]:
            continue
        start = time.monotonic()
        part(Path(folder))
        print(f"  ({part.__name__}: {time.monotonic() - start:.0f} s)", flush=True)
results["problems"] = problems
if os.environ.get("OUT"):
    Path(os.environ["OUT"]).mkdir(parents=True, exist_ok=True)
    (Path(os.environ["OUT"]) / "measure_gpu.json").write_text(json.dumps(results, indent=1) + "\n")
print(f"measure_gpu: {len(problems)} found wanting" if problems else "measure_gpu: as it should be")
sys.exit(1 if problems else 0)
