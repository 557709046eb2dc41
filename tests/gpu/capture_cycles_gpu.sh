#!/usr/bin/env bash
# capture_cycles_gpu.sh DIR: ten thousand windows over a program without graphs, and over one with them, on a real GPU
# (capture_cycles.py), within 90 s each.
set -euo pipefail
where=$(cd "$1" && pwd)
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
nvcc=$(command -v nvcc || echo "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc")
[ -x "$nvcc" ] || { echo "skipped: no nvcc"; exit 0; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
include=/usr/local/cuda/include
[ -e $include/cupti.h ] || include=/usr/local/cuda/extras/CUPTI/include
"$nvcc" -std=c++17 -O2 -w -arch=native -I$include "$here/programs/capture_faults.cu" -o "$tmp/capture_faults" -ldl -lpthread
failed=0
for mode in ${MODES:-mixed-streams mixed}; do
  python3 "$here/capture_cycles.py" --purlin "$where/bin/purlin" --program "$tmp/capture_faults" --mode "$mode" --cycles "${CYCLES:-10000}" \
    --seconds "${SECONDS_AT_MOST:-75}" || failed=1
done
exit $failed
