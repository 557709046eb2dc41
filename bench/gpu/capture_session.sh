#!/usr/bin/env bash
# capture_session.sh DIR: what the records of bench/results/ say of capture, measured again in half an hour of a machine
# with a GPU and 16 cores, or half of that with two GPUs and 32; DIR: an unpacked bundle, or a build folder. OUT, if set, gets a
# folder for each part with its log and documents. PARTS: those wanted, in order ("first overhead sampled faults").
#   first     what three programs' first runs leave for --sample auto: three times each, a minute
#   overhead  capture_overhead.py of each of PROGRAMS ("tiny graph training gemm"), its seconds after "=" (tiny=270)
#   sampled   sampled_vs_full.py of a replayed graph and of a training step in windows, at most 150 and 120 s
#   faults    tests/gpu/capture_faults_gpu.sh, 40 s
# Exit code: 1 where a part failed (sampled: or was beyond its limits).
set -uo pipefail
where=$(cd "$1" && pwd)
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=${OUT:-$(mktemp -d)}
gpus=$(nvidia-smi -L | wc -l)
export PATH=$where/bin:/usr/local/cuda/bin:$PATH PYTHONUNBUFFERED=1
failed=$(mktemp)
step() { # NAME LIMIT COMMAND…
  local name=$1 limit=$2 began=$SECONDS code=0
  shift 2
  mkdir -p "$out/$name"
  OUT=$out/$name timeout -k 5 "$limit" "$@" >"$out/$name/log" 2>&1 || code=$?
  [ "$code" = 0 ] || echo "$name" >>"$failed"
  echo "== $name: exit $code, $((SECONDS - began)) s"
  tail -n 12 "$out/$name/log" | cut -c1-300
}
dealt() { # LINE…: commands, each GPU's own one after the other, with its part of the cores in CORES
  local gpu cores=$(($(nproc) / gpus)) line
  for ((gpu = 0; gpu < gpus; ++gpu)); do
    (
      export CUDA_VISIBLE_DEVICES=$gpu CORES=$((gpu * cores))-$((gpu * cores + cores - 1))
      for ((line = gpu + 1; line <= $#; line += gpus)); do eval "${!line}"; done
    ) &
  done
  wait
}
first_run() { # PROGRAM STEPS
  local tmp
  tmp=$(mktemp -d)
  mkdir "$tmp/spool" "$tmp/state"
  CUDA_INJECTION64_PATH=$where/lib/purlin/libpurlin_cuda.so PURLIN_SPOOL=$tmp/spool PURLIN_STATE=$tmp/state PURLIN_PROGRAM=$1 \
    taskset -c "$CORES" python3 "$here/capture_programs.py" run steps "$1" "$2" "$tmp/said.json" || return
  purlin report "$tmp"/spool/*.plprof --json >"$tmp/report.json"
  python3 - "$1" "$tmp" <<'END'
import json, sys
program, folder = sys.argv[1:]
coverage = json.load(open(f"{folder}/report.json"))["coverage"]
sampling = coverage["sampling"]
print(program, json.load(open(f"{folder}/said.json"))["mean_ms"], "ms a step; presence", sampling["presence"], "one run in", sampling["one_in"],
      "recorded", coverage["launches_seen"], "overhead", coverage["overhead_ns"] / 1e6, "ms")
END
  rm -r "$tmp"
}
overhead_of() { # PROGRAM SECONDS
  local group=26
  [ "$1" != gemm ] || group=12
  python3 "$here/capture_overhead.py" --purlin "$where/bin/purlin" --rows none,on --several none=8,on=10 --head-seconds 2.5 \
    --group-seconds "$group" --programs "$1" --cores "$CORES" --seconds-total "$2" -o "$OUT/$1.json"
}
sampled_of() { # PROGRAM SCALE LIMIT
  python3 "$here/sampled_vs_full.py" --purlin "$where/bin/purlin" --programs "$1" --scale "$2" --limit "$3" -o "$OUT/$1.json"
}
export -f first_run overhead_of sampled_of
export where here
for part in ${PARTS:-first overhead sampled faults}; do
  lines=()
  case $part in
    first)
      for one in "tiny 600" "training 500" "graph 1500"; do
        lines+=("step first_${one% *} 60 bash -c 'for n in 1 2 3; do first_run $one; done'")
      done
      ;;
    overhead)
      for one in ${PROGRAMS:-tiny=270 graph=260 training=420 gemm=100}; do
        lines+=("step overhead_${one%=*} $((${one#*=} + 60)) bash -c 'overhead_of ${one%=*} ${one#*=}'")
      done
      ;;
    sampled) lines=("step sampled_graph 160 bash -c 'sampled_of graph 3 150'" "step sampled_medium 130 bash -c 'sampled_of medium 3 120'") ;;
    faults) lines=("step faults 120 bash \"$here/../../tests/gpu/capture_faults_gpu.sh\" \"$where\"") ;;
    *) echo "no such part: $part" >&2; exit 2 ;;
  esac
  dealt "${lines[@]}"
done
[ ! -s "$failed" ] || { echo "failed: $(tr '\n' ' ' <"$failed")"; exit 1; }
