# SPDX-License-Identifier: Apache-2.0
"""A tenth set, of faults that a review of code finds often: written after the ninth and in its way.

As in pairs_ninth.py; half of it is set aside by the hash of its names. The whole steps are in pairs_tenth_steps.py
and pairs_tenth_data.py, the smaller programs here. Written from what practitioners change, without sight of the rules: for some
of these programs a trace may show too little. `pairs_listing.py` prints the set without PyTorch.
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import triton
import triton.language as tl

from pairs_tenth_data import PAIRS
from pairs_tenth_steps import causal
from pairs_practice import BF16, F16, compiled, without_gradients
from pairs_sixth import ints
from pairs_unseen import GPU, captured, null, pair, rand, weight, with_precision

SYNCED = ["sentences_cut_by_lengths_on_the_device", "symbols_of_a_transducer_taken_greedily", "null_assertion_before_a_long_step"]


# ---------------------------------------------------------------- work that need not be done, slow calls

@pair("reduce_problem")
def linear_attention_in_the_order_of_the_formula():
    q, k = (rand(8, 16, 4096, 64).abs().to(BF16) for _ in range(2))
    v = rand(8, 16, 4096, 64, dtype=BF16)

    def before():
        scores = q @ k.mT
        return (scores @ v) / scores.sum(-1, keepdim=True)

    def after():
        return (q @ (k.mT @ v)) / (q @ k.sum(-2, keepdim=True).mT)
    return before, after


@pair("slow_op", "reduce_problem", "remove_syncs")
def deformations_inverted_by_the_library():
    a = rand(1 << 18, 3, 3, scale=0.1) + torch.eye(3, device=GPU)

    def after():
        x, y, z = a.unbind(-1)
        rows = torch.stack([torch.linalg.cross(y, z), torch.linalg.cross(z, x), torch.linalg.cross(x, y)], -2)
        return rows / (x * rows[:, 0]).sum(-1)[:, None, None]
    return (lambda: torch.linalg.inv(a)), after


@pair("slow_op", "fuse_pointwise", "remove_copies", "compile_model")
def short_causal_filters_of_each_channel():
    length, width = 2048, 4096
    x, b = rand(8, length, width, dtype=BF16), rand(width, dtype=BF16, scale=0.1)
    w = rand(width, 1, 4, dtype=BF16, scale=0.4)
    taps = w[:, 0].t().contiguous()

    def before():
        return F.silu(F.conv1d(x.mT, w, b, padding=3, groups=width)[..., :length]).mT

    def by_taps():
        padded = F.pad(x, (0, 0, 3, 0))
        y = b
        for i in range(4):
            y = y + taps[i] * padded[:, i:i + length]
        return F.silu(y)
    return before, compiled(by_taps)


@pair("fill_the_device", "slow_op", "reduce_problem")
def histories_of_few_users_in_long_bags():
    table, ids = rand(200_000, 64), ints(200_000, 16, 16384)
    return (lambda: F.embedding_bag(ids, table, mode="sum"),
            lambda: F.embedding_bag(ids.view(-1, 128), table, mode="sum").view(16, 128, 64).sum(1))


@pair("cast_weights_once", "reduce_problem", "remove_copies")
def table_cast_before_its_lookup():
    table, ids, w = rand(1 << 22, 128), ints(1 << 22, 131072), weight(512, 128, BF16)

    def run(looked_up):
        return lambda: torch.relu(F.linear(looked_up(), w))
    return run(lambda: F.embedding(ids, table.to(BF16))), run(lambda: F.embedding(ids, table).to(BF16))


@pair("batch_products", "cut_host_work", "cuda_graphs", "compile_model", "fill_the_device")
def densities_of_a_mixture_component_by_component():
    x, means, roots = rand(4096, 64), rand(96, 64), rand(96, 64, 64, scale=0.1)

    def before():
        return torch.stack([((x - means[i]) @ roots[i]).pow(2).sum(-1) for i in range(96)])
    return before, lambda: ((x - means[:, None]) @ roots).pow(2).sum(-1)


# ---------------------------------------------------------------- precision and formulas

@pair("leave_float64", "fuse_pointwise", "compile_model")
def pictures_normalised_by_arrays_of_numpy():
    pictures = torch.randint(256, (64, 3, 512, 512), dtype=torch.uint8, device=GPU)
    mean, spread = (torch.from_numpy(np.array(numbers).reshape(3, 1, 1)).to(GPU) for numbers in ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]))
    w = rand(64, 3, 16, 16, dtype=F16, scale=0.03)

    def run(dtype):
        m, s = mean.to(dtype), spread.to(dtype)
        return lambda: F.conv2d(((pictures / 255 - m) / s).to(F16), w, stride=16)
    return run(torch.float64), run(torch.float32)


@pair("fuse_pointwise", "compile_model", "remove_copies")
def queries_turned_as_complex_numbers():
    q, k = rand(4, 4096, 16, 128, dtype=BF16), rand(4, 4096, 4, 128, dtype=BF16)
    angles = torch.arange(4096, device=GPU)[:, None] * 10000.0 ** (-torch.arange(0, 128, 2, device=GPU) / 128)
    turns = torch.polar(torch.ones_like(angles), angles)[:, None]
    cos, sin = torch.cos(angles)[:, None], torch.sin(angles)[:, None]

    def as_complex(y):
        pairs = torch.view_as_complex(y.float().reshape(*y.shape[:-1], 64, 2))
        return torch.view_as_real(pairs * turns).flatten(3).to(BF16)

    def as_real(y):
        left, right = y.float().unflatten(-1, (64, 2)).unbind(-1)
        return torch.stack([left * cos - right * sin, left * sin + right * cos], -1).flatten(3).to(BF16)
    fused = compiled(lambda: (as_real(q), as_real(k)))
    return (lambda: (as_complex(q), as_complex(k))), fused


@pair("remove_syncs", "cut_host_work")
def sentences_cut_by_lengths_on_the_device():
    lengths = np.random.default_rng(0).integers(32, 256, 96).tolist()
    x, w = rand(96, 256, 512, dtype=BF16), weight(4000, 512, BF16)
    ends, targets = torch.tensor(lengths, device=GPU), ints(4000, sum(lengths))

    def run(ends):
        def step():
            words = torch.cat([x[i, :ends[i]] for i in range(96)])
            return F.cross_entropy(F.linear(words, w), targets)
        return step
    return run(ends), run(lengths)


# ---------------------------------------------------------------- kernels of one's own

@triton.jit
def decode_kernel(q, keys, values, partial, sums, length, scale, splits, EACH: tl.constexpr, BLOCK: tl.constexpr):
    row, part = tl.program_id(0), tl.program_id(1)
    each, count = tl.arange(0, EACH), length // splits
    query = tl.load(q + row * EACH + each) * scale
    best = -float("inf")
    total = 0.0
    mixed = tl.zeros((EACH,), tl.float32)
    for start in range(part * count, part * count + count, BLOCK):
        at = (row * length + start + tl.arange(0, BLOCK))[:, None] * EACH + each[None, :]
        scores = tl.sum(tl.load(keys + at).to(tl.float32) * query[None, :], 1)
        higher = tl.maximum(best, tl.max(scores, 0))
        shares, kept = tl.exp(scores - higher), tl.exp(best - higher)
        mixed = mixed * kept + tl.sum(shares[:, None] * tl.load(values + at).to(tl.float32), 0)
        total = total * kept + tl.sum(shares, 0)
        best = higher
    out = row * splits + part
    tl.store(partial + out * EACH + each, mixed / total)
    tl.store(sums + out, best + tl.log(total))


@pair("fill_the_device", "tune_kernel", "more_loads_in_flight")
def own_attention_of_one_token_over_long_caches():
    rows, length = 16, 32768
    q, keys, values = rand(rows, 64), rand(rows, length, 64, dtype=F16), rand(rows, length, 64, dtype=F16)

    def run(splits):
        partial, sums = torch.empty(rows, splits, 64, device=GPU), torch.empty(rows, splits, device=GPU)

        def step():
            decode_kernel[(rows, splits)](q, keys, values, partial, sums, length, 0.125, splits, 64, 64, num_warps=4)
            return (torch.softmax(sums, 1)[..., None] * partial).sum(1)
        return step
    return run(1), run(64)


@triton.jit
def norm_by_pixel_kernel(x, out, pixels, CHANNELS: tl.constexpr):
    at = tl.program_id(1) * CHANNELS * pixels + tl.program_id(0) + tl.arange(0, CHANNELS) * pixels
    value = tl.load(x + at)
    value = value - tl.sum(value, 0) / CHANNELS
    tl.store(out + at, value / tl.sqrt(tl.sum(value * value, 0) / CHANNELS + 1e-5))


@triton.jit
def norm_by_tile_kernel(x, out, pixels, CHANNELS: tl.constexpr, BLOCK: tl.constexpr):
    pixel = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = tl.program_id(1) * CHANNELS * pixels + tl.arange(0, CHANNELS)[:, None] * pixels + pixel[None, :]
    value = tl.load(x + at)
    value = value - (tl.sum(value, 0) / CHANNELS)[None, :]
    tl.store(out + at, value / tl.sqrt(tl.sum(value * value, 0) / CHANNELS + 1e-5)[None, :])


@pair("coalesce", "tune_kernel")
def own_norm_over_the_channels_of_each_pixel():
    pixels = 128 * 128
    x, out = rand(16, 128, pixels), torch.empty(16, 128, pixels, device=GPU)
    return (lambda: norm_by_pixel_kernel[(pixels, 16)](x, out, pixels, 128),
            lambda: norm_by_tile_kernel[(pixels // 32, 16)](x, out, pixels, 128, 32, num_warps=4))


@triton.jit
def count_each_kernel(x, out, BLOCK: tl.constexpr):
    value = tl.load(x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)).to(tl.int32)
    tl.atomic_add(out + value, value * 0 + 1)


@triton.jit
def count_block_kernel(x, out, BLOCK: tl.constexpr):
    value = tl.load(x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)).to(tl.int32)
    tl.atomic_add(out + tl.arange(0, 256), tl.histogram(value, 256))


@pair("reduce_in_blocks", "tune_kernel")
def own_histogram_counted_byte_by_byte():
    count, out = 1 << 24, torch.zeros(256, dtype=torch.int32, device=GPU)
    x = (torch.randn(count, device=GPU) * 20 + 128).clamp(0, 255).to(torch.uint8)

    def run(kernel):
        def step():
            out.zero_()
            kernel[(count // 4096,)](x, out, 4096)
        return step
    return run(count_each_kernel), run(count_block_kernel)


@triton.jit
def attention_kernel(q, k, v, out, length, scale, EACH: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    first = tl.program_id(1) * length * EACH
    row, column, each = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, EACH)
    query = tl.load(q + first + row[:, None] * EACH + each[None, :])
    best = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    mixed = tl.zeros((BM, EACH), tl.float32)
    for start in range(0, length, BN):
        at = first + (start + column)[:, None] * EACH + each[None, :]
        scores = tl.dot(query, tl.trans(tl.load(k + at))) * scale
        higher = tl.maximum(best, tl.max(scores, 1))
        shares, kept = tl.exp(scores - higher[:, None]), tl.exp(best - higher)
        total = total * kept + tl.sum(shares, 1)
        mixed = mixed * kept[:, None] + tl.dot(shares.to(tl.float16), tl.load(v + at))
        best = higher
    tl.store(out + first + row[:, None] * EACH + each[None, :], (mixed / total[:, None]).to(tl.float16))


@pair("tune_kernel", "more_loads_in_flight", "hide_latency")
def own_attention_of_small_tiles():
    length = 4096
    q, k, v, out = (rand(64, length, 64, dtype=F16) for _ in range(4))

    def run(rows, columns, warps, stages):
        grid = (length // rows, 64)
        return lambda: attention_kernel[grid](q, k, v, out, length, 0.125, 64, rows, columns, num_warps=warps, num_stages=stages)
    return run(16, 16, 4, 1), run(128, 64, 8, 3)


# ---------------------------------------------------------------- what suggests itself and gains nothing

@null("remove_syncs")
def null_assertion_before_a_long_step():
    ids, table = ints(32000, 8, 2048), rand(32000, 4096, dtype=BF16)
    ws = [weight(4096, 4096, BF16) for _ in range(10)]

    def run(checks):
        def step():
            if checks:
                assert int(ids.max()) < 32000
            y = F.embedding(ids, table)
            for w in ws:
                y = F.linear(y, w)
            return y
        return step
    return run(True), run(False)


@null("fused_optimizer")
def null_groups_of_an_optimizer_beside_large_products():
    x = rand(16384, 4096)

    def make(apart):
        model = nn.Sequential(nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 4096)).to(GPU)
        weights = list(model.parameters())
        groups = [{"params": [w]} for w in weights] if apart else [{"params": weights}]
        optimizer = torch.optim.AdamW(groups, lr=1e-5, fused=True)

        def step():
            model.zero_grad()
            with torch.autocast(GPU, BF16):
                loss = model(x).float().pow(2).mean()
            loss.backward()
            optimizer.step()
        return step
    return make(True), make(False)


@null("remove_copies")
def null_queries_split_by_views():
    x, ws = rand(8, 2048, 2048, dtype=BF16), [weight(6144, 2048, BF16) for _ in range(4)]

    def by_permuting(y):
        return y.view(8, 2048, 3, 16, 128).permute(2, 0, 3, 1, 4).unbind(0)

    def by_chunks(y):
        return (part.view(8, 2048, 16, 128).transpose(1, 2) for part in y.chunk(3, -1))

    def run(split):
        def step():
            y = x
            for w in ws:
                q, k, v = split(F.linear(y, w))
                y = causal(q, k, v).transpose(1, 2).reshape(8, 2048, 2048)
            return y
        return step
    return run(by_permuting), run(by_chunks)


@null("pin_memory", "overlap_copies", "keep_on_device")
def null_prompts_sent_from_ordinary_memory():
    text, table = torch.randint(32000, (4, 2048)), rand(32000, 4096, dtype=BF16)
    pinned, ws = text.pin_memory(), [weight(4096, 4096, BF16) for _ in range(16)]

    def run(ids):
        def step():
            y = F.embedding(ids.to(GPU, non_blocking=True), table)
            for w in ws:
                y = F.linear(y, w)
            return y
        return step
    return run(text), run(pinned)


@null("compile_model", "cuda_graphs", "cut_host_work")
def null_graph_of_a_wide_training_step():
    x, ws = rand(8192, 8192, dtype=BF16), [weight(8192, 8192, BF16).requires_grad_() for _ in range(3)]

    def step():
        y = x
        for w in ws:
            y = F.relu(F.linear(y, w))
        return torch.autograd.grad(y.sum(), ws)
    return step, captured(step)


@null("cast_weights_once")
def null_autocast_of_a_long_prompt():
    x = rand(65536, 2048)

    def make(dtype):
        model = nn.Sequential(nn.Linear(2048, 8192), nn.ReLU(), nn.Linear(8192, 2048)).to(GPU).to(dtype)
        seen = x.to(BF16)

        def step():
            with torch.autocast(GPU, BF16):
                return model(seen)
        return without_gradients(step)
    return make(torch.float32), make(BF16)


@null("tensor_cores")
def null_float32_sums_beside_products_in_bf16():
    x, w, shares = rand(16384, 4096, dtype=BF16), weight(4096, 4096, BF16), rand(4096, 8)

    def work():
        y = F.linear(F.linear(x, w), w)
        return y.float().mean(0) @ shares
    return with_precision("highest", work), with_precision("high", work)


@null("remove_fills", "stop_allocating")
def null_small_sums_cleared_beside_long_products():
    x, ws = rand(16384, 4096, dtype=BF16), [weight(4096, 4096, BF16) for _ in range(6)]

    def run(made):
        def step():
            sums, y = made(6, 4096, device=GPU), x
            for i, w in enumerate(ws):
                y = F.linear(y, w)
                sums[i] = y[:64].float().sum(0)
            return sums, y
        return step
    return run(torch.zeros), run(torch.empty)
