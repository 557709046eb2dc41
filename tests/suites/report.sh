#!/usr/bin/env bash
# The report of a real OpenCL run: text, JSON, CSV, several files, damaged files.
# shellcheck source=tests/suites/lib.sh
. "$(dirname "$0")/lib.sh"

sample=$(dirname "$PURLIN")/purlin-sample  # in a build; installed:
[ -x "$sample" ] || sample=$(dirname "$PURLIN")/../libexec/purlin/purlin-sample
kernels=$PURLIN_SOURCE/kernels
expect_exit 0 purlin profile -o "$tmp/run.plprof" --build v1 -- "$sample" --device opencl:0 --steps 3 \
  "$kernels/softmax/softmax.toml" "$kernels/transpose/transpose.toml"
expect_contains "$tmp/out" softmax transpose coverage "build v1"

# Every launch the program made is there: 3 steps after 2 that warm up, 2 kernels each.
expect_exit 0 purlin report --json "$tmp/run.plprof"
expect_json "$tmp/out" 'd["schema"] == "purlin.report/1" and d["environment"]["build"] == "v1"'
expect_json "$tmp/out" 'sorted(k["name"] for k in d["kernels"]) == ["softmax", "transpose"]'
expect_json "$tmp/out" 'all(k["count"] == 5 for k in d["kernels"])'
expect_json "$tmp/out" 'abs(sum(k["share"] for k in d["kernels"]) - 1) < 1e-9'
expect_json "$tmp/out" 'sum(k["total_ns"] for k in d["kernels"]) == d["kernel_ns"]'
expect_json "$tmp/out" 'all(k["min_ns"] <= k["p50_ns"] <= k["p95_ns"] <= k["max_ns"] for k in d["kernels"])'
expect_json "$tmp/out" 'd["coverage"]["launches_seen"] == 10 and not d["coverage"]["partial"]'

# Twice the same file is twice the launches.
expect_exit 0 purlin report --json "$tmp/run.plprof" "$tmp/run.plprof"
expect_json "$tmp/out" 'all(k["count"] == 10 for k in d["kernels"])'

expect_exit 0 purlin report --csv "$tmp/run.plprof"
[ "$(wc -l <"$tmp/out")" -eq 3 ] || fail "a header and two rows were expected"
expect_exit 0 purlin report --by launch --top 1 "$tmp/run.plprof"
expect_contains "$tmp/out" "grid / block" "in the other 1"

# Damaged, foreign and absent files, and wrong usage: one line on stderr, nothing on stdout.
head -c 300 "$tmp/run.plprof" >"$tmp/cut.plprof"
echo "not a profile" >"$tmp/foreign.plprof"
for bad in cut foreign absent; do
  expect_exit 2 purlin report --json "$tmp/$bad.plprof"
  [ ! -s "$tmp/out" ] || fail "output for a file that cannot be read"
  expect_contains "$tmp/err" "$bad.plprof"
done
expect_exit 2 purlin report --by colour "$tmp/run.plprof"
expect_exit 2 purlin report --json --csv "$tmp/run.plprof"
expect_exit 2 purlin report
