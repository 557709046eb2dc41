#!/bin/bash
# DDP training on two GPUs alone and under capture, in turns: ddp_turns.sh BUNDLE.tar.gz OUT.
# Writes a line for each run to OUT/ddp.txt: arm, median step, median of the last third. 4 minutes.
set -u
bundle=$(realpath "$1") out=$(realpath "$2") work=$(mktemp -d)
cd "$(dirname "$0")"
tar xzf "$bundle" -C "$work"
purlin=$(ls "$work"/purlin-*/bin/purlin)
program="torchrun --nproc_per_node 2 ddp_train.py 300"
run() {  # ARM COMMAND…
  local arm=$1 line
  shift
  line=$(timeout 60 "$@" 2>"$out/errors.$arm" | grep step_ms)
  echo "$arm $line" | tee -a "$out/ddp.txt"
}
for turn in 1 2; do
  run alone $program
  run default "$purlin" profile -o "$work/d.plprof" -- $program
  run torch_off "$purlin" profile --torch off -o "$work/t.plprof" -- $program
  run copies_off "$purlin" profile --torch off --copies off -o "$work/c.plprof" -- $program
  run idle "$purlin" profile --idle --torch off -o "$work/i.plprof" -- $program
  run alone $program
done
rm -rf "$work"
