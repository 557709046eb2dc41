#!/usr/bin/env bash
# Timelines of recorded traces: the report's figures, and exports that hold all of them.
# shellcheck source=tests/suites/lib.sh
. "$(dirname "$0")/lib.sh"

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

expect_exit 2 purlin export "$data/resnet50_v100.json.gz" --format otlp
expect_contains "$tmp/err" "otlp is not supported yet"
expect_exit 2 purlin export "$data/resnet50_v100.json.gz" --format flame
expect_contains "$tmp/err" "give 'chrome', 'perfetto' or 'csv'"
expect_exit 2 purlin export "$data/nothing.json" --format csv
printf 'sum' >"$tmp/broken"
expect_exit 2 purlin export "$tmp/broken" --format csv -o "$tmp/never"
[ ! -e "$tmp/never" ] || fail "a file was left behind"
