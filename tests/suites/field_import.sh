#!/usr/bin/env bash
# Files from the field against their right values, and made-up files that hold the same facts. The given
# files lie in shared/field, next to the source tree or under PURLIN_FIELD; without them only the made-up
# ones are read.
# shellcheck source=tests/suites/lib.sh
. "$(dirname "$0")/lib.sh"

# total FILE COUNT NS: launches and summed kernel time, to the nanosecond that a sketch keeps.
total() {
  expect_exit 0 purlin report --json --phase all --top 100000 "$1"
  expect_json "$tmp/out" "sum(k['count'] for k in d['kernels']) == $2"
  expect_json "$tmp/out" "abs(sum(k['total_ns'] for k in d['kernels']) - $3) < 1"
}
note() { expect_json "$tmp/out" "any(n['cause'] == '$1' for n in d['coverage']['notes'])"; }

# --- made up: no times, an overlong kernel, a capture, HSA's numbers -------------------------------
cat >"$tmp/trace.py" <<'PY'
import json, sys
base = 1.4e12
events = [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 7, "tid": 7, "ts": base, "dur": 900, "args": {}}]
def call(name, ts, correlation):
    events.append({"ph": "X", "cat": "cuda_runtime", "name": name, "pid": 7, "tid": 7, "ts": base + ts, "dur": 1,
                   "args": {"correlation": correlation}})
def kernel(ts, dur, correlation):
    events.append({"ph": "X", "cat": "kernel", "name": "k(float*)", "pid": 9, "tid": 1, "ts": ts, "dur": dur,
                   "args": {"device": 9, "stream": 1, "correlation": correlation}})
for i in range(10):
    call("hipLaunchKernel", 10 * i, i + 1)
    if i % 5 == 4: kernel(0, 0, i + 1)
    else: kernel(base + 100 + 10 * i, 5e6 if i == 2 else 4, i + 1)
call("hipStreamBeginCapture", 200, 90)
for i in range(5): call("hipLaunchKernel", 201 + i, 91 + i)
call("hipStreamEndCapture", 210, 99)
json.dump({"deviceProperties": [{"id": 0, "name": "AMD Instinct MI300X", "numSms": 304}], "traceEvents": events}, sys.stdout)
PY
python3 "$tmp/trace.py" >"$tmp/trace.json"
total "$tmp/trace.json" 8 $((7 * 4000 + 10000))
note bad_times
note overlong_kernels
note launches_captured
expect_json "$tmp/out" 'd["coverage"]["launches_lost"] == 2 and d["coverage"]["launches_counted"] == 10'
expect_json "$tmp/out" '[x["id"] for x in d["environment"]["devices"]] == ["hip:0"]'

# --- made up: OpenMP regions of two builds are the same kernels ------------------------------------
for build in 1 2; do
  mkdir -p "$tmp/omp$build"
  {
    echo 'Kind,Agent_Id,Kernel_Name,Start_Timestamp,End_Timestamp'
    for region in norm laplacian; do
      echo "KERNEL_DISPATCH,Agent 4,__omp_offloading_3${build}_2f3c${build}__QM${region}_modP${region}_l2${build},${build}000,${build}900"
    done
  } >"$tmp/omp$build/1_kernel_trace.csv"
done
expect_exit 0 purlin diff --json "$tmp/omp1" "$tmp/omp2"
expect_json "$tmp/out" 'len(d["items"]) == 2 and all(i["match"] == "kernel" for i in d["items"])'

# --- made up: a European locale ---------------------------------------------------------------------
cat >"$tmp/comma.csv" <<'CSV'
"ID","Kernel Name","CC","Metric Name","Metric Unit","Metric Value"
"0","sgemm","8.9","gpu__time_duration.sum","ns","117.344"
"1","sgemm","8.9","gpu__time_duration.sum","ns","14.912"
CSV
total "$tmp/comma.csv" 2 132256
note decimal_comma

# --- the given files -----------------------------------------------------------------------------
field=${PURLIN_FIELD:-}
for place in "$PURLIN_SOURCE/../shared/field" "$PURLIN_SOURCE/../../shared/field"; do
  [ -n "$field" ] || { [ -d "$place/import" ] && field=$place; } || true
done
if [ -z "$field" ] || [ ! -d "$field/import" ]; then
  echo "field_import: no folder shared/field/import: its files are left out (set PURLIN_FIELD)" >&2
  echo 'field_import: all checks passed'
  exit 0
fi
given=$field/import

total "$given/nsys_vecadd_1thread.sqlite" 1 6300325739
expect_json "$tmp/out" 'sum(c["count"] for c in d["copies"]) == 4608 and all(c["kind"].startswith("migration ") for c in d["copies"])'
total "$given/nsys_vecadd_256threads.sqlite" 1 180666877
total "$given/nsys_openmp_heat_map.sqlite" 50 1071243791
expect_json "$tmp/out" 'sum(c["count"] for c in d["copies"]) == 200 and sum(c["bytes"] for c in d["copies"]) == 102.4e9'
expect_json "$tmp/out" 'all(c["kind"].endswith(" pageable") for c in d["copies"])'
total "$given/nsys_openmp_heat_data_region.sqlite" 50 1064111711
expect_json "$tmp/out" 'sum(c["count"] for c in d["copies"]) == 3 and sum(c["bytes"] for c in d["copies"]) == 1.536e9'
expect_exit 0 purlin diff --json "$given/nsys_openmp_heat_map.sqlite" "$given/nsys_openmp_heat_data_region.sqlite"
expect_json "$tmp/out" '[i["match"] for i in d["items"] if i["op_class"] != "copy"] == ["kernel"]'
total "$given/nsys_2025.5.2_graph_capture.sqlite" 5 6944
note launches_captured
expect_json "$tmp/out" 'd["coverage"]["launches_lost"] == 0'

total "$given/kineto_hip_stream_capture.json.gz" 2 11015
expect_json "$tmp/out" 'd["coverage"]["launches_lost"] == 0 and d["coverage"]["launches_counted"] == 2'
total "$given/kineto_mi300_device_id.json.gz" 60 388344
expect_json "$tmp/out" '[x["id"] for x in d["environment"]["devices"]] == ["hip:0"] and "MI300X" in d["environment"]["devices"][0]["name"]'
total "$given/kineto_hip_graph_one_decode_step.json.gz" 425 10674517
total "$given/kineto_sampled_rank0.json.gz" 1154 606519000
total "$given/kineto_sampled_rank1.json.gz" 1104 651026000
total "$given/kineto_overflow_duration.json" 80 8010000
note overlong_kernels
total "$given/kineto_half_zero_times.json" 30 134523
note bad_times
expect_json "$tmp/out" 'd["timeline"]["span_ns"] < 5e6'
total "$given/ncu_european_duration_only.csv" 3 252672
total "$given/ncu_details_numba_copy.csv" 1 21058944
expect_json "$tmp/out" 'abs(d["kernels"][0]["utilization"] - 0.6184) < 0.01'
total "$given/rocprof_compute_vcopy_MI200" 3 52320
total "$given/rocprofv3_openmp_a" 9 501080
expect_json "$tmp/out" '[x["id"] for x in d["environment"]["devices"]] == ["hip:0"]'
total "$given/rocpd_openmp_b" 5 323440
expect_exit 0 purlin diff --json "$given/rocprofv3_openmp_a" "$given/rocpd_openmp_b"
expect_json "$tmp/out" 'len(d["items"]) == 4 and all(i["match"] == "kernel" for i in d["items"])'
total "$given/rocprofv3_results.json" 40 138440
expect_json "$tmp/out" 'd["environment"]["devices"][0]["id"] == "hip:0" and "MI350X" in d["environment"]["devices"][0]["name"]'

# Of the time of these traces, less than 5 % is of kernels whose class no rule knows, or whose element
# type neither the program nor their name nor the work around them shows.
for trace in kineto_mi300_device_id.json.gz kineto_hip_graph_one_decode_step.json.gz kineto_sampled_rank0.json.gz \
  kineto_sampled_rank1.json.gz kineto_half_zero_times.json kineto_overflow_duration.json; do
  expect_exit 0 purlin report --json --phase all --top 100000 "$given/$trace"
  expect_json "$tmp/out" "sum(k['total_ns'] for k in d['kernels'] if k['op_class'] == 'other') < 0.05 * sum(k['total_ns'] for k in d['kernels'])"
  expect_json "$tmp/out" "sum(k['total_ns'] for k in d['kernels'] if not k['dtype'] and 'dtype' not in k['built']) < 0.05 * sum(k['total_ns'] for k in d['kernels'])"
done

# Results of tuning, gates and winners.
kt=$field/tune/kt
for file in unclosed_comma metric_nan error_member error_in_metric t4_from_ktt_microseconds; do
  expect_exit 0 purlin space --device "replay:$kt/$file.json" --json
done
expect_exit 0 purlin space --device "replay:$kt/unclosed_comma.json"
expect_contains "$tmp/err" 'has no end'
scan=$field/tune/gate
expect_exit 1 purlin guard compare --commands "cat $scan/scan_a.json" "cat $scan/scan_b.json" --format hyperfine --json --no-profiles
expect_json "$tmp/out" '[i["verdict"] for i in d["items"]] == ["pass", "pass", "regression"]'
expect_exit 0 purlin guard compare --commands "cat $scan/nvbench_skips.json" "cat  $scan/nvbench_skips.json" --format nvbench --json --no-profiles
expect_json "$tmp/out" 'len(d["items"]) == 2 and any("In=I8 Out=I8" in n for n in d["notes"])'
expect_exit 0 purlin guard compare --commands "cat $scan/gb_old_aggregates.json" "cat  $scan/gb_old_aggregates.json" --format google-benchmark --json --no-profiles
expect_json "$tmp/out" '[i["kernel"] for i in d["items"]] == ["BM_x"]'
export PURLIN_CACHE=$tmp/winners
expect_exit 0 purlin cache import "$field/tune/moe/E=256,N=512,device_name=NVIDIA_H200.json" "$field/tune/moe/E=256,N=512,device_name=NVIDIA_H200_down.json"
expect_exit 0 purlin cache ls --json
expect_json "$tmp/out" 'sorted({e["key"]["kernel"] for e in d["entries"]}) == ["sglang.fused_moe_down", "vllm.fused_moe"]'
expect_json "$tmp/out" '{e["key"]["device"] for e in d["entries"]} == {"NVIDIA H200"}'
echo 'field_import: all checks passed'
