#!/usr/bin/env bash
# stalls_gpu.sh DIR: sampled stalls on a real GPU. The kernels of stalls.cu must be named with what
# their warps wait for and the line where they do; programs that launch from several threads, replay
# graphs or use PyTorch's profiler must go on as without. Prints what sampling costs. About 60 s.
set -euo pipefail
where=$(cd "$1" && pwd)
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export PATH=$where/bin:$PATH
nvcc=$(command -v nvcc || echo "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc")
[ -x "$nvcc" ] || { echo "skipped: no nvcc"; exit 0; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
arch=sm_$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -1 | tr -d .)
"$nvcc" -std=c++17 -O2 -arch="$arch" -lineinfo "$here/stalls.cu" -o "$tmp/stalls"
cd "$tmp"
timeout 60 purlin profile --stalls=${PERIOD:-65536} -o three.plprof --json -- ./stalls three 4 >/dev/null 2>three.out
purlin report --phase all --json three.plprof >three.json  # launches of the start-up count too
cat three.out
purlin report --kernel waits_for_loads three.plprof || true
for what in threads graph tiny; do
  timeout 60 purlin profile --stalls -o $what.plprof --json -- ./stalls $what 3 >$what.json 2>$what.out || {
    echo "FAILED: $what under --stalls: exit $?"; cat $what.out; touch failed; }
done
: >pairs
for round in 1; do
  for what in three tiny graph; do
    off=$(./stalls $what 2 | awk '{print $NF}')
    idle=$(purlin profile -o x.plprof --json -- ./stalls $what 2 2>&1 >/dev/null | awk '/no error/ {print $NF}')
    on=$(purlin profile --stalls -o x.plprof --json -- ./stalls $what 2 2>&1 >/dev/null | awk '/no error/ {print $NF}')
    echo "$what $off $idle $on" >>pairs
  done
done
cat >torch_inside.py <<'PY'
import sys, torch
from torch.profiler import profile, ProfilerActivity
x = torch.ones(4096, device="cuda")
for _ in range(2000): x.add_(1)
torch.cuda.synchronize()
with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as p:
    for _ in range(500): x.add_(1)
    torch.cuda.synchronize()
n = sum(1 for e in p.events() if e.device_type == torch.autograd.DeviceType.CUDA and "elementwise" in e.name)
print("torch_profiler_kernels", n)
PY
if python3 -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null; then
  timeout 90 purlin profile --stalls -o torch.plprof --json -- python3 torch_inside.py >torch.json 2>torch.out || touch failed
  grep torch_profiler_kernels torch.out || cat torch.out
fi
python3 - "$here/stalls.cu" <<'PY'
import json, os, re, statistics, sys
marks = {}
kernel = None
for number, line in enumerate(open(sys.argv[1]), 1):
    if m := re.search(r"void (\w+)\(", line): kernel = m.group(1)
    if m := re.search(r"// MARK (\w+)", line): marks[kernel] = (number, m.group(1))
three = json.load(open("three.json"))
rows = {k["label"]: k for k in three["kernels"]}
wrong, result = [], {"sampling": three["stall_sampling"], "notes": three["coverage"]["notes"], "kernels": {}}
for name, (line, reason) in marks.items():
    stalls = (rows.get(name) or {}).get("stalls")
    if not stalls:
        wrong.append(f"{name}: no stalls"); continue
    top = [r for r in stalls["reasons"] if r["stalled_share"]][0]["reason"]
    site = stalls["sites"][0]
    result["kernels"][name] = {"samples": stalls["samples"], "offset": site["offset"], "top": top, "share": stalls["reasons"][0]["share"],
                               "file": site["file"], "line": site["line"], "site_share": site["share"], "expected": [line, reason]}
    if top != reason: wrong.append(f"{name}: waits for {top}, not {reason}")
    if site["line"] != line: wrong.append(f"{name}: line {site['line']}, not {line}")
# Beside sampling launches must stay recorded: CUPTI does not take them up again.
made = float(re.search(r"no error ([\d.]+)", open("three.out").read()).group(1)) * 4
result["launches"] = {"made": made, "recorded": sum(k["count"] for k in three["kernels"])}
if not 0.9 < result["launches"]["recorded"] / made < 1.1: wrong.append(f"launches: {result['launches']}")
if any(n["cause"] == "cupti_refused" for n in result["notes"]): wrong.append("CUPTI refused to record launches")
pairs = {}
for text in open("pairs"):
    what, *values = text.split()
    if len(values) == 3: pairs.setdefault(what, []).append([float(v) for v in values])
result["rates"] = pairs
result["cost"] = {w: {"profile": statistics.median(v[0] / v[1] for v in p) - 1, "stalls": statistics.median(v[0] / v[2] for v in p) - 1}
                  for w, p in pairs.items()}
for what in ("threads", "graph", "tiny"):
    try: d = json.load(open(what + ".json")); result[what] = {"sampling": d["stall_sampling"], "notes": d["coverage"]["notes"]}
    except Exception as e: result[what] = str(e)
if os.path.exists("torch.out"):
    m = re.search(r"torch_profiler_kernels (\d+)", open("torch.out").read())
    result["torch_profiler_kernels"] = int(m.group(1)) if m else None
    if result["torch_profiler_kernels"] != 500: wrong.append(f"torch.profiler saw {result['torch_profiler_kernels']} of 500 kernels")
text = json.dumps(result, indent=1)
print(text)
if os.environ.get("OUT"): open(os.path.join(os.environ["OUT"], "stalls_gpu.json"), "w").write(text + "\n")
if os.path.exists("failed"): wrong.append("a program failed under --stalls")
for w in wrong: print("WRONG", w)
print("stalls:", "FAILED" if wrong else "ok")
sys.exit(1 if wrong else 0)
PY
