#!/usr/bin/env bash
# Hardware counters of the capture against Nsight Compute on the same kernels, in the same order:
# DRAM bytes, FLOPs and occupancy within 2 %, times within noise; what reading them costs; programs
# that it must not break. Nsight Compute replays the application, one pass a run: replaying each
# kernel would show it the caches as its own last pass left them. Under 90 s.
# PATH holds purlin; needs nvcc, ncu and the right to read counters. OUT gets counters_h200.{md,json}, and all else as counters_raw.tar.gz.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=${PYTHON:-python3}
for tool in nvcc ncu; do
  command -v $tool >/dev/null || PATH=$PATH:/usr/local/cuda/bin
  command -v $tool >/dev/null || { echo "skipped: no $tool"; exit 0; }
done
nvidia-smi -L >/dev/null 2>&1 || { echo "skipped: no GPU"; exit 0; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"
out=${OUT:-$tmp}
raw=$tmp/raw  # what the tables come from
mkdir -p "$out" "$raw"
nvcc -std=c++17 -O2 -arch=native -o counters "$here/counters.cu" || nvcc -std=c++17 -O2 -arch=sm_90 -o counters "$here/counters.cu"
broken=0
step() { echo "$SECONDS s: $*"; }
# Runs a program under capture: what it said in NAME.err, its report in raw/counters_NAME.json.
under() {
  local name=$1; shift
  timeout -k 2 40 purlin profile -o "$name.plprof" --json "$@" >"$raw/counters_$name.json" 2>"$name.err" || { echo "BROKEN: $name"; tail -3 "$name.err"; broken=1; }
}

step "Nsight Compute"
ops=$(for op in ffma fadd fmul; do echo -n ",smsp__sass_thread_inst_executed_op_${op}_pred_on.sum"; done)
timeout 60 ncu --csv --page raw --clock-control none --cache-control none --replay-mode application --kernel-name-base function \
  --metrics "gpu__time_duration.sum,dram__bytes_read.sum,dram__bytes_write.sum,sm__warps_active.avg.pct_of_peak_sustained_active,sm__ops_path_tensor_src_bf16_dst_fp32.sum,lts__t_sectors_lookup_hit.sum,lts__t_sectors_lookup_miss.sum,lts__t_bytes.sum$ops" \
  ./counters work x8 >ncu.txt 2>ncu.err || { tail -5 ncu.txt ncu.err; broken=1; }

step "under capture, with half of its time, so that all ten cards have their turns"
under work --budget 100% --counters memory,tensor,caches,flops -- ./counters work "${SECONDS_OF_WORK:-16}"

step "the deep dive"
under full --counters full --kernel 'tensor|copy' --launches 2 -- ./counters work 2

step "what it costs: alone, under capture, with counters, in turn"
for round in 1 2; do
  ./counters work 2 >alone$round.err
  under plain$round -- ./counters work 3
done
under default1 --counters -- ./counters work 8

step "programs that must not notice"
for what in captures waits threads; do
  under $what --budget 30% --counters all -- ./counters $what 3
  grep -h ok $what.err || broken=1
done
cp ./*.err ncu.txt "$raw/"
"$python" "$here/counters_compare.py" "$raw" "$raw/ncu.txt" "$out" || broken=1
tar -C "$raw" -czf "$out/counters_raw.tar.gz" .
step "done"
exit $broken
