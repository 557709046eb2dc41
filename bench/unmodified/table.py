# One program of run.sh's table: table.py OUT PROGRAM TURNS. Medians over the turns; the last line is a row for Markdown.
import json
import statistics
import sys

out, name, turns = sys.argv[1], sys.argv[2], int(sys.argv[3])


def own(kind, what):
    values = []
    for turn in range(1, turns + 2):
        try:
            lines = open(f"{out}/{name}.{kind}.{turn}", errors="replace").readlines()
        except OSError:
            continue
        for line in lines:
            words = line.split()
            if words and words[0] == "step_ms" and what in words:
                values.append(float(words[words.index(what) + 1]))
    return values


def whole(kind):
    values = []
    for turn in range(1, turns + 2):
        try:
            begin, end = open(f"{out}/{name}.{kind}_times.{turn}").read().split()
        except OSError:
            continue
        values.append(float(end) - float(begin))
    return values


def text(values, unit):
    return f"{statistics.median(values):.3f} {unit} ({', '.join(f'{v:.3f}' for v in values)})" if values else "none"


def median(values):
    return statistics.median(values) if values else float("nan")


print(f"## {name}")
for what in ("step_ms", "late_ms"):
    if own("plain", what):
        print(f"{what} by its own clock: alone {text(own('plain', what), 'ms')}, under purlin profile {text(own('profiled', what), 'ms')}")
print(f"whole run: alone {text(whole('plain'), 's')}, under purlin profile {text(whole('profiled'), 's')}")
report = json.load(open(f"{out}/{name}.json"))
timeline, coverage = report["timeline"], report["coverage"]
recorded = (timeline.get("mean_step") or {}).get("duration_ns", 0) / 1e6
corrected = (coverage.get("step_ns") or 0) / 1e6
step, alone = corrected or recorded, median(own("plain", "step_ms"))
print(f"report: step {step:.3f} ms, recorded {recorded:.3f} ms ({timeline.get('steps_from')}, {len(timeline.get('steps', []))} steps), "
      f"overhead stated {(coverage.get('overhead_ns') or 0) / 1e9:.2f} s")
known = with_op = of_classes = total = 0.0
for kernel in report["kernels"]:
    total += kernel["total_ns"]
    with_op += kernel["total_ns"] if kernel.get("op") else 0
    if kernel["op_class"] in ("gemm", "convolution", "attention", "norm"):
        of_classes += kernel["total_ns"]
        known += kernel["total_ns"] if kernel["shape"] and kernel.get("op") else 0
share = f"{100 * known / of_classes:.1f} %" if of_classes else "–"
print(f"op and shape known for {share} of the time of GEMM, convolution, attention and norms "
      f"({100 * of_classes / total:.0f} % of the kernel time); op for {100 * with_op / total:.1f} % of all")
for note in coverage["notes"]:
    print(f"note {note['cause']}: {note['text']}")
print(f"| {name} | {alone:.3f} | {median(own('profiled', 'step_ms')):.3f} | {recorded:.3f} | {step:.3f} | {100 * (step / alone - 1):+.1f} % | "
      f"{median(whole('plain')):.1f} | {median(whole('profiled')):.1f} | {(coverage.get('overhead_ns') or 0) / 1e9:.2f} | {share} |")
