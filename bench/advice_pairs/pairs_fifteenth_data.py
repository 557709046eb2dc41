# SPDX-License-Identifier: Apache-2.0
"""The programs of the fifteenth set whose work another form, order, layout or number format would do better.

Written on 27 November 2026 by a hand that had not read the rules, before any of them was measured. pairs_fifteenth.py says how
the set was written, and takes these pairs in.
"""

import copy
import functools
import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call

import triton
import triton.language as tl

from pairs_eleventh_steps import learnt
from pairs_fifteenth_steps import PAIRS, alike, four, turns  # noqa: F401  pairs_fifteenth.py takes the pairs in
from pairs_practice import BF16, F16, without_gradients
from pairs_sixth import ints
from pairs_unseen import GPU, pair, rand, weight


# ---------------------------------------------------------------- chains of small formulas

@triton.jit
def doubt_kernel(scores, out, words, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    most = tl.zeros((BLOCK,), dtype=tl.float32) - 1e30
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    weighed = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, words, BLOCK):
        x = tl.load(scores + row * words + start + at, mask=start + at < words, other=-1e30).to(tl.float32)
        now = tl.maximum(most, x)
        shrink, share = tl.exp(most - now), tl.exp(x - now)
        total = total * shrink + share
        weighed = weighed * shrink + share * x
        most = now
    top = tl.max(most, 0)
    shrink = tl.exp(most - top)
    whole = tl.sum(total * shrink, 0)
    tl.store(out + row, tl.log(whole) + top - tl.sum(weighed * shrink, 0) / whole)


@pair("fuse_norm", "fuse_pointwise", "compile_model", "reduce_problem")
def doubt_about_the_next_word_by_shares_and_logarithms():
    texts, words = 2048, 64000
    scores = four(lambda: rand(texts, words, dtype=BF16, scale=2.0))

    def by_shares(x):
        shares = torch.softmax(x.float(), -1)
        return -(shares * torch.log(shares + 1e-9)).sum(-1)

    def by_kernel(x):
        out = torch.empty(texts, device=GPU)
        doubt_kernel[(texts,)](x, out, words, 2048, num_warps=8)
        return out

    def run(doubt):
        following = turns(scores)

        def step():
            known = doubt(following())
            return {"doubt": known, "asks": (known > 8).float().mean()}
        return step
    return alike(run(by_shares), run(by_kernel))


@triton.jit
def gaps_kernel(x, seen, out, times, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = row * times + tl.arange(0, BLOCK)
    here = tl.load(seen + at).to(tl.float32)
    value = tl.load(x + at)
    count = tl.maximum(tl.sum(here, 0), 1.0)
    away = (value - tl.sum(value * here, 0) / count) * here
    spread = tl.sum(away * away, 0) / count
    tl.store(out + at, away / tl.sqrt(spread + 1e-5))


@pair("fuse_norm", "fuse_pointwise", "compile_model")
def series_standardised_without_their_gaps():
    series, times = 16384, 8192
    days = four(lambda: (rand(series, times) + 2, (torch.rand(series, times, device=GPU) < 0.7).to(torch.uint8)))

    def by_hand(x, seen):
        count = seen.sum(1, keepdim=True).clamp(min=1)
        mean = (x * seen).sum(1, keepdim=True) / count
        away = (x - mean) * seen
        spread = away.pow(2).sum(1, keepdim=True) / count
        return away / (spread + 1e-5).sqrt()

    def by_kernel(x, seen):
        out = torch.empty_like(x)
        gaps_kernel[(series,)](x, seen, out, times, times, num_warps=16)
        return out

    def run(even):
        following = turns(days)
        return lambda: even(*following())
    return alike(run(by_hand), run(by_kernel))


@triton.jit
def quantile_kernel(said, goals, out, COUNT: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, COUNT)
    away = tl.load(goals + row * COUNT + at)[None, :] - tl.load(said + row * COUNT + at)[:, None]
    size = tl.abs(away)
    bent = tl.where(size <= 1.0, 0.5 * away * away, size - 0.5)
    below = tl.where(away < 0.0, 1.0, 0.0)
    share = (at.to(tl.float32) + 0.5) / COUNT
    total = tl.sum(tl.abs(share[:, None] - below) * bent, 1)
    tl.store(out + row, tl.sum(total, 0) / COUNT)


@pair("fuse_pointwise", "compile_model", "fuse_norm")
def quantiles_of_returns_compared_pair_by_pair():
    states, count = 16384, 64
    known = four(lambda: (rand(states, count), rand(states, count)))
    shares = (torch.arange(count, device=GPU) + 0.5) / count

    def by_pairs(said, goals):
        away = goals[:, None, :] - said[:, :, None]
        size = away.abs()
        bent = torch.where(size <= 1.0, 0.5 * away.pow(2), size - 0.5)
        return ((shares[:, None] - (away < 0).float()).abs() * bent).sum(1).mean(1)

    def by_kernel(said, goals):
        out = torch.empty(states, device=GPU)
        quantile_kernel[(states,)](said, goals, out, count, num_warps=4)
        return out

    def run(compared):
        following = turns(known)

        def step():
            worth = compared(*following())
            return {"worth": worth, "chance": (worth + 1e-3).pow(0.6)}
        return step
    return alike(run(by_pairs), run(by_kernel))


@pair("fuse_epilogue", "fuse_pointwise", "compile_model")
def own_features_added_to_those_of_neighbours():
    nodes, width = 262144, 256
    x_all = four(lambda: (rand(nodes, width, dtype=F16), rand(nodes, width, dtype=F16)))
    layers = [(weight(width, width, F16), weight(width, width, F16), rand(width, dtype=F16, scale=0.1)) for _ in range(4)]

    def by_sums(x, near, own, others, b):
        return torch.relu(x @ own.t() + near @ others.t() + b)

    def by_products(x, near, own, others, b):
        return torch.relu_(F.linear(near, others, b).addmm_(x, own.t()))

    def run(mixed):
        following = turns(x_all)

        def step():
            x, near = following()
            for layer in layers:
                x = mixed(x, near, *layer)
            return x
        return step
    return alike(run(by_sums), run(by_products))


# ---------------------------------------------------------------- dimensions and number formats

@pair("align_dimensions", "remove_copies", "flash_attention")
def heads_of_75_numbers():
    texts, length, heads, each, padded, depth = 16, 1024, 16, 75, 80, 3
    width, spare = heads * each, padded - each
    x_all = four(lambda: rand(texts, length, width, dtype=F16))
    layers = [(weight(3 * width, width, F16), weight(width, width, F16)) for _ in range(depth)]

    def wider(w_in, w_out):
        w_in = F.pad(w_in.view(3 * heads, each, width), (0, 0, 0, spare)).reshape(-1, width)
        return w_in, F.pad(w_out.view(width, heads, each), (0, spare)).reshape(width, -1)

    def run(layers, size):
        following = turns(x_all)

        def step():
            x = following()
            for w_in, w_out in layers:
                qkv = F.linear(F.layer_norm(x, (width,)), w_in).view(texts, length, 3, heads, size)
                q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
                seen = F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=each ** -0.5)
                x = x + F.linear(seen.transpose(1, 2).reshape(texts, length, heads * size), w_out)
            return x
        return step
    return alike(run(layers, each), run([wider(*layer) for layer in layers], padded))


@pair("leave_float64", "fuse_pointwise", "compile_model")
def bootstraps_of_a_trial_in_float64():
    patients, draws = 1 << 20, 96
    chosen = four(lambda: ints(patients, draws, patients))
    given, ill = torch.rand(patients, device=GPU, dtype=torch.float64), rand(patients, dtype=torch.float64)

    def run(dtype):
        dose, score, following = given.to(dtype), ill.to(dtype), turns(chosen)

        def step():
            at = following()
            x, y = dose[at], torch.tanh(score[at] / 3)
            x, y = x - x.mean(1, keepdim=True), y - y.mean(1, keepdim=True)
            slope = (x * (y + 0.2 * x)).sum(1) / x.pow(2).sum(1)
            return {"slope": slope.float(), "spread": y.std(1).float()}
        return step
    return alike(run(torch.float64), run(torch.float32))


@pair("cast_weights_once", "reuse_result", "remove_copies")
def averaged_weights_halved_for_each_batch_of_an_evaluation():
    rows, width, depth = 256, 4096, 48
    questions = four(lambda: rand(rows, width, dtype=F16))
    torch.manual_seed(1)
    parts = []
    for _ in range(depth):
        parts += [nn.Linear(width, width, device=GPU), nn.SiLU(), nn.LayerNorm(width, device=GPU)]
    model = nn.Sequential(*parts).requires_grad_(False)
    averages = dict(model.state_dict())

    def halved():
        return {name: one.to(F16) for name, one in averages.items()}
    known = halved()

    def run(weights):
        following = turns(questions)

        def step():
            said = functional_call(model, weights(), (following(),)).float()
            return {"best": said.amax(1), "size": said.norm(dim=1)}
        return without_gradients(step)
    return alike(run(halved), run(lambda: known))


def two_filters(width):
    return nn.Sequential(*[part for _ in range(2) for part in (nn.Conv2d(width, width, 3, padding=1), nn.ReLU())])


class Hourglass(nn.Module):
    """A net that looks at smaller and smaller pictures, and adds what it saw to the larger ones."""

    def __init__(self, width, depth):
        super().__init__()
        self.beside, self.down, self.up = two_filters(width), two_filters(width), two_filters(width)
        self.inner = Hourglass(width, depth - 1) if depth > 1 else two_filters(width)

    def forward(self, x):
        low = self.up(self.inner(self.down(F.max_pool2d(x, 2))))
        return self.beside(x) + F.interpolate(low, scale_factor=2, mode="nearest")


@pair("channels_last", "remove_copies")
def joints_of_people_found_by_an_hourglass_in_planes():
    people, size, width = 32, 128, 128
    frames = four(lambda: rand(people, 3, size, size, dtype=F16))
    torch.manual_seed(1)
    model = nn.Sequential(nn.Conv2d(3, width, 7, padding=3), nn.ReLU(), Hourglass(width, 3), Hourglass(width, 3),
                          nn.Conv2d(width, 16, 1)).to(GPU, F16)
    places = torch.arange(size, device=GPU, dtype=torch.float32)

    def run(layout):
        net, following = copy.deepcopy(model).to(memory_format=layout), turns([x.to(memory_format=layout) for x in frames])

        def step():
            heat = torch.softmax(50 * net(following()).float().flatten(2), -1).view(people, 16, size, size)
            return (heat.sum(2) * places).sum(-1), (heat.sum(3) * places).sum(-1)
        return without_gradients(step)
    return alike(run(torch.contiguous_format), run(torch.channels_last))


@pair("quantize")
def pages_read_by_wide_layers_in_bf16():
    tokens, width, wide, depth = 8192, 4096, 14336, 2
    pages = four(lambda: F.layer_norm(rand(tokens, width, dtype=BF16), (width,)))
    layers = [(weight(wide, width, BF16), weight(width, wide, BF16)) for _ in range(depth)]
    small = torch.float8_e4m3fn
    known = [tuple((w * 64).to(small).t() for w in layer) for layer in layers]
    one, of_hidden, of_weight = (torch.tensor(value, device=GPU) for value in (1.0, 1 / 16, 1 / 64))
    product = functools.partial(torch._scaled_mm, out_dtype=BF16, use_fast_accum=True)

    def in_bf16(x, layer):
        up, down = layer
        return F.linear(F.silu(F.linear(x, up)), down)

    def in_fp8(x, layer):
        up, down = layer
        hidden = F.silu(product(x.to(small), up, scale_a=one, scale_b=of_weight))
        return product((hidden * 16).to(small), down, scale_a=of_hidden, scale_b=of_weight)

    def run(layers, read):
        following = turns(pages)

        def step():
            x = following()
            for layer in layers:
                x = F.layer_norm(x + read(x, layer), (width,))
            return x
        return step
    return alike(run(layers, in_bf16), run(known, in_fp8), most=0.1)


# ---------------------------------------------------------------- copies and places

@pair("remove_copies", "fuse_pointwise")
def voices_parted_by_masks_made_complex_by_copying():
    sounds, voices, tones, times = 32, 2, 513, 3000
    heard = four(lambda: (torch.view_as_complex(rand(sounds, 1, tones, times, 2)), rand(sounds, voices, tones, times, 2)))

    def by_copies(mixed, mask):
        voice = mixed * torch.complex(mask[..., 0], mask[..., 1])
        return torch.stack([voice.real, voice.imag], -1)

    def by_views(mixed, mask):
        return torch.view_as_real(mixed * torch.view_as_complex(mask))

    def run(parted):
        following = turns(heard)
        return lambda: parted(*following())
    return alike(run(by_copies), run(by_views))


@pair("local_gathers", "coalesce")
def neighbours_of_a_fluid_numbered_in_any_order():
    particles, near = 1 << 23, 12
    fluids = four(lambda: torch.rand(particles, 4, device=GPU))
    around = torch.randint(-600, 600, (particles, near), device=GPU)
    around = (torch.arange(particles, device=GPU)[:, None] + around) % particles
    place = torch.randperm(particles, device=GPU)  # where each particle lies in the order of its birth
    back = place.argsort()
    scattered = place[around[back]]

    def run(fluids, near_of):
        following = turns(fluids)

        def step():
            x = following()
            mixed = 0.5 * x + 0.5 * x.index_select(0, near_of.flatten()).view(particles, near, 4).mean(1)
            return {"mean": mixed.mean(0), "bound": (mixed * x).mean(0), "most": mixed.amax(0)}
        return step
    return alike(run(fluids, scattered), run([x[place] for x in fluids], around))


# ---------------------------------------------------------------- work that nobody needs

@pair("reduce_problem", "flash_attention")
def documents_packed_and_parted_by_a_mask():
    rows, packed, length, heads, each, depth = 4, 16, 256, 12, 64, 3
    width, whole = heads * each, packed * length
    x_all = four(lambda: rand(rows, whole, width, dtype=BF16))
    layers = [(weight(3 * width, width, BF16), weight(width, width, BF16)) for _ in range(depth)]
    place = torch.arange(whole, device=GPU)
    seen = (place[:, None] >= place) & (place[:, None] // length == place // length)

    def by_mask(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=seen)

    def apart(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    def run(attend, size):
        following = turns(x_all)

        def step():
            x = following()
            for w_in, w_out in layers:
                qkv = F.linear(F.layer_norm(x, (width,)), w_in).view(-1, size, 3, heads, each)
                q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
                x = x + F.linear(attend(q, k, v).transpose(1, 2).reshape(x.shape), w_out)
            return x
        return step
    return alike(run(by_mask, whole), run(apart, length))


@pair("reduce_problem", "batch_products")
def experts_asked_by_all_tokens_though_two_are_weighed():
    tokens, width, wide, experts, chosen = 16384, 2048, 4096, 8, 2
    x_all, gate = four(lambda: rand(tokens, width, dtype=BF16)), weight(experts, width, BF16)
    parts = [(weight(wide, width, BF16), weight(width, wide, BF16)) for _ in range(experts)]
    places = torch.arange(tokens * chosen, device=GPU)

    def by_all(x, shares, at):
        weighed, out = torch.zeros(tokens, experts, dtype=BF16, device=GPU).scatter_(1, at, shares), torch.zeros_like(x)
        for number, (up, down) in enumerate(parts):
            out = out + weighed[:, number:number + 1] * F.linear(F.silu(F.linear(x, up)), down)
        return out

    def by_chosen(x, shares, at):
        order = at.flatten().argsort(stable=True)
        counts = torch.bincount(at.flatten(), minlength=experts).tolist()
        asked = x[order // chosen].split(counts)
        said = torch.cat([F.linear(F.silu(F.linear(x, up)), down) for x, (up, down) in zip(asked, parts)])
        back = torch.empty_like(order).scatter_(0, order, places)
        return (said[back].view(tokens, chosen, width) * shares[..., None]).sum(1)

    def run(mixed):
        following = turns(x_all)

        def step():
            x = following()
            best = torch.topk(F.linear(x, gate).float(), chosen, 1)
            return x + mixed(x, torch.softmax(best.values, 1).to(BF16), best.indices)
        return step
    return alike(run(by_all), run(by_chosen))


@pair("reduce_problem")
def tastes_of_all_users_told_though_few_are_asked():
    users, near, width, asked = 262144, 16, 128, 4096
    start, links = rand(users, width, dtype=F16), ints(users, users, near)
    first, second, head = weight(width, 2 * width, F16), weight(width, 2 * width, F16), weight(64, width, F16)
    days = four(lambda: torch.randperm(users, device=GPU)[:asked])

    def told(x, w, at=None):
        own, around = (x, links) if at is None else (x[at], links[at])
        return torch.relu(F.linear(torch.cat([own, x[around].mean(1)], 1), w))

    def whole(x, at):
        return F.linear(told(told(x, first), second), head)[at]

    def in_part(x, at):
        return F.linear(told(told(x, first), second, at), head)

    def run(tastes):
        following = turns(days)
        return lambda: torch.sigmoid(tastes(start, following()).float())
    return alike(run(whole), run(in_part))


@pair("reduce_problem", "slow_op")
def gates_of_two_registers_joined_by_their_kronecker_product():
    size, states, depth = 64, 512, 12
    gates = [(weight(size, size), weight(size, size)) for _ in range(depth)]
    starts = four(lambda: rand(size * size, states))

    def joined(a, b, x):
        return torch.kron(a, b) @ x

    def in_turn(a, b, x):
        x = (a @ x.view(size, -1)).view(size, size, states)
        return torch.matmul(b, x).view(size * size, states)

    def run(turned):
        following = turns(starts)

        def step():
            x = following()
            for a, b in gates:
                x = turned(a, b, x)
            return x.pow(2).sum(1)
        return step
    return alike(run(joined), run(in_turn))


# ---------------------------------------------------------------- the same result again

@pair("reuse_result", "reduce_problem")
def hops_over_a_graph_walked_again_for_each_batch():
    nodes, near, width, kinds, batch = 131072, 16, 128, 40, 16384
    features, links = rand(nodes, width), ints(nodes, nodes, near)
    known = four(lambda: (ints(nodes, batch), ints(kinds, batch)))

    def walked():
        x = features
        for _ in range(2):
            x = 0.5 * x + 0.5 * x[links].mean(1)
        return x
    kept = walked()

    def make(smooth):
        torch.manual_seed(1)
        model, following = nn.Linear(width, kinds).to(GPU), turns(known)

        def loss():
            at, kind = following()
            return F.cross_entropy(model(smooth()[at]), kind)
        return learnt(model, loss, dtype=None)
    return alike(make(walked), make(lambda: kept))


@pair("reuse_result", "reduce_problem")
def slopes_of_a_chain_taken_twice_at_each_point():
    rows, width, chains, steps, far = 100000, 512, 64, 10, 1e-4
    x = rand(rows, width)
    y = (x @ rand(width, 1) > 0).float()
    starts = four(lambda: (rand(width, chains, scale=0.05), rand(width, chains)))

    def slope(place):
        return x.t() @ (torch.sigmoid(x @ place) - y) + place

    def twice(place, push):
        for _ in range(steps):
            push = push - 0.5 * far * slope(place)
            place = place + far * push
            push = push - 0.5 * far * slope(place)
        return place, push

    def once(place, push):
        known = slope(place)
        for _ in range(steps):
            push = push - 0.5 * far * known
            place = place + far * push
            known = slope(place)
            push = push - 0.5 * far * known
        return place, push

    def run(moved):
        following = turns(starts)
        return lambda: moved(*following())
    return alike(run(twice), run(once))


@pair("reuse_result", "reduce_problem")
def features_of_a_picture_taken_for_each_of_three_losses():
    pictures, size = 8, 192
    known = four(lambda: (rand(pictures, 3, size, size), rand(pictures, 3, size, size)))
    torch.manual_seed(1)
    parts, inner = [], 3
    for out in (64, 128, 256):
        parts += [nn.Conv2d(inner, out, 3, padding=1), nn.ReLU(), nn.Conv2d(out, out, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
        inner = out
    judge = nn.Sequential(*parts).to(GPU, memory_format=torch.channels_last).requires_grad_(False)

    def styled(seen):
        flat = seen.float().flatten(2)
        return flat @ flat.mT / flat.shape[2]

    def in_content(ours, theirs):
        return (ours - theirs).float().abs().mean()

    def in_style(ours, theirs):
        return (styled(ours) - styled(theirs)).pow(2).mean()

    def in_means(ours, theirs):
        return (ours.float().mean((2, 3)) - theirs.float().mean((2, 3))).pow(2).mean()

    def make(once):
        torch.manual_seed(2)
        parts = [nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 3, 3, padding=1)]
        model, following = nn.Sequential(*parts).to(GPU, memory_format=torch.channels_last), turns(known)

        def loss():
            rough, goal = following()
            made = model(rough)
            total, seen = (made.float() - goal).abs().mean(), (judge(made), judge(goal)) if once else None
            for away in (in_content, in_style, in_means):
                total = total + away(*(seen or (judge(made), judge(goal))))
            return total
        return learnt(model, loss)
    return alike(make(False), make(True))


# ---------------------------------------------------------------- ops that are slow for what is asked

@pair("slow_op", "reduce_problem")
def skies_blurred_by_a_wide_disc():
    skies, size, wide = 8, 512, 65
    nights = four(lambda: rand(skies, 1, size, size))
    far = torch.arange(wide, device=GPU) - wide // 2
    disc = ((far[:, None] ** 2 + far ** 2) <= (wide // 2) ** 2).float()
    disc = disc / disc.sum()
    tall = size + wide - 1
    tall += -tall % 64
    known = torch.fft.rfft2(disc, s=(tall, tall))

    def by_window(sky):
        return F.conv2d(sky, disc[None, None], padding=wide // 2)

    def by_transform(sky):
        spread = torch.fft.irfft2(torch.fft.rfft2(sky, s=(tall, tall)) * known, s=(tall, tall))
        return spread[:, :, wide // 2:wide // 2 + size, wide // 2:wide // 2 + size]

    def run(blurred):
        following = turns(nights)

        def step():
            sky = following()
            return (sky - blurred(sky)).clamp(min=0)
        return step
    return alike(run(by_window), run(by_transform))


@pair("slow_op", "reduce_problem")
def ranks_of_genes_found_by_sorting_twice():
    cells, genes, kinds = 4096, 8192, 16
    tissues, marks = four(lambda: rand(cells, genes)), rand(genes, kinds, scale=1 / genes)
    places = torch.arange(genes, device=GPU).expand(cells, -1)

    def twice(x):
        return x.argsort(1).argsort(1)

    def once(x):
        order = x.argsort(1)
        return torch.empty_like(order).scatter_(1, order, places)

    def run(ranks):
        following = turns(tissues)

        def step():
            rank = ranks(following()).float() / genes - 0.5
            return rank @ marks
        return step
    return alike(run(twice), run(once))


@pair("slow_op", "reduce_problem", "remove_syncs")
def turns_of_bodies_by_the_exponential_of_the_library():
    bodies, points = 1 << 20, 8
    moves, shape = four(lambda: rand(bodies, 3, scale=0.4)), rand(3, points)

    def crossed(move):
        x, y, z = move.unbind(1)
        none = torch.zeros_like(x)
        return torch.stack([none, -z, y, z, none, -x, -y, x, none], 1).view(-1, 3, 3)

    def by_library(move):
        return torch.linalg.matrix_exp(crossed(move)) @ shape

    def by_formula(move):
        cross, angle = crossed(move), move.norm(dim=1).clamp(min=1e-6)[:, None, None]
        turned = cross @ shape
        return shape + torch.sin(angle) / angle * turned + (1 - torch.cos(angle)) / angle ** 2 * (cross @ turned)

    def run(turned):
        following = turns(moves)
        return lambda: turned(following())
    return alike(run(by_library), run(by_formula))


@pair("fill_the_device", "slow_op", "reduce_problem")
def losses_since_the_best_day_of_four_long_records():
    funds, minutes, part = 4, 1 << 22, 2048
    prices = four(lambda: 100 + rand(funds, minutes, scale=0.01).cumsum(1))

    def by_library(price):
        return price.cummax(1).values

    def by_parts(price):
        inner = price.view(funds, -1, part).cummax(2).values
        before = F.pad(inner[:, :-1, -1].cummax(1).values, (1, 0), value=-math.inf)
        return torch.maximum(inner, before[..., None]).view(funds, -1)

    def run(highest):
        following = turns(prices)

        def step():
            price = following()
            lost = price / highest(price) - 1
            return {"worst": lost.amin(1), "mean": lost.mean(1), "low": (lost < -0.02).float().mean(1)}
        return step
    return alike(run(by_library), run(by_parts))
