# SPDX-License-Identifier: Apache-2.0
"""The programs of the fourteenth set that compute a result several times in a step, or in each step from what never changes.

Written on 27 November 2026 by a hand that had not read the rules, before any of them was measured. pairs_fourteenth.py says how
the set was written, and takes these pairs in.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn

from pairs_eleventh_steps import learnt
from pairs_fourteenth_steps import PAIRS, alike, four, turns  # noqa: F401  pairs_fourteenth.py takes the pairs in
from pairs_practice import BF16, F16
from pairs_sixth import ints
from pairs_thirteenth_data import layer_of
from pairs_unseen import GPU, pair, rand, weight


# ---------------------------------------------------------------- the same result several times in a step

@pair("reuse_result", "fuse_pointwise", "compile_model")
def gas_whose_helpers_each_derive_its_state():
    tall, wide = 2048, 4096

    def batch():
        dense, push = 1 + 0.2 * torch.rand(1, tall, wide, device=GPU), rand(2, tall, wide, scale=0.1)
        return torch.cat([dense, push, 2.5 + 0.2 * torch.rand(1, tall, wide, device=GPU)])
    gases = four(batch)

    def derived(gas):
        dense, x, y, energy = gas
        u, v = x / dense, y / dense
        pressure = 0.4 * (energy - 0.5 * dense * (u * u + v * v))
        return u, v, pressure, torch.sqrt(1.4 * pressure / dense)

    def moved_across(gas, state):
        u, _, pressure, _ = state(gas)
        return torch.stack([gas[1], gas[1] * u + pressure, gas[2] * u, (gas[3] + pressure) * u])

    def moved_down(gas, state):
        _, v, pressure, _ = state(gas)
        return torch.stack([gas[2], gas[1] * v, gas[2] * v + pressure, (gas[3] + pressure) * v])

    def longest(gas, state):
        u, v, _, sound = state(gas)
        return 0.4 / torch.maximum((u.abs() + sound).amax(), (v.abs() + sound).amax())

    def stiff(gas, state):
        u, v, pressure, sound = state(gas)
        return 0.01 * pressure * torch.sqrt(u * u + v * v) / sound

    def run(once):
        following = turns(gases)

        def step():
            gas = following()
            known = derived(gas) if once else None
            state = (lambda gas: known) if once else derived
            across, down = moved_across(gas, state), moved_down(gas, state)
            time = longest(gas, state)
            change = torch.roll(across, 1, 2) - across + torch.roll(down, 1, 1) - down
            moved = gas + time * change
            moved[3] -= time * stiff(gas, state)
            return moved
        return step
    return alike(run(False), run(True))


@pair("reuse_result", "fuse_pointwise", "compile_model")
def pairs_of_atoms_measured_by_each_term():
    atoms = 4096
    places, charges = four(lambda: rand(atoms, 3, scale=4.0)), rand(atoms)
    deep = torch.rand(atoms, device=GPU)

    def distances(p):
        return ((p[:, None] - p).pow(2).sum(-1) + 1.0).sqrt()

    def repulsion(p, away):
        return (deep[:, None] * torch.exp(-2 * away(p))).sum(1)

    def dispersion(p, away):
        return -away(p).pow(-6).sum(1)

    def electric(p, away):
        return charges * ((1 / away(p)) @ charges)

    def crowding(p, away):
        return (away(p) < 3).float().sum(1)

    def run(once):
        following = turns(places)

        def step():
            p = following()
            known = distances(p) if once else None
            away = (lambda p: known) if once else distances
            return {"energy": repulsion(p, away) + dispersion(p, away) + electric(p, away), "crowding": crowding(p, away)}
        return step
    return alike(run(False), run(True))


@pair("reuse_result", "reduce_problem")
def likeness_of_pictures_and_words_multiplied_for_each_side():
    count, wide, narrow, width = 8192, 1024, 768, 512
    known, which = four(lambda: (rand(count, wide), rand(count, narrow))), torch.arange(count, device=GPU)

    def scores(model, pictures, words):
        one = F.normalize(model["pictures"](pictures).float(), dim=-1)
        other = F.normalize(model["words"](words).float(), dim=-1)
        return (one @ other.t()).float() * 20

    def words_of_pictures(likeness):
        return F.cross_entropy(likeness(), which)

    def pictures_of_words(likeness):
        return F.cross_entropy(likeness().t(), which)

    def evenness(likeness):
        return likeness().diagonal().std() * 0.01

    def net(inner):
        return nn.Sequential(nn.Linear(inner, 2048), nn.GELU(), nn.Linear(2048, width))

    def make(once):
        torch.manual_seed(1)
        model, following = nn.ModuleDict({"pictures": net(wide), "words": net(narrow)}).to(GPU), turns(known)

        def loss():
            pictures, words = following()
            made = scores(model, pictures, words) if once else None

            def likeness():
                return made if once else scores(model, pictures, words)
            return (words_of_pictures(likeness) + pictures_of_words(likeness)) / 2 + evenness(likeness)
        return learnt(model, loss)
    return alike(make(False), make(True))


@pair("reuse_result")
def best_of_a_list_chosen_anew_for_each_measure():
    users, items, width, shown, liked = 2048, 65536, 64, 50, 20
    shop, places = weight(items, width), torch.arange(shown, device=GPU)
    visits = four(lambda: (rand(users, width), ints(items, users, liked)))
    worth = 1 / torch.log2(places + 2.0)
    most = worth[:liked].sum()

    def best(scores):
        return torch.topk(scores, shown, 1).indices

    def found(scores, truth, chosen):
        return (chosen(scores)[:, :, None] == truth[:, None]).any(2).float()

    def recall(scores, truth, chosen):
        return found(scores, truth, chosen).sum(1) / liked

    def gain(scores, truth, chosen):
        return (found(scores, truth, chosen) * worth).sum(1) / most

    def first(scores, truth, chosen):
        return (found(scores, truth, chosen) / (places + 1)).amax(1)

    def variety(scores, chosen):
        return torch.zeros(items, device=GPU).index_fill_(0, chosen(scores).flatten(), 1.0).mean()

    def run(once):
        following = turns(visits)

        def step():
            user, truth = following()
            scores = user @ shop.t()
            known = best(scores) if once else None
            chosen = (lambda scores: known) if once else best
            return {"recall": recall(scores, truth, chosen).mean(), "gain": gain(scores, truth, chosen).mean(),
                    "first": first(scores, truth, chosen).mean(), "variety": variety(scores, chosen)}
        return step
    return alike(run(False), run(True))


@pair("reuse_result")
def spectra_taken_by_each_feature_of_a_sound():
    sounds, samples, size = 32, 1 << 18, 2048
    heard = four(lambda: rand(sounds, samples))
    window, tones = torch.hann_window(size, device=GPU), torch.linspace(0, 11025, size // 2 + 1, device=GPU)[:, None]

    def spectrum(x):
        return torch.stft(x, size, size // 4, window=window, return_complex=True).abs() + 1e-6

    def centre(x, spectra):
        known = spectra(x)
        return (known * tones).sum(1) / known.sum(1)

    def flatness(x, spectra):
        known = spectra(x)
        return torch.exp(known.log().mean(1)) / known.mean(1)

    def onsets(x, spectra):
        known = spectra(x)
        return torch.relu(known[:, :, 1:] - known[:, :, :-1]).sum(1)

    def crest(x, spectra):
        known = spectra(x)
        return known.amax(1) / known.mean(1)

    def run(once):
        following = turns(heard)

        def step():
            x = following()
            known = spectrum(x) if once else None
            spectra = (lambda x: known) if once else spectrum
            return [feature(x, spectra) for feature in (centre, flatness, onsets, crest)]
        return step
    return alike(run(False), run(True))


@pair("reuse_result", "reduce_problem")
def trunk_of_an_agent_run_for_each_of_its_heads():
    states, width, wide, moves = 16384, 256, 1024, 18
    seen = four(lambda: (rand(states, width), ints(moves, states), rand(states), rand(states)))

    def chance(model, hidden, taken):
        return torch.log_softmax(model["policy"](hidden).float(), -1).gather(1, taken[:, None]).squeeze(1)

    def disorder(model, hidden):
        logs = torch.log_softmax(model["policy"](hidden).float(), -1)
        return -(logs.exp() * logs).sum(1)

    def worth(model, hidden):
        return model["worth"](hidden).float().squeeze(1)

    def make(once):
        torch.manual_seed(1)
        trunk = nn.Sequential(nn.Linear(width, wide), nn.Tanh(),
                              *[part for _ in range(2) for part in (nn.Linear(wide, wide), nn.Tanh())])
        model = nn.ModuleDict({"trunk": trunk, "policy": nn.Linear(wide, moves), "worth": nn.Linear(wide, 1)}).to(GPU)
        following = turns(seen)

        def loss():
            state, taken, gain, goal = following()
            known = model["trunk"](state) if once else None

            def hidden():
                return known if once else model["trunk"](state)
            ratio = torch.exp((chance(model, hidden(), taken) + 2.9).clamp(-2, 2))
            gained = torch.minimum(ratio * gain, ratio.clamp(0.8, 1.2) * gain).mean()
            return (worth(model, hidden()) - goal).pow(2).mean() - gained - 0.01 * disorder(model, hidden()).mean()
        return learnt(model, loss)
    return alike(make(False), make(True))


# ---------------------------------------------------------------- what each step computes from data that never changes

@pair("reuse_result", "cast_weights_once", "remove_copies")
def layers_joined_from_their_cores_for_each_batch():
    tokens, side, rank = 512, 64, 64
    x_all = four(lambda: rand(tokens, side * side, dtype=BF16))
    cores = [(rand(side, side, rank, dtype=BF16, scale=1 / side), rand(rank, side, side, dtype=BF16, scale=1 / 8))
             for _ in range(6)]

    def joined(first, second):
        return torch.tensordot(first, second, 1).permute(0, 2, 1, 3).reshape(side * side, side * side)
    known = [joined(*pairs) for pairs in cores]

    def run(weight_of):
        following = turns(x_all)

        def step():
            x = following()
            for number, pairs in enumerate(cores):
                x = x + F.gelu(F.linear(x, weight_of(number, pairs)))
            return x
        return step
    return alike(run(lambda number, pairs: joined(*pairs)), run(lambda number, pairs: known[number]))


@pair("reuse_result", "fuse_pointwise")
def places_of_pixels_encoded_for_each_fit():
    side, tones, width = 512, 256, 128
    frames = four(lambda: torch.rand(side * side, 3, device=GPU))
    at = torch.linspace(-1, 1, side, device=GPU)
    places = torch.stack(torch.meshgrid(at, at, indexing="ij"), -1).view(-1, 2)
    ways, fades = rand(2, tones, scale=10.0), torch.rand(tones, device=GPU)

    def encoded():
        turned = 2 * math.pi * (places[:, :1] * ways[0] + places[:, 1:] * ways[1])
        return torch.cat([turned.sin() * fades, turned.cos() * fades], 1)
    known = encoded()

    def make(features):
        torch.manual_seed(1)
        model = nn.Sequential(nn.Linear(2 * tones, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 3))
        model, following = model.to(GPU), turns(frames)
        return learnt(model, lambda: (model(features()).float() - following()).pow(2).mean())
    return alike(make(encoded), make(lambda: known))


@pair("reuse_result", "reduce_problem")
def instruction_read_again_for_each_question():
    asked, known, new, width, heads, words = 4, 1536, 64, 1024, 16, 32000
    instruction = rand(1, known, width, dtype=F16)
    questions = four(lambda: rand(asked, new, width, dtype=F16))
    layers = [tuple(weight(out, inner, F16) for out, inner in
                    ((3 * width, width), (width, width), (4 * width, width), (width, 4 * width))) for _ in range(4)]
    head = weight(words, width, F16)
    seen = torch.cat([torch.ones(new, known, device=GPU), torch.ones(new, new, device=GPU).tril()], 1).bool()

    def split(x, w_in):
        qkv = F.linear(F.layer_norm(x, (width,)), w_in)
        return qkv.view(len(x), -1, 3, heads, width // heads).permute(2, 0, 3, 1, 4).unbind(0)

    def joined(x, read, w_out, up, down):
        return layer_of(x + F.linear(read.transpose(1, 2).reshape(x.shape), w_out), up, down)

    def whole(question):
        x = torch.cat([instruction.expand(asked, -1, -1), question], 1)
        for w_in, *others in layers:
            q, k, v = split(x, w_in)
            x = joined(x, F.scaled_dot_product_attention(q, k, v, is_causal=True), *others)
        return x

    def kept():
        x, caches = instruction, []
        for w_in, *others in layers:
            q, k, v = split(x, w_in)
            caches.append((k.expand(asked, -1, -1, -1), v.expand(asked, -1, -1, -1)))
            x = joined(x, F.scaled_dot_product_attention(q, k, v, is_causal=True), *others)
        return caches
    caches = kept()

    def in_part(question):
        x = question
        for (w_in, *others), (keys, values) in zip(layers, caches):
            q, k, v = split(x, w_in)
            k, v = torch.cat([keys, k], 2), torch.cat([values, v], 2)
            x = joined(x, F.scaled_dot_product_attention(q, k, v, attn_mask=seen), *others)
        return x

    def run(read):
        following = turns(questions)

        def step():
            return F.linear(read(following())[:, -1], head).float()
        return step
    return alike(run(whole), run(in_part))


@pair("reuse_result")
def stiffness_of_a_bridge_factorised_for_each_load():
    freedoms, loads, beams = 2048, 16, 4096
    root = weight(freedoms, freedoms)
    stiffness, strain = root @ root.t() + 0.5 * torch.eye(freedoms, device=GPU), weight(beams, freedoms)
    weights = four(lambda: rand(freedoms, loads))
    known = torch.linalg.cholesky(stiffness)

    def run(factor):
        following = turns(weights)

        def step():
            bent = torch.cholesky_solve(following(), factor())
            return {"bent": bent, "strained": (strain @ bent).abs().amax(1)}
        return step
    return alike(run(lambda: torch.linalg.cholesky(stiffness)), run(lambda: known))


@pair("reuse_result")
def neighbours_of_a_fixed_mesh_sought_for_each_field():
    nodes, near, width = 8192, 16, 64
    mesh, fields = rand(nodes, 3), four(lambda: rand(nodes, width))
    ws = [weight(width, 2 * width) for _ in range(3)]

    def neighbours():
        return torch.cdist(mesh, mesh).topk(near, 1, largest=False).indices
    known = neighbours()

    def run(found):
        following = turns(fields)

        def step():
            x, around = following(), found()
            for w in ws:
                x = x + torch.tanh(F.linear(torch.cat([x, x[around].amax(1)], 1), w))
            return x
        return step
    return alike(run(neighbours), run(lambda: known))


@pair("reuse_result", "cast_weights_once")
def weights_made_binary_for_each_frame():
    tokens, width = 256, 4096
    frames, ws = four(lambda: rand(tokens, width, dtype=BF16)), [weight(width, width) for _ in range(4)]

    def binary(w):
        return (w.sign() * w.abs().mean(1, keepdim=True)).to(BF16)
    known = [binary(w) for w in ws]

    def run(made):
        following = turns(frames)

        def step():
            x = following()
            for number, w in enumerate(ws):
                x = x + F.silu(F.linear(F.layer_norm(x, (width,)), made(number, w)))
            return x
        return step
    return alike(run(lambda number, w: binary(w)), run(lambda number, w: known[number]))


@pair("reuse_result", "fuse_pointwise")
def answer_of_free_space_computed_for_each_hologram():
    size, depths, pitch, colour = 2048, 4, 4.0, 0.5
    holograms = four(lambda: 1 + 0.1 * rand(size, size))
    far = torch.linspace(900, 1100, depths, device=GPU)[:, None, None]

    def answers():
        tone = torch.fft.fftfreq(size, d=pitch, device=GPU) * colour
        left = (1 - tone[:, None] ** 2 - tone ** 2).clamp(min=0).sqrt()
        phase = (2 * math.pi / colour) * far * (left - 1)
        return torch.polar(torch.ones_like(phase), phase)
    known = answers()

    def run(answers):
        following = turns(holograms)

        def step():
            seen = torch.fft.ifft2(torch.fft.fft2(following()) * answers())
            return seen.real ** 2 + seen.imag ** 2
        return step
    return alike(run(answers), run(lambda: known))


@pair("reuse_result", "fuse_pointwise")
def streets_divided_by_their_degrees_in_each_step():
    streets, hours, width = 8192, 12, 64
    links = (torch.rand(streets, streets, device=GPU) < 0.01).float()
    links = torch.maximum(links, links.t())
    traffic = four(lambda: (rand(streets, hours), rand(streets, 1)))

    def even():
        whole = links + torch.eye(streets, device=GPU)
        root = torch.rsqrt(whole.sum(1))
        return root[:, None] * whole * root
    known = even()

    def make(mixed):
        torch.manual_seed(1)
        model, following = nn.ModuleList([nn.Linear(hours, width), nn.Linear(width, 1)]).to(GPU), turns(traffic)

        def loss():
            (x, goal), mix = following(), mixed()
            hidden = torch.relu(mix @ model[0](x))
            return (mix @ model[1](hidden) - goal).pow(2).mean()
        return learnt(model, loss, dtype=None)
    return alike(make(even), make(lambda: known))
