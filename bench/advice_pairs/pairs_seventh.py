# SPDX-License-Identifier: Apache-2.0
"""A seventh set, of whole steps and of fields that the first six do not have: written before any rule was changed after the sixth.

As in pairs_sixth.py; half of it is set aside by the hash of its names. The whole steps are in pairs_seventh_steps.py, the
smaller programs here. Written from what practitioners change, without sight of the rules: for some of these programs a trace
may show too little. `pairs_listing.py` prints the set without PyTorch.
"""

import torch
import torch.nn.functional as F
from torch import nn

import triton
import triton.language as tl

import pairs_seventh_steps as steps
from pairs_practice import BF16, F16, compiled, without_gradients
from pairs_seventh_steps import blocks, training, with_adapters
from pairs_sixth import ints
from pairs_unseen import GPU, captured, null, pair, rand, weight, with_precision

PAIRS = steps.PAIRS
SYNCED = ["microbatches_of_two_sequences", "denoiser_with_two_averages_of_its_weights", "null_graph_of_large_transforms"]


# ---------------------------------------------------------------- graphs, points and retrieval

@pair("reduce_problem")
def citations_multiplied_as_a_dense_matrix():
    nodes, width = 8192, 128
    dense = torch.zeros(nodes, nodes, device=GPU)
    dense[torch.arange(nodes, device=GPU).repeat(16), ints(nodes, 16 * nodes)] = 1 / 16
    sparse = dense.to_sparse_csr()
    x0, ws = rand(nodes, width), [weight(width, width) for _ in range(3)]

    def run(links):
        def step():
            x = x0
            for w in ws:
                x = torch.relu(links @ F.linear(x, w))
            return x
        return step
    return run(dense), run(sparse)


@pair("reduce_problem", "slow_op", "local_gathers")
def messages_indexed_with_brackets_in_training():
    nodes, edges, width = 65536, 1 << 20, 64
    source, target = ints(nodes, edges), ints(nodes, edges)
    x0 = rand(nodes, width)

    def make(of):
        layers = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(3)).to(GPU)

        def loss():
            x = x0
            for layer in layers:
                summed = torch.zeros(nodes, width, device=GPU).index_add(0, target, of(x))
                x = torch.relu(layer(torch.cat([x, summed], 1)))
            return x.pow(2).mean()
        return training(layers, loss, dtype=None)
    return make(lambda x: x[source]), make(lambda x: x.index_select(0, source))


@pair("remove_syncs", "cut_host_work", "cuda_graphs")
def farthest_points_found_with_the_host():
    points = rand(32768, 3)

    def run(first, place):
        def step():
            at, near, chosen = first, torch.full((32768,), float("inf"), device=GPU), []
            for _ in range(64):
                chosen.append(at)
                near = torch.minimum(near, (points - points[at]).pow(2).sum(1))
                at = place(near.argmax())
            return chosen
        return step
    return run(0, int), run(torch.zeros(1, dtype=torch.long, device=GPU), lambda at: at.view(1))


@pair("local_gathers", "coalesce")
def rays_through_a_volume_in_random_order():
    volume, count = rand(1, 4, 256, 256, 256), 1 << 21
    at = torch.rand(count, 3, device=GPU) * 2 - 1
    cell = ((at + 1) * 127.5).long()
    order = torch.argsort((cell[:, 2] * 256 + cell[:, 1]) * 256 + cell[:, 0])
    grid, ordered = at.view(1, 1, 1, count, 3), at[order].view(1, 1, 1, count, 3)
    return (lambda: F.grid_sample(volume, grid, align_corners=True)), lambda: F.grid_sample(volume, ordered, align_corners=True)


@pair("fuse_pointwise", "compile_model")
def overlaps_of_all_boxes():
    corner, other = rand(8192, 2), rand(8192, 2)
    a, b = (torch.cat([low, low + rand(8192, 2).abs()], 1) for low in (corner, other))

    def step():
        low, high = torch.maximum(a[:, None, :2], b[:, :2]), torch.minimum(a[:, None, 2:], b[:, 2:])
        side = (high - low).clamp(min=0)
        both = side[..., 0] * side[..., 1]
        area_a, area_b = (a[:, 2] - a[:, 0]) * (a[:, 3] - a[:, 1]), (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])
        return both / (area_a[:, None] + area_b - both)
    return step, compiled(step)


@pair("reuse_result", "fuse_norm", "cast_weights_once")
def documents_normalised_for_each_query():
    documents, questions = rand(1 << 20, 256, dtype=F16), rand(64, 256, dtype=F16)
    ready = F.normalize(documents, dim=1)

    def run(of):
        return lambda: (F.normalize(questions, dim=1) @ of().t()).max(1)
    return run(lambda: F.normalize(documents, dim=1)), run(lambda: ready)


@pair("fuse_pointwise", "compile_model", "fuse_norm", "remove_copies", "reduce_problem")
def visits_looked_up_then_averaged():
    table, visits = rand(200000, 128), ints(200000, 16384, 50)
    w1, w2 = weight(256, 128), weight(1, 256)

    def run(average):
        return lambda: torch.sigmoid(F.linear(torch.relu(F.linear(average(), w1)), w2))
    return run(lambda: F.embedding(visits, table).mean(1)), run(lambda: F.embedding_bag(visits, table, mode="mean"))


@pair("reduce_problem", "remove_syncs", "remove_copies")
def negatives_cut_out_by_a_mask():
    count, x = 2048, rand(2048, 512)
    same = torch.eye(count, device=GPU, dtype=torch.bool)

    def make(others):
        model = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 128)).to(GPU)

        def loss():
            z = F.normalize(model(x), dim=1)
            positive = (z * z.roll(count // 2, 0)).sum(1) / 0.5
            return (others(z @ z.t() / 0.5).logsumexp(1) - positive).mean()
        return training(model, loss, dtype=None)
    return (make(lambda scores: scores[~same].view(count, count - 1)),
            make(lambda scores: scores.masked_fill(same, float("-inf"))))


@pair("reduce_problem")
def experts_reached_by_products_with_one_hot():
    tokens, experts, room, width, inner = 4096, 16, 512, 1024, 4096
    x, router = rand(tokens, width, dtype=BF16), weight(experts, width, BF16)
    up, down = rand(experts, width, inner, dtype=BF16, scale=0.03), rand(experts, inner, width, dtype=BF16, scale=0.016)

    def routed():
        best, expert = torch.softmax(F.linear(x, router).float(), -1).max(-1)
        chosen = F.one_hot(expert, experts)
        return best.to(BF16), expert, chosen, ((chosen.cumsum(0) * chosen).sum(-1) - 1).clamp(max=room - 1)

    def worked(inputs):
        return torch.bmm(F.silu(torch.bmm(inputs, up)), down)

    def before():
        best, expert, chosen, place = routed()
        sent = chosen.to(BF16).unsqueeze(2) * F.one_hot(place, room).to(BF16).unsqueeze(1)
        out = worked(torch.einsum("sec,sm->ecm", sent, x))
        return torch.einsum("sec,ecm->sm", sent * best.view(-1, 1, 1), out)

    def after():
        best, expert, chosen, place = routed()
        slot = expert * room + place
        inputs = torch.zeros(experts * room, width, device=GPU, dtype=BF16).index_copy(0, slot, x)
        return worked(inputs.view(experts, room, width)).view(-1, width).index_select(0, slot) * best.unsqueeze(1)
    return before, after


# ---------------------------------------------------------------- recurrences and optimizers

@pair("cuda_graphs", "compile_model", "cut_host_work", "fuse_pointwise")
def states_scanned_step_by_step():
    decay, inputs = torch.sigmoid(rand(96, 8, 512, 16)), rand(96, 8, 512, 16)
    out, zero = rand(96, 8, 1, 16), torch.zeros(8, 512, 16, device=GPU)

    def step():
        h, ys = zero, []
        for a, b, c in zip(decay.unbind(0), inputs.unbind(0), out.unbind(0)):
            h = a * h + b
            ys.append((h * c).sum(-1))
        return torch.stack(ys)
    return step, captured(step)


@pair("batch_products", "cut_host_work", "cuda_graphs", "compile_model", "reduce_problem")
def retention_carried_from_token_to_token():
    q, k, v = (rand(8, 8, 96, 64) for _ in range(3))
    place = torch.arange(96, device=GPU)
    gap = place[:, None] - place
    decay = torch.where(gap >= 0, 0.97 ** gap.clamp(min=0).float(), 0.0)

    def before():
        state, out = torch.zeros(8, 8, 64, 64, device=GPU), []
        for t in range(96):
            state = 0.97 * state + k[:, :, t].unsqueeze(-1) * v[:, :, t].unsqueeze(-2)
            out.append(q[:, :, t].unsqueeze(-2) @ state)
        return torch.cat(out, -2)
    return before, lambda: (q @ k.mT * decay) @ v


@pair("batch_products", "cut_host_work", "cuda_graphs", "compile_model")
def muon_orthogonalises_each_matrix_alone():
    grads = [rand(512, 512, dtype=BF16) for _ in range(24)]

    def orthogonal(g):
        x = g / (g.norm(dim=(-2, -1), keepdim=True) + 1e-7)
        for _ in range(5):
            a = x @ x.mT
            x = 3.4445 * x + (2.0315 * (a @ a) - 4.775 * a) @ x
        return x
    return (lambda: [orthogonal(g) for g in grads]), lambda: orthogonal(torch.stack(grads)).unbind(0)


# ---------------------------------------------------------------- physics, chance and waves

@pair("fuse_pointwise", "compile_model", "fuse_norm")
def forces_of_lennard_and_jones():
    atoms = rand(4096, 3, scale=4.0)

    def step():
        apart = atoms[:, None] - atoms
        r2 = apart.pow(2).sum(-1) + 0.5
        s6 = 1 / (r2 * r2 * r2)
        return ((24 * (2 * s6 * s6 - s6) / r2).unsqueeze(-1) * apart).sum(1)
    return step, compiled(step)


@pair("remove_syncs", "cut_host_work", "cuda_graphs")
def moves_of_a_chain_accepted_by_the_host():
    stiff, start = rand(1024, 1024, scale=0.01), rand(1024)
    moves, luck = rand(24, 1024, scale=0.1), torch.rand(24, device=GPU)

    def energy(x):
        return x.pow(2).sum() + torch.tanh(stiff @ x).sum()

    def before():
        x, now = start, energy(start)
        for i in range(24):
            new = x + moves[i]
            then = energy(new)
            if bool(luck[i] < torch.exp(now - then)):
                x, now = new, then
        return x

    def after():
        x, now = start, energy(start)
        for i in range(24):
            new = x + moves[i]
            then = energy(new)
            taken = luck[i] < torch.exp(now - then)
            x, now = torch.where(taken, new, x), torch.where(taken, then, now)
        return x
    return before, after


@pair("leave_float64")
def vorticity_moved_by_spectra_in_double():
    size, whirl = 1024, torch.randn(4, 1024, 1024, dtype=torch.float64, device=GPU)

    def make(dtype):
        k = torch.fft.fftfreq(size, 1 / size, dtype=dtype, device=GPU)
        kx, ky = k[None, :], k[:, None]
        square = (kx * kx + ky * ky).clamp(min=1)
        flows, slopes = (1j * ky / square, -1j * kx / square), (1j * kx.expand(size, size), 1j * ky.expand(size, size))
        w0 = whirl.to(dtype)

        def step():
            spectrum = torch.fft.fft2(w0)
            u, v = (torch.fft.ifft2(spectrum * one).real for one in flows)
            along, across = (torch.fft.ifft2(spectrum * one).real for one in slopes)
            return w0 - 1e-3 * (u * along + v * across)
        return step
    return make(torch.float64), make(torch.float32)


@pair("reduce_problem")
def seismic_traces_filtered_as_complex_numbers():
    traces, taps = rand(512, 32768), rand(32768, scale=0.01)
    whole, half = torch.fft.fft(taps), torch.fft.rfft(taps)
    return (lambda: torch.fft.ifft(torch.fft.fft(traces) * whole).real,
            lambda: torch.fft.irfft(torch.fft.rfft(traces) * half, n=32768))


@pair("reduce_problem", "slow_op")
def long_filters_applied_tap_by_tap():
    length, taps = 8192, 1024
    x, filters = rand(2, 64, length), rand(64, 1, taps, scale=0.03)
    turned = filters.squeeze(1).flip(-1)

    def after():
        n = length + taps
        return torch.fft.irfft(torch.fft.rfft(x, n=n) * torch.fft.rfft(turned, n=n), n=n)[..., :length]
    return (lambda: F.conv1d(F.pad(x, (taps - 1, 0)), filters, groups=64)), after


@pair("reduce_problem")
def trace_of_a_product_taken_from_the_product():
    a, b = rand(4096, 4096), rand(4096, 4096)
    return (lambda: torch.trace(a @ b)), lambda: (a * b.t()).sum()


# ---------------------------------------------------------------- losses, layouts and buffers

@pair("fuse_norm", "reduce_problem", "compile_model", "fuse_pointwise")
def smoothed_loss_over_one_hot_targets():
    hidden, truth = rand(4096, 512, dtype=BF16), ints(16000, 4096)
    head = weight(16000, 512, BF16).requires_grad_()

    def run(loss):
        return lambda: torch.autograd.grad(loss(F.linear(hidden, head).float()), head)

    def by_hand(logits):
        smooth = F.one_hot(truth, 16000).float() * 0.9 + 0.1 / 16000
        return -(smooth * F.log_softmax(logits, -1)).sum(-1).mean()
    return run(by_hand), run(lambda logits: F.cross_entropy(logits, truth, label_smoothing=0.1))


@pair("fuse_epilogue", "fuse_pointwise", "reduce_problem", "compile_model")
def similarities_divided_by_a_temperature_afterwards():
    a, b = rand(16384, 256, dtype=BF16), rand(16384, 256, dtype=BF16)
    return (lambda: a @ b.t() / 0.07), lambda: (a / 0.07) @ b.t()


@pair("align_dimensions", "channels_last")
def stem_of_61_channels():
    def make(channels):
        x = rand(64, channels, 64, 64, dtype=BF16).to(memory_format=torch.channels_last)
        ws = [rand(channels, channels, 3, 3, dtype=BF16, scale=0.04).to(memory_format=torch.channels_last) for _ in range(4)]

        def step():
            y = x
            for w in ws:
                y = torch.relu(F.conv2d(y, w, padding=1))
            return y
        return step
    return make(61), make(64)


@pair("remove_fills", "remove_copies", "stop_allocating")
def feature_maps_joined_in_a_cleared_buffer():
    maps = [rand(32, 128, 96, 96, dtype=F16) for _ in range(3)]

    def run(made):
        def step():
            whole = made(32, 384, 96, 96, dtype=F16, device=GPU)
            for i, one in enumerate(maps):
                whole[:, 128 * i:128 * (i + 1)] = one
            return whole
        return step
    return run(torch.zeros), run(torch.empty)


@pair("reuse_result", "cut_host_work", "cuda_graphs", "compile_model")
def mel_filters_built_for_each_batch():
    clips, w = rand(32, 32000), rand(128, 80, 5, scale=0.05)

    def filters():
        hertz, mels = torch.linspace(0, 8000, 257, device=GPU), torch.linspace(0, 2840, 82, device=GPU)
        edges = 700 * (10 ** (mels / 2595) - 1)
        slopes, widths = edges[:, None] - hertz, (edges[1:] - edges[:-1]).unsqueeze(1)
        return torch.minimum(-slopes[:-2] / widths[:-1], slopes[2:] / widths[1:]).clamp(min=0), torch.hann_window(512, device=GPU)
    ready = filters()

    def run(of):
        def step():
            bank, window = of()
            power = torch.stft(clips, 512, 160, window=window, return_complex=True).abs().pow(2)
            return F.conv1d(torch.log(bank @ power + 1e-6), w, stride=2)
        return step
    return run(filters), run(lambda: ready)


# ---------------------------------------------------------------- transfers

@pair("cut_host_work", "pin_memory", "overlap_copies", "feed_the_device")
def scans_sent_one_by_one():
    scans, w = [torch.randn(2048, 4) for _ in range(64)], weight(128, 4)
    pinned = torch.empty(64, 2048, 4, pin_memory=True)

    def run(sent):
        return lambda: torch.relu(F.linear(sent(), w)).amax(1)

    def together():
        torch.stack(scans, out=pinned)
        return pinned.to(GPU, non_blocking=True)
    return run(lambda: torch.stack([scan.to(GPU) for scan in scans])), run(together)


@pair("overlap_copies", "keep_on_device")
def filtered_tiles_fetched_in_turn():
    layout = torch.channels_last
    tiles = [rand(8, 64, 256, 256, dtype=F16).to(memory_format=layout) for _ in range(6)]
    ws = [rand(out, 64, 3, 3, dtype=F16, scale=0.04).to(memory_format=layout) for out in (64, 64, 16)]
    buffers = [torch.empty(8, 16, 256, 256, dtype=F16, memory_format=layout, pin_memory=True) for _ in tiles]
    side = torch.cuda.Stream()

    def work(x):
        for w in ws:
            x = F.conv2d(x, w, padding=1)
        return x.contiguous(memory_format=layout)

    def before():
        for tile, buffer in zip(tiles, buffers):
            buffer.copy_(work(tile), non_blocking=True)

    def after():
        main = torch.cuda.current_stream()
        for tile, buffer in zip(tiles, buffers):
            out = work(tile)
            side.wait_stream(main)
            with torch.cuda.stream(side):
                buffer.copy_(out, non_blocking=True)
            out.record_stream(side)
        main.wait_stream(side)
    return before, after


# ---------------------------------------------------------------- own kernels in Triton

@triton.jit
def gate_kernel(gate, up, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    g, u = tl.load(gate + at).to(tl.float32), tl.load(up + at).to(tl.float32)
    tl.store(out + at, (g * tl.sigmoid(g) * u).to(tl.bfloat16))


@pair("tune_kernel", "stream_wider")
def own_gated_activation_of_small_blocks():
    count = 1 << 26
    gate, up, out = rand(count, dtype=BF16), rand(count, dtype=BF16), torch.empty(count, device=GPU, dtype=BF16)

    def run(block, warps):
        return lambda: gate_kernel[(count // block,)](gate, up, out, block, num_warps=warps)
    return run(64, 8), run(2048, 8)


@triton.jit
def columns_kernel(x, out, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    first = tl.program_id(1) * ROWS
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for row in range(ROWS):
        total += tl.load(x + (first + row) * columns + column)
    tl.atomic_add(out + column, total)


@pair("fill_the_device", "tune_kernel")
def own_column_sums_in_sixteen_programs():
    rows, columns = 16384, 2048
    x, out = rand(rows, columns), torch.zeros(columns, device=GPU)

    def run(each):
        def step():
            out.zero_()
            columns_kernel[(columns // 128, rows // each)](x, out, columns, each, 128)
        return step
    return run(rows), run(128)


# ---------------------------------------------------------------- what suggests itself and gains nothing

@null("cuda_graphs", "cut_host_work")
def null_graph_of_large_transforms():
    x, taps = torch.randn(64, 1 << 19, dtype=torch.complex64, device=GPU), torch.randn(1 << 19, dtype=torch.complex64, device=GPU)

    def step():
        return torch.fft.ifft(torch.fft.fft(x) * taps)
    return step, captured(step)


@null("tensor_cores")
def null_tf32_of_a_model_in_bf16():
    model, x = blocks(2, 1024, 16).to(BF16), rand(16, 512, 1024, dtype=BF16)
    work = without_gradients(lambda: model(x))
    return with_precision("highest", work), with_precision("high", work)


@null("fused_optimizer")
def null_optimizer_of_adapters():
    x = rand(32, 512, 1024)

    def make(**options):
        model, _ = with_adapters(4, 1024, 16, True)
        return training(model, lambda: model(x).float().pow(2).mean(), **options)
    return make(foreach=True), make(fused=True)


@null("channels_last")
def null_layout_of_pointwise_maps():
    x = rand(64, 256, 56, 56, dtype=F16)
    other = x.to(memory_format=torch.channels_last)
    return (lambda: torch.sigmoid(x)), lambda: torch.sigmoid(other)


@null("local_gathers", "coalesce")
def null_sorted_lookups_of_a_small_table():
    table, ids = rand(4096, 256), ints(4096, 1 << 18)
    ordered = ids.sort().values
    return (lambda: F.embedding(ids, table)), lambda: F.embedding(ordered, table)


@null("reuse_result")
def null_positions_built_once_in_a_long_step():
    ws, x0 = [weight(4096, 4096, BF16) for _ in range(6)], rand(16384, 4096, dtype=BF16)

    def waves():
        angle = torch.arange(4096, device=GPU) * 0.01
        return (torch.sin(angle) + torch.cos(angle)).to(BF16)
    ready = waves()

    def run(of):
        def step():
            x = x0 + of()
            for w in ws:
                x = F.linear(x, w)
            return x
        return step
    return run(waves), run(lambda: ready)


@null("compile_model", "fuse_pointwise")
def null_compiled_sort():
    x = rand(256, 65536)

    def step():
        return torch.sort(x, dim=1).values
    return step, compiled(step)


@null("batch_products", "cut_host_work", "cuda_graphs")
def null_large_experts_one_by_one():
    x, ws = rand(4, 8192, 4096, dtype=BF16), rand(4, 4096, 4096, dtype=BF16, scale=0.02)
    return (lambda: [x[i] @ ws[i] for i in range(4)]), lambda: torch.bmm(x, ws)


@null("overlap_copies")
def null_copies_that_are_the_whole_step():
    host, turn = torch.randn(4096, 4096).pin_memory(), [0]
    slots, side = [torch.zeros(4096, 4096, device=GPU) for _ in range(2)], torch.cuda.Stream()

    def before():
        slots[0].copy_(host, non_blocking=True)
        return slots[0].sum()

    def after():
        turn[0] ^= 1
        main = torch.cuda.current_stream()
        side.wait_stream(main)
        with torch.cuda.stream(side):
            slots[turn[0]].copy_(host, non_blocking=True)
        total = slots[turn[0] ^ 1].sum()
        main.wait_stream(side)
        return total
    return before, after
