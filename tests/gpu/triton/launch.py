# SPDX-License-Identifier: Apache-2.0
"""The launch of @purlin.autotune beside JITFunction.run on a GPU, over the same calls: the chosen kernels are the
same objects, and the results the same bits. With Triton 3.6.0 it fails if JITFunction.run made the launches. One JSON
line.
"""
import json
import sys
import tempfile
import threading

import torch
import triton
import triton.language as tl
from triton import knobs

import purlin
from purlin import _launch

CONFIGS = [triton.Config({"BLOCK": block}, num_warps=4) for block in (128, 256)]
SCALE = tl.constexpr(3)


@triton.jit
def scale(x, out, n, k, f, bias, MODE: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    value = tl.load(x + at, mask=mask).to(tl.float32) * k * SCALE + f
    if bias is not None:
        value += tl.load(bias + at, mask=mask)
    if MODE == "double":
        value *= 2
    tl.store(out + at, value, mask=mask)


known = _launch.known_triton() is not None
if triton.__version__ == "3.6.0" and not known:
    modules = _launch.Modules()
    raise AssertionError("not what is known of it: %s, the same rules: %s" % (modules.digest(), modules.same_rules()))
tuned = purlin.autotune(CONFIGS, ["MODE"], cache=tempfile.mkdtemp())(scale)
grid = lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),)  # noqa: E731
run_code, runs, results = triton.JITFunction.run.__code__, 0, {}


def traced(frame, event, _):
    global runs
    if event == "call" and frame.f_code is run_code:
        runs += 1


def by_triton(*args):
    return scale[grid](*args, **tuned.best_config.all_kwargs())


def both(name, x, n=1000, k=3, f=0.5, mode="plain", bias=None, offset=0):
    """Launches with @purlin.autotune until the call is known, then beside JITFunction.run; compares."""
    global runs
    first, second = (torch.zeros(4096, device="cuda")[offset:] for _ in range(2))
    for _ in range(3):
        tuned[grid](x, first, n, k, f, bias, mode)
    first.zero_()
    runs = 0
    sys.setprofile(traced)
    chosen = tuned[grid](x, first, n, k, f, bias, mode)
    sys.setprofile(None)
    results[name] = "JITFunction.run" if runs else "direct"
    wanted = by_triton(x, second, n, k, f, bias, mode)
    torch.cuda.synchronize()
    assert chosen is wanted, (name, chosen, wanted)
    assert torch.equal(first, second) and first.abs().max() > 0, name
    assert not known or results[name] == "direct", "%s: launched by JITFunction.run" % name
    return chosen


base = torch.rand(4096, device="cuda")
kernels = {"base": both("base", base)}
for name, call in {
        "unaligned view": {"x": base[1:]}, "aligned view": {"x": base[4:]},
        "unaligned output": {"x": base, "offset": 1},
        "k is 1": {"x": base, "k": 1}, "k is 16": {"x": base, "k": 16}, "k is 17": {"x": base, "k": 17},
        "k is 2^40": {"x": base, "k": 1 << 40}, "k is negative": {"x": base, "k": -5}, "n is 1": {"x": base, "n": 1},
        "n is 16": {"x": base, "n": 16}, "n is 1008": {"x": base, "n": 1008}, "half": {"x": base.half()},
        "bfloat16": {"x": base.bfloat16()}, "another constant": {"x": base, "mode": "double"},
        "another float": {"x": base, "f": 7.25}, "a parameter": {"x": torch.nn.Parameter(base, requires_grad=False)},
        "base again": {"x": base}}.items():
    kernels[name] = both(name, **call)
for name, call in {"a bias": {"x": base}, "an unaligned bias": {"x": base, "bias": base[1:]}}.items():
    kernels[name] = both(name, **{"bias": base, **call})
both("no bias again", base)
for name, other in (("unaligned view", True), ("unaligned output", True), ("k is 1", True), ("k is 16", True),
                    ("k is 17", False), ("k is 2^40", True), ("n is 1", True), ("n is 1008", True), ("half", True),
                    ("another constant", True), ("another float", False), ("base again", False),
                    ("a bias", True), ("an unaligned bias", True)):
    assert (kernels[name] is not kernels["base"]) == other, name

# Another stream: the launch waits there, behind a sleep. The default stream does not see its result.
stream, out = torch.cuda.Stream(), torch.zeros(4096, device="cuda")
torch.cuda.synchronize()
with torch.cuda.stream(stream):
    torch.cuda._sleep(1_000_000_000)
    tuned[grid](base, out, 1000, 3, 0.5, None, "plain")
early = out.cpu()
torch.cuda.synchronize()
assert early.abs().max() == 0 and out.abs().max() > 0, "the launch did not go to the current stream"
with torch.cuda.stream(stream):
    both("another stream", base)
torch.cuda.synchronize()

# Three threads, each with its stream and another kernel.
failures = []


def work(x, k):
    with torch.cuda.stream(torch.cuda.Stream()):
        out, wanted = (torch.zeros(4096, device="cuda") for _ in range(2))
        by_triton(x, wanted, 1000, k, 0.5, None, "plain")
        for turn in range(2000):
            tuned[grid](x, out, 1000, k, 0.5, None, "plain")
            if turn % 200 == 0:
                torch.cuda.current_stream().synchronize()
                if not torch.equal(out, wanted):
                    failures.append((k, turn))
                out.zero_()


torch.cuda.synchronize()
threads = [threading.Thread(target=work, args=call) for call in ((base, 1), (base[1:], 16), (base, 3))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not failures, failures

# A CUDA graph: what it holds is replayed, with new inputs in the same place.
source, out = base.clone(), torch.zeros(4096, device="cuda")
tuned[grid](source, out, 1000, 3, 0.5, None, "plain")
graph = torch.cuda.CUDAGraph()
torch.cuda.synchronize()
with torch.cuda.graph(graph):
    tuned[grid](source, out, 1000, 3, 0.5, None, "plain")
source.copy_(torch.rand(4096, device="cuda"))
out.zero_()
graph.replay()
wanted = torch.zeros(4096, device="cuda")
by_triton(source, wanted, 1000, 3, 0.5, None, "plain")
torch.cuda.synchronize()
assert torch.equal(out, wanted), "CUDA graph"

# Launch hooks see every launch.
seen = []


def hook(metadata):
    seen.append(metadata.get()["name"] if metadata is not None else "scale")


for name in ("launch_enter_hook", "launch_exit_hook"):
    before = getattr(knobs.runtime, name)
    chain = hasattr(before, "add")
    before.add(hook) if chain else setattr(knobs.runtime, name, hook)
    try:
        tuned[grid](base, out, 1000, 3, 0.5, None, "plain")
    finally:
        before.remove(hook) if chain else setattr(knobs.runtime, name, before)
    assert len(seen) == 1 and "scale" in seen[0], (name, seen)
    del seen[:]
both("after the hooks", base)
tuned[grid](base, out, 1000, 3, 0.5, None, "plain")
assert not seen, seen

# A tensor on the host is refused as by Triton.
for launch in (tuned[grid], by_triton):
    try:
        launch(base.cpu(), out, 1000, 3, 0.5, None, "plain")
    except ValueError as problem:
        assert "cannot be accessed from Triton" in str(problem), problem
    else:
        raise AssertionError("a tensor on the host was launched")
print(json.dumps({"known": known, "launches": results, "triton": triton.__version__,
                  "torch": torch.__version__, "device": torch.cuda.get_device_name()}))
