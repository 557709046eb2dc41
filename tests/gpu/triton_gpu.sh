#!/usr/bin/env bash
# triton_gpu.sh DIR: a Triton matmul, tuned in one process and warm in the next: Triton alone, with its own disk
# cache of results, and @purlin.autotune. Fresh processes throughout; compiled kernels are kept by Triton in a
# folder per mode. Turns: cold (nothing known), warm (the same machine again: what a restarted server meets) and,
# for Purlin, pulled (the winner came from another machine, nothing is compiled). $OUT gets triton.jsonl.
# Then shadow timing, and launches of known keys beside JITFunction.run; $OUT gets launch.json.
# About two minutes; four at most.
set -euo pipefail
where=$(cd "$1" && pwd)
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=${PYTHON:-python3}
"$python" -c 'import torch, triton' 2>/dev/null || { echo "triton_gpu: PyTorch or Triton is missing: skipped"; exit 0; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export PYTHONPATH=$(cd "$here/../.." && pwd)/python:$where/share/purlin/python PURLIN=$where/bin/purlin
[ ! -e "$where/lib/libpurlin.so" ] || export PURLIN_LIBRARY=$where/lib/libpurlin.so
out=${OUT:-$tmp}/triton.jsonl
mkdir -p "$(dirname "$out")"
: >"$out"
deadline=$((SECONDS + ${LIMIT_S:-110}))
turn() {  # MODE SIZE TURN
  local left=$((deadline - SECONDS))
  [ "$left" -gt 5 ] || { echo "triton_gpu: out of time before $*"; return 0; }
  local binaries=$tmp/triton-$1-$2
  [ "$3" != pulled ] || binaries=$tmp/triton-$1-$2-pulled
  TRITON_CACHE_DIR=$binaries PURLIN_CACHE=$tmp/cache-$1-$2 timeout "$left" \
    "$python" "$here/triton/matmul.py" "$1" "$2" >"$tmp/line" 2>"$tmp/errors" ||
    { echo "triton_gpu: $* failed:"; tail -30 "$tmp/errors"; return 1; }
  cat "$tmp/errors" >&2
  tail -1 "$tmp/line" | sed "s/^{/{\"turn\": \"$3\", /" | tee -a "$out"
}
for size in ${SIZES:-2048}; do
  for mode in ${MODES:-triton triton-cached purlin}; do
    turn "$mode" "$size" cold
    turn "$mode" "$size" warm
    case $mode in purlin*) turn "$mode" "$size" pulled ;; esac
  done
done
"$python" - "$out" <<'PY'
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
at = {(r["mode"], r["size"], r["turn"]): r for r in rows}
for (mode, size, turn), r in at.items():
    print("%-16s %5d %-6s first call %7.2f s, second %8.6f s  right %s  %s" % (
        mode, size, turn, r["first_s"], r["second_s"], r["right"], r["config"]))
assert rows and all(r["right"] for r in rows), "a wrong result"
for (mode, size, turn), r in at.items():
    cold = at[(mode, size, "cold")]
    assert r["result"] == cold["result"], "results differ between turns"
    if mode.startswith("purlin") and turn != "cold":
        assert any(line.startswith("exact") for line in r["log"]), r["log"]
        assert r["config"] == cold["config"]
        assert r["first_s"] < cold["first_s"]
for size in {r["size"] for r in rows}:
    assert len({r["result"] for r in rows if r["size"] == size}) == 1, "results differ between modes"
print("triton_gpu: ok, results identical in every mode and turn")
PY
PURLIN_CACHE=$tmp/cache-shadow TRITON_CACHE_DIR=$tmp/triton-shadow timeout 60 "$python" "$here/triton/shadow.py"
echo "triton_gpu: ok, a slow winner was demoted and a space was searched"
PURLIN_CACHE=$tmp/cache-launch TRITON_CACHE_DIR=$tmp/triton-launch timeout 90 "$python" "$here/triton/launch.py" |
  tee "${OUT:-$tmp}/launch.json"
echo "triton_gpu: ok, launches of known keys are Triton's own"
