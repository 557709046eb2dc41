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
expect_contains "$tmp/err" "counts twice"
expect_json "$tmp/out" 'all(k["count"] == 10 for k in d["kernels"])'

expect_exit 0 purlin report --by launch --top 1 "$tmp/run.plprof"
expect_contains "$tmp/out" "grid / block" "in the other 1"

# The documents fit their schema, members it does not name included, and say the same.
suites=$PURLIN_SOURCE/tests/suites
schema=$PURLIN_SOURCE/docs/formats/report.schema.json
golden=$PURLIN_SOURCE/tests/golden
documents() {  # NAME ARGUMENTS…: JSON, CSV and page of one report, checked against each other
  local name=$1
  shift
  expect_exit 0 purlin report --json "$@"
  cp "$tmp/out" "$tmp/$name.json"
  expect_exit 0 purlin report --csv "$@"
  cp "$tmp/out" "$tmp/$name.csv"
  expect_exit 0 purlin report --html "$tmp/$name.html" "$@"
  [ ! -s "$tmp/out" ] || fail "--html FILE writes to stdout"
  expect_contains "$tmp/err" "$name.html"
  expect_exit 0 python3 "$suites/json_schema.py" --closed "$schema" "$tmp/$name.json"
  expect_exit 0 python3 "$suites/report_page.py" "$tmp/$name.html" "$tmp/$name.json" "$tmp/$name.csv"
}
documents run "$tmp/run.plprof"
expect_json "$tmp/run.json" 'len(d["kernels"]) == 2'
expect_exit 0 python3 "$suites/json_schema.py" --closed "$schema" "$golden/report.json" "$golden/report_full.json"
sed 's/"bound": "memory"/"bound": "weather"/; s/"share"/"chair"/' "$golden/report_full.json" >"$tmp/wrong.json"
expect_exit 1 python3 "$suites/json_schema.py" "$schema" "$tmp/wrong.json"
expect_contains "$tmp/err" "weather" "'share' is missing"
expect_exit 0 purlin report --html - "$tmp/run.plprof"
cmp -s "$tmp/out" "$tmp/run.html" || fail "--html - is another page than --html FILE"

# Selections, and all about one kernel.
documents none --filter nothing_like_it "$tmp/run.plprof"
expect_json "$tmp/none.json" 'd["kernels"] == [] and d["rows_left_out"] == 2 and d["launches"] == 10'
for by in shape launch op op_class; do
  documents "$by" --by "$by" "$tmp/run.plprof"
  expect_json "$tmp/$by.json" 'abs(sum(k["share"] for k in d["kernels"]) - 1) < 1e-9'
done
documents one --filter 'SOFT.*X$' --sort p95 --device opencl:0 "$tmp/run.plprof"
expect_json "$tmp/one.json" '[k["name"] for k in d["kernels"]] == ["softmax"] and d["filter"] == "SOFT.*X$"'
expect_exit 0 purlin report --kernel trans "$tmp/run.plprof"
expect_contains "$tmp/out" transpose durations "5 launches" "launch shape and problem"
expect_exit 2 purlin report --kernel s "$tmp/run.plprof"
expect_contains "$tmp/err" "could be any of 2" softmax transpose
expect_exit 2 purlin report --kernel gemm "$tmp/run.plprof"
expect_exit 2 purlin report --filter '(' "$tmp/run.plprof"
expect_exit 2 purlin report --sort colour "$tmp/run.plprof"
expect_exit 2 purlin report --device cuda:7 "$tmp/run.plprof"
expect_contains "$tmp/err" "opencl:0"

# Ten thousand kernels, among them hostile names; with a profile of another format in one report.
python3 - "$tmp/trace.json" <<'EOF'
import json, sys
hostile = ["</script><script>alert(1)</script>", "a,\"b\"\r\nc", "=1+1", "\u2028<!--", "k\u001b[2Jx", "<img src=x onerror=alert(1)>"]
names = hostile + [f"kernel_{i}" for i in range(10000 - len(hostile))]
events = [{"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": 1000 + 10 * i, "dur": 1 + i % 7,
           "args": {"device": 0, "stream": 7, "correlation": i, "grid": [1, 1, 1], "block": [32, 1, 1]}} for i, name in enumerate(names)]
json.dump({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H200"}], "traceEvents": events}, open(sys.argv[1], "w"))
EOF
documents many "$tmp/trace.json"
expect_json "$tmp/many.json" 'len(d["kernels"]) == 10000'
[ "$(stat -c %s "$tmp/many.html")" -lt 4000000 ] || fail "a page of 10,000 rows takes $(stat -c %s "$tmp/many.html") bytes"
expect_exit 0 purlin report --top 0 "$tmp/trace.json"
if grep -qP '\x1b|\r' "$tmp/out"; then fail "a kernel's name reaches the terminal's controls"; fi
expect_exit 0 purlin report --json "$tmp/trace.json" "$tmp/run.plprof"
expect_json "$tmp/out" 'len(d["kernels"]) == 10002 and d["launches"] == 10010'

# Colour is for terminals; who pipes gets none.
expect_exit 0 purlin report "$tmp/run.plprof"
if grep -q "$(printf '\033')" "$tmp/out"; then fail "escape sequences in a pipe"; fi
expect_exit 0 purlin report --color always "$tmp/run.plprof"
grep -q "$(printf '\033')" "$tmp/out" || fail "--color always has no colour"

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
expect_exit 2 purlin report --csv --html "$tmp/x.html" "$tmp/run.plprof"
expect_exit 2 purlin report --html "$tmp" "$tmp/run.plprof"
expect_exit 2 purlin report --html "$tmp/no/such/folder.html" "$tmp/run.plprof"
expect_exit 2 purlin report
