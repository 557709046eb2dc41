# SPDX-License-Identifier: Apache-2.0
"""Steps of the twelfth set that work with data of the host, with graphs and with numerical programs.

Written on 27 November 2026 by a hand that had not read the rules, and recorded on that day. pairs_twelfth.py says how the set was
written, and takes these pairs in.
"""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from pairs_practice import BF16, F16
from pairs_sixth import ints
from pairs_twelfth_steps import PAIRS, alike, learnt, replayed  # noqa: F401  pairs_twelfth.py takes the pairs in
from pairs_unseen import GPU, pair, rand, weight, with_precision


# ---------------------------------------------------------------- memory of the host and its data

@pair("keep_on_device", "remove_syncs")
def edges_of_a_coarser_graph_made_unique_by_numpy():
    nodes, groups, edges = 100_000, 4096, 1 << 18
    x, group = rand(nodes, 64), ints(groups, nodes)
    source, target, ws = ints(nodes, edges), ints(nodes, edges), [weight(64, 64) for _ in range(2)]

    def on_the_host(keys):
        return torch.from_numpy(np.unique(keys.cpu().numpy())).to(GPU)

    def run(unique):
        def step():
            y = torch.zeros(groups, 64, device=GPU).index_add_(0, group, torch.relu(F.linear(x, ws[0])))
            keys = unique(group[source] * groups + group[target])
            begin, end = keys // groups, keys % groups
            return torch.zeros_like(y).index_add_(0, end, F.linear(y, ws[1])[begin])
        return step
    return alike(run(on_the_host), run(torch.unique))


@pair("keep_on_device", "remove_syncs")
def likeness_of_restored_pictures_measured_by_numpy():
    layout = torch.channels_last
    clean = torch.rand(16, 3, 256, 256, device=GPU)
    rough = (clean + rand(16, 3, 256, 256, scale=0.1)).to(F16).to(memory_format=layout)
    ws = [rand(out, inner, 3, 3, dtype=F16, scale=0.05).to(memory_format=layout) for out, inner in ((32, 3), (32, 32), (3, 32))]
    known = clean.cpu().numpy()

    def restored():
        x = rough
        for w in ws[:2]:
            x = torch.relu(F.conv2d(x, w, padding=1))
        return (rough + F.conv2d(x, ws[2], padding=1)).float().contiguous()

    def before():
        away = ((restored().cpu().numpy() - known) ** 2).mean((1, 2, 3))
        return torch.from_numpy(-10 * np.log10(away))

    def after():
        return (-10 * (restored() - clean).pow(2).mean((1, 2, 3)).log10()).cpu()
    return alike(before, after)


@pair("pin_memory", "overlap_copies")
def clouds_of_a_lidar_uploaded_from_numpy():
    scans, points, cells = 8, 120_000, 512
    read = np.random.default_rng(0).standard_normal((scans, points, 4), dtype=np.float32)
    room = torch.empty(scans, points, 4).pin_memory()
    room.numpy()[:] = read  # the reader of the scans writes here instead
    w, spread = weight(32, 4), weight(32, 32)

    def run(uploaded):
        def step():
            x = uploaded()
            at = ((x[..., :2] + 4) * (cells / 8)).long().clamp(0, cells - 1)
            cell = (torch.arange(scans, device=GPU)[:, None] * cells + at[..., 0]) * cells + at[..., 1]
            known = torch.relu(F.linear(x, w)).view(-1, 32)
            return F.linear(torch.zeros(scans * cells * cells, 32, device=GPU).index_add_(0, cell.view(-1), known), spread)
        return step
    return alike(run(lambda: torch.from_numpy(read).to(GPU)), run(lambda: room.to(GPU, non_blocking=True)))


@pair("overlap_copies")
def clips_of_driving_uploaded_before_each_step():
    clips = [torch.randint(256, (256, 3, 224, 224), dtype=torch.uint8).pin_memory() for _ in range(2)]
    w_in, layers = weight(512, 768, F16), [(weight(2048, 512, F16), weight(512, 2048, F16)) for _ in range(5)]

    def seen(clip):
        patches = clip.view(256, 3, 14, 16, 14, 16).permute(0, 2, 4, 1, 3, 5).reshape(-1, 768)
        x = F.linear(patches.to(F16) / 255, w_in)
        for up, down in layers:
            x = x + F.linear(F.gelu(F.linear(F.layer_norm(x, (512,)), up)), down)
        return x.view(256, 196, 512).mean(1)

    def in_turn():
        number = [0]

        def step():
            number[0] += 1
            return seen(clips[number[0] % 2].to(GPU, non_blocking=True))
        return step

    def ahead():
        side, number = torch.cuda.Stream(), [0]
        rooms = [torch.empty(256, 3, 224, 224, dtype=torch.uint8, device=GPU) for _ in range(2)]

        def upload(which):
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                rooms[which].copy_(clips[which], non_blocking=True)
        upload(1)

        def step():
            number[0] += 1
            torch.cuda.current_stream().wait_stream(side)
            upload((number[0] + 1) % 2)  # the step before has read that room
            return seen(rooms[number[0] % 2])
        return step
    return alike(in_turn(), ahead())


class Molecules(torch.utils.data.Dataset):
    """Batches of molecules, made of their atoms' places when they are asked for."""

    def __init__(self, places, kinds):
        super().__init__()
        self.places, self.kinds = places, kinds

    def __len__(self):
        return 1 << 20

    def __getitem__(self, at):
        kinds, ends, lengths, owners, first = [], [], [], [], 0
        for owner, i in enumerate(np.random.default_rng(at).integers(len(self.places), size=128)):
            place = self.places[i]
            away = np.sqrt(((place[:, None] - place[None]) ** 2).sum(2))
            source, target = np.nonzero((away < 1.5) & (away > 0))
            kinds.append(self.kinds[i])
            ends.append(np.stack([source, target]) + first)
            lengths.append(away[source, target])
            owners.append(np.full(len(place), owner))
            first += len(place)
        return (torch.from_numpy(np.concatenate(kinds)), torch.from_numpy(np.concatenate(ends, 1)),
                torch.from_numpy(np.concatenate(lengths)).float(), torch.from_numpy(np.concatenate(owners)))


class Messages(nn.Module):
    """A small net over the atoms of a batch of molecules, which gives an energy for each."""

    def __init__(self, width):
        super().__init__()
        self.table, self.last = nn.Embedding(10, width), nn.Linear(width, 1)
        self.edges = nn.ModuleList(nn.Linear(16, width) for _ in range(3))
        self.nodes = nn.ModuleList(nn.Linear(width, width) for _ in range(3))
        self.register_buffer("centres", torch.linspace(0, 1.5, 16))

    def forward(self, kinds, ends, lengths, owners):
        x, near = self.table(kinds), torch.exp(-20 * (lengths[:, None] - self.centres) ** 2)
        for edge, node in zip(self.edges, self.nodes):
            x = x + F.silu(torch.zeros_like(x).index_add_(0, ends[1], node(x)[ends[0]] * edge(near)))
        return torch.zeros(128, 1, device=GPU).index_add_(0, owners, self.last(x))


@pair("feed_the_device", "cut_host_work")
def molecules_collated_in_the_loop():
    random = np.random.default_rng(0)
    places = [random.random((random.integers(12, 29), 3)) * 3 for _ in range(1024)]
    kinds = [random.integers(10, size=len(place)) for place in places]

    def make(workers):
        torch.manual_seed(1)
        model = Messages(128).to(GPU)
        options = {"persistent_workers": True, "prefetch_factor": 4} if workers else {}
        batches = iter(torch.utils.data.DataLoader(Molecules(places, kinds), batch_size=None, num_workers=workers, **options))

        def loss():
            return (model(*(part.to(GPU) for part in next(batches))) - 1.0).pow(2).mean()
        return learnt(model, loss, dtype=None)
    return alike(make(0), make(8))


# ---------------------------------------------------------------- graphs, tables and pictures

@pair("reuse_result", "reduce_problem")
def lengths_of_bonds_expanded_in_each_block():
    atoms, bonds, width = 40_000, 1 << 19, 64
    source, target, x0, away = ints(atoms, bonds), ints(atoms, bonds), rand(atoms, width), torch.rand(bonds, device=GPU) * 5
    layers, centres = [(weight(width, 32), weight(width, width)) for _ in range(4)], torch.linspace(0, 5, 32, device=GPU)

    def expanded():
        fades = 0.5 * (torch.cos(away * (math.pi / 5)) + 1)
        return torch.exp(-10 * (away[:, None] - centres) ** 2) * fades[:, None]

    def run(once):
        def step():
            x, known = x0, expanded() if once else None
            for w_bond, w_atom in layers:
                sent = F.linear(x, w_atom)[source] * F.linear(known if once else expanded(), w_bond)
                x = x + torch.tanh(torch.zeros_like(x).index_add_(0, target, sent))
            return x
        return step
    return alike(run(False), run(True))


@pair("local_gathers")
def distances_to_a_surface_looked_up_at_shuffled_points():
    side, count = 256, 1 << 22
    grid, points = rand(side ** 3, 2), torch.randint(side - 1, (count, 3), device=GPU)
    places = (points[:, 0] * side + points[:, 1]) * side + points[:, 2]
    corners = [(i * side + j) * side + k for i in (0, 1) for j in (0, 1) for k in (0, 1)]

    def run(places):
        def step():
            total = torch.zeros(count, 2, device=GPU)
            for corner in corners:
                total += grid[places + corner]
            return total.pow(2).mean(0)
        return step
    return alike(run(places), run(places.sort().values))


@pair("remove_fills", "stop_allocating")
def tokens_put_back_in_order_into_a_cleared_array():
    tokens, width, experts = 1 << 18, 256, 16
    x0, order = rand(tokens, width, dtype=BF16), torch.randperm(tokens, device=GPU)
    layers = [rand(experts, width, width, dtype=BF16, scale=width ** -0.5) for _ in range(4)]

    def run(made):
        def step():
            x = x0
            for w in layers:
                y = torch.bmm(x.index_select(0, order).view(experts, -1, width), w)
                x = made(x).index_copy_(0, order, y.view(tokens, width))
            return x
        return step
    return alike(run(torch.zeros_like), run(torch.empty_like))


@pair("batch_products", "cut_host_work", "cuda_graphs", "compile_model", "fill_the_device")
def covariances_of_classes_formed_one_by_one():
    parts = rand(96, 256, 128)

    def covariance(part):
        away = part - part.mean(-2, keepdim=True)
        return away.mT @ away / 255 + 0.1 * torch.eye(128, device=GPU)
    return alike(lambda: torch.stack([covariance(part) for part in parts]), lambda: covariance(parts))


@pair("reduce_problem")
def anchors_decoded_before_the_best_are_chosen():
    pictures, anchors, kept = 4, 1 << 17, 1000
    raw, changes = rand(pictures, anchors, 80) - 4.0, rand(pictures, anchors, 4, scale=0.2)
    boxes = torch.rand(anchors, 4, device=GPU) * 100 + 10

    def decoded(change, box):
        middle = box[..., :2] + change[..., :2] * box[..., 2:]
        size = box[..., 2:] * torch.exp(change[..., 2:].clamp(max=4))
        return torch.cat([middle - size / 2, middle + size / 2], -1)

    def before():
        shares, every = torch.sigmoid(raw), decoded(changes, boxes)
        best, at = shares.amax(2).topk(kept, 1)
        return best, every.gather(1, at[..., None].expand(-1, -1, 4)).sum(1)

    def after():
        best, at = raw.amax(2).topk(kept, 1)
        chosen = decoded(changes.gather(1, at[..., None].expand(-1, -1, 4)), boxes[at])
        return torch.sigmoid(best), chosen.sum(1)
    return alike(before, after)


# ---------------------------------------------------------------- numerical programs

@pair("reduce_problem")
def kernel_of_a_grid_formed_before_its_product():
    rows, columns = 128, 128
    across, along = (torch.arange(count, device=GPU) / 16.0 for count in (rows, columns))
    y = rand(rows * columns, 8)

    def kernels():
        return tuple(torch.exp(-0.5 * (at[:, None] - at) ** 2) for at in (across, along))

    def before():
        return torch.kron(*kernels()) @ y

    def after():
        one, other = kernels()
        return (other @ (one @ y.view(rows, -1)).view(rows, columns, 8)).view(-1, 8)
    return alike(before, after)


@pair("reduce_problem", "cut_host_work", "batch_products")
def sharpness_along_a_direction_from_a_whole_hessian():
    x, way = rand(8192, 64), rand(64)
    signs, start = torch.where(rand(8192) > 0, 1.0, -1.0), rand(64, scale=0.1)

    def loss(w):
        return F.softplus(-signs * (x @ w)).mean()

    def before():
        return way @ (torch.autograd.functional.hessian(loss, start) @ way)

    def after():
        return way @ torch.autograd.functional.vhp(loss, start, way)[1]
    return alike(before, after)


@pair("reuse_result")
def answers_of_rooms_transformed_for_each_batch():
    sounds, rooms, length = rand(128, 1 << 16), rand(128, 1 << 16), 1 << 17
    known = torch.fft.rfft(rooms, length)

    def run(answers):
        return lambda: torch.fft.irfft(torch.fft.rfft(sounds, length) * answers(), length)[:, :1 << 16]
    return alike(run(lambda: torch.fft.rfft(rooms, length)), run(lambda: known))


@pair("remove_copies")
def images_of_a_scanner_parted_into_planes():
    count, size = 64, 320
    x0 = rand(count, 2, size, size)
    measured = torch.randn(count, size, size, dtype=torch.complex64, device=GPU) * size
    mask = torch.rand(size, size, device=GPU) < 0.3

    def consistent(z):
        return torch.fft.ifft2(torch.where(mask, measured, torch.fft.fft2(z)))

    def before():
        x = x0
        for _ in range(4):
            z = consistent(torch.view_as_complex(x.permute(0, 2, 3, 1).contiguous()))
            x = torch.view_as_real(z).permute(0, 3, 1, 2).contiguous()
            x = x * torch.relu(1 - 0.1 / (torch.linalg.vector_norm(x, dim=1, keepdim=True) + 1e-6))
        return x

    def after():
        z = torch.view_as_complex(x0.permute(0, 2, 3, 1).contiguous())
        for _ in range(4):
            z = consistent(z)
            z = z * torch.relu(1 - 0.1 / (z.abs() + 1e-6))
        return torch.view_as_real(z).permute(0, 3, 1, 2).contiguous()
    return alike(before, after)


@pair("leave_float64", "fuse_pointwise", "compile_model")
def sky_of_point_sources_seen_in_float64():
    stations, sky, flux = rand(4096, 2, scale=20.0), rand(8192, 2, scale=0.02), torch.rand(8192, device=GPU)

    def run(dtype):
        places, ways, strong = stations.to(dtype), sky.to(dtype), flux.to(dtype)

        def step():
            turns = 2 * math.pi * (places[:, :1] * ways[:, 0] + places[:, 1:] * ways[:, 1])
            return torch.stack([torch.cos(turns) @ strong, torch.sin(turns) @ strong]).float()
        return step
    return alike(run(torch.float64), run(torch.float32))


@pair("cuda_graphs", "compile_model", "cut_host_work", "fuse_pointwise")
def fluid_of_a_small_lattice_moved_twelve_times():
    size = 128
    ways = [(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1)]
    c = torch.tensor(ways, dtype=torch.float32, device=GPU)
    share = torch.tensor([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4, device=GPU)[:, None, None]
    start = share * (1 + 0.01 * rand(9, size, size))

    def step():
        f = start
        for _ in range(12):
            f = torch.stack([torch.roll(one, way, (0, 1)) for one, way in zip(f, ways)])
            mass = f.sum(0)
            u = torch.tensordot(c, f, ([0], [0])) / mass
            along = torch.tensordot(c, u, 1)
            calm = share * mass * (1 + 3 * along + 4.5 * along ** 2 - 1.5 * (u ** 2).sum(0))
            f = f + 0.8 * (calm - f)
        return f
    return alike(step, replayed(step))


@pair("remove_syncs", "cut_host_work", "cuda_graphs")
def factors_checked_in_each_update_of_a_filter():
    targets, size, times = 256, 6, 16
    start, noise = rand(targets, size), 0.1 * torch.eye(size, device=GPU)
    spread0, seen = torch.eye(size, device=GPU).repeat(targets, 1, 1), rand(times, targets, size)
    move = torch.eye(size, device=GPU) + rand(size, size, scale=0.05)

    def by_checks(a):
        return torch.linalg.cholesky(a)

    def by_trust(a):
        return torch.linalg.cholesky_ex(a).L

    def run(factor):
        def step():
            mean, spread = start, spread0
            for t in range(times):
                root = factor(spread) * size ** 0.5
                points = torch.cat([mean[:, None] + root.mT, mean[:, None] - root.mT], 1)
                points = torch.sin(points @ move)
                mean = points.mean(1)
                away = points - mean[:, None]
                spread = away.mT @ away / (2 * size) + noise
                root = factor(spread + noise)
                half = torch.linalg.solve_triangular(root, spread, upper=False)
                gain = torch.linalg.solve_triangular(root.mT, half, upper=True).mT
                mean = mean + (gain @ (seen[t] - mean)[..., None]).squeeze(2)
                spread = spread - gain @ spread
                spread = (spread + spread.mT) / 2 + 0.01 * noise
            return mean, spread
        return step
    return alike(run(by_checks), run(by_trust))


@pair("fuse_epilogue", "fuse_pointwise", "compile_model")
def density_matrix_purified_by_sums_after_products():
    size = 2048
    turns = torch.linalg.qr(rand(size, size))[0]
    shares = torch.cat([torch.rand(size // 2, device=GPU) * 0.3, 1 - torch.rand(size // 2, device=GPU) * 0.3])
    p0 = (turns * shares) @ turns.t()

    def by_sums(p2, p):
        return 3 * p2 - 2 * (p2 @ p)

    def by_product(p2, p):
        return torch.addmm(p2, p2, p, beta=3, alpha=-2)

    def run(cubic):
        def step():
            p = p0
            for _ in range(6):
                p = cubic(p @ p, p)
            return p
        return with_precision("high", step)
    return alike(run(by_sums), run(by_product))
