# SPDX-License-Identifier: Apache-2.0
"""The programs of the eighteenth set in which the host, the copies or the parts of a training step are what is wrong.

Written on 28 November 2026 by a hand that had not read the rules, before any of them was measured. pairs_eighteenth.py says
how the set was written, and takes these pairs in.
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

import pairs_eleventh  # noqa: F401  its pairs are cleared below
import pairs_seventeenth_steps as seventeenth
from pairs_eleventh_steps import learnt, replayed
from pairs_fourteenth_steps import alike, four, turns
from pairs_practice import BF16, F16, without_gradients
from pairs_seventh_steps import blocks
from pairs_sixth import ints
from pairs_unseen import GPU, pair, rand, weight, with_precision

seventeenth.PAIRS.clear()
PAIRS = seventeenth.PAIRS


# ---------------------------------------------------------------- the host waits

@pair("remove_syncs", "cut_host_work", "cuda_graphs", "compile_model", "fuse_pointwise")
def crawlers_of_a_rollout_put_back_where_one_has_fallen():
    # Right: never ask the host whether one has fallen; `where` does nothing where none has.
    crawlers, seen, width, moves = 8192, 32, 256, 40
    starts, floor = four(lambda: rand(crawlers, seen)), rand(crawlers, seen)
    first, middle, last = weight(width, seen), weight(width, width), weight(seen, width)

    def asked(state, fallen):
        return torch.where(fallen, floor, state) if fallen.any() else state

    def always(state, fallen):
        return torch.where(fallen, floor, state)

    def run(put_back):
        following = turns(starts)

        def step():
            state, worth = following(), torch.zeros(crawlers, device=GPU)
            for _ in range(moves):
                push = torch.tanh(F.linear(torch.relu(F.linear(torch.relu(F.linear(state, first)), middle)), last))
                state = 0.95 * state + 0.2 * push
                worth = worth + state[:, 0]
                state = put_back(state, state.norm(dim=1, keepdim=True) > 9)
            return worth
        return step
    return alike(run(asked), run(always))


@pair("remove_syncs", "cut_host_work", "fuse_pointwise")
def gradients_clipped_by_norms_read_one_by_one():
    # Right: the norm of all gradients stays on the device.
    stories, length, width = 16, 256, 512
    known = four(lambda: (rand(stories, length, width), rand(stories, length, width)))

    def by_hand(weights):
        total = 0.0
        for one in weights:
            total += one.grad.norm().item() ** 2
        share = 0.001 / (total ** 0.5 + 1e-6)
        if share < 1:
            for one in weights:
                one.grad.mul_(share)

    def by_library(weights):
        nn.utils.clip_grad_norm_(weights, 0.001)

    def make(clipped):
        torch.manual_seed(1)
        model, following = blocks(8, width, 8), turns(known)
        weights = list(model.parameters())
        optimizer = torch.optim.AdamW(weights, lr=1e-5, fused=True)

        def step():
            x, goal = following()
            optimizer.zero_grad()
            with torch.autocast(GPU, BF16):
                value = F.mse_loss(model(x).float(), goal)
            value.backward()
            clipped(weights)
            optimizer.step()
            return value.detach()
        return step
    return alike(make(by_hand), make(by_library))


@pair("remove_syncs", "cut_host_work", "batch_products", "cuda_graphs", "reduce_problem")
def boxes_of_a_detector_kept_by_masks_picture_by_picture():
    # Right: a brackets-with-mask waits for the device in each picture; weights of zero and one do not.
    pictures, places, width, kinds = 32, 8400, 256, 80
    maps, head = four(lambda: rand(pictures, places, width, dtype=BF16)), weight(kinds + 4, width, BF16)

    def by_masks(boxes, best):
        areas, middles = [], []
        for box, score in zip(boxes, best):
            kept = score > 0.9
            mine, sure = box[kept], score[kept]
            areas.append((mine[:, 2] * mine[:, 3] * sure).sum())
            middles.append((mine[:, :2] * sure[:, None]).sum(0) / sure.sum())
        return torch.stack(areas), torch.stack(middles)

    def by_weights(boxes, best):
        sure = best * (best > 0.9)
        area = (boxes[:, :, 2] * boxes[:, :, 3] * sure).sum(1)
        return area, (boxes[:, :, :2] * sure[:, :, None]).sum(1) / sure.sum(1, keepdim=True)

    def run(kept):
        following = turns(maps)

        def step():
            told = F.linear(following(), head).float()
            return kept(torch.sigmoid(told[:, :, :4]), torch.sigmoid(told[:, :, 4:]).amax(2))
        return without_gradients(step)
    return alike(run(by_masks), run(by_weights))


@pair("keep_on_device", "remove_syncs", "pin_memory", "overlap_copies", "cut_host_work")
def words_chosen_on_the_host_with_a_penalty_for_those_said():
    # Right: all scores cross to the host for one word each; the device can choose.
    chats, width, words, said = 64, 1024, 50304, 200
    asked, before = four(lambda: rand(chats, width)), ints(words, chats, said)
    layers, head = [weight(width, width) for _ in range(3)], weight(words, width)
    before_here = before.cpu()

    def chosen(scores, said):
        ours = scores.gather(1, said)
        scores.scatter_(1, said, torch.where(ours > 0, ours / 1.2, ours * 1.2))
        return scores.argmax(1)

    def run(choice):
        following = turns(asked)

        def step():
            x = following()
            for w in layers:
                x = torch.tanh(2 * F.linear(x, w))
            return choice(F.linear(x, head))
        return step
    return alike(run(lambda scores: chosen(scores.cpu(), before_here).to(GPU)), run(lambda scores: chosen(scores, before)))


@pair("keep_on_device", "feed_the_device", "pin_memory", "overlap_copies", "cut_host_work")
def moves_of_a_game_drawn_from_a_memory_on_the_host():
    # Right: the memory of 226 MB fits on the device, so the draw can be there.
    kept, drawn, actions = 8000, 512, 18
    seen = torch.randint(256, (kept, 4, 84, 84), dtype=torch.uint8, device=GPU)
    seen_here = seen.cpu()
    draws = four(lambda: (ints(kept, drawn), ints(actions, drawn, 1), rand(drawn, 1)))

    def make(memory, draws):
        torch.manual_seed(1)
        parts = [nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Conv2d(64, 64, 3), nn.ReLU(),
                 nn.Flatten(), nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, actions)]
        model, following = nn.Sequential(*parts).to(GPU), turns(draws)

        def loss():
            at, action, worth = following()
            x = memory[at].to(GPU).float() / 255
            return F.smooth_l1_loss(model(x).float().gather(1, action), worth)
        return learnt(model, loss)
    here = [(at.cpu(), action, worth) for at, action, worth in draws]
    return alike(make(seen_here, here), make(seen, draws))


# ---------------------------------------------------------------- exposed copies and late data

@pair("overlap_copies")
def frames_of_a_car_sent_before_each_map_of_depth():
    # Right: the next frames can cross while the maps of these are computed.
    cars, tall, wide, width = 64, 256, 512, 32
    frames = [rand(cars, 3, tall, wide, dtype=F16).to(memory_format=torch.channels_last).cpu().pin_memory() for _ in range(4)]
    filters = [rand(out, inner, 3, 3, dtype=F16, scale=(5 * inner) ** -0.5).to(memory_format=torch.channels_last)
               for out, inner in ((width, 3), (width, width), (width, width), (8, width))]

    def told(x):
        for w in filters:
            x = torch.relu(F.conv2d(x, w, padding=1))
        return x.float().mean((2, 3))

    def in_turn():
        following = turns(frames)
        return without_gradients(lambda: told(following().to(GPU, non_blocking=True)))

    def ahead():
        following, side, number = turns(frames), torch.cuda.Stream(), [0]
        rooms = [torch.empty(cars, 3, tall, wide, dtype=F16, device=GPU, memory_format=torch.channels_last) for _ in range(2)]

        def upload(which):
            side.wait_stream(torch.cuda.current_stream())  # the step before has read that room
            with torch.cuda.stream(side):
                rooms[which].copy_(following(), non_blocking=True)
        upload(0)

        def step():
            here = number[0] % 2
            number[0] += 1
            torch.cuda.current_stream().wait_stream(side)
            upload(1 - here)
            return told(rooms[here])
        return without_gradients(step)
    return alike(in_turn(), ahead())


class Clips(torch.utils.data.Dataset):
    """Batches of sounds that are given an echo and noise when they are asked for."""

    def __init__(self, sounds, echo, clips):
        super().__init__()
        self.sounds, self.echo, self.clips = sounds, echo, clips

    def __len__(self):
        return 1 << 20

    def __getitem__(self, at):
        chance = np.random.default_rng(at)
        mine = self.sounds[chance.integers(len(self.sounds), size=self.clips)]
        far = np.fft.irfft(np.fft.rfft(mine, axis=1) * self.echo, n=mine.shape[1], axis=1)
        mixed = chance.uniform(0.5, 1.5, (self.clips, 1)) * far + 0.1 * chance.standard_normal(mine.shape)
        return torch.from_numpy(mixed.astype(np.float32)), torch.from_numpy(chance.integers(12, size=self.clips))


def learnt_from_clips(workers, clips, width):
    """A step of a net that learns from Clips, read by that many workers."""
    chance, length = np.random.default_rng(0), 8192
    sounds = chance.standard_normal((256, length))
    echo = np.fft.rfft(chance.standard_normal(length) * np.exp(-np.arange(length) / 500) / 20)
    torch.manual_seed(1)
    parts = [nn.Conv1d(1, 64, 16, 4), nn.ReLU(), nn.Conv1d(64, width, 8, 2), nn.ReLU(), nn.Conv1d(width, width, 8, 2),
             nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(width, 12)]
    model = nn.Sequential(*parts).to(GPU)
    options = {"persistent_workers": True, "prefetch_factor": 2, "pin_memory": True} if workers else {}
    batches = iter(torch.utils.data.DataLoader(Clips(sounds, echo, clips), batch_size=None, num_workers=workers, **options))

    def loss():
        x, kind = (part.to(GPU, non_blocking=True) for part in next(batches))
        return F.cross_entropy(model(x[:, None]).float(), kind)
    return learnt(model, loss)


@pair("feed_the_device", "cut_host_work", "keep_on_device")
def sounds_given_an_echo_in_the_loop_of_training():
    # Right: the host makes each batch while the device waits; workers make them beside it.
    return alike(learnt_from_clips(0, 32, 256), learnt_from_clips(8, 32, 256))


# ---------------------------------------------------------------- many small kernels

@pair("cuda_graphs", "cut_host_work", "compile_model", "fuse_pointwise")
def words_of_a_state_space_model_told_one_by_one():
    # Right: some 20 small kernels a layer, launched one by one, of shapes that never change.
    chats, width, inner, states, depth = 4, 512, 1024, 16, 16
    words = four(lambda: rand(chats, width, dtype=BF16))
    layers = [(weight(2 * inner, width, BF16), weight(inner + 2 * states, inner, BF16), weight(width, inner, BF16),
               rand(inner, states), rand(inner)) for _ in range(depth)]
    pasts = [rand(chats, inner, states) for _ in range(depth)]

    def told(x):
        for (wide, mix, out, decay, skip), past in zip(layers, pasts):
            y, gate = F.linear(F.layer_norm(x, (width,)), wide).chunk(2, 1)
            y = F.silu(y)
            way, into, outof = F.linear(y, mix).float().split((inner, states, states), 1)
            pace = F.softplus(way)
            now = past * torch.exp(-pace[:, :, None] * torch.exp(decay)) + (pace * y)[:, :, None] * into[:, None]
            seen = (now * outof[:, None]).sum(2) + skip * y
            x = x + F.linear((seen * F.silu(gate)).to(BF16), out)
        return x.float()

    def by_graph():
        following, room = turns(words), words[0].clone()
        replay = replayed(lambda: told(room))

        def step():
            room.copy_(following())
            return replay()
        return step
    following = turns(words)
    return alike(lambda: told(following()), by_graph())


@pair("cut_host_work", "batch_products", "cuda_graphs", "fuse_pointwise", "compile_model")
def photos_of_a_batch_turned_and_toned_one_by_one():
    # Right: the same few ops for each photo; the whole batch takes them at once.
    photos, size = 128, 96
    chance = np.random.default_rng(0)

    def batch():
        flips = [bool(one) for one in chance.integers(2, size=photos)]
        return (torch.rand(photos, 3, size, size, device=GPU), flips, torch.tensor(flips, device=GPU)[:, None, None, None],
                0.8 + 0.4 * torch.rand(photos, 1, 1, 1, device=GPU), 0.1 * rand(photos, 1, 1, 1))
    known = four(batch)
    first, last = rand(32, 3, 3, 3, scale=0.2), rand(16, 32, 3, 3, scale=0.06)
    middle = torch.tensor([0.48, 0.45, 0.40], device=GPU)[:, None, None]
    spread = torch.tensor([0.27, 0.26, 0.28], device=GPU)[:, None, None]

    def one_by_one(x, flips, _, gains, shifts):
        made = []
        for photo, flip, gain, shift in zip(x, flips, gains, shifts):
            photo = photo.flip(2) if flip else photo
            made.append(((photo * gain + shift).clamp(0, 1) - middle) / spread)
        return torch.stack(made)

    def at_once(x, _, flips, gains, shifts):
        x = torch.where(flips, x.flip(3), x)
        return ((x * gains + shifts).clamp(0, 1) - middle) / spread

    def run(toned):
        following = turns(known)

        def step():
            x = torch.relu(F.conv2d(toned(*following()), first, stride=2))
            return F.conv2d(x, last, stride=2).mean((2, 3))
        return without_gradients(step)
    return alike(run(one_by_one), run(at_once))


@pair("cut_host_work", "cuda_graphs", "reduce_problem", "slow_op", "fuse_pointwise", "batch_products")
def hits_of_each_kind_counted_in_a_loop_of_evaluation():
    # Right: three counts for each of 120 kinds are 120 times the same small ops; one scatter counts all.
    rows, width, kinds = 65536, 256, 120
    known = four(lambda: (rand(rows, width, dtype=BF16), ints(kinds, rows)))
    up, head = weight(512, width, BF16), weight(kinds, 512, BF16)

    def by_kinds(guess, kind):
        counts = []
        for number in range(kinds):
            ours, theirs = guess == number, kind == number
            counts.append(torch.stack([(ours & theirs).sum(), ours.sum(), theirs.sum()]))
        return torch.stack(counts).float()

    def at_once(guess, kind):
        counts, ones = torch.zeros(3, kinds, device=GPU), torch.ones(rows, device=GPU)
        counts[0].index_add_(0, kind, (guess == kind).float())
        counts[1].index_add_(0, guess, ones)
        counts[2].index_add_(0, kind, ones)
        return counts.t()

    def run(counted):
        following = turns(known)

        def step():
            x, kind = following()
            return counted(F.linear(torch.relu(F.linear(x, up)), head).argmax(1), kind)
        return without_gradients(step)
    return alike(run(by_kinds), run(at_once))


@pair("batch_products", "cut_host_work", "fill_the_device", "cuda_graphs")
def small_ranks_of_many_tenants_applied_in_a_loop():
    # Right: 48 pairs of thin products a layer, which one batched product each does.
    tenants, rows, width, rank, depth = 48, 64, 2048, 16, 4
    asked = four(lambda: rand(tenants, rows, width, dtype=BF16))
    layers = [(weight(width, width, BF16), rand(tenants, width, rank, dtype=BF16, scale=width ** -0.5),
               rand(tenants, rank, width, dtype=BF16, scale=0.1)) for _ in range(depth)]

    def in_a_loop(x, down, up):
        return torch.stack([one @ a @ b for one, a, b in zip(x, down, up)])

    def at_once(x, down, up):
        return torch.bmm(torch.bmm(x, down), up)

    def run(added):
        following = turns(asked)

        def step():
            x = following()
            for w, down, up in layers:
                x = torch.tanh(F.linear(x, w) + added(x, down, up))
            return x.float().mean(1)
        return without_gradients(step)
    return alike(run(in_a_loop), run(at_once))


# ---------------------------------------------------------------- the parts of a training step

class AdamByHand:
    """Adam as one writes it from the paper, weight by weight."""

    def __init__(self, weights, rate):
        self.weights, self.rate, self.count = weights, rate, 0
        self.means, self.squares = ([torch.zeros_like(one) for one in weights] for _ in range(2))

    @torch.no_grad()
    def step(self):
        self.count += 1
        for one, mean, square in zip(self.weights, self.means, self.squares):
            mean.mul_(0.9).add_(one.grad, alpha=0.1)
            square.mul_(0.999).addcmul_(one.grad, one.grad, value=0.001)
            size = (square / (1 - 0.999 ** self.count)).sqrt().add_(1e-8)
            one.addcdiv_(mean, size, value=-self.rate / (1 - 0.9 ** self.count))


@pair("fused_optimizer", "cut_host_work", "cuda_graphs", "fuse_pointwise")
def field_of_light_learnt_with_adam_written_by_hand():
    # Right: seven small kernels for each of 128 tensors, which the fused Adam does in a few.
    rays, width, depth = 4096, 256, 64
    known = four(lambda: (rand(rays, width), rand(rays, width)))

    def make(optimizer_of):
        torch.manual_seed(1)
        model = nn.Sequential(*[part for _ in range(depth) for part in (nn.Linear(width, width), nn.SiLU())]).to(GPU)
        weights, following = list(model.parameters()), turns(known)
        optimizer = optimizer_of(weights)

        def step():
            x, goal = following()
            model.zero_grad()
            with torch.autocast(GPU, BF16):
                value = F.mse_loss(model(x).float(), goal)
            value.backward()
            optimizer.step()
            return value.detach()
        return step
    return alike(make(lambda weights: AdamByHand(weights, 1e-5)),
                 make(lambda weights: torch.optim.Adam(weights, lr=1e-5, fused=True)))


@pair("recompute_less")
def judge_of_chess_computed_twice_though_memory_is_free():
    # Right: a net of some GB of activations on a card of 80 GB need not compute its blocks again.
    games, length, width = 16, 512, 768
    known = four(lambda: (rand(games, length, width), rand(games, length, width)))

    def make(kept):
        torch.manual_seed(1)
        model, following = blocks(6, width, 12), turns(known)

        def loss():
            x, goal = following()
            for block in model:
                x = block(x) if kept else checkpoint(block, x, use_reentrant=False)
            return F.mse_loss(x.float(), goal)
        return learnt(model, loss)
    return alike(make(False), make(True))


@pair("reduce_problem")
def pupil_learnt_from_a_teacher_that_keeps_its_gradients():
    # Right: the teacher is only read; its backward pass is for nothing.
    texts, length, width = 8, 512, 1024
    known = four(lambda: rand(texts, length, width))

    def make(kept):
        torch.manual_seed(1)
        teacher, pupil, following = blocks(6, width, 16), blocks(2, width, 16), turns(known)

        def loss():
            teacher.zero_grad()
            x = following()
            with torch.set_grad_enabled(kept):
                goal = teacher(x).float()
            return F.mse_loss(pupil(x).float(), goal)
        return learnt(pupil, loss)
    return alike(make(True), make(False))


@pair("reduce_problem")
def reviews_of_a_shop_read_to_the_end_of_their_padding():
    # Right: no review of these batches is longer than 160 words of 512, so the rest need not be computed.
    reviews, length, longest, width = 16, 512, 160, 768
    known = four(lambda: (rand(reviews, length, width), rand(reviews, width)))

    def whole(model, x):
        return model(x)[:, :longest]

    def cut(model, x):
        return model(x[:, :longest])

    def make(read):
        torch.manual_seed(1)
        model, following = blocks(6, width, 12), turns(known)

        def loss():
            x, goal = following()
            return F.mse_loss(read(model, x).mean(1).float(), goal)
        return learnt(model, loss)
    return alike(make(whole), make(cut))


@pair("tensor_cores")
def clicks_guessed_by_wide_layers_in_full_float32():
    # Right: products of float32 that may use TF32.
    rows, sizes = 16384, (512, 1024, 1024, 1024, 512, 1)
    known = four(lambda: (rand(rows, sizes[0]), torch.rand(rows, 1, device=GPU)))

    def make(precision):
        torch.manual_seed(1)
        parts = [part for inner, out in zip(sizes, sizes[1:]) for part in (nn.Linear(inner, out), nn.ReLU())][:-1]
        model, following = nn.Sequential(*parts).to(GPU), turns(known)

        def loss():
            x, click = following()
            return F.binary_cross_entropy_with_logits(model(x), click)
        return with_precision(precision, learnt(model, loss, dtype=None))
    return alike(make("highest"), make("high"))


@pair("leave_float64", "fuse_pointwise", "compile_model")
def pictures_of_calls_of_whales_made_in_float64():
    # Right: sounds of 16 bits need no transforms of 64.
    calls, samples, window = 64, 1 << 18, 1024
    sounds = four(lambda: rand(calls, samples, dtype=torch.float64))

    def run(dtype):
        following = turns([sound.to(dtype) for sound in sounds])
        rise = torch.hann_window(window, dtype=dtype, device=GPU)

        def step():
            waves = torch.stft(following(), window, 256, window=rise, return_complex=True)
            return torch.log1p(waves.abs().pow(2)).mean(2).float()
        return step
    return alike(run(torch.float64), run(torch.float32))


@pair("stop_allocating", "remove_syncs", "cut_host_work")
def answers_weighed_with_memory_given_back_after_each():
    # Right: memory that is given back is asked for again by the next answer.
    answers, words, width, kinds = 8, 1024, 1024, 32000
    known = four(lambda: [(rand(words, width, dtype=BF16), ints(kinds, words)) for _ in range(answers)])
    up, head = weight(width, width, BF16), weight(kinds, width, BF16)

    def run(gives_back):
        following = turns(known)

        def step():
            likely = []
            for x, word in following():
                scores = F.linear(F.gelu(F.linear(x, up)), head).float()
                likely.append(torch.log_softmax(scores, 1).gather(1, word[:, None]).mean())
                del scores
                if gives_back:
                    torch.cuda.empty_cache()
            return torch.stack(likely)
        return without_gradients(step)
    return alike(run(True), run(False))


# ---------------------------------------------------------------- the same result again

@pair("reuse_result", "reduce_problem")
def prompts_turned_to_keys_anew_at_each_step_of_a_sampler():
    # Right: the words of a prompt do not change from step to step, nor do their keys and values.
    pictures, places, width, words, wide, heads, depth, steps = 8, 1024, 640, 512, 4096, 10, 4, 6
    known = four(lambda: (rand(pictures, places, width, dtype=BF16), rand(pictures, words, wide, dtype=BF16)))
    layers = [(weight(width, width, BF16), weight(2 * width, wide, BF16), weight(width, width, BF16)) for _ in range(depth)]

    def parts(x, count):
        return x.view(pictures, -1, count, heads, width // heads).permute(2, 0, 3, 1, 4).unbind(0)

    def keys_of(prompt):
        return [parts(F.linear(prompt, both), 2) for _, both, _ in layers]

    def run(once):
        following = turns(known)

        def step():
            x, prompt = following()
            kept = keys_of(prompt) if once else None
            for _ in range(steps):
                for (asked, _, out), (k, v) in zip(layers, kept or keys_of(prompt)):
                    q, = parts(F.linear(F.layer_norm(x, (width,)), asked), 1)
                    mixed = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(x.shape)
                    x = x + F.linear(mixed, out)
            return x.float()
        return without_gradients(step)
    return alike(run(False), run(True))


@pair("reuse_result", "reduce_problem", "fuse_pointwise", "compile_model")
def distances_of_atoms_found_anew_for_each_force():
    # Right: the four terms ask for the same distances.
    atoms = 8192
    places = four(lambda: 3 * rand(atoms, 3))
    terms = [lambda d: torch.exp(-d), lambda d: d.clamp(max=4), lambda d: torch.cos(d), lambda d: d.mul(-0.3).sigmoid()]

    def anew(x):
        return [term(torch.cdist(x, x)).sum(1) for term in terms]

    def once(x):
        far = torch.cdist(x, x)
        return [term(far).sum(1) for term in terms]

    def run(told):
        following = turns(places)
        return lambda: torch.stack(told(following()))
    return alike(run(anew), run(once))
