#!/usr/bin/env bash
# Records the files of this folder on a GPU with PyTorch and transformers: record.sh OUT. Takes some 3 minutes.
# The environment has `purlin` in PATH; DEVICE is cuda:0 by default.
set -euo pipefail
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
out=$(mkdir -p "$1" && cd "$1" && pwd)
device=${DEVICE:-cuda:0}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PURLIN_CACHE=$work/configs
cp -r "$source/kernels/softmax" "$source/kernels/transpose" "$work"
cd "$work"

purlin tune softmax/softmax.toml --device "$device" --shape large --budget 12s --session "$work/sessions" --json >"$out/softmax_tune.json"
cp sessions/*/journal.jsonl "$out/softmax_journal.jsonl"

cat >gate.toml <<'T'
schema = "purlin.suite/1"
name = "nightly"
[[items]]
spec = "softmax/softmax.toml"
shape = "large"
config = "default"
[[items]]
spec = "transpose/transpose.toml"
shape = "large"
config = "default"
T
git init -q && git add -A && git -c user.name=a -c user.email=a@b commit -qm before
rm -f "$out/nightly.jsonl"
for build in $(seq 1 14); do
  [ "$build" -ne 8 ] || sed -i 's/^PASSES.*/PASSES = {values = [3, 2, 1], default = 2}/' softmax/softmax.toml
  [ "$build" -ne 11 ] || sed -i 's/^SHARED.*/SHARED = {values = [false, true], default = true}/' transpose/transpose.toml
  purlin guard run gate.toml --device "$device" --rounds 2 --record "$out/nightly.jsonl" --build "b$((100 + build))" >/dev/null
done
git checkout -q transpose && git -c user.name=a -c user.email=a@b commit -qam after
purlin guard compare HEAD~1 HEAD --suite gate.toml --device "$device" --journal "$out/pairs.jsonl" --no-profiles --json >"$out/verdict.json" || [ $? -eq 1 ]

for attention in sdpa eager; do
  sed "s/GPT2Config()/GPT2Config(attn_implementation=\"$attention\")/" "$source/bench/unmodified/gpt2_train.py" >"gpt2_$attention.py"
done
python3 gpt2_sdpa.py 12 >/dev/null # reads the libraries from disk
purlin profile --full --gemm-shapes --build sdpa -o "$out/gpt2_sdpa.plprof" -- python3 gpt2_sdpa.py 12 >/dev/null
purlin profile --full --gemm-shapes --build eager -o "$out/gpt2_eager.plprof" -- python3 gpt2_eager.py 12 >/dev/null
purlin profile --counters -o "$out/gpt2_counters.plprof" -- python3 gpt2_sdpa.py 60 >/dev/null
