# SPDX-License-Identifier: Apache-2.0
"""The programs of the twentieth set in which the host, the copies or the parts of a training step are what is wrong.

Written on 28 November 2026 by a hand that had not read the rules, before any of them was measured. pairs_twentieth.py says
how the set was written, and takes these pairs in.
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import pairs_eighteenth_steps as eighteenth
from pairs_eleventh_steps import learnt, replayed
from pairs_fourteenth_steps import alike, four, turns
from pairs_practice import BF16, F16, without_gradients
from pairs_seventh_steps import blocks
from pairs_sixth import ints
from pairs_unseen import GPU, pair, rand, weight

eighteenth.PAIRS.clear()
PAIRS = eighteenth.PAIRS


# ---------------------------------------------------------------- the host waits

@pair("remove_syncs", "cut_host_work", "cuda_graphs")
def molecules_pooled_with_a_count_asked_of_the_device():
    # Right: the loader knows how many molecules a batch has; the greatest number of an owner need not be read in each layer.
    atoms, molecules, width, depth = 8192, 512, 256, 40
    layers = [weight(width, width, BF16) for _ in range(depth)]

    def batch():
        owner = ints(molecules, atoms).sort().values
        owner[-1] = molecules - 1
        return rand(atoms, width, dtype=BF16), owner
    known = four(batch)

    def run(count_of):
        following = turns(known)

        def step():
            x, owner = following()
            told = 0
            for w in layers:
                x = F.layer_norm(x + torch.relu(F.linear(x, w)), (width,))
                told = told + torch.zeros(count_of(owner), width, device=GPU).index_add_(0, owner, x.float())
            return told
        return without_gradients(step)
    return alike(run(lambda owner: int(owner.max()) + 1), run(lambda owner: molecules))


@pair("remove_syncs", "cut_host_work", "cuda_graphs", "compile_model")
def words_of_a_transducer_told_where_the_host_sees_one():
    # Right: among 64 voices one nearly always speaks, and `where` keeps the state of those that do not.
    voices, moments, width, words = 64, 48, 320, 512
    heard = four(lambda: rand(moments, voices, width))
    table, joint = rand(words, width), weight(words, width)
    of_word, of_state = weight(width, width), weight(width, width)
    joint[0] *= 2  # number 0 says nothing, and is said often

    def spoken(state, word, says):
        mixed = torch.tanh(F.linear(F.embedding(word, table), of_word) + F.linear(state, of_state))
        return torch.where(says, mixed, state)

    def asked(state, word, says):
        return spoken(state, word, says) if bool(says.any()) else state

    def run(moved):
        following = turns(heard)

        def step():
            state, said = torch.zeros(voices, width, device=GPU), []
            for sound in following():
                scores = F.linear(torch.tanh(sound + state), joint)
                most, word = scores.max(1)
                state = moved(state, word, (word > 0)[:, None])
                said.append(most)
            return torch.stack(said), state
        return without_gradients(step)
    return alike(run(asked), run(spoken))


@pair("remove_syncs", "cut_host_work", "cuda_graphs", "keep_on_device")
def signals_of_a_market_boosted_column_by_column():
    # Right: the number of the best column can stay on the device, which finds the column itself.
    days, signals, rounds = 65536, 512, 40
    columns, returns = rand(signals, days), four(lambda: rand(days))

    def by_host(best):
        return columns[int(best)]

    def by_device(best):
        return columns.index_select(0, best.view(1))[0]

    def run(column_of):
        following = turns(returns)

        def step():
            left = following()
            for _ in range(rounds):
                column = column_of(torch.mv(columns, left).abs().argmax())
                left = left - column * (0.3 * torch.dot(column, left) / days)
            return left
        return step
    return alike(run(by_host), run(by_device))


@pair("keep_on_device", "remove_syncs", "pin_memory", "cut_host_work")
def scans_of_a_hall_laid_on_its_map_by_numpy():
    # Right: the middles and the nine products of 200,000 points are for the device; no point need cross.
    points, size, rounds = 200_000, 512, 3
    line = torch.linspace(-1, 1, size, device=GPU)

    def surface(x, y):
        return 0.5 * torch.sin(3 * x) * torch.cos(2 * y)
    y, x = torch.meshgrid(line, line, indexing="ij")
    ground = torch.stack([x, y, surface(x, y)], 2).view(-1, 3)

    def scan():
        x, y = 1.8 * torch.rand(2, points, device=GPU) - 0.9
        turned = torch.tensor([[0.9992, -0.04, 0.0], [0.04, 0.9992, 0.0], [0.0, 0.0, 1.0]], device=GPU)
        return torch.stack([x, y, surface(x, y)], 1) @ turned + 0.01
    scans = four(scan)

    def by_numpy(ours, theirs):
        ours, theirs = ours.cpu().numpy(), theirs.cpu().numpy()
        here, there = ours.mean(0), theirs.mean(0)
        u, _, v = np.linalg.svd((ours - here).T @ (theirs - there))
        sign = np.diag([1.0, 1.0, np.sign(np.linalg.det(u @ v))]).astype(np.float32)
        turn = u @ sign @ v
        return torch.from_numpy(turn).to(GPU), torch.from_numpy(there - here @ turn).to(GPU)

    def by_device(ours, theirs):
        here, there = ours.mean(0), theirs.mean(0)
        u, _, v = torch.linalg.svd((ours - here).T @ (theirs - there))
        sign = torch.ones(3, device=GPU)
        sign[2:] = torch.det(u @ v).sign()
        turn = (u * sign) @ v
        return turn, there - here @ turn

    def run(fitted):
        following = turns(scans)

        def step():
            ours = following()
            for _ in range(rounds):
                at = ((ours[:, :2] + 1) * (0.5 * (size - 1))).round().long().clamp(0, size - 1)
                turn, shift = fitted(ours, ground[at[:, 1] * size + at[:, 0]])
                ours = ours @ turn + shift
            return ours.mean(0), ours.std(0)
        return step
    return alike(run(by_numpy), run(by_device))


# ---------------------------------------------------------------- exposed copies and late data

@pair("overlap_copies")
def papers_of_a_library_sent_in_parts_before_they_are_weighed():
    # Right: while the questions are weighed against one part, the next part can cross.
    questions, papers, width, count = 8192, 32768, 768, 6
    asked = four(lambda: rand(questions, width, dtype=BF16))
    parts = [rand(papers, width, dtype=BF16).cpu().pin_memory() for _ in range(count)]

    def better(best, x, part):
        ours = (x @ part.T).amax(1)
        return ours if best is None else torch.maximum(best, ours)

    def in_turn():
        following = turns(asked)

        def step():
            x, best = following(), None
            for part in parts:
                best = better(best, x, part.to(GPU, non_blocking=True))
            return best.float()
        return step

    def ahead():
        following, side = turns(asked), torch.cuda.Stream()
        rooms = [torch.empty(papers, width, dtype=BF16, device=GPU) for _ in range(2)]
        ready, free = ([torch.cuda.Event() for _ in range(2)] for _ in range(2))

        def fetch(number):
            side.wait_event(free[number % 2])
            with torch.cuda.stream(side):
                rooms[number % 2].copy_(parts[number], non_blocking=True)
            ready[number % 2].record(side)

        def step():
            x, best, main = following(), None, torch.cuda.current_stream()
            fetch(0)
            for number in range(count):
                if number + 1 < count:
                    fetch(number + 1)
                main.wait_event(ready[number % 2])
                best = better(best, x, rooms[number % 2])
                free[number % 2].record(main)
            return best.float()
        return step
    return alike(in_turn(), ahead())


class Meters(torch.utils.data.Dataset):
    """Batches of windows of long records, evened and noised when they are asked for."""

    def __init__(self, records, windows, length):
        super().__init__()
        self.records, self.windows, self.length = records, windows, length

    def __len__(self):
        return 1 << 20

    def __getitem__(self, at):
        chance = np.random.default_rng(at)
        first = chance.integers(self.records.shape[1] - self.length - 1, size=self.windows)
        meter = chance.integers(len(self.records), size=self.windows)
        x = self.records[meter[:, None], first[:, None] + np.arange(self.length + 1)]
        x, goal = x[:, :-1], x[:, -1]
        low, middle, high = np.percentile(x, (10, 50, 90), axis=1)
        spread = high - low + 0.1
        x = (x - middle[:, None]) / spread[:, None] + 0.05 * chance.standard_normal(x.shape)
        return torch.from_numpy(x.astype(np.float32)), torch.from_numpy(((goal - middle) / spread).astype(np.float32))


@pair("feed_the_device", "cut_host_work")
def hours_of_meters_evened_in_the_loop_of_training():
    # Right: percentiles of each window are found by the host while the device waits; workers find them beside it.
    windows, length, width = 128, 1024, 256
    records = np.random.default_rng(0).standard_normal((64, 100_000)).astype(np.float32)

    def make(workers):
        torch.manual_seed(1)
        parts = [nn.Conv1d(1, 64, 8, 4), nn.ReLU(), nn.Conv1d(64, width, 4, 2), nn.ReLU(), nn.Conv1d(width, width, 4, 2),
                 nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(width, 1)]
        model = nn.Sequential(*parts).to(GPU)
        options = {"persistent_workers": True, "prefetch_factor": 2, "pin_memory": True} if workers else {}
        loader = torch.utils.data.DataLoader(Meters(records, windows, length), batch_size=None, num_workers=workers, **options)
        batches = iter(loader)

        def loss():
            x, goal = (part.to(GPU, non_blocking=True) for part in next(batches))
            return F.mse_loss(model(x[:, None]).float()[:, 0], goal)
        return learnt(model, loss)
    return alike(make(0), make(8))


# ---------------------------------------------------------------- many small kernels

@pair("cut_host_work", "cuda_graphs", "slow_op", "batch_products", "compile_model")
def pieces_of_voices_laid_over_each_other_one_by_one():
    # Right: 500 small sums, one for each piece, are what `fold` does in one kernel.
    voices, pieces, length, pace = 16, 500, 1024, 256
    rise = torch.hann_window(length, device=GPU)
    spectra = four(lambda: torch.complex(rand(voices, pieces, length // 2 + 1), rand(voices, pieces, length // 2 + 1)))
    whole = pace * (pieces - 1) + length

    def one_by_one(parts):
        wave = torch.zeros(voices, whole, device=GPU)
        for number in range(pieces):
            wave[:, number * pace:number * pace + length] += parts[:, number]
        return wave

    def at_once(parts):
        return F.fold(parts.transpose(1, 2), (1, whole), (1, length), stride=(1, pace)).view(voices, whole)

    def run(laid):
        following = turns(spectra)
        return without_gradients(lambda: laid(torch.fft.irfft(following()) * rise))
    return alike(run(one_by_one), run(at_once))


@pair("cut_host_work", "cuda_graphs", "remove_copies", "slow_op", "batch_products")
def baskets_of_shoppers_padded_row_by_row():
    # Right: 384 copies of some rows each are one gather over all rows.
    shoppers, longest, width, goods = 384, 160, 128, 4096
    chance = np.random.default_rng(0)
    ask, head, place = rand(width, dtype=BF16), weight(goods, width, BF16), torch.arange(longest, device=GPU)

    def batch():
        lengths = chance.integers(20, longest + 1, size=shoppers)
        ends = np.cumsum(lengths)
        bounds = list(zip((ends - lengths).tolist(), ends.tolist()))
        first, length = (torch.from_numpy(one).to(GPU)[:, None] for one in (ends - lengths, lengths))
        return rand(int(ends[-1]), width, dtype=BF16), bounds, first, length
    known = four(batch)

    def by_rows(seen, bounds, _, length):
        out = torch.zeros(shoppers, longest, width, dtype=BF16, device=GPU)
        for shopper, (start, end) in enumerate(bounds):
            out[shopper, :end - start] = seen[start:end]
        return out

    def at_once(seen, _, first, length):
        at = (first + place).clamp(max=len(seen) - 1)
        return seen[at] * (place < length)[:, :, None]

    def run(padded):
        following = turns(known)

        def step():
            seen, bounds, first, length = following()
            x = padded(seen, bounds, first, length)
            share = (x @ ask).float().masked_fill(place >= length, -torch.inf).softmax(1)
            return F.linear((share[:, None].to(BF16) @ x)[:, 0], head).float()
        return without_gradients(step)
    return alike(run(by_rows), run(at_once))


@pair("cuda_graphs", "cut_host_work", "compile_model")
def captions_of_pictures_told_word_by_word_with_fixed_rooms():
    # Right: some 25 small kernels a layer, whose shapes and places never change, launched one by one.
    pictures, width, heads, room, patches, depth = 4, 512, 8, 256, 196, 12
    each = width // heads
    layers = [[weight(out, inner, BF16) for out, inner in ((3 * width, width), (width, width), (width, width), (width, width),
                                                           (4 * width, width), (width, 4 * width))] for _ in range(depth)]
    seen = [[rand(pictures, heads, patches, each, dtype=BF16) for _ in range(2)] for _ in range(depth)]
    pasts = [[rand(pictures, heads, room, each, dtype=BF16) for _ in range(2)] for _ in range(depth)]

    def word(at):
        return (rand(pictures, width, dtype=BF16), torch.tensor([at], device=GPU),
                (torch.arange(room, device=GPU) <= at).expand(pictures, 1, 1, room).contiguous())
    words = [word(at) for at in (37, 90, 151, 200)]

    def heads_of(x):
        return x.view(pictures, -1, 1, heads, each).transpose(2, 3).unbind(1)

    def told(x, at, open_places, kept):
        for (qkv, out, ask, back, up, down), (keys, values), (k_seen, v_seen) in zip(layers, kept, seen):
            q, k, v = heads_of(F.linear(F.layer_norm(x, (width,)), qkv))
            keys.index_copy_(2, at, k)
            values.index_copy_(2, at, v)
            mixed = F.scaled_dot_product_attention(q, keys, values, attn_mask=open_places)
            x = x + F.linear(mixed.reshape(pictures, width), out)
            q, = heads_of(F.linear(F.layer_norm(x, (width,)), ask))
            x = x + F.linear(F.scaled_dot_product_attention(q, k_seen, v_seen).reshape(pictures, width), back)
            x = x + F.linear(F.gelu(F.linear(F.layer_norm(x, (width,)), up)), down)
        return x.float()

    def own():
        return [[one.clone() for one in both] for both in pasts]

    def one_by_one():
        following, kept = turns(words), own()
        return without_gradients(lambda: told(*following(), kept))

    def by_graph():
        following, kept, held = turns(words), own(), [one.clone() for one in words[0]]
        with torch.no_grad():
            replay = replayed(lambda: told(*held, kept))

        def step():
            for to, one in zip(held, following()):
                to.copy_(one)
            return replay()
        return step
    return alike(one_by_one(), by_graph())


@pair("cuda_graphs", "cut_host_work", "compile_model", "fuse_pointwise")
def plans_of_an_arm_tried_with_a_learnt_model_of_its_joints():
    # Right: 40 moves of some ten small kernels each, always the same ones.
    plans, moves, joints, state, width = 1024, 40, 7, 21, 128
    first, middle, last = weight(width, state + joints), weight(width, width), weight(state, width)
    goal, mean = rand(state), rand(moves, joints, scale=0.1)
    known = four(lambda: (rand(state), rand(moves, plans, joints)))

    def planned(now, noise):
        pushes, here, cost = (mean[:, None] + 0.3 * noise).clamp(-1, 1), now.expand(plans, state), 0
        for push in pushes:
            x = torch.tanh(F.linear(torch.cat([here, push], 1), first))
            here = here + 0.1 * F.linear(torch.tanh(F.linear(x, middle)), last)
            cost = cost + (here - goal).square().sum(1) + 0.01 * push.square().sum(1)
        share = torch.softmax(-cost / 200, 0)
        return (share[:, None] * pushes).sum(1)

    def by_graph():
        following, held = turns(known), [one.clone() for one in known[0]]
        replay = replayed(lambda: planned(*held))

        def step():
            for to, one in zip(held, following()):
                to.copy_(one)
            return replay()
        return step
    following = turns(known)
    return alike(lambda: planned(*following()), by_graph())


@pair("batch_products", "cut_host_work", "cuda_graphs", "compile_model", "fill_the_device")
def risks_of_each_fund_told_by_a_net_of_its_own():
    # Right: 96 nets of the same sizes are three products with a batch of 96.
    funds, days, sizes = 96, 256, (48, 128, 128, 8)
    known = four(lambda: rand(funds, days, sizes[0]))
    layers = [(rand(funds, inner, out, scale=inner ** -0.5), rand(funds, 1, out, scale=0.1))
              for inner, out in zip(sizes, sizes[1:])]

    def one_by_one(x):
        told = []
        for number in range(funds):
            y = x[number]
            for w, b in layers:
                y = torch.tanh(torch.addmm(b[number], y, w[number]))
            told.append(y)
        return torch.stack(told)

    def at_once(x):
        for w, b in layers:
            x = torch.tanh(torch.baddbmm(b, x, w))
        return x

    def run(told):
        following = turns(known)
        return without_gradients(lambda: told(following()))
    return alike(run(one_by_one), run(at_once))


# ---------------------------------------------------------------- the parts of a training step

@pair("fused_optimizer", "compile_model", "fuse_pointwise")
def tastes_of_readers_learnt_over_40000_books_by_the_default_adam():
    # Right: the lists of the default Adam walk over a hundred million weights many times; the fused one walks once.
    readers, books, width, small = 512, 40000, 1200, 256
    known = four(lambda: (torch.rand(readers, books, device=GPU) < 0.01).float())

    def make(**options):
        torch.manual_seed(1)
        sizes = (books, width, small, width, books)
        parts = [part for inner, out in zip(sizes, sizes[1:]) for part in (nn.Linear(inner, out, device=GPU), nn.Tanh())][:-1]
        model, following = nn.Sequential(*parts), turns(known)

        def loss():
            x = following()
            return F.cross_entropy(model(x), x / x.sum(1, keepdim=True))
        return learnt(model, loss, **options)
    return alike(make(foreach=True), make(fused=True))


@pair("reuse_result", "reduce_problem")
def odds_of_the_old_policy_found_anew_in_each_pass():
    # Right: the old policy does not change between the four passes over the same moves, nor do its odds.
    moves, seen, width, actions, passes = 32768, 128, 1024, 16, 4
    known = four(lambda: (rand(moves, seen), ints(actions, moves, 1), 1 + 0.3 * rand(moves, 1)))

    def make(once):
        torch.manual_seed(1)
        policy, old = (nn.Sequential(nn.Linear(seen, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(),
                                     nn.Linear(width, width), nn.Tanh(), nn.Linear(width, actions)).to(GPU) for _ in range(2))
        old.load_state_dict(policy.state_dict())
        optimizer, following = torch.optim.Adam(policy.parameters(), lr=1e-6, fused=True), turns(known)

        def odds(net, x, action):
            with torch.autocast(GPU, BF16):
                return torch.log_softmax(net(x).float(), 1).gather(1, action)

        def old_odds(x, action):
            with torch.no_grad():
                return odds(old, x, action)

        def step():
            x, action, gain = following()
            kept = old_odds(x, action) if once else None
            for _ in range(passes):
                optimizer.zero_grad()
                ratio = torch.exp(odds(policy, x, action) - (kept if once else old_odds(x, action)))
                value = -torch.minimum(ratio * gain, ratio.clamp(0.8, 1.2) * gain).mean()
                value.backward()
                optimizer.step()
            return value.detach()
        return step
    return alike(make(False), make(True))


@pair("stop_allocating", "remove_syncs", "cut_host_work")
def posters_drawn_by_three_nets_that_each_empty_the_cache():
    # Right: each net asks the driver again for the memory that the net before has given back.
    posters, width, layout = 8, 256, torch.channels_last
    noise = four(lambda: rand(posters, width, 64, 64, dtype=F16).to(memory_format=layout))

    def filters(out, inner):
        return rand(out, inner, 3, 3, dtype=F16, scale=(5 * inner) ** -0.5).to(memory_format=layout)
    coarse, fine = [filters(width, width) for _ in range(4)], [filters(64, 64) for _ in range(2)]
    narrow, last = filters(64, width), filters(8, 64)

    def run(gives_back):
        following = turns(noise)

        def rest():
            if gives_back:
                torch.cuda.empty_cache()

        def step():
            x = following()
            for w in coarse:
                x = torch.relu(F.conv2d(x, w, padding=1))
            rest()
            x = F.interpolate(F.conv2d(x, narrow, padding=1), scale_factor=8)
            for w in fine:
                x = torch.relu(F.conv2d(x, w, padding=1))
            rest()
            x = F.conv2d(x, last, padding=1).float().amax((2, 3))
            rest()
            return x
        return without_gradients(step)
    return alike(run(True), run(False))


# ---------------------------------------------------------------- work that nobody needs

@pair("reuse_result", "reduce_problem", "fuse_pointwise", "compile_model")
def mask_of_a_padded_batch_made_in_each_layer():
    # Right: all eight layers see the same mask, so the step can make it once.
    texts, length, width, heads, depth = 4, 2048, 512, 8, 8
    known = four(lambda: (rand(texts, length, width, dtype=BF16), 1000 + ints(1000, texts)))
    layers = [(weight(3 * width, width, BF16), weight(width, width, BF16)) for _ in range(depth)]
    place = torch.arange(length, device=GPU)

    def mask_of(lengths):
        ahead = torch.triu(torch.full((length, length), -torch.inf, device=GPU), 1)
        over = (place >= lengths[:, None])[:, None, None]
        return (ahead + torch.zeros(texts, 1, 1, length, device=GPU).masked_fill(over, -torch.inf)).to(BF16)

    def run(once):
        following = turns(known)

        def step():
            x, lengths = following()
            kept = mask_of(lengths) if once else None
            for qkv, out in layers:
                mask = kept if once else mask_of(lengths)
                y = F.linear(F.layer_norm(x, (width,)), qkv).view(texts, length, 3, heads, -1)
                mixed = F.scaled_dot_product_attention(*y.permute(2, 0, 3, 1, 4).unbind(0), attn_mask=mask)
                x = x + F.linear(mixed.transpose(1, 2).reshape(x.shape), out)
            return x[:, :1000].float()
        return without_gradients(step)
    return alike(run(False), run(True))


@pair("reduce_problem", "reuse_result")
def films_guided_with_a_strength_of_one():
    # Right: with a strength of one the half without a prompt takes itself away again; it need not be computed.
    films, length, width, moments = 4, 1024, 1024, 2
    known = four(lambda: (rand(films, length, width, dtype=BF16), rand(films, 1, width, dtype=BF16)))
    model = blocks(4, width, 16, attend=F.scaled_dot_product_attention).to(BF16)

    def guided(x, prompt, strength):
        plain, asked = model(torch.cat([x, x + prompt])).float().chunk(2)
        return plain + strength * (asked - plain)

    def asked_alone(x, prompt, strength):
        return model(x + prompt).float()

    def run(told):
        following = turns(known)

        def step():
            x, prompt = following()
            for _ in range(moments):
                x = (x - 0.1 * told(x, prompt, 1.0)).to(BF16)
            return x.float()
        return without_gradients(step)
    return alike(run(guided), run(asked_alone))


@pair("reduce_problem")
def windows_of_a_scene_cut_after_the_whole_was_decoded():
    # Right: a window of a sixteenth of the picture needs a sixteenth of the latent and a narrow edge.
    scenes, width, size, layout = 16, 128, 128, torch.channels_last
    known = four(lambda: rand(scenes, width, size, size, dtype=F16).to(memory_format=layout))
    first, middle, last = (rand(out, inner, 3, 3, dtype=F16, scale=(5 * inner) ** -0.5).to(memory_format=layout)
                           for out, inner in ((width, width), (64, width), (8, 64)))

    def decoded(x):
        x = F.interpolate(torch.relu(F.conv2d(x, first, padding=1)), scale_factor=2)
        x = F.interpolate(torch.relu(F.conv2d(x, middle, padding=1)), scale_factor=2)
        return torch.tanh(F.conv2d(x, last, padding=1))

    def whole(x):
        return decoded(x)[:, :, 192:320, 192:320]

    def near(x):
        return decoded(x[:, :, 44:84, 44:84])[:, :, 16:144, 16:144]

    def run(told):
        following = turns(known)
        return without_gradients(lambda: told(following()).float())
    return alike(run(whole), run(near))
