#!/usr/bin/env bash
# capture_coexist_gpu.sh DIR: other tools in, around and under `purlin profile` on a real GPU. Each has to work as it
# does without Purlin, and the profile has to say that Purlin stood aside: PyTorch's and JAX's profilers, Nsight
# Compute, compute-sanitizer, a program with two copies of libcupti. What is not installed is skipped, and said.
# OUT, if set, gets coexist.json.
set -uo pipefail
where=$(cd "$1" && pwd)
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export PATH=$where/bin:$PATH
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"
failed=0
rows=()
row() {  # NAME ok|FAILED|skipped TEXT
  printf '%-8s %-40s %s\n' "$2" "$1" "$3"
  [ "$2" = FAILED ] && failed=$((failed + 1))
  rows+=("$(python3 -c 'import json,sys; print(json.dumps(dict(zip(("case", "result", "text"), sys.argv[1:]))))' "$1" "$2" "$3")")
}
# notes FILE: causes of its coverage notes with their seconds; launches FILE.
notes() { purlin report "$1" --json 2>/dev/null | python3 -c 'import json,sys; print(" ".join("%s=%.1fs" % (n["cause"], n["seconds"]) for n in json.load(sys.stdin)["coverage"]["notes"]) or "-")'; }
launches() { purlin report "$1" --json 2>/dev/null | python3 -c 'import json,sys; print(int(sum(k["count"] for k in json.load(sys.stdin)["kernels"])))'; }
judge() {  # NAME CONDITION TEXT
  if eval "$2"; then row "$1" ok "$3"; else row "$1" FAILED "$3"; tail -n 3 ./*.log ./*/log 2>/dev/null | cut -c1-200 | tail -n 30; fi
}

# --- PyTorch's and JAX's profilers, all at once: nothing here is timed
start() {  # LABEL OPTIONS COMMAND…: in a folder of its own; "-" = without Purlin
  local folder=$tmp/$1 options=$2
  shift 2
  mkdir -p "$folder"
  (
    cd "$folder" || exit 1
    if [ "$options" = - ]; then
      timeout 120 "$@" >log 2>&1
    else
      timeout 120 purlin profile --quiet $options -o run.plprof -- "$@" >log 2>&1
    fi
    echo $? >code
  ) &
}
torch=no jax=no
python3 -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null && torch=yes
python3 -c 'import importlib.util,sys; sys.exit(importlib.util.find_spec("jax") is None)' 2>/dev/null && jax=yes
if [ $torch = yes ]; then
  for mode in own middle often; do
    start torch-$mode-alone - python3 "$here/profile_pytorch.py" $mode 30 counts.json
    start torch-$mode-default "" python3 "$here/profile_pytorch.py" $mode 30 counts.json
    start torch-$mode-full --full python3 "$here/profile_pytorch.py" $mode 30 counts.json
  done
else
  row "torch.profiler" skipped "no PyTorch with CUDA"
fi
if [ $jax = yes ]; then
  export XLA_PYTHON_CLIENT_PREALLOCATE=false
  for mode in late early; do
    start jax-$mode-alone - python3 "$here/profile_jax.py" $mode
    start jax-$mode-default "" python3 "$here/profile_jax.py" $mode
  done
else
  row "jax.profiler" skipped "no JAX"
fi
wait
if [ $torch = yes ]; then
  total() { python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))["total"])' "$tmp/$1/counts.json" 2>/dev/null || echo none; }
  for mode in own middle often; do
    for options in default full; do
      under=torch-$mode-$options
      judge "torch.profiler $mode $options" 'cmp -s torch-$mode-alone/counts.json $under/counts.json && notes $under/run.plprof | grep -q stood_aside' \
        "profiler's events $(total $under) under Purlin, $(total torch-$mode-alone) alone; Purlin $(launches $under/run.plprof), $(notes $under/run.plprof)"
    done
  done
fi
if [ $jax = yes ]; then
  for mode in late early; do
    alone=$(grep -h '^events' jax-$mode-alone/log) under=$(grep -h '^events' jax-$mode-default/log)
    judge "jax.profiler $mode" '[ -n "$under" ] && [ "$under" = "$alone" ]' \
      "alone: $alone; under Purlin: $under; Purlin $(launches jax-$mode-default/run.plprof), $(notes jax-$mode-default/run.plprof)"
  done
fi

# --- tools around and under Purlin
if command -v nvcc >/dev/null; then
  include=/usr/local/cuda/include
  [ -e $include/cupti.h ] || include=/usr/local/cuda/extras/CUPTI/include
  nvcc -std=c++17 -O2 -w -arch=native -I$include "$here/programs/capture_faults.cu" -o capture_faults -ldl -lpthread
  loop="./capture_faults loop 200"
  if command -v ncu >/dev/null; then
    ncu="ncu --clock-control none --metrics gpu__time_duration.sum --launch-count 20"
    kernels() { grep -c 'fault_empty' "$1"; }
    timeout 120 $ncu $loop >ncu_alone.log 2>&1
    timeout 120 $ncu purlin profile --quiet -o ncu.plprof -- $loop >ncu_around.log 2>&1
    code=$?
    judge "ncu around purlin" '[ $code -eq 0 ] && [ "$(kernels ncu_around.log)" -ge "$(kernels ncu_alone.log)" ] && [ "$(kernels ncu_alone.log)" -gt 0 ]' \
      "exit $code, kernels $(kernels ncu_around.log) of $(kernels ncu_alone.log); $(notes ncu.plprof)"
    timeout 120 purlin profile --quiet -o ncu.plprof -- $ncu $loop >ncu_under.log 2>&1
    code=$?
    judge "ncu under purlin" '[ $code -eq 0 ] && [ "$(kernels ncu_under.log)" -ge "$(kernels ncu_alone.log)" ] && notes ncu.plprof | grep -q nsight_compute' \
      "exit $code, kernels $(kernels ncu_under.log) of $(kernels ncu_alone.log); $(notes ncu.plprof)"
  else
    row ncu skipped "not installed"
  fi
  if command -v compute-sanitizer >/dev/null; then
    timeout 120 compute-sanitizer purlin profile --quiet -o san.plprof -- $loop >san.log 2>&1
    code=$?
    judge "compute-sanitizer around purlin" '[ $code -eq 0 ] && grep -q "ERROR SUMMARY: 0 errors" san.log && grep -q "\"fault_empty()\": 200" san.log' \
      "exit $code; $(notes san.plprof)"
    timeout 120 purlin profile --quiet -o san.plprof -- compute-sanitizer $loop >san2.log 2>&1
    code=$?
    judge "compute-sanitizer under purlin" '[ $code -eq 0 ] && grep -q "ERROR SUMMARY: 0 errors" san2.log' "exit $code; $(notes san.plprof)"
  else
    row compute-sanitizer skipped "not installed"
  fi
  # The toolkit's copy is Purlin's, the wheel's is the program's, and the other way round.
  kit=$(ls /usr/local/cuda/lib64/libcupti.so.13 /usr/local/cuda/extras/CUPTI/lib64/libcupti.so.13 2>/dev/null | head -1)
  wheel=$(python3 -c 'import glob,sys; print(next((p for s in sys.path for p in glob.glob(s+"/nvidia/*/lib/libcupti.so.13")), ""))')
  if [ -n "$kit" ] && [ -n "$wheel" ]; then
    for pair in "$kit $wheel" "$wheel $kit"; do
      set -- $pair
      # Loaded before CUDA is initialised, as a linked library is: both are there when Purlin comes.
      LD_PRELOAD="$1 $2" timeout 120 purlin profile --quiet --full -o two.plprof -- ./capture_faults own-profiler 5 100 "$2" >two.log 2>&1
      code=$?
      judge "two copies of libcupti, program's $(basename "$(dirname "$2")")" '[ $code -eq 0 ]' "exit $code; $(grep -h '"mode"' two.log); $(notes two.plprof)"
    done
    timeout 120 purlin profile --quiet --full -o two.plprof -- ./capture_faults own-profiler-late 5 100 "$wheel" >two.log 2>&1
    code=$?
    judge "a copy loaded later" '[ $code -eq 0 ]' "exit $code; $(grep -h '"mode"' two.log); $(notes two.plprof)"
  else
    row "two copies of libcupti" skipped "toolkit's '$kit', wheel's '$wheel'"
  fi
fi
[ -z "${OUT:-}" ] || printf '%s\n' "${rows[@]}" | python3 -c 'import json,sys; print(json.dumps([json.loads(l) for l in sys.stdin], indent=1))' >"$OUT/coexist.json"
echo "coexistence: $failed failed of ${#rows[@]}"
[ "$failed" -eq 0 ]
