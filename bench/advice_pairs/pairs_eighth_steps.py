# SPDX-License-Identifier: Apache-2.0
"""The whole steps of the eighth set: training, inference and data of programs that practitioners bring.

pairs_eighth.py says how the set was written, and takes these pairs in.
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

import pairs_seventh_steps as seventh
from pairs_practice import BF16, F16, compiled, rms_by_hand, without_gradients
from pairs_seventh_steps import Conformer, blocks, causal, training, with_adapters
from pairs_sixth import ints
from pairs_unseen import GPU, captured, pair, rand, weight, with_precision

seventh.PAIRS.clear()
PAIRS = seventh.PAIRS


# ---------------------------------------------------------------- language models

@pair("flash_attention", "fuse_norm", "fuse_pointwise", "remove_copies")
def decoder_fine_tuned_with_eager_attention():
    x, later = rand(4, 1024, 1024), torch.full((1024, 1024), -1e4, device=GPU).triu(1).to(BF16)

    def eager(q, k, v):
        scores = q @ k.mT / 8.0 + later
        return torch.softmax(scores, dim=-1, dtype=torch.float32).to(q.dtype) @ v

    def make(attend):
        model = blocks(3, 1024, 16, attend=attend)
        return training(model, lambda: model(x).float().pow(2).mean())
    return make(eager), make(causal)


@pair("recompute_less")
def adapters_trained_with_checkpoints_left_on():
    x = rand(8, 512, 1024)

    def make(kept):
        model, _ = with_adapters(4, 1024, 16, True)

        def loss():
            y = x
            for block in model:
                y = block(y) if kept else checkpoint(block, y, use_reentrant=False)
            return y.float().pow(2).mean()
        return training(model, loss)
    return make(False), make(True)


@pair("align_dimensions", "fuse_epilogue")
def gated_mlp_of_10922():
    x = rand(4096, 4096, dtype=BF16)

    def make(inner):
        gate, up, down = weight(inner, 4096, BF16), weight(inner, 4096, BF16), weight(4096, inner, BF16)
        return lambda: F.linear(F.silu(F.linear(x, gate)) * F.linear(x, up), down)
    return make(10922), make(11008)


@pair("fuse_norm", "fuse_pointwise", "compile_model")
def queries_and_keys_normed_by_hand():
    layers, x0 = [(weight(3072, 1024, BF16), weight(1024, 1024, BF16)) for _ in range(4)], rand(8, 1024, 1024, dtype=BF16)
    scale = torch.ones(64, device=GPU, dtype=BF16)

    def run(norm):
        def step():
            x = x0
            for w_in, w_out in layers:
                q, k, v = F.linear(x, w_in).view(8, 1024, 3, 16, 64).unbind(2)
                q, k = norm(q), norm(k)
                mixed = causal(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2))
                x = x + F.linear(mixed.transpose(1, 2).reshape(8, 1024, 1024), w_out)
            return x
        return without_gradients(step)
    return run(lambda y: rms_by_hand(y, scale)), run(lambda y: F.rms_norm(y, (64,), scale, 1e-6))


@pair("batch_products", "cut_host_work", "cuda_graphs", "compile_model")
def five_projections_of_one_token():
    width, inner, past = 1024, 2816, 256
    x0 = rand(1, width, dtype=BF16)
    apart = [[weight(out, width, BF16) for out in (width, width, width, inner, inner)] for _ in range(8)]
    joined = [(torch.cat(ws[:3]), torch.cat(ws[3:])) for ws in apart]
    ends = [(weight(width, width, BF16), weight(width, inner, BF16)) for _ in range(8)]
    caches = [(rand(1, 16, past, 64, dtype=BF16), rand(1, 16, past, 64, dtype=BF16)) for _ in range(8)]

    def run(project, gates):
        def step():
            x = x0
            for i, ((keys, values), (w_out, w_down)) in enumerate(zip(caches, ends)):
                q, k, v = project(i, x)
                keys[:, :, past - 1] = k.view(1, 16, 64)
                values[:, :, past - 1] = v.view(1, 16, 64)
                mixed = F.scaled_dot_product_attention(q.view(1, 16, 1, 64), keys, values)
                x = x + F.linear(mixed.reshape(1, width), w_out)
                gate, up = gates(i, x)
                x = x + F.linear(F.silu(gate) * up, w_down)
            return x
        return without_gradients(step)
    return (run(lambda i, x: [F.linear(x, w) for w in apart[i][:3]], lambda i, x: [F.linear(x, w) for w in apart[i][3:]]),
            run(lambda i, x: F.linear(x, joined[i][0]).chunk(3, -1), lambda i, x: F.linear(x, joined[i][1]).chunk(2, -1)))


@pair("cast_weights_once", "reuse_result", "quantize", "fuse_pointwise", "compile_model")
def weights_dequantised_for_each_token():
    x0 = rand(8, 4096, dtype=BF16)
    packed = [(torch.randint(-127, 128, (4096, 4096), device=GPU, dtype=torch.int8), rand(4096, 1, dtype=BF16, scale=2e-4)) for _ in range(6)]
    ready = [w.to(BF16) * scale for w, scale in packed]

    def run(of):
        def step():
            x = x0
            for i in range(6):
                x = torch.tanh(F.linear(x, of(i)))
            return x
        return step
    return run(lambda i: packed[i][0].to(BF16) * packed[i][1]), run(lambda i: ready[i])


@pair("remove_syncs", "cut_host_work")
def microbatches_divided_by_their_count_of_words():
    x, truth = rand(64, 128, 384), ints(2000, 64, 128)
    truth[torch.rand(64, 128, device=GPU) < 0.3] = -100

    def make(read):
        body, head = blocks(4, 384, 6), nn.Linear(384, 2000).to(GPU)
        model = nn.ModuleList([body, head])
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)

        def step():
            model.zero_grad()
            total = 0.0
            for part, words in zip(x.chunk(8), truth.chunk(8)):
                count = read((words != -100).sum())
                with torch.autocast(GPU, BF16):
                    loss = F.cross_entropy(head(body(part)).view(-1, 2000), words.reshape(-1), reduction="sum") / count
                loss.backward()
                total = total + read(loss.detach())
            optimizer.step()
            return total
        return step
    return make(lambda value: value.item()), make(lambda value: value)


@pair("fused_optimizer", "cut_host_work", "cuda_graphs", "compile_model", "fuse_pointwise")
def master_weights_updated_tensor_by_tensor():
    x = rand(16, 128, 512, dtype=BF16)

    def make(together):
        model = blocks(6, 512, 8).to(BF16)
        weights = list(model.parameters())
        masters = [w.detach().float().requires_grad_() for w in weights]
        optimizer = torch.optim.AdamW(masters, lr=1e-5, **({"fused": True} if together else {"foreach": False}))
        for master in masters:
            master.grad = torch.zeros_like(master)

        @torch.no_grad()
        def update():
            if together:
                torch._foreach_copy_([master.grad for master in masters], [w.grad for w in weights])
            else:
                for master, w in zip(masters, weights):
                    master.grad = w.grad.float()
            optimizer.step()
            if together:
                torch._foreach_copy_(weights, masters)
            else:
                for master, w in zip(masters, weights):
                    w.copy_(master)

        def step():
            model.zero_grad()
            model(x).float().pow(2).mean().backward()
            update()
        return step
    return make(False), make(True)


# ---------------------------------------------------------------- pictures and clips

class Denoiser(nn.Module):
    """Two halvings and two doublings of a picture, with its maps handed across."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = self.stage(4, 64), self.stage(64, 128, 2), self.stage(128, 256, 2)
        self.d, self.e, self.last = self.stage(256, 128), self.stage(256, 64), nn.Conv2d(128, 4, 3, padding=1)

    @staticmethod
    def stage(inner, out, stride=1):
        return nn.Sequential(nn.Conv2d(inner, out, 3, stride, 1), nn.BatchNorm2d(out), nn.SiLU(), nn.Conv2d(out, out, 3, 1, 1), nn.SiLU())

    def forward(self, x):
        a = self.a(x)
        b = self.b(a)
        d = self.d(F.interpolate(self.c(b), scale_factor=2.0))
        e = self.e(F.interpolate(torch.cat([d, b], 1), scale_factor=2.0))
        return self.last(torch.cat([e, a], 1))


@pair("channels_last", "remove_copies")
def denoiser_trained_in_planes():
    x0, noise = rand(32, 4, 128, 128), rand(32, 4, 128, 128)

    def make(layout):
        net, x = Denoiser().to(GPU).to(memory_format=layout), x0.to(memory_format=layout)
        return training(net, lambda: (net(x) - noise).float().pow(2).mean())
    return make(torch.contiguous_format), make(torch.channels_last)


@pair("channels_last")
def clips_of_video_in_planes():
    def make(layout):
        x = rand(16, 64, 16, 56, 56, dtype=F16).to(memory_format=layout)
        ws = [rand(64, 64, 3, 3, 3, dtype=F16, scale=0.024).to(memory_format=layout) for _ in range(3)]

        def step():
            y = x
            for w in ws:
                y = torch.relu(F.conv3d(y, w, padding=1))
            return y
        return step
    return make(torch.contiguous_format), make(torch.channels_last_3d)


@pair("leave_float64", "fuse_pointwise", "compile_model")
def noise_schedule_left_in_float64():
    x, noise, t = rand(64, 3, 256, 256), rand(64, 3, 256, 256), ints(1000, 64)
    w = rand(3, 3, 3, 3, scale=0.2)
    table = torch.from_numpy(np.cumprod(1 - np.linspace(1e-4, 0.02, 1000))).to(GPU)

    def run(alphas):
        def step():
            kept = alphas[t].view(-1, 1, 1, 1)
            noisy = kept.sqrt() * x + (1 - kept).sqrt() * noise
            guess = F.conv2d(noisy.float(), w, padding=1)
            clean = (noisy - (1 - kept).sqrt() * guess) / kept.sqrt()
            return (clean.clamp(-1, 1) - x).pow(2).mean()
        return step
    return run(table), run(table.float())


@pair("compile_model", "fuse_pointwise", "fuse_norm", "fuse_epilogue")
def diffusion_transformer_with_adaptive_norms():
    width, x0, when = 768, rand(16, 1024, 768, dtype=BF16), rand(16, 768, dtype=BF16)
    layers = [(weight(6 * width, width, BF16), weight(3 * width, width, BF16), weight(width, width, BF16),
               weight(4 * width, width, BF16), weight(width, 4 * width, BF16)) for _ in range(2)]

    def step():
        x = x0
        for w_when, w_qkv, w_out, w_up, w_down in layers:
            shift1, scale1, gate1, shift2, scale2, gate2 = F.linear(F.silu(when), w_when).unsqueeze(1).chunk(6, -1)
            y = F.layer_norm(x, (width,)) * (1 + scale1) + shift1
            q, k, v = F.linear(y, w_qkv).view(16, 1024, 3, 12, 64).permute(2, 0, 3, 1, 4).unbind(0)
            mixed = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(16, 1024, width)
            x = x + gate1 * F.linear(mixed, w_out)
            y = F.layer_norm(x, (width,)) * (1 + scale2) + shift2
            x = x + gate2 * F.linear(F.gelu(F.linear(y, w_up), approximate="tanh"), w_down)
        return x
    return without_gradients(step), without_gradients(compiled(step))


@pair("cut_host_work", "fill_the_device", "batch_products", "cuda_graphs", "compile_model")
def guidance_of_two_passes_in_turn():
    model = blocks(8, 512, 8, attend=F.scaled_dot_product_attention).to(F16)
    told, untold = rand(1, 256, 512, dtype=F16), rand(1, 256, 512, dtype=F16)

    def before():
        with_words, without = model(told), model(untold)
        return without + 7.5 * (with_words - without)

    def after():
        with_words, without = model(torch.cat([told, untold])).chunk(2)
        return without + 7.5 * (with_words - without)
    return without_gradients(before), without_gradients(after)


@pair("fill_the_device", "cut_host_work", "batch_products", "cuda_graphs", "compile_model")
def pictures_classified_one_by_one():
    layers = []
    for inner, out, stride in ((3, 64, 4), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1)):
        layers += [nn.Conv2d(inner, out, 3, stride, 1), nn.BatchNorm2d(out), nn.ReLU()]
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 1000))
    model = model.to(GPU).to(F16).to(memory_format=torch.channels_last).eval()
    pictures = rand(16, 3, 224, 224, dtype=F16).to(memory_format=torch.channels_last)
    return (without_gradients(lambda: torch.cat([model(pictures[i:i + 1]).argmax(1) for i in range(16)])),
            without_gradients(lambda: model(pictures).argmax(1)))


# ---------------------------------------------------------------- sound, graphs and control

@pair("fused_optimizer", "compile_model")
def conformer_with_the_default_adamw():
    x = rand(4, 100, 512)

    def make(**options):
        model = nn.Sequential(*[Conformer(512, 8) for _ in range(8)]).to(GPU)
        return training(model, lambda: model(x).float().pow(2).mean(), **options)
    return make(foreach=True), make(fused=True)


@pair("reuse_result", "cast_weights_once", "cut_host_work", "cuda_graphs", "compile_model")
def weight_norm_left_in_a_vocoder():
    directions = [rand(128, 128, 7, scale=0.03) for _ in range(12)]
    lengths = [v.norm(dim=(1, 2), keepdim=True) for v in directions]
    folded = [torch._weight_norm(v, g, 0) for v, g in zip(directions, lengths)]
    x0 = rand(1, 128, 4000)

    def run(of):
        def step():
            x = x0
            for i in range(12):
                x = x + F.conv1d(F.leaky_relu(x, 0.1), of(i), padding=3)
            return x
        return without_gradients(step)
    return run(lambda i: torch._weight_norm(directions[i], lengths[i], 0)), run(lambda i: folded[i])


@pair("tensor_cores")
def edge_messages_trained_in_float32():
    nodes, edges, width = 8192, 65536, 256
    source, target, x = ints(nodes, edges), ints(nodes, edges), rand(nodes, width)

    def make(precision):
        layers = nn.ModuleList(nn.Sequential(nn.Linear(2 * width, 512), nn.SiLU(), nn.Linear(512, width)) for _ in range(3)).to(GPU)

        def loss():
            y = x
            for layer in layers:
                sent = layer(torch.cat([y.index_select(0, source), y.index_select(0, target)], 1))
                y = y + torch.zeros_like(y).index_add(0, target, sent)
            return y.pow(2).mean()
        return with_precision(precision, training(layers, loss, dtype=None))
    return make("highest"), make("high")


@pair("remove_syncs", "cut_host_work")
def graph_states_repeated_for_their_nodes():
    sizes = torch.randint(8, 24, (1024,))
    total, sizes = int(sizes.sum()), sizes.to(GPU)
    x0, whole = rand(total, 256), rand(1024, 256)
    ws = [(weight(256, 256), weight(256, 256)) for _ in range(8)]

    def run(**options):
        def step():
            x = x0
            for w_node, w_graph in ws:
                spread = torch.repeat_interleave(F.linear(whole, w_graph), sizes, dim=0, **options)
                x = torch.relu(F.linear(x, w_node) + spread)
            return x
        return step
    return run(), run(output_size=total)


@pair("cuda_graphs", "compile_model", "cut_host_work")
def actions_denoised_in_twenty_steps():
    seen, noise, times = rand(1, 256), rand(1, 64), rand(20, 1, 32)
    w_in, w_mid, w_out, b = weight(512, 352), weight(512, 512), weight(64, 512), rand(512, scale=0.1)

    def step():
        x = noise
        for t in range(20):
            h = F.mish(F.linear(torch.cat([x, seen, times[t]], 1), w_in, b))
            h = h + F.mish(F.linear(h, w_mid, b))
            x = 1.01 * (x - 0.05 * F.linear(h, w_out))
        return x.clamp(-1, 1)
    return without_gradients(step), captured(without_gradients(step))


@pair("keep_on_device", "remove_syncs", "pin_memory", "feed_the_device")
def replay_priorities_drawn_by_numpy():
    count, batch = 1 << 18, 4096
    states, goals, random = rand(count, 64), rand(count), np.random.default_rng(0)
    host, device = np.ones(count), torch.ones(count, device=GPU)

    def drawn_by_numpy():
        shares = np.cumsum(host)
        at = np.searchsorted(shares, random.random(batch) * shares[-1]).clip(max=count - 1)
        return torch.from_numpy(at).to(GPU)

    def stored_by_numpy(at, priority):
        host[at.cpu().numpy()] = priority.cpu().numpy()

    def stored(at, priority):
        device[at] = priority

    def make(draw, store):
        net = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1)).to(GPU)
        optimizer = torch.optim.Adam(net.parameters(), lr=1e-5, fused=True)

        def step():
            at = draw()
            errors = net(states[at]).squeeze(1) - goals[at]
            net.zero_grad()
            errors.pow(2).mean().backward()
            optimizer.step()
            store(at, errors.detach().abs() + 0.01)
        return step
    return make(drawn_by_numpy, stored_by_numpy), make(lambda: torch.multinomial(device, batch, True), stored)


# ---------------------------------------------------------------- memory of the host

@pair("keep_on_device", "remove_syncs", "pin_memory", "overlap_copies")
def average_of_the_weights_kept_on_the_host():
    x = rand(16, 128, 256)

    def make(where):
        model = blocks(4, 256, 4)
        train = training(model, lambda: model(x).float().pow(2).mean())
        weights = [p.detach() for p in model.parameters()]
        averages = [w.clone().to(where) for w in weights]

        def step():
            train()
            for average, w in zip(averages, weights):
                average.lerp_(w.to(where), 0.001)
        return step
    return make("cpu"), make(GPU)


@pair("keep_on_device", "pin_memory", "overlap_copies", "feed_the_device")
def table_of_users_left_on_the_host():
    table, ids = torch.randn(500_000, 64), torch.randint(500_000, (16384 * 8,))
    there, w1, w2 = table.to(GPU), weight(256, 512), weight(1, 256)

    def run(looked_up):
        return lambda: torch.sigmoid(F.linear(torch.relu(F.linear(looked_up().view(16384, 512), w1)), w2))
    return run(lambda: F.embedding(ids, table).to(GPU)), run(lambda: F.embedding(ids.to(GPU), there))


@pair("pin_memory", "overlap_copies", "keep_on_device")
def activations_offloaded_to_ordinary_memory():
    x = rand(2048, 1024)

    def make(pinned):
        model = nn.Sequential(*[part for _ in range(3) for part in (nn.Linear(1024, 1024), nn.GELU())]).to(GPU)

        def loss():
            with torch.autograd.graph.save_on_cpu(pin_memory=pinned):
                return model(x).pow(2).mean()
        return training(model, loss, dtype=None)
    return make(False), make(True)


@pair("pin_memory", "feed_the_device", "cut_host_work", "overlap_copies")
def batch_pinned_again_in_each_step():
    batch, w = torch.randn(64, 3, 224, 224), rand(32, 3, 7, 7, scale=0.08)
    pinned = batch.pin_memory()

    def run(of):
        return lambda: torch.relu(F.conv2d(of().to(GPU, non_blocking=True), w, stride=4)).mean((2, 3))
    return run(batch.pin_memory), run(lambda: pinned)


@pair("feed_the_device")
def neighbours_sampled_in_the_loop():
    nodes = 200_000
    links = np.random.default_rng(0).integers(nodes, size=(nodes, 24))
    features = np.random.default_rng(1).standard_normal((nodes, 64), dtype=np.float32)

    class Sampled(torch.utils.data.Dataset):
        def __len__(self):
            return 1 << 20

        def __getitem__(self, at):
            random = np.random.default_rng(at)
            near = links[random.integers(nodes, size=256)][:, random.permutation(24)[:10]].ravel()
            far = links[near][:, random.permutation(24)[:10]]
            return torch.from_numpy(features[near]), torch.from_numpy(features[far].mean(1))

    def make(workers):
        first, second = nn.Linear(128, 128).to(GPU), nn.Linear(128, 41).to(GPU)
        options = {"persistent_workers": True, "prefetch_factor": 2} if workers else {}
        batches = iter(torch.utils.data.DataLoader(Sampled(), batch_size=None, num_workers=workers, **options))

        def loss():
            near, far = (part.to(GPU) for part in next(batches))
            hidden = torch.relu(first(torch.cat([near, far], 1)))
            return second(hidden.view(256, 10, 128).mean(1)).pow(2).mean()
        return training(nn.ModuleList([first, second]), loss, dtype=None)
    return make(0), make(8)
