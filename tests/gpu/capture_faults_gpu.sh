#!/usr/bin/env bash
# capture_faults_gpu.sh DIR: programs that end badly, fork, exec, unload modules, use many threads and streams, or
# profile themselves, under `purlin profile` on a real GPU (capture_faults.py).
set -euo pipefail
where=$(cd "$1" && pwd)
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
command -v nvcc >/dev/null || { echo "skipped: no nvcc"; exit 0; }
include=/usr/local/cuda/include
[ -e $include/cupti.h ] || include=/usr/local/cuda/extras/CUPTI/include
cupti=/usr/local/cuda/lib64/libcupti.so.13
[ -e $cupti ] || cupti=/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.13
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
nvcc -std=c++17 -O2 -w -arch=native -I$include "$here/programs/capture_faults.cu" -o "$tmp/capture_faults" -ldl -lpthread
python3 "$here/capture_faults.py" --purlin "$where/bin/purlin" --program "$tmp/capture_faults" --cupti "$cupti" ${ONLY:+--only "$ONLY"}
