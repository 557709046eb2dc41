#!/usr/bin/env bash
# tune_devices_gpu.sh DIR: `purlin tune --device cuda:0,cuda:1` shares one search between two GPUs of a model. Needs two.
# Nothing may be evaluated twice, the default must take as long as in a session of one GPU, and both must have evaluated;
# how many evaluations a second either way is printed. DIR is an unpacked bundle or a build folder. About 35 s.
set -euo pipefail
where=$(cd "$1" && pwd)
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[ "$(nvidia-smi -L | wc -l)" -ge 2 ] || { echo "tune_devices_gpu: needs two GPUs"; exit 2; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
kernels=$where/share/purlin/kernels
[ -d "$kernels" ] || kernels=$here/../../kernels
# A first session compiles the configs, so that the GPUs are what the others wait for.
for session in compiled:cuda:0 one:cuda:0 two:cuda:0,cuda:1; do
  XDG_CACHE_HOME=$tmp/cache timeout 60 "$where/bin/purlin" tune "$kernels/gemm/gemm.toml" --device "${session#*:}" --strategy random \
    --seed 7 --budget 200,12s --shape large --finals 0 --no-store --fresh --json >"$tmp/${session%%:*}.json" 2>"$tmp/err" || { cat "$tmp/err"; exit 1; }
done
python3 - "$tmp" "${OUT:-$tmp}/tune_devices.json" <<'PYTHON'
import json, sys
folder, output = sys.argv[1:]
problems, summary = [], {}
for name in ("one", "two"):
    d = json.load(open(f"{folder}/{name}.json"))
    configs = [json.dumps(e["config"], sort_keys=True) for e in d["evaluations"]]
    if len(set(configs)) != len(configs):
        problems.append(f"{name}: {len(configs) - len(set(configs))} configs were evaluated twice")
    summary[name] = {"evaluations": len(configs), "per_s": len(configs) / d["elapsed_s"], "default_ms": d["default"]["time_ms"], "best_ms": d["best"]["time_ms"],
                     "environment": d["environment"]}
    print(name, {k: v for k, v in summary[name].items() if k != "environment"})
ratio = summary["two"]["default_ms"] / summary["one"]["default_ms"]
if not 0.97 < ratio < 1.03:
    problems.append(f"the default took {ratio:.3f} times as long with two")
print(f"two GPUs over one: {summary['two']['per_s'] / summary['one']['per_s']:.2f} times the evaluations a second")
json.dump(summary, open(output, "w"), indent=1)
print("tune_devices_gpu:", "; ".join(problems) or "ok")
sys.exit(bool(problems))
PYTHON
