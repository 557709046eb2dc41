# SPDX-License-Identifier: Apache-2.0
"""A seventeenth set, spread evenly over what an expert changes at all levels: 48 pairs and 8 null pairs.

Written on 27 November 2026 by a hand that had not read the rules, before any of the programs was measured. As in
pairs_sixteenth.py; half of it is set aside by the hash of its names. What is right for each pair was written down before any
measurement. Each step takes the next of four batches, and what is constant in the real program is made once. A step returns
what its caller would read, and nothing else. `alike` runs both programs of a pair twice before they are timed, on the same
batches, and compares their results. pairs_seventeenth_steps.py has the waits, the copies, the small kernels and the parts of
a training step. pairs_seventeenth_data.py has the work that another form, order, layout or number format would do better.
This file has the kernels of one's own and the null pairs. `pairs_listing.py` prints the set without PyTorch.
"""

import torch
import torch.nn.functional as F

import triton
import triton.language as tl

from pairs_eleventh import cuda_kernel
from pairs_practice import BF16, without_gradients
from pairs_seventeenth_data import PAIRS  # noqa: F401  run.py reads the pairs
from pairs_seventeenth_steps import alike, four, turns
from pairs_thirteenth_data import layer_of
from pairs_unseen import GPU, null, pair, rand, weight, with_precision

SYNCED = ["pressure_of_a_reservoir_solved_with_steps_read_by_the_host", "ores_of_mines_guessed_from_their_wells_one_by_one"]


# ---------------------------------------------------------------- kernels of one's own

BY_THREAD = """extern "C" __global__ void energy_by_thread(const float* x, float* out, int width) {
    int row = blockIdx.x * 256 + threadIdx.x;
    const float* from = x + (size_t)row * width;
    float sum = 0.0f;
    for (int n = 0; n < width; ++n) sum += from[n] * from[n];
    out[row] = sum;
}"""

BY_WARP = """extern "C" __global__ void energy_by_warp(const float* x, float* out, int width) {
    int row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
    const float* from = x + (size_t)row * width;
    float sum = 0.0f;
    for (int n = lane; n < width; n += 32) sum += from[n] * from[n];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (lane == 0) out[row] = sum;
}"""


@pair("coalesce", "tune_kernel")
def own_energies_of_frames_summed_by_a_thread_each():
    frames, width = 1 << 19, 1024
    sounds, out = four(lambda: rand(frames, width)), torch.empty(frames, device=GPU)

    def run(source, name, each):
        kernel, following = cuda_kernel(source, name), turns(sounds)

        def step():
            kernel((frames // each, 1, 1), (256, 1, 1), [following(), out, width])
            return out
        return step
    return alike(run(BY_THREAD, "energy_by_thread", 256), run(BY_WARP, "energy_by_warp", 8))


ATOMIC = """extern "C" __global__ void dose_atomic(const float* x, float* out) {
    size_t i = (size_t)blockIdx.x * 256 + threadIdx.x;
    float own = x[i];
    atomicAdd(out, own * own);
}"""

IN_BLOCKS = """extern "C" __global__ void dose_in_blocks(const float* x, float* out) {
    __shared__ float sums[8];
    size_t first = (size_t)blockIdx.x * 4096 + threadIdx.x;
    float sum = 0.0f;
    for (int n = 0; n < 4096; n += 256) {
        float own = x[first + n];
        sum += own * own;
    }
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x > 0) return;
    for (int warp = 1; warp < 8; ++warp) sum += sums[warp];
    atomicAdd(out, sum);
}"""


@pair("reduce_in_blocks", "tune_kernel")
def own_dose_of_a_beam_added_up_cell_by_cell():
    cells = 1 << 24
    beams, out = four(lambda: torch.rand(cells, device=GPU)), torch.zeros(1, device=GPU)

    def run(source, name, each):
        kernel, following = cuda_kernel(source, name), turns(beams)

        def step():
            out.zero_()
            kernel((cells // each, 1, 1), (256, 1, 1), [following(), out])
            return out / cells
        return step
    return alike(run(ATOMIC, "dose_atomic", 256), run(IN_BLOCKS, "dose_in_blocks", 4096), most=0.1)


SWUNG = """extern "C" __global__ void swing_NAME(const float* x, float* out) {
    size_t i = (size_t)blockIdx.x * 256 + threadIdx.x;
    float a = x[i], b = LITERAL(0.5);
    for (int n = 0; n < 32; ++n) {
        b = b * LITERAL(0.998) - a * LITERAL(0.01) * (LITERAL(1.0) - a * a * LITERAL(0.16667));
        a = a + b * LITERAL(0.01);
    }
    out[i] = a;
}"""


@pair("leave_float64", "tune_kernel")
def own_pendulums_swung_with_literals_of_double():
    count = 1 << 27
    starts, out = four(lambda: torch.rand(count, device=GPU)), torch.empty(count, device=GPU)

    def run(name, literal):
        source = f"#define LITERAL(x) {literal}\n" + SWUNG.replace("NAME", name)
        kernel, following = cuda_kernel(source, f"swing_{name}"), turns(starts)

        def step():
            kernel((count // 256, 1, 1), (256, 1, 1), [following(), out])
            return out.view(-1, 1024).mean(1)
        return step
    return alike(run("double", "x"), run("float", "x##f"))


@triton.jit
def loudest_kernel(x, out, length, part, parts, BLOCK: tl.constexpr):
    row, which = tl.program_id(0), tl.program_id(1)
    at = tl.arange(0, BLOCK)
    most = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(which * part, which * part + part, BLOCK):
        most = tl.maximum(most, tl.abs(tl.load(x + row * length + start + at)))
    tl.store(out + row * parts + which, tl.max(most, axis=0))


@pair("fill_the_device", "tune_kernel", "raise_occupancy")
def own_loudest_moments_of_eight_long_recordings():
    sounds, length = 8, 1 << 24
    days = four(lambda: rand(sounds, length))

    def run(parts):
        following, room = turns(days), torch.empty(sounds, parts, device=GPU)

        def step():
            loudest_kernel[(sounds, parts)](following(), room, length, length // parts, parts, 1024, num_warps=4)
            return room.amax(1)
        return step
    return alike(run(1), run(128))


# ---------------------------------------------------------------- what suggests itself and gains nothing

@null("tensor_cores")
def null_long_sums_of_few_columns_in_full_float32():
    rows, width, columns = 32768, 16384, 1
    tables, x = four(lambda: rand(rows, width)), rand(width, columns)

    def run(precision):
        following = turns(tables)
        return with_precision(precision, lambda: torch.mv(following(), x[:, 0]))
    return alike(run("highest"), run("high"))


@null("batch_products", "cut_host_work")
def null_four_large_products_written_in_turn():
    count, size = 4, 6144
    x_all, weights = four(lambda: rand(count, size, size, dtype=BF16)), rand(count, size, size, dtype=BF16, scale=size ** -0.5)

    def in_turn(x):
        return torch.cat([(one @ w).float().mean(1) for one, w in zip(x, weights)])

    def at_once(x):
        return torch.cat([one.float().mean(1) for one in torch.bmm(x, weights)])

    def run(told):
        following = turns(x_all)
        return lambda: told(following())
    return alike(run(in_turn), run(at_once))


@null("align_dimensions")
def null_rows_of_16385_beside_aligned_layers():
    rows, padded, width, wide, depth = 16385, 16392, 2048, 8192, 4
    x_all = four(lambda: rand(rows, width, dtype=BF16))
    layers = [(weight(wide, width, BF16), weight(width, wide, BF16)) for _ in range(depth)]

    def run(spare):
        following = turns([F.pad(x, (0, 0, 0, spare)) for x in x_all])

        def step():
            x = following()
            for up, down in layers:
                x = layer_of(x, up, down)
            return x[:rows].float().mean(1)
        return without_gradients(step)
    return alike(run(0), run(padded - rows))


@null("stop_allocating")
def null_products_written_into_rooms_made_before():
    rows, width, depth = 32768, 4096, 4
    x_all, layers = four(lambda: rand(rows, width, dtype=BF16)), [weight(width, width, BF16) for _ in range(depth)]
    rooms = [torch.empty(rows, width, dtype=BF16, device=GPU) for _ in range(2)]

    def run(kept):
        following = turns(x_all)

        def step():
            x = following()
            for number, w in enumerate(layers):
                x = torch.mm(x, w, out=rooms[number % 2]) if kept else torch.mm(x, w)
            return x.float().mean(1)
        return without_gradients(step)
    return alike(run(False), run(True))


@null("overlap_copies", "pin_memory")
def null_few_words_sent_on_a_side_stream_before_long_layers():
    rows, width, wide, depth = 16384, 2048, 8192, 3
    x_all, words = rand(rows, width, dtype=BF16), [torch.randn(64, width).pin_memory() for _ in range(4)]
    layers = [(weight(wide, width, BF16), weight(width, wide, BF16)) for _ in range(depth)]

    def told(word):
        x = (x_all.view(64, -1, width) + word.to(BF16)[:, None]).view(rows, width)
        for up, down in layers:
            x = layer_of(x, up, down)
        return x.float().mean(0)

    def ahead():
        following, side, number = turns(words), torch.cuda.Stream(), [0]
        rooms = [torch.empty(64, width, device=GPU) for _ in range(2)]

        def upload(which):
            side.wait_stream(torch.cuda.current_stream())  # the step before has read that room
            with torch.cuda.stream(side):
                rooms[which].copy_(following(), non_blocking=True)
        upload(0)

        def step():
            here = number[0] % 2
            number[0] += 1
            torch.cuda.current_stream().wait_stream(side)
            upload(1 - here)
            return told(rooms[here])
        return without_gradients(step)
    following = turns(words)
    return alike(without_gradients(lambda: told(following().to(GPU, non_blocking=True))), ahead())


@null("cast_weights_once", "reuse_result")
def null_biases_cast_at_each_call_of_large_products():
    rows, width, depth = 32768, 4096, 4
    x_all = four(lambda: rand(rows, width, dtype=BF16))
    layers = [(weight(width, width, BF16), rand(width)) for _ in range(depth)]
    known = [(w, b.to(BF16)) for w, b in layers]

    def run(layers):
        following = turns(x_all)

        def step():
            x = following()
            for w, b in layers:
                x = F.linear(x, w, b.to(BF16))
            return x.float().mean(1)
        return without_gradients(step)
    return alike(run(layers), run(known))


@null("cut_host_work", "cuda_graphs")
def null_four_great_tables_averaged_in_a_loop():
    rows, width, rate = 1 << 20, 128, 0.01
    news = four(lambda: [rand(rows, width) for _ in range(4)])

    def one_by_one(slow, fast):
        for ours, theirs in zip(slow, fast):
            ours.mul_(1 - rate).add_(theirs, alpha=rate)

    def at_once(slow, fast):
        torch._foreach_mul_(slow, 1 - rate)
        torch._foreach_add_(slow, fast, alpha=rate)

    def run(moved):
        following, slow = turns(news), [torch.ones(rows, width, device=GPU) for _ in range(4)]

        def step():
            moved(slow, following())
            return [one[:64] for one in slow]
        return step
    return alike(run(one_by_one), run(at_once))


NARROW = """extern "C" __global__ void settle_narrow(const float* x, float* out) {
    size_t i = (size_t)blockIdx.x * 256 + threadIdx.x;
    float own = x[i], a = own;
    for (int n = 0; n < 64; ++n) a = 0.5f * (a + 1.7f / (a + own + 0.3f));
    out[i] = a;
}"""

WIDE = """__device__ float settled(float own) {
    float a = own;
    for (int n = 0; n < 64; ++n) a = 0.5f * (a + 1.7f / (a + own + 0.3f));
    return a;
}
extern "C" __global__ void settle_wide(const float4* x, float4* out) {
    size_t i = (size_t)blockIdx.x * 256 + threadIdx.x;
    float4 own = x[i];
    own.x = settled(own.x);
    own.y = settled(own.y);
    own.z = settled(own.z);
    own.w = settled(own.w);
    out[i] = own;
}"""


@null("stream_wider", "tune_kernel")
def null_own_long_formula_read_four_numbers_at_once():
    count = 1 << 26
    starts, out = four(lambda: torch.rand(count, device=GPU)), torch.empty(count, device=GPU)

    def run(source, name, each):
        kernel, following = cuda_kernel(source, name), turns(starts)

        def step():
            kernel((count // 256 // each, 1, 1), (256, 1, 1), [following(), out])
            return out.view(-1, 1024).mean(1)
        return step
    return alike(run(NARROW, "settle_narrow", 1), run(WIDE, "settle_wide", 4))
