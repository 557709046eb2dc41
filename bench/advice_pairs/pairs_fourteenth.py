# SPDX-License-Identifier: Apache-2.0
"""A fourteenth set, of programs whose data changes from step to step: 48 pairs and 8 null pairs.

Written on 27 November 2026 by a hand that had not read the rules, before any of the programs was measured. As in
pairs_thirteenth.py; half of it is set aside by the hash of its names. What is right for each pair was written down before any
measurement. Each step takes the next of four batches, and what is constant in the real program is made once. A step returns
what its caller would read, and nothing else. `alike` runs both programs of a pair twice before they are timed, on the same
batches, and compares their results. pairs_fourteenth_steps.py has the results that nobody reads and those of which a part is
read, and some other faults. pairs_fourteenth_data.py has the results that are computed again. This file has the kernels in
CUDA C, more of the other faults and the null pairs. For some of these programs a trace may show too little.
`pairs_listing.py` prints the set without PyTorch.
"""

import torch
import torch.nn.functional as F
from torch import nn

import triton
import triton.language as tl

from pairs_eleventh import cuda_kernel
from pairs_eleventh_steps import learnt, replayed
from pairs_fourteenth_data import PAIRS  # noqa: F401  run.py reads the pairs
from pairs_fourteenth_steps import alike, four, turns
from pairs_practice import BF16, F16
from pairs_sixth import ints
from pairs_thirteenth_data import layer_of
from pairs_unseen import GPU, null, pair, rand, weight

SYNCED = ["boxes_learnt_from_the_cells_of_a_mask", "joints_of_a_body_chained_one_by_one"]


# ---------------------------------------------------------------- kernels of one's own

CROSS = """extern "C" __global__ void cross_direct(const float2* x, float2* out, int sensors, int times) {
    int i = blockIdx.y * 8 + threadIdx.y, j = blockIdx.x * 32 + threadIdx.x;
    const float2* from = x + (size_t)blockIdx.z * times * sensors;
    float real = 0.0f, turned = 0.0f;
    for (int t = 0; t < times; ++t) {
        float2 p = from[t * sensors + i], q = from[t * sensors + j];
        real += p.x * q.x + p.y * q.y;
        turned += p.y * q.x - p.x * q.y;
    }
    float2 sum;
    sum.x = real;
    sum.y = turned;
    out[((size_t)blockIdx.z * sensors + i) * sensors + j] = sum;
}"""

CROSS_TILED = """extern "C" __global__ void cross_tiled(const float2* x, float2* out, int sensors, int times) {
    __shared__ float2 mine[16][64], others[16][64];
    const float2* from = x + (size_t)blockIdx.z * times * sensors;
    int own = threadIdx.y * 16 + threadIdx.x;
    float real[4][4], turned[4][4];
    for (int r = 0; r < 4; ++r)
        for (int s = 0; s < 4; ++s) real[r][s] = turned[r][s] = 0.0f;
    for (int first = 0; first < times; first += 16) {
        for (int n = own; n < 1024; n += 256) {
            const float2* row = from + (first + n / 64) * sensors + n % 64;
            mine[n / 64][n % 64] = row[blockIdx.y * 64];
            others[n / 64][n % 64] = row[blockIdx.x * 64];
        }
        __syncthreads();
        for (int t = 0; t < 16; ++t)
            for (int r = 0; r < 4; ++r) {
                float2 p = mine[t][threadIdx.y + 16 * r];
                for (int s = 0; s < 4; ++s) {
                    float2 q = others[t][threadIdx.x + 16 * s];
                    real[r][s] += p.x * q.x + p.y * q.y;
                    turned[r][s] += p.y * q.x - p.x * q.y;
                }
            }
        __syncthreads();
    }
    for (int r = 0; r < 4; ++r)
        for (int s = 0; s < 4; ++s) {
            int i = blockIdx.y * 64 + threadIdx.y + 16 * r, j = blockIdx.x * 64 + threadIdx.x + 16 * s;
            float2 sum;
            sum.x = real[r][s];
            sum.y = turned[r][s];
            out[((size_t)blockIdx.z * sensors + i) * sensors + j] = sum;
        }
}"""


@pair("reuse_data", "tune_kernel")
def own_correlations_of_antennas_without_tiles():
    tones, times, sensors = 64, 256, 256
    heard, out = four(lambda: rand(tones, times, sensors, 2)), torch.empty(tones, sensors, sensors, 2, device=GPU)

    def run(source, name, side, block):
        kernel, following = cuda_kernel(source, name), turns(heard)
        grid = (sensors // side[0], sensors // side[1], tones)

        def step():
            kernel(grid, block, [following(), out, sensors, times])
            return out
        return step
    return alike(run(CROSS, "cross_direct", (32, 8), (32, 8, 1)), run(CROSS_TILED, "cross_tiled", (64, 64), (16, 16, 1)))


GREYS = """extern "C" __global__ void greys_by_threads(const int* greys, int* counts, int size) {
    int i = blockIdx.x * 256 + threadIdx.x;
    const int* from = greys + (size_t)blockIdx.y * size * size;
    if (i % size + 1 < size) atomicAdd(counts + blockIdx.y * 256 + from[i] * 16 + from[i + 1], 1);
}"""

GREYS_IN_BLOCKS = """extern "C" __global__ void greys_by_blocks(const int* greys, int* counts, int size) {
    __shared__ int own[8][256];
    for (int n = threadIdx.x; n < 2048; n += 256) own[n / 256][n % 256] = 0;
    __syncthreads();
    const int* from = greys + (size_t)blockIdx.y * size * size;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < size * size; i += gridDim.x * 256)
        if (i % size + 1 < size) atomicAdd(&own[threadIdx.x / 32][from[i] * 16 + from[i + 1]], 1);
    __syncthreads();
    int total = 0;
    for (int warp = 0; warp < 8; ++warp) total += own[warp][threadIdx.x];
    atomicAdd(counts + blockIdx.y * 256 + threadIdx.x, total);
}"""


@pair("reduce_in_blocks", "tune_kernel")
def own_pairs_of_greys_counted_in_global_memory():
    pictures, size = 8, 1024
    shades = four(lambda: ints(16, pictures, size, size).to(torch.int32))
    counts = torch.zeros(pictures, 256, dtype=torch.int32, device=GPU)
    away = (torch.arange(16, device=GPU)[:, None] - torch.arange(16, device=GPU)).abs().float().flatten()
    square, close = away.pow(2), 1 / (1 + away)

    def run(source, name, blocks):
        kernel, following = cuda_kernel(source, name), turns(shades)

        def step():
            counts.zero_()
            kernel((blocks, pictures, 1), (256, 1, 1), [following(), counts, size])
            share = counts.float() / (size * (size - 1))
            return {"contrast": share @ square, "evenness": share.pow(2).sum(1), "nearness": share @ close}
        return step
    return alike(run(GREYS, "greys_by_threads", size * size // 256), run(GREYS_IN_BLOCKS, "greys_by_blocks", 64))


LINES = """extern "C" __global__ void heat_of_lines_PAD(const float* heat, const float* known, float* out) {
    __shared__ float lines[64 * (64 + PAD)], factors[128];
    const float* from = heat + (size_t)blockIdx.x * 4096;
    float* to = out + (size_t)blockIdx.x * 4096;
    for (int n = threadIdx.x; n < 4096; n += 64) lines[n / 64 * (64 + PAD) + n % 64] = from[n];
    for (int n = threadIdx.x; n < 128; n += 64) factors[n] = known[n];
    __syncthreads();
    float* own = lines + threadIdx.x * (64 + PAD);
    float last = 0.0f;
    for (int k = 0; k < 64; ++k) own[k] = last = (own[k] + 0.3f * last) * factors[k];
    for (int k = 62; k >= 0; --k) own[k] = last = own[k] + factors[64 + k] * last;
    __syncthreads();
    for (int n = threadIdx.x; n < 4096; n += 64) to[n] = lines[n / 64 * (64 + PAD) + n % 64];
}"""


@pair("avoid_bank_conflicts", "shared_memory_conflicts", "tune_kernel")
def own_lines_of_heat_solved_in_rows_of_64_words():
    lines, cells, share = 1 << 20, 64, 0.3
    heats, out, factors, after = four(lambda: rand(lines, cells)), torch.empty(lines, cells, device=GPU), [], []
    for cell in range(cells):
        factors.append(1 / (1 + 2 * share - share * (after[-1] if cell else 0.0)))
        after.append(share * factors[-1])
    known = torch.tensor(factors + after, device=GPU)

    def run(pad):
        kernel, following = cuda_kernel(LINES.replace("PAD", pad), f"heat_of_lines_{pad}"), turns(heats)

        def step():
            kernel((lines // 64, 1, 1), (64, 1, 1), [following(), known, out])
            return out
        return step
    return alike(run("0"), run("1"))


SOUNDS = """extern "C" __global__ void mix_samples(const short* voice, const short* music, short* out, int count) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < count) out[i] = (short)min(max((voice[i] * 5 + music[i] * 3) >> 2, -32768), 32767);
}"""

SOUNDS_WIDE = """__device__ int mixed(int a, int b) {
    int low = ((short)(a & 0xffff) * 5 + (short)(b & 0xffff) * 3) >> 2, high = ((a >> 16) * 5 + (b >> 16) * 3) >> 2;
    return (min(max(high, -32768), 32767) << 16) | (min(max(low, -32768), 32767) & 0xffff);
}
extern "C" __global__ void mix_vectors(const int4* voice, const int4* music, int4* out, int count) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count / 8) return;
    int4 a = voice[i], b = music[i];
    a.x = mixed(a.x, b.x);
    a.y = mixed(a.y, b.y);
    a.z = mixed(a.z, b.z);
    a.w = mixed(a.w, b.w);
    out[i] = a;
}"""


@pair("stream_wider", "tune_kernel", "more_loads_in_flight")
def own_sounds_of_two_bytes_mixed_one_by_one():
    count = 1 << 27

    def sound():
        return torch.randint(-20000, 20000, (count,), dtype=torch.int16, device=GPU)
    voices, music, out = four(sound), sound(), torch.empty(count, dtype=torch.int16, device=GPU)

    def run(source, name, each):
        kernel, following = cuda_kernel(source, name), turns(voices)

        def step():
            kernel((count // (256 * each), 1, 1), (256, 1, 1), [following(), music, out, count])
            return out
        return step
    return alike(run(SOUNDS, "mix_samples", 1), run(SOUNDS_WIDE, "mix_vectors", 8))


FLAME = """extern "C" __global__ void burn_cells(const int* order, const int* counts, const float* heat, float* out,
                                                  int cells) {
    int at = blockIdx.x * 256 + threadIdx.x;
    if (at >= cells) return;
    int i = order[at], count = counts[i];
    float warm = heat[i], fuel = 1.0f, part = 1.0f / (float)count;
    for (int n = 0; n < count; ++n) {
        float burnt = fuel * expf(-2.0f / (warm + 0.1f)) * part;
        fuel -= burnt;
        warm += 0.5f * burnt - 0.1f * warm * part;
    }
    out[i] = warm;
}"""


@pair("unify_branches", "tune_kernel", "even_blocks")
def own_cells_of_a_flame_with_unlike_counts_of_steps():
    cells = 1 << 22
    heats, out = four(lambda: torch.rand(cells, device=GPU) + 0.5), torch.empty(cells, device=GPU)
    counts = torch.where(torch.rand(cells, device=GPU) < 0.05, 256, 8).to(torch.int32)

    def run(order):
        kernel, order, following = cuda_kernel(FLAME, "burn_cells"), order.to(torch.int32), turns(heats)

        def step():
            kernel((cells // 256, 1, 1), (256, 1, 1), [order, counts, following(), out, cells])
            return out
        return step
    return alike(run(torch.arange(cells, device=GPU)), run(counts.sort(stable=True).indices))


# ---------------------------------------------------------------- formulas, sums after products, number formats

@triton.jit
def power_kernel(suns, airs, winds, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    sun, air, wind = tl.load(suns + at), tl.load(airs + at), tl.load(winds + at)
    cell = air + sun * tl.exp(-3.47 - 0.0594 * wind) + sun * 0.003
    direct = 0.2 * sun * (1 - 0.004 * (cell - 25))
    load = direct / 180.0
    given = direct * (0.965 - 0.008 / (load + 0.05) - 0.01 * load)
    tl.store(out + at, tl.minimum(tl.maximum(given, 0.0), 180.0))


@pair("fuse_pointwise", "compile_model")
def power_of_panels_by_a_chain_of_formulas():
    hours, panels = 24, 1 << 20

    def weather():
        sun, air, wind = (torch.rand(hours, panels, device=GPU) for _ in range(3))
        return sun * 1000, air * 30, wind * 10
    days = four(weather)

    def by_hand(sun, air, wind):
        cell = air + sun * torch.exp(-3.47 - 0.0594 * wind) + sun * 0.003
        direct = 0.2 * sun * (1 - 0.004 * (cell - 25))
        load = direct / 180.0
        return (direct * (0.965 - 0.008 / (load + 0.05) - 0.01 * load)).clamp(0.0, 180.0)

    def by_kernel(sun, air, wind):
        out = torch.empty_like(sun)
        power_kernel[(hours * panels // 1024,)](sun, air, wind, out, 1024, num_warps=4)
        return out

    def run(given):
        following = turns(days)
        return lambda: given(*following())
    return alike(run(by_hand), run(by_kernel))


@pair("fuse_epilogue", "fuse_pointwise", "compile_model")
def low_rank_steps_added_after_their_product():
    rows, columns, rank = 8192, 8192, 32
    start, moves = weight(rows, columns), four(lambda: (rand(rows, rank), rand(columns, rank, scale=rank ** -0.5)))

    def by_sum(w, u, v):
        w.sub_(0.001 * (u @ v.t()))

    def by_product(w, u, v):
        w.addmm_(u, v.t(), alpha=-0.001)

    def run(moved):
        following, w = turns(moves), start.clone()

        def step():
            moved(w, *following())
            return w
        return step
    return alike(run(by_sum), run(by_product))


@pair("leave_float64", "fuse_pointwise", "compile_model")
def light_of_a_scene_shaded_in_float64():
    points = 1 << 21
    facing, places = F.normalize(rand(points, 3), dim=1), rand(points, 3)
    rough, tint = torch.rand(points, 1, device=GPU) * 0.8 + 0.2, torch.rand(points, 3, device=GPU)
    eyes = four(lambda: (5 * F.normalize(rand(1, 3), dim=1), 9 * F.normalize(rand(1, 3), dim=1)))

    def run(dtype):
        normal, at, blunt, colour = (one.to(dtype) for one in (facing, places, rough, tint / torch.pi))
        following = turns([tuple(one.to(dtype) for one in both) for both in eyes])
        square, k = blunt ** 4, (blunt + 1) ** 2 / 8

        def along(one, other):
            return (one * other).sum(1, keepdim=True).clamp(min=1e-3)

        def step():
            eye, lamp = following()
            seen, lit = F.normalize(eye - at, dim=1), F.normalize(lamp - at, dim=1)
            half = F.normalize(seen + lit, dim=1)
            spread = square / (torch.pi * (along(normal, half) ** 2 * (square - 1) + 1) ** 2)
            shine = 0.04 + 0.96 * (1 - along(seen, half)) ** 5
            hidden = 1 / ((along(normal, seen) * (1 - k) + k) * (along(normal, lit) * (1 - k) + k))
            glow = (colour * (1 - shine) + spread * shine * hidden / 4) * along(normal, lit)
            return (glow / (1 + glow)).clamp(min=0).pow(1 / 2.2).float()
        return step
    return alike(run(torch.float64), run(torch.float32))


@pair("align_dimensions")
def columns_of_air_of_685_numbers():
    columns, numbers, padded, width = 65536, 685, 688, 1024
    airs = four(lambda: rand(columns, numbers, dtype=BF16))
    first, middle, last = weight(width, numbers, BF16), weight(width, width, BF16), weight(numbers, width, BF16)
    spare = padded - numbers

    def run(airs, first, last):
        following = turns(airs)

        def step():
            x = F.silu(F.linear(following(), first))
            x = x + F.silu(F.linear(x, middle))
            return F.linear(x, last)[:, :numbers]
        return step
    # The reader of the columns gives rows of 688 numbers instead.
    wide = run([F.pad(x, (0, spare)) for x in airs], F.pad(first, (0, spare)), F.pad(last, (0, 0, 0, spare)))
    return alike(run(airs, first, last), wide)


# ---------------------------------------------------------------- host-bound programs, batches and memory

@pair("cuda_graphs", "cut_host_work", "compile_model", "batch_products", "fuse_pointwise")
def joints_of_a_body_chained_one_by_one():
    bodies, joints = 4096, 24
    poses, bones = four(lambda: rand(bodies, joints, 3, scale=0.3)), rand(joints, 3, scale=0.2)
    parents = [-1, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 12, 13, 14, 16, 17, 18, 19, 20, 21]
    eye = torch.eye(3, device=GPU)

    def turned(pose):
        angle = (pose.pow(2).sum(1, keepdim=True) + 1e-8).sqrt()
        x, y, z = (pose / angle).unbind(1)
        none = torch.zeros_like(x)
        cross = torch.stack([none, -z, y, z, none, -x, -y, x, none], 1).view(-1, 3, 3)
        angle = angle[..., None]
        return eye + torch.sin(angle) * cross + (1 - torch.cos(angle)) * (cross @ cross)

    def placed(pose):
        ways, places = [], []
        for joint, parent in enumerate(parents):
            way = turned(pose[:, joint])
            if parent < 0:
                ways.append(way)
                places.append(bones[joint].expand(bodies, 3))
            else:
                places.append(places[parent] + ways[parent] @ bones[joint])
                ways.append(ways[parent] @ way)
        return torch.stack(places, 1)

    def by_graph():
        following, room = turns(poses), poses[0].clone()
        replay = replayed(lambda: placed(room))

        def step():
            room.copy_(following())
            return replay()
        return step
    following = turns(poses)
    return alike(lambda: placed(following()), by_graph())


@pair("batch_products", "cut_host_work", "cuda_graphs", "compile_model", "fill_the_device")
def votes_of_capsules_multiplied_kind_by_kind():
    kinds, pictures, places, inner, goals, out = 64, 32, 36, 16, 10, 16
    seen, ws = four(lambda: rand(pictures, kinds, places, inner)), rand(kinds, inner, goals * out, scale=0.25)

    def kind_by_kind(x):
        return torch.stack([x[:, kind].reshape(-1, inner) @ ws[kind] for kind in range(kinds)])

    def at_once(x):
        return torch.bmm(x.transpose(0, 1).reshape(kinds, -1, inner), ws)

    def run(votes):
        following = turns(seen)

        def step():
            vote = votes(following()).view(kinds, pictures, places, goals, out)
            near = (vote * vote.mean((0, 2), keepdim=True)).sum(-1, keepdim=True)
            total = (torch.softmax(near, 3) * vote).sum((0, 2))
            size = total.pow(2).sum(-1, keepdim=True)
            return total * (size.sqrt() / (1 + size))
        return step
    return alike(run(kind_by_kind), run(at_once))


@pair("stop_allocating", "remove_syncs", "cut_host_work")
def cache_emptied_between_the_scales_of_a_registration():
    count, size = 4, 2048
    scans = four(lambda: (torch.rand(count, 1, size, size, device=GPU), torch.rand(count, 1, size, size, device=GPU)))
    edges = torch.tensor([[-1.0, 0.0, 1.0], [-2.0, 0.0, 2.0], [-1.0, 0.0, 1.0]], device=GPU)
    edges = torch.stack([edges, edges.t()])[:, None] / 8

    def run(after_each):
        following = turns(scans)

        def step():
            fixed, moving = following()
            flow = torch.zeros(count, 2, 1, 1, device=GPU)
            for scale in (8, 4, 2, 1):
                one, other = F.avg_pool2d(fixed, scale), F.avg_pool2d(moving, scale)
                ways, away = F.conv2d(other, edges, padding=1), one - other
                force = away * ways / (ways.pow(2).sum(1, keepdim=True) + away.pow(2) + 1e-3)
                raised = F.interpolate(flow, size=one.shape[2:], mode="bilinear", align_corners=False)
                flow = F.avg_pool2d(raised * 2 + force, 9, stride=1, padding=4)
                after_each()
            return flow
        return step
    return alike(run(torch.cuda.empty_cache), run(lambda: None))


@pair("overlap_copies")
def tiles_of_a_slide_uploaded_before_each_pass():
    tiles, side, patch, width, wide = 192, 256, 16, 512, 2048
    slides = four(lambda: torch.randint(256, (tiles, 3, side, side), dtype=torch.uint8).pin_memory())
    w_in, layers = weight(width, 768, F16), [(weight(wide, width, F16), weight(width, wide, F16)) for _ in range(3)]
    cells = side // patch

    def seen(tile):
        patches = tile.view(tiles, 3, cells, patch, cells, patch).permute(0, 2, 4, 1, 3, 5).reshape(tiles, -1, 768)
        x = F.linear(patches.to(F16) / 255, w_in)
        for up, down in layers:
            x = layer_of(x, up, down)
        return x.amax(1)

    def in_turn():
        following = turns(slides)
        return lambda: seen(following().to(GPU, non_blocking=True))

    def ahead():
        following, side_stream, number = turns(slides), torch.cuda.Stream(), [0]
        rooms = [torch.empty(tiles, 3, side, side, dtype=torch.uint8, device=GPU) for _ in range(2)]

        def upload(which):
            side_stream.wait_stream(torch.cuda.current_stream())  # the step before has read that room
            with torch.cuda.stream(side_stream):
                rooms[which].copy_(following(), non_blocking=True)
        upload(0)

        def step():
            here = number[0] % 2
            number[0] += 1
            torch.cuda.current_stream().wait_stream(side_stream)
            upload(1 - here)
            return seen(rooms[here])
        return step
    return alike(in_turn(), ahead())


# ---------------------------------------------------------------- what suggests itself and gains nothing

@null("reduce_problem")
def null_hits_counted_and_dropped_beside_wide_layers():
    rows, width, wide, kinds = 4096, 2048, 8192, 100
    known = four(lambda: (rand(rows, width), ints(kinds, rows)))

    def make(counts):
        torch.manual_seed(1)
        parts = [part for _ in range(3) for part in (nn.Linear(width, wide), nn.ReLU(), nn.Linear(wide, width))]
        model, following = nn.Sequential(*parts, nn.Linear(width, kinds)).to(GPU), turns(known)

        def loss():
            x, labels = following()
            scores = model(x).float()
            if counts:
                (scores.detach().argmax(1) == labels).float().mean()
            return F.cross_entropy(scores, labels)
        return learnt(model, loss)
    return alike(make(True), make(False))


@null("reuse_result")
def null_shares_of_experts_taken_by_two_helpers():
    tokens, width, wide, experts = 16384, 2048, 8192, 8
    x_all, gate = four(lambda: rand(tokens, width, dtype=BF16)), weight(experts, width, BF16)
    layers = [(weight(wide, width, BF16), weight(width, wide, BF16)) for _ in range(4)]

    def shares(x):
        return torch.softmax(F.linear(x, gate).float(), 1)

    def run(once):
        following = turns(x_all)

        def step():
            x = following()
            best = shares(x)
            even = best if once else shares(x)
            for up, down in layers:
                x = layer_of(x, up, down)
            return {"x": x * best.amax(1, keepdim=True).to(BF16), "even": even.mean(0)}
        return step
    return alike(run(False), run(True))


@null("cast_weights_once", "reuse_result")
def null_weights_of_a_small_head_cast_for_each_batch():
    rows, width, wide, kinds = 16384, 2048, 8192, 256
    x_all, head = four(lambda: rand(rows, width, dtype=F16)), weight(kinds, width)
    layers, known = [(weight(wide, width, F16), weight(width, wide, F16)) for _ in range(4)], head.to(F16)

    def run(cast):
        following = turns(x_all)

        def step():
            x = following()
            for up, down in layers:
                x = layer_of(x, up, down)
            return F.linear(x, cast()).float().amax(1)
        return step
    return alike(run(lambda: head.to(F16)), run(lambda: known))


@null("reuse_result", "slow_op")
def null_small_spread_factorised_beside_long_products():
    rows, width, wide, size = 16384, 2048, 8192, 32
    x_all = four(lambda: rand(rows, width, dtype=BF16))
    layers, w_out = [(weight(wide, width, BF16), weight(width, wide, BF16)) for _ in range(6)], weight(size, width, BF16)
    root, eye = weight(size, size), torch.eye(size, device=GPU)
    spread = root @ root.t() + eye

    def whitening():
        return torch.linalg.solve_triangular(torch.linalg.cholesky_ex(spread).L, eye, upper=False)
    known = whitening()

    def run(whitening):
        following = turns(x_all)

        def step():
            x = following()
            for up, down in layers:
                x = layer_of(x, up, down)
            return (F.linear(x, w_out).float() @ whitening().t()).pow(2).sum(1)
        return step
    return alike(run(whitening), run(lambda: known))


@null("batch_products", "cut_host_work", "cuda_graphs", "fill_the_device")
def null_large_volumes_transformed_one_by_one():
    volumes, size = 4, 256
    scans = four(lambda: rand(volumes, size, size, size))

    def run(transformed):
        following = turns(scans)
        return lambda: transformed(following())

    def one_by_one(x):
        return [torch.fft.rfftn(one) for one in x]

    def at_once(x):
        return list(torch.fft.rfftn(x, dim=(1, 2, 3)))
    return alike(run(one_by_one), run(at_once))


@null("remove_copies", "local_gathers", "reuse_result")
def null_features_put_in_order_before_wide_layers():
    rows, few, width, wide = 16384, 64, 2048, 8192
    x_all, order = four(lambda: rand(rows, few, dtype=BF16)), torch.randperm(few, device=GPU)
    w_in, layers = weight(width, few, BF16), [(weight(wide, width, BF16), weight(width, wide, BF16)) for _ in range(4)]
    moved = w_in[:, order.argsort()].contiguous()

    def run(hidden):
        following = turns(x_all)

        def step():
            x = hidden(following())
            for up, down in layers:
                x = layer_of(x, up, down)
            return x
        return step
    return alike(run(lambda x: F.linear(x[:, order], w_in)), run(lambda x: F.linear(x, moved)))


WAVES = """extern "C" __global__ void waves_direct(const float* now, const float* last, float* out, int size) {
    int i = blockIdx.x * 32 + threadIdx.x, j = blockIdx.y * 8 + threadIdx.y;
    int left = max(i - 1, 0), right = min(i + 1, size - 1), above = max(j - 1, 0), below = min(j + 1, size - 1);
    float here = now[j * size + i];
    float around = now[j * size + left] + now[j * size + right] + now[above * size + i] + now[below * size + i];
    out[j * size + i] = 2.0f * here - last[j * size + i] + 0.2f * (around - 4.0f * here);
}"""

WAVES_TILED = """extern "C" __global__ void waves_tiled(const float* now, const float* last, float* out, int size) {
    __shared__ float tile[10][34];
    int i = blockIdx.x * 32 + threadIdx.x, j = blockIdx.y * 8 + threadIdx.y;
    for (int n = threadIdx.y * 32 + threadIdx.x; n < 340; n += 256) {
        int row = min(max((int)(blockIdx.y * 8) + n / 34 - 1, 0), size - 1);
        tile[n / 34][n % 34] = now[row * size + min(max((int)(blockIdx.x * 32) + n % 34 - 1, 0), size - 1)];
    }
    __syncthreads();
    int a = threadIdx.x + 1, b = threadIdx.y + 1;
    float here = tile[b][a], around = tile[b][a - 1] + tile[b][a + 1] + tile[b - 1][a] + tile[b + 1][a];
    out[j * size + i] = 2.0f * here - last[j * size + i] + 0.2f * (around - 4.0f * here);
}"""


@null("reuse_data", "tune_kernel")
def null_own_waves_tiled_though_the_caches_serve():
    size = 8192
    seas, out = four(lambda: (rand(size, size), rand(size, size))), torch.empty(size, size, device=GPU)

    def run(source, name):
        kernel, following = cuda_kernel(source, name), turns(seas)

        def step():
            kernel((size // 32, size // 8, 1), (32, 8, 1), [*following(), out, size])
            return out
        return step
    return alike(run(WAVES, "waves_direct"), run(WAVES_TILED, "waves_tiled"))


SIGNS = """extern "C" __global__ void signs_NAME(const float4* x, float4* out, int count) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count / 4) return;
    float4 v = x[i];
    float* each = &v.x;
#pragma unroll
    for (int n = 0; n < 4; ++n) {
        float one = each[n];
        WAY
        each[n] = one;
    }
    out[i] = v;
}"""

BY_BRANCHES = "if (one > 0.0f) one = one * 1.5f + 0.1f; else one = one * one * 0.25f;"
BY_CHOICE = "float up = one * 1.5f + 0.1f, down = one * one * 0.25f; one = one > 0.0f ? up : down;"


@null("unify_branches", "tune_kernel")
def null_own_signs_parted_by_branches():
    count = 1 << 27
    x_all, out = four(lambda: rand(count)), torch.empty(count, device=GPU)

    def run(name, way):
        kernel = cuda_kernel(SIGNS.replace("NAME", name).replace("WAY", way), f"signs_{name}")
        following = turns(x_all)

        def step():
            kernel((count // 1024, 1, 1), (256, 1, 1), [following(), out, count])
            return out
        return step
    return alike(run("branches", BY_BRANCHES), run("choice", BY_CHOICE))
