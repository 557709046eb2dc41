#!/usr/bin/env bash
# Plain `purlin profile` on programs that nobody changed for it. Each runs alone and under Purlin, TURNS (3) times in
# alternation, and alone once more. The step time of each report is compared with the program's own clock: in that run,
# and in the runs alone before and after it (table.py). Folders of several runs: table.py OUT PROGRAM.
# run.sh FOLDER_OF_BIN_AND_LIB OUT [PROGRAM…]; jacobi needs nvcc, ddp_train two GPUs. OPTIONS: of purlin profile.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
PATH=$(cd "$1" && pwd)/bin:$PATH
out=$2
shift 2
[ $# -gt 0 ] || set -- gpt2_train gpt2_generate resnet50_train jax_train jacobi
turns=${TURNS:-3}
mkdir -p "$out"
command_of() {
  case $1 in
    jacobi) echo "$out/jacobi ${JACOBI:-}" ;;
    ddp_train) echo "torchrun --standalone --nproc_per_node 2 $here/ddp_train.py ${DDP:-300}" ;;
    *) echo "python3 $here/$1.py ${STEPS:-}" ;;
  esac
}
alone() {  # PROGRAM TURN
  local begin
  begin=$(date +%s.%N)
  timeout 90 "${command[@]}" >"$out/$1.plain.$2" 2>"$out/$1.plain.err"
  echo "$begin $(date +%s.%N)" >"$out/$1.plain_times.$2"
}
for program in "$@"; do
  [ "$program" != jacobi ] || nvcc -O3 -std=c++20 -arch=sm_90 -o "$out/jacobi" "$here/jacobi.cu" || continue
  read -ra command <<<"$(command_of "$program")"
  # The first run reads its libraries from disk, and is not timed. COLD=1 leaves it out.
  [ -n "${COLD:-}" ] || timeout 60 "${command[@]}" >/dev/null 2>&1
  for turn in $(seq "$turns"); do
    alone "$program" "$turn"
    begin=$(date +%s.%N)
    timeout 120 purlin profile --quiet ${OPTIONS:-} -o "$out/$program.plprof" -- "${command[@]}" >"$out/$program.txt" 2>"$out/$program.err"
    echo "$begin $(date +%s.%N)" >"$out/$program.profiled_times.$turn"
    cat "$out/$program.txt" "$out/$program.err" >"$out/$program.profiled.$turn"
    purlin report --json --by shape "$out/$program.plprof" >"$out/$program.json.$turn" 2>/dev/null
  done
  alone "$program" $((turns + 1))
  purlin advise "$out/$program.plprof" >"$out/$program.advice.txt" 2>/dev/null
  python3 "$here/table.py" "$out" "$program" | tee -a "$out/table.txt"
done
