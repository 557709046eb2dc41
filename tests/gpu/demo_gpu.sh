#!/usr/bin/env bash
# The whole loop on CUDA.
set -euo pipefail
out=$(mktemp -d)
purlin demo --device cuda:0 -o "$out" --json >"$out/summary.json"
python3 - "$out/summary.json" <<'PY'
import json, sys
d = json.load(open(sys.argv[1]))
assert d["environment"]["devices"][0]["backend"] == "cuda"
assert d["tune"]["speedup"] > 1 and d["green"]["verdict"] == "pass" and d["red"]["verdict"] == "regression", d
print(json.dumps({k: d[k] for k in ("profile", "tune", "program", "seconds")}, indent=1))
PY
[ -n "${OUT:-}" ] && cp "$out/demo.json" "$OUT/demo.json"
exit 0
