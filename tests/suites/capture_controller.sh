#!/usr/bin/env bash
# Capture of CUDA within a budget, on a fake CUPTI: head, windows and their weights, launch-bound
# programs, runs and ranks sampled, capture on demand.
# labels: profile
# serial
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
export CUDA_INJECTION64_PATH= OPENCL_LAYERS=
unset CUDA_INJECTION64_PATH OPENCL_LAYERS
client=$PURLIN_BUILD/tests/paced_client
[ -x "$client" ] || skip "built without CUDA's headers"
export PURLIN_CUPTI=$PURLIN_BUILD/tests/fake_cupti/libcupti.so.13
cd "$tmp"

report() { purlin report "$1" --json >"$tmp/report.json"; }
notes() { report "$1"; json "$tmp/report.json" "' '.join(n['cause'] for n in d['coverage']['notes'])"; }
made() { sed -n 's/^made \([0-9]*\) launches/\1/p' "$1"; }

# --- flags
for bad in "--budget 0" "--budget 101%" "--budget much" "--window 2s" "--window 60s@2s" "--window 2@60" "--sample 16" \
  "--sample 1/0" "--sample 1/1.5" "--copies some" "--full --window 2s@60s"; do
  # shellcheck disable=SC2086
  expect_exit 2 purlin profile $bad -- true
done
expect_exit 2 purlin capture
expect_exit 2 purlin capture pause 1
expect_exit 2 purlin capture window --for 2h 1
expect_exit 2 purlin capture status nobody
expect_exit 2 purlin capture status $$
expect_contains err "does not run under"

# --- few launches: all of them
expect_exit 0 purlin profile -o few.plprof -- "$client" 1.5 2
report few.plprof
expect_json report.json "d['launches'] == $(made out) == d['coverage']['launches_seen']"
expect_json report.json "d['coverage']['launches_sampled_out'] == 0 and d['coverage']['sampling']['windows'] == 1"
# Waits of the host are expensive to record: --full leaves them out, and the report says so.
expect_json report.json "d['waits'] == [] and d['coverage']['sampling']['waits'] is False"
expect_exit 0 purlin report few.plprof
expect_contains out "waits were not recorded: use purlin profile --waits"
expect_exit 0 purlin profile --full --waits -o waits.plprof -- "$client" 0.2 2
report waits.plprof
expect_json report.json "[(w['kind'], w['count']) for w in d['waits']] == [('context', 1)] and d['coverage']['sampling']['waits'] is True"
expect_exit 0 purlin report few.plprof waits.plprof --json
expect_json out "d['coverage']['sampling']['waits'] is False and len(d['waits']) == 1"

# --- more than the budget bears, where windows leave nothing behind: the head, then windows whose
#     weights add up to what was launched. With a driver, whose last call's id tells where launches
#     ended: without one what followed the last window is guessed from what went before, and on a
#     busy machine that was 9 % off.
FAKE_CUDA=$PURLIN_BUILD/tests/fake_cuda/libcuda.so.1 FAKE_CUPTI_LOG=$tmp/windows.json PURLIN_LASTING_LAUNCH_NS=0 \
  expect_estimate windows.plprof 0.05 purlin profile --windows -o windows.plprof -- "$client" 6 100
total=$(made out)
# CUPTI is not flushed shortly before kinds are enabled: that has crashed programs.
expect_json windows.json "d['flush_to_enabling_us'] >= 5000"
expect_json report.json "d['coverage']['sampling']['windows'] > 1"
expect_json report.json "d['coverage']['sampling']['recorded_ns'] < 0.7 * d['coverage']['sampling']['governed_ns']"
expect_json report.json "d['coverage']['launches_seen'] < 0.7 * $total"
expect_json report.json "d['coverage']['sampling']['counted_windows'] > 0 == d['coverage']['sampling']['timed_windows']"
expect_json report.json "abs(d['launches'] - d['coverage']['launches_seen'] - d['coverage']['launches_sampled_out']) < 1"
expect_json report.json "[k['p50_ns'] for k in d['kernels']][0] == 500 or abs([k['p50_ns'] for k in d['kernels']][0] / 500 - 1) < 0.006"
expect_exit 0 purlin report windows.plprof
expect_contains out "sampled: recording was on for"

# Unless they are asked for there are no windows.
FAKE_CUPTI_LOG=$tmp/head.json PURLIN_LASTING_LAUNCH_NS=0 expect_exit 0 purlin profile -o head.plprof -- "$client" 3 100
[ "$(notes head.plprof)" = "cupti_presence no_windows" ] || fail "notes: $(notes head.plprof)"
expect_json report.json "next(n for n in d['coverage']['notes'] if n['cause'] == 'no_windows')['seconds'] > 1"
expect_json report.json "d['launches'] == d['coverage']['launches_seen'] < $(made out)"
expect_json report.json "d['coverage']['sampling']['windows'] == 1"
expect_json head.json "d['calls']['cuptiActivityEnable'] == 3 and d['calls']['cuptiActivityDisable'] == 1"

# A program that does nothing for the rest of its time has not launched more for that: the latest id
# says so, of a call that is made at the end. (What the last window before the pause stood for is
# known to half a period.)
FAKE_CUDA=$PURLIN_BUILD/tests/fake_cuda/libcuda.so.1 PAUSE_AFTER=3 PURLIN_LASTING_LAUNCH_NS=0 \
  expect_estimate pause.plprof 0.2 purlin profile --windows -o pause.plprof -- "$client" 6 100

# One that ends before a window came after the head says how much is missing.
FAKE_CUDA=$PURLIN_BUILD/tests/fake_cuda/libcuda.so.1 PURLIN_LASTING_LAUNCH_NS=0 \
  expect_estimate early.plprof 0.05 purlin profile --windows -o early.plprof -- "$client" 0.6 100

# --- with a lasting price a launch-bound program has its head only, and the profile says so
expect_exit 0 purlin profile -o bound.plprof -- "$client" 3 100
[ "$(notes bound.plprof)" = "cupti_presence launch_bound" ] || fail "notes: $(notes bound.plprof)"
expect_json report.json "next(n for n in d['coverage']['notes'] if n['cause'] == 'launch_bound')['seconds'] > 1"
expect_json report.json "d['launches'] == d['coverage']['launches_seen'] < $(made out)"
expect_json report.json "d['coverage']['sampling']['windows'] == 1"
# A graph that was made in the head stays instrumented until recording was on once more: that is done
# at once, with an empty window, and windows stand for the rest.
FAKE_CUDA=$PURLIN_BUILD/tests/fake_cuda/libcuda.so.1 FAKE_CUPTI_LOG=$tmp/graphs.json PER_ID=100 \
  expect_estimate graphs.plprof 0.05 purlin profile --windows --budget 2% -o graphs.plprof -- "$client" 6 1 100
[ "$(notes graphs.plprof)" = "" ] || fail "notes: $(notes graphs.plprof)"
expect_json report.json "d['coverage']['launches_seen'] < 0.8 * $(made out)"
enables=$(json "$tmp/graphs.json" "d['calls']['cuptiActivityEnable']")
expect_json report.json "$enables == 1 + d['coverage']['sampling']['windows']"  # of kernels, and of calls for the last id
# Copies are recorded all along: to switch them with each window crashes programs. A driver's call tells where the program ended.
FAKE_CUDA=$PURLIN_BUILD/tests/fake_cuda/libcuda.so.1 PURLIN_LASTING_LAUNCH_NS=0 FAKE_CUPTI_LOG=$tmp/copies.json COPIES=1 \
  expect_estimate copies.plprof 0.1 purlin profile --windows --copies on -o copies.plprof -- "$client" 4 100
expect_json report.json "d['coverage']['sampling']['windows'] > 1"
expect_json report.json "d['coverage']['sampling']['counted_windows'] > d['coverage']['sampling']['timed_windows']"
copies=$(sed -n 's/^made \([0-9]*\) copies/\1/p' out)
expect_json report.json "sum(c['count'] for c in d['copies']) == $copies"
expect_json report.json "$(json "$tmp/copies.json" "d['calls']['cuptiActivityEnable']") == 3 + d['coverage']['sampling']['windows']"
# Copies that are not recorded are no launches: where the program ends within its head nothing is missing.
FAKE_CUDA=$PURLIN_BUILD/tests/fake_cuda/libcuda.so.1 COPIES=1 expect_exit 0 purlin profile --windows -o whole.plprof -- "$client" 0.2 20
[ "$(notes whole.plprof)" = "" ] || fail "notes: $(notes whole.plprof)"
expect_json report.json "d['launches'] == $(made out)"
# So they are where the head is all, at a price that is said; they are switched off only once there have been none for a
# while, and never were on where they are not wanted.
FAKE_CUPTI_LOG=$tmp/copies.json COPIES=1 expect_exit 0 purlin profile -o copies.plprof -- "$client" 3 100
[ "$(notes copies.plprof)" = "copies_stay cupti_presence launch_bound" ] || fail "notes: $(notes copies.plprof)"
expect_json report.json "sum(c['count'] for c in d['copies']) == $(sed -n 's/^made \([0-9]*\) copies/\1/p' out)"
expect_json copies.json "d['calls']['cuptiActivityEnable'] == 3 and d['calls']['cuptiActivityDisable'] == 1"
FAKE_CUPTI_LOG=$tmp/copies.json expect_exit 0 purlin profile -o copies.plprof -- "$client" 5 100
[ "$(notes copies.plprof)" = "cupti_presence launch_bound" ] || fail "notes: $(notes copies.plprof)"
expect_json copies.json "d['calls']['cuptiActivityEnable'] == 3 == d['calls']['cuptiActivityDisable']"
FAKE_CUPTI_LOG=$tmp/copies.json COPIES=1 expect_exit 0 purlin profile --copies off -o copies.plprof -- "$client" 1 100
report copies.plprof
expect_json report.json "d['copies'] == []"
expect_json copies.json "d['calls']['cuptiActivityEnable'] == 1 == d['calls']['cuptiActivityDisable']"
COPIES=1 expect_exit 0 purlin profile --full -o copies.plprof -- "$client" 1 100
[ "$(notes copies.plprof)" = "" ] || fail "notes: $(notes copies.plprof)"
expect_json report.json "sum(c['count'] for c in d['copies']) == $(sed -n 's/^made \([0-9]*\) copies/\1/p' out)"
# Where CUPTI takes more than the budget whatever is recorded, that is said.
expect_exit 0 purlin profile --windows -o presence.plprof -- "$client" 2 4 100
[ "$(notes presence.plprof)" = "cupti_presence" ] || fail "notes: $(notes presence.plprof)"
# So is a graph's price where no windows follow: with one that is empty.
FAKE_CUPTI_LOG=$tmp/graphs.json expect_exit 0 purlin profile --budget 2% -o graphs.plprof -- "$client" 4 1 100
[ "$(notes graphs.plprof)" = no_windows ] || fail "notes: $(notes graphs.plprof)"
[ "$(json "$tmp/graphs.json" "d['calls']['cuptiActivityEnable']")" = 4 ] || fail "a graph that stays instrumented"
# --full is every launch all the same.
expect_exit 0 purlin profile --full -o full.plprof -- "$client" 2 100
[ "$(notes full.plprof)" = "" ] || fail "notes: $(notes full.plprof)"
expect_json report.json "d['launches'] == $(made out)"
expect_json report.json "d['timeline']['activities'] == d['launches']"
# --window: a timeline of parts.
expect_exit 0 purlin profile --window 300ms@1s -o parts.plprof -- "$client" 3 20
report parts.plprof
expect_json report.json "0 < d['timeline']['activities'] < 0.7 * d['launches']"

# A program that keeps its device busy has work in flight whenever CUPTI is asked for records, and
# gives back what a short window brought when the next has begun: their launches still add up.
FAKE_CUDA=$PURLIN_BUILD/tests/fake_cuda/libcuda.so.1 FAKE_CUPTI_CLOCKED=200 PER_ID=20 \
  expect_estimate busy.plprof 0.1 \
  purlin profile --window 10ms@20ms --seal-period 100ms -o busy.plprof -- "${client%paced_client}busy_client" 1 3 20
expect_json report.json "d['coverage']['sampling']['windows'] > 20"

# CUPTI takes as long to end a window as the window lasts, as where it waits for a program on an overloaded machine: what is
# recorded meanwhile counts as recorded (else 1.57 times as many launches). Where calls have ids, too, only time weighs
# windows, and the profile says how well.
FAKE_CUDA=$PURLIN_BUILD/tests/fake_cuda/libcuda.so.1 FAKE_CUPTI_SLOW=cuptiActivityDisable:10000 \
  expect_estimate slow.plprof 0.1 purlin profile --window 10ms@40ms --ops on --seal-period 100ms -o slow.plprof -- "$client" 2 50
expect_json report.json "d['coverage']['sampling']['timed_windows'] > 2 and d['coverage']['sampling']['counted_windows'] == 0"
expect_json report.json "d['coverage']['sampling']['unsure_ns'] > 0.02 * d['kernel_ns'] and d['kernel_ns'] < d['wall_ns']"
expect_exit 0 purlin report slow.plprof
tr -s "\n " " " <out >line
expect_contains line "totals are not well known" "known by time alone"

# --- what the program cannot feel, as it waits for its device, is no cost: 20,000 launches a second
#     are 4.4 % of the host's time, but the device needs 50 us for each, and they are all recorded.
FAKE_CUPTI_CLOCKED=1000 expect_exit 0 purlin profile -o waiting.plprof -- "$client" 5 20 0 50000
[ "$(notes waiting.plprof)" = "" ] || fail "notes: $(notes waiting.plprof)"
expect_json report.json "d['launches'] == d['coverage']['launches_seen'] == $(made out)"
expect_json report.json "d['coverage']['sampling']['windows'] == 1"
expect_json report.json "d['coverage']['sampling']['hidden_ns'] > 0.5 * 2420 * $(made out)"
expect_exit 0 purlin report waiting.plprof
tr -s "\n " " " <out >line  # which lines it is on follows from its figures
expect_contains line "hidden by the program's waits for a device"
# The same launches where the device has time for more.
FAKE_CUPTI_CLOCKED=1000 expect_exit 0 purlin profile -o idling.plprof -- "$client" 5 20 0 20000
case " $(notes idling.plprof) " in *" launch_bound "*) ;; *) fail "notes: $(notes idling.plprof)" ;; esac
expect_json report.json "d['coverage']['sampling']['hidden_ns'] < 0.1 * d['coverage']['overhead_ns']"

# --- one rank in four, the same one in each decision
chosen=
for rank in 0 1 2 3; do
  RANK=$rank PURLIN_RUN_ID=job-17 expect_exit 0 purlin profile --sample 1/4 -o rank.plprof -- "$client" 0.2 2
  case $(notes rank.plprof) in
    *not_sampled*) ;;
    *) chosen="$chosen $rank"; expect_json report.json "d['launches'] == $(made out)" ;;
  esac
done
[ "$(echo $chosen | wc -w)" = 1 ] || fail "chosen ranks: $chosen"
RANK=${chosen# } PURLIN_RUN_ID=job-17 expect_exit 0 purlin profile --sample 1/4 -o rank.plprof -- "$client" 0.2 2
[ "$(notes rank.plprof)" = "" ] || fail "the choice is not the same again"

# --- idle: CUPTI is not even initialised, which alone would cost every launch something
FAKE_CUPTI_LOG=$tmp/idle.json expect_exit 0 purlin profile --idle -o idle.plprof -- "$client" 1.5 2
expect_json idle.json "d['calls'] == {}"
report idle.plprof
expect_json report.json "d['launches'] == 0"

# --- on demand
mkfifo ready
"$PURLIN" profile --idle -o asked.plprof -- "$client" 30 5 >ready 2>err &
purlin_pid=$!
exec 3<ready
read -t 120 -r word <&3
[ "$word" = ready ] || fail "the program did not start"
child=$(pgrep -P "$purlin_pid")
listens() { purlin capture status "$child" >"$tmp/status" 2>"$tmp/status_err"; }
wait_until 'the program listens' listens
expect_contains status "stopped"
expect_exit 0 purlin capture window --for 200ms "$child" --json
expect_json out "d['state'] == 'recording'"
recorded() { purlin capture status --json "$child" >"$tmp/status" && json "$tmp/status" "d['recorded_ns'] >= 2e8 and d['state'] == 'stopped'" | grep -q True; }
wait_until 'a window has been' recorded
# Of several processes each has a line, in the order given; one that cannot be controlled keeps none of the others.
PURLIN_CUPTI=$PURLIN_CUPTI "$PURLIN" profile --idle -o other.plprof -- "$client" 30 5 >other_ready 2>other_err &
other_purlin=$!
other_listens() { other=$(pgrep -P "$other_purlin") && purlin capture status "$other" >/dev/null 2>&1; }
wait_until 'the other program listens' other_listens
expect_exit 0 purlin capture status "$other" "$child" "$other"
[ "$(sed 's/:.*//' out)" = "$other
$child" ] || fail "lines: $(cat out)"
expect_exit 0 purlin capture window --for 300ms "$child" "$other" --json
expect_json out "[(a['pid'], a['state']) for a in d] == [($child, 'recording'), ($other, 'recording')]"
for verb in start stop; do
  expect_exit 2 purlin capture $verb "$child" $$ "$other"
  [ "$(wc -l <out)" = 2 ] && [ "$(wc -l <err)" = 1 ] || fail "$verb: $(cat out err)"
  expect_contains err "process $$ does not run under"
done
expect_exit 2 purlin capture status "$child" $$ "$other" --json
expect_json out "[('error' in a, a.get('state')) for a in d] == [(False, 'stopped'), (True, None), (False, 'stopped')]"
expect_json out "d[1]['pid'] == $$ and 'does not run under' in d[1]['error'] and d[2]['windows'] == 2 <= d[0]['windows']"
# Nothing is asked of the first where another is no process.
expect_exit 2 purlin capture start "$child" nobody
expect_contains err "'nobody' is no process"
expect_exit 0 purlin capture status "$child" --json
expect_json out "d['pid'] == $child and d['state'] == 'stopped'"
kill "$other"
wait "$other_purlin" || true
expect_exit 0 purlin capture start "$child"
expect_contains out "governed"
expect_exit 0 purlin capture stop "$child"
expect_contains out "stopped"
python3 - "$child" <<'END' || fail "nonsense was answered as if it were a request"
import glob, os, socket, sys
environment = open(f"/proc/{sys.argv[1]}/environ").read().split("\0")
spool = next(v for v in environment if v.startswith("PURLIN_SPOOL=")).split("=", 1)[1]
path = f"{spool}/control-{sys.argv[1]}"
assert os.stat(path).st_mode & 0o777 == 0o600
for text in (b"hello", b"x" * 5000, b"purlin-control/1 window 0\n"):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect(path)
    s.send(text)
    assert b"error" in s.recv(4096)
END
kill -9 "$child"
code=0; wait "$purlin_pid" || code=$?
exec 3<&-
[ "$code" = 137 ] || fail "exit code $code of a killed program"
expect_exit 2 purlin capture status "$child"
notes asked.plprof | grep -q asked_window || fail "notes: $(notes asked.plprof)"
expect_json report.json "0 < d['launches'] < 30 * 5000"
expect_json report.json "0 < d['coverage']['sampling']['recorded_ns'] <= d['coverage']['sampling']['governed_ns']"


# begin_program ARGUMENT…: `purlin profile ARGUMENT…` in the background; $child is the program's number, once it listens.
begin_program() {
  "$PURLIN" profile "$@" >"$tmp/program_out" 2>"$tmp/program_err" &
  purlin_pid=$!
  program_listens() { child=$(pgrep -P "$purlin_pid") && listens; }
  wait_until 'the program listens' program_listens
}
end_program() {
  kill "$child"
  code=0; wait "$purlin_pid" || code=$?
  [ "$code" = 0 ] || fail "exit code $code of a program that was ended"
}

# Before the program has a context a window waits for it, and has its whole time then.
FAKE_CUDA=$PURLIN_BUILD/tests/fake_cuda/libcuda.so.1 CONTEXT_AT=$tmp/context begin_program --idle -o waited.plprof -- "$client" 60 5
expect_exit 0 purlin capture window --for 200ms "$child"
expect_contains out "waiting for the program's first CUDA context, a window of 200.000 ms then"
sleep 0.3  # longer than the window, which has not begun
expect_exit 0 purlin capture status "$child" --json
expect_json out "d['state'] == 'waiting' and d['waiting_window_ns'] == 2e8 and d['windows'] == 0"
touch "$tmp/context"
wait_until 'the window has been' recorded
end_program
[ "$(notes waited.plprof)" = asked_window ] || fail "notes: $(notes waited.plprof)"
expect_json report.json "d['launches'] > 0 and d['coverage']['notes'][0]['seconds'] == 0.2"
# One that it never had a context for is noted, too.
CONTEXT_AT=$tmp/never begin_program --idle -o never.plprof -- "$client" 60 5
expect_exit 0 purlin capture window --for 200ms "$child"
end_program
[ "$(notes never.plprof)" = "window_never_began no_launches" ] || fail "notes: $(notes never.plprof)"
expect_json report.json "d['launches'] == 0 and d['coverage']['notes'][0]['seconds'] == 0.2"

# What was on from before the context is not started again without a warning: threads may be lost by that. Not of what
# switches nothing on.
begin_program --full -o again.plprof -- "$client" 60 5
expect_exit 0 purlin capture stop "$child"
[ ! -s err ] || fail "a warning of what is only stopped: $(cat err)"
expect_exit 0 purlin capture start "$child"
expect_contains err "--idle or --windows"
expect_exit 0 purlin capture start "$child"
[ ! -s err ] || fail "a warning of what is on, or will be, already: $(cat err)"
expect_exit 0 purlin capture status "$child" --json
expect_json out "'warning' not in d"
end_program
[ "$(notes again.plprof)" = "started stopped threads_lost" ] || fail "notes: $(notes again.plprof)"
expect_json report.json "next(n for n in d['coverage']['notes'] if n['cause'] == 'threads_lost')['count'] == 1"
expect_json report.json "d['coverage']['sampling']['recorded_ns'] <= d['coverage']['sampling']['governed_ns']"

echo "capture_controller: ok"
