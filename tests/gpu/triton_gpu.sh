#!/usr/bin/env bash
# triton_gpu.sh DIR: a Triton matmul, tuned in one process and warm in the next: Triton alone, with its own disk
# cache of results, and @purlin.autotune. Each twice, in fresh processes; compiled kernels are kept by Triton in
# a folder per mode, so that "warm" means what a restarted server meets. $OUT gets triton.jsonl.
set -euo pipefail
where=$1
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python3 -c 'import torch, triton' 2>/dev/null || { echo "triton_gpu: PyTorch or Triton is missing: skipped"; exit 0; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export PYTHONPATH=$(cd "$here/../.." && pwd)/python PURLIN=$where/bin/purlin
[ -e "$where/lib/libpurlin.so" ] && export PURLIN_LIBRARY=$where/lib/libpurlin.so
out=${OUT:-$tmp}/triton.jsonl
: >"$out"
for size in ${SIZES:-1024 4096}; do
  for mode in triton triton-cached purlin-in-order purlin; do
    for turn in cold warm; do
      TRITON_CACHE_DIR=$tmp/triton-$mode PURLIN_CACHE=$tmp/cache-$mode python3 "$here/triton/matmul.py" "$mode" "$size" |
        tail -1 | sed "s/^{/{\"turn\": \"$turn\", /" | tee -a "$out"
    done
  done
done
python3 - "$out" <<'PY'
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
assert rows and all(r["right"] for r in rows), "a wrong result"
at = {(r["mode"], r["size"], r["turn"]): r for r in rows}
for (mode, size, turn), r in at.items():
    print("%-16s %5d %-5s first call %7.2f s, launch %5.1f us (bare %4.1f us)  %s" % (
        mode, size, turn, r["first_s"], r["launch_us"], r["bare_launch_us"], r["config"]))
    if mode.startswith("purlin") and turn == "warm":
        assert any(line.startswith("exact") for line in r["log"]), r["log"]
        cold = at[(mode, size, "cold")]
        assert r["config"] == cold["config"] and r["checksum"] == cold["checksum"]
        assert r["first_s"] < cold["first_s"]
print("triton_gpu: ok")
PY
