#!/usr/bin/env bash
# guard_gpu.sh [DIR]: the gate on real devices: RUNS checks of an unchanged sample suite, and RUNS with a real
# slowdown (+3, +5, +10 % in turn) planted in one kernel of it. One suite runs on each GPU at a time.
# Writes $OUT/guard_runs.csv (a line per run) and $OUT/guard_table.json; prints the table.
# Exit 1 if an unchanged suite was red more than once in forty, or +10 % was missed.
#   RUNS=40          of each kind (default 40; 4 where run_all.sh runs everything)
#   LIMIT=270        seconds after which no further run is started
#   GUARD_DEVICE     default: each GPU of nvidia-smi, or those of GPUS="2,3"; "opencl:0" is what CI uses
#   PLANTED="3 5 10" percent;  THRESHOLDS='' further lines of [thresholds];  SHAPES=medium|large|small
#   (medium: each kernel takes more than 30 us on an H200, and as little memory as that allows)
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[ -z "${1:-}" ] || export PATH=$(cd "$1" && pwd)/bin:$PATH
export RUNS=${RUNS:-40} LIMIT=${LIMIT:-270} PLANTED=${PLANTED:-3 5 10} OUT=${OUT:-$PWD/guard-out}
SHAPES=${SHAPES:-medium}
mkdir -p "$OUT"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_CACHE_HOME=$work/cache work

kernels=
for folder in "$(dirname "$(command -v purlin)")/../share/purlin/kernels" "$here/../../kernels"; do
  [ -d "$folder" ] && kernels=$(cd "$folder" && pwd) && break
done
[ -n "$kernels" ] || { echo 'guard_gpu: the sample kernels are not found' >&2; exit 2; }
if [ -n "${GUARD_DEVICE:-}" ]; then
  slots=(none)
else
  gpus=${GPUS:-${CUDA_VISIBLE_DEVICES:-}}
  mapfile -t slots < <(nvidia-smi --query-gpu=uuid --format=csv,noheader ${gpus:+--id="$gpus"})
  [ "${#slots[@]}" -gt 0 ] || { echo 'guard_gpu: no GPU (nvidia-smi)' >&2; exit 2; }
fi
export GUARD_DEVICE=${GUARD_DEVICE:-cuda:0}

shape_of() {  # KERNEL
  case $SHAPES:$1 in
    *:gemm) echo "${GEMM:-M=1024,N=1024,K=1024}" ;;
    medium:transpose) echo Y=4608,X=4608 ;;
    medium:reduction) echo R=1024,C=49152 ;;
    medium:*) echo R=6144,C=4096 ;;
    *) echo "$SHAPES" ;;
  esac
}

# The sample suite: five of the sample kernels, and the one that is slowed down.
mkdir "$work/suite"
cp -r "$here"/guard/. "$work/suite/"
{
  printf 'schema = "purlin.suite/1"\nname = "sample"\ndevice = "%s"\n' "$GUARD_DEVICE"
  printf '[thresholds]\n%s\n[measure]\nbudget_s = 0.05\n%s\n' "${THRESHOLDS:-}" "${MEASURE:-}"
  for kernel in ${KERNELS-gemm softmax transpose reduction elementwise}; do
    cp -r "$kernels/$kernel" "$work/suite/$kernel"
    printf '[[items]]\nspec = "%s/%s.toml"\nshape = "%s"\nconfig = "default"\n' \
      "$kernel" "$kernel" "$(shape_of "$kernel")"
  done
  printf '[[items]]\nspec = "work.toml"\nshape = "%s"\nconfig = "default"\ntags = ["work"]\n' \
    "$([ "$SHAPES" = small ] && echo small || echo '')"
} >"$work/suite/gate.toml"

[ "${slots[0]}" = none ] || export CUDA_VISIBLE_DEVICES=${slots[0]}
begin=$(date +%s)
# How long a step takes, from the kernel with none and with STEPS steps more.
time_of() {  # EXTRA
  sed -i "s/^#define EXTRA .*/#define EXTRA $1/" "$work/suite/work.h"
  purlin guard run "$work/suite/gate.toml" --tag work --rounds 3 --json |
    python3 -c 'import json,sys
item = json.load(sys.stdin)["items"][0]
if item["status"] != "ok": sys.exit("guard_gpu: " + item["message"])
print(item["p50_ns"])'
}
double=$(time_of 4000) single=$(time_of 0)
purlin guard baseline "$work/suite/gate.toml" -o "$work/base.json" --rounds 3 >/dev/null
for percent in $PLANTED; do
  cp -r "$work/suite" "$work/suite-$percent"
  extra=$(python3 -c "print(round(4000 * $percent / 100 * $single / ($double - $single)))")
  sed -i "s/^#define EXTRA .*/#define EXTRA $extra/" "$work/suite-$percent/work.h"
  echo "guard_gpu: +$percent % is $extra steps more than 4000 (the kernel takes $single ns)" >&2
done
cp -r "$work/suite" "$work/suite-0"

# The runs, unchanged and planted in turn, so that a limit cuts both alike. Each takes a free GPU.
mkdir "$work/free" "$work/rows"
for slot in "${slots[@]}"; do touch "$work/free/$slot"; done
export begin
run_one() {  # NUMBER PERCENT
  [ $(($(date +%s) - begin)) -lt "$LIMIT" ] || return 0
  local slot code=0 started ended
  for slot in "$work"/free/*; do mv "$slot" "$work/busy-${slot##*/}" 2>/dev/null && break; done
  slot=${slot##*/}
  [ "$slot" = none ] || export CUDA_VISIBLE_DEVICES=$slot
  started=$(date +%s.%N)
  purlin guard check "$work/suite-$2/gate.toml" --baseline "$work/base.json" --json \
    >"$work/rows/$1.json" 2>"$work/rows/$1.err" || code=$?
  ended=$(date +%s.%N)
  echo "$2 $code $started $ended $slot" >"$work/rows/$1.run"
  mv "$work/busy-$slot" "$work/free/$slot"
}
export -f run_one
planted=($PLANTED)
for ((i = 0; i < RUNS; ++i)); do
  echo "$((2 * i)) 0"
  echo "$((2 * i + 1)) ${planted[$((i % ${#planted[@]}))]}"
done | xargs -P "${#slots[@]}" -L 1 bash -c 'run_one "$@"' _

python3 - "$work/rows" "$OUT" "$single" <<'END'
import collections, csv, glob, json, os, statistics, sys
rows_folder, out, single = sys.argv[1:]
rows, environment = [], None
for path in sorted(glob.glob(rows_folder + "/*.run"), key=lambda p: int(os.path.basename(p)[:-4])):
    percent, code, begin, end, gpu = open(path).read().split()
    try:
        report = json.load(open(path[:-4] + ".json"))
    except ValueError:
        report = {"items": [], "verdict": "error", "seconds": 0}
        print(open(path[:-4] + ".err").read()[-2000:], file=sys.stderr)
    environment = report.get("environment", environment)
    work = next((i for i in report["items"] if i["kernel"] == "work"), {})
    ratio = work.get("ratio") or {}
    measurement = report.get("measurement", {})
    rows.append({
        "run": os.path.basename(path)[:-4], "planted_percent": percent, "exit_code": code,
        "verdict": report["verdict"], "work_verdict": work.get("verdict", ""),
        "red": " ".join(i["kernel"] for i in report["items"] if i["verdict"] == "regression"),
        "open": " ".join(i["kernel"] for i in report["items"] if i["verdict"] in ("inconclusive", "invalid")),
        "ratio": ratio.get("estimate", ""), "low": ratio.get("low", ""), "high": ratio.get("high", ""),
        "pairs_of_work": work.get("pairs", ""), "pairs": sum(i["pairs"] for i in report["items"]),
        "launches": measurement.get("launches", ""), "rejected_pairs": measurement.get("rejected_pairs", ""),
        "seconds": f"{float(end) - float(begin):.1f}", "gpu": gpu})
with open(out + "/guard_runs.csv", "w") as file:
    writer = csv.DictWriter(file, rows[0].keys())
    writer.writeheader()
    writer.writerows(rows)
by = collections.defaultdict(list)
for row in rows:
    by[int(row["planted_percent"])].append(row)
table = []
for percent, some in sorted(by.items()):
    verdicts = collections.Counter(r["verdict"] for r in some)
    ratios = [r["ratio"] for r in some if r["ratio"] != ""]
    table.append({
        "planted_percent": percent, "runs": len(some), "verdicts": dict(verdicts),
        "work_red": sum(r["work_verdict"] == "regression" for r in some),
        "others_red": sum(any(k != "work" for k in r["red"].split()) for r in some),
        "median_ratio": statistics.median(ratios) if ratios else None,
        "median_seconds": statistics.median(float(r["seconds"]) for r in some),
        "mean_pairs_of_work": statistics.mean(r["pairs_of_work"] or 0 for r in some)})
json.dump({"table": table, "kernel_ns": float(single), "environment": environment,
           "gpus": len({r["gpu"] for r in rows})}, open(out + "/guard_table.json", "w"), indent=1)
print("| planted | runs | verdicts of the suite | the slowed kernel red | others red | measured | pairs | seconds |")
print("|--:|--:|---|--:|--:|--:|--:|--:|")
for t in table:
    verdicts = ", ".join(f"{n} {v}" for v, n in sorted(t["verdicts"].items()))
    print(f"| +{t['planted_percent']} % | {t['runs']} | {verdicts} | {t['work_red']} | {t['others_red']} | "
          f"{(t['median_ratio'] or 1) - 1:+.2%} | {t['mean_pairs_of_work']:.1f} | {t['median_seconds']:.1f} |")
alike = by[0]
alarms = sum(r["red"] != "" for r in alike)
large = [t for t in table if t["planted_percent"] >= 10]
bad = alarms > 1 + len(alike) // 40 - (len(alike) >= 40) or any(t["work_red"] < 0.9 * t["runs"] for t in large)
sys.exit(1 if bad or not alike else 0)
END
