# SPDX-License-Identifier: Apache-2.0
"""The whole steps of the seventh set: training and inference of several layers, where the named change is one of many possible.

pairs_seventh.py says how the set was written, and takes these pairs in.
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

import pairs_sixth as sixth
from pairs_practice import BF16, F16, compiled, without_gradients
from pairs_sixth import ints
from pairs_unseen import GPU, captured, pair, rand, weight, with_precision

sixth.PAIRS.clear()
PAIRS = sixth.PAIRS


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
