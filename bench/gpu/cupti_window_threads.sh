#!/usr/bin/env bash
# cupti_window_threads.sh: PyTorch training steps, six at a time on each GPU, recorded in windows in each of the ways that
# cupti_window_threads.cc has. One line of each process; OUT, if set, gets cupti_window_threads.txt. MODES: the ways, one
# for each process of a GPU ("before" six times and "after", "told", "early" three times each, some 20 s for each six).
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
g++ -std=c++20 -O2 -shared -fPIC -isystem /usr/local/cuda/include "$here/cupti_window_threads.cc" -o "$tmp/windows.so" -ldl
times() { for ((n = 0; n < $2; ++n)); do echo "$1"; done; }
modes=${MODES:-$(times before 6; times after 3; times told 3; times early 3)}
one() { # GPU NUMBER MODE
  CUDA_VISIBLE_DEVICES=$1 CUDA_INJECTION64_PATH=$tmp/windows.so CUPTI_WINDOWS=$3 CUPTI_WINDOWS_OUT=$tmp/$1-$2.txt timeout -k 2 30 \
    python3 -S "$here/capture_programs.py" shim "$tmp/server-$1" steps training 1000000 "$tmp/$1-$2.json" >"$tmp/$1-$2.log" 2>&1 ||
    echo "$3: ended with $?: $(tail -c 200 "$tmp/$1-$2.log")"
  cat "$tmp/$1-$2.txt"
}
gpu() { # GPU
  CUDA_VISIBLE_DEVICES=$1 python3 "$here/capture_programs.py" serve "$tmp/server-$1" &
  until [ -e "$tmp/server-$1" ]; do sleep 0.1; done
  local number=0 running=() mode
  for mode in $modes; do
    one "$1" $((number++)) "$mode" &
    running+=($!)
    [ $((number % 6)) != 0 ] || { wait "${running[@]}"; running=(); }
  done
  wait "${running[@]}"
  rm "$tmp/server-$1"
  wait
}
for ((number = $(nvidia-smi -L | wc -l) - 1; number >= 0; --number)); do gpu "$number" & done | tee "${OUT:-$tmp}/cupti_window_threads.txt"
