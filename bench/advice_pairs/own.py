# SPDX-License-Identifier: Apache-2.0
"""Runs one pair's program as found under `purlin profile`: `purlin profile -o NAME.plprof -- python3 own.py --fifth NAME LOCK`.

It runs until Purlin's hook has written its trace, and one second more, so that the hook can time steps without a recorder.
LOCK is a file: of several processes, one at a time uses the GPU. Where the hook dropped its trace (a program without products),
own.py asks for another, as `purlin capture window --torch` does.
"""

import fcntl
import glob
import os
import sys
import time

import torch

from run import PAIRS

MOST_S, ASK_AFTER_S, ON_S = 7, 1.2, 1


def main():
    name, lock = sys.argv[1:3]
    spool = os.environ.get("PURLIN_SPOOL", "")
    with open(lock, "w", encoding="utf-8") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        torch.manual_seed(0)
        step, _ = PAIRS[name]["make"]()
        begin, seen, asked, count = time.monotonic(), None, False, 0
        while True:
            step()
            count += 1
            now = time.monotonic()
            if seen is None and count % 8 == 0 and glob.glob(os.path.join(spool, "torch-*.json*")):
                seen = now
            if not asked and seen is None and now - begin > ASK_AFTER_S:
                asked = True
                with open(os.path.join(spool, f"torch-request-{os.getpid()}"), "w", encoding="utf-8"):
                    pass
            if now - begin > MOST_S or (seen is not None and now - seen > ON_S):
                break
        torch.cuda.synchronize()
        print(f"{name}: {count} steps in {time.monotonic() - begin:.2f} s, trace {'seen' if seen else 'not seen'}", flush=True)


main()
