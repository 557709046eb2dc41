# SPDX-License-Identifier: Apache-2.0
"""A fifth set, of fields that the first four do not have: written and measured before any rule or constant was changed for it.

As in pairs_practice.py. Half of it is set aside by the hash of its names. Pairs in SYNCED are recorded once more with a
synchronisation after each step, as a measuring harness makes it; their step is measured both ways.
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

import pairs_practice as practice
from pairs_practice import BF16, F16, compiled, without_gradients
from pairs_unseen import GPU, captured, null, pair, rand, weight

practice.PAIRS.clear()
PAIRS = practice.PAIRS
SYNCED = ["neural_ode_of_a_pendulum", "gene_counts_of_19999", "ensemble_of_ten_nets", "weights_of_a_mixer_in_adam",
          "clip_of_gradients_decided_on_the_host", "null_long_reversible_layers"]


def trained(model, x, autocast=True, of=lambda model: model, **options):
    """A step of training with a squared loss; `of` wraps the model that runs."""
    run = of(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-5, **options)

    def step():
        with torch.autocast(GPU, BF16, enabled=autocast):
            loss = run(x).float().pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return step


def both_compiled(make, x, autocast=True):
    return (trained(make(), x, autocast),
            trained(make(), x, autocast, of=lambda model: torch.compile(model, dynamic=False)))


# ---------------------------------------------------------------- small nets, compiled

@pair("compile_model", "cuda_graphs", "cut_host_work")
def policy_net_of_three_layers():
    def make():
        return nn.Sequential(nn.Linear(48, 256), nn.ELU(), nn.Linear(256, 256), nn.ELU(), nn.Linear(256, 12)).to(GPU)
    return both_compiled(make, rand(4096, 48), autocast=False)


@pair("compile_model", "cuda_graphs", "cut_host_work")
def heartbeat_classifier_in_training():
    def make():
        layers, width = [], 1
        for wider in (32, 64, 128):
            layers += [nn.Conv1d(width, wider, 7, padding=3), nn.BatchNorm1d(wider), nn.GELU(), nn.MaxPool1d(4)]
            width = wider
        return nn.Sequential(*layers, nn.Flatten(), nn.Linear(128 * 32, 5)).to(GPU)
    return both_compiled(make, rand(64, 1, 2048))


class Mixer(nn.Module):
    def __init__(self, tokens, width):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.tokens = nn.Sequential(nn.Linear(tokens, 2 * tokens), nn.GELU(), nn.Linear(2 * tokens, tokens))
        self.channels = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        x = x + self.tokens(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(self.norm2(x))


@pair("compile_model", "cuda_graphs", "cut_host_work", "fuse_pointwise")
def small_mixer_in_training():
    return both_compiled(lambda: nn.Sequential(*[Mixer(196, 256) for _ in range(4)]).to(GPU), rand(16, 196, 256))


@pair("compile_model", "fuse_pointwise", "fuse_epilogue")
def wide_mixer_in_training():
    return both_compiled(lambda: nn.Sequential(*[Mixer(196, 768) for _ in range(4)]).to(GPU), rand(128, 196, 768))


@pair("compile_model", "cuda_graphs", "cut_host_work")
def scores_of_loan_applications():
    tables = nn.ModuleList(nn.Embedding(1000, 16) for _ in range(12)).to(GPU)
    body = nn.Sequential(nn.BatchNorm1d(192), nn.Linear(192, 256), nn.ReLU(), nn.BatchNorm1d(256), nn.Linear(256, 1)).to(GPU).eval()
    fields = torch.randint(1000, (2048, 12), device=GPU)

    def step():
        return torch.sigmoid(body(torch.cat([table(fields[:, i]) for i, table in enumerate(tables)], 1)))
    return without_gradients(step), without_gradients(compiled(step))


@pair("compile_model", "cuda_graphs", "cut_host_work")
def graph_of_a_molecule():
    atoms, bonds, width = 2048, 8192, 64
    source, target = (torch.randint(atoms, (bonds,), device=GPU) for _ in range(2))
    ws, x0 = [weight(width, 2 * width) for _ in range(5)], rand(atoms, width)

    def step():
        x = x0
        for w in ws:
            gathered = torch.zeros_like(x).index_add(0, target, F.silu(x[source]))
            x = F.layer_norm(x + torch.tanh(F.linear(torch.cat([x, gathered], 1), w)), (width,))
        return x
    return without_gradients(step), without_gradients(compiled(step))


# ---------------------------------------------------------------- the host's pace

@pair("cuda_graphs", "compile_model", "cut_host_work")
def neural_ode_of_a_pendulum():
    first, second, x0 = weight(128, 64), weight(64, 128), rand(512, 64)

    def slope(x):
        return F.linear(torch.tanh(F.linear(x, first)), second)

    def step():
        x, h = x0, 0.05
        for _ in range(12):
            a = slope(x)
            b = slope(x + h / 2 * a)
            c = slope(x + h / 2 * b)
            x = x + h / 6 * (a + 2 * b + 2 * c + slope(x + h * c))
        return x
    return step, captured(step)


@pair("cuda_graphs", "compile_model", "cut_host_work")
def filter_of_many_targets():
    a, h = rand(256, 6, 6, scale=0.3), rand(256, 3, 6)
    x0, p0, noise = rand(256, 6, 1), torch.eye(6, device=GPU).expand(256, 6, 6).contiguous(), torch.eye(3, device=GPU)
    zs = rand(8, 256, 3, 1)

    def step():
        x, p = x0, p0
        for z in zs:
            x, p = a @ x, a @ p @ a.mT + 0.1
            gain = p @ h.mT @ (h @ p @ h.mT * 0.01 + noise)
            x = x + gain @ (z - h @ x)
            p = p - gain @ h @ p
        return x
    return step, captured(step)


@pair("batch_products", "cuda_graphs", "cut_host_work", "compile_model")
def ensemble_of_ten_nets():
    count, width, x = 10, 256, rand(128, 256)
    ups, downs = rand(count, width, 512, scale=0.05), rand(count, 512, 64, scale=0.05)

    def before():
        return torch.stack([torch.relu(x @ ups[i]) @ downs[i] for i in range(count)]).mean(0)
    return before, lambda: torch.bmm(torch.relu(torch.matmul(x, ups)), downs).mean(0)


@pair("cut_host_work", "cuda_graphs", "compile_model", "remove_syncs", "batch_products")
def accuracy_class_by_class():
    guesses, truth = (torch.randint(100, (65536,), device=GPU) for _ in range(2))
    classes = torch.arange(100, device=GPU).view(100, 1)

    def before():
        return torch.stack([((guesses == c) & (truth == c)).sum() for c in range(100)])
    return before, lambda: ((guesses == truth) & (truth == classes)).sum(1)


@pair("remove_syncs", "cut_host_work")
def clip_of_gradients_decided_on_the_host():
    gradients = [rand(1024, 1024) for _ in range(24)]
    x0, w = rand(1024, 1024), weight(1024, 1024)

    def forward():
        x = x0
        for _ in range(12):
            x = torch.tanh(F.linear(x, w))
        return x

    def before():
        out = forward()
        for g in gradients:
            norm = g.norm()
            if norm > 1e6:
                g.mul_(1e6 / norm)
        return out

    def after():
        out = forward()
        for g in gradients:
            g.mul_((1e6 / g.norm()).clamp(max=1))
        return out
    return before, after


@pair("remove_syncs", "keep_on_device")
def conjugate_gradients_that_ask_each_time():
    a, b = rand(4096, 4096, scale=1e-3), rand(4096)
    a = a @ a.t() + torch.eye(4096, device=GPU)

    def run(go_on):
        def step():
            x, r = torch.zeros_like(b), b
            p, rr = r, r.dot(r)
            for _ in range(15):
                ap = a @ p
                alpha = rr / p.dot(ap)
                x, r = x + alpha * p, r - alpha * ap
                old, rr = rr, r.dot(r)
                if not go_on(rr):
                    break
                p = r + rr / old * p
            return x
        return step
    return run(lambda rr: rr.item() > -1), run(lambda rr: True)


# ---------------------------------------------------------------- copies and the host's data

@pair("keep_on_device", "remove_syncs", "feed_the_device")
def centres_of_clusters_on_the_host():
    points, centres = rand(1 << 19, 16), rand(64, 16)

    def near(x, c):
        return torch.cdist(x, c).argmin(1)

    def before():
        of = near(points, centres).cpu()
        sums = torch.zeros(64, 16).index_add(0, of, points.cpu())
        return (sums / torch.bincount(of, minlength=64).clamp(min=1).unsqueeze(1)).to(GPU)

    def after():
        of = near(points, centres)
        sums = torch.zeros(64, 16, device=GPU).index_add(0, of, points)
        return sums / torch.bincount(of, minlength=64).clamp(min=1).unsqueeze(1)
    return before, after


@pair("pin_memory", "overlap_copies", "remove_syncs")
def spectra_downloaded_each_step():
    x, w = rand(4096, 4096, dtype=BF16), weight(4096, 4096, BF16)
    buffer = torch.empty(4096, 4096, dtype=BF16, pin_memory=True)

    def before():
        return F.linear(x, w).cpu()

    def after():
        buffer.copy_(F.linear(x, w), non_blocking=True)
        torch.cuda.current_stream().synchronize()
        return buffer
    return before, after


@pair("overlap_copies", "keep_on_device")
def tiles_of_a_satellite_picture():
    tiles = [torch.randn(64, 3, 256, 256).half().pin_memory() for _ in range(4)]
    kernels = [rand(32, 3, 5, 5, dtype=F16), rand(32, 32, 3, 3, dtype=F16)]
    slots, side = [torch.empty(64, 3, 256, 256, device=GPU, dtype=F16) for _ in range(2)], torch.cuda.Stream()
    ready, used = ([torch.cuda.Event() for _ in range(4)] for _ in range(2))

    def compute(x):
        return F.conv2d(F.conv2d(x, kernels[0]), kernels[1]).mean()

    def before():
        return [compute(tile.to(GPU, non_blocking=True)) for tile in tiles]

    def after():
        main, out = torch.cuda.current_stream(), []
        for i, tile in enumerate(tiles):
            with torch.cuda.stream(side):
                side.wait_event(used[(i - 2) % 4])
                slots[i % 2].copy_(tile, non_blocking=True)
                ready[i].record(side)
            main.wait_event(ready[i])
            out.append(compute(slots[i % 2]))
            used[i].record(main)
        return out
    return before, after


@pair("feed_the_device")
def games_simulated_between_steps():
    class Games(torch.utils.data.Dataset):
        def __len__(self):
            return 1 << 20

        def __getitem__(self, at):
            boards = np.random.default_rng(at).integers(0, 3, (40, 19, 19))
            return torch.from_numpy(np.cumsum(boards, 0)[-1].astype(np.float32))

    def make(workers):
        net = nn.Sequential(nn.Flatten(), nn.Linear(361, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 362)).to(GPU)
        options = {"persistent_workers": True, "prefetch_factor": 4} if workers else {}
        batches = iter(torch.utils.data.DataLoader(Games(), batch_size=128, num_workers=workers, **options))

        def step():
            with torch.no_grad():
                return net(next(batches).to(GPU))
        return step
    return make(0), make(8)


# ---------------------------------------------------------------- what is computed

@pair("reduce_problem", "remove_copies")
def picture_filtered_whole_and_cropped():
    x, w = rand(16, 32, 512, 512, dtype=F16), rand(32, 32, 3, 3, dtype=F16, scale=0.05)
    return (lambda: F.conv2d(x, w)[:, :, :128, :128] * 2), lambda: F.conv2d(x[:, :, :130, :130], w) * 2


@pair("reduce_problem")
def policy_head_of_the_last_frame():
    frames, w, head = rand(256, 64, 1024, dtype=BF16), weight(1024, 1024, BF16), weight(8192, 1024, BF16)

    def run(cut):
        def step():
            x = torch.relu(F.linear(frames, w))
            return torch.softmax(F.linear(cut(x), head)[:, -1].float(), dim=-1)
        return step
    return run(lambda x: x), run(lambda x: x[:, -1:])


@pair("reuse_result")
def memory_projected_in_each_iteration():
    memory, slots0 = rand(64, 1024, 512, dtype=BF16), rand(64, 8, 512, dtype=BF16)
    w_k, w_v, w_q = (weight(512, 512, BF16) for _ in range(3))

    def run(again):
        def step():
            k, v, slots = F.linear(memory, w_k), F.linear(memory, w_v), slots0
            for _ in range(5):
                if again:
                    k, v = F.linear(memory, w_k), F.linear(memory, w_v)
                share = torch.softmax(F.linear(slots, w_q) @ k.mT, dim=1)
                slots = share @ v
            return slots
        return step
    return run(True), run(False)


@pair("fused_optimizer", "compile_model")
def weights_of_a_mixer_in_adam():
    x = rand(8, 64, 1024)

    def make(**options):
        return trained(nn.Sequential(*[Mixer(64, 1024) for _ in range(6)]).to(GPU), x, **options)
    return make(), make(fused=True)


@pair("fused_optimizer")
def momentum_of_two_hundred_tensors():
    def make(**options):
        weights = [nn.Parameter(rand(512, 1024)) for _ in range(200)]
        for w in weights:
            w.grad = rand(512, 1024, scale=1e-3)
        optimizer = torch.optim.SGD(weights, lr=1e-3, momentum=0.9, weight_decay=1e-4, **options)
        return optimizer.step
    return make(), make(fused=True)


@pair("recompute_less")
def checkpointed_mixer():
    x, blocks = rand(64, 196, 768, dtype=BF16), [Mixer(196, 768).to(GPU, BF16) for _ in range(3)]
    x.requires_grad_()

    def run(call):
        def step():
            y = x
            for block in blocks:
                y = call(block, y)
            y.float().pow(2).mean().backward()
            for block in blocks:
                block.zero_grad()
        return step
    return run(lambda block, y: checkpoint(block, y, use_reentrant=False)), run(lambda block, y: block(y))


@pair("cast_weights_once", "remove_copies", "reuse_result")
def segmentation_under_autocast():
    wide = [rand(512, 512, 3, 3, scale=0.01) for _ in range(4)]
    wide16 = [w.half() for w in wide]
    x0 = rand(4, 512, 14, 14, dtype=F16)

    def run(of):
        def step():
            x = x0
            with torch.no_grad():
                for w in of:
                    x = torch.relu(F.conv2d(x, w.half(), padding=1))
            return x
        return step
    return run(wide), run(wide16)


@pair("remove_copies", "fuse_pointwise")
def positions_repeated_for_each_item():
    x, positions = rand(256, 512, 512, dtype=F16), rand(512, 512, dtype=F16)
    return (lambda: x + positions.repeat(256, 1, 1)), lambda: x + positions


@pair("remove_copies", "channels_last")
def heads_moved_to_the_front_and_back():
    x, scale = rand(32, 1024, 16, 64, dtype=F16), rand(64, dtype=F16)

    def before():
        y = x.transpose(1, 2).contiguous()
        y = F.layer_norm(y, (64,), scale)
        return y.transpose(1, 2).contiguous()
    return before, lambda: F.layer_norm(x, (64,), scale)


@pair("remove_fills", "remove_copies")
def canvas_cleared_before_it_is_painted():
    x = rand(8192, 8192)
    out = torch.empty_like(x)

    def before():
        out.zero_()
        return torch.add(x, 1.0, out=out)
    return before, lambda: torch.add(x, 1.0, out=out)


# ---------------------------------------------------------------- fusion and attention

@pair("flash_attention", "fuse_norm", "fuse_pointwise")
def latents_that_look_at_pixels():
    q, k, v = rand(16, 8, 512, 64, dtype=F16), rand(16, 8, 8192, 64, dtype=F16), rand(16, 8, 8192, 64, dtype=F16)

    def before():
        return torch.softmax(q @ k.mT * 0.125, dim=-1) @ v
    return before, lambda: F.scaled_dot_product_attention(q, k, v)


@pair("flash_attention", "fuse_norm", "fuse_pointwise")
def music_of_causal_attention():
    q, k, v = (rand(4, 16, 2048, 64, dtype=BF16) for _ in range(3))
    future = torch.ones(2048, 2048, device=GPU, dtype=torch.bool).triu(1)

    def before():
        scores = (q @ k.mT * 0.125).masked_fill(future, float("-inf"))
        return torch.softmax(scores.float(), dim=-1).to(BF16) @ v
    return before, lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True)


@pair("fuse_pointwise", "compile_model")
def prices_of_options():
    spot, strike, years, spread = (rand(1 << 23).abs() + 0.1 for _ in range(4))

    def step():
        root = spread * torch.sqrt(years)
        d1 = (torch.log(spot / strike) + (0.02 + 0.5 * spread * spread) * years) / root
        d2 = d1 - root
        return spot * torch.special.ndtr(d1) - strike * torch.exp(-0.02 * years) * torch.special.ndtr(d2)
    return step, compiled(step)


@pair("fuse_pointwise", "compile_model")
def neurons_that_leak_and_fire():
    volts0, current = rand(1 << 22), [rand(1 << 22) for _ in range(6)]

    def step():
        volts, spikes = volts0, 0
        for now in current:
            volts = volts + 0.1 * (now - volts)
            fired = (volts > 1).float()
            volts = volts * (1 - fired)
            spikes = spikes + fired
        return spikes
    return step, compiled(step)


@pair("fuse_norm", "compile_model", "fuse_pointwise")
def instance_norm_of_style_transfer():
    x = rand(16, 64, 256, 256)

    def before():
        mean = x.mean((2, 3), keepdim=True)
        spread = ((x - mean) ** 2).mean((2, 3), keepdim=True)
        return (x - mean) / torch.sqrt(spread + 1e-5)
    return before, lambda: F.instance_norm(x)


@pair("fuse_norm", "compile_model", "fuse_pointwise")
def voices_compared_by_cosine():
    a, b = rand(65536, 512), rand(65536, 512)

    def step():
        return (a * b).sum(1) / (a.pow(2).sum(1).sqrt() * b.pow(2).sum(1).sqrt() + 1e-8)
    return step, compiled(step)


@pair("fuse_epilogue", "fuse_pointwise", "compile_model")
def filtered_biased_and_cut_off():
    x, w, b = rand(32, 64, 112, 112, dtype=F16), rand(64, 64, 3, 3, dtype=F16, scale=0.05), rand(64, dtype=F16)
    x = x.contiguous(memory_format=torch.channels_last)
    w = w.contiguous(memory_format=torch.channels_last)
    shift = b.view(1, 64, 1, 1)
    return ((lambda: torch.relu(F.conv2d(x, w, padding=1) + shift)),
            lambda: torch.cudnn_convolution_relu(x, w, b, (1, 1), (1, 1), (1, 1), 1))


# ---------------------------------------------------------------- units, layout, the device

@pair("align_dimensions")
def gene_counts_of_19999():
    def make(genes):
        x, w = rand(2048, genes, dtype=BF16), weight(1024, genes, BF16)
        return lambda: F.linear(x, w)
    return make(19999), make(20000)


@pair("tensor_cores")
def volumes_filtered_in_float32():
    x, w = rand(4, 32, 64, 64, 64), rand(64, 32, 3, 3, 3, scale=0.03)

    def run(allow):
        def step():
            with torch.backends.cudnn.flags(enabled=True, allow_tf32=allow):
                return F.conv3d(x, w, padding=1)
        return step
    return run(False), run(True)


@pair("leave_float64", "fuse_pointwise", "compile_model")
def forces_between_stars_in_float64():
    def make(dtype):
        at, mass = torch.randn(4096, 3, device=GPU, dtype=torch.float64).to(dtype), torch.rand(4096, device=GPU).to(dtype)

        def step():
            away = at.unsqueeze(0) - at.unsqueeze(1)
            inverse = (away.pow(2).sum(-1) + 1e-3).rsqrt()
            return ((mass * inverse ** 3).unsqueeze(-1) * away).sum(1)
        return step
    return make(torch.float64), make(torch.float32)


@pair("channels_last", "fuse_pointwise", "compile_model")
def depthwise_net_of_a_phone():
    def make(layout):
        layers = []
        for _ in range(4):
            layers += [nn.Conv2d(128, 128, 3, padding=1, groups=128), nn.Hardswish(), nn.Conv2d(128, 128, 1)]
        model = nn.Sequential(*layers).to(GPU, F16).to(memory_format=layout).eval()
        x = rand(64, 128, 56, 56, dtype=F16).contiguous(memory_format=layout)
        return without_gradients(lambda: model(x))
    return make(torch.contiguous_format), make(torch.channels_last)


@pair("local_gathers", "coalesce")
def genes_chosen_by_column():
    table, chosen = rand(16384, 20000, dtype=F16), torch.randperm(20000, device=GPU)[:4000]
    by_gene = table.t().contiguous()
    return (lambda: table.index_select(1, chosen)), lambda: by_gene.index_select(0, chosen)


@pair("fill_the_device")
def shares_of_a_whole_market():
    x = rand(4, 1 << 23)

    def after():
        y = x.view(4, 2048, -1)
        high = y.amax(2).amax(1).view(4, 1, 1)
        e = torch.exp(y - high)
        return (e / e.sum(2).sum(1).view(4, 1, 1)).view(4, -1)
    return (lambda: torch.softmax(x, dim=1)), after


# ---------------------------------------------------------------- what suggests itself and gains nothing

@null("cuda_graphs", "cut_host_work", "compile_model")
def null_long_reversible_layers():
    w, x0 = weight(6144, 6144, BF16), rand(8192, 6144, dtype=BF16)

    def step():
        return F.linear(F.linear(x0, w), w)
    return step, captured(step)


@null("fused_optimizer")
def null_optimizer_after_a_long_backward():
    model = nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(3)]).to(GPU, BF16)
    x = rand(65536, 1024, dtype=BF16)
    return trained(model, x, autocast=False), trained(model, x, autocast=False, fused=True)


@null("align_dimensions")
def null_width_of_20016():
    def make(genes):
        x, w = rand(2048, genes, dtype=BF16), weight(1024, genes, BF16)
        return lambda: F.linear(x, w)
    return make(20016), make(20032)


@null("remove_syncs")
def null_energy_read_after_a_long_relaxation():
    a, x0 = rand(8192, 8192, dtype=BF16, scale=0.01), rand(8192, 2048, dtype=BF16)

    def run(read):
        def step():
            x = x0
            for _ in range(12):
                x = a @ x
            return read(x.float().norm())
        return step
    return run(lambda norm: norm.item()), run(lambda norm: norm)


@null("flash_attention", "fuse_norm")
def null_latents_by_the_library():
    q, k, v = rand(16, 8, 512, 64, dtype=F16), rand(16, 8, 8192, 64, dtype=F16), rand(16, 8, 8192, 64, dtype=F16)

    def step():
        return F.scaled_dot_product_attention(q, k, v)
    return step, step


@null("pin_memory", "overlap_copies", "keep_on_device")
def null_few_numbers_sent_before_long_products():
    numbers = torch.randn(64, 16)
    pinned, w, x0 = numbers.pin_memory(), weight(8192, 8192, BF16), rand(4096, 8192, dtype=BF16)

    def run(source):
        def step():
            return F.linear(F.linear(x0, w), w), source.to(GPU, non_blocking=True) * 2
        return step
    return run(numbers), run(pinned)


@null("channels_last")
def null_products_by_convolutions_of_one():
    def make(layout):
        w = rand(512, 512, 1, 1, dtype=F16, scale=0.05).contiguous(memory_format=layout)
        x = rand(64, 512, 28, 28, dtype=F16).contiguous(memory_format=torch.channels_last)
        return lambda: F.conv2d(x, w)
    return make(torch.contiguous_format), make(torch.channels_last)


@null("batch_products")
def null_three_large_products():
    x, ws = rand(8192, 4096, dtype=BF16), [weight(4096, 4096, BF16) for _ in range(3)]
    together = torch.cat(ws)
    return (lambda: [F.linear(x, w) for w in ws]), lambda: F.linear(x, together)
