#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tuned gemm sample against cuBLAS on the same GPU, in the same run.

    python3 gemm_vs_cublas.py --purlin build/release/src/cli/purlin --spec kernels/gemm/gemm.toml \\
        --shape M=4096,N=4096,K=4096 --budget 500 -o bench/results/gemm_vs_cublas_h200.json
    python3 gemm_vs_cublas.py --tuned tune.json …      # documents of `purlin tune --json` instead

cuBLAS is timed before and after each tuning, through torch.matmul with CUDA events, warm caches and
contents uniform in [-1, 1) as Purlin has them; the faster of the two medians counts, so that a
change of clocks cannot favour Purlin. fp32 is the like-for-like row: TF32 and bf16 are what tensor
cores give when less precision will do.
"""

import argparse
import json
import math
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch


def parse_shape(text):
    shape = {name: int(extent) for name, extent in re.findall(r"([A-Z]\w*)=(\d+)", text)}
    if not {"M", "N", "K"} <= shape.keys():
        sys.exit(f"gemm_vs_cublas: '{text}' names no M, N and K; write M=4096,N=4096,K=4096")
    return shape


def document_shape(document, path):
    """The problem shape of a `purlin tune --json` document, whichever way it is written."""
    for key in ("problem", "shape", "problem_shape"):
        value = document.get(key)
        if isinstance(value, dict):
            return {name: int(extent) for name, extent in value.items()}
        if isinstance(value, str):
            return parse_shape(value)
    sys.exit(f"gemm_vs_cublas: {path} does not say its problem shape")


def time_matmul(shape, dtype, tf32, samples=50):
    """Median of the samples in ms. Short products are launched back to back, the sample is their
    mean, so that the events' resolution does not show."""
    torch.backends.cuda.matmul.allow_tf32 = tf32
    generator = torch.Generator(device="cuda").manual_seed(1)

    def operand(rows, columns):
        values = torch.rand(rows, columns, generator=generator, device="cuda") * 2 - 1
        return values.to(dtype)

    a, b = operand(shape["M"], shape["K"]), operand(shape["K"], shape["N"])
    out = torch.empty(shape["M"], shape["N"], device="cuda", dtype=dtype)

    def measure(launches):
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(launches):
            torch.matmul(a, b, out=out)
        stop.record()
        stop.synchronize()
        return start.elapsed_time(stop) / launches

    measure(10)
    launches = max(1, min(1000, math.ceil(1.0 / max(measure(5), 1e-3))))
    return statistics.median(measure(launches) for _ in range(samples))


KINDS = {
    "cublas_fp32": (torch.float32, False),
    "cublas_tf32": (torch.float32, True),
    "cublas_bf16": (torch.bfloat16, False),
}


def time_cublas(shape):
    return {name: time_matmul(shape, dtype, tf32) for name, (dtype, tf32) in KINDS.items()}


def tune(arguments, shape_text):
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        command = [arguments.purlin, "tune", arguments.spec, "--device", arguments.device, "--shape",
                   shape_text, "--strategy", arguments.strategy, "--budget", arguments.budget, "--json"]
        print("+", " ".join(command), file=sys.stderr, flush=True)
        done = subprocess.run(command, stdout=out, check=False)
        if done.returncode != 0:
            sys.exit(f"gemm_vs_cublas: purlin tune ended with {done.returncode}")
        return json.loads(Path(out.name).read_text())


def summarize(shape, document, cublas):
    flops = 2 * shape["M"] * shape["N"] * shape["K"]

    def tflops(ms):
        return flops / ms / 1e9

    good = [e for e in document["evaluations"] if e["status"] == "ok" and e["time_ms"] > 0]
    if not good:
        sys.exit("gemm_vs_cublas: no config of the tuning was ok")
    # The winner as the finals measured it again: the minimum of the search flatters.
    best = document.get("best") or min(good, key=lambda e: e["time_ms"])
    default = document.get("default")
    worst = max(good, key=lambda e: e["time_ms"])
    statuses = {}
    for evaluation in document["evaluations"]:
        statuses[evaluation["status"]] = statuses.get(evaluation["status"], 0) + 1
    return {
        "shape": shape,
        "kernel": document.get("kernel"),
        "budget": document.get("budget"),
        "strategy": document.get("strategy_used"),
        "statuses": statuses,
        "best": {"config": best["config"], "ms": best["time_ms"], "tflops": tflops(best["time_ms"])},
        "worst": {"config": worst["config"], "ms": worst["time_ms"],
                  "tflops": tflops(worst["time_ms"])},
        "default_over_best": default["time_ms"] / best["time_ms"] if default else None,
        "worst_over_best": worst["time_ms"] / best["time_ms"],
        "median_over_best": statistics.median(e["time_ms"] for e in good) / best["time_ms"],
        "cublas": {name: {"ms": ms, "tflops": tflops(ms), "tuned_over_it": ms / best["time_ms"]}
                   for name, ms in cublas.items()},
    }


def print_table(rows):
    header = ("shape", "configs ok", "worst/best", "default/best", "tuned TFLOP/s", "cuBLAS fp32", "ratio",
              "cuBLAS TF32", "ratio", "cuBLAS bf16", "ratio")
    cells = [header]
    for row in rows:
        line = ["x".join(str(row["shape"][d]) for d in "MNK"), str(row["statuses"].get("ok", 0)),
                f"{row['worst_over_best']:.1f}",
                f"{row['default_over_best']:.1f}" if row["default_over_best"] else "-",
                f"{row['best']['tflops']:.1f}"]
        for name in KINDS:
            line += [f"{row['cublas'][name]['tflops']:.1f}",
                     f"{row['cublas'][name]['tuned_over_it']:.3f}"]
        cells.append(tuple(line))
    widths = [max(len(line[i]) for line in cells) for i in range(len(header))]
    for line in cells:
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths)))
    for row in rows:
        config = " ".join(f"{name}={value}" for name, value in row["best"]["config"].items())
        print(f"best of {'x'.join(str(row['shape'][d]) for d in 'MNK')}: {config}")


def nvidia_smi(fields):
    try:
        return subprocess.run(["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader"],
                              capture_output=True, text=True, check=True).stdout.strip().splitlines()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tuned", action="append", default=[], help="document of purlin tune --json")
    parser.add_argument("--purlin", help="the binary: tune here instead")
    parser.add_argument("--spec", default="kernels/gemm/gemm.toml")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--shape", action="append", default=[], help="M=…,N=…,K=… (with --purlin)")
    parser.add_argument("--strategy", default="auto")
    parser.add_argument("--budget", default="500", help="evaluations, or seconds as 300s")
    parser.add_argument("-o", "--output", help="write the result as JSON")
    arguments = parser.parse_args()
    if bool(arguments.tuned) == bool(arguments.purlin):
        parser.error("give either --tuned FILE or --purlin BINARY")
    if not torch.cuda.is_available():
        sys.exit("gemm_vs_cublas: torch sees no CUDA device")

    rows = []
    for item in arguments.tuned or arguments.shape or ["M=4096,N=4096,K=4096"]:
        if arguments.tuned:
            document = json.loads(Path(item).read_text())
            shape = document_shape(document, item)
            before = time_cublas(shape)
        else:
            shape = parse_shape(item)
            before = time_cublas(shape)
            document = tune(arguments, item)
        after = time_cublas(shape)
        rows.append(summarize(shape, document, {k: min(before[k], after[k]) for k in KINDS}))

    print_table(rows)
    if arguments.output:
        Path(arguments.output).write_text(json.dumps({
            "schema": "purlin.bench.gemm/1",
            "recorded_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "environment": {
                "device": torch.cuda.get_device_name(), "driver": nvidia_smi("driver_version"),
                "sm_clock_after": nvidia_smi("clocks.sm"), "torch": torch.__version__,
                "torch_cuda": torch.version.cuda,
            },
            "rows": rows,
        }, indent=1) + "\n")


if __name__ == "__main__":
    main()
