# SPDX-License-Identifier: Apache-2.0
"""A fourth set: written after the third was scored, before any rule or margin was changed for it. All of it is set aside.

As in pairs_practice.py.
"""

import torch
import torch.nn.functional as F
from torch import nn

import pairs_practice as practice
from pairs_practice import BF16, F16, compiled, convolutions, without_gradients
from pairs_unseen import GPU, captured, null, pair, rand, weight, with_precision

practice.PAIRS.clear()
PAIRS = practice.PAIRS


@pair("tensor_cores")
def retrieval_scores_in_float32():
    queries, documents = rand(2048, 768), rand(100_000, 768)

    def work():
        return torch.topk(queries @ documents.t(), 10, dim=1)
    return with_precision("highest", work), with_precision("high", work)


@pair("flash_attention", "fuse_norm")
def padded_sentences_by_hand():
    batch, heads, length, each = 24, 12, 512, 64
    q, k, v = (rand(batch, heads, length, each, dtype=F16) for _ in range(3))
    kept = (torch.arange(length, device=GPU) < 400).view(1, 1, 1, length).expand(batch, 1, length, length)
    added = torch.zeros(batch, 1, 1, length, device=GPU, dtype=F16).masked_fill(~kept[:, :, :1], -1e4)

    def before():
        scores = q @ k.transpose(-1, -2) / each ** 0.5 + added
        return torch.softmax(scores, dim=-1) @ v
    return before, lambda: F.scaled_dot_product_attention(q, k, v, attn_mask=kept)


@pair("fuse_pointwise", "compile_model", "fuse_norm")
def likelihood_of_a_gaussian():
    mean, spread, target = (rand(1 << 24) for _ in range(3))

    def step():
        variance = F.softplus(spread) + 1e-4
        return (0.5 * (torch.log(variance) + (target - mean) ** 2 / variance)).mean()
    return step, compiled(step)


@pair("compile_model", "fuse_pointwise", "remove_copies")
def encoding_of_positions_in_a_scene():
    x = rand(1 << 20, 3)

    def step():
        parts = [x]
        for power in range(8):
            parts += [torch.sin(x * 2 ** power), torch.cos(x * 2 ** power)]
        return torch.cat(parts, dim=-1)
    return step, compiled(step)


@pair("fused_optimizer")
def picture_transformer_with_adamw():
    def make(**options):
        torch.manual_seed(0)
        layer = nn.TransformerEncoderLayer(768, 12, 3072, dropout=0.0, batch_first=True)
        model = nn.TransformerEncoder(layer, 8, enable_nested_tensor=False).to(GPU)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, weight_decay=0.05, **options)
        x = rand(8, 197, 768)

        def step():
            with torch.autocast(GPU, BF16):
                loss = model(x).float().pow(2).mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        return step
    return make(), make(fused=True)


@pair("cuda_graphs", "compile_model", "cut_host_work")
def risk_model_of_one_request():
    layers = [layer for _ in range(10) for layer in (nn.Linear(256, 256), nn.BatchNorm1d(256), nn.SiLU())]
    model = nn.Sequential(*layers).to(GPU).eval()
    x = rand(64, 256)
    step = without_gradients(lambda: model(x))
    return step, captured(step)


@pair("remove_syncs")
def largest_activation_read_in_each_layer():
    ws, x0 = [weight(2048, 2048, BF16) for _ in range(10)], rand(2048, 2048, dtype=BF16)

    def run(read):
        def step():
            x, seen = x0, []
            for w in ws:
                x = F.relu(F.linear(x, w))
                seen.append(read(x.max()))
            return seen
        return step
    return run(lambda value: value.item()), run(lambda value: value)


@pair("align_dimensions")
def vocabulary_of_32003():
    def make(words):
        x, w = rand(8192, 2048, dtype=F16), weight(words, 2048, F16)
        return lambda: F.linear(x, w)
    return make(32003), make(32064)


@pair("pin_memory", "overlap_copies")
def volumes_uploaded_each_step():
    volumes = torch.randn(8, 1, 128, 128, 128)
    pinned = volumes.pin_memory()
    kernel = rand(16, 1, 3, 3, 3)

    def run(source):
        return lambda: F.conv3d(source.to(GPU, non_blocking=True), kernel, padding=1)
    return run(volumes), run(pinned)


@pair("local_gathers", "coalesce")
def features_of_random_items():
    items, count = 1 << 24, 1 << 23
    table = rand(items, 4)
    at = torch.randint(items, (count,), device=GPU)
    in_order = at.sort().values
    return (lambda: table.index_select(0, at)), lambda: table.index_select(0, in_order)


@pair("leave_float64", "tensor_cores")
def covariance_of_a_numpy_matrix():
    def make(dtype):
        x = torch.randn(65536, 512, device=GPU, dtype=torch.float64).to(dtype)

        def step():
            centred = x - x.mean(0, keepdim=True)
            return centred.t() @ centred / (len(x) - 1)
        return step
    return make(torch.float64), make(torch.float32)


@pair("channels_last", "fuse_pointwise")
def stage_of_a_net_in_planes():
    def make(layout):
        model = convolutions(128, 6, F16, layout).eval()
        x = rand(32, 128, 56, 56, dtype=F16).contiguous(memory_format=layout)
        return without_gradients(lambda: model(x))
    return make(torch.contiguous_format), make(torch.channels_last)


@pair("batch_products", "cut_host_work", "cuda_graphs")
def adapters_applied_one_by_one():
    count, width, rank = 40, 1024, 16
    x = rand(32, width, dtype=BF16)
    downs = rand(count, width, rank, dtype=BF16, scale=0.03)
    each = list(downs.unbind(0))
    together = downs.permute(1, 0, 2).reshape(width, count * rank).contiguous()
    return (lambda: [x @ down for down in each]), lambda: (x @ together).view(32, count, rank)


@pair("reduce_problem")
def best_candidate_by_sorting():
    scores = rand(2048, 16384)
    return (lambda: torch.sort(scores, dim=1, descending=True)[0][:, :4] * 2), lambda: torch.topk(scores, 4, dim=1)[0] * 2


@pair("remove_copies", "fuse_pointwise")
def states_cloned_before_each_update():
    x0, ws = rand(8192, 4096, dtype=BF16), [rand(4096, dtype=BF16) for _ in range(6)]

    def run(kept):
        def step():
            x = x0
            for w in ws:
                x = kept(x) * w
            return x
        return step
    return run(lambda x: x.clone()), run(lambda x: x)


@pair("overlap_copies", "keep_on_device")
def chunks_copied_then_computed():
    chunks = [torch.randn(4096, 4096).to(BF16).pin_memory() for _ in range(6)]
    buffers = [torch.empty(4096, 4096, device=GPU, dtype=BF16) for _ in range(2)]
    w, side = weight(4096, 4096, BF16), torch.cuda.Stream()
    ready, used = ([torch.cuda.Event() for _ in range(6)] for _ in range(2))

    def compute(x):
        for _ in range(3):
            x = F.linear(x, w)
        return x

    def before():
        return [compute(chunk.to(GPU, non_blocking=True)) for chunk in chunks]

    def after():
        main, out = torch.cuda.current_stream(), []
        for i, chunk in enumerate(chunks):
            with torch.cuda.stream(side):
                side.wait_event(used[(i - 2) % 6])
                buffers[i % 2].copy_(chunk, non_blocking=True)
                ready[i].record(side)
            main.wait_event(ready[i])
            out.append(compute(buffers[i % 2]))
            used[i].record(main)
        return out
    return before, after


@pair("keep_on_device", "remove_syncs")
def boxes_ordered_on_the_host():
    scores, boxes = rand(1 << 18), rand(1 << 18, 4)

    def run(where):
        def step():
            order = scores.to(where).argsort(descending=True)
            return boxes[order.to(GPU)[:1000]]
        return step
    return run("cpu"), run(GPU)


@pair("cut_host_work", "cuda_graphs", "compile_model", "batch_products")
def pictures_augmented_one_by_one():
    pictures, gains = rand(48, 3, 96, 96), [float(i) / 48 + 0.5 for i in range(48)]
    gain = torch.tensor(gains, device=GPU).view(48, 1, 1, 1)

    def before():
        return torch.stack([(picture * g).clamp(-1, 1).flip(-1) for picture, g in zip(pictures, gains)])
    return before, lambda: (pictures * gain).clamp(-1, 1).flip(-1)


@pair("cast_weights_once", "reuse_result", "remove_copies")
def weights_cast_in_every_call():
    layers, x0 = [weight(4096, 4096) for _ in range(6)], rand(256, 4096, dtype=F16)
    layers16 = [w.half() for w in layers]

    def run(of):
        def step():
            x = x0
            for w in of:
                x = torch.tanh(F.linear(x, w.half()))
            return x
        return step
    return run(layers), run(layers16)


@pair("feed_the_device")
def texts_prepared_in_the_loop():
    class Texts(torch.utils.data.Dataset):
        def __len__(self):
            return 1 << 20

        def __getitem__(self, at):
            words = [(at * 31 + i * 17) % 997 for i in range(256)]
            return torch.tensor(sorted(words, key=lambda word: -word))

    def make(workers):
        embed, layer = nn.Embedding(1000, 256).to(GPU), nn.TransformerEncoderLayer(256, 4, batch_first=True).to(GPU)
        options = {"persistent_workers": True, "prefetch_factor": 4} if workers else {}
        batches = iter(torch.utils.data.DataLoader(Texts(), batch_size=64, num_workers=workers, **options))

        def step():
            with torch.no_grad():
                return layer(embed(next(batches).to(GPU)))
        return step
    return make(0), make(8)


@null("tensor_cores")
def null_tf32_already():
    x, w = rand(8192, 4096), weight(4096, 4096)
    step = with_precision("high", lambda: F.linear(x, w))
    return step, step


@null("cuda_graphs", "cut_host_work", "compile_model")
def null_graph_of_wide_gated_layers():
    gate, up, down = weight(11008, 4096, BF16), weight(11008, 4096, BF16), weight(4096, 11008, BF16)
    x0 = rand(16384, 4096, dtype=BF16)

    def step():
        return F.linear(F.linear(x0, gate).mul_(F.linear(x0, up)), down)
    return step, captured(step)


@null("pin_memory", "overlap_copies", "keep_on_device")
def null_labels_uploaded_each_step():
    labels = torch.randint(10, (256,))
    pinned = labels.pin_memory()
    w, x0 = weight(8192, 8192, BF16), rand(8192, 8192, dtype=BF16)

    def run(source):
        def step():
            return F.linear(F.linear(x0, w), w), source.to(GPU, non_blocking=True)
        return step
    return run(labels), run(pinned)


@null("align_dimensions")
def null_vocabulary_of_50304():
    def make(words):
        x, w = rand(4096, 2048, dtype=BF16), weight(words, 2048, BF16)
        return lambda: F.linear(x, w)
    return make(50304), make(50432)


@null("fuse_norm", "fuse_pointwise", "compile_model")
def null_library_norms():
    x = rand(32768, 4096, dtype=BF16)

    def step():
        return F.softmax(x, dim=-1)
    return step, step
