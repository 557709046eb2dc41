#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A deterministic PyTorch training run whose kernels can be counted two ways.

  profile_pytorch.py plain STEPS            train; nothing else
  profile_pytorch.py own STEPS OUT          train with torch.profiler over every step; OUT gets
                                            {"kernels": {name: launches}, "total": N}
  profile_pytorch.py middle STEPS OUT       the profiler runs over the middle third only
  profile_pytorch.py often STEPS OUT        the profiler runs twenty times over three steps, with three between

The model, its input and the order of launches are the same in every mode: a small transformer
block with its loss and optimizer, on the GPU, after WARM_UP steps in which libraries pick their
algorithms and caches fill. Those are part of the run in every mode.
"""
import json
import sys
from collections import Counter

import torch
from torch.profiler import ProfilerActivity, profile

WARM_UP = 3


def make_step():
    torch.manual_seed(7)
    torch.use_deterministic_algorithms(False)
    torch.backends.cudnn.benchmark = False
    layer = torch.nn.TransformerEncoderLayer(256, 4, 512, dropout=0.0, batch_first=True).cuda()
    head = torch.nn.Linear(256, 64).cuda()
    optimizer = torch.optim.AdamW([*layer.parameters(), *head.parameters()], lr=1e-3, fused=False, foreach=False)
    x = torch.randn(8, 64, 256, device="cuda")
    y = torch.randint(0, 64, (8 * 64,), device="cuda")

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = torch.nn.functional.cross_entropy(head(layer(x)).flatten(0, 1), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def kernels_of(profiler):
    """Launches by kernel name: the events of the device that are neither copies nor sets."""
    counts = Counter()
    for event in profiler.profiler.kineto_results.events():
        if event.device_type() != torch.autograd.DeviceType.CUDA:
            continue
        name = event.name()
        if name.startswith(("Memcpy", "Memset")) or getattr(event, "is_user_annotation", lambda: False)():
            continue
        counts[name] += 1
    return counts


def run_steps(step, count):
    for _ in range(count):
        loss = step()
    torch.cuda.synchronize()
    return float(loss) if count else 0.0


def main():
    mode, steps = sys.argv[1], int(sys.argv[2])
    out = sys.argv[3] if len(sys.argv) > 3 else None
    activities = [ProfilerActivity.CUDA, ProfilerActivity.CPU]
    counts = None
    if mode == "own":  # the very first launch included: the whole run is under the profiler
        with profile(activities=activities) as profiler:
            loss = run_steps(make_step(), WARM_UP + steps)
        counts = kernels_of(profiler)
    elif mode == "middle":
        step = make_step()
        third = steps // 3
        run_steps(step, WARM_UP + third)
        with profile(activities=activities) as profiler:
            run_steps(step, third)
        counts = kernels_of(profiler)
        # Long enough for Purlin to notice that the profiler is gone, then work for it to see.
        import time
        time.sleep(6)
        loss = run_steps(step, steps - 2 * third)
    elif mode == "often":
        step = make_step()
        run_steps(step, WARM_UP + steps)
        counts = Counter()
        for _ in range(20):
            with profile(activities=activities) as profiler:
                run_steps(step, 3)
            counts += kernels_of(profiler)
            loss = run_steps(step, 3)
    else:
        loss = run_steps(make_step(), WARM_UP + steps)
    print(f"loss {loss:.6f}")
    if out:
        json.dump({"kernels": dict(counts), "total": sum(counts.values())}, open(out, "w"), indent=1)


main()
