# SPDX-License-Identifier: Apache-2.0
"""A second set of pairs of small programs, written without sight of the rules' code, to test them out of sample.

Each function prepares its data and returns (before, after): two functions of one step. `@pair(RULE)` names
what should be recommended for the program as found; `@null(RULE)` names a change that suggests itself and
gains nothing. Where several things are wrong, RULE is the one that dominates and `after` changes it alone.
"""

import torch
import torch.nn.functional as F
from torch import nn

PAIRS = {}
GPU = "cuda"


def pair(rule, *also, null=False):
    def keep(make):
        PAIRS[make.__name__] = {"make": make, "rule": rule, "also": list(also), "null": null}
        return make
    return keep


def null(rule, *also):
    return pair(rule, *also, null=True)


def rand(*shape, dtype=torch.float32, scale=1.0):
    return (torch.randn(*shape, device=GPU) * scale).to(dtype)


def weight(out, inner, dtype=torch.float32):
    return rand(out, inner, dtype=dtype, scale=inner ** -0.5)


def with_precision(precision, work):
    """`work` with the precision of float32 products set for its time alone."""
    def step():
        torch.set_float32_matmul_precision(precision)
        try:
            return work()
        finally:
            torch.set_float32_matmul_precision("highest")
    return step


def captured(step):
    """The step as a CUDA graph."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


# ---------------------------------------------------------------- transformers

@pair("flash_attention", "align_dimensions", "fuse_epilogue", "fuse_pointwise", "remove_copies")
def vit_block_at_384_pixels():
    batch, tokens, heads, each = 32, 577, 12, 64
    width, dtype = heads * each, torch.float16
    x = rand(batch, tokens, width, dtype=dtype)
    w_qkv, b_qkv = weight(3 * width, width, dtype), rand(3 * width, dtype=dtype, scale=0.02)
    w_out, b_out = weight(width, width, dtype), rand(width, dtype=dtype, scale=0.02)
    w_up, b_up = weight(4 * width, width, dtype), rand(4 * width, dtype=dtype, scale=0.02)
    w_down, b_down = weight(width, 4 * width, dtype), rand(width, dtype=dtype, scale=0.02)

    def by_products(q, k, v):
        return torch.softmax((q @ k.transpose(-2, -1)) * each ** -0.5, dim=-1) @ v

    def run(attend):
        def step():
            y = F.layer_norm(x, (width,))
            q, k, v = F.linear(y, w_qkv, b_qkv).view(batch, tokens, 3, heads, each).permute(2, 0, 3, 1, 4).unbind(0)
            mixed = attend(q, k, v).transpose(1, 2).reshape(batch, tokens, width)
            z = x + F.linear(mixed, w_out, b_out)
            inner = F.gelu(F.linear(F.layer_norm(z, (width,)), w_up, b_up))
            return z + F.linear(inner, w_down, b_down)
        return step
    return run(by_products), run(F.scaled_dot_product_attention)


@pair("remove_copies", "stop_allocating")
def decoder_cache_concatenated():
    batch, heads, past, each, layers = 16, 16, 2047, 64, 4
    width, dtype = heads * each, torch.bfloat16
    x0 = rand(batch, 1, width, dtype=dtype)
    w_qkv = [weight(3 * width, width, dtype) for _ in range(layers)]
    w_out = [weight(width, width, dtype) for _ in range(layers)]
    keys = [rand(batch, heads, past, each, dtype=dtype) for _ in range(layers)]
    values = [rand(batch, heads, past, each, dtype=dtype) for _ in range(layers)]
    keys_kept = [F.pad(kept, (0, 0, 0, 1)) for kept in keys]
    values_kept = [F.pad(kept, (0, 0, 0, 1)) for kept in values]

    def grown(layer, k, v):
        return torch.cat([keys[layer], k], dim=2), torch.cat([values[layer], v], dim=2)

    def in_place(layer, k, v):
        keys_kept[layer][:, :, past:].copy_(k)
        values_kept[layer][:, :, past:].copy_(v)
        return keys_kept[layer], values_kept[layer]

    def run(extend):
        def step():
            x = x0
            for layer in range(layers):
                q, k, v = F.linear(x, w_qkv[layer]).view(batch, 1, 3, heads, each).permute(2, 0, 3, 1, 4).unbind(0)
                mixed = F.scaled_dot_product_attention(q, *extend(layer, k, v))
                x = x + F.linear(mixed.transpose(1, 2).reshape(batch, 1, width), w_out[layer])
            return x
        return step
    return run(grown), run(in_place)


@pair("quantize")
def gated_mlp_of_32_tokens():
    width, inner, layers, dtype = 5120, 13824, 2, torch.bfloat16
    x0 = rand(32, width, dtype=dtype)
    weights = [(weight(inner, width, dtype), weight(inner, width, dtype), weight(width, inner, dtype))
               for _ in range(layers)]
    weights8 = [tuple(w.to(torch.float8_e4m3fn) for w in layer) for layer in weights]
    one = torch.ones((), device=GPU)

    def product8(x, w):
        return torch._scaled_mm(x.to(torch.float8_e4m3fn), w.t(), one, one, out_dtype=dtype)

    def run(product, layered):
        def step():
            x = x0
            for gate, up, down in layered:
                x = x + product(F.silu(product(x, gate)) * product(x, up), down)
            return x
        return step
    return run(F.linear, weights), run(product8, weights8)


@pair("reuse_result", "reduce_problem", "fuse_pointwise", "fuse_epilogue")
def adapters_merged_each_step():
    x0 = rand(64, 4096, dtype=torch.bfloat16)
    layers = [(weight(4096, 4096, torch.bfloat16), rand(4096, 16, dtype=torch.bfloat16, scale=0.05),
               rand(16, 4096, dtype=torch.bfloat16, scale=0.05)) for _ in range(4)]
    merged = [w + 0.5 * (a @ b) for w, a, b in layers]

    def before():
        x = x0
        for w, a, b in layers:
            x = torch.tanh(F.linear(x, w + 0.5 * (a @ b)))
        return x

    def after():
        x = x0
        for w in merged:
            x = torch.tanh(F.linear(x, w))
        return x
    return before, after


@pair("keep_on_device", "remove_syncs", "pin_memory", "overlap_copies")
def sampled_on_the_host():
    hidden, head = rand(64, 2048, dtype=torch.bfloat16), weight(32000, 2048, torch.bfloat16)
    embedding = rand(32000, 2048, dtype=torch.bfloat16)

    def run(where):
        def step():
            logits = F.linear(hidden, head).float().to(where)
            best, at = logits.topk(50, dim=-1)
            pick = torch.multinomial(torch.softmax(best / 0.8, dim=-1), 1)
            return F.embedding(at.gather(1, pick).to(GPU), embedding)
        return step
    return run("cpu"), run(GPU)


@pair("reduce_problem")
def beams_sorted_whole():
    sentences, beams, words = 16, 8, 32000
    hidden = rand(sentences * beams, 1024, dtype=torch.float16)
    head = weight(words, 1024, torch.float16)
    score = rand(sentences * beams, 1)

    def run(best):
        def step():
            logp = F.log_softmax(F.linear(hidden, head).float(), dim=-1) + score
            kept, at = best(logp.view(sentences, beams * words))
            return kept, torch.div(at, words, rounding_mode="floor"), at % words
        return step

    def by_sort(all_beams):
        kept, at = torch.sort(all_beams, dim=1, descending=True)
        return kept[:, :beams], at[:, :beams]
    return run(by_sort), run(lambda all_beams: torch.topk(all_beams, beams, dim=1))


@pair("overlap_copies", "keep_on_device")
def layers_offloaded_to_the_host():
    layers, width = 6, 2048
    x0 = rand(16384, width, dtype=torch.bfloat16)
    host = [(torch.randn(width, width) * width ** -0.5).bfloat16().pin_memory() for _ in range(layers)]
    buffers = [torch.empty(width, width, device=GPU, dtype=torch.bfloat16) for _ in range(2)]
    ready, used = ([torch.cuda.Event() for _ in range(layers)] for _ in range(2))
    side = torch.cuda.Stream()
    torch.cuda.synchronize()

    def before():
        x = x0
        for w in host:
            x = x @ w.to(GPU, non_blocking=True)
        return x

    def after():
        main, x = torch.cuda.current_stream(), x0
        for layer, w in enumerate(host):
            buffer = buffers[layer % 2]
            with torch.cuda.stream(side):
                side.wait_event(used[(layer - 2) % layers])
                buffer.copy_(w, non_blocking=True)
                ready[layer].record(side)
            main.wait_event(ready[layer])
            x = x @ buffer
            used[layer].record(main)
        return x
    return before, after


# ---------------------------------------------------------------- recurrent networks

@pair("cuda_graphs", "cut_host_work", "batch_products", "fuse_pointwise")
def normalised_lstm_unrolled():
    length, batch, width = 20, 32, 256
    xs = rand(length, batch, width)
    w_in, w_state, bias = weight(width, 4 * width), weight(width, 4 * width), rand(4 * width, scale=0.1)
    zero = torch.zeros(batch, width, device=GPU)

    def step():
        h = c = zero
        for x in xs:
            gates = torch.addmm(torch.addmm(bias, x, w_in), h, w_state)
            i, f, g, o = gates.chunk(4, dim=1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(F.layer_norm(c, (width,)))
        return h
    return step, captured(step)


@pair("cast_weights_once", "reuse_result")
def recurrent_weight_cast_each_time():
    length, batch, width = 16, 64, 4096
    w, xs = weight(width, width), rand(length, batch, width, dtype=torch.float16)
    h0 = torch.zeros(batch, width, device=GPU, dtype=torch.float16)

    def before():
        h = h0
        for x in xs:
            h = torch.tanh(F.linear(h, w.half()) + x)
        return h

    def after():
        h, w16 = h0, w.half()
        for x in xs:
            h = torch.tanh(F.linear(h, w16) + x)
        return h
    return before, after


# ---------------------------------------------------------------- pictures

class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first, self.second = (nn.Conv2d(width, width, 3, padding=1, bias=False) for _ in range(2))
        self.norm1, self.norm2 = nn.BatchNorm2d(width), nn.BatchNorm2d(width)

    def forward(self, x):
        y = F.relu(self.norm1(self.first(x)))
        return F.relu(self.norm2(self.second(y)) + x)


@pair("channels_last", "fuse_pointwise")
def residual_net_in_mixed_precision():
    def make(layout):
        model = nn.Sequential(Residual(64), Residual(64), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))
        model = model.to(GPU).to(memory_format=layout)
        x = rand(128, 64, 56, 56, dtype=torch.float16).contiguous(memory_format=layout)
        labels = torch.randint(10, (128,), device=GPU)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)

        def step():
            optimizer.zero_grad()
            with torch.autocast(GPU, torch.float16):
                loss = F.cross_entropy(model(x), labels)
            loss.backward()
            optimizer.step()
        return step
    return make(torch.contiguous_format), make(torch.channels_last)


@pair("fuse_norm", "fuse_pointwise", "channels_last")
def diffusion_block_group_norm_by_hand():
    batch, width, side, groups, dtype = 8, 320, 64, 32, torch.float16
    x, time = rand(batch, width, side, side, dtype=dtype), rand(batch, width, 1, 1, dtype=dtype)
    convs = [rand(width, width, 3, 3, dtype=dtype, scale=(9 * width) ** -0.5) for _ in range(2)]
    gains, shifts = ([rand(width, dtype=dtype) for _ in range(2)] for _ in range(2))

    def by_hand(y, gain, shift):
        g = y.float().reshape(batch, groups, -1)
        centred = g - g.mean(-1, keepdim=True)
        normed = centred * torch.rsqrt((centred * centred).mean(-1, keepdim=True) + 1e-5)
        normed = normed.view(batch, width, side, side)
        return (normed * gain.float().view(1, -1, 1, 1) + shift.float().view(1, -1, 1, 1)).to(dtype)

    def by_library(y, gain, shift):
        return F.group_norm(y, groups, gain, shift, 1e-5)

    def run(norm):
        def step():
            y = F.conv2d(F.silu(norm(x, gains[0], shifts[0])), convs[0], padding=1) + time
            return x + F.conv2d(F.silu(norm(y, gains[1], shifts[1])), convs[1], padding=1)
        return step
    return run(by_hand), run(by_library)


@pair("fuse_pointwise")
def photos_normalised_in_steps():
    photos = torch.randint(256, (128, 3, 224, 224), device=GPU, dtype=torch.uint8)
    mean = torch.tensor([0.485, 0.456, 0.406], device=GPU).view(1, 3, 1, 1)
    std = torch.tensor([0.229, 0.224, 0.225], device=GPU).view(1, 3, 1, 1)
    scale, shift = (1 / (255 * std)).half(), (-mean / std).half()

    def before():
        return F.avg_pool2d(((photos.float() / 255 - mean) / std).half(), 2)

    def after():
        return F.avg_pool2d(torch.addcmul(shift, photos.half(), scale), 2)
    return before, after


@pair("local_gathers", "coalesce")
def points_of_a_picture_in_any_order():
    rows, columns, count = 4096, 8192, 1 << 24
    picture = rand(rows, columns)
    y, x = torch.randint(rows, (count,), device=GPU), torch.randint(columns, (count,), device=GPU)
    order = torch.argsort(y * columns + x)
    y_sorted, x_sorted = y[order], x[order]
    return lambda: picture[y, x].sum(), lambda: picture[y_sorted, x_sorted].sum()


@pair("fill_the_device")
def moving_average_of_a_few_tracks():
    tracks, length, window = 8, 1 << 20, 256
    sound = rand(tracks, length)

    def average(sums):
        return (sums[:, window:] - sums[:, :-window]) / window

    def in_parts():
        parts = sound.view(tracks, 1024, -1).cumsum(-1)
        last = parts[:, :, -1]
        offset = last.cumsum(-1) - last
        return (parts + offset.unsqueeze(-1)).view(tracks, length)
    return lambda: average(sound.cumsum(-1)), lambda: average(in_parts())


# ---------------------------------------------------------------- recommendation

@pair("batch_products", "cut_host_work", "cuda_graphs")
def features_multiplied_pair_by_pair():
    batch, width, tables = 4096, 64, 13
    dense, w_dense = rand(batch, 16), weight(width, 16)
    embeddings = [rand(50000, width, scale=0.1) for _ in range(tables)]
    chosen = [torch.randint(50000, (batch,), device=GPU) for _ in range(tables)]
    some, others = torch.tril_indices(tables + 1, tables + 1, -1).to(GPU)
    pairs = list(zip(some.tolist(), others.tolist()))
    w_top, w_last = weight(256, width + len(pairs)), weight(1, 256)

    def run(interact):
        def step():
            bottom = F.relu(F.linear(dense, w_dense))
            features = [bottom] + [F.embedding(at, table) for at, table in zip(chosen, embeddings)]
            top = torch.cat([bottom, interact(features)], dim=1)
            return torch.sigmoid(F.linear(F.relu(F.linear(top, w_top)), w_last))
        return step

    def one_by_one(features):
        return torch.cat([torch.bmm(features[i].unsqueeze(1), features[j].unsqueeze(2)).view(batch, 1)
                          for i, j in pairs], dim=1)

    def at_once(features):
        together = torch.stack(features, dim=1)
        return torch.bmm(together, together.transpose(1, 2))[:, some, others]
    return run(one_by_one), run(at_once)


@pair("align_dimensions", "fuse_epilogue")
def ranking_mlp_of_479_features():
    batch, dtype = 65536, torch.float16

    def make(features):
        x = rand(batch, features, dtype=dtype)
        sizes = [features, 1024, 1024, 512]
        layers = [(weight(out, inner, dtype), rand(out, dtype=dtype, scale=0.02))
                  for inner, out in zip(sizes, sizes[1:])]

        def step():
            y = x
            for w, b in layers:
                y = F.relu(F.linear(y, w, b))
            return y
        return step
    return make(479), make(480)


# ---------------------------------------------------------------- training

@pair("tensor_cores", "remove_copies")
def contrastive_loss_in_float32():
    a, b = rand(4096, 1024).requires_grad_(), rand(4096, 1024).requires_grad_()
    labels = torch.arange(4096, device=GPU)

    def work():
        logits = 20 * (F.normalize(a, dim=-1) @ F.normalize(b, dim=-1).t())
        loss = (F.cross_entropy(logits, labels) + F.cross_entropy(logits.t(), labels)) / 2
        return torch.autograd.grad(loss, (a, b))
    return with_precision("highest", work), with_precision("high", work)


@pair("fused_optimizer")
def gan_of_two_adams():
    real, noise = rand(64, 784), rand(64, 128)
    ones, zeros = torch.ones(64, 1, device=GPU), torch.zeros(64, 1, device=GPU)

    def network(inner, out, width=4096):
        return nn.Sequential(nn.Linear(inner, width), nn.LeakyReLU(0.2), nn.Linear(width, width), nn.LeakyReLU(0.2),
                             nn.Linear(width, out)).to(GPU)

    def make(**options):
        maker, judge = network(128, 784), network(784, 1)
        maker_adam, judge_adam = (torch.optim.Adam(model.parameters(), lr=1e-5, betas=(0.5, 0.999), **options)
                                  for model in (maker, judge))
        against = F.binary_cross_entropy_with_logits

        def work():
            judge_adam.zero_grad()
            made = torch.tanh(maker(noise))
            (against(judge(real), ones) + against(judge(made.detach()), zeros)).backward()
            judge_adam.step()
            maker_adam.zero_grad()
            against(judge(made), ones).backward()
            maker_adam.step()
        return with_precision("high", work)
    return make(foreach=True), make(fused=True)


@pair("remove_syncs", "cut_host_work", "cuda_graphs")
def gradient_norms_logged_in_hooks():
    x = rand(2048, 1024, dtype=torch.bfloat16)

    def make(log, collect):
        layers = [layer for _ in range(20) for layer in (nn.Linear(1024, 1024), nn.ReLU())]
        model = nn.Sequential(*layers).to(GPU, torch.bfloat16)
        parameters, norms = list(model.parameters()), []

        def hook(gradient):
            norms.append(log(gradient.norm()))
        for parameter in parameters:
            parameter.register_hook(hook)

        def step():
            norms.clear()
            for parameter in parameters:
                parameter.grad = None
            model(x).float().pow(2).mean().backward()
            with torch.no_grad():
                torch._foreach_add_(parameters, [parameter.grad for parameter in parameters], alpha=-1e-4)
            return collect(norms)
        return step
    return make(lambda norm: norm.item(), list), make(lambda norm: norm, lambda norms: torch.stack(norms).tolist())


@pair("cut_host_work", "cuda_graphs", "fuse_pointwise")
def target_network_followed_in_a_loop():
    policy = [rand(128, 256) for _ in range(110)]
    targets, targets_too = [p.clone() for p in policy], [p.clone() for p in policy]

    def before():
        for target, p in zip(targets, policy):
            target.mul_(0.995).add_(p, alpha=0.005)

    def after():
        torch._foreach_lerp_(targets_too, policy, 0.005)
    return before, after


# ---------------------------------------------------------------- changes that gain nothing

@null("tensor_cores")
def null_bags_before_a_small_product():
    table = rand(1 << 20, 128, scale=0.1)
    bags = torch.randint(1 << 20, (16384, 64), device=GPU)
    w = weight(64, 128)

    def work():
        return F.relu(F.linear(F.embedding_bag(bags, table, mode="sum"), w))
    return with_precision("highest", work), with_precision("high", work)


@null("pin_memory", "overlap_copies", "remove_syncs")
def null_labels_from_pageable_memory():
    labels = torch.randint(1000, (8192,))
    pinned = labels.pin_memory()
    x0, w = rand(8192, 4096, dtype=torch.bfloat16), weight(4096, 4096, torch.bfloat16)
    head = weight(1000, 4096, torch.bfloat16)

    def run(fetch):
        def step():
            target, x = fetch(), x0
            for _ in range(10):
                x = F.linear(x, w)
            return F.cross_entropy(F.linear(x, head), target)
        return step
    return run(lambda: labels.to(GPU)), run(lambda: pinned.to(GPU, non_blocking=True))


@null("channels_last")
def null_patches_before_wide_layers():
    dtype = torch.float16
    ups = [weight(4096, 1024, dtype) for _ in range(14)]
    downs = [weight(1024, 4096, dtype) for _ in range(14)]
    kernel, pictures = rand(1024, 3, 16, 16, dtype=dtype, scale=0.04), rand(32, 3, 224, 224, dtype=dtype)

    def make(layout):
        patches, x = kernel.contiguous(memory_format=layout), pictures.contiguous(memory_format=layout)

        def step():
            y = F.conv2d(x, patches, stride=16).flatten(2).transpose(1, 2).reshape(32 * 196, 1024)
            for up, down in zip(ups, downs):
                y = F.linear(F.linear(y, up), down)
            return y
        return step
    return make(torch.contiguous_format), make(torch.channels_last)


@null("fused_optimizer")
def null_sgd_after_a_large_batch():
    x = rand(65536, 1024, dtype=torch.bfloat16)

    def make(**options):
        model = nn.Sequential(nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1024))
        model = model.to(GPU, torch.bfloat16)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, **options)

        def step():
            optimizer.zero_grad()
            model(x).float().pow(2).mean().backward()
            optimizer.step()
        return step
    return make(foreach=True), make(fused=True)


@null("cuda_graphs", "cut_host_work")
def null_graph_of_large_convolutions():
    layers = [layer for _ in range(4) for layer in (nn.Conv2d(128, 128, 3, padding=1, bias=False), nn.ReLU())]
    model = nn.Sequential(*layers).to(GPU, torch.float16).to(memory_format=torch.channels_last)
    x = rand(96, 128, 64, 64, dtype=torch.float16).contiguous(memory_format=torch.channels_last)
    parameters = list(model.parameters())

    def step():
        torch.autograd.grad(model(x).float().mean(), parameters)
    return step, captured(step)


@null("batch_products")
def null_wide_projections_apart():
    x = rand(16384, 4096, dtype=torch.bfloat16)
    ws = [weight(4096, 4096, torch.bfloat16) for _ in range(3)]
    together = torch.cat(ws)
    return lambda: [F.linear(x, w) for w in ws], lambda: F.linear(x, together).chunk(3, dim=-1)
