#!/usr/bin/env bash
# collect_beside.sh FOLDER_OF_BIN_AND_LIB [OUT]: `purlin serve` and `purlin collect` on loopback beside a PyTorch job, on a
# GPU. TURNS (4) runs of the job without and with the variables of `purlin env`, in alternation: how soon the server has
# kernels, whether it has all of them, what the job takes longer. Then a window of a running job, asked for at the server.
# N (6000): products of a run. About 90 s.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
PATH=$(cd "$1" && pwd)/bin:$PATH
out=${2:-$(mktemp -d)} work=$(mktemp -d)
mkdir -p "$out" "$work/spool" "$work/tmp"
n=${N:-6000} turns=${TURNS:-4}
loop=$here/product_loop.py
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$work"' EXIT
purlin serve --data "$work/data" --listen 127.0.0.1:0 --json >"$work/serving" 2>"$out/server.log" &
for _ in $(seq 100); do grep -q '"url"' "$work/serving" && break; sleep 0.1; done
url=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["url"])' "$work/serving") || exit 1
purlin collect --server "$url" --spool "$work/spool" --temporary "$work/tmp" --state "$work/state" --period 2s --listen 0 --json \
  >"$work/collecting" 2>"$out/collect.log" & collector=$!
with() { (eval "$(purlin env --spool "$work/spool" --build v1 --seal-period 2s)" && "$@"); }
python3 "$loop" 20 >/dev/null  # reads PyTorch from the disk
python3 - "$url" >"$out/first.txt" <<'PY' &
import json, sys, time, urllib.request
begin = time.time()
seen = lambda: json.load(urllib.request.urlopen(sys.argv[1] + "/v1/query/top?begin=-1d&limit=5", timeout=20))["launches"]
while seen() == 0 and time.time() - begin < 60:
    time.sleep(0.1)
print("%.1f" % (time.time() - begin))
PY
for turn in $(seq "$turns"); do
  with timeout 60 python3 "$loop" "$n" >"$out/with.$turn" 2>&1 || cat "$out/with.$turn"
  timeout 60 python3 "$loop" "$n" >"$out/without.$turn" 2>&1
done
sleep 4
python3 - "$out" "$url" "$turns" "$(cat /proc/$collector/stat)" "$(grep VmHWM /proc/$collector/status)" <<'PY'
import json, math, os, statistics, sys, urllib.request
out, url, turns, stat, memory = sys.argv[1:]
turns = int(turns)
read = lambda kind, turn: json.load(open(f"{out}/{kind}.{turn}"))
top = json.load(urllib.request.urlopen(url + "/v1/query/top?begin=-1d&limit=20", timeout=20))
wanted = sum(read("with", turn)["launches"] for turn in range(1, turns + 1))
print(f"first kernels at the server: {open(out + '/first.txt').read().strip()} s after the start of the program")
print(f"launched by the program: {wanted} products and additions each; at the server: " +
      ", ".join(f"{k['launches']:.1f} of {k['kernel'][:40]}" for k in top["kernels"][:3]))
seconds = lambda kind: [read(kind, turn)["seconds"] for turn in range(1, turns + 1)]
ratios = [a / b for a, b in zip(seconds("with"), seconds("without"))]
logs = [math.log(ratio) for ratio in ratios]
t = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36)[min(max(turns - 2, 0), 6)]
margin = t * statistics.stdev(logs) / math.sqrt(turns) if turns > 1 else float("nan")
middle = statistics.mean(logs)
print("time with over without, by turns:", *("%.4f" % ratio for ratio in ratios))
print(f"mean {math.exp(middle):.4f}, 95 % interval {math.exp(middle - margin):.4f} to {math.exp(middle + margin):.4f}")
print("by the capture's own estimate:", json.dumps(top["coverage"]))
used = stat.rsplit(")", 1)[1].split()
print(f"collector: {(int(used[11]) + int(used[12])) / os.sysconf('SC_CLK_TCK'):.2f} s of CPU time; {memory}")
PY
(eval "$(purlin env --spool "$work/spool" --build v2 --seal-period 1s)" && SLURM_JOB_ID=4711 exec timeout 60 python3 "$loop" 25s >"$out/window.job" 2>&1) & job=$!
sleep 9
node=$(python3 -c 'import json, sys, urllib.request; print(json.load(urllib.request.urlopen(sys.argv[1] + "/v1/nodes", timeout=20))["nodes"][0]["node"])' "$url")
begin=$(date +%s.%N)
timeout 40 purlin capture window --server "$url" --node "$node" --job 4711 --for 500ms --wait 30s -o "$out/now.plprof" --json >"$out/window.json" 2>"$out/window.err" ||
  cat "$out/window.err"
echo "window asked for at the server: back after $(python3 -c "import time; print(round(time.time() - $begin, 1))") s"
purlin report --json "$out/now.plprof" | python3 -c '
import json, sys
d = json.load(sys.stdin)
print("in it:", ", ".join("%d of %s" % (k["count"], k["name"][:40]) for k in d["kernels"][:3]), "; notes:", *(n["cause"] for n in d["coverage"]["notes"]))'
wait "$job"
tail -n 3 "$out/server.log" "$out/collect.log"
