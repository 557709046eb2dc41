#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Searches of recorded spaces of Triton kernels, without a GPU:

    PYTHONPATH=python PURLIN_LIBRARY=… python3 bench/triton_spaces_replay.py bench/results/triton_spaces_h100.jsonl

The records are those of bench/gpu/triton_spaces.py. Each strategy searches each space with many seeds through
libpurlin's tuner, as @purlin.autotune does: one report of a config's recorded time, until the budget is used up.
Where the record has the compiler's facts, configs that spill heavily are out, as there. `found` is the time of the
fastest config over the time of the search's. `tried` is how many configs were asked for, those that were out included.
"""
import argparse
import itertools
import json
import statistics
import sys

from purlin._tuner import NO_LAUNCH, UNFIT, Tuner

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


def search(row, table, heavy, strategy, seed, budget, lookahead):
    """The time of the config found, and how many were asked for."""
    tuner = Tuner("kernel", "triton", row["parameters"], row["default"], row["constraints"], budget=str(budget),
                  seed=seed, strategy=strategy, lookahead=lookahead)
    tuner.start()
    while True:
        config = tuner.next()
        if tuner.over:
            return table[repr(tuner.best)], tuner.evaluations
        time_ms = table[repr(config)]
        if repr(config) in heavy:
            tuner.reject(UNFIT, "it spills")
        elif time_ms is None:
            tuner.reject(NO_LAUNCH, "out of resources")
        else:
            tuner.report(time_ms)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("records", nargs="+")
    parser.add_argument("--strategies", default="auto,random")
    parser.add_argument("--seeds", type=int, default=25)
    parser.add_argument("--budget", type=int, default=60)
    parser.add_argument("--lookahead", type=int, default=16)
    parser.add_argument("--first-seed", type=int, default=1)
    options = parser.parse_args()
    print("%-10s %7s %-10s %6s %7s %6s %6s   found 0.97" % (
        "kernel", "configs", "strategy", "mean", "median", "least", "tried"))
    for path in options.records:
        with open(path) as file:
            rows = [json.loads(line) for line in file]
        for row, strategy in itertools.product(rows, options.strategies.split(",")):
            table, heavy = table_of(row), heavy_of(row)
            best = min(time_ms for time_ms in table.values() if time_ms is not None)
            runs = [search(row, table, heavy, strategy, seed, options.budget, options.lookahead)
                    for seed in range(options.first_seed, options.first_seed + options.seeds)]
            found = [best / time_ms for time_ms, _ in runs]
            print("%-10s %7d %-10s %6.3f %7.3f %6.3f %6.1f   %d of %d" % (
                row["kernel"], len(table), strategy, statistics.mean(found), statistics.median(found), min(found),
                statistics.mean(tried for _, tried in runs), sum(one >= 0.97 for one in found), len(found)),
                flush=True)


if __name__ == "__main__":
    sys.exit(main())
