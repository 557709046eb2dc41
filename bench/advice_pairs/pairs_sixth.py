# SPDX-License-Identifier: Apache-2.0
"""A sixth set, of kinds that the first five do not have: written and committed before any rule was changed after the fifth.

As in pairs_practice.py; half of it is set aside by the hash of its names. Written from what practitioners change, without
sight of the rules: for some of these programs a trace may show too little. `pairs_listing.py` prints the set without PyTorch.
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

import pairs_fifth as fifth
from pairs_fifth import trained
from pairs_practice import BF16, F16, compiled, without_gradients
from pairs_unseen import GPU, captured, null, pair, rand, weight

fifth.PAIRS.clear()
PAIRS = fifth.PAIRS
SYNCED = ["recurrent_net_of_cells", "caption_until_its_end", "null_loss_read_after_long_layers"]


def ints(high, *shape):
    return torch.randint(high, shape, device=GPU)


# ---------------------------------------------------------------- recurrent programs and decoding

@pair("cut_host_work", "cuda_graphs", "compile_model", "fuse_pointwise")
def recurrent_net_of_cells():
    cell, whole = nn.LSTMCell(128, 256).to(GPU), nn.LSTM(128, 256).to(GPU)
    x = rand(40, 64, 128)

    def before():
        h = c = torch.zeros(64, 256, device=GPU)
        out = []
        for t in range(40):
            h, c = cell(x[t], (h, c))
            out.append(h)
        return torch.stack(out)
    return without_gradients(before), without_gradients(lambda: whole(x)[0])


@pair("remove_syncs", "cut_host_work", "cuda_graphs")
def caption_until_its_end():
    w_in, w_h, w_out = weight(512, 256), weight(512, 512), weight(4000, 512)
    table, h0 = rand(4000, 256), rand(32, 512)

    def run(asks):
        def step():
            h, word = h0, torch.zeros(32, dtype=torch.long, device=GPU)
            done = torch.zeros(32, dtype=torch.bool, device=GPU)
            for _ in range(16):
                h = torch.tanh(F.linear(table[word], w_in) + F.linear(h, w_h))
                word = F.linear(h, w_out).argmax(1)
                done |= word == 4000
                if asks and bool(done.all()):
                    break
            return word
        return step
    return without_gradients(run(True)), without_gradients(run(False))


@pair("remove_copies", "reuse_result", "local_gathers")
def beams_that_reorder_their_cache():
    cache = [rand(32, 16, 512, 64, dtype=F16) for _ in range(8)]
    order, q = torch.arange(32, device=GPU), rand(32, 16, 1, 64, dtype=F16)

    def step(reorders):
        y = q
        for i, one in enumerate(cache):
            if reorders:
                cache[i] = one = one.index_select(0, order)
            y = F.scaled_dot_product_attention(y, one, one)
        return y
    return (lambda: step(True)), lambda: step(False)


@pair("reduce_problem", "fuse_norm", "compile_model")
def sampler_that_sorts_a_vocabulary():
    logits = rand(64, 128256, dtype=F16)

    def before():
        values, order = logits.sort(dim=-1, descending=True)
        return values[:, :50], order[:, :50]
    return before, lambda: logits.topk(50, dim=-1)


@pair("cuda_graphs", "compile_model", "cut_host_work")
def speculative_drafts_of_a_small_model():
    ws = [(weight(1024, 256, F16), weight(256, 1024, F16)) for _ in range(4)]
    head, x0, norm = weight(8000, 256, F16), rand(1, 256, dtype=F16), torch.ones(256, device=GPU, dtype=F16)
    table = rand(8000, 256, dtype=F16)

    def step():
        x = x0
        for _ in range(5):
            for up, down in ws:
                x = x + F.linear(F.silu(F.linear(F.layer_norm(x, (256,), norm), up)), down)
            x = table[F.linear(x, head).argmax(1)]
        return x
    return without_gradients(step), without_gradients(captured(without_gradients(step)))


# ---------------------------------------------------------------- recommenders and tables

@pair("cut_host_work", "cuda_graphs", "compile_model")
def twenty_six_tables_of_categories():
    rows, width, batch = 20000, 32, 4096
    tables = [rand(rows, width) for _ in range(26)]
    whole = torch.cat(tables)
    ids = ints(rows, batch, 26)
    offsets = torch.arange(26, device=GPU) * rows
    return (lambda: torch.cat([F.embedding(ids[:, i], table) for i, table in enumerate(tables)], 1),
            lambda: F.embedding(ids + offsets, whole).view(batch, -1))


@pair("reduce_problem", "local_gathers", "fuse_epilogue")
def categories_multiplied_as_one_hot():
    w, ids = rand(8192, 512), ints(8192, 8192)
    return (lambda: F.one_hot(ids, 8192).float() @ w), lambda: F.embedding(ids, w)


@pair("reduce_problem", "fuse_pointwise", "compile_model")
def histogram_by_comparing_with_each_bin():
    x, bins = ints(256, 1 << 20), torch.arange(256, device=GPU)
    return (lambda: (x[:, None] == bins).sum(0)), lambda: torch.bincount(x, minlength=256)


@pair("keep_on_device", "feed_the_device", "pin_memory", "overlap_copies")
def negatives_drawn_by_numpy():
    items, users = rand(100000, 64), rand(8192, 64)

    def run(draw):
        return lambda: (users * items[draw()]).sum(1)
    return (run(lambda: torch.from_numpy(np.random.randint(0, 100000, 8192)).to(GPU)),
            run(lambda: torch.randint(100000, (8192,), device=GPU)))


# ---------------------------------------------------------------- diffusion and pictures

@pair("reuse_result", "cut_host_work", "compile_model")
def prompt_encoded_at_each_denoising_step():
    layer = nn.TransformerEncoderLayer(768, 12, 3072, batch_first=True).to(GPU, F16).eval()
    prompt, x0, w = rand(8, 77, 768, dtype=F16), rand(8, 1024, 768, dtype=F16), weight(768, 768, F16)

    def run(again):
        def step():
            text, x = None, x0
            for _ in range(6):
                if again or text is None:
                    text = layer(prompt)
                k = F.linear(text, w)
                x = x + F.scaled_dot_product_attention(x, k, text)
            return x
        return without_gradients(step)
    return run(True), run(False)


@pair("keep_on_device", "pin_memory", "feed_the_device", "overlap_copies")
def noise_drawn_on_the_host():
    x, w = rand(32, 4, 64, 64), rand(4, 4, 3, 3)

    def run(noise):
        return lambda: F.conv2d(x + 0.1 * noise(), w, padding=1)
    return (run(lambda: torch.randn(32, 4, 64, 64).to(GPU)), run(lambda: torch.randn(32, 4, 64, 64, device=GPU)))


@pair("compile_model", "fuse_norm", "fuse_pointwise", "channels_last")
def residual_block_of_a_denoiser():
    x, w1, w2 = rand(16, 320, 32, 32, dtype=F16), *(rand(320, 320, 3, 3, dtype=F16, scale=0.02) for _ in range(2))
    scale = torch.ones(320, device=GPU, dtype=F16)

    def step():
        y = F.conv2d(F.silu(F.group_norm(x, 32, scale, scale)), w1, padding=1)
        return x + F.conv2d(F.silu(F.group_norm(y, 32, scale, scale)), w2, padding=1)
    return without_gradients(step), without_gradients(compiled(step))


@pair("remove_copies", "channels_last", "compile_model")
def layer_norm_of_planes_by_permuting():
    x, ones = rand(32, 256, 56, 56, dtype=F16), torch.ones(256, device=GPU, dtype=F16)
    planes = x.to(memory_format=torch.channels_last)

    def step(y):
        y = F.layer_norm(y.permute(0, 2, 3, 1).contiguous(), (256,), ones)
        return y.permute(0, 3, 1, 2).contiguous()
    return (lambda: step(x)), lambda: F.layer_norm(planes.permute(0, 2, 3, 1), (256,), ones)


@pair("fuse_epilogue", "fuse_norm", "compile_model", "fuse_pointwise")
def batch_norms_left_in_a_detector():
    convs = [nn.Conv2d(128, 128, 3, padding=1, bias=False) for _ in range(6)]
    norms = [nn.BatchNorm2d(128) for _ in range(6)]
    model = nn.Sequential(*[part for two in zip(convs, norms) for part in (*two, nn.ReLU())]).to(GPU, F16).eval()
    folded = nn.Sequential(*[part for two in zip(convs, norms)
                             for part in (torch.nn.utils.fuse_conv_bn_eval(*[one.eval() for one in two]), nn.ReLU())]).to(GPU, F16)
    x = rand(16, 128, 80, 80, dtype=F16)
    layout = {"memory_format": torch.channels_last}
    x, model, folded = x.to(**layout), model.to(**layout), folded.to(**layout)
    return without_gradients(lambda: model(x)), without_gradients(lambda: folded(x))


@pair("reduce_problem", "channels_last")
def wide_blur_in_two_dimensions():
    x, line = rand(16, 3, 512, 512), torch.softmax(rand(21), 0)
    whole = (line[:, None] * line).expand(3, 1, 21, 21).contiguous()
    rows, cols = line.view(1, 1, 21, 1).repeat(3, 1, 1, 1), line.view(1, 1, 1, 21).repeat(3, 1, 1, 1)
    return (lambda: F.conv2d(x, whole, groups=3, padding=10),
            lambda: F.conv2d(F.conv2d(x, rows, groups=3, padding=(10, 0)), cols, groups=3, padding=(0, 10)))


@pair("remove_copies", "fuse_epilogue", "reduce_problem")
def convolution_by_unfolding():
    x, w = rand(32, 64, 64, 64, dtype=F16), rand(128, 64, 3, 3, dtype=F16, scale=0.05)
    rows = w.view(128, -1)
    return (lambda: (rows @ F.unfold(x, 3, padding=1)).view(32, 128, 64, 64)), lambda: F.conv2d(x, w, padding=1)


@pair("tensor_cores")
def super_resolution_in_float32():
    model = nn.Sequential(nn.Conv2d(64, 64, 3, padding=1), nn.PReLU(), nn.Conv2d(64, 64, 3, padding=1)).to(GPU)
    x = rand(8, 64, 256, 256)

    def run(tf32):
        def step():
            with torch.backends.cudnn.flags(enabled=True, allow_tf32=tf32):
                return model(x)
        return without_gradients(step)
    return run(False), run(True)


@pair("pin_memory", "overlap_copies", "keep_on_device")
def pictures_sent_as_floats():
    pictures = torch.randint(256, (64, 3, 224, 224), dtype=torch.uint8)
    floats, pinned = pictures.float(), pictures.float().pin_memory()
    w = rand(64, 3, 7, 7)
    return (lambda: F.conv2d(floats.to(GPU), w, stride=4)), lambda: F.conv2d(pinned.to(GPU, non_blocking=True), w, stride=4)


# ---------------------------------------------------------------- language models in training and serving

@pair("flash_attention", "fuse_norm")
def library_attention_that_returns_weights():
    model = nn.MultiheadAttention(768, 12, batch_first=True).to(GPU, BF16).eval()
    x = rand(16, 512, 768, dtype=BF16)
    return (without_gradients(lambda: model(x, x, x, need_weights=True)[0]),
            without_gradients(lambda: model(x, x, x, need_weights=False)[0]))


@pair("flash_attention", "fuse_norm", "fuse_pointwise")
def attention_with_linear_biases():
    q, k, v = (rand(4, 16, 1024, 64, dtype=BF16) for _ in range(3))
    place = torch.arange(1024, device=GPU)
    bias = (-(place[:, None] - place).abs() * torch.linspace(0.1, 1, 16, device=GPU).view(16, 1, 1)).to(BF16)
    return (lambda: torch.softmax(q @ k.mT / 8 + bias, -1) @ v,
            lambda: F.scaled_dot_product_attention(q, k, v, attn_mask=bias.expand(4, 16, 1024, 1024)))


@pair("recompute_less")
def checkpointed_encoder_of_wide_layers():
    def make(kept):
        layers = nn.ModuleList(nn.TransformerEncoderLayer(1024, 16, 4096, 0.0, batch_first=True) for _ in range(3)).to(GPU)

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = layers

            def forward(self, x):
                for layer in self.layers:
                    x = layer(x) if kept else checkpoint(layer, x, use_reentrant=False)
                return x
        return trained(Net(), rand(16, 512, 1024))
    return make(False), make(True)


@pair("recompute_less")
def checkpointed_convolutions():
    layers = nn.ModuleList(nn.Sequential(nn.Conv2d(128, 128, 3, padding=1), nn.GELU()) for _ in range(6)).to(GPU)
    x, parameters = rand(32, 128, 64, 64), list(layers.parameters())

    def run(kept):
        def step():
            y = x
            with torch.autocast(GPU, BF16):
                for layer in layers:
                    y = layer(y) if kept else checkpoint(layer, y, use_reentrant=False)
            return torch.autograd.grad(y.float().mean(), parameters)
        return step
    return run(False), run(True)


@pair("fused_optimizer", "cut_host_work", "cuda_graphs")
def adamw_over_many_small_tensors_one_by_one():
    model = nn.Sequential(*[nn.Sequential(nn.Linear(96, 96), nn.LayerNorm(96)) for _ in range(40)]).to(GPU)
    other = nn.Sequential(*[nn.Sequential(nn.Linear(96, 96), nn.LayerNorm(96)) for _ in range(40)]).to(GPU)
    x = rand(256, 96)
    return trained(model, x, autocast=False, foreach=False), trained(other, x, autocast=False, fused=True)


@pair("fused_optimizer", "cut_host_work", "compile_model")
def adam_of_a_network_of_large_tables():
    def make(fused):
        model = nn.Sequential(nn.Linear(512, 16384), nn.ReLU(), nn.Linear(16384, 512)).to(GPU)
        return trained(model, rand(256, 512), fused=fused)
    return make(None), make(True)


@pair("cut_host_work", "cuda_graphs", "compile_model", "remove_syncs")
def gradients_clipped_tensor_by_tensor():
    grads = [rand(256, 64) for _ in range(160)]

    def before():
        total = torch.zeros((), device=GPU)
        for g in grads:
            total = total + g.pow(2).sum()
        factor = torch.clamp(1 / (total.sqrt() + 1e-6), max=1)
        for g in grads:
            g.mul_(factor)

    def after():
        norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(grads)))
        torch._foreach_mul_(grads, torch.clamp(1 / (norm + 1e-6), max=1))
    return before, after


@pair("remove_fills", "fused_optimizer", "cut_host_work")
def gradients_set_to_zero():
    w = [nn.Parameter(rand(8192, 4096, dtype=BF16)) for _ in range(4)]
    x = rand(16, 4096, dtype=BF16)

    def run(none):
        def step():
            for one in w:
                if one.grad is not None:
                    if none:
                        one.grad = None
                    else:
                        one.grad.zero_()
            sum(F.linear(x, one).float().mean() for one in w).backward()
        return step
    return run(False), run(True)


@pair("fuse_norm", "reduce_problem", "compile_model")
def language_loss_in_float32_by_hand():
    logits, target = rand(4096, 32000, dtype=BF16), ints(32000, 4096)

    def before():
        p = logits.float()
        p = p - p.max(-1, keepdim=True).values
        logp = p - p.exp().sum(-1, keepdim=True).log()
        return -logp.gather(1, target[:, None]).mean()
    return before, lambda: F.cross_entropy(logits, target)


@pair("quantize")
def expert_of_sixteen_tokens_in_bf16():
    w = weight(28672, 8192, BF16)
    w8, scale = w.to(torch.float8_e4m3fn).t(), torch.ones((), device=GPU)
    x = rand(16, 8192, dtype=BF16)
    x8 = x.to(torch.float8_e4m3fn)
    return (lambda: F.linear(x, w)), lambda: torch._scaled_mm(x8, w8, scale_a=scale, scale_b=scale, out_dtype=BF16)


@pair("align_dimensions", "fuse_epilogue")
def scores_of_1001_classes_in_training():
    def make(classes):
        w = nn.Parameter(weight(classes, 2048, BF16))
        x = rand(16384, 2048, dtype=BF16)

        def step():
            w.grad = None
            F.linear(x, w).mean().backward()
        return step
    return make(1001), make(1008)


@pair("align_dimensions", "channels_last", "fuse_epilogue")
def hidden_size_of_a_pruned_model():
    def make(width):
        up, down = weight(width, 2048, F16), weight(2048, width, F16)
        x = rand(4096, 2048, dtype=F16)
        return lambda: F.linear(F.relu(F.linear(x, up)), down)
    return make(5461), make(5464)


# ---------------------------------------------------------------- science and graphs

@pair("batch_products", "cut_host_work", "slow_op", "cuda_graphs")
def covariances_factorised_one_by_one():
    a = rand(48, 32, 64)
    spd = a @ a.mT + 32 * torch.eye(32, device=GPU)
    return (lambda: [torch.linalg.cholesky_ex(one)[0] for one in spd]), lambda: torch.linalg.cholesky_ex(spd)[0]


@pair("fuse_pointwise", "compile_model")
def wave_equation_by_rolling():
    u, v = rand(4096, 4096), rand(4096, 4096)

    def step():
        around = torch.roll(u, 1, 0) + torch.roll(u, -1, 0) + torch.roll(u, 1, 1) + torch.roll(u, -1, 1)
        return 2 * u - v + 0.2 * (around - 4 * u)
    return step, compiled(step)


@pair("reduce_problem", "fuse_pointwise", "compile_model", "fuse_norm")
def distances_by_broadcasting():
    x, c = rand(16384, 64), rand(256, 64)

    def after():
        return (x.pow(2).sum(1, keepdim=True) + c.pow(2).sum(1) - 2 * x @ c.T).argmin(1)
    return (lambda: (x[:, None] - c).pow(2).sum(2).argmin(1)), after


@pair("leave_float64", "fuse_pointwise", "compile_model")
def features_of_a_clock_in_float64():
    hours = torch.from_numpy(np.random.rand(1 << 22)).to(GPU)
    waves = torch.from_numpy(np.arange(1, 5) * 2 * np.pi).to(GPU)
    short, short_waves = hours.float(), waves.float()

    def run(t, w):
        return lambda: torch.sin(t[:, None] * w) + torch.cos(t[:, None] * w)
    return run(hours, waves), run(short, short_waves)


@pair("local_gathers", "coalesce")
def particles_visited_in_random_order():
    place, order = rand(1 << 22, 4), torch.randperm(1 << 22, device=GPU)
    ordered = order.sort().values
    return (lambda: place.index_select(0, order) * 2), lambda: place.index_select(0, ordered) * 2


@pair("remove_syncs", "cut_host_work")
def cells_chosen_by_a_mask():
    x = rand(2048, 256)

    def before():
        y = x
        for _ in range(8):
            y = y + 0.1
            mask = y > 0
            y[mask] = 0
            y = y + y[mask].sum() * 0
        return y

    def after():
        y = x
        for _ in range(8):
            y = y + 0.1
            mask = y > 0
            y = torch.where(mask, 0.0, y)
            y = y + (y * mask).sum() * 0
        return y
    return before, after


@pair("remove_syncs", "cut_host_work", "cuda_graphs")
def loss_checked_for_nan():
    ws, x0 = [weight(512, 512, BF16) for _ in range(10)], rand(512, 512, dtype=BF16)

    def run(asks):
        def step():
            x = x0
            for w in ws:
                x = torch.tanh(F.linear(x, w))
                if asks and bool(torch.isnan(x).any()):
                    raise ValueError("not a number")
            return x
        return step
    return run(True), run(False)


@pair("keep_on_device", "remove_syncs", "cut_host_work", "pin_memory")
def scalars_made_into_tensors():
    x0 = rand(256, 256)

    def run(make):
        def step():
            x = x0
            for i in range(24):
                x = x * make(i) + 0.5
            return x
        return step
    factors = [torch.tensor(1.0 - 0.01 * i, device=GPU) for i in range(24)]
    return run(lambda i: torch.tensor(1.0 - 0.01 * i).to(GPU)), run(lambda i: factors[i])


@pair("cut_host_work", "cuda_graphs", "compile_model", "batch_products")
def forty_losses_of_forty_heads():
    heads = rand(40, 2048, 16)
    labels = rand(40, 2048, 16)
    return (lambda: sum(F.mse_loss(heads[i], labels[i]) for i in range(40)),
            lambda: (heads - labels).pow(2).mean((1, 2)).sum())


@pair("fill_the_device", "stream_wider")
def running_sums_of_four_long_signals():
    x = rand(1 << 20, 4)

    def after():
        inner = x.view(1024, 1024, 4).cumsum(1)
        before = F.pad(inner[:, -1].cumsum(0)[:-1], (0, 0, 1, 0))
        return (inner + before[:, None]).view(-1, 4)
    return (lambda: x.cumsum(0)), after


@pair("feed_the_device", "cut_host_work")
def sentences_padded_in_python():
    texts = [list(range(n)) for n in np.random.randint(20, 200, 256)]
    w, done = weight(512, 200), torch.tensor([t + [0] * (200 - len(t)) for t in texts], dtype=torch.float32, device=GPU)

    def before():
        batch = torch.tensor([t + [0] * (200 - len(t)) for t in texts], dtype=torch.float32).to(GPU)
        return F.linear(batch, w)
    return before, lambda: F.linear(done, w)


# ---------------------------------------------------------------- what suggests itself and gains nothing

@null("cuda_graphs", "cut_host_work", "compile_model")
def null_long_convolutions_one_by_one():
    w, x = rand(256, 256, 3, 3, dtype=F16, scale=0.02), rand(64, 256, 56, 56, dtype=F16)
    w, x = (y.to(memory_format=torch.channels_last) for y in (w, x))

    def step():
        return F.conv2d(F.conv2d(x, w, padding=1), w, padding=1)
    return step, captured(step)


@null("remove_syncs")
def null_loss_read_after_long_layers():
    ws, x0 = [weight(4096, 4096, BF16) for _ in range(12)], rand(16384, 4096, dtype=BF16)

    def run(read):
        def step():
            x = x0
            for w in ws:
                x = F.linear(x, w)
            return read(x.float().mean())
        return step
    return run(lambda loss: loss.item()), run(lambda loss: loss)


@null("local_gathers", "coalesce")
def null_wide_rows_in_any_order():
    table, order = rand(32768, 2048, dtype=BF16), torch.randperm(32768, device=GPU)
    ordered = torch.arange(32768, device=GPU)
    return (lambda: F.embedding(order, table)), lambda: F.embedding(ordered, table)


@null("fuse_norm", "fuse_pointwise", "compile_model")
def null_layer_norm_of_the_library():
    x, ones = rand(16384, 8192, dtype=BF16), torch.ones(8192, device=GPU, dtype=BF16)

    def step():
        return F.layer_norm(x, (8192,), ones, ones)
    return step, compiled(step)


@null("pin_memory", "overlap_copies")
def null_copies_from_pinned_memory():
    host, w, x0 = torch.randn(256, 1024).pin_memory(), weight(8192, 8192, BF16), rand(8192, 8192, dtype=BF16)

    def step():
        return host.to(GPU, non_blocking=True), F.linear(F.linear(x0, w), w)
    return step, step


@null("reuse_result", "reduce_problem")
def null_products_of_other_operands():
    w, xs = weight(4096, 4096, BF16), [rand(8192, 4096, dtype=BF16) for _ in range(6)]

    def step():
        return [F.linear(x, w) for x in xs]
    return step, step


@null("recompute_less", "fused_optimizer")
def null_training_with_all_kept():
    model = nn.Sequential(*[nn.Linear(2048, 2048) for _ in range(4)]).to(GPU, BF16)
    step = trained(model, rand(32768, 2048, dtype=BF16), autocast=False, fused=True)
    return step, step


@null("fill_the_device", "stream_wider")
def null_sums_of_many_rows():
    x = rand(65536, 2048, dtype=BF16)
    return (lambda: x.sum(1)), lambda: x.view(131072, 1024).sum(1)


@null("tensor_cores", "leave_float64")
def null_elementwise_work_in_float32():
    x = rand(1 << 26)
    return (lambda: torch.sqrt(x)), lambda: torch.rsqrt(x)


@null("channels_last", "remove_copies")
def null_copies_that_change_the_order_once():
    x, w = rand(64, 256, 28, 28, dtype=F16), weight(4096, 200704, F16)
    return (lambda: F.linear(x.flatten(1), w)), lambda: F.linear(x.view(64, -1), w)
