#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A JAX program with JAX's own profiler, which is a CUPTI client.

  profile_jax.py late     traces twice, after the device was used
  profile_jax.py early    the first trace begins before the device is

Prints "events N N": GPU events in each trace, of a fixed number of launches.
"""
import glob
import gzip
import json
import sys
import tempfile
import time

import jax
import jax.numpy as jnp


def events(folder):
    count = 0
    for path in glob.glob(folder + "/**/*.trace.json.gz", recursive=True):
        trace = json.load(gzip.open(path))["traceEvents"]
        gpus = {e["pid"] for e in trace
                if e.get("ph") == "M" and e.get("name") == "process_name" and "GPU" in str(e.get("args"))}
        count += sum(1 for e in trace if e.get("ph") == "X" and e.get("pid") in gpus)
    return count


def main():
    function = jax.jit(lambda x: jnp.sin(x) @ x)
    counts = []
    early = sys.argv[1] == "early"
    if not early:
        x = jnp.ones((512, 512))
        function(x).block_until_ready()
    for _ in range(2):
        with tempfile.TemporaryDirectory() as folder:
            jax.profiler.start_trace(folder)
            if early and not counts:
                x = jnp.ones((512, 512))
            for _ in range(50):
                y = function(x)
            y.block_until_ready()
            jax.profiler.stop_trace()
            counts.append(events(folder))
        time.sleep(3)  # Purlin takes up again
        for _ in range(50):
            function(x).block_until_ready()
    print("events", *counts)


main()
