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
