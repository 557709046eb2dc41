# SPDX-License-Identifier: Apache-2.0
"""The margins of src/analyze/advise/learn/margins.cc: `python3 margins.py PURLIN FOLDER…` prints them by kind of rule.

FOLDERs are those of run.py; pairs that are set aside are left out. PURLIN must be built without margins (all 0 in
margins.cc). For each kind, and for each end of the intervals: the conformal quantile of how far the measured saving lies
beyond the end, so that COVERAGE of the pairs to come lie inside; it is above four of five, for a rule that is not named misses too. LEAST is what a pair differs by between rounds.
"""

import json
import math
import os
import sys

from score import advice_of, judge

COVERAGE, LEAST = 0.85, 0.02
KINDS = {
    "host": "cuda_graphs cut_host_work compile_model remove_syncs stop_allocating",
    "waits": "feed_the_device slow_op remove_stalls",
    "launches": "batch_products reuse_result recompute_less fused_optimizer cast_weights_once remove_copies reduce_problem",
    "fusion": "fuse_pointwise fuse_norm fuse_epilogue flash_attention",
    "compute": "tensor_cores align_dimensions quantize channels_last leave_float64",
    "copies": "overlap_copies pin_memory keep_on_device",
}


def seen_pairs(folder):
    with open(os.path.join(folder, "pairs.json"), encoding="utf-8") as file:
        pairs = json.load(file)["pairs"]
    return [(folder, pair) for pair in pairs
            if "error" not in pair and not pair["set_aside"] and not pair["null"] and pair["saved_share"] > LEAST]


def beyond(purlin, folder, pair):
    """How far the measured saving lies below and above the interval of the pair's rule; None where it is not named."""
    advice = advice_of(purlin, os.path.join(folder, pair["trace"]))
    judge(pair, advice["interventions"] + advice["trades"], rule_alone=True)
    if "predicted" not in pair:
        return None
    low, _, high = pair["predicted"]
    return max(0, low - pair["saved_share"]), max(0, pair["saved_share"] - high)


def quantile(values):
    rank = math.ceil(COVERAGE * (len(values) + 1))
    return sorted(values)[min(rank, len(values)) - 1] if values else 0


def main():
    purlin, folders = sys.argv[1], sys.argv[2:]
    misses = {kind: [] for kind in KINDS}
    for folder, pair in [one for folder in folders for one in seen_pairs(folder)]:
        kind = next((kind for kind, rules in KINDS.items() if pair["rule"] in rules.split()), None)
        miss = beyond(purlin, folder, pair) if kind else None
        if miss:
            misses[kind].append(miss)
    for kind, values in misses.items():
        below, above = (max(LEAST, quantile([value[end] for value in values])) for end in (0, 1))
        print(f"{kind}: {len(values)} pairs, below {below:.2f}, above {above:.2f}")


if __name__ == "__main__":
    main()
