# SPDX-License-Identifier: Apache-2.0
"""The programs of the sixteenth set whose work another form, order, layout or number format would do better.

Written on 27 November 2026 by a hand that had not read the rules, before any of them was measured. pairs_sixteenth.py says how
the set was written, and takes these pairs in.
"""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import triton
import triton.language as tl

from pairs_eleventh_steps import learnt
from pairs_practice import BF16, F16, without_gradients
from pairs_seventh_steps import blocks
from pairs_sixteenth_steps import PAIRS, alike, four, turns  # noqa: F401  pairs_sixteenth.py takes the pairs in
from pairs_sixth import ints
from pairs_unseen import GPU, pair, rand, weight


# ---------------------------------------------------------------- attention and chains of small formulas

@pair("flash_attention", "fuse_norm", "fuse_pointwise")
def patches_of_a_slide_attended_with_a_bias_of_distance():
    slides, side, heads, each, depth = 8, 40, 8, 64, 3
    places, width = side * side, heads * each
    x_all = four(lambda: rand(slides, places, width, dtype=BF16))
    layers = [(weight(3 * width, width, BF16), weight(width, width, BF16)) for _ in range(depth)]
    at = torch.stack(torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij"), -1).view(-1, 2).float().to(GPU)
    far = torch.cdist(at, at)
    bias = (-far * 2.0 ** -torch.arange(1, heads + 1, device=GPU).view(-1, 1, 1)).to(BF16)

    def by_products(q, k, v):
        return torch.softmax(q @ k.mT * each ** -0.5 + bias, -1) @ v

    def by_library(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=bias[None])

    def run(attend):
        following = turns(x_all)

        def step():
            x = following()
            for w_in, w_out in layers:
                qkv = F.linear(F.layer_norm(x, (width,)), w_in).view(slides, places, 3, heads, each)
                q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
                x = x + F.linear(attend(q, k, v).transpose(1, 2).reshape(x.shape), w_out)
            return x.float().mean(1)
        return without_gradients(step)
    return alike(run(by_products), run(by_library))


class Modulated(nn.Module):
    """Two products over a norm that a condition shifts and stretches."""

    def __init__(self, width, norm):
        super().__init__()
        self.norm, self.told = norm, nn.Linear(width, 3 * width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x, told):
        shift, stretch, gate = self.told(F.silu(told))[:, None].chunk(3, -1)
        return x + gate * self.down(F.gelu(self.up(self.norm(x, shift, stretch))))


@pair("fuse_norm", "fuse_pointwise", "compile_model")
def frames_of_a_film_denoised_with_a_norm_written_out():
    films, places, width, depth = 32, 1024, 768, 4
    known = four(lambda: (rand(films, places, width), rand(films, width), rand(films, places, width)))

    def by_hand(x, shift, stretch):
        x = x.float()
        away = x - x.mean(-1, keepdim=True)
        return away * torch.rsqrt(away.pow(2).mean(-1, keepdim=True) + 1e-6) * (1 + stretch) + shift

    def by_library(x, shift, stretch):
        return F.layer_norm(x, (width,), eps=1e-6) * (1 + stretch) + shift

    def make(norm):
        torch.manual_seed(1)
        model, following = nn.ModuleList(Modulated(width, norm) for _ in range(depth)).to(GPU), turns(known)

        def loss():
            x, told, noise = following()
            for layer in model:
                x = layer(x, told)
            return F.mse_loss(x.float(), noise)
        return learnt(model, loss)
    return alike(make(by_hand), make(by_library))


@pair("fuse_norm", "fuse_pointwise", "compile_model", "slow_op")
def choices_of_travellers_learnt_by_exponentials_and_sums():
    trips, width, zones = 16384, 128, 12000
    known = four(lambda: (rand(trips, width), ints(zones, trips)))

    def by_hand(worth, zone):
        raised = torch.exp(worth - worth.amax(1, keepdim=True).detach())
        shares = raised / raised.sum(1, keepdim=True)
        return -torch.log(shares.gather(1, zone[:, None]) + 1e-12).mean()

    def make(unlikely):
        torch.manual_seed(1)
        model, following = nn.Sequential(nn.Linear(width, 256), nn.ReLU(), nn.Linear(256, zones)).to(GPU), turns(known)

        def loss():
            x, zone = following()
            return unlikely(model(x).float(), zone)
        return learnt(model, loss)
    return alike(make(by_hand), make(F.cross_entropy))


@triton.jit
def evaporation_kernel(warm, damp, wind, shone, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    t, speed, light = tl.load(warm + at), tl.load(wind + at), tl.load(shone + at)
    full = 0.6108 * tl.exp(17.27 * t / (t + 237.3))
    steep = 4098.0 * full / ((t + 237.3) * (t + 237.3))
    lacks = full * (1.0 - tl.load(damp + at))
    above = 0.408 * steep * (0.77 * light - 0.9) + 0.0674 * 900.0 / (t + 273.0) * speed * lacks
    tl.store(out + at, tl.maximum(above / (steep + 0.0674 * (1.0 + 0.34 * speed)), 0.0))


@pair("fuse_pointwise", "compile_model")
def water_that_fields_lose_by_a_long_formula():
    fields = 1 << 25
    days = four(lambda: [most * torch.rand(fields, device=GPU) for most in (25, 1, 5, 20)])

    def by_ops(warm, damp, wind, shone):
        full = 0.6108 * torch.exp(17.27 * warm / (warm + 237.3))
        steep = 4098 * full / (warm + 237.3) ** 2
        lacks = full * (1 - damp)
        above = 0.408 * steep * (0.77 * shone - 0.9) + 0.0674 * 900 / (warm + 273) * wind * lacks
        return (above / (steep + 0.0674 * (1 + 0.34 * wind))).clamp(min=0)

    def by_kernel(*day):
        out = torch.empty(fields, device=GPU)
        evaporation_kernel[(fields // 1024,)](*day, out, 1024, num_warps=4)
        return out

    def run(lost):
        following = turns(days)
        return lambda: lost(*following())
    return alike(run(by_ops), run(by_kernel))


def gelu_by_formula(x):
    return 0.5 * x * (1 + torch.tanh(0.7978845608 * (x + 0.044715 * torch.pow(x, 3))))


class Wide(nn.Module):
    """The two wide products of a layer, with any function between."""

    def __init__(self, width, wide, bent):
        super().__init__()
        self.norm, self.up, self.down, self.bent = nn.LayerNorm(width), nn.Linear(width, wide), nn.Linear(wide, width), bent

    def forward(self, x):
        return x + self.down(self.bent(self.up(self.norm(x))))


@pair("fuse_pointwise", "compile_model", "fuse_epilogue")
def verses_translated_with_the_formula_of_gelu():
    rows, width, wide, depth = 16384, 768, 3072, 4
    known = four(lambda: (rand(rows, width), rand(rows, width)))

    def make(bent):
        torch.manual_seed(1)
        model, following = nn.Sequential(*[Wide(width, wide, bent) for _ in range(depth)]).to(GPU), turns(known)

        def loss():
            x, goal = following()
            return F.l1_loss(model(x).float(), goal)
        return learnt(model, loss)
    return alike(make(gelu_by_formula), make(nn.GELU(approximate="tanh")))


@pair("fuse_epilogue", "fuse_pointwise", "compile_model")
def stresses_of_beams_bent_after_each_product():
    beams, width, depth = 65536, 1024, 8
    loads = four(lambda: rand(beams, width, dtype=BF16))
    layers = [(weight(width, width, BF16), rand(width, dtype=BF16, scale=0.1)) for _ in range(depth)]

    def apart(x, w, b):
        return F.gelu(F.linear(x, w, b), approximate="tanh")

    def at_once(x, w, b):
        return torch._addmm_activation(b, x, w.t(), use_gelu=True)

    def run(bent):
        following = turns(loads)

        def step():
            x = following()
            for layer in layers:
                x = bent(x, *layer)
            return x
        return without_gradients(step)
    return alike(run(apart), run(at_once))


# ---------------------------------------------------------------- dimensions, layouts and number formats

@pair("align_dimensions")
def masks_of_voices_over_1025_tones():
    frames, tones, padded, width = 65536, 1025, 1032, 1024
    heard, spare = four(lambda: rand(frames, tones, dtype=F16).abs()), padded - tones
    layers = [(weight(width, tones, F16), weight(tones, width, F16)) for _ in range(2)]
    wide = [(F.pad(up, (0, spare)), F.pad(down, (0, 0, 0, spare))) for up, down in layers]

    def run(layers, spare):
        following = turns(heard)

        def step():
            sound = following()
            x = F.pad(sound, (0, spare)) if spare else sound
            for up, down in layers:
                x = x * torch.sigmoid(F.linear(torch.relu(F.linear(x, up)), down))
            return x[:, :tones].float().mean(0)
        return without_gradients(step)
    return alike(run(layers, 0), run(wide, spare))


@pair("align_dimensions")
def cells_of_a_tissue_learnt_with_5001_genes():
    cells, genes, padded, width = 8192, 5001, 5008, 2048
    known = four(lambda: torch.log1p(rand(cells, genes).abs()))

    def make(size):
        torch.manual_seed(1)
        parts = [nn.Linear(genes, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, genes)]
        if size != genes:
            first, last = nn.Linear(size, width), nn.Linear(width, size)
            first.weight.data, first.bias = F.pad(parts[0].weight.data, (0, size - genes)), parts[0].bias
            last.weight.data = F.pad(parts[4].weight.data, (0, 0, 0, size - genes))
            last.bias.data = F.pad(parts[4].bias.data, (0, size - genes))
            parts[0], parts[4] = first, last
        model, following = nn.Sequential(*parts).to(GPU), turns([F.pad(x, (0, size - genes)) for x in known])

        def loss():
            x = following()
            return F.mse_loss(model(x).float(), x) * (size / genes)
        return learnt(model, loss)
    return alike(make(genes), make(padded))


class Double(nn.Module):
    """Two convolutions with norms, added to what entered."""

    def __init__(self, width):
        super().__init__()
        self.first, self.second = (nn.Conv2d(width, width, 3, padding=1, bias=False) for _ in range(2))
        self.even, self.last = nn.BatchNorm2d(width), nn.BatchNorm2d(width)

    def forward(self, x):
        return torch.relu(x + self.last(self.second(torch.relu(self.even(self.first(x))))))


@pair("channels_last", "remove_copies")
def shapes_of_galaxies_learnt_in_planes():
    pictures, size, kinds = 64, 256, 10
    known = four(lambda: (rand(pictures, 5, size, size), ints(kinds, pictures)))

    def make(layout):
        torch.manual_seed(1)
        parts, inner = [], 5
        for out in (64, 128, 256):
            parts += [nn.Conv2d(inner, out, 3, padding=1, stride=2), Double(out), Double(out)]
            inner = out
        model = nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inner, kinds))
        model, following = model.to(GPU, memory_format=layout), turns([(x.to(memory_format=layout), kind) for x, kind in known])

        def loss():
            x, kind = following()
            return F.cross_entropy(model(x).float(), kind)
        return learnt(model, loss)
    return alike(make(torch.contiguous_format), make(torch.channels_last))


@pair("quantize")
def answers_of_64_users_said_by_wide_gates_in_bf16():
    users, width, wide, depth = 64, 6144, 16384, 12
    asked, small = four(lambda: F.layer_norm(rand(users, width, dtype=BF16), (width,))), torch.float8_e4m3fn
    layers = [(weight(wide, width, BF16), weight(wide, width, BF16), weight(width, wide, BF16)) for _ in range(depth)]
    known = [tuple((w * 64).to(small).t() for w in layer) for layer in layers]
    one, of_hidden, of_weight = (torch.tensor(value, device=GPU) for value in (1.0, 1 / 16, 1 / 64))

    def product(x, w, scale):
        return torch._scaled_mm(x, w, scale_a=scale, scale_b=of_weight, out_dtype=BF16, use_fast_accum=True)

    def in_bf16(x, gate, up, down):
        return F.linear(F.silu(F.linear(x, gate)) * F.linear(x, up), down)

    def in_fp8(x, gate, up, down):
        x = x.to(small)
        hidden = F.silu(product(x, gate, one)) * product(x, up, one)
        return product((hidden * 16).to(small), down, of_hidden)

    def run(layers, said):
        following = turns(asked)

        def step():
            x = following()
            for layer in layers:
                x = F.layer_norm(x + said(x, *layer), (width,))
            return x
        return step
    return alike(run(layers, in_bf16), run(known, in_fp8), most=0.1)


@pair("leave_float64")
def traces_of_a_quake_filtered_in_float64():
    traces, times, rate = 8192, 8192, 100.0
    quakes = four(lambda: rand(traces, times, dtype=torch.float64))
    tones = torch.fft.rfftfreq(times, 1 / rate).to(GPU)
    kept = 1 / torch.sqrt(1 + (tones / 10) ** 8) - 1 / torch.sqrt(1 + (tones / 0.5) ** 8)
    turned = torch.exp(-2j * math.pi * tones * 0.25)

    def run(dtype, pairs):
        known, following = (kept * turned).to(pairs), turns([quake.to(dtype) for quake in quakes])

        def step():
            quake = following()
            heard = torch.fft.irfft(torch.fft.rfft(quake - quake.mean(1, keepdim=True)) * known, n=times)
            power = heard.pow(2)
            return {"power": power.mean(1).float(), "most": power.amax(1).float()}
        return step
    return alike(run(torch.float64, torch.complex128), run(torch.float32, torch.complex64))


@pair("cast_weights_once", "reuse_result", "remove_copies")
def table_of_words_halved_for_each_word_said():
    texts, words, width, length = 32, 128000, 1024, 8
    starts, table = four(lambda: ints(words, texts)), weight(words, width)
    layers = [(weight(4 * width, width, F16), weight(width, 4 * width, F16)) for _ in range(2)]
    known = table.to(F16)

    def run(halved):
        following = turns(starts)

        def step():
            word, x, told = following(), torch.zeros(texts, width, dtype=F16, device=GPU), []
            for _ in range(length):
                x = 0.5 * x + 20 * F.embedding(word, table).to(F16)
                for up, down in layers:
                    x = x + F.linear(F.silu(F.linear(x, up)), down)
                best = F.linear(x, halved()).max(1)
                word = best.indices
                told.append(best.values.float())
            return torch.stack(told)
        return without_gradients(step)
    return alike(run(lambda: table.to(F16)), run(lambda: known))


# ---------------------------------------------------------------- copies and places

@pair("remove_copies", "stop_allocating")
def past_of_microphones_shifted_for_each_sample():
    microphones, taps, samples = 32768, 1024, 16
    heard, filters = four(lambda: rand(samples, microphones)), rand(taps, 4, scale=taps ** -0.5)

    def by_shift():
        following, past = turns(heard), [torch.zeros(microphones, taps, device=GPU)]

        def step():
            said = []
            for now in following():
                past[0] = torch.cat([past[0][:, 1:], now[:, None]], 1)
                said.append(past[0] @ filters)
            return torch.stack(said)
        return step

    def by_ring():
        following, past, number = turns(heard), torch.zeros(microphones, 2 * taps, device=GPU), [0]

        def step():
            said = []
            for now in following():
                at = number[0] % taps
                past[:, at] = now
                past[:, at + taps] = now
                said.append(past[:, at + 1:at + 1 + taps] @ filters)
                number[0] += 1
            return torch.stack(said)
        return step
    return alike(by_shift(), by_ring())


@pair("local_gathers", "coalesce")
def charges_of_a_plasma_kept_in_any_order():
    cells, charges = 1 << 25, 1 << 24
    field = rand(cells, 4)
    plasmas = four(lambda: (ints(cells, charges), rand(charges)))

    def in_order(cell, charge):
        order = cell.argsort()
        return cell[order], charge[order]

    def run(plasmas):
        following = turns(plasmas)

        def step():
            cell, charge = following()
            felt = field.index_select(0, cell)
            laid = torch.zeros(cells, device=GPU).index_add_(0, cell, charge)
            return {"laid": laid, "work": (felt.pow(2).sum(1) * charge.abs()).sum()}
        return step
    return alike(run(plasmas), run([in_order(*one) for one in plasmas]))


@pair("coalesce", "local_gathers", "remove_copies")
def customers_read_from_a_table_kept_by_columns():
    rows, columns, kinds, asked = 1 << 24, 64, 16, 1 << 22
    table, marks = rand(columns, rows), rand(kinds, columns, scale=columns ** -0.5)
    by_row, days = table.t().contiguous(), four(lambda: ints(rows, asked))

    def from_columns(at):
        return (marks @ table.index_select(1, at)).amax(0)

    def from_rows(at):
        return (by_row.index_select(0, at) @ marks.t()).amax(1)

    def run(best):
        following = turns(days)
        return lambda: best(following())
    return alike(run(from_columns), run(from_rows))


# ---------------------------------------------------------------- work that nobody needs

@pair("reduce_problem", "flash_attention")
def reports_padded_to_the_greatest_length_a_model_reads():
    texts, most, width, heads, parts = 64, 1024, 512, 8, 4
    chance, seen = np.random.default_rng(0), []

    def batch():
        lengths = np.sort((64 * np.ceil(chance.gamma(2.0, 2.0, texts))).clip(64, most).astype(np.int64))
        there = torch.arange(most, device=GPU) < torch.from_numpy(lengths).to(GPU)[:, None]
        return rand(texts, most, width), rand(texts, most, width), there, lengths.tolist()
    known = four(batch)

    def attended(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=seen[0])

    def make(parts, cut):
        torch.manual_seed(1)
        model, following, each = blocks(4, width, heads, attend=attended), turns(known), texts // parts

        def loss():
            x_all, goals, there_all, lengths = following()
            total = 0.0
            for first in range(0, texts, each):
                rows, longest = slice(first, first + each), lengths[first + each - 1] if cut else most
                there = there_all[rows, :longest]
                seen[:] = [there[:, None, None]]
                away = (model(x_all[rows, :longest]).float() - goals[rows, :longest]).pow(2).mean(-1)
                total = total + (away * there).sum()
            return total / sum(lengths)
        return learnt(model, loss)
    return alike(make(1, False), make(parts, True))


@pair("reduce_problem", "fuse_pointwise", "compile_model")
def warmth_of_soils_computed_over_the_seas():
    cells, layers = 1 << 24, 6
    hills = F.interpolate(rand(1, 1, 64, 64), size=(4096, 4096), mode="bilinear").flatten()
    land = hills > hills[::64].quantile(0.71)
    at = land.nonzero().squeeze(1)
    days = four(lambda: (280 + 10 * rand(cells), torch.rand(cells, device=GPU)))

    def warmed(warm, shone):
        ground, flow = warm, torch.zeros_like(warm)
        for layer in range(layers):
            push = 0.3 * shone * torch.exp(-0.5 * flow) - 0.02 * (ground - 275)
            flow = torch.tanh(0.1 * push) + 0.5 * flow
            ground = ground + push - 0.1 * flow * (ground - warm)
        return ground

    def everywhere(warm, shone):
        return torch.where(land, warmed(warm, shone), warm)

    def on_land(warm, shone):
        return warm.clone().index_copy_(0, at, warmed(warm[at], shone[at]))

    def run(told):
        following = turns(days)
        return lambda: told(*following())
    return alike(run(everywhere), run(on_land))


@pair("reduce_problem", "slow_op")
def low_modes_of_a_flow_cut_from_whole_spectra():
    flows, width, size, modes, depth = 32, 64, 256, 16, 2
    fields = four(lambda: rand(flows, width, size, size))
    mixes = [torch.view_as_complex(rand(width, width, modes, modes, 2, scale=1 / width)) for _ in range(depth)]
    angle = 2 * math.pi / size * torch.arange(size, device=GPU)[:, None] * torch.arange(modes, device=GPU)
    wave, share = torch.polar(torch.ones_like(angle), -angle), torch.full((modes,), 2.0, device=GPU)
    share[0] = 1.0
    into = torch.view_as_real(wave).reshape(size, 2 * modes)
    back = torch.stack([torch.cos(angle), -torch.sin(angle)], -1) * share[:, None] / size ** 2
    back = back.reshape(size, 2 * modes).t().contiguous()

    def mixed(low, mix):
        return torch.einsum("bixy,ioxy->boxy", low, mix)

    def by_spectra(x, mix):
        whole = torch.zeros(flows, width, size, size // 2 + 1, dtype=torch.complex64, device=GPU)
        whole[:, :, :modes, :modes] = mixed(torch.fft.rfft2(x)[:, :, :modes, :modes], mix)
        return torch.fft.irfft2(whole, s=(size, size))

    def by_products(x, mix):
        rows = torch.view_as_complex((x @ into).view(flows, width, size, modes, 2))
        rows = wave.conj() @ mixed(wave.t() @ rows, mix)
        return torch.view_as_real(rows).reshape(flows, width, size, 2 * modes) @ back

    def run(passed):
        following = turns(fields)

        def step():
            x = following()
            for mix in mixes:
                x = F.gelu(x + 8 * passed(x, mix))
            return x
        return without_gradients(step)
    return alike(run(by_spectra), run(by_products))


# ---------------------------------------------------------------- ops that are slow for what is asked

@pair("slow_op", "reduce_problem")
def species_of_a_sea_counted_by_sorting_them():
    found, kinds = 1 << 25, 4096
    seas = four(lambda: (kinds * torch.rand(found, device=GPU).square()).long())

    def by_sorting(sea):
        return torch.unique(sea, return_counts=True)[1]

    def by_counting(sea):
        return torch.bincount(sea, minlength=kinds)

    def run(counted):
        following = turns(seas)

        def step():
            count = counted(following()).float()
            share = count / found
            return {"share": share, "spread": -(share * torch.log(share)).sum(), "twins": share.pow(2).sum()}
        return step
    return alike(run(by_sorting), run(by_counting))


@pair("slow_op", "local_gathers")
def bonds_of_molecules_read_with_brackets_in_training():
    atoms, bonds, width, depth = 131072, 1 << 20, 128, 3
    first, last = ints(atoms, bonds), ints(atoms, bonds).sort().values
    known = four(lambda: (rand(atoms, width), rand(atoms, width)))

    def make(read):
        torch.manual_seed(1)
        model, following = nn.ModuleList(nn.Linear(width, width) for _ in range(depth)).to(GPU), turns(known)

        def loss():
            x, goal = following()
            for layer in model:
                x = layer(x)
                x = torch.relu(x + torch.zeros_like(x).index_add(0, last, read(x, first)) / 8)
            return F.mse_loss(x, goal)
        return learnt(model, loss, dtype=None)
    return alike(make(lambda x, at: x[at]), make(lambda x, at: x.index_select(0, at)))


@pair("slow_op", "reduce_problem")
def decays_of_pixels_fitted_by_the_library():
    pixels, echoes = 262144, 16
    times = torch.linspace(0.01, 0.2, echoes, device=GPU)
    scans = four(lambda: torch.exp(-times * (5 + 20 * torch.rand(pixels, 1, device=GPU)) + rand(pixels, echoes, scale=0.02)))
    sides = torch.stack([torch.ones_like(times), -times], 1)

    def by_library(light):
        return torch.linalg.lstsq(light[..., None] * sides, (light * torch.log(light))[..., None]).solution.squeeze(2)

    def by_sums(light):
        weigh, y = light * light, torch.log(light)
        total, first = weigh.sum(1), weigh @ times
        second, of_y, of_both = weigh @ times ** 2, (weigh * y).sum(1), (weigh * y) @ times
        whole = total * second - first * first
        return torch.stack([(second * of_y - first * of_both) / whole, (first * of_y - total * of_both) / whole], 1)

    def run(fitted):
        following = turns(scans)

        def step():
            start, rate = fitted(following()).unbind(1)
            return {"start": torch.exp(start), "lasts": 1 / rate}
        return step
    return alike(run(by_library), run(by_sums))


@pair("fill_the_device", "slow_op", "reduce_problem")
def weights_of_long_runs_by_the_softmax_of_the_library():
    runs, draws = 4, 1 << 24
    known = four(lambda: (rand(runs, draws), rand(runs, draws)))

    def by_parts(logs):
        raised = torch.exp(logs - logs.amax(1, keepdim=True))
        return raised / raised.sum(1, keepdim=True)

    def run(weighed):
        following = turns(known)

        def step():
            logs, values = following()
            shares = weighed(logs)
            return {"mean": (shares * values.square()).sum(1), "draws": 1 / shares.square().sum(1)}
        return step
    return alike(run(lambda logs: torch.softmax(logs, 1)), run(by_parts))
