#!/usr/bin/env bash
# cublaslt_gpu.sh [BUILD [torch]]: cuBLASLt's algorithms listed, tuned, verified and stored on this GPU, for types and
# epilogues that cublaslt.sh has only seen against a fake library. About a minute and a half; documents in $OUT. `torch`: only
# purlin.torch in a real PyTorch, half a minute.
set -euo pipefail
build=${1:-build/release}
purlin=$build/bin/purlin
out=${OUT:-$(mktemp -d)}
mkdir -p "$out"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export XDG_CACHE_HOME=$tmp/cache PURLIN_CACHE=$out/store
failed=0
tune() { # NAME SHAPE BUDGET, lines of [library]
  printf 'schema = "purlin.spec/1"\n[problem]\nM = 128\nN = 4096\nK = 4096\n%s[library]\nname = "cublaslt"\n%s\n' \
    "${5:-}" "$4" >"$tmp/$1.toml"
  local start=$SECONDS
  if ! timeout 120 "$purlin" tune "$tmp/$1.toml" --device cuda:0 --shape "$2" --budget "$3" --json \
    >"$out/$1.json" 2>"$out/$1.err"; then
    echo "FAILED $1: $(tail -c 300 "$out/$1.err")"
    failed=1
    return
  fi
  python3 - "$out/$1.json" "$1" $((SECONDS - start)) <<'PY' || failed=1
import json, sys
d = json.load(open(sys.argv[1]))
kinds = {}
for e in d["evaluations"]:
    kinds[e["status"]] = kinds.get(e["status"], 0) + 1
gain = d["default"]["time_ms"] / d["best"]["time_ms"]
print("%-12s %7d algorithms, %s, %.3f x, %s, %s s" % (
    sys.argv[2], d["space"]["valid"], kinds, gain,
    [[round(g, 4) for g in c["gain_by_process"]] for c in d.get("confirmations", [])], sys.argv[3]))
bad = [e for e in d["evaluations"] if e["status"] in ("wrong", "out_of_bounds", "crash", "timeout")]
for e in bad[:5]:
    print("   ", e["status"], e["config"], e.get("message", "")[:200])
# The library's own first choice must be right.
sys.exit(0 if d["evaluations"][0]["status"] == "ok" else 1)
PY
}
if [ "${2:-}" != torch ]; then
tune bf16 M=128,N=4096,K=4096 60 $'transpose_b = true'
tune bf16_decode M=16,N=4096,K=14336 60 $'transpose_b = true'
tune bf16_plain M=512,N=4096,K=4096 30 ''
tune bf16_ta M=256,N=1024,K=2048 30 $'transpose_a = true'
tune bf16_gelu M=64,N=4096,K=1024 30 $'transpose_b = true\nepilogue = "gelu_bias"'
tune f16_bias M=64,N=4096,K=4096 30 $'a = "f16"\ntranspose_b = true\nepilogue = "bias"'
tune f8 M=64,N=4096,K=4096 30 $'a = "f8e4m3"\ntranspose_b = true'
tune i8 M=64,N=4096,K=4096 30 $'a = "i8"\ntranspose_b = true'
tune f32 M=64,N=1024,K=1024 30 $'a = "f32"\ntranspose_b = true'
tune tf32 M=64,N=1024,K=1024 30 $'a = "f32"\ncompute = "tf32"\ntranspose_b = true\nepilogue = "relu"'
tune batched M=128,N=128,K=256 30 $'batched = true' $'BATCH = 16\n'
"$purlin" cache ls --json >"$out/cache_ls.json"
fi

# In a program: PyTorch asks, the backlog lists, tuning fills in, a fresh process is served.
if python3 -c 'import torch' 2>/dev/null; then
  here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
  export PYTHONPATH=$here/../../python:$build/share/purlin/python PURLIN_CACHE=$tmp/torch PURLIN=$purlin
  [ -e "$build/lib/libpurlin.so" ] && PURLIN_LIBRARY=$(realpath "$build/lib/libpurlin.so") && export PURLIN_LIBRARY
  lt=$(python3 -m purlin.torch) && [ -n "$lt" ] && export PURLIN_CUBLASLT=$lt
  echo "PyTorch's library: ${lt:-not found}"
  {
    python3 "$here/cublaslt_torch.py" ask &&
      "$purlin" backlog &&
      timeout 120 "$purlin" tune --backlog 4 --device cuda:0 --budget 30 --seed 2 &&
      python3 "$here/cublaslt_torch.py" served &&
      timeout 60 python3 "$here/cublaslt_torch.py" shadow
  } >"$out/torch.log" 2>&1 || { failed=1; tail -15 "$out/torch.log"; }
  grep -E "launch|shadow,|served|gradient|graph" "$out/torch.log" || true
else
  echo "PyTorch is missing: purlin.torch not tried"
fi
[ $failed = 0 ] && echo "cublaslt_gpu: ok" || { echo "cublaslt_gpu: FAILED"; exit 1; }
