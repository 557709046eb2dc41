#!/usr/bin/env bash
# Unmodified PyTorch programs under `purlin profile`: ops and shapes of their kernels, the cost of the trace,
# and what stays as it is. torch_hook_gpu.sh [BUNDLE_DIR]; OUT, if set, gets torch_hook.json. About 140 s.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [ $# -gt 0 ]; then PATH=$(cd "$1" && pwd)/bin:$PATH; fi
python=${PYTHON:-python3}
"$python" -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null || {
  echo "skipped: no PyTorch with CUDA"; exit 0; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"
seconds=${SECONDS_EACH:-5}
script=$here/torch_hook.py
# Earlier than by default, so that short programs have a trace and time after it.
export PURLIN_TORCH_SETTLE=1.5 PURLIN_TORCH_WAIT=2
plain() { local name=$1; shift; timeout 60 "$python" "$script" "$@" >"$name.plain" 2>"$name.plain.err" || echo "exit $?" >"$name.plain.code"; }
hooked() {
  local name=$1 begin end
  shift
  begin=$(date +%s.%N)
  timeout 90 purlin profile --quiet --json -o "$name.plprof" -- "$python" "$script" "$@" >"$name.report" 2>"$name.hooked" || echo "exit $?" >"$name.hooked.code"
  end=$(date +%s.%N)
  echo "$begin $end" >"$name.times"
}
# Timed ones alone: launch-bound and not, with and without optimizer, graphs.
plain small train "$seconds" 256; hooked small train "$seconds" 256
plain big train "$seconds" 2048; hooked big train "$seconds" 2048
plain generate generate "$seconds"; hooked generate generate "$seconds"
plain graph graph "$seconds"; hooked graph graph "$seconds"
# The rest together: what is compared does not depend on time.
export PURLIN_TORCH_SETTLE=0.2
plain exact exact 300 & hooked exact exact 300 &
plain compiled compiled 300 & hooked compiled compiled 300 &
plain side side & hooked side side &
timeout 90 purlin profile --quiet --json -o torchrun.plprof -- "$python" -m torch.distributed.run --standalone \
  --nproc_per_node 1 "$script" exact 300 >torchrun.report 2>torchrun.hooked || echo "exit $?" >torchrun.hooked.code &
wait
"$python" - <<'PY'
import collections, json, os, sys
failed = []
def check(what, right):
    print(("ok      " if right else "FAILED  ") + what)
    if not right:
        failed.append(what)
def said(name):
    for line in reversed(open(name).read().splitlines()):
        if '{"mode"' in line:
            return json.loads(line[line.index('{"mode"'):])
    print(open(name).read()[-1500:])
    return {}
def report(name):
    try:
        return json.load(open(name + ".report"))
    except ValueError:
        return {"kernels": [], "coverage": {"notes": []}}
result = {}
for name in ("small", "big", "generate", "graph", "exact", "compiled", "side", "torchrun"):
    code = open(name + ".hooked.code").read() if os.path.exists(name + ".hooked.code") else "exit 0"
    check(f"{name}: the program ends well under Purlin ({code.strip()})", code == "exit 0")
    d = report(name)
    rows = d["kernels"]
    total = sum(r["total_ns"] for r in rows) or 1
    classes = collections.defaultdict(lambda: [0, 0, 0])
    for r in rows:
        c = classes[r.get("op_class") or "?"]
        c[0] += r["total_ns"] / total
        c[1] += r["total_ns"] / total * bool(r.get("op"))
        c[2] += r["total_ns"] / total * bool(r.get("shape"))
    notes = {n["cause"]: n["text"] for n in d["coverage"]["notes"]}
    out = result[name] = {"plain": said(name + ".plain") if os.path.exists(name + ".plain") else {},
        "hooked": said(name + ".hooked"), "op": sum(c[1] for c in classes.values()),
        "shape": sum(c[2] for c in classes.values()), "classes": {k: [round(x, 4) for x in v] for k, v in classes.items()},
        "notes": notes, "overhead_ns": d["coverage"].get("overhead_ns"), "launches_seen": d["coverage"].get("launches_seen"),
        "steps": len(d.get("timeline", {}).get("steps", []))}
    print(f"== {name}: op {out['op']:.1%}, shape {out['shape']:.1%} of {total / 1e6:.1f} ms of kernels")
    for c, (share, op, shape) in sorted(classes.items(), key=lambda item: -item[1][0]):
        print(f"   {c:14} {share:7.1%} of the time, op {op / share if share else 0:6.1%}, shape {shape / share if share else 0:6.1%}")
    for cause, text in notes.items():
        print(f"   note {cause}: {text}")
    p, h = out["plain"], out["hooked"]
    if "rates" in p and "rates" in h:
        print(f"   steps a second alone {p['rates']}, under Purlin {h['rates']}; longest step {p['worst_ms']:.0f} and {h['worst_ms']:.0f} ms")
        out["after"] = (h["rates"][-1] / p["rates"][-1]) if p["rates"] and h["rates"] else 0
        print(f"   last second: {out['after']:.3f} of the rate alone; steps in all {h['steps'] / p['steps']:.3f}")
text = json.dumps(result, indent=1)
if os.environ.get("OUT"):
    os.makedirs(os.environ["OUT"], exist_ok=True)
    open(os.path.join(os.environ["OUT"], "torch_hook.json"), "w").write(text + "\n")
for name in ("small", "big", "generate", "exact", "compiled", "torchrun"):
    r = result[name]
    check(f"{name}: a trace was made", "torch_trace" in r["notes"])
    if name == "compiled":  # its kernels are Triton's, of no op of PyTorch
        continue
    check(f"{name}: 90 % of the kernels' time has an op", r["op"] >= 0.9)
    for c in ("gemm", "attention", "norm"):
        share = r["classes"].get(c)
        if share and share[0] > 0.005:
            check(f"{name}: 90 % of {c}'s time has an op", share[1] >= 0.9 * share[0])
for name in ("small", "big"):
    check(f"{name}: ten steps on the timeline", result[name]["steps"] == 10)
# How fast a program is after its trace is measured turn by turn, by bench/gpu/granted_turns.py.
check("graph: the trace is made or its absence explained", any(c.startswith("torch_") for c in result["graph"]["notes"]))
for name in ("exact", "compiled"):
    a, b = result[name]["plain"], result[name]["hooked"]
    check(f"{name}: the random states are the same", a.get("random") == b.get("random") != None)
    check(f"{name}: the loss is the same", abs(a.get("loss", 0) - b.get("loss", 1)) <= 1e-3 * abs(a.get("loss", 0)))
    check(f"{name}: sys.path is the program's", b.get("path") == [])
check("torchrun: the random states are the same", result["torchrun"]["hooked"].get("random") == result["exact"]["plain"].get("random"))
a, b = result["side"]["plain"], result["side"]["hooked"]
check(f"fork, spawn, devices, the own profiler: {a}", bool(a) and {k: a[k] for k in a} == {k: b.get(k) for k in a})
def errors(name):  # stderr of the program alone, warnings without their place
    return {l.strip() for l in open(name + ".plain.err") if l.strip()}
for name in ("small", "generate", "exact"):
    extra = [l for l in open(name + ".hooked").read().splitlines() if l.strip() and '{"mode"' not in l and l.strip() not in errors(name)]
    extra = [l for l in extra if not l.startswith("purlin")]
    check(f"{name}: nothing new on stderr {extra[:5]}", not extra)
print("PyTorch without a code change: " + ("ok" if not failed else "FAILED: " + "; ".join(failed)))
sys.exit(1 if failed else 0)
PY
