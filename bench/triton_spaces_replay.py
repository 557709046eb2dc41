#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Searches of recorded spaces of Triton kernels, without a GPU:

    PYTHONPATH=python PURLIN_LIBRARY=… python3 bench/triton_spaces_replay.py bench/results/triton_spaces_h100.jsonl

The records are those of bench/gpu/triton_spaces.py. Each strategy searches each space with many seeds through
libpurlin's tuner, as @purlin.autotune does: one report of a config's recorded time, until the budget is used up.
Where the record has the compiler's facts, configs that spill heavily are out, as there. `found` is the time of the
fastest config over the time of the search's. `tried` is how many configs were asked for, those that were out included,
and `built` how many were compiled. `s` is the time of a search whose compilations take `--compile` seconds each.

With --live, times are reported as on a GPU: five samples at once, the first of them slower, and all with the noise that
the log of 16 searches of matmul on an H200 shows (triton_spaces_h100.md).
"""
import argparse
import heapq
import itertools
import json
import multiprocessing
import random
import statistics
import sys

from purlin._tuner import NO_LAUNCH, UNFIT, Tuner

# Of one sample and of a config's every sample (standard deviations), and by how much the first is slower.
NOISE, VISIT, FIRST = 0.003, 0.003, 0.008
DISTURBED, BY = 0.02, 0.03  # the share of samples that are disturbed, and by how much in the mean
SAMPLES = 5
MEASURE_S = 0.05  # verification and a set of samples
HEAVY_SPILLS = 64  # of purlin/triton_space.py, which needs PyTorch


def configs_of(row):
    names = list(row["parameters"])
    configs = [dict(zip(names, values)) for values in itertools.product(*row["parameters"].values())]
    valid = [one for one in configs if all(eval(text, {}, one) for text in row["constraints"])]
    assert len(valid) == len(row["times_ms"]), row["kernel"]
    return valid


def table_of(row):
    """A config's text -> its time; None if it did not run."""
    return {repr(one): time_ms for one, time_ms in zip(configs_of(row), row["times_ms"])}


def heavy_of(row):
    """The texts of configs that spill heavily."""
    spills = {repr(one): facts[1] for one, facts in zip(configs_of(row), row.get("facts", ())) if facts and facts[1]}
    usual = spills.get(repr(row["default"]), 0)
    return {text for text, count in spills.items() if count > usual + HEAVY_SPILLS}


def reported(time_ms, live, draw):
    """The samples of one set."""
    if not live:
        return [time_ms] * SAMPLES
    visit, found = draw.gauss(1, VISIT), []
    for place in range(SAMPLES):
        factor = visit + draw.gauss(0, NOISE) + (FIRST if place == 0 else 0)
        found.append(time_ms * (factor + (draw.expovariate(1 / BY) if draw.random() < DISTURBED else 0)))
    middle = statistics.median(found)  # as purlin/triton_space.py
    return sorted(found, key=lambda time_ms: abs(time_ms - middle))


class Compilers:
    """When each config is compiled, where one takes `--compile` seconds and as many compile at once as `--lookahead` says.
    A measurement takes MEASURE_S. As purlin/triton_space.py does, a config that is needed and still waits is compiled at once.
    """

    def __init__(self, options):
        self.compile_s, self.free_s, self.done_s, self.now_s = options.compile, [0.0] * max(1, options.lookahead), {}, 0.0

    def foresee(self, text):
        if text not in self.done_s:
            begin = max(self.now_s, heapq.heappop(self.free_s))
            self.done_s[text] = begin + self.compile_s
            heapq.heappush(self.free_s, self.done_s[text])

    def need(self, text):
        at_once = self.now_s + self.compile_s
        self.done_s[text] = min(self.done_s.get(text, at_once), at_once)
        wait_s = max(0.0, self.done_s[text] - self.now_s)
        self.now_s += wait_s + MEASURE_S
        return wait_s


def search(work):
    """The time of the config found, how many were asked for, how many compiled, and the seconds that it took."""
    row, table, heavy, strategy, seed, options = work
    tuner = Tuner("kernel", "triton", row["parameters"], row["default"], row["constraints"],
                  budget=str(options.budget), seed=seed, strategy=strategy, lookahead=options.lookahead)
    tuner.start()
    draw, built, config = random.Random(seed), Compilers(options), tuner.next()
    while not tuner.over:
        text = repr(config)
        for one in tuner.announced():
            built.foresee(repr(one))
        tuner.waited(built.need(text))
        if text in heavy or table[text] is None:
            tuner.reject(*(UNFIT, "it spills") if text in heavy else (NO_LAUNCH, "out of resources"))
            config = tuner.next()
            continue
        for time_ms in reported(table[text], options.live, draw):
            tuner.report(time_ms)
            config = tuner.next()
            if tuner.over or repr(config) != text:
                break
    return table[repr(tuner.best)], tuner.evaluations, len(built.done_s), built.now_s


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("records", nargs="+")
    parser.add_argument("--strategies", default="auto,random")
    parser.add_argument("--seeds", type=int, default=25)
    parser.add_argument("--budget", type=int, default=60)
    parser.add_argument("--lookahead", type=int, default=16)
    parser.add_argument("--compile", type=float, default=0, help="seconds that the compilation of a config takes")
    parser.add_argument("--live", action="store_true")
    parser.add_argument("--only", default="", help="kernels, with commas")
    parser.add_argument("--first-seed", type=int, default=1)
    options = parser.parse_args()
    print("%-10s %7s %-10s %6s %7s %6s %6s %6s %6s   found 0.97" % (
        "kernel", "configs", "strategy", "mean", "median", "least", "tried", "built", "s"))
    for path in options.records:
        with open(path) as file:
            rows = [json.loads(line) for line in file]
        only = options.only.split(",") if options.only else [row["kernel"] for row in rows]
        rows = [row for row in rows if "times_ms" in row and row["kernel"] in only]
        for row, strategy in itertools.product(rows, options.strategies.split(",")):
            table, heavy = table_of(row), heavy_of(row)
            best = min(time_ms for time_ms in table.values() if time_ms is not None)
            with multiprocessing.Pool() as pool:
                runs = pool.map(search, [(row, table, heavy, strategy, seed, options) for seed in range(
                    options.first_seed, options.first_seed + options.seeds)])
            found = [best / time_ms for time_ms, *_ in runs]
            print("%-10s %7d %-10s %6.3f %7.3f %6.3f %6.1f %6.1f %6.1f   %d of %d" % (
                row["kernel"], len(table), strategy, statistics.mean(found), statistics.median(found), min(found),
                statistics.mean(tried for _, tried, *_ in runs), statistics.mean(built for *_, built, _ in runs),
                statistics.median(seconds for *_, seconds in runs),
                sum(one >= 0.97 for one in found), len(found)),
                flush=True)


if __name__ == "__main__":
    sys.exit(main())
