# SPDX-License-Identifier: Apache-2.0
"""A seventh set, of whole steps and of fields that the first six do not have: written before any rule was changed after the sixth.

As in pairs_sixth.py; half of it is set aside by the hash of its names. Written from what practitioners change, without sight
of the rules: for some of these programs a trace may show too little. `pairs_listing.py` prints the set without PyTorch.
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

import triton
import triton.language as tl

import pairs_sixth as sixth
from pairs_practice import BF16, F16, compiled, without_gradients
from pairs_sixth import ints
from pairs_unseen import GPU, captured, null, pair, rand, weight, with_precision

sixth.PAIRS.clear()
PAIRS = sixth.PAIRS
SYNCED = ["microbatches_of_two_sequences", "denoiser_with_two_averages_of_its_weights", "null_graph_of_large_transforms"]


def causal(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


class Block(nn.Module):
    """A layer of a transformer that norms first."""

    def __init__(self, width, heads, norm=nn.LayerNorm, attend=causal):
        super().__init__()
        self.heads, self.attend = heads, attend
        self.norm1, self.norm2 = norm(width), norm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        qkv = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        x = x + self.out(self.attend(q, k, v).transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


def blocks(count, width, heads, **options):
    return nn.Sequential(*[Block(width, heads, **options) for _ in range(count)]).to(GPU)


def training(model, loss, dtype=BF16, **options):
    """A step of AdamW with the gradients of `loss()`."""
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-5, **(options or {"fused": True}))

    def step():
        model.zero_grad()
        with torch.autocast(GPU, dtype or BF16, enabled=dtype is not None):
            value = loss()
        value.backward()
        optimizer.step()
    return step


# ---------------------------------------------------------------- whole steps of language models

@pair("reduce_problem")
def answers_learnt_with_logits_of_the_prompt():
    words, width = 32000, 768
    text, targets = ints(words, 8, 512), ints(words, 8, 512)
    targets[:, :384] = -100
    kept = (targets.view(-1) != -100).nonzero().squeeze(1)
    answers = targets.view(-1)[kept]

    def make(cut):
        table, head = nn.Embedding(words, width).to(GPU), nn.Linear(width, words, bias=False).to(GPU)
        body, norm = blocks(4, width, 12), nn.LayerNorm(width).to(GPU)

        def loss():
            hidden = norm(body(table(text))).view(-1, width)
            if cut:
                return F.cross_entropy(head(hidden.index_select(0, kept)), answers)
            return F.cross_entropy(head(hidden), targets.view(-1), ignore_index=-100)
        return training(nn.ModuleList([table, body, norm, head]), loss)
    return make(False), make(True)


class LowRank(nn.Module):
    def __init__(self, base, rank=16):
        super().__init__()
        self.base = base
        self.a = nn.Parameter(rand(rank, base.in_features, scale=0.02))
        self.b = nn.Parameter(torch.zeros(base.out_features, rank, device=GPU))

    def forward(self, x):
        return self.base(x) + F.linear(F.linear(x, self.a), self.b)


def with_adapters(count, width, heads, frozen):
    """The model and its adapters' parameters; the rest of it takes no gradients if `frozen`."""
    model = blocks(count, width, heads)
    if frozen:
        model.requires_grad_(False)
    for block in model:
        for name in ("qkv", "out", "up", "down"):
            setattr(block, name, LowRank(getattr(block, name)))
    return model, [p for name, p in model.named_parameters() if name.endswith((".a", ".b"))]


@pair("reduce_problem")
def adapters_trained_over_weights_that_take_gradients():
    x = rand(8, 512, 1024)

    def make(frozen):
        model, adapters = with_adapters(4, 1024, 16, frozen)
        optimizer = torch.optim.AdamW(adapters, lr=1e-5, fused=True)

        def step():
            model.zero_grad()
            with torch.autocast(GPU, BF16):
                loss = model(x).float().pow(2).mean()
            loss.backward()
            optimizer.step()
        return step
    return make(False), make(True)


@pair("cut_host_work", "fill_the_device", "cuda_graphs", "compile_model")
def microbatches_of_two_sequences():
    x = rand(16, 64, 384)

    def make(parts):
        model = blocks(6, 384, 6)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)

        def step():
            model.zero_grad()
            for part in x.chunk(parts):
                with torch.autocast(GPU, BF16):
                    loss = model(part).float().pow(2).mean() / parts
                loss.backward()
            optimizer.step()
        return step
    return make(8), make(1)


@pair("remove_syncs", "cut_host_work")
def loss_scale_that_asks_each_gradient():
    x, scale = rand(32, 128, 512), 1024.0

    def make(asks):
        model = blocks(6, 512, 8)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-5, momentum=0.9, fused=True)

        def step():
            model.zero_grad()
            with torch.autocast(GPU, F16):
                loss = model(x).float().pow(2).mean()
            (loss * scale).backward()
            grads = [p.grad for p in model.parameters()]
            if asks:
                if not all([bool(torch.isfinite(grad).all()) for grad in grads]):
                    return
                torch._foreach_mul_(grads, 1 / scale)
            else:
                finite = torch.isfinite(torch.stack(torch._foreach_norm(grads))).all()
                torch._foreach_mul_(grads, finite / scale)
            optimizer.step()
        return step
    return make(True), make(False)


@pair("fused_optimizer", "cut_host_work", "compile_model", "cuda_graphs", "fuse_pointwise")
def lion_written_tensor_by_tensor():
    x, lr, b1, b2 = rand(64, 65, 256), 1e-5, 0.9, 0.99

    def make(together):
        model = blocks(8, 256, 4)
        weights = list(model.parameters())
        moments = [torch.zeros_like(w) for w in weights]

        @torch.no_grad()
        def update():
            grads = [w.grad for w in weights]
            if together:
                signs = torch._foreach_mul(moments, b1)
                torch._foreach_add_(signs, grads, alpha=1 - b1)
                torch._foreach_sign_(signs)
                torch._foreach_add_(weights, signs, alpha=-lr)
                torch._foreach_lerp_(moments, grads, 1 - b2)
                return
            for w, g, m in zip(weights, grads, moments):
                w.add_(torch.sign(m * b1 + g * (1 - b1)), alpha=-lr)
                m.mul_(b2).add_(g, alpha=1 - b2)

        def step():
            model.zero_grad()
            with torch.autocast(GPU, BF16):
                loss = model(x).float().pow(2).mean()
            loss.backward()
            update()
        return step
    return make(False), make(True)


class OwnNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        y = x.float()
        return y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


@pair("fuse_norm", "compile_model", "fuse_pointwise")
def decoder_trained_with_its_own_norm():
    x = rand(16, 512, 1024)

    def make(norm):
        model = blocks(4, 1024, 16, norm=norm)
        return training(model, lambda: model(x).float().pow(2).mean())
    return make(OwnNorm), make(lambda width: nn.RMSNorm(width, eps=1e-6))


class Crossed(nn.Module):
    """A layer that looks at a memory."""

    def __init__(self, width, heads, attend):
        super().__init__()
        self.heads, self.attend = heads, attend
        self.norm, self.q, self.kv, self.out = nn.LayerNorm(width), nn.Linear(width, width), nn.Linear(width, 2 * width), nn.Linear(width, width)

    def forward(self, x, memory):
        batch, length, width = x.shape
        q = self.q(self.norm(x)).view(batch, length, self.heads, -1).transpose(1, 2)
        k, v = self.kv(memory).view(batch, memory.shape[1], 2, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        return x + self.out(self.attend(q, k, v).transpose(1, 2).reshape(batch, length, width))


@pair("flash_attention", "fuse_norm", "fuse_pointwise")
def translator_trained_with_products_of_scores():
    width, heads, length = 512, 8, 768
    source, target = rand(16, length, width), rand(16, length, width)
    future = torch.ones(length, length, device=GPU, dtype=torch.bool).triu(1)

    def by_products(hidden):
        def attend(q, k, v):
            scores = (q @ k.mT) * q.shape[-1] ** -0.5
            if hidden:
                scores = scores.masked_fill(future, float("-inf"))
            return torch.softmax(scores, dim=-1) @ v
        return attend

    def make(whole, masked):
        encoder, decoder = blocks(2, width, heads, attend=whole), blocks(2, width, heads, attend=masked)
        across = nn.ModuleList(Crossed(width, heads, whole) for _ in range(2)).to(GPU)

        def loss():
            memory, y = encoder(source), target
            for layer, cross in zip(decoder, across):
                y = cross(layer(y), memory)
            return y.float().pow(2).mean()
        return training(nn.ModuleList([encoder, decoder, across]), loss)
    return make(by_products(False), by_products(True)), make(F.scaled_dot_product_attention, causal)


@pair("quantize")
def sixteen_users_served_by_a_wide_decoder():
    width, inner, heads, kv_heads, each, past = 8192, 28672, 64, 8, 128, 512
    w_qkv, w_out = weight((heads + 2 * kv_heads) * each, width, BF16), weight(width, width, BF16)
    w_gate, w_up, w_down = weight(inner, width, BF16), weight(inner, width, BF16), weight(width, inner, BF16)
    keys, values = rand(16, kv_heads, past, each, dtype=BF16), rand(16, kv_heads, past, each, dtype=BF16)
    x0, ones, unit = rand(16, width, dtype=BF16), torch.ones(width, device=GPU, dtype=BF16), torch.ones((), device=GPU)
    wide = (w_qkv, w_out, w_gate, w_up, w_down)
    narrow = tuple(w.to(torch.float8_e4m3fn).t() for w in wide)

    def product8(x, w):
        return torch._scaled_mm(x.to(torch.float8_e4m3fn), w, scale_a=unit, scale_b=unit, out_dtype=BF16)

    def run(product, weights):
        qkv, out, gate, up, down = weights

        def step():
            x = F.rms_norm(x0, (width,), ones)
            q = product(x, qkv)[:, :heads * each].reshape(16, kv_heads, heads // kv_heads, each)
            mixed = F.scaled_dot_product_attention(q, keys, values).reshape(16, width)
            y = x0 + product(mixed, out)
            z = F.rms_norm(y, (width,), ones)
            return y + product(F.silu(product(z, gate)) * product(z, up), down)
        return without_gradients(step)
    return run(F.linear, wide), run(product8, narrow)


@pair("remove_copies", "flash_attention", "reduce_problem")
def keys_repeated_for_grouped_queries():
    layers, batch, heads, kv_heads, each, past = 4, 16, 32, 8, 128, 2048
    caches = [(rand(batch, kv_heads, past, each, dtype=BF16), rand(batch, kv_heads, past, each, dtype=BF16)) for _ in range(layers)]
    weights, x0 = [weight(heads * each, heads * each, BF16) for _ in range(layers)], rand(batch, heads * each, dtype=BF16)

    def repeated(q, k, v):
        k, v = (y.repeat_interleave(heads // kv_heads, dim=1) for y in (k, v))
        return F.scaled_dot_product_attention(q.view(batch, heads, 1, each), k, v)

    def grouped(q, k, v):
        return F.scaled_dot_product_attention(q.view(batch, kv_heads, heads // kv_heads, each), k, v)

    def run(attend):
        def step():
            x = x0
            for w, (k, v) in zip(weights, caches):
                x = x + attend(F.linear(x, w), k, v).reshape(batch, heads * each)
            return x
        return without_gradients(step)
    return run(repeated), run(grouped)


@pair("cast_weights_once", "remove_copies", "reuse_result")
def cache_kept_in_float32_and_cast_for_each_token():
    caches = [(rand(8, 16, 4096, 64), rand(8, 16, 4096, 64)) for _ in range(4)]
    short = [(k.to(BF16), v.to(BF16)) for k, v in caches]
    w, x0 = weight(1024, 1024, BF16), rand(8, 1024, dtype=BF16)

    def run(of):
        def step():
            x = x0
            for k, v in of:
                q = F.linear(x, w).view(8, 16, 1, 64)
                x = x + F.scaled_dot_product_attention(q, k.to(BF16), v.to(BF16)).reshape(8, 1024)
            return x
        return without_gradients(step)
    return run(caches), run(short)


# ---------------------------------------------------------------- whole steps of sound and pictures

class Conformer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.first, self.last = (nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, width))
                                 for _ in range(2))
        self.block = Block(width, heads, attend=F.scaled_dot_product_attention)
        self.norm, self.wide, self.back = nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.Linear(width, width)
        self.depth = nn.Conv1d(width, width, 15, padding=7, groups=width)

    def forward(self, x):
        x = self.block(x + 0.5 * self.first(x))
        y = F.glu(self.wide(self.norm(x)), dim=-1).transpose(1, 2)
        x = x + self.back(F.silu(self.depth(y)).transpose(1, 2))
        return x + 0.5 * self.last(x)


@pair("tensor_cores")
def conformer_trained_in_float32():
    x = rand(16, 300, 512)

    def make(precision):
        model = nn.Sequential(*[Conformer(512, 8) for _ in range(2)]).to(GPU)
        return with_precision(precision, training(model, lambda: model(x).pow(2).mean(), dtype=None))
    return make("highest"), make("high")


@pair("channels_last", "remove_copies")
def pictures_invented_and_judged_in_planes():
    real, noise = rand(256, 3, 64, 64), rand(256, 128, 1, 1)
    ones, zeros = torch.ones(256, device=GPU), torch.zeros(256, device=GPU)

    def make(layout):
        sizes, maker, judge = [128, 512, 256, 128, 64], [], []
        for i, (inner, out) in enumerate(zip(sizes, sizes[1:])):
            maker += [nn.ConvTranspose2d(inner, out, 4, 2 if i else 1, 1 if i else 0, bias=False), nn.BatchNorm2d(out), nn.ReLU()]
        maker += [nn.ConvTranspose2d(64, 3, 4, 2, 1), nn.Tanh()]
        for inner, out in zip([3, 64, 128, 256], [64, 128, 256, 512]):
            judge += [nn.Conv2d(inner, out, 4, 2, 1), nn.LeakyReLU(0.2)]
        judge += [nn.Conv2d(512, 1, 4), nn.Flatten(0)]
        maker, judge = (nn.Sequential(*layers).to(GPU).to(memory_format=layout) for layers in (maker, judge))
        optimizers = [torch.optim.Adam(model.parameters(), lr=1e-5, fused=True) for model in (judge, maker)]
        seen, against = real.to(memory_format=layout), F.binary_cross_entropy_with_logits

        def step():
            with torch.autocast(GPU, BF16):
                made = maker(noise)
                loss = against(judge(seen), ones) + against(judge(made.detach()), zeros)
            judge.zero_grad()
            loss.backward()
            optimizers[0].step()
            with torch.autocast(GPU, BF16):
                loss = against(judge(made), ones)
            maker.zero_grad()
            loss.backward()
            optimizers[1].step()
        return step
    return make(torch.contiguous_format), make(torch.channels_last)


@pair("keep_on_device", "remove_syncs", "pin_memory", "overlap_copies")
def confusion_of_classes_counted_by_numpy():
    x = rand(8, 3, 256, 256).to(memory_format=torch.channels_last)
    truth = ints(21, 8, 256, 256)
    truth_host = truth.cpu().numpy().ravel()

    def make(count):
        model = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 64, 3, stride=2, padding=1), nn.ReLU(),
                              nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(), nn.Upsample(scale_factor=2), nn.Conv2d(64, 21, 1))
        model = model.to(GPU).to(memory_format=torch.channels_last)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, fused=True)

        def step():
            model.zero_grad()
            with torch.autocast(GPU, BF16):
                scores = model(x)
                loss = F.cross_entropy(scores, truth)
            loss.backward()
            optimizer.step()
            return count(scores.detach().argmax(1))
        return step
    return (make(lambda guess: np.bincount(truth_host * 21 + guess.cpu().numpy().ravel(), minlength=441)),
            make(lambda guess: torch.bincount((truth * 21 + guess).view(-1), minlength=441)))


@pair("reuse_result", "reduce_problem")
def frozen_backbone_run_for_each_of_four_heads():
    x = rand(64, 3, 224, 224).to(memory_format=torch.channels_last)
    labels = [ints(10, 64) for _ in range(4)]
    layers = []
    for inner, out, stride in ((3, 64, 4), (64, 128, 2), (128, 256, 1), (256, 256, 2)):
        layers += [nn.Conv2d(inner, out, 3, stride, 1), nn.BatchNorm2d(out), nn.ReLU()]
    backbone = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten()).to(GPU).to(memory_format=torch.channels_last).eval()

    def features():
        with torch.no_grad():
            return backbone(x)

    def make(once):
        heads = nn.ModuleList(nn.Linear(256, 10) for _ in range(4)).to(GPU)

        def loss():
            of = features() if once else None
            return sum(F.cross_entropy(head(of if once else features()), y) for head, y in zip(heads, labels))
        return training(heads, loss)
    return make(False), make(True)


@pair("cut_host_work", "fused_optimizer", "fuse_pointwise", "compile_model", "cuda_graphs")
def denoiser_with_two_averages_of_its_weights():
    x = rand(16, 64, 32, 32).to(memory_format=torch.channels_last)

    def make(together):
        layers = [part for _ in range(10) for part in (nn.Conv2d(64, 64, 3, padding=1), nn.GroupNorm(8, 64), nn.SiLU())]
        model = nn.Sequential(*layers).to(GPU).to(memory_format=torch.channels_last)
        train = training(model, lambda: (model(x) - x).float().pow(2).mean())
        weights = [p.detach() for p in model.parameters()]
        averages = [{name: p.clone() for name, p in model.state_dict().items()} for _ in range(2)]
        lists = [list(average.values()) for average in averages]

        def step():
            train()
            for average, values, keep in zip(averages, lists, (0.99, 0.999)):
                if together:
                    torch._foreach_lerp_(values, weights, 1 - keep)
                    continue
                for name, value in model.state_dict().items():
                    average[name] = keep * average[name] + (1 - keep) * value
        return step
    return make(False), make(True)


@pair("feed_the_device")
def noisy_speech_mixed_in_the_loop():
    class Speech(torch.utils.data.Dataset):
        def __len__(self):
            return 1 << 20

        def __getitem__(self, at):
            random = np.random.default_rng(at)
            voice, noise = random.standard_normal(16000), random.standard_normal(16000)
            room = np.fft.irfft(np.fft.rfft(voice) * np.fft.rfft(noise * 0.01), 16000)
            return torch.from_numpy((voice + 0.3 * noise + room).astype(np.float32))

    def make(workers):
        model = nn.Sequential(nn.Conv1d(1, 64, 16, 8), nn.ReLU(), nn.Conv1d(64, 128, 8, 4), nn.ReLU(), nn.Conv1d(128, 128, 8, 4), nn.ReLU(),
                              nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(128, 35)).to(GPU)
        options = {"persistent_workers": True, "prefetch_factor": 4} if workers else {}
        batches = iter(torch.utils.data.DataLoader(Speech(), batch_size=16, num_workers=workers, **options))
        return training(model, lambda: model(next(batches).to(GPU).unsqueeze(1)).pow(2).mean(), dtype=None)
    return make(0), make(8)


@pair("cuda_graphs", "compile_model", "cut_host_work")
def sentence_spoken_by_a_stack_of_convolutions():
    ws, b = [rand(256, 256, 5, scale=0.03) for _ in range(12)], rand(256, scale=0.1)
    x0, ones = rand(1, 256, 160), torch.ones(256, device=GPU)

    def step():
        x = x0
        for w in ws:
            y = torch.relu(F.conv1d(x, w, b, padding=2))
            x = x + F.layer_norm(y.transpose(1, 2), (256,), ones).transpose(1, 2)
        return x
    return without_gradients(step), without_gradients(captured(without_gradients(step)))


@pair("compile_model", "fuse_pointwise", "fuse_epilogue")
def radiance_field_in_training():
    points, gaps, colours = rand(4096, 64, 3), rand(4096, 64).abs() * 0.02, rand(4096, 3)
    waves = 2.0 ** torch.arange(10, device=GPU)

    def make(wrap):
        net = nn.Sequential(nn.Linear(63, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 4)).to(GPU)

        def render(places, lengths):
            angles = (places.unsqueeze(-1) * waves).flatten(-2)
            out = net(torch.cat([places, torch.sin(angles), torch.cos(angles)], -1)).float()
            depth = F.softplus(out[..., 3]) * lengths
            share = (1 - torch.exp(-depth)) * torch.exp(depth - depth.cumsum(-1))
            return (share.unsqueeze(-1) * torch.sigmoid(out[..., :3])).sum(1)
        drawn = wrap(render)
        return training(net, lambda: (drawn(points, gaps) - colours).pow(2).mean())
    return make(lambda work: work), make(compiled)


@pair("remove_syncs", "cut_host_work")
def crops_at_corners_read_from_the_device():
    x, side = rand(96, 3, 320, 320, dtype=F16), 256
    top, left = ints(64, 96), ints(64, 96)
    item, colour = torch.arange(96, device=GPU).view(96, 1, 1, 1), torch.arange(3, device=GPU).view(1, 3, 1, 1)
    line = torch.arange(side, device=GPU)

    def before():
        return torch.stack([x[i, :, int(top[i]):int(top[i]) + side, int(left[i]):int(left[i]) + side] for i in range(96)])

    def after():
        rows, columns = top.view(96, 1, 1, 1) + line.view(1, 1, side, 1), left.view(96, 1, 1, 1) + line
        return x[item, colour, rows, columns]
    return before, after


@pair("recompute_less")
def checkpointed_net_of_points():
    x = rand(32, 4096, 3)

    def make(kept):
        sizes = [3, 64, 128, 256, 1024]
        stages = nn.ModuleList(nn.Sequential(nn.Linear(inner, out), nn.LayerNorm(out), nn.GELU()) for inner, out in zip(sizes, sizes[1:])).to(GPU)
        head = nn.Linear(1024, 40).to(GPU)

        def loss():
            y = x
            for stage in stages:
                y = stage(y) if kept else checkpoint(stage, y, use_reentrant=False)
            return head(y.amax(1)).float().pow(2).mean()
        return training(nn.ModuleList([stages, head]), loss)
    return make(False), make(True)


# ---------------------------------------------------------------- reinforcement learning and logging

@pair("cut_host_work", "cuda_graphs", "compile_model", "batch_products")
def advantages_summed_backwards_before_an_update():
    times, games = 128, 1024
    rewards, values = rand(times, games), rand(times + 1, games)
    seen, actions, old = rand(times * games, 64), ints(8, times * games), -rand(times * games).abs()
    place = torch.arange(times, device=GPU)
    later = place - place[:, None]
    powers = torch.where(later >= 0, 0.9405 ** later.clamp(min=0).float(), 0.0)

    def one_by_one():
        advantage, found = torch.zeros(games, device=GPU), []
        for t in reversed(range(times)):
            advantage = rewards[t] + 0.99 * values[t + 1] - values[t] + 0.9405 * advantage
            found.append(advantage)
        return torch.stack(found[::-1])

    def at_once():
        return powers @ (rewards + 0.99 * values[1:] - values[:-1])

    def make(sums):
        body = nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 9)).to(GPU)
        optimizer = torch.optim.Adam(body.parameters(), lr=1e-5, fused=True)

        def step():
            advantages = sums()
            aims, gains = (advantages + values[:-1]).view(-1), advantages.view(-1)
            for at in range(0, times * games, 32768):
                part = slice(at, at + 32768)
                out = body(seen[part])
                chosen = F.log_softmax(out[:, :8], -1).gather(1, actions[part].unsqueeze(1)).squeeze(1)
                ratio = (chosen - old[part]).exp()
                gain = torch.minimum(ratio * gains[part], ratio.clamp(0.8, 1.2) * gains[part]).mean()
                body.zero_grad()
                (0.5 * (out[:, 8] - aims[part]).pow(2).mean() - gain).backward()
                optimizer.step()
        return step
    return make(one_by_one), make(at_once)


@pair("keep_on_device", "remove_syncs", "feed_the_device")
def carts_and_poles_moved_by_numpy():
    first, second, start = weight(128, 4), weight(2, 128), rand(65536, 4, scale=0.05)

    def moved(state, push, of):
        x, speed, angle, turn = state[:, 0], state[:, 1], state[:, 2], state[:, 3]
        sine, cosine = of.sin(angle), of.cos(angle)
        pull = (push + 0.05 * turn * turn * sine) / 1.1
        turning = (9.8 * sine - cosine * pull) / (0.5 * (1.3333 - 0.1 * cosine * cosine / 1.1))
        moving = pull - 0.05 * turning * cosine / 1.1
        return of.stack([x + 0.02 * speed, speed + 0.02 * moving, angle + 0.02 * turn, turn + 0.02 * turning], 1)

    def policy(state):
        scores = F.linear(torch.tanh(F.linear(state, first)), second)
        return 10 * torch.sign(scores[:, 1] - scores[:, 0])

    def before():
        state = start
        for _ in range(6):
            push = policy(state).cpu().numpy()
            state = torch.from_numpy(moved(state.cpu().numpy(), push, np)).to(GPU)
        return state

    def after():
        state = start
        for _ in range(6):
            state = moved(state, policy(state), torch)
        return state
    return before, after


@pair("keep_on_device", "remove_syncs", "pin_memory", "overlap_copies")
def gradients_drawn_as_histograms_on_the_host():
    x = rand(4096, 1024)

    def make(where):
        model = nn.Sequential(*[part for _ in range(3) for part in (nn.Linear(1024, 1024), nn.ReLU())]).to(GPU)
        train = training(model, lambda: model(x).pow(2).mean())

        def step():
            train()
            return [torch.histc(p.grad.to(where), 64, -1, 1) for p in model.parameters() if p.dim() == 2]
        return step
    return make("cpu"), make(GPU)


@pair("cuda_graphs", "compile_model", "cut_host_work")
def autoencoder_of_sensors_in_training():
    x = rand(512, 64)

    def make():
        model = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 32), nn.GELU(), nn.Linear(32, 128), nn.GELU(), nn.Linear(128, 64)).to(GPU)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-5, capturable=True)

        def step():
            model.zero_grad()
            (model(x) - x).pow(2).mean().backward()
            optimizer.step()
        return step
    return make(), captured(make())


# ---------------------------------------------------------------- graphs, points and retrieval

@pair("reduce_problem")
def citations_multiplied_as_a_dense_matrix():
    nodes, width = 8192, 128
    dense = torch.zeros(nodes, nodes, device=GPU)
    dense[torch.arange(nodes, device=GPU).repeat(16), ints(nodes, 16 * nodes)] = 1 / 16
    sparse = dense.to_sparse_csr()
    x0, ws = rand(nodes, width), [weight(width, width) for _ in range(3)]

    def run(links):
        def step():
            x = x0
            for w in ws:
                x = torch.relu(links @ F.linear(x, w))
            return x
        return step
    return run(dense), run(sparse)


@pair("reduce_problem", "slow_op", "local_gathers")
def messages_indexed_with_brackets_in_training():
    nodes, edges, width = 65536, 1 << 20, 64
    source, target = ints(nodes, edges), ints(nodes, edges)
    x0 = rand(nodes, width)

    def make(of):
        layers = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(3)).to(GPU)

        def loss():
            x = x0
            for layer in layers:
                summed = torch.zeros(nodes, width, device=GPU).index_add(0, target, of(x))
                x = torch.relu(layer(torch.cat([x, summed], 1)))
            return x.pow(2).mean()
        return training(layers, loss, dtype=None)
    return make(lambda x: x[source]), make(lambda x: x.index_select(0, source))


@pair("remove_syncs", "cut_host_work", "cuda_graphs")
def farthest_points_found_with_the_host():
    points = rand(32768, 3)

    def run(first, place):
        def step():
            at, near, chosen = first, torch.full((32768,), float("inf"), device=GPU), []
            for _ in range(64):
                chosen.append(at)
                near = torch.minimum(near, (points - points[at]).pow(2).sum(1))
                at = place(near.argmax())
            return chosen
        return step
    return run(0, int), run(torch.zeros(1, dtype=torch.long, device=GPU), lambda at: at.view(1))


@pair("local_gathers", "coalesce")
def rays_through_a_volume_in_random_order():
    volume, count = rand(1, 4, 256, 256, 256), 1 << 21
    at = torch.rand(count, 3, device=GPU) * 2 - 1
    cell = ((at + 1) * 127.5).long()
    order = torch.argsort((cell[:, 2] * 256 + cell[:, 1]) * 256 + cell[:, 0])
    grid, ordered = at.view(1, 1, 1, count, 3), at[order].view(1, 1, 1, count, 3)
    return (lambda: F.grid_sample(volume, grid, align_corners=True)), lambda: F.grid_sample(volume, ordered, align_corners=True)


@pair("fuse_pointwise", "compile_model")
def overlaps_of_all_boxes():
    corner, other = rand(8192, 2), rand(8192, 2)
    a, b = (torch.cat([low, low + rand(8192, 2).abs()], 1) for low in (corner, other))

    def step():
        low, high = torch.maximum(a[:, None, :2], b[:, :2]), torch.minimum(a[:, None, 2:], b[:, 2:])
        side = (high - low).clamp(min=0)
        both = side[..., 0] * side[..., 1]
        area_a, area_b = (a[:, 2] - a[:, 0]) * (a[:, 3] - a[:, 1]), (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])
        return both / (area_a[:, None] + area_b - both)
    return step, compiled(step)


@pair("reuse_result", "fuse_norm", "cast_weights_once")
def documents_normalised_for_each_query():
    documents, questions = rand(1 << 20, 256, dtype=F16), rand(64, 256, dtype=F16)
    ready = F.normalize(documents, dim=1)

    def run(of):
        return lambda: (F.normalize(questions, dim=1) @ of().t()).max(1)
    return run(lambda: F.normalize(documents, dim=1)), run(lambda: ready)


@pair("fuse_pointwise", "compile_model", "fuse_norm", "remove_copies", "reduce_problem")
def visits_looked_up_then_averaged():
    table, visits = rand(200000, 128), ints(200000, 16384, 50)
    w1, w2 = weight(256, 128), weight(1, 256)

    def run(average):
        return lambda: torch.sigmoid(F.linear(torch.relu(F.linear(average(), w1)), w2))
    return run(lambda: F.embedding(visits, table).mean(1)), run(lambda: F.embedding_bag(visits, table, mode="mean"))


@pair("reduce_problem", "remove_syncs", "remove_copies")
def negatives_cut_out_by_a_mask():
    count, x = 2048, rand(2048, 512)
    same = torch.eye(count, device=GPU, dtype=torch.bool)

    def make(others):
        model = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 128)).to(GPU)

        def loss():
            z = F.normalize(model(x), dim=1)
            positive = (z * z.roll(count // 2, 0)).sum(1) / 0.5
            return (others(z @ z.t() / 0.5).logsumexp(1) - positive).mean()
        return training(model, loss, dtype=None)
    return (make(lambda scores: scores[~same].view(count, count - 1)),
            make(lambda scores: scores.masked_fill(same, float("-inf"))))


@pair("reduce_problem")
def experts_reached_by_products_with_one_hot():
    tokens, experts, room, width, inner = 4096, 16, 512, 1024, 4096
    x, router = rand(tokens, width, dtype=BF16), weight(experts, width, BF16)
    up, down = rand(experts, width, inner, dtype=BF16, scale=0.03), rand(experts, inner, width, dtype=BF16, scale=0.016)

    def routed():
        best, expert = torch.softmax(F.linear(x, router).float(), -1).max(-1)
        chosen = F.one_hot(expert, experts)
        return best.to(BF16), expert, chosen, ((chosen.cumsum(0) * chosen).sum(-1) - 1).clamp(max=room - 1)

    def worked(inputs):
        return torch.bmm(F.silu(torch.bmm(inputs, up)), down)

    def before():
        best, expert, chosen, place = routed()
        sent = chosen.to(BF16).unsqueeze(2) * F.one_hot(place, room).to(BF16).unsqueeze(1)
        out = worked(torch.einsum("sec,sm->ecm", sent, x))
        return torch.einsum("sec,ecm->sm", sent * best.view(-1, 1, 1), out)

    def after():
        best, expert, chosen, place = routed()
        slot = expert * room + place
        inputs = torch.zeros(experts * room, width, device=GPU, dtype=BF16).index_copy(0, slot, x)
        return worked(inputs.view(experts, room, width)).view(-1, width).index_select(0, slot) * best.unsqueeze(1)
    return before, after


# ---------------------------------------------------------------- recurrences and optimizers

@pair("cuda_graphs", "compile_model", "cut_host_work", "fuse_pointwise")
def states_scanned_step_by_step():
    decay, inputs = torch.sigmoid(rand(96, 8, 512, 16)), rand(96, 8, 512, 16)
    out, zero = rand(96, 8, 1, 16), torch.zeros(8, 512, 16, device=GPU)

    def step():
        h, ys = zero, []
        for a, b, c in zip(decay.unbind(0), inputs.unbind(0), out.unbind(0)):
            h = a * h + b
            ys.append((h * c).sum(-1))
        return torch.stack(ys)
    return step, captured(step)


@pair("batch_products", "cut_host_work", "cuda_graphs", "compile_model", "reduce_problem")
def retention_carried_from_token_to_token():
    q, k, v = (rand(8, 8, 96, 64) for _ in range(3))
    place = torch.arange(96, device=GPU)
    gap = place[:, None] - place
    decay = torch.where(gap >= 0, 0.97 ** gap.clamp(min=0).float(), 0.0)

    def before():
        state, out = torch.zeros(8, 8, 64, 64, device=GPU), []
        for t in range(96):
            state = 0.97 * state + k[:, :, t].unsqueeze(-1) * v[:, :, t].unsqueeze(-2)
            out.append(q[:, :, t].unsqueeze(-2) @ state)
        return torch.cat(out, -2)
    return before, lambda: (q @ k.mT * decay) @ v


@pair("batch_products", "cut_host_work", "cuda_graphs", "compile_model")
def muon_orthogonalises_each_matrix_alone():
    grads = [rand(512, 512, dtype=BF16) for _ in range(24)]

    def orthogonal(g):
        x = g / (g.norm(dim=(-2, -1), keepdim=True) + 1e-7)
        for _ in range(5):
            a = x @ x.mT
            x = 3.4445 * x + (2.0315 * (a @ a) - 4.775 * a) @ x
        return x
    return (lambda: [orthogonal(g) for g in grads]), lambda: orthogonal(torch.stack(grads)).unbind(0)


# ---------------------------------------------------------------- physics, chance and waves

@pair("fuse_pointwise", "compile_model", "fuse_norm")
def forces_of_lennard_and_jones():
    atoms = rand(4096, 3, scale=4.0)

    def step():
        apart = atoms[:, None] - atoms
        r2 = apart.pow(2).sum(-1) + 0.5
        s6 = 1 / (r2 * r2 * r2)
        return ((24 * (2 * s6 * s6 - s6) / r2).unsqueeze(-1) * apart).sum(1)
    return step, compiled(step)


@pair("remove_syncs", "cut_host_work", "cuda_graphs")
def moves_of_a_chain_accepted_by_the_host():
    stiff, start = rand(1024, 1024, scale=0.01), rand(1024)
    moves, luck = rand(24, 1024, scale=0.1), torch.rand(24, device=GPU)

    def energy(x):
        return x.pow(2).sum() + torch.tanh(stiff @ x).sum()

    def before():
        x, now = start, energy(start)
        for i in range(24):
            new = x + moves[i]
            then = energy(new)
            if bool(luck[i] < torch.exp(now - then)):
                x, now = new, then
        return x

    def after():
        x, now = start, energy(start)
        for i in range(24):
            new = x + moves[i]
            then = energy(new)
            taken = luck[i] < torch.exp(now - then)
            x, now = torch.where(taken, new, x), torch.where(taken, then, now)
        return x
    return before, after


@pair("leave_float64")
def vorticity_moved_by_spectra_in_double():
    size, whirl = 1024, torch.randn(4, 1024, 1024, dtype=torch.float64, device=GPU)

    def make(dtype):
        k = torch.fft.fftfreq(size, 1 / size, dtype=dtype, device=GPU)
        kx, ky = k[None, :], k[:, None]
        square = (kx * kx + ky * ky).clamp(min=1)
        flows, slopes = (1j * ky / square, -1j * kx / square), (1j * kx.expand(size, size), 1j * ky.expand(size, size))
        w0 = whirl.to(dtype)

        def step():
            spectrum = torch.fft.fft2(w0)
            u, v = (torch.fft.ifft2(spectrum * one).real for one in flows)
            along, across = (torch.fft.ifft2(spectrum * one).real for one in slopes)
            return w0 - 1e-3 * (u * along + v * across)
        return step
    return make(torch.float64), make(torch.float32)


@pair("reduce_problem")
def seismic_traces_filtered_as_complex_numbers():
    traces, taps = rand(512, 32768), rand(32768, scale=0.01)
    whole, half = torch.fft.fft(taps), torch.fft.rfft(taps)
    return (lambda: torch.fft.ifft(torch.fft.fft(traces) * whole).real,
            lambda: torch.fft.irfft(torch.fft.rfft(traces) * half, n=32768))


@pair("reduce_problem", "slow_op")
def long_filters_applied_tap_by_tap():
    length, taps = 8192, 1024
    x, filters = rand(2, 64, length), rand(64, 1, taps, scale=0.03)
    turned = filters.squeeze(1).flip(-1)

    def after():
        n = length + taps
        return torch.fft.irfft(torch.fft.rfft(x, n=n) * torch.fft.rfft(turned, n=n), n=n)[..., :length]
    return (lambda: F.conv1d(F.pad(x, (taps - 1, 0)), filters, groups=64)), after


@pair("reduce_problem")
def trace_of_a_product_taken_from_the_product():
    a, b = rand(4096, 4096), rand(4096, 4096)
    return (lambda: torch.trace(a @ b)), lambda: (a * b.t()).sum()


# ---------------------------------------------------------------- losses, layouts and buffers

@pair("fuse_norm", "reduce_problem", "compile_model", "fuse_pointwise")
def smoothed_loss_over_one_hot_targets():
    hidden, truth = rand(4096, 512, dtype=BF16), ints(16000, 4096)
    head = weight(16000, 512, BF16).requires_grad_()

    def run(loss):
        return lambda: torch.autograd.grad(loss(F.linear(hidden, head).float()), head)

    def by_hand(logits):
        smooth = F.one_hot(truth, 16000).float() * 0.9 + 0.1 / 16000
        return -(smooth * F.log_softmax(logits, -1)).sum(-1).mean()
    return run(by_hand), run(lambda logits: F.cross_entropy(logits, truth, label_smoothing=0.1))


@pair("fuse_epilogue", "fuse_pointwise", "reduce_problem", "compile_model")
def similarities_divided_by_a_temperature_afterwards():
    a, b = rand(16384, 256, dtype=BF16), rand(16384, 256, dtype=BF16)
    return (lambda: a @ b.t() / 0.07), lambda: (a / 0.07) @ b.t()


@pair("align_dimensions", "channels_last")
def stem_of_61_channels():
    def make(channels):
        x = rand(64, channels, 64, 64, dtype=BF16).to(memory_format=torch.channels_last)
        ws = [rand(channels, channels, 3, 3, dtype=BF16, scale=0.04).to(memory_format=torch.channels_last) for _ in range(4)]

        def step():
            y = x
            for w in ws:
                y = torch.relu(F.conv2d(y, w, padding=1))
            return y
        return step
    return make(61), make(64)


@pair("remove_fills", "remove_copies", "stop_allocating")
def feature_maps_joined_in_a_cleared_buffer():
    maps = [rand(32, 128, 96, 96, dtype=F16) for _ in range(3)]

    def run(made):
        def step():
            whole = made(32, 384, 96, 96, dtype=F16, device=GPU)
            for i, one in enumerate(maps):
                whole[:, 128 * i:128 * (i + 1)] = one
            return whole
        return step
    return run(torch.zeros), run(torch.empty)


@pair("reuse_result", "cut_host_work", "cuda_graphs", "compile_model")
def mel_filters_built_for_each_batch():
    clips, w = rand(32, 32000), rand(128, 80, 5, scale=0.05)

    def filters():
        hertz, mels = torch.linspace(0, 8000, 257, device=GPU), torch.linspace(0, 2840, 82, device=GPU)
        edges = 700 * (10 ** (mels / 2595) - 1)
        slopes, widths = edges[:, None] - hertz, (edges[1:] - edges[:-1]).unsqueeze(1)
        return torch.minimum(-slopes[:-2] / widths[:-1], slopes[2:] / widths[1:]).clamp(min=0), torch.hann_window(512, device=GPU)
    ready = filters()

    def run(of):
        def step():
            bank, window = of()
            power = torch.stft(clips, 512, 160, window=window, return_complex=True).abs().pow(2)
            return F.conv1d(torch.log(bank @ power + 1e-6), w, stride=2)
        return step
    return run(filters), run(lambda: ready)


# ---------------------------------------------------------------- transfers

@pair("cut_host_work", "pin_memory", "overlap_copies", "feed_the_device")
def scans_sent_one_by_one():
    scans, w = [torch.randn(2048, 4) for _ in range(64)], weight(128, 4)
    pinned = torch.empty(64, 2048, 4, pin_memory=True)

    def run(sent):
        return lambda: torch.relu(F.linear(sent(), w)).amax(1)

    def together():
        torch.stack(scans, out=pinned)
        return pinned.to(GPU, non_blocking=True)
    return run(lambda: torch.stack([scan.to(GPU) for scan in scans])), run(together)


@pair("feed_the_device", "slow_op", "cut_host_work", "pin_memory", "overlap_copies")
def pictures_pinned_in_the_loop():
    pictures, w = torch.randn(32, 3, 224, 224), rand(64, 3, 7, 7, scale=0.1)
    pinned = pictures.pin_memory()
    return (lambda: F.conv2d(pictures.pin_memory().to(GPU, non_blocking=True), w, stride=4),
            lambda: F.conv2d(pinned.to(GPU, non_blocking=True), w, stride=4))


@pair("overlap_copies", "keep_on_device")
def filtered_tiles_fetched_in_turn():
    layout = torch.channels_last
    tiles = [rand(8, 64, 256, 256, dtype=F16).to(memory_format=layout) for _ in range(6)]
    ws = [rand(out, 64, 3, 3, dtype=F16, scale=0.04).to(memory_format=layout) for out in (64, 64, 16)]
    buffers = [torch.empty(8, 16, 256, 256, dtype=F16, memory_format=layout, pin_memory=True) for _ in tiles]
    side = torch.cuda.Stream()

    def work(x):
        for w in ws:
            x = F.conv2d(x, w, padding=1)
        return x.contiguous(memory_format=layout)

    def before():
        for tile, buffer in zip(tiles, buffers):
            buffer.copy_(work(tile), non_blocking=True)

    def after():
        main = torch.cuda.current_stream()
        for tile, buffer in zip(tiles, buffers):
            out = work(tile)
            side.wait_stream(main)
            with torch.cuda.stream(side):
                buffer.copy_(out, non_blocking=True)
            out.record_stream(side)
        main.wait_stream(side)
    return before, after


# ---------------------------------------------------------------- own kernels in Triton

@triton.jit
def gate_kernel(gate, up, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    g, u = tl.load(gate + at).to(tl.float32), tl.load(up + at).to(tl.float32)
    tl.store(out + at, (g * tl.sigmoid(g) * u).to(tl.bfloat16))


@pair("tune_kernel", "stream_wider")
def own_gated_activation_of_small_blocks():
    count = 1 << 26
    gate, up, out = rand(count, dtype=BF16), rand(count, dtype=BF16), torch.empty(count, device=GPU, dtype=BF16)

    def run(block, warps):
        return lambda: gate_kernel[(count // block,)](gate, up, out, block, num_warps=warps)
    return run(64, 8), run(2048, 8)


@triton.jit
def columns_kernel(x, out, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    first = tl.program_id(1) * ROWS
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for row in range(ROWS):
        total += tl.load(x + (first + row) * columns + column)
    tl.atomic_add(out + column, total)


@pair("fill_the_device", "tune_kernel")
def own_column_sums_in_sixteen_programs():
    rows, columns = 16384, 2048
    x, out = rand(rows, columns), torch.zeros(columns, device=GPU)

    def run(each):
        def step():
            out.zero_()
            columns_kernel[(columns // 128, rows // each)](x, out, columns, each, 128)
        return step
    return run(rows), run(128)


# ---------------------------------------------------------------- what suggests itself and gains nothing

@null("cuda_graphs", "cut_host_work")
def null_graph_of_large_transforms():
    x, taps = torch.randn(64, 1 << 19, dtype=torch.complex64, device=GPU), torch.randn(1 << 19, dtype=torch.complex64, device=GPU)

    def step():
        return torch.fft.ifft(torch.fft.fft(x) * taps)
    return step, captured(step)


@null("tensor_cores")
def null_tf32_of_a_model_in_bf16():
    model, x = blocks(2, 1024, 16).to(BF16), rand(16, 512, 1024, dtype=BF16)
    work = without_gradients(lambda: model(x))
    return with_precision("highest", work), with_precision("high", work)


@null("fused_optimizer")
def null_optimizer_of_adapters():
    x = rand(32, 512, 1024)

    def make(**options):
        model, _ = with_adapters(4, 1024, 16, True)
        return training(model, lambda: model(x).float().pow(2).mean(), **options)
    return make(foreach=True), make(fused=True)


@null("channels_last")
def null_layout_of_pointwise_maps():
    x = rand(64, 256, 56, 56, dtype=F16)
    other = x.to(memory_format=torch.channels_last)
    return (lambda: torch.sigmoid(x)), lambda: torch.sigmoid(other)


@null("local_gathers", "coalesce")
def null_sorted_lookups_of_a_small_table():
    table, ids = rand(4096, 256), ints(4096, 1 << 18)
    ordered = ids.sort().values
    return (lambda: F.embedding(ids, table)), lambda: F.embedding(ordered, table)


@null("reuse_result")
def null_positions_built_once_in_a_long_step():
    ws, x0 = [weight(4096, 4096, BF16) for _ in range(6)], rand(16384, 4096, dtype=BF16)

    def waves():
        angle = torch.arange(4096, device=GPU) * 0.01
        return (torch.sin(angle) + torch.cos(angle)).to(BF16)
    ready = waves()

    def run(of):
        def step():
            x = x0 + of()
            for w in ws:
                x = F.linear(x, w)
            return x
        return step
    return run(waves), run(lambda: ready)


@null("compile_model", "fuse_pointwise")
def null_compiled_sort():
    x = rand(256, 65536)

    def step():
        return torch.sort(x, dim=1).values
    return step, compiled(step)


@null("batch_products", "cut_host_work", "cuda_graphs")
def null_large_experts_one_by_one():
    x, ws = rand(4, 8192, 4096, dtype=BF16), rand(4, 4096, 4096, dtype=BF16, scale=0.02)
    return (lambda: [x[i] @ ws[i] for i in range(4)]), lambda: torch.bmm(x, ws)


@null("overlap_copies")
def null_copies_that_are_the_whole_step():
    host, turn = torch.randn(4096, 4096).pin_memory(), [0]
    slots, side = [torch.zeros(4096, 4096, device=GPU) for _ in range(2)], torch.cuda.Stream()

    def before():
        slots[0].copy_(host, non_blocking=True)
        return slots[0].sum()

    def after():
        turn[0] ^= 1
        main = torch.cuda.current_stream()
        side.wait_stream(main)
        with torch.cuda.stream(side):
            slots[turn[0]].copy_(host, non_blocking=True)
        total = slots[turn[0] ^ 1].sum()
        main.wait_stream(side)
        return total
    return before, after
