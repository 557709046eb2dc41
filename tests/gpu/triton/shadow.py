# SPDX-License-Identifier: Apache-2.0
"""Shadow timing on a GPU: a stored winner that is slow is demoted, one that is fast stays, and results stay right.
Then a space is searched, and a fresh kernel object finds the winner. One JSON line."""
import json
import tempfile
import warnings

import torch
import triton
import triton.language as tl

import purlin

CONFIGS = [triton.Config({"BLOCK": 1024}, num_warps=4), triton.Config({"BLOCK": 16}, num_warps=1)]
SPACE = {"BLOCK": [64, 128, 256, 512, 1024, 2048, 4096], "num_warps": [1, 2, 4, 8]}


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)


def fresh():
    return triton.JITFunction(add.fn)


n = 1 << 22
x, y = torch.rand(n, device="cuda"), torch.rand(n, device="cuda")
out, wanted = torch.empty(n, device="cuda"), x + y
grid = lambda meta: (triton.cdiv(n, meta["BLOCK"]),)  # noqa: E731
found = {}
for label, stored in (("fast", 0), ("slow", 1)):
    folder = tempfile.mkdtemp()
    kernel = purlin.autotune(CONFIGS, ["n"], cache=folder, shadow=10)(fresh())
    _, key, cache, problem = kernel._op((x, y, out, n), {})
    cache.put(key, purlin.triton_autotune.named(CONFIGS[stored]), problem, 0.01, verified=True)
    cache.reload()
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        for turn in range(3000):
            kernel[grid](x, y, out, n)
            if turn % 500 == 0:
                torch.cuda.synchronize()
                assert torch.equal(out, wanted), (label, turn)
                out.zero_()
    kernel[grid](x, y, out, n)
    torch.cuda.synchronize()
    assert torch.equal(out, wanted), label
    found[label] = kernel.purlin_log
    assert kernel.best_config is CONFIGS[0], (label, kernel.purlin_log)
    assert any(line.startswith("demoted") for line in kernel.purlin_log) == (label == "slow"), kernel.purlin_log

folder = tempfile.mkdtemp()
searched = purlin.autotune(key=["n"], space=SPACE, budget=20, cache=folder)(fresh())
searched[grid](x, y, out, n)
again = purlin.autotune(key=["n"], space=SPACE, budget=20, cache=folder)(fresh())
again[grid](x, y, out, n)
torch.cuda.synchronize()
assert torch.equal(out, wanted)
assert searched.purlin_search["verified"] and again.purlin_search is None, searched.purlin_search
assert again.best_config.all_kwargs() == searched.best_config.all_kwargs()
print(json.dumps({"logs": found, "search": searched.purlin_search, "device": torch.cuda.get_device_name()}))
