#!/usr/bin/env bash
# Timelines of recorded traces: the report's figures, and exports that hold all of them.
# shellcheck source=tests/suites/lib.sh
. "$(dirname "$0")/lib.sh"
otlp_check() { python3 "$PURLIN_SOURCE/tests/suites/otlp_check.py" "$@" || fail "no OTLP that a collector takes"; }

data=$PURLIN_SOURCE/tests/data/timeline
for trace in resnet50_v100 transformer_h200; do
  expect_exit 0 purlin report --json "$data/$trace.json.gz"
  cp "$tmp/out" "$tmp/report.json"
  # The same as another program computed from the same file.
  python3 - "$tmp/report.json" "$data/$trace.expected.json" <<'PY' || fail "$trace: not the expected figures"
import json, sys
timeline = json.load(open(sys.argv[1]))["timeline"]
expected = json.load(open(sys.argv[2]))
for key in ("span_ns", "busy_ns", "kernel_ns"):
    assert timeline[key] == expected[key], (key, timeline[key], expected[key])
assert timeline["work"]["kernel_sum_ns"] == expected["kernel_sum_ns"]
assert timeline["work"]["busy_ns"] == expected["work_busy_ns"]
assert len(timeline["steps"]) == len(expected["steps"])
for step, wanted in zip(timeline["steps"], expected["steps"]):
    assert all(step[key] == wanted[key] for key in wanted), (step, wanted)
assert sum(timeline["idle_causes"].values()) == timeline["idle_ns"]
overlap = timeline["overlap"]
assert overlap["compute_ns"] + overlap["exposed_communication_ns"] + overlap["exposed_copy_ns"] \
    + timeline["idle_ns"] == timeline["span_ns"]
PY

  # OTLP: a strict reader takes it, and the counts are the report's.
  expect_exit 0 purlin export "$data/$trace.json.gz" --format otlp -o "$tmp/otlp.json"
  otlp_check "$tmp/otlp.json" purlin.kernel.duration purlin.copy.duration
  expect_exit 0 purlin report --json --phase all --top 100000 "$data/$trace.json.gz"
  python3 - "$tmp/out" "$tmp/otlp.json" <<'PY' || fail "$trace: the metrics are not the report's"
import json, sys
report, otlp = (json.load(open(path)) for path in sys.argv[1:3])
metrics = {m["name"]: m for m in otlp["resourceMetrics"][0]["scopeMetrics"][0]["metrics"]}
points = metrics["purlin.kernel.duration"]["exponentialHistogram"]["dataPoints"]
assert sum(int(p["count"]) for p in points) == sum(k["count"] for k in report["kernels"])
assert abs(sum(p["sum"] for p in points) - sum(k["total_ns"] for k in report["kernels"])) < 1
PY

  # Chrome: all events, every link from a call to its work, and a trace again when read back.
  expect_exit 0 purlin export "$data/$trace.json.gz" --format chrome -o "$tmp/chrome.json"
  python3 - "$tmp/chrome.json" "$data/$trace.json.gz" <<'PY' || fail "$trace: the Chrome trace is not the one that went in"
import collections, gzip, json, sys
def slices(document):
    events = document["traceEvents"] if isinstance(document, dict) else document
    return events, [e for e in events if e["ph"] == "X" and e["cat"].lower() != "trace"]
def kind(event):
    c = event["cat"].lower()
    return {"memcpy": "gpu_memcpy", "memset": "gpu_memset", "runtime": "cuda_runtime", "operator": "cpu_op"}.get(c, c)
events, out = slices(json.load(open(sys.argv[1])))
_, into = slices(json.load(gzip.open(sys.argv[2])))
device = ("kernel", "gpu_memcpy", "gpu_memset")
count = lambda events, cats: sum(kind(e) in cats for e in events)
for cats in [("kernel",), ("gpu_memcpy",), ("gpu_memset",), ("cuda_runtime", "cuda_driver")]:
    assert count(out, cats) == count(into, cats), (cats, count(out, cats), count(into, cats))
starts = {e["id"]: e for e in events if e["ph"] == "s"}
calls = {e["args"]["correlation"]: e for e in out if kind(e) in ("cuda_runtime", "cuda_driver")}
for id, start in starts.items():
    assert (start["ts"], start["pid"], start["tid"]) == tuple(calls[id][k] for k in ("ts", "pid", "tid"))
ends = [e for e in events if e["ph"] == "f"]
linked = [e for e in out if kind(e) in device and "correlation" in e["args"]]
assert len(ends) == len(linked) and all(e["id"] in starts for e in ends)
known = {e["args"]["correlation"] for e in into if kind(e) in ("cuda_runtime", "cuda_driver") and e["args"]}
assert len(linked) == sum(kind(e) in device and e["args"]["correlation"] in known for e in into)
PY
  expect_exit 0 purlin report --json "$tmp/chrome.json"
  python3 - "$tmp/out" "$tmp/report.json" <<'PY' || fail "$trace: read back, it is another"
import json, sys
again, first = (json.load(open(path))["timeline"] for path in sys.argv[1:])
for key in ("span_ns", "busy_ns", "idle_causes", "overlap", "launches", "sequences", "syncs"):
    assert again[key] == first[key], (key, again[key], first[key])
assert [s["duration_ns"] for s in again["steps"]] == [s["duration_ns"] for s in first["steps"]]
PY

  expect_exit 0 purlin export "$data/$trace.json.gz" --format perfetto -o "$tmp/trace.pftrace"
  expect_contains "$tmp/err" "events and" "links"
  expect_exit 0 purlin export "$data/$trace.json.gz" --format csv
  [ "$(wc -l <"$tmp/out")" -gt 900 ] || fail "$trace: too few lines of CSV"
done

# As another reader decodes it: stages, what they refer to, and the counters of a capture of an H100.
counted=$PURLIN_SOURCE/tests/data/page/gpt2_counters.plprof
expect_exit 0 purlin export "$counted" --format perfetto -o "$tmp/counted.pftrace"
expect_exit 0 purlin report --json "$counted"
python3 "$PURLIN_SOURCE/tests/suites/perfetto_check.py" "$tmp/counted.pftrace" "$tmp/out" || fail "no trace that Perfetto takes"

expect_exit 2 purlin export "$data/resnet50_v100.json.gz" --format flame
expect_contains "$tmp/err" 'there are chrome, perfetto, csv'
expect_exit 2 purlin export "$data/nothing.json" --format csv
expect_contains "$tmp/err" "no such file"
printf 'sum' >"$tmp/broken"
expect_exit 2 purlin export "$tmp/broken" --format csv -o "$tmp/never"
expect_contains "$tmp/err" "not a profile that Purlin knows" "no results of tuning, either"
[ ! -e "$tmp/never" ] || fail "a file was left behind"

# Two ranks, each with a GPU that its trace calls 0; the second begins its collectives 0.8 ms late, by a clock 5 ms ahead.
python3 - "$tmp" <<'PY'
import json, sys
for rank, clock, late in ((0, 0, 0), (1, 5000, 800)):
    pid, id, events = 1000 + rank, 0, []
    def launch(name, at, begin, length, stream):
        global id
        id += 1
        events.append(dict(ph="X", cat="cuda_runtime", name="cudaLaunchKernel", pid=pid, tid=pid, ts=at + clock,
                           dur=10, args=dict(correlation=id)))
        events.append(dict(ph="X", cat="kernel", name=name, pid=0, tid=stream, ts=begin + clock, dur=length,
                           args=dict(device=0, stream=stream, correlation=id, grid=[1, 1, 1], block=[128, 1, 1])))
    for step in range(5):
        t = 1_000_000 + step * 10_000
        events.append(dict(ph="X", cat="user_annotation", name=f"ProfilerStep#{step}", pid=pid, tid=pid, ts=t + clock,
                           dur=9_900, args={}))
        for k in range(10):
            launch("gemm", t + 100 + k * 100, t + 500 + k * 500, 450, 7)
        launch("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", t + 2000, t + 4000 + late, 3000 - late, 20)
    json.dump(dict(schemaVersion=1, deviceProperties=[dict(id=0, name="NVIDIA H200")],
                   distributedInfo=dict(rank=rank, world_size=2), traceEvents=events), open(f"{sys.argv[1]}/rank{rank}.json", "w"))
PY
expect_exit 0 purlin report --json "$tmp/rank0.json" "$tmp/rank1.json"
cp "$tmp/out" "$tmp/ranks.json"
expect_json "$tmp/ranks.json" '[d["rank"] for d in d["timeline"]["ranks"]] == [0, 1]'
expect_json "$tmp/ranks.json" '[d["last"] for d in d["timeline"]["ranks"]] == [0, 5]'
expect_json "$tmp/ranks.json" '[d["late_ns"] for d in d["timeline"]["ranks"]] == [0, 800000]'
expect_json "$tmp/ranks.json" 'd["timeline"]["ranks"][1]["clock_offset_ns"] == 5000000'
expect_json "$tmp/ranks.json" 'any("clock of rank 1 (" in limit for limit in d["timeline"]["limits"])'
# Five times 3 ms of communication, of which kernels of the other stream cover 450 us in each 500.
expect_json "$tmp/ranks.json" 'd["timeline"]["overlap"]["communication_ns"] == 15000000'
expect_json "$tmp/ranks.json" 'd["timeline"]["overlap"]["compute_and_communication_ns"] == 5 * 3 * 450000'

# Hostile names stay data in OTLP.
python3 - >"$tmp/evil.json" <<'PY'
import json
names = ["a\x1b[2J\nb", "say \"x\" \\ \u202e", "::error::x", "<img>"]
print(json.dumps({"traceEvents": [
    {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": 1e6 + 100 * i, "dur": 5,
     "args": {"device": 0, "stream": 7, "correlation": i + 1}} for i, name in enumerate(names)]}))
PY
expect_exit 0 purlin export "$tmp/evil.json" --format otlp
cp "$tmp/out" "$tmp/evil.otlp"
otlp_check "$tmp/evil.otlp" purlin.kernel.duration
expect_exit 2 purlin export "$tmp/absent.json" --format otlp
expect_exit 2 purlin export "$data/resnet50_v100.json.gz" --format otel
expect_contains "$tmp/err" otlp
expect_json "$tmp/ranks.json" 'd["timeline"]["overlap"]["exposed_communication_ns"] == 15000000 - 5 * 3 * 450000'
