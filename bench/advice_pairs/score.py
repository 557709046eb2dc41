# SPDX-License-Identifier: Apache-2.0
"""What advice says of the pairs that run.py measured: `python3 score.py PURLIN FOLDER…` prints tables in Markdown.

Each FOLDER has pairs.json and traces/, or is an archive of both that keep.py made, as those in recorded/. `--seen` leaves the pairs that are set aside out: the constants of the rules are chosen
with it. `--as-seen` counts them as seen, `--sealed` prints them alone. A pair counts as named where its rule, or one that names
the same cure, is first or second (`--rule-alone`: its rule only); as inside where the measured saving lies in the interval of
its own rule, which `after` carries out, or where that is absent in the interval of the rule that names the cure. The table
counts inside among all pairs with a gain and among those that have an interval. A kernel under `unknown_roofs` has no estimate,
so it neither names nor promises anything: its pairs are counted apart. A null pair counts as quiet where its rule promises at most 3 %. `--own` takes the
profiles of own.py (own/NAME.plprof), where they are, and `--synced` the traces with a synchronisation after each step, against
the gain that was measured without one. Where a pair has an execution trace, advice has it too, but with `--no-flow`.
"""

import json
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile

QUIET = 0.03


def advice_of(purlin, trace, flow=""):
    """`flow`: the execution trace of the same program, where there is one."""
    files = [trace, flow] if flow else [trace]
    out = subprocess.run([purlin, "advise", "--json", *files], capture_output=True, text=True, check=False)
    return json.loads(out.stdout)


def judge(pair, interventions, rule_alone=False):
    """Adds rank, predicted, inside and, of a null pair, quiet."""
    interventions = sorted(interventions, key=lambda one: one.get("place", len(interventions)))  # as the text lists them
    wanted = [pair["rule"]] if rule_alone else [pair["rule"], *pair["also"]]
    pair["first"] = interventions[0]["id"] if interventions else ""
    found = [(rank, one) for rank, one in enumerate(interventions, 1) if one["id"] in wanted]
    pair["promise"] = max((one["saved_share"]["mid"] for _, one in found), default=0)
    pair["any_promise"] = max((one["saved_share"]["mid"] for one in interventions), default=0)
    pair["quiet"] = pair["promise"] <= QUIET
    if found:
        pair["rank"] = found[0][0]
    own = next((one for _, one in found if one["id"] == pair["rule"]), found[0][1] if found else None)
    if own:
        pair["by"] = own["id"]
        pair["predicted"] = [own["saved_share"][end] for end in ("low", "mid", "high")]
        low, _, high = pair["predicted"]
        pair["inside"] = low <= pair["saved_share"] <= high
        pair["width"] = high - low
    return pair


def percent(value):
    return f"{100 * value:.0f}"


def table(title, pairs):
    print(f"\n### {title}\n")
    print("| pair | rule | measured, % | predicted, % | inside | rank | first |\n|---|---|--:|--:|---|--:|---|")
    for pair in pairs:
        predicted = "–"
        if "predicted" in pair:
            low, mid, high = map(percent, pair["predicted"])
            predicted = f"{mid} ({low} to {high})"
        by = f" by {pair['by']}" if pair.get("by", pair["rule"]) != pair["rule"] else ""
        print(f"| {pair['name']} | {pair['rule']}{by} | {percent(pair['saved_share'])} | {predicted} "
              f"| {'yes' if pair.get('inside') else 'no'} | {pair.get('rank', '–')} | {pair['first']} |")
    real = [pair for pair in pairs if pair["saved_share"] > QUIET]
    named = [pair for pair in real if pair.get("rank", 9) <= 2]
    inside = [pair for pair in real if pair.get("inside")]
    widths = [pair["width"] for pair in real if "width" in pair]
    unknown = sum(pair.get("unknown_roof", False) for pair in real)
    if real:
        print(f"\nOf {len(real)} with a gain above 3 %: named first or second {len(named)} ({percent(len(named) / len(real))} %), "
              f"inside {len(inside)} ({percent(len(inside) / len(real))} %; {percent(len(inside) / max(1, len(widths)))} % of the "
              f"{len(widths)} with an interval), mean width "
              f"{100 * statistics.mean(widths) if widths else 0:.0f} points."
              + (f" For {unknown} of the others, the kernel is listed without an estimate." if unknown else ""))


def nulls(title, pairs):
    print(f"\n### {title}\n")
    print("| pair | tempting rule | measured, % | promised, % | quiet | highest promise of another rule |\n|---|---|--:|--:|---|---|")
    for pair in pairs:
        by = f" by {pair['by']}" if pair.get("by", pair["rule"]) != pair["rule"] else ""
        print(f"| {pair['name']} | {pair['rule']}{by} | {percent(pair['saved_share'])} | {percent(pair['promise'])} "
              f"| {'yes' if pair['quiet'] else 'no'} | {pair['first']} {percent(pair['any_promise'])} % |")
    print(f"\nQuiet: {sum(pair['quiet'] for pair in pairs)} of {len(pairs)}.")


def recording_of(pair, options):
    return f"own/{pair['name']}.plprof" if "--own" in options else pair["trace"]


UNPACKED = []  # folders of archives, deleted at exit


def unpacked(folder):
    if not folder.endswith(".tar.xz"):
        return folder
    UNPACKED.append(tempfile.TemporaryDirectory())
    with tarfile.open(folder) as archive:
        archive.extractall(UNPACKED[-1].name)
    return UNPACKED[-1].name


def pairs_of(folder, options):
    folder = unpacked(folder)
    with open(os.path.join(folder, "pairs.json"), encoding="utf-8") as file:
        pairs = json.load(file)["pairs"]
    if "--synced" in options:
        pairs = [{**pair, "trace": pair["synced"]["trace"]} for pair in pairs if "synced" in pair]
    pairs = [{**pair, "trace": os.path.join(folder, recording_of(pair, options))} for pair in pairs if "error" not in pair]
    for pair in pairs:
        flow = os.path.join(folder, pair.get("flow", ""))
        pair["flow"] = flow if "flow" in pair and "--no-flow" not in options and os.path.exists(flow) else ""
    return [pair for pair in pairs if os.path.exists(pair["trace"])]


def main():
    options = {word for word in sys.argv if word.startswith("--")}
    purlin, *folders = [word for word in sys.argv[1:] if word not in options]
    pairs = [pair for folder in folders for pair in pairs_of(folder, options)]
    if "--as-seen" in options:
        pairs = [{**pair, "set_aside": False} for pair in pairs]
    wanted = {"--seen": [False], "--sealed": [True]}
    wanted = next((wanted[option] for option in options if option in wanted), [False, True])
    errors = []
    for aside, where in ((False, "seen while the constants were chosen"), (True, "set aside")):
        chosen = [pair for pair in pairs if pair["set_aside"] == aside] if aside in wanted else []
        for pair in chosen:
            advice = advice_of(purlin, pair["trace"], pair["flow"])
            judge(pair, advice["interventions"] + advice["trades"], "--rule-alone" in options)
            pair["unknown_roof"] = "rank" not in pair and bool(advice.get("unknown_roofs"))
            if advice["replay"]:
                errors.append(advice["replay"]["constant_error"])
        if chosen:
            table(f"Pairs {where}", [pair for pair in chosen if not pair["null"]])
            nulls(f"Null pairs {where}", [pair for pair in chosen if pair["null"]])
    errors.sort()
    if errors:
        print(f"\nReplay with constant delays misses the span of {len(errors)} traces by {100 * statistics.median(errors):.2f} % in "
              f"the median, {100 * errors[min(len(errors) - 1, int(0.95 * len(errors)))]:.2f} % at 95 %.")


if __name__ == "__main__":
    main()
