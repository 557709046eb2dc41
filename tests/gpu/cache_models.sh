#!/usr/bin/env bash
# cache_models.sh DIR STATE [other]: one cache for GPUs of two models of an arch, such as H100 and H200. Run it on the
# one, carry STATE (the folder of a `purlin serve`, and what Triton tuned) to the other, run it there with `other`, and
# once more on the first if you like. Each run pulls from a server of its own over STATE, tunes, and pushes.
#
# With `other`: what was tuned on the other model is there and is not served, unless asked for, and never to programs;
# the search starts from it; how long its winners take here, beside this GPU's own, is in $OUT/models_NAME.json;
# Triton's wrapper does not take it either. DIR is an unpacked bundle or a build folder. Three minutes.
set -euo pipefail
where=$(cd "$1" && pwd)
mkdir -p "$2"
state=$(cd "$2" && pwd)
other=${3:-}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
purlin=$where/bin/purlin
kernels=$where/share/purlin/kernels
[ -d "$kernels" ] || kernels=$here/../../kernels
python=${PYTHON:-python3}
tmp=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$tmp"' EXIT
export XDG_CACHE_HOME=$tmp/home
device=${DEVICE:-cuda:0}   # DEVICE=opencl:0 tries the script itself
out=${OUT:-$tmp}
mkdir -p "$out"
limit=120
. "$here/lib.sh"

"$purlin" serve --listen 127.0.0.1:0 --data "$state/server" --json >"$tmp/serve.json" 2>"$tmp/serve.err" &
server=$!
url=
for _ in $(seq 100); do
  url=$("$python" -c "import json; print(json.load(open('$tmp/serve.json'))['url'])" 2>/dev/null) && break
  sleep 0.1
done
[ -n "$url" ] || { cat "$tmp/serve.err"; fail "the server does not start"; }
cache=(--cache "$tmp/cache" --device "$device")
if [ -n "$other" ]; then run 0 "$purlin" cache pull "$url/models" --cache "$tmp/cache"; cat "$tmp/out"; fi

# What a program gets for the first of the shapes: this GPU's own, or nothing; the other model's only on request.
library=$(find "$where" -name 'libpurlin.so' -print -quit)
program() {  # "expects" OUTCOME
  IFS=: read -r op extents <<<"${work[0]}"
  PYTHONPATH=$(cd "$here/../.." && pwd)/python:$where/share/purlin/python PURLIN_LIBRARY=$library "$python" - "$tmp/cache" "$device" "$op" "$extents" "$2" <<'PY'
import sys
import purlin
folder, device, op, shape, expected = sys.argv[1:]
extents = dict(pair.split("=") for pair in shape.split(","))
cache = purlin.Cache(folder)
here = cache.device(device)
outcomes = [cache.op(op, list(extents), here, layout="A=row,B=row,C=row", allow_transferred=allow).find(*map(int, extents.values()))
            for allow in (False, True)]
outcomes = ["miss" if hit is None else hit.outcome for hit in outcomes]
assert outcomes == ([expected] * 2 if expected == "exact" else ["miss", expected]), outcomes
print("program:", *outcomes)
PY
}

IFS=' ' read -r -a work <<<"${WORK:-gemm:M=2048,N=2048,K=2048 gemm:M=512,N=4096,K=4096 gemm:M=64,N=4096,K=4096 softmax:large layernorm:large}"
: >"$tmp/rows"
[ -z "$other" ] || program expects transferred
for item in "${work[@]}"; do
  spec=$kernels/${item%%:*}/${item%%:*}.toml
  at=(--shape "${item#*:}")
  : >"$tmp/theirs.json"
  if [ -n "$other" ]; then
    run 3 "$purlin" cache get "$spec" "${at[@]}" "${cache[@]}" --explain
    grep -q "device" "$tmp/out" || fail "the miss is not explained"
    run 0 "$purlin" cache get "$spec" "${at[@]}" "${cache[@]}" --allow-transferred --json
    json 'd["outcome"] == "transferred" and d["entry"]["key"]["device"] != d["key"]["device"] and d["entry"]["key"]["arch"] == d["key"]["arch"]'
    cp "$tmp/out" "$tmp/theirs.json"
  fi
  run 0 "$purlin" tune "$spec" "${at[@]}" "${cache[@]}" --budget "${BUDGET:-150,20s}" --json
  cp "$tmp/out" "$tmp/tuned.json"
  run 0 "$purlin" cache get "$spec" "${at[@]}" "${cache[@]}" --json
  json 'd["outcome"] == "exact" and d["entry"]["key"]["device"] == d["key"]["device"]'
  "$python" - "$item" "$tmp/tuned.json" "$tmp/theirs.json" "$tmp/rows" <<'PY'
import json, sys
item, tuned, theirs, rows = sys.argv[1:]
d = json.load(open(tuned))
row = {"item": item, "device": next(g["name"] for g in d["environment"]["devices"] if g["id"] == d["device"]), "evaluations": len(d["evaluations"]), "strategy": d["strategy_used"],
       "default_ms": d["default"]["time_ms"], "best_ms": d["best"]["time_ms"], "best": d["best"]["config"]}
text = open(theirs).read()
if text:
    entry = json.loads(text)["entry"]
    row["theirs_device"], row["theirs"], row["theirs_there_ms"] = entry["key"]["device"], entry["config"], entry["time_ms"]
    row["same_config"] = entry["config"] == d["best"]["config"]
    times = [(n, e) for n, e in enumerate(d["evaluations"]) if e["config"] == entry["config"]]
    assert times, "the search did not evaluate the other model's winner"
    row["theirs_evaluated_as"], evaluation = times[0]
    row["theirs_here_ms"] = evaluation.get("time_ms")
    row["best_evaluated_ms"] = min(e["time_ms"] for e in d["evaluations"] if e["status"] == "ok" and e["config"] == d["best"]["config"])
open(rows, "a").write(json.dumps(row) + "\n")
print({k: v for k, v in row.items() if k not in ("best", "theirs")})
PY
done

program expects exact
if [ "$device" != opencl:0 ] && "$python" -c 'import torch, triton' 2>/dev/null; then
  export PYTHONPATH=$(cd "$here/../.." && pwd)/python:$where/share/purlin/python PURLIN=$purlin PURLIN_LIBRARY=$library
  if [ -n "$other" ]; then run 0 "$purlin" cache pull "$url/triton" --cache "$tmp/triton"; fi
  for turn in first again; do
    TRITON_CACHE_DIR=$tmp/binaries-$turn PURLIN_CACHE=$tmp/triton "$python" "$here/triton/matmul.py" purlin 2048 >"$tmp/triton-$turn" 2>"$tmp/err" || { cat "$tmp/err"; fail "matmul.py"; }
    tail -1 "$tmp/triton-$turn" | tee -a "$out/models_triton.jsonl"
  done
  "$python" - "$tmp/triton-first" "$tmp/triton-again" <<'PY'
import json, sys
first, again = (json.loads(open(name).read().splitlines()[-1]) for name in sys.argv[1:])
assert first["right"] and again["right"]
assert not any(line.startswith(("exact", "bucket", "transferred")) for line in first["log"]), first["log"]
assert any(line.startswith("exact") for line in again["log"]), again["log"]
print("triton: tuned here, then exact")
PY
  run 0 "$purlin" cache push "$url/triton" --cache "$tmp/triton"
fi
run 0 "$purlin" cache push "$url/models" --cache "$tmp/cache"
cat "$tmp/out"
run 0 "$purlin" cache ls --cache "$tmp/cache" --json
[ -z "$other" ] || json 'len({e["key"]["device"] for e in d["entries"]}) == 2'
"$purlin" cache ls --cache "$tmp/cache"
name=$("$python" -c "import json; print(json.loads(open('$tmp/rows').readline())['device'].replace(' ', '_'))")
"$purlin" doctor --json >"$tmp/doctor.json" 2>/dev/null || true
"$python" - "$tmp" "$out/models_$name.json" <<'PY'
import json, sys
tmp, output = sys.argv[1:]
environment = json.load(open(f"{tmp}/tuned.json"))["environment"]
rows = [json.loads(line) for line in open(f"{tmp}/rows")]
json.dump({"environment": environment, "rows": rows}, open(output, "w"), indent=1)
PY
kill -TERM "$server" && wait "$server"
server=
echo "cache_models: ok"
