# SPDX-License-Identifier: Apache-2.0
"""A Triton matmul autotuned in this process: how long the first call takes, what was chosen, whether the
result is right, and what a launch costs afterwards. One JSON line.

    matmul.py triton|triton-cached|purlin|purlin-in-order SIZE
"""
import json
import sys
import time

import torch
import triton
import triton.language as tl

import purlin

mode, size = sys.argv[1], int(sys.argv[2])
configs = [triton.Config({"BM": bm, "BN": bn, "BK": bk}, num_warps=w, num_stages=s)
           for bm, bn, bk, w, s in ((64, 64, 32, 4, 3), (64, 128, 32, 4, 3), (128, 64, 32, 4, 3),
                                    (128, 128, 32, 4, 3), (128, 128, 64, 8, 3), (128, 256, 64, 8, 3),
                                    (256, 128, 64, 8, 3), (128, 128, 64, 4, 4), (64, 256, 32, 4, 4),
                                    (256, 64, 32, 4, 4), (128, 64, 64, 4, 4), (64, 32, 32, 2, 5))]
key = ["M", "N", "K"]
if mode.startswith("purlin"):
    tune = purlin.autotune(configs, key, jobs=1 if mode.endswith("order") else None)
else:
    tune = triton.autotune(configs, key, cache_results=mode == "triton-cached")


@tune
@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    column = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    sums = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        left = tl.load(a + row[:, None] * K + (start + k)[None, :], mask=(start + k)[None, :] < K, other=0.0)
        right = tl.load(b + (start + k)[:, None] * N + column[None, :], mask=(start + k)[:, None] < K, other=0.0)
        sums = tl.dot(left, right, sums)
    tl.store(c + row[:, None] * N + column[None, :], sums.to(tl.float16))


torch.manual_seed(1)
a = torch.randn((size, size), device="cuda", dtype=torch.float16)
b = torch.randn((size, size), device="cuda", dtype=torch.float16)
c = torch.empty((size, size), device="cuda", dtype=torch.float16)
grid = lambda meta: (triton.cdiv(size, meta["BM"]), triton.cdiv(size, meta["BN"]))  # noqa: E731
torch.cuda.synchronize()
start = time.perf_counter()
matmul[grid](a, b, c, size, size, size)
torch.cuda.synchronize()
first_s = time.perf_counter() - start
expected = a @ b
right = bool(torch.allclose(c, expected, rtol=2e-2, atol=2e-1))

# What a launch costs the host: a tiny problem, so that the device never is what is waited for.
tiny = [t[:64, :64].contiguous() for t in (a, b, c)]
matmul[grid](*tiny, 64, 64, 64)
torch.cuda.synchronize()
runs, best = 2000, float("inf")
for _ in range(5):
    start = time.perf_counter()
    for _ in range(runs):
        matmul[grid](*tiny, 64, 64, 64)
    best = min(best, (time.perf_counter() - start) / runs)
    torch.cuda.synchronize()
kernel = matmul.fn
options = matmul.best_config.all_kwargs()
bare = float("inf")
for _ in range(5):
    start = time.perf_counter()
    for _ in range(runs):
        kernel[grid](*tiny, 64, 64, 64, **options)
    bare = min(bare, (time.perf_counter() - start) / runs)
    torch.cuda.synchronize()
print(json.dumps({"mode": mode, "size": size, "first_s": first_s, "right": right, "config": str(matmul.best_config),
                  "launch_us": best * 1e6, "bare_launch_us": bare * 1e6,
                  "checksum": float(c.float().abs().sum()), "log": getattr(matmul, "purlin_log", [])}))
