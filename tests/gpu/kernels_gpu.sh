#!/usr/bin/env bash
# Every sample kernel: its default config and some random ones verify on the GPU.
set -euo pipefail
where=$1
kernels=$where/share/purlin/kernels
[ -d "$kernels" ] || kernels=$(cd "$where/../../kernels" && pwd)
export XDG_CACHE_HOME=$(mktemp -d)
capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader -i 0)
for spec in "$kernels"/*/*.toml; do
  name=$(basename "$spec" .toml)
  grep -q '^\[kernel.cuda\]' "$spec" || continue
  # Sources for Hopper alone.
  ! grep -q 'arch = \["sm_90a"\]' "$spec" || [ "$capability" = 9.0 ] || continue
  purlin tune "$spec" --device cuda:0 --strategy random --budget 24 --seed 3 --no-store --json -q >"$XDG_CACHE_HOME/$name.json"
  python3 - "$XDG_CACHE_HOME/$name.json" "$name" <<'PY'
import json, sys
document, name = json.load(open(sys.argv[1])), sys.argv[2]
evaluations = document["evaluations"]
states = {}
for e in evaluations:
    states[e["status"]] = states.get(e["status"], 0) + 1
best = document["best"]
print(f"{name:16s} {states} best {best['time_ms']:.4f} ms")
bad = [e for e in evaluations if e["status"] not in ("ok",)]
for e in bad[:3]:
    print("   ", e["status"], e["config"], e.get("message", "")[:300])
assert not bad, f"{name}: {len(bad)} configs failed"
PY
done
