#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Winners of the Hopper samples and PyTorch's own kernels, launched in turns in one process.

    python3 hopper_turns.py [-o FILE.json] tune.json ...     documents of `purlin tune --json` of gemm_wgmma or
                                                             an attention sample

`gemm_vs_cublas.py` and `attention_vs_sdpa.py` time a library before and after a tuning. A GPU that nears its power
cap clocks down under either. Here the two sides take turns, batch by batch, so that both meet the same clocks: the
figure is the ratio of the medians. The winner is compiled by nvcc and launched through the driver. Its result is
compared with PyTorch's. Needs nvcc and an sm_90 device.
"""
import argparse
import ctypes
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

KERNELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "kernels")
BF16, SWIZZLE_128, L2_128 = 9, 3, 2  # of CUtensorMapDataType, CUtensorMapSwizzle, CUtensorMapL2promotion
MAX_DYNAMIC_SHARED = 8
cuda = ctypes.CDLL("libcuda.so.1")


def check(result, what):
    if result:
        sys.exit(f"hopper_turns: {what}: CUDA error {result}")


def tensor_map(tensor, box):
    """A CUtensorMap of the whole tensor; the buffer and its aligned address."""
    buffer = (ctypes.c_uint64 * 24)()
    address = (ctypes.addressof(buffer) + 63) // 64 * 64
    rank = tensor.dim()
    strides = [stride * 2 for stride in tensor.stride()[::-1]][1:]
    check(cuda.cuTensorMapEncodeTiled(
        ctypes.c_void_p(address), BF16, ctypes.c_uint32(rank), ctypes.c_void_p(tensor.data_ptr()),
        (ctypes.c_uint64 * rank)(*tensor.shape[::-1]), (ctypes.c_uint64 * (rank - 1))(*strides),
        (ctypes.c_uint32 * rank)(*box[::-1]), (ctypes.c_uint32 * rank)(*[1] * rank), 0, SWIZZLE_128, L2_128, 0),
        "a tensor map")
    return buffer, address


class Kernel:
    def __init__(self, source, entry, defines, shared):
        with tempfile.NamedTemporaryFile(suffix=".cubin") as binary:
            subprocess.run(
                ["nvcc", "-gencode=arch=compute_90a,code=sm_90a", "-std=c++17", "-cubin", "-o", binary.name,
                 "-I" + os.path.join(KERNELS, "hopper"), *(f"-D{name}={value}" for name, value in defines.items()),
                 os.path.join(KERNELS, source)], check=True)
            module, self._function, self._shared = ctypes.c_void_p(), ctypes.c_void_p(), shared
            check(cuda.cuModuleLoad(ctypes.byref(module), binary.name.encode()), "cuModuleLoad")
        check(cuda.cuModuleGetFunction(ctypes.byref(self._function), module, entry.encode()), entry)
        check(cuda.cuFuncSetAttribute(self._function, MAX_DYNAMIC_SHARED, shared), "shared memory")

    def launcher(self, grid, block, arguments):
        """A function that launches with these: tensor maps, tensors and integers."""
        places, kept = (ctypes.c_void_p * len(arguments))(), []
        for at, one in enumerate(arguments):
            if isinstance(one, tuple):
                places[at] = one[1]
                continue
            kept.append(ctypes.c_uint64(one.data_ptr()) if torch.is_tensor(one) else ctypes.c_int(one))
            places[at] = ctypes.addressof(kept[-1])

        def launch(kept=(kept, arguments)):
            stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
            check(cuda.cuLaunchKernel(self._function, *grid, block, 1, 1, self._shared, stream, places, None),
                  "the launch")

        return launch


def gemm(shape, config):
    m, n, k = shape["M"], shape["N"], shape["K"]
    a, b = (torch.rand(rows, k, device="cuda") * 2 - 1 for rows in (m, n))
    a, b = a.to(torch.bfloat16), b.to(torch.bfloat16)
    c = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
    shared = config["STAGES"] * (config["DEPTH"] * (config["BM"] + config["BN"]) * 128 + 16) + 1024
    kernel = Kernel("gemm_wgmma/gemm_wgmma.cu", "gemm_wgmma", config, shared)
    units, cluster = torch.cuda.get_device_properties(0).multi_processor_count, config["CLUSTER"]
    ours = kernel.launcher((units // cluster * cluster, 1, 1), 128 * (config["CONSUMERS"] + 1), [
        tensor_map(a, [config["BM"], 64]), tensor_map(b, [config["BN"] // cluster, 64]), c, m, n, k])
    return {"purlin": ours, "cublas": lambda: torch.mm(a, b.t())}, c, 2 * m * n * k


def attention(shape, config, causal):
    heads, rows, width = shape["HEADS"], shape["S"], shape["D"]
    q, k, v = (torch.randn(heads, rows, width, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    out, per_block = torch.empty_like(q), 64 * config["CONSUMERS"]
    shared = width * 2 * (per_block + config["STAGES"] * config["BKV"]) + 16 * config["STAGES"] + 1040
    kernel = Kernel("attention/attention.cu", "attention", dict(config, CAUSAL=int(causal)), shared)
    tiles = -(-rows // per_block)
    grid = (heads, tiles, 1) if config["HEADS_FIRST"] else (tiles, heads, 1)
    tile = [1, config["BKV"], 64]
    ours = kernel.launcher(grid, 128 * (config["CONSUMERS"] + 1), [
        tensor_map(q, [1, per_block, 64]), tensor_map(k, tile), tensor_map(v, tile), out, rows, width])

    def of(backend):
        def run():
            with sdpa_kernel(backend):
                return scaled_dot_product_attention(q[None], k[None], v[None], is_causal=causal)[0]
        return run

    return {"purlin": ours, "cudnn": of(SDPBackend.CUDNN_ATTENTION), "flash": of(SDPBackend.FLASH_ATTENTION)}, \
        out, (2 if causal else 4) * heads * rows * rows * width


def in_turns(ways, rounds=25):
    times = {name: [] for name in ways}
    for turn in range(rounds + 2):
        for name, launch in ways.items():
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            launch()
            start.record()
            for _ in range(5):
                launch()
            end.record()
            end.synchronize()
            if turn > 1:
                times[name].append(start.elapsed_time(end) / 5)
    return {name: statistics.median(one) for name, one in times.items()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("documents", nargs="+")
    parser.add_argument("-o", "--output")
    options = parser.parse_args()
    torch.zeros(1, device="cuda")  # makes the context
    torch.manual_seed(1)
    rows = []
    for path in options.documents:
        with open(path) as file:
            document = json.load(file)
        shape, config, name = document["problem"], document["best"]["config"], document["kernel"]
        ways, out, flops = gemm(shape, config) if name == "gemm_wgmma" else \
            attention(shape, config, name.endswith("causal"))
        ways["purlin"]()
        other = next(way for way in ways if way != "purlin")
        wanted = ways[other]().float()
        error = ((out.float() - wanted).norm() / wanted.norm()).item()
        if not error < 1e-2:
            sys.exit(f"hopper_turns: {name}: the results differ by {error}")
        ms = in_turns(ways)
        best = min(one for way, one in ms.items() if way != "purlin")
        rows.append({"kernel": name, "shape": shape, "config": config, "ms": ms, "error": error,
                     "tflops": {way: flops / one / 1e9 for way, one in ms.items()}, "ratio": best / ms["purlin"]})
        print(name, shape, " ".join(f"{way} {one:.1f}" for way, one in rows[-1]["tflops"].items()), "TFLOP/s, ratio",
              f"{rows[-1]['ratio']:.3f}", flush=True)
    if options.output:
        with open(options.output, "w") as file:
            json.dump({"recorded_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                       "environment": {"device": torch.cuda.get_device_name(), "torch": torch.__version__},
                       "rows": rows}, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
