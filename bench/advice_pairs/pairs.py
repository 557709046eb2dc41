# SPDX-License-Identifier: Apache-2.0
"""Pairs of small programs: one as found, one after the change that a rule recommends.

Each function prepares its data and returns (before, after): two functions of one step. `@pair(RULE)` names
what should be recommended for the program as found; `@null(RULE)` names a change that suggests itself and
gains nothing. Whether a pair is set aside follows from its name alone (run.py).
"""

import threading

import torch
import torch.nn.functional as F

PAIRS = {}
GPU = "cuda"


def pair(rule, *also, null=False):
    def keep(make):
        PAIRS[make.__name__] = {"make": make, "rule": rule, "also": list(also), "null": null}
        return make
    return keep


def null(rule, *also):
    return pair(rule, *also, null=True)


def rand(*shape, dtype=torch.float32, grad=False):
    return (torch.randn(*shape, device=GPU, dtype=torch.float32) * 0.5).to(dtype).requires_grad_(grad)


def half(*shape, grad=False):
    return rand(*shape, dtype=torch.bfloat16, grad=grad)


def graphed(step):
    """The step as a CUDA graph."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


# ---------------------------------------------------------------- attention

def attention_math(q, k, v):
    return torch.softmax((q @ k.transpose(-2, -1)) * q.shape[-1] ** -0.5, dim=-1) @ v


def attention(batch, heads, length, width, layers, train=False):
    q, k, v = (half(batch, heads, length, width, grad=train) for _ in range(3))

    def run(op):
        def step():
            x = q
            for _ in range(layers):
                x = op(x, k, v)
            if train:
                torch.autograd.grad(x.sum(), (q, k, v))
        return step
    return run(attention_math), run(F.scaled_dot_product_attention)


@pair("flash_attention")
def attention_forward():
    return attention(8, 16, 1024, 64, 4)


@pair("flash_attention")
def attention_training():
    return attention(2, 16, 2048, 64, 2, train=True)


@pair("flash_attention")
def attention_short():
    return attention(64, 12, 256, 64, 4)


@null("flash_attention")
def null_attention_is_flash():
    step = attention(8, 16, 2048, 64, 4)[1]
    return step, step


# ---------------------------------------------------------------- fusion

@pair("fuse_pointwise")
def gelu_by_hand():
    x = rand(1 << 25)

    def before():
        return 0.5 * x * (1 + torch.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))
    return before, lambda: F.gelu(x, approximate="tanh")


@pair("fuse_pointwise")
def multiply_then_add():
    x, y, z = rand(1 << 26), rand(1 << 26), rand(1 << 26)
    return lambda: x * y + z, lambda: torch.addcmul(z, x, y)


@pair("fuse_pointwise")
def silu_by_hand():
    x = half(1 << 26)
    return lambda: x * torch.sigmoid(x), lambda: F.silu(x)


@pair("fuse_norm", "fuse_pointwise")
def layer_norm_by_hand():
    x, w, b = rand(16384, 2048), rand(2048), rand(2048)

    def before():
        mean = x.mean(-1, keepdim=True)
        centred = x - mean
        var = (centred * centred).mean(-1, keepdim=True)
        return centred * torch.rsqrt(var + 1e-5) * w + b
    return before, lambda: F.layer_norm(x, (2048,), w, b)


@pair("fuse_norm", "fuse_pointwise")
def softmax_by_hand():
    x = rand(32768, 1024)

    def before():
        e = torch.exp(x - x.amax(-1, keepdim=True))
        return e / e.sum(-1, keepdim=True)
    return before, lambda: torch.softmax(x, -1)


@pair("fuse_norm", "fuse_pointwise")
def rms_norm_by_hand():
    x, w = rand(16384, 4096), rand(4096)

    def before():
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w
    return before, lambda: F.rms_norm(x, (4096,), w, 1e-6)


@pair("fuse_epilogue")
def bias_relu_after_gemm():
    x, w, b = half(8192, 1024), half(1024, 4096), half(4096)
    return (lambda: torch.relu(torch.mm(x, w) + b)), lambda: torch._addmm_activation(b, x, w)


@pair("fuse_epilogue")
def bias_after_gemm():
    x, w, b = half(16384, 512), half(512, 8192), half(8192)
    return (lambda: torch.mm(x, w) + b), lambda: torch.addmm(b, x, w)


@null("fuse_pointwise")
def null_already_fused():
    x, y, z = rand(1 << 26), rand(1 << 26), rand(1 << 26)

    def step():
        return torch.addcmul(z, x, y)
    return step, step


@null("fuse_pointwise")
def null_independent_tensors():
    a, b = rand(1 << 26), rand(1 << 26)

    def before():
        a.mul_(1.0001)
        b.clamp_(-4, 4)

    def after():
        b.clamp_(-4, 4)
        a.mul_(1.0001)
    return before, after


# ---------------------------------------------------------------- products

@pair("align_dimensions")
def odd_depth():
    x, w = half(4096, 4095), half(4095, 4096)
    xa, wa = half(4096, 4096), half(4096, 4096)
    return lambda: x @ w, lambda: xa @ wa


@pair("align_dimensions")
def odd_vocabulary():
    def make(vocabulary):
        x, w = half(4096, 768, grad=True), half(vocabulary, 768, grad=True)

        def step():
            torch.autograd.grad((x @ w.t()).sum(), (x, w))
        return step
    return make(50257), make(50304)


@pair("align_dimensions")
def odd_width_mlp():
    def make(width):
        x = half(8192, 1024)
        up, down = half(1024, width), half(width, 1024)
        return lambda: (x @ up) @ down
    return make(2731), make(2736)


@null("align_dimensions")
def null_padding_aligned():
    def make(width):
        x, w = half(8192, width), half(width, 8192)
        return lambda: x @ w
    return make(4096), make(4128)


@pair("tensor_cores")
def f32_product():
    x, w = rand(4096, 4096), rand(4096, 4096)

    def run(precision):
        def step():
            torch.set_float32_matmul_precision(precision)
            y = x @ w
            torch.set_float32_matmul_precision("highest")
            return y
        return step
    return run("highest"), run("high")


@pair("tensor_cores")
def f32_mlp_training():
    model = torch.nn.Sequential(*[torch.nn.Linear(2048, 2048) for _ in range(4)]).to(GPU)
    x = rand(2048, 2048)
    parameters = list(model.parameters())

    def run(cast):
        def step():
            with torch.autocast(GPU, torch.bfloat16, enabled=cast):
                loss = model(x).float().pow(2).mean()
            torch.autograd.grad(loss, parameters)
        return step
    return run(False), run(True)


@null("tensor_cores", "tune_kernel")
def null_good_gemm():
    x, w, out = half(8192, 8192), half(8192, 8192), half(8192, 8192)

    def step():
        torch.mm(x, w, out=out)
    return step, step


@pair("batch_products")
def vectors_one_by_one():
    w, xs = half(4096, 4096), half(48, 1, 4096)
    return lambda: [x @ w for x in xs], lambda: xs.view(48, 4096) @ w


@pair("batch_products")
def small_products_one_by_one():
    a, b = half(128, 256, 256), half(128, 256, 256)
    left, right = list(a.unbind(0)), list(b.unbind(0))
    return (lambda: [x @ y for x, y in zip(left, right)]), lambda: torch.bmm(a, b)


@pair("batch_products")
def heads_one_by_one():
    x, ws = half(1024, 1024), half(24, 1024, 64)
    all_heads = ws.permute(1, 0, 2).reshape(1024, 24 * 64).contiguous()
    each = list(ws.unbind(0))
    return (lambda: [x @ w for w in each]), lambda: x @ all_heads


@pair("reduce_problem")
def last_position_of_vocabulary():
    x, w = half(8, 512, 1024), half(32000, 1024)
    return (lambda: (x @ w.t())[:, -1].argmax(-1)), lambda: (x[:, -1] @ w.t()).argmax(-1)


@pair("reduce_problem")
def last_position_of_head():
    x, w = half(4, 1024, 2048), half(16384, 2048)
    return (lambda: F.softmax((x @ w.t())[:, -1].float(), -1)), lambda: F.softmax((x[:, -1] @ w.t()).float(), -1)


@pair("reuse_result")
def product_recomputed():
    x, w, gates = half(4096, 2048), half(2048, 2048), [half(4096, 2048) for _ in range(4)]

    def before():
        return [(x @ w) * gate for gate in gates]

    def after():
        y = x @ w
        return [y * gate for gate in gates]
    return before, after


@pair("reuse_result")
def rotary_tables_each_layer():
    x, freq = rand(8192, 1024), rand(1024)
    at = torch.arange(8192, device=GPU, dtype=torch.float32)
    table = torch.cos(torch.outer(at, freq))

    def before():
        y = x
        for _ in range(6):
            y = y + torch.cos(torch.outer(at, freq))
        return y

    def after():
        y = x
        for _ in range(6):
            y = y + table
        return y
    return before, after


@pair("quantize")
def decode_in_fp8():
    x, w = half(16, 16384), half(16384, 16384)
    x8, w8 = x.to(torch.float8_e4m3fn), w.to(torch.float8_e4m3fn)
    one = torch.ones((), device=GPU)
    return lambda: x @ w.t(), lambda: torch._scaled_mm(x8, w8.t(), one, one, out_dtype=torch.bfloat16)


@pair("quantize")
def product_in_fp8():
    x, w = half(8192, 8192), half(8192, 8192)
    x8, w8 = x.to(torch.float8_e4m3fn), w.to(torch.float8_e4m3fn)
    one = torch.ones((), device=GPU)
    return lambda: x @ w.t(), lambda: torch._scaled_mm(x8, w8.t(), one, one, out_dtype=torch.bfloat16)


# ---------------------------------------------------------------- training

def optimizers(make, before, after, shapes):
    def one(options):
        parameters = [torch.nn.Parameter(rand(*shape)) for shape in shapes]
        for parameter in parameters:
            parameter.grad = torch.randn_like(parameter)
        return make(parameters, **options).step
    return one(before), one(after)


@pair("fused_optimizer")
def foreach_adamw():
    return optimizers(torch.optim.AdamW, {"foreach": True}, {"fused": True}, [(2048, 2048)] * 24)


@pair("fused_optimizer")
def foreach_adam_many():
    return optimizers(torch.optim.Adam, {"foreach": True}, {"fused": True}, [(512, 1024)] * 160)


@pair("fused_optimizer", "cut_host_work", "cuda_graphs")
def looped_adamw():
    return optimizers(torch.optim.AdamW, {"foreach": False}, {"fused": True}, [(256, 512)] * 60)


@null("fused_optimizer")
def null_fused_optimizer():
    step = optimizers(torch.optim.AdamW, {"fused": True}, {"fused": True}, [(2048, 2048)] * 24)[0]
    return step, step


@pair("cast_weights_once")
def weights_cast_each_step():
    x, ws = half(512, 4096), [rand(4096, 4096) for _ in range(6)]
    cast = [w.to(torch.bfloat16) for w in ws]

    def before():
        y = x
        for w in ws:
            y = y @ w.to(torch.bfloat16)
        return y

    def after():
        y = x
        for w in cast:
            y = y @ w
        return y
    return before, after


@pair("cast_weights_once")
def autocast_inference():
    def make(dtype):
        model = torch.nn.Sequential(*[torch.nn.Linear(4096, 4096) for _ in range(5)]).to(GPU, dtype)
        x = half(256, 4096).to(dtype)

        def step():
            with torch.no_grad(), torch.autocast(GPU, torch.bfloat16, enabled=dtype == torch.float32):
                return model(x)
        return step
    return make(torch.float32), make(torch.bfloat16)


@pair("recompute_less")
def checkpointed_mlp():
    from torch.utils.checkpoint import checkpoint
    blocks = [torch.nn.Sequential(torch.nn.Linear(2048, 4096), torch.nn.GELU(), torch.nn.Linear(4096, 2048))
              .to(GPU, torch.bfloat16) for _ in range(4)]
    parameters = [p for block in blocks for p in block.parameters()]
    x = half(4096, 2048, grad=True)

    def run(stored):
        def step():
            y = x
            for block in blocks:
                y = block(y) if stored else checkpoint(block, y, use_reentrant=False)
            torch.autograd.grad(y.float().pow(2).mean(), parameters)
        return step
    return run(False), run(True)


def convolutions(dtype, layout):
    layers = [torch.nn.Conv2d(64, 128, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(128, 128, 3, padding=1),
              torch.nn.ReLU(), torch.nn.Conv2d(128, 64, 1)]
    model = torch.nn.Sequential(*layers).to(GPU, dtype).to(memory_format=layout)
    x = rand(32, 64, 56, 56, dtype=dtype).contiguous(memory_format=layout)

    def step():
        with torch.no_grad():
            return model(x)
    return step


@pair("channels_last")
def convolutions_nchw():
    return convolutions(torch.float16, torch.contiguous_format), convolutions(torch.float16, torch.channels_last)


@pair("channels_last")
def convolutions_bf16():
    def make(layout):
        model = torch.nn.Sequential(torch.nn.Conv2d(128, 256, 3, padding=1), torch.nn.BatchNorm2d(256), torch.nn.ReLU(),
                                    torch.nn.Conv2d(256, 128, 3, padding=1)).to(GPU, torch.bfloat16)
        model = model.to(memory_format=layout)
        x = half(32, 128, 28, 28).contiguous(memory_format=layout)
        parameters = list(model.parameters())

        def step():
            torch.autograd.grad(model(x).float().pow(2).mean(), parameters)
        return step
    return make(torch.contiguous_format), make(torch.channels_last)


@null("channels_last")
def null_channels_last_already():
    step = convolutions(torch.float16, torch.channels_last)
    return step, step


# ---------------------------------------------------------------- memory

@pair("stop_allocating")
def cache_emptied_each_step():
    x, w = half(4096, 4096), half(4096, 4096)

    def run(empty):
        def step():
            y = torch.relu(x @ w) @ w
            del y
            if empty:
                torch.cuda.empty_cache()
        return step
    return run(True), run(False)


@pair("stop_allocating")
def cache_emptied_often():
    xs = rand(1 << 24)

    def run(empty):
        def step():
            for _ in range(4):
                y = xs * 2 + 1
                del y
                if empty:
                    torch.cuda.empty_cache()
        return step
    return run(True), run(False)


@pair("remove_copies")
def contiguous_before_product():
    x, w = half(16, 2048, 2048), half(16, 2048, 128)
    return (lambda: torch.bmm(x.transpose(1, 2).contiguous(), w)), lambda: torch.bmm(x.transpose(1, 2), w)


@pair("remove_copies")
def clones_on_the_way():
    x, y = rand(1 << 25), rand(1 << 25)
    return (lambda: (x.clone() * y).clone().abs()), lambda: (x * y).abs()


@pair("local_gathers", "coalesce")
def columns_gathered():
    x, at = rand(16384, 4096), torch.randperm(4096, device=GPU)[:1024]
    turned = x.t().contiguous()
    return (lambda: torch.index_select(x, 1, at)), lambda: torch.index_select(turned, 0, at)


@pair("local_gathers", "coalesce")
def elements_gathered():
    x, n = rand(1 << 26), 1 << 24
    far, near = torch.randint(1 << 26, (n,), device=GPU), torch.arange(n, device=GPU)
    return lambda: x[far], lambda: x[near]


@pair("fill_the_device")
def one_long_row():
    x = rand(1, 1 << 23)

    def after():
        rows = x.view(2048, -1)
        top = rows.amax(-1, keepdim=True)
        top = top.amax()
        e = torch.exp(rows - top)
        return e / e.sum(-1).sum()
    return lambda: torch.softmax(x, -1), after


# ---------------------------------------------------------------- the host's part

@pair("cuda_graphs", "cut_host_work")
def many_small_kernels():
    x = rand(64, 64)

    def step():
        y = x
        for _ in range(150):
            y = torch.sin(y)
        return y
    return step, graphed(step)


@pair("cuda_graphs", "cut_host_work")
def small_mlp_inference():
    layers = [(half(256, 256), half(256)) for _ in range(32)]
    x = half(32, 256)

    def step():
        y = x
        for w, b in layers:
            y = torch.relu(torch.addmm(b, y, w))
        return y
    return step, graphed(step)


@null("cuda_graphs")
def null_graph_of_one_gemm():
    x, w, out = half(8192, 8192), half(8192, 8192), half(8192, 8192)

    def step():
        torch.mm(x, w, out=out)
    return step, graphed(step)


@null("cuda_graphs")
def null_graph_of_long_kernels():
    x = rand(1 << 27)

    def step():
        for _ in range(6):
            x.mul_(1.0001)
    return step, graphed(step)


@pair("remove_syncs")
def item_in_the_loop():
    xs = [rand(256, 1024) for _ in range(40)]

    def before():
        total = 0.0
        for x in xs:
            total += (x * x).mean().item()
        return total

    def after():
        total = torch.zeros((), device=GPU)
        for x in xs:
            total += (x * x).mean()
        return total
    return before, after


@pair("remove_syncs")
def synchronised_after_each_op():
    x, w = half(1024, 1024), half(1024, 1024)

    def run(wait):
        def step():
            y = x
            for _ in range(30):
                y = y @ w
                if wait:
                    torch.cuda.synchronize()
            return y
        return step
    return run(True), run(False)


@null("remove_syncs")
def null_one_wait_at_the_end():
    x, w = half(8192, 8192), half(8192, 8192)

    def run(wait):
        def step():
            y = x
            for _ in range(6):
                y = y @ w
            if wait:
                torch.cuda.synchronize()
            return y
        return step
    return run(True), run(False)


@pair("pin_memory", "overlap_copies")
def input_from_pageable_memory():
    pageable, w = torch.randn(4096, 4096), rand(4096, 1024)
    pinned = pageable.pin_memory()
    return (lambda: pageable.to(GPU) @ w), lambda: pinned.to(GPU, non_blocking=True) @ w


@pair("overlap_copies")
def copy_then_compute():
    pinned, w = torch.randn(4096, 4096).bfloat16().pin_memory(), half(4096, 4096)
    side = torch.cuda.Stream()
    buffers = [torch.empty(4096, 4096, device=GPU, dtype=torch.bfloat16) for _ in range(2)]
    turn = [0]

    def compute(x):
        for _ in range(4):
            x = x @ w
        return x

    def before():
        return compute(pinned.to(GPU, non_blocking=True))

    def after():
        now, following = buffers[turn[0]], buffers[1 - turn[0]]
        turn[0] = 1 - turn[0]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            following.copy_(pinned, non_blocking=True)
        y = compute(now)
        torch.cuda.current_stream().wait_stream(side)
        return y
    return before, after


@pair("keep_on_device", "remove_syncs", "pin_memory", "overlap_copies")
def round_trips():
    x = rand(1 << 22)

    def before():
        y = x
        for _ in range(4):
            y = (y * 1.01).cpu().to(GPU)
        return y

    def after():
        y = x
        for _ in range(4):
            y = y * 1.01
        return y
    return before, after


@null("pin_memory")
def null_no_copies_to_pin():
    x, w = rand(4096, 4096), rand(4096, 1024)

    def step():
        return x @ w
    return step, step


@null("cuda_graphs", "remove_syncs", "overlap_copies")
def null_streams_of_full_kernels():
    a, b = rand(1 << 27), rand(1 << 27)
    side = torch.cuda.Stream()

    def before():
        a.mul_(1.0001)
        b.mul_(1.0001)

    def after():
        side.wait_stream(torch.cuda.current_stream())
        a.mul_(1.0001)
        with torch.cuda.stream(side):
            b.mul_(1.0001)
        torch.cuda.current_stream().wait_stream(side)
    return before, after


class Slow(torch.utils.data.IterableDataset):
    """Batches that the host works on for some milliseconds."""

    def __iter__(self):
        torch.set_num_threads(1)
        while True:
            yield torch.randn(1 << 18).sort().values


@pair("feed_the_device")
def batches_made_inline():
    w, x = half(4096, 4096), half(4096, 4096)
    inline = iter(torch.utils.data.DataLoader(Slow(), batch_size=None))
    ahead, made = [], threading.Condition()

    def produce():
        source = iter(Slow())
        while True:
            with made:
                made.wait_for(lambda: len(ahead) < 4)
            batch = next(source)
            with made:
                ahead.append(batch)
                made.notify_all()

    def work(batch):
        b = batch.to(GPU)
        y = x
        for _ in range(16):
            y = y @ w
        return y.sum() + b.sum()

    def after():
        with made:
            made.wait_for(lambda: bool(ahead))
            batch = ahead.pop()
            made.notify_all()
        return work(batch)
    for _ in range(2):
        threading.Thread(target=produce, daemon=True).start()
    return lambda: work(next(inline)), after
