# SPDX-License-Identifier: Apache-2.0
"""The programs of the seventeenth set in which the host, the copies or the parts of a training step are what is wrong.

Written on 27 November 2026 by a hand that had not read the rules, before any of them was measured. pairs_seventeenth.py says
how the set was written, and takes these pairs in.
"""

import copy

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

import pairs_sixteenth_steps as sixteenth
from pairs_eleventh_steps import learnt, replayed
from pairs_fourteenth_steps import alike, four, turns
from pairs_practice import BF16, F16, without_gradients
from pairs_seventh_steps import blocks
from pairs_sixth import ints
from pairs_thirteenth_data import layer_of
from pairs_unseen import GPU, pair, rand, weight, with_precision

sixteenth.PAIRS.clear()
PAIRS = sixteenth.PAIRS


# ---------------------------------------------------------------- the host waits

@pair("remove_syncs", "cut_host_work", "cuda_graphs", "compile_model", "fuse_pointwise")
def pressure_of_a_reservoir_solved_with_steps_read_by_the_host():
    size, rounds = 1024, 30
    ease, wells = 1 + torch.rand(size, size, device=GPU), four(lambda: rand(size, size))

    def spread(x):
        wide = F.pad(x[None, None], (1, 1, 1, 1))[0, 0]
        around = wide[:-2, 1:-1] + wide[2:, 1:-1] + wide[1:-1, :-2] + wide[1:-1, 2:]
        return ease * x + 4 * x - around

    def run(read):
        following = turns(wells)

        def step():
            left = following()
            x, way, size_of = torch.zeros_like(left), left, read(left.pow(2).sum())
            for _ in range(rounds):
                pushed = spread(way)
                far = size_of / read((way * pushed).sum())
                x, left = x + far * way, left - far * pushed
                before, size_of = size_of, read(left.pow(2).sum())
                way = left + size_of / before * way
            return x
        return step
    return alike(run(lambda one: one.item()), run(lambda one: one))


@pair("remove_syncs", "cut_host_work", "slow_op", "reduce_problem", "cuda_graphs")
def mistakes_of_each_crop_averaged_through_masks():
    fields, width, crops = 32768, 512, 48
    known = four(lambda: (rand(fields, width), ints(crops, fields)))

    def by_masks(wrong, crop):
        total = 0.0
        for number in range(crops):
            mask = crop == number
            if mask.any():
                total = total + wrong[mask].mean()
        return total / crops

    def by_index(wrong, crop):
        counts = torch.bincount(crop, minlength=crops)
        return (torch.zeros(crops, device=GPU).index_add(0, crop, wrong) / counts.clamp(min=1)).sum() / crops

    def make(averaged):
        torch.manual_seed(1)
        model, following = nn.Sequential(nn.Linear(width, 1024), nn.ReLU(), nn.Linear(1024, crops)).to(GPU), turns(known)

        def loss():
            x, crop = following()
            return averaged(F.cross_entropy(model(x).float(), crop, reduction="none"), crop)
        return learnt(model, loss)
    return alike(make(by_masks), make(by_index))


@pair("keep_on_device", "remove_syncs", "pin_memory", "overlap_copies", "cut_host_work")
def readings_of_sensors_calibrated_through_numpy():
    sensors, times, width, marks = 1024, 512, 512, 64
    seen = four(lambda: torch.rand(sensors, times, device=GPU))
    at = torch.linspace(0, 1, marks)
    true = at.sqrt() + 0.1 * torch.sin(6 * at)
    at_there, true_there = at.to(GPU), true.to(GPU)
    layers = [(weight(2048, width), weight(width, 2048)) for _ in range(2)]

    def on_host(x):
        return torch.from_numpy(np.interp(x.cpu().numpy(), at.numpy(), true.numpy()).astype(np.float32)).to(GPU)

    def on_device(x):
        right = torch.searchsorted(at_there, x).clamp(1, marks - 1)
        left = right - 1
        share = (x - at_there[left]) / (at_there[right] - at_there[left])
        return torch.lerp(true_there[left], true_there[right], share)

    def run(calibrated):
        following = turns(seen)

        def step():
            x = calibrated(following())
            for up, down in layers:
                x = layer_of(x, up, down)
            return x.mean(1)
        return step
    return alike(run(on_host), run(on_device))


@pair("remove_syncs", "cut_host_work", "keep_on_device", "cuda_graphs", "reuse_result", "pin_memory")
def faces_denoised_with_times_made_on_the_host():
    faces, width, size, steps = 16, 64, 64, 30
    noises = four(lambda: rand(faces, 3, size, size, dtype=F16).to(memory_format=torch.channels_last))
    filters = [rand(out, inner, 3, 3, dtype=F16, scale=(9 * inner) ** -0.5).to(memory_format=torch.channels_last)
               for out, inner in ((width, 3), (width, width), (3, width))]
    told, rates = weight(width, 1, F16), [0.02 + 0.01 * number for number in range(steps)]
    times_there = torch.tensor(rates, device=GPU).to(F16)

    def cleaned(x, time):
        hidden = F.conv2d(x, filters[0], padding=1) + F.linear(time, told)[:, :, None, None]
        hidden = F.conv2d(F.silu(hidden), filters[1], padding=1)
        return F.conv2d(F.silu(hidden), filters[2], padding=1)

    def from_host(number):
        rate = rates[number]
        return torch.tensor([[rate]] * faces, dtype=F16, device=GPU), torch.tensor(rate, dtype=F16, device=GPU)

    def from_device(number):
        rate = times_there[number]
        return rate.expand(faces, 1), rate

    def run(told_of):
        following = turns(noises)

        def step():
            x = following()
            for number in range(steps):
                time, rate = told_of(number)
                x = x - rate * cleaned(x, time)
            return x.float()
        return step
    return alike(run(from_host), run(from_device))


# ---------------------------------------------------------------- exposed copies

@pair("overlap_copies")
def tiles_of_a_slide_brought_home_between_their_nets():
    tiles, size, width = 6, 2048, 32
    slides = four(lambda: rand(tiles, 1, 3, size, size, dtype=F16))
    filters = [rand(out, inner, 3, 3, dtype=F16, scale=(9 * inner) ** -0.5).to(memory_format=torch.channels_last)
               for out, inner in ((width, 3), (width, width), (width, width), (8, width))]
    rooms = [torch.empty(1, 8, size, size, dtype=F16).to(memory_format=torch.channels_last).pin_memory() for _ in range(tiles)]

    def seen(tile):
        x = tile.contiguous(memory_format=torch.channels_last)
        for w in filters:
            x = F.conv2d(torch.relu(x), w, padding=1)
        return x

    def read():
        return [room[0, :, ::64, ::64].float() for room in rooms]

    def in_turn():
        following = turns(slides)

        def step():
            for tile, room in zip(following(), rooms):
                room.copy_(seen(tile), non_blocking=True)
            torch.cuda.current_stream().synchronize()
            return read()
        return step

    def beside():
        following, side = turns(slides), torch.cuda.Stream()

        def step():
            kept = []
            for tile, room in zip(following(), rooms):
                kept.append(seen(tile))
                side.wait_stream(torch.cuda.current_stream())
                with torch.cuda.stream(side):
                    room.copy_(kept[-1], non_blocking=True)
            torch.cuda.current_stream().wait_stream(side)
            torch.cuda.current_stream().synchronize()
            return read()
        return step
    return alike(in_turn(), beside())


@pair("pin_memory", "overlap_copies")
def soils_seen_in_400_colours_sent_from_pageable_memory():
    pixels, colours, kinds = 65536, 400, 16
    known = [(torch.randn(pixels, colours), ints(kinds, pixels)) for _ in range(4)]

    def make(known):
        torch.manual_seed(1)
        parts = [nn.Linear(colours, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, kinds)]
        model, following = nn.Sequential(*parts).to(GPU), turns(known)

        def loss():
            x, kind = following()
            return F.cross_entropy(model(x.to(GPU, non_blocking=True)).float(), kind)
        return learnt(model, loss)
    return alike(make(known), make([(x.pin_memory(), kind) for x, kind in known]))


@pair("keep_on_device", "reuse_result", "overlap_copies")
def heights_of_the_land_sent_with_each_forecast():
    tall, wide, fields, fixed, width = 721, 1440, 4, 24, 32
    weathers = four(lambda: rand(1, fields, tall, wide, dtype=F16))
    land = rand(1, fixed, tall, wide).cpu().pin_memory()
    land_there = land.to(GPU)
    filters = [rand(out, inner, 3, 3, dtype=F16, scale=(9 * inner) ** -0.5).to(memory_format=torch.channels_last)
               for out, inner in ((width, fields + fixed), (width, width), (fields, width))]

    def run(land_of):
        following = turns(weathers)

        def step():
            weather = following()
            x = torch.cat([weather, land_of().to(F16)], 1).contiguous(memory_format=torch.channels_last)
            for number, w in enumerate(filters):
                x = F.conv2d(torch.relu(x) if number else x, w, padding=1)
            return (weather + x).float()
        return step
    return alike(run(lambda: land.to(GPU, non_blocking=True)), run(lambda: land_there))


# ---------------------------------------------------------------- the device waits for its data

@pair("feed_the_device", "keep_on_device", "cut_host_work")
def clouds_of_points_turned_by_numpy_in_the_loop():
    clouds, points, kinds, width = 32, 4096, 40, 128
    chance = np.random.default_rng(0)
    shapes = [(chance.normal(size=(clouds, points, 3)), chance.normal(size=(clouds, points, 3)) * 0.02,
               chance.uniform(0, 6.28, clouds), torch.from_numpy(chance.integers(0, kinds, clouds)).to(GPU)) for _ in range(4)]
    there = [(*(torch.from_numpy(one.astype(np.float32)).to(GPU) for one in (cloud, noise, angle)), kind)
             for cloud, noise, angle, kind in shapes]

    def by_numpy(cloud, noise, angle):
        cos, sin, none = np.cos(angle), np.sin(angle), np.zeros_like(angle)
        turn = np.stack([cos, -sin, none, sin, cos, none, none, none, none + 1], 1).reshape(-1, 3, 3)
        moved = np.einsum("bpi,bij->bpj", cloud, turn) + noise.clip(-0.05, 0.05)
        moved = moved - moved.mean(1, keepdims=True)
        moved = moved / np.sqrt((moved ** 2).sum(2)).max(1)[:, None, None]
        return torch.from_numpy(moved.astype(np.float32)).to(GPU)

    def by_device(cloud, noise, angle):
        cos, sin, none = torch.cos(angle), torch.sin(angle), torch.zeros_like(angle)
        turn = torch.stack([cos, -sin, none, sin, cos, none, none, none, none + 1], 1).view(-1, 3, 3)
        moved = torch.einsum("bpi,bij->bpj", cloud, turn) + noise.clamp(-0.05, 0.05)
        moved = moved - moved.mean(1, keepdim=True)
        return moved / moved.pow(2).sum(2).sqrt().amax(1)[:, None, None]

    def make(shapes, moved):
        torch.manual_seed(1)
        near = nn.Sequential(nn.Linear(3, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 512))
        model, following = nn.ModuleList([near, nn.Linear(512, kinds)]).to(GPU), turns(shapes)

        def loss():
            *shape, kind = following()
            return F.cross_entropy(model[1](model[0](moved(*shape)).amax(1)).float(), kind)
        return learnt(model, loss)
    return alike(make(shapes, by_numpy), make(there, by_device))


# ---------------------------------------------------------------- many small kernels

@pair("cuda_graphs", "cut_host_work", "compile_model", "fuse_pointwise")
def waves_of_a_harbour_moved_op_by_op():
    size, moves, rate = 256, 60, 0.1
    floods, deep = four(lambda: rand(size, size, scale=0.1)), 1 + torch.rand(size, size, device=GPU)

    def moved(high):
        east, south = torch.zeros_like(high), torch.zeros_like(high)
        for _ in range(moves):
            east = 0.999 * (east - rate * (torch.roll(high, -1, 1) - high))
            south = 0.999 * (south - rate * (torch.roll(high, -1, 0) - high))
            flow, fall = deep * east, deep * south
            high = high - rate * (flow - torch.roll(flow, 1, 1) + fall - torch.roll(fall, 1, 0))
        return high, east, south

    def by_graph():
        following, room = turns(floods), floods[0].clone()
        replay = replayed(lambda: moved(room))

        def step():
            room.copy_(following())
            return replay()
        return step
    following = turns(floods)
    return alike(lambda: moved(following()), by_graph())


@pair("cuda_graphs", "cut_host_work", "compile_model", "fuse_pointwise")
def reactions_learnt_through_steps_of_runge_and_kutta():
    rows, kinds, width, steps, rate = 512, 12, 64, 10, 0.05
    known = four(lambda: (rand(rows, kinds), rand(steps, rows, kinds)))

    def graded(model, weights, x, seen):
        wrong = 0.0
        for goal in seen:
            a = model(x)
            b = model(x + 0.5 * rate * a)
            c = model(x + 0.5 * rate * b)
            x = x + rate / 6 * (a + 2 * b + 2 * c + model(x + rate * c))
            wrong = wrong + (x - goal).pow(2).mean()
        return (wrong.detach(), *torch.autograd.grad(wrong, weights))

    def make(by_graph):
        torch.manual_seed(1)
        parts = [nn.Linear(kinds, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, kinds)]
        model = nn.Sequential(*parts).to(GPU)
        following, rooms, weights = turns(known), [one.clone() for one in known[0]], list(model.parameters())
        optimizer = torch.optim.Adam(weights, lr=1e-5, fused=True)
        replay = replayed(lambda: graded(model, weights, *rooms)) if by_graph else None

        def step():
            batch = following()
            if by_graph:
                for room, one in zip(rooms, batch):
                    room.copy_(one)
                wrong, *gradients = replay()
            else:
                wrong, *gradients = graded(model, weights, *batch)
            for one, gradient in zip(weights, gradients):
                one.grad = gradient
            optimizer.step()
            return wrong
        return step
    return alike(make(False), make(True))


@pair("cut_host_work", "cuda_graphs", "compile_model", "fuse_pointwise", "batch_products")
def floods_of_rivers_learnt_by_a_cell_day_by_day():
    rivers, days, width, wide = 256, 90, 32, 256
    known = four(lambda: (rand(days, rivers, width), rand(rivers, 1)))

    def make(by_cell):
        torch.manual_seed(1)
        whole, head, following = nn.GRU(width, wide).to(GPU), nn.Linear(wide, 1).to(GPU), turns(known)
        cell = nn.GRUCell(width, wide).to(GPU)
        cell.load_state_dict({name.removesuffix("_l0"): value for name, value in whole.state_dict().items()})

        def loss():
            x, flood = following()
            if by_cell:
                hidden = torch.zeros(rivers, wide, device=GPU)
                for day in x:
                    hidden = cell(day, hidden)
            else:
                hidden = whole(x)[1][0]
            return F.mse_loss(head(hidden), flood)
        return learnt(nn.ModuleList([cell if by_cell else whole, head]), loss, dtype=None)
    return alike(make(True), make(False))


@pair("cut_host_work", "cuda_graphs", "fuse_pointwise", "compile_model")
def teacher_of_pictures_moved_after_its_student_tensor_by_tensor():
    rows, width, depth = 2048, 256, 60
    known = four(lambda: rand(rows, width))

    def one_by_one(slow, fast):
        for ours, theirs in zip(slow, fast):
            ours.mul_(0.99).add_(theirs, alpha=0.01)

    def at_once(slow, fast):
        torch._foreach_mul_(slow, 0.99)
        torch._foreach_add_(slow, fast, alpha=0.01)

    def make(moved):
        torch.manual_seed(1)
        parts = [part for _ in range(depth) for part in (nn.Linear(width, width), nn.LayerNorm(width))]
        student, following = nn.Sequential(*parts).to(GPU), turns(known)
        teacher = copy.deepcopy(student).requires_grad_(False)
        slow, fast = list(teacher.parameters()), list(student.parameters())

        def loss():
            x = following()
            return F.mse_loss(student(x).float(), x)
        step = learnt(student, loss)

        def both():
            value = step()
            with torch.no_grad():
                moved(slow, fast)
            return value, slow[-2]
        return both
    return alike(make(one_by_one), make(at_once))


# ---------------------------------------------------------------- loops of small products

@pair("batch_products", "cut_host_work", "fill_the_device", "slow_op")
def ores_of_mines_guessed_from_their_wells_one_by_one():
    mines, wells, asked = 96, 128, 64
    places = torch.rand(mines, wells, 2, device=GPU)
    there = torch.rand(mines, asked, 2, device=GPU)
    seen = four(lambda: rand(mines, wells, 1))

    def near(a, b):
        return torch.exp(-torch.cdist(a, b) / 0.3)

    def guessed(place, at, ore):
        inner = near(place, place) + 0.1 * torch.eye(wells, device=GPU)
        return near(at, place) @ torch.cholesky_solve(ore, torch.linalg.cholesky_ex(inner).L)

    def one_by_one(ores):
        return torch.stack([guessed(places[mine], there[mine], ores[mine]) for mine in range(mines)])

    def run(told):
        following = turns(seen)
        return lambda: told(following())
    return alike(run(one_by_one), run(lambda ores: guessed(places, there, ores)))


class Heads(nn.Module):
    """Attention whose heads have layers of their own, or share one wide layer."""

    def __init__(self, width, heads, apart):
        super().__init__()
        self.heads, self.apart, each = heads, apart, width // heads
        wide, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        if apart:
            self.parts = nn.ModuleList(nn.ModuleList(nn.Linear(width, each) for _ in range(3)) for _ in range(heads))
            for kind in range(3):
                for head in range(heads):
                    first = kind * width + head * each
                    self.parts[head][kind].weight.data.copy_(wide.weight.data[first:first + each])
                    self.parts[head][kind].bias.data.copy_(wide.bias.data[first:first + each])
        else:
            self.wide = wide

    def forward(self, x):
        if self.apart:
            said = [F.scaled_dot_product_attention(*(part(x) for part in parts)) for parts in self.parts]
            return x + self.out(torch.cat(said, -1))
        q, k, v = self.wide(x).view(*x.shape[:2], 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        return x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(x.shape))


@pair("batch_products", "cut_host_work", "cuda_graphs", "compile_model", "fill_the_device")
def heartbeats_attended_head_by_head():
    hearts, length, width, heads, depth = 16, 256, 512, 16, 3
    known = four(lambda: (rand(hearts, length, width), rand(hearts, length, width)))

    def make(apart):
        torch.manual_seed(1)
        model, following = nn.Sequential(*[Heads(width, heads, apart) for _ in range(depth)]).to(GPU), turns(known)

        def loss():
            x, goal = following()
            return F.mse_loss(model(x).float(), goal)
        return learnt(model, loss)
    return alike(make(True), make(False), most=0.1)


# ---------------------------------------------------------------- the parts of a training step

@pair("fused_optimizer", "cut_host_work", "cuda_graphs")
def small_mixer_of_tables_moved_weight_by_weight():
    rows, width, depth = 1024, 192, 48
    known = four(lambda: (rand(rows, width), rand(rows, width)))

    def make(**options):
        torch.manual_seed(1)
        parts = [part for _ in range(depth) for part in (nn.LayerNorm(width), nn.Linear(width, width), nn.GELU())]
        model, following = nn.Sequential(*parts).to(GPU), turns(known)

        def loss():
            x, goal = following()
            return F.smooth_l1_loss(model(x).float(), goal)
        return learnt(model, loss, **options)
    return alike(make(foreach=False), make(fused=True))


@pair("fused_optimizer", "compile_model", "fuse_pointwise")
def planner_of_wide_blocks_moved_by_the_default_adam():
    plans, length, width = 4, 128, 2048
    known = four(lambda: (rand(plans, length, width), rand(plans, length, width)))

    def make(**options):
        torch.manual_seed(1)
        model, following = blocks(6, width, 16), turns(known)

        def loss():
            x, goal = following()
            return F.mse_loss(model(x).float(), goal)
        return learnt(model, loss, **options)
    return alike(make(foreach=True), make(fused=True))


class Stage(nn.Module):
    """Two convolutions over maps, added to what entered."""

    def __init__(self, width):
        super().__init__()
        self.first, self.last = (nn.Conv2d(width, width, 3, padding=1) for _ in range(2))

    def forward(self, x):
        return x + self.last(torch.relu(self.first(torch.relu(x))))


@pair("recompute_less")
def stages_of_a_cloud_mask_computed_twice_to_save_memory():
    pictures, size, width, depth = 16, 128, 128, 8
    known = four(lambda: (rand(pictures, width, size, size), rand(pictures, width, size, size)))

    def make(kept):
        torch.manual_seed(1)
        model = nn.ModuleList(Stage(width) for _ in range(depth)).to(GPU, memory_format=torch.channels_last)
        following = turns([[one.to(memory_format=torch.channels_last) for one in both] for both in known])

        def loss():
            x, goal = following()
            for stage in model:
                x = stage(x) if kept else checkpoint(stage, x, use_reentrant=False)
            return F.l1_loss(x.float(), goal)
        return learnt(model, loss)
    return alike(make(False), make(True))


@pair("tensor_cores")
def orbitals_of_molecules_mixed_in_full_float32():
    molecules, orbitals, rounds = 64, 768, 4
    starts = four(lambda: rand(molecules, orbitals, orbitals, scale=orbitals ** -0.5))

    def run(precision):
        following = turns(starts)

        def step():
            x = following()
            for _ in range(rounds):
                square = x @ x.mT
                x = 1.2 * x - 0.1 * square @ x
            return x.mean(1)
        return with_precision(precision, step)
    return alike(run("highest"), run("high"))


@pair("leave_float64", "fuse_pointwise", "compile_model")
def prices_of_options_walked_in_float64():
    paths, steps = 1 << 23, 12
    draws = four(lambda: rand(4, paths, dtype=torch.float64))
    strikes = torch.linspace(80, 120, 8, device=GPU)

    def run(dtype):
        following, asked = turns([draw.to(dtype) for draw in draws]), strikes.to(dtype)

        def step():
            price, doubt = torch.full((paths,), 100.0, dtype=dtype, device=GPU), 0.2
            draw = following()
            for number in range(steps):
                price = price * torch.exp(-0.5 * doubt ** 2 / steps + doubt * steps ** -0.5 * draw[number % 4])
            return torch.stack([(price - one).clamp(min=0).mean() for one in asked]).float()
        return step
    return alike(run(torch.float64), run(torch.float32))


@pair("stop_allocating", "remove_syncs", "cut_host_work")
def memory_given_back_after_each_window_of_a_scan():
    windows, size, width = 12, 96, 16
    scans = four(lambda: rand(windows, 1, 1, size, size, size, dtype=F16))
    filters = [rand(out, inner, 3, 3, 3, dtype=F16, scale=(27 * inner) ** -0.5)
               for out, inner in ((width, 1), (width, width), (4, width))]

    def run(gives_back):
        following = turns(scans)

        def step():
            said = []
            for window in following():
                x = window
                for w in filters:
                    x = torch.relu(F.conv3d(x, w, padding=1))
                said.append(x.float().mean((2, 3, 4)))
                del x
                if gives_back:
                    torch.cuda.empty_cache()
            return torch.cat(said)
        return step
    return alike(run(True), run(False))


# ---------------------------------------------------------------- the same result again

@pair("reuse_result", "reduce_problem", "fuse_pointwise", "compile_model")
def roads_of_a_city_weighed_anew_in_each_layer():
    crossings, width, depth = 8192, 128, 6
    jams, near = four(lambda: rand(crossings, width, dtype=BF16)), torch.rand(crossings, crossings, device=GPU).to(BF16)
    layers = [weight(width, width, BF16) for _ in range(depth)]

    def weighed():
        many = near.float().sum(1)
        return (near * many.rsqrt()[:, None] * many.rsqrt()).to(BF16)

    def run(once):
        following = turns(jams)

        def step():
            x, roads = following(), weighed() if once else None
            for w in layers:
                x = x + torch.relu(F.linear((roads if once else weighed()) @ x, w))
            return x.float()
        return without_gradients(step)
    return alike(run(False), run(True))


@pair("reuse_result", "reduce_problem")
def inverse_of_what_was_measured_found_for_each_question():
    measured, asked, width = 6144, 2048, 16
    places, worth = rand(measured, width), rand(measured, 1)
    questions = four(lambda: rand(asked, width))

    def near(a, b):
        return torch.exp(-torch.cdist(a, b).pow(2) / (2 * width))

    def solved():
        inner = near(places, places) + 0.5 * torch.eye(measured, device=GPU)
        return torch.cholesky_solve(worth, torch.linalg.cholesky_ex(inner).L)
    kept = solved()

    def run(known):
        following = turns(questions)
        return lambda: near(following(), places) @ known()
    return alike(run(solved), run(lambda: kept))


# ---------------------------------------------------------------- results that nobody reads

@pair("reduce_problem")
def side_maps_of_a_lung_net_made_though_the_last_is_read():
    scans, size, kinds = 32, 512, 16
    x_all = four(lambda: rand(scans, 1, size, size, dtype=F16))
    torch.manual_seed(1)
    stages, heads, inner = nn.ModuleList(), nn.ModuleList(), 1
    for out in (32, 64, 128):
        stages.append(nn.Conv2d(inner, out, 3, padding=1, stride=2))
        heads.append(nn.Conv2d(out, kinds, 3, padding=1))
        inner = out
    model = nn.ModuleList([stages, heads]).to(GPU, F16, memory_format=torch.channels_last)

    def said(x, all_of):
        maps = []
        for number, (stage, head) in enumerate(zip(*model)):
            x = torch.relu(stage(x))
            if all_of or number == 2:
                whole = F.interpolate(head(x).float(), size=(size, size), mode="bilinear", align_corners=False)
                maps.append(torch.softmax(whole, 1))
        return maps

    def run(all_of):
        following = turns(x_all)

        def step():
            last = said(following().contiguous(memory_format=torch.channels_last), all_of)[-1]
            return last.amax(1), last.mean((2, 3))
        return without_gradients(step)
    return alike(run(True), run(False))


@pair("reduce_problem")
def gradients_of_a_frozen_listener_that_no_optimizer_takes():
    voices, length, width, kinds = 16, 512, 1024, 35
    known = four(lambda: (rand(voices, length, width), ints(kinds, voices)))

    def make(frozen):
        torch.manual_seed(1)
        body, following = blocks(6, width, 16), turns(known)
        head = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, kinds)).to(GPU)
        body.requires_grad_(not frozen)

        def loss():
            body.zero_grad()
            x, kind = following()
            return F.cross_entropy(head(body(x).mean(1)).float(), kind)
        return learnt(head, loss)
    return alike(make(False), make(True))
