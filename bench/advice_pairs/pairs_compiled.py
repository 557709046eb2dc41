# SPDX-License-Identifier: Apache-2.0
"""Programs before and after torch.compile, by which the rule compile_model was made: all of them were seen. As in pairs.py."""

import torch
import torch.nn.functional as F
from torch import nn

import pairs_practice as practice
from pairs_practice import BF16, F16, compiled, convolutions, rms_by_hand, without_gradients
from pairs_unseen import GPU, null, pair, rand, weight

practice.PAIRS.clear()
PAIRS = practice.PAIRS


def training(model, x, autocast=True):
    parameters = list(model.parameters())

    def run(forward):
        def step():
            with torch.autocast(GPU, BF16, enabled=autocast):
                loss = forward(x).float().pow(2).mean()
            torch.autograd.grad(loss, parameters)
        return step
    return run(model), run(compiled(model))


@pair("compile_model")
def mlp_with_dropout():
    layers = [layer for _ in range(4) for layer in (nn.Linear(1024, 1024), nn.GELU(), nn.Dropout(0.1), nn.LayerNorm(1024))]
    return training(nn.Sequential(*layers).to(GPU), rand(8192, 1024))


@pair("compile_model")
def encoder_training():
    layer = nn.TransformerEncoderLayer(512, 8, 2048, dropout=0.0, batch_first=True)
    model = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False).to(GPU).train()
    return training(model, rand(16, 256, 512))


@pair("compile_model")
def encoder_for_one_sentence():
    layer = nn.TransformerEncoderLayer(512, 8, 2048, dropout=0.0, batch_first=True, norm_first=True)
    model = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False).to(GPU, F16).eval()
    x = rand(1, 64, 512, dtype=F16)
    ones = torch.ones((), device=GPU, dtype=F16)

    def step():
        return model(x) * ones
    for parameter in model.parameters():
        parameter.requires_grad_(True)
    return step, compiled(step)


@pair("compile_model")
def residual_net_training():
    class Residual(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = convolutions(64, 2, torch.float32, torch.channels_last)

        def forward(self, x):
            return F.relu(self.body(x) + x)
    model = nn.Sequential(*[Residual() for _ in range(3)]).to(GPU).to(memory_format=torch.channels_last)
    return training(model, rand(64, 64, 56, 56).contiguous(memory_format=torch.channels_last))


@pair("compile_model")
def gated_block_of_a_prefill():
    width, inner = 2048, 5632
    x0, ones = rand(8192, width, dtype=BF16), torch.ones(width, device=GPU, dtype=BF16)
    gate, up, down = weight(inner, width, BF16), weight(inner, width, BF16), weight(width, inner, BF16)

    def step():
        x = x0
        for _ in range(2):
            y = rms_by_hand(x, ones)
            x = x + F.linear(F.silu(F.linear(y, gate)) * F.linear(y, up), down)
        return x
    return without_gradients(step), without_gradients(compiled(step))


@pair("compile_model")
def focal_loss_with_gradient():
    logits = rand(1 << 24).requires_grad_()
    truth = (rand(1 << 24) > 0).float()

    def loss():
        p = torch.sigmoid(logits)
        close = p * truth + (1 - p) * (1 - truth)
        cross = F.binary_cross_entropy_with_logits(logits, truth, reduction="none")
        return ((1 - close) ** 2 * cross).mean()
    quick = compiled(loss)
    return (lambda: torch.autograd.grad(loss(), logits)), lambda: torch.autograd.grad(quick(), logits)


@pair("compile_model")
def gated_cell_loop():
    w, xs = weight(768, 512), rand(24, 64, 256)
    h0 = torch.zeros(64, 256, device=GPU)

    def step():
        h = h0
        for x in xs:
            z, r, n = F.linear(torch.cat([x, h], 1), w).chunk(3, 1)
            z, r = torch.sigmoid(z), torch.sigmoid(r)
            h = (1 - z) * torch.tanh(n * r) + z * h
        return h
    return without_gradients(step), without_gradients(compiled(step))


@pair("compile_model")
def physics_net_of_small_layers():
    layers = [layer for _ in range(8) for layer in (nn.Linear(64, 64), nn.Tanh())]
    return training(nn.Sequential(nn.Linear(2, 64), *layers, nn.Linear(64, 1)).to(GPU), rand(4096, 2), autocast=False)


@pair("compile_model")
def convnet_inference_channels_last():
    model = convolutions(64, 8, F16, torch.channels_last).eval()
    x = rand(64, 64, 56, 56, dtype=F16).contiguous(memory_format=torch.channels_last)
    return without_gradients(lambda: model(x)), without_gradients(compiled(lambda: model(x)))


@null("compile_model")
def null_compiled_attention():
    q, k, v = (rand(8, 16, 2048, 64, dtype=BF16) for _ in range(3))

    def step():
        return F.scaled_dot_product_attention(q, k, v)
    return step, compiled(step)
