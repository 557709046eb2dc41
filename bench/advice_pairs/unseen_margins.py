# SPDX-License-Identifier: Apache-2.0
"""Margins by the intervals that were scored as unseen: `python3 unseen_margins.py` reads the tables of
bench/results/advice_pairs_later.md, leaves one set out at a time, and prints how often its intervals hold after the ends moved by
how the other sets' missed."""

import math
import os
import re

HERE = os.path.dirname(os.path.abspath(__file__))
RECORD = os.path.join(HERE, "..", "results", "advice_pairs_later.md")
SETS = "sixth", "seventh", "eighth", "ninth"
GAIN, FEW = 3, 4  # %; pairs of a kind that count as much as all others
KINDS = (
    "cuda_graphs cut_host_work compile_model stop_allocating", "remove_syncs", "fuse_pointwise",
    "feed_the_device slow_op remove_stalls", "remove_copies reduce_problem",
    "batch_products reuse_result recompute_less fused_optimizer cast_weights_once remove_fills",
    "fuse_norm fuse_epilogue flash_attention", "tensor_cores align_dimensions quantize channels_last leave_float64",
    "overlap_copies pin_memory keep_on_device",
    "fill_the_device local_gathers coalesce stream_wider tune_kernel reduce_in_blocks")
ROW = re.compile(r"\| (\S+) \| (\S+)(?: by (\S+))? \| (-?\d+) \| (-?\d+) \((-?\d+) to (-?\d+)\) \|")


def rows_of(name, text):
    part = text[text.index(f"### Pairs of the {name} set, as unseen"):]
    for line in part[:part.index("\nOf ")].splitlines():
        if (row := ROW.match(line)) and int(row[4]) > GAIN:
            kind = next((kind for kind in KINDS if (row[3] or row[2]) in kind.split()), "")
            yield {"set": name, "kind": kind, "measured": int(row[4]), "low": int(row[6]), "high": int(row[7])}


def quantile(values, share):
    values = sorted(values)
    return values[min(len(values), math.ceil(share * (len(values) + 1))) - 1] if values else 0


def fit(rows, share):
    def missed(some):
        return (quantile([max(0, row["measured"] - row["high"]) for row in some], share),
                quantile([max(0, row["low"] - row["measured"]) for row in some], share))
    out = {}
    for kind in KINDS:
        own = [row for row in rows if row["kind"] == kind]
        weight = len(own) / (len(own) + FEW)
        out[kind] = [weight * a + (1 - weight) * b for a, b in zip(missed(own), missed(rows))]
    return out


def main():
    with open(RECORD, encoding="utf-8") as file:
        text = file.read()
    rows = [row for name in SETS for row in rows_of(name, text)]
    print(f"| quantile, % | inside: {', '.join(SETS)}, % | all, % | width, points |\n|--:|---|--:|--:|")
    for share in (0, 0.8, 0.85, 0.9, 0.95):
        inside, widths = {name: [] for name in SETS}, []
        for row in rows:
            margins = fit([other for other in rows if other["set"] != row["set"]], share) if share else {}
            above, below = margins.get(row["kind"], (0, 0))
            low = row["low"] - below if row["low"] <= 0 else max(0, row["low"] - below)
            high = min(100, row["high"] + above)
            inside[row["set"]].append(low <= row["measured"] <= high)
            widths.append(high - low)
        each = ", ".join(f"{100 * sum(held) / len(held):.0f}" for held in inside.values())
        held = [one for some in inside.values() for one in some]
        print(f"| {100 * share:.0f} | {each} | {100 * sum(held) / len(held):.0f} | {sum(widths) / len(widths):.0f} |")


if __name__ == "__main__":
    main()
