#!/usr/bin/env bash
# Plain `purlin profile` on programs that nobody changed for it. Each runs alone and under Purlin, TURNS times in
# alternation. The step time of the report is compared with the program's own clock.
# run.sh BUNDLE_DIR OUT [PROGRAM…]; jacobi needs nvcc, ddp_train two GPUs.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
PATH=$(cd "$1" && pwd)/bin:$PATH
out=$2
shift 2
[ $# -gt 0 ] || set -- gpt2_train gpt2_generate resnet50_train jax_train jacobi
turns=${TURNS:-1}
mkdir -p "$out"
command_of() {
  case $1 in
    jacobi) echo "$out/jacobi" ;;
    ddp_train) echo "torchrun --standalone --nproc_per_node 2 $here/ddp_train.py" ;;
    *) echo "python3 $here/$1.py" ;;
  esac
}
for program in "$@"; do
  [ "$program" != jacobi ] || nvcc -O3 -std=c++20 -arch=sm_90 -o "$out/jacobi" "$here/jacobi.cu" || continue
  read -ra command <<<"$(command_of "$program")"
  # The first run reads its libraries from disk, and is not timed. COLD=1 leaves it out.
  [ -n "${COLD:-}" ] || timeout 60 "${command[@]}" >/dev/null 2>&1
  for turn in $(seq "$turns"); do
    begin=$(date +%s.%N)
    timeout 90 "${command[@]}" >"$out/$program.plain.$turn" 2>"$out/$program.plain.err"
    middle=$(date +%s.%N)
    timeout 120 purlin profile --quiet -o "$out/$program.plprof" -- "${command[@]}" >"$out/$program.txt" 2>"$out/$program.err"
    end=$(date +%s.%N)
    cp "$out/$program.txt" "$out/$program.profiled.$turn"
    echo "$begin $middle $end" >"$out/$program.times.$turn"
  done
  purlin report --json --by shape "$out/$program.plprof" >"$out/$program.json" 2>/dev/null
  purlin advise "$out/$program.plprof" >"$out/$program.advice.txt" 2>/dev/null
  python3 "$here/table.py" "$out" "$program" "$turns" | tee -a "$out/table.txt"
done
