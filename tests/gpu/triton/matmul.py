# SPDX-License-Identifier: Apache-2.0
"""A Triton matmul autotuned in this process: how long the first call takes, what was chosen, and whether the
result is right, bit by bit. One JSON line.

    matmul.py triton|triton-cached|purlin|purlin-in-order SIZE

The matrices hold small integers: sums are exact in fp32 whatever the order, so every config rounds to the same
fp16 and results of different configs compare as bits.
"""
import hashlib
import json
import sys
import time

import torch
import triton
import triton.language as tl

import purlin

mode, size = sys.argv[1], int(sys.argv[2])
configs = [triton.Config({"BM": bm, "BN": bn, "BK": bk}, num_warps=w, num_stages=s)
           for bm, bn, bk, w, s in ((64, 64, 32, 4, 3), (64, 128, 32, 4, 3), (128, 128, 32, 4, 3),
                                    (128, 128, 64, 8, 3), (128, 256, 64, 8, 3), (256, 128, 64, 8, 3),
                                    (128, 128, 64, 4, 4), (64, 32, 32, 2, 5))]
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
    rows, columns = row[:, None] < M, column[None, :] < N
    sums = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        left = tl.load(a + row[:, None] * K + (start + k)[None, :],
                       mask=rows & ((start + k)[None, :] < K), other=0.0)
        right = tl.load(b + (start + k)[:, None] * N + column[None, :],
                        mask=((start + k)[:, None] < K) & columns, other=0.0)
        sums = tl.dot(left, right, sums)
    tl.store(c + row[:, None] * N + column[None, :], sums.to(tl.float16), mask=rows & columns)


def operand():
    return torch.randint(-2, 3, (size, size), device="cuda").to(torch.float16)


torch.manual_seed(1)
a, b = operand(), operand()
c = torch.empty((size, size), device="cuda", dtype=torch.float16)
grid = lambda meta: (triton.cdiv(size, meta["BM"]), triton.cdiv(size, meta["BN"]))  # noqa: E731
torch.cuda.synchronize()
start = time.perf_counter()
matmul[grid](a, b, c, size, size, size)
torch.cuda.synchronize()
first_s = time.perf_counter() - start
start = time.perf_counter()
matmul[grid](a, b, c, size, size, size)
torch.cuda.synchronize()
second_s = time.perf_counter() - start
expected = (a.double() @ b.double()).to(torch.float32).to(torch.float16)
print(json.dumps({
    "mode": mode, "size": size, "first_s": first_s, "second_s": second_s, "right": bool(torch.equal(c, expected)),
    "wrong_elements": int((c != expected).sum()), "config": str(matmul.best_config),
    "result": hashlib.sha256(c.cpu().numpy().tobytes()).hexdigest()[:16],
    "log": getattr(matmul, "purlin_log", []), "torch": torch.__version__, "triton": triton.__version__,
    "device": torch.cuda.get_device_name()}))
