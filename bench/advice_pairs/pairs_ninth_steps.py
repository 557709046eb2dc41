# SPDX-License-Identifier: Apache-2.0
"""The whole steps of the ninth set: training, inference and data of programs that practitioners bring.

pairs_ninth.py says how the set was written, and takes these pairs in.
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

import pairs_seventh_steps as seventh
from pairs_practice import BF16, F16, compiled, rotate_half
from pairs_seventh_steps import Conformer, blocks, causal, training
from pairs_sixth import ints
from pairs_unseen import GPU, captured, pair, rand, weight, with_precision

seventh.PAIRS.clear()
PAIRS = seventh.PAIRS


# ---------------------------------------------------------------- attention and language models

@pair("flash_attention", "fuse_norm", "fuse_pointwise", "fuse_epilogue")
def pictures_attended_by_batched_products():
    heads, tokens, each = 8, 4096, 64
    x0, words = rand(2, tokens, 512, dtype=F16), rand(2, 77, 512, dtype=F16)
    layers = [[weight(512, 512, F16) for _ in range(8)] for _ in range(2)]

    def split(y):
        return y.view(2, -1, heads, each).transpose(1, 2)

    def by_products(q, k, v):
        q, k, v = (y.reshape(2 * heads, -1, each) for y in (q, k, v))
        nothing = torch.empty(2 * heads, q.shape[1], k.shape[1], dtype=F16, device=GPU)
        scores = torch.baddbmm(nothing, q, k.mT, beta=0, alpha=each ** -0.5)
        return torch.bmm(scores.softmax(-1), v).view(2, heads, -1, each)

    def run(attend):
        def step():
            x = x0
            for q1, k1, v1, out1, q2, k2, v2, out2 in layers:
                mixed = attend(split(F.linear(x, q1)), split(F.linear(x, k1)), split(F.linear(x, v1)))
                x = x + F.linear(mixed.transpose(1, 2).reshape(2, tokens, 512), out1)
                mixed = attend(split(F.linear(x, q2)), split(F.linear(words, k2)), split(F.linear(words, v2)))
                x = x + F.linear(mixed.transpose(1, 2).reshape(2, tokens, 512), out2)
            return x
        return step
    return run(by_products), run(F.scaled_dot_product_attention)


@pair("flash_attention", "fuse_norm", "fuse_pointwise")
def encoder_trained_with_dropout_on_its_shares():
    x = rand(32, 512, 768)

    def by_products(q, k, v):
        shares = torch.softmax(q @ k.mT / 8, dim=-1)
        return F.dropout(shares, 0.1).to(v.dtype) @ v

    def make(attend):
        model = blocks(3, 768, 12, attend=attend)
        return training(model, lambda: model(x).float().pow(2).mean())
    return make(by_products), make(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, dropout_p=0.1))


@pair("compile_model", "fuse_pointwise", "fuse_norm", "remove_copies")
def rotary_decoder_in_training():
    width, heads, length = 1024, 16, 1024
    x = rand(8, length, width)
    angles = torch.arange(length, device=GPU)[:, None] * 10000.0 ** (-torch.arange(0, 64, 2, device=GPU) / 64)
    cos, sin = (of(angles).repeat(1, 2).to(BF16) for of in (torch.cos, torch.sin))

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.Parameter(torch.ones(width)), nn.Parameter(torch.ones(width))
            self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
            self.gate, self.up, self.down = nn.Linear(width, 2816, bias=False), nn.Linear(width, 2816, bias=False), nn.Linear(2816, width, bias=False)

        def forward(self, x):
            y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.norm1
            q, k, v = self.qkv(y).view(8, length, 3, heads, 64).permute(2, 0, 3, 1, 4).unbind(0)
            q, k = (z * cos + rotate_half(z) * sin for z in (q, k))
            x = x + self.out(causal(q, k, v).transpose(1, 2).reshape(8, length, width))
            y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.norm2
            return x + self.down(F.silu(self.gate(y)) * self.up(y))

    def make(wrap):
        model = nn.Sequential(Layer(), Layer()).to(GPU)
        work = wrap(model)
        return training(model, lambda: work(x).float().pow(2).mean())
    return make(lambda model: model), make(compiled)


@pair("quantize")
def prompt_processed_in_bf16():
    tokens, width, inner = 8192, 8192, 28672
    x, unit = rand(tokens, width, dtype=BF16), torch.ones((), device=GPU)
    up, down = weight(inner, width, BF16), weight(width, inner, BF16)
    up8, down8 = up.to(torch.float8_e4m3fn).t(), down.to(torch.float8_e4m3fn).t()

    def product8(y, w):
        return torch._scaled_mm(y.to(torch.float8_e4m3fn), w, scale_a=unit, scale_b=unit, out_dtype=BF16)
    return (lambda: F.linear(F.relu(F.linear(x, up)), down)), lambda: product8(F.relu(product8(x, up8)), down8)


@pair("cast_weights_once", "remove_copies")
def teacher_cast_under_autocast():
    x = rand(4, 64, 2048)

    def make(dtype):
        teacher, seen = blocks(3, 2048, 16).requires_grad_(False).to(dtype), x.to(dtype)
        student = nn.Sequential(nn.Linear(2048, 256), nn.GELU(), nn.Linear(256, 2048)).to(GPU)

        def loss():
            with torch.no_grad():
                aim = teacher(seen)
            return (student(x) - aim).float().pow(2).mean()
        return training(student, loss)
    return make(torch.float32), make(BF16)


@pair("remove_copies", "fuse_pointwise", "compile_model")
def activations_cast_to_float32_and_back():
    ws, x0, b = [weight(1024, 1024, F16) for _ in range(6)], rand(32768, 1024, dtype=F16), rand(1024, dtype=F16)

    def run(activated):
        def step():
            x = x0
            for w in ws:
                x = activated(F.linear(x, w, b))
            return x
        return step
    return run(lambda y: F.gelu(y.float()).to(F16)), run(F.gelu)


@pair("cut_host_work", "cuda_graphs", "compile_model", "remove_fills")
def masks_filled_sentence_by_sentence():
    lengths = np.random.default_rng(0).integers(16, 128, 192).tolist()
    x, ends = rand(192, 128, 256, dtype=BF16), torch.tensor(lengths, device=GPU)
    w, place = weight(256, 256, BF16), torch.arange(128, device=GPU)

    def by_sentence():
        mask = torch.zeros(192, 128, device=GPU, dtype=BF16)
        for i, length in enumerate(lengths):
            mask[i, :length] = 1
        return mask

    def run(made):
        def step():
            mask = made().unsqueeze(-1)
            return (F.linear(x, w) * mask).sum(1) / mask.sum(1)
        return step
    return run(by_sentence), run(lambda: (place < ends[:, None]).to(BF16))


# ---------------------------------------------------------------- sound, pictures and boxes

@pair("recompute_less")
def speech_encoder_with_every_block_checkpointed():
    x = rand(16, 400, 512)

    def make(kept):
        model = nn.ModuleList(Conformer(512, 8) for _ in range(3)).to(GPU)

        def loss():
            y = x
            for block in model:
                y = block(y) if kept else checkpoint(block, y, use_reentrant=False)
            return y.float().pow(2).mean()
        return training(model, loss)
    return make(False), make(True)


@pair("channels_last", "remove_copies", "fuse_pointwise")
def detector_pyramid_in_planes():
    def make(layout):
        x = rand(8, 3, 640, 640, dtype=F16).to(memory_format=layout)
        shapes = [(64, 3, 7), (128, 64, 3), (256, 128, 3), (512, 256, 3)]
        body = [rand(out, inner, size, size, dtype=F16, scale=(inner * size * size) ** -0.5).to(memory_format=layout) for out, inner, size in shapes]
        sides = [rand(128, out, 1, 1, dtype=F16, scale=out ** -0.5).to(memory_format=layout) for out, _, _ in shapes[1:]]
        head = rand(128, 128, 3, 3, dtype=F16, scale=0.03).to(memory_format=layout)

        def step():
            y, levels = x, []
            for w in body:
                y = torch.relu(F.conv2d(y, w, stride=2, padding=w.shape[-1] // 2))
                levels.append(y)
            top, found = None, []
            for level, side in zip(levels[:0:-1], sides[::-1]):
                lateral = F.conv2d(level, side)
                top = lateral if top is None else lateral + F.interpolate(top, scale_factor=2.0)
                found.append(F.conv2d(torch.relu(F.conv2d(top, head, padding=1)), head, padding=1))
            return found
        return step
    return make(torch.contiguous_format), make(torch.channels_last)


@pair("remove_syncs", "cut_host_work")
def boxes_kept_by_a_threshold_per_level():
    levels = [(torch.rand(16 * size, device=GPU), rand(16 * size, 4)) for size in (6400, 1600, 400, 100, 25)]

    def decoded(scores, boxes):
        middle, side = boxes[:, :2], boxes[:, 2:].clamp(max=4).exp()
        return torch.cat([middle - side / 2, middle + side / 2, scores.unsqueeze(1)], 1)

    def before():
        found = []
        for scores, boxes in levels:
            kept = scores > 0.97
            found.append(decoded(scores[kept], boxes[kept]))
        return torch.cat(found)

    def after():
        found = []
        for scores, boxes in levels:
            best = scores.topk(min(1024, scores.numel())).indices
            found.append(decoded(scores[best], boxes[best]))
        return torch.cat(found)
    return before, after


@pair("keep_on_device", "remove_syncs", "pin_memory", "overlap_copies")
def envelope_taken_by_numpy():
    clips, w_in, w_out = rand(8, 1, 16000), rand(8, 1, 64, scale=0.12), rand(16, 8, 16, scale=0.08)
    gains = np.zeros(4000, dtype=np.complex64)
    gains[1:2000] = 2
    gains_there = torch.from_numpy(gains).to(GPU)

    def run(envelope):
        return lambda: F.conv1d(envelope(F.conv1d(clips, w_in, stride=4)[..., :3980]), w_out, stride=4)

    def by_numpy(y):
        return torch.from_numpy(np.abs(np.fft.ifft(np.fft.fft(y.cpu().numpy(), 4000) * gains)).astype(np.float32)).to(GPU)
    return run(by_numpy), run(lambda y: torch.fft.ifft(torch.fft.fft(y, 4000) * gains_there).abs())


# ---------------------------------------------------------------- recommenders, series, control and chemistry

@pair("tensor_cores")
def recommender_trained_in_float32():
    ids, dense, clicked = ints(100_000, 16384, 8), rand(16384, 64), torch.randint(2, (16384,), device=GPU).float()
    table = rand(100_000, 64, scale=0.1)

    def make(precision):
        sizes = [8 * 64 + 64, 1024, 1024, 512]
        parts = [part for inner, out in zip(sizes, sizes[1:]) for part in (nn.Linear(inner, out), nn.ReLU())]
        model = nn.Sequential(*parts, nn.Linear(512, 1)).to(GPU)

        def loss():
            seen = torch.cat([F.embedding(ids, table).flatten(1), dense], 1)
            return F.binary_cross_entropy_with_logits(model(seen).squeeze(1), clicked)
        return with_precision(precision, training(model, loss, dtype=None))
    return make("highest"), make("high")


@pair("fused_optimizer", "compile_model")
def world_model_with_the_default_adam():
    x, states = rand(64, 1024), rand(64, 2048)

    def make(**options):
        cell = nn.GRUCell(1024, 2048).to(GPU)
        head = nn.Sequential(nn.Linear(2048, 4096), nn.SiLU(), nn.Linear(4096, 4096), nn.SiLU(), nn.Linear(4096, 1024)).to(GPU)
        model = nn.ModuleList([cell, head])
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-5, **options)

        def step():
            model.zero_grad()
            (head(cell(x, states)) - x).pow(2).mean().backward()
            optimizer.step()
        return with_precision("high", step)
    return make(foreach=True), make(fused=True)


@pair("cuda_graphs", "compile_model", "cut_host_work")
def forecast_rolled_out_hour_by_hour():
    past, w_in, w_mid, w_out = rand(32, 24, 16), weight(256, 384), weight(256, 256), weight(16, 256)
    ones = torch.ones(256, device=GPU)

    def step():
        seen, found = past, []
        for _ in range(24):
            h = F.gelu(F.linear(seen.flatten(1), w_in))
            h = F.layer_norm(h + F.gelu(F.linear(h, w_mid)), (256,), ones)
            found.append(F.linear(h, w_out) + seen[:, -1])
            seen = torch.cat([seen[:, 1:], found[-1].unsqueeze(1)], 1)
        return torch.stack(found, 1)
    return step, captured(step)


@pair("reuse_result", "reduce_problem")
def critic_run_again_for_the_advantages():
    seen, actions, returns = rand(65536, 128), ints(8, 65536), rand(65536)

    def make(once):
        critic = nn.Sequential(nn.Linear(128, 512), nn.Tanh(), nn.Linear(512, 512), nn.Tanh(), nn.Linear(512, 1)).to(GPU)
        actor = nn.Linear(128, 8).to(GPU)

        def loss():
            values = critic(seen).squeeze(1)
            if once:
                advantages = returns - values.detach()
            else:
                with torch.no_grad():
                    advantages = returns - critic(seen).squeeze(1)
            chosen = F.log_softmax(actor(seen), -1).gather(1, actions.unsqueeze(1)).squeeze(1)
            return (values - returns).pow(2).mean() - (chosen * advantages).mean()
        return training(nn.ModuleList([critic, actor]), loss, dtype=None)
    return make(False), make(True)


@pair("align_dimensions")
def atoms_described_by_133_numbers():
    def make(features):
        x, goal = rand(131072, features, dtype=BF16), rand(131072, 512, dtype=BF16)
        ws = [weight(512, features, BF16).requires_grad_(), weight(512, 512, BF16).requires_grad_()]

        def step():
            out = F.linear(torch.relu(F.linear(x, ws[0])), ws[1])
            return torch.autograd.grad((out * goal).sum(), ws)
        return step
    return make(133), make(136)


@pair("batch_products", "cut_host_work", "cuda_graphs", "compile_model", "fill_the_device")
def molecules_multiplied_one_by_one():
    links, atoms = torch.softmax(rand(64, 32, 32), -1), rand(64, 32, 128)
    ws = [weight(128, 128) for _ in range(3)]

    def mixed(links, x):
        for w in ws:
            x = torch.relu(F.linear(links @ x, w))
        return x.mean(-2)
    return (lambda: torch.stack([mixed(links[i], atoms[i]) for i in range(64)])), lambda: mixed(links, atoms)


# ---------------------------------------------------------------- memory of the host

@pair("pin_memory", "overlap_copies", "keep_on_device")
def experts_fetched_from_ordinary_memory():
    hosts = [torch.randn(2048, 2048).to(F16) for _ in range(6)]
    pinned, x0 = [host.pin_memory() for host in hosts], rand(4096, 2048, dtype=F16)

    def run(weights):
        def step():
            return sum(torch.tanh(F.linear(x0, w.to(GPU, non_blocking=True) * 0.02)) for w in weights)
        return step
    return run(hosts), run(pinned)


@pair("feed_the_device", "keep_on_device", "cut_host_work", "pin_memory")
def windows_of_a_series_cut_in_python():
    series, starts = torch.randn(1 << 20, 8), torch.randint((1 << 20) - 192, (1024,)).tolist()
    there, first = series.to(GPU), torch.tensor(starts, device=GPU)
    place = torch.arange(96, device=GPU)

    def make(cut):
        model = nn.Sequential(nn.Flatten(), nn.Linear(768, 512), nn.GELU(), nn.Linear(512, 768)).to(GPU)

        def loss():
            past, future = cut()
            return (model(past) - future.flatten(1)).pow(2).mean()
        return training(model, loss, dtype=None)

    def by_python():
        past = torch.stack([series[at:at + 96] for at in starts])
        future = torch.stack([series[at + 96:at + 192] for at in starts])
        return past.to(GPU), future.to(GPU)

    def by_index():
        rows = first[:, None] + place
        return there[rows], there[rows + 96]
    return make(by_python), make(by_index)


@pair("overlap_copies", "keep_on_device")
def slices_of_a_scan_sent_and_fetched():
    count, layout = 6, torch.channels_last
    hosts, backs = ([torch.zeros(1, 16, 768, 768, dtype=F16).to(memory_format=layout).pin_memory() for _ in range(count)] for _ in range(2))
    slots = [torch.zeros(1, 16, 768, 768, dtype=F16, device=GPU).to(memory_format=layout) for _ in range(count)]
    shapes = [(64, 16), (64, 64), (64, 64), (16, 64)]
    ws = [rand(out, inner, 3, 3, dtype=F16, scale=0.04).to(memory_format=layout) for out, inner in shapes]
    up, down, arrived = torch.cuda.Stream(), torch.cuda.Stream(), [torch.cuda.Event() for _ in range(count)]

    def work(x):
        for w in ws:
            x = torch.relu(F.conv2d(x, w, padding=1))
        return x

    def before():
        for host, slot, back in zip(hosts, slots, backs):
            slot.copy_(host, non_blocking=True)
            back.copy_(work(slot), non_blocking=True)

    def after():
        main = torch.cuda.current_stream()
        up.wait_stream(main)
        with torch.cuda.stream(up):
            for host, slot, event in zip(hosts, slots, arrived):
                slot.copy_(host, non_blocking=True)
                event.record()
        for slot, back, event in zip(slots, backs, arrived):
            main.wait_event(event)
            out = work(slot)
            down.wait_stream(main)
            with torch.cuda.stream(down):
                back.copy_(out, non_blocking=True)
            out.record_stream(down)
        main.wait_stream(down)
    return before, after
