#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch programs without any profiler code, for tests/gpu/torch_hook_gpu.sh.

  torch_hook.py train SECONDS WIDTH   a small transformer; WIDTH 256 is launch-bound, 2048 is not
  torch_hook.py generate SECONDS      a decoder without optimizer
  torch_hook.py graph SECONDS         replays of a CUDA graph
  torch_hook.py exact STEPS           loss, random states and environment after a fixed number of steps
  torch_hook.py compiled STEPS        the same with torch.compile, which uses torch._inductor
  torch_hook.py side                  fork then CUDA, spawn, a late CUDA_VISIBLE_DEVICES, the own profiler

The last line is JSON. "rates": steps of each second.
"""
import hashlib
import json
import os
import random
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, w = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, t, 3, w // 64, 64).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, w))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


def model(width, layers=4):
    torch.manual_seed(0)
    return nn.Sequential(*(Block(width) for _ in range(layers))).cuda().bfloat16()


def timed(step, seconds):
    rates, durations = [], []
    for _ in range(5):
        step()
    torch.cuda.synchronize()
    began = last = time.perf_counter()
    tick, count = began + 1, 0
    while last - began < seconds:
        step()
        count += 1
        if count % 8 == 0:
            torch.cuda.synchronize()
        now = time.perf_counter()
        durations.append(now - last)
        last = now
        if now >= tick:
            rates.append(count)
            count, tick = 0, tick + 1
    torch.cuda.synchronize()
    return {"rates": rates, "steps": len(durations), "worst_ms": 1e3 * max(durations)}


def trainer(width, change=lambda net: net):
    net, x = change(model(width)), torch.randn(8, 256, width, device="cuda", dtype=torch.bfloat16)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = net(x).float().square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return step


def generate(seconds):
    net, x = model(512), torch.randn(1, 64, 512, device="cuda", dtype=torch.bfloat16)

    @torch.no_grad()
    def step():
        net(x)

    return timed(step, seconds)


def graph(seconds):
    net, x = model(512).eval(), torch.randn(1, 64, 512, device="cuda", dtype=torch.bfloat16)
    with torch.no_grad():
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            net(x)
        stream.synchronize()
        captured = torch.cuda.CUDAGraph()
        with torch.cuda.graph(captured):
            net(x)
    return timed(captured.replay, seconds)


def exact(steps, change=lambda net: net):
    random.seed(1)
    step = trainer(256, change)
    for _ in range(steps):
        loss = step()
    states = [repr(random.getstate()).encode(), torch.get_rng_state().numpy().tobytes(),
              torch.cuda.get_rng_state().numpy().tobytes()]
    return {"loss": float(loss), "random": hashlib.sha256(b"".join(states)).hexdigest()[:16],
            "teardown": os.environ.get("TEARDOWN_CUPTI"),
            "path": [p for p in sys.path if p.endswith("lib/purlin/python")]}


def in_child(say):
    say.put(float(torch.ones(4, device="cuda").sum()))


def side():
    out = {"devices": sorted({os.readlink("/proc/self/fd/" + f) for f in os.listdir("/proc/self/fd")
                              if os.path.exists("/proc/self/fd/" + f)} &
                             {"/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia-uvm"})}
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if float(torch.ones(4, device="cuda").sum()) == 4 else 8)
        except BaseException:
            os._exit(9)
    out["fork then CUDA"] = os.waitpid(child, 0)[1]
    child = os.fork()
    if child == 0:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
        os._exit(0 if not torch.cuda.is_available() else 9)
    out["late CUDA_VISIBLE_DEVICES"] = os.waitpid(child, 0)[1]
    context = torch.multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=in_child, args=(queue,))
    process.start()
    out["spawn"] = queue.get(timeout=60)
    process.join()
    step = trainer(256)
    for _ in range(60):
        step()
    with torch.profiler.profile(record_shapes=True) as profiler:
        for _ in range(5):
            step()
        torch.cuda.synchronize()
    kernels = [e for e in profiler.profiler.kineto_results.events()
               if e.device_type() == torch.autograd.DeviceType.CUDA]
    out["own profiler sees kernels"] = len(kernels) > 500
    for _ in range(200):
        step()
    return out


if __name__ == "__main__":
    mode, rest = sys.argv[1], [int(word) for word in sys.argv[2:]]
    result = {"train": lambda s, w: timed(trainer(w), s), "generate": generate, "graph": graph,
              "exact": exact, "compiled": lambda s: exact(s, torch.compile), "side": side}[mode](*rest)
    print(json.dumps({"mode": mode, "torch": torch.__version__, **result}))
