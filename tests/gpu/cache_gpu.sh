#!/usr/bin/env bash
# cache_gpu.sh DIR: the config cache on a real GPU: a winner is tuned with its bucket's regret, checked again, taken
# over from an older driver once it was validated here, and quarantined when its outputs turn out wrong; a program
# reads it through a lower layer. DIR is an unpacked bundle or a build folder. about a minute.
set -euo pipefail
where=$(cd "$1" && pwd)
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
purlin=$where/bin/purlin
kernels=$(find "$where" "$here/../../kernels" -path '*gemm/gemm.toml' -print -quit 2>/dev/null)
[ -n "$kernels" ] || { echo "no gemm.toml below $where" >&2; exit 2; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export XDG_CACHE_HOME=$tmp/home
cp -r "$(dirname "$kernels")" "$tmp/gemm"
spec=$tmp/gemm/gemm.toml
device=(--device "${DEVICE:-cuda:0}")   # DEVICE=opencl:0 tries the script itself
shape=(--shape M=512,N=512,K=256)
out=${OUT:-$tmp}
mkdir -p "$out"
. "$here/lib.sh"

run 0 "$purlin" tune "$spec" "${device[@]}" "${shape[@]}" --budget 20 --cache "$tmp/a" --bucket-regret 2 --regret-budget 8 --json
json 'len(d["bucket_regret"]) == 2 and all(r >= 1 for r in d["bucket_regret"].values())'
cp "$tmp/out" "$out/tune_regret.json"
run 0 "$purlin" cache get "$spec" "${device[@]}" "${shape[@]}" --cache "$tmp/a" --explain
cat "$tmp/out"
grep -q "layout: 'A=row,B=row,C=row'" "$tmp/out" || fail "the layout is not explained"

# Checked again: it stands, or the runner-up took its place, or the machine was too noisy to say.
run "0 1 3" "$purlin" cache verify "$spec" "${device[@]}" --cache "$tmp/a" --time-limit 12s --json
json '[w["verdict"] for w in d["winners"]][0] in ("validated", "replaced", "inconclusive")'
cp "$tmp/out" "$out/cache_verify.json"
python3 -c "import json; w = json.load(open('$tmp/out'))['winners'][0]; print('verify:', w['verdict'], w['winner_ns'], w['default_ns'], w['runner_up_ns'])"

# Of an older driver: not served here until it was checked here.
run 0 "$purlin" cache get "$spec" "${device[@]}" "${shape[@]}" --cache "$tmp/a" --json
python3 - "$tmp/out" "$tmp/old.json" <<'PY'
import json, sys
entry = json.load(open(sys.argv[1]))["entry"]
entry["key"]["driver"] = "550.00"
json.dump(entry, open(sys.argv[2], "w"))
PY
run 0 "$purlin" cache put --entry "$tmp/old.json" --cache "$tmp/b"
run 3 "$purlin" cache get "$spec" "${device[@]}" "${shape[@]}" --cache "$tmp/b"
run "0 1 3" "$purlin" cache verify "$spec" "${device[@]}" --cache "$tmp/b" --changed --time-limit 12s --json
verdict=$(python3 -c "import json; print(json.load(open('$tmp/out'))['winners'][0]['verdict'])")
echo "older driver: $verdict"
if [ "$verdict" = validated ]; then
  run 0 "$purlin" cache get "$spec" "${device[@]}" "${shape[@]}" --cache "$tmp/b" --json
  json 'd["outcome"] == "exact" and d["entry"]["key"]["driver"] == "550.00"'
fi

# A program reads through to it as a lower layer.
library=$(find "$where" -name 'libpurlin.so' -print -quit)
PYTHONPATH=$(cd "$here/../.." && pwd)/python:$where/share/purlin/python PURLIN_LIBRARY=$library python3 - "$tmp/mine" "$tmp/a" "${device[1]}" <<'PY'
import sys
import purlin
cache = purlin.Cache(sys.argv[1], below=[sys.argv[2]])
hit = cache.op("gemm", ["M", "N", "K"], cache.device(sys.argv[3]), layout="A=row,B=row,C=row").find(512, 512, 256)
assert hit.outcome == "exact" and hit.layer == sys.argv[2], (hit, hit.layer)
print("layers:", hit.outcome, "from the layer below")
PY

# Wrong outputs (it is the reference that changes here, which no key holds): quarantined, and served no more.
sed -i 's/\bC\[\(.*\)\] = \(.*\);/C[\1] = 2.0f * (\2) + 1.0f;/' "$tmp"/gemm/gemm_reference.c*
run 1 "$purlin" cache verify "$spec" "${device[@]}" --cache "$tmp/a" --time-limit 12s --json
json '[w["verdict"] for w in d["winners"]] == ["quarantined"]'
run 3 "$purlin" cache get "$spec" "${device[@]}" "${shape[@]}" --cache "$tmp/a" --explain
grep -q quarantined "$tmp/out" || fail "the withdrawal is not explained"
run 0 "$purlin" backlog --cache "$tmp/a" --json
json '[t["kind"] for t in d["tasks"]] == ["retune"]'
echo "cache_gpu: ok"
