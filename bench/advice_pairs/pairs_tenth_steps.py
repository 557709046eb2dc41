# SPDX-License-Identifier: Apache-2.0
"""The whole steps of the tenth set: training, inference and data of programs that practitioners bring.

pairs_tenth.py says how the set was written, and takes these pairs in.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

import pairs_seventh_steps as seventh
from pairs_practice import BF16, F16, compiled, without_gradients
from pairs_seventh_steps import blocks, causal, training
from pairs_sixth import ints
from pairs_unseen import GPU, captured, pair, rand, weight

seventh.PAIRS.clear()
PAIRS = seventh.PAIRS


def products(count, width):
    """The four weights of each of `count` layers of a transformer, in BF16."""
    shapes = ((3 * width, width), (width, width), (4 * width, width), (width, 4 * width))
    return [[weight(out, inner, BF16) for out, inner in shapes] for _ in range(count)]


# ---------------------------------------------------------------- waits for the device

@pair("remove_syncs", "cut_host_work", "batch_products")
def experts_that_look_for_their_tokens():
    tokens, width, inner, experts, room = 4096, 1024, 1024, 16, 640
    x0, place = rand(tokens, width, dtype=BF16), torch.arange(experts, device=GPU)
    layers = [(weight(experts, width, BF16), rand(experts, inner, width, dtype=BF16, scale=width ** -0.5),
               rand(experts, width, inner, dtype=BF16, scale=inner ** -0.5)) for _ in range(3)]

    def searched(x, chosen, up, down):
        out = torch.zeros_like(x)
        for expert in range(experts):
            at = torch.nonzero(chosen == expert).squeeze(1)
            out.index_copy_(0, at, F.linear(F.silu(F.linear(x[at], up[expert])), down[expert]))
        return out

    def placed(x, chosen, up, down):
        rank = (chosen[:, None] == place).cumsum(0).gather(1, chosen[:, None]).squeeze(1) - 1
        slot = chosen * room + rank.clamp(max=room - 1)
        sent = x.new_zeros(experts * room, width).index_copy_(0, slot, x).view(experts, room, width)
        return torch.bmm(F.silu(torch.bmm(sent, up.mT)), down.mT).view(-1, width).index_select(0, slot)

    def run(mixed):
        def step():
            x = x0
            for router, up, down in layers:
                x = x + mixed(x, F.linear(x, router).argmax(-1), up, down)
            return x
        return step
    return run(searched), run(placed)


@pair("remove_syncs", "cut_host_work")
def categories_checked_before_each_table():
    count, rows = 26, 100_000
    tables, ids, dense = [rand(rows, 32) for _ in range(count)], ints(rows, 8192, count), rand(8192, 64)
    w1, w2 = weight(512, 32 * count + 64), weight(1, 512)

    def run(checks):
        def step():
            seen = [dense]
            for i, table in enumerate(tables):
                if checks:
                    assert bool((ids[:, i] < rows).all()), "a category out of range"
                seen.append(F.embedding(ids[:, i], table))
            return torch.sigmoid(F.linear(torch.relu(F.linear(torch.cat(seen, 1), w1)), w2))
        return step
    return run(True), run(False)


@pair("remove_syncs", "cut_host_work")
def imagined_states_drawn_with_validation():
    cell, policy, prior = nn.GRUCell(64 + 8, 256).to(GPU), nn.Linear(256, 16).to(GPU), nn.Linear(256, 128).to(GPU)
    h0, z0 = rand(1024, 256), rand(1024, 64)

    def run(**options):
        def drawn(layer, h):
            mean, raw = layer(h).chunk(2, 1)
            return torch.distributions.Normal(mean, F.softplus(raw) + 0.1, **options)

        def step():
            h, z, chances = h0, z0, []
            for _ in range(15):
                acts = drawn(policy, h)
                act = acts.rsample()
                chances.append(acts.log_prob(act).sum(1))
                h = cell(torch.cat([z, torch.tanh(act)], 1), h)
                z = drawn(prior, h).rsample()
            return torch.stack(chances)
        return without_gradients(step)
    return run(), run(validate_args=False)


# ---------------------------------------------------------------- many small calls

@pair("cut_host_work", "remove_copies", "cuda_graphs", "compile_model")
def pages_of_a_cache_gathered_one_by_one():
    sequences, each, page, heads = 16, 64, 32, 8
    keys, values = (rand(2048, heads, page, 128, dtype=F16) for _ in range(2))
    order = torch.randperm(2048)[:sequences * each]
    lists, there = order.view(sequences, each).tolist(), order.to(GPU)
    q = rand(sequences, heads, 1, 128, dtype=F16)

    def one_by_one(pool):
        return torch.stack([torch.cat([pool[number] for number in pages], 1) for pages in lists])

    def at_once(pool):
        found = pool.index_select(0, there).view(sequences, each, heads, page, 128)
        return found.transpose(1, 2).reshape(sequences, heads, each * page, 128)

    def run(gathered):
        return lambda: F.scaled_dot_product_attention(q, gathered(keys), gathered(values))
    return run(one_by_one), run(at_once)


@pair("cut_host_work", "fused_optimizer", "cuda_graphs", "compile_model", "reduce_problem")
def penalty_of_the_weights_added_to_the_loss():
    x = rand(16, 128, 512)

    def make(by_hand):
        model = blocks(6, 512, 8)
        weights = list(model.parameters())
        optimizer = torch.optim.SGD(weights, lr=1e-5, momentum=0.9, weight_decay=0.0 if by_hand else 2e-4, fused=True)

        def step():
            model.zero_grad()
            with torch.autocast(GPU, BF16):
                loss = model(x).float().pow(2).mean()
            if by_hand:
                loss = loss + 1e-4 * sum(w.pow(2).sum() for w in weights)
            loss.backward()
            optimizer.step()
        return step
    return make(True), make(False)


@pair("cuda_graphs", "compile_model", "cut_host_work")
def symbols_of_a_transducer_taken_greedily():
    heard, table = rand(8, 30, 320), rand(512, 320)
    w_heard, w_said, w_out = weight(512, 320), weight(512, 320), weight(512, 512)
    cell = nn.LSTMCell(320, 320).to(GPU)

    def step():
        symbol = torch.zeros(8, dtype=torch.long, device=GPU)
        h = c = torch.zeros(8, 320, device=GPU)
        out = []
        for t in range(30):
            joint = torch.tanh(F.linear(heard[:, t], w_heard) + F.linear(h, w_said))
            best = F.linear(joint, w_out).argmax(1)
            new_h, new_c = cell(F.embedding(best, table), (h, c))
            spoken = best != 0
            symbol = torch.where(spoken, best, symbol)
            h, c = (torch.where(spoken[:, None], new, old) for new, old in ((new_h, h), (new_c, c)))
            out.append(symbol)
        return torch.stack(out, 1)
    return without_gradients(step), captured(without_gradients(step))


@pair("cuda_graphs", "compile_model", "cut_host_work", "fuse_pointwise")
def pendulums_swung_by_a_policy():
    start = rand(2, 4096)
    w1, w2, w3 = weight(128, 3), weight(128, 128), weight(1, 128)

    def step():
        angle, speed = start
        total = torch.zeros(4096, device=GPU)
        for _ in range(40):
            seen = torch.stack([torch.cos(angle), torch.sin(angle), speed], 1)
            push = 2 * torch.tanh(F.linear(torch.tanh(F.linear(torch.tanh(F.linear(seen, w1)), w2)), w3)).squeeze(1)
            total = total - (angle.pow(2) + 0.1 * speed.pow(2) + 0.001 * push.pow(2))
            speed = (speed + (15 * torch.sin(angle) + 3 * push) * 0.05).clamp(-8, 8)
            angle = torch.remainder(angle + speed * 0.05 + math.pi, 2 * math.pi) - math.pi
        return total
    return step, captured(step)


# ---------------------------------------------------------------- formulas written out

class Scaled(nn.Module):
    """A layer of a picture transformer that scales what each branch adds, and drops branches at random."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.norm1, self.norm2 = heads, nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.scale1, self.scale2 = (nn.Parameter(torch.full((width,), 0.1)) for _ in range(2))

    @staticmethod
    def dropped(y):
        kept = torch.rand(y.shape[0], 1, 1, device=y.device) < 0.9
        return y / 0.9 * kept

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        mixed = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, length, width)
        x = x + self.dropped(self.scale1 * self.out(mixed))
        return x + self.dropped(self.scale2 * self.down(F.gelu(self.up(self.norm2(x)))))


@pair("compile_model", "fuse_pointwise", "fuse_norm")
def picture_transformer_with_scaled_branches():
    x = rand(64, 256, 768)

    def make(wrap):
        model = nn.Sequential(Scaled(768, 12), Scaled(768, 12)).to(GPU)
        work = wrap(model)
        return training(model, lambda: work(x).float().pow(2).mean())
    return make(lambda model: model), make(compiled)


@pair("compile_model", "fuse_pointwise", "remove_copies")
def channels_mixed_with_the_token_before():
    width, x0 = 1024, rand(8, 2048, 1024, dtype=BF16)
    layers = [(torch.rand(2, width, device=GPU).to(BF16), weight(2 * width, width, BF16), weight(width, 2 * width, BF16), weight(width, width, BF16))
              for _ in range(4)]

    def step():
        x = x0
        for shares, w_key, w_value, w_gate in layers:
            y = F.layer_norm(x, (width,))
            last = F.pad(y, (0, 0, 1, -1))
            key = torch.relu(F.linear(y * shares[0] + last * (1 - shares[0]), w_key)) ** 2
            gate = torch.sigmoid(F.linear(y * shares[1] + last * (1 - shares[1]), w_gate))
            x = x + gate * F.linear(key, w_value)
        return x
    return step, compiled(step)


@pair("fuse_pointwise", "compile_model")
def quick_gelu_of_a_picture_encoder():
    x = rand(16384, 1024)

    def quick(y):
        return y * torch.sigmoid(1.702 * y)

    def make(activated):
        class Part(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm, self.up, self.down = nn.LayerNorm(1024), nn.Linear(1024, 4096), nn.Linear(4096, 1024)

            def forward(self, y):
                return y + self.down(activated(self.up(self.norm(y))))
        model = nn.Sequential(Part(), Part(), Part()).to(GPU)
        return training(model, lambda: model(x).float().pow(2).mean())
    return make(quick), make(compiled(quick))


@pair("fuse_norm", "fuse_pointwise", "compile_model")
def maps_normed_over_their_channels_by_hand():
    layout, width = torch.channels_last, 256
    x = rand(32, width, 56, 56, dtype=F16).to(memory_format=layout)
    ws = [rand(width, width, 1, 1, dtype=F16, scale=width ** -0.5).to(memory_format=layout) for _ in range(4)]
    gain, shift = torch.ones(width, dtype=F16, device=GPU), torch.zeros(width, dtype=F16, device=GPU)

    def by_hand(y):
        mean = y.mean(1, keepdim=True)
        spread = (y - mean).pow(2).mean(1, keepdim=True)
        return gain[:, None, None] * ((y - mean) / torch.sqrt(spread + 1e-5)) + shift[:, None, None]

    def by_library(y):
        return F.layer_norm(y.permute(0, 2, 3, 1), (width,), gain, shift).permute(0, 3, 1, 2)

    def run(normed):
        def step():
            y = x
            for w in ws:
                y = F.gelu(normed(F.conv2d(y, w)))
            return y
        return step
    return run(by_hand), run(by_library)


@pair("fuse_norm", "fuse_pointwise", "compile_model")
def student_taught_by_logarithms_of_softmaxes():
    words, x, teacher = 32000, rand(8, 512, 768), rand(4096, 32000, dtype=BF16)

    def by_hand(scores):
        p, q = torch.softmax(teacher / 2, -1), torch.softmax(scores / 2, -1)
        return (p * (torch.log(p + 1e-8) - torch.log(q + 1e-8))).sum(-1).mean()

    def by_library(scores):
        return F.kl_div(torch.log_softmax(scores / 2, -1), torch.log_softmax(teacher / 2, -1), reduction="batchmean", log_target=True)

    def make(apart):
        body, head = blocks(2, 768, 12), nn.Linear(768, words, bias=False).to(GPU)
        return training(nn.ModuleList([body, head]), lambda: apart(head(body(x)).view(-1, words)))
    return make(by_hand), make(by_library)


@pair("fuse_epilogue", "fuse_pointwise", "compile_model")
def layers_of_ones_own_that_add_their_bias():
    width, x0 = 512, rand(32, 1024, 512, dtype=F16)
    layers = [[(weight(out, inner, F16), rand(out, dtype=F16, scale=0.02))
               for out, inner in ((3 * width, width), (width, width), (4 * width, width), (width, 4 * width))] for _ in range(4)]

    def by_hand(x, layer):
        return torch.matmul(x, layer[0].t()) + layer[1]

    def run(linear):
        def step():
            x = x0
            for qkv, out, up, down in layers:
                q, k, v = linear(F.layer_norm(x, (width,)), qkv).view(32, 1024, 3, 8, 64).permute(2, 0, 3, 1, 4).unbind(0)
                x = x + linear(causal(q, k, v).transpose(1, 2).reshape(32, 1024, width), out)
                x = x + linear(torch.relu(linear(F.layer_norm(x, (width,)), up)), down)
            return x
        return step
    return run(by_hand), run(lambda x, layer: F.linear(x, *layer))


# ---------------------------------------------------------------- attention and precision

@pair("flash_attention", "fuse_norm", "fuse_pointwise", "fuse_epilogue")
def residues_attended_with_a_bias_of_pairs():
    rows, length, heads, each = 128, 256, 8, 32
    width, x0, pairs = 256, rand(rows, length, 256, dtype=F16), rand(length, length, 128, dtype=F16)
    layers = [(weight(3 * width, width, F16), weight(width, width, F16), weight(width, width, F16), weight(heads, 128, F16)) for _ in range(3)]

    def by_products(q, k, v, bias):
        scores = torch.einsum("rhqd,rhkd->rhqk", q * each ** -0.5, k) + bias
        return torch.einsum("rhqk,rhkd->rhqd", torch.softmax(scores, -1), v)

    def run(attend):
        def step():
            x = x0
            for w_qkv, w_gate, w_out, w_bias in layers:
                y = F.layer_norm(x, (width,))
                q, k, v = F.linear(y, w_qkv).view(rows, length, 3, heads, each).permute(2, 0, 3, 1, 4).unbind(0)
                bias = F.linear(pairs, w_bias).permute(2, 0, 1).contiguous().unsqueeze(0)
                mixed = attend(q, k, v, bias).transpose(1, 2).reshape(rows, length, width)
                x = x + F.linear(torch.sigmoid(F.linear(y, w_gate)) * mixed, w_out)
            return x
        return step
    return run(by_products), run(lambda q, k, v, bias: F.scaled_dot_product_attention(q, k, v, attn_mask=bias))


@pair("flash_attention", "fuse_norm", "fuse_pointwise")
def chunk_of_a_prompt_attended_by_products():
    heads, each, new, past = 16, 128, 1024, 8192
    width, x0 = 2048, rand(1, 1024, 2048, dtype=BF16)
    layers = [(weight(3 * width, width, BF16), weight(width, width, BF16)) for _ in range(4)]
    caches = [rand(2, 1, heads, past, each, dtype=BF16) for _ in layers]
    seen = torch.arange(past, device=GPU) <= torch.arange(past - new, past, device=GPU)[:, None]

    def by_products(q, k, v):
        scores = (q @ k.mT * each ** -0.5).masked_fill(~seen, float("-inf"))
        return torch.softmax(scores.float(), -1).to(BF16) @ v

    def run(attend):
        def step():
            x = x0
            for (w_qkv, w_out), cache in zip(layers, caches):
                qkv = F.linear(F.layer_norm(x, (width,)), w_qkv).view(1, new, 3, heads, each).permute(2, 0, 3, 1, 4)
                cache[:, :, :, past - new:] = qkv[1:]
                x = x + F.linear(attend(qkv[0], cache[0], cache[1]).transpose(1, 2).reshape(1, new, width), w_out)
            return x
        return step
    return run(by_products), run(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=seen))


@pair("tensor_cores")
def head_of_a_language_model_kept_out_of_autocast():
    words, width, x, targets = 16000, 768, rand(8, 512, 768), ints(16000, 4096)

    def make(narrow):
        body, head = blocks(4, width, 12), nn.Linear(width, words, bias=False).to(GPU)

        def loss():
            hidden = body(x).view(-1, width)
            with torch.autocast(GPU, BF16, enabled=narrow):
                scores = head(hidden if narrow else hidden.float())
            return F.cross_entropy(scores.float(), targets)
        return training(nn.ModuleList([body, head]), loss)
    return make(False), make(True)


@pair("quantize")
def diffusion_transformer_left_in_bf16():
    tokens, width, heads, unit = 8192, 4096, 32, torch.ones((), device=GPU)
    x0, narrow = rand(2, tokens // 2, width, dtype=BF16), torch.float8_e4m3fn
    layers = products(2, width)
    layers8 = [[w.to(narrow).t() for w in layer] for layer in layers]

    def linear8(x, w):
        y = torch._scaled_mm(x.reshape(tokens, -1).to(narrow), w, scale_a=unit, scale_b=unit, out_dtype=BF16)
        return y.view(2, tokens // 2, -1)

    def run(weights, linear):
        def step():
            x = x0
            for qkv, out, up, down in weights:
                q, k, v = linear(F.layer_norm(x, (width,)), qkv).view(2, tokens // 2, 3, heads, 128).permute(2, 0, 3, 1, 4).unbind(0)
                x = x + linear(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(2, tokens // 2, width), out)
                x = x + linear(F.relu(linear(F.layer_norm(x, (width,)), up)), down)
            return x
        return step
    return run(layers, F.linear), run(layers8, linear8)


@pair("cast_weights_once", "remove_copies", "reuse_result", "quantize")
def autocast_entered_for_each_token():
    x0 = rand(4, 1, 4096)

    def make(dtype):
        with torch.device(GPU):
            model = blocks(2, 4096, 32, attend=F.scaled_dot_product_attention).to(dtype)
        x1 = x0.to(dtype)

        def step():
            x = x1
            for _ in range(4):
                with torch.autocast(GPU, BF16):
                    x = torch.tanh(model(x))
            return x
        return without_gradients(step)
    return make(torch.float32), make(BF16)


# ---------------------------------------------------------------- work that need not be done

@pair("reduce_problem")
def critic_trained_through_its_generator():
    layout, noise = torch.channels_last, rand(32, 64, 64, 64)
    real = rand(32, 3, 64, 64).to(memory_format=layout)

    def net(*widths):
        parts = []
        for inner, out in zip(widths, widths[1:]):
            parts += [nn.Conv2d(inner, out, 3, padding=1), nn.LeakyReLU(0.2)]
        return nn.Sequential(*parts).to(GPU).to(memory_format=layout)

    def make(detached):
        generator, critic = net(64, 128, 128, 128, 3), net(3, 64, 128, 128, 1)
        seeds = noise.to(memory_format=layout)

        def loss():
            generator.zero_grad()
            invented = generator(seeds)
            invented = invented.detach() if detached else invented
            return F.softplus(critic(invented).float()).mean() + F.softplus(-critic(real).float()).mean()
        return training(critic, loss)
    return make(False), make(True)


@pair("reduce_problem")
def sentences_padded_to_the_greatest_length():
    lengths = torch.randint(24, 192, (64,), device=GPU)
    width, x0 = 768, rand(64, 512, 768, dtype=BF16)
    layers = products(3, width)

    def run(longest):
        seen = torch.arange(longest, device=GPU) < lengths[:, None]
        mask, first = seen[:, None, None, :].expand(-1, 1, longest, -1), x0[:, :longest].contiguous()

        def step():
            x = first
            for qkv, out, up, down in layers:
                q, k, v = F.linear(F.layer_norm(x, (width,)), qkv).view(64, longest, 3, 12, 64).permute(2, 0, 3, 1, 4).unbind(0)
                mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
                x = x + F.linear(mixed.transpose(1, 2).reshape(64, longest, width), out)
                x = x + F.linear(F.gelu(F.linear(F.layer_norm(x, (width,)), up)), down)
            return (x * seen[..., None]).sum(1) / lengths[:, None]
        return step
    return run(512), run(192)


@pair("reuse_result", "reduce_problem")
def words_generated_without_a_cache():
    batch, start, count, width, heads = 4, 2048, 12, 1024, 16
    prompt = rand(batch, start, width, dtype=BF16)
    layers = products(6, width)
    caches = [torch.zeros(2, batch, heads, start + count, 64, dtype=BF16, device=GPU) for _ in layers]

    def passed(x, attend):
        length = x.shape[1]
        for number, (qkv, out, up, down) in enumerate(layers):
            q, k, v = F.linear(F.layer_norm(x, (width,)), qkv).view(batch, length, 3, heads, 64).permute(2, 0, 3, 1, 4).unbind(0)
            x = x + F.linear(attend(number, q, k, v).transpose(1, 2).reshape(batch, length, width), out)
            x = x + F.linear(F.gelu(F.linear(F.layer_norm(x, (width,)), up)), down)
        return torch.tanh(x[:, -1:])

    def before():
        x = prompt
        for _ in range(count):
            x = torch.cat([x, passed(x, lambda number, q, k, v: causal(q, k, v))], 1)
        return x[:, start:]

    def after():
        x, at, found = prompt, 0, []
        for _ in range(count):
            end = at + x.shape[1]

            def attend(number, q, k, v, at=at, end=end):
                keys, values = caches[number]
                keys[:, :, at:end], values[:, :, at:end] = k, v
                return F.scaled_dot_product_attention(q, keys[:, :, :end], values[:, :, :end], is_causal=at == 0)
            x, at = passed(x, attend), end
            found.append(x)
        return torch.cat(found, 1)
    return before, after


# ---------------------------------------------------------------- copies, fills and places in memory

@pair("remove_copies", "reuse_result", "stop_allocating")
def mask_repeated_for_each_head():
    heads, x0 = 16, rand(8, 1024, 1024, dtype=BF16)
    mask = torch.zeros(8, 1, 1024, 1024, dtype=BF16, device=GPU).masked_fill(torch.rand(8, 1, 1024, 1024, device=GPU) < 0.1, -10000.0)
    layers = [(weight(3072, 1024, BF16), weight(1024, 1024, BF16)) for _ in range(4)]

    def run(spread):
        def step():
            x = x0
            for w_in, w_out in layers:
                q, k, v = F.linear(x, w_in).view(8, 1024, 3, heads, 64).permute(2, 0, 3, 1, 4).unbind(0)
                mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=spread(mask))
                x = x + F.linear(mixed.transpose(1, 2).reshape(8, 1024, 1024), w_out)
            return x
        return step
    return run(lambda mask: mask.repeat(1, heads, 1, 1)), run(lambda mask: mask.expand(-1, heads, -1, -1))


@pair("remove_copies")
def cache_turned_for_each_token():
    batch, heads, past, each, count = 16, 16, 2048, 64, 6
    width, x0 = 1024, rand(16, 1, 1024, dtype=BF16)
    layers = [(weight(3 * width, width, BF16), weight(width, width, BF16)) for _ in range(count)]
    caches = [[rand(batch, past, heads, each, dtype=BF16) for _ in range(2)] for _ in range(count)]
    turned = [[cache.transpose(1, 2).contiguous() for cache in both] for both in caches]

    def run(stored, keep, read):
        def step():
            x = x0
            for (w_in, w_out), (keys, values) in zip(layers, stored):
                q, k, v = F.linear(x, w_in).view(batch, 1, 3, heads, each).unbind(2)
                keep(keys, k)
                keep(values, v)
                mixed = F.scaled_dot_product_attention(q.transpose(1, 2), read(keys), read(values))
                x = x + F.linear(mixed.transpose(1, 2).reshape(batch, 1, width), w_out)
            return x
        return step
    return (run(caches, lambda cache, new: cache[:, -1:].copy_(new), lambda cache: cache.transpose(1, 2).contiguous()),
            run(turned, lambda cache, new: cache[:, :, -1:].copy_(new.transpose(1, 2)), lambda cache: cache))


@pair("remove_fills", "remove_copies", "fuse_pointwise")
def gradients_added_to_cleared_sums():
    parts = [rand(512, 2048) for _ in range(2)]

    def make(cleared):
        with torch.device(GPU):
            model = nn.Sequential(*[part for _ in range(3) for part in (nn.Linear(2048, 8192), nn.ReLU(), nn.Linear(8192, 2048))])
        weights = list(model.parameters())
        optimizer = torch.optim.SGD(weights, lr=1e-5, fused=True)

        def step():
            sums = [torch.zeros_like(w) for w in weights] if cleared else None
            for x in parts:
                with torch.autocast(GPU, BF16):
                    loss = model(x).float().pow(2).mean()
                found = list(torch.autograd.grad(loss, weights))
                if sums is None:
                    sums = found
                else:
                    torch._foreach_add_(sums, found)
            for w, total in zip(weights, sums):
                w.grad = total
            optimizer.step()
        return step
    return make(True), make(False)


@pair("channels_last", "remove_copies")
def sharper_pictures_learnt_in_planes():
    class Part(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Conv2d(64, 64, 3, padding=1), nn.Conv2d(64, 64, 3, padding=1)

        def forward(self, x):
            return x + self.second(F.relu(self.first(x)))
    small, large = rand(16, 3, 96, 96), rand(16, 3, 192, 192)

    def make(layout):
        net = nn.Sequential(nn.Conv2d(3, 64, 3, padding=1), *[Part() for _ in range(6)], nn.Conv2d(64, 256, 3, padding=1),
                            nn.PixelShuffle(2), nn.Conv2d(64, 3, 3, padding=1)).to(GPU).to(memory_format=layout)
        x, goal = (y.to(memory_format=layout) for y in (small, large))
        return training(net, lambda: (net(x) - goal).float().abs().mean())
    return make(torch.contiguous_format), make(torch.channels_last)


@pair("local_gathers", "coalesce")
def graph_trained_with_its_edges_shuffled():
    nodes, each, width = 1 << 19, 8, 64
    target = torch.arange(nodes, device=GPU).repeat_interleave(each)
    source = (target + ints(512, nodes * each)) % nodes
    order, x, goal = torch.randperm(nodes * each, device=GPU), rand(nodes, width), rand(nodes, width)

    def make(source, target):
        layers = nn.ModuleList(nn.Linear(width, width) for _ in range(2)).to(GPU)

        def loss():
            y = x
            for layer in layers:
                sent = layer(y).index_select(0, source)
                y = torch.relu(torch.zeros_like(x).index_add(0, target, sent))
            return (y - goal).pow(2).mean()
        return training(layers, loss, dtype=None)
    return make(source[order], target[order]), make(source, target)


@pair("align_dimensions")
def posts_described_by_602_numbers():
    def make(features):
        x, near = rand(131072, features, dtype=F16), rand(131072, features, dtype=F16)
        goal, w_out = rand(131072, 48, dtype=F16), weight(48, 256, F16).requires_grad_()
        w_self, w_near = (weight(256, features, F16).requires_grad_() for _ in range(2))

        def step():
            hidden = torch.relu(F.linear(x, w_self) + F.linear(near, w_near))
            out = F.linear(hidden, w_out)
            return torch.autograd.grad((out.float() - goal).pow(2).sum() * 1e-3, [w_self, w_near, w_out])
        return step
    return make(602), make(608)


# ---------------------------------------------------------------- training that does more than it must

@pair("fused_optimizer", "cut_host_work", "cuda_graphs", "compile_model")
def rate_of_its_own_for_each_tensor():
    x = rand(8, 128, 512)

    def make(apart):
        model = blocks(8, 512, 8)
        groups = []
        for depth, block in enumerate(model):
            rate, weights = 1e-5 * 0.9 ** (7 - depth), list(block.parameters())
            groups += [{"params": [w], "lr": rate} for w in weights] if apart else [{"params": weights, "lr": rate}]
        optimizer = torch.optim.AdamW(groups, **({} if apart else {"fused": True}))

        def step():
            model.zero_grad()
            with torch.autocast(GPU, BF16):
                loss = model(x).float().pow(2).mean()
            loss.backward()
            optimizer.step()
        return step
    return make(True), make(False)


@pair("recompute_less")
def picture_transformer_checkpointed_by_habit():
    x = rand(32, 256, 1024)

    def make(kept):
        model = nn.ModuleList(Scaled(1024, 16) for _ in range(4)).to(GPU)

        def loss():
            y = x
            for part in model:
                y = part(y) if kept else checkpoint(part, y, use_reentrant=False)
            return y.float().pow(2).mean()
        return training(model, loss)
    return make(False), make(True)


@pair("stop_allocating", "remove_syncs")
def cache_emptied_after_each_microbatch():
    parts = [rand(8, 256, 768) for _ in range(4)]

    def make(empties):
        model = blocks(3, 768, 12)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)

        def step():
            model.zero_grad()
            for x in parts:
                with torch.autocast(GPU, BF16):
                    loss = model(x).float().pow(2).mean() / 4
                loss.backward()
                del loss
                if empties:
                    torch.cuda.empty_cache()
            optimizer.step()
        return step
    return make(True), make(False)
