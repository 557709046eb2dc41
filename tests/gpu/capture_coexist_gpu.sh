#!/usr/bin/env bash
# capture_coexist_gpu.sh DIR: other tools in, around and under `purlin profile` on a real GPU (capture_coexist.py). About
# a minute and a half, most of it imports of PyTorch.
set -euo pipefail
where=$(cd "$1" && pwd)
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
nvcc=$(command -v nvcc || echo "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc")
program=
if [ -x "$nvcc" ]; then
  include=/usr/local/cuda/include
  [ -e $include/cupti.h ] || include=/usr/local/cuda/extras/CUPTI/include
  "$nvcc" -std=c++17 -O2 -w -arch=native -I$include "$here/programs/capture_faults.cu" -o "$tmp/capture_faults" -ldl -lpthread
  program=$tmp/capture_faults
else
  echo "no nvcc: PyTorch's and JAX's profilers only"
fi
python3 "$here/capture_coexist.py" --purlin "$where/bin/purlin" ${program:+--program "$program"} ${ONLY:+--only "$ONLY"}
