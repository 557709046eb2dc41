#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `purlin profile` costs a PyTorch program, by interleaved pairs of processes.

    python3 capture_overhead.py --purlin build/release/bin/purlin --pairs 7 -o result.json

Each process times its own steady state, after warm-up, so start-up is left out. In each pair the
program runs once alone and once under capture, in coin-flip order; the ratio of a pair is theirs.
"""

import argparse
import json
import math
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time

PROGRAMS = ("tiny launches", "training step", "large gemm")


def child(program):
    import torch

    torch.manual_seed(1)
    if program == "tiny launches":
        x = torch.zeros(256, device="cuda")

        def step():
            for _ in range(1000):
                x.add_(1.0)
    elif program == "training step":
        layers = torch.nn.Sequential(
            *[torch.nn.TransformerEncoderLayer(256, 4, 512, dropout=0.0, batch_first=True) for _ in range(4)]
        ).cuda()
        optimizer = torch.optim.AdamW(layers.parameters(), lr=1e-4, foreach=False)
        data = torch.randn(8, 64, 256, device="cuda")

        def step():
            optimizer.zero_grad(set_to_none=True)
            layers(data).square().mean().backward()
            optimizer.step()
    else:
        a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
        b = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)

        def step():
            for _ in range(10):
                torch.matmul(a, b)

    for _ in range(10):
        step()
    torch.cuda.synchronize()
    times = []
    for _ in range(60):
        begin = time.perf_counter()
        step()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    print(json.dumps({"median_ms": statistics.median(times) * 1e3}))


def run(program, purlin, folder):
    command = [sys.executable, __file__, "--child", program]
    if purlin:
        command = [purlin, "profile", "--quiet", "-o", f"{folder}/run.plprof", "--", *command]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))["median_ms"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--purlin", default="purlin")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("-o", "--output")
    parser.add_argument("--child")
    arguments = parser.parse_args()
    if arguments.child:
        return child(arguments.child)

    import torch

    flips = random.Random(5)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for program in PROGRAMS:
            alone, captured = [], []
            for _ in range(arguments.pairs):
                for under in sorted((False, True), key=lambda _: flips.random()):
                    (captured if under else alone).append(run(program, arguments.purlin if under else None, folder))
            ratios = sorted(math.log(c / a) for a, c in zip(alone, captured))
            rows.append({
                "program": program,
                "alone_ms": statistics.median(alone),
                "captured_ms": statistics.median(captured),
                "ratio": math.exp(statistics.median(ratios)),
                "ratio_range": [math.exp(ratios[0]), math.exp(ratios[-1])],
                "pairs": arguments.pairs,
            })
            row = rows[-1]
            print(f"{program:16s} alone {row['alone_ms']:9.3f} ms  captured {row['captured_ms']:9.3f} ms  "
                  f"ratio {row['ratio']:.3f} [{row['ratio_range'][0]:.3f}, {row['ratio_range'][1]:.3f}]", flush=True)
    document = {
        "schema": "purlin.bench.capture_overhead/1",
        "recorded_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "command": " ".join(sys.argv),
        "environment": {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "cuda": torch.version.cuda,
                        "python": platform.python_version()},
        "rows": rows,
    }
    if arguments.output:
        with open(arguments.output, "w") as out:
            json.dump(document, out, indent=1)


main()
