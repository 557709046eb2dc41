# SPDX-License-Identifier: Apache-2.0
"""A nineteenth set, of one kind: loops that choose elements by a mask. 8 pairs and 2 null pairs.

Written on 28 November 2026 by the hand that wrote the rule about such loops (src/analyze/advise/rules/host/masks.cc), after the
rule and before any of these programs was measured. Half of it is set aside by the hash of its names, though no constant was
chosen on it. As in pairs_eighteenth.py, each step takes the next of four batches, and `alike` compares the results of both
programs.
"""

import torch
import torch.nn.functional as F
from torch import nn

import pairs_eighteenth as eighteenth
from pairs_eighteenth_steps import alike, four, turns
from pairs_eleventh_steps import learnt
from pairs_practice import BF16, without_gradients
from pairs_sixth import ints
from pairs_unseen import GPU, null, pair, rand

eighteenth.PAIRS.clear()
PAIRS = eighteenth.PAIRS


def over(batches, worked):
    """A step that works on the next batch."""
    following = turns(batches)
    return without_gradients(lambda: worked(*following()))


@pair("remove_syncs", "cut_host_work", "slow_op", "reduce_problem")
def errors_of_each_speaker_weighed_apart():
    # Right: one index_add_ over all words; no mask for each speaker.
    words, speakers = 200_000, 64
    batches = four(lambda: (torch.rand(words, device=GPU), ints(speakers, words)))

    def apart(errors, speaker):
        return torch.stack([errors[speaker == number].square().sum() for number in range(speakers)])

    def together(errors, speaker):
        return torch.zeros(speakers, device=GPU).index_add_(0, speaker, errors.square())
    return alike(over(batches, apart), over(batches, together))


@pair("remove_syncs", "cut_host_work", "slow_op", "reduce_problem")
def middles_of_the_parts_of_a_scan_found_part_by_part():
    # Right: sums and counts of all parts at once.
    points, parts = 120_000, 40
    batches = four(lambda: (rand(points, 3), ints(parts, points)))

    def apart(place, part):
        return torch.stack([place[part == number].mean(0) for number in range(parts)])

    def together(place, part):
        sums = torch.zeros(parts, 3, device=GPU).index_add_(0, part, place)
        return sums / torch.bincount(part, minlength=parts)[:, None]
    return alike(over(batches, apart), over(batches, together))


@pair("remove_syncs", "cut_host_work", "fuse_pointwise", "slow_op")
def plots_of_a_field_grown_by_the_rule_of_their_plant():
    # Right: each plot looks its two numbers up; nothing is chosen.
    size, plants = 700, 24
    batches = four(lambda: (rand(size, size), ints(plants, size, size)))
    growth, start = rand(plants), rand(plants)

    def apart(height, plant):
        out = height.clone()
        for number in range(plants):
            mine = plant == number
            out[mine] = out[mine] * growth[number] + start[number]
        return out

    def together(height, plant):
        return height * growth[plant] + start[plant]
    return alike(over(batches, apart), over(batches, together))


@pair("remove_syncs", "batch_products", "cut_host_work")
def words_of_each_tongue_sent_through_ranks_of_their_own():
    # Right: one sort by the tongue, and one batched product for all of them.
    words, width, rank, tongues = 8192, 512, 32, 16
    down, up = rand(tongues, width, rank, dtype=BF16, scale=0.04), rand(tongues, rank, width, dtype=BF16, scale=0.2)
    even = torch.arange(words, device=GPU) % tongues
    batches = four(lambda: (rand(words, width, dtype=BF16), even[torch.randperm(words, device=GPU)]))

    def apart(x, tongue):
        out = torch.empty_like(x)
        for number in range(tongues):
            mine = tongue == number
            out[mine] = x[mine] @ down[number] @ up[number]
        return out

    def together(x, tongue):
        order = torch.argsort(tongue)
        told = torch.bmm(torch.bmm(x[order].view(tongues, -1, width), down), up)
        return torch.empty_like(x).index_copy_(0, order, told.view(words, width))
    return alike(over(batches, apart), over(batches, together))


@pair("remove_syncs", "cut_host_work", "fuse_pointwise", "compile_model")
def peaks_of_a_spectrum_cut_in_twenty_passes():
    # Right: `where` in each pass, which needs what the pass before has made.
    lines, passes = 300_000, 20
    batches = four(lambda: (rand(lines).abs() * 4,))

    def chosen(line):
        line = line.clone()
        for number in range(passes):
            high = line > line.mean() * (2.5 - 0.05 * number)
            line[high] = line[high] * 0.7
        return line

    def all_of_them(line):
        for number in range(passes):
            line = torch.where(line > line.mean() * (2.5 - 0.05 * number), line * 0.7, line)
        return line
    return alike(over(batches, chosen), over(batches, all_of_them))


@pair("remove_syncs", "cut_host_work", "slow_op", "batch_products")
def reads_of_a_genome_kept_by_their_quality_lane_by_lane():
    # Right: weights of zero and one over all lanes.
    lanes, reads, letters = 48, 4096, 100
    batches = four(lambda: (rand(lanes, reads, letters), torch.rand(lanes, reads, device=GPU)))

    def apart(signal, quality):
        return torch.stack([signal[lane][quality[lane] > 0.7].sum(0) for lane in range(lanes)])

    def together(signal, quality):
        return torch.einsum("lrc,lr->lc", signal, (quality > 0.7).float())
    return alike(over(batches, apart), over(batches, together))


@pair("remove_syncs", "cut_host_work", "slow_op", "cuda_graphs", "compile_model")
def depths_learnt_where_a_laser_has_seen_picture_by_picture():
    # Right: errors of all pixels, times whether the laser has seen them.
    pictures, size, width = 24, 64, 32
    batches = four(lambda: (rand(pictures, 3, size, size), rand(pictures, size, size),
                            torch.rand(pictures, size, size, device=GPU) < 0.2))

    def apart(depth, goal, seen):
        errors = [F.smooth_l1_loss(one[there], its[there]) for one, its, there in zip(depth, goal, seen)]
        return torch.stack(errors).mean()

    def together(depth, goal, seen):
        errors = F.smooth_l1_loss(depth, goal, reduction="none") * seen
        return (errors.sum((1, 2)) / seen.sum((1, 2))).mean()

    def make(averaged):
        torch.manual_seed(1)
        model = nn.Sequential(nn.Conv2d(3, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1), nn.ReLU(),
                              nn.Conv2d(width, 1, 1)).to(GPU)
        following = turns(batches)

        def loss():
            x, goal, seen = following()
            return averaged(model(x).squeeze(1), goal, seen)
        return learnt(model, loss)
    return alike(make(apart), make(together))


@pair("remove_syncs", "cut_host_work", "reduce_problem", "slow_op")
def greatest_of_each_group_of_stocks_found_by_its_places():
    # Right: one scatter_reduce over all stocks.
    stocks, groups = 60_000, 90
    batches = four(lambda: (rand(stocks), ints(groups, stocks)))

    def apart(gain, group):
        best = torch.zeros(groups, device=GPU)
        for number in range(groups):
            at = (group == number).nonzero().squeeze(1)
            best[number] = gain[at].max()
        return best

    def together(gain, group):
        return torch.full((groups,), -torch.inf, device=GPU).scatter_reduce_(0, group, gain, "amax")
    return alike(over(batches, apart), over(batches, together))


@null("remove_syncs", "cut_host_work")
def null_classes_counted_by_masks_after_wide_layers():
    # Nothing to gain: sixteen masks of few numbers beside products that take the step.
    rows, width, classes = 16384, 6144, 16
    weights = [rand(width, width, dtype=BF16, scale=width ** -0.5) for _ in range(6)]
    batches = four(lambda: (rand(rows, width, dtype=BF16), ints(classes, rows)))

    def through(x):
        for one in weights:
            x = torch.relu(x @ one)
        return x.float().mean(1)

    def apart(x, kind):
        told = through(x)
        return torch.stack([told[kind == number].sum() for number in range(classes)])

    def together(x, kind):
        return torch.zeros(classes, device=GPU).index_add_(0, kind, through(x))
    return alike(over(batches, apart), over(batches, together))


@null("remove_syncs", "batch_products", "cut_host_work")
def null_wide_experts_that_choose_by_masks():
    # Nothing to gain: the products of each expert take far longer than its mask.
    tokens, width, inner, experts = 65536, 2048, 4096, 16
    up = rand(experts, width, inner, dtype=BF16, scale=width ** -0.5)
    down = rand(experts, inner, width, dtype=BF16, scale=inner ** -0.5)
    even = torch.arange(tokens, device=GPU) % experts
    batches = four(lambda: (rand(tokens, width, dtype=BF16), even[torch.randperm(tokens, device=GPU)]))

    def apart(x, chosen):
        out = torch.empty_like(x)
        for number in range(experts):
            mine = chosen == number
            out[mine] = F.silu(x[mine] @ up[number]) @ down[number]
        return out

    def together(x, chosen):
        order = torch.argsort(chosen)
        told = torch.bmm(F.silu(torch.bmm(x[order].view(experts, -1, width), up)), down)
        return torch.empty_like(x).index_copy_(0, order, told.view(tokens, width))
    return alike(over(batches, apart), over(batches, together))
