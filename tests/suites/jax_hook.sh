#!/usr/bin/env bash
# The hook that reads the programs that XLA compiled, over a fake jax (tests/programs/fake_jax).
# labels: profile
# timeout: 600
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
export CUDA_INJECTION64_PATH= OPENCL_LAYERS=
unset CUDA_INJECTION64_PATH OPENCL_LAYERS PYTHONHOME
export PYTHONDONTWRITEBYTECODE=1
export PYTHONPATH=$PURLIN_SOURCE/tests/programs/fake_jax
loop=$PURLIN_SOURCE/tests/programs/jax_loop.py
cd "$tmp"
export LOOP_LIBRARY=$PWD/loop.so
"${CC:-cc}" -shared -fPIC -Dmain=run_loop -o loop.so "$PURLIN_SOURCE/tests/programs/opencl_loop.c" -lOpenCL -lpthread

is() { [ "$2" = "$3" ] || fail "$1: '$2' where '$3' was expected"; }
causes() {
  purlin report a.plprof --phase all --by launch --json >report.json
  json report.json "' '.join(n['cause'] for n in d['coverage']['notes'] if n['cause'].startswith('jax'))"
}
# unchanged CODE MODES…: the program has the same output, errors and exit code with and without Purlin.
unchanged() {
  local code=$1
  shift
  expect_exit "$code" env -u PURLIN_SPOOL python3 "$loop" "$@"
  cp out alone.out && cp err alone.err
  expect_exit "$code" purlin profile ${options:-} --json -o a.plprof -- python3 "$loop" "$@"
  cp err both
  head -n "$(cat alone.out alone.err | wc -l)" both | sort >seen
  sort alone.out alone.err | diff - seen || fail "the output of the program changed: $*"
}
has_ops() {
  expect_json report.json "[(k['op'], k['shape'], k['dtype']) for k in d['kernels'] if k['name'] == 'scale'] == [('jit(step)/mul', 'n=1024,out=1024,read=4096,write=4096', 'f32')]"
  expect_json report.json "[k['op'] for k in d['kernels'] if k['name'] == 'shift'] == ['jit(step)/add']"
}

# --- read at exit, before jax's own clean-up; a program that is killed leaves no texts
unchanged 0 step launch random
is notes "$(causes)" "jax_programs"
has_ops
expect_json report.json "d['coverage']['overhead_ns'] > 0"
expect_json report.json "any('1 program that XLA compiled' in n['text'] for n in d['coverage']['notes'])"
unchanged 137 step launch kill
is notes "$(causes)" ""
FAKE_JAX_FAULT=no_fingerprint unchanged 0 step many
is notes "$(causes)" "jax_programs"
expect_json report.json "any('13 programs that XLA compiled' in n['text'] for n in d['coverage']['notes'])"
# The same program twice is one, with and without a fingerprint.
for fault in none no_fingerprint; do
  FAKE_JAX_FAULT=$fault unchanged 0 step step
  is "notes of one program, $fault" "$(causes)" "jax_programs"
  expect_json report.json "any('1 program that XLA compiled' in n['text'] for n in d['coverage']['notes'])"
done

# --- exit codes, exceptions, fork, spawn, threads, sys.path
unchanged 7 step exit7
unchanged 1 step raise
unchanged 0 threads fork step path
unchanged 0 step fork
is notes "$(causes)" "jax_programs"
expect_json report.json "any('1 program that XLA compiled' in n['text'] for n in d['coverage']['notes'])"
unchanged 0 spawn
is notes "$(causes)" "jax_programs"

# --- faults are not the program's; a slow text ends the look, and is said
for fault in live text; do
  FAKE_JAX_FAULT=$fault unchanged 0 step
  is "notes after $fault" "$(causes)" "jax_no_programs"
done
expect_json report.json "any('made-up fault of a text' in n['text'] for n in d['coverage']['notes'])"
FAKE_JAX_FAULT=slow unchanged 0 many
is notes "$(causes)" "jax_programs_left_out jax_programs"

# --- no device, no jax, no hook
FAKE_JAX_PLATFORM=cpu unchanged 0 step
is notes "$(causes)" ""
expect_exit 0 purlin profile -o a.plprof -- python3 -c 'import sys; print("_purlin_jax" in sys.modules)'
expect_contains out False
for options in "--torch off"; do
  unchanged 0 step
  is notes "$(causes)" ""
done
options=--full unchanged 0 step launch
is notes "$(causes)" "jax_programs"
has_ops

# --- the hook writes to a folder that no other user can write to, and through no link
hook=$PURLIN_BUILD/lib/purlin/python
hooked() { expect_exit 0 env PURLIN_SPOOL="$1" PURLIN_JAX=on PYTHONPATH="$hook:$PYTHONPATH" "${@:2}" python3 "$loop" step; }
files() { find "$1/" -type f | wc -l; }
mkdir -m 700 own && mkdir -m 777 shared && ln -s own linked
hooked "$PWD/own"
is "files in a folder of this user" "$(files own)" 2
is "their modes" "$(find own -name '*.hlo.gz' -perm 600 | wc -l)" 1
# Programs that XLA compiled, and that its cache did not have, while Purlin recorded.
compiled() {
  mkdir -m 700 counted
  expect_exit 0 env PURLIN_SPOOL="$PWD/counted" PURLIN_JAX=on PYTHONPATH="$hook:$PYTHONPATH" "$@" python3 "$loop" many
  is "compiled programs with $*" "$(python3 -c 'import glob, json; print(json.load(open(glob.glob("counted/*.note")[0]))["compiled"])')" "$expected"
  rm -r counted
}
expected=12 compiled A=1
expected=0 compiled FAKE_JAX_CACHE=1
expected=0 compiled PURLIN_IDLE=1
for folder in shared linked gone; do
  hooked "$PWD/$folder"
  is "files in $folder" "$(find "$folder/" -type f 2>/dev/null | wc -l)" "$([ $folder = linked ] && echo 2 || echo 0)"
done
if [ "$(id -u)" = 0 ]; then
  mkdir -m 700 another && chown 65534 another
  hooked "$PWD/another"
  is "files in a folder of another user" "$(files another)" 0
fi
# shellcheck disable=SC2016  # the inner shell expands it
hooked "$PWD/own" sh -c 'ln -s "$PWD/elsewhere" "own/jax-$$.hlo.gz"; exec "$@"' sh
[ ! -e elsewhere ] || fail "the hook writes through a link"
