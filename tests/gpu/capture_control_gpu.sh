#!/usr/bin/env bash
# capture_control_gpu.sh DIR: `purlin capture` on a PyTorch program that runs under `purlin profile --idle`: nothing is
# recorded until it is asked for, then what was asked for, and nothing after. OUT, if set, gets capture_control.json. 25 s.
set -euo pipefail
where=$(cd "$1" && pwd)
export PATH=$where/bin:$PATH
python3 -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null || { echo "skipped: no PyTorch with CUDA"; exit 0; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"
cat >steps.py <<'PY'
import os, sys, time
import torch
torch.manual_seed(0)
layer = torch.nn.Linear(512, 512).cuda()
x = torch.randn(64, 512, device="cuda")
print("ready", os.getpid(), flush=True)
steps = 0
end = time.monotonic() + 60
while time.monotonic() < end and not os.path.exists("stop"):
    layer(x).relu_().sum().backward()
    steps += 1
    if steps % 100 == 0:
        torch.cuda.synchronize()
print("steps", steps, flush=True)
PY
cat >drive.py <<'PY'
import json, os, subprocess, sys, time
purlin = ["purlin"]
program = subprocess.Popen([*purlin, "profile", "--idle", "--quiet", "-o", "run.plprof", "--", "python3", "steps.py"],
                           stdout=subprocess.PIPE, text=True)
pid = program.stdout.readline().split()[1]
problems, rows = [], []
def ask(*words):
    began = time.monotonic()
    done = subprocess.run([*purlin, "capture", *words, pid, "--json"], capture_output=True, text=True, timeout=30)
    if done.returncode != 0:
        problems.append(f"{words}: exit {done.returncode}: {done.stderr.strip()}")
        return {}
    answer = json.loads(done.stdout)
    rows.append({"asked": " ".join(words), "answered_after_ms": round(1e3 * (time.monotonic() - began)), **answer})
    print(rows[-1], flush=True)
    return answer
def expect(what, good):
    if not good:
        problems.append(what)
time.sleep(1)
first = ask("status")
expect("idle at first", first.get("state") == "stopped" and first.get("recorded_ns") == 0)
expect("a window opens", ask("window", "--for", "500ms").get("state") == "recording")
time.sleep(1.5)
after = ask("status")
expect("the window ends by itself", after.get("state") == "stopped" and 0.4e9 < after.get("recorded_ns", 0) < 1.5e9)
expect("start governs", ask("start").get("state") in ("governed", "launch_bound", "ended"))
time.sleep(2)
governed = ask("stop")
expect("stop stops", governed.get("state") == "stopped")
expect("it was recorded meanwhile", governed.get("recorded_ns", 0) > after.get("recorded_ns", 0))
time.sleep(1)
last = ask("status")
expect("nothing is recorded after", last.get("recorded_ns") == governed.get("recorded_ns"))
for _ in range(20):  # as a person who cannot make up their mind
    ask("start"), ask("stop")
ask("window", "--for", "100ms")
open("stop", "w").close()
steps = program.stdout.read().split()
expect(f"the program ends well: exit {program.wait(60)}", program.returncode == 0)
report = json.loads(subprocess.run([*purlin, "report", "run.plprof", "--json"], capture_output=True, text=True).stdout)
notes = {n["cause"]: n for n in report["coverage"]["notes"]}
expect(f"the notes say what was asked: {sorted(notes)}", {"asked_window", "started", "stopped"} <= set(notes))
expect("launches are in the profile", report["launches"] > 0)
expect("and so is a timeline of the window", report["timeline"]["activities"] > 0)
summary = {"steps": int(steps[steps.index("steps") + 1]), "launches": report["launches"], "activities": report["timeline"]["activities"],
           "notes": {k: [v["count"], v["seconds"]] for k, v in notes.items()}, "asked": rows, "problems": problems}
if os.environ.get("OUT"):
    json.dump(summary, open(os.environ["OUT"] + "/capture_control.json", "w"), indent=1)
print({k: v for k, v in summary.items() if k != "asked"})
print("capture control:", "FAILED" if problems else "ok")
sys.exit(1 if problems else 0)
PY
timeout 60 python3 drive.py
