# SPDX-License-Identifier: Apache-2.0
"""A twelfth set, of programs that practitioners of many fields bring: 48 pairs and 8 null pairs.

Written on 27 November 2026 by a hand that had not read the rules, and recorded on that day. As in pairs_eleventh.py; half of it is set
aside by the hash of its names. What is right for each pair was written down before any measurement. The whole steps are in
pairs_twelfth_steps.py and pairs_twelfth_data.py, the smaller programs here. `alike` runs both programs of a pair once, before
they are timed, and compares their results. For some of these programs a trace may show too little. `pairs_listing.py` prints
the set without PyTorch.
"""

import numpy as np
import torch
import torch.nn.functional as F

import triton
import triton.language as tl

from pairs_eleventh import cuda_kernel
from pairs_practice import BF16, F16, compiled
from pairs_twelfth_data import PAIRS  # noqa: F401  run.py reads it
from pairs_twelfth_steps import alike
from pairs_unseen import GPU, null, pair, rand, weight

SYNCED = ["factors_checked_in_each_update_of_a_filter", "fluid_of_a_small_lattice_moved_twelve_times",
          "null_rewards_sent_through_the_host_beside_long_layers"]


# ---------------------------------------------------------------- formulas

@triton.jit
def snake_kernel(x, bends, out, channels, length, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = row * length + tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    bend = tl.load(bends + row % channels).to(tl.float32)
    value = tl.load(x + at).to(tl.float32)
    wave = tl.sin(bend * value)
    tl.store(out + at, (value + wave * wave / (bend + 1e-4)).to(tl.float16))


@pair("fuse_pointwise", "compile_model")
def vocoder_whose_waves_bend_in_five_steps():
    count, channels, length = 16, 128, 16384
    x0 = rand(count, channels, length, dtype=F16)
    ws = [rand(channels, channels, 3, dtype=F16, scale=0.04) for _ in range(4)]
    layers = [(w, torch.rand(channels, device=GPU).to(F16) + 0.5) for w in ws]

    def by_hand(x, bends):
        bend = bends[:, None]
        return x + torch.sin(bend * x).pow(2) / (bend + 1e-4)

    def by_kernel(x, bends):
        out = torch.empty_like(x)
        snake_kernel[(count * channels, length // 1024)](x, bends, out, channels, length, 1024, num_warps=4)
        return out

    def run(bent):
        def step():
            x = x0
            for w, bends in layers:
                x = F.conv1d(bent(x, bends), w, padding=1)
            return x
        return step
    return alike(run(by_hand), run(by_kernel))


@pair("fuse_pointwise", "compile_model")
def wet_bulbs_of_a_forecast():
    warmth = 15 + 8 * rand(24, 721, 1440)
    dew = warmth - 10 * torch.rand(24, 721, 1440, device=GPU)

    def step():
        damp = 100 * torch.exp(17.625 * dew / (243.04 + dew) - 17.625 * warmth / (243.04 + warmth))
        near = warmth * torch.atan(0.151977 * (damp + 8.313659).sqrt()) + torch.atan(warmth + damp)
        return near - torch.atan(damp - 1.676331) + 0.00391838 * damp.pow(1.5) * torch.atan(0.023101 * damp) - 4.686035
    return alike(step, compiled(step))


@pair("fuse_norm", "fuse_pointwise", "compile_model")
def key_points_of_a_scene_found_by_shares():
    maps, axis = rand(64, 32, 128, 128), torch.linspace(-1, 1, 128, device=GPU)

    def by_hand():
        grown = torch.exp(maps - maps.amax((2, 3), keepdim=True))
        return grown / grown.sum((2, 3), keepdim=True)

    def by_library():
        return torch.softmax(maps.flatten(2), -1).view_as(maps)

    def run(shares):
        def step():
            share = shares()
            return torch.stack([share.sum(2) @ axis, share.sum(3) @ axis], -1)
        return step
    return alike(run(by_hand), run(by_library))


# ---------------------------------------------------------------- kernels of one's own

BY_ATOMICS = """extern "C" __global__ void fastest_by_atomics(const float* u, const float* v, const float* c,
                                                              int* out, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) atomicMax(out, __float_as_int(fabsf(u[i]) + fabsf(v[i]) + c[i]));
}"""

BY_BLOCKS = """extern "C" __global__ void fastest_by_blocks(const float* u, const float* v, const float* c,
                                                             int* out, int count) {
    __shared__ float best[256];
    float most = 0.0f;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < count; i += gridDim.x * 256)
        most = fmaxf(most, fabsf(u[i]) + fabsf(v[i]) + c[i]);
    best[threadIdx.x] = most;
    for (int half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) best[threadIdx.x] = fmaxf(best[threadIdx.x], best[threadIdx.x + half]);
    }
    if (threadIdx.x == 0) atomicMax(out, __float_as_int(best[0]));
}"""


@pair("reduce_in_blocks", "tune_kernel")
def own_fastest_cell_sought_by_every_thread():
    count = 1 << 24
    u, v, c = rand(count), rand(count), torch.rand(count, device=GPU)
    out = torch.zeros(1, dtype=torch.int32, device=GPU)

    def run(source, name, blocks):
        kernel = cuda_kernel(source, name)

        def step():
            out.zero_()
            kernel((blocks, 1, 1), (256, 1, 1), [u, v, c, out, count])
            return out.view(torch.float32)
        return step
    return alike(run(BY_ATOMICS, "fastest_by_atomics", count // 256), run(BY_BLOCKS, "fastest_by_blocks", 1056))


BY_SERIES = """extern "C" __global__ void smooth_by_series(const float* x, float* out, int series, int times) {
    int s = blockIdx.x * blockDim.x + threadIdx.x;
    if (s >= series) return;
    float level = 0.0f;
    for (int t = 0; t < times; ++t) {
        level += 0.1f * (x[s * times + t] - level);
        out[s * times + t] = level;
    }
}"""

BY_TIMES = """extern "C" __global__ void smooth_by_times(const float* x, float* out, int series, int times) {
    int s = blockIdx.x * blockDim.x + threadIdx.x;
    if (s >= series) return;
    float level = 0.0f;
    for (int t = 0; t < times; ++t) {
        level += 0.1f * (x[t * series + s] - level);
        out[t * series + s] = level;
    }
}"""


@pair("coalesce", "tune_kernel")
def own_smoothing_of_meters_stored_one_after_the_other():
    series, times = 1 << 17, 512
    x = rand(series, times)

    def run(source, name, x):
        kernel, out = cuda_kernel(source, name), torch.empty_like(x)

        def step():
            kernel((series // 128, 1, 1), (128, 1, 1), [x, out, series, times])
            return out if name == "smooth_by_series" else out.t()
        return step
    return alike(run(BY_SERIES, "smooth_by_series", x), run(BY_TIMES, "smooth_by_times", x.t().contiguous()))


DIRECT = """extern "C" __global__ void likeness_direct(const int* bits, const int* sizes, float* out, int count) {
    int i = blockIdx.y * 8 + threadIdx.y, j = blockIdx.x * 32 + threadIdx.x, both = 0;
    for (int k = 0; k < 32; ++k) both += __popc(bits[i * 32 + k] & bits[j * 32 + k]);
    out[i * count + j] = (float)both / (float)(sizes[i] + sizes[j] - both);
}"""

TILED = """extern "C" __global__ void likeness_tiled(const int* bits, const int* sizes, float* out, int count) {
    __shared__ int mine[32][33], others[32][33];
    for (int row = threadIdx.y; row < 32; row += 8) {
        mine[row][threadIdx.x] = bits[(blockIdx.y * 32 + row) * 32 + threadIdx.x];
        others[row][threadIdx.x] = bits[(blockIdx.x * 32 + row) * 32 + threadIdx.x];
    }
    __syncthreads();
    int both[4] = {0, 0, 0, 0};
    for (int k = 0; k < 32; ++k) {
        int other = others[threadIdx.x][k];
        for (int r = 0; r < 4; ++r) both[r] += __popc(mine[threadIdx.y + 8 * r][k] & other);
    }
    for (int r = 0; r < 4; ++r) {
        int i = blockIdx.y * 32 + threadIdx.y + 8 * r, j = blockIdx.x * 32 + threadIdx.x;
        out[i * count + j] = (float)both[r] / (float)(sizes[i] + sizes[j] - both[r]);
    }
}"""


@pair("reuse_data", "coalesce", "tune_kernel")
def own_likeness_of_fingerprints_without_tiles():
    count = 8192
    bits = torch.randint(-(1 << 31), 1 << 31, (count, 32), device=GPU).to(torch.int32)
    sizes = ((bits[..., None] >> torch.arange(32, dtype=torch.int32, device=GPU)) & 1).sum((1, 2)).to(torch.int32)
    out = torch.empty(count, count, device=GPU)

    def run(source, name, rows):
        kernel = cuda_kernel(source, name)

        def step():
            kernel((count // 32, count // rows, 1), (32, 8, 1), [bits, sizes, out, count])
            return out
        return step
    return alike(run(DIRECT, "likeness_direct", 8), run(TILED, "likeness_tiled", 32))


TURN = """extern "C" __global__ void turn_frames_PAD(const float* x, float* out, int size) {
    __shared__ float tile[32][32 + PAD];
    const float* from = x + (size_t)blockIdx.z * size * size;
    float* to = out + (size_t)blockIdx.z * size * size;
    for (int row = threadIdx.y; row < 32; row += 8)
        tile[row][threadIdx.x] = from[(blockIdx.y * 32 + row) * size + blockIdx.x * 32 + threadIdx.x];
    __syncthreads();
    for (int row = threadIdx.y; row < 32; row += 8)
        to[(blockIdx.x * 32 + row) * size + blockIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][row];
}"""


@pair("avoid_bank_conflicts", "shared_memory_conflicts", "tune_kernel")
def own_turn_of_frames_through_tiles_of_32():
    frames, size = 32, 2048
    x, out = rand(frames, size, size), torch.empty(frames, size, size, device=GPU)

    def run(pad):
        kernel = cuda_kernel(TURN.replace("PAD", pad), f"turn_frames_{pad}")

        def step():
            kernel((size // 32, size // 32, frames), (32, 8, 1), [x, out, size])
            return out
        return step
    return alike(run("0"), run("1"))


BY_COLUMN = """extern "C" __global__ void heat_by_column(const float* x, float* out, int wide, int tall) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= wide) return;
    float above = 0.0f, here = x[i];
    for (int row = 0; row < tall; ++row) {
        float below = row + 1 < tall ? x[(row + 1) * wide + i] : 0.0f;
        float left = i > 0 ? x[row * wide + i - 1] : 0.0f, right = i + 1 < wide ? x[row * wide + i + 1] : 0.0f;
        out[row * wide + i] = here + 0.2f * (above + below + left + right - 4.0f * here);
        above = here;
        here = below;
    }
}"""

BY_CELL = """extern "C" __global__ void heat_by_cell(const float* x, float* out, int wide, int tall) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
    if (i >= wide) return;
    float here = x[row * wide + i];
    float above = row > 0 ? x[(row - 1) * wide + i] : 0.0f, below = row + 1 < tall ? x[(row + 1) * wide + i] : 0.0f;
    float left = i > 0 ? x[row * wide + i - 1] : 0.0f, right = i + 1 < wide ? x[row * wide + i + 1] : 0.0f;
    out[row * wide + i] = here + 0.2f * (above + below + left + right - 4.0f * here);
}"""


@pair("fill_the_device", "tune_kernel", "raise_occupancy")
def own_heat_of_a_plate_swept_by_a_thread_for_each_column():
    wide, tall = 4096, 2048
    start, rooms = rand(tall, wide), [torch.empty(tall, wide, device=GPU) for _ in range(2)]

    def run(source, name, rows):
        kernel = cuda_kernel(source, name)

        def step():
            x = start
            for sweep in range(6):
                kernel((wide // 256, rows, 1), (256, 1, 1), [x, rooms[sweep % 2], wide, tall])
                x = rooms[sweep % 2]
            return x
        return step
    return alike(run(BY_COLUMN, "heat_by_column", 1), run(BY_CELL, "heat_by_cell", tall))


STATES = """extern "C" __global__ void states_of_matter(const int* order, const int* kinds, const float* mass,
                                                        const float* energy, float* out, int count) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= count) return;
    int i = order[at], kind = kinds[i];
    float r = mass[i], e = energy[i], t = e;
    if (kind == 0) {
        for (int n = 0; n < 48; ++n) t = 0.5f * (t + e / (1.0f + 0.1f * expf(-t)));
    } else if (kind == 1) {
        for (int n = 0; n < 48; ++n) t -= 0.3f * (t + 0.2f * logf(1.0f + t * t) - e);
    } else if (kind == 2) {
        for (int n = 0; n < 48; ++n) t = 0.5f * (t + sqrtf(e + r * t));
    } else {
        for (int n = 0; n < 48; ++n) t = 0.7f * t + 0.3f * (e + 0.1f * atanf(t));
    }
    out[i] = r * t;
}"""


@pair("unify_branches", "tune_kernel", "even_blocks")
def own_states_of_mixed_matter_sought_by_branches():
    count = 1 << 22
    kinds = torch.randint(4, (count,), dtype=torch.int32, device=GPU)
    mass, energy = torch.rand(count, device=GPU) + 0.5, torch.rand(count, device=GPU) + 0.5
    out = torch.empty(count, device=GPU)

    def run(order):
        kernel, order = cuda_kernel(STATES, "states_of_matter"), order.to(torch.int32)

        def step():
            kernel((count // 256, 1, 1), (256, 1, 1), [order, kinds, mass, energy, out, count])
            return out
        return step
    return alike(run(torch.arange(count, device=GPU)), run(kinds.sort(stable=True).indices))


# ---------------------------------------------------------------- what suggests itself and gains nothing

@null("fused_optimizer")
def null_plain_descent_of_wide_layers():
    x = rand(4096, 8192)

    def make(**options):
        torch.manual_seed(1)
        model = torch.nn.Sequential(*[torch.nn.Linear(8192, 8192, bias=False) for _ in range(3)]).to(GPU)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-6, **options)

        def step():
            model.zero_grad()
            with torch.autocast(GPU, BF16):
                loss = (model(x).float() - x).pow(2).mean()
            loss.backward()
            optimizer.step()
            return loss.detach()
        return step
    return alike(make(), make(fused=True))


@null("overlap_copies", "keep_on_device")
def null_statistics_fetched_beside_long_products():
    a, x0 = weight(8192, 8192, BF16), rand(8192, 8192, dtype=BF16)
    kept, side = torch.empty(256, 1024).pin_memory(), torch.cuda.Stream()

    def run(beside):
        def step():
            x = a @ x0
            seen = x[:256, :1024].float()
            if beside:
                side.wait_stream(torch.cuda.current_stream())
                with torch.cuda.stream(side):
                    kept.copy_(seen, non_blocking=True)
                seen.record_stream(side)
            else:
                kept.copy_(seen, non_blocking=True)
            for _ in range(3):
                x = a @ x
            return x
        return step
    return alike(run(False), run(True))


@null("keep_on_device", "remove_syncs", "pin_memory")
def null_rewards_sent_through_the_host_beside_long_layers():
    x0, ws = rand(8192, 8192, dtype=BF16), [weight(8192, 8192, BF16) for _ in range(6)]

    def by_numpy(rewards):
        known = rewards.cpu().numpy()
        return torch.from_numpy((known - known.mean()) / (known.std() + 1e-6)).to(GPU)

    def by_device(rewards):
        return (rewards - rewards.mean()) / (rewards.std(unbiased=False) + 1e-6)

    def run(standard):
        def step():
            x = x0
            for w in ws[:3]:
                x = F.linear(x, w)
            x = x * standard(x[:, :64].float().sum(1))[:, None].to(BF16)
            for w in ws[3:]:
                x = F.linear(x, w)
            return x
        return step
    return alike(run(by_numpy), run(by_device))


@null("fuse_norm", "fuse_pointwise", "compile_model")
def null_norm_by_hand_before_wide_products():
    x0, w_in, ws = rand(8192, 1024, dtype=BF16), weight(8192, 1024, BF16), [weight(8192, 8192, BF16) for _ in range(5)]
    gain = torch.ones(1024, dtype=BF16, device=GPU)

    def by_hand(x):
        y = x.float()
        return (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)).to(BF16) * gain

    def run(normed):
        def step():
            x = F.linear(normed(x0), w_in)
            for w in ws:
                x = F.linear(x, w)
            return x
        return step
    return alike(run(by_hand), run(lambda x: F.rms_norm(x, (1024,), gain, 1e-6)))


@null("feed_the_device", "cut_host_work", "keep_on_device", "overlap_copies")
def null_noise_made_by_numpy_while_the_device_works():
    x0, w_in, ws = rand(8192, 8192, dtype=BF16), weight(8192, 64, BF16), [weight(8192, 8192, BF16) for _ in range(5)]

    def by_numpy():
        return torch.from_numpy(np.random.default_rng(0).standard_normal((256, 64), dtype=np.float32))
    known = by_numpy().to(GPU)

    def run(noise):
        def step():
            x = x0 + F.linear(noise().to(BF16), w_in).repeat(32, 1)
            for w in ws:
                x = F.linear(x, w)
            return x
        return step
    return alike(run(lambda: by_numpy().pin_memory().to(GPU, non_blocking=True)), run(lambda: known))


@null("reduce_problem")
def null_last_position_chosen_after_its_norm():
    x0, head = rand(8, 1024, 4096, dtype=BF16), weight(32000, 4096, BF16)
    layers = [(weight(16384, 4096, BF16), weight(4096, 16384, BF16)) for _ in range(3)]

    def run(last):
        def step():
            x = x0
            for up, down in layers:
                x = x + F.linear(torch.relu(F.linear(x, up)), down)
            return F.linear(last(x), head)
        return step
    return alike(run(lambda x: F.layer_norm(x, (4096,))[:, -1]), run(lambda x: F.layer_norm(x[:, -1], (4096,))))


@triton.jit
def sum_kernel(x, y, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at) + tl.load(y + at))


@null("tune_kernel", "stream_wider", "more_loads_in_flight", "raise_occupancy")
def null_own_sum_in_wider_blocks():
    count = 1 << 27
    x, y, out = rand(count), rand(count), torch.empty(count, device=GPU)

    def run(block, warps):
        def step():
            sum_kernel[(count // block,)](x, y, out, block, num_warps=warps)
            return out
        return step
    return alike(run(1024, 4), run(2048, 8))


@null("channels_last", "remove_copies")
def null_stem_in_planes_before_wide_layers():
    pictures, w = rand(64, 3, 224, 224, dtype=F16), rand(2048, 3, 16, 16, dtype=F16, scale=0.03)
    layers = [(weight(8192, 2048, F16), weight(2048, 8192, F16)) for _ in range(10)]

    def run(layout):
        x0, w0 = pictures.to(memory_format=layout), w.to(memory_format=layout)

        def step():
            x = F.conv2d(x0, w0, stride=16).flatten(2).transpose(1, 2)
            for up, down in layers:
                x = x + F.linear(torch.relu(F.linear(F.layer_norm(x, (2048,)), up)), down)
            return x
        return step
    return alike(run(torch.contiguous_format), run(torch.channels_last))
