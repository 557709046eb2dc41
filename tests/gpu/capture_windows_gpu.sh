#!/usr/bin/env bash
# capture_windows_gpu.sh DIR: programs that CUPTI 13.0 has crashed in one of some 300 windows
# (bench/results/cupti_windows_crash.md) under `purlin profile --window 10ms@20ms`: PER_GPU (4) PyTorch programs on each
# GPU, all at the same time, for SECONDS_EACH (20), in turn one of PROGRAMS ("training training training medium"). Says of
# each how it ended and after how many windows; 1 where one was crashed, or was not recorded in windows. OUT, if set, gets
# capture_windows.json. OPTIONS: instead of those of the windows; PROGRAM: another command.
set -euo pipefail
where=$(cd "$1" && pwd)
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
seconds=${SECONDS_EACH:-20}
read -ra programs <<<"${PROGRAMS:-training training training medium}"
[ -n "${PROGRAM:-}" ] || python3 -c 'import torch' 2>/dev/null || { echo "skipped: no PyTorch"; exit 0; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
gpus=$({ nvidia-smi -L 2>/dev/null || true; } | wc -l)
one() { # NUMBER GPU PROGRAM
  local code=0 file=$tmp/$1.plprof
  local program=${PROGRAM:-python3 $root/bench/gpu/capture_programs.py run steps $3 1000000 /dev/null}
  # Told to end as by Ctrl-C, so that the last seal is written; in the background that is ignored unless set so.
  # shellcheck disable=SC2086
  CUDA_VISIBLE_DEVICES=$2 "$where/bin/purlin" profile --quiet --torch off ${OPTIONS:---window 10ms@20ms --budget 0.01%} -o "$file" -- \
    env --default-signal=INT timeout -s INT -k 10 "$seconds" $program >"$tmp/$1.log" 2>&1 || code=$?
  "$where/bin/purlin" report "$file" --json >"$tmp/$1.json" 2>/dev/null || true
  python3 - "$1" "$2" "$3" "$code" "$tmp/$1.json" "$tmp/$1.log" <<'END'
import json, sys
number, gpu, program, code, report, log = sys.argv[1:]
try:
    said = json.load(open(report))["coverage"] or {}
except ValueError:
    said = {}
ended = {"124": "as told", "0": "by itself"}.get(code, f"exit {code}: " + open(log, errors="replace").read()[-300:])
print(json.dumps({"process": int(number), "gpu": int(gpu), "program": program, "ended": ended, "windows": (said.get("sampling") or {}).get("windows", 0),
                  "launches_seen": said.get("launches_seen", 0), "notes": [n["cause"] for n in said.get("notes") or []]}))
END
}
for ((number = 0; number < ${PER_GPU:-4} * (gpus > 0 ? gpus : 1); ++number)); do
  one "$number" $((gpus > 0 ? number % gpus : 0)) "${programs[number / (gpus > 0 ? gpus : 1) % ${#programs[@]}]}" &
done >"$tmp/processes"
wait
python3 - "$tmp/processes" "${OUT:+$OUT/capture_windows.json}" <<'END'
import json, sys
rows = sorted((json.loads(line) for line in open(sys.argv[1])), key=lambda row: row["process"])
for row in rows:
    print(f"process {row['process']}, {row['program']} on GPU {row['gpu']}: {row['windows']:.0f} windows, {row['launches_seen']:.0f} launches; ended {row['ended']}; {' '.join(row['notes'])}")
crashed = [row for row in rows if row["ended"] not in ("as told", "by itself")]
bare = [row for row in rows if row["windows"] < 10]
print(f"{len(rows)} processes, {sum(row['windows'] for row in rows):.0f} windows: {len(crashed)} crashed, {len(bare)} without windows")
if sys.argv[2]:
    json.dump({"processes": rows}, open(sys.argv[2], "w"), indent=1)
sys.exit(1 if crashed or bare or not rows else 0)
END
