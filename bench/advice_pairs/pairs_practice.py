# SPDX-License-Identifier: Apache-2.0
"""A third set of pairs: programs as practitioners of many fields write them, recorded before any rule was changed for them.

As in pairs_unseen.py. `@pair(RULE, ALSO…)`: `after` carries RULE out, so its interval alone is judged; the others name the
same cure of the same fault, so they count as named. Half of the set is sealed by the hash of its names (run.py).
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import triton
import triton.language as tl

import pairs_unseen as unseen
from pairs_unseen import GPU, captured, null, pair, rand, weight

unseen.PAIRS.clear()
PAIRS = unseen.PAIRS
BF16, F16 = torch.bfloat16, torch.float16


def without_gradients(work):
    def step():
        with torch.no_grad():
            return work()
    return step


def compiled(work):
    return torch.compile(work, dynamic=False)


# ---------------------------------------------------------------- language models

def rms_by_hand(x, w):
    y = x.float()
    return (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * w


def rotate_half(x):
    left, right = x.chunk(2, dim=-1)
    return torch.cat((-right, left), dim=-1)


@pair("cuda_graphs", "compile_model", "cut_host_work")
def llama_decodes_one_token():
    layers, heads, each, past = 8, 16, 64, 512
    width = heads * each
    x0, cos, sin = rand(1, 1, width, dtype=F16), rand(1, 1, 1, each, dtype=F16), rand(1, 1, 1, each, dtype=F16)
    keys = [rand(1, heads, past, each, dtype=F16) for _ in range(layers)]
    values = [rand(1, heads, past, each, dtype=F16) for _ in range(layers)]
    qkv, out = ([weight(n * width, width, F16) for _ in range(layers)] for n in (3, 1))
    gate, up = ([weight(2816, width, F16) for _ in range(layers)] for _ in range(2))
    down = [weight(width, 2816, F16) for _ in range(layers)]
    ones = torch.ones(width, device=GPU, dtype=F16)

    def step():
        with torch.no_grad():
            x = x0
            for layer in range(layers):
                q, k, v = F.linear(rms_by_hand(x, ones), qkv[layer]).view(1, 1, 3, heads, each).unbind(2)
                q, k, v = (y.transpose(1, 2) for y in (q, k, v))
                q, k = q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin
                keys[layer][:, :, -1:].copy_(k)
                values[layer][:, :, -1:].copy_(v)
                mixed = F.scaled_dot_product_attention(q, keys[layer], values[layer])
                x = x + F.linear(mixed.transpose(1, 2).reshape(1, 1, width), out[layer])
                y = rms_by_hand(x, ones)
                x = x + F.linear(F.silu(F.linear(y, gate[layer])) * F.linear(y, up[layer]), down[layer])
            return x
    return step, captured(step)


@pair("compile_model", "fuse_pointwise", "remove_copies")
def eager_rotary_of_a_prefill():
    q, k = rand(8, 32, 2048, 128, dtype=BF16), rand(8, 8, 2048, 128, dtype=BF16)
    cos, sin = rand(1, 1, 2048, 128, dtype=BF16), rand(1, 1, 2048, 128, dtype=BF16)

    def step():
        return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin
    return step, compiled(step)


@pair("reduce_problem")
def prefill_logits_of_all_positions():
    hidden, head = rand(4, 1536, 2048, dtype=BF16), weight(49152, 2048, BF16)
    w = weight(2048, 2048, BF16)

    def run(cut):
        def step():
            x = hidden
            for _ in range(4):
                x = F.silu(F.linear(x, w))
            logits = F.linear(cut(x), head)
            return torch.argmax(logits[:, -1, :], dim=-1)
        return step
    return run(lambda x: x), run(lambda x: x[:, -1:, :])


@pair("align_dimensions", "fuse_epilogue")
def language_model_head_of_50257():
    def make(vocabulary):
        head = weight(vocabulary, 1024, BF16).requires_grad_()
        hidden = rand(4096, 1024, dtype=BF16).requires_grad_()
        labels = torch.randint(50257, (4096,), device=GPU)

        def step():
            loss = F.cross_entropy(F.linear(hidden, head).float(), labels)
            torch.autograd.grad(loss, (hidden, head))
        return step
    return make(50257), make(50304)


@pair("fused_optimizer")
def small_gpt_with_the_default_adamw():
    class Block(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads = heads
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            b, t, c = x.shape
            q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
            return x + self.down(F.gelu(self.up(self.norm2(x))))

    tokens = torch.randint(8192, (4, 513), device=GPU)

    def make(**options):
        embed, head = nn.Embedding(8192, 1024).to(GPU), nn.Linear(1024, 8192, bias=False).to(GPU)
        blocks = nn.Sequential(*[Block(1024, 16) for _ in range(8)]).to(GPU)
        parameters = [*embed.parameters(), *blocks.parameters(), *head.parameters()]
        optimizer = torch.optim.AdamW(parameters, lr=1e-4, **options)

        def step():
            with torch.autocast(GPU, BF16):
                logits = head(blocks(embed(tokens[:, :-1])))
                loss = F.cross_entropy(logits.view(-1, 8192).float(), tokens[:, 1:].reshape(-1))
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        return step
    return make(), make(fused=True)


@pair("batch_products", "remove_syncs", "cut_host_work")
def experts_by_boolean_masks():
    experts, width, inner, tokens = 16, 512, 1024, 4096
    x = rand(tokens, width, dtype=BF16)
    up, down = rand(experts, width, inner, dtype=BF16, scale=0.04), rand(experts, inner, width, dtype=BF16, scale=0.03)
    chosen = torch.arange(tokens, device=GPU) % experts
    chosen = chosen[torch.randperm(tokens, device=GPU)]

    def before():
        out = torch.zeros_like(x)
        for e in range(experts):
            mine = chosen == e
            out[mine] = F.gelu(x[mine] @ up[e]) @ down[e]
        return out

    def after():
        order = torch.argsort(chosen)
        sorted_x = x[order].view(experts, tokens // experts, width)
        y = torch.bmm(F.gelu(torch.bmm(sorted_x, up)), down).view(tokens, width)
        return torch.empty_like(x).index_copy_(0, order, y)
    return before, after


@pair("fuse_norm", "fuse_pointwise", "compile_model")
def distillation_loss_by_hand():
    student, teacher = rand(8192, 8192), rand(8192, 8192)

    def step():
        s, t = student / 2.0, teacher / 2.0
        p = torch.exp(t - torch.logsumexp(t, -1, keepdim=True))
        log_q = s - torch.logsumexp(s, -1, keepdim=True)
        log_p = torch.log(p + 1e-9)
        return (p * (log_p - log_q)).sum(-1).mean() * 4.0
    return step, compiled(step)


@pair("reuse_result")
def relative_positions_in_each_layer():
    length, heads, layers = 1024, 16, 6
    table, x0 = rand(32, heads, dtype=BF16), rand(1, heads, length, length, dtype=BF16)

    def bias():
        at = torch.arange(length, device=GPU)
        far = (at[:, None] - at[None, :]).abs()
        large = 16 + (torch.log(far.float().clamp(min=1) / 16) / 2.0794 * 16).long()
        bucket = torch.where(far < 16, far, large.clamp(max=31))
        return F.embedding(bucket, table).permute(2, 0, 1).unsqueeze(0)
    kept = bias().contiguous()

    def run(of_layer):
        def step():
            x = x0
            for _ in range(layers):
                x = torch.softmax(x + of_layer(), dim=-1)
            return x
        return step
    return run(bias), run(lambda: kept)


@pair("cast_weights_once")
def autocast_over_a_small_decoder():
    layers = [nn.Linear(2048, 2048).to(GPU) for _ in range(12)]
    layers16 = [nn.Linear(2048, 2048).to(GPU, BF16) for _ in range(12)]
    x = rand(32, 2048)
    x16 = x.to(BF16)

    def before():
        with torch.no_grad(), torch.autocast(GPU, BF16):
            y = x
            for layer in layers:
                y = F.relu(layer(y))
            return y

    def after():
        with torch.no_grad():
            y = x16
            for layer in layers16:
                y = F.relu(layer(y))
            return y
    return before, after


# ---------------------------------------------------------------- pictures and video

@pair("tensor_cores")
def picture_transformer_left_in_float32():
    layer = nn.TransformerEncoderLayer(768, 12, 3072, dropout=0.0, batch_first=True, activation="gelu", norm_first=True)
    model = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False).to(GPU).eval()
    model16 = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False).to(GPU, BF16).eval()
    x = rand(32, 196, 768)
    x16 = x.to(BF16)
    return without_gradients(lambda: model(x)), without_gradients(lambda: model16(x16))


def convolutions(width, count, dtype, layout, norm=True):
    layers = []
    for _ in range(count):
        layers += [nn.Conv2d(width, width, 3, padding=1, bias=not norm)]
        layers += [nn.BatchNorm2d(width)] if norm else []
        layers += [nn.ReLU(inplace=True)]
    return nn.Sequential(*layers).to(GPU, dtype).to(memory_format=layout)


@pair("cuda_graphs", "compile_model", "cut_host_work")
def detector_on_one_picture():
    model = convolutions(64, 24, F16, torch.channels_last).eval()
    x = rand(1, 64, 40, 40, dtype=F16).contiguous(memory_format=torch.channels_last)
    step = without_gradients(lambda: model(x))
    return step, captured(step)


@pair("channels_last")
def picture_decoder_in_planes():
    def make(layout):
        model = nn.Sequential(nn.Conv2d(4, 256, 3, padding=1), nn.SiLU(), nn.Upsample(scale_factor=2),
                              nn.Conv2d(256, 256, 3, padding=1), nn.SiLU(), nn.Upsample(scale_factor=2),
                              nn.Conv2d(256, 128, 3, padding=1), nn.SiLU(), nn.Conv2d(128, 128, 3, padding=1), nn.SiLU(),
                              nn.Conv2d(128, 3, 3, padding=1)).to(GPU, F16).to(memory_format=layout)
        x = rand(8, 4, 64, 64, dtype=F16).contiguous(memory_format=layout)
        return without_gradients(lambda: model(x))
    return make(torch.contiguous_format), make(torch.channels_last)


@pair("remove_copies", "channels_last")
def camera_frames_made_contiguous():
    frames = torch.randint(256, (64, 480, 640, 3), device=GPU, dtype=torch.uint8).to(F16)
    kernel = rand(16, 3, 5, 5, dtype=F16, scale=0.1).contiguous(memory_format=torch.channels_last)

    def run(arrange):
        def step():
            x = arrange(frames.permute(0, 3, 1, 2))
            return F.conv2d(x, kernel, stride=4)
        return step
    return run(lambda x: x.contiguous()), run(lambda x: x)


@pair("flash_attention", "fuse_norm")
def shifted_windows_with_a_bias():
    windows, heads, tokens, each = 2048, 8, 64, 32
    q, k, v = (rand(windows, heads, tokens, each, dtype=F16) for _ in range(3))
    bias = rand(1, heads, tokens, tokens, dtype=F16)
    scale = each ** -0.5

    def before():
        scores = (q * scale) @ k.transpose(-2, -1)
        scores = scores + bias
        return F.softmax(scores, dim=-1) @ v

    def after():
        return F.scaled_dot_product_attention(q, k, v, attn_mask=bias.expand(windows, -1, -1, -1))
    return before, after


@pair("cut_host_work", "cuda_graphs", "compile_model", "batch_products")
def boxes_compared_picture_by_picture():
    pictures, boxes, truths = 32, 400, 20

    def some(count):
        corner = torch.rand(pictures, count, 2, device=GPU)
        return torch.cat([corner, corner + torch.rand(pictures, count, 2, device=GPU) * 0.3], dim=-1)
    found, wanted = some(boxes), some(truths)

    def overlap(a, b):
        low, high = torch.maximum(a[..., :, None, :2], b[..., None, :, :2]), torch.minimum(a[..., :, None, 2:], b[..., None, :, 2:])
        both = (high - low).clamp(min=0).prod(-1)
        area_a, area_b = (a[..., 2:] - a[..., :2]).prod(-1), (b[..., 2:] - b[..., :2]).prod(-1)
        return (both / (area_a[..., :, None] + area_b[..., None, :] - both)).max(-1).values

    def before():
        return torch.stack([overlap(found[i], wanted[i]) for i in range(pictures)])
    return before, lambda: overlap(found, wanted)


@pair("feed_the_device")
def loader_without_workers():
    class Pictures(torch.utils.data.Dataset):
        def __init__(self):
            self.raw = np.random.default_rng(0).integers(0, 255, (64, 64, 64, 3), dtype=np.uint8)

        def __len__(self):
            return 1 << 20

        def __getitem__(self, at):
            picture = self.raw[at % 64].astype(np.float32) / 255
            picture = np.flip(picture, axis=1) if at % 2 else picture
            picture = (picture - picture.mean((0, 1))) / (picture.std((0, 1)) + 1e-3)
            return torch.from_numpy(np.ascontiguousarray(picture.transpose(2, 0, 1))), at % 10

    torch.set_num_threads(4)

    def make(workers):
        model = nn.Sequential(nn.Conv2d(3, 64, 3, padding=1), *convolutions(64, 6, torch.float32, torch.contiguous_format),
                              nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)).to(GPU)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        options = {"persistent_workers": True, "prefetch_factor": 4} if workers else {}
        batches = iter(torch.utils.data.DataLoader(Pictures(), batch_size=64, num_workers=workers, **options))

        def step():
            x, y = next(batches)
            loss = F.cross_entropy(model(x.to(GPU)), y.to(GPU))
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        return step
    return make(0), make(8)


# ---------------------------------------------------------------- sound

@pair("cut_host_work", "cuda_graphs", "compile_model")
def spectrograms_clip_by_clip():
    clips = rand(48, 32000)
    window, mel = torch.hann_window(400, device=GPU), torch.rand(80, 201, device=GPU)

    def log_mel(sound):
        power = torch.stft(sound, 400, 160, window=window, return_complex=True).abs().pow(2)
        return torch.log10((mel @ power).clamp(min=1e-10))

    def before():
        return torch.stack([log_mel(clip) for clip in clips])
    return before, lambda: log_mel(clips)


@pair("align_dimensions", "fuse_epilogue")
def speech_features_of_161_bins():
    def make(bins):
        x = rand(65536, bins, dtype=F16)
        w, b = weight(1024, bins, F16), rand(1024, dtype=F16, scale=0.02)
        back, back_bias = weight(bins, 1024, F16), rand(bins, dtype=F16, scale=0.02)
        return lambda: torch.sigmoid(F.linear(F.relu(F.linear(x, w, b)), back, back_bias))
    return make(161), make(168)


@pair("cut_host_work", "cuda_graphs", "compile_model")
def speech_cell_stepped_in_python():
    length, batch, width = 60, 32, 256
    cell, whole = nn.LSTMCell(width, width).to(GPU), nn.LSTM(width, width).to(GPU)
    xs = rand(length, batch, width)
    zero = torch.zeros(batch, width, device=GPU)

    def before():
        h = c = zero
        out = []
        for x in xs:
            h, c = cell(x, (h, c))
            out.append(h)
        return torch.stack(out)
    return without_gradients(before), without_gradients(lambda: whole(xs)[0])


@pair("remove_copies", "stop_allocating", "cut_host_work")
def samples_appended_by_cat():
    width, batch, length = 2048, 256, 48
    x0 = rand(batch, 1, width, dtype=BF16)
    kept = torch.empty(batch, length, width, device=GPU, dtype=BF16)

    def before():
        out = x0
        for _ in range(length - 1):
            new = torch.tanh(out[:, -1:] * 0.9)
            out = torch.cat([out, new], dim=1)
        return out

    def after():
        kept[:, :1] = x0
        for at in range(1, length):
            kept[:, at:at + 1] = torch.tanh(kept[:, at - 1:at] * 0.9)
        return kept
    return before, after


# ---------------------------------------------------------------- recommendation, graphs, points

@pair("cut_host_work", "cuda_graphs", "compile_model")
def embedding_tables_one_by_one():
    tables, rows, width, batch = 26, 20000, 32, 2048
    each = [rand(rows, width, scale=0.1) for _ in range(tables)]
    merged = torch.cat(each)
    ids = torch.randint(rows, (batch, tables), device=GPU)
    offset = torch.arange(tables, device=GPU) * rows
    w1, w2 = weight(256, tables * width), weight(1, 256)

    def run(look_up):
        def step():
            return torch.sigmoid(F.linear(F.relu(F.linear(look_up(), w1)), w2))
        return step

    def one_by_one():
        return torch.cat([F.embedding(ids[:, t], each[t]) for t in range(tables)], dim=1)
    return run(one_by_one), run(lambda: F.embedding(ids + offset, merged).view(batch, -1))


@pair("reduce_problem", "remove_fills", "fused_optimizer")
def dense_gradients_of_a_large_table():
    rows, width, batch = 1 << 20, 64, 8192
    ids = torch.randint(rows, (batch,), device=GPU)
    w = weight(64, width)

    def make(sparse):
        table = nn.Embedding(rows, width, sparse=sparse).to(GPU)
        optimizer = torch.optim.SGD(table.parameters(), lr=0.1)

        def step():
            optimizer.zero_grad()
            F.linear(table(ids), w).pow(2).mean().backward()
            optimizer.step()
        return step
    return make(False), make(True)


@pair("local_gathers", "coalesce")
def neighbours_of_scattered_points():
    points, near, width = 1 << 21, 8, 16
    x = rand(points, width)
    at = (torch.arange(points, device=GPU)[:, None] + torch.arange(near, device=GPU) * 3) % points
    new_name = torch.randperm(points, device=GPU)
    scattered = new_name[at]

    def run(neighbours):
        return lambda: x[neighbours].sum(1)
    return run(scattered), run(at)


@pair("local_gathers", "coalesce")
def messages_along_unsorted_edges():
    nodes, edges, width = 1 << 20, 1 << 23, 32
    x = rand(nodes, width, dtype=F16)
    source, target = torch.randint(nodes, (edges,), device=GPU), torch.randint(nodes, (edges,), device=GPU)
    order = torch.argsort(source)
    source_sorted, target_sorted = source[order], target[order]

    def run(a, b):
        return lambda: torch.zeros_like(x).index_add_(0, b, x.index_select(0, a))
    return run(source, target), run(source_sorted, target_sorted)


@pair("keep_on_device", "reuse_result", "remove_copies")
def mask_sent_for_each_layer():
    mask = torch.ones(2048, 2048).tril().to(BF16)
    on_device = mask.to(GPU)
    x0, w = rand(2048, 2048, dtype=BF16), weight(2048, 2048, BF16)

    def run(of_layer):
        def step():
            x = x0
            for _ in range(6):
                x = F.linear(x, w) * of_layer()
            return x
        return step
    return run(lambda: mask.to(GPU)), run(lambda: on_device)


# ---------------------------------------------------------------- reinforcement learning, logging

@pair("remove_syncs", "keep_on_device")
def actions_read_one_by_one():
    w1, w2, w3 = weight(256, 32), weight(256, 256), weight(4, 256)
    state0, drift = rand(64, 32), rand(4, 32)

    def policy(state):
        return F.linear(torch.tanh(F.linear(torch.tanh(F.linear(state, w1)), w2)), w3)

    def before():
        state = state0
        for _ in range(12):
            action = int(policy(state).sum(0).argmax().item())
            state = state + 0.01 * drift[action]
        return state

    def after():
        state = state0
        for _ in range(12):
            action = policy(state).sum(0).argmax()
            state = state + 0.01 * drift.index_select(0, action.view(1))
        return state
    return without_gradients(before), without_gradients(after)


@pair("remove_syncs")
def metrics_printed_each_step():
    model = nn.Sequential(*[layer for _ in range(6) for layer in (nn.Linear(1024, 1024), nn.GELU())]).to(GPU, BF16)
    x, log = rand(4096, 1024, dtype=BF16), []
    parameters = list(model.parameters())

    def make(read):
        def step():
            log.clear()
            y = x
            for layer in model:
                y = layer(y)
                log.append(read(y.abs().max()))
            loss = y.float().pow(2).mean()
            log.append(read(loss))
            gradients = torch.autograd.grad(loss, parameters)
            for gradient in gradients:
                log.append(read(gradient.norm()))
        return step
    return make(lambda value: value.item()), make(lambda value: value.detach())


@pair("remove_syncs", "overlap_copies", "keep_on_device", "pin_memory")
def activations_logged_to_the_host():
    w, x0 = weight(4096, 4096, BF16), rand(4096, 4096, dtype=BF16)

    def run(keep):
        def step():
            x, kept = x0, []
            for _ in range(4):
                x = torch.tanh(F.linear(x, w))
                kept.append(keep(x))
            return kept
        return step
    return run(lambda x: x[:512].float().cpu()), run(lambda x: x[:512].float())


# ---------------------------------------------------------------- science

@pair("leave_float64", "tensor_cores", "compile_model", "fuse_pointwise")
def heat_equation_left_in_float64():
    def make(dtype):
        u0 = torch.rand(4096, 4096, device=GPU, dtype=dtype)

        def step():
            u = u0
            for _ in range(4):
                inner = u[1:-1, 2:] + u[1:-1, :-2] + u[2:, 1:-1] + u[:-2, 1:-1] - 4 * u[1:-1, 1:-1]
                u = u.clone()
                u[1:-1, 1:-1] += 0.1 * inner
            return u
        return step
    return make(torch.float64), make(torch.float32)


@pair("leave_float64", "tensor_cores")
def kernel_matrix_of_numpy_arrays():
    data = np.random.default_rng(0).normal(size=(6144, 256))

    def make(dtype):
        x = torch.from_numpy(data).to(GPU, dtype)
        y = torch.ones(6144, 1, device=GPU, dtype=dtype)

        def step():
            squared = (x * x).sum(1)
            far = squared[:, None] + squared[None, :] - 2 * (x @ x.t())
            return torch.exp(-0.01 * far) @ y
        return step
    return make(torch.float64), make(torch.float32)


# ---------------------------------------------------------------- own kernels in Triton

@triton.jit
def product_kernel(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row, column = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        left = tl.load(a + row[:, None] * k + (start + inner)[None, :])
        right = tl.load(b + (start + inner)[:, None] * n + column[None, :])
        total += tl.dot(left, right)
    tl.store(c + row[:, None] * n + column[None, :], total.to(tl.bfloat16))


@pair("tune_kernel")
def own_product_of_small_tiles():
    size = 4096
    a, b = rand(size, size, dtype=BF16), rand(size, size, dtype=BF16)
    c = torch.empty(size, size, device=GPU, dtype=BF16)

    def run(bm, bn, bk, warps, stages):
        grid = (size // bm, size // bn)
        return lambda: product_kernel[grid](a, b, c, size, size, size, bm, bn, bk, num_warps=warps, num_stages=stages)
    return run(16, 32, 16, 4, 1), run(128, 128, 64, 8, 3)


@triton.jit
def rows_kernel(x, out, columns, BLOCK: tl.constexpr, ROWS: tl.constexpr):
    first = tl.program_id(0) * ROWS
    for row in range(ROWS):
        total = tl.zeros((BLOCK,), dtype=tl.float32)
        for start in range(0, columns, BLOCK):
            total += tl.load(x + (first + row) * columns + start + tl.arange(0, BLOCK))
        tl.store(out + first + row, tl.sum(total))


@pair("fill_the_device")
def own_row_sums_in_few_programs():
    rows, columns = 4096, 8192
    x, out = rand(rows, columns), torch.empty(rows, device=GPU)

    def run(each):
        return lambda: rows_kernel[(rows // each,)](x, out, columns, 1024, each)
    return run(512), run(1)


@triton.jit
def scale_kernel(x, out, n, STRIDE: tl.constexpr, BLOCK: tl.constexpr):
    lane, program = tl.arange(0, BLOCK), tl.program_id(0)
    at = (program % STRIDE) + (program // STRIDE) * STRIDE * BLOCK + lane * STRIDE
    tl.store(out + at, tl.load(x + at, mask=at < n) * 2.0, mask=at < n)


@pair("coalesce", "stream_wider", "tune_kernel")
def own_kernel_of_strided_loads():
    n = 1 << 26
    x, out = rand(n), torch.empty(n, device=GPU)
    grid = (n // 1024,)
    return (lambda: scale_kernel[grid](x, out, n, 1024, 1024)), lambda: scale_kernel[grid](x, out, n, 1, 1024)


# ---------------------------------------------------------------- changes that gain nothing

@null("compile_model", "fuse_epilogue", "cut_host_work")
def null_compiled_wide_layers():
    ws = [weight(8192, 8192, BF16) for _ in range(4)]
    x0 = rand(8192, 8192, dtype=BF16)

    def step():
        x = x0
        for w in ws:
            x = F.linear(x, w)
        return x
    return step, compiled(step)


@null("cuda_graphs", "cut_host_work")
def null_graph_of_a_large_encoder():
    layer = nn.TransformerEncoderLayer(1024, 16, 4096, dropout=0.0, batch_first=True)
    model = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False).to(GPU, BF16).train()
    x = rand(32, 512, 1024, dtype=BF16)
    step = without_gradients(lambda: model(x))
    return step, captured(step)


@null("remove_syncs")
def null_loss_read_after_long_steps():
    ws = [weight(4096, 4096, BF16).requires_grad_() for _ in range(8)]
    x0 = rand(16384, 4096, dtype=BF16)

    def run(read):
        def step():
            x = x0
            for w in ws:
                x = F.linear(x, w)
            loss = x.float().mean()
            torch.autograd.grad(loss, ws)
            return read(loss)
        return step
    return run(lambda loss: loss.item()), run(lambda loss: loss)


@null("local_gathers", "coalesce")
def null_rows_in_order():
    table = rand(1 << 21, 64)
    at = torch.randint(1 << 21, (1 << 21,), device=GPU).sort().values
    return (lambda: table[at]), lambda: table.index_select(0, at)


@null("fused_optimizer")
def null_optimizer_of_a_few_weights():
    x = rand(16384, 2048, dtype=BF16)

    def make(**options):
        model = nn.Sequential(*[nn.Linear(2048, 2048) for _ in range(2)]).to(GPU, BF16)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, **options)

        def step():
            y = x
            for _ in range(12):
                y = model(y)
            y.float().pow(2).mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        return step
    return make(foreach=True), make(fused=True)


@null("overlap_copies", "pin_memory", "keep_on_device")
def null_batch_already_on_its_way():
    pinned = torch.randn(2048, 4096).to(BF16).pin_memory()
    buffers = [torch.empty(2048, 4096, device=GPU, dtype=BF16) for _ in range(2)]
    w = weight(4096, 4096, BF16)
    side = torch.cuda.Stream()
    turn = [0]

    def make(copy):
        def step():
            turn[0] ^= 1
            torch.cuda.current_stream().wait_stream(side)
            x = buffers[turn[0]]
            if copy:
                side.wait_stream(torch.cuda.current_stream())
                with torch.cuda.stream(side):
                    buffers[turn[0] ^ 1].copy_(pinned, non_blocking=True)
            for _ in range(16):
                x = F.linear(x, w)
            return x
        return step
    return make(True), make(False)


@null("align_dimensions")
def null_odd_classes_after_wide_layers():
    ws = [weight(8192, 8192, BF16) for _ in range(3)]
    x0 = rand(8192, 8192, dtype=BF16)

    def make(classes):
        head = weight(classes, 8192, BF16)

        def step():
            x = x0
            for w in ws:
                x = F.linear(x, w)
            return F.linear(x[:256], head)
        return step
    return make(37), make(40)


@null("batch_products", "flash_attention")
def null_heads_already_batched():
    q, k, v = (rand(16, 16, 1024, 64, dtype=BF16) for _ in range(3))
    w = weight(1024, 1024, BF16)

    def step():
        x = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(16, 1024, 1024)
        return F.linear(x, w)
    return step, step
