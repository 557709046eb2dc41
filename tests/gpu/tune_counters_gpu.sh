#!/usr/bin/env bash
# tune_counters_gpu.sh DIR: `purlin tune --strategy counters` on a real GPU reads hardware counters of candidates in
# a second process. They must be in the trace with values that can be true, what is timed must take as long as without
# them, and what reading costs is printed. DIR is an unpacked bundle or a build folder; OUT, if set, gets
# tune_counters.json. About 60 s.
set -euo pipefail
where=$(cd "$1" && pwd)
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
kernels=$where/share/purlin/kernels
[ -d "$kernels" ] || kernels=$here/../../kernels
# Caches of their own, so that each session compiles all of its configs.
tune() {  # NAME STRATEGY BUDGET ARGUMENT…
  XDG_CACHE_HOME=$tmp/$1.cache timeout 60 "$where/bin/purlin" tune "$kernels/gemm/gemm.toml" --device cuda:0 --strategy "$2" \
    --budget "$3" --seed 7 --no-store --json "${@:4}" >"$tmp/$1.json" 2>"$tmp/$1.err" || { echo "FAILED: $1: exit $?"; tail -5 "$tmp/$1.err"; exit 1; }
}
tune plain model 300,10s --shape large
tune counted counters 300,10s --shape large
tune again transfer 24 --shape large --transfer "$tmp/counted.json"  # its fastest, where nobody counts
tune cold counters 14,8s --shape M=2048,N=2048,K=2048 --cold --finals 0
tune plain_small model 300,6s --shape M=512,N=512,K=512
tune counted_small counters 300,6s --shape M=512,N=512,K=512
grep -h 'no hardware counters' "$tmp"/*.err || true
python3 "$here/tune_counters.py" "$tmp" "${OUT:-$tmp}/tune_counters.json"
