#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Searches of recorded spaces of Triton kernels, without a GPU:

    PYTHONPATH=python PURLIN_LIBRARY=… python3 bench/triton_spaces_replay.py bench/results/triton_spaces_h100.jsonl

The records are those of bench/gpu/triton_spaces.py. Each strategy searches each space with many seeds through
libpurlin's tuner, as @purlin.autotune does: one report of a config's recorded time, until the budget is used up.
`found` is the time of the fastest config over the time of the search's.
"""
import argparse
import itertools
import json
import statistics
import sys

from purlin._tuner import NO_LAUNCH, Tuner


def table_of(row):
    """A config's text -> its time; None if it did not run."""
    names = list(row["parameters"])
    configs = [dict(zip(names, values)) for values in itertools.product(*row["parameters"].values())]
    valid = [one for one in configs if all(eval(text, {}, one) for text in row["constraints"])]
    assert len(valid) == len(row["times_ms"]), row["kernel"]
    return {repr(one): time_ms for one, time_ms in zip(valid, row["times_ms"])}


def search(row, table, strategy, seed, budget, lookahead):
    tuner = Tuner("kernel", "triton", row["parameters"], row["default"], row["constraints"], budget=str(budget),
                  seed=seed, strategy=strategy, lookahead=lookahead)
    tuner.start()
    while True:
        config = tuner.next()
        if tuner.over:
            return table[repr(tuner.best)]
        time_ms = table[repr(config)]
        if time_ms is None:
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
    options = parser.parse_args()
    print("%-10s %7s %-10s %6s %7s %6s   found 0.97" % ("kernel", "configs", "strategy", "mean", "median", "least"))
    for path in options.records:
        with open(path) as file:
            rows = [json.loads(line) for line in file]
        for row, strategy in itertools.product(rows, options.strategies.split(",")):
            table = table_of(row)
            best = min(time_ms for time_ms in table.values() if time_ms is not None)
            found = [best / search(row, table, strategy, seed, options.budget, options.lookahead)
                     for seed in range(1, options.seeds + 1)]
            print("%-10s %7d %-10s %6.3f %7.3f %6.3f   %d of %d" % (
                row["kernel"], len(table), strategy, statistics.mean(found), statistics.median(found), min(found),
                sum(one >= 0.97 for one in found), len(found)), flush=True)


if __name__ == "__main__":
    sys.exit(main())
