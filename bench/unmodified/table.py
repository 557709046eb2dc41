# One row of run.sh's table: table.py OUT PROGRAM TURNS. Medians over the turns.
import json
import statistics
import sys

out, name, turns = sys.argv[1], sys.argv[2], int(sys.argv[3])


def own(kind, what):
    values = []
    for turn in range(1, turns + 1):
        for line in open(f"{out}/{name}.{kind}.{turn}", errors="replace"):
            words = line.split()
            if words and words[0] == "step_ms" and what in words:
                values.append(float(words[words.index(what) + 1]))
    return values


def text(values):
    return f"{statistics.median(values):.3f} ms ({', '.join(f'{v:.3f}' for v in values)})" if values else "none"


runs = [[float(x) for x in open(f"{out}/{name}.times.{turn}").read().split()] for turn in range(1, turns + 1)]
plain, profiled = [r[1] - r[0] for r in runs], [r[2] - r[1] for r in runs]
print(f"## {name}")
for what in ("step_ms", "late_ms"):
    if own("plain", what):
        print(f"{what} by its own clock: alone {text(own('plain', what))}, under purlin profile {text(own('profiled', what))}")
print(f"whole run: alone {statistics.median(plain):.2f} s {[round(x, 2) for x in plain]}, "
      f"under purlin profile {statistics.median(profiled):.2f} s {[round(x, 2) for x in profiled]}")
report = json.load(open(f"{out}/{name}.json"))
timeline, coverage = report["timeline"], report["coverage"]
step = (timeline.get("mean_step") or {}).get("duration_ns", 0) / 1e6
print(f"report: step {step:.3f} ms ({timeline.get('steps_from')}, {len(timeline.get('steps', []))} steps), "
      f"step before the trace {(coverage.get('step_ns') or 0) / 1e6:.3f} ms, overhead stated {(coverage.get('overhead_ns') or 0) / 1e9:.2f} s")
known = with_op = of_classes = total = 0.0
for kernel in report["kernels"]:
    total += kernel["total_ns"]
    with_op += kernel["total_ns"] if kernel.get("op") else 0
    if kernel["op_class"] in ("gemm", "convolution", "attention", "norm"):
        of_classes += kernel["total_ns"]
        known += kernel["total_ns"] if kernel["shape"] else 0
if of_classes:
    print(f"shape known for {100 * known / of_classes:.1f} % of the time of GEMM, convolution, attention and norms "
          f"({100 * of_classes / total:.0f} % of the kernel time); op for {100 * with_op / total:.1f} % of all")
for note in coverage["notes"]:
    print(f"note {note['cause']}: {note['text']}")
