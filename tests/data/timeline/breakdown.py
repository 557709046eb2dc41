#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Step breakdown, busy and idle time of a PyTorch trace, computed apart from Purlin.

  breakdown.py TRACE.json.gz > EXPECTED.json     what src/analyze/timeline/traces_test.cc compares with
  breakdown.py --reduce STEPS TRACE.json.gz OUT.json.gz   keeps the first STEPS steps, drops what is not used

Times are exact (ns, integers); sums come from difference arrays over all interval bounds, not from merged intervals.
The rules for steps are those of PyTorch's TensorBoard plugin, see docs/concepts/timeline.md.
"""
import bisect, gzip, json, sys
from decimal import Decimal

ROLES = ["kernel", "copy", "set", "communication", "runtime", "data_loader", "cpu"]
KERNEL, COPY, SET = {"kernel"}, {"memcpy", "gpu_memcpy"}, {"memset", "gpu_memset"}
CALL = {"runtime", "cuda_runtime", "cuda_driver"}
HOST = {"operator", "cpu_op", "user_annotation"}


def load(path):
    document = json.load(gzip.open(path), parse_float=Decimal)
    events = document["traceEvents"] if isinstance(document, dict) else document
    return document, [e for e in events if e.get("ph") == "X"]


def interval(event):
    begin = int(Decimal(event["ts"]) * 1000)
    return begin, begin + int(Decimal(event["dur"]) * 1000)


def role(event):
    category, name = event["cat"].lower(), event["name"]
    if category in KERNEL:
        return "communication" if name.startswith("nccl") else "kernel"
    if category in COPY:
        return "copy"
    if category in SET:
        return "set"
    if category in CALL:
        return "runtime"
    if category in HOST and not name.startswith("ProfilerStep"):
        return "data_loader" if name.startswith("enumerate(DataLoader)#") else "cpu"
    return None


def is_step(event):
    return event["cat"].lower() in HOST and event["name"].startswith("ProfilerStep")


def is_device(event):
    return event["cat"].lower() in KERNEL | COPY | SET


def steps_of(events):
    """Host steps, extended to the work that was launched in them."""
    steps = sorted([*interval(e), e["name"]] for e in events if is_step(e))
    calls = {e["args"]["correlation"]: interval(e) for e in events if e["cat"].lower() in CALL and "args" in e}
    work = [[] for _ in steps]
    others = []
    for event in filter(is_device, events):
        call = calls.get(event["args"].get("correlation"))
        at = next((i for i, (b, e, _) in enumerate(steps) if call and b <= call[0] and call[1] <= e), None)
        (others if at is None else work[at]).append(interval(event))
    until = steps[0][0]
    if work[0]:
        first = min(b for b, _ in work[0])
        until = max([until] + [e for _, e in others if e < first])
    out = []
    for (begin, end, name), launched in zip(steps, work):
        begin = max(begin, until)
        end = max([end, begin] + [e for _, e in launched])
        out.append((begin, end, name))
        until = end
    keep = max(i for i, launched in enumerate(work) if launched) + 1
    if keep > 1 and len(work[keep - 2]) * 0.8 > len(work[keep - 1]):
        keep -= 1
    return out[:keep]


class Lines:
    """How many intervals of each role cover each stretch between neighbouring bounds."""

    def __init__(self, intervals, extra):
        self.bounds = sorted({b for _, i in intervals for b in i} | set(extra))
        self.index = {b: i for i, b in enumerate(self.bounds)}
        self.depth = {}
        for what, (begin, end) in intervals:
            line = self.depth.setdefault(what, [0] * (len(self.bounds) + 1))
            line[self.index[begin]] += 1
            line[self.index[end]] -= 1
        for line in self.depth.values():
            for i in range(1, len(line)):
                line[i] += line[i - 1]

    def covered(self, i, roles):
        return any(what in self.depth and self.depth[what][i] > 0 for what in roles)

    def stretches(self, begin, end):
        for i in range(bisect.bisect_left(self.bounds, begin), bisect.bisect_left(self.bounds, end)):
            yield i, self.bounds[i + 1] - self.bounds[i]


def main(path):
    _, events = load(path)
    steps = steps_of(events)
    intervals = [(role(e), interval(e)) for e in events if role(e)]
    lines = Lines(intervals, [b for s in steps for b in s[:2]])
    device = [i for what, i in intervals if what in ("kernel", "copy", "set", "communication")]
    first, last = min(b for b, _ in device), max(e for _, e in device)
    kernels, any_work = ("kernel", "communication"), ("kernel", "communication", "copy", "set")

    def union(begin, end, roles):
        return sum(length for i, length in lines.stretches(begin, end) if lines.covered(i, roles))

    out = {"steps": [], "work_span_ns": last - first, "work_busy_ns": union(first, last, any_work)}
    out["kernel_sum_ns"] = sum(e - b for what, (b, e) in intervals if what in kernels)
    out["span_ns"] = steps[-1][1] - steps[0][0]
    out["busy_ns"] = union(steps[0][0], steps[-1][1], any_work)
    out["kernel_ns"] = union(steps[0][0], steps[-1][1], kernels)
    for begin, end, name in steps:
        step = {"name": name, "duration_ns": end - begin, **{what + "_ns": 0 for what in ROLES}, "other_ns": 0}
        for i, length in lines.stretches(begin, end):
            step[next((what for what in ROLES if lines.covered(i, [what])), "other") + "_ns"] += length
        out["steps"].append(step)
    json.dump(out, sys.stdout, indent=1)
    print()


def reduce(count, path, to):
    document, events = load(path)
    steps = sorted(interval(e) for e in events if is_step(e))[:count]
    until = steps[-1][1]
    calls = {e["args"]["correlation"]: interval(e) for e in events if e["cat"].lower() in CALL and "args" in e}
    kept = []
    for event in events:
        call = calls.get(event.get("args", {}).get("correlation"))
        if (call[0] if call and is_device(event) else interval(event)[0]) >= until:
            continue
        keep = ("device", "stream", "correlation", "grid", "block", "registers per thread", "shared memory", "bytes")
        event = {k: float(v) if isinstance(v, Decimal) else v for k, v in event.items()}
        event["args"] = {k: v for k, v in event.get("args", {}).items() if k in keep}
        kept.append(event)
    head = {k: v for k, v in document.items() if k in ("schemaVersion", "deviceProperties", "baseTimeNanoseconds")} \
        if isinstance(document, dict) else {}
    text = json.dumps({**head, "traceEvents": kept} if head else kept, separators=(",", ":"), default=float)
    with open(to, "wb") as file:
        file.write(gzip.compress(text.encode(), 9, mtime=0))


if __name__ == "__main__":
    if sys.argv[1] == "--reduce":
        reduce(int(sys.argv[2]), sys.argv[3], sys.argv[4])
    else:
        main(sys.argv[1])
