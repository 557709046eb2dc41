# SPDX-License-Identifier: Apache-2.0
"""The programs of the sixteenth set in which the host, the copies or the parts of a training step are what is wrong.

Written on 27 November 2026 by a hand that had not read the rules, before any of them was measured. pairs_sixteenth.py says how
the set was written, and takes these pairs in.
"""

import collections
import concurrent.futures
import zlib

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

import pairs_fifteenth_steps as fifteenth
from pairs_eleventh_steps import learnt, replayed
from pairs_fourteenth_steps import alike, four, turns
from pairs_practice import BF16, F16, without_gradients
from pairs_seventh_steps import blocks
from pairs_sixth import ints
from pairs_thirteenth_data import layer_of
from pairs_unseen import GPU, pair, rand, weight, with_precision

fifteenth.PAIRS.clear()
PAIRS = fifteenth.PAIRS


# ---------------------------------------------------------------- the host waits

@pair("remove_syncs", "cut_host_work", "cuda_graphs")
def atoms_checked_for_nan_after_each_layer():
    atoms, near, width, depth = 4096, 16, 128, 32
    x_all, links = four(lambda: rand(atoms, width)), ints(atoms, atoms * near)
    layers = [weight(width, 2 * width) for _ in range(depth)]

    def run(checked_at_once):
        following = turns(x_all)

        def step():
            x, wrong = following(), []
            for w in layers:
                told = x.index_select(0, links).view(atoms, near, width).mean(1)
                x = x + torch.tanh(F.linear(torch.cat([x, told], 1), w))
                wrong.append(torch.isnan(x).any())
                if checked_at_once and wrong[-1]:
                    raise ValueError("a layer gave no number")
            if not checked_at_once and torch.stack(wrong).any():
                raise ValueError("a layer gave no number")
            return x
        return step
    return alike(run(True), run(False))


@pair("remove_syncs", "cut_host_work", "reduce_problem", "keep_on_device", "cuda_graphs")
def overlaps_of_organs_read_organ_by_organ():
    scans, size, organs = 4, 160, 60
    known = four(lambda: (rand(scans, organs, size, size, dtype=F16), ints(organs, scans, size, size)))

    def one_by_one(said, truth):
        shares = []
        for organ in range(organs):
            ours, theirs = said == organ, truth == organ
            both, all_of = (ours & theirs).sum().item(), ours.sum().item() + theirs.sum().item()
            shares.append(2 * both / max(all_of, 1))
        return torch.tensor(shares)

    def at_once(said, truth):
        counts = torch.bincount((said * organs + truth).flatten(), minlength=organs * organs).view(organs, organs)
        all_of = (counts.sum(0) + counts.sum(1)).clamp(min=1)
        return (2 * counts.diagonal() / all_of).float().cpu()

    def run(shares):
        following = turns(known)

        def step():
            scores, truth = following()
            return shares(scores.argmax(1), truth)
        return step
    return alike(run(one_by_one), run(at_once))


@pair("cut_host_work", "remove_syncs", "fused_optimizer", "cuda_graphs", "fuse_pointwise")
def trust_ratios_of_layers_compared_on_the_host():
    rows, width, depth = 2048, 256, 40
    known = four(lambda: (rand(rows, width), ints(width, rows)))

    def by_layer(weights, slopes, moments):
        for one, slope, moment in zip(weights, slopes, moments):
            size, steep, rate = one.norm(), slope.norm(), 1.0
            if size > 0 and steep > 0:
                rate = 0.001 * size / (steep + 1e-4 * size)
            moment.mul_(0.9).add_(slope * rate)
            one.sub_(moment, alpha=0.01)

    def at_once(weights, slopes, moments):
        size, steep = torch.stack(torch._foreach_norm(weights)), torch.stack(torch._foreach_norm(slopes))
        rates = torch.where((size > 0) & (steep > 0), 0.001 * size / (steep + 1e-4 * size), 1.0)
        torch._foreach_mul_(moments, 0.9)
        torch._foreach_add_(moments, [slope * rate for slope, rate in zip(slopes, rates.unbind())])
        torch._foreach_add_(weights, moments, alpha=-0.01)

    def make(moved):
        torch.manual_seed(1)
        model = nn.Sequential(*[part for _ in range(depth) for part in (nn.Linear(width, width), nn.ELU())]).to(GPU)
        following, weights = turns(known), list(model.parameters())
        moments = [torch.zeros_like(one) for one in weights]

        def step():
            x, kind = following()
            model.zero_grad()
            loss = F.cross_entropy(model(x), kind)
            loss.backward()
            with torch.no_grad():
                moved(weights, [one.grad for one in weights], moments)
            return loss.detach()
        return step
    return alike(make(by_layer), make(at_once))


@pair("keep_on_device", "remove_syncs", "pin_memory", "overlap_copies", "cut_host_work")
def brightness_of_cells_cut_by_percentiles_on_the_host():
    fields, size, width = 4, 512, 32
    seen = four(lambda: rand(fields, 1, size, size).exp())
    filters = [rand(out, inner, 3, 3, scale=(9 * inner) ** -0.5) for out, inner in ((width, 1), (width, width), (2, width))]
    parts = torch.tensor([0.01, 0.998], device=GPU)

    def on_host(x):
        low, high = np.percentile(x.cpu().numpy().reshape(fields, -1), [1, 99.8], axis=1).astype(np.float32)
        return torch.from_numpy(low).to(GPU), torch.from_numpy(high).to(GPU)

    def on_device(x):
        return torch.quantile(x.view(fields, -1), parts, dim=1)

    def run(cut):
        following = turns(seen)

        def step():
            x = following()
            low, high = (one.view(-1, 1, 1, 1) for one in cut(x))
            x = ((x - low) / (high - low)).clamp(0, 1)
            for w in filters:
                x = F.conv2d(torch.relu(x), w, padding=1)
            return torch.sigmoid(x)
        return step
    return alike(run(on_host), run(on_device))


# ---------------------------------------------------------------- exposed copies

@pair("pin_memory", "overlap_copies")
def depths_of_cameras_brought_to_pageable_memory():
    cameras, size, width = 4, 1024, 32
    frames = four(lambda: rand(cameras, 3, size, size, dtype=F16).to(memory_format=torch.channels_last))
    filters = [rand(out, inner, 3, 3, dtype=F16, scale=(9 * inner) ** -0.5).to(memory_format=torch.channels_last)
               for out, inner in ((width, 3), (width, width), (4, width))]
    room = torch.empty(cameras, 4, size, size).pin_memory()

    def seen(x):
        for w in filters:
            x = F.conv2d(torch.relu(x), w, padding=1)
        return F.softplus(x).float().contiguous()

    def to_pinned(x):
        room.copy_(x, non_blocking=True)
        torch.cuda.current_stream().synchronize()
        return room

    def run(brought):
        following = turns(frames)
        return lambda: brought(seen(following()))
    return alike(run(lambda x: x.cpu()), run(to_pinned))


@pair("overlap_copies")
def chats_resumed_from_keys_kept_on_the_host():
    chats, heads, each, past, new, depth = 4, 16, 128, 4096, 2048, 3
    width = heads * each

    def chat():
        kept = [rand(2, chats, heads, past, each, dtype=F16).cpu().pin_memory() for _ in range(depth)]
        return rand(chats, new, width, dtype=F16), kept
    asked = four(chat)
    layers = [tuple(weight(out, inner, F16) for out, inner in
                    ((width, width), (width, width), (4 * width, width), (width, 4 * width))) for _ in range(depth)]
    rooms = [torch.empty(2, chats, heads, past, each, dtype=F16, device=GPU) for _ in range(2)]

    def read(x, layer, kept):
        w_q, w_out, up, down = layer
        q = F.linear(F.layer_norm(x, (width,)), w_q).view(chats, new, heads, each).transpose(1, 2)
        seen = F.scaled_dot_product_attention(q, kept[0], kept[1])
        return layer_of(x + F.linear(seen.transpose(1, 2).reshape(x.shape), w_out), up, down)

    def in_turn():
        following = turns(asked)

        def step():
            x, kept = following()
            for layer, one in zip(layers, kept):
                x = read(x, layer, rooms[0].copy_(one, non_blocking=True))
            return x[:, -1].float()
        return step

    def ahead():
        following, side = turns(asked), torch.cuda.Stream()

        def upload(kept, number):
            side.wait_stream(torch.cuda.current_stream())  # the layer before the last has read that room
            with torch.cuda.stream(side):
                rooms[number % 2].copy_(kept[number], non_blocking=True)

        def step():
            x, kept = following()
            upload(kept, 0)
            for number, layer in enumerate(layers):
                torch.cuda.current_stream().wait_stream(side)
                if number + 1 < depth:
                    upload(kept, number + 1)
                x = read(x, layer, rooms[number % 2])
            return x[:, -1].float()
        return step
    return alike(in_turn(), ahead())


# ---------------------------------------------------------------- the device waits for its data

@pair("feed_the_device", "cut_host_work", "keep_on_device")
def letters_of_a_genome_looked_up_in_a_dictionary():
    reads, length, width = 192, 1024, 128
    chance, numbers = np.random.default_rng(0), {"A": 0, "C": 1, "G": 2, "T": 3, "N": 4}
    batches = [(["".join(chance.choice(list("ACGTN"), length)) for _ in range(reads)],
                torch.from_numpy(chance.integers(0, 2, reads).astype(np.float32))) for _ in range(4)]
    table = np.full(256, 4, np.int64)
    table[[ord(letter) for letter in numbers]] = list(numbers.values())

    def by_letters(texts):
        return torch.tensor([[numbers[letter] for letter in text] for text in texts])

    def by_bytes(texts):
        return torch.from_numpy(table[np.frombuffer("".join(texts).encode(), np.uint8)].reshape(reads, length))

    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.head = nn.Embedding(5, width), nn.Linear(width, 1)
            self.near = nn.ModuleList(nn.Conv1d(width, width, 9, padding=4) for _ in range(3))

        def forward(self, ids):
            x = self.table(ids).transpose(1, 2)
            for near in self.near:
                x = F.max_pool1d(torch.relu(near(x)), 2)
            return self.head(x.amax(2)).squeeze(1)

    def make(coded):
        torch.manual_seed(1)
        model, following = Reader().to(GPU), turns(batches)

        def loss():
            texts, bound = following()
            return F.binary_cross_entropy_with_logits(model(coded(texts).to(GPU)).float(), bound.to(GPU))
        return learnt(model, loss)
    return alike(make(by_letters), make(by_bytes))


@pair("feed_the_device", "cut_host_work")
def rain_of_a_radar_unpacked_in_the_loop():
    skies, times, size, width = 16, 4, 192, 32
    chance = np.random.default_rng(0)

    def packed():
        rain = chance.gamma(0.3, 12.0, (times, size, size)).clip(0, 255).astype(np.uint8)
        return zlib.compress(rain.tobytes(), 6)
    days = [[packed() for _ in range(skies)] for _ in range(4)]

    def unpacked(day):
        rain = np.stack([np.frombuffer(zlib.decompress(one), np.uint8).reshape(times, size, size) for one in day])
        return torch.from_numpy(np.log1p(rain.astype(np.float32)))

    def in_turn():
        following = turns(days)
        return lambda: unpacked(following())

    def ahead():
        following, pool = turns(days), concurrent.futures.ThreadPoolExecutor(6)
        made = collections.deque(pool.submit(unpacked, following()) for _ in range(8))

        def batch():
            made.append(pool.submit(unpacked, following()))
            return made.popleft().result()
        return batch

    def make(batch):
        torch.manual_seed(1)
        parts, inner = [], times - 1
        for _ in range(3):
            parts += [nn.Conv2d(inner, width, 3, padding=1), nn.ReLU()]
            inner = width
        model = nn.Sequential(*parts, nn.Conv2d(width, 1, 3, padding=1)).to(GPU, memory_format=torch.channels_last)

        def loss():
            rain = batch().to(GPU)
            return F.l1_loss(model(rain[:, :-1]).float(), rain[:, -1:])
        return learnt(model, loss)
    return alike(make(in_turn()), make(ahead()))


# ---------------------------------------------------------------- many small kernels

@pair("cuda_graphs", "cut_host_work", "compile_model", "fuse_pointwise", "batch_products")
def satellites_followed_by_a_filter_reading_by_reading():
    bodies, states, times, angles = 2048, 6, 40, 3
    moved = torch.eye(states, device=GPU) + 0.1 * torch.diag(torch.ones(3, device=GPU), 3)
    drift, looks = 0.01 * torch.eye(states, device=GPU), rand(angles, states)
    passes = four(lambda: rand(times, angles, bodies, 1))

    def followed(readings):
        place, doubt = torch.zeros(bodies, states, device=GPU), torch.eye(states, device=GPU).repeat(bodies, 1, 1)
        places = []
        for now in readings:
            place, doubt = place @ moved.t(), moved @ doubt @ moved.t() + drift
            for seen, look in zip(now, looks):
                share = doubt @ look
                gain = share / ((share * look).sum(1, keepdim=True) + 0.5)
                place = place + gain * (seen - (place * look).sum(1, keepdim=True))
                doubt = doubt - gain[:, :, None] * share[:, None]
            places.append(place)
        return torch.stack(places)

    def by_graph():
        following, room = turns(passes), passes[0].clone()
        replay = replayed(lambda: followed(room))

        def step():
            room.copy_(following())
            return replay()
        return step
    following = turns(passes)
    return alike(lambda: followed(following()), by_graph())


@pair("cuda_graphs", "cut_host_work", "compile_model", "batch_products", "fuse_pointwise")
def ten_critics_of_a_walker_graded_op_by_op():
    rows, width, moves, wide, count = 256, 24, 6, 256, 10
    known = four(lambda: (rand(rows, width), rand(rows, moves), rand(rows, 1), rand(rows, width)))

    def net(inner, out):
        return nn.Sequential(nn.Linear(inner, wide), nn.ReLU(), nn.Linear(wide, wide), nn.ReLU(), nn.Linear(wide, out)).to(GPU)

    def graded(actor, critics, later, state, move, gain, then):
        with torch.no_grad():
            there = torch.cat([then, torch.tanh(actor(then))], 1)
            goal = gain + 0.99 * torch.stack([one(there) for one in later]).amin(0)
        here, aimed = torch.cat([state, move], 1), torch.cat([state, torch.tanh(actor(state))], 1)
        wrong = torch.stack([(one(here) - goal).pow(2).mean() for one in critics]).sum()
        worth = -torch.stack([one(aimed) for one in critics]).mean()
        of_critics = torch.autograd.grad(wrong, list(critics.parameters()))
        return (wrong.detach(), worth.detach(), *of_critics, *torch.autograd.grad(worth, list(actor.parameters())))

    def make(by_graph):
        torch.manual_seed(1)
        actor = net(width, moves)
        critics, later = (nn.ModuleList(net(width + moves, 1) for _ in range(count)) for _ in range(2))
        following, rooms = turns(known), [one.clone() for one in known[0]]
        weights = [*critics.parameters(), *actor.parameters()]
        optimizer = torch.optim.Adam(weights, lr=1e-5, fused=True)
        replay = replayed(lambda: graded(actor, critics, later, *rooms)) if by_graph else None

        def step():
            batch = following()
            if by_graph:
                for room, one in zip(rooms, batch):
                    room.copy_(one)
                wrong, worth, *gradients = replay()
            else:
                wrong, worth, *gradients = graded(actor, critics, later, *batch)
            for one, gradient in zip(weights, gradients):
                one.grad = gradient
            optimizer.step()
            return wrong, worth
        return step
    return alike(make(False), make(True))


@pair("batch_products", "cut_host_work", "cuda_graphs", "compile_model", "fill_the_device")
def waves_of_few_examples_learnt_task_by_task():
    tasks, shots, width, inner = 10, 20, 64, 3
    sizes = ((1, width), (width, width), (width, width), (width, 1))

    def batch():
        x, shift = 3 * rand(2, tasks, shots, 1), rand(1, tasks, 1, 1)
        return x, torch.sin(x + shift)
    known = four(batch)

    def told(weights, x):
        for number in range(0, len(weights), 2):
            x = x @ weights[number] + weights[number + 1]
            x = torch.tanh(x) if number + 2 < len(weights) else x
        return x

    def adapted(weights, x, y):
        for _ in range(inner):
            wrong = (told(weights, x[0]) - y[0]).pow(2).mean((-2, -1)).sum()
            slopes = torch.autograd.grad(wrong, weights, create_graph=True)
            weights = [one - 0.05 * slope for one, slope in zip(weights, slopes)]
        return (told(weights, x[1]) - y[1]).pow(2).mean((-2, -1)).sum()

    def one_by_one(weights, x, y):
        return sum(adapted(weights, x[:, task], y[:, task]) for task in range(tasks)) / tasks

    def at_once(weights, x, y):
        return adapted([one.expand(tasks, *one.shape) for one in weights], x, y) / tasks

    def make(learnt_from):
        torch.manual_seed(1)
        weights = [one.requires_grad_() for first, last in sizes
                   for one in (rand(first, last, scale=first ** -0.5), torch.zeros(1, last, device=GPU))]
        following, optimizer = turns(known), torch.optim.Adam(weights, lr=1e-5, fused=True)

        def step():
            optimizer.zero_grad()
            loss = learnt_from(weights, *following())
            loss.backward()
            optimizer.step()
            return loss.detach()
        return step
    return alike(make(one_by_one), make(at_once))


class Fired(torch.autograd.Function):
    """A spike where the charge is above one, with a slope near one."""

    @staticmethod
    def forward(ctx, charge):
        ctx.save_for_backward(charge)
        return (charge > 1).to(charge.dtype)

    @staticmethod
    def backward(ctx, slope):
        return slope * ((ctx.saved_tensors[0] - 1).abs() < 0.5)


@pair("batch_products", "cut_host_work", "cuda_graphs", "compile_model", "fuse_pointwise")
def spikes_of_each_moment_multiplied_apart():
    rows, width, kinds, times, depth = 256, 512, 20, 24, 4
    heard = four(lambda: ((torch.rand(times, rows, width, device=GPU) < 0.3).float(), ints(kinds, rows)))

    def fired(charge, pushed):
        charge = torch.add(pushed, charge, alpha=0.8)
        spike = Fired.apply(charge)
        return charge - spike.detach(), spike

    def by_moments(layers, sound):
        charges, said = [torch.zeros(rows, width, device=GPU) for _ in layers], []
        for x in sound.unbind(0):
            for number, layer in enumerate(layers):
                charges[number], x = fired(charges[number], layer(x))
            said.append(x)
        return torch.stack(said)

    def by_layers(layers, sound):
        for layer in layers:
            charge, said = torch.zeros(rows, width, device=GPU), []
            for pushed in layer(sound).unbind(0):
                charge, spike = fired(charge, pushed)
                said.append(spike)
            sound = torch.stack(said)
        return sound

    def make(passed):
        torch.manual_seed(1)
        layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        for layer in layers:
            layer.weight.data.mul_(5)  # else few of them fire
        model, following = nn.ModuleList([layers, nn.Linear(width, kinds)]).to(GPU), turns(heard)

        def loss():
            sound, kind = following()
            return F.cross_entropy(model[1](passed(layers, sound).mean(0)), kind)
        return learnt(model, loss, dtype=None)
    return alike(make(by_moments), make(by_layers), most=0.05)


@pair("batch_products", "cut_host_work", "cuda_graphs", "fill_the_device")
def adapters_of_each_customer_added_in_a_loop():
    asked, tokens, width, low, depth, bank = 64, 8, 2048, 16, 6, 128
    bases = [weight(width, width, F16) for _ in range(depth)]
    downs = [rand(bank, width, low, dtype=F16, scale=width ** -0.5) for _ in range(depth)]
    ups = [rand(bank, low, width, dtype=F16, scale=0.1) for _ in range(depth)]
    chance = np.random.default_rng(0)

    def request():
        of = chance.integers(0, bank, asked)
        return rand(asked, tokens, width, dtype=F16), of.tolist(), torch.from_numpy(of).to(GPU)
    requests = four(request)

    def one_by_one(x, out, down, up, of, there):
        for number, one in enumerate(of):
            out[number] += x[number] @ down[one] @ up[one]
        return out

    def at_once(x, out, down, up, of, there):
        return torch.baddbmm(out, torch.bmm(x, down[there]), up[there])

    def run(added):
        following = turns(requests)

        def step():
            x, of, there = following()
            for base, down, up in zip(bases, downs, ups):
                x = F.silu(added(x, F.linear(x, base), down, up, of, there))
            return x.float()
        return step
    return alike(run(one_by_one), run(at_once))


@pair("cut_host_work", "batch_products")
def stars_laid_on_the_sky_one_by_one():
    count, size, wide = 600, 1024, 24
    chance, far = np.random.default_rng(0), torch.arange(wide, device=GPU) - wide / 2
    stamp = torch.exp(-(far[:, None] ** 2 + far ** 2) / 18).contiguous()
    near = torch.arange(wide, device=GPU)
    offsets = (near[:, None] * size + near).flatten()

    def night():
        rows, columns = chance.integers(0, size - wide, (2, count))
        light = chance.pareto(2, count).astype(np.float32)
        listed = list(zip(rows.tolist(), columns.tolist(), light.tolist()))
        there = torch.from_numpy(rows * size + columns).to(GPU)
        return rand(size, size, scale=0.1), listed, there, torch.from_numpy(light).to(GPU)
    nights = four(night)

    def one_by_one(sky, listed, first, light):
        for row, column, one in listed:
            sky[row:row + wide, column:column + wide] += one * stamp
        return sky

    def at_once(sky, listed, first, light):
        values = (light[:, None] * stamp.flatten()).flatten()
        return sky.view(-1).index_add_(0, (first[:, None] + offsets).flatten(), values).view(size, size)

    def run(laid):
        following = turns(nights)

        def step():
            sky, *stars = following()
            return laid(sky.clone(), *stars)
        return step
    return alike(run(one_by_one), run(at_once))


@pair("stop_allocating", "remove_syncs", "cut_host_work")
def memory_given_back_between_the_parts_of_a_batch():
    parts, rows, width, wide = 4, 4096, 1024, 4096
    known = four(lambda: [(rand(rows, width), rand(rows, width)) for _ in range(parts)])

    def make(after_each):
        torch.manual_seed(1)
        layers = [part for _ in range(3) for part in (nn.Linear(width, wide), nn.GELU(), nn.Linear(wide, width))]
        model, following = nn.Sequential(*layers).to(GPU), turns(known)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)

        def step():
            optimizer.zero_grad(set_to_none=False)
            total = []
            for x, goal in following():
                with torch.autocast(GPU, BF16):
                    said = model(x)
                loss = F.mse_loss(said.float(), goal) / parts
                loss.backward()
                total.append(loss.detach())
                del said, loss
                after_each()
            optimizer.step()
            return torch.stack(total).sum()
        return step
    return alike(make(torch.cuda.empty_cache), make(lambda: None))


# ---------------------------------------------------------------- the parts of a training step

class Watching(nn.Module):
    """A layer of an encoder with the attention of the library."""

    def __init__(self, width, heads, weights):
        super().__init__()
        self.look, self.weights = nn.MultiheadAttention(width, heads, batch_first=True), weights
        self.first, self.last = nn.LayerNorm(width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        y = self.first(x)
        x = x + self.look(y, y, y, need_weights=self.weights)[0]
        return x + self.down(torch.relu(self.up(self.last(x))))


@pair("flash_attention", "reduce_problem", "fuse_norm", "fuse_pointwise")
def scenes_encoded_with_weights_of_attention_that_nobody_reads():
    scenes, places, width, heads = 16, 1024, 256, 8
    known = four(lambda: (rand(scenes, places, width), rand(scenes, places, 4)))

    def make(weights):
        torch.manual_seed(1)
        model = nn.Sequential(*[Watching(width, heads, weights) for _ in range(4)], nn.Linear(width, 4)).to(GPU)
        following = turns(known)

        def loss():
            x, boxes = following()
            return F.l1_loss(model(x).float(), boxes)
        return learnt(model, loss)
    return alike(make(True), make(False))


@pair("fused_optimizer", "compile_model", "fuse_pointwise")
def voice_of_wide_filters_moved_by_the_default_adamw():
    voices, times, width, depth = 4, 128, 1536, 8
    known = four(lambda: (rand(voices, width, times), rand(voices, width, times)))

    def make(**options):
        torch.manual_seed(1)
        parts = [part for _ in range(depth) for part in (nn.Conv1d(width, width, 7, padding=3, device=GPU), nn.LeakyReLU(0.1))]
        model, following = nn.Sequential(*parts), turns(known)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, **options)

        def step():
            x, goal = following()
            optimizer.zero_grad()
            with torch.autocast(GPU, BF16):
                said = model(x)
            loss = F.l1_loss(said.float(), goal)
            loss.backward()
            optimizer.step()
            return loss.detach()
        return step
    return alike(make(), make(fused=True))


@pair("tensor_cores")
def patients_of_a_hospital_learnt_without_autocast():
    rows, width, depth = 4096, 2048, 6
    known = four(lambda: (rand(rows, width), torch.rand(rows, 1, device=GPU)))

    def make(dtype):
        torch.manual_seed(1)
        parts = [part for _ in range(depth) for part in (nn.Linear(width, width), nn.LayerNorm(width), nn.ReLU())]
        model, following = nn.Sequential(*parts, nn.Linear(width, 1)).to(GPU), turns(known)

        def loss():
            x, ill = following()
            return F.binary_cross_entropy_with_logits(model(x).float(), ill)
        return with_precision("highest", learnt(model, loss, dtype=dtype))
    return alike(make(None), make(BF16))


@pair("recompute_less")
def layers_of_a_composer_checkpointed_with_memory_to_spare():
    songs, notes, width, heads = 8, 1024, 1024, 16
    known = four(lambda: (rand(songs, notes, width), rand(songs, notes, width)))

    def make(kept):
        torch.manual_seed(1)
        model, following = blocks(6, width, heads), turns(known)

        def loss():
            x, goal = following()
            for block in model:
                x = block(x) if kept else checkpoint(block, x, use_reentrant=False)
            return F.smooth_l1_loss(x.float(), goal)
        return learnt(model, loss)
    return alike(make(False), make(True))


@pair("reuse_result", "reduce_problem", "fuse_pointwise", "compile_model")
def samples_compared_anew_at_each_width_of_a_kernel():
    rows, width, noise = 4096, 128, 64
    known, reaches = four(lambda: (rand(rows, noise), rand(rows, width))), (0.5, 1.0, 2.0, 4.0, 8.0)

    def apart(a, b):
        return (a.pow(2).sum(1)[:, None] + b.pow(2).sum(1) - 2 * a @ b.t()).clamp(min=0) / width

    def anew(made, true):
        total = 0.0
        for reach in reaches:
            ours, theirs, both = (torch.exp(-apart(*two) / reach) for two in ((made, made), (true, true), (made, true)))
            total = total + ours.mean() + theirs.mean() - 2 * both.mean()
        return total

    def once(made, true):
        total = 0.0
        ours, theirs, both = (apart(*two) for two in ((made, made), (true, true), (made, true)))
        for reach in reaches:
            total = total + torch.exp(-ours / reach).mean() + torch.exp(-theirs / reach).mean()
            total = total - 2 * torch.exp(-both / reach).mean()
        return total

    def make(compared):
        torch.manual_seed(1)
        model, following = nn.Sequential(nn.Linear(noise, 512), nn.ReLU(), nn.Linear(512, width)).to(GPU), turns(known)

        def loss():
            seed, true = following()
            return compared(model(seed), true)
        return learnt(model, loss, dtype=None)
    return alike(make(anew), make(once))


@pair("reuse_result", "reduce_problem")
def films_of_a_frozen_encoder_described_for_each_batch_of_viewers():
    films, width, wide, viewers, few = 131072, 512, 2048, 2048, 256
    features = rand(films, width, dtype=BF16)
    tower = [(weight(wide, width, BF16), weight(width, wide, BF16)) for _ in range(2)]
    known = four(lambda: (rand(viewers, width), ints(films, viewers), ints(films, few)))

    def described():
        x = features
        for up, down in tower:
            x = layer_of(x, up, down)
        return x
    kept = described()

    def make(films_of):
        torch.manual_seed(1)
        model, following = nn.Sequential(nn.Linear(width, wide), nn.ReLU(), nn.Linear(wide, width)).to(GPU), turns(known)

        def loss():
            x, liked, others = following()
            all_of, viewer = films_of(), model(x)
            right = (viewer * all_of[liked]).sum(1, keepdim=True)
            return F.softplus(0.05 * (viewer @ all_of[others].t() - right)).float().mean()
        return learnt(model, loss)
    return alike(make(described), make(lambda: kept))


# ---------------------------------------------------------------- results that nobody reads

class Coder(nn.Module):
    """An autoencoder that gives what it made again and its code."""

    def __init__(self, width, wide, code):
        super().__init__()
        self.inward = nn.Sequential(nn.Linear(width, wide), nn.SiLU(), nn.Linear(wide, wide), nn.SiLU(), nn.Linear(wide, code))
        self.outward = nn.Sequential(nn.Linear(code, wide), nn.SiLU(), nn.Linear(wide, wide), nn.SiLU(), nn.Linear(wide, width))

    def forward(self, x):
        code = self.inward(x)
        return self.outward(code), code


@pair("reduce_problem")
def spectra_of_stars_made_again_though_their_codes_are_read():
    stars, width, wide, code = 65536, 4096, 2048, 32
    nights, model = four(lambda: rand(stars, width, dtype=F16)), Coder(width, wide, code).to(GPU, F16)

    def run(coded):
        following = turns(nights)

        def step():
            found = coded(following()).float()
            return (found - found.mean(0)) / found.std(0)
        return without_gradients(step)
    return alike(run(lambda x: model(x)[1]), run(model.inward))


@pair("reduce_problem")
def forces_taken_though_only_energies_move_the_walkers():
    walkers, width, wide, moves = 8192, 192, 1024, 8
    torch.manual_seed(1)
    parts = [nn.Linear(width, wide), nn.SiLU(), nn.Linear(wide, wide), nn.SiLU(), nn.Linear(wide, wide), nn.SiLU()]
    model = nn.Sequential(*parts, nn.Linear(wide, 1)).to(GPU).requires_grad_(False)
    tries = torch.rand(moves, walkers, 1, device=GPU)
    starts = four(lambda: (rand(walkers, width), rand(moves, walkers, width, scale=0.1)))

    def with_forces(place):
        place = place.detach().requires_grad_()
        energy = model(place)
        return {"energy": energy.detach(), "forces": -torch.autograd.grad(energy.sum(), place)[0]}

    def alone(place):
        with torch.no_grad():
            return {"energy": model(place)}

    def run(known):
        following = turns(starts)

        def step():
            place, pushes = following()
            energy = known(place)["energy"]
            for push, chance in zip(pushes, tries):
                tried = place + push
                new = known(tried)["energy"]
                taken = chance < torch.exp(5 * (energy - new))
                place, energy = torch.where(taken, tried, place), torch.where(taken, new, energy)
            return place, energy
        return with_precision("high", step)
    return alike(run(with_forces), run(alone))
