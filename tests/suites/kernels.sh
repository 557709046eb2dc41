#!/usr/bin/env bash
# Every sample kernel on the CPU through OpenCL: the default config and five drawn ones verify, on the
# shape with odd extents, and the default config on the default shape. What the seed draws takes PoCL
# seconds to compile; some configs of these spaces take it half a minute.
# timeout: 900
. "$(dirname "$0")/lib.sh"

check_kernel() {
  local spec=$1 budget=$2 seed=4
  shift 2
  [[ $spec != */transpose.toml ]] || seed=7  # 4 s of PoCL's compiler, where seed 4 takes 22 s
  expect_exit 0 purlin tune "$spec" --device opencl:0 --strategy random --budget "$budget" --seed $seed --timeout 900s \
    --samples 3 --finals 0 --no-store --json -q "$@"
  python3 - "$tmp/out" "$budget" <<'PY' || fail "$spec $*"
import json, sys
document, budget = json.load(open(sys.argv[1])), int(sys.argv[2])
evaluations = document["evaluations"]
bad = [e for e in evaluations if e["status"] != "ok"]
for e in bad:
    print(e["status"], e["config"], e.get("message", ""), file=sys.stderr)
assert len(evaluations) == budget, f"{len(evaluations)} evaluations"
assert not bad
assert document["best"]["time_ms"] > 0
assert document["schema"] == "purlin.tune/1"
PY
}

found=0
for spec in "$PURLIN_SOURCE"/kernels/*/*.toml; do
  if ! grep -q '^\[kernel.opencl\]' "$spec"; then
    # A kernel for another language: refused with the language it needs, not with a stack trace.
    expect_exit 2 purlin tune "$spec" --device opencl:0 --budget 1 --no-store -q
    expect_contains "$tmp/err" opencl
    continue
  fi
  check_kernel "$spec" 6 --shape small
  check_kernel "$spec" 1
  found=$((found + 1))
done
[ "$found" -eq 8 ] || fail "$found kernels where eight were expected"
