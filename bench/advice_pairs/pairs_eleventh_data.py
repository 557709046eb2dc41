# SPDX-License-Identifier: Apache-2.0
"""Steps of the eleventh set that work with data of the host, with graphs and with tables.

Written on 27 November 2026 by a hand that had not read the rules, and recorded on that day. pairs_eleventh.py says how the set was
written, and takes these pairs in.
"""

import json

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from pairs_eleventh_steps import PAIRS, alike, learnt, replayed  # noqa: F401  pairs_eleventh.py takes the pairs in
from pairs_practice import BF16, F16, compiled
from pairs_sixth import ints
from pairs_unseen import GPU, pair, rand, weight


# ---------------------------------------------------------------- memory of the host and its data

@pair("keep_on_device", "remove_syncs", "pin_memory", "overlap_copies", "slow_op")
def hard_negatives_sought_on_the_host():
    queries, memory = (F.normalize(rand(count, 256), dim=1).to(BF16) for count in (256, 8192))
    w = weight(256, 256, BF16)

    def on_the_host(scores):
        return scores.cpu().topk(32, 1).indices.to(GPU)

    def on_the_device(scores):
        return scores.topk(32, 1).indices

    def run(chosen):
        def step():
            asked = F.linear(queries, w)
            scores = (asked @ memory.t()).float()
            near = memory[chosen(scores)].float()
            return F.softplus((near * asked[:, None].float()).sum(2)).mean(1)
        return step
    return alike(run(on_the_host), run(on_the_device))


@pair("pin_memory", "overlap_copies", "keep_on_device")
def embeddings_of_pages_fetched_into_ordinary_memory():
    x, up, down = rand(16384, 1024, dtype=BF16), weight(4096, 1024, BF16), weight(512, 4096, BF16)
    kept = torch.empty(16384, 512).pin_memory()

    def ordinary(y):
        return y.cpu()

    def pinned(y):
        kept.copy_(y, non_blocking=True)
        torch.cuda.current_stream().synchronize()
        return kept

    def run(fetched):
        return lambda: fetched(F.linear(F.gelu(F.linear(x, up)), down).float())
    return alike(run(ordinary), run(pinned))


class Requests(torch.utils.data.Dataset):
    """Batches of log lines, parsed when they are asked for."""

    def __init__(self, lines):
        super().__init__()
        self.lines = lines

    def __len__(self):
        return 1 << 20

    def __getitem__(self, at):
        chosen = np.random.default_rng(at).integers(len(self.lines), size=1024)
        parsed = [json.loads(self.lines[i]) for i in chosen]
        return (torch.tensor([one["items"] for one in parsed]), torch.tensor([one["prices"] for one in parsed]),
                torch.tensor([one["bought"] for one in parsed], dtype=torch.float32))


@pair("feed_the_device", "cut_host_work")
def log_lines_parsed_in_the_loop():
    random = np.random.default_rng(0)
    lines = [json.dumps({"items": random.integers(50000, size=24).tolist(), "prices": random.random(24).round(4).tolist(),
                         "bought": int(random.integers(2))}) for _ in range(4096)]

    def make(workers):
        torch.manual_seed(1)
        table = nn.Embedding(50000, 64).to(GPU)
        net = nn.Sequential(nn.Linear(88, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1)).to(GPU)
        options = {"persistent_workers": True, "prefetch_factor": 2} if workers else {}
        batches = iter(torch.utils.data.DataLoader(Requests(lines), batch_size=None, num_workers=workers, **options))

        def loss():
            items, prices, bought = (part.to(GPU) for part in next(batches))
            seen = torch.cat([table(items).mean(1), prices], 1)
            return F.binary_cross_entropy_with_logits(net(seen).squeeze(1), bought)
        return learnt(nn.ModuleList([table, net]), loss, dtype=None)
    return alike(make(0), make(8))


# ---------------------------------------------------------------- graphs, tables and trackers

@pair("reuse_result", "reduce_problem", "slow_op")
def degrees_of_a_graph_counted_in_each_layer():
    nodes, edges, width = 200_000, 2_000_000, 32
    source, target, x0 = ints(nodes, edges), ints(nodes, edges), rand(nodes, width)
    ws = [weight(width, width) for _ in range(4)]

    def shares():
        degree = torch.zeros(nodes, device=GPU).index_add_(0, target, torch.ones(edges, device=GPU)).clamp_(min=1)
        return torch.rsqrt(degree.index_select(0, source) * degree.index_select(0, target))[:, None]

    def run(once):
        def step():
            x, known = x0, shares() if once else None
            for w in ws:
                sent = F.linear(x, w).index_select(0, source) * (known if once else shares())
                x = torch.relu(torch.zeros_like(x0).index_add_(0, target, sent))
            return x
        return step
    return alike(run(False), run(True))


@pair("local_gathers", "coalesce")
def cells_of_a_detector_looked_up_as_hits_arrive():
    cells = 1 << 24
    table, hits, scale = rand(cells, 4), ints(cells, cells), rand(4)

    def run(hits):
        def step():
            found = table.index_select(0, hits)
            return torch.relu(found * scale).sum(0)
        return step
    return alike(run(hits), run(hits.sort().values))


@pair("remove_syncs", "cut_host_work", "cuda_graphs")
def tracks_started_again_where_they_are_lost():
    tracks, frames = 4096, 16
    state0, found, scores = rand(tracks, 6), rand(frames, tracks, 6), torch.rand(frames, tracks, device=GPU)
    move, gain = rand(6, 6, scale=0.4), 0.3

    def by_selection(state, new, lost):
        if lost.any():
            state = state.clone()
            state[lost] = new[lost]
        return state

    def by_where(state, new, lost):
        return torch.where(lost[:, None], new, state)

    def run(restarted):
        def step():
            state = state0
            for t in range(frames):
                state = state @ move
                state = state + gain * (found[t] - state)
                state = restarted(state, found[t], scores[t] < 0.1)
            return state
        return step
    return alike(run(by_selection), run(by_where))


@pair("cut_host_work", "cuda_graphs", "compile_model", "batch_products")
def repeated_words_punished_sequence_by_sequence():
    batch, words = 48, 50304
    hidden, head, said = rand(batch, 1024, dtype=BF16), weight(words, 1024, BF16), ints(words, batch, 256)
    lists = list(said.unbind(0))

    def punished(score):
        return torch.where(score > 0, score / 1.2, score * 1.2)

    def one_by_one(scores):
        for i, ids in enumerate(lists):
            scores[i, ids] = punished(scores[i, ids])
        return scores

    def at_once(scores):
        return scores.scatter_(1, said, punished(scores.gather(1, said)))

    def run(repeated):
        return lambda: repeated(F.linear(hidden, head).float()).topk(40, 1).values
    return alike(run(one_by_one), run(at_once))


@pair("remove_copies", "stop_allocating")
def columns_of_a_dense_net_joined_again_in_each_layer():
    rows, first, grown, count = 131072, 256, 64, 8
    x, ws = rand(rows, first, dtype=F16), [weight(grown, first + grown * i, F16) for i in range(count)]

    def before():
        parts = [x]
        for w in ws:
            parts.append(torch.relu(F.linear(torch.cat(parts, 1), w)))
        return torch.cat(parts, 1)

    def after():
        joined = torch.empty(rows, first + grown * count, dtype=F16, device=GPU)
        joined[:, :first] = x
        for i, w in enumerate(ws):
            end = first + grown * i
            joined[:, end:end + grown] = torch.relu(F.linear(joined[:, :end], w))
        return joined
    return alike(before, after)


# ---------------------------------------------------------------- numerical programs

@pair("reuse_result", "reduce_problem", "slow_op", "batch_products")
def covariance_factorised_for_each_observation():
    count = 1024
    a = rand(count, count)
    covariance = a @ a.t() / count + 2 * torch.eye(count, device=GPU)
    seen = [rand(count, 16) for _ in range(5)]

    def before():
        return [torch.linalg.solve(covariance, y) for y in seen]

    def after():
        factors = torch.linalg.lu_factor(covariance)
        return [torch.linalg.lu_solve(*factors, y) for y in seen]
    return alike(before, after)


@pair("reduce_problem")
def systems_iterated_after_they_converged():
    systems, size = 16384, 64
    a, b = rand(systems, size, size, scale=0.01), rand(systems, size, 1)
    open_ones = torch.arange(systems, device=GPU) % 8 == 0
    chosen, start = open_ones.nonzero().squeeze(1), b.clone()

    def before():
        x = start
        for _ in range(16):
            x = torch.where(open_ones[:, None, None], b - a @ x, x)
        return x

    def after():
        some_a, some_b = a.index_select(0, chosen), b.index_select(0, chosen)
        x = start.index_select(0, chosen)
        for _ in range(16):
            x = some_b - some_a @ x
        return start.index_copy(0, chosen, x)
    return alike(before, after)


@pair("batch_products", "cut_host_work", "cuda_graphs", "compile_model", "fill_the_device")
def beams_formed_band_by_band():
    bands, microphones, frames = 64, 16, 512
    heard = torch.randn(bands, microphones, frames, dtype=torch.complex64, device=GPU)
    steered = torch.randn(bands, microphones, 1, dtype=torch.complex64, device=GPU)

    def formed(x, towards):
        weights = (x @ x.mH / frames) @ towards
        return weights.mH @ x
    return alike(lambda: torch.stack([formed(heard[i], steered[i]) for i in range(bands)]), lambda: formed(heard, steered))


@pair("cuda_graphs", "compile_model", "cut_host_work")
def reactors_advanced_by_runge_and_kutta():
    start, orders, speeds = torch.rand(256, 32, device=GPU) + 0.5, rand(32, 64, scale=0.1), rand(64, scale=0.1)
    produced = rand(64, 32, scale=0.1)

    def rates(c):
        return torch.exp(torch.log(c.clamp(min=1e-6)) @ orders + speeds) @ produced

    def step():
        c, h = start, 0.01
        for _ in range(10):
            k1 = rates(c)
            k2 = rates(c + h / 2 * k1)
            k3 = rates(c + h / 2 * k2)
            k4 = rates(c + h * k3)
            c = c + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return c
    return alike(step, replayed(step))


@pair("leave_float64", "fuse_pointwise", "compile_model")
def points_of_a_lidar_moved_in_float64():
    points, turns = rand(32, 1 << 17, 3), torch.linalg.qr(rand(32, 3, 3))[0]
    shifts = rand(32, 1, 3)

    def run(dtype):
        turn, shift = turns.to(dtype), shifts.to(dtype)

        def step():
            x = points.to(dtype) @ turn + shift
            away = x.pow(2).sum(-1).sqrt()
            column = torch.atan2(x[..., 1], x[..., 0]) * 326.0
            row = torch.asin(x[..., 2] / (away + 1e-3)) * 120.0
            return torch.stack([column, row, away], -1).float()
        return step
    return alike(run(torch.float64), run(torch.float32))


@pair("fuse_pointwise", "compile_model")
def prices_with_a_wandering_volatility():
    paths, days, h = 1 << 23, 8, 0.01
    noise = rand(days, 2, paths)

    def step():
        price, spread = torch.zeros(paths, device=GPU), torch.full((paths,), 0.04, device=GPU)
        for t in range(days):
            root = torch.sqrt(spread.clamp(min=0) * h)
            price = price - 0.5 * h * spread.clamp(min=0) + root * noise[t, 0]
            spread = spread + 2.0 * h * (0.04 - spread) + 0.3 * root * (0.714 * noise[t, 1] - 0.7 * noise[t, 0])
        return torch.relu(torch.exp(price) - 1.0)
    return alike(step, compiled(step))


@pair("fuse_pointwise", "compile_model")
def photos_mapped_to_the_range_of_a_screen():
    photos = rand(4, 3, 2160, 3840, dtype=F16).abs()

    def step():
        x = photos * 0.6
        y = (x * (2.51 * x + 0.03) / (x * (2.43 * x + 0.59) + 0.14)).clamp(0, 1)
        return torch.where(y < 0.0031308, 12.92 * y, 1.055 * y.pow(1 / 2.4) - 0.055)
    return alike(step, compiled(step))


@pair("slow_op", "reduce_problem", "remove_syncs")
def eigenvalues_of_small_tensors_by_the_library():
    a = rand(1 << 15, 3, 3)
    tensors = a @ a.mT + 0.1 * torch.eye(3, device=GPU)

    def after():
        mean = tensors.diagonal(dim1=1, dim2=2).mean(1)
        apart = tensors - mean[:, None, None] * torch.eye(3, device=GPU)
        size = (apart.pow(2).sum((1, 2)) / 6).sqrt()
        x, y, z = (apart / size[:, None, None]).unbind(1)
        half = ((torch.linalg.cross(x, y) * z).sum(1) / 2).clamp(-1, 1)
        angle = torch.acos(half) / 3
        greatest, least = mean + 2 * size * torch.cos(angle), mean + 2 * size * torch.cos(angle + 2.0943951)
        return torch.stack([least, 3 * mean - greatest - least, greatest], 1)
    return alike(lambda: torch.linalg.eigvalsh(tensors), after)


@pair("slow_op", "reduce_problem")
def highest_price_of_a_sliding_window():
    prices = rand(16, 1, 1 << 17).cumsum(2)

    def after():
        high, width = prices, 1
        while width < 256:
            high = torch.maximum(high[..., :-width], high[..., width:])
            width *= 2
        return high
    return alike(lambda: F.max_pool1d(prices, 256, stride=1), after)
