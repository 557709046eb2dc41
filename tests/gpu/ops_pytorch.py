#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch steps whose products are known, with and without names for what they do.

  ops_pytorch.py plain STEPS       as it is
  ops_pytorch.py nvtx STEPS        under torch.autograd.profiler.emit_nvtx(record_shapes=True)
  ops_pytorch.py profiler STEPS    torch.profiler over all steps; prints what it saw of calls and kernels

Prints {"steps", "seconds": of all of them, "products": [[M, N, K, B, dtype] of each op of a step], …}.
"""
import json
import sys
import time

import torch
import torch.nn.functional as F

try:
    import triton
    import triton.language as tl

    @triton.jit
    def triton_scale(x, n, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(x + at, tl.load(x + at, mask=at < n) * 2.0, mask=at < n)
except ImportError:
    triton = None

PRODUCTS = [  # M, N, K, B, dtype: one call each, as a framework sees it
    (2048, 1536, 1024, 1, "bf16"),  # mm
    (2048, 3072, 1024, 1, "f16"),   # linear with a bias: a weight of [N, K]
    (1024, 768, 512, 1, "f32"),     # addmm with a bias
    (256, 192, 128, 12, "bf16"),    # bmm
    (640, 320, 256, 1, "f64"),      # mm
]
TYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32, "f64": torch.float64}


def make_step():
    torch.manual_seed(3)
    new = lambda *shape, dtype: torch.randn(*shape, device="cuda", dtype=TYPES[dtype])
    (m0, n0, k0, _, t0), (m1, n1, k1, _, t1), (m2, n2, k2, _, t2), (m3, n3, k3, b3, t3), (m4, n4, k4, _, t4) = PRODUCTS
    a0, b0 = new(m0, k0, dtype=t0), new(k0, n0, dtype=t0)
    a1, w1, c1 = new(m1, k1, dtype=t1), new(n1, k1, dtype=t1), new(n1, dtype=t1)
    a2, b2, c2 = new(m2, k2, dtype=t2), new(k2, n2, dtype=t2), new(n2, dtype=t2)
    a3, b3_ = new(b3, m3, k3, dtype=t3), new(b3, k3, n3, dtype=t3)
    a4, b4 = new(m4, k4, dtype=t4), new(k4, n4, dtype=t4)
    image, filters = new(8, 16, 56, 56, dtype="f32"), new(32, 16, 3, 3, dtype="f32")
    scaled = new(1 << 20, dtype="f32")

    def step():
        torch.mm(a0, b0)
        F.linear(a1, w1, c1)
        torch.addmm(c2, a2, b2)
        torch.bmm(a3, b3_)
        torch.mm(a4, b4)
        F.softmax(a2, -1)
        F.conv2d(image, filters, padding=1)
        if triton is not None:
            torch.cuda.nvtx.range_push("own triton")
            triton_scale[(1024,)](scaled, scaled.numel(), BLOCK=1024)
            torch.cuda.nvtx.range_pop()

    return step


def main():
    mode, steps = sys.argv[1], int(sys.argv[2])
    step = make_step()
    for _ in range(3):
        step()
    torch.cuda.synchronize()
    out = {"steps": steps, "products": PRODUCTS, "triton": triton is not None}
    begin = time.perf_counter()
    if mode == "nvtx":
        with torch.autograd.profiler.emit_nvtx(record_shapes=True):
            for _ in range(steps):
                step()
    elif mode == "profiler":
        from torch.profiler import ProfilerActivity, profile
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as p:
            for _ in range(steps):
                step()
            torch.cuda.synchronize()
        p.export_chrome_trace(sys.argv[3])
        events = json.load(open(sys.argv[3]))["traceEvents"]
        count = lambda category: sum(e.get("cat") == category for e in events)
        out.update(runtime_calls=count("cuda_runtime"), driver_calls=count("cuda_driver"),
                   kernels=count("kernel"), arrows=sum(e.get("ph") == "s" for e in events))
    else:
        for _ in range(steps):
            step()
    torch.cuda.synchronize()
    out["seconds"] = time.perf_counter() - begin
    print(json.dumps(out))


main()
