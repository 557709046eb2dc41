#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""@purlin.autotune(space=...) against the whole of four spaces of Triton kernels, on one GPU.

    python3 bench/gpu/triton_spaces.py [--kernels matmul,attention] [--budget 60] [--seconds 400] -o FILE.json

For each kernel, in one process and in this order, every way with an empty cache of compiled kernels:

purlin      the search, `--budget` evaluations, and again with other seeds (compiled kernels are then known)
list        @triton.autotune over a list as tutorials have it
exhaustive  every config of the space: compiled by as many processes as there are cores, then timed in turn.
            `facts` has what the compiler says of each: [registers, spills, shared bytes], null where it is not known
finals      the choice of either way and the ten fastest of the whole space, timed in turns, 30 samples each

The figure is `found`: the fastest config's time of the finals over the search's. Times are warm compilers' and the
device's own (L2 cleared, as do_bench). Needs PyTorch, Triton and PURLIN_LIBRARY; writes one JSON line per kernel.
With --record FILE the whole space is not measured: the finals have the ten fastest of that record of this program. With
--no-exhaustive they have none, and `found` is against the fastest of the searches, the list and the default.
"""
import argparse
import itertools
import json
import multiprocessing
import os
import statistics
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)


def configs_of(case):
    """All configs of the space, as Purlin counts them."""
    names = list(case.SPACE)
    for values in itertools.product(*case.SPACE.values()):
        config = dict(zip(names, values))
        if all(eval(text, {}, config) for text in case.CONSTRAINTS):
            yield config


def compile_share(work):
    """In a process of its own: compiles configs into Triton's disk cache. Returns each one's seconds; None: failed."""
    name, share, folder = work
    os.environ["TRITON_CACHE_DIR"] = folder
    import triton_space_kernels as kernels
    from purlin.triton_space import Space

    case = kernels.CASES[name]()
    space, seconds = Space(case.SPACE), []
    for config in share:
        begin = time.time()
        try:
            case.kernel.warmup(*case.arguments, grid=(1,), **space.config(config).all_kwargs())
            seconds.append(round(time.time() - begin, 2))
        except Exception:
            seconds.append(None)
    return seconds


def facts_of(case, values):
    """[registers, spills, shared bytes] of a config, without a launch; None where it does not compile."""
    try:
        compiled = case.kernel.warmup(*case.arguments, grid=(1,), **values)
        if hasattr(compiled, "result"):
            compiled = compiled.result()
    except Exception:
        return None
    try:
        compiled._init_handles()  # loads the binary: registers and spills are known
    except Exception:
        pass  # it needs more than there is: then shared memory alone is known
    shared = getattr(getattr(compiled, "metadata", None), "shared", None)
    return [getattr(compiled, "n_regs", None), getattr(compiled, "n_spills", None), shared]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kernels", default="matmul,attention,layernorm,grouped")
    parser.add_argument("--budget", type=int, default=60)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=400)
    parser.add_argument("--no-exhaustive", action="store_true")
    parser.add_argument("--record")
    parser.add_argument("-o", "--output", required=True)
    options = parser.parse_args()
    start = time.time()
    for name in options.kernels.split(","):
        if time.time() - start > options.seconds:
            print("out of time before", name)
            break
        seeds = range(options.first_seed, options.first_seed + options.seeds)
        until = start + options.seconds
        row = measure(name, options.budget, seeds, until, not options.no_exhaustive, options.record)
        with open(options.output, "a") as file:
            file.write(json.dumps(row, separators=(",", ":")) + "\n")
        print(json.dumps({k: v for k, v in row.items() if k not in OF_EACH + ("parameters",)}), flush=True)


OF_EACH = ("times_ms", "facts", "compile_s")  # lists in the order of configs_of


def recorded_times(path, name, case):
    """(time, index) of the configs that worked in a record of this kernel and space, fastest first."""
    with open(path) as file:
        rows = [row for row in map(json.loads, file) if row["kernel"] == name and "times_ms" in row]
    rows = [row for row in rows if row["parameters"] == case.SPACE and row["constraints"] == case.CONSTRAINTS]
    assert rows, "%s has no record of this space of %s" % (path, name)
    return sorted((time_ms, index) for index, time_ms in enumerate(rows[-1]["times_ms"]) if time_ms is not None)


def measure(name, budget, seeds, until, exhaustive, record):
    """One kernel's row. No further seed is begun after `until` (time.time()); the first always is."""
    folder = tempfile.mkdtemp(prefix="triton-")
    os.environ["TRITON_CACHE_DIR"] = os.path.join(folder, "searched")
    import torch
    import triton

    import purlin
    import triton_space_kernels as kernels
    from purlin.triton_autotune import timed_out_of_cache

    case = kernels.CASES[name]()
    case.check_default()
    everything = list(configs_of(case))
    row = {"kernel": name, "shape": case.SHAPE, "parameters": case.SPACE, "constraints": case.CONSTRAINTS,
           "default": case.DEFAULT, "space": len(everything), "budget": budget,
           "gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "triton": triton.__version__}

    row["searches"], found = [], []
    for seed in seeds:
        if found and time.time() > until:
            print("out of time before seed %d of %s" % (seed, name), flush=True)
            seeds = range(seeds[0], seed)
            break
        tuned = purlin.autotune(
            key=case.KEY, space=case.SPACE, constraints=case.CONSTRAINTS, default=case.DEFAULT, budget=budget,
            seed=seed, cache=os.path.join(folder, "cache-%d" % seed))(case.kernel)
        begin = time.time()
        tuned[case.grid](*case.arguments)
        torch.cuda.synchronize()
        row["searches"].append(dict(tuned.purlin_search, seconds=round(time.time() - begin, 2)))
        print(json.dumps({"kernel": name, "seed": seed, **row["searches"][-1]}), flush=True)
        found.append({n: tuned.best_config.all_kwargs()[n] for n in case.SPACE})

    os.environ["TRITON_CACHE_DIR"] = os.path.join(folder, "listed")
    fresh = kernels.CASES[name]()
    case.kernel.device_caches.clear()
    listed = triton.autotune([tuned._purlin.space.config(one) for one in case.LIST], case.KEY)(fresh.kernel)
    begin = time.time()
    listed[case.grid](*case.arguments)
    torch.cuda.synchronize()
    row["list_s"], row["listed"] = round(time.time() - begin, 2), len(case.LIST)
    by_list = {n: listed.best_config.all_kwargs()[n] for n in case.SPACE}

    def launch(config):
        case.kernel[case.grid](*case.arguments, **tuned._purlin.space.config(config).all_kwargs())

    times = []
    if record:
        times = recorded_times(record, name, case)
    elif exhaustive:
        times = measure_whole(row, name, case, tuned._purlin.space, launch, os.path.join(folder, "whole"))

    finalists = {"list": by_list, "default": dict(case.DEFAULT)}
    finalists.update(("seed %d" % seed, values) for seed, values in zip(seeds, found))
    finalists.update(("best %d" % place, everything[index]) for place, (_, index) in enumerate(times[:10]))
    samples = {label: [] for label in finalists}
    for _ in range(6):
        for label, config in finalists.items():
            samples[label] += timed_out_of_cache(lambda: launch(config), 5)
    medians = {label: statistics.median(one) for label, one in samples.items()}
    best = min(medians.values())
    of_seeds = [medians["seed %d" % seed] for seed in seeds]
    row.update(best_ms=best, purlin_ms=of_seeds, list_ms=medians["list"], default_ms=medians["default"], first_seed=seeds[0],
               found=[round(best / one, 4) for one in of_seeds], found_by_list=round(best / medians["list"], 4),
               configs=found, best_config=finalists[min(medians, key=medians.get)])
    return row


def measure_whole(row, name, case, space, launch, folder):
    """Fills in the row. Returns (time, index) of the configs that worked, fastest first."""
    from purlin.triton_autotune import timed_out_of_cache

    os.environ["TRITON_CACHE_DIR"] = folder
    everything = list(configs_of(case))
    case.kernel.device_caches.clear()
    begin, workers = time.time(), min(os.cpu_count() or 1, 16)
    row["compile_s"] = [None] * len(everything)
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        shares = pool.map(compile_share, [(name, everything[i::workers], folder) for i in range(workers)])
    for i, share in enumerate(shares):
        row["compile_s"][i::workers] = share
    row["compile_all_s"] = round(time.time() - begin, 2)
    row["compile_failed"] = sum(one is None for one in row["compile_s"])

    times = []
    for index, config in enumerate(everything):
        try:
            launch(config)
            times.append((statistics.median(timed_out_of_cache(lambda: launch(config), 5)), index))
        except Exception as problem:
            if "illegal" in str(problem):
                raise
    row["exhaustive_s"] = round(time.time() - begin, 2)
    row["worked"] = len(times)
    by_index = {index: round(time_ms, 6) for time_ms, index in times}
    row["times_ms"] = [by_index.get(index) for index in range(len(everything))]
    begin = time.time()
    row["facts"] = [facts_of(case, space.config(config).all_kwargs()) if compiled is not None else None
                    for config, compiled in zip(everything, row["compile_s"])]
    row["facts_s"] = round(time.time() - begin, 2)
    return sorted(times)


if __name__ == "__main__":
    main()
