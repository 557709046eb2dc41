#!/usr/bin/env bash
# tests/gpu/guard_gpu.sh in CI's size: OpenCL on the CPU, one run of each kind. On a shared machine only what
# is far away from its noise is asked: twice the work is red, the same work is not.
# labels: opencl
# serial
source "$(dirname "$0")/lib.sh"
cd "$tmp"
export PATH=$(dirname "$PURLIN"):$PATH OUT=$tmp/out-guard
export GUARD_DEVICE=opencl:0 RUNS=1 PLANTED=150 SHAPES=small KERNELS=softmax LIMIT=400
export THRESHOLDS=$'detectable = 1.0\nfloor = 0.4' MEASURE='max_samples = 9'
passed=
for attempt in 1 2 3; do  # a machine that something else keeps busy may leave it undecided
  if bash "$PURLIN_SOURCE/tests/gpu/guard_gpu.sh" >"$tmp/table" 2>"$tmp/err"; then passed=1; break; fi
  echo "attempt $attempt:" >&2; cat "$tmp/table" >&2
done
[ -n "$passed" ] || { cat "$tmp/err" >&2; fail 'the planted slowdown was not told from none'; }
expect_json "$OUT/guard_table.json" 'sorted(t["planted_percent"] for t in d["table"]) == [0, 150]'
expect_json "$OUT/guard_table.json" '[t for t in d["table"] if t["planted_percent"] == 150][0]["work_red"] == 1'
expect_json "$OUT/guard_table.json" '[t for t in d["table"] if t["planted_percent"] == 0][0]["work_red"] == 0'
expect_json "$OUT/guard_table.json" 'd["environment"]["devices"][0]["name"] != ""'
expect_contains "$OUT/guard_runs.csv" 'planted_percent'
echo 'guard_planted: all checks passed'
