# SPDX-License-Identifier: Apache-2.0
"""An eighteenth set, of programs that users of many fields write: 40 pairs and 12 null pairs.

Written on 28 November 2026 by a hand that had not read the rules, before any of the programs was measured. As in
pairs_seventeenth.py; half of it is set aside by the hash of its names. A comment in each pair says what is right, and was
written down before any measurement. Each step takes the next of four batches, and what is constant in the real program is made
once. A step returns what its caller would read, and nothing else. `alike` runs both programs of a pair twice before they are
timed, on the same batches, and compares their results. pairs_eighteenth_steps.py has the waits, the copies, the small kernels
and the parts of a training step. pairs_eighteenth_data.py has the work that another form, order, layout or number format would
do better. This file has the kernels of one's own and the null pairs. `pairs_listing.py` prints the set without PyTorch.
"""

from itertools import accumulate

import torch
import torch.nn.functional as F
from torch import nn

import triton
import triton.language as tl

from pairs_eighteenth_data import PAIRS  # noqa: F401  run.py reads the pairs
from pairs_eighteenth_steps import alike, four, learnt_from_clips, turns
from pairs_eleventh import cuda_kernel
from pairs_eleventh_steps import learnt, replayed
from pairs_practice import BF16, without_gradients
from pairs_seventh_steps import blocks
from pairs_sixth import ints
from pairs_thirteenth_data import layer_of
from pairs_unseen import GPU, null, pair, rand, weight

SYNCED = ["crawlers_of_a_rollout_put_back_where_one_has_fallen", "small_ranks_of_many_tenants_applied_in_a_loop"]


# ---------------------------------------------------------------- kernels of one's own

TURN_BY_THREAD = """extern "C" __global__ void turn_by_thread(const float* x, float* out, int size) {
    int column = blockIdx.x * 32 + threadIdx.x, first = blockIdx.y * 32 + threadIdx.y;
    for (int row = first; row < first + 32; row += 8) out[(size_t)column * size + row] = x[(size_t)row * size + column];
}"""

TURN_BY_TILE = """extern "C" __global__ void turn_by_tile_PITCH(const float* x, float* out, int size) {
    __shared__ float tile[32][PITCH];
    int across = blockIdx.x * 32, down = blockIdx.y * 32;
    for (int row = threadIdx.y; row < 32; row += 8)
        tile[row][threadIdx.x] = x[(size_t)(down + row) * size + across + threadIdx.x];
    __syncthreads();
    for (int row = threadIdx.y; row < 32; row += 8)
        out[(size_t)(across + row) * size + down + threadIdx.x] = tile[threadIdx.x][row];
}"""


def turned(sheets, out, source, name):
    """A step that turns the next sheet with that kernel."""
    kernel, following, size = cuda_kernel(source, name), turns(sheets), len(out)

    def step():
        kernel((size // 32, size // 32, 1), (32, 8, 1), [following(), out, size])
        return out
    return step


@pair("coalesce", "tune_kernel")
def own_turn_of_a_radar_sheet_written_down_its_columns():
    # Right: a warp writes 32 numbers of 32 rows; a tile in shared memory writes whole rows.
    size = 12288
    sheets, out = four(lambda: rand(size, size)), torch.empty(size, size, device=GPU)
    return alike(turned(sheets, out, TURN_BY_THREAD, "turn_by_thread"),
                 turned(sheets, out, TURN_BY_TILE.replace("PITCH", "33"), "turn_by_tile_33"))


COUNT_AT_ONCE = """extern "C" __global__ void count_at_once(const unsigned char* x, int* out) {
    size_t i = (size_t)blockIdx.x * 256 + threadIdx.x;
    atomicAdd(out + x[i], 1);
}"""

COUNT_IN_BLOCKS = """extern "C" __global__ void count_in_blocks(const unsigned char* x, int* out) {
    __shared__ int counts[256];
    counts[threadIdx.x] = 0;
    __syncthreads();
    size_t first = (size_t)blockIdx.x * 16384 + threadIdx.x;
    for (int n = 0; n < 16384; n += 256) atomicAdd(counts + x[first + n], 1);
    __syncthreads();
    atomicAdd(out + threadIdx.x, counts[threadIdx.x]);
}"""


@pair("reduce_in_blocks", "tune_kernel")
def own_shades_of_plates_counted_in_global_memory():
    # Right: all blocks add to the same 256 numbers; each block can count for itself first.
    pixels = 1 << 25
    plates = four(lambda: torch.randint(256, (pixels,), dtype=torch.uint8, device=GPU))
    out = torch.zeros(256, dtype=torch.int32, device=GPU)

    def run(source, name, each):
        kernel, following = cuda_kernel(source, name), turns(plates)

        def step():
            out.zero_()
            kernel((pixels // each, 1, 1), (256, 1, 1), [following(), out])
            return out.float() / pixels
        return step
    return alike(run(COUNT_AT_ONCE, "count_at_once", 256), run(COUNT_IN_BLOCKS, "count_in_blocks", 16384))


LOUD = """extern "C" __global__ void loud_ROOM(const float* x, float* out, int width) {
    __shared__ float room[ROOM];
    const float* from = x + (size_t)blockIdx.x * width;
    float sum = 0.0f;
    for (int n = threadIdx.x; n < width; n += 64) sum += from[n] * from[n];
    room[threadIdx.x] = sum;
    __syncthreads();
    for (int half = 32; half > 0; half /= 2) {
        if (threadIdx.x < half) room[threadIdx.x] += room[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = room[0];
}"""


@pair("raise_occupancy", "tune_kernel", "more_loads_in_flight", "hide_latency")
def own_loudness_of_frames_with_room_for_the_longest():
    # Right: 46 KB of shared memory, of which 256 bytes are used, leave four blocks of two warps to a multiprocessor.
    frames, width = 1 << 18, 1024
    sounds, out = four(lambda: rand(frames, width)), torch.empty(frames, device=GPU)

    def run(room):
        kernel, following = cuda_kernel(LOUD.replace("ROOM", str(room)), f"loud_{room}"), turns(sounds)

        def step():
            kernel((frames, 1, 1), (64, 1, 1), [following(), out, width])
            return out
        return step
    return alike(run(11776), run(64))


GAIN_ONE = """extern "C" __global__ void gain_one(const unsigned short* x, unsigned short* out) {
    size_t i = (size_t)blockIdx.x * 256 + threadIdx.x;
    out[i] = __float_as_uint(__uint_as_float((unsigned int)x[i] << 16) * 0.75f) >> 16;
}"""

GAIN_EIGHT = """__device__ unsigned int gained(unsigned int two) {
    unsigned int low = __float_as_uint(__uint_as_float(two << 16) * 0.75f) >> 16;
    return low | (__float_as_uint(__uint_as_float(two & 0xffff0000u) * 0.75f) & 0xffff0000u);
}
extern "C" __global__ void gain_eight(const uint4* x, uint4* out) {
    size_t i = (size_t)blockIdx.x * 256 + threadIdx.x;
    uint4 v = x[i];
    v.x = gained(v.x);
    v.y = gained(v.y);
    v.z = gained(v.z);
    v.w = gained(v.w);
    out[i] = v;
}"""


@pair("stream_wider", "tune_kernel", "more_loads_in_flight")
def own_gain_of_halves_read_one_by_one():
    # Right: two bytes a thread ask for too little at once; sixteen do not.
    count = 1 << 28
    sounds, out = four(lambda: rand(count, dtype=BF16)), torch.empty(count, dtype=BF16, device=GPU)

    def run(source, name, each):
        kernel, following = cuda_kernel(source, name), turns(sounds)

        def step():
            kernel((count // 256 // each, 1, 1), (256, 1, 1), [following(), out])
            return out
        return step
    return alike(run(GAIN_ONE, "gain_one", 1), run(GAIN_EIGHT, "gain_eight", 8))


PRODUCT_BY_THREAD = """extern "C" __global__ void product_by_thread(const float* a, const float* b, float* c, int size) {
    int column = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
    float sum = 0.0f;
    for (int n = 0; n < size; ++n) sum += a[(size_t)row * size + n] * b[(size_t)n * size + column];
    c[(size_t)row * size + column] = sum;
}"""

PRODUCT_IN_TILES = """extern "C" __global__ void product_in_tiles(const float* a, const float* b, float* c, int size) {
    __shared__ float left[16][68], right[16][64];
    int thread = threadIdx.y * 16 + threadIdx.x, down = blockIdx.y * 64, across = blockIdx.x * 64;
    float sum[4][4] = {};
    for (int start = 0; start < size; start += 16) {
        for (int n = thread; n < 1024; n += 256) {
            left[n % 16][n / 16] = a[(size_t)(down + n / 16) * size + start + n % 16];
            right[n / 64][n % 64] = b[(size_t)(start + n / 64) * size + across + n % 64];
        }
        __syncthreads();
        for (int k = 0; k < 16; ++k) {
            float l[4], r[4];
            for (int i = 0; i < 4; ++i) {
                l[i] = left[k][threadIdx.y * 4 + i];
                r[i] = right[k][threadIdx.x + 16 * i];
            }
            for (int i = 0; i < 4; ++i)
                for (int j = 0; j < 4; ++j) sum[i][j] += l[i] * r[j];
        }
        __syncthreads();
    }
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j)
            c[(size_t)(down + threadIdx.y * 4 + i) * size + across + threadIdx.x + 16 * j] = sum[i][j];
}"""


@pair("reuse_data", "tune_kernel")
def own_product_of_maps_read_anew_by_each_thread():
    # Right: each thread reads a row and a column of its own; a tile of 64 by 64 shares them.
    size = 2048
    maps, other = four(lambda: rand(size, size)), rand(size, size, scale=size ** -0.5)
    out = torch.empty(size, size, device=GPU)

    def run(source, name, each):
        kernel, following = cuda_kernel(source, name), turns(maps)

        def step():
            kernel((size // each, size // each, 1), (16, 16, 1), [following(), other, out, size])
            return out
        return step
    return alike(run(PRODUCT_BY_THREAD, "product_by_thread", 16), run(PRODUCT_IN_TILES, "product_in_tiles", 64))


AGE = """extern "C" __global__ void age_particles(const float* x, const int* kind, float* out) {
    size_t i = (size_t)blockIdx.x * 256 + threadIdx.x;
    float a = x[i];
    int which = kind[i];
    if (which == 0) {
        for (int n = 0; n < 96; ++n) a = a + 0.05f * a * (1.0f - a) * (0.9f - 0.2f * a);
    } else if (which == 1) {
        for (int n = 0; n < 48; ++n) a = 0.5f * (a + 0.6f / (a + 0.3f));
    } else if (which == 2) {
        for (int n = 0; n < 96; ++n) a = a - 0.02f * a * a * (1.2f + 0.3f * a);
    } else {
        for (int n = 0; n < 48; ++n) a = 1.0f / (1.0f + a * 0.7f) + 0.01f * a;
    }
    out[i] = a;
}"""


@pair("unify_branches", "tune_kernel")
def own_particles_of_four_kinds_aged_in_mixed_order():
    # Right: each warp walks all four branches; particles in the order of their kinds walk one.
    count = 1 << 25
    ages, kinds, out = four(lambda: torch.rand(count, device=GPU)), ints(4, count), torch.empty(count, device=GPU)
    order = kinds.argsort()

    def run(ages, kinds):
        kernel, following, which = cuda_kernel(AGE, "age_particles"), turns(ages), kinds.to(torch.int32)

        def step():
            kernel((count // 256, 1, 1), (256, 1, 1), [following(), which, out])
            return out.mean(), out.std()
        return step
    return alike(run(ages, kinds), run([age[order] for age in ages], kinds[order]))


PARTS = """extern "C" __global__ void sum_parts(const float* x, const int* first, const int* last, const int* owner,
                                     float* out) {
    __shared__ float sums[8];
    float sum = 0.0f;
    for (int n = first[blockIdx.x] + threadIdx.x; n < last[blockIdx.x]; n += 256) sum += x[n] * x[n];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x > 0) return;
    for (int warp = 1; warp < 8; ++warp) sum += sums[warp];
    atomicAdd(out + owner[blockIdx.x], sum);
}"""


def summed(lengths, most):
    """A step that sums the squares of each owner's numbers in blocks of at most that many."""
    last = list(accumulate(lengths))
    parts = [(start, min(start + most, end), owner) for owner, (end, length) in enumerate(zip(last, lengths))
             for start in range(end - length, end, most)]
    first, until, owner = (torch.tensor(column, dtype=torch.int32, device=GPU) for column in zip(*parts))
    kernel, out = cuda_kernel(PARTS, "sum_parts"), torch.zeros(len(lengths), device=GPU)

    def run(numbers):
        following = turns(numbers)

        def step():
            out.zero_()
            kernel((len(parts), 1, 1), (256, 1, 1), [following(), first, until, owner, out])
            return out
        return step
    return run


@pair("even_blocks", "fill_the_device", "tune_kernel")
def own_spendings_of_customers_of_whom_four_are_great():
    # Right: four blocks have 2000 times the work of the others, and all wait for them.
    lengths = [1 << 22 if customer % 1024 == 5 else 2048 for customer in range(4096)]
    bills = four(lambda: rand(sum(lengths)))
    return alike(summed(lengths, 1 << 30)(bills), summed(lengths, 8192)(bills))


# ---------------------------------------------------------------- good kernels of one's own

@null("avoid_bank_conflicts", "shared_memory_conflicts", "coalesce", "tune_kernel")
def null_own_turn_in_tiles_that_have_a_spare_column():
    # Right: nothing; a pitch of 33 has no conflicts, so another odd one gains nothing.
    size = 12288
    sheets, out = four(lambda: rand(size, size)), torch.empty(size, size, device=GPU)
    return alike(*(turned(sheets, out, TURN_BY_TILE.replace("PITCH", pitch), f"turn_by_tile_{pitch}")
                   for pitch in ("33", "37")))


@triton.jit
def shares_kernel(x, out, WIDTH: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * WIDTH + tl.arange(0, WIDTH)
    own = tl.load(x + at)
    own = tl.exp(own - tl.max(own, axis=0))
    tl.store(out + at, own / tl.sum(own, axis=0))


@null("raise_occupancy", "tune_kernel", "fuse_norm")
def null_own_shares_of_votes_with_more_warps():
    # Right: nothing; one pass at the speed of the memory, with four warps or eight.
    rows, width = 131072, 2048
    votes, out = four(lambda: rand(rows, width)), torch.empty(rows, width, device=GPU)

    def run(warps):
        following = turns(votes)

        def step():
            shares_kernel[(rows,)](following(), out, width, num_warps=warps)
            return out
        return step
    return alike(run(4), run(8))


SHIFT = """extern "C" __global__ void shift_EACH(const float4* x, float4* out) {
    size_t first = (size_t)blockIdx.x * 256 * EACH + threadIdx.x;
    float4 v[EACH];
    for (int n = 0; n < EACH; ++n) v[n] = x[first + n * 256];
    for (int n = 0; n < EACH; ++n)
        out[first + n * 256] = make_float4(v[n].x * 0.8f + 0.1f, v[n].y * 0.8f + 0.1f, v[n].z * 0.8f + 0.1f,
                                           v[n].w * 0.8f + 0.1f);
}"""


@null("stream_wider", "more_loads_in_flight", "tune_kernel")
def null_own_light_of_films_read_by_two_vectors():
    # Right: nothing; vectors of 16 bytes reach the speed of the memory already.
    count = 1 << 28
    films, out = four(lambda: torch.rand(count, device=GPU)), torch.empty(count, device=GPU)

    def run(each):
        kernel, following = cuda_kernel(SHIFT.replace("EACH", str(each)), f"shift_{each}"), turns(films)

        def step():
            kernel((count // 1024 // each, 1, 1), (256, 1, 1), [following(), out])
            return out
        return step
    return alike(run(1), run(2))


@null("reduce_in_blocks", "tune_kernel", "fill_the_device")
def null_own_energy_of_a_field_added_by_fewer_blocks():
    # Right: nothing; one atomic operation for 8192 numbers is few already.
    owners, each = 1, 1 << 28
    fields = four(lambda: torch.rand(each, device=GPU))

    def run(most):
        step = summed([each] * owners, most)(fields)
        return lambda: step() / each
    return alike(run(8192), run(32768))


@null("even_blocks", "fill_the_device", "tune_kernel")
def null_own_sums_of_even_rows_cut_into_parts():
    # Right: nothing; the rows are alike, and more of them than multiprocessors by far.
    lengths = [32768] * 8192
    rows = four(lambda: rand(sum(lengths)))
    return alike(summed(lengths, 32768)(rows), summed(lengths, 16384)(rows))


@triton.jit
def picked_kernel(x, order, out, WIDTH: tl.constexpr):
    row = tl.load(order + tl.program_id(0))
    own = tl.load(x + row * WIDTH + tl.arange(0, WIDTH))
    tl.store(out + row, tl.sum(own * own, axis=0))


@null("local_gathers", "coalesce", "tune_kernel")
def null_own_norms_of_long_rows_picked_in_any_order():
    # Right: nothing; each row of 8 KB is read once and whole, so their order does not matter.
    rows, width = 131072, 2048
    tables, out = four(lambda: rand(rows, width)), torch.empty(rows, device=GPU)

    def run(order):
        following = turns(tables)

        def step():
            picked_kernel[(rows,)](following(), order, out, width, num_warps=4)
            return out
        return step
    return alike(run(torch.randperm(rows, device=GPU)), run(torch.arange(rows, device=GPU)))


# ---------------------------------------------------------------- well-built steps

@null("remove_syncs", "cut_host_work")
def null_loss_of_a_large_step_printed_each_time():
    # Right: nothing; the host is far ahead of kernels this long, and waits once a step.
    stories, length, width = 16, 512, 1024
    known = four(lambda: (rand(stories, length, width), rand(stories, length, width)))

    def make(read):
        torch.manual_seed(1)
        model, following = blocks(6, width, 16), turns(known)

        def loss():
            x, goal = following()
            return F.mse_loss(model(x).float(), goal)
        step = learnt(model, loss)

        def both():
            value = step()
            if read:
                value.item()
            return value
        return both
    return alike(make(True), make(False))


@null("fused_optimizer", "cut_host_work")
def null_few_filters_of_large_maps_moved_by_the_default_adam():
    # Right: nothing; a million weights beside maps of hundreds of MB.
    lakes, size = 32, 384
    sizes = ((64, 3, 2), (128, 64, 1), (128, 128, 2), (256, 128, 1))
    known = four(lambda: (rand(lakes, 3, size, size).to(memory_format=torch.channels_last),
                          torch.rand(lakes, 1, size // 4, size // 4, device=GPU)))

    def make(**options):
        torch.manual_seed(1)
        parts = [part for out, inner, stride in sizes
                 for part in (nn.Conv2d(inner, out, 3, stride, padding=1), nn.ReLU())]
        model = nn.Sequential(*parts, nn.Conv2d(256, 1, 1)).to(GPU, memory_format=torch.channels_last)
        following = turns(known)

        def loss():
            x, goal = following()
            return F.binary_cross_entropy_with_logits(model(x).float(), goal)
        return learnt(model, loss, **options)
    return alike(make(foreach=True), make(fused=True))


@null("cuda_graphs", "cut_host_work")
def null_long_prompts_read_by_wide_blocks():
    # Right: nothing; kernels of a tenth of a millisecond hide their launches.
    chats, length, width = 4, 2048, 2048
    prompts, model = four(lambda: rand(chats, length, width, dtype=BF16)), blocks(4, width, 16).to(BF16)

    def by_graph():
        following, room = turns(prompts), prompts[0].clone()
        with torch.no_grad():
            replay = replayed(lambda: model(room))

        def step():
            room.copy_(following())
            return replay()
        return step
    following = turns(prompts)
    return alike(without_gradients(lambda: model(following())), by_graph())


@null("feed_the_device", "cut_host_work", "keep_on_device")
def null_sounds_made_by_six_workers_ahead_of_a_large_net():
    # Right: nothing; six workers make batches faster than the net takes them, so twelve gain nothing.
    return alike(learnt_from_clips(6, 32, 1536), learnt_from_clips(12, 32, 1536))


@null("reuse_result", "cut_host_work")
def null_angles_of_places_made_at_each_step_of_wide_layers():
    # Right: nothing; one small table a step beside layers of milliseconds.
    chats, length, width, wide, depth, each = 4, 4096, 2048, 8192, 3, 128
    x_all = four(lambda: rand(chats, length, width, dtype=BF16))
    layers = [(weight(wide, width, BF16), weight(width, wide, BF16)) for _ in range(depth)]

    def angles():
        pace = 10000 ** (-torch.arange(0, each, 2, device=GPU) / each)
        turn = torch.arange(length, device=GPU)[:, None] * pace
        return torch.cos(turn).to(BF16)[:, None], torch.sin(turn).to(BF16)[:, None]
    kept = angles()

    def run(known):
        following = turns(x_all)

        def step():
            cos, sin = known()
            left, right = following().view(chats, length, -1, each).chunk(2, -1)
            x = torch.cat([left * cos - right * sin, right * cos + left * sin], -1).view(chats, length, width)
            for up, down in layers:
                x = layer_of(x, up, down)
            return x.amax(2).float()
        return without_gradients(step)
    return alike(run(angles), run(lambda: kept))


@null("quantize", "tensor_cores")
def null_narrow_layers_of_many_rows_in_bf16():
    # Right: nothing; the rows are the traffic, and to make them small is one more pass over them.
    rows, width, depth, small = 131072, 512, 4, torch.float8_e4m3fn
    known = four(lambda: F.layer_norm(rand(rows, width, dtype=BF16), (width,)))
    layers = [weight(width, width, BF16) for _ in range(depth)]
    little = [(w * 16).to(small).t() for w in layers]
    one, of_weight = torch.tensor(1.0, device=GPU), torch.tensor(1 / 16, device=GPU)

    def in_fp8(x, w):
        return torch._scaled_mm(x.to(small), w, scale_a=one, scale_b=of_weight, out_dtype=BF16, use_fast_accum=True)

    def run(layers, product):
        following = turns(known)

        def step():
            x = following()
            for w in layers:
                x = F.layer_norm(x + torch.relu(product(x, w)), (width,))
            return x
        return without_gradients(step)
    return alike(run(layers, F.linear), run(little, in_fp8), most=0.15)
