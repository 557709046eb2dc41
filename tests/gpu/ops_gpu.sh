#!/usr/bin/env bash
# Which op launches belong to, on a real GPU with PyTorch: under emit_nvtx, and by the products that cuBLAS
# is asked for; arrows in the exported trace; PyTorch's own profiler undisturbed. OUT, if set, gets ops.json.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [ $# -gt 0 ]; then PATH=$(cd "$1" && pwd)/bin:$PATH; fi
python=${PYTHON:-python3}
"$python" -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null || {
  echo "skipped: no PyTorch with CUDA"; exit 0; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"
steps=${STEPS:-100}
script=$here/ops_pytorch.py
# NAME MODE OPTIONS…: all at once, as most of each is importing PyTorch.
run() {
  local name=$1 mode=$2
  shift 2
  echo "== $name: purlin profile $* -- ops_pytorch.py $mode $steps"
  purlin profile --torch off "$@" -o "$name.plprof" --json -- "$python" "$script" "$mode" "$steps" >"$name.first" 2>"$name.out" &&
    purlin report "$name.plprof" --by launch --json >"$name.json" || { echo "FAILED: $name"; tail -5 "$name.out"; } &
}
run nvtx nvtx --full --ops on
run gemm plain --full --ops off --gemm-shapes
run both nvtx --full --ops on --gemm-shapes
run sampled nvtx                       # as anyone would run it
run sampled_gemm plain --gemm-shapes
run off nvtx --full --ops off
"$python" "$script" profiler 20 alone.trace >alone.out &
purlin profile --full --ops on --gemm-shapes -o profiler.plprof --json -- "$python" "$script" profiler 20 under.trace >/dev/null 2>profiler.out &
wait
purlin export nvtx.plprof --format chrome -o nvtx.chrome.json
purlin export both.plprof --format perfetto -o both.perfetto
"$python" - "$steps" <<'PY'
import collections, json, os, sys
steps = int(sys.argv[1])
load = lambda name: json.load(open(name + ".json"))
said = lambda name: json.loads(next(l[l.index('{"steps"'):] for l in open(name) if '{"steps"' in l))
products = [tuple(p) for p in said("nvtx.out")["products"]]
shape = lambda m, n, k, b: (f"B={b}," if b > 1 else "") + f"M={m},N={n},K={k}"

def summary(name):
    rows = load(name)["kernels"]
    total = sum(r["total_ns"] for r in rows)
    share = lambda keep: sum(r["total_ns"] for r in rows if keep(r)) / total if total else 0
    gemms = collections.defaultdict(float)
    for r in rows:
        if r.get("op_class") == "gemm" or r["op"] == "gemm" or "mm" in r["op"]:
            gemms[(r["op"], r["shape"], r["dtype"])] += r["count"]
    out = said(name + ".out")
    return {"seconds": out["seconds"], "launches": sum(r["count"] for r in rows), "share_with_op": share(lambda r: r["op"]),
            "share_with_shape": share(lambda r: r["shape"]), "ops": sorted({r["op"] for r in rows}),
            "products": [[*k, v] for k, v in sorted(gemms.items())],
            "without_op": sorted({r["name"][:100] for r in rows if not r["op"]}),
            "triton": [[r["name"][:40], r["op"], r["count"]] for r in rows if "triton_scale" in r["name"]],
            "coverage": load(name)["coverage"]}

result = {name: summary(name) for name in ("nvtx", "gemm", "both", "sampled", "sampled_gemm", "off")}
events = json.load(open("nvtx.chrome.json"))["traceEvents"]
begins = {e["id"]: e for e in events if e["ph"] == "s"}
ends = [e for e in events if e["ph"] == "f"]
result["trace"] = {"arrows": len(begins), "ends": len(ends),
                   "backwards": sum(e["ts"] < begins[e["id"]]["ts"] for e in ends if e["id"] in begins),
                   "kernels": sum(e.get("cat") == "kernel" for e in events),
                   "calls": sum(e.get("cat") == "cuda_runtime" for e in events),
                   "ops": sum(e.get("cat") == "cpu_op" for e in events),
                   "call_names": dict(collections.Counter(e["name"] for e in events if e.get("cat") == "cuda_runtime"))}
result["profiler_alone"], result["profiler_under_purlin"] = said("alone.out"), said("profiler.out")
result["bytes_per_launch"] = {name: os.path.getsize(name + ".plprof") / max(1, result[name]["launches"]) for name in result if name + ".plprof" in os.listdir(".")}
text = json.dumps(result, indent=1)
print(text)
if os.environ.get("OUT"):
    os.makedirs(os.environ["OUT"], exist_ok=True)
    open(os.path.join(os.environ["OUT"], "ops.json"), "w").write(text + "\n")

failed = []
def check(what, right):
    print(("ok      " if right else "FAILED  ") + what)
    if not right:
        failed.append(what)
wanted = collections.Counter({(shape(m, n, k, b), t): 1 for m, n, k, b, t in products})
for name, typed in (("nvtx", False), ("gemm", True), ("both", True)):
    seen = {(s, t if typed else "") for _, s, t, _ in result[name]["products"]}
    missing = [w for w in wanted if (w[0], w[1] if typed else "") not in seen]
    check(f"{name}: the shapes of all products{' and their types' if typed else ''}; missing {missing}", not missing)
    # A product may take two kernels; of each there is one a step, and in plain runs three to warm up.
    counts = collections.Counter()
    for _, s, _, c in result[name]["products"]:
        counts[s] += c
    check(f"{name}: each product as often as it was asked for", all(counts.get(w[0], 0) >= steps for w in wanted))
check("nvtx: 90 % of the GPU's time has an op", result["nvtx"]["share_with_op"] >= 0.9)
check("both: 90 % of the GPU's time has an op and a shape", min(result["both"]["share_with_op"], result["both"]["share_with_shape"]) >= 0.9)
check("off: nothing has an op", result["off"]["share_with_op"] == 0)
check("sampled: most of the time has an op", result["sampled"]["share_with_op"] >= 0.5)
trace = result["trace"]
check("every kernel has an arrow from its call, none backwards",
      trace["ends"] >= trace["kernels"] * 0.99 > 0 and trace["backwards"] == 0)
if said("nvtx.out")["triton"]:
    check("a kernel launched through the driver has its op", any(op == "own triton" for _, op, _ in result["nvtx"]["triton"]))
alone, under = result["profiler_alone"], result["profiler_under_purlin"]
check("PyTorch's profiler sees the same kernels and calls under Purlin",
      all(alone[k] == under[k] for k in ("kernels", "arrows")) and abs(alone["runtime_calls"] - under["runtime_calls"]) <= 4)
print("ops on PyTorch: " + ("ok" if not failed else "FAILED: " + "; ".join(failed)))
sys.exit(1 if failed else 0)
PY
