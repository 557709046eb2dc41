# shellcheck shell=bash
# labels: opencl
# Hardware counters in a live session: `purlin tune --strategy counters` on fake devices that have them,
# refuse them, or are taken down by them; and on OpenCL, which has none.
source "$(dirname "$0")/lib.sh"
mkdir "$tmp/spec"
cp "$PURLIN_SOURCE"/tests/data/tune/scale* "$tmp/spec"
sed -i 's/\.opencl\]/.cuda]/' "$tmp/spec/scale.toml"
spec=$tmp/spec/scale.toml
toy='"device": {"name": "Counted", "backend": "cuda", "max_threads_per_block": 1024}'
tune() { purlin tune "$spec" --device "fake:$tmp/$1.json" --strategy counters --finals 1 --no-store --json "${@:2}"; }
read_of='[e for e in d["evaluations"] if "dram_read_bytes" in e.get("counters", {})]'

# Read in a second process, of the first configs however slow and later of what comes near the best; what
# that takes is part of the cost.
printf '{"time_ms": "1 + abs(BLOCK - 64) / 64 + 1 / ITEMS", "counters": {"dram_read_bytes": "1000 * BLOCK", "issue_busy_pct": "ITEMS"}, %s}' "$toy" >"$tmp/counted.json"
expect_exit 0 tune counted --budget 25
expect_json "$tmp/out" "len($read_of) >= 10"
expect_json "$tmp/out" "all(e['counters']['dram_read_bytes'] == 1000 * e['config']['BLOCK'] for e in $read_of)"
expect_json "$tmp/out" "all(e['counters_s'] > 0 and e['cost_s'] >= e['counters_s'] for e in $read_of)"
expect_json "$tmp/out" "d['hardware_counters']['configs'] == len($read_of) and 'problem' not in d['hardware_counters']"
expect_json "$tmp/out" 'd["best"]["config"] == {"BLOCK": 64, "ITEMS": 16, "MISTAKE": 0}'
expect_json "$tmp/out" 'all("counters_s" not in e for e in d["evaluations"] if e["status"] != "ok")'
tune counted --budget 25 --session "$tmp/other" 2>/dev/null | python3 -c 'import json,sys; json.load(sys.stdin)'
# A resumed session has them from its journal.
expect_exit 0 tune counted --budget 12 --session "$tmp/resumed"
expect_exit 0 tune counted --budget 14 --session "$tmp/resumed"
expect_json "$tmp/out" "d['resumed'] == 12 and len($read_of) >= 10"

# Nobody else asks for them.
expect_exit 0 purlin tune "$spec" --device "fake:$tmp/counted.json" --strategy auto --budget 12 --finals 0 --no-store --json
expect_json "$tmp/out" "'hardware_counters' not in d and not $read_of"

# Refused: said once, and the search goes on with what is known of the compiled kernels.
printf '{"time_ms": "1 + BLOCK / 64", "no_counters": "the driver keeps them for administrators", %s}' "$toy" >"$tmp/refused.json"
expect_exit 0 tune refused --budget 14
[ "$(grep -c 'no hardware counters: the driver keeps them for administrators' "$tmp/err")" -eq 1 ] || fail "said $(grep -c 'no hardware counters' "$tmp/err") times"
expect_json "$tmp/out" "len(d['evaluations']) == 14 and d['hardware_counters'] == {**d['hardware_counters'], 'configs': 0, 'problem': 'the driver keeps them for administrators'}"
expect_json "$tmp/out" 'all("code_bytes" in e["counters"] for e in d["evaluations"] if e["status"] == "ok")'
expect_json "$tmp/out" 'sum("counters_s" in e for e in d["evaluations"]) == 1'

# Not a CUDA device: no second process is started.
expect_exit 0 purlin tune "$PURLIN_SOURCE/tests/data/tune/scale.toml" --device opencl:0 --strategy counters --budget 4 --finals 0 --no-store --json
expect_json "$tmp/out" 'd["hardware_counters"]["problem"] == "hardware counters are read on CUDA devices only" and d["hardware_counters"]["seconds"] == 0'
