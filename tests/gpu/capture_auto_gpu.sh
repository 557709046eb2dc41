#!/usr/bin/env bash
# capture_auto_gpu.sh DIR: `purlin profile --sample auto` on a real GPU, of a loop of empty launches: a first run is recorded
# and leaves what it cost; of the ranks of a later run as many are recorded as that says, and those left out are as fast as
# without Purlin (said, not judged: one process of this loop differs from the next by more than 1 %).
set -euo pipefail
where=$(cd "$1" && pwd)
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
nvcc=$(command -v nvcc || echo "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc")
[ -x "$nvcc" ] || { echo "skipped: no nvcc"; exit 0; }
out=${OUT:-$(mktemp -d)}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
"$nvcc" -std=c++17 -O2 -w -arch=native "$root/bench/gpu/launch_many.cu" -o "$tmp/launch_many" -ldl
export PURLIN_STATE=$out/capture-auto
unset RANK PURLIN_RUN_ID SLURM_JOB_ID SLURM_PROCID || true
rm -rf "$PURLIN_STATE"
"$where/bin/purlin" profile --sample auto --json -o "$tmp/first.plprof" -- "$tmp/launch_many" "${LAUNCHES:-2000000}" >"$out/first.json" 2>"$out/first.err"
cat "$PURLIN_STATE"/capture-cost/*
python3 - "$where/bin/purlin" "$tmp/launch_many" "$out" <<'END'
import json, os, re, subprocess, sys
purlin, program, out = sys.argv[1:]
first = json.load(open(f"{out}/first.json"))
one_in = first["coverage"]["sampling"]["one_in"]
record = dict(line.split(" ", 1) for line in open(next(os.scandir(f"{out}/capture-auto/capture-cost")).path).read().splitlines()[1:-1])
assert record["device"].startswith("NVIDIA"), record
assert int(record["cupti"]) > 0, record
rows = []
ranks = one_in + 2
for rank in range(ranks):
    run = subprocess.run([purlin, "profile", "--sample", "auto", "-o", f"{out}/rank.plprof", "--", program, "100000"], capture_output=True,
                         text=True, env={**os.environ, "RANK": str(rank), "PURLIN_RUN_ID": "ranks"})
    assert run.returncode == 0, run.stderr
    report = json.loads(subprocess.run([purlin, "report", f"{out}/rank.plprof", "--json"], capture_output=True, text=True, check=True).stdout)
    stands_for = report["processes"][0]["stands_for"]
    assert (stands_for == 0) == ("not recorded" in run.stderr), run.stderr
    rows.append({"rank": rank, "stands_for": stands_for, "launches": report["launches"],
                 "per_launch_us": float(re.search(r'"per_launch_us": ([0-9.]+)', run.stdout)[1])})
    if rank < 6 and not stands_for:
        alone = json.loads(subprocess.run([program, "100000"], capture_output=True, text=True, check=True).stdout)
        rows[-1]["alone_us"] = alone["per_launch_us"]
drawn = [row for row in rows if row["stands_for"]]
left = sorted(row["per_launch_us"] / row["alone_us"] for row in rows if "alone_us" in row)
summary = {"one_in": one_in, "presence": first["coverage"]["sampling"]["presence"], "record": record, "ranks": ranks, "drawn": len(drawn),
           "left_out_over_alone_median": left[len(left) // 2] if left else None, "rows": rows}
json.dump(summary, open(f"{out}/capture_auto.json", "w"), indent=1)
print(json.dumps({key: value for key, value in summary.items() if key not in ("rows", "record")}))
# One rank in N, until that one changes the record as it ends.
assert one_in > 1 and 1 <= len(drawn) <= 3, summary
END
echo "capture_auto_gpu: ok"
