# SPDX-License-Identifier: Apache-2.0
"""The programs of the thirteenth set that do work which nobody needs.

Written on 27 November 2026 by a hand that had not read the rules, before any of them was measured. pairs_thirteenth.py says how
the set was written, and takes these pairs in.
"""

import torch
import torch.nn.functional as F
from torch import nn

import pairs_twelfth_data as twelfth
from pairs_eleventh_steps import alike
from pairs_practice import BF16, F16, without_gradients
from pairs_sixth import ints
from pairs_unseen import GPU, pair, rand, weight

twelfth.PAIRS.clear()
PAIRS = twelfth.PAIRS


def filters(out, inner, side):
    w = rand(out, inner, side, side, dtype=F16, scale=(inner * side * side) ** -0.5)
    return w.to(memory_format=torch.channels_last)


# ---------------------------------------------------------------- results of which a part is read

@pair("reduce_problem")
def scenes_parsed_with_the_heads_of_training():
    x0 = rand(8, 256, 96, 96, dtype=F16).to(memory_format=torch.channels_last)
    layers = [(filters(256, 256, 3), filters(128, 256, 3), filters(19, 128, 1)) for _ in range(3)]

    def scored(x, near, last):
        maps = F.conv2d(torch.relu(F.conv2d(x, near, padding=1)), last)
        return F.interpolate(maps.float(), scale_factor=4.0, mode="bilinear", align_corners=False)

    def run(heads):
        def step():
            x, scores = x0, []
            for number, (w, near, last) in enumerate(layers):
                x = torch.relu(F.conv2d(x, w, padding=1))
                if number in heads:
                    scores.append(scored(x, near, last))
            return scores[-1].argmax(1)
        return step
    return alike(run((0, 1, 2)), run((2,)))


@pair("reduce_problem")
def variances_read_from_a_whole_covariance():
    x, w_in = rand(8192, 64), weight(512, 64)
    root, w = weight(512, 512), rand(512, 1, scale=0.05)
    spread = root @ root.t()

    def run(variances):
        def step():
            known = torch.tanh(F.linear(x, w_in))
            return (known @ w).squeeze(1), variances(known)
        return step
    return alike(run(lambda known: (known @ spread @ known.t()).diagonal()),
                 run(lambda known: ((known @ spread) * known).sum(1)))


@pair("reduce_problem")
def vocabularies_of_all_languages_scored_for_one():
    languages, words, width, chosen = 40, 2048, 1024, 7
    x0, heads = rand(4096, width, dtype=BF16), weight(languages * words, width, BF16)
    layers = [(weight(4096, width, BF16), weight(width, 4096, BF16)) for _ in range(4)]

    def every(x):
        return F.linear(x, heads).view(-1, languages, words)[:, chosen]

    def one(x):
        return F.linear(x, heads.view(languages, words, width)[chosen])

    def run(scored):
        def step():
            x = x0
            for up, down in layers:
                x = x + F.linear(F.gelu(F.linear(F.layer_norm(x, (width,)), up)), down)
            return torch.log_softmax(scored(x).float(), -1).amax(1)
        return step
    return alike(run(every), run(one))


@pair("reduce_problem")
def next_hour_of_a_grid_foreseen_from_a_whole_season():
    meters, width, hours = 64, 128, 4096
    x0, last = rand(meters, width, hours, dtype=F16), weight(24, width, F16)
    ws = [rand(width, width, 2, dtype=F16, scale=(2 * width) ** -0.5) for _ in range(6)]

    def run(x1):
        def step():
            x = x1
            for number, w in enumerate(ws):
                wide = 2 ** number
                x = x + torch.relu(F.conv1d(F.pad(x, (wide, 0)), w, dilation=wide))
            return F.linear(x[..., -1], last)
        return step
    return alike(run(x0), run(x0[..., -64:]))


@pair("reduce_problem")
def modes_of_a_flow_kept_after_a_whole_transform():
    count, width, size, modes = 16, 64, 256, 32
    x0 = rand(count, width, size, size)
    layers = [(torch.randn(width, width, modes, modes, dtype=torch.complex64, device=GPU) / width, weight(width, width))
              for _ in range(2)]

    def mixed(kept, w):
        return torch.einsum("bixy,ioxy->boxy", kept, w)

    def whole(x, w):
        spectrum = torch.zeros(count, width, size, size // 2 + 1, dtype=torch.complex64, device=GPU)
        spectrum[:, :, :modes, :modes] = mixed(torch.fft.rfft2(x)[:, :, :modes, :modes], w)
        return torch.fft.irfft2(spectrum, s=(size, size))

    def in_part(x, w):
        kept = torch.fft.fft(torch.fft.rfft(x)[..., :modes], dim=2)[:, :, :modes]
        return torch.fft.irfft(torch.fft.ifft(mixed(kept, w), n=size, dim=2), n=size)

    def run(moved):
        def step():
            x = x0
            for w, straight in layers:
                x = F.gelu(moved(x, w) + F.conv2d(x, straight[:, :, None, None]))
            return x
        return step
    return alike(run(whole), run(in_part))


@pair("reduce_problem")
def worst_losses_of_portfolios_sorted_whole():
    scenarios, worst = 1 << 18, 2621
    shares, moves = weight(32, 512), rand(512, scenarios, scale=0.02)

    def by_sort(losses):
        return torch.sort(losses, 1, descending=True).values[:, :worst]

    def by_choice(losses):
        return torch.topk(losses, worst, 1).values

    def run(greatest):
        def step():
            losses = 1 - torch.exp(shares @ moves)
            return greatest(losses).mean(1), losses.mean(1), losses.std(1)
        return step
    return alike(run(by_sort), run(by_choice))


@pair("reduce_problem")
def basis_completed_though_its_first_columns_serve():
    rows, columns, rank = 4096, 2048, 64
    a, probes = rand(rows, columns), rand(columns, rank)

    def run(mode):
        def step():
            y = a @ (a.t() @ (a @ probes))
            q = torch.linalg.qr(y / y.norm(dim=0), mode=mode)[0][:, :rank]
            part = q.t() @ a
            return q @ part[:, :256], part.pow(2).sum()
        return step
    return alike(run("complete"), run("reduced"))


@pair("reduce_problem", "slow_op")
def evidence_of_gaussian_processes_from_all_eigenvalues():
    tasks, count = 16, 256
    x, y, noise = rand(tasks, count, 8), rand(tasks, count, 1), 0.1 * torch.eye(256, device=GPU)

    def by_values(k):
        return torch.linalg.eigvalsh(k).log().sum(-1)

    def by_factor(k):
        return 2 * torch.linalg.cholesky(k).diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def run(size):
        def step():
            square = x.pow(2).sum(-1)
            k = torch.exp(-0.1 * (square[:, :, None] + square[:, None] - 2 * x @ x.mT).clamp(min=0)) + noise
            return -0.5 * (size(k) + (y * torch.linalg.solve(k, y)).sum((1, 2)))
        return step
    return alike(run(by_values), run(by_factor))


@pair("reduce_problem")
def weights_graded_while_only_forces_are_read():
    places = rand(64, 64, 3, scale=2.0)
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(32, 256), nn.SiLU(), nn.Linear(256, 256), nn.SiLU(), nn.Linear(256, 1)).to(GPU)
    centres = torch.linspace(0, 6, 32, device=GPU)

    def energy(p):
        away = ((p[:, :, None] - p[:, None]).pow(2).sum(-1, keepdim=True) + 0.01).sqrt()
        return model(torch.exp(-4 * (away - centres).pow(2))).sum()

    def before():
        model.zero_grad()
        p = places.clone().requires_grad_()
        energy(p).backward()
        return -p.grad

    def after():
        p = places.clone().requires_grad_()
        return -torch.autograd.grad(energy(p), p)[0]
    return alike(before, after)


# ---------------------------------------------------------------- padding and masks

@pair("reduce_problem", "remove_copies")
def atoms_of_molecules_padded_to_the_largest():
    molecules, most, width = 512, 96, 512
    sizes = torch.randint(8, 41, (molecules,))
    sizes[:4] = most
    there = (torch.arange(most) < sizes[:, None]).to(GPU)
    kinds, table, last = ints(10, molecules, most), rand(10, width, dtype=BF16), weight(1, width, BF16)
    layers = [(weight(1024, width, BF16), weight(width, 1024, BF16)) for _ in range(3)]
    kinds_there, owners = kinds[there], there.nonzero()[:, 0]  # the loader of the molecules gives these instead

    def read(kinds):
        x = F.embedding(kinds, table)
        for up, down in layers:
            x = x + F.linear(F.silu(F.linear(F.layer_norm(x, (width,)), up)), down)
        return F.linear(x, last).squeeze(-1).float()

    def before():
        return (read(kinds) * there).sum(1)

    def after():
        return torch.zeros(molecules, device=GPU).index_add_(0, owners, read(kinds_there))
    return alike(without_gradients(before), without_gradients(after))


@pair("reduce_problem")
def patches_of_a_frame_masked_from_all_other_frames():
    clips, frames, patches, heads, width = 2, 16, 256, 12, 768
    x0 = rand(clips, frames * patches, width, dtype=F16)
    layers = [(weight(3 * width, width, F16), weight(width, width, F16), weight(3072, width, F16), weight(width, 3072, F16))
              for _ in range(3)]
    frame = torch.arange(frames * patches, device=GPU) // patches
    near = frame[:, None] == frame

    def masked(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=near)

    def by_frame(q, k, v):
        q, k, v = (one.transpose(1, 2).reshape(-1, patches, heads, 64).transpose(1, 2) for one in (q, k, v))
        seen = F.scaled_dot_product_attention(q, k, v).transpose(1, 2)
        return seen.reshape(clips, -1, heads, 64).transpose(1, 2)

    def run(attend):
        def step():
            x = x0
            for w_in, w_out, up, down in layers:
                qkv = F.linear(F.layer_norm(x, (width,)), w_in).view(clips, -1, 3, heads, 64).permute(2, 0, 3, 1, 4)
                x = x + F.linear(attend(*qkv.unbind(0)).transpose(1, 2).reshape(x.shape), w_out)
                x = x + F.linear(F.gelu(F.linear(F.layer_norm(x, (width,)), up)), down)
            return x
        return step
    return alike(run(masked), run(by_frame))


# ---------------------------------------------------------------- matrices with a structure

@pair("reduce_problem", "remove_copies")
def sectors_of_a_market_mixed_by_one_matrix_of_blocks():
    days, sectors, each = 8192, 16, 256
    x0 = rand(days, sectors * each, dtype=BF16)
    layers = [rand(sectors, each, each, dtype=BF16, scale=each ** -0.5) for _ in range(3)]

    def by_matrix(x, parts):
        return x @ torch.block_diag(*parts)

    def by_sector(x, parts):
        return torch.bmm(x.view(days, sectors, each).transpose(0, 1), parts).transpose(0, 1).reshape(days, -1)

    def run(mixed):
        def step():
            x = x0
            for parts in layers:
                x = torch.tanh(mixed(x, parts))
            return x
        return step
    return alike(run(by_matrix), run(by_sector))


@pair("reduce_problem")
def spectra_smoothed_by_a_banded_matrix():
    count, length, half = 4096, 4096, 4
    spectra, taps = torch.rand(count, length, device=GPU), torch.softmax(rand(2 * half + 1), 0)

    def by_matrix():
        band = torch.zeros(length, length, device=GPU)
        for k in range(2 * half + 1):
            band.diagonal(k - half).fill_(0).add_(taps[k])
        return spectra @ band

    def by_taps():
        return F.conv1d(spectra[:, None], taps.flip(0)[None, None], padding=half).squeeze(1)

    def run(smoothed):
        def step():
            rough = torch.relu(spectra - smoothed())
            return rough / (rough.amax(1, keepdim=True) + 1e-6)
        return step
    return alike(run(by_matrix), run(by_taps))


@pair("reduce_problem", "slow_op")
def prices_of_paths_summed_by_a_triangle_of_ones():
    paths, times = 16384, 1024
    noise = rand(paths, times)

    def by_triangle(moves):
        return moves @ torch.ones(times, times, device=GPU).triu()

    def run(summed):
        def step():
            prices = 100 * torch.exp(summed(0.01 * noise - 0.00005))
            return torch.relu(prices.mean(1) - 100).mean(), torch.relu(100 - prices.amin(1)).mean()
        return step
    return alike(run(by_triangle), run(lambda moves: moves.cumsum(1)))


@pair("reduce_problem")
def views_projected_up_and_down_without_a_bend():
    width, wide = 512, 2048
    x0, layers = rand(65536, width, dtype=BF16), [(weight(wide, width, BF16), weight(width, wide, BF16)) for _ in range(3)]

    def in_turn(x, up, down):
        return F.linear(F.linear(x, up), down)

    def at_once(x, up, down):
        return F.linear(x, down @ up)

    def run(projected):
        def step():
            x = x0
            for up, down in layers:
                x = x + torch.tanh(projected(F.layer_norm(x, (width,)), up, down))
            return x
        return step
    return alike(run(in_turn), run(at_once), 0.06)


@pair("reduce_problem")
def likeness_of_layers_from_the_products_of_all_samples():
    x, w = rand(8192, 768), weight(768, 768)

    def centred(k):
        return k - k.mean(0) - k.mean(1, keepdim=True) + k.mean()

    def by_samples(a, b):
        k, m = centred(a @ a.t()), centred(b @ b.t())
        return (k * m).sum() / ((k * k).sum() * (m * m).sum()).sqrt()

    def by_features(a, b):
        a, b = a - a.mean(0), b - b.mean(0)
        return (b.t() @ a).pow(2).sum() / ((a.t() @ a).norm() * (b.t() @ b).norm())

    def run(likeness):
        def step():
            y = torch.tanh(F.linear(x, w))
            return likeness(x, y), likeness(y, torch.tanh(F.linear(y, w)))
        return step
    return alike(run(by_samples), run(by_features))


# ---------------------------------------------------------------- more pairs and more pixels than are needed

@pair("reduce_problem")
def energies_of_pairs_of_stars_counted_twice():
    stars, part = 16384, 4096
    places, masses = rand(3, stars), torch.rand(stars, device=GPU) + 0.5

    def drawn(some, others):
        away = sum((some_k[:, None] - others_k).pow(2) for some_k, others_k in zip(places[:, some], places[:, others]))
        return masses[some] @ (torch.rsqrt(away + 0.01) @ masses[others])

    def before():
        every = slice(0, stars)
        return (drawn(every, every) - 10 * masses.pow(2).sum()) / 2

    def after():
        total = -5 * masses.pow(2).sum()
        for at in range(0, stars, part):
            some = slice(at, at + part)
            total = total + drawn(some, some) / 2
            if at + part < stars:
                total = total + drawn(some, slice(at + part, stars))
        return total
    return alike(before, after)


@pair("reduce_problem", "fuse_pointwise")
def faces_enlarged_before_their_activation():
    layout = torch.channels_last
    x0 = rand(16, 64, 128, 128, dtype=F16).to(memory_format=layout)
    w_in, w_out = filters(64, 64, 3), filters(8, 64, 3)
    gain, shift = rand(64, 1, 1, dtype=F16), rand(64, 1, 1, dtype=F16)

    def enlarged(x):
        return F.interpolate(x, scale_factor=4.0, mode="nearest")

    def styled(x):
        return F.silu(x * gain + shift)

    def run(raised):
        def step():
            return torch.tanh(F.conv2d(raised(F.conv2d(x0, w_in, padding=1)), w_out, padding=1))
        return step
    return alike(run(lambda x: styled(enlarged(x))), run(lambda x: enlarged(styled(x))))
