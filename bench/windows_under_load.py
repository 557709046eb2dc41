#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How well totals of sampled captures hold on an overloaded machine, over the fake CUPTI.

windows_under_load.py BUILD [--at-once N] [--seconds S] [--program NAME …]

BUILD is a build directory with tests. Runs each program N at a time for S seconds under
`purlin profile --window 10ms@20ms`, and compares the launches of its profile with those that the
program counted. Launches that the profile notes as in no row count as launches. Prints one row a
program: runs, the median and the largest error, the median of `total_error`, and how many runs have
an error above it by more than 1 % of the truth.
"""
import argparse
import concurrent.futures
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

WINDOWS = ["--window", "10ms@20ms", "--seal-period", "100ms"]
PROGRAMS = {
    # Options of purlin profile; threads, seconds, nodes of a graph and captured launches; environment.
    "graphs": (WINDOWS, ["1", "3", "20"], {}),
    "three threads": (WINDOWS, ["3", "3", "0"], {}),
    "graphs, captured between": (WINDOWS, ["1", "3", "20", "15"], {}),
    "graphs, with --ops on": (WINDOWS + ["--ops", "on"], ["1", "3", "20"], {}),
    "graphs, a slow flush": (WINDOWS, ["1", "3", "20"], {"FAKE_CUPTI_SLOW": "cuptiActivityFlushAll:5000"}),
}


def run(build, folder, name, number):
    """Error of the total, and the stated one, as parts of the truth."""
    options, arguments, environment = PROGRAMS[name]
    profile = os.path.join(folder, "%s-%d.plprof" % (name.replace(" ", "_"), number))
    purlin = os.path.join(build, "bin", "purlin")
    client = os.path.join(build, "tests", "busy_client")
    environment = dict(
        os.environ,
        PURLIN_CUPTI=os.path.join(build, "tests/fake_cupti/libcupti.so.13"),
        FAKE_CUDA=os.path.join(build, "tests/fake_cuda/libcuda.so.1"),
        FAKE_CUPTI_CLOCKED="200",
        **environment,
    )
    command = [purlin, "profile", *options, "-o", profile, "--", client, *arguments]
    output = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=True, timeout=120).stdout
    made = int(re.search(rb"made (\d+)", output)[1])
    report = json.loads(subprocess.run([purlin, "report", profile, "--json"], stdout=subprocess.PIPE, check=True, timeout=120).stdout)
    os.unlink(profile)
    coverage = report["coverage"]
    left_out = sum(note["count"] for note in coverage["notes"] if note["cause"] == "ended_before_window")
    launches = report["launches"] + left_out * max(1, int(arguments[2]))
    return launches / made - 1, coverage["sampling"]["total_error"] or 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--at-once", type=int, default=4 * os.cpu_count())
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--program", action="append", choices=PROGRAMS)
    asked = parser.parse_args()
    build = os.path.abspath(asked.build)
    for needed in ("bin/purlin", "tests/busy_client"):
        if not os.path.exists(os.path.join(build, needed)):
            parser.error("no %s in %s: build a preset with tests and CUDA's headers, such as ./dev build ci" % (needed, build))
    print("%d at once on %d cores" % (asked.at_once, os.cpu_count()))
    print("\n| program | runs | median error, % | largest | median stated | outside |\n|---|--:|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as folder:
        for name in asked.program or PROGRAMS:
            end = time.time() + asked.seconds

            def several(first):
                results = []
                while not results or time.time() < end:
                    results.append(run(build, folder, name, first + 1000 * len(results)))
                return results

            with concurrent.futures.ThreadPoolExecutor(asked.at_once) as pool:
                results = [one for each in pool.map(several, range(asked.at_once)) for one in each]
            errors = [abs(error) for error, _ in results]
            outside = sum(abs(error) > stated + 0.01 for error, stated in results)
            row = (name, len(results), 100 * statistics.median(errors), 100 * max(errors),
                   100 * statistics.median(stated for _, stated in results), outside)  # fmt: skip
            print("| %s | %d | %.2f | %.1f | %.1f | %d |" % row, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
