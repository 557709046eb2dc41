#!/usr/bin/env bash
# Plain `purlin profile` on programs that nobody changed for it: each runs alone and under Purlin, and the
# step time of the report is compared with the program's own clock. run.sh BUNDLE_DIR OUT [PROGRAM…]
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
PATH=$(cd "$1" && pwd)/bin:$PATH
out=$2
shift 2
[ $# -gt 0 ] || set -- gpt2_train gpt2_generate resnet50_train jax_train
mkdir -p "$out"
for program in "$@"; do
  # The first run reads its libraries from disk, and is not timed.
  timeout 60 python3 "$here/$program.py" >/dev/null 2>&1
  begin=$(date +%s.%N)
  timeout 60 python3 "$here/$program.py" >"$out/$program.plain" 2>"$out/$program.plain.err"
  middle=$(date +%s.%N)
  timeout 90 purlin profile --quiet -o "$out/$program.plprof" -- python3 "$here/$program.py" >"$out/$program.txt" 2>"$out/$program.err"
  end=$(date +%s.%N)
  purlin report --json --by shape "$out/$program.plprof" >"$out/$program.json" 2>/dev/null
  purlin advise "$out/$program.plprof" >"$out/$program.advice.txt" 2>/dev/null
  python3 - "$out" "$program" "$begin" "$middle" "$end" <<'PY' | tee -a "$out/table.txt"
import json, sys
out, name, begin, middle, end = sys.argv[1], sys.argv[2], *map(float, sys.argv[3:])
def own(path):
    for line in open(path):
        if line.startswith("step_ms"): return float(line.split()[1])
    return 0.0
report = json.load(open(f"{out}/{name}.json"))
t = report["timeline"]
step = (t.get("mean_step") or {}).get("duration_ns", 0) / 1e6
classes = ("gemm", "convolution", "attention", "norm")
known = all_ns = 0.0
for k in report["kernels"]:
    if k["op_class"] in classes:
        all_ns += k["total_ns"]; known += k["total_ns"] if k["shape"] else 0
print(f"{name}: own clock {own(f'{out}/{name}.plain'):.3f} ms plain, {own(f'{out}/{name}.txt'):.3f} ms profiled; "
      f"report {step:.3f} ms ({t.get('steps_from')}, {len(t.get('steps', []))} steps); run {middle - begin:.1f} s plain, {end - middle:.1f} s profiled; "
      f"shape known for {100 * known / all_ns if all_ns else 0:.1f} % of gemm, convolution, attention, norm time")
PY
done
