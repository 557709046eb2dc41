# SPDX-License-Identifier: Apache-2.0
"""cublaslt_torch.py ask|served|shadow: purlin.torch in a real PyTorch. `ask` leaves misses; after they were tuned,
`served` checks results, gradients, CUDA graphs and what a launch costs the host (also to $OUT/purlin_torch.json).
`shadow`: a tuned product that is made slow is demoted on live launches, and results stay right."""
import json
import os
import sys
import time
import warnings

import torch

import purlin.torch as ours

torch.manual_seed(3)
M, N, K = 64, 4096, 4096


def made():
    x = torch.randn(M, K, device="cuda", dtype=torch.bfloat16)
    layer = torch.nn.Linear(K, N, device="cuda", dtype=torch.bfloat16)
    return x, layer


def close(got, wanted, what):
    scale = wanted.float().abs().mean()
    worst = ((got.float() - wanted.float()).abs().max() / scale).item()
    print("%s: worst difference %.4f of the mean size" % (what, worst))
    assert worst < 0.1, what


def run(x, layer):
    x.grad = layer.weight.grad = layer.bias.grad = None
    y = ours.linear(x, layer.weight, layer.bias)
    (y * y).sum().backward()
    return y


def library_call(x, layer):
    """What is left of a call when Python has nothing more to work out."""
    with torch.no_grad():
        out = ours.linear(x, layer.weight, layer.bias)
    known = [p for p in ours._prepared.values() if p and p._extents == (M, N, K) and p._kind.label.endswith("-bias")][0]
    launch, of_launch, _, of_outcome = known._calls[0]
    launch.d = out.data_ptr()
    handle = known._handle

    def call():
        known._matmul(handle, of_launch, of_outcome)
    call.keeps = out
    return call


def per_call_us(call, calls=300):
    for _ in range(20):
        call()
    torch.cuda.synchronize()
    best = 1e9
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        best = min(best, (time.perf_counter() - start) / calls)
        torch.cuda.synchronize()
    return best * 1e6


def shadow(x, layer):
    ours.configure(shadow=10)
    label, run, slow = "M=%d,N=%d,K=%d" % (M, N, K), ours._Prepared.run, [0]

    def slowed(*arguments):
        out = run(*arguments)
        torch.cuda._sleep(slow[0])
        return out

    def launches(count):
        for turn in range(count):
            got = ours.linear(x, layer.weight, layer.bias)
            if turn % 100 == 0:
                close(got, wanted, "shadowed, turn %d" % turn)
        torch.cuda.synchronize()
        return [line for line in ours.log() if label in line]

    ours._Prepared.run = slowed
    with torch.no_grad(), warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        wanted = torch.nn.functional.linear(x, layer.weight, layer.bias)
        print("shadow, as tuned:", launches(2000))
        if any("demoted" in line for line in ours.log()):
            print("shadow: the tuned algorithm lost by itself")
            return
        slow[0] = 200_000  # cycles: some 0.1 ms
        lines = launches(2000)
        print("shadow, made slow:", lines)
        assert any("demoted" in line for line in lines), lines


def main():
    x, layer = made()
    if sys.argv[1] == "shadow":
        shadow(x, layer)
        return
    x.requires_grad = True
    if sys.argv[1] == "ask":
        for _ in range(50):
            run(x, layer)
        with torch.no_grad():
            ours.matmul(x, layer.weight.t())
        torch.cuda.synchronize()
        ours.flush()
        print("\n".join(ours.log()))
        assert ours.log() and all(line.endswith("miss") for line in ours.log()), ours.log()
        return
    y = run(x, layer)
    gradients = x.grad.clone(), layer.weight.grad.clone(), layer.bias.grad.clone()
    torch.cuda.synchronize()
    lines = ours.log()
    print("\n".join(lines))
    print("served: %d of %d products" % (sum("exact" in line for line in lines), len(lines)))
    assert any("exact" in line for line in lines), lines
    x.grad = layer.weight.grad = layer.bias.grad = None
    wanted = torch.nn.functional.linear(x, layer.weight, layer.bias)
    (wanted * wanted).sum().backward()
    close(y, wanted, "forward")
    for name, got, by_torch in zip(("x", "weight", "bias"), gradients, (x.grad, layer.weight.grad, layer.bias.grad)):
        close(got, by_torch, "gradient of " + name)
    with torch.no_grad():
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            inside = ours.linear(x, layer.weight, layer.bias)
        graph.replay()
        torch.cuda.synchronize()
        close(inside, wanted, "graph")
        small, weight = x[:8].contiguous(), layer.weight[:256].contiguous()
        costs = {
            "torch": per_call_us(lambda: torch.nn.functional.linear(x, layer.weight, layer.bias)),
            "purlin": per_call_us(lambda: ours.linear(x, layer.weight, layer.bias)),
            "purlin_library_call": per_call_us(library_call(x, layer)),
            "torch_untuned_shape": per_call_us(lambda: torch.nn.functional.linear(small, weight)),
            "purlin_untuned_shape": per_call_us(lambda: ours.linear(small, weight)),
            "empty": per_call_us(lambda: x.new_empty((M, N))),
        }
    costs["torch_with_gradients"] = per_call_us(lambda: torch.nn.functional.linear(x, layer.weight, layer.bias))
    costs["purlin_with_gradients"] = per_call_us(lambda: ours.linear(x, layer.weight, layer.bias))
    # What is never tuned: asked for seldom once it was missed 64 times.
    small, weight = small.detach(), weight.detach().requires_grad_()
    costs["torch_untuned_with_gradients"] = per_call_us(lambda: torch.nn.functional.linear(small, weight))
    costs["purlin_untuned_with_gradients"] = per_call_us(lambda: ours.linear(small, weight))
    print("launch: torch %(torch).2f us, purlin %(purlin).2f us of the host (its call of the library"
          " %(purlin_library_call).2f, an allocation %(empty).2f); on a miss %(purlin_untuned_shape).2f us"
          " against %(torch_untuned_shape).2f us; with gradients %(purlin_with_gradients).2f us against %(torch_with_gradients).2f us, on a miss"
          " %(purlin_untuned_with_gradients).2f us against %(torch_untuned_with_gradients).2f us" % costs)
    if os.environ.get("OUT"):
        with open(os.path.join(os.environ["OUT"], "purlin_torch.json"), "w") as file:
            json.dump({"device": torch.cuda.get_device_name(), "torch": torch.__version__, "M": M, "N": N, "K": K,
                       "host_us_per_call": costs}, file)


main()
