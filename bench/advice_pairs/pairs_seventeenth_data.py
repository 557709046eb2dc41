# SPDX-License-Identifier: Apache-2.0
"""The programs of the seventeenth set whose work another form, order, layout or number format would do better.

Written on 27 November 2026 by a hand that had not read the rules, before any of them was measured. pairs_seventeenth.py says
how the set was written, and takes these pairs in.
"""

import torch
import torch.nn.functional as F
from torch import nn

import triton
import triton.language as tl

from pairs_eleventh_steps import learnt
from pairs_practice import BF16, F16, without_gradients
from pairs_seventeenth_steps import PAIRS, alike, four, turns  # noqa: F401  pairs_seventeenth.py takes the pairs in
from pairs_seventh_steps import blocks
from pairs_sixth import ints
from pairs_unseen import GPU, pair, rand, weight


# ---------------------------------------------------------------- attention and chains of small formulas

class Notes(nn.Module):
    """A layer that attends to the notes before each."""

    def __init__(self, width, heads, attend):
        super().__init__()
        self.heads, self.attend, self.norm = heads, attend, nn.LayerNorm(width)
        self.wide, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        q, k, v = self.wide(self.norm(x)).view(*x.shape[:2], 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        return x + self.out(self.attend(q, k, v).transpose(1, 2).reshape(x.shape))


@pair("flash_attention", "fuse_norm", "fuse_pointwise")
def notes_of_a_piano_attended_with_a_triangle_of_minus_infinity():
    pieces, length, width, heads, depth = 8, 1024, 512, 8, 4
    known = four(lambda: (rand(pieces, length, width), rand(pieces, length, width)))
    later = torch.full((length, length), float("-inf"), device=GPU).triu(1)

    def by_products(q, k, v):
        scores = (q @ k.mT).float() * (width // heads) ** -0.5 + later
        return torch.softmax(scores, -1).to(q.dtype) @ v

    def by_library(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    def make(attend):
        torch.manual_seed(1)
        model, following = nn.Sequential(*[Notes(width, heads, attend) for _ in range(depth)]).to(GPU), turns(known)

        def loss():
            x, goal = following()
            return F.mse_loss(model(x).float(), goal)
        return learnt(model, loss)
    return alike(make(by_products), make(by_library))


class Tone(nn.Module):
    """A convolution along time after a norm over groups of channels."""

    def __init__(self, width, norm):
        super().__init__()
        self.norm, self.near = norm, nn.Conv1d(width, width, 3, padding=1)
        self.gain, self.shift = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))

    def forward(self, x):
        return x + self.near(F.silu(self.norm(x, self.gain, self.shift)))


@pair("fuse_norm", "fuse_pointwise", "compile_model")
def voices_made_again_with_a_norm_of_groups_written_out():
    voices, width, length, groups, depth = 16, 256, 8192, 16, 4
    known = four(lambda: (rand(voices, width, length), rand(voices, width, length)))

    def by_hand(x, gain, shift):
        parts = x.float().view(voices, groups, -1)
        away = parts - parts.mean(-1, keepdim=True)
        even = away / torch.sqrt((away ** 2).mean(-1, keepdim=True) + 1e-5)
        return even.view(x.shape) * gain[:, None] + shift[:, None]

    def by_library(x, gain, shift):
        return F.group_norm(x, groups, gain, shift)

    def make(norm):
        torch.manual_seed(1)
        model, following = nn.Sequential(*[Tone(width, norm) for _ in range(depth)]).to(GPU), turns(known)

        def loss():
            x, goal = following()
            return F.l1_loss(model(x).float(), goal)
        return learnt(model, loss)
    return alike(make(by_hand), make(by_library))


@pair("fuse_norm", "fuse_pointwise", "compile_model", "slow_op", "reduce_problem")
def kinds_of_plants_learnt_from_targets_smoothed_by_hand():
    plants, width, kinds, blur = 16384, 256, 10000, 0.1
    known = four(lambda: (rand(plants, width), ints(kinds, plants)))

    def by_hand(scores, kind):
        goal = F.one_hot(kind, kinds).float() * (1 - blur) + blur / kinds
        return -(goal * torch.log(torch.softmax(scores, 1) + 1e-9)).sum(1).mean()

    def by_library(scores, kind):
        return F.cross_entropy(scores, kind, label_smoothing=blur)

    def make(unlikely):
        torch.manual_seed(1)
        model, following = nn.Sequential(nn.Linear(width, 512), nn.ReLU(), nn.Linear(512, kinds)).to(GPU), turns(known)

        def loss():
            x, kind = following()
            return unlikely(model(x).float(), kind)
        return learnt(model, loss)
    return alike(make(by_hand), make(by_library))


@triton.jit
def straight(x):
    return tl.where(x <= 0.04045, x / 12.92, tl.exp(2.4 * tl.log((x + 0.055) / 1.055)))


@triton.jit
def bent(x):
    return tl.where(x > 0.008856, tl.exp(tl.log(x + 1e-12) / 3.0), 7.787 * x + 0.137931)


@triton.jit
def lab_kernel(red, green, blue, light, warm, cold, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    r, g, b = straight(tl.load(red + at)), straight(tl.load(green + at)), straight(tl.load(blue + at))
    x = bent((0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505)
    y = bent(0.2126 * r + 0.7152 * g + 0.0722 * b)
    z = bent((0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089)
    tl.store(light + at, 116.0 * y - 16.0)
    tl.store(warm + at, 500.0 * (x - y))
    tl.store(cold + at, 200.0 * (y - z))


@pair("fuse_pointwise", "compile_model")
def paints_of_photos_told_by_a_long_formula():
    pixels = 1 << 24
    photos = four(lambda: torch.rand(3, pixels, device=GPU))

    def by_ops(red, green, blue):
        r, g, b = (torch.where(x <= 0.04045, x / 12.92, ((x + 0.055) / 1.055) ** 2.4) for x in (red, green, blue))
        mixed = ((0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505, 0.2126 * r + 0.7152 * g + 0.0722 * b,
                 (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089)
        x, y, z = (torch.where(one > 0.008856, (one + 1e-12) ** (1 / 3), 7.787 * one + 0.137931) for one in mixed)
        return 116 * y - 16, 500 * (x - y), 200 * (y - z)

    def by_kernel(red, green, blue):
        out = [torch.empty(pixels, device=GPU) for _ in range(3)]
        lab_kernel[(pixels // 1024,)](red, green, blue, *out, 1024, num_warps=4)
        return out

    def run(told):
        following = turns(photos)
        return lambda: told(*following())
    return alike(run(by_ops), run(by_kernel))


@pair("fuse_epilogue", "fuse_pointwise", "compile_model")
def memories_of_fast_weights_faded_beside_their_products():
    memories, chunk, each, chunks = 1024, 64, 256, 8
    told = four(lambda: (rand(chunks, memories, each, chunk, dtype=BF16), rand(chunks, memories, chunk, each, dtype=BF16)))
    start = rand(memories, each, each, dtype=BF16)

    def apart(memory, key, worth):
        return 0.9 * memory + 0.05 * torch.bmm(key, worth)

    def at_once(memory, key, worth):
        return torch.baddbmm(memory, key, worth, beta=0.9, alpha=0.05)

    def run(faded):
        following = turns(told)

        def step():
            memory = start
            for key, worth in zip(*following()):
                memory = faded(memory, key, worth)
            return memory.float().mean(1)
        return step
    return alike(run(apart), run(at_once), most=0.1)


# ---------------------------------------------------------------- dimensions, layouts and number formats

@pair("align_dimensions", "remove_copies")
def surfaces_told_by_layers_that_see_three_coordinates_again():
    points, width, depth = 65536, 1024, 6
    spare = 5
    places = four(lambda: torch.cat([rand(points, width, dtype=BF16), torch.rand(points, 3, device=GPU).to(BF16)], 1))
    layers = [weight(width, width + 3, BF16) for _ in range(depth)]
    wide = [F.pad(w, (0, spare)) for w in layers]

    def run(layers, spare):
        following = turns(places)

        def step():
            place = following()
            at = F.pad(place[:, width:], (0, spare))
            x = place[:, :width]
            for w in layers:
                x = F.silu(F.linear(torch.cat([x, at], 1), w))
            return x.float().mean(1)
        return without_gradients(step)
    return alike(run(layers, 0), run(wide, spare))


@pair("align_dimensions")
def letters_of_a_clerk_learnt_with_32001_words():
    rows, width, words, padded = 8192, 1024, 32001, 32064
    known = four(lambda: (rand(rows, width), ints(words, rows)))

    def make(size):
        torch.manual_seed(1)
        body, head = nn.Sequential(nn.Linear(width, width), nn.GELU()), nn.Linear(width, words, bias=False)
        if size != words:
            last = nn.Linear(width, size, bias=False)
            last.weight.data = F.pad(head.weight.data, (0, 0, 0, size - words))
            head = last
        model, following = nn.Sequential(body, head).to(GPU), turns(known)

        def loss():
            x, word = following()
            return F.cross_entropy(model(x)[:, :words].float(), word)
        return learnt(model, loss)
    return alike(make(words), make(padded))


@pair("channels_last", "remove_copies")
def roads_of_a_continent_drawn_by_a_net_in_planes():
    pictures, size = 16, 512
    x_all = four(lambda: rand(pictures, 3, size, size, dtype=F16))
    sizes = ((64, 3, 1), (64, 64, 1), (128, 64, 2), (128, 128, 1), (256, 128, 2), (256, 256, 1))
    filters = [(rand(out, inner, 3, 3, dtype=F16, scale=(5 * inner) ** -0.5), rand(out, dtype=F16, scale=0.1), stride)
               for out, inner, stride in sizes]
    head = rand(2, 256, 1, 1, dtype=F16, scale=1 / 16)

    def run(layout):
        following = turns([x.to(memory_format=layout) for x in x_all])
        known, last = [(w.to(memory_format=layout), b, stride) for w, b, stride in filters], head.to(memory_format=layout)

        def step():
            x = following()
            for w, b, stride in known:
                x = torch.relu_(F.conv2d(x, w, b, stride=stride, padding=1))
            return torch.sigmoid(F.conv2d(x, last).float())
        return without_gradients(step)
    return alike(run(torch.contiguous_format), run(torch.channels_last))


@pair("quantize")
def tastes_of_listeners_told_by_square_layers_in_bf16():
    listeners, width, depth, small = 8192, 8192, 3, torch.float8_e4m3fn
    known = four(lambda: F.layer_norm(rand(listeners, width, dtype=BF16), (width,)))
    layers = [weight(width, width, BF16) for _ in range(depth)]
    little = [(w * 64).to(small).t() for w in layers]
    one, of_weight = torch.tensor(1.0, device=GPU), torch.tensor(1 / 64, device=GPU)

    def in_fp8(x, w):
        return torch._scaled_mm(x.to(small), w, scale_a=one, scale_b=of_weight, out_dtype=BF16, use_fast_accum=True)

    def run(layers, product):
        following = turns(known)

        def step():
            x = following()
            for w in layers:
                x = F.layer_norm(x + torch.relu(product(x, w)), (width,))
            return x
        return step
    return alike(run(layers, F.linear), run(little, in_fp8), most=0.15)


@pair("cast_weights_once", "reuse_result", "remove_copies", "tensor_cores")
def frozen_reader_of_laws_cast_by_autocast_at_each_call():
    clauses, width, wide, depth = 64, 2048, 8192, 24
    asked = four(lambda: rand(clauses, width))
    torch.manual_seed(1)
    model = nn.ModuleList(nn.Sequential(nn.LayerNorm(width), nn.Linear(width, wide), nn.GELU(), nn.Linear(wide, width))
                          for _ in range(depth)).to(GPU).requires_grad_(False)

    def run(dtype):
        if dtype is not None:
            known = [(part[1].weight.to(dtype), part[1].bias.to(dtype), part[3].weight.to(dtype), part[3].bias.to(dtype))
                     for part in model]
        following = turns(asked)

        def by_autocast():
            x = following()
            with torch.autocast(GPU, BF16):
                for part in model:
                    x = x + part(x)
            return x

        def by_known():
            x = following()
            for up, first, down, last in known:
                hidden = F.gelu(F.linear(F.layer_norm(x, (width,)).to(dtype), up, first))
                x = x + F.linear(hidden, down, last)
            return x
        return without_gradients(by_autocast if dtype is None else by_known)
    return alike(run(None), run(BF16))


# ---------------------------------------------------------------- copies and places

@pair("remove_copies")
def places_of_a_picture_mixed_on_turned_copies():
    pictures, places, width, depth = 64, 1024, 1024, 4
    x_all = four(lambda: rand(pictures, places, width, dtype=BF16))
    layers = [(weight(places, places, BF16), weight(width, width, BF16)) for _ in range(depth)]

    def turned(x, w):
        return F.linear(x.transpose(1, 2).contiguous(), w).transpose(1, 2).contiguous()

    def run(mixed):
        following = turns(x_all)

        def step():
            x = following()
            for across, along in layers:
                x = F.linear(mixed(x, across), along)
            return x.float().mean(1)
        return step
    return alike(run(turned), run(lambda x, w: torch.matmul(w, x)))


@pair("remove_copies", "reduce_problem", "reuse_result", "flash_attention")
def answers_of_grouped_heads_with_their_keys_repeated():
    chats, heads, groups, each, past, depth = 32, 32, 4, 128, 4096, 3
    width, many = heads * each, heads // groups
    asked = four(lambda: rand(chats, width, dtype=BF16))
    caches = [(rand(chats, groups, past, each, dtype=BF16), rand(chats, groups, past, each, dtype=BF16)) for _ in range(depth)]
    layers = [(weight(width, width, BF16), weight(width, width, BF16)) for _ in range(depth)]

    def repeated(q, keys, worths):
        k, v = keys.repeat_interleave(many, 1), worths.repeat_interleave(many, 1)
        return F.scaled_dot_product_attention(q.view(chats, heads, 1, each), k, v)

    def grouped(q, keys, worths):
        return F.scaled_dot_product_attention(q.view(chats, groups, many, each), keys, worths)

    def run(attend):
        following = turns(asked)

        def step():
            x = following()
            for (w_q, w_out), cache in zip(layers, caches):
                x = x + F.linear(attend(2 * F.linear(x, w_q), *cache).reshape(chats, width), w_out)
            return x.float()
        return without_gradients(step)
    return alike(run(repeated), run(grouped), most=0.1)


@pair("coalesce", "local_gathers", "remove_copies")
def neighbours_of_a_scan_read_from_maps_kept_channel_first():
    points, near, width = 1 << 20, 16, 64
    scans, links = four(lambda: rand(points, width)), ints(points, points, near)

    def by_channel(x):
        return x[:, links.flatten()].view(width, points, near).amax(2).mean(1)

    def by_point(x):
        return x[links.flatten()].view(points, near, width).amax(1).mean(0)

    def run(told, scans):
        following = turns(scans)
        return lambda: told(following())
    return alike(run(by_channel, [x.t().contiguous() for x in scans]), run(by_point, scans))


@pair("slow_op", "local_gathers", "reduce_problem")
def photons_laid_on_a_detector_with_brackets():
    photons, size, shots = 1 << 21, 1024, 4
    known = four(lambda: (ints(size, shots, photons), ints(size, shots, photons), torch.rand(shots, photons, device=GPU)))

    def by_brackets(row, column, worth):
        return torch.zeros(size, size, device=GPU).index_put_((row, column), worth, accumulate=True)

    def by_adding(row, column, worth):
        return torch.zeros(size * size, device=GPU).scatter_add_(0, row * size + column, worth).view(size, size)

    def run(laid):
        following = turns(known)
        return lambda: torch.stack([laid(*shot) for shot in zip(*following())])
    return alike(run(by_brackets), run(by_adding))


# ---------------------------------------------------------------- work that nobody needs

@pair("reduce_problem", "slow_op")
def nearest_recipes_found_by_sorting_them_all():
    asked, recipes, width, near = 1024, 50000, 256, 20
    known, dishes = rand(recipes, width, dtype=F16), four(lambda: rand(asked, width, dtype=F16))

    def by_sorting(far):
        order = far.argsort(1)[:, :near]
        return far.gather(1, order)

    def by_choosing(far):
        return far.topk(near, 1, largest=False).values

    def run(nearest):
        following = turns(dishes)

        def step():
            dish = following()
            return nearest(-F.linear(dish, known).float())
        return step
    return alike(run(by_sorting), run(by_choosing))


@pair("reduce_problem")
def hidden_parts_of_proteins_told_at_all_places():
    rows, width, words, hidden = 16384, 768, 30528, 2048
    known = four(lambda: (rand(32, rows // 32, width), torch.randperm(rows, device=GPU)[:hidden], ints(words, hidden)))

    def after(head, x, at):
        return head(x).flatten(0, 1)[at]

    def before(head, x, at):
        return head(x.flatten(0, 1)[at])

    def make(told):
        torch.manual_seed(1)
        model, following = nn.ModuleList([blocks(2, width, 12), nn.Linear(width, words)]).to(GPU), turns(known)

        def loss():
            x, at, word = following()
            return F.cross_entropy(told(model[1], model[0](x), at).float(), word)
        return learnt(model, loss)
    return alike(make(after), make(before))


@pair("reduce_problem", "reuse_result", "slow_op")
def drifts_of_a_scanner_taken_out_by_a_whole_matrix():
    times, drifts, voxels = 8192, 64, 4096
    scans, base = four(lambda: rand(times, voxels)), torch.linalg.qr(rand(8192, 64)).Q.contiguous()

    def whole(x):
        return x - (base @ base.t()) @ x

    def in_turn(x):
        return x - base @ (base.t() @ x)

    def run(cleaned):
        following = turns(scans)

        def step():
            x = cleaned(following())
            return x.pow(2).mean(0), x.amax(1)
        return step
    return alike(run(whole), run(in_turn))


@pair("slow_op", "align_dimensions", "reduce_problem")
def echoes_of_halls_transformed_at_an_awkward_length():
    halls, samples, taps, padded = 128, 96000, 4004, 100352
    sounds, echo, whole = four(lambda: rand(halls, samples)), rand(taps, scale=taps ** -0.5), samples + taps - 1

    def run(length):
        known, following = torch.fft.rfft(echo, n=length), turns(sounds)

        def step():
            return torch.fft.irfft(torch.fft.rfft(following(), n=length) * known, n=length)[:, :whole]
        return step
    return alike(run(whole), run(padded))


@pair("slow_op", "reduce_problem", "batch_products")
def strains_of_tissue_turned_back_by_the_library():
    cells = 1 << 22
    bent = four(lambda: torch.eye(3, device=GPU) + rand(cells, 3, 3, scale=0.1))

    def by_library(x):
        return torch.linalg.inv(x)

    def by_formula(x):
        first, second, third = x.unbind(1)
        rows = torch.stack([torch.cross(second, third, dim=1), torch.cross(third, first, dim=1),
                            torch.cross(first, second, dim=1)], 2)
        return rows / (first * rows[:, :, 0]).sum(1)[:, None, None]

    def run(inverse):
        following = turns(bent)

        def step():
            x = inverse(following())
            return x.pow(2).mean(0), x.amax(0)
        return step
    return alike(run(by_library), run(by_formula))


@pair("fill_the_device", "slow_op", "fuse_norm")
def whole_volumes_evened_by_the_norm_of_the_library():
    volumes, width, size = 4, 16, 96
    x_all = four(lambda: rand(volumes, width, size, size, size))

    def by_library(x):
        return F.layer_norm(x, x.shape[1:])

    def by_sums(x):
        spread, middle = torch.var_mean(x, (1, 2, 3, 4), correction=0, keepdim=True)
        return (x - middle) * torch.rsqrt(spread + 1e-5)

    def run(evened):
        following = turns(x_all)

        def step():
            x = following()
            for _ in range(3):
                x = evened(torch.relu(x))
            return x
        return step
    return alike(run(by_library), run(by_sums))
