#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tuned attention samples against PyTorch's scaled_dot_product_attention on the same GPU, in the same run.

    python3 attention_vs_sdpa.py --purlin build/release/bin/purlin --budget 40s [--shape HEADS=64,S=4096,D=128] \\
        -o bench/results/attention_vs_sdpa_h100.json

Each backend of SDPA is timed before and after each tuning, with CUDA events, warm caches and normal contents in bf16,
as the samples have them. The fastest median of the fastest backend counts, so that a change of clocks cannot favour
Purlin.
"""
import argparse
import json
import re
import statistics
import subprocess
import sys
import time

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

BACKENDS = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION,
            "efficient": SDPBackend.EFFICIENT_ATTENTION}


def time_sdpa(shape, causal, samples=30, launches=5):
    q, k, v = (torch.randn(1, shape["HEADS"], shape["S"], shape["D"], device="cuda", dtype=torch.bfloat16)
               for _ in range(3))
    found = {}
    for name, backend in BACKENDS.items():
        with sdpa_kernel(backend):
            times = []
            try:
                for _ in range(samples + 3):
                    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                    start.record()
                    for _ in range(launches):
                        scaled_dot_product_attention(q, k, v, is_causal=causal)
                    end.record()
                    end.synchronize()
                    times.append(start.elapsed_time(end) / launches)
            except RuntimeError as problem:
                print(f"{name}: {str(problem)[:200]}", file=sys.stderr)
                continue
        found[name] = statistics.median(times[3:])
    return found


def tune(options, name, shape):
    command = [options.purlin, "tune", f"{options.kernels}/attention/{name}.toml", "--device", "cuda:0", "--shape",
               shape, "--budget", options.budget, "--no-store", "--json", "-q"]
    print("+", " ".join(command), file=sys.stderr, flush=True)
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--purlin", required=True)
    parser.add_argument("--kernels", default="kernels")
    parser.add_argument("--shape", action="append", default=[])
    parser.add_argument("--budget", default="40s")
    parser.add_argument("-o", "--output")
    options = parser.parse_args()
    rows = []
    for text in options.shape or ["HEADS=64,S=4096,D=128", "HEADS=64,S=4096,D=64"]:
        shape = {name: int(extent) for name, extent in re.findall(r"([A-Z]+)=(\d+)", text)}
        for name, causal in (("attention", False), ("attention_causal", True)):
            before = time_sdpa(shape, causal)
            document = tune(options, name, text)
            after = time_sdpa(shape, causal)
            backends = {one: min(before[one], after[one]) for one in before if one in after}
            fastest = min(backends, key=backends.get)
            flops = (2 if causal else 4) * shape["HEADS"] * shape["S"] ** 2 * shape["D"]
            best, default = document["best"], document.get("default")  # HEAD=128 is none for D=64
            statuses = [one["status"] for one in document["evaluations"]]
            rows.append({
                "kernel": name, "shape": shape, "evaluations": len(statuses), "ok": statuses.count("ok"),
                "config": best["config"], "ms": best["time_ms"], "tflops": flops / best["time_ms"] / 1e9,
                "default_ms": default and default["time_ms"],
                "default_over_best": default and default["time_ms"] / best["time_ms"],
                "sdpa_ms": backends, "fastest": fastest,
                "fastest_tflops": flops / backends[fastest] / 1e9,
                "fastest_over_tuned": backends[fastest] / best["time_ms"]})
            row = rows[-1]
            print(f"{name:17s} {text}: {row['tflops']:.1f} TFLOP/s, {fastest} {row['fastest_tflops']:.1f}, ratio "
                  f"{row['fastest_over_tuned']:.3f}, default/best {row['default_over_best']}, {row['config']}",
                  flush=True)
    if options.output:
        with open(options.output, "w") as file:
            json.dump({"schema": "purlin.bench.attention/1",
                       "recorded_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                       "environment": {"device": torch.cuda.get_device_name(), "torch": torch.__version__,
                                       "driver": subprocess.run(
                                           ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
                                           capture_output=True, text=True).stdout.strip()},
                       "rows": rows}, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
