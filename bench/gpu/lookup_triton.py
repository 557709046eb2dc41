#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a launch costs the host, per launch, by the way it is made:

    python3 bench/gpu/lookup_triton.py [--launches 2000] [--rounds 15] [-o FILE.json]

compiled         the compiled kernel launched by hand, nothing looked up
jit              @triton.jit alone, the config given
jit.same         the same with what an autotuner passes: the grid as a function, all of the config's options
triton.autotune  Triton's autotuner, the key known
purlin.autotune  ours, the key known, called as jit.same
purlin.tuple     the same with a tuple as grid, as jit has
purlin.by_run    the same as purlin.autotune, but JITFunction.run makes the launch, as with a Triton that is not known
purlin.find      a lookup from Python alone (no launch): purlin.Op.find
library          the same lookup inside libpurlin, called through ctypes: what find() costs without its own memo

The kernel adds 1,024 numbers, so that the device is never what is waited for. Ways take turns, round by round in a
shuffled order, each round's launches back to back; the device is idle at the start of each. Wants PURLIN_LIBRARY (or
an installed Purlin) and the package on PYTHONPATH. Prints a table and, as one line, JSON.
"""
import argparse
import ctypes
import json
import os
import platform
import random
import statistics
import tempfile
import time

os.environ.setdefault("PURLIN_CACHE", tempfile.mkdtemp(prefix="purlin-bench-"))

import torch  # noqa: E402
import triton  # noqa: E402
import triton.language as tl  # noqa: E402

import purlin  # noqa: E402
from purlin import _launch  # noqa: E402

CONFIGS = [triton.Config({"BLOCK": block}, num_warps=warps) for block, warps in ((256, 2), (512, 4), (1024, 4))]
KEY = ["n"]


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)


by_triton = triton.autotune(CONFIGS, KEY)(add)
by_purlin = purlin.autotune(CONFIGS, KEY)(add)
by_run = purlin.autotune(CONFIGS, KEY)(add)


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--launches", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("-o", "--output")
    options = parser.parse_args()

    n = 1024
    x, y = torch.rand(n, device="cuda"), torch.rand(n, device="cuda")
    out = torch.empty(n, device="cuda")
    grid = lambda meta: (triton.cdiv(n, meta["BLOCK"]),)  # noqa: E731
    compiled = add[(1,)](x, y, out, n, BLOCK=1024, num_warps=4)
    by_triton[grid](x, y, out, n)
    known_triton = _launch.known_triton
    for kernel, known in ((by_purlin, known_triton), (by_run, lambda: None)):
        _launch.known_triton = known
        for _ in range(3):
            kernel[grid](x, y, out, n)
    _launch.known_triton = known_triton
    torch.cuda.synchronize()

    cache = purlin.Cache()
    device = dict(cache.device("cuda:%d" % torch.cuda.current_device()))
    cache.put({"op": "bench", "kernel": "bench", "backend": "cuda", "arch": device["arch"]}, {"BLOCK": 1024},
              {"n": n}, 0.01)
    op = cache.op("bench", KEY, {"backend": "cuda", "arch": device["arch"]})
    assert op.find(n).outcome == "exact", op.find(n)
    from purlin._library import library
    lookup, handle, extents = library().purlin_lookup, op._handle, (ctypes.c_int64 * 1)(n)
    entry = ctypes.c_void_p()
    place = ctypes.byref(entry)

    # The launcher of a compiled kernel takes constants too, or not, from version to version.
    full, short = (x, y, out, n, 1024), (x, y, out, n)
    bare = compiled[(1, 1, 1)]
    options_of_winner = by_purlin.best_config.all_kwargs()
    blocks = (triton.cdiv(n, by_purlin.best_config.kwargs["BLOCK"]),)
    ways = {
        "jit": lambda: add[(1,)](x, y, out, n, BLOCK=1024, num_warps=4),
        "jit.same": lambda: add[grid](x, y, out, n, **options_of_winner),
        "triton.autotune": lambda: by_triton[grid](x, y, out, n),
        "purlin.autotune": lambda: by_purlin[grid](x, y, out, n),
        "purlin.tuple": lambda: by_purlin[blocks](x, y, out, n),
        "purlin.by_run": lambda: by_run[grid](x, y, out, n),
        "purlin.find": lambda: op.find(n),
        "library": lambda: lookup(handle, extents, 1, place),
    }
    for arguments in (full, short):
        out.zero_()
        try:
            bare(*arguments)
            torch.cuda.synchronize()
        except TypeError:
            continue
        if torch.equal(out, x + y):
            ways["compiled"] = lambda arguments=arguments: bare(*arguments)
            break
    for name in ("jit", "triton.autotune", "purlin.autotune", "purlin.tuple", "purlin.by_run"):
        out.zero_()
        ways[name]()
        torch.cuda.synchronize()
        assert torch.equal(out, x + y), name

    rounds = {name: [] for name in ways}
    order = list(ways)
    generator = random.Random(1)
    for turn in range(options.rounds + 1):
        generator.shuffle(order)
        for name in order:
            call = ways[name]
            torch.cuda.synchronize()
            begin = time.perf_counter_ns()
            for _ in range(options.launches):
                call()
            spent = time.perf_counter_ns() - begin
            torch.cuda.synchronize()
            if turn > 0:  # the first round warms up
                rounds[name].append(spent / options.launches / 1000)

    baseline = statistics.median(rounds.get("compiled") or rounds["jit"])
    rows = {name: {"median_us": statistics.median(times), "min_us": min(times), "p90_us": percentile(times, 0.9)}
            for name, times in rounds.items()}
    print("%-16s %10s %8s %8s   %s" % ("way", "median us", "min", "p90", "over the compiled launch"))
    for name, row in sorted(rows.items(), key=lambda item: item[1]["median_us"]):
        over = "" if name in ("library", "purlin.find") else "%+.2f us" % (row["median_us"] - baseline)
        print("%-16s %10.2f %8.2f %8.2f   %s" % (name, row["median_us"], row["min_us"], row["p90_us"], over))
    document = {"bench": "lookup_triton", "launches": options.launches, "rounds": options.rounds, "ways": rows,
                "triton_is_known": known_triton() is not None,
                "environment": {"device": torch.cuda.get_device_name(), "driver": device.get("driver"),
                                "torch": torch.__version__, "triton": triton.__version__,
                                "python": platform.python_version(), "cpus": os.cpu_count(),
                                "load": os.getloadavg()[0]}}
    line = json.dumps(document)
    print(line)
    if options.output:
        with open(options.output, "w") as file:
            file.write(line + "\n")


main()
