#!/usr/bin/env bash
# Capture of PyTorch on a real GPU: counts equal to PyTorch's own profiler on the same script, and
# that profiler undisturbed when it runs under Purlin. OUT, if set, gets the numbers.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=${PYTHON:-python3}
"$python" -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null || {
  echo "skipped: no PyTorch with CUDA"; exit 0; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"
steps=${STEPS:-30}
script=$here/profile_pytorch.py

echo "1. PyTorch's own profiler, without Purlin"
"$python" "$script" own "$steps" own.json
echo "2. the same run under Purlin"
purlin profile --full -o plain.plprof --json -- "$python" "$script" plain "$steps" >plain.out
purlin report plain.plprof --json >plain.json
echo "3. Purlin around a program that runs its own profiler over the middle third"
"$python" "$script" middle "$steps" alone.json
purlin profile --torch off -o middle.plprof --json -- "$python" "$script" middle "$steps" middle.json >middle.out
purlin report middle.plprof --json >middle_report.json

"$python" - "$steps" <<'PY'
import collections, json, os, sys
steps = int(sys.argv[1])
own, alone, middle = (json.load(open(f)) for f in ("own.json", "alone.json", "middle.json"))
plain, around = json.load(open("plain.json")), json.load(open("middle_report.json"))
seen = collections.Counter()
for row in plain["kernels"]:
    seen[row["name"]] += row["count"]
wrong = {k: (own["kernels"].get(k, 0), seen.get(k, 0)) for k in {*own["kernels"], *seen}
         if own["kernels"].get(k, 0) != seen.get(k, 0)}
result = {
    "steps": steps,
    "kernel_names": len(seen),
    "launches_torch_profiler": own["total"],
    "launches_purlin": sum(seen.values()),
    "names_with_other_counts": wrong,
    "bytes_per_launch_full": os.path.getsize("plain.plprof") / max(1, sum(seen.values())),
    "plain_coverage": plain["coverage"],
    "middle_profiler_alone": alone["total"],
    "middle_profiler_under_purlin": middle["total"],
    "middle_coverage": around["coverage"],
    "middle_launches_purlin": sum(r["count"] for r in around["kernels"]),
}
text = json.dumps(result, indent=1)
print(text)
if os.environ.get("OUT"):
    open(os.path.join(os.environ["OUT"], "profile_pytorch.json"), "w").write(text + "\n")
assert not wrong and seen, "counts differ from PyTorch's own profiler"
assert middle["kernels"] == alone["kernels"] and middle["total"] > 0, "PyTorch's profiler was disturbed"
notes = {n["cause"]: n for n in around["coverage"]["notes"]}
assert notes.get("stood_aside", {}).get("seconds", 0) > 0, notes
# All but the middle third: what came before, and what came after Purlin took up again.
expected = sum(seen.values()) - alone["total"]
assert result["middle_launches_purlin"] == expected, (result["middle_launches_purlin"], expected)
print("profile on PyTorch: ok")
PY
