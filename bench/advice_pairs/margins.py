# SPDX-License-Identifier: Apache-2.0
"""The margins of src/analyze/advise/learn/margins.cc: `python3 margins.py PURLIN FOLDER…` prints them by kind of rule.

FOLDERs are those of run.py; of a set that is still sealed, pass `--open` to leave the pairs set aside out. PURLIN must be built
with margins of {1, 0, 0} in margins.cc, so that its intervals are the models'. For each kind: `kept`, the part of the distance
from the middle to the low end that COVERAGE of the pairs need; and `above`, how far COVERAGE of the measured savings lie above
the high end. Both are mixed with those of all kinds, the more so the fewer pairs a kind has. A low end of 0 or a loss says
that the change may not be possible: it stays.

Then the same by cross-validation: each folder is left out in turn, the margins come from the others, and the table says how
often the measured saving lies inside and how wide the intervals are. A rule that is not named counts as a miss.
"""

import math
import os
import statistics
import sys

from score import advice_of, judge, pairs_of

COVERAGE, LEAST, LEAST_KEPT, FEW = 0.95, 0.02, 0.5, 5
GAIN = 0.03
KINDS = {
    "host": "cuda_graphs cut_host_work compile_model remove_syncs stop_allocating",
    "waits": "feed_the_device slow_op remove_stalls",
    "launches": "batch_products reuse_result recompute_less fused_optimizer cast_weights_once remove_copies reduce_problem "
                "remove_fills",
    "fusion": "fuse_pointwise fuse_norm fuse_epilogue flash_attention",
    "compute": "tensor_cores align_dimensions quantize channels_last leave_float64",
    "copies": "overlap_copies pin_memory keep_on_device",
    "kernels": "fill_the_device local_gathers coalesce stream_wider tune_kernel reduce_in_blocks",
}


def kind_of(rule):
    return next((kind for kind, rules in KINDS.items() if rule in rules.split()), "others")


def judged(purlin, folder, options):
    """The real pairs of a folder, with the interval of their own rule in `predicted` where it is named."""
    pairs = [pair for pair in pairs_of(folder, options) if not pair["null"] and pair["saved_share"] > GAIN]
    if "--open" in options:
        pairs = [pair for pair in pairs if not pair["set_aside"]]
    for pair in pairs:
        advice = advice_of(purlin, pair["trace"])
        judge(pair, advice["interventions"] + advice["trades"], rule_alone=True)
        pair["folder"], pair["kind"] = folder, kind_of(pair["rule"])
    return pairs


def quantile(values, none):
    rank = math.ceil(COVERAGE * (len(values) + 1))
    return sorted(values)[min(rank, len(values)) - 1] if values else none


def needed(pair):
    low, mid, _ = pair["predicted"]
    return (mid - LEAST - pair["saved_share"]) / (mid - low) if mid > low > 0 else 0


def exceeded(pair):
    return max(0, pair["saved_share"] - pair["predicted"][2])


def fit(pairs):
    """{kind: (kept, above)}"""
    named = [pair for pair in pairs if "predicted" in pair]
    of_all = quantile([needed(pair) for pair in named], 1), quantile([exceeded(pair) for pair in named], LEAST)
    out = {}
    for kind in [*KINDS, "others"]:
        own = [pair for pair in named if pair["kind"] == kind]
        weight = len(own) / (len(own) + FEW)
        kept = weight * quantile([needed(pair) for pair in own], 1) + (1 - weight) * of_all[0]
        above = weight * quantile([exceeded(pair) for pair in own], LEAST) + (1 - weight) * of_all[1]
        out[kind] = (min(1, max(LEAST_KEPT, kept)), max(LEAST, above))
    return out


def interval(pair, margins):
    low, mid, high = pair["predicted"]
    kept, above = margins[pair["kind"]]
    if low > 0:
        low = max(0, mid - kept * (mid - low) - LEAST)
    return low, min(1, high + above)


def line(title, pairs, ends):
    named = [pair for pair in pairs if "predicted" in pair]
    inside = sum(low <= pair["saved_share"] <= high for pair, (low, high) in zip(named, ends))
    width = 100 * statistics.mean(high - low for low, high in ends) if ends else 0
    share = 100 * inside / max(1, len(pairs))
    print(f"| {title} | {len(pairs)} | {len(named)} | {share:.0f} | {width:.0f} |")


def main():
    options = {word for word in sys.argv if word.startswith("--")}
    purlin, *folders = [word for word in sys.argv[1:] if word not in options]
    pairs = [pair for folder in folders for pair in judged(purlin, folder, options)]
    for kind, (kept, above) in fit(pairs).items():
        print(f"{kind}: {sum(pair['kind'] == kind for pair in pairs)} pairs, kept {kept:.2f}, above {above:.2f}")
    print("\n| left out | pairs | named | inside, % | mean width, points |\n|---|--:|--:|--:|--:|")
    ends_of = {}
    for folder in folders:
        margins = fit([pair for pair in pairs if pair["folder"] != folder])
        own = [pair for pair in pairs if pair["folder"] == folder]
        for pair in own:
            if "predicted" in pair:
                ends_of[id(pair)] = interval(pair, margins)
        line(os.path.basename(os.path.normpath(folder)), own, [ends_of[id(pair)] for pair in own if id(pair) in ends_of])
    line("all", pairs, [ends_of[id(pair)] for pair in pairs if id(pair) in ends_of])
    models = [(pair["predicted"][0], pair["predicted"][2]) for pair in pairs if "predicted" in pair]
    line("none: the models' own", pairs, models)


if __name__ == "__main__":
    main()
