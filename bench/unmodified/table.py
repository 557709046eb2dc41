# One program of run.sh's table: table.py OUT… PROGRAM, with the folders of one or more runs of run.sh. Each profiled run
# is compared with its own clock and with the mean of the runs alone before and after it: ratios, their mean and its 95 %
# interval (t of the logarithms). The last line is a row for Markdown.
import json
import math
import os
import statistics
import sys

*folders, name = sys.argv[1:]
T95 = (0, 12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26)  # by degrees of freedom


def own(path, *keys):
    """The figure after the first of these words that the program printed."""
    for line in open(path, errors="replace") if os.path.exists(path) else ():
        words = line.split()
        for key in keys if words[:1] == ["step_ms"] else ():
            if key in words:
                return float(words[words.index(key) + 1])
    return None


def whole(path):
    begin, end = open(path).read().split()
    return float(end) - float(begin)


def interval(ratios):
    """As text: mean and interval of ratios, as differences in per cent."""
    logs = [math.log(r) for r in ratios if r]
    if not logs:
        return "none"
    middle = statistics.mean(logs)
    text = f"{100 * math.expm1(middle):+.1f} %"
    if len(logs) > 1:
        margin = T95[min(len(logs), len(T95)) - 1] * statistics.stdev(logs) / math.sqrt(len(logs))
        text += f" ({100 * math.expm1(middle - margin):+.1f} to {100 * math.expm1(middle + margin):+.1f})"
    return text


class Turn:
    """A profiled run between two runs alone."""

    def __init__(self, out, number):
        base = f"{out}/{name}"
        report = json.load(open(f"{base}.json.{number}"))
        timeline, coverage = report["timeline"], report["coverage"]
        around = [f"{base}.plain.{n}" for n in (number, number + 1)]
        clocks = [each for each in (own(path, "step_ms") for path in around) if each]
        lates = [each for each in (own(path, "late_ms", "step_ms") for path in around) if each]
        self.alone, self.alone_late = statistics.mean(clocks), statistics.mean(lates)
        self.own, self.late = own(f"{base}.profiled.{number}", "step_ms"), own(f"{base}.profiled.{number}", "late_ms", "step_ms")
        self.recorded = (timeline.get("mean_step") or {}).get("duration_ns", 0) / 1e6
        self.step = (coverage.get("step_ns") or 0) / 1e6 or self.recorded
        self.steps_from, self.notes = timeline.get("steps_from"), coverage["notes"]
        self.overhead = (coverage.get("overhead_ns") or 0) / 1e9
        times = [f"{base}.plain_times.{n}" for n in (number, number + 1)]
        self.whole_alone = statistics.mean(whole(path) for path in times if os.path.exists(path))
        self.whole = whole(f"{base}.profiled_times.{number}")
        self.kernels = report["kernels"]


def known(kernels):
    """Shares of time: with op and shape of the four classes; of the classes; with op of all."""
    total = sum(k["total_ns"] for k in kernels) or 1
    classes = [k for k in kernels if k["op_class"] in ("gemm", "convolution", "attention", "norm")]
    of_classes = sum(k["total_ns"] for k in classes)
    good = sum(k["total_ns"] for k in classes if k["shape"] and k.get("op"))
    return (good / of_classes if of_classes else None), of_classes / total, sum(k["total_ns"] for k in kernels if k.get("op")) / total


turns = []
for out in folders:
    number = 1
    while os.path.exists(f"{out}/{name}.json.{number}"):
        try:
            turns.append(Turn(out, number))
        except (ValueError, OSError, statistics.StatisticsError) as fault:
            print(f"turn {number} of {out} is left out: {fault}")
        number += 1
print(f"## {name}")
for turn in turns:
    print(f"step {turn.step:.4f} ms, recorded {turn.recorded:.4f} ({turn.steps_from}); own clock {turn.own:.4f}, last third {turn.late:.4f}; "
          f"alone {turn.alone:.4f}, last third {turn.alone_late:.4f}; whole {turn.whole:.2f} s, alone {turn.whole_alone:.2f}, overhead stated {turn.overhead:.2f}")
figures = {
    "report against alone": interval([t.step / t.alone for t in turns]),
    "report against the same run's last third": interval([t.step / t.late for t in turns]),
    "last third under purlin profile against alone": interval([t.late / t.alone_late for t in turns]),
    "whole run, less the stated overhead": interval([(t.whole - t.overhead) / t.whole_alone for t in turns]),
}
for what, text in figures.items():
    print(f"{what}: {text}")
shares = [known(t.kernels) for t in turns]
if turns:
    print("op and shape of GEMM, convolution, attention, norm; these of all; op of all: " +
          "; ".join(", ".join("–" if share is None else f"{100 * share:.1f} %" for share in each) for each in shares))
    for note in turns[-1].notes:
        print(f"note {note['cause']}: {note['text']}")
    median = lambda what: statistics.median(getattr(t, what) for t in turns)
    print(f"| {name} | {len(turns)} | {median('alone'):.3f} | {median('own'):.3f} | {median('recorded'):.3f} | {median('step'):.3f} | "
          + " | ".join(figures.values()) + f" | {median('whole_alone'):.1f} | {median('whole'):.1f} | {median('overhead'):.2f} |")
