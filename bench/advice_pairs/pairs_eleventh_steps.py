# SPDX-License-Identifier: Apache-2.0
"""The whole steps of the eleventh set: training and inference of programs that practitioners bring.

Written on 27 November 2026 by a hand that had not read the rules, and recorded on that day. pairs_eleventh.py says how the set was
written, and takes these pairs in.
"""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

import pairs_seventh_steps as seventh
from pairs_practice import BF16, F16, compiled, without_gradients
from pairs_seventh_steps import blocks
from pairs_sixth import ints
from pairs_unseen import GPU, captured, pair, rand, weight, with_precision

seventh.PAIRS.clear()
PAIRS = seventh.PAIRS


def flat(result):
    """The tensors of a result, complex numbers as real ones."""
    if isinstance(result, (tuple, list)):
        return [one for part in result for one in flat(part)]
    result = result.detach()
    return [torch.view_as_real(result.resolve_conj()) if result.is_complex() else result]


def alike(before, after, most=0.03):
    """Both steps, after one run of each gave the same result: the difference is at most `most` of its size."""
    ours, theirs = [one.clone() for one in flat(before())], flat(after())
    assert len(ours) == len(theirs), "another number of results"
    for one, other in zip(ours, theirs):
        assert one.shape == other.shape, f"{tuple(one.shape)} and {tuple(other.shape)}"
        one, other = one.double(), other.double()
        error = float((one - other).norm() / other.norm().clamp(min=1e-6))
        assert error <= most, f"the results differ by {error:.3f} of their size"
    return before, after


def learnt(model, loss, dtype=BF16, **options):
    """A step of Adam with the gradients of `loss()`, which it returns."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-5, **(options or {"fused": True}))

    def step():
        model.zero_grad()
        with torch.autocast(GPU, dtype or BF16, enabled=dtype is not None):
            value = loss()
        value.backward()
        optimizer.step()
        return value.detach()
    return step


def replayed(step):
    """The step as a CUDA graph that gives its result."""
    kept = []

    def keeps():
        kept[:] = [step()]
    replay = captured(keeps)

    def run():
        replay()
        return kept[0]
    return run


# ---------------------------------------------------------------- attention

@pair("flash_attention", "fuse_norm", "fuse_pointwise")
def windows_of_a_genome_trained_with_einsum():
    x = rand(8, 1024, 512)

    def by_einsum(q, k, v):
        shares = torch.softmax(torch.einsum("bhqd,bhkd->bhqk", q, k) / 8, -1)
        return torch.einsum("bhqk,bhkd->bhqd", shares, v)

    def make(attend):
        torch.manual_seed(1)
        model = blocks(4, 512, 8, attend=attend)
        return learnt(model, lambda: model(x).float().pow(2).mean())
    return alike(make(by_einsum), make(F.scaled_dot_product_attention))


@pair("flash_attention", "fuse_norm", "fuse_pointwise", "remove_copies")
def pixels_that_look_at_a_prompt():
    pixels, words, width, heads = 4096, 77, 640, 10
    x0, text = rand(8, pixels, width, dtype=F16), rand(8, words, 768, dtype=F16)
    layers = [(weight(width, width, F16), weight(2 * width, 768, F16), weight(width, width, F16)) for _ in range(4)]

    def by_products(q, k, v):
        return torch.softmax((q @ k.mT).float() * 0.125, -1).to(F16) @ v

    def run(attend):
        def step():
            x = x0
            for w_q, w_kv, w_out in layers:
                q = F.linear(F.layer_norm(x, (width,)), w_q).view(8, pixels, heads, 64).transpose(1, 2)
                k, v = F.linear(text, w_kv).view(8, words, 2, heads, 64).permute(2, 0, 3, 1, 4).unbind(0)
                x = x + F.linear(attend(q, k, v).transpose(1, 2).reshape(8, pixels, width), w_out)
            return x
        return step
    return alike(run(by_products), run(F.scaled_dot_product_attention))


@pair("reduce_problem")
def windows_of_a_long_text_cut_by_a_mask():
    length, near, count = 8192, 512, 16
    q, k, v = (rand(2, 16, length, 64, dtype=BF16) for _ in range(3))
    place = torch.arange(length, device=GPU)
    back = place[:, None] - place
    band = (back >= 0) & (back < near)
    row, column = torch.arange(near, device=GPU)[:, None], torch.arange(2 * near, device=GPU)
    inside = ((column > row) & (column <= row + near)).repeat(count, 1, 1)
    inside[0] &= column >= near  # nothing comes before the first window

    def windows(y):
        """Each window with the one before it: (32, count, 2 near, 64)."""
        return F.pad(y, (0, 0, near, 0)).unfold(2, 2 * near, near).transpose(3, 4).reshape(32, count, 2 * near, 64)

    def before():
        return F.scaled_dot_product_attention(q, k, v, attn_mask=band)

    def after():
        mixed = F.scaled_dot_product_attention(q.view(32, count, near, 64), windows(k), windows(v), attn_mask=inside[None])
        return mixed.reshape(2, 16, length, 64)
    return alike(before, after)


# ---------------------------------------------------------------- training

class Radial(nn.Module):
    """A layer of functions that are sums of bumps."""

    def __init__(self, inner, out):
        super().__init__()
        self.norm, self.spread, self.base = nn.LayerNorm(inner), nn.Linear(8 * inner, out), nn.Linear(inner, out)
        self.register_buffer("centres", torch.linspace(-2, 2, 8))

    def forward(self, x):
        away = (self.norm(x)[..., None] - self.centres) * 1.75
        return self.spread(torch.exp(-away * away).flatten(1)) + self.base(F.silu(x))


@pair("compile_model", "fuse_pointwise")
def layers_of_radial_functions_in_training():
    x, goal = rand(16384, 64), rand(16384)

    def make(wrap):
        torch.manual_seed(1)
        model = nn.Sequential(Radial(64, 256), Radial(256, 256), Radial(256, 1)).to(GPU)
        work = wrap(model)
        return learnt(model, lambda: (work(x).squeeze(1).float() - goal).pow(2).mean())
    return alike(make(lambda model: model), make(compiled))


@pair("fused_optimizer", "compile_model")
def weather_net_that_keeps_the_greatest_variance():
    x = rand(8, 256, 768)

    def make(**options):
        torch.manual_seed(1)
        model = blocks(8, 768, 12)
        return learnt(model, lambda: model(x).float().pow(2).mean(), amsgrad=True, **options)
    return alike(make(), make(fused=True))


@pair("tensor_cores")
def autoencoder_of_spectra_in_float32():
    x = rand(8192, 2048)

    def make(precision):
        torch.manual_seed(1)
        model = nn.Sequential(nn.Linear(2048, 4096), nn.ReLU(), nn.Linear(4096, 512), nn.ReLU(), nn.Linear(512, 4096), nn.ReLU(),
                              nn.Linear(4096, 2048)).to(GPU)
        return with_precision(precision, learnt(model, lambda: (model(x) - x).pow(2).mean(), dtype=None))
    return alike(make("highest"), make("high"))


@pair("reduce_problem")
def pictures_that_still_take_gradients():
    layout = torch.channels_last
    pictures, labels = rand(64, 3, 192, 192).to(memory_format=layout), ints(100, 64)

    def make(takes):
        torch.manual_seed(1)
        x = pictures.clone(memory_format=torch.preserve_format).requires_grad_(takes)
        parts = [nn.Conv2d(3, 64, 5, padding=2), nn.ReLU()]
        for inner, out in ((64, 64), (64, 128), (128, 256)):
            parts += [nn.Conv2d(inner, out, 3, stride=2, padding=1), nn.ReLU()]
        model = nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 100)).to(GPU).to(memory_format=layout)
        return learnt(model, lambda: F.cross_entropy(model(x).float(), labels))
    return alike(make(True), make(False))


class Triangle(nn.Module):
    """An update of each pair of residues by all third ones."""

    def __init__(self, width):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.sides, self.gates = nn.Linear(width, 2 * width), nn.Linear(width, 2 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        y = self.norm1(x)
        left, right = (self.sides(y) * torch.sigmoid(self.gates(y))).chunk(2, -1)
        return x + self.out(self.norm2(torch.einsum("ikc,jkc->ijc", left, right)))


@pair("recompute_less")
def pairs_of_residues_checkpointed():
    x = rand(256, 256, 128)

    def make(kept):
        torch.manual_seed(1)
        model = nn.ModuleList(Triangle(128) for _ in range(4)).to(GPU)

        def loss():
            y = x
            for part in model:
                y = part(y) if kept else checkpoint(part, y, use_reentrant=False)
            return y.float().pow(2).mean()
        return learnt(model, loss)
    return alike(make(False), make(True))


class Segmenter(nn.Module):
    """A small net that goes down two levels and up again."""

    def __init__(self):
        super().__init__()
        self.down1, self.down2, self.middle = self.two(4, 64), self.two(64, 128), self.two(128, 256)
        self.up2, self.up1 = nn.ConvTranspose2d(256, 128, 2, 2), nn.ConvTranspose2d(128, 64, 2, 2)
        self.join2, self.join1, self.last = self.two(256, 128), self.two(128, 64), nn.Conv2d(64, 8, 1)

    @staticmethod
    def two(inner, out):
        return nn.Sequential(nn.Conv2d(inner, out, 3, padding=1), nn.ReLU(), nn.Conv2d(out, out, 3, padding=1), nn.ReLU())

    def forward(self, x):
        first = self.down1(x)
        second = self.down2(F.max_pool2d(first, 2))
        y = self.middle(F.max_pool2d(second, 2))
        y = self.join2(torch.cat([self.up2(y), second], 1))
        return self.last(self.join1(torch.cat([self.up1(y), first], 1)))


@pair("channels_last", "remove_copies")
def cells_under_a_microscope_in_planes():
    pictures, labels = rand(8, 4, 256, 256), ints(8, 8, 256, 256)

    def make(layout):
        torch.manual_seed(1)
        model, x = Segmenter().to(GPU).to(memory_format=layout), pictures.to(memory_format=layout)
        return learnt(model, lambda: F.cross_entropy(model(x).float(), labels))
    return alike(make(torch.contiguous_format), make(torch.channels_last))


@pair("overlap_copies", "keep_on_device")
def gradients_sent_to_the_host_after_each_layer():
    x, side = rand(8192, 2048, dtype=BF16), torch.cuda.Stream()

    def make(beside):
        torch.manual_seed(1)
        model = nn.Sequential(*[nn.Linear(2048, 2048, bias=False) for _ in range(8)]).to(GPU)
        for layer in model:
            host = torch.empty(2048, 2048).pin_memory()

            def sent(w, host=host):
                if not beside:
                    host.copy_(w.grad, non_blocking=True)
                    return
                side.wait_stream(torch.cuda.current_stream())
                with torch.cuda.stream(side):
                    host.copy_(w.grad, non_blocking=True)
                w.grad.record_stream(side)
            layer.weight.register_post_accumulate_grad_hook(sent)

        def step():
            model.zero_grad()
            with torch.autocast(GPU, BF16):
                loss = model(x).float().pow(2).mean()
            loss.backward()
            torch.cuda.current_stream().wait_stream(side)
            return loss.detach()
        return step
    return alike(make(False), make(True))


# ---------------------------------------------------------------- inference

@pair("compile_model", "fuse_pointwise", "cuda_graphs", "cut_host_work")
def likelihood_under_a_flow_of_couplings():
    count = 1 << 17
    x0, layers = rand(count, 32), [(weight(128, 16), weight(128, 128), weight(32, 128)) for _ in range(8)]

    def step():
        x, total = x0, torch.zeros(count, device=GPU)
        for w1, w2, w3 in layers:
            left, right = x.chunk(2, 1)
            raw, shift = F.linear(F.silu(F.linear(F.silu(F.linear(left, w1)), w2)), w3).chunk(2, 1)
            scale = torch.tanh(raw / 2)
            x = torch.cat([right * torch.exp(scale) + shift, left], 1)
            total = total + scale.sum(1)
        return total - 0.5 * x.pow(2).sum(1)
    return alike(without_gradients(step), without_gradients(compiled(step)))


@pair("fuse_epilogue", "fuse_pointwise", "compile_model")
def points_of_a_cloud_passed_through_shared_layers():
    clouds, points, widths = 32, 4096, (64, 128, 256, 512, 1024)
    x0 = rand(clouds * points, 64, dtype=F16)
    layers = [(weight(out, inner, F16), rand(out, dtype=F16, scale=0.1)) for inner, out in zip(widths, widths[1:])]

    def run(layer):
        def step():
            x = x0
            for w, b in layers:
                x = layer(x, w, b)
            return x.view(clouds, points, widths[-1]).amax(1)
        return step
    return alike(run(lambda x, w, b: torch.relu(F.linear(x, w, b))), run(lambda x, w, b: torch._addmm_activation(b, x, w.t())))


@pair("align_dimensions", "fuse_epilogue")
def positions_joined_to_the_features_of_points():
    x0, ws = rand(262144, 259, dtype=F16), [weight(259, 259, F16) for _ in range(4)]
    x0_wide, ws_wide = F.pad(x0, (0, 5)), [F.pad(w, (0, 5, 0, 5)) for w in ws]

    def run(x0, ws):
        def step():
            x = x0
            for w in ws:
                x = torch.relu(F.linear(x, w))
            return x[:, :259]
        return step
    return alike(run(x0, ws), run(x0_wide, ws_wide))


@pair("quantize")
def candidates_ranked_by_wide_layers_in_bf16():
    width, inner, narrow = 4096, 8192, torch.float8_e4m3fn
    x0, layers = rand(4096, width, dtype=BF16), [(weight(inner, width, BF16), weight(width, inner, BF16)) for _ in range(3)]
    layers8 = [tuple((w * 32).to(narrow).t() for w in layer) for layer in layers]
    one, part = torch.ones((), device=GPU), torch.full((), 1 / 32, device=GPU)

    def product8(x, w):
        return torch._scaled_mm(x.to(narrow), w, scale_a=one, scale_b=part, out_dtype=BF16)

    def run(weights, product):
        def step():
            x = x0
            for up, down in weights:
                x = x + product(torch.relu(product(F.layer_norm(x, (width,)), up)), down)
            return x
        return step
    return alike(run(layers, F.linear), run(layers8, product8), 0.2)


@pair("cast_weights_once", "remove_copies", "reuse_result", "quantize")
def denoiser_of_float32_entered_by_autocast():
    layout = torch.channels_last
    x0 = rand(2, 1024, 16, 16).to(memory_format=layout)

    def make(dtype):
        torch.manual_seed(1)
        parts = []
        for _ in range(4):
            parts += [nn.Conv2d(1024, 1024, 3, padding=1), nn.SiLU()]
        model = nn.Sequential(*parts).to(GPU).to(dtype).to(memory_format=layout)

        def step():
            x = x0
            for _ in range(4):
                with torch.autocast(GPU, BF16):
                    x = x - 0.1 * model(x.to(BF16)).float()
            return x
        return without_gradients(step)
    return alike(make(torch.float32), make(BF16))


@pair("cast_weights_once", "remove_copies", "reuse_result")
def table_of_words_widened_for_each_token():
    table, x0 = rand(65536, 1024, dtype=BF16, scale=0.03), rand(8, 1024, dtype=BF16)
    layers, wide = [(weight(4096, 1024, BF16), weight(1024, 4096, BF16)) for _ in range(4)], table.float()

    def run(widened):
        def step():
            x = x0
            for up, down in layers:
                x = x + F.linear(F.gelu(F.linear(F.layer_norm(x, (1024,)), up)), down)
            return F.linear(x.float(), widened())
        return step
    return alike(run(table.float), run(lambda: wide))


@pair("fill_the_device", "cut_host_work", "batch_products", "cuda_graphs", "compile_model")
def six_cameras_of_a_car_seen_in_turn():
    layout = torch.channels_last
    x = rand(6, 128, 64, 176, dtype=F16).to(memory_format=layout)
    ws = [rand(128, 128, 3, 3, dtype=F16, scale=0.03).to(memory_format=layout) for _ in range(6)]

    def net(y):
        for w in ws:
            y = torch.relu(F.conv2d(y, w, padding=1))
        return y
    return alike(lambda: torch.cat([net(x[i:i + 1]) for i in range(6)]), lambda: net(x))


@pair("stop_allocating", "remove_syncs", "cut_host_work")
def memory_given_back_after_each_request():
    requests = [rand(1, length, 1024, dtype=BF16) for length in (700, 1900, 1200)]
    layers = [(weight(4096, 1024, BF16), weight(1024, 4096, BF16)) for _ in range(4)]

    def run(gives_back):
        def step():
            found = []
            for x in requests:
                for up, down in layers:
                    x = x + F.linear(F.gelu(F.linear(F.layer_norm(x, (1024,)), up)), down)
                found.append(x[:, -1].clone())
                del x
                if gives_back:
                    torch.cuda.empty_cache()
            return found
        return step
    return alike(run(True), run(False))


@pair("cuda_graphs", "compile_model", "cut_host_work", "fuse_pointwise")
def selective_states_advanced_by_one_token():
    batch, width, inner, states = 16, 512, 1024, 16
    x0, layers = rand(batch, width, dtype=BF16), []
    for _ in range(6):
        layers.append((weight(2 * inner, width, BF16), rand(inner, 4, dtype=BF16, scale=0.5), weight(32 + 2 * states, inner, BF16),
                       weight(inner, 32, BF16), -torch.exp(rand(inner, states, scale=0.5)).to(BF16), rand(inner, dtype=BF16),
                       weight(width, inner, BF16), rand(batch, inner, 4, dtype=BF16), rand(batch, inner, states, dtype=BF16)))

    def step():
        x = x0
        for w_in, w_near, w_three, w_pace, decay, skip, w_out, recent, state in layers:
            u, gate = F.linear(F.layer_norm(x, (width,)), w_in).chunk(2, 1)
            seen = torch.cat([recent[:, :, 1:], u[..., None]], 2)
            u = F.silu((seen * w_near).sum(2))
            pace, write, read = F.linear(u, w_three).split([32, states, states], 1)
            pace = F.softplus(F.linear(pace, w_pace))
            state = state * torch.exp(pace[..., None] * decay) + (pace * u)[..., None] * write[:, None]
            y = (state * read[:, None]).sum(2) + skip * u
            x = x + F.linear(y * F.silu(gate), w_out)
        return x
    return alike(without_gradients(step), replayed(without_gradients(step)))


@pair("cut_host_work", "cuda_graphs", "compile_model", "remove_copies")
def new_keys_written_sequence_by_sequence():
    batch, heads, room, each = 64, 8, 512, 64
    lengths = torch.randint(64, room - 1, (batch,)).tolist()
    rows, places = torch.arange(batch, device=GPU), torch.tensor(lengths, device=GPU)
    seen = (torch.arange(room, device=GPU) <= places[:, None])[:, None, None]
    x0, width = rand(batch, 512, dtype=F16), heads * each
    layers = [(weight(3 * width, width, F16), weight(width, width, F16), rand(2, batch, heads, room, each, dtype=F16)) for _ in range(3)]

    def one_by_one(cache, new):
        for i, length in enumerate(lengths):
            cache[i, :, length] = new[i]

    def at_once(cache, new):
        cache[rows, :, places] = new

    def run(write):
        def step():
            x = x0
            for w_in, w_out, (keys, values) in layers:
                q, k, v = F.linear(x, w_in).view(batch, 3, heads, each).unbind(1)
                write(keys, k)
                write(values, v)
                mixed = F.scaled_dot_product_attention(q[:, :, None], keys, values, attn_mask=seen)
                x = x + F.linear(mixed.reshape(batch, width), w_out)
            return x
        return step
    return alike(run(one_by_one), run(at_once))


@pair("remove_syncs", "cut_host_work", "reuse_result")
def greatest_length_asked_in_each_layer():
    width, heads, length = 512, 8, 160
    lengths = torch.randint(40, length + 1, (16,))
    lengths[0] = length
    there, x0 = lengths.to(GPU), rand(16, length, width, dtype=BF16)
    layers = [[weight(out, inner, BF16) for out, inner in ((3 * width, width), (width, width), (1024, width), (width, 1024))]
              for _ in range(8)]

    def run(greatest):
        def step():
            x = x0
            for qkv, out, up, down in layers:
                seen = torch.arange(greatest(), device=GPU) < there[:, None]
                q, k, v = F.linear(F.layer_norm(x, (width,)), qkv).view(16, length, 3, heads, 64).permute(2, 0, 3, 1, 4).unbind(0)
                mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=seen[:, None, None])
                x = x + F.linear(mixed.transpose(1, 2).reshape(16, length, width), out)
                x = x + F.linear(F.gelu(F.linear(F.layer_norm(x, (width,)), up)), down)
            return x
        return step
    return alike(run(lambda: int(there.max())), run(lambda: length))
