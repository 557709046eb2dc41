#!/usr/bin/env bash
# capture_session.sh DIR: what the records of bench/results/ say of capture, measured again in ten minutes of a machine
# with two GPUs and 32 cores; DIR: an unpacked bundle, or a build folder. OUT, if set, gets a folder for each part with its
# log and documents. PARTS: those wanted, in order ("first overhead sampled faults").
#   first     what three programs' first runs leave for --sample auto: three times each, 30 s
#   overhead  capture_overhead.py, one part of SECONDS_TOTAL (200) of each program on two GPUs, 7 min
#   sampled   sampled_vs_full.py of a replayed graph and of a training step in windows, 4 min
#   faults    tests/gpu/capture_faults_gpu.sh, 40 s
# Exit code: 1 where a part failed (sampled: or was beyond its limits).
set -uo pipefail
where=$(cd "$1" && pwd)
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=${OUT:-$(mktemp -d)}
seconds=${SECONDS_TOTAL:-200}
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
gpu() { CUDA_VISIBLE_DEVICES=$1 "${@:2}"; }
first_run() { # PROGRAM STEPS CORES
  local tmp
  tmp=$(mktemp -d)
  mkdir "$tmp/spool" "$tmp/state"
  CUDA_INJECTION64_PATH=$where/lib/purlin/libpurlin_cuda.so PURLIN_SPOOL=$tmp/spool PURLIN_STATE=$tmp/state PURLIN_PROGRAM=$1 \
    taskset -c "$3" python3 "$here/capture_programs.py" run steps "$1" "$2" "$tmp/said.json" || return
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
first() {
  for _ in 1 2 3; do
    gpu 0 first_run tiny 600 0-3 & gpu 0 first_run training 500 4-7 & gpu 1 first_run graph 1500 8-11 & wait
  done
}
overhead_of() { # PROGRAM CORES OPTIONS…
  python3 "$here/capture_overhead.py" --purlin "$where/bin/purlin" --rows none,on,default,present --several none=6,on=8,default=2,present=2 \
    --head-seconds 2.5 --programs "$1" --cores "$2" --seconds-total "$seconds" -o "$OUT/$1.json" "${@:3}"
}
sampled_of() { # PROGRAM SCALE LIMIT
  python3 "$here/sampled_vs_full.py" --purlin "$where/bin/purlin" --programs "$1" --scale "$2" --limit "$3" -o "$OUT/$1.json"
}
export -f gpu first_run first overhead_of sampled_of
export where here seconds
for part in ${PARTS:-first overhead sampled faults}; do
  case $part in
    first) step first 120 bash -c first ;;
    overhead)
      { gpu 0 step tiny $((seconds + 40)) bash -c 'overhead_of tiny 0-9'; gpu 0 step gemm $((seconds + 40)) bash -c 'overhead_of gemm 0-9'; } &
      { gpu 1 step training $((seconds + 40)) bash -c 'overhead_of training 10-20'; gpu 1 step graph $((seconds + 60)) bash -c 'overhead_of graph 10-31 --group-seconds 24'; } &
      wait ;;
    sampled)
      gpu 0 step sampled_graph 260 bash -c 'sampled_of graph 4 240' &
      gpu 1 step sampled_medium 200 bash -c 'sampled_of medium 4 180' &
      wait ;;
    faults) step faults 120 bash "$here/../../tests/gpu/capture_faults_gpu.sh" "$where" ;;
    *) echo "no such part: $part" >&2; exit 2 ;;
  esac
done
[ ! -s "$failed" ] || { echo "failed: $(tr '\n' ' ' <"$failed")"; exit 1; }
