# SPDX-License-Identifier: Apache-2.0
"""Pairs that were written after the constants of the rules were frozen: none was seen before. As in pairs.py."""

import torch
import torch.nn.functional as F

import pairs as first
from pairs import GPU, graphed, half, null, optimizers, pair, rand

first.PAIRS.clear()
PAIRS = first.PAIRS


@pair("flash_attention")
def attention_with_a_mask():
    q, k, v = (half(4, 16, 1024, 128) for _ in range(3))
    mask = torch.full((1024, 1024), float("-inf"), device=GPU, dtype=torch.bfloat16).triu(1)

    def before():
        scores = q @ k.transpose(-2, -1) * 128 ** -0.5 + mask
        return torch.softmax(scores, -1) @ v
    return before, lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True)


@pair("flash_attention")
def attention_f16_long():
    q, k, v = (rand(1, 8, 6144, 64, dtype=torch.float16) for _ in range(3))

    def before():
        return torch.softmax((q * 0.125) @ k.transpose(-2, -1), -1) @ v
    return before, lambda: F.scaled_dot_product_attention(q, k, v)


@pair("fuse_pointwise")
def hardswish_by_hand():
    x = rand(1 << 26)
    return (lambda: x * torch.clamp(x + 3, 0, 6) / 6), lambda: F.hardswish(x)


@pair("fuse_pointwise")
def mish_by_hand():
    x = half(1 << 26)
    return (lambda: x * torch.tanh(F.softplus(x))), lambda: F.mish(x)


@pair("fuse_norm", "fuse_pointwise")
def log_softmax_by_hand():
    x = rand(16384, 4096)

    def before():
        y = x - x.amax(-1, keepdim=True)
        return y - torch.log(torch.exp(y).sum(-1, keepdim=True))
    return before, lambda: F.log_softmax(x, -1)


@pair("fuse_norm", "fuse_pointwise")
def standardise_half():
    x = half(32768, 1024)
    w, b = half(1024), half(1024)

    def before():
        mean = x.mean(-1, keepdim=True)
        var = (x - mean).pow(2).mean(-1, keepdim=True)
        return (x - mean) / torch.sqrt(var + 1e-5) * w + b
    return before, lambda: F.layer_norm(x, (1024,), w, b)


@pair("fuse_epilogue")
def bias_gelu_after_gemm():
    x, w, b = half(16384, 768), half(768, 3072), half(3072)

    def before():
        return F.gelu(torch.mm(x, w) + b, approximate="tanh")
    return before, lambda: torch._addmm_activation(b, x, w, use_gelu=True)


@pair("align_dimensions")
def odd_heads():
    def make(depth):
        a, b = half(256, 512, depth), half(256, depth, 512)
        return lambda: torch.bmm(a, b)
    return make(63), make(64)


@pair("align_dimensions")
def odd_classes():
    def make(classes):
        x, w = rand(16384, 2048, dtype=torch.float16), rand(2048, classes, dtype=torch.float16)
        return lambda: x @ w
    return make(1001), make(1008)


@pair("fused_optimizer")
def foreach_sgd():
    return optimizers(torch.optim.SGD, {"foreach": True, "lr": 0.1, "momentum": 0.9, "weight_decay": 0.01},
                      {"fused": True, "lr": 0.1, "momentum": 0.9, "weight_decay": 0.01}, [(4096, 1024)] * 24)


@pair("batch_products")
def expert_by_expert():
    weights, xs = half(48, 512, 512), half(48, 64, 512)
    ws, each = list(weights.unbind(0)), list(xs.unbind(0))
    return (lambda: [x @ w for x, w in zip(each, ws)]), lambda: torch.bmm(xs, weights)


@pair("reduce_problem")
def class_token_only():
    x, w = half(64, 256, 1024), half(8192, 1024)
    return (lambda: F.relu((x @ w.t())[:, 0])), lambda: F.relu(x[:, 0] @ w.t())


@pair("reuse_result")
def mask_each_layer():
    x, ones = rand(4096, 4096), torch.ones(4096, 4096, device=GPU)
    kept = torch.tril(ones)

    def before():
        y = x
        for _ in range(5):
            y = y * torch.tril(ones)
        return y

    def after():
        y = x
        for _ in range(5):
            y = y * kept
        return y
    return before, after


@pair("quantize")
def small_decode_in_fp8():
    x, w = half(16, 8192), half(28672, 8192)
    x8, w8, one = x.to(torch.float8_e4m3fn), w.to(torch.float8_e4m3fn), torch.ones((), device=GPU)
    return lambda: x @ w.t(), lambda: torch._scaled_mm(x8, w8.t(), one, one, out_dtype=torch.bfloat16)


@pair("cast_weights_once")
def weights_to_f16_each_step():
    x, ws = rand(2048, 2048, dtype=torch.float16), [rand(2048, 8192) for _ in range(4)]
    cast = [w.half() for w in ws]
    return (lambda: [x @ w.half() for w in ws]), lambda: [x @ w for w in cast]


@pair("channels_last")
def resnet_block():
    def make(layout):
        block = torch.nn.Sequential(torch.nn.Conv2d(256, 64, 1, bias=False), torch.nn.ReLU(),
                                    torch.nn.Conv2d(64, 64, 3, padding=1, bias=False), torch.nn.ReLU(),
                                    torch.nn.Conv2d(64, 256, 1, bias=False)).to(GPU, torch.float16)
        block = block.to(memory_format=layout)
        x = rand(64, 256, 56, 56, dtype=torch.float16).contiguous(memory_format=layout)

        def step():
            with torch.no_grad():
                return block(x) + x
        return step
    return make(torch.contiguous_format), make(torch.channels_last)


@pair("remove_syncs", "cut_host_work")
def results_fetched_one_by_one():
    xs = [rand(512, 2048) for _ in range(24)]
    return (lambda: [x.sum(-1).cpu() for x in xs]), lambda: torch.stack([x.sum(-1) for x in xs]).cpu()


@pair("pin_memory", "overlap_copies")
def images_from_pageable_memory():
    pageable = torch.randint(0, 255, (256, 3, 224, 224), dtype=torch.uint8)
    pinned, w = pageable.pin_memory(), half(4096, 4096)

    def run(images):
        def step():
            x = images.to(GPU, non_blocking=True).to(torch.bfloat16)
            return (w @ w).sum() + x.sum()
        return step
    return run(pageable), run(pinned)


@pair("cuda_graphs", "cut_host_work")
def recurrent_cell():
    cell = torch.nn.GRUCell(128, 128).to(GPU)
    x = rand(16, 128)

    def step():
        with torch.no_grad():
            h = x
            for _ in range(40):
                h = cell(x, h)
            return h
    return step, graphed(step)


@pair("local_gathers", "coalesce")
def narrow_rows_gathered():
    table, n = rand(1 << 24, 2), 1 << 23
    far = torch.randint(1 << 24, (n,), device=GPU)
    near = far.sort().values
    return (lambda: table[far]), lambda: table[near]


@pair("fill_the_device")
def four_long_rows():
    x = rand(4, 1 << 21)

    def after():
        rows = x.view(4, 512, -1)
        e = torch.exp(rows - rows.amax((1, 2), keepdim=True))
        return e / e.sum((1, 2), keepdim=True)
    return lambda: torch.softmax(x, -1), after


@pair("remove_copies")
def transposed_each_step():
    x, w = half(512, 8192), half(8192, 8192)
    return (lambda: x @ w.t().contiguous()), lambda: x @ w.t()


@pair("recompute_less")
def checkpointed_layers():
    from torch.utils.checkpoint import checkpoint
    layers = [torch.nn.TransformerEncoderLayer(512, 8, 2048, dropout=0.0, batch_first=True).to(GPU, torch.bfloat16)
              for _ in range(3)]
    parameters = [p for layer in layers for p in layer.parameters()]
    x = half(32, 256, 512, grad=True)

    def run(stored):
        def step():
            y = x
            for layer in layers:
                y = layer(y) if stored else checkpoint(layer, y, use_reentrant=False)
            torch.autograd.grad(y.float().pow(2).mean(), parameters)
        return step
    return run(False), run(True)


@null("fuse_norm", "fuse_pointwise")
def null_layer_norm_already():
    x, w, b = rand(16384, 2048), rand(2048), rand(2048)

    def step():
        return F.layer_norm(x, (2048,), w, b)
    return step, step


@null("align_dimensions", "batch_products")
def null_aligned_f16():
    x, w = rand(8192, 2048, dtype=torch.float16), rand(2048, 2048, dtype=torch.float16)

    def step():
        return x @ w
    return step, step


@null("cuda_graphs", "cut_host_work")
def null_graph_of_convolutions():
    model = torch.nn.Sequential(*[torch.nn.Conv2d(128, 128, 3, padding=1) for _ in range(4)]).to(GPU, torch.float16)
    model = model.to(memory_format=torch.channels_last)
    x = rand(64, 128, 112, 112, dtype=torch.float16).contiguous(memory_format=torch.channels_last)

    def step():
        with torch.no_grad():
            return model(x)
    return step, graphed(step)


@null("local_gathers", "coalesce")
def null_whole_rows_gathered():
    table, at = half(1 << 18, 1024), torch.randint(1 << 18, (1 << 17,), device=GPU)

    def step():
        return table[at]
    return step, step


@null("pin_memory", "overlap_copies")
def null_small_pinned_copies():
    pinned, w = torch.randn(1024).pin_memory(), half(8192, 8192)

    def step():
        return (w @ w)[0] + pinned.to(GPU, non_blocking=True)[0]
    return step, step


@null("reuse_result", "batch_products")
def null_chain_of_layers():
    ws = [half(4096, 4096) for _ in range(6)]
    x = half(4096, 4096)

    def step():
        y = x
        for w in ws:
            y = torch.relu(y @ w)
        return y
    return step, step
