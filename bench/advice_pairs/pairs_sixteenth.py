# SPDX-License-Identifier: Apache-2.0
"""A sixteenth set, spread evenly over what an expert changes at all levels: 48 pairs and 8 null pairs.

Written on 27 November 2026 by a hand that had not read the rules, before any of the programs was measured. As in
pairs_fifteenth.py; half of it is set aside by the hash of its names. What is right for each pair was written down before any
measurement. Each step takes the next of four batches, and what is constant in the real program is made once. A step returns
what its caller would read, and nothing else. `alike` runs both programs of a pair twice before they are timed, on the same
batches, and compares their results. pairs_sixteenth_steps.py has the waits, the copies, the small kernels and the parts of a
training step. pairs_sixteenth_data.py has the work that another form, order, layout or number format would do better. This
file has the kernels of one's own and the null pairs. `pairs_listing.py` prints the set without PyTorch.
"""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

import triton
import triton.language as tl

from pairs_eleventh import cuda_kernel
from pairs_eleventh_steps import learnt, replayed
from pairs_practice import BF16, without_gradients
from pairs_sixteenth_data import PAIRS  # noqa: F401  run.py reads the pairs
from pairs_sixteenth_steps import alike, four, turns
from pairs_sixth import ints
from pairs_thirteenth_data import layer_of
from pairs_unseen import GPU, null, pair, rand, weight

SYNCED = ["atoms_checked_for_nan_after_each_layer", "waves_of_few_examples_learnt_task_by_task"]


# ---------------------------------------------------------------- kernels of one's own

TURN = """extern "C" __global__ void turn_PITCH(const float* x, float* out, int size) {
    __shared__ float tile[64][PITCH];
    int column = blockIdx.x * 64 + threadIdx.x, row = blockIdx.y * 64;
    const float* from = x + (size_t)blockIdx.z * size * size;
    float* to = out + (size_t)blockIdx.z * size * size;
    for (int r = threadIdx.y; r < 64; r += 4) tile[r][threadIdx.x] = from[(size_t)(row + r) * size + column];
    __syncthreads();
    for (int r = threadIdx.y; r < 64; r += 4)
        to[(size_t)(blockIdx.x * 64 + r) * size + row + threadIdx.x] = tile[threadIdx.x][r];
}"""


@pair("avoid_bank_conflicts", "shared_memory_conflicts", "tune_kernel")
def own_turn_of_sky_maps_through_columns_of_a_tile():
    maps, size = 128, 2048
    skies, out = four(lambda: rand(maps, size, size)), torch.empty(maps, size, size, device=GPU)

    def run(pitch):
        kernel, following = cuda_kernel(TURN.replace("PITCH", str(pitch)), f"turn_{pitch}"), turns(skies)

        def step():
            kernel((size // 64, size // 64, maps), (64, 4, 1), [following(), out, size])
            return out
        return step
    return alike(run(64), run(65))


GROWN = """extern "C" __global__ void grow_NAME(const float* x, const int* kinds, float* out, int count) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    float a = x[i];
    int kind = kinds[i];
    if (kind == 0) {
        for (int n = 0; n < 64; ++n) a = a + 0.01f * a * (1.0f - a);
    } else if (kind == 1) {
        for (int n = 0; n < 64; ++n) a = a + 0.01f * sqrtf(a) * (1.0f - a);
    } else if (kind == 2) {
        for (int n = 0; n < 64; ++n) a = a + 0.01f * a / (1.0f + a) - 0.002f * a;
    } else {
        for (int n = 0; n < 64; ++n) a = a * 0.99f + 0.01f * expf(-a);
    }
    out[i] = a;
}"""


@pair("unify_branches", "tune_kernel")
def own_plants_of_four_kinds_grown_side_by_side():
    plants = 1 << 25
    kinds, starts = ints(4, plants).to(torch.int32), four(lambda: torch.rand(plants, device=GPU) + 0.1)
    out, order = torch.empty(plants, device=GPU), kinds.argsort(stable=True)

    def run(name, kinds, starts):
        kernel, following = cuda_kernel(GROWN.replace("NAME", name), f"grow_{name}"), turns(starts)

        def step():
            kernel((plants // 256, 1, 1), (256, 1, 1), [following(), kinds, out, plants])
            return {"mean": out.mean(), "spread": out.std(), "most": out.amax()}
        return step
    return alike(run("mixed", kinds, starts), run("sorted", kinds[order], [x[order] for x in starts]))


@triton.jit
def likeness_kernel(a, b, out, words, inner, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr):
    row, column = tl.program_id(1) * ROWS + tl.arange(0, ROWS), tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    deep = tl.arange(0, DEPTH)
    total = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for start in range(0, inner, DEPTH):
        left = tl.load(a + row[:, None] * inner + (start + deep)[None, :])
        right = tl.load(b + column[None, :] * inner + (start + deep)[:, None])
        total += tl.dot(left, right)
    tl.store(out + row[:, None] * words + column[None, :], total)


@pair("reuse_data", "tune_kernel")
def own_likeness_of_texts_in_tiles_of_32():
    texts, words, inner = 8192, 8192, 2048
    asked, known = four(lambda: rand(texts, inner, dtype=BF16)), rand(words, inner, dtype=BF16)
    out = torch.empty(texts, words, device=GPU)

    def run(rows, columns, depth, warps):
        following = turns(asked)

        def step():
            grid = (words // columns, texts // rows)
            likeness_kernel[grid](following(), known, out, words, inner, rows, columns, depth, num_warps=warps, num_stages=3)
            return out.amax(1)
        return step
    return alike(run(32, 32, 32, 4), run(128, 128, 64, 8))


# ---------------------------------------------------------------- what suggests itself and gains nothing

@null("cuda_graphs", "cut_host_work")
def null_graph_of_large_skies_sharpened():
    skies, size, rounds = 32, 1024, 5
    nights, far = four(lambda: torch.rand(skies, size, size, device=GPU) + 0.1), torch.arange(size, device=GPU) - size // 2
    blur = torch.exp(-(far[:, None] ** 2 + far ** 2) / 18.0)
    known = torch.fft.rfft2(torch.fft.ifftshift(blur / blur.sum()))

    def sharpened(x):
        sky = torch.ones_like(x)
        for _ in range(rounds):
            seen = torch.fft.irfft2(torch.fft.rfft2(sky) * known, s=(size, size))
            sky = sky * torch.fft.irfft2(torch.fft.rfft2(x / seen.clamp(min=1e-3)) * known.conj(), s=(size, size))
        return sky

    def by_graph():
        following, room = turns(nights), nights[0].clone()
        replay = replayed(lambda: sharpened(room))

        def step():
            room.copy_(following())
            return replay()
        return step
    following = turns(nights)
    return alike(lambda: sharpened(following()), by_graph())


@null("fused_optimizer")
def null_fused_update_of_narrow_convolutions_over_large_maps():
    pictures, size, width = 16, 512, 32
    known = four(lambda: (rand(pictures, 3, size, size), rand(pictures, 3, size, size)))

    def make(**options):
        torch.manual_seed(1)
        parts = [nn.Conv2d(3, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1), nn.ReLU(),
                 nn.Conv2d(width, 3, 3, padding=1)]
        model, following = nn.Sequential(*parts).to(GPU, memory_format=torch.channels_last), turns(known)

        def loss():
            x, goal = following()
            return F.l1_loss(model(x.to(memory_format=torch.channels_last)).float(), goal)
        return learnt(model, loss, **options)
    return alike(make(foreach=True), make(fused=True))


@null("pin_memory", "overlap_copies")
def null_poses_sent_from_pageable_memory_before_long_layers():
    points, width, wide, depth = 32768, 1024, 4096, 4
    x_all, poses = rand(points, width, dtype=BF16), [torch.randn(width) for _ in range(4)]
    layers = [(weight(wide, width, BF16), weight(width, wide, BF16)) for _ in range(depth)]

    def run(poses):
        following = turns(poses)

        def step():
            x = x_all + following().to(GPU, non_blocking=True).to(BF16)
            for up, down in layers:
                x = layer_of(x, up, down)
            return x.float().mean(0)
        return without_gradients(step)
    return alike(run(poses), run([pose.pin_memory() for pose in poses]))


@null("recompute_less")
def null_checkpoint_of_a_narrow_head_after_wide_layers():
    rows, width, wide, kinds = 16384, 2048, 8192, 64
    known = four(lambda: (rand(rows, width), ints(kinds, rows)))

    def make(kept):
        torch.manual_seed(1)
        body = nn.Sequential(*[part for _ in range(2) for part in (nn.Linear(width, wide), nn.GELU(), nn.Linear(wide, width))])
        model = nn.ModuleList([body, nn.Sequential(nn.Linear(width, kinds), nn.ReLU(), nn.Linear(kinds, kinds))]).to(GPU)
        following = turns(known)

        def loss():
            x, kind = following()
            x = model[0](x)
            return F.cross_entropy((model[1](x) if kept else checkpoint(model[1], x, use_reentrant=False)).float(), kind)
        return learnt(model, loss)
    return alike(make(False), make(True))


@null("stop_allocating", "fuse_pointwise", "remove_copies")
def null_formulas_of_a_spread_written_in_place():
    cells, steps = 1 << 26, 8
    lands = four(lambda: torch.rand(cells, device=GPU))

    def anew(x):
        for _ in range(steps):
            x = torch.sin(x)
            x = torch.mul(x, 1.01)
        return x

    def in_place(x):
        x = torch.sin(x).mul_(1.01)
        for _ in range(steps - 1):
            x.sin_().mul_(1.01)
        return x

    def run(spread):
        following = turns(lands)
        return lambda: spread(following())
    return alike(run(anew), run(in_place))


@null("leave_float64")
def null_clock_in_float64_beside_wide_layers():
    rows, width, wide, depth = 16384, 1024, 4096, 6
    x_all = four(lambda: rand(rows, width, dtype=BF16))
    layers = [(weight(wide, width, BF16), weight(width, wide, BF16)) for _ in range(depth)]
    rates = torch.exp(-torch.arange(width // 2, device=GPU, dtype=torch.float64) / 64)

    def run(dtype):
        following, known, time = turns(x_all), rates.to(dtype), torch.arange(64, device=GPU).to(dtype)

        def step():
            angle = time[:, None] * known
            x = following().view(64, -1, width) + torch.cat([torch.sin(angle), torch.cos(angle)], 1).to(BF16)[:, None]
            for up, down in layers:
                x = layer_of(x, up, down)
            return x.float().mean(1)
        return without_gradients(step)
    return alike(run(torch.float64), run(torch.float32))


@null("slow_op", "fuse_pointwise")
def null_powers_of_gaps_written_as_products():
    atoms, near = 1 << 22, 32
    gaps = four(lambda: 1 + torch.rand(atoms, near, device=GPU))

    def by_powers(gap):
        return gap ** 2, gap ** 3

    def by_products(gap):
        square = gap * gap
        return square, square * gap

    def run(powers):
        following = turns(gaps)

        def step():
            square, cube = powers(following())
            return (torch.exp(-square) / cube).sum(1), (torch.cos(cube) * square).mean()
        return step
    return alike(run(by_powers), run(by_products))


STAGED = """extern "C" __global__ void bright_staged(const float* x, float* out) {
    __shared__ float kept[256];
    size_t i = (size_t)blockIdx.x * 256 + threadIdx.x;
    kept[threadIdx.x] = x[i];
    __syncthreads();
    out[i] = powf(fmaxf(kept[threadIdx.x], 0.0f), 0.4545f);
}"""

DIRECT = """extern "C" __global__ void bright_direct(const float* x, float* out) {
    size_t i = (size_t)blockIdx.x * 256 + threadIdx.x;
    out[i] = powf(fmaxf(x[i], 0.0f), 0.4545f);
}"""


@null("reuse_data", "tune_kernel")
def null_own_brightness_staged_in_shared_memory():
    pixels = 1 << 29
    films, out = four(lambda: torch.rand(pixels, device=GPU)), torch.empty(pixels, device=GPU)

    def run(source, name):
        kernel, following = cuda_kernel(source, name), turns(films)

        def step():
            kernel((pixels // 256, 1, 1), (256, 1, 1), [following(), out])
            return out.view(-1, 1024).mean(1)
        return step
    return alike(run(DIRECT, "bright_direct"), run(STAGED, "bright_staged"))
