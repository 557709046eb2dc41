# SPDX-License-Identifier: Apache-2.0
"""The programs of the fourteenth set that compute what nobody reads, and those of whose results a small part is read.

Written on 27 November 2026 by a hand that had not read the rules, before any of them was measured. pairs_fourteenth.py says how
the set was written, and takes these pairs in.
"""

import itertools

import torch
import torch.nn.functional as F
from torch import nn

import pairs_thirteenth as thirteenth
from pairs_eleventh_steps import learnt
from pairs_practice import BF16, F16, without_gradients
from pairs_seventh_steps import blocks
from pairs_sixth import ints
from pairs_thirteenth_data import layer_of
from pairs_unseen import GPU, pair, rand, weight

thirteenth.PAIRS.clear()
PAIRS = thirteenth.PAIRS


def turns(values):
    """A function that gives the next of the values at each call, and the first again after the last."""
    return itertools.cycle(values).__next__


def four(make):
    """What changes from step to step: four batches."""
    return [make() for _ in range(4)]


def flat(result):
    """The tensors of a result, complex numbers as real ones."""
    if isinstance(result, dict):
        return [one for name in sorted(result) for one in flat(result[name])]
    if isinstance(result, (tuple, list)):
        return [one for part in result for one in flat(part)]
    result = result.detach()
    return [torch.view_as_real(result.resolve_conj()) if result.is_complex() else result]


def alike(before, after, most=0.03):
    """Both steps, after two runs of each gave the same results: the difference is at most `most` of their size."""
    for _ in range(2):
        ours, theirs = [one.clone() for one in flat(before())], flat(after())
        assert len(ours) == len(theirs), "another number of results"
        for one, other in zip(ours, theirs):
            assert one.shape == other.shape, f"{tuple(one.shape)} and {tuple(other.shape)}"
            one, other = one.double(), other.double()
            error = float((one - other).norm() / other.norm().clamp(min=1e-6))
            assert error <= most, f"the results differ by {error:.3f} of their size"
    return before, after


# ---------------------------------------------------------------- results that nobody reads

@pair("reduce_problem")
def shop_ranker_with_towers_that_nobody_asks():
    rows, width, wide, inner = 32768, 512, 2048, 1024
    x_all = four(lambda: rand(rows, width, dtype=BF16))
    trunk = [(weight(wide, width, BF16), weight(width, wide, BF16)) for _ in range(2)]
    towers = {name: (weight(inner, width, BF16), weight(width, inner, BF16), weight(1, width, BF16))
              for name in ("bought", "clicked", "liked", "shared", "returned", "watched")}

    def scored(x, tower):
        first, second, last = tower
        return F.linear(torch.relu(F.linear(torch.relu(F.linear(x, first)), second)), last)

    def run(asked):
        following = turns(x_all)

        def step():
            x = following()
            for up, down in trunk:
                x = layer_of(x, up, down)
            said = {name: scored(x, towers[name]) for name in asked}
            return torch.sigmoid(said["bought"].float()).squeeze(1)
        return step
    return alike(run(list(towers)), run(["bought"]))


@pair("reduce_problem")
def saliency_of_scans_graded_by_all_weights():
    count, size, layout = 32, 256, torch.channels_last
    scans = four(lambda: rand(count, 1, size, size, dtype=BF16))
    torch.manual_seed(1)
    parts, inner = [], 1
    for out in (32, 64, 128, 128, 256):
        parts += [nn.Conv2d(inner, out, 3, padding=1), nn.ReLU(), nn.Conv2d(out, out, 3, padding=1, stride=2), nn.ReLU()]
        inner = out
    for part in parts[::2]:
        nn.init.kaiming_normal_(part.weight)
    model = nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 14)).to(GPU, BF16)
    model = model.to(memory_format=layout)

    def by_backward(scan):
        model.zero_grad()
        model(scan).float().amax(1).sum().backward()
        return scan.grad

    def by_input(scan):
        return torch.autograd.grad(model(scan).float().amax(1).sum(), scan)[0]

    def run(graded):
        following = turns(scans)

        def step():
            scan = following().clone(memory_format=layout).requires_grad_()
            return F.avg_pool2d(graded(scan).float().abs(), 4)
        return step
    return alike(run(by_backward), run(by_input))


@pair("reduce_problem")
def head_fitted_while_the_body_takes_gradients():
    count, length, width = 16, 256, 512
    known = four(lambda: (rand(count, length, width), ints(40, count)))

    def make(taken):
        torch.manual_seed(1)
        body, head, following = blocks(6, width, 8), nn.Linear(width, 40).to(GPU), turns(known)

        def loss():
            x, labels = following()
            with torch.set_grad_enabled(taken):
                hidden = body(x).mean(1)
            return F.cross_entropy(head(hidden).float(), labels)
        return learnt(head, loss)
    return alike(make(True), make(False))


class Cleaner(nn.Module):
    """A small net that takes noise out of sound."""

    def __init__(self, width, depth):
        super().__init__()
        self.first = nn.Conv1d(1, width, 16, stride=8, padding=4)
        self.last = nn.ConvTranspose1d(width, 1, 16, stride=8, padding=4)
        wide = [2 ** (number % 4) for number in range(depth)]
        self.parts = nn.ModuleList(nn.Conv1d(width, width, 3, padding=step, dilation=step) for step in wide)

    def forward(self, x):
        x = self.first(x)
        for part in self.parts:
            x = x + torch.relu(part(x))
        return self.last(x)


@pair("reduce_problem")
def speech_cleaned_with_a_loss_of_no_weight():
    count, samples, sizes = 16, 65536, (512, 1024, 2048)
    pieces = four(lambda: (rand(count, 1, samples), rand(count, 1, samples)))
    windows = {size: torch.hann_window(size, device=GPU) for size in sizes}

    def away_in_spectra(one, other):
        total = 0.0
        for size in sizes:
            a, b = (torch.stft(sound[:, 0], size, size // 4, window=windows[size], return_complex=True).abs().clamp(min=1e-4)
                    for sound in (one, other))
            total = total + (a - b).norm() / b.norm() + (a.log() - b.log()).abs().mean()
        return total

    def make(weighed):
        torch.manual_seed(1)
        model, following = Cleaner(64, 8).to(GPU), turns(pieces)

        def loss():
            noisy, clean = following()
            heard = model(noisy).float()
            total = (heard - clean).abs().mean()
            if weighed:
                with torch.autocast(GPU, enabled=False):
                    total = total + 0.0 * away_in_spectra(heard, clean)
            return total
        return learnt(model, loss)
    return alike(make(True), make(False))


@pair("reduce_problem")
def spectrum_of_a_pattern_taken_for_a_log_nobody_writes():
    count, size, bins = 2, 2048, 1024
    stencil = torch.tensor([[0.05, 0.2, 0.05], [0.2, -1.0, 0.2], [0.05, 0.2, 0.05]], device=GPU)[None, None]
    start = torch.rand(2, count, 1, size, size, device=GPU)
    along = torch.fft.fftfreq(size, device=GPU)
    ring = ((along[:, None] ** 2 + along ** 2).sqrt() * bins).long().clamp(max=bins - 1).view(-1)

    def seen(u):
        power = torch.fft.fft2(u[:, 0]).abs().pow(2)
        rings = torch.zeros(count, bins, device=GPU).index_add_(1, ring, power.view(count, -1))
        share = rings / rings.sum(1, keepdim=True)
        return {"rings": rings, "order": -(share * (share + 1e-12).log()).sum(1), "spread": u.std((1, 2, 3))}

    def run(logs):
        state = [start[0].clone(), start[1].clone() * 0.5]

        def step():
            u, v = state
            met = u * v * v
            state[0] = (u + F.conv2d(u, stencil, padding=1) - met + 0.037 * (1 - u)).clamp(0, 1)
            state[1] = (v + 0.5 * F.conv2d(v, stencil, padding=1) + met - 0.097 * v).clamp(0, 1)
            if logs:
                seen(state[0])
            return state[1]
        return step
    return alike(run(True), run(False))


@pair("reduce_problem")
def normals_of_a_field_found_and_dropped():
    rays, samples, width = 4096, 64, 256
    views = four(lambda: (rand(rays, 1, 3, scale=0.2), F.normalize(rand(rays, 1, 3), dim=-1)))
    far = torch.linspace(0.1, 2, samples, device=GPU)[None, :, None]
    bands = 2.0 ** torch.arange(6, device=GPU)
    torch.manual_seed(1)
    parts = [nn.Linear(36, width), nn.SiLU()]
    for _ in range(3):
        parts += [nn.Linear(width, width), nn.SiLU()]
    model = nn.Sequential(*parts, nn.Linear(width, 4)).to(GPU, BF16)
    for p in model.parameters():
        p.requires_grad_(False)

    def told(places):
        turned = (places[..., None] * bands).flatten(-2)
        said = model(torch.cat([turned.sin(), turned.cos()], -1).to(BF16)).float()
        return F.softplus(said[..., 0]), torch.sigmoid(said[..., 1:])

    def drawn(dense, tints):
        kept = torch.exp(-dense.cumsum(1) * 0.03)
        return ((1 - torch.exp(-dense * 0.03)) * kept)[..., None].mul(tints).sum(1)

    def with_normals(places):
        places.requires_grad_()
        with torch.enable_grad():
            dense, tints = told(places)
            normals = F.normalize(-torch.autograd.grad(dense.sum(), places)[0], dim=-1)
        return {"tints": drawn(dense.detach(), tints.detach()), "normals": drawn(dense.detach(), normals)}

    def run(seen):
        following = turns(views)

        def step():
            origins, ways = following()
            return seen(origins + ways * far)["tints"]
        return without_gradients(step)
    return alike(run(with_normals), run(lambda places: {"tints": drawn(*told(places))}))


@pair("reduce_problem", "remove_copies")
def layers_of_a_protein_net_kept_in_float32():
    chains, length, width, wide = 16, 1024, 512, 2048
    x_all = four(lambda: rand(chains, length, width, dtype=BF16))
    layers = [(weight(wide, width, BF16), weight(width, wide, BF16)) for _ in range(8)]

    def run(keeps):
        following = turns(x_all)

        def step():
            x, kept = following(), []
            for up, down in layers:
                x = layer_of(x, up, down)
                if keeps:
                    kept.append(F.layer_norm(x.float(), (width,)))
            said = {"last": F.normalize(x.float().mean(1), dim=-1)}
            if keeps:
                said["layers"] = torch.stack(kept, 1)
            return said["last"]
        return step
    return alike(run(True), run(False))


# ---------------------------------------------------------------- results of which a small part is read

@pair("reduce_problem", "slow_op")
def places_of_a_map_ranked_whole_for_ten_neighbours():
    views, known, width = 512, 65536, 256
    seen = four(lambda: F.normalize(rand(views, width), dim=-1))
    marks, places = F.normalize(rand(known, width), dim=-1), torch.rand(known, 2, device=GPU)

    def whole(likeness):
        return torch.argsort(likeness, 1, descending=True)[:, :10]

    def in_part(likeness):
        return torch.topk(likeness, 10, 1).indices

    def run(nearest):
        following = turns(seen)

        def step():
            return places[nearest(following() @ marks.t())].mean(1)
        return step
    return alike(run(whole), run(in_part))


@pair("reduce_problem")
def candidates_scored_by_a_product_with_the_whole_shop():
    users, items, width, asked = 4096, 131072, 128, 200
    shop = rand(items, width, dtype=BF16)
    visits = four(lambda: (rand(users, width, dtype=BF16, scale=width ** -0.5), ints(items, users, asked)))

    def whole(user, chosen):
        return (user @ shop.t()).gather(1, chosen)

    def in_part(user, chosen):
        return torch.bmm(shop[chosen], user[:, :, None]).squeeze(2)

    def run(scored):
        following = turns(visits)

        def step():
            user, chosen = following()
            return torch.sigmoid(scored(user, chosen).float())
        return step
    return alike(run(whole), run(in_part))


@pair("reduce_problem")
def orders_of_a_shaft_read_from_whole_spectra():
    shafts, length, revolutions, orders = 2048, 32768, 64, 12
    shaken = four(lambda: rand(shafts, length))

    def whole(x):
        return torch.fft.rfft(x)[:, revolutions:revolutions * (orders + 1):revolutions]

    def in_part(x):
        return torch.fft.rfft(x.view(shafts, revolutions, -1).sum(1))[:, 1:orders + 1]

    def run(lines):
        following = turns(shaken)

        def step():
            return lines(following()).abs() * (2 / length)
        return step
    return alike(run(whole), run(in_part))


@pair("reduce_problem", "slow_op")
def strongest_source_read_from_a_whole_decomposition():
    bands, sensors, times, ways = 4, 96, 2048, 360
    heard = four(lambda: 3 * rand(bands, sensors, 1) * rand(bands, 1, times) + rand(bands, sensors, times))
    steering = F.normalize(rand(ways, sensors), dim=-1)

    def whole(spread):
        values, vectors = torch.linalg.eigh(spread)
        return values[:, -1], vectors[:, :, -1]

    def in_part(spread):
        way = spread.sum(2, keepdim=True)
        for _ in range(6):
            way = F.normalize(spread @ way, dim=1)
        return (way.mT @ spread @ way).flatten(), way.squeeze(2)

    def run(strongest):
        following = turns(heard)

        def step():
            x = following()
            power, way = strongest(x @ x.mT / times)
            return power, (way @ steering.t()).pow(2)
        return step
    return alike(run(whole), run(in_part))


@pair("reduce_problem")
def masked_words_learnt_with_logits_of_all_positions():
    texts, length, words, width, hidden_words = 16, 384, 30000, 512, 921

    def batch():
        at = torch.randperm(texts * length, device=GPU)[:hidden_words].sort().values
        text, goals = ints(words, texts, length), torch.full((texts * length,), -100, device=GPU)
        goals[at] = text.view(-1)[at]
        return text, goals, at
    known = four(batch)

    def whole(model, text, goals, at):
        return F.cross_entropy(model(text).float().flatten(0, 1), goals, ignore_index=-100)

    def in_part(model, text, goals, at):
        hidden = model[:-1](text).flatten(0, 1)
        return F.cross_entropy(model[-1](hidden.index_select(0, at)).float(), goals[at])

    def make(told):
        torch.manual_seed(1)
        model = nn.Sequential(nn.Embedding(words, width), *blocks(4, width, 8), nn.Linear(width, words)).to(GPU)
        following = turns(known)
        return learnt(model, lambda: told(model, *following()))
    return alike(make(whole), make(in_part))


@pair("reduce_problem", "slow_op")
def dose_of_a_day_read_from_running_sums():
    places, minutes = 65536, 1440
    rates = four(lambda: torch.rand(places, minutes, device=GPU))

    def by_running(rate):
        return rate.cumsum(1)[:, -1], rate.cummax(1).values[:, -1]

    def by_totals(rate):
        return rate.sum(1), rate.amax(1)

    def run(taken):
        following = turns(rates)

        def step():
            dose, peak = taken(following())
            return dose / 60, peak
        return step
    return alike(run(by_running), run(by_totals))


# ---------------------------------------------------------------- training

@pair("fused_optimizer", "cut_host_work", "cuda_graphs", "compile_model")
def rmsprop_of_an_agent_without_lists():
    states, depth, width = 512, 24, 256
    seen = four(lambda: (rand(states, width), rand(states, width)))

    def make(**options):
        torch.manual_seed(1)
        parts = []
        for _ in range(depth):
            parts += [nn.Linear(width, width), nn.LayerNorm(width), nn.ELU()]
        model, following = nn.Sequential(*parts).to(GPU), turns(seen)
        optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-6, momentum=0.9, **options)

        def step():
            x, goal = following()
            optimizer.zero_grad()
            loss = F.smooth_l1_loss(model(x), goal)
            loss.backward()
            optimizer.step()
            return loss.detach()
        return step
    return alike(make(foreach=False), make(foreach=True))


@pair("remove_syncs", "cut_host_work", "slow_op")
def boxes_learnt_from_the_cells_of_a_mask():
    count, sizes, width, kinds = 8, (32, 16, 8, 4, 2), 64, 20

    def batch():
        x = rand(count, width, sizes[0], sizes[0])
        return x, [(torch.rand(count, size, size, device=GPU) < 0.1, rand(count, size, size, 4),
                    torch.rand(count, size, size, device=GPU), ints(kinds, count, size, size)) for size in sizes]
    known = four(batch)

    def by_cells(box, near, kind, there, goal, nearness, kinds_there):
        away = F.smooth_l1_loss(box[there], goal[there], reduction="sum")
        close = F.binary_cross_entropy_with_logits(near[there], nearness[there], reduction="sum")
        return away + close + F.cross_entropy(kind[there], kinds_there[there], reduction="sum")

    def by_weights(box, near, kind, there, goal, nearness, kinds_there):
        away = F.smooth_l1_loss(box, goal, reduction="none").sum(-1)
        close = F.binary_cross_entropy_with_logits(near, nearness, reduction="none")
        named = F.cross_entropy(kind.flatten(0, 2), kinds_there.flatten(), reduction="none")
        return ((away + close + named.view(close.shape)) * there).sum()

    def make(counted):
        torch.manual_seed(1)
        steps = [nn.Conv2d(width, width, 3, padding=1, stride=1 + (i > 0)) for i in range(len(sizes))]
        model = nn.ModuleList([*steps, nn.Conv2d(width, 5 + kinds, 1)]).to(GPU)
        following = turns(known)

        def loss():
            (x, goals), total = following(), 0.0
            for part, goal in zip(model, goals):
                x = torch.relu(part(x))
                said = model[-1](x).permute(0, 2, 3, 1)
                total = total + counted(said[..., :4], said[..., 4], said[..., 5:], *goal)
            return total / count
        return learnt(model, loss, dtype=None)
    return alike(make(by_cells), make(by_weights))


@pair("keep_on_device", "feed_the_device", "pin_memory", "overlap_copies")
def rows_of_a_small_table_gathered_on_the_host():
    patients, width, each = 65536, 512, 8192
    table, ills = torch.empty(patients, width).uniform_(-1, 1), torch.empty(patients, 1).uniform_()
    orders = four(lambda: torch.randperm(patients)[:each])
    there, ills_there, orders_there = table.to(GPU), ills.to(GPU), [order.to(GPU) for order in orders]

    def make(orders, table, ills):
        torch.manual_seed(1)
        parts = [nn.Linear(width, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1)]
        model, following = nn.Sequential(*parts).to(GPU), turns(orders)

        def loss():
            order = following()
            x, ill = table[order].to(GPU), ills[order].to(GPU)
            return F.binary_cross_entropy_with_logits(model(x).float(), ill)
        return learnt(model, loss)
    return alike(make(orders, table, ills), make(orders_there, there, ills_there))


# ---------------------------------------------------------------- attention

@pair("flash_attention", "fuse_norm", "fuse_pointwise", "fuse_epilogue")
def memory_of_a_tracker_attended_by_products():
    objects, pixels, past, width, heads = 4, 2304, 6144, 256, 4
    frames = four(lambda: (rand(objects, pixels, width, dtype=F16), rand(objects, past, 2 * width, dtype=F16)))
    w_q, w_out, up, down = (weight(out, inner, F16) for out, inner in
                            ((width, width), (width, width), (1024, width), (width, 1024)))

    def by_products(q, k, v):
        return torch.softmax((q @ k.mT).float() * (width // heads) ** -0.5, -1).to(v.dtype) @ v

    def split(x):
        return x.view(objects, -1, heads, width // heads).transpose(1, 2)

    def run(attend):
        following = turns(frames)

        def step():
            x, memory = following()
            k, v = memory.chunk(2, -1)
            seen = attend(split(F.linear(x, w_q)), split(k), split(v))
            return layer_of(x + F.linear(seen.transpose(1, 2).reshape(x.shape), w_out), up, down)
        return step
    return alike(run(by_products), run(F.scaled_dot_product_attention))


# ---------------------------------------------------------------- copies and places

@pair("remove_copies", "local_gathers")
def bands_of_a_spectrum_put_in_order_before_their_product():
    pixels, bands, width, kinds = 131072, 768, 256, 24
    scenes, order = four(lambda: rand(pixels, bands, dtype=F16)), torch.randperm(bands, device=GPU)
    first, last = weight(width, bands, F16), weight(kinds, width, F16)
    moved = first[:, order.argsort()].contiguous()

    def run(hidden):
        following = turns(scenes)

        def step():
            return F.linear(torch.relu(hidden(following())), last).float().softmax(1)
        return step
    return alike(run(lambda x: F.linear(x[:, order], first)), run(lambda x: F.linear(x, moved)))


@pair("slow_op", "reduce_problem")
def peaks_of_a_sky_sought_in_square_windows():
    skies, size, window, most = 4, 1024, 31, 200
    nights = four(lambda: rand(skies, 1, size, size))

    def by_square(sky):
        return F.max_pool2d(sky, window, stride=1, padding=window // 2)

    def by_lines(sky):
        across = F.max_pool2d(sky, (1, window), stride=1, padding=(0, window // 2))
        return F.max_pool2d(across, (window, 1), stride=1, padding=(window // 2, 0))

    def run(greatest):
        following = turns(nights)

        def step():
            sky = following()
            return torch.where(sky == greatest(sky), sky, 0.0).flatten(1).topk(most).values
        return step
    return alike(run(by_square), run(by_lines))


@pair("local_gathers")
def contacts_of_a_city_listed_in_any_order():
    people, contacts = 1 << 24, 1 << 25
    days, near = four(lambda: torch.rand(people, device=GPU)), ints(people, contacts)
    others = (near + 1 + ints(64, contacts)) % people
    order = torch.argsort(near)

    def run(source, target):
        following = turns(days)

        def step():
            ill = following()
            met = torch.zeros(people, device=GPU).index_add_(0, target, ill.index_select(0, source))
            return 1 - (1 - ill) * torch.exp(-0.1 * met)
        return step
    return alike(run(near, others), run(near[order], others[order]))


@pair("fill_the_device", "slow_op")
def records_of_a_day_standardised_by_the_library():
    stations, samples, parts = 6, 1 << 23, 2048
    days = four(lambda: rand(stations, samples) + 3)

    def by_library(x):
        return F.layer_norm(x, (samples,))

    def by_parts(x):
        spread, mean = torch.var_mean(x.view(stations, parts, -1), 2, unbiased=False)
        spread = spread.mean(1, keepdim=True) + mean.var(1, unbiased=False, keepdim=True)
        return (x - mean.mean(1, keepdim=True)) * torch.rsqrt(spread + 1e-5)

    def run(even):
        following = turns(days)
        return lambda: F.avg_pool1d(even(following()), 4)
    return alike(run(by_library), run(by_parts))
