# SPDX-License-Identifier: Apache-2.0
"""A twentieth set, of programs that users of many fields write: 36 pairs and 14 null pairs.

Written on 28 November 2026 by a hand that had not read the rules, before any of the programs was measured. As in
pairs_eighteenth.py; half of it is set aside by the hash of its names. A comment in each pair says what is right, and was
written down before any measurement. Each step takes the next of four batches, and what is constant in the real program is made
once. A step returns what its caller would read, and nothing else. `alike` runs both programs of a pair twice before they are
timed, on the same batches, and compares their results. pairs_twentieth_steps.py has the waits, the copies, the small kernels
and the parts of a training step. pairs_twentieth_data.py has the work that another form, order, layout or number format would
do better. This file has the kernels of one's own and the null pairs. `pairs_listing.py` prints the set without PyTorch.
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from pairs_eleventh import cuda_kernel
from pairs_eleventh_steps import learnt, replayed
from pairs_practice import BF16, F16, without_gradients
from pairs_seventh_steps import blocks
from pairs_sixth import ints
from pairs_twentieth_data import PAIRS  # noqa: F401  run.py reads the pairs
from pairs_twentieth_steps import alike, four, turns
from pairs_unseen import GPU, null, pair, rand, weight, with_precision

SYNCED = ["signals_of_a_market_boosted_column_by_column", "pieces_of_voices_laid_over_each_other_one_by_one"]


def windows_of(count, ahead=1 << 20):
    """Four windows of that many numbers in one long record, each some way after the one before."""
    record = torch.rand(count + 3 * ahead, device=GPU)
    return [record[number * ahead:number * ahead + count] for number in range(4)]


# ---------------------------------------------------------------- kernels of one's own

SLOPE = """extern "C" __global__ void slope_ORDER(const float* x, float* out, int slices, int rows, int columns) {
    int i = blockIdx.x * 256 + threadIdx.x;
    int FIRST = i % FIRSTs, row = i / FIRSTs % rows, LAST = i / FIRSTs / rows;
    size_t at = ((size_t)slice * rows + row) * columns + column;
    float before = x[column > 0 ? at - 1 : at], after = x[column < columns - 1 ? at + 1 : at];
    out[at] = 0.5f * (after - before);
}"""


@pair("coalesce", "tune_kernel")
def own_slopes_of_a_head_scan_numbered_slice_by_slice():
    # Right: neighbouring threads are given neighbouring slices, a megabyte apart; they should have neighbouring columns.
    slices, rows, columns = 384, 512, 512
    heads, out = four(lambda: rand(slices, rows, columns)), torch.empty(slices, rows, columns, device=GPU)

    def run(first, last):
        source = SLOPE.replace("FIRST", first).replace("LAST", last).replace("ORDER", first)
        kernel, following = cuda_kernel(source, f"slope_{first}"), turns(heads)

        def step():
            kernel((slices * rows * columns // 256, 1, 1), (256, 1, 1), [following(), out, slices, rows, columns])
            return out
        return step
    return alike(run("slice", "column"), run("column", "slice"))


SUMS_AT_ONCE = """extern "C" __global__ void sums_at_once(const float4* x, const int* group, float* out) {
    size_t i = (size_t)blockIdx.x * 256 + threadIdx.x;
    float4 v = x[i];
    float* mine = out + group[i] * 5;
    atomicAdd(mine, v.x);
    atomicAdd(mine + 1, v.y);
    atomicAdd(mine + 2, v.z);
    atomicAdd(mine + 3, v.w);
    atomicAdd(mine + 4, 1.0f);
}"""

SUMS_IN_BLOCKS = """extern "C" __global__ void sums_in_blocks(const float4* x, const int* group, float* out) {
    __shared__ float sums[120];
    if (threadIdx.x < 120) sums[threadIdx.x] = 0.0f;
    __syncthreads();
    size_t first = (size_t)blockIdx.x * 4096 + threadIdx.x;
    for (int n = 0; n < 4096; n += 256) {
        float4 v = x[first + n];
        float* mine = sums + group[first + n] * 5;
        atomicAdd(mine, v.x);
        atomicAdd(mine + 1, v.y);
        atomicAdd(mine + 2, v.z);
        atomicAdd(mine + 3, v.w);
        atomicAdd(mine + 4, 1.0f);
    }
    __syncthreads();
    if (threadIdx.x < 120) atomicAdd(out + threadIdx.x, sums[threadIdx.x]);
}"""


@pair("reduce_in_blocks", "tune_kernel")
def own_middles_of_groups_of_shops_summed_in_global_memory():
    # Right: four million shops add to the same 120 numbers; each block can add its own up first.
    shops, groups = 1 << 22, 24
    known = four(lambda: (torch.rand(shops, 4, device=GPU), ints(groups, shops).to(torch.int32)))
    out = torch.zeros(groups, 5, device=GPU)

    def run(source, name, each):
        kernel, following = cuda_kernel(source, name), turns(known)

        def step():
            out.zero_()
            kernel((shops // each, 1, 1), (256, 1, 1), [*following(), out])
            return out[:, :4] / out[:, 4:]
        return step
    return alike(run(SUMS_AT_ONCE, "sums_at_once", 256), run(SUMS_IN_BLOCKS, "sums_in_blocks", 4096))


LAY_ONE = """extern "C" __global__ void lay_one(const unsigned char* a, const unsigned char* b, const unsigned char* share,
                                   unsigned char* out) {
    size_t i = (size_t)blockIdx.x * 256 + threadIdx.x;
    out[i] = (a[i] * share[i] + b[i] * (255 - share[i]) + 127) / 255;
}"""

LAY_SIXTEEN = """__device__ unsigned int laid(unsigned int a, unsigned int b, unsigned int share) {
    unsigned int out = 0;
#pragma unroll
    for (int n = 0; n < 32; n += 8) {
        unsigned int s = share >> n & 255;
        out |= (((a >> n & 255) * s + (b >> n & 255) * (255 - s) + 127) / 255) << n;
    }
    return out;
}
extern "C" __global__ void lay_sixteen(const uint4* a, const uint4* b, const uint4* share, uint4* out) {
    size_t i = (size_t)blockIdx.x * 256 + threadIdx.x;
    uint4 v = a[i], w = b[i], s = share[i];
    out[i] = make_uint4(laid(v.x, w.x, s.x), laid(v.y, w.y, s.y), laid(v.z, w.z, s.z), laid(v.w, w.w, s.w));
}"""


@pair("stream_wider", "tune_kernel", "more_loads_in_flight")
def own_titles_laid_over_films_byte_by_byte():
    # Right: a warp that asks for 32 bytes of each array asks for too little at once; sixteen bytes a thread do not.
    count = 1 << 29
    films = four(lambda: torch.randint(256, (count,), dtype=torch.uint8, device=GPU))
    title, share = (torch.randint(256, (count,), dtype=torch.uint8, device=GPU) for _ in range(2))
    out = torch.empty(count, dtype=torch.uint8, device=GPU)

    def run(source, name, each):
        kernel, following = cuda_kernel(source, name), turns(films)

        def step():
            kernel((count // 256 // each, 1, 1), (256, 1, 1), [following(), title, share, out])
            return out
        return step
    before, after = run(LAY_ONE, "lay_one", 1), run(LAY_SIXTEEN, "lay_sixteen", 16)
    alike(lambda: before()[::64], lambda: after()[::64])
    return before, after


NEAREST = """extern "C" __global__ void nearest_of(const float4* asked, const float4* held, float* out, int each) {
    __shared__ float room[256];
    float4 q = asked[blockIdx.x];
    const float4* from = held + (size_t)blockIdx.y * each;
    float least = 1e30f;
    for (int n = threadIdx.x; n < each; n += 256) {
        float4 v = from[n];
        float x = v.x - q.x, y = v.y - q.y, z = v.z - q.z, w = v.w - q.w;
        least = fminf(least, x * x + y * y + z * z + w * w);
    }
    room[threadIdx.x] = least;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half) room[threadIdx.x] = fminf(room[threadIdx.x], room[threadIdx.x + half]);
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x * gridDim.y + blockIdx.y] = room[0];
}"""


@pair("fill_the_device", "tune_kernel", "raise_occupancy", "whole_waves")
def own_nearest_colours_of_twelve_pixels_sought_by_twelve_blocks():
    # Right: twelve blocks leave 120 multiprocessors with nothing to do; 128 blocks for each pixel fill them.
    pixels, colours = 12, 1 << 24
    known, held = four(lambda: torch.rand(pixels, 4, device=GPU)), torch.rand(colours, 4, device=GPU)

    def run(parts):
        kernel, following, out = cuda_kernel(NEAREST, "nearest_of"), turns(known), torch.empty(pixels, parts, device=GPU)

        def step():
            kernel((pixels, parts, 1), (256, 1, 1), [following(), held, out, colours // parts])
            return out.amin(1).sqrt()
        return step
    return alike(run(1), run(128))


MIX = """extern "C" __global__ void mix_three(const float* x, const float* gain, const float* shift, float* out) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = x[i] * gain[i] + shift[i];
}"""


@pair("raise_occupancy", "tune_kernel", "more_loads_in_flight", "stream_wider")
def own_calibration_of_a_telescope_in_blocks_of_one_warp():
    # Right: a multiprocessor holds 32 blocks, so blocks of one warp fill half of it; blocks of eight warps fill it.
    count = 1 << 29
    frames, out = windows_of(count), torch.empty(count, device=GPU)
    gain, shift = (torch.rand(count, device=GPU) for _ in range(2))

    def run(threads):
        kernel, following = cuda_kernel(MIX, "mix_three"), turns(frames)

        def step():
            kernel((count // threads, 1, 1), (threads, 1, 1), [following(), gain, shift, out])
            return out
        return step
    before, after = run(32), run(256)
    alike(lambda: before()[::64], lambda: after()[::64])
    return before, after


# ---------------------------------------------------------------- good kernels of one's own

GROWN = """__device__ float grown(float v) {
#pragma unroll
    for (int n = 0; n < 256; ++n) v = v + v * (0.002f - 0.003f * v);
    return v;
}
"""

GROW_ONE = GROWN + """extern "C" __global__ void grow_one(const float* x, float* out) {
    size_t i = (size_t)blockIdx.x * 256 + threadIdx.x;
    out[i] = grown(x[i]);
}"""

GROW_FOUR = GROWN + """extern "C" __global__ void grow_four(const float4* x, float4* out) {
    size_t i = (size_t)blockIdx.x * 256 + threadIdx.x;
    float4 v = x[i];
    out[i] = make_float4(grown(v.x), grown(v.y), grown(v.z), grown(v.w));
}"""


@null("stream_wider", "more_loads_in_flight", "tune_kernel")
def null_own_growth_of_fish_read_four_at_once():
    # Right: nothing; five hundred operations for each number keep the arithmetic busy, whatever is read at once.
    count = 1 << 27
    ponds, out = windows_of(count), torch.empty(count, device=GPU)

    def run(source, name, each):
        kernel, following = cuda_kernel(source, name), turns(ponds)

        def step():
            kernel((count // 256 // each, 1, 1), (256, 1, 1), [following(), out])
            return out
        return step
    return alike(run(GROW_ONE, "grow_one", 1), run(GROW_FOUR, "grow_four", 4))


SMOOTH = """extern "C" __global__ void smooth_from_caches(const float* x, float* out) {
    size_t i = (size_t)blockIdx.x * 256 + threadIdx.x;
    out[i] = 0.1f * (x[i] + x[i + 4]) + 0.2f * (x[i + 1] + x[i + 3]) + 0.4f * x[i + 2];
}"""

SMOOTH_IN_TILES = """extern "C" __global__ void smooth_in_tiles(const float* x, float* out) {
    __shared__ float tile[260];
    size_t i = (size_t)blockIdx.x * 256 + threadIdx.x;
    int t = threadIdx.x;
    tile[t] = x[i];
    if (t < 4) tile[t + 256] = x[i + 256];
    __syncthreads();
    out[i] = 0.1f * (tile[t] + tile[t + 4]) + 0.2f * (tile[t + 1] + tile[t + 3]) + 0.4f * tile[t + 2];
}"""


@null("reuse_data", "tune_kernel")
def null_own_smoothing_of_a_seismograph_in_tiles():
    # Right: nothing; the cache of each multiprocessor serves the five reads, and memory sets the pace.
    count = 1 << 30
    records, out = [one[:count + 4] for one in windows_of(count + 64)], torch.empty(count, device=GPU)

    def run(source, name):
        kernel, following = cuda_kernel(source, name), turns(records)

        def step():
            kernel((count // 256, 1, 1), (256, 1, 1), [following(), out])
            return out
        return step
    before, after = run(SMOOTH, "smooth_from_caches"), run(SMOOTH_IN_TILES, "smooth_in_tiles")
    alike(lambda: before()[::64], lambda: after()[::64])
    return before, after


FARTHEST = """extern "C" __global__ void farthest_THREADS(const float4* x, const float4* y, float* out) {
    __shared__ float room[THREADS];
    size_t first = (size_t)blockIdx.x * 2048;
    float most = 0.0f;
#pragma unroll 4
    for (int n = threadIdx.x; n < 2048; n += THREADS) {
        float4 v = x[first + n], w = y[first + n];
        most = fmaxf(fmaxf(fmaxf(fabsf(v.x - w.x), fabsf(v.y - w.y)), fmaxf(fabsf(v.z - w.z), fabsf(v.w - w.w))), most);
    }
    room[threadIdx.x] = most;
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) room[threadIdx.x] = fmaxf(room[threadIdx.x], room[threadIdx.x + half]);
    }
    if (threadIdx.x == 0) out[blockIdx.x] = room[0];
}"""


@null("raise_occupancy", "tune_kernel", "whole_waves")
def null_own_farthest_points_of_two_runs_in_larger_blocks():
    # Right: nothing; wide reads by 256 threads of a block already take memory at its speed.
    rows, width = 1 << 17, 8192
    runs, other, out = windows_of(rows * width), torch.rand(rows * width, device=GPU), torch.empty(rows, device=GPU)

    def run(threads):
        source = FARTHEST.replace("THREADS", str(threads))
        kernel, following = cuda_kernel(source, f"farthest_{threads}"), turns(runs)

        def step():
            kernel((rows, 1, 1), (threads, 1, 1), [following(), other, out])
            return out
        return step
    return alike(run(256), run(512))


LIKENESS = """extern "C" __global__ void likeness_STEP(const float4* x, const float4* y, float* out) {
    __shared__ float room[256];
    size_t first = (size_t)blockIdx.x * 8192;
    float sum = 0.0f;
#pragma unroll 4
    for (int n = threadIdx.x; n < 8192; n += 256) {
        float4 v = x[first + n], w = y[first + n];
        sum += v.x * w.x + v.y * w.y + v.z * w.z + v.w * w.w;
    }
    room[threadIdx.x] = sum;
    for (int half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) room[threadIdx.x] += room[threadIdx.x + half];
    }
    if (threadIdx.x == 0) STORE;
}"""


@null("reduce_in_blocks", "tune_kernel")
def null_own_likeness_of_two_songs_added_by_each_block():
    # Right: nothing; each block adds up 32768 products before it adds once to the one number.
    count = 1 << 30
    songs, other, blocks_of = windows_of(count), torch.rand(count, device=GPU), count // 32768

    def run(name, store, out):
        source = LIKENESS.replace("STEP", name).replace("STORE", store)
        kernel, following = cuda_kernel(source, f"likeness_{name}"), turns(songs)

        def step():
            if len(out) == 1:
                out.zero_()
            kernel((blocks_of, 1, 1), (256, 1, 1), [following(), other, out])
            return out.sum() / count
        return step
    return alike(run("added", "atomicAdd(out, room[0])", torch.zeros(1, device=GPU)),
                 run("kept", "out[blockIdx.x] = room[0]", torch.zeros(blocks_of, device=GPU)))


# ---------------------------------------------------------------- ops of the library near their roof

@null("tensor_cores")
def null_filters_of_galaxies_in_float32():
    # Right: nothing; the library of convolutions uses TF32 for float32 by default, and there are no other products.
    skies, width, size, layout = 32, 128, 112, torch.channels_last
    known = four(lambda: rand(skies, width, size, size).to(memory_format=layout))
    filters = [rand(width, width, 3, 3, scale=(5 * width) ** -0.5).to(memory_format=layout) for _ in range(6)]

    def run(precision):
        following = turns(known)

        def step():
            x = following()
            for w in filters:
                x = torch.relu(F.conv2d(x, w, padding=1))
            return x.amax((2, 3))
        return with_precision(precision, without_gradients(step))
    return alike(run("highest"), run("high"))


@null("flash_attention")
def null_long_calls_attended_by_the_library():
    # Right: nothing; the library has chosen its fused kernel by itself.
    calls, heads, length, each = 4, 16, 8192, 128
    known = four(lambda: [rand(calls, heads, length, each, dtype=BF16) for _ in range(3)])

    def run(by_name):
        following = turns(known)

        def step():
            if not by_name:
                return F.scaled_dot_product_attention(*following(), is_causal=True)
            with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
                return F.scaled_dot_product_attention(*following(), is_causal=True)
        return without_gradients(step)
    return alike(run(False), run(True))


@null("local_gathers", "coalesce", "slow_op")
def null_wide_rows_of_a_memory_read_in_any_order():
    # Right: nothing; a row of 8 KB fills many lines of memory, so its neighbours do not matter.
    rows, width = 262144, 4096
    table = torch.rand(rows, width, device=GPU).to(BF16)
    asked = four(lambda: torch.randperm(rows, device=GPU))

    def run(places):
        following = turns(places)
        return without_gradients(lambda: F.embedding(following(), table).mean(0, dtype=torch.float32))
    return alike(run(asked), run([at.sort().values for at in asked]))


@null("fuse_epilogue", "fuse_pointwise")
def null_bend_after_a_product_of_very_long_rows():
    # Right: nothing; the bend takes a hundredth of a product with rows of 28672 numbers.
    rows, width, inner = 8192, 8192, 28672
    known = four(lambda: rand(rows, inner, dtype=BF16))
    w, b = weight(width, inner, BF16), rand(width, dtype=BF16)

    def run(told):
        following = turns(known)
        return without_gradients(lambda: told(following()).amax(1).float())
    return alike(run(lambda x: torch.relu(F.linear(x, w, b))), run(lambda x: torch._addmm_activation(b, x, w.t())))


# ---------------------------------------------------------------- a busy host that the device hides

@null("cuda_graphs", "cut_host_work")
def null_wide_layers_whose_sizes_are_logged_by_hooks():
    # Right: nothing; the hooks are slow, yet the host is still ahead of products of a quarter of a millisecond.
    rows, width, depth = 8192, 3072, 32
    known = four(lambda: rand(rows, width, dtype=BF16))
    model, log = nn.Sequential(*[nn.Linear(width, width, device=GPU, dtype=BF16) for _ in range(depth)]), {}

    def hook(module, taken, given):
        log[id(module)] = [f"{type(module).__name__} {tuple(one.shape)} {one.dtype} {one.device}" for one in (*taken, given)]

    def one_by_one():
        following = turns(known)
        for layer in model:
            layer.register_forward_hook(hook)
        return without_gradients(lambda: model(following()).amax(1).float())

    def by_graph():
        following, held = turns(known), known[0].clone()
        with torch.no_grad():
            replay = replayed(lambda: model(held).amax(1).float())

        def step():
            held.copy_(following())
            return replay()
        return step
    return alike(one_by_one(), by_graph())


@null("remove_syncs", "cut_host_work", "keep_on_device")
def null_kinds_of_long_prompts_read_by_the_host():
    # Right: nothing; the host reads four numbers after each step of many milliseconds, and is soon ahead again.
    prompts, length, width, kinds = 4, 2048, 2048, 4000
    known, head = four(lambda: rand(prompts, length, width, dtype=BF16)), weight(kinds, width, BF16)
    model = blocks(3, width, 16).to(BF16)

    def run(read):
        following = turns(known)

        def step():
            scores = F.linear(model(following()).mean(1), head).float()
            if read:
                scores.argmax(1).tolist()
            return scores
        return without_gradients(step)
    return alike(run(True), run(False))


@null("cut_host_work", "feed_the_device", "keep_on_device")
def null_pages_chosen_by_python_beside_wide_layers():
    # Right: nothing; the list of pages takes Python a few milliseconds, and the device is busy for longer.
    pages, width, wide, depth, taken = 100_000, 1024, 8192, 8, 16384
    table, base = rand(pages, width, dtype=BF16), np.random.default_rng(0).permutation(pages)
    layers = [(weight(wide, width, BF16), weight(width, wide, BF16)) for _ in range(depth)]
    listed = base.tolist()

    def by_python(turn):
        return torch.tensor([listed[(7919 * number + turn) % pages] for number in range(taken)])

    def by_numpy(turn):
        return torch.from_numpy(base[(7919 * np.arange(taken) + turn) % pages])

    def run(chosen):
        following = turns([11, 222, 3333, 44444])

        def step():
            x = table[chosen(following()).pin_memory().to(GPU, non_blocking=True)]
            for up, down in layers:
                x = F.layer_norm(x + F.linear(F.silu(F.linear(x, up)), down), (width,))
            return x.amax(1).float()
        return without_gradients(step)
    return alike(run(by_python), run(by_numpy))


@null("fused_optimizer", "cut_host_work")
def null_many_small_layers_over_many_rows_moved_by_lists():
    # Right: nothing; 48 small tensors are moved in a moment, after passes over hundreds of MB.
    rows, width, depth = 262144, 256, 24
    known = four(lambda: (rand(rows, width), rand(rows, width)))

    def make(**options):
        torch.manual_seed(1)
        parts = [part for _ in range(depth) for part in (nn.Linear(width, width), nn.SiLU())]
        model, following = nn.Sequential(*parts).to(GPU), turns(known)

        def loss():
            x, goal = following()
            return F.mse_loss(model(x).float(), goal)
        return learnt(model, loss, **options)
    return alike(make(foreach=True), make(fused=True))


# ---------------------------------------------------------------- small faults beside large work

@null("remove_fills", "stop_allocating")
def null_masks_of_cells_laid_in_rooms_of_zeros_after_long_filters():
    # Right: nothing; 17 MB of zeros are a moment beside filters of some milliseconds.
    slides, width, size, layout = 16, 128, 256, torch.channels_last
    known = four(lambda: rand(slides, width, size, size, dtype=F16).to(memory_format=layout))
    filters = [rand(width, width, 3, 3, dtype=F16, scale=(5 * width) ** -0.5).to(memory_format=layout) for _ in range(6)]
    filters.append(rand(4, width, 3, 3, dtype=F16, scale=(5 * width) ** -0.5).to(memory_format=layout))

    def run(room_of):
        following = turns(known)

        def step():
            x = following()
            for w in filters:
                x = torch.relu(F.conv2d(x, w, padding=1))
            out = room_of(4, slides, size, size, device=GPU)
            for number, mask in enumerate(x.unbind(1)):
                out[number] = mask
            return out
        return without_gradients(step)
    return alike(run(torch.zeros), run(torch.empty))


@null("align_dimensions")
def null_head_of_1001_kinds_after_wide_layers():
    # Right: nothing; the one product with an odd side is a hundredth of the work.
    rows, width, wide, depth, kinds = 16384, 2048, 8192, 10, 1001
    known = four(lambda: rand(rows, width, dtype=BF16))
    layers = [(weight(wide, width, BF16), weight(width, wide, BF16)) for _ in range(depth)]
    head = weight(kinds, width, BF16)

    def run(spare):
        following, last = turns(known), F.pad(head, (0, 0, 0, spare))

        def step():
            x = following()
            for up, down in layers:
                x = F.layer_norm(x + F.linear(F.gelu(F.linear(x, up)), down), (width,))
            return F.linear(x, last)[:, :kinds].float()
        return without_gradients(step)
    return alike(run(0), run(7))
