#!/usr/bin/env bash
# Hardware counters of the capture against Nsight Compute on the same kernels: DRAM bytes, FLOPs and
# occupancy within 2 %, times within noise; and programs that reading them must not break.
# PATH holds purlin; needs nvcc, ncu and the right to read counters. OUT gets the numbers.
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
nvcc -std=c++17 -O2 -arch=native -o counters "$here/counters.cu" || nvcc -std=c++17 -O2 -arch=sm_90 -o counters "$here/counters.cu"

broken=0
keep() { purlin report "$1.plprof" --json >"$out/counters_$1.json" 2>>"$out/counters_err.txt" || broken=1; }

echo "1. Nsight Compute"
ops=$(for op in ffma fadd fmul; do echo -n ",smsp__sass_thread_inst_executed_op_${op}_pred_on.sum"; done)
timeout 100 ncu --csv --page raw --clock-control none --cache-control none --kernel-name-base function \
  --metrics "gpu__time_duration.sum,dram__bytes_read.sum,dram__bytes_write.sum,sm__warps_active.avg.pct_of_peak_sustained_active,sm__ops_path_tensor_src_bf16_dst_fp32.sum,lts__t_sector_hit_rate.pct,lts__t_bytes.sum$ops" \
  ./counters work x6 >ncu.txt 2>ncu.err || { cat ncu.txt ncu.err; broken=1; }
cp ncu.txt "$out/counters_ncu.csv"

echo "2. the same kernels without capture, and under Purlin"
./counters work 3 | tee alone.json
purlin profile -o work.plprof --json --budget 30% --counters all -- ./counters work "${SECONDS_OF_WORK:-30}" >work.out 2>work.err || { cat work.err; broken=1; }
grep rounds work.err work.out || true
keep work

echo "3. the deep dive"
timeout 60 purlin profile -o full.plprof --json --counters full --kernel 'tensor|copy' --launches 2 -- ./counters work 4 >full.out 2>full.err || { cat full.err; broken=1; }
keep full

echo "4. programs that must not notice"
for what in captures waits threads; do
  timeout 40 purlin profile -o $what.plprof --json --budget 30% --counters all -- ./counters $what 8 >$what.out 2>$what.err || { echo "BROKEN: $what"; broken=1; }
  grep -h ok $what.err $what.out || { echo "BROKEN: $what"; tail -3 $what.err; broken=1; }
  keep $what
done
cp *.err "$out/" 2>/dev/null || true

"$python" "$here/counters_compare.py" "$out" ncu.txt alone.json || broken=1
exit $broken
