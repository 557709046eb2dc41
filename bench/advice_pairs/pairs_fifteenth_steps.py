# SPDX-License-Identifier: Apache-2.0
"""The programs of the fifteenth set in which the host, the copies or the parts of a training step are what is wrong.

Written on 27 November 2026 by a hand that had not read the rules, before any of them was measured. pairs_fifteenth.py says how
the set was written, and takes these pairs in.
"""

import collections
import concurrent.futures

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

import pairs_fourteenth_steps as fourteenth
from pairs_eleventh_steps import learnt, replayed
from pairs_fourteenth_steps import alike, four, turns
from pairs_practice import BF16, F16, without_gradients
from pairs_seventh_steps import blocks
from pairs_sixth import ints
from pairs_thirteenth_data import layer_of
from pairs_unseen import GPU, pair, rand, weight, with_precision

fourteenth.PAIRS.clear()
PAIRS = fourteenth.PAIRS


# ---------------------------------------------------------------- the host waits

@pair("remove_syncs", "cut_host_work", "cuda_graphs", "keep_on_device")
def schedule_of_noise_read_number_by_number():
    count, width, wide, steps = 8192, 256, 1024, 24
    starts, sigmas = four(lambda: 10 * rand(count, width)), torch.linspace(10, 0.02, steps + 1, device=GPU)
    first, last, known = weight(wide, width, BF16), weight(width, wide, BF16), sigmas.tolist()
    layers = [(weight(wide, wide, BF16), weight(wide, wide, BF16)) for _ in range(2)]

    def cleaned(x, sigma):
        inner = (sigma ** 2 + 0.25) ** 0.5
        hidden = F.linear((x / inner).to(BF16), first)
        for up, down in layers:
            hidden = layer_of(hidden, up, down)
        return 0.25 / inner ** 2 * x + 0.5 * sigma / inner * F.linear(hidden, last).float()

    def run(level):
        following = turns(starts)

        def step():
            x = following()
            for number in range(steps):
                now, then = level(number), level(number + 1)
                x = x + (then - now) / now * (x - cleaned(x, now))
            return x
        return without_gradients(step)
    return alike(run(lambda number: sigmas[number].item()), run(lambda number: known[number]))


@pair("remove_syncs", "cut_host_work", "cuda_graphs")
def particles_resampled_when_the_host_says_so():
    tracks, particles, times = 64, 32768, 12
    seen, starts = four(lambda: rand(times, tracks, 1)), rand(tracks, particles)
    noises = [rand(tracks, particles, scale=0.3) for _ in range(times)]
    even = (torch.arange(particles, device=GPU) + 0.5).expand(tracks, -1).contiguous() / particles

    def drawn(places, logs, shares, few):
        order = torch.searchsorted(shares.cumsum(1), even).clamp(max=particles - 1)
        return torch.where(few, places.gather(1, order), places), torch.where(few, 0.0, logs)

    def run(asks):
        following = turns(seen)

        def step():
            places, logs, means = starts, torch.zeros_like(starts), []
            for heard, noise in zip(following(), noises):
                places = 0.9 * places + torch.sin(places) + noise
                logs = logs - 2 * (places - heard).pow(2)
                shares = torch.softmax(logs, 1)
                means.append((shares * places).sum(1))
                few = 1 / shares.pow(2).sum(1, keepdim=True) < particles / 2
                if not asks or bool(few.any()):
                    places, logs = drawn(places, logs, shares, few)
            return torch.stack(means)
        return step
    return alike(run(True), run(False))


@pair("fused_optimizer", "remove_syncs", "cut_host_work", "cuda_graphs", "compile_model")
def scaler_that_waits_before_each_update():
    rows, width, depth = 4096, 512, 16
    known = four(lambda: (rand(rows, width), rand(rows, width)))

    def make(**options):
        torch.manual_seed(1)
        parts = [part for _ in range(depth) for part in (nn.Linear(width, width), nn.LayerNorm(width), nn.SiLU())]
        model, following = nn.Sequential(*parts).to(GPU), turns(known)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, **options)
        scaler = torch.amp.GradScaler(GPU, init_scale=1024.0)

        def step():
            x, goal = following()
            optimizer.zero_grad()
            with torch.autocast(GPU, F16):
                loss = F.smooth_l1_loss(model(x).float(), goal)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            return loss.detach()
        return step
    return alike(make(), make(fused=True))


@pair("keep_on_device", "remove_syncs", "pin_memory", "overlap_copies", "slow_op")
def beams_ranked_on_the_host():
    asked, beams, words, width, length = 16, 4, 32000, 512, 4
    torch.manual_seed(1)
    cell, table, head = nn.GRUCell(width, width).to(GPU), rand(words, width), 3 * weight(words, width)
    starts = four(lambda: (rand(asked, width), ints(words, asked)))
    first = torch.arange(asked, device=GPU)[:, None] * beams
    none = torch.tensor([0.0] + [-1e9] * (beams - 1), device=GPU).repeat(asked, 1)

    def on_host(scores):
        best = scores.cpu().topk(beams, 1)
        return best.values.to(GPU), best.indices.to(GPU)

    def on_device(scores):
        return scores.topk(beams, 1)

    def run(chosen):
        following = turns(starts)

        def step():
            hidden, word = following()
            hidden, word = hidden.repeat_interleave(beams, 0), word.repeat_interleave(beams)
            score, told = none, []
            for _ in range(length):
                hidden = cell(table[word], hidden)
                logs = torch.log_softmax(F.linear(hidden, head), 1).view(asked, beams, words)
                score, at = chosen((score[..., None] + logs).view(asked, -1))
                hidden, word = hidden[(first + at // words).flatten()], (at % words).flatten()
                told.append(score)
            return torch.stack(told)
        return without_gradients(step)
    return alike(run(on_host), run(on_device))


# ---------------------------------------------------------------- the device waits for its data

@pair("feed_the_device", "keep_on_device", "cut_host_work")
def curves_of_light_folded_in_the_loop():
    stars, times, kinds, width = 64, 2048, 6, 64
    chance = np.random.default_rng(0)
    nights = [(chance.uniform(0, 100, (stars, times)), chance.normal(size=(stars, times)), chance.uniform(0.3, 9, (stars, 1)),
               chance.integers(0, kinds, stars)) for _ in range(4)]

    def folded(night):
        when, light, period, kind = night
        phase = when / period % 1.0
        curve = np.take_along_axis(light, phase.argsort(1), 1)
        curve = (curve - curve.mean(1, keepdims=True)) / curve.std(1, keepdims=True)
        return torch.from_numpy(curve[:, None].astype(np.float32)), torch.from_numpy(kind)

    def in_turn():
        following = turns(nights)
        return lambda: folded(following())

    def ahead():
        following, pool = turns(nights), concurrent.futures.ThreadPoolExecutor(4)
        made = collections.deque(pool.submit(folded, following()) for _ in range(6))

        def batch():
            made.append(pool.submit(folded, following()))
            return made.popleft().result()
        return batch

    def make(batch):
        torch.manual_seed(1)
        parts, inner = [], 1
        for _ in range(4):
            parts += [nn.Conv1d(inner, width, 9, padding=4), nn.ReLU(), nn.MaxPool1d(2)]
            inner = width
        model = nn.Sequential(*parts, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(width, kinds)).to(GPU)

        def loss():
            curves, kind = batch()
            return F.cross_entropy(model(curves.to(GPU)).float(), kind.to(GPU))
        return learnt(model, loss)
    return alike(make(in_turn()), make(ahead()))


@pair("feed_the_device", "keep_on_device", "cut_host_work", "pin_memory")
def moves_of_a_memory_stacked_from_a_list():
    kept, batch, width, wide, moves = 8192, 1024, 64, 512, 8
    chance = np.random.default_rng(0)
    states = chance.normal(size=(kept + 1, width)).astype(np.float32)
    taken, gains = chance.integers(0, moves, kept), chance.normal(size=kept).astype(np.float32)
    ends = (chance.random(kept) < 0.01).astype(np.float32)
    memory = [(states[i], int(taken[i]), float(gains[i]), states[i + 1], float(ends[i])) for i in range(kept)]
    orders = [chance.permutation(kept)[:batch] for _ in range(4)]
    there = [torch.from_numpy(one).to(GPU) for one in (states[:-1], taken, gains, states[1:], ends)]
    orders_there = [torch.from_numpy(order).to(GPU) for order in orders]

    def from_list(order):
        state, move, gain, then, end = zip(*[memory[i] for i in order])
        state, then = torch.from_numpy(np.stack(state)).to(GPU), torch.from_numpy(np.stack(then)).to(GPU)
        return state, torch.tensor(move, device=GPU), torch.tensor(gain, device=GPU), then, torch.tensor(end, device=GPU)

    def from_device(order):
        return [one[order] for one in there]

    def make(orders, drawn):
        torch.manual_seed(1)
        parts = [nn.Linear(width, wide), nn.ReLU(), nn.Linear(wide, wide), nn.ReLU(), nn.Linear(wide, moves)]
        model, following = nn.Sequential(*parts).to(GPU), turns(orders)

        def loss():
            state, move, gain, then, end = drawn(following())
            with torch.no_grad():
                goal = gain + 0.99 * (1 - end) * model(then).amax(1)
            return F.smooth_l1_loss(model(state).gather(1, move[:, None]).squeeze(1), goal)
        return learnt(model, loss, dtype=None)
    return alike(make(orders, from_list), make(orders_there, from_device))


@pair("overlap_copies")
def volumes_of_a_scanner_uploaded_before_their_net():
    deep, size, width = 128, 512, 16
    scans = four(lambda: torch.randint(-1000, 1000, (1, 1, deep, size, size), dtype=torch.int16).pin_memory())
    filters = [rand(out, inner, 3, 3, 3, dtype=F16, scale=(27 * inner) ** -0.5)
               for out, inner in ((width, 1), (2 * width, width), (2 * width, 2 * width))]
    head = weight(4, 2 * width, F16)

    def seen(scan):
        x = scan.to(F16) / 1000
        for number, w in enumerate(filters):
            x = torch.relu(F.conv3d(x, w, stride=2 if number < 2 else 1, padding=1))
        return F.linear(x.float().mean((2, 3, 4)).to(F16), head)

    def in_turn():
        following = turns(scans)
        return lambda: seen(following().to(GPU, non_blocking=True))

    def ahead():
        following, side, number = turns(scans), torch.cuda.Stream(), [0]
        rooms = [torch.empty(1, 1, deep, size, size, dtype=torch.int16, device=GPU) for _ in range(2)]

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
            return seen(rooms[here])
        return step
    return alike(in_turn(), ahead())


# ---------------------------------------------------------------- many small kernels

@pair("cuda_graphs", "cut_host_work", "compile_model", "fuse_pointwise")
def sentence_translated_by_a_cell_that_looks_back():
    texts, read, width, words, length = 32, 48, 512, 8000, 24
    torch.manual_seed(1)
    cell = nn.GRUCell(2 * width, width).to(GPU)
    table, head, start = rand(words, width), weight(words, 2 * width), ints(words, texts)
    w_key, w_query, w_score = weight(width, width), weight(width, width), weight(1, width)
    memories = four(lambda: rand(texts, read, width))

    def told(memory):
        keys, hidden, word, out = F.linear(memory, w_key), memory.mean(1), start, []
        for _ in range(length):
            near = F.linear(torch.tanh(keys + F.linear(hidden, w_query)[:, None]), w_score)
            looked = (torch.softmax(near, 1) * memory).sum(1)
            hidden = cell(torch.cat([F.embedding(word, table), looked], 1), hidden)
            scores = F.linear(torch.cat([hidden, looked], 1), head)
            word = scores.argmax(1)
            out.append(scores.amax(1))
        return torch.stack(out)

    def by_graph():
        following, room = turns(memories), memories[0].clone()
        replay = replayed(without_gradients(lambda: told(room)))

        def step():
            room.copy_(following())
            return replay()
        return step
    following = turns(memories)
    return alike(without_gradients(lambda: told(following())), by_graph())


@pair("cuda_graphs", "cut_host_work", "compile_model", "fuse_pointwise")
def heat_learnt_from_the_derivatives_of_a_net():
    points, width = 8192, 128
    places = four(lambda: torch.rand(points, 2, device=GPU))

    def graded(model, parameters, at):
        at = at.detach().requires_grad_()
        heat = model(at)
        moved = torch.autograd.grad(heat.sum(), at, create_graph=True)[0]
        bent = torch.autograd.grad(moved[:, 1].sum(), at, create_graph=True)[0][:, 1]
        start = torch.cat([torch.zeros_like(at[:, :1]), at[:, 1:]], 1).detach()
        loss = (moved[:, 0] - 0.1 * bent).pow(2).mean()
        loss = loss + (model(start) - torch.sin(3.14159 * start[:, 1:])).pow(2).mean()
        return (loss.detach(), *torch.autograd.grad(loss, parameters))

    def make(by_graph):
        torch.manual_seed(1)
        parts = [nn.Linear(2, width), nn.Tanh()]
        for _ in range(5):
            parts += [nn.Linear(width, width), nn.Tanh()]
        model, following, room = nn.Sequential(*parts, nn.Linear(width, 1)).to(GPU), turns(places), places[0].clone()
        parameters = list(model.parameters())
        optimizer = torch.optim.Adam(parameters, lr=1e-5, fused=True)
        replay = replayed(lambda: graded(model, parameters, room)) if by_graph else None

        def step():
            at = following()
            if by_graph:
                room.copy_(at)
                loss, *gradients = replay()
            else:
                loss, *gradients = graded(model, parameters, at)
            for one, gradient in zip(parameters, gradients):
                one.grad = gradient
            optimizer.step()
            return loss
        return step
    return alike(make(False), make(True))


@pair("cut_host_work", "cuda_graphs", "compile_model", "fused_optimizer", "fuse_pointwise")
def masks_of_pruned_weights_applied_tensor_by_tensor():
    rows, width, depth = 1024, 256, 40
    known = four(lambda: (rand(rows, width), rand(rows, width)))

    def one_by_one(gradients, masks):
        for gradient, mask in zip(gradients, masks):
            gradient.mul_(mask)
            gradient.clamp_(-0.1, 0.1)

    def at_once(gradients, masks):
        torch._foreach_mul_(gradients, masks)
        torch._foreach_clamp_min_(gradients, -0.1)
        torch._foreach_clamp_max_(gradients, 0.1)

    def kept_one_by_one(weights, masks):
        for one, mask in zip(weights, masks):
            one.mul_(mask)

    def make(cut, kept):
        torch.manual_seed(1)
        model = nn.Sequential(*[part for _ in range(depth) for part in (nn.Linear(width, width), nn.SiLU())]).to(GPU)
        following, weights = turns(known), list(model.parameters())
        masks = [(one.detach().abs() > 0.02).float() for one in weights]
        optimizer = torch.optim.SGD(weights, lr=1e-4, momentum=0.9, foreach=True)

        def step():
            x, goal = following()
            optimizer.zero_grad()
            loss = (model(x) - goal).pow(2).mean()
            loss.backward()
            with torch.no_grad():
                cut([one.grad for one in weights], masks)
                optimizer.step()
                kept(weights, masks)
            return loss.detach()
        return step
    return alike(make(one_by_one, kept_one_by_one), make(at_once, torch._foreach_mul_))


@pair("batch_products", "cut_host_work", "cuda_graphs", "compile_model", "fill_the_device")
def gradients_of_each_patient_taken_one_by_one():
    patients, width, wide, most = 48, 256, 512, 0.05
    sizes = ((wide, width), (wide, wide), (1, wide))
    ws = [weight(out, inner).requires_grad_() for out, inner in sizes]
    bs = [torch.zeros(out, device=GPU, requires_grad=True) for out, _ in sizes]
    known = four(lambda: (rand(patients, width), torch.rand(patients, 1, device=GPU)))

    def outcomes(x):
        """What enters and what leaves each layer."""
        entered, left = [], []
        for number, (w, b) in enumerate(zip(ws, bs)):
            entered.append(x)
            left.append(F.linear(x, w, b))
            x = torch.relu(left[-1]) if number + 1 < len(ws) else left[-1]
        return entered, left

    def one_by_one(x, goal):
        total = [torch.zeros_like(one) for one in ws + bs]
        for one, ill in zip(x.split(1), goal.split(1)):
            loss = F.binary_cross_entropy_with_logits(outcomes(one)[1][-1], ill, reduction="sum")
            gradients = torch.autograd.grad(loss, ws + bs)
            size = torch.stack([gradient.norm() for gradient in gradients]).norm()
            share = (most / (size + 1e-6)).clamp(max=1.0)
            for summed, gradient in zip(total, gradients):
                summed.add_(gradient * share)
        return total

    def at_once(x, goal):
        entered, left = outcomes(x)
        loss = F.binary_cross_entropy_with_logits(left[-1], goal, reduction="sum")
        pushed = torch.autograd.grad(loss, left)
        square = sum(push.pow(2).sum(1) * (seen.detach().pow(2).sum(1) + 1) for push, seen in zip(pushed, entered))
        share = (most / (square.sqrt() + 1e-6)).clamp(max=1.0)[:, None]
        pushed = [push * share for push in pushed]
        return [push.t() @ seen.detach() for push, seen in zip(pushed, entered)] + [push.sum(0) for push in pushed]

    def run(clipped):
        following = turns(known)
        return lambda: clipped(*following())
    return alike(run(one_by_one), run(at_once))


@pair("batch_products", "cut_host_work", "cuda_graphs", "compile_model", "fill_the_device")
def relations_of_a_graph_multiplied_one_by_one():
    relations, nodes, width, depth = 48, 512, 128, 4
    links = (torch.rand(relations, nodes, nodes, device=GPU) < 0.05).float()
    links = links / links.sum(2, keepdim=True).clamp(min=1)
    x_all, owns = four(lambda: rand(nodes, width)), [weight(width, width) for _ in range(depth)]
    layers = [rand(relations, width, width, scale=width ** -0.5) for _ in range(depth)]

    def one_by_one(x, ws):
        out = torch.zeros_like(x)
        for link, w in zip(links, ws):
            out = out + link @ (x @ w)
        return out

    def at_once(x, ws):
        told = torch.matmul(x, ws)
        return torch.bmm(links, told).sum(0)

    def run(told):
        following = turns(x_all)

        def step():
            x = following()
            for own, ws in zip(owns, layers):
                x = F.layer_norm(torch.relu(F.linear(x, own) + told(x, ws)), (width,))
            return x
        return step
    return alike(run(one_by_one), run(at_once))


@pair("stop_allocating", "remove_syncs", "cut_host_work")
def cache_emptied_after_each_length_of_prompts():
    width, wide, heads, lengths = 1024, 4096, 16, (1024, 768, 512, 384, 256, 128)
    texts = four(lambda: [rand(4, length, width, dtype=BF16) for length in lengths])
    layers = [tuple(weight(out, inner, BF16) for out, inner in
                    ((3 * width, width), (width, width), (wide, width), (width, wide))) for _ in range(2)]

    def read(x):
        for w_in, w_out, up, down in layers:
            qkv = F.linear(F.layer_norm(x, (width,)), w_in).view(*x.shape[:2], 3, heads, -1)
            q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
            seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = layer_of(x + F.linear(seen.transpose(1, 2).reshape(x.shape), w_out), up, down)
        return x[:, -1].float()

    def run(after_each):
        following = turns(texts)

        def step():
            out = []
            for text in following():
                out.append(read(text))
                after_each()
            return torch.stack(out)
        return step
    return alike(run(torch.cuda.empty_cache), run(lambda: None))


# ---------------------------------------------------------------- attention

@pair("flash_attention", "fuse_norm", "fuse_pointwise")
def cars_attended_with_their_absent_ones_masked_in_training():
    scenes, cars, width, heads = 32, 512, 512, 8

    def batch():
        there = torch.arange(cars, device=GPU) < 256 + ints(256, scenes, 1)
        return rand(scenes, cars, width), rand(scenes, cars, width), there[:, None, None]
    known, seen = four(batch), []

    def by_products(q, k, v):
        scores = (q @ k.mT * (width // heads) ** -0.5).masked_fill(~seen[0], -1e4)
        return torch.softmax(scores, -1) @ v

    def by_library(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=seen[0])

    def make(attend):
        torch.manual_seed(1)
        model, following = blocks(4, width, heads, attend=attend), turns(known)

        def loss():
            x, goal, there = following()
            seen[:] = [there]
            return ((model(x).float() - goal).pow(2) * there.view(scenes, cars, 1)).mean()
        return learnt(model, loss)
    return alike(make(by_products), make(by_library))


@pair("flash_attention", "fuse_norm", "fuse_pointwise")
def drafts_of_words_checked_against_masked_caches():
    users, heads, past, each, new, depth = 32, 16, 2048, 64, 32, 6
    width = heads * each
    caches = [(rand(users, heads, past, each, dtype=F16), rand(users, heads, past, each, dtype=F16)) for _ in range(depth)]
    w_q, w_out = ([weight(width, width, F16) for _ in range(depth)] for _ in range(2))

    def batch():
        there = torch.arange(past, device=GPU) < 1024 + ints(1024, users, 1)
        return rand(users, new, width, dtype=F16), there[:, None, None]
    drafts = four(batch)

    def by_products(q, k, v, there):
        scores = (q @ k.mT).float() * each ** -0.5
        return torch.softmax(scores.masked_fill(~there, -1e9), -1).to(F16) @ v

    def by_library(q, k, v, there):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=there)

    def run(attend):
        following = turns(drafts)

        def step():
            x, there = following()
            for first, last, (keys, values) in zip(w_q, w_out, caches):
                q = F.linear(F.layer_norm(x, (width,)), first).view(users, new, heads, each).transpose(1, 2)
                x = x + F.linear(attend(q, keys, values, there).transpose(1, 2).reshape(x.shape), last)
            return x
        return step
    return alike(run(by_products), run(by_library))


# ---------------------------------------------------------------- training

@pair("tensor_cores")
def distances_to_a_surface_learnt_in_float32():
    points, width, depth = 65536, 512, 6
    clouds = four(lambda: (rand(points, 3), rand(points, 1)))

    def make(precision):
        torch.manual_seed(1)
        parts = [nn.Linear(3, width), nn.Softplus(100)]
        for _ in range(depth):
            parts += [nn.Linear(width, width), nn.Softplus(100)]
        model, following = nn.Sequential(*parts, nn.Linear(width, 1)).to(GPU), turns(clouds)

        def loss():
            at, far = following()
            return (model(at) - far).abs().clamp(max=0.5).mean()
        return with_precision(precision, learnt(model, loss, dtype=None))
    return alike(make("highest"), make("high"))


class Listening(nn.Module):
    """A block of a net of sound: a wide convolution over time, then two products."""

    def __init__(self, width, step):
        super().__init__()
        self.norm = nn.GroupNorm(16, width)
        self.wide = nn.Conv1d(width, width, 5, padding=2 * step, dilation=step)
        self.up, self.down = nn.Conv1d(width, 2 * width, 1), nn.Conv1d(2 * width, width, 1)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.wide(self.norm(x)))))


@pair("recompute_less")
def blocks_of_a_listener_checkpointed_one_by_one():
    sounds, times, width, depth = 16, 4096, 256, 8
    heard = four(lambda: (rand(sounds, width, times), rand(sounds, width, times)))

    def make(kept):
        torch.manual_seed(1)
        model, following = nn.ModuleList(Listening(width, 2 ** (i % 4)) for i in range(depth)).to(GPU), turns(heard)

        def loss():
            x, goal = following()
            for block in model:
                x = block(x) if kept else checkpoint(block, x, use_reentrant=False)
            return F.l1_loss(x.float(), goal)
        return learnt(model, loss)
    return alike(make(False), make(True))


@pair("fused_optimizer", "compile_model", "fuse_pointwise")
def wide_layers_of_an_advertiser_moved_by_momentum():
    rows, width, wide = 512, 4096, 8192
    clicks = four(lambda: (rand(rows, width), torch.rand(rows, 1, device=GPU)))

    def make(**options):
        torch.manual_seed(1)
        sizes = [(width, wide), (wide, width)] * 3
        parts = [part for inner, out in sizes for part in (nn.Linear(inner, out, device=GPU), nn.ReLU())]
        model, following = nn.Sequential(*parts, nn.Linear(width, 1, device=GPU)), turns(clicks)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9, weight_decay=1e-4, **options)

        def step():
            x, clicked = following()
            optimizer.zero_grad()
            with torch.autocast(GPU, BF16):
                scores = model(x)
            loss = F.binary_cross_entropy_with_logits(scores.float(), clicked)
            loss.backward()
            optimizer.step()
            return loss.detach()
        return step
    return alike(make(), make(fused=True))


@pair("remove_copies", "cut_host_work", "fused_optimizer", "stop_allocating")
def gradients_joined_into_one_vector_to_be_clipped():
    rows, width, wide, most = 512, 2048, 8192, 0.01
    known = four(lambda: (rand(rows, width), rand(rows, width)))

    def by_vector(gradients):
        whole = torch.cat([one.flatten() for one in gradients])
        whole = whole * (most / (whole.norm() + 1e-6)).clamp(max=1.0)
        for one, part in zip(gradients, whole.split([one.numel() for one in gradients])):
            one.copy_(part.view_as(one))

    def in_place(gradients):
        size = torch.stack(torch._foreach_norm(gradients)).norm()
        torch._foreach_mul_(gradients, (most / (size + 1e-6)).clamp(max=1.0))

    def make(clipped):
        torch.manual_seed(1)
        sizes = [(width, wide), (wide, width)] * 5
        model = nn.Sequential(*[part for inner, out in sizes for part in (nn.Linear(inner, out, device=GPU), nn.GELU())])
        following, weights = turns(known), list(model.parameters())
        optimizer = torch.optim.SGD(weights, lr=1e-3, fused=True)

        def step():
            x, goal = following()
            optimizer.zero_grad()
            with torch.autocast(GPU, BF16):
                said = model(x)
            loss = (said.float() - goal).pow(2).mean()
            loss.backward()
            with torch.no_grad():
                clipped([one.grad for one in weights])
            optimizer.step()
            return loss.detach()
        return step
    return alike(make(by_vector), make(in_place))


@pair("reduce_problem", "slow_op")
def trust_in_scores_measured_for_a_log_nobody_writes():
    rows, width, wide, kinds, bins = 16384, 256, 1024, 1000, 15
    known = four(lambda: (rand(rows, width), ints(kinds, rows)))
    edges = torch.linspace(0, 1, bins + 1, device=GPU)[1:-1]

    def trust(scores, labels):
        shares = torch.softmax(scores, 1)
        sure, said = shares.max(1)
        right, at = (said == labels).float(), torch.bucketize(sure, edges)
        gaps = torch.zeros(bins, device=GPU).index_add_(0, at, sure - right)
        best = scores.sort(1, descending=True).indices[:, :5]
        place = (best == labels[:, None]).float()
        return {"gap": gaps.abs().sum() / rows, "first": right.mean(), "five": place.sum(1).mean(),
                "doubt": -(shares * (shares + 1e-9).log()).sum(1).mean(), "away": (shares.sum(0) / rows).std()}

    def make(logs):
        torch.manual_seed(1)
        parts = [nn.Linear(width, wide), nn.ReLU(), nn.Linear(wide, wide), nn.ReLU(), nn.Linear(wide, kinds)]
        model, following = nn.Sequential(*parts).to(GPU), turns(known)

        def loss():
            x, labels = following()
            scores = model(x).float()
            if logs:
                trust(scores.detach(), labels)
            return F.cross_entropy(scores, labels)
        return learnt(model, loss)
    return alike(make(True), make(False))
