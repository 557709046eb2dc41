#!/usr/bin/env bash
# python_gpu.sh DIR: `with purlin.profile("step N")` under `purlin profile --full`: the ranges are in the timeline, and
# launches inside them are told of. DIR is an unpacked bundle or a build folder. A quarter of a minute; 80 s at most.
set -euo pipefail
where=$(cd "$1" && pwd)
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=${PYTHON:-python3}
"$python" -c 'import torch' 2>/dev/null || { echo "python_gpu: PyTorch is missing: skipped"; exit 0; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export PURLIN=$where/bin/purlin PYTHONPATH=$(cd "$here/../.." && pwd)/python:$where/share/purlin/python PURLIN_LIBRARY=$where/lib/libpurlin.so
cat >"$tmp/program.py" <<'PY'
import torch
import purlin
a = torch.ones(256, 256, device="cuda")
for i in range(8):
    with purlin.profile("step %d" % i) as p:
        b = a @ a
        torch.cuda.synchronize()
print("captured", p.captured, "marked", p.marked)
PY
timeout 60 "$where/bin/purlin" profile --full --ops on -o "$tmp/p.plprof" -- "$python" "$tmp/program.py" | tee "$tmp/out"
grep -q "captured True marked torch" "$tmp/out" || { echo "python_gpu: not captured, or not marked"; exit 1; }
timeout 20 "$where/bin/purlin" export "$tmp/p.plprof" --format chrome -o "$tmp/trace.json"
"$python" - "$tmp/trace.json" <<'PY'
import json, sys
events = json.load(open(sys.argv[1]))
events = events["traceEvents"] if isinstance(events, dict) else events
steps = sorted(e["name"] for e in events if str(e.get("name", "")).startswith("step "))
print("ranges in the timeline:", steps)
assert len([s for s in steps if s == "step 7"]) >= 1, steps
PY

# Only the range that asks for it is captured.
cat >"$tmp/part.py" <<'PY'
import time
import torch
import purlin
a = torch.ones(256, 256, device="cuda")
def steps(count):
    for _ in range(count):
        b = a @ a
    torch.cuda.synchronize()
steps(100)
time.sleep(1)
start = time.perf_counter()
with purlin.profile("part", capture=True) as p:
    entered = time.perf_counter()
    time.sleep(0.5)
    steps(50)
    time.sleep(0.5)
    left = time.perf_counter()
stopped = time.perf_counter()
steps(100)
print("capture started in %.0f ms, stopped in %.0f ms" % ((entered - start) * 1e3, (stopped - left) * 1e3))
PY
timeout 40 "$where/bin/purlin" profile --idle -q -o "$tmp/part.plprof" -- "$python" -W error "$tmp/part.py"
timeout 20 "$where/bin/purlin" report "$tmp/part.plprof" --json >"$tmp/part.json"
"$python" - "$tmp/part.json" <<'PY'
import json, sys
kernels = json.load(open(sys.argv[1]))["kernels"]
counts = {k["name"][:40]: k["count"] for k in kernels}
print("launches recorded of 250 products:", counts)
# A product may be two kernels; cuBLAS's own first launches are not in it.
assert counts and all(25 <= n <= 110 for n in counts.values()), counts
PY
echo "python_gpu: ok"
