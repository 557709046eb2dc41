# SPDX-License-Identifier: Apache-2.0
"""A PyTorch job with a known number of launches: product_loop.py N [SIZE], N matrix products and N additions after twenty.
Prints its time by its own clock. SECONDS instead of N, with an s, goes on for so long."""
import json
import sys
import time

import torch

much, size = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 6144
a, b = (torch.randn(size, size, device="cuda", dtype=torch.bfloat16) for _ in range(2))
c = torch.zeros_like(a)


def some(n):
    for _ in range(n):
        c.add_(a @ b)
    torch.cuda.synchronize()
    return n


launches, begin = some(20), time.perf_counter()
if much.endswith("s"):
    while time.perf_counter() - begin < float(much[:-1]):
        launches += some(20)
else:
    launches += some(int(much))
print(json.dumps({"seconds": time.perf_counter() - begin, "launches": launches}), flush=True)
