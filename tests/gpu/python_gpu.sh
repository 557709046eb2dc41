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
export PYTHONPATH=$(cd "$here/../.." && pwd)/python PURLIN_LIBRARY=$where/lib/libpurlin.so
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
echo "python_gpu: ok"
