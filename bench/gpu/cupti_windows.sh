#!/usr/bin/env bash
# cupti_windows.sh: for each way of recording in windows a PyTorch program of its own, all at the same time on the GPUs
# there are, for SECONDS_EACH (45); says which were crashed and after how many windows. Prints a table; OUT, if set,
# gets cupti_windows.txt. MODES: ways, each as cupti_windows.cc has them, then what tells processes apart (`plain_2`) and
# the program (`plain_2@tiny`; else medium, whose queue of long kernels is deep).
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
g++ -std=c++20 -O2 -shared -fPIC -isystem /usr/local/cuda/include "$here/cupti_windows.cc" -o "$tmp/cupti_windows.so" -ldl
gpus=$(nvidia-smi -L | wc -l)
one() { # MODE[@PROGRAM] GPU
  local code=0 program=medium
  [[ $1 = *@* ]] && program=${1#*@}
  CUDA_VISIBLE_DEVICES=$2 CUDA_INJECTION64_PATH=$tmp/cupti_windows.so CUPTI_WINDOWS=${1%@*} CUPTI_WINDOWS_OUT=$tmp/$1.counts \
    timeout -k 2 "${SECONDS_EACH:-45}" python3 "$here/capture_programs.py" run steps "$program" 1000000 "$tmp/$1.json" >"$tmp/$1.log" 2>&1 || code=$?
  case $code in
    124) code="still running" ;;
    139 | 245) code="segmentation fault" ;;
    *) code="exit $code: $(tail -c 200 "$tmp/$1.log" | tr '\n' ' ')" ;;
  esac
  echo "$1: $code; $(cat "$tmp/$1.counts" 2>/dev/null || echo 'no window')"
}
number=0
for mode in ${MODES:-kernels plain flush flush-between flush_quiet-close quiet-open flush_fresh flush_rename}; do
  one "$mode" $((number++ % gpus)) &
done | tee "${OUT:-$tmp}/cupti_windows.txt"
