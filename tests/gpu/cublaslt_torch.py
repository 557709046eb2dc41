# SPDX-License-Identifier: Apache-2.0
"""cublaslt_torch.py ask|served: purlin.torch in a real PyTorch. `ask` leaves misses; after they were tuned, `served`
checks results, gradients, CUDA graphs and what a launch costs the host."""
import sys
import time

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


def main():
    x, layer = made()
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
        print("launch: torch %.2f us, purlin %.2f us of the host; on a miss %.2f us against %.2f us" % (
            per_call_us(lambda: torch.nn.functional.linear(x, layer.weight, layer.bias)),
            per_call_us(lambda: ours.linear(x, layer.weight, layer.bias)),
            per_call_us(lambda: ours.linear(small, weight)),
            per_call_us(lambda: torch.nn.functional.linear(small, weight))))


main()
