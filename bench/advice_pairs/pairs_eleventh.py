# SPDX-License-Identifier: Apache-2.0
"""An eleventh set, of programs that practitioners of many fields bring: 48 pairs and 8 null pairs.

Written on 27 November 2026 by a hand that had not read the rules, and recorded on that day. As in pairs_tenth.py; half of it is set
aside by the hash of its names. What is right for each pair was written down before any measurement. The whole steps are in
pairs_eleventh_steps.py and pairs_eleventh_data.py, the smaller programs here. `alike` runs both programs of a pair once, before
they are timed, and compares their results. For some of these programs a trace may show too little. `pairs_listing.py` prints
the set without PyTorch.
"""

import ctypes
import glob
import os

import torch
import torch.nn.functional as F

import triton
import triton.language as tl

from pairs_eleventh_data import PAIRS
from pairs_eleventh_steps import alike, replayed
from pairs_practice import BF16, F16
from pairs_sixth import ints
from pairs_unseen import GPU, null, pair, rand, weight

SYNCED = ["tracks_started_again_where_they_are_lost", "reactors_advanced_by_runge_and_kutta", "null_residual_asked_after_long_sweeps"]


# ---------------------------------------------------------------- formulas, copies and places

@pair("fuse_norm", "fuse_pointwise", "compile_model")
def utterances_normalised_over_their_time():
    frames, w = rand(128, 80, 3000), rand(256, 80, 3, dtype=F16, scale=0.06)

    def by_hand(x):
        away = x - x.mean(2, keepdim=True)
        return away / torch.sqrt(away.pow(2).mean(2, keepdim=True) + 1e-5)

    def run(normed):
        return lambda: F.conv1d(normed(frames).to(F16), w, stride=2)
    return alike(run(by_hand), run(lambda x: F.layer_norm(x, (3000,))))


@pair("fuse_norm", "fuse_pointwise", "compile_model")
def next_cities_of_tours_by_shares_of_ones_own():
    q, keys = rand(64, 512, 128, dtype=BF16), rand(64, 512, 128, dtype=BF16)
    unseen = torch.rand(64, 512, 512, device=GPU) < 0.5
    unseen[:, :, 0] = True

    def by_hand(scores):
        grown = torch.exp(scores - scores.amax(-1, keepdim=True)) * unseen
        return grown / grown.sum(-1, keepdim=True)

    def by_library(scores):
        return torch.softmax(scores.masked_fill(~unseen, -float("inf")), -1)

    def run(shares):
        return lambda: shares(10 * torch.tanh((q @ keys.mT).float() * 128 ** -0.5))
    return alike(run(by_hand), run(by_library))


@pair("remove_copies", "remove_fills", "fuse_epilogue")
def maps_padded_before_each_convolution():
    layout = torch.channels_last
    x0 = rand(32, 64, 112, 112, dtype=F16).to(memory_format=layout)
    ws = [rand(64, 64, 3, 3, dtype=F16, scale=0.05).to(memory_format=layout) for _ in range(5)]

    def run(filtered):
        def step():
            x = x0
            for w in ws:
                x = torch.relu(filtered(x, w))
            return x
        return step
    return alike(run(lambda x, w: F.conv2d(F.pad(x, (1, 1, 1, 1)), w)), run(lambda x, w: F.conv2d(x, w, padding=1)))


@pair("fill_the_device", "slow_op", "fuse_norm", "reduce_problem")
def tracks_of_stereo_sound_batch_normed():
    x = rand(16, 2, 1 << 18)

    def by_library():
        return torch.relu(F.batch_norm(x, None, None, training=True))

    def by_moments():
        spread, mean = torch.var_mean(x, (0, 2), correction=0, keepdim=True)
        return torch.relu((x - mean) * torch.rsqrt(spread + 1e-5))
    return alike(by_library, by_moments)


# ---------------------------------------------------------------- kernels of one's own

def load_runtime_compiler():
    """Loads NVRTC by its path: `_compile_kernel` opens it by name alone and does not look into the packages of a wheel."""
    name = f"libnvrtc.so.{torch.version.cuda.split('.')[0]}"
    packages = os.path.dirname(torch.__path__[0])
    for place in (f"{packages}/torch/lib", f"{packages}/nvidia/*/lib", "/usr/local/cuda/lib64"):
        for path in glob.glob(os.path.join(place, name)):
            library = ctypes.CDLL(path)
            torch.cuda._utils._get_nvrtc_library = lambda: library  # some versions ask for a name without a number
            return


def cuda_kernel(source, name):
    from torch.utils import cpp_extension
    load_runtime_compiler()
    if cpp_extension.CUDA_HOME is None:
        cpp_extension.CUDA_HOME = "/usr/local/cuda"  # a place is asked for, though the kernels include nothing
    return torch.cuda._compile_kernel(source, name)


BYTES = """extern "C" __global__ void cut_bytes(const unsigned char* x, unsigned char* out, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] = x[i] > 127 ? 255 : 0;
}"""

WIDE = """extern "C" __global__ void cut_vectors(const uint4* x, uint4* out, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    uint4 v = x[i];
    v.x = __vcmpgtu4(v.x, 0x7f7f7f7fu);
    v.y = __vcmpgtu4(v.y, 0x7f7f7f7fu);
    v.z = __vcmpgtu4(v.z, 0x7f7f7f7fu);
    v.w = __vcmpgtu4(v.w, 0x7f7f7f7fu);
    out[i] = v;
}"""


@pair("stream_wider", "tune_kernel", "more_loads_in_flight")
def own_threshold_of_single_bytes():
    count = 1 << 28
    x = torch.randint(256, (count,), dtype=torch.uint8, device=GPU)
    out = torch.empty_like(x)

    def run(source, name, each):
        kernel = cuda_kernel(source, name)

        def step():
            kernel((count // each // 256, 1, 1), (256, 1, 1), [x, out, count // each])
            return out
        return step
    return alike(run(BYTES, "cut_bytes", 1), run(WIDE, "cut_vectors", 16))


BY_ATOMICS = """extern "C" __global__ void energy_by_atomics(const float* x, const float* y, float* total, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float away = x[i] - y[i];
    atomicAdd(total, away * away);
}"""

BY_BLOCKS = """extern "C" __global__ void energy_by_blocks(const float* x, const float* y, float* total, int count) {
    __shared__ float parts[8];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float away = i < count ? x[i] - y[i] : 0.0f;
    float sum = away * away;
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffffu, sum, step);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int part = 1; part < 8; ++part) sum += parts[part];
        atomicAdd(total, sum);
    }
}"""


@pair("reduce_in_blocks", "tune_kernel")
def own_energy_summed_by_every_thread():
    count = 1 << 22
    x, y, total = rand(count), rand(count), torch.zeros(1, device=GPU)

    def run(source, name):
        kernel = cuda_kernel(source, name)

        def step():
            total.zero_()
            kernel((count // 256, 1, 1), (256, 1, 1), [x, y, total, count])
            return total
        return step
    return alike(run(BY_ATOMICS, "energy_by_atomics"), run(BY_BLOCKS, "energy_by_blocks"), 0.1)


@triton.jit
def norm_in_pieces_kernel(x, out, width, BLOCK: tl.constexpr):
    row = tl.program_id(0) * width
    each = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    squares = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, width, BLOCK):
        value = tl.load(x + row + start + each).to(tl.float32)
        total += value
        squares += value * value
    mean = tl.sum(total, 0) / width
    scale = 1 / tl.sqrt(tl.sum(squares, 0) / width - mean * mean + 1e-5)
    for start in range(0, width, BLOCK):
        value = tl.load(x + row + start + each).to(tl.float32)
        tl.store(out + row + start + each, ((value - mean) * scale).to(tl.float16))


@pair("tune_kernel", "stream_wider", "more_loads_in_flight", "hide_latency", "raise_occupancy")
def own_rows_normalised_in_short_pieces():
    rows, width = 8192, 8192
    x, out = rand(rows, width, dtype=F16), torch.empty(rows, width, dtype=F16, device=GPU)

    def run(piece, warps):
        def step():
            norm_in_pieces_kernel[(rows,)](x, out, width, piece, num_warps=warps)
            return out
        return step
    return alike(run(64, 1), run(4096, 8))


@triton.jit
def distance_kernel(x, y, z, out, STRIDE: tl.constexpr, BLOCK: tl.constexpr):
    number = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = number * STRIDE
    a, b, c = tl.load(x + at), tl.load(y + at), tl.load(z + at)
    tl.store(out + number, tl.sqrt(a * a + b * b + c * c))


@pair("coalesce", "tune_kernel")
def own_distances_of_particles_kept_as_records():
    count = 1 << 24
    records, out = rand(count, 8), torch.empty(count, device=GPU)
    fields = [records[:, i].contiguous() for i in range(3)]

    def run(columns, stride):
        def step():
            distance_kernel[(count // 1024,)](*columns, out, stride, 1024, num_warps=4)
            return out
        return step
    return alike(run([records[:, i] for i in range(3)], 8), run(fields, 1))


@triton.jit
def sums_of_rows_kernel(values, starts, out, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    end = tl.load(starts + row + 1)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(tl.load(starts + row), end, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(values + at, mask=at < end, other=0.0)
    tl.store(out + row, tl.sum(total, 0))


@triton.jit
def sums_of_pieces_kernel(values, rows, starts, ends, out, BLOCK: tl.constexpr):
    piece = tl.program_id(0)
    end = tl.load(ends + piece)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(tl.load(starts + piece), end, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(values + at, mask=at < end, other=0.0)
    tl.atomic_add(out + tl.load(rows + piece), tl.sum(total, 0))


@pair("even_blocks", "fill_the_device", "tune_kernel", "whole_waves")
def own_sums_of_rows_of_which_three_are_long():
    rows, most = 8192, 4096
    lengths = [1 << 20 if row in (100, 4000, 7777) else 256 for row in range(rows)]
    starts = [0]
    for length in lengths:
        starts.append(starts[-1] + length)
    pieces = [(row, start, min(start + most, starts[row + 1]))
              for row in range(rows) for start in range(starts[row], starts[row + 1], most)]
    values, out = torch.rand(starts[-1], device=GPU), torch.empty(rows, device=GPU)
    firsts = torch.tensor(starts, dtype=torch.int32, device=GPU)
    owners, begins, ends = torch.tensor(pieces, dtype=torch.int32, device=GPU).t().contiguous().unbind(0)

    def whole():
        sums_of_rows_kernel[(rows,)](values, firsts, out, 256, num_warps=4)
        return out

    def in_pieces():
        out.zero_()
        sums_of_pieces_kernel[(len(pieces),)](values, owners, begins, ends, out, 256, num_warps=4)
        return out
    return alike(whole, in_pieces)


@triton.jit
def widened_kernel(x, scales, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at).to(tl.float32) * tl.load(scales + tl.program_id(0))
    tl.store(out + at, value.to(tl.float16))


@pair("remove_fills", "stop_allocating")
def own_weights_widened_into_a_cleared_buffer():
    count = 1 << 26
    x, scales = torch.randint(-127, 128, (count,), dtype=torch.int8, device=GPU), rand(count // 1024, scale=0.01)

    def run(made):
        def step():
            out = made(count, dtype=F16, device=GPU)
            widened_kernel[(count // 1024,)](x, scales, out, 1024, num_warps=4)
            return out
        return step
    return alike(run(torch.zeros), run(torch.empty))


# ---------------------------------------------------------------- what suggests itself and gains nothing

@null("cuda_graphs", "cut_host_work", "compile_model")
def null_graph_of_large_scatters():
    sent, ids = rand(1 << 22, 32), ints(1 << 20, 1 << 22)

    def step():
        found = sent
        for _ in range(3):
            found = torch.zeros(1 << 20, 32, device=GPU).index_add_(0, ids, found).index_select(0, ids)
            found = found * 0.25
        return found
    return alike(step, replayed(step))


@null("align_dimensions")
def null_layers_of_4104():
    x0, ws = rand(8192, 4104, dtype=F16), [weight(4104, 4104, F16) for _ in range(4)]
    x0_wide, ws_wide = F.pad(x0, (0, 56)), [F.pad(w, (0, 56, 0, 56)) for w in ws]

    def run(x0, ws):
        def step():
            x = x0
            for w in ws:
                x = F.linear(x, w)
            return x[:, :4104]
        return step
    return alike(run(x0, ws), run(x0_wide, ws_wide))


@null("fill_the_device", "slow_op", "reduce_problem")
def null_long_rows_summed_by_the_library():
    x = torch.rand(64, 1 << 22, device=GPU)
    return alike(lambda: x.sum(1), lambda: x.view(64, 1024, -1).sum(2).sum(1))


@null("remove_copies", "slow_op")
def null_einsum_of_plain_products():
    x0, ws = rand(16, 1024, 4096, dtype=BF16), [weight(4096, 4096, BF16) for _ in range(4)]

    def run(product):
        def step():
            x = x0
            for w in ws:
                x = product(x, w)
            return x
        return step
    return alike(run(lambda x, w: torch.einsum("bij,jk->bik", x, w)), run(torch.matmul))


@null("reduce_problem", "remove_copies")
def null_words_all_of_which_are_scored():
    hidden, head = rand(8192, 4096, dtype=BF16), weight(32768, 4096, BF16)

    def best(part):
        return F.linear(part, head).amax(1)
    return alike(lambda: best(hidden), lambda: torch.cat([best(part) for part in hidden.chunk(2)]))


@null("cast_weights_once", "remove_copies")
def null_input_cast_before_wide_layers():
    x, ws = rand(16384, 4096), [weight(4096, 4096, BF16) for _ in range(8)]
    x16 = x.to(BF16)

    def run(cast):
        def step():
            y = cast()
            for w in ws:
                y = F.linear(y, w)
            return y
        return step
    return alike(run(lambda: x.to(BF16)), run(lambda: x16))


@null("remove_syncs", "cut_host_work")
def null_residual_asked_after_long_sweeps():
    a, x0 = weight(8192, 8192, BF16), rand(8192, 8192, dtype=BF16)

    def run(asks):
        def step():
            x = x0
            for _ in range(4):
                x = a @ x
                size = x[:64].float().norm()
                if asks and float(size) > 1e30:
                    break
            return x, size
        return step
    return alike(run(True), run(False))


@null("quantize")
def null_products_of_short_depth_in_bf16():
    narrow = torch.float8_e4m3fn
    x, w = rand(65536, 64, dtype=BF16), weight(4096, 64, BF16)
    w8, one = w.to(narrow).t(), torch.ones((), device=GPU)
    return alike(lambda: F.linear(x, w), lambda: torch._scaled_mm(x.to(narrow), w8, scale_a=one, scale_b=one, out_dtype=BF16), 0.2)
