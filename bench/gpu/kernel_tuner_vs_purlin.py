#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kernel Tuner and Purlin on the fp32 gemm sample, in turns, for the same seconds:

    pip install kernel-tuner cupy-cuda13x numpy      # once; without Kernel Tuner, the loop below is the rival
    OUT=out python3 bench/gpu/kernel_tuner_vs_purlin.py --purlin build/release/bin/purlin

All get the parameters, constraints, source and default launch of kernels/gemm/gemm.toml at 4096^3, start without
compiled kernels, and verify every config. Kernel Tuner runs through CuPy, with random sampling. Purlin runs with
`random` and with `auto`. A row: configs that worked a minute, the best TFLOP/s, and the share of the time in which
nvidia-smi reports work, every 100 ms. Writes kernel_tuner_vs_purlin.json with the environment to $OUT.

Where Kernel Tuner is not installed, a loop of our own over CuPy takes its place, and is named so: random configs, one
after the other; NVRTC through CuPy, one launch whose result NumPy compares, seven timed launches. That is what Kernel
Tuner 1.4 does with CuPy by default, without its own bookkeeping.
"""
import argparse
import json
import os
import random
import platform
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from gpu_busy import Busy  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
SPEC = ROOT / "kernels" / "gemm" / "gemm.toml"


def device_facts(size):
    return {"M": size, "N": size, "K": size, "device_max_threads": 1024, "device_shared_memory": 232448,
            "device_is_cpu": False, "min": min, "max": max, "ceil_div": lambda a, b: -(-a // b)}


def row(name, size, configs, worked, best_ms, seconds, busy):
    return {"tuner": name, "configs": configs, "worked": worked, "seconds": seconds,
            "worked_per_minute": worked / seconds * 60, "best_ms": best_ms,
            "tflops": 2 * size ** 3 / best_ms / 1e9 if best_ms else None,
            "gpu_busy": busy.mean(0) / 100 if busy.rows else None}


def purlin(options, program, strategy, name=""):
    command = [program, "tune", str(SPEC), "--device", "cuda:0", "--shape",
               ",".join(f"{name}={options.size}" for name in "MNK"), "--strategy", strategy, "--budget",
               f"{options.seconds}s", "--fresh", "--no-store", "--no-transfer", "--json", "-q"]
    with tempfile.TemporaryDirectory() as cache, Busy() as busy:
        start = time.monotonic()
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True,
                              env={**os.environ, "XDG_CACHE_HOME": cache})
        seconds = time.monotonic() - start
    document = json.loads(done.stdout)
    evaluations = document["evaluations"]
    times = [one["time_ms"] for one in evaluations if one["status"] == "ok"]
    made = row(f"purlin {strategy}{name}", options.size, len(evaluations), len(times), min(times), seconds, busy)
    made.update({"search_s": document["elapsed_s"], "verify_s": sum(one["verify_s"] for one in evaluations),
                 "measure_s": sum(one["measure_s"] for one in evaluations),
                 "compile_s": sum(one["compile_s"] for one in evaluations)})
    return made


def kernel_tuner_row(options):
    import kernel_tuner as kt
    import numpy
    spec, size = tomllib.loads(SPEC.read_text()), options.size
    facts = device_facts(size)
    parameters = {name: [int(value) for value in given["values"]] for name, given in spec["parameters"].items()}

    def threads(config):
        return config["BM"] // config["TM"] * (config["BN"] // config["TN"])

    # Kernel Tuner takes the block from a parameter, so that the threads are one more, which the others decide.
    counts = sorted({m // tm * (n // tn) for m in parameters["BM"] for tm in parameters["TM"] if m >= tm
                     for n in parameters["BN"] for tn in parameters["TN"] if n >= tn})
    counts = [count for count in counts if 32 <= count <= facts["device_max_threads"]]

    def fulfils(config):
        scope = {**facts, **{name: config[name] for name in parameters}}
        return config["LAUNCH_THREADS"] == threads(config) and all(eval(text, {"__builtins__": {}}, scope) for text in spec["constraints"])

    contents = numpy.random.default_rng(1)
    a, b = (contents.uniform(-1, 1, (size, size)).astype(numpy.float32) for _ in range(2))
    out, extent = numpy.zeros((size, size), numpy.float32), numpy.int32(size)
    start = time.monotonic()
    with Busy() as busy:
        results, _ = kt.tune_kernel(
            spec["kernel"]["entry"], (SPEC.parent / spec["kernel"]["cuda"]["file"]).read_text(), (size, size),
            [a, b, out, extent, extent, extent], {"LAUNCH_THREADS": counts, **parameters}, lang="cupy",
            restrictions=fulfils, answer=[None, None, a @ b, None, None, None], atol=1e-2,
            grid_div_x=["BN"], grid_div_y=["BM"], block_size_names=["LAUNCH_THREADS", "ONE_Y", "ONE_Z"],
            strategy="random_sample",
            strategy_options={"max_fevals": 100_000, "time_limit": options.seconds}, quiet=True)
    seconds = time.monotonic() - start
    times = [one["time"] for one in results if isinstance(one["time"], float)]
    return row(f"Kernel Tuner {getattr(kt, '__version__', '?')} through CuPy", size, len(results), len(times),
               min(times, default=None), seconds, busy)


def cupy_loop(options):
    import cupy
    import numpy
    spec, size = tomllib.loads(SPEC.read_text()), options.size
    facts = device_facts(size)
    parameters = {name: [int(value) for value in given["values"]] for name, given in spec["parameters"].items()}
    source = (SPEC.parent / spec["kernel"]["cuda"]["file"]).read_text()
    draw = random.Random(1)

    def configs():
        seen = set()
        while True:
            config = {name: draw.choice(values) for name, values in parameters.items()}
            key = tuple(config.values())
            if key not in seen and all(eval(text, {"__builtins__": {}}, {**facts, **config})
                                       for text in spec["constraints"]):
                seen.add(key)
                yield config

    contents = numpy.random.default_rng(1)
    a, b = (contents.uniform(-1, 1, (size, size)).astype(numpy.float32) for _ in range(2))
    answer, extent = a @ b, numpy.int32(size)
    arguments = (cupy.asarray(a), cupy.asarray(b), cupy.zeros((size, size), cupy.float32), extent, extent, extent)
    tried, times, start = 0, [], time.monotonic()
    with Busy() as busy:
        for config in configs():
            if time.monotonic() - start > options.seconds:
                break
            tried += 1
            threads = config["BM"] // config["TM"] * (config["BN"] // config["TN"])
            grid = (-(-size // config["BN"]), -(-size // config["BM"]))
            try:
                macros = tuple(f"-D{name}={value}" for name, value in config.items())
                kernel = cupy.RawModule(code=source, options=macros).get_function(spec["kernel"]["entry"])
                arguments[2].fill(0)
                kernel(grid, (threads,), arguments)
                if not numpy.allclose(arguments[2].get(), answer, atol=1e-2):
                    continue
                samples = []
                for _ in range(7):
                    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
                    begin.record()
                    kernel(grid, (threads,), arguments)
                    end.record()
                    end.synchronize()
                    samples.append(cupy.cuda.get_elapsed_time(begin, end))
            except (cupy.cuda.compiler.CompileException, cupy.cuda.driver.CUDADriverError):
                continue
            times.append(sum(samples) / len(samples))
    seconds = time.monotonic() - start
    return row(f"loop over CuPy {cupy.__version__}", size, tried, len(times), min(times, default=None), seconds, busy)


def rival():
    """Kernel Tuner, or the loop, or nothing."""
    try:
        import cupy  # noqa: F401
    except ImportError as problem:
        print(f"there is no rival: {problem}", file=sys.stderr)
        return None
    try:
        import kernel_tuner  # noqa: F401
        return kernel_tuner_row
    except ImportError as problem:
        print(f"Kernel Tuner is left out: {problem}; a loop over CuPy takes its place", file=sys.stderr)
        return cupy_loop


def environment():
    query = ["nvidia-smi", "--query-gpu=name,driver_version,clocks.max.sm", "--format=csv,noheader"]
    try:
        gpu = subprocess.run(query, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        sys.exit("kernel_tuner_vs_purlin: there is no NVIDIA GPU here (nvidia-smi does not answer)")
    return {"gpu": gpu, "cores": os.cpu_count(), "host": platform.platform(),
            "command": " ".join(sys.argv), "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--purlin", default="build/release/bin/purlin")
    parser.add_argument("--before", help="another Purlin, whose `auto` has a turn as well")
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--seconds", type=int, default=36)
    options = parser.parse_args()
    document = {"schema": "purlin.bench/1", "environment": environment(), "rows": []}
    turns = [lambda: purlin(options, options.purlin, "random"), lambda: purlin(options, options.purlin, "auto")]
    if options.before:
        turns.append(lambda: purlin(options, options.before, "auto", ", before"))
    other = rival()
    if other is not None:
        turns.insert(0, lambda: other(options))
    for turn in turns:
        document["rows"].append(turn())
        print(json.dumps(document["rows"][-1]), flush=True)
    if other is not None and document["rows"][0]["worked"]:
        for one in document["rows"]:
            one["over_rival"] = one["worked_per_minute"] / document["rows"][0]["worked_per_minute"]
    out = Path(os.environ.get("OUT", "."), "kernel_tuner_vs_purlin.json")
    out.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
