#!/usr/bin/env bash
# torch_daemon_gpu.sh DIR: `purlin profile --torch daemon` on a real GPU. By itself: one trace, with ops. With --idle: no
# trace until `purlin capture window --torch PID` asks for one, twice. 60 s.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
PATH=$(cd "$1" && pwd)/bin:$PATH
python=${PYTHON:-python3}
"$python" -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null || { echo "skipped: no PyTorch with CUDA"; exit 0; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"
. "$here/lib.sh"
script=$here/torch_hook.py
traced() {  # PROFILE: has a trace, and ops for most of the time
  run 0 purlin report --json "$1"
  json '"torch_trace" in [n["cause"] for n in d["coverage"]["notes"]]'
  json 'sum(k["total_ns"] for k in d["kernels"] if k.get("op")) >= 0.9 * sum(k["total_ns"] for k in d["kernels"]) > 0'
}
# Both at once: most of it is waiting.
timeout 90 purlin profile --quiet --torch daemon -o plain.plprof -- "$python" "$script" train 30 256 >plain.out 2>plain.err & plain=$!
timeout 90 purlin profile --quiet --torch daemon --idle -o idle.plprof -- "$python" "$script" train 30 256 >idle.out 2>idle.err & idle=$!
program() { pgrep -P "$(pgrep -P "$idle" -x purlin || echo "$idle")" -f "torch_hook.py train"; }
for _ in $(seq 150); do pid=$(program) && break; sleep 0.1; done
[ -n "${pid:-}" ] || { cat idle.err; fail "the program did not start"; }
sleep 12
echo "asked for a trace of $pid"
for _ in 1 2; do run 0 purlin capture window --torch "$pid"; cat "$tmp/out"; done
wait "$plain" || { cat plain.err; fail "the program failed under the daemon"; }
wait "$idle" || { cat idle.err; fail "the program failed under the daemon with --idle"; }
traced plain.plprof
traced idle.plprof
json '"of process '"$pid"'" in str(d["coverage"]["notes"])'
grep -hv '{"mode"' plain.err idle.err || true
echo "torch daemon: ok"
