#!/usr/bin/env bash
# The hook that has PyTorch's profiler record some steps of an unmodified program, over a fake torch
# (tests/programs/fake_torch). tests/gpu/torch_hook_gpu.sh has the real one.
# labels: profile
# timeout: 900
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
export CUDA_INJECTION64_PATH= OPENCL_LAYERS=
unset CUDA_INJECTION64_PATH OPENCL_LAYERS TEARDOWN_CUPTI RANK LOCAL_RANK SLURM_PROCID OMPI_COMM_WORLD_RANK PMI_RANK PYTHONHOME
export PYTHONDONTWRITEBYTECODE=1 LOOP=$PURLIN_BUILD/tests/opencl_loop
export PURLIN_TORCH_SETTLE=0.2 PURLIN_TORCH_AFTER=0.05 PURLIN_TORCH_WAIT=0.5 PURLIN_TORCH_SECONDS=0.2
hook=$PURLIN_BUILD/lib/purlin/python
export PYTHONPATH=$PURLIN_SOURCE/tests/programs/fake_torch
loop=$PURLIN_SOURCE/tests/programs/torch_loop.py
cd "$tmp"

report() { purlin report "$1" --by launch --json >"$tmp/report.json"; }
causes() { report "$1"; json "$tmp/report.json" "' '.join(n['cause'] for n in d['coverage']['notes'] if n['cause'].startswith('torch') and n['cause'] != 'torch_step')"; }
is() { [ "$2" = "$3" ] || fail "$1: '$2' where '$3' was expected"; }
notes() { json "$tmp/report.json" "'\n'.join(n['cause'] + ': ' + n['text'] for n in d['coverage']['notes'])"; }
has_note() {  # CAUSE TEXT: of a.plprof
  report a.plprof
  notes | grep "^$1: " | grep -qF -- "$2" || fail "no note $1 with '$2', but: $(notes)"
}
# unchanged CODE MODES…: the program has the same output, errors and exit code with and without Purlin.
unchanged() {
  local code=$1
  shift
  expect_exit "$code" env -u PURLIN_SPOOL "${python:-python3}" "$loop" "$@"
  cp out alone.out && cp err alone.err
  expect_exit "$code" purlin profile ${options:-} --json -o a.plprof -- "${python:-python3}" "$loop" "$@"
  # With --json the program's output is on stderr, before what purlin says.
  cp err both && cp out profile.json
  head -n "$(cat alone.out alone.err | wc -l)" both | sort >seen
  sort alone.out alone.err | diff - seen || fail "the output of the program changed: $*"
}

# --- when steps are steady: their means, as a wait for the device now and then makes one step long
expect_exit 0 python3 - "$PURLIN_SOURCE/python/purlin_hook" <<'PY'
import sys
sys.path.insert(0, sys.argv[1])
from purlin_torch.window import Steps

def first_steady(durations_ms, settle_s=0.05):
    steps, now = Steps(settle_s), 0
    for number, each in enumerate(durations_ms):
        steps.mark(now)
        if steps.steady():
            return number
        now += each * 1_000_000
    return None

assert first_steady([10] * 50) == 11
assert first_steady(([1] * 7 + [73]) * 6) < 40
assert first_steady([100] * 8 + [10] * 60) == 20, "a warm-up"
assert first_steady([1000 * 0.8 ** n for n in range(60)]) is None
assert first_steady([1 + n % 50 * 100 for n in range(300)]) is not None, "after 200 steps or 30 s"
assert first_steady([10] * 50, settle_s=0.3) == 30

from purlin_torch.window import CaptureAnswer, records_to_the_end

# --- what decides about CUPTI after the trace where Purlin's capture does not answer in time
asked = CaptureAnswer("/nowhere")
asked.ask()
assert asked.done and not asked.keeps_cupti
assert not records_to_the_end({"PURLIN_FULL": "0", "PURLIN_WINDOWS": "auto", "PURLIN_STALLS": "0"}.get)
for name, value in {"FULL": "1", "WINDOWS": "on", "WINDOW": "1@7", "STALLS": "5", "COUNTERS": "memory"}.items():
    assert records_to_the_end({"PURLIN_" + name: value}.get), name
# --- a trace by time is as short as its launches are many
assert asked.length_s(1) == 1 and asked.steps(10, 50_000_000) == 10
asked.records_per_s = 40_000
assert asked.length_s(1) == 0.25 and asked.length_s(0.2) == 0.2
assert [asked.steps(10, each) for each in (20_000_000, 50_000_000, 1_000_000_000)] == [10, 5, 3]
assert asked.steps(2, 1_000_000_000) == 2
asked.records_per_s = 1e6
assert asked.length_s(1) == 0.1

from threading import Event
from types import SimpleNamespace
from purlin_torch.window import StepsAfter, typical

assert typical([]) == 0 and typical([7]) == 7
assert typical(([1] * 9 + [31]) * 6) == 4, "a long step in ten is a part of it"
assert typical([10] * 95 + [5000] * 3) == 10, "a pause is not"
written = Event()
after, now = StepsAfter(SimpleNamespace(written=written), 0.05), 0
def steps(count, each_ms):
    global now
    done = False
    for _ in range(count):
        now += each_ms * 1_000_000
        done = after.mark(now)
    return done
assert not steps(50, 30) and after.typical() == 0, "while the trace is saved"
written.set()
assert not steps(8, 10) and after.typical() == 0, "too few"
assert not steps(20, 10) and after.typical() == 10_000_000
assert steps(400, 10)
PY

# --- a training loop: ops, shapes and steps from the trace, totals from the run
unchanged 0 launch wait
is "notes" "$(causes a.plprof)" "torch_trace torch_split torch_trace_only"
rows="{k['shape']: k for k in d['kernels'] if k['name'] == 'scale' and k['op'] == 'aten::mm' and k['dtype'] == 'bf16'}"
expect_json report.json "sorted($rows) == ['M=8,N=16,K=100', 'M=8,N=16,K=300']"
expect_json report.json "all(abs(k['count'] - 50) < 1e-6 for k in $rows.values())"
expect_json report.json "abs($rows['M=8,N=16,K=300']['total_ns'] / $rows['M=8,N=16,K=100']['total_ns'] - 3) < 0.05"
expect_json report.json "abs(sum(k['count'] for k in d['kernels'] if k['name'] == 'scale') - 100) < 1e-6"
expect_json report.json "any(k['name'] == 'only_in_trace' and k['op'] == 'aten::relu' for k in d['kernels'])"
# All of them: on a busy machine a first step may be long, which the steady phase leaves out.
purlin report a.plprof --phase all --json >all.json
expect_json all.json "len(d['timeline']['steps']) == 10 and d['timeline']['steps_from'] == 'ranges'"
expect_json report.json "d['coverage']['overhead_ns'] > 0 and d['source'] == 'purlin'"
has_note torch_trace "recorded 10 steps ("
has_note torch_step "a step took"
has_note torch_trace " more of the program"
has_note torch_trace_only "1 kernel"

# --- the report's step is one after the trace, when nothing slows it down
unchanged 0 after
has_note torch_step "after it ("
expect_json report.json "0 < d['coverage']['step_ns'] < 1e9"

# --- the data flow of steps after the trace, by an observer that prints warnings where it may
cp -r "$PYTHONPATH" flow_torch
mkdir flow_torch/torch/lib
echo 'int FLAGS_caffe2_log_level = 1;' | ${CC:-cc} -shared -fPIC -x c - -o flow_torch/torch/lib/libc10.so
flowing() { PYTHONPATH=$tmp/flow_torch unchanged 0 "$@"; }
flowing flow
grep -aq '"data_flow":{"steps":3,"ops":4,"same_data":false' a.plprof || { report a.plprof; fail "no data flow in the profile: $(notes)"; }
grep -aq '"kind":"unread","op":"aten::mm","ordinal":0,"count":2' a.plprof || fail "the product that no op reads is no fact"
has_note torch_trace "recorded 10 steps"
flowing flow_of_longer_steps
grep -aq '"data_flow":{"steps":3,"ops":4,' a.plprof || { report a.plprof; fail "the last step's ops are not found: $(notes)"; }
FAKE_TORCH_LAYOUT=sparse_csr flowing flow
has_note data_flow_unknown "a tensor without strides"
flowing flow_fork
has_note data_flow_unknown "the program forked"
flowing own_observer
has_note data_flow_unknown "an execution trace of its own"
unchanged 0 flow
has_note data_flow_unknown "would print a warning"
# Without an optimizer it is recorded by time: the steps are what comes again.
flowing infer_flow
grep -aq '"sequence_ops":3,' a.plprof || fail "no steps in the data flow of a program without an optimizer"
FAKE_TORCH_OPS=other_thread flowing infer_flow
has_note data_flow_unknown "another thread than the main one"

# --- exit codes, signals, an end within the window
unchanged 7 wait exit7
unchanged 143 wait term
unchanged 0 open
FAKE_TORCH_FAULT=signal unchanged 0 interrupted

# --- without optimizer steps a thread records for a time
unchanged 0 launch infer
is "notes" "$(causes a.plprof)" "torch_trace torch_split torch_trace_only"
expect_json report.json "any(k['name'] == 'scale' and k['shape'] == 'M=8,N=16,K=300' for k in d['kernels'])"
# What a program does while it loads its model is not its steady state; nor is what comes before the
# first step of one that has an optimizer.
unchanged 0 load infer
has_note torch_trace "recorded 20"
expect_json report.json "any(k['op'] == 'aten::mm' for k in d['kernels'])"
unchanged 0 late
has_note torch_trace "recorded 10 steps"
FAKE_TORCH_OLD=1 unchanged 0 infer_note
has_note torch_no_trace "cannot record all threads"

# --- CUPTI is left once, at the end of the one trace: none is begun while nothing computes, nor in
# a pause of the steps, nor after a first step that compiles; none of steps follows one by time
unchanged 0 load_and_infer teardowns
has_note torch_trace "recorded 20"
unchanged 0 pause wait teardowns
has_note torch_trace "recorded 10 steps"
unchanged 0 infer teardowns

unchanged 0 thread
is "notes" "$(causes a.plprof)" "torch_trace torch_trace_only"

# --- a CUDA graph that is being captured is left alone
unchanged 0 capture wait
expect_contains alone.out "broken False"
unchanged 0 capture infer

# --- the program's own profiler has priority, before and while Purlin's is on
unchanged 0 held
has_note torch_no_trace "its own profiler"
unchanged 0 open own
has_note torch_no_trace "its own profiler"

# --- faults of the profiler are not the program's
for fault in start step stop export; do
  FAKE_TORCH_FAULT=$fault unchanged 0 note
  has_note torch_no_trace "made-up fault of $fault"
done
FAKE_TORCH_FAULT=stop FAKE_TORCH_FAULT_TEXT="inserted.second INTERNAL ASSERT FAILED at collection.cpp:1152" unchanged 0 note
has_note torch_no_trace "pytorch#184792): run again"
FAKE_TORCH_FAULT=stop unchanged 0 infer_note
has_note torch_no_trace "made-up fault of stop"

# --- processes: a forked child records nothing, spawned ones have one trace together
unchanged 0 wait fork
is "notes" "$(causes a.plprof)" "torch_trace torch_trace_only"
unchanged 0 open fork
unchanged 0 spawn
is "notes" "$(causes a.plprof)" "torch_trace torch_trace_only"
RANK=1 unchanged 0 cuda note
has_note torch_no_trace "not the rank that is traced"
# Its CUPTI is shut down too, unless its capture goes on: the slowest rank sets the pace of all.
for what in rank_leaves rank_stays infer_rank_leaves infer_rank_stays; do
  RANK=1 unchanged 0 $what
  has_note torch_no_trace "not the rank that is traced"
done
RANK=1 options="--torch-rank 1" unchanged 0 wait
is "notes" "$(causes a.plprof)" "torch_trace torch_trace_only"

# --- the environment is the program's: sys.path, an existing sitecustomize, TEARDOWN_CUPTI, a venv
unchanged 0 path wait teardown path
TEARDOWN_CUPTI=0 unchanged 0 teardown wait teardown
# CUPTI is torn down after the trace unless Purlin's own capture goes on with it.
unchanged 0 recording
unchanged 0 ended
# So it is in a process that inherits the variable from one with a hook, such as a rank of torchrun.
TEARDOWN_CUPTI=1 PURLIN_TORCH_TEARDOWN=1 unchanged 0 recording
mkdir site
cat >site/sitecustomize.py <<'PY'
import sys
print("site", __name__, __file__, [p for p in sys.path if "lib/purlin/python" in p], flush=True)
PY
PYTHONPATH=$PWD/site:$PYTHONPATH unchanged 0 wait
expect_contains both "site sitecustomize $PWD/site/sitecustomize.py []"
echo 'raise ValueError("of the site")' >site/sitecustomize.py
PYTHONPATH=$PWD/site:$PYTHONPATH unchanged 0 wait
expect_contains both "ValueError: of the site"
echo 'import missing_module' >site/sitecustomize.py
PYTHONPATH=$PWD/site:$PYTHONPATH unchanged 0 wait
expect_contains both "No module named 'missing_module'"
python3 -m venv --without-pip venv
python=$PWD/venv/bin/python3 unchanged 0 wait
is "notes" "$(causes a.plprof)" "torch_trace torch_trace_only"

# --- without torch nothing happens; -I, -E and -S leave the hook out, which is said
expect_exit 0 purlin profile -o a.plprof -- python3 -c 'import sys; print("_purlin_torch" in sys.modules)'
expect_contains out False
is "notes" "$(causes a.plprof)" ""
for option in -I -sE -S; do
  expect_exit 0 purlin profile -o a.plprof -- python3 "$option" -c 'print(1)'
  has_note torch_no_hook "started with $option"
done
expect_exit 0 purlin profile -o a.plprof -- python3 -c 'print("-I")' -I
is "notes" "$(causes a.plprof)" ""
unchanged 0 some
has_note torch_no_trace "after 9 optimizer steps"
FAKE_TORCH_CUDA= unchanged 0 some
is "notes" "$(causes a.plprof)" ""

# --- options
for options in "--torch off" --full; do
  unchanged 0 some
  is "notes" "$(causes a.plprof)" ""
done
options="--full --torch hook" unchanged 0 wait
is "notes" "$(causes a.plprof)" "torch_trace torch_trace_only"
options=
expect_exit 2 purlin profile --torch maybe -- true
expect_contains err "--torch 'maybe': give auto, hook, daemon or off"
expect_exit 2 purlin profile --torch-rank -1 -- true

# --- the daemon: a program that speaks as libkineto does
cat >kineto.py <<'PY'
import gzip, os, socket, struct, sys, time

folder = os.environ["KINETO_IPC_SOCKET_DIR"]
ours = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
ours.bind(os.path.join(folder, "client"))
ours.settimeout(60)
assert os.environ["PURLIN_TORCH"] == "off" and len(folder) <= 54
configuration, end = b"", time.time() + 120
while not configuration and time.time() < end:
    payload = struct.pack("<iiqii", 3, 2, 0, os.getpid(), os.getppid())
    ours.sendto(struct.pack("<Q32s", len(payload), b"req") + payload, os.path.join(folder, "dynolog"))
    configuration = ours.recv(4096)[40:]
    time.sleep(0.05)
path = dict(line.split("=", 1) for line in configuration.decode().split())["ACTIVITIES_LOG_FILE"]
with gzip.open(sys.argv[1], "rt") as source, open(path[:-5] + "_%d.json" % os.getpid(), "w") as trace:
    trace.write(source.read())
time.sleep(0.5)
PY
expect_exit 0 purlin profile --torch daemon -o a.plprof -- \
  python3 kineto.py "$PURLIN_SOURCE/tests/data/traces/kineto_h200_transformer.json.gz"
has_note torch_trace "which took an unknown part of the program"
expect_json report.json "any(k['op'].startswith('aten::') for k in d['kernels'])"
KINETO_USE_DAEMON=1 expect_exit 2 purlin profile --torch daemon -- true
expect_contains err "asks another daemon"
expect_exit 2 purlin profile --torch daemon --full -- true
expect_contains err "leave out --full"

# --- a trace on request, of a program with steps and of one without
for mode in done infer_done; do
  rm -f done
  DONE=$PWD/done "$PURLIN" profile --idle -o a.plprof -- python3 "$loop" "$mode" >run.out 2>run.err &
  run=$!
  program() { pid=$(pgrep -P "$run" -f torch_loop.py) && [ -n "$pid" ]; }
  wait_until "the program runs" program
  wait_until "a trace is made" purlin capture window --torch "$pid"
  expect_exit 2 purlin capture window --torch $$ "$pid" --json
  expect_json out "'does not run under' in d[0]['error'] and d[1]['pid'] == $pid and 'error' not in d[1]"
  touch done
  wait "$run" || fail "the program failed under --idle"
  has_note torch_trace "of process $pid"
done
expect_exit 2 purlin capture status --torch $$
expect_contains err "--torch belongs to window"
expect_exit 2 purlin capture window --torch $$
expect_contains err "does not run under"
echo 'torch_hook: all checks passed'
