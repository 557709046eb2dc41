#!/usr/bin/env bash
# What changed between two runs and between two traces: text, JSON, CSV, wrong usage.
# shellcheck source=tests/suites/lib.sh
. "$(dirname "$0")/lib.sh"

sample=$(dirname "$PURLIN")/purlin-sample  # in a build; installed:
[ -x "$sample" ] || sample=$(dirname "$PURLIN")/../libexec/purlin/purlin-sample
kernels=$PURLIN_SOURCE/kernels
expect_exit 0 purlin profile -o "$tmp/a.plprof" --build v1 -- "$sample" --device opencl:0 --steps 2 \
  "$kernels/softmax/softmax.toml" "$kernels/transpose/transpose.toml"
expect_exit 0 purlin profile -o "$tmp/b.plprof" --build v2 -- "$sample" --device opencl:0 --steps 4 \
  "$kernels/softmax/softmax.toml" "$kernels/reduction/reduction.toml"

# 2 launches more of one kernel, one gone, one new; causes add up, whatever the times were.
expect_exit 0 purlin diff --per run --json "$tmp/a.plprof" "$tmp/b.plprof"
expect_json "$tmp/out" 'd["schema"] == "purlin.diff/1" and d["unit"] == "run"'
expect_json "$tmp/out" 'd["a"]["build"] == "v1" and d["b"]["build"] == "v2"'
expect_json "$tmp/out" '[(i["a"]["count"], i["b"]["count"]) for i in d["items"] if i["name"] == "softmax"] == [(4, 6)]'
expect_json "$tmp/out" 'any(i["name"] == "transpose" and i["b"] is None for i in d["items"])'
expect_json "$tmp/out" 'any(i["a"] is None for i in d["items"])'
expect_json "$tmp/out" 'all(abs(sum(i["causes"].values()) - i["change_ns"]) < 0.1 for i in d["items"])'
expect_json "$tmp/out" 'abs(d["b"]["kernel_ns"] - d["a"]["kernel_ns"] - d["change_ns"]) < 0.1'

# A profile against itself: nothing changed.
expect_exit 0 purlin diff --json "$tmp/a.plprof" "$tmp/a.plprof"
expect_json "$tmp/out" 'd["change_ns"] == 0 and not any(i["certain"] for i in d["items"])'

# Traces of another tool, per step.
traces=$PURLIN_SOURCE/tests/data/traces
expect_exit 0 purlin diff "$traces/kineto_h200_fusion_before.json.gz" "$traces/kineto_h200_fusion_after.json.gz"
expect_contains "$tmp/out" "per step" "wall time" "5 > 1" "kernels gone"
expect_exit 0 purlin diff --csv "$traces/kineto_h200_fusion_before.json.gz" "$traces/kineto_h200_fusion_after.json.gz"
[ "$(wc -l <"$tmp/out")" -eq 2 ] || fail "a header and one item were expected"

expect_exit 2 purlin diff "$tmp/a.plprof"
expect_exit 2 purlin diff "$tmp/a.plprof" "$tmp/absent.plprof"
expect_contains "$tmp/err" absent.plprof
expect_exit 2 purlin diff --per launch "$tmp/a.plprof" "$tmp/b.plprof"
ncu=$PURLIN_SOURCE/tests/data/imports/ncu_raw_h200.csv  # it has no timeline
expect_exit 2 purlin diff --per step "$ncu" "$ncu"
