# SPDX-License-Identifier: Apache-2.0
"""The programs of the twentieth set whose work another form, order, layout or number format would do better.

Written on 28 November 2026 by a hand that had not read the rules, before any of them was measured. pairs_twentieth.py says
how the set was written, and takes these pairs in.
"""

import torch
import torch.nn.functional as F

import triton
import triton.language as tl

from pairs_eleventh_steps import learnt
from pairs_fourteenth_steps import alike, four, turns
from pairs_practice import BF16, F16, compiled, without_gradients
from pairs_seventh_steps import blocks
from pairs_sixth import ints
from pairs_twentieth_steps import PAIRS  # noqa: F401  pairs_twentieth.py takes the pairs in
from pairs_unseen import GPU, pair, rand, weight, with_precision


# ---------------------------------------------------------------- attention and chains of small formulas

@pair("flash_attention", "fuse_norm", "fuse_pointwise")
def answers_ranked_by_a_reader_that_writes_its_attention_out():
    # Right: scores of 512 by 512 words a head go to memory and back, forward and backward; the library keeps them on chip.
    texts, length, width, heads = 16, 512, 768, 12
    known = four(lambda: (rand(texts, length, width), torch.arange(length, device=GPU) < 300 + ints(200, texts, 1),
                          torch.rand(texts, device=GPU)))

    def make(attended):
        torch.manual_seed(1)
        following, seen = turns(known), [None]
        model = blocks(4, width, heads, attend=lambda q, k, v: attended(q, k, v, seen[0]))

        def loss():
            x, filled, liked = following()
            seen[0] = filled[:, None, None]
            return F.mse_loss(model(x).float().mean((1, 2)), liked)
        return learnt(model, loss)

    def by_products(q, k, v, filled):
        scores = (q @ k.mT) * q.shape[-1] ** -0.5
        return scores.masked_fill(~filled, -torch.inf).softmax(-1).to(v.dtype) @ v

    def by_library(q, k, v, filled):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=filled)
    return alike(make(by_products), make(by_library))


@pair("compile_model", "fuse_pointwise")
def bases_of_splines_of_a_learnt_law_built_by_recursion():
    # Right: some thirty passes over a tensor of 117 MB are one kernel once a compiler has seen them together.
    rows, width, parts, order = 32768, 64, 8, 3
    law = weight(width, width * (parts + order))
    grid = torch.arange(-order, parts + order + 1, device=GPU) * (2 / parts) - 1.0
    known = four(lambda: 1.8 * torch.rand(rows, width, device=GPU) - 0.9)

    def bases(x):
        x = x[:, :, None]
        told = ((x >= grid[:-1]) & (x < grid[1:])).float()
        for k in range(1, order + 1):
            told = ((x - grid[:-k - 1]) / (grid[k:-1] - grid[:-k - 1]) * told[:, :, :-1]
                    + (grid[k + 1:] - x) / (grid[k + 1:] - grid[1:-k]) * told[:, :, 1:])
        return told

    def run(built):
        following = turns(known)
        return without_gradients(lambda: F.linear(built(following()).flatten(1), law))
    return alike(run(bases), run(compiled(bases)))


@triton.jit
def gated_kernel(x, out, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    gate = tl.load(x + 2 * at).to(tl.float32)
    up = tl.load(x + 2 * at + 1).to(tl.float32)
    gate = tl.minimum(gate, 7.0)
    up = tl.minimum(tl.maximum(up, -7.0), 7.0)
    tl.store(out + at, ((up + 1.0) * gate / (1.0 + tl.exp(-1.702 * gate))).to(tl.bfloat16))


@pair("fuse_pointwise", "compile_model")
def gates_of_experts_clamped_and_multiplied_op_by_op():
    # Right: seven passes over halves of a tensor of 1 GB that one kernel can do in one.
    words, inner = 65536, 4096
    known = four(lambda: rand(words, 2 * inner, dtype=BF16))

    def by_ops(x):
        gate, up = x[:, ::2], x[:, 1::2]
        gate, up = gate.clamp(max=7), up.clamp(-7, 7)
        return (up + 1) * (gate * torch.sigmoid(1.702 * gate))

    def by_kernel(x):
        out = torch.empty(words, inner, dtype=BF16, device=GPU)
        gated_kernel[(words * inner // 1024,)](x, out, 1024, num_warps=4)
        return out

    def run(told):
        following = turns(known)
        return without_gradients(lambda: told(following()).amax(1).float())
    return alike(run(by_ops), run(by_kernel))


@triton.jit
def smile_kernel(forward, strike, level, tilt, swing, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    f, k, a = tl.load(forward + at), tl.load(strike + at), tl.load(level + at)
    rho, nu = tl.load(tilt + at), tl.load(swing + at)
    middle = tl.sqrt(f * k)
    root = tl.sqrt(middle)
    far = tl.log(f / k)
    z = nu / a * root * far
    bent = tl.log((tl.sqrt(1.0 - 2.0 * rho * z + z * z) + z - rho) / (1.0 - rho))
    flat = root * (1.0 + far * far / 96.0 + far * far * far * far / 30720.0)
    later = 1.0 + 0.5 * (a * a / (96.0 * middle) + rho * nu * a / (8.0 * root) + (2.0 - 3.0 * rho * rho) * nu * nu / 24.0)
    tl.store(out + at, a / flat * (z / bent) * later)


@pair("fuse_pointwise", "compile_model")
def smiles_of_a_book_of_swaptions_by_their_formula():
    # Right: some forty passes over tensors of 134 MB; the formula needs each number once.
    count = 1 << 25

    def deals():
        f = 0.8 + 0.4 * torch.rand(count, device=GPU)
        return (f, f * (1.1 + 0.4 * torch.rand(count, device=GPU)), 0.2 + 0.1 * torch.rand(count, device=GPU),
                -0.5 * torch.rand(count, device=GPU), 0.3 + 0.3 * torch.rand(count, device=GPU))
    books = four(deals)

    def by_ops(f, k, a, rho, nu):
        middle = torch.sqrt(f * k)
        root = torch.sqrt(middle)
        far = torch.log(f / k)
        z = nu / a * root * far
        bent = torch.log((torch.sqrt(1 - 2 * rho * z + z * z) + z - rho) / (1 - rho))
        flat = root * (1 + far ** 2 / 96 + far ** 4 / 30720)
        later = 1 + 0.5 * (a * a / (96 * middle) + rho * nu * a / (8 * root) + (2 - 3 * rho * rho) * nu * nu / 24)
        return a / flat * (z / bent) * later

    def by_kernel(*deal):
        out = torch.empty(count, device=GPU)
        smile_kernel[(count // 1024,)](*deal, out, 1024, num_warps=4)
        return out

    def run(told):
        following = turns(books)
        return lambda: told(*following())
    return alike(run(by_ops), run(by_kernel))


@pair("fuse_norm", "fuse_pointwise", "compile_model")
def queries_of_a_film_maker_evened_by_a_root_written_out():
    # Right: a cast, a square, a mean, a root and two products are a pass each; the norm of the library is one.
    places, width = 65536, 1536
    known = four(lambda: rand(places, width, dtype=BF16))
    ask, key = (weight(width, width, BF16) for _ in range(2))
    gains = [1 + rand(width, dtype=BF16, scale=0.1) for _ in range(2)]

    def by_hand(x, gain):
        wide = x.float()
        return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(BF16) * gain

    def by_library(x, gain):
        return F.rms_norm(x, (width,), gain, 1e-6)

    def run(norm):
        following = turns(known)

        def step():
            x = following()
            q, k = norm(F.linear(x, ask), gains[0]), norm(F.linear(x, key), gains[1])
            return q, k
        return without_gradients(step)
    return alike(run(by_hand), run(by_library))


@pair("fuse_epilogue", "fuse_pointwise", "compile_model")
def updates_of_a_net_made_orthogonal_by_sums_after_products():
    # Right: a product can add the scaled matrix as it is written; three passes over 100 MB become one copy.
    count, size, rounds, (a, b, c) = 48, 1024, 5, (3.4445, -4.775, 2.0315)
    known = four(lambda: rand(count, size, size, dtype=BF16))

    def apart(x):
        square = x @ x.mT
        mixed = b * square + c * (square @ square)
        return a * x + mixed @ x

    def at_once(x):
        square = torch.bmm(x, x.mT)
        mixed = torch.baddbmm(square, square, square, beta=b, alpha=c)
        return torch.baddbmm(x, mixed, x, beta=a)

    def run(moved):
        following = turns(known)

        def step():
            x = following()
            x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
            for _ in range(rounds):
                x = moved(x)
            return x
        return without_gradients(step)
    return alike(run(apart), run(at_once), most=0.15)


# ---------------------------------------------------------------- dimensions, layouts and number formats

@pair("tensor_cores")
def nearest_patents_found_by_products_of_full_float32():
    # Right: the ten best of a quarter of a million need no 24 bits in each product; TF32 has tensor cores.
    questions, patents, width = 1024, 262144, 768
    asked, held = four(lambda: F.normalize(rand(questions, width))), F.normalize(rand(patents, width))

    def make(precision):
        following = turns(asked)
        return with_precision(precision, lambda: (following() @ held.T).topk(10, 1).values)
    return alike(make("highest"), make("high"))


@pair("leave_float64", "fuse_pointwise", "compile_model")
def wakes_of_a_wind_farm_laid_on_a_grid_in_float64():
    # Right: speeds of the wind that are known to a tenth need no numbers of 64 bits.
    mills, places = 192, 1 << 18
    winds = four(lambda: 8000 * torch.rand(2, mills, 1, dtype=torch.float64, device=GPU))
    grid = 10000 * torch.rand(2, places, dtype=torch.float64, device=GPU)

    def run(dtype):
        following, spots = turns([one.to(dtype) for one in winds]), grid.to(dtype)

        def step():
            along, across = spots[:, None] - following()
            wide = 40 + 0.05 * along.clamp(min=0)
            lost = 0.6 * (40 / wide) ** 2 * torch.exp(-0.5 * (across / wide) ** 2)
            lost = torch.where(along > 0, lost, torch.zeros_like(lost))
            return (1 - lost.square().sum(0).sqrt()).float()
        return step
    return alike(run(torch.float64), run(torch.float32))


@pair("align_dimensions", "remove_copies")
def papers_told_by_1433_words_each():
    # Right: rows of 1433 numbers of 16 bits are not aligned; 1440 are.
    papers, words, padded, wide, kinds = 65536, 1433, 1440, 2048, 40
    known, first, last = four(lambda: rand(papers, words, dtype=BF16)), weight(wide, words, BF16), weight(kinds, wide, BF16)

    def run(spare):
        following, w = turns([F.pad(x, (0, spare)) for x in known]), F.pad(first, (0, spare))
        return without_gradients(lambda: F.linear(torch.relu(F.linear(following(), w)), last).float())
    return alike(run(0), run(padded - words))


@pair("channels_last", "remove_copies")
def tumours_of_slices_outlined_in_planes():
    # Right: convolutions of 16 bits want the channels of a place side by side.
    slices, size = 32, 256
    known = four(lambda: rand(slices, 16, size, size, dtype=F16))
    sizes = ((64, 16), (64, 64), (128, 64), (128, 128), (256, 128), (128, 256), (128, 256), (64, 128), (64, 128), (8, 64))
    filters = [rand(out, inner, 3, 3, dtype=F16, scale=(5 * inner) ** -0.5) for out, inner in sizes]

    def run(layout):
        following = turns([x.contiguous(memory_format=layout) for x in known])
        ws = [w.contiguous(memory_format=layout) for w in filters]

        def twice(x, number):
            for w in ws[number:number + 2]:
                x = torch.relu(F.conv2d(x, w, padding=1))
            return x

        def step():
            high = twice(following(), 0)
            middle = twice(F.max_pool2d(high, 2), 2)
            x = twice(F.max_pool2d(middle, 2), 4)
            x = twice(torch.cat([F.interpolate(x, scale_factor=2), middle], 1), 6)
            x = torch.relu(F.conv2d(torch.cat([F.interpolate(x, scale_factor=2), high], 1), ws[8], padding=1))
            return F.conv2d(x, ws[9], padding=1).float().amax((2, 3))
        return without_gradients(step)
    return alike(run(torch.contiguous_format), run(torch.channels_last))


# ---------------------------------------------------------------- copies, places and slow ops

@pair("remove_copies")
def members_of_a_forecast_cloned_before_each_smoothing():
    # Right: neither the pool nor the sum writes into what it reads, so nothing need be cloned.
    members, size, rounds = 40, 1024, 8
    known = four(lambda: rand(members, 1, size, size))

    def run(kept):
        following = turns(known)

        def step():
            x = following()
            for _ in range(rounds):
                was = kept(x)
                x = torch.lerp(was, F.avg_pool2d(was, 3, 1, 1), 0.4)
            return x
        return without_gradients(step)
    return alike(run(torch.clone), run(lambda x: x))


@pair("remove_copies", "slow_op", "coalesce")
def columns_of_loans_chosen_by_lists_though_they_lie_side_by_side():
    # Right: brackets with a list copy the columns; a slice of columns that lie side by side copies nothing.
    loans, columns, each = 1 << 21, 256, 32
    known = four(lambda: rand(loans, columns))
    firsts = range(0, columns, each)
    lists = [torch.arange(first, first + each, device=GPU) for first in firsts]

    def run(choices):
        following = turns(known)

        def step():
            x = following()
            return torch.stack([x[:, choice].sum(1) for choice in choices], 1)
        return step
    return alike(run(lists), run([slice(first, first + each) for first in firsts]))


@pair("local_gathers", "coalesce")
def returns_of_a_lidar_looked_up_in_a_grid_in_any_order():
    # Right: points in the order of their cells read neighbouring numbers; points in any order read a sector for each number.
    side, points = 512, 1 << 25
    grid = torch.rand(side ** 3, device=GPU)
    known = four(lambda: ints(side ** 3 - side - 1, points))

    def run(batches):
        following = turns(batches)

        def step():
            at = following()
            told = grid[at] + grid[at + 1] + grid[at + side]
            return told.mean(), told.square().mean(), told.amax()
        return step
    return alike(run(known), run([at.sort().values for at in known]))


@pair("slow_op", "reduce_problem")
def songs_already_heard_found_by_isin():
    # Right: `isin` sorts all songs; a table of flags over their numbers answers each with one read.
    songs, heard, rows, offered = 1 << 20, 200_000, 8192, 1024
    known = four(lambda: (ints(songs, rows, offered), ints(songs, heard), torch.rand(rows, offered, device=GPU)))

    def by_library(song, old):
        return torch.isin(song, old)

    def by_flags(song, old):
        flags = torch.zeros(songs, dtype=torch.bool, device=GPU)
        flags[old] = True
        return flags[song]

    def run(found):
        following = turns(known)

        def step():
            song, old, score = following()
            return score.masked_fill(found(song, old), 0).topk(20, 1).values
        return step
    return alike(run(by_library), run(by_flags))
