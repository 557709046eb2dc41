#!/usr/bin/env bash
# Roofs and occupancy of real traces: counters beside the shape model, agreement with the traces' own
# figures, and what a reader may add.
# shellcheck source=tests/suites/lib.sh
. "$(dirname "$0")/lib.sh"
data=$PURLIN_SOURCE/tests/data
sample=$(dirname "$PURLIN")/purlin-sample  # in a build; installed:
[ -x "$sample" ] || sample=$(dirname "$PURLIN")/../libexec/purlin/purlin-sample

# AlexNet's first convolution on an A100: 18.26 GFLOP by counters, 17.99 by its shape, which the trace lacks.
conv1='implicit_convolve=conv,f32,N=128,C=3,H=224,W=224,K=64,R=11,S=11,P=55,Q=55'
expect_exit 0 purlin report --json --shape "$conv1" "$data/traces/kineto_a100_alexnet_counters.json.gz"
expect_json "$tmp/out" 'any(abs(k["flops"] - 18.26e9) < 5e6 and abs(k["roof"]["model_flops"] - 17.99e9) < 5e6
  and k["roof"]["flops_from"] == "counter" for k in d["kernels"] if k["flops"] and "implicit_convolve" in k["name"])'
expect_exit 0 purlin report --json "$data/traces/kineto_a100_alexnet_counters.json.gz"
expect_json "$tmp/out" 'any(abs(k["flops"] - 18.26e9) < 5e6 and k["provenance"] == "counter"
  for k in d["kernels"] if k["flops"] and "implicit_convolve" in k["name"])'

# A transformer step on an H200: each product stands against the bf16 tensor cores and below them.
trace=$data/traces/kineto_h200_transformer.json.gz
expect_exit 0 purlin report --json --by launch "$trace"
expect_json "$tmp/out" 'all(0 < k["utilization"] <= 1 and k["roof"]["ceiling"] == "bf16 tensor" and k["bound"] == "compute"
  for k in d["kernels"] if k["op_class"] == "gemm" and k["shape"] and k["p50_ns"] > 10000)'
expect_json "$tmp/out" 'any(k["op_class"] == "gemm" and k["utilization"] for k in d["kernels"])'
expect_json "$tmp/out" 'all(k["utilization"] is None or 0 < k["utilization"] <= 1 for k in d["kernels"])'
expect_json "$tmp/out" '[c["peak"] for c in d["ceilings"][0]["compute"] if c["name"] == "bf16 tensor"][0] // 1e11 == 9894'
# Occupancy within a point of the trace's own figure on every kernel of up to 48 KiB of shared memory.
python3 - "$trace" "$tmp/out" <<'PY' || fail "occupancy differs from the trace's own figure"
import gzip, json, sys
rows = {}
for k in json.load(open(sys.argv[2]))["kernels"]:
    launch = k["launch"]
    shared = launch["dynamic_shared_bytes"] + k["static_shared_bytes"]
    key = (tuple(launch["grid"]), tuple(launch["block"]), k["registers"], shared)
    rows[key] = 100 * ((k["occupancy"] or {}).get("achieved") or 0)
checked = far = 0
for e in json.load(gzip.open(sys.argv[1]))["traceEvents"]:
    a = e.get("args", {})
    if e.get("cat") != "kernel" or a["shared memory"] > 48 * 1024:
        continue
    key = (tuple(a["grid"]), tuple(a["block"]), a["registers per thread"], a["shared memory"])
    checked += 1
    far += abs(rows[key] - a["est. achieved occupancy %"]) > 1
sys.exit(not (checked >= 10 and far <= checked / 1000))
PY

# The V100 trace names no GPU; its reader may.
trace=$data/timeline/resnet50_v100.json.gz
expect_exit 0 purlin report --json --gpu V100-SXM2 "$trace"
expect_json "$tmp/out" 'd["ceilings"][0]["device"] == "V100 SXM2" and all(k["occupancy"] for k in d["kernels"])'
expect_exit 2 purlin report --gpu 'Voodoo 2' "$trace"
expect_contains "$tmp/err" "no GPU 'Voodoo 2' in the table"
expect_exit 2 purlin report --shape 'nothing=copy,f32,n=1' "$trace"
expect_contains "$tmp/err" "no kernel of the profile has that in its name"
expect_exit 2 purlin report --shape 'gemm=gemm' "$trace"
expect_contains "$tmp/err" "KERNEL=CLASS,DTYPE,DIMENSIONS"

# Ceilings: measured, kept, and what reports of this device stand against. No figure is checked: the machine is busy.
expect_exit 0 purlin doctor --ceilings --device opencl:0 --json
expect_json "$tmp/out" 'd["schema"] == "purlin.ceilings/1" and d["environment"]["devices"][0]["id"] == "opencl:0"'
expect_json "$tmp/out" '{"dram"} <= {c["name"] for c in d["ceilings"]["memory"]}'
expect_json "$tmp/out" '{"f32"} <= {c["name"] for c in d["ceilings"]["compute"]}'
expect_json "$tmp/out" 'all(c["peak"] >= c["median"] > 0 for l in ("memory", "compute") for c in d["ceilings"][l])'
ls "$XDG_CACHE_HOME"/purlin/ceilings/*.json >/dev/null || fail "the ceilings were not kept"
expect_exit 0 purlin profile -o "$tmp/run.plprof" -- "$sample" --device opencl:0 --steps 2 \
  "$PURLIN_SOURCE/kernels/softmax/softmax.toml"
expect_exit 0 purlin report --json "$tmp/run.plprof"
expect_json "$tmp/out" 'd["ceilings"][0]["memory"][0]["provenance"] == "measured"'
