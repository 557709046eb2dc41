# SPDX-License-Identifier: Apache-2.0
"""Steps of the tenth set that work with data of the host. pairs_tenth.py says how the set was written, and takes these in."""

import zlib

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from pairs_practice import BF16
from pairs_seventh_steps import causal, training
from pairs_tenth_steps import PAIRS, products  # noqa: F401  pairs_tenth.py takes them in
from pairs_unseen import GPU, pair, rand, weight


# ---------------------------------------------------------------- memory of the host and its data

@pair("keep_on_device", "remove_syncs", "pin_memory", "cut_host_work")
def observations_normalised_by_numpy():
    seen, moves = rand(16, 4096, 96), weight(96, 32)
    w1, w2 = weight(256, 96), weight(32, 256)

    def acted(x):
        return F.linear(torch.tanh(F.linear(x, w1)), w2)

    def before():
        mean, square, x = np.zeros(96, np.float32), np.ones(96, np.float32), seen[0]
        for t in range(16):
            host = x.cpu().numpy()
            mean, square = 0.9 * mean + 0.1 * host.mean(0), 0.9 * square + 0.1 * (host ** 2).mean(0)
            normal = (host - mean) / np.sqrt(square + 1e-5)
            x = seen[t] + torch.tanh(F.linear(acted(torch.from_numpy(normal).to(GPU)), moves))
        return x

    def after():
        mean, square, x = torch.zeros(96, device=GPU), torch.ones(96, device=GPU), seen[0]
        for t in range(16):
            mean, square = 0.9 * mean + 0.1 * x.mean(0), 0.9 * square + 0.1 * (x ** 2).mean(0)
            x = seen[t] + torch.tanh(F.linear(acted((x - mean) / torch.sqrt(square + 1e-5)), moves))
        return x
    return before, after


@pair("keep_on_device", "pin_memory", "feed_the_device", "slow_op", "overlap_copies")
def minibatches_shuffled_on_the_host():
    count, x, goal = 1 << 20, rand(1 << 20, 64), rand(1 << 20)

    def make(where):
        net = nn.Sequential(nn.Linear(64, 128), nn.Tanh(), nn.Linear(128, 1)).to(GPU)
        optimizer = torch.optim.Adam(net.parameters(), lr=1e-5, fused=True)

        def step():
            order = torch.randperm(count, device=where).to(GPU)
            for at in order.chunk(4):
                net.zero_grad()
                (net(x[at]).squeeze(1) - goal[at]).pow(2).mean().backward()
                optimizer.step()
        return step
    return make("cpu"), make(GPU)


@pair("pin_memory", "overlap_copies", "keep_on_device")
def moments_of_adam_kept_in_ordinary_memory():
    w, slope = rand(4096, 4096), rand(4096, 4096, scale=1e-3)
    x = rand(2048, 4096)

    def make(pinned):
        first, second = (torch.zeros(4096, 4096) for _ in range(2))
        first, second = (part.pin_memory() for part in (first, second)) if pinned else (first, second)
        weights = w.clone()

        def step():
            found = F.linear(x, weights).mean() * slope
            m, v = (part.to(GPU, non_blocking=True) for part in (first, second))
            m.lerp_(found, 0.1)
            v.mul_(0.999).addcmul_(found, found, value=0.001)
            weights.addcdiv_(m, v.sqrt().add_(1e-8), value=-1e-6)
            first.copy_(m, non_blocking=pinned)
            second.copy_(v, non_blocking=pinned)
        return step
    return make(False), make(True)


@pair("overlap_copies", "keep_on_device")
def caches_of_a_prompt_saved_layer_by_layer():
    count, x0 = 8, rand(4, 2048, 2048, dtype=BF16)
    layers = products(count, 2048)
    hosts, side = [torch.zeros(2, 4, 2048, 2048, dtype=BF16).pin_memory() for _ in range(count)], torch.cuda.Stream()

    def saved_in_turn(host, key, value):
        host[0].copy_(key, non_blocking=True)
        host[1].copy_(value, non_blocking=True)

    def saved_beside(host, key, value):
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            saved_in_turn(host, key, value)
        key.record_stream(side)
        value.record_stream(side)

    def run(save):
        def step():
            x = x0
            for (w_qkv, w_out, w_up, w_down), host in zip(layers, hosts):
                y = F.layer_norm(x, (2048,))
                q, k, v = (F.linear(y, w) for w in w_qkv.chunk(3))
                save(host, k, v)
                mixed = causal(*(part.view(4, 2048, 16, 128).transpose(1, 2) for part in (q, k, v)))
                x = x + F.linear(mixed.transpose(1, 2).reshape(4, 2048, 2048), w_out)
                x = x + F.linear(F.gelu(F.linear(F.layer_norm(x, (2048,)), w_up)), w_down)
            torch.cuda.current_stream().wait_stream(side)
            return x
        return step
    return run(saved_in_turn), run(saved_beside)


@pair("feed_the_device")
def games_unpacked_in_the_loop():
    random = np.random.default_rng(0)
    frames = [np.repeat(random.integers(0, 255, (4, 84, 42), dtype=np.uint8), 2, 2) for _ in range(64)]
    packed = [zlib.compress(frame.tobytes(), 1) for frame in frames]

    class Games(torch.utils.data.Dataset):
        def __len__(self):
            return 1 << 20

        def __getitem__(self, at):
            chosen = np.random.default_rng(at).integers(64, size=128)
            found = [np.frombuffer(zlib.decompress(packed[i]), np.uint8).reshape(4, 84, 84) for i in chosen]
            return torch.from_numpy(np.stack(found)), torch.from_numpy(chosen)

    def make(workers):
        net = nn.Sequential(nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Conv2d(64, 64, 3), nn.ReLU(),
                            nn.Flatten(), nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, 64)).to(GPU)
        options = {"persistent_workers": True, "prefetch_factor": 2} if workers else {}
        batches = iter(torch.utils.data.DataLoader(Games(), batch_size=None, num_workers=workers, **options))

        def loss():
            seen, values = (part.to(GPU) for part in next(batches))
            return F.cross_entropy(net(seen.float() / 255), values)
        return training(net, loss, dtype=None)
    return make(0), make(8)
