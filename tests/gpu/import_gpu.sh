#!/usr/bin/env bash
# Files of the Nsight tools on this machine, where there are any: launches and times as SQLite and
# Python's CSV reader count them. OUT, if set, keeps the exports.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=${PYTHON:-python3}
script=$here/profile_pytorch.py
out=${OUT:-$(mktemp -d)}
tried=0
"$python" -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null || {
  echo "skipped: no PyTorch with CUDA"; exit 0; }

if command -v nsys >/dev/null; then
  tried=1
  nsys profile --trace=cuda,nvtx --cuda-graph-trace=node --force-overwrite true -o "$out/nsys" \
    "$python" "$script" plain 5
  nsys export --type sqlite --force-overwrite true -o "$out/nsys.sqlite" "$out/nsys.nsys-rep"
  purlin import "$out/nsys.sqlite" -o "$out/nsys.plprof" --json >"$out/nsys.json"
  "$python" - "$out/nsys.sqlite" "$out/nsys.json" <<'PY'
import json, sqlite3, sys
db = sqlite3.connect(sys.argv[1])
count, total = db.execute("SELECT count(*), sum(end - start) FROM CUPTI_ACTIVITY_KIND_KERNEL").fetchone()
found = json.load(open(sys.argv[2]))
print("nsys:", count, "launches,", total, "ns; Purlin:", found["launches"], found["kernel_ns"])
assert found["launches"] == count and found["kernel_ns"] == total and not found["partial"], found
PY
  purlin report --top 5 "$out/nsys.plprof"
fi

if command -v ncu >/dev/null; then
  tried=1
  for page in raw details; do
    ncu --set full --csv --page "$page" --launch-count 20 "$python" "$script" plain 1 >"$out/ncu_$page.csv" || {
      echo "ncu could not read counters here"; tail -3 "$out/ncu_$page.csv"; exit 0; }
    purlin import "$out/ncu_$page.csv" --json >"$out/ncu_$page.json"
    "$python" - "$out/ncu_$page.json" <<'PY'
import json, sys
found = json.load(open(sys.argv[1]))
print("ncu:", found["launches"], "launches in", found["kernel_rows"], "rows")
assert found["launches"] == 20 and found["kernel_rows_with_counters"] == found["kernel_rows"], found
PY
  done
fi
[ "$tried" -eq 1 ] || echo "skipped: neither nsys nor ncu on this machine"
