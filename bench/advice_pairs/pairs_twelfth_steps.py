# SPDX-License-Identifier: Apache-2.0
"""The whole steps of the twelfth set: training and inference of programs that practitioners bring.

Written on 27 November 2026 by a hand that had not read the rules, and recorded on that day. pairs_twelfth.py says how the set was
written, and takes these pairs in.
"""

import copy

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

import pairs_eleventh as eleventh
from pairs_eleventh_steps import alike, learnt, replayed
from pairs_practice import BF16, F16, compiled, without_gradients
from pairs_seventh_steps import blocks
from pairs_sixth import ints
from pairs_unseen import GPU, pair, rand, weight, with_precision

eleventh.PAIRS.clear()
PAIRS = eleventh.PAIRS


# ---------------------------------------------------------------- attention

@pair("flash_attention", "fuse_norm", "fuse_pointwise", "remove_copies")
def frames_of_a_video_attended_in_space_and_time():
    clips, frames, patches, width, heads = 2, 16, 576, 768, 12
    x0 = rand(clips * frames, patches, width, dtype=F16)
    layers = [[(weight(3 * width, width, F16), weight(width, width, F16)) for _ in range(2)] for _ in range(3)]

    def by_products(q, k, v):
        return torch.softmax(q @ k.mT * 0.125, -1) @ v

    def turned(x, outer, inner):
        return x.view(clips, outer, inner, width).transpose(1, 2).reshape(-1, outer, width)

    def run(attend):
        def attended(x, w_in, w_out):
            many, length, _ = x.shape
            qkv = F.linear(F.layer_norm(x, (width,)), w_in).view(many, length, 3, heads, 64)
            q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
            return x + F.linear(attend(q, k, v).transpose(1, 2).reshape(many, length, width), w_out)

        def step():
            x = x0
            for space, time in layers:
                x = turned(attended(x, *space), frames, patches)
                x = turned(attended(x, *time), patches, frames)
            return x
        return step
    return alike(run(by_products), run(F.scaled_dot_product_attention))


@pair("flash_attention", "fuse_norm", "fuse_pointwise")
def hits_of_a_collision_attended_in_training():
    hits, labels = rand(32, 512, 256), ints(8, 32 * 512)
    there = torch.arange(512, device=GPU) < torch.randint(200, 513, (32, 1), device=GPU)
    seen = there[:, None, None]

    def by_products(q, k, v):
        scores = (q @ k.mT * 32 ** -0.5).masked_fill(~seen, -float("inf"))
        return torch.softmax(scores.float(), -1).to(v.dtype) @ v

    def by_library(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=seen)

    def make(attend):
        torch.manual_seed(1)
        model = nn.Sequential(*blocks(4, 256, 8, attend=attend), nn.Linear(256, 8)).to(GPU)
        return learnt(model, lambda: F.cross_entropy(model(hits).float().view(-1, 8), labels))
    return alike(make(by_products), make(by_library))


# ---------------------------------------------------------------- training

class Gated(nn.Module):
    """A residual block that gates what it adds."""

    def __init__(self, width):
        super().__init__()
        self.first, self.second, self.gate = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, 2 * width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        return self.norm(x + F.glu(self.gate(self.second(F.elu(self.first(x)))), -1))


@pair("compile_model", "fuse_pointwise")
def demand_net_of_gated_residual_blocks():
    x, sold = rand(131072, 160), rand(131072, 1)
    levels = torch.tensor([0.1, 0.5, 0.9], device=GPU)

    def make(wrap):
        torch.manual_seed(1)
        model = nn.Sequential(Gated(160), Gated(160), Gated(160), nn.Linear(160, 3)).to(GPU)
        work = wrap(model)

        def loss():
            away = sold - work(x).float()
            return torch.maximum(levels * away, (levels - 1) * away).mean()
        return learnt(model, loss)
    return alike(make(lambda model: model), make(compiled))


class Standardised(nn.Module):
    """A convolution whose filters have a mean of 0 and a spread of 1."""

    def __init__(self, inner, out, standard):
        super().__init__()
        self.weight, self.standard = nn.Parameter(torch.randn(out, inner, 3, 3) * 0.03), standard
        self.gain = nn.Parameter(torch.full((out, 1, 1, 1), (9 * inner) ** -0.5))

    def forward(self, x):
        return x + F.silu(F.conv2d(x, self.standard(self.weight) * self.gain, padding=1))


@pair("fuse_norm", "fuse_pointwise", "compile_model", "cut_host_work", "cuda_graphs")
def filters_standardised_by_hand_in_training():
    pictures, labels = rand(32, 128, 14, 14).to(memory_format=torch.channels_last), ints(100, 32)

    def by_hand(w):
        away = w - w.mean((1, 2, 3), keepdim=True)
        return away / torch.sqrt(away.pow(2).mean((1, 2, 3), keepdim=True) + 1e-5)

    def by_library(w):
        return F.layer_norm(w, w.shape[1:])

    def make(standard):
        torch.manual_seed(1)
        parts = [Standardised(128, 128, standard) for _ in range(16)]
        model = nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 100)).to(GPU)
        return learnt(model, lambda: F.cross_entropy(model(pictures).float(), labels))
    return alike(make(by_hand), make(by_library))


@pair("recompute_less")
def waves_of_a_simulator_checkpointed_at_each_step():
    shots, size, count = 4, 1024, 12
    start, seen = rand(shots, 1, size, size), rand(shots, 1, size, size)
    stencil = torch.tensor([[[[0.0, 1.0, 0.0], [1.0, -4.0, 1.0], [0.0, 1.0, 0.0]]]], device=GPU)

    def advanced(now, last, speed):
        return 2 * now - last + speed * F.conv2d(now, stencil, padding=1)

    def make(kept):
        earth = nn.Module()
        earth.speed = nn.Parameter(torch.full((size, size), 0.1, device=GPU))

        def loss():
            last, now = start, start
            for _ in range(count):
                if kept:
                    last, now = now, advanced(now, last, earth.speed)
                else:
                    last, now = now, checkpoint(advanced, now, last, earth.speed, use_reentrant=False)
            return (now - seen).pow(2).mean()
        return learnt(earth, loss, dtype=None)
    return alike(make(False), make(True))


def lamb_by_tensor(params, means, squares):
    for p, m, v in zip(params, means, squares):
        m.mul_(0.9).add_(p.grad, alpha=0.1)
        v.mul_(0.999).addcmul_(p.grad, p.grad, value=0.001)
        change = m / (v.sqrt() + 1e-6) + 0.01 * p
        p.sub_(1e-4 * p.norm() / (change.norm() + 1e-6) * change)


def lamb_by_lists(params, means, squares):
    grads = [p.grad for p in params]
    torch._foreach_mul_(means, 0.9)
    torch._foreach_add_(means, grads, alpha=0.1)
    torch._foreach_mul_(squares, 0.999)
    torch._foreach_addcmul_(squares, grads, grads, 0.001)
    roots = torch._foreach_sqrt(squares)
    torch._foreach_add_(roots, 1e-6)
    changes = torch._foreach_div(means, roots)
    torch._foreach_add_(changes, params, alpha=0.01)
    sizes = torch._foreach_norm(changes)
    torch._foreach_add_(sizes, 1e-6)
    torch._foreach_mul_(changes, torch._foreach_div(torch._foreach_norm(params), sizes))
    torch._foreach_add_(params, changes, alpha=-1e-4)


@pair("fused_optimizer", "cut_host_work", "cuda_graphs", "compile_model")
def trust_ratios_of_lamb_taken_tensor_by_tensor():
    x = rand(8, 196, 512)

    def make(update):
        torch.manual_seed(1)
        model = blocks(8, 512, 8)
        params = list(model.parameters())
        means, squares = ([torch.zeros_like(p) for p in params] for _ in range(2))

        def step():
            model.zero_grad()
            with torch.autocast(GPU, BF16):
                loss = (model(x).float() - x).pow(2).mean()
            loss.backward()
            with torch.no_grad():
                update(params, means, squares)
            return loss.detach()
        return step
    return alike(make(lamb_by_tensor), make(lamb_by_lists))


def climbed_by_tensor(params):
    size = torch.stack([p.grad.norm() for p in params]).norm()
    ways = []
    for p in params:
        ways.append(p.grad * (0.05 / (size + 1e-12)))
        p.add_(ways[-1])
    return ways


def restored_by_tensor(params, ways):
    for p, way in zip(params, ways):
        p.sub_(way)


def climbed_by_lists(params):
    grads = [p.grad for p in params]
    size = torch.stack(torch._foreach_norm(grads)).norm()
    ways = torch._foreach_mul(grads, 0.05 / (size + 1e-12))
    torch._foreach_add_(params, ways)
    return ways


def restored_by_lists(params, ways):
    torch._foreach_sub_(params, ways)


@pair("fused_optimizer", "cut_host_work", "cuda_graphs", "compile_model")
def weights_climbed_and_restored_tensor_by_tensor():
    pictures, labels = rand(32, 64, 16, 16).to(memory_format=torch.channels_last), ints(10, 32)

    def make(climbed, restored):
        torch.manual_seed(1)
        parts = []
        for _ in range(20):
            parts += [nn.Conv2d(64, 64, 3, padding=1), nn.GroupNorm(8, 64), nn.ReLU()]
        model = nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)).to(GPU)
        params = list(model.parameters())
        optimizer = torch.optim.SGD(params, lr=1e-4, momentum=0.9, fused=True)

        def graded():
            model.zero_grad()
            with torch.autocast(GPU, BF16):
                loss = F.cross_entropy(model(pictures).float(), labels)
            loss.backward()
            return loss.detach()

        def step():
            graded()
            with torch.no_grad():
                ways = climbed(params)
            loss = graded()
            with torch.no_grad():
                restored(params, ways)
            optimizer.step()
            return loss
        return step
    return alike(make(climbed_by_tensor, restored_by_tensor), make(climbed_by_lists, restored_by_lists))


@pair("cuda_graphs", "compile_model", "cut_host_work")
def updates_of_a_small_policy_by_clipped_ratios():
    states, moves, gains = rand(4, 2048, 48), rand(4, 2048, 12), rand(4, 2048)
    known, goals = rand(4, 2048, scale=0.1) - 12.0, rand(4, 2048)

    def make(wrap):
        torch.manual_seed(1)
        policy = nn.Sequential(nn.Linear(48, 256), nn.ELU(), nn.Linear(256, 128), nn.ELU(), nn.Linear(128, 12)).to(GPU)
        value = nn.Sequential(nn.Linear(48, 256), nn.ELU(), nn.Linear(256, 128), nn.ELU(), nn.Linear(128, 1)).to(GPU)
        params = [*policy.parameters(), *value.parameters()]
        optimizer = torch.optim.Adam(params, lr=1e-5, fused=True, capturable=True)

        def step():
            total = 0.0
            for state, move, gain, old, goal in zip(states, moves, gains, known, goals):
                optimizer.zero_grad()
                share = -0.5 * (move - policy(state)).pow(2).sum(1) - 6.0
                ratio = torch.exp((share - old).clamp(-5, 5))
                gained = torch.minimum(ratio * gain, ratio.clamp(0.8, 1.2) * gain).mean()
                loss = (value(state).squeeze(1) - goal).pow(2).mean() - gained
                loss.backward()
                nn.utils.clip_grad_norm_(params, 1.0)
                optimizer.step()
                total = total + loss.detach()
            return total
        return wrap(step)
    return alike(make(lambda step: step), make(replayed))


@pair("cut_host_work")
def nets_copied_whole_for_each_task():
    tasks, x, y = 4, rand(4, 256, 64), rand(4, 256, 1)

    def make(fresh):
        torch.manual_seed(1)
        parts = [nn.Linear(64, 128), nn.ReLU()]
        for _ in range(8):
            parts += [nn.Linear(128, 128), nn.LayerNorm(128), nn.ReLU()]
        model = nn.Sequential(*parts, nn.Linear(128, 1)).to(GPU)
        params, scratch = list(model.parameters()), copy.deepcopy(model)

        def step():
            moved, total = None, 0.0
            for task in range(tasks):
                net = fresh(model, scratch)
                own = list(net.parameters())
                for _ in range(2):
                    loss = (net(x[task]) - y[task]).pow(2).mean()
                    grads = torch.autograd.grad(loss, own)
                    with torch.no_grad():
                        torch._foreach_add_(own, grads, alpha=-0.01)
                with torch.no_grad():
                    away = torch._foreach_sub(own, params)
                    moved = away if moved is None else torch._foreach_add(moved, away)
                total = total + loss.detach()
            with torch.no_grad():
                torch._foreach_add_(params, moved, alpha=1e-4)
            return total
        return step

    def copied(model, scratch):
        return copy.deepcopy(model)

    def written(model, scratch):
        with torch.no_grad():
            torch._foreach_copy_(list(scratch.parameters()), list(model.parameters()))
        return scratch
    return alike(make(copied), make(written))


@pair("cut_host_work", "remove_syncs")
def training_left_in_the_mode_that_detects_anomalies():
    x = rand(16, 128, 256)

    def make(detects):
        torch.manual_seed(1)
        model = blocks(2, 256, 4)
        work = learnt(model, lambda: (model(x).float() - x).pow(2).mean())

        def step():
            with torch.autograd.set_detect_anomaly(detects):
                return work()
        return step
    return alike(make(True), make(False))


@pair("remove_syncs", "cut_host_work")
def losses_of_six_tasks_balanced_by_numbers_of_the_host():
    x, goals = rand(1024, 256), rand(6, 1024)

    def make(asks):
        torch.manual_seed(1)
        body = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU())
        heads = [nn.Sequential(nn.Linear(512, 128), nn.ReLU(), nn.Linear(128, 1)) for _ in range(6)]
        model = nn.ModuleList([body, *heads]).to(GPU)
        usual, kept = [1.0] * 6, torch.ones(6, device=GPU)

        def losses():
            hidden = model[0](x)
            return [(model[i + 1](hidden).squeeze(1) - goals[i]).pow(2).mean() for i in range(6)]

        def by_numbers():
            total = 0.0
            for i, one in enumerate(losses()):
                usual[i] = 0.9 * usual[i] + 0.1 * one.item()
                total = total + one / usual[i]
            return total

        def by_tensors():
            all_six = torch.stack(losses())
            kept.mul_(0.9).add_(all_six.detach(), alpha=0.1)
            return (all_six / kept).sum()
        return learnt(model, by_numbers if asks else by_tensors, dtype=None)
    return alike(make(True), make(False))


# ---------------------------------------------------------------- inference

@pair("compile_model", "fuse_pointwise")
def notes_of_a_wavenet_in_parallel():
    count, width, length = 16, 128, 16000
    x0 = rand(count, width, length, dtype=F16)
    voices = [rand(count, 2 * width, 1, dtype=F16, scale=0.3) for _ in range(6)]
    layers = [(rand(2 * width, width, 3, dtype=F16, scale=0.05), rand(2 * width, width, 1, dtype=F16, scale=0.08))
              for _ in range(6)]

    def step():
        x, total = x0, torch.zeros_like(x0)
        for number, ((w_near, w_out), voice) in enumerate(zip(layers, voices)):
            heard, gate = (F.conv1d(x, w_near, padding=2 ** number, dilation=2 ** number) + voice).chunk(2, 1)
            out, kept = F.conv1d(torch.tanh(heard) * torch.sigmoid(gate), w_out).chunk(2, 1)
            x, total = (x + out) * 0.70710678, total + kept
        return torch.relu(total)
    return alike(without_gradients(step), without_gradients(compiled(step)))


@pair("cast_weights_once", "remove_copies", "reuse_result")
def speech_decoder_whose_layers_cast_their_weights():
    batch, width, heads = 4, 1024, 16
    x0, shapes = rand(batch, 1, width, dtype=F16), ((3, 1), (1, 1), (1, 1), (1, 1), (4, 1), (1, 4))
    caches = [(rand(2, batch, heads, 224, 64, dtype=F16), rand(2, batch, heads, 1500, 64, dtype=F16)) for _ in range(6)]
    layers = [[weight(out * width, inner * width) for out, inner in shapes] for _ in range(6)]
    layers16 = [[w.to(F16) for w in layer] for layer in layers]

    def run(layers):
        def linear(x, w):
            return F.linear(x, w.to(x.dtype))

        def heard(q, cache):
            return F.scaled_dot_product_attention(q[:, :, None], cache[0], cache[1]).reshape(batch, 1, width)

        def step():
            x = x0
            for (qkv, out, w_q, w_out, up, down), (own, audio) in zip(layers, caches):
                three = linear(F.layer_norm(x, (width,)), qkv).view(batch, 3, heads, 64)
                q, own[0, :, :, -1], own[1, :, :, -1] = three.unbind(1)
                x = x + linear(heard(q, own), out)
                x = x + linear(heard(linear(F.layer_norm(x, (width,)), w_q).view(batch, heads, 64), audio), w_out)
                x = x + linear(F.gelu(linear(F.layer_norm(x, (width,)), up)), down)
            return x
        return step
    return alike(run(layers), run(layers16))


@pair("quantize")
def experts_of_a_mixture_multiplied_in_bf16():
    experts, tokens, width, inner, narrow = 6, 2048, 4096, 8192, torch.float8_e4m3fn
    x = rand(experts, tokens, width, dtype=BF16)
    layers = [(weight(inner, width, BF16), weight(width, inner, BF16)) for _ in range(experts)]
    layers8 = [tuple((w * 32).to(narrow).t() for w in layer) for layer in layers]
    one, part = torch.ones((), device=GPU), torch.full((), 1 / 32, device=GPU)

    def product8(y, w):
        return torch._scaled_mm(y.to(narrow), w, scale_a=one, scale_b=part, out_dtype=BF16)

    def run(layers, product):
        return lambda: [product(F.silu(product(y, up)), down) for y, (up, down) in zip(x, layers)]
    return alike(run(layers, F.linear), run(layers8, product8), 0.2)


@pair("align_dimensions")
def stones_of_361_points_mixed_over_the_board():
    x0 = rand(65536, 361, dtype=F16)
    layers = [(weight(512, 361, F16), weight(361, 512, F16)) for _ in range(3)]
    x0_wide, layers_wide = F.pad(x0, (0, 7)), [(F.pad(up, (0, 7)), F.pad(down, (0, 0, 0, 7))) for up, down in layers]

    def run(x0, layers):
        def step():
            x = x0
            for up, down in layers:
                x = x + F.linear(F.gelu(F.linear(x, up)), down)
            return x[:, :361]
        return step
    return alike(run(x0, layers), run(x0_wide, layers_wide))


@pair("channels_last", "remove_copies")
def roads_segmented_by_dilated_convolutions_in_planes():
    x0 = rand(16, 256, 96, 96, dtype=F16)
    ws = [rand(256, 256, 3, 3, dtype=F16, scale=0.02) for _ in range(6)]
    mean, spread = torch.zeros(256, device=GPU), torch.ones(256, device=GPU)

    def run(layout):
        x1, ws1 = x0.to(memory_format=layout), [w.to(memory_format=layout) for w in ws]

        def step():
            x = x1
            for w, wide in zip(ws1, (1, 2, 4, 8, 2, 1)):
                x = torch.relu(F.batch_norm(F.conv2d(x, w, padding=wide, dilation=wide), mean, spread))
            return x
        return step
    return alike(run(torch.contiguous_format), run(torch.channels_last))


@pair("slow_op", "remove_copies", "reduce_problem", "channels_last")
def patches_of_video_embedded_by_a_convolution():
    patches, w = rand(16384, 3, 2, 14, 14, dtype=BF16), rand(1280, 3, 2, 14, 14, dtype=BF16, scale=0.03)
    w_out = weight(1280, 1280, BF16)

    def run(embedded):
        def step():
            x = embedded()
            return x + F.gelu(F.linear(F.layer_norm(x, (1280,)), w_out))
        return step
    return alike(run(lambda: F.conv3d(patches, w, stride=(2, 14, 14)).view(-1, 1280)),
                 run(lambda: F.linear(patches.flatten(1), w.flatten(1))))


@pair("remove_copies", "reduce_problem")
def maps_joined_with_a_goal_spread_over_them():
    maps = rand(48, 128, 128, 128, dtype=F16).to(memory_format=torch.channels_last)
    goals, w = rand(48, 128, dtype=F16), rand(64, 256, 1, 1, dtype=F16, scale=0.06).to(memory_format=torch.channels_last)
    w_map, w_goal = w[:, :128].contiguous(memory_format=torch.channels_last), w[:, 128:, 0, 0].contiguous()

    def before():
        spread = goals[:, :, None, None].expand(-1, -1, 128, 128).contiguous(memory_format=torch.channels_last)
        return torch.relu(F.conv2d(torch.cat([maps, spread], 1), w))

    def after():
        return torch.relu(F.conv2d(maps, w_map) + F.linear(goals, w_goal)[:, :, None, None])
    return alike(before, after)


@pair("stop_allocating", "remove_syncs", "cut_host_work")
def pages_read_by_two_nets_that_give_their_memory_back():
    layout = torch.channels_last
    pages = [rand(1, 32, height, 640, dtype=F16).to(memory_format=layout) for height in (800, 640, 960)]
    ws = [rand(32, 32, 3, 3, dtype=F16, scale=0.06).to(memory_format=layout) for _ in range(3)]
    reads = [(weight(1024, 512, F16), weight(512, 1024, F16)) for _ in range(3)]

    def run(gives_back):
        def step():
            found = []
            for page in pages:
                x = page
                for w in ws:
                    x = torch.relu(F.conv2d(x, w, padding=1))
                lines = F.adaptive_avg_pool2d(x, (64, 16)).permute(0, 2, 3, 1).reshape(64, 512)
                del x
                if gives_back:
                    torch.cuda.empty_cache()
                for up, down in reads:
                    lines = lines + F.linear(F.gelu(F.linear(F.layer_norm(lines, (512,)), up)), down)
                found.append(lines)
            return found
        return step
    return alike(run(True), run(False))


@pair("cut_host_work", "remove_copies", "cuda_graphs", "compile_model")
def pictures_spliced_into_sentences_one_by_one():
    batch, length, looks, width = 48, 96, 64, 1024
    whole = length - 1 + looks
    words, pictures = rand(batch, length, width, dtype=BF16), rand(batch, looks, width, dtype=BF16)
    places = torch.randint(1, length - 1, (batch,)).tolist()
    layers = [(weight(2048, width, BF16), weight(width, 2048, BF16)) for _ in range(2)]
    of_words, to_words, to_pictures = [], [], []  # rows that the loader of the sentences knows
    for i, at in enumerate(places):
        of_words += [i * length + j for j in range(length) if j != at]
        to_words += [i * whole + j for j in range(whole) if not at <= j < at + looks]
        to_pictures += [i * whole + at + j for j in range(looks)]
    of_words, to_words, to_pictures = (torch.tensor(rows, device=GPU) for rows in (of_words, to_words, to_pictures))

    def one_by_one():
        return torch.stack([torch.cat([words[i, :at], pictures[i], words[i, at + 1:]]) for i, at in enumerate(places)])

    def at_once():
        joined = torch.empty(batch * whole, width, dtype=BF16, device=GPU)
        joined.index_copy_(0, to_words, words.view(-1, width).index_select(0, of_words))
        joined.index_copy_(0, to_pictures, pictures.view(-1, width))
        return joined.view(batch, whole, width)

    def run(joined):
        def step():
            x = joined()
            for up, down in layers:
                x = x + F.linear(F.gelu(F.linear(F.layer_norm(x, (width,)), up)), down)
            return x
        return step
    return alike(run(one_by_one), run(at_once))


@pair("tensor_cores")
def gradients_preconditioned_in_float32():
    size = 3072
    grad, left, right = rand(size, size, scale=size ** -0.5), torch.eye(size, device=GPU), torch.eye(size, device=GPU)
    root_left, root_right = weight(size, size), weight(size, size)

    def step():
        new_left = torch.lerp(left, grad @ grad.t(), 0.1)
        new_right = torch.lerp(right, grad.t() @ grad, 0.1)
        return new_left, new_right, root_left @ grad @ root_right
    return alike(with_precision("highest", step), with_precision("high", step))
