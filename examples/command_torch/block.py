# SPDX-License-Identifier: Apache-2.0
"""A transformer's feed-forward block under torch.compile, with the compiler's options as arguments:

    python3 block.py ROWS [--build | --check] [--mode MODE] [--option NAME=0|1]...

Prints the median time of one pass in ms. --build only compiles, into TORCHINDUCTOR_CACHE_DIR. --check: exit status 0
if the outputs agree with eager mode.
"""
import argparse
import os
import sys
import time

import torch
import torch._inductor


class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.up = torch.nn.Linear(width, 4 * width)
        self.gate = torch.nn.Linear(width, 4 * width)
        self.down = torch.nn.Linear(4 * width, width)

    def forward(self, x):
        y = self.norm(x)
        return x + self.down(torch.nn.functional.gelu(self.gate(y), approximate="tanh") * self.up(y))


def timed(run, x, device):
    """Milliseconds of one pass."""
    if device != "cuda":
        start = time.perf_counter()
        run(x)
        return 1e3 * (time.perf_counter() - start)
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    run(x)
    end.record()
    end.synchronize()
    return start.elapsed_time(end)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("rows", type=int)
    parser.add_argument("--build", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--mode", default="default")
    parser.add_argument("--option", action="append", default=[], help="NAME=VALUE of torch._inductor.config")
    given = parser.parse_args()
    torch.manual_seed(1)
    torch.set_float32_matmul_precision("high")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    kind = torch.bfloat16 if device == "cuda" else torch.float32
    block = Block(1024).to(device, kind).eval()
    x = torch.randn(given.rows, 1024, device=device, dtype=kind)
    compiled = given.mode != "eager"
    options = dict(torch._inductor.list_mode_options(given.mode) or {}) if compiled else {}
    for option in given.option:
        name, value = option.split("=")
        options[name] = value == "1"
    with torch.no_grad():
        run = torch.compile(block, options=options) if compiled else block
        for _ in range(3):
            result = run(x)
        if given.build:
            return 0
        if given.check:
            expected = block(x)
            error = (result.float() - expected.float()).abs().max().item()
            return 0 if error <= 0.05 * expected.float().abs().max().item() else 1
        times = [timed(run, x, device) for _ in range(30)]
    print("time: %.5f ms" % sorted(times)[len(times) // 2])
    sys.stdout.flush()
    os._exit(0)  # spares the compiler's worker processes their orderly end


if __name__ == "__main__":
    sys.exit(main())
