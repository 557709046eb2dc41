#!/usr/bin/env bash
# `purlin profile` on real programs: OpenCL through the layer (PoCL), CUDA through a fake CUPTI.
# labels: opencl profile
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
export CUDA_INJECTION64_PATH= OPENCL_LAYERS=
unset CUDA_INJECTION64_PATH OPENCL_LAYERS
loop=$PURLIN_BUILD/tests/opencl_loop
libraries=$PURLIN_BUILD/lib/purlin
cd "$tmp"

report() { purlin report "$1" --json >"$tmp/report.json"; }
# launches FILE KERNEL: how many the report counts.
launches() { report "$1"; json "$tmp/report.json" "int(sum(k['count'] for k in d['kernels'] if k['name'] == '$2'))"; }
is() { [ "$2" = "$3" ] || { cat "$tmp/report.json" >&2; fail "$1: $2 where $3 was expected"; }; }
notes() { report "$1"; json "$tmp/report.json" "' '.join(n['cause'] for n in d['coverage']['notes'])"; }

# --- the libraries are fit to live in another's process
for library in "$libraries"/libpurlin_*.so; do
  needed=$(readelf -d "$library" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | grep -vE '^(libc\.so\.6|libm\.so\.6|ld-linux.*)$' || true)
  [ -z "$needed" ] || fail "$(basename "$library") needs $needed"
  newest=$(nm -D "$library" | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -1)
  [ "$(printf '%s\nGLIBC_2.35\n' "$newest" | sort -V | tail -1)" = GLIBC_2.35 ] || fail "$(basename "$library") needs $newest"
  exported=$(nm -D --defined-only "$library" | awk '{print $3}' | sort | tr '\n' ' ')
  case $(basename "$library") in
    libpurlin_cuda.so) is "exports" "$exported" "InitializeInjection InitializeInjectionNvtx2 " ;;
    libpurlin_opencl.so) is "exports" "$exported" "clGetLayerInfo clInitLayer " ;;
  esac
done

# --- counts are exact; the program is not changed
expect_exit 0 purlin profile -o a.plprof -- "$loop" launches 1000
is "launches" "$(launches a.plprof scale)" 1000
is "launches without a local size" "$(launches a.plprof shift)" 1
is "notes" "$(notes a.plprof)" ""
expect_exit 0 purlin profile --counters --idle --ops on -o a.plprof -- "$loop" launches 10
is "notes" "$(notes a.plprof)" "cuda_only"
expect_json "$tmp/report.json" "d['coverage']['notes'][0]['text'].startswith('--counters, --idle, --ops on: ')"
expect_exit 7 purlin profile -o a.plprof -- "$loop" launches 500 threads 8 unordered then exit 7
is "launches of 8 threads" "$(launches a.plprof scale)" 4000
expect_exit 0 purlin profile -o a.plprof -- "$loop" queries
expect_contains out "profiling bit 0, profiling info not available"
expect_exit 0 purlin profile --full -o full.plprof -- "$loop" launches 20000
is "launches" "$(launches full.plprof scale)" 20000
expect_json "$tmp/report.json" "d['timeline']['activities'] == sum(r['count'] for r in d['kernels'] + d['copies'])"
expect_json "$tmp/report.json" "d['timeline']['overlap']['copy_ns'] == sum(c['total_ns'] for c in d['copies']) > 0"
[ "$(stat -c %s full.plprof)" -le $((20001 * 12 + 20000)) ] || fail "more than 12 bytes a launch: $(stat -c %s full.plprof)"

# --- several processes, fork, exec, crashes
expect_exit 0 purlin profile -o a.plprof -- sh -c "'$loop' launches 100 & '$loop' launches 200; wait"
is "two processes" "$(launches a.plprof scale)" 300
expect_exit 0 purlin profile -o a.plprof -- "$loop" launches 150 then fork
is "parent and forked child" "$(launches a.plprof scale)" 300
expect_exit 0 purlin profile -o a.plprof -- "$loop" launches 50 then fork-after
is "a child without use for the device" "$(launches a.plprof scale)" 50
expect_exit 0 purlin profile -o a.plprof -- "$loop" launches 10 then exec "$loop" launches 30
[ "$(launches a.plprof scale)" -ge 30 ] || fail "the program exec'ed into was not captured"
expect_exit 134 purlin profile -o a.plprof -- "$loop" launches 10 then abort
notes a.plprof | grep -q ended_without_seal || fail "an aborted program must be noted"

# A program that closes what it does not know of, and opens a file of its own in the place.
TMPDIR=$tmp expect_exit 0 purlin profile --seal-period 10ms -o a.plprof -- "$loop" launches 60 then usurp mine.txt
is "launches of a program that closed our file" "$(launches a.plprof scale)" 120
is "the program's own file" "$(cat mine.txt)" "mine"
# One inside another capture; one that closes its OpenCL.
expect_exit 0 purlin profile -o outer.plprof -- "$PURLIN" profile -o a.plprof -- "$loop" launches 20
is "launches of a capture in a capture" "$(launches a.plprof scale)" 20
OPENCL_LAYERS=$libraries/libpurlin_opencl.so:$libraries/libpurlin_opencl.so \
  expect_exit 0 purlin profile -o a.plprof -- "$loop" launches 20
is "launches with the layer named twice" "$(launches a.plprof scale)" 20
expect_exit 0 purlin profile --seal-period 10ms -o a.plprof -- python3 -c '
import _ctypes, ctypes, time
cl = ctypes.CDLL("libOpenCL.so.1")
for name in ("clCreateContext", "clCreateCommandQueue", "clCreateBuffer"):
    getattr(cl, name).restype = ctypes.c_void_p
p, d, n = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint(7)
cl.clGetPlatformIDs(1, ctypes.byref(p), None)
cl.clGetDeviceIDs(p, ctypes.c_ulong(0xffffffff), 1, ctypes.byref(d), None)
c = ctypes.c_void_p(cl.clCreateContext(None, 1, ctypes.byref(d), None, None, None))
q = ctypes.c_void_p(cl.clCreateCommandQueue(c, d, ctypes.c_ulong(0), None))
b = ctypes.c_void_p(cl.clCreateBuffer(c, ctypes.c_ulong(1), ctypes.c_size_t(4096), None, None))
assert cl.clEnqueueFillBuffer(q, b, ctypes.byref(n), ctypes.c_size_t(4), ctypes.c_size_t(0), ctypes.c_size_t(4096), 0, None, None) == 0
cl.clFinish(q)
_ctypes.dlclose(cl._handle)
time.sleep(0.05)'
report a.plprof
expect_json report.json "[c['count'] for c in d['copies'] if c['kind'] == 'fill'] == [1]"

# kill -9: everything up to the last seal. The program says when its launches are done; the file of
# its process then grows once more.
mkfifo ready
mkdir spools
TMPDIR=$tmp/spools "$PURLIN" profile --seal-period 20ms -o killed.plprof -- "$loop" launches 3000 then hang >ready 2>err &
purlin_pid=$!
exec 3<ready  # kept open: the report will be written to it too
read -t 120 -r word <&3
[ "$word" = ready ] || fail "the program did not start"
child=$(pgrep -P "$purlin_pid")
sealed() { grep -qa '"launches_seen":3001' spools/purlin-spool*/opencl-"$child"-*.plprof; }
wait_until 'a seal while the program runs' sealed
kill -9 "$child"
code=0; wait "$purlin_pid" || code=$?
[ "$code" = 137 ] || cat err >&2
exec 3<&-
is "exit code of a killed program" "$code" 137
is "launches of a killed program" "$(launches killed.plprof scale)" 3000
notes killed.plprof | grep -q ended_without_seal || fail "a killed program must be noted"
[ -z "$(ls spools)" ] || fail "the spool was left behind"

# --- signals: SIGTERM is handed on; what comes after still happens
mkfifo ready2
"$PURLIN" profile -o a.plprof -- sh -c 'trap "echo got it; exit 3" TERM; echo ready; while :; do sleep 0.05; done' >ready2 2>err &
purlin_pid=$!
exec 3<ready2
read -t 120 -r word <&3
kill -TERM "$purlin_pid"
read -t 120 -r word <&3
is "answer to SIGTERM" "$word" "got it"
code=0; wait "$purlin_pid" || code=$?
exec 3<&-
is "exit code after SIGTERM" "$code" 3
is "notes" "$(notes a.plprof)" no_gpu_use

# --- what the user set stays; nothing to see is explained
# The build's label goes to the processes: a collector reads their captures.
CUDA_INJECTION64_PATH=/other/tool.so expect_exit 0 purlin profile --build v9 -o a.plprof -- sh -c 'echo "$CUDA_INJECTION64_PATH $PURLIN_BUILD_LABEL"'
expect_contains out '/other/tool.so v9'
is "notes" "$(notes a.plprof)" "cuda_injection_taken no_gpu_use"
mkdir tools
printf '#!/bin/sh\necho "injected: $CUDA_INJECTION64_PATH"\n' >tools/ncu
chmod +x tools/ncu
expect_exit 0 purlin profile -o a.plprof -- tools/ncu ./program
is "what Nsight Compute gets" "$(head -1 out)" "injected: "
is "notes" "$(notes a.plprof)" "nsight_compute no_gpu_use"
NV_COMPUTE_PROFILER_PERFWORKS_DIR=/opt expect_exit 0 purlin profile -o a.plprof -- sh -c 'echo "injected: $CUDA_INJECTION64_PATH"'
is "what a program under Nsight Compute gets" "$(head -1 out)" "injected: "
expect_exit 2 purlin profile -o a2.plprof -- "$tmp/no-such-program"
expect_contains err "command not found" "$tmp/no-such-program"
[ ! -e a2.plprof ] || fail "a profile was written for a program that never ran"
expect_exit 2 purlin profile -o "$tmp/absent/a.plprof" -- true
expect_exit 2 purlin profile -o "$tmp" -- true
expect_contains err "is a folder"
mkdir vanishing
TMPDIR=$tmp expect_exit 2 purlin profile -o vanishing/a.plprof -- rmdir vanishing
expect_contains err "the profile is kept in" "$tmp/purlin-profile"
expect_exit 2 purlin profile --seal-period nonsense -- true
expect_exit 2 purlin profile

# --- a spool that cannot be written: nothing recorded is never success
for unfit in "$tmp/absent" /dev/null; do
  TMPDIR=$unfit expect_exit 2 purlin profile -o a2.plprof -- touch started
  expect_contains err "$unfit" "set TMPDIR"
  TMPDIR=$unfit expect_exit 0 purlin doctor --json
  expect_json out "[(c['state'], bool(c['fix'])) for c in d['capabilities'] if c['id'] == 'spool'] == [('missing', True)]"
done
expect_exit 2 bash -c "trap '' XFSZ; ulimit -f 1; exec '$PURLIN' profile -o a2.plprof -- touch started"
expect_contains err "the command was not started" "set TMPDIR"
if mkdir full && mount -t tmpfs -o size=32k none full 2>err; then
  TMPDIR=$tmp/full expect_exit 2 purlin profile -o a2.plprof -- touch started
  expect_contains err "the command was not started" "No space left on device"
  umount full
else
  echo "left out: a full tmpfs, since this user may not mount one"
fi
[ ! -e started ] || fail "a command was started that could not be recorded"
for breaks in 'rm -rf "$PURLIN_SPOOL"; touch "$PURLIN_SPOOL"' 'rm -rf "$PURLIN_SPOOL"'; do
  expect_exit 2 purlin profile -o a2.plprof -- sh -c "$breaks; exec '$loop' launches 20 >/dev/null"
  expect_contains err "nothing was recorded"
done
[ ! -e a2.plprof ] || fail "a profile was written of nothing"
# A relative TMPDIR is that of the launcher, wherever the program goes.
TMPDIR=. expect_exit 0 purlin profile -o a.plprof -- sh -c "cd /; exec '$loop' launches 20"
is "launches with a relative TMPDIR" "$(launches a.plprof scale)" 20

# --- labels, and a folder that processes wrote to without a launcher
mkdir left
for job in 1 2; do
  SLURM_JOB_ID=471$job SLURM_STEP_ID=0 OPENCL_LAYERS=$libraries/libpurlin_opencl.so PURLIN_SPOOL=$tmp/left "$loop" launches 20 >/dev/null
done
report left
is "launches of a spool" "$(launches left scale)" 40
expect_json report.json "[r['job'] for r in d['runs']] == ['4711.0', '4712.0'] and all(r['host'] and r['user'] for r in d['runs'])"
expect_exit 0 purlin report left
expect_contains out "slurm job 4711.0" "host $(uname -n)"
for i in $(seq 1000); do echo nothing >"left/opencl-$i-1.plprof"; done
expect_exit 0 purlin report left
expect_contains out "and 999 more notes of this kind"
[ "$(grep -c unreadable_process_file out)" = 1 ] || fail "a thousand alike notes must be one"
for i in $(seq 20); do head -c -40 full.plprof >"cut$i.plprof"; done
expect_exit 0 purlin report cut*.plprof
is "warnings about 20 files" "$(grep -c warning err)" 2
expect_contains err "cut1.plprof" "and 17 more"
SLURM_JOB_ID=4711 expect_exit 0 purlin profile --anonymous -o a.plprof -- "$loop" launches 20
report a.plprof
expect_json report.json "d['runs'] == [] and d['command'] == 'opencl_loop' and d['processes'][0]['labels'] == {} and d['processes'][0]['command'] == 'opencl_loop'"
grep -qaF -e "$(uname -n)" -e 4711 -e "$PURLIN_BUILD" a.plprof && fail "an anonymous profile names the host, the job or a folder"

# --- damaged files
head -c 100 full.plprof >cut.plprof
expect_exit 2 purlin report cut.plprof
expect_contains err cut.plprof
head -c $(($(stat -c %s full.plprof) - 10)) full.plprof >cut.plprof
expect_exit 0 purlin report cut.plprof
expect_contains out "PARTIAL PROFILE" scale
is "launches of a profile that was cut short" "$(launches cut.plprof scale)" 20000
echo '{}' >other.plprof
expect_exit 2 purlin report other.plprof
expect_contains err "other.plprof" "supported: Purlin profiles"

# --- CUDA, with a CUPTI that needs no GPU: the program's own profiler sees all its launches, Purlin
#     the others, whether the program links CUPTI or opens it
if [ -x "$PURLIN_BUILD/tests/cupti_client_linked" ]; then
  export PURLIN_CUPTI=$PURLIN_BUILD/tests/fake_cupti/libcupti.so.13 PURLIN_CUPTI_GRACE_MS=50
  for kind in linked opened; do
    client=$PURLIN_BUILD/tests/cupti_client_$kind
    expect_exit 0 purlin profile -o cuda.plprof -- "$client" 10000 0 0
    is "CUDA launches" "$(launches cuda.plprof train_step)" 10000
    is "notes" "$(notes cuda.plprof)" ""
    expect_exit 0 purlin profile --seal-period 20ms -o cuda.plprof -- "$client" 1000 100 500
    expect_contains out "own profiler saw 100 of 100 launches, 0 foreign buffers"
    is "CUDA launches around another profiler" "$(launches cuda.plprof train_step)" 1500
    is "notes" "$(notes cuda.plprof)" "stood_aside threads_lost"
    expect_json report.json "next(n for n in d['coverage']['notes'])['seconds'] > 0.04"
  done
  # A program that may not write to files.
  client=$PURLIN_BUILD/tests/cupti_client_linked
  expect_exit 2 purlin profile -o cuda.plprof -- sh -c "ulimit -f 0; exec '$client' 10 0 0 >/dev/null"
  expect_contains err "nothing was recorded" "(cuda: File too large)" "ended with exit code 0"
  # One of two.
  expect_exit 0 purlin profile -o cuda.plprof -- sh -c "'$client' 10 0 0 >/dev/null; ulimit -f 0; exec '$client' 30 0 0 >/dev/null"
  expect_contains err "not recorded: 1 process could not write to the spool"
  is "launches of the process that could write" "$(launches cuda.plprof train_step)" 10
  notes cuda.plprof 2>/dev/null | grep -q spool_failed || fail "a process that could not write must be noted"
  # A profiler with a clock of its own: Purlin's pending records are flushed first, its later ones
  # are in nanoseconds again, and each run of the profiler has its ticks.
  for kind in linked opened; do
    client=$PURLIN_BUILD/tests/cupti_client_$kind
    expect_exit 0 purlin profile --seal-period 20ms -o cuda.plprof -- "$client" 1000 100 500 clock twice
    expect_contains out "own profiler saw 200 of 200 launches, 0 foreign buffers, 0 wrong times"
    is "CUDA launches around a clock" "$(launches cuda.plprof train_step)" 1500
    expect_json report.json "[(k['min_ns'], k['max_ns']) for k in d['kernels']] == [(5000, 5000)]"
    is "notes" "$(notes cuda.plprof)" "stood_aside threads_lost"
    # One that enables a context's kernels before it registers; one that shuts CUPTI down and returns.
    expect_exit 0 purlin profile --seal-period 20ms -o cuda.plprof -- "$client" 1000 100 500 early twice
    is "CUDA launches around an early client" "$(launches cuda.plprof train_step)" 1500
    expect_exit 0 purlin profile --seal-period 20ms -o cuda.plprof -- "$client" 1000 100 500 finalize twice
    expect_contains out "own profiler saw 200 of 200 launches, 0 foreign buffers"
    is "CUDA launches before CUPTI was shut down" "$(launches cuda.plprof train_step)" 1000
    is "notes" "$(notes cuda.plprof)" "cupti_finalized stood_aside"
  done
  PURLIN_CUPTI=/nonexistent expect_exit 0 "$PURLIN_BUILD/tests/cupti_client_linked" 10 10 0
fi
echo "profile: ok"
