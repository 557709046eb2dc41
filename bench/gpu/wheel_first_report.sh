#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# wheel_first_report.sh WHEEL: on a GPU machine with PyTorch, the time from a wheel to the report of a training
# program. Needs no network. Record: bench/results/first_report.md
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
wheel=$(realpath "${1:?the wheel}")
work=$(mktemp -d)
now() { date +%s.%N; }
since() { python3 -c "print('%.1f s' % ($(now) - $1))"; }
echo "host: $(. /etc/os-release; echo "$PRETTY_NAME"), $(ldd --version | head -1), $(python3 --version)"
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
begin=$(now)
# PyTorch is where this python3 has it, so the wheel goes next to it: a folder on PYTHONPATH.
python3 -m pip install --quiet --no-index --no-deps --target "$work/site" "$wheel"; echo "--target install: exit $?, $(since $begin)"
export PYTHONPATH=$work/site PATH=$PATH:$work/site/bin; python=python3 bin=$work/site/bin
python3 -c 'import torch; print("torch", torch.__version__)'
ls "$bin" | grep purlin
t=$(now); "$bin/purlin" --version; echo "version: $(since $t)"
t=$(now); "$bin/purlin" doctor --json >"$work/doctor.json"; echo "doctor: exit $?, $(since $t)"
python3 - "$work/doctor.json" <<'PY'
import json, sys
d = json.load(open(sys.argv[1]))
for c in d["capabilities"]:
    print("  %-9s %s: %s" % (c["state"], c["title"], c["evidence"][:110]))
PY
t=$(now); PYTHONDONTWRITEBYTECODE=1 timeout 60 "$bin/purlin" profile -o "$work/run.plprof" -- "$python" "$here/wheel_train.py" >"$work/out" 2>"$work/err"; echo "profile: exit $?, $(since $t)"
echo "from nothing to the first report: $(since $begin)"
head -40 "$work/out"; head -5 "$work/err"
"$bin/purlin" report "$work/run.plprof" --json >"$work/report.json"
python3 - "$work/report.json" <<'PY'
import json, sys
d = json.load(open(sys.argv[1]))
steps = (d.get("timeline") or {}).get("steps") or d.get("steps")
print("kernels:", len(d["kernels"]), "steps:", json.dumps(steps)[:300])
assert d["kernels"], "no kernels"
PY
echo "check: exit $?"
"$python" -c 'import purlin; print("package:", purlin.__version__, purlin.command()); print(purlin.Cache("'"$work"'/cache").device("cuda:0"))'
[ -n "${OUT:-}" ] && cp "$work/report.json" "$work/doctor.json" "$OUT/"
"$bin/purlin" advise "$work/run.plprof" 2>/dev/null | head -30
