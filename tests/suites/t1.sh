# shellcheck shell=bash
# T1 files, the community's input schema: counted, listed, tuned on a recording and on OpenCL on the CPU;
# and limits on what was compiled, which a fake device breaks.
source "$(dirname "$0")/lib.sh"
t1=$PURLIN_SOURCE/tests/data/tune/scale.t1.json

expect_exit 0 purlin space "$t1" --json --sample 4
expect_json "$tmp/out" 'd["cartesian"] == 48 and d["valid"] == 26 and not d["valid_is_estimate"]'
expect_json "$tmp/out" 'len(d["sample"]) == 4 and sum(p["configs"] for p in d["pruned"]) == 22'
expect_exit 0 purlin space "$t1" --export json
expect_json "$tmp/out" 'len(d) == 26 and all(c["BLOCK"] * c["ITEMS"] <= 1024 for c in d)'
expect_exit 0 purlin space "$t1" --export csv --limit 5
[ "$(wc -l <"$tmp/out")" -eq 6 ] || fail "the CSV has $(wc -l <"$tmp/out") lines"

# 10^12 combinations and more, all tied together.
{
  printf '{"ConfigurationSpace": {"TuningParameters": ['
  for i in {1..13}; do printf '{"Name": "p%d", "Values": "list(range(10))"},' "$i"; done
  printf '{"Name": "q", "Values": [1]}], "Conditions": [{"Expression": "p1'
  for i in {2..13}; do printf ' + p%d' "$i"; done
  printf ' == 117"}]}}'
} >"$tmp/large.json"
expect_exit 0 purlin space "$tmp/large.json" --json
expect_json "$tmp/out" 'd["cartesian"] == 1e13 and d["valid"] == 1'

# With a recording: the configs that both have.
python3 - "$tmp/recorded.json" <<'PY'
import json, sys
cache = {}
for block in (16, 32, 64, 256):
    for items in (1, 2):
        config = {"BLOCK": block, "ITEMS": items, "MISTAKE": 0}
        time = 1 + abs(block - 64) / 64 + 1 / items
        cache[f"{block},{items},0"] = {**config, "time": time, "times": [time] * 3, "compile_time": 10,
                                       "verification_time": 0, "benchmark_time": 5}
json.dump({"device_name": "Recorded", "kernel_name": "scale", "problem_size": [65536],
           "tune_params_keys": ["BLOCK", "ITEMS", "MISTAKE"],
           "tune_params": {"BLOCK": [16, 32, 64, 256], "ITEMS": [1, 2], "MISTAKE": [0]},
           "objective": "time", "cache": cache}, open(sys.argv[1], "w"))
PY
expect_exit 0 purlin tune "$t1" --device "replay:$tmp/recorded.json" --strategy exhaustive --json
expect_json "$tmp/out" 'len(d["evaluations"]) == 6 and d["best"]["config"] == {"BLOCK": 64, "ITEMS": 2, "MISTAKE": 0}'
expect_contains "$tmp/err" "20 valid configs" "2 recorded ones are not valid"
sed 's/"BLOCK"/"WIDTH"/g; s/BLOCK/WIDTH/g' "$t1" >"$tmp/other.json"
expect_exit 2 purlin tune "$tmp/other.json" --device "replay:$tmp/recorded.json"
expect_contains "$tmp/err" "the recording has none of its configs"

# Live: the default config is the reference, so the planted mistake is found out.
expect_exit 0 purlin tune "$t1" --device opencl:0 --strategy exhaustive --budget 100 --samples 3 --finals 0 --no-store --json
expect_json "$tmp/out" 'len(d["evaluations"]) == 26'
expect_json "$tmp/out" 'all((e["status"] == "wrong") == (e["config"]["MISTAKE"] == 1) for e in d["evaluations"])'

# What Purlin lacks is refused by name.
cp "$PURLIN_SOURCE"/tests/data/tune/scale* "$tmp"
sed 's/"FillType": "Constant"/"FillType": "Constant", "MemType": "Constant"/' "$t1" >"$tmp/constant.json"
expect_exit 2 purlin tune "$tmp/constant.json" --device opencl:0
expect_contains "$tmp/err" "argument 'out': MemType 'Constant'"

# Limits: the fake device's kernels take 32 registers.
sed -i 's/^constraints = .*/&\nlimits = ["registers <= 16 or BLOCK == 64", "spills == 0"]/' "$tmp/scale.toml"
printf '{"time_ms": "1 + abs(BLOCK - 64) / 64 + 1 / ITEMS", "device": {"max_threads_per_block": 100}}' >"$tmp/fake.json"
expect_exit 0 purlin tune "$tmp/scale.toml" --device "fake:$tmp/fake.json" --strategy exhaustive --no-store --json
expect_json "$tmp/out" 'all((e["status"] == "ok") == (e["config"]["BLOCK"] == 64) for e in d["evaluations"] if e["config"]["MISTAKE"] == 0)'
expect_json "$tmp/out" 'any("registers <= 16" in e.get("message", "") for e in d["evaluations"])'
# And what it cannot launch was never tried.
expect_json "$tmp/out" 'all(e["config"]["BLOCK"] <= 100 for e in d["evaluations"])'
expect_exit 0 purlin space "$tmp/scale.toml" --device "fake:$tmp/fake.json"
expect_contains "$tmp/out" "device limit of threads per block: BLOCK <= 100"
