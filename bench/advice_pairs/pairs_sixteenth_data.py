# SPDX-License-Identifier: Apache-2.0
"""The programs of the sixteenth set whose work another form, order, layout or number format would do better.

Written on 27 November 2026 by a hand that had not read the rules, before any of them was measured. pairs_sixteenth.py says how
the set was written, and takes these pairs in.
"""

import torch
import torch.nn.functional as F
from torch import nn

import triton
import triton.language as tl

from pairs_eleventh_steps import learnt
from pairs_practice import BF16, F16, without_gradients
from pairs_sixteenth_steps import PAIRS, alike, four, turns  # noqa: F401  pairs_sixteenth.py takes the pairs in
from pairs_sixth import ints
from pairs_thirteenth_data import layer_of
from pairs_unseen import GPU, pair, rand, weight, with_precision


# ---------------------------------------------------------------- attention and chains of small formulas

@pair("flash_attention", "fuse_norm", "fuse_pointwise")
def patches_of_a_slide_attended_with_a_bias_of_distance():
    slides, side, heads, each, depth = 8, 40, 8, 64, 3
    places, width = side * side, heads * each
    x_all = four(lambda: rand(slides, places, width, dtype=BF16))
    layers = [(weight(3 * width, width, BF16), weight(width, width, BF16)) for _ in range(depth)]
    at = torch.stack(torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij"), -1).view(-1, 2).float().to(GPU)
    far = torch.cdist(at, at)
    bias = (-far * 2.0 ** -torch.arange(1, heads + 1, device=GPU).view(-1, 1, 1)).to(BF16)

    def by_products(q, k, v):
        return torch.softmax(q @ k.mT * each ** -0.5 + bias, -1) @ v

    def by_library(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=bias[None])

    def run(attend):
        following = turns(x_all)

        def step():
            x = following()
            for w_in, w_out in layers:
                qkv = F.linear(F.layer_norm(x, (width,)), w_in).view(slides, places, 3, heads, each)
                q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
                x = x + F.linear(attend(q, k, v).transpose(1, 2).reshape(x.shape), w_out)
            return x.float().mean(1)
        return without_gradients(step)
    return alike(run(by_products), run(by_library))
