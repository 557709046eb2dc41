# SPDX-License-Identifier: Apache-2.0
"""A thirteenth set, of four classes of faults alone: 48 pairs and 8 null pairs.

The classes are work that is not needed, results that are computed again, ops that are slow by their nature, and kernels of one's
own. Written on 27 November 2026 by a hand that had not read the rules, before any of the programs was measured. As in
pairs_twelfth.py; half of it is set aside by the hash of its names. What is right for each pair was written down before any
measurement. pairs_thirteenth_steps.py has the first class, pairs_thirteenth_data.py the second and the third. This file has the
kernels in CUDA C and the null pairs. For some of these programs a trace may show too little. `pairs_listing.py` prints the set
without PyTorch.
"""

import torch
import torch.nn.functional as F

from pairs_eleventh import cuda_kernel
from pairs_practice import BF16
from pairs_sixth import ints
from pairs_thirteenth_data import PAIRS, layer_of  # noqa: F401  run.py reads the pairs
from pairs_thirteenth_steps import alike
from pairs_unseen import GPU, null, pair, rand, weight


# ---------------------------------------------------------------- loads and stores side by side

BLUR = """extern "C" __global__ void blur_by_NAME(const float* pictures, float* out, int wide, int tall) {
    int x = blockIdx.x * ACROSS + threadIdx.X, y = blockIdx.y * DOWN + threadIdx.Y;
    const float* from = pictures + (size_t)blockIdx.z * wide * tall;
    float total = 0.0f;
    for (int j = -1; j <= 1; ++j)
        for (int i = -1; i <= 1; ++i) {
            int at = min(max(y + j, 0), tall - 1) * wide + min(max(x + i, 0), wide - 1);
            total += from[at] * (float)((2 - j * j) * (2 - i * i));
        }
    out[((size_t)blockIdx.z * tall + y) * wide + x] = total / 16.0f;
}"""


@pair("coalesce", "tune_kernel")
def own_blur_whose_threads_run_down_the_columns():
    count, size = 8, 2048
    pictures, out = rand(count, size, size), torch.empty(count, size, size, device=GPU)

    def run(name, *words):
        source = BLUR
        for word, value in zip(("NAME", "ACROSS", "DOWN", "X", "Y"), (name, *words)):
            source = source.replace(word, value)
        kernel, across, down = cuda_kernel(source, f"blur_by_{name}"), int(words[0]), int(words[1])

        def step():
            kernel((size // across, size // down, count), (32, 8, 1), [pictures, out, size, size])
            return F.avg_pool2d(pictures - out, 4)
        return step
    return alike(run("columns", "8", "32", "y", "x"), run("rows", "32", "8", "x", "y"))


BY_THREAD = """extern "C" __global__ void score_by_thread(const float* items, const float* user, float* out, int width) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    float total = 0.0f, size = 0.0f;
    for (int k = 0; k < width; ++k) {
        float value = items[(size_t)row * width + k];
        total += value * user[k];
        size += value * value;
    }
    out[row] = total * rsqrtf(size + 1e-6f);
}"""

BY_WARP = """extern "C" __global__ void score_by_warp(const float* items, const float* user, float* out, int width) {
    int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    float total = 0.0f, size = 0.0f;
    for (int k = lane; k < width; k += 32) {
        float value = items[(size_t)row * width + k];
        total += value * user[k];
        size += value * value;
    }
    for (int half = 16; half > 0; half /= 2) {
        total += __shfl_xor_sync(0xffffffffu, total, half);
        size += __shfl_xor_sync(0xffffffffu, size, half);
    }
    if (lane == 0) out[row] = total * rsqrtf(size + 1e-6f);
}"""


@pair("coalesce", "tune_kernel")
def own_scores_of_items_by_a_thread_for_each():
    count, width = 1 << 18, 192
    items, user, w = rand(count, width), rand(1, width), weight(width, width)
    out = torch.empty(count, device=GPU)

    def run(source, name, rows):
        kernel = cuda_kernel(source, name)

        def step():
            kernel((count // rows, 1, 1), (256, 1, 1), [items, torch.tanh(F.linear(user, w)), out, width])
            return out.topk(100).values, out.mean()
        return step
    return alike(run(BY_THREAD, "score_by_thread", 256), run(BY_WARP, "score_by_warp", 8))


OPTIONS = """extern "C" __global__ void price_in_NAME(const float* spots, float* out, int strike) {
    size_t first = (size_t)blockIdx.x * 256 * 16;
    for (int n = 0; n < 16; ++n) {
        size_t i = first + PLACE;
        float ratio = spots[i] / (float)strike;
        float d = (logf(ratio) + 0.045f) / 0.3f;
        float near = 0.5f * erfcf(-d * 0.70710678f), far = 0.5f * erfcf(-(d - 0.3f) * 0.70710678f);
        out[i] = (float)strike * (ratio * near - far);
    }
}"""


@pair("coalesce", "tune_kernel")
def own_prices_of_options_in_a_run_for_each_thread():
    count = 1 << 26
    spots, out = 100 * torch.exp(rand(count, scale=0.2)), torch.empty(count, device=GPU)

    def run(name, place):
        kernel = cuda_kernel(OPTIONS.replace("NAME", name).replace("PLACE", place), f"price_in_{name}")

        def step():
            kernel((count // 4096, 1, 1), (256, 1, 1), [spots, out, 100])
            return out.view(1024, -1).mean(1)
        return step
    return alike(run("runs", "threadIdx.x * 16 + n"), run("turns", "n * 256 + threadIdx.x"))


# ---------------------------------------------------------------- banks of shared memory

SCAN = """#define AT(i) ((i) SPREAD)
extern "C" __global__ void scan_NAME(const float* x, float* out, int length) {
    __shared__ float part[1024 + 32];
    const float* from = x + (size_t)blockIdx.x * length;
    int t = threadIdx.x, offset = 1;
    part[AT(t)] = from[t];
    part[AT(t + 512)] = from[t + 512];
    for (int d = 512; d > 0; d /= 2) {
        __syncthreads();
        if (t < d) part[AT(offset * (2 * t + 2) - 1)] += part[AT(offset * (2 * t + 1) - 1)];
        offset *= 2;
    }
    __syncthreads();
    if (t == 0) part[AT(1023)] = 0.0f;
    for (int d = 1; d < 1024; d *= 2) {
        offset /= 2;
        __syncthreads();
        if (t < d) {
            int low = AT(offset * (2 * t + 1) - 1), high = AT(offset * (2 * t + 2) - 1);
            float kept = part[low];
            part[low] = part[high];
            part[high] += kept;
        }
    }
    __syncthreads();
    out[(size_t)blockIdx.x * length + t] = part[AT(t)];
    out[(size_t)blockIdx.x * length + t + 512] = part[AT(t + 512)];
}"""


@pair("avoid_bank_conflicts", "shared_memory_conflicts", "tune_kernel")
def own_shares_of_rays_summed_up_in_shared_memory():
    rays, samples = 65536, 1024
    dense, out = torch.rand(rays, samples, device=GPU) * 0.01, torch.empty(rays, samples, device=GPU)

    def run(name, spread):
        kernel = cuda_kernel(SCAN.replace("NAME", name).replace("SPREAD", spread), f"scan_{name}")

        def step():
            kernel((rays, 1, 1), (512, 1, 1), [dense, out, samples])
            return torch.exp(-out).mean(1)
        return step
    return alike(run("plain", ""), run("spread", "+ ((i) >> 5)"))


SOFTEN = """extern "C" __global__ void soften_rows_PAD(const float* x, float* out) {
    __shared__ float tile[128][32 + PAD];
    const float* from = x + (size_t)blockIdx.x * 4096;
    float* to = out + (size_t)blockIdx.x * 4096;
    for (int i = threadIdx.x; i < 4096; i += 128) tile[i / 32][i % 32] = from[i];
    __syncthreads();
    float most = tile[threadIdx.x][0], total = 0.0f;
    for (int k = 1; k < 32; ++k) most = fmaxf(most, tile[threadIdx.x][k]);
    for (int k = 0; k < 32; ++k) total += tile[threadIdx.x][k] = expf(tile[threadIdx.x][k] - most);
    for (int k = 0; k < 32; ++k) tile[threadIdx.x][k] /= total;
    __syncthreads();
    for (int i = threadIdx.x; i < 4096; i += 128) to[i] = tile[i / 32][i % 32];
}"""


@pair("avoid_bank_conflicts", "shared_memory_conflicts", "tune_kernel")
def own_shares_of_32_experts_in_rows_of_32_words():
    tokens = 1 << 20
    x, w, out = rand(tokens, 64), weight(32, 64), torch.empty(1 << 20, 32, device=GPU)

    def run(pad):
        kernel = cuda_kernel(SOFTEN.replace("PAD", pad), f"soften_rows_{pad}")

        def step():
            kernel((tokens // 128, 1, 1), (128, 1, 1), [F.linear(x, w), out])
            return out.mean(0)
        return step
    return alike(run("0"), run("1"))


# ---------------------------------------------------------------- launches and registers

ONE_LOAD = """extern "C" __global__ void squares_one_load(const float* x, float* out, int count) {
    __shared__ float part[512];
    float total = 0.0f;
#pragma unroll 1
    for (int i = blockIdx.x * 512 + threadIdx.x; i < count; i += gridDim.x * 512) total += x[i] * x[i];
    part[threadIdx.x] = total;
    for (int half = 256; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    }
    if (threadIdx.x == 0) atomicAdd(out, part[0]);
}"""

MANY_LOADS = """extern "C" __global__ void squares_many_loads(const float4* x, float* out, int count) {
    __shared__ float part[512];
    float total = 0.0f;
#pragma unroll 4
    for (int i = blockIdx.x * 512 + threadIdx.x; i < count / 4; i += gridDim.x * 512) {
        float4 v = x[i];
        total += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
    }
    part[threadIdx.x] = total;
    for (int half = 256; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    }
    if (threadIdx.x == 0) atomicAdd(out, part[0]);
}"""


@pair("tune_kernel", "more_loads_in_flight", "stream_wider", "fill_the_device", "raise_occupancy")
def own_size_of_a_gradient_with_one_load_in_flight():
    count = 1 << 26
    grads, params, size = rand(count), rand(count), torch.zeros(1, device=GPU)

    def run(source, name, blocks):
        kernel = cuda_kernel(source, name)

        def step():
            size.zero_()
            kernel((blocks, 1, 1), (512, 1, 1), [grads, size, count])
            return torch.addcmul(params, grads, -0.01 / (size.sqrt() + 1e-6))
        return step
    return alike(run(ONE_LOAD, "squares_one_load", 132), run(MANY_LOADS, "squares_many_loads", 528))


SORTED = """extern "C" __global__ void middle_by_sorting(const float* x, float* out, int wide, int tall, int reach) {
    int i = blockIdx.x * 32 + threadIdx.x, j = blockIdx.y * 8 + threadIdx.y;
    const float* from = x + (size_t)blockIdx.z * wide * tall;
    float v[49];
    int count = 0;
    for (int b = -reach; b <= reach; ++b)
        for (int a = -reach; a <= reach; ++a) {
            float next = from[min(max(j + b, 0), tall - 1) * wide + min(max(i + a, 0), wide - 1)];
            int at = count++;
            for (; at > 0 && v[at - 1] > next; --at) v[at] = v[at - 1];
            v[at] = next;
        }
    out[((size_t)blockIdx.z * tall + j) * wide + i] = v[count / 2];
}"""

SWAPPED = """#define SWAP(a, b) { float low = fminf(v[a], v[b]); v[b] = fmaxf(v[a], v[b]); v[a] = low; }
extern "C" __global__ void middle_by_swaps(const float* x, float* out, int wide, int tall, int reach) {
    int i = blockIdx.x * 32 + threadIdx.x, j = blockIdx.y * 8 + threadIdx.y;
    const float* from = x + (size_t)blockIdx.z * wide * tall;
    float v[9];
#pragma unroll
    for (int k = 0; k < 9; ++k)
        v[k] = from[min(max(j + k / 3 - 1, 0), tall - 1) * wide + min(max(i + k % 3 - 1, 0), wide - 1)];
    SWAP(1, 2) SWAP(4, 5) SWAP(7, 8) SWAP(0, 1) SWAP(3, 4) SWAP(6, 7) SWAP(1, 2) SWAP(4, 5) SWAP(7, 8)
    SWAP(0, 3) SWAP(5, 8) SWAP(4, 7) SWAP(3, 6) SWAP(1, 4) SWAP(2, 5) SWAP(4, 7) SWAP(4, 2) SWAP(6, 4) SWAP(4, 2)
    out[((size_t)blockIdx.z * tall + j) * wide + i] = v[4];
}"""


@pair("tune_kernel", "raise_occupancy", "unify_branches")
def own_median_of_pixels_sorted_in_local_memory():
    count, size = 8, 2048
    x, out = torch.rand(count, size, size, device=GPU), torch.empty(count, size, size, device=GPU)

    def run(source, name):
        kernel = cuda_kernel(source, name)

        def step():
            kernel((size // 32, size // 8, count), (32, 8, 1), [x, out, size, size, 1])
            return (x - out).abs().mean((1, 2)), F.max_pool2d(out, 2)
        return step
    return alike(run(SORTED, "middle_by_sorting"), run(SWAPPED, "middle_by_swaps"))


CURVE = """extern "C" __global__ void tone_of_BLOCK(const int* raw, const float* curve, float* out, int count) {
    __shared__ float known[8192];
    for (int i = threadIdx.x; i < 8192; i += BLOCK) known[i] = curve[i];
    __syncthreads();
    for (int i = blockIdx.x * BLOCK + threadIdx.x; i < count; i += gridDim.x * BLOCK) out[i] = known[raw[i] & 8191];
}"""


@pair("tune_kernel", "raise_occupancy", "fill_the_device")
def own_curve_of_tones_fetched_by_many_small_blocks():
    count = 1 << 25
    raw, curve = ints(8192, count).to(torch.int32), torch.linspace(0, 1, 8192, device=GPU) ** 0.45
    out = torch.empty(count, device=GPU)

    def run(block, blocks):
        kernel = cuda_kernel(CURVE.replace("BLOCK", str(block)), f"tone_of_{block}")

        def step():
            kernel((blocks, 1, 1), (block, 1, 1), [raw, curve, out, count])
            return F.avg_pool2d(out.view(1, 1, 4096, -1), 2)
        return step
    return alike(run(64, count // 1024), run(512, 528))


# ---------------------------------------------------------------- gathers near one another

SPRINGS = """extern "C" __global__ void hold_springs(const float4* places, const int* some, const int* others,
                                                    float* out, int count) {
    __shared__ float part[256];
    float total = 0.0f;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < count; i += gridDim.x * 256) {
        float4 a = places[some[i]], b = places[others[i]];
        float x = a.x - b.x, y = a.y - b.y, z = a.z - b.z;
        float longer = sqrtf(x * x + y * y + z * z) - 0.5f;
        total += a.w * b.w * longer * longer;
    }
    part[threadIdx.x] = total;
    for (int half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    }
    if (threadIdx.x == 0) out[blockIdx.x] = part[0];
}"""


@pair("local_gathers", "coalesce")
def own_springs_of_a_cloth_listed_in_any_order():
    nodes, springs, blocks = 1 << 23, 1 << 24, 1056
    places, speeds = torch.rand(nodes, 4, device=GPU), rand(nodes, 4, scale=0.01)
    some = ints(nodes, springs)
    others = (some + 1 + ints(48, springs)) % nodes
    order = torch.argsort(some)

    def run(some, others):
        kernel, out = cuda_kernel(SPRINGS, "hold_springs"), torch.empty(blocks, device=GPU)
        some, others = some.to(torch.int32), others.to(torch.int32)

        def step():
            kernel((blocks, 1, 1), (256, 1, 1), [places + speeds, some, others, out, springs])
            return out.sum()
        return step
    return alike(run(some, others), run(some[order], others[order]))


LEVELS = """extern "C" __global__ void levels_by_NAME(const float* points, const float2* tables, float2* out, int count) {
    int point = POINT, level = LEVEL;
    float side = 16.0f;
    for (int n = 0; n < level; ++n) side *= 1.4f;
    float x = points[point * 3] * side, y = points[point * 3 + 1] * side, z = points[point * 3 + 2] * side;
    unsigned int i = (unsigned int)x, j = (unsigned int)y, k = (unsigned int)z;
    float a = x - (float)i, b = y - (float)j, c = z - (float)k, first = 0.0f, second = 0.0f;
    for (unsigned int n = 0; n < 8; ++n) {
        unsigned int p = n & 1, q = (n >> 1) & 1, r = n >> 2;
        unsigned int at = ((i + p) ^ ((j + q) * 2654435761u) ^ ((k + r) * 805459861u)) & 1048575u;
        float share = (p ? a : 1.0f - a) * (q ? b : 1.0f - b) * (r ? c : 1.0f - c);
        float2 known = tables[(size_t)level * 1048576 + at];
        first += share * known.x;
        second += share * known.y;
    }
    float2 sum;
    sum.x = first;
    sum.y = second;
    out[PLACE] = sum;
}"""


@pair("local_gathers")
def own_levels_of_a_hashed_grid_read_point_by_point():
    points, levels = 1 << 21, 16
    places, tables = torch.rand(points, 3, device=GPU), rand(levels, 1 << 20, 2)
    w_in, w_out, out = weight(64, 32), weight(4, 64), torch.empty(levels * points, 2, device=GPU)

    def run(name, point, level, place, grid, view):
        source = LEVELS
        for word, value in zip(("NAME", "POINT", "LEVEL", "PLACE"), (name, point, level, place)):
            source = source.replace(word, value)
        kernel = cuda_kernel(source, f"levels_by_{name}")

        def step():
            kernel(grid, (256, 1, 1), [places, tables, out, points])
            return F.linear(torch.relu(F.linear(view().reshape(points, 32), w_in)), w_out)
        return step
    index = "(blockIdx.x * 256 + threadIdx.x)"
    by_point = run("point", f"{index} / 16", f"{index} % 16", "point * 16 + level", (points * levels // 256, 1, 1), lambda: out)
    by_level = run("level", index, "blockIdx.y", "level * count + point", (points // 256, levels, 1),
                   lambda: out.view(levels, points, 2).transpose(0, 1))
    return alike(by_point, by_level)


# ---------------------------------------------------------------- sums within a block

VOTES = """extern "C" __global__ void votes_by_threads(const float* points, int* votes, int count) {
    int i = blockIdx.x * 256 + threadIdx.x;
    float angle = 3.14159265f / 180.0f * blockIdx.y;
    float far = points[2 * i] * cosf(angle) + points[2 * i + 1] * sinf(angle);
    atomicAdd(votes + blockIdx.y * 2048 + min(max((int)(far * 0.5f + 1024.0f), 0), 2047), 1);
}"""

VOTES_IN_BLOCKS = """extern "C" __global__ void votes_by_blocks(const float* points, int* votes, int count) {
    __shared__ int own[2048];
    for (int bin = threadIdx.x; bin < 2048; bin += 256) own[bin] = 0;
    __syncthreads();
    float angle = 3.14159265f / 180.0f * blockIdx.y, c = cosf(angle), s = sinf(angle);
    for (int i = blockIdx.x * 256 + threadIdx.x; i < count; i += gridDim.x * 256)
        atomicAdd(own + min(max((int)((points[2 * i] * c + points[2 * i + 1] * s) * 0.5f + 1024.0f), 0), 2047), 1);
    __syncthreads();
    for (int bin = threadIdx.x; bin < 2048; bin += 256)
        if (own[bin] != 0) atomicAdd(votes + blockIdx.y * 2048 + bin, own[bin]);
}"""


@pair("reduce_in_blocks", "tune_kernel")
def own_votes_for_lines_added_by_every_thread():
    points, angles = 1 << 19, 180
    way = ints(180, points) * (torch.pi / 180)
    along, away = (torch.rand(points, device=GPU) - 0.5) * 1500, (ints(40, points) - 20) * 25.0
    edges = torch.stack([away * way.cos() - along * way.sin(), away * way.sin() + along * way.cos()], 1).contiguous()
    votes = torch.zeros(angles, 2048, dtype=torch.int32, device=GPU)

    def run(source, name, blocks):
        kernel = cuda_kernel(source, name)

        def step():
            votes.zero_()
            kernel((blocks, angles, 1), (256, 1, 1), [edges, votes, points])
            known = votes.float()
            best = F.max_pool2d(known[None, None], 5, stride=1, padding=2)[0, 0]
            return torch.where(known == best, known, 0.0).view(-1).topk(40).values
        return step
    return alike(run(VOTES, "votes_by_threads", points // 256), run(VOTES_IN_BLOCKS, "votes_by_blocks", 16))


CLASSES = """extern "C" __global__ void sums_by_threads(const int* classes, const int* shades, int* sums, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    atomicAdd(sums + 2 * classes[i], 1);
    atomicAdd(sums + 2 * classes[i] + 1, shades[i]);
}"""

CLASSES_IN_BLOCKS = """extern "C" __global__ void sums_by_blocks(const int* classes, const int* shades, int* sums, int count) {
    __shared__ int own[8][32];
    own[threadIdx.x / 32][threadIdx.x % 32] = 0;
    __syncthreads();
    for (int i = blockIdx.x * 256 + threadIdx.x; i < count; i += gridDim.x * 256) {
        atomicAdd(&own[threadIdx.x / 32][2 * classes[i]], 1);
        atomicAdd(&own[threadIdx.x / 32][2 * classes[i] + 1], shades[i]);
    }
    __syncthreads();
    if (threadIdx.x >= 32) return;
    int total = 0;
    for (int warp = 0; warp < 8; ++warp) total += own[warp][threadIdx.x];
    atomicAdd(sums + threadIdx.x, total);
}"""


@pair("reduce_in_blocks", "tune_kernel")
def own_shades_of_land_summed_by_class_pixel_by_pixel():
    pixels, kinds = 1 << 22, 16
    bands, w = rand(pixels, 4), weight(kinds, 4)
    shades, sums = ints(256, pixels).to(torch.int32), torch.zeros(kinds, 2, dtype=torch.int32, device=GPU)

    def run(source, name, blocks):
        kernel = cuda_kernel(source, name)

        def step():
            sums.zero_()
            kernel((blocks, 1, 1), (256, 1, 1), [F.linear(bands, w).argmax(1).to(torch.int32), shades, sums, pixels])
            return sums[:, 1] / sums[:, 0].clamp(min=1)
        return step
    return alike(run(CLASSES, "sums_by_threads", pixels // 256), run(CLASSES_IN_BLOCKS, "sums_by_blocks", 1056))


# ---------------------------------------------------------------- what suggests itself and gains nothing

@null("reduce_problem")
def null_worth_of_each_page_computed_beside_wide_layers():
    x0, head = rand(8192, 4096, dtype=BF16), weight(1, 4096, BF16)
    layers = [(weight(16384, 4096, BF16), weight(4096, 16384, BF16)) for _ in range(2)]

    def run(worth):
        def step():
            x = x0
            for up, down in layers:
                x = layer_of(x, up, down)
            if worth:
                torch.tanh(F.linear(x[::64], head))
            return x
        return step
    return alike(run(True), run(False))


@null("reuse_result")
def null_window_built_for_each_batch_of_sound():
    sound, bands = rand(64, 1 << 18), torch.rand(513, 80, device=GPU)
    w_in, layers = weight(256, 80), [(weight(1024, 256), weight(256, 1024)) for _ in range(2)]
    known = torch.hann_window(1024, device=GPU)

    def run(window):
        def step():
            spectra = torch.fft.rfft(sound.unfold(1, 1024, 256) * window())
            x = F.linear(((spectra.real ** 2 + spectra.imag ** 2) @ bands + 1e-6).log(), w_in)
            for up, down in layers:
                x = layer_of(x, up, down)
            return x.mean(1)
        return step
    return alike(run(lambda: torch.hann_window(1024, device=GPU)), run(lambda: known))


@null("slow_op", "reduce_problem")
def null_best_of_ten_classes_by_a_choice_of_one():
    x0, head = rand(16384, 2048, dtype=BF16), weight(10, 2048, BF16)
    layers = [(weight(8192, 2048, BF16), weight(2048, 8192, BF16)) for _ in range(4)]

    def run(best):
        def step():
            x = x0
            for up, down in layers:
                x = layer_of(x, up, down)
            return best(F.linear(x, head).float())
        return step
    return alike(run(lambda scores: scores.topk(1, -1).values[:, 0]), run(lambda scores: scores.max(-1).values))


RECORDS = """extern "C" __global__ void moved_records(const float4* spots, float* out) {
    size_t i = (size_t)blockIdx.x * 256 + threadIdx.x;
    float4 s = spots[i];
    out[i] = s.w * sqrtf(s.x * s.x + s.y * s.y + s.z * s.z);
}"""

PLANES = """extern "C" __global__ void moved_planes(const float* x, const float* y, const float* z,
                                                    const float* w, float* out) {
    size_t i = (size_t)blockIdx.x * 256 + threadIdx.x;
    float a = x[i], b = y[i], c = z[i];
    out[i] = w[i] * sqrtf(a * a + b * b + c * c);
}"""


@null("coalesce", "tune_kernel")
def null_own_records_of_four_numbers_parted():
    count = 1 << 26
    spots, out = rand(count, 4), torch.empty(count, device=GPU)
    planes = [one.contiguous() for one in spots.unbind(1)]

    def run(source, name, parts):
        kernel = cuda_kernel(source, name)

        def step():
            kernel((count // 256, 1, 1), (256, 1, 1), [*parts, out])
            return out
        return step
    return alike(run(RECORDS, "moved_records", [spots]), run(PLANES, "moved_planes", planes))


TILE = """extern "C" __global__ void even_out_PAD(const float* x, float* out, int size) {
    __shared__ float tile[10][34 + PAD];
    int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 8 + threadIdx.y;
    for (int j = threadIdx.y; j < 10; j += 8)
        for (int i = threadIdx.x; i < 34; i += 32) {
            int at = min(max((int)(blockIdx.y * 8) + j - 1, 0), size - 1) * size;
            tile[j][i] = x[at + min(max((int)(blockIdx.x * 32) + i - 1, 0), size - 1)];
        }
    __syncthreads();
    int i = threadIdx.x + 1, j = threadIdx.y + 1;
    out[row * size + column] = 0.2f * (tile[j][i] + tile[j - 1][i] + tile[j + 1][i] + tile[j][i - 1] + tile[j][i + 1]);
}"""


@null("avoid_bank_conflicts", "shared_memory_conflicts", "tune_kernel")
def null_own_tile_widened_though_its_rows_are_read():
    size = 8192
    x, out = rand(size, size), torch.empty(size, size, device=GPU)

    def run(pad):
        kernel = cuda_kernel(TILE.replace("PAD", pad), f"even_out_{pad}")

        def step():
            kernel((size // 32, size // 8, 1), (32, 8, 1), [x, out, size])
            return out
        return step
    return alike(run("0"), run("1"))


MIX = """extern "C" __global__ void mix_sounds(const float4* x, const float4* y, float4* out) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    float4 a = x[i], b = y[i];
    a.x = 0.6f * a.x + 0.4f * b.x;
    a.y = 0.6f * a.y + 0.4f * b.y;
    a.z = 0.6f * a.z + 0.4f * b.z;
    a.w = 0.6f * a.w + 0.4f * b.w;
    out[i] = a;
}"""


@null("tune_kernel", "raise_occupancy")
def null_own_mix_of_sounds_in_larger_blocks():
    count = 1 << 27
    x, y, out = rand(count), rand(count), torch.empty(count, device=GPU)

    def run(block):
        kernel = cuda_kernel(MIX, "mix_sounds")

        def step():
            kernel((count // 4 // block, 1, 1), (block, 1, 1), [x, y, out])
            return out
        return step
    return alike(run(256), run(512))


HEAT = """extern "C" __global__ void heat_NAME(const float4* x, float* out, int count) {
    __shared__ float part[256];
    float total = 0.0f;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < count / 4; i += gridDim.x * 256) {
        float4 v = x[i];
        total += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
    }
    SUM
    if (threadIdx.x == 0) atomicAdd(out, total);
}"""

BY_TREE = """part[threadIdx.x] = total;
    for (int half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    }
    total = part[0];"""

BY_SHUFFLES = """for (int half = 16; half > 0; half /= 2) total += __shfl_xor_sync(0xffffffffu, total, half);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = total;
    __syncthreads();
    total = 0.0f;
    for (int warp = 0; warp < 8; ++warp) total += part[warp];"""


@null("reduce_in_blocks", "tune_kernel")
def null_own_heat_summed_by_shuffles():
    count = 1 << 28
    x, out = rand(count), torch.zeros(1, device=GPU)

    def run(name, way):
        kernel = cuda_kernel(HEAT.replace("NAME", name).replace("SUM", way), f"heat_{name}")

        def step():
            out.zero_()
            kernel((1056, 1, 1), (256, 1, 1), [x, out, count])
            return out
        return step
    return alike(run("tree", BY_TREE), run("shuffles", BY_SHUFFLES))


PAGES = """extern "C" __global__ void gather_pages(const float4* pages, const int* order, float4* out, int size) {
    const float4* from = pages + (size_t)order[blockIdx.x] * size;
    float4* to = out + (size_t)blockIdx.x * size;
    for (int i = threadIdx.x; i < size; i += 256) to[i] = from[i];
}"""


@null("local_gathers", "coalesce")
def null_own_pages_of_a_cache_gathered_in_any_order():
    pages, size = 1 << 15, 4096
    known, order = rand(pages, size), torch.randperm(pages, device=GPU)
    out = torch.empty(pages, size, device=GPU)

    def run(order):
        kernel, order = cuda_kernel(PAGES, "gather_pages"), order.to(torch.int32)

        def step():
            kernel((pages, 1, 1), (256, 1, 1), [known, order, out, size // 4])
            return out.sum(0)
        return step
    return alike(run(order), run(order.sort().values))
