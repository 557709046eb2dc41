# SPDX-License-Identifier: Apache-2.0
"""The programs of the eighteenth set whose work another form, order, layout or number format would do better.

Written on 28 November 2026 by a hand that had not read the rules, before any of them was measured. pairs_eighteenth.py says
how the set was written, and takes these pairs in.
"""

import torch
import torch.nn.functional as F
from torch import nn

import triton
import triton.language as tl

from pairs_eighteenth_steps import PAIRS, alike, four, turns  # noqa: F401  pairs_eighteenth.py takes the pairs in
from pairs_eleventh_steps import learnt
from pairs_practice import BF16, F16, without_gradients
from pairs_sixth import ints
from pairs_unseen import GPU, pair, rand, weight


# ---------------------------------------------------------------- attention and chains of small formulas

@pair("flash_attention", "fuse_norm", "fuse_pointwise", "remove_copies")
def places_of_a_latent_attended_with_einsum():
    # Right: scores of 4096 by 4096 places go to memory and back four times.
    pictures, size, heads, each, depth = 4, 64, 8, 64, 2
    width, places = heads * each, size * size
    known = four(lambda: rand(pictures, width, size, size, dtype=F16))
    layers = [(weight(3 * width, width, F16), weight(width, width, F16)) for _ in range(depth)]

    def by_products(q, k, v):
        scores = torch.einsum("bihd,bjhd->bhij", q, k) * each ** -0.5
        return torch.einsum("bhij,bjhd->bihd", scores.softmax(-1), v)

    def by_library(q, k, v):
        return F.scaled_dot_product_attention(*(one.transpose(1, 2) for one in (q, k, v))).transpose(1, 2)

    def run(attend):
        following = turns(known)

        def step():
            x = following()
            for wide, out in layers:
                y = F.group_norm(x, 32).flatten(2).transpose(1, 2)
                mixed = attend(*F.linear(2 * y, wide).reshape(pictures, places, 3, heads, each).unbind(2))
                x = x + F.linear(mixed.reshape(pictures, places, width), out).transpose(1, 2).reshape(x.shape)
            return x.float()
        return without_gradients(step)
    return alike(run(by_products), run(by_library))


class Bulge(nn.Module):
    """Two layers over the channels of each place, after a norm over the channels."""

    def __init__(self, width, norm):
        super().__init__()
        self.norm, self.up, self.down = norm, nn.Conv2d(width, 2 * width, 1), nn.Conv2d(2 * width, width, 1)
        self.gain, self.shift = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x, self.gain, self.shift))))


@pair("fuse_norm", "fuse_pointwise", "compile_model")
def leaves_of_trees_learnt_with_a_norm_of_channels_written_out():
    # Right: mean, square, root, gain and shift are a pass each; the norm of the library is one.
    leaves, width, size, depth = 64, 128, 56, 4
    known = four(lambda: [rand(leaves, width, size, size).to(memory_format=torch.channels_last) for _ in range(2)])

    def by_hand(x, gain, shift):
        away = x - x.mean(1, keepdim=True)
        even = away / torch.sqrt(away.pow(2).mean(1, keepdim=True) + 1e-6)
        return even * gain[:, None, None] + shift[:, None, None]

    def by_library(x, gain, shift):
        return F.layer_norm(x.permute(0, 2, 3, 1), (width,), gain, shift, 1e-6).permute(0, 3, 1, 2)

    def make(norm):
        torch.manual_seed(1)
        model = nn.Sequential(*[Bulge(width, norm) for _ in range(depth)]).to(GPU, memory_format=torch.channels_last)
        following = turns(known)

        def loss():
            x, goal = following()
            return F.mse_loss(model(x).float(), goal)
        return learnt(model, loss)
    return alike(make(by_hand), make(by_library))


@triton.jit
def paced_kernel(way, seen, gate, skip, flow, decay, inner, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    pace = tl.log(1.0 + tl.exp(tl.load(way + at)))
    y, g = tl.load(seen + at), tl.load(gate + at)
    open_by = g / (1.0 + tl.exp(-g))
    tl.store(flow + at, (pace * y + tl.load(skip + at % inner) * y) * open_by)
    tl.store(decay + at, tl.exp(-pace))


@pair("fuse_pointwise", "compile_model")
def paces_of_a_selective_scan_made_op_by_op():
    # Right: eight passes over tensors of 134 MB that one kernel can do in one.
    words, inner = 16384, 2048
    known, skip = four(lambda: [rand(words, inner) for _ in range(3)]), rand(inner)

    def by_ops(way, y, gate):
        pace = F.softplus(way)
        return (pace * y + skip * y) * F.silu(gate), torch.exp(-pace)

    def by_kernel(way, y, gate):
        flow, decay = torch.empty_like(y), torch.empty_like(y)
        paced_kernel[(words * inner // 1024,)](way, y, gate, skip, flow, decay, inner, 1024, num_warps=4)
        return flow, decay

    def run(told):
        following = turns(known)
        return lambda: told(*following())
    return alike(run(by_ops), run(by_kernel))


@pair("fuse_epilogue", "fuse_pointwise", "compile_model")
def small_ranks_added_to_large_layers_in_passes_of_their_own():
    # Right: the thin product can add itself to the large one as it is written.
    rows, width, rank, depth = 65536, 2048, 16, 2
    x_all = four(lambda: rand(rows, width, dtype=BF16))
    layers = [(weight(width, width, BF16), rand(width, rank, dtype=BF16, scale=width ** -0.5), rand(rank, width, dtype=BF16))
              for _ in range(depth)]

    def apart(x, w, down, up):
        return F.linear(x, w) + 0.25 * (x @ down @ up)

    def at_once(x, w, down, up):
        return F.linear(x, w).addmm_(x @ down, up, alpha=0.25)

    def run(told):
        following = turns(x_all)

        def step():
            x = following()
            for layer in layers:
                x = told(x, *layer)
            return x.amax(1).float()
        return without_gradients(step)
    return alike(run(apart), run(at_once))


# ---------------------------------------------------------------- dimensions, layouts and number formats

@pair("align_dimensions")
def noise_of_calls_taken_out_over_513_pitches():
    # Right: rows of 513 numbers of 16 bits are not aligned; 520 are.
    frames, pitches, padded, wide, depth = 65536, 513, 520, 2048, 2
    x_all = four(lambda: rand(frames, pitches, dtype=BF16))
    layers = [(weight(wide, pitches, BF16), weight(pitches, wide, BF16)) for _ in range(depth)]
    spare = padded - pitches
    wider = [(F.pad(up, (0, spare)), F.pad(down, (0, 0, 0, spare))) for up, down in layers]

    def run(layers, spare):
        following = turns([F.pad(x, (0, spare)) for x in x_all])

        def step():
            x = following()
            for up, down in layers:
                x = x + F.linear(F.gelu(F.linear(x, up)), down)
            return x[:, :pitches].float()
        return without_gradients(step)
    return alike(run(layers, 0), run(wider, spare))


@pair("channels_last", "remove_copies")
def ships_on_the_sea_learnt_by_a_net_in_planes():
    # Right: convolutions of 16 bits want the channels of a place side by side.
    seas, size = 32, 256
    sizes = ((64, 3, 2), (128, 64, 1), (128, 128, 2), (256, 128, 1), (256, 256, 2), (256, 256, 1))
    known = four(lambda: (rand(seas, 3, size, size), torch.rand(seas, 1, size // 8, size // 8, device=GPU)))

    def make(layout):
        torch.manual_seed(1)
        parts = [part for out, inner, stride in sizes
                 for part in (nn.Conv2d(inner, out, 3, stride, padding=1), nn.ReLU())]
        model = nn.Sequential(*parts, nn.Conv2d(256, 1, 1)).to(GPU, memory_format=layout)
        following = turns([(x.to(memory_format=layout), goal) for x, goal in known])

        def loss():
            x, goal = following()
            return F.binary_cross_entropy_with_logits(model(x).float(), goal)
        return learnt(model, loss)
    return alike(make(torch.contiguous_format), make(torch.channels_last))


@pair("quantize")
def stories_told_by_great_layers_read_in_bf16():
    # Right: 64 rows read weights of 1.9 GB, which half the bytes would do for.
    chats, width, wide, depth, small = 64, 8192, 28672, 2, torch.float8_e4m3fn
    asked = four(lambda: F.layer_norm(rand(chats, width, dtype=BF16), (width,)))
    layers = [(weight(wide, width, BF16), weight(width, wide, BF16)) for _ in range(depth)]
    little = [tuple((w * 64).to(small).t() for w in both) for both in layers]
    one, of_weight = torch.tensor(1.0, device=GPU), torch.tensor(1 / 64, device=GPU)

    def in_fp8(x, w):
        return torch._scaled_mm(x.to(small), w, scale_a=one, scale_b=of_weight, out_dtype=BF16, use_fast_accum=True)

    def run(layers, product):
        following = turns(asked)

        def step():
            x = following()
            for up, down in layers:
                x = F.layer_norm(x + product(F.silu(product(x, up)), down), (width,))
            return x
        return without_gradients(step)
    return alike(run(layers, F.linear), run(little, in_fp8), most=0.15)


# ---------------------------------------------------------------- copies, places and fills

@pair("remove_copies", "channels_last")
def frames_of_a_camera_turned_to_planes_and_back():
    # Right: the bytes come with their channels side by side, as the net wants them.
    frames, tall, wide = 64, 720, 1280
    films = four(lambda: torch.randint(256, (frames, tall, wide, 3), dtype=torch.uint8, device=GPU))
    filters = rand(16, 3, 4, 4, dtype=F16, scale=0.002).to(memory_format=torch.channels_last)

    def in_planes(film):
        return film.permute(0, 3, 1, 2).contiguous().to(F16).contiguous(memory_format=torch.channels_last)

    def as_it_is(film):
        return film.permute(0, 3, 1, 2).to(F16)

    def run(read):
        following = turns(films)
        return without_gradients(lambda: F.conv2d(read(following()), filters, stride=4).float().amax((2, 3)))
    return alike(run(in_planes), run(as_it_is))


@pair("local_gathers", "coalesce")
def heat_of_a_mesh_whose_corners_are_numbered_by_chance():
    # Right: corners numbered by place find their neighbours in the caches.
    corners, width, rounds = 1 << 21, 32, 3
    around = torch.tensor([-1025, -1024, -1, 1, 2, 1023, 1024, 1025], device=GPU)
    heats = four(lambda: rand(corners, width))
    links = (torch.arange(corners, device=GPU)[:, None] + around).remainder(corners)
    order = torch.randperm(corners, device=GPU)

    def mixed(x):
        return torch.empty_like(x).index_copy_(0, order, x)

    def run(heats, links):
        following = turns(heats)

        def step():
            x = following()
            for _ in range(rounds):
                x = 0.5 * x + F.embedding_bag(links, x, mode="mean")
            return x.pow(2).mean(0), x.amax(0)
        return without_gradients(step)
    return alike(run([mixed(x) for x in heats], mixed(order[links])), run(heats, links))


@pair("remove_fills", "stop_allocating")
def tiles_of_a_map_laid_on_a_canvas_of_zeros():
    # Right: all of the canvas is written after it was filled.
    maps, bands, side, tiles = 10, 4, 512, 4
    known = four(lambda: [rand(maps, bands, side, side) for _ in range(tiles * tiles)])

    def run(canvas_of):
        following = turns(known)

        def step():
            canvas = canvas_of(maps, bands, tiles * side, tiles * side, device=GPU)
            for number, tile in enumerate(following()):
                row, column = number // tiles * side, number % tiles * side
                canvas[:, :, row:row + side, column:column + side] = tile
            return canvas
        return step
    return alike(run(torch.zeros), run(torch.empty))


# ---------------------------------------------------------------- work that nobody needs

@pair("reduce_problem", "remove_copies", "reuse_result")
def bonds_of_molecules_told_from_both_ends_side_by_side():
    # Right: a product of two parts side by side is a sum of two products, each of far fewer atoms than bonds.
    atoms, bonds, width, inner = 32768, 1 << 19, 512, 128
    known, left, right = four(lambda: rand(atoms, width, dtype=BF16)), ints(atoms, bonds), ints(atoms, bonds)
    both, last = weight(inner, 2 * width, BF16), weight(1, inner, BF16)
    of_left, of_right = both[:, :width].contiguous(), both[:, width:].contiguous()

    def of_bonds(x):
        return F.linear(torch.cat([x[left], x[right]], 1), both)

    def of_atoms(x):
        return F.linear(x, of_left)[left] + F.linear(x, of_right)[right]

    def run(told):
        following = turns(known)
        return without_gradients(lambda: F.linear(torch.relu(told(following())), last).float())
    return alike(run(of_bonds), run(of_atoms))


@pair("reduce_problem", "remove_fills", "slow_op")
def songs_of_a_great_table_moved_with_the_gradient_of_all():
    # Right: a batch names a few rows of four million, yet the gradient of all is filled, added and thrown away.
    songs, width, rows, heard, rate = 1 << 22, 64, 8192, 20, 0.01
    known = four(lambda: (ints(songs, rows, heard), torch.rand(rows, 1, device=GPU)))
    start, head = rand(songs, width), rand(1, width, scale=0.3)

    def liked(seen, goal):
        return F.binary_cross_entropy_with_logits(F.linear(torch.tanh(seen.sum(1)), head), goal)

    def by_all():
        following, table = turns(known), start.clone().requires_grad_()

        def step():
            at, goal = following()
            table.grad = None
            value = liked(F.embedding(at, table), goal)
            value.backward()
            with torch.no_grad():
                table.add_(table.grad, alpha=-rate)
            return value.detach()
        return step

    def by_rows():
        following, table = turns(known), start.clone()

        def step():
            at, goal = following()
            seen = F.embedding(at, table).requires_grad_()
            value = liked(seen, goal)
            way, = torch.autograd.grad(value, seen)
            table.index_add_(0, at.flatten(), way.flatten(0, 1), alpha=-rate)
            return value.detach()
        return step
    return alike(by_all(), by_rows())


@pair("slow_op", "reduce_problem")
def halls_heard_through_a_convolution_of_2048_taps():
    # Right: a filter that long is a product of spectra.
    halls, samples, taps = 16, 65536, 2048
    sounds, echo = four(lambda: rand(halls, samples)), rand(taps, scale=taps ** -0.5)
    known = torch.fft.rfft(echo, n=samples).conj()

    def by_filter(x):
        return F.conv1d(x[:, None], echo[None, None])[:, 0]

    def by_spectrum(x):
        return torch.fft.irfft(torch.fft.rfft(x) * known, n=samples)[:, :samples - taps + 1]

    def run(heard):
        following = turns(sounds)
        return without_gradients(lambda: heard(following()))
    return alike(run(by_filter), run(by_spectrum))
