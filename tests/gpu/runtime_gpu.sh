#!/usr/bin/env bash
# runtime_gpu.sh DIR: libpurlin's dispatcher on a real GPU: results, CUDA graphs, shadow launches, and what a
# dispatch costs beside a bare cuLaunchKernel. DIR is an unpacked bundle or a build folder.
set -euo pipefail
where=$(cd "$1" && pwd)
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
library=$(find "$where" -name 'libpurlin.so.*' -print -quit)
spec=$(find "$where" "$here/../../kernels" -path '*gemm/gemm.toml' -print -quit 2>/dev/null)
[ -n "$library" ] && [ -n "$spec" ] || { echo "no libpurlin.so or gemm.toml below $where" >&2; exit 2; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export XDG_CACHE_HOME=$tmp/cache PURLIN_CACHE=$tmp/configs
config=BM=64,BN=64,BK=16,TM=4,TN=4,LANES=8,VECTOR=4,PAD=0,STAGES=1,UNROLL=true,GROUP=1,MIN_BLOCKS=1
"$where/bin/purlin" cache put "$spec" --device cuda:0 --shape M=128,N=128,K=64 --config "$config"
"$where/bin/purlin" cache put "$spec" --device cuda:0 --shape M=256,N=128,K=64 --config "$config"
PURLIN_LOG=info timeout 100 "${PYTHON:-python3}" "$here/runtime_cuda.py" "$library" "$spec"
"$where/bin/purlin" backlog || echo "backlog: exit code $?"
