#!/usr/bin/env bash
# Awkward programs under CUDA capture, on the fake CUPTI: what the profile holds, and what its coverage block
# says of what it does not hold. tests/gpu/capture_faults_gpu.sh is the same with a real one.
# labels: profile
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
program=$PURLIN_BUILD/tests/capture_faults
[ -x "$program" ] || skip "built without CUDA's headers"
export FAKE_CUPTI=$PURLIN_BUILD/tests/fake_cupti/libcupti.so.13 FAKE_CUPTI_2=$PURLIN_BUILD/tests/fake_cupti_2/libcupti.so.13
export PURLIN_CUPTI=$FAKE_CUPTI PURLIN_CUPTI_GRACE_MS=10 FAKE_CUPTI_LOG=$tmp/fake.json
cd "$tmp"

# capture CODE OPTIONS -- MODE…: the program under capture, its report in report.json, its own counts in made.json.
capture() {
  local code=$1 options=()
  shift
  while [ "$1" != -- ]; do options+=("$1"); shift; done
  shift
  rm -f fake.json
  expect_exit "$code" timeout -k 5 300 "$PURLIN" profile --quiet --seal-period 20ms "${options[@]}" -o run.plprof -- "$program" "$@"
  grep '^{"work"' out >made.json || true
  purlin report run.plprof --json >report.json 2>err
}
# holds EXPRESSION: of the report d, kernel counts k, notes n, coverage c, what the program counted m, and CUPTI's log f.
holds() {
  python3 - "$1" <<'PY' || fail "not so: $1"
import json, os, sys
d = json.load(open("report.json"))
k = {}
for row in d["kernels"]:
    k[row["name"]] = k.get(row["name"], 0) + row["count"]
c = d["coverage"]
n = {note["cause"]: note for note in c["notes"]}
n.pop("no_capture_library", None)  # OpenCL's, where that was not built
m = [json.loads(line) for line in open("made.json")]
m = m[0] if len(m) == 1 else m
f = json.load(open("fake.json")) if os.path.exists("fake.json") else {}
if not eval(sys.argv[1]):
    print("kernels", k, "\nnotes", n, "\nmade", m, "\ncupti", f, "\ncoverage", {a: b for a, b in c.items() if a != "notes"}, file=sys.stderr)
    sys.exit(1)
PY
}
# What every case has: no call of CUPTI where it forbids them, every buffer back, its own cost and bytes stated.
sound() { holds 'f["illegal_calls"] == 0 and f["buffers_out"] == 0 and c["overhead_ns"] > 0 and c["bytes_written"] > 0'; }
whole() { sound; holds 'k == {"work": m["work"]} and n == {} and c["launches_seen"] == m["work"] and c["launches_lost"] == 0'; }

# --- every launch, whatever the program does with threads, names and graphs
capture 0 --full -- loop 20000
whole
capture 0 --full -- threads 2000 64
whole
capture 0 --full -- modules 200
sound
holds 'k == {"work": 100, **{f"module_{i}": 500 for i in range(4)}} and n == {}'
capture 0 --full -- graphs 100 20
sound
holds 'k == {"work": 100, "node": 2000} and n == {}'
capture 0 --full -- fork 500
holds 'k == {"work": 1200} and n == {}'  # the parent's 600 and those of the program it exec'ed in a child
capture 0 --full -- fork-early 500
holds 'k == {"work": 500} and n == {}'

# --- ends that leave something out say so
FAKE_CUPTI_LAG=50 capture 0 --full -- loop 1000
whole
FAKE_CUPTI_LAG=50 capture 0 --full -- in-flight 1000
sound
holds 'k == {"work": 1100} and c["launches_lost"] == 0 and list(n) == ["estimated_durations"] and n["estimated_durations"]["count"] == 50'
capture 0 --full -- exec 500
holds '600 <= k["work"] <= 1200 and list(n) == ["ended_without_seal"]'
capture 134 --full -- abort 500
holds 'list(n)[0] == "ended_without_seal" and k.get("work", 0) <= 600'
# killed PERIOD: with kill -9, once what it launched is sealed.
killed() {
  rm -rf ready spool
  mkfifo ready
  mkdir spool
  TMPDIR=$tmp/spool "$PURLIN" profile --quiet --full --seal-period "$1" -o run.plprof -- "$program" hang 500 >ready 2>err &
  purlin_pid=$!
  exec 3<ready
  read -t 120 -r line <&3
  echo "$line" >made.json
  child=$(pgrep -P "$purlin_pid")
  sealed() { grep -qa '"launches_seen":600' spool/purlin-spool*/cuda-"$child"-*.plprof; }
  wait_until 'a seal while the program hangs' sealed
  kill -9 "$child"
  code=0
  wait "$purlin_pid" || code=$?
  exec 3<&-
  [ "$code" = 137 ] || fail "exit code $code of a killed program"
  purlin report run.plprof --json >report.json 2>err
  holds 'k == {"work": 600} and list(n) == ["ended_without_seal"]'
}
killed 20ms
killed 1h  # first launches are sealed soon, whatever the period

# --- the program's own profiler has its records, whenever it comes, and the report says where Purlin was
capture 0 --full -- profiles 50
sound
holds 'm["seen"] == m["profiled"] and m["foreign"] == 0 and list(n) == ["stood_aside", "threads_lost"] and n["stood_aside"]["seconds"] > 0'
holds 'n["threads_lost"]["count"] == c["sampling"]["windows"] - 1'  # as often as it was on again
holds '"profiled" not in k and 100 <= k["work"] <= m["work"]'
capture 0 -- profiles 100
holds 'f["illegal_calls"] == 0 and f["buffers_out"] == 0 and m["seen"] == m["profiled"] and m["foreign"] == 0 and "stood_aside" in n'
capture 0 --full -- profiles-threads 100
holds 'f["illegal_calls"] == 0 and f["buffers_out"] <= 4'  # one that a thread asked for while it was all over
holds 'm["seen"] == m["profiled"] and m["foreign"] == 0 and "profiled" not in k and "stood_aside" in n'
capture 0 --full -- two-copies 500
holds 'm["seen"] == m["profiled"] and m["foreign"] == 0 and k == {"work": m["work"]} and list(n) == ["stood_aside", "threads_lost"]'
capture 0 --full -- two-copies-late 500 200
holds 'm["seen"] == m["profiled"] and m["foreign"] == 0 and k == {"work": m["work"]} and list(n) == ["stood_aside", "threads_lost"]'
capture 0 --full -- finalizes 500
holds 'm["seen"] == m["profiled"] and "cupti_finalized" in n and k["work"] >= 100'
# One that Purlin could not see coming: Purlin leaves it alone from when it finds out, and says so.
capture 0 --full -- resolved-first 500
holds 'list(n)[0] == "client_unseen" and m["seen"] >= 1000 and k.get("profiled", 0) == 0'

# --- a CUPTI that refuses, or is slow: the program does not notice
for function in cuptiActivityRegisterCallbacks cuptiActivityEnable; do
  FAKE_CUPTI_FAIL=$function:15:1:1000 capture 0 --full -- loop 500
  holds 'k == {} and "cupti_refused" in n and m["work"] == 600'
done
FAKE_CUPTI_FAIL=cuptiActivityDisable:15:1:1000 capture 0 --full -- profiles 20
holds 'm["seen"] == m["profiled"]'
FAKE_CUPTI_FAIL=cuptiActivityFlushAll:999:1:1000 capture 0 --full -- loop 500
holds '"flush_refused" in n and k == {} and m["work"] == 600'
for function in cuptiActivityFlushAll cuptiActivityEnable cuptiActivityDisable; do
  FAKE_CUPTI_SLOW=$function:20000 capture 0 --full -- profiles-threads 5
  holds 'm["seen"] == m["profiled"] and m["foreign"] == 0'
done

# --- a CUPTI that is stuck, by how long it takes to be switched off: capture ends, and CUPTI is left alone
rm -f stop fake.json
FAKE_CUPTI_SLOW=cuptiActivityDisable:1000:101:spin "$PURLIN" profile --quiet --seal-period 20ms -o run.plprof -- "$program" mixed 60 stop >out 2>err &
purlin_pid=$!
is_ready() { grep -q ready out; }
wait_until 'the program works' is_ready
python3 - "$(pgrep -P "$purlin_pid")" <<'PY' || { cat out err >&2; fail "a stuck CUPTI"; }
import os, sys
sys.path.insert(0, os.environ["PURLIN_SOURCE"] + "/tests/gpu")
from capture_cycles import Control
control, windows = Control(int(sys.argv[1])), 0
for _ in range(1000):
    answer = control.ask(("stop",), ("window", 3))
    if "error" in answer:
        break
    windows = answer["windows"]
assert "error" in answer and 90 <= windows <= 130, (windows, answer)
PY
touch stop
wait "$purlin_pid" || fail "the program ended with $?"
grep '^{"work"' out >made.json
purlin report run.plprof --json >report.json
holds '"cupti_stuck" in n and k["work"] > 0 and f["calls"]["cuptiActivityEnable"] <= 3 + 130 and f["buffers_out"] == 0'

# --- ten thousand comings and goings: memory stays, and so do the buffers
# --full: governed, Purlin need not come back after each of them, and the program would wait a second for it each time.
PURLIN_CUPTI_GRACE_MS=0 capture 0 --full -- profiles 10000 1
holds 'm["seen"] == m["profiled"] == 10000 and m["foreign"] == 0 and m["rss_kb"][1] - m["rss_kb"][0] < 4096 and f["most_buffers_out"] < 8'
# --- windows by the hundred, governed and asked for, over threads, graphs, modules and the control socket
rm -f fake.json
OUT=$tmp timeout -k 5 300 python3 "$PURLIN_SOURCE/tests/gpu/capture_cycles.py" --purlin "$PURLIN" --program "$program" \
  --cycles 600 --seconds 240 >out 2>err || { cat out err >&2; fail "window cycles"; }
python3 - <<'PY' || { cat fake.json >&2; fail "CUPTI under window cycles"; }
import json
f = json.load(open("fake.json"))
assert f["illegal_calls"] == 0 and f["buffers_out"] == 0 and f["calls"]["cuptiActivityEnable"] >= 600
PY
echo "capture_faults: ok"
