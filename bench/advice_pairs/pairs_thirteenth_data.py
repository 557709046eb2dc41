# SPDX-License-Identifier: Apache-2.0
"""The programs of the thirteenth set that compute the same result again, and those that call an op that is slow by its nature.

Written on 27 November 2026 by a hand that had not read the rules, before any of them was measured. pairs_thirteenth.py says how
the set was written, and takes these pairs in.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn

from pairs_eleventh_steps import alike, learnt
from pairs_practice import BF16, F16, without_gradients
from pairs_sixth import ints
from pairs_thirteenth_steps import PAIRS, filters  # noqa: F401  pairs_thirteenth.py takes the pairs in
from pairs_unseen import GPU, pair, rand, weight, with_precision


def layer_of(x, up, down):
    return x + F.linear(F.gelu(F.linear(F.layer_norm(x, x.shape[-1:]), up)), down)


# ---------------------------------------------------------------- the same result again

@pair("reuse_result", "reduce_problem")
def roads_linked_anew_in_each_layer():
    nodes, batch, width = 4096, 8, 32
    torch.manual_seed(1)
    model = nn.Module()
    model.start, model.end = nn.Parameter(rand(nodes, 16)), nn.Parameter(rand(nodes, 16))
    model.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(4)).to(GPU)
    x0, goal = rand(nodes, batch, width), rand(nodes, batch, width)

    def links(model):
        return torch.softmax(torch.relu(model.start @ model.end.t()), 1)

    def make(once):
        def loss():
            x, known = x0, links(model) if once else None
            for layer in model.layers:
                near = known if once else links(model)
                x = x + torch.tanh(layer((near @ x.reshape(nodes, -1)).view(x.shape)))
            return (x.float() - goal).pow(2).mean()
        return learnt(model, loss)
    return alike(make(False), make(True))


@pair("reuse_result", "fuse_pointwise")
def lens_undone_by_a_map_computed_for_each_frame():
    tall, wide = 2160, 3840
    frame = torch.rand(1, 3, tall, wide, device=GPU)
    sharp = torch.tensor([[0.0, -1.0, 0.0], [-1.0, 5.0, -1.0], [0.0, -1.0, 0.0]], device=GPU).expand(3, 1, 3, 3)

    def places():
        y, x = torch.linspace(-1, 1, tall, device=GPU)[:, None], torch.linspace(-1, 1, wide, device=GPU)[None]
        square = x ** 2 + y ** 2
        bent = 1 - 0.12 * square + 0.03 * square ** 2
        slant = 2 * x * y
        return torch.stack([x * bent + 0.001 * slant, y * bent + 0.001 * (square + 2 * y ** 2)], -1)[None]
    known = places()

    def run(places):
        def step():
            straight = F.grid_sample(frame, places(), align_corners=True)
            return F.conv2d(straight, sharp, padding=1, groups=3).clamp(0, 1)
        return step
    return alike(run(places), run(lambda: known))


@pair("reuse_result")
def cosines_of_a_transform_computed_for_each_sound():
    sounds, samples, half = 8, 1 << 20, 2048
    sound, gains = rand(sounds, samples), torch.rand(half, device=GPU)

    def cosines():
        n, k = torch.arange(2 * half, device=GPU)[:, None], torch.arange(half, device=GPU)
        window = torch.sin(math.pi / (2 * half) * (n + 0.5))
        return window * torch.cos(math.pi / half * (n + 0.5 + half / 2) * (k + 0.5)) * (2 / half) ** 0.5
    known = cosines()

    def run(cosines):
        def step():
            base = cosines()
            bands = (sound.unfold(1, 2 * half, half) @ base) * gains
            return bands.abs().log1p().mean(1)
        return with_precision("high", step)
    return alike(run(cosines), run(lambda: known))


@pair("reuse_result")
def keys_of_a_document_projected_for_each_word():
    batch, length, width, heads = 16, 1024, 1024, 16
    document, word = rand(batch, length, width, dtype=BF16), rand(batch, 1, width, dtype=BF16)
    layers = [tuple(weight(out, inner, BF16) for out, inner in
                    ((width, width), (2 * width, width), (width, width), (4096, width), (width, 4096))) for _ in range(6)]

    def split(x):
        return x.view(batch, -1, heads, 64).transpose(1, 2)

    def projected(w):
        return tuple(split(one) for one in F.linear(document, w).chunk(2, -1))
    known = [projected(layer[1]) for layer in layers]

    def run(read):
        def step():
            x = word
            for number, (w_q, w_kv, w_out, up, down) in enumerate(layers):
                k, v = read(number, w_kv)
                seen = F.scaled_dot_product_attention(split(F.linear(F.layer_norm(x, (width,)), w_q)), k, v)
                x = layer_of(x + F.linear(seen.transpose(1, 2).reshape(batch, 1, width), w_out), up, down)
            return x
        return step
    return alike(run(lambda number, w: projected(w)), run(lambda number, w: known[number]))


@pair("reuse_result")
def names_of_classes_encoded_for_each_batch_of_pictures():
    names, words, width = 512, 16, 512
    tokens, table = ints(8000, names, words), rand(8000, width, dtype=F16)
    pictures, patch = rand(64, 3, 224, 224, dtype=F16), rand(768, 3, 16, 16, dtype=F16, scale=0.04)
    of_words = [(weight(2048, width, F16), weight(width, 2048, F16)) for _ in range(6)]
    of_patches = [(weight(3072, 768, F16), weight(768, 3072, F16)) for _ in range(4)]
    shared = weight(width, 768, F16)

    def encoded():
        y = F.embedding(tokens, table)
        for up, down in of_words:
            y = layer_of(y, up, down)
        return F.normalize(y[:, -1].float(), dim=-1)
    known = encoded()

    def run(classes):
        def step():
            x = F.conv2d(pictures, patch, stride=16).flatten(2).transpose(1, 2)
            for up, down in of_patches:
                x = layer_of(x, up, down)
            seen = F.normalize(F.linear(x.mean(1), shared).float(), dim=-1)
            return torch.softmax(20 * seen @ classes().t(), -1)
        return step
    return alike(run(encoded), run(lambda: known))


@pair("reuse_result", "cast_weights_once")
def codes_of_weights_expanded_for_each_chunk():
    width, inner, chunks, each = 4096, 12288, 4, 1024
    x = rand(chunks, each, width, dtype=BF16)
    codes = [torch.randint(-127, 128, (out, of), device=GPU).to(torch.int8) for out, of in ((inner, width), (width, inner))]
    scales = [(torch.rand(out, 1, device=GPU) * 0.0004).to(BF16) for out in (inner, width)]

    def expanded():
        return [code.to(BF16) * scale for code, scale in zip(codes, scales)]

    def run(once):
        def step():
            known, read = expanded() if once else None, []
            for chunk in x:
                up, down = known if once else expanded()
                read.append(chunk + F.linear(F.silu(F.linear(chunk, up)), down))
            return torch.stack(read)
        return step
    return alike(run(False), run(True))


@pair("reuse_result", "reduce_problem")
def operator_of_diffusion_factorised_in_each_of_its_steps():
    size, times = 1536, 4
    links = torch.rand(size, size, device=GPU)
    links = links + links.t()
    operator = torch.eye(size, device=GPU) + 0.001 * (torch.diag(links.sum(1)) - links)
    start, source = torch.rand(size, 64, device=GPU), torch.rand(size, 1, device=GPU)

    def before():
        x = start
        for _ in range(times):
            x = torch.linalg.solve(operator, x + 0.1 * source * (1 - x))
        return x

    def after():
        x, (factors, order) = start, torch.linalg.lu_factor(operator)
        for _ in range(times):
            x = torch.linalg.lu_solve(factors, order, x + 0.1 * source * (1 - x))
        return x
    return alike(before, after)


@pair("reuse_result")
def style_of_a_painting_measured_in_each_step():
    size = 384
    ws = [rand(out, inner, 3, 3, dtype=F16, scale=(9 * inner / 2) ** -0.5) for out, inner in
           ((64, 3), (64, 64), (128, 64), (128, 128), (256, 128))]
    painting, photo = torch.rand(1, 3, size, size, device=GPU), torch.rand(1, 3, size, size, device=GPU)

    def looks(picture):
        x, kept = picture.to(F16), []
        for number, w in enumerate(ws):
            x = torch.relu(F.conv2d(x, w, padding=1))
            kept.append(x.float())
            if number % 2:
                x = F.max_pool2d(x, 2)
        return kept

    def styles(kept):
        return [x.flatten(2) @ x.flatten(2).mT / x[0].numel() for x in kept]

    def fixed():
        with torch.no_grad():
            return styles(looks(painting)), looks(photo)[-1]
    known = fixed()

    def make(fixed):
        made = nn.Module()
        made.picture = nn.Parameter(photo.clone())

        def loss():
            kept, (wanted, content) = looks(made.picture), fixed()
            away = sum((one - other).pow(2).sum() for one, other in zip(styles(kept), wanted))
            return away + (kept[-1] - content).pow(2).mean()
        return learnt(made, loss, dtype=None)
    return alike(make(fixed), make(lambda: known))


@pair("reuse_result", "fuse_pointwise")
def nearness_of_stations_weighed_for_each_hour():
    stations, cells = 4096, 16384
    places, grid, heights = rand(stations, 2), rand(cells, 2), torch.rand(stations, device=GPU)
    readings = rand(stations, 24)

    def weighed():
        near = torch.exp(-8 * torch.cdist(grid, places).pow(2)) * (1 + 0.1 * heights)
        return near / (near.sum(1, keepdim=True) + 1e-6)
    known = weighed()

    def run(weights):
        return lambda: torch.relu(weights() @ readings + 10)
    return alike(run(weighed), run(lambda: known))


@pair("reuse_result")
def shares_of_a_teacher_taken_for_each_student():
    tokens, words, width, students = 2048, 32000, 512, 4
    said, head, hidden = rand(tokens, words, dtype=BF16), weight(words, width, BF16), rand(tokens, width, dtype=BF16)
    ws = [weight(width, width, BF16).requires_grad_() for _ in range(students)]

    def shares():
        return torch.softmax(said.float() / 2, -1), torch.log_softmax(said.float() / 2, -1)

    def run(once):
        def step():
            known, grads = shares() if once else None, []
            for w in ws:
                share, logs = known if once else shares()
                own = torch.log_softmax(F.linear(torch.tanh(F.linear(hidden, w)), head).float() / 2, -1)
                grads += torch.autograd.grad((share * (logs - own)).sum() / tokens, w)
            return grads
        return step
    return alike(run(False), run(True))


# ---------------------------------------------------------------- ops that are slow by their nature

@pair("slow_op", "remove_copies", "reduce_problem")
def neighbours_of_pixels_unfolded_before_their_product():
    count, width, size = 32, 64, 112
    x0, ws = rand(count, width, size, size, dtype=F16), [filters(width, width, 3).contiguous() for _ in range(3)]

    def by_columns(x, w):
        return (w.view(width, -1) @ F.unfold(x, 3, padding=1)).view(x.shape)

    def run(moved):
        def step():
            x = x0
            for w in ws:
                x = x + torch.relu(moved(x, w))
            return x
        return step
    return alike(run(by_columns), run(lambda x, w: F.conv2d(x, w, padding=1)))


@pair("slow_op", "reduce_problem")
def scans_turned_by_right_angles_by_sampling():
    scans, w = torch.rand(64, 3, 512, 512, device=GPU), rand(16, 3, 8, 8, scale=0.07)
    ways = ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))
    turns = [torch.tensor([[c, -s, 0.0], [s, c, 0.0]], device=GPU) for c, s in ways]

    def by_sampling(x, number):
        grid = F.affine_grid(turns[number].expand(len(x), 2, 3), x.shape, align_corners=False)
        return F.grid_sample(x, grid, align_corners=False)

    def by_turning(x, number):
        return torch.rot90(x, -number, (3, 2))

    def run(turned):
        def step():
            seen = [torch.relu(F.conv2d(turned(scans, number), w, stride=8)).mean((2, 3)) for number in range(4)]
            return torch.stack(seen).mean(0), torch.stack(seen).amax(0)
        return step
    return alike(run(by_sampling), run(by_turning))


@pair("slow_op", "fill_the_device", "coalesce")
def drawdowns_followed_down_the_rows():
    days, assets = 2520, 4096
    moves = rand(days, assets, scale=0.01)

    def along(moves, axis):
        worth = torch.exp(moves.cumsum(axis))
        peak = worth.cummax(axis).values
        return (1 - worth / peak).amax(axis), worth.mean(axis)
    return alike(lambda: along(moves, 0), lambda: along(moves.t().contiguous(), 1))


@pair("slow_op", "reduce_in_blocks", "reduce_problem")
def colours_of_a_palette_moved_by_sums_that_collide():
    pixels, colours = 1 << 22, 8
    x = torch.rand(pixels, 3, device=GPU)
    start, ones = torch.rand(colours, 3, device=GPU), torch.ones(pixels, device=GPU)

    def by_index(near):
        sums = torch.zeros(colours, 3, device=GPU).index_add_(0, near, x)
        return sums, torch.zeros(colours, device=GPU).index_add_(0, near, ones)

    def by_product(near):
        chosen = (near[:, None] == torch.arange(colours, device=GPU)).float().view(512, -1, colours)
        return torch.bmm(chosen.mT, x.view(512, -1, 3)).sum(0), chosen.sum((0, 1))

    def run(summed):
        def step():
            centres = start
            for _ in range(2):
                near = (centres.pow(2).sum(1) - 2 * x @ centres.t()).argmin(1)
                sums, counts = summed(near)
                centres = sums / counts.clamp(min=1)[:, None]
            return centres
        return step
    return alike(run(by_index), run(by_product))


@pair("slow_op", "reduce_problem")
def best_word_found_by_a_choice_of_one():
    hidden, head = rand(8192, 512), weight(32000, 512)
    up, down = weight(2048, 512), weight(512, 2048)

    def run(best):
        def step():
            return best(F.linear(layer_of(hidden, up, down), head))
        return with_precision("high", without_gradients(step))
    return alike(run(lambda scores: torch.topk(scores, 1, -1).values.squeeze(-1)), run(lambda scores: scores.max(-1).values))


@pair("slow_op", "reduce_problem", "tensor_cores")
def likeness_of_voices_by_distances_without_products():
    voices, known = rand(1024, 192), rand(2048, 192)
    w_in, w_out = weight(2048, 192), weight(192, 2048)

    def run(mode):
        def step():
            x = F.normalize(voices + F.linear(torch.relu(F.linear(voices, w_in)), w_out), dim=-1)
            away = torch.cdist(x, F.normalize(known, dim=-1), compute_mode=mode)
            return torch.softmax(-4 * away, 1).amax(1), away.amin(1)
        return step
    return alike(run("donot_use_mm_for_euclid_dist"), run("use_mm_for_euclid_dist"))


@pair("slow_op", "reduce_problem")
def particles_sorted_by_keys_of_64_bits():
    particles, side = 1 << 23, 128
    places, speeds = torch.rand(particles, 3, device=GPU), rand(particles)

    def run(dtype):
        def step():
            cell = (places * side).long()
            keys = (cell[:, 0] * side + cell[:, 1]) * side + cell[:, 2]
            keys, order = torch.sort(keys.to(dtype), stable=True)
            first = torch.searchsorted(keys, torch.arange(0, side ** 3, side, device=GPU, dtype=dtype))
            return first, speeds[order].view(-1, 64).mean(1)
        return step
    return alike(run(torch.int64), run(torch.int32))


@pair("slow_op", "reduce_problem")
def volumes_of_tetrahedra_by_the_determinants_of_the_library():
    nodes, cells = 400_000, 1 << 20
    places, moves = torch.rand(nodes, 3, device=GPU), rand(nodes, 3, scale=0.01)
    corners = ints(nodes, cells, 4)

    def by_library(sides):
        return torch.linalg.det(sides)

    def by_formula(sides):
        return (torch.linalg.cross(sides[:, 0], sides[:, 1], dim=-1) * sides[:, 2]).sum(-1)

    def run(determinants):
        def step():
            ends = (places + moves)[corners]
            volumes = determinants(ends[:, 1:] - ends[:, :1]).abs() / 6
            shares = volumes[:, None].expand(-1, 4).reshape(-1) / 4
            return volumes.sum(), torch.zeros(nodes, device=GPU).index_add_(0, corners.view(-1), shares)
        return step
    return alike(run(by_library), run(by_formula))
