# SPDX-License-Identifier: Apache-2.0
"""A ninth set, written after the eighth and in its way, before any of the eighth was measured.

As in pairs_eighth.py; half of it is set aside by the hash of its names. The whole steps are in pairs_ninth_steps.py, the
smaller programs here. Written from what practitioners change, without sight of the rules: for some of these programs a trace
may show too little. `pairs_listing.py` prints the set without PyTorch.
"""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

import triton
import triton.language as tl

import pairs_ninth_steps as steps
from pairs_ninth_steps import training
from pairs_practice import BF16, F16, compiled, product_kernel
from pairs_sixth import ints
from pairs_unseen import GPU, captured, null, pair, rand, weight, with_precision

PAIRS = steps.PAIRS
SYNCED = ["masks_filled_sentence_by_sentence", "quantum_gates_applied_one_by_one", "null_graph_of_large_stencils"]


# ---------------------------------------------------------------- work that need not be done

@pair("reduce_problem", "fuse_norm", "remove_copies")
def softmax_before_an_argmax():
    hidden, head = rand(4096, 1024, dtype=BF16), weight(32000, 1024, BF16)
    return (lambda: torch.softmax(F.linear(hidden, head).float(), -1).argmax(-1)), lambda: F.linear(hidden, head).argmax(-1)


@pair("reduce_problem")
def words_projected_before_their_mean():
    x, w, b = rand(128, 512, 768, dtype=BF16), weight(1024, 768, BF16), rand(1024, dtype=BF16)
    return (lambda: F.linear(x, w, b).mean(1)), lambda: F.linear(x.mean(1), w, b)


@pair("reduce_problem", "remove_copies")
def outputs_thrown_away_by_a_stride():
    x, ws = rand(32, 128, 8192, dtype=F16), [rand(128, 128, 9, dtype=F16, scale=0.03) for _ in range(2)]

    def before():
        y = x
        for w in ws:
            y = torch.relu(F.conv1d(y, w, padding=4))[..., ::4].contiguous()
        return y

    def after():
        y = x
        for w in ws:
            y = torch.relu(F.conv1d(y, w, padding=4, stride=4))
        return y
    return before, after


@pair("slow_op", "reduce_problem", "remove_syncs")
def words_counted_by_unique():
    text = (torch.rand(1 << 24, device=GPU).pow(3) * 50000).long()
    return (lambda: torch.unique(text, return_counts=True)[1]), lambda: torch.bincount(text, minlength=50000)


@pair("slow_op", "reduce_problem", "batch_products")
def lines_fitted_by_lstsq():
    a, b = rand(256, 64, 8), rand(256, 64, 1)

    def after():
        turned = a.mT
        return torch.cholesky_solve(turned @ b, torch.linalg.cholesky_ex(turned @ a)[0])
    return (lambda: torch.linalg.lstsq(a, b).solution), after


@pair("reduce_in_blocks", "slow_op", "reduce_problem")
def clicks_counted_by_scatter():
    ids = ints(64, 1 << 24)
    ones = torch.ones(1 << 24, device=GPU)
    return (lambda: torch.zeros(64, device=GPU).scatter_add_(0, ids, ones)), lambda: torch.bincount(ids, minlength=64)


# ---------------------------------------------------------------- formulas written out

@pair("fuse_norm", "fuse_pointwise", "compile_model")
def logarithm_of_a_softmax():
    scores, chosen = rand(16384, 4096).requires_grad_(), ints(4096, 16384)

    def run(of):
        return lambda: torch.autograd.grad(F.nll_loss(of(scores), chosen), scores)
    return run(lambda y: torch.log(torch.softmax(y, -1) + 1e-9)), run(lambda y: torch.log_softmax(y, -1))


@pair("fuse_pointwise", "compile_model")
def gates_by_chunks():
    x = rand(64, 1024, 4096, dtype=F16)

    def before():
        value, gate = x.chunk(2, dim=-1)
        return value * torch.sigmoid(gate)
    return before, lambda: F.glu(x, dim=-1)


@pair("fuse_pointwise", "compile_model")
def boxes_learnt_with_a_smooth_loss_by_hand():
    guess, truth = rand(1 << 22, 4).requires_grad_(), rand(1 << 22, 4)

    def by_hand():
        apart = (guess - truth).abs()
        return torch.where(apart < 1.0, 0.5 * apart ** 2, apart - 0.5).mean()

    def run(loss):
        return lambda: torch.autograd.grad(loss(), guess)
    return run(by_hand), run(lambda: F.smooth_l1_loss(guess, truth))


@pair("fuse_pointwise", "compile_model")
def shallow_water_by_slices():
    start = rand(3, 2048, 2048, scale=0.01)

    def step():
        h, u, v = start[0] + 1, start[1], start[2]
        for _ in range(2):
            slope_x, slope_y = h[1:-1, 2:] - h[1:-1, :-2], h[2:, 1:-1] - h[:-2, 1:-1]
            inner_u = u[1:-1, 1:-1] - 0.01 * (4.9 * slope_x + u[1:-1, 1:-1] * (u[1:-1, 2:] - u[1:-1, :-2]))
            inner_v = v[1:-1, 1:-1] - 0.01 * (4.9 * slope_y + v[1:-1, 1:-1] * (v[2:, 1:-1] - v[:-2, 1:-1]))
            u, v = F.pad(inner_u, (1, 1, 1, 1)), F.pad(inner_v, (1, 1, 1, 1))
            spread = u[1:-1, 2:] - u[1:-1, :-2] + v[2:, 1:-1] - v[:-2, 1:-1]
            h = F.pad(h[1:-1, 1:-1] * (1 - 0.01 * spread), (1, 1, 1, 1), value=1.0)
        return h, u, v
    return step, compiled(step)


@pair("fuse_epilogue", "fuse_pointwise", "compile_model")
def covariance_updated_by_blocks():
    blocks = [rand(64, 4096, scale=0.1) for _ in range(8)]

    def before():
        total = torch.zeros(4096, 4096, device=GPU)
        for x in blocks:
            total = total + x.t() @ x
        return total

    def after():
        total = torch.zeros(4096, 4096, device=GPU)
        for x in blocks:
            total.addmm_(x.t(), x)
        return total
    return with_precision("high", before), with_precision("high", after)


# ---------------------------------------------------------------- copies, fills and places in memory

@pair("remove_fills", "stop_allocating")
def caches_cleared_before_a_prompt():
    keys, values = rand(2, 8, 256, 128, dtype=BF16), rand(2, 8, 256, 128, dtype=BF16)

    def run(made):
        def step():
            caches = []
            for _ in range(12):
                cache = made(2, 2, 8, 8192, 128, dtype=BF16, device=GPU)
                cache[0, :, :, :256] = keys
                cache[1, :, :, :256] = values
                caches.append(cache)
            return caches[0][:, :, :, :256].sum()
        return step
    return run(torch.zeros), run(torch.empty)


@pair("remove_copies")
def history_shifted_for_each_sample():
    start, taps, count = rand(256, 64, 1024), rand(8, scale=0.3), 16

    def before():
        seen = start
        for _ in range(count):
            new = torch.tanh((seen[..., -8:] * taps).sum(-1, keepdim=True))
            seen = torch.cat([seen[..., 1:], new], -1)
        return seen

    def after():
        room = torch.empty(256, 64, 1024 + count, device=GPU)
        room[..., :1024] = start
        for at in range(1024, 1024 + count):
            room[..., at] = torch.tanh((room[..., at - 8:at] * taps).sum(-1))
        return room[..., count:]
    return before, after


@pair("local_gathers", "coalesce")
def voxels_of_a_cloud_summed_in_any_order():
    voxels, points = 1 << 20, 1 << 22
    cell, features = ints(voxels, points), rand(points, 32)
    ordered, order = cell.sort()
    sorted_features = features[order]
    return (lambda: torch.zeros(voxels, 32, device=GPU).index_add_(0, cell, features),
            lambda: torch.zeros(voxels, 32, device=GPU).index_add_(0, ordered, sorted_features))


@pair("leave_float64", "fuse_pointwise", "compile_model")
def rays_of_a_camera_in_float64():
    pose, pixels = torch.randn(3, 3, dtype=torch.float64, device=GPU), torch.rand(1 << 20, 3, dtype=torch.float64, device=GPU)
    waves = 2.0 ** torch.arange(8, dtype=torch.float64, device=GPU)
    w = weight(64, 51, BF16)

    def run(dtype):
        turn, seen, steps_of = pose.to(dtype), pixels.to(dtype), waves.to(dtype)

        def step():
            rays = F.normalize(seen @ turn, dim=-1)
            angles = (rays.unsqueeze(-1) * steps_of).flatten(-2)
            return F.linear(torch.cat([rays, torch.sin(angles), torch.cos(angles)], -1).to(BF16), w)
        return step
    return run(torch.float64), run(torch.float32)


# ---------------------------------------------------------------- products

@pair("tensor_cores")
def subspace_iteration_in_float32():
    a, q0 = rand(8192, 8192, scale=0.011), rand(8192, 512)

    def work():
        q = q0
        for _ in range(4):
            q = a @ q
            q = q / q.norm(dim=0, keepdim=True)
        return q
    return with_precision("highest", work), with_precision("high", work)


@pair("quantize")
def catalogue_scored_in_bf16():
    questions, items, unit = rand(32, 1024, dtype=BF16), rand(1 << 20, 1024, dtype=BF16), torch.ones((), device=GPU)
    items8 = items.to(torch.float8_e4m3fn)

    def after():
        narrow = questions.to(torch.float8_e4m3fn)
        return torch._scaled_mm(narrow, items8.t(), scale_a=unit, scale_b=unit, out_dtype=BF16).amax(1)
    return (lambda: F.linear(questions, items).amax(1)), after


@pair("batch_products", "cut_host_work", "cuda_graphs", "compile_model", "fill_the_device")
def bands_convolved_one_by_one():
    bands, filters = rand(16, 32, 8, 1000), rand(32, 16, 8, 5, scale=0.15)
    joined, grouped = bands.flatten(1, 2), filters.flatten(0, 1)
    return (lambda: torch.cat([torch.relu(F.conv1d(bands[:, i], filters[i], padding=2)) for i in range(32)], 1),
            lambda: torch.relu(F.conv1d(joined, grouped, padding=2, groups=32)))


# ---------------------------------------------------------------- the host

@pair("remove_syncs", "cut_host_work", "batch_products", "cuda_graphs")
def length_of_a_step_halved_by_the_host():
    a, x0 = rand(2048, 512), rand(512)

    def value(x):
        return F.softplus(x @ a.t()).sum(-1) + x.pow(2).sum(-1)

    def slope(x):
        return torch.sigmoid(a @ x) @ a + 2 * x

    def before():
        x = x0
        for _ in range(6):
            g, now = slope(x), value(x)
            length = 1.0
            while value(x - length * g).item() > now.item() and length > 1e-4:
                length *= 0.5
            x = x - length * g
        return x
    lengths = 0.5 ** torch.arange(14, device=GPU)

    def after():
        x = x0
        for _ in range(6):
            trials = x - lengths[:, None] * slope(x)
            taken = (value(trials) <= value(x)).float().argmax()
            x = trials.index_select(0, taken.view(1)).squeeze(0)
        return x
    return before, after


@pair("cuda_graphs", "compile_model", "cut_host_work")
def quantum_gates_applied_one_by_one():
    qubits = 14
    start = torch.randn(1 << qubits, dtype=torch.complex64, device=GPU)
    angles = torch.rand(3, qubits, device=GPU)
    cosine, sine = torch.cos(angles), 1j * torch.sin(angles)

    def step():
        state = start
        for layer in range(3):
            for at in range(qubits):
                low, high = state.view(1 << at, 2, -1).unbind(1)
                c, s = cosine[layer, at], sine[layer, at]
                state = torch.stack([c * low - s * high, c * high - s * low], 1).view(-1)
        return state.abs().pow(2)
    return step, captured(step)


# ---------------------------------------------------------------- kernels that leave the device idle

@pair("fill_the_device", "slow_op", "reduce_problem")
def threshold_of_one_long_signal():
    x, place = rand(1 << 23), 8_000_000
    return (lambda: torch.kthvalue(x, place).values), lambda: x.sort().values[place - 1]


@pair("fill_the_device", "fuse_norm", "slow_op")
def group_norm_of_one_large_picture():
    x, w, b = rand(1, 32, 2048, 2048), rand(32), rand(32)

    def after():
        var, mean = torch.var_mean(x.view(4, -1), 1, unbiased=False)
        scale = (w.view(4, 8) * torch.rsqrt(var + 1e-5)[:, None])
        shift = b.view(4, 8) - mean[:, None] * scale
        return torch.addcmul(shift.view(1, 32, 1, 1), x, scale.view(1, 32, 1, 1))
    return (lambda: F.group_norm(x, 4, w, b)), after


@triton.jit
def turn_columns_kernel(x, out, rows, columns, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + column * rows + row, tl.load(x + row * columns + column))


@triton.jit
def turn_tiles_kernel(x, out, rows, columns, BLOCK: tl.constexpr):
    row, column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tile = tl.load(x + row[:, None] * columns + column[None, :])
    tl.store(out + column[:, None] * rows + row[None, :], tl.trans(tile))


@pair("coalesce", "tune_kernel")
def own_transposition_by_columns():
    size = 8192
    x, out = rand(size, size), torch.empty(size, size, device=GPU)
    return (lambda: turn_columns_kernel[(size, size // 1024)](x, out, size, size, 1024),
            lambda: turn_tiles_kernel[(size // 64, size // 64)](x, out, size, size, 64))


@pair("tune_kernel", "more_loads_in_flight", "hide_latency", "fill_the_device")
def own_product_of_one_stage():
    size = 4096
    a, b, c = rand(size, size, dtype=BF16), rand(size, size, dtype=BF16), torch.empty(size, size, device=GPU, dtype=BF16)
    grid = (size // 128, size // 128)

    def run(stages, warps):
        return lambda: product_kernel[grid](a, b, c, size, size, size, 128, 128, 64, num_stages=stages, num_warps=warps)
    return run(1, 4), run(4, 8)


# ---------------------------------------------------------------- what suggests itself and gains nothing

@null("leave_float64")
def null_totals_kept_in_double():
    x, ws = rand(8192, 4096, dtype=BF16), [weight(4096, 4096, BF16) for _ in range(4)]

    def run(dtype):
        total = torch.zeros((), device=GPU, dtype=dtype)

        def step():
            y = x
            for w in ws:
                y = F.linear(y, w)
            return total.add_(y.float().mean().to(dtype))
        return step
    return run(torch.float64), run(torch.float32)


@null("cuda_graphs", "cut_host_work")
def null_graph_of_large_stencils():
    x = rand(1 << 27)

    def step():
        y = x
        for _ in range(4):
            y = 0.5 * y + 0.25 * (torch.roll(y, 1) + torch.roll(y, -1))
        return y
    return step, captured(step)


@null("keep_on_device", "remove_syncs", "pin_memory", "overlap_copies")
def null_score_fetched_after_a_long_step():
    x, ws = rand(16384, 4096, dtype=BF16), [weight(4096, 4096, BF16) for _ in range(12)]

    def run(fetched):
        def step():
            y = x
            for w in ws:
                y = F.linear(y, w)
            return fetched(y.float().mean())
        return step
    return run(lambda score: score.cpu()), run(lambda score: score)


@null("channels_last", "remove_copies")
def null_small_weights_of_another_layout():
    layout = torch.channels_last
    x = rand(64, 64, 112, 112, dtype=F16).to(memory_format=layout)
    ws = [rand(64, 64, 3, 3, dtype=F16, scale=0.04) for _ in range(4)]

    def run(weights):
        def step():
            y = x
            for w in weights:
                y = torch.relu(F.conv2d(y, w, padding=1))
            return y
        return step
    return run(ws), run([w.to(memory_format=layout) for w in ws])


@null("recompute_less")
def null_checkpoint_of_an_activation():
    x = rand(8192, 4096)

    def make(kept):
        up, down = nn.Linear(4096, 16384).to(GPU), nn.Linear(16384, 4096).to(GPU)

        def loss():
            hidden = up(x)
            return down(F.gelu(hidden) if kept else checkpoint(F.gelu, hidden, use_reentrant=False)).float().pow(2).mean()
        return training(nn.ModuleList([up, down]), loss)
    return make(False), make(True)


@null("fill_the_device", "cut_host_work", "batch_products")
def null_halves_of_a_large_batch():
    x, ws = rand(32768, 4096, dtype=BF16), [weight(4096, 4096, BF16) for _ in range(3)]

    def run(parts):
        def step():
            found = []
            for y in x.chunk(parts):
                for w in ws:
                    y = F.linear(y, w)
                found.append(y.amax(1))
            return torch.cat(found)
        return step
    return run(2), run(1)


@null("tensor_cores")
def null_vectors_times_a_float32_matrix():
    a, x = rand(16384, 16384, scale=0.008), rand(16384)
    return with_precision("highest", lambda: a @ (a @ x)), with_precision("high", lambda: a @ (a @ x))


@null("remove_copies")
def null_contiguous_calls_that_copy_nothing():
    x, ws = rand(8192, 2048, dtype=BF16), [weight(2048, 2048, BF16) for _ in range(8)]

    def run(made):
        def step():
            y = x
            for w in ws:
                y = made(F.linear(made(y), w))
            return y
        return step
    return run(torch.Tensor.contiguous), run(lambda y: y)
