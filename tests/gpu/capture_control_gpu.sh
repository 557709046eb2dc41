#!/usr/bin/env bash
# capture_control_gpu.sh DIR: `purlin capture` on a PyTorch program that runs under `purlin profile --idle`: nothing is
# recorded until it is asked for, then what was asked for, and nothing after; what is asked for before there is a context waits for
# it; and a program that was recorded from its start is not stopped and started without a warning. OUT, if set, gets
# capture_control.json. 50 s.
set -euo pipefail
where=$(cd "$1" && pwd)
export PATH=$where/bin:$PATH
python3 -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null || { echo "skipped: no PyTorch with CUDA"; exit 0; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"
cat >steps.py <<'PY'
import ctypes, os, sys, time
if len(sys.argv) > 1:  # CUDA is initialised, and there is no context before that file
    assert ctypes.CDLL("libcuda.so.1").cuInit(0) == 0
    print("initialised", os.getpid(), flush=True)
    while not os.path.exists(sys.argv[1]):
        time.sleep(0.01)
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
def begin(*arguments):
    started = subprocess.Popen([*purlin, "profile", "--quiet", "--torch", "off", *arguments], stdout=subprocess.PIPE, text=True)
    return started, started.stdout.readline().split()[1]
program, pid = begin("--idle", "-o", "run.plprof", "--", "python3", "steps.py")
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
summary = {"steps": int(steps[steps.index("steps") + 1]), "launches": report["launches"], "activities": report["timeline"].get("activities", 0),
           "notes": {k: [v["count"], v["seconds"]] for k, v in notes.items()}, "asked": rows, "problems": problems}

def end(name):
    open("stop", "w").close()
    program.stdout.read()
    expect(f"{name} ends well: exit {program.wait(60)}", program.returncode == 0)
    os.remove("stop")
    report = json.loads(subprocess.run([*purlin, "report", name + ".plprof", "--json"], capture_output=True, text=True).stdout)
    summary[name] = {"launches": report["launches"], "activities": report["timeline"].get("activities", 0),
                     "notes": sorted(n["cause"] for n in report["coverage"]["notes"])}
    return summary[name]
os.remove("stop")
program, pid = begin("--idle", "-o", "late.plprof", "--", "python3", "steps.py", "context")
expect("a window waits for the context", ask("window", "--for", "500ms").get("state") == "waiting")
time.sleep(1)
expect("and goes on waiting", ask("status").get("waiting_window_ns") == 500_000_000)
open("context", "w").close()
program.stdout.readline()
time.sleep(2)
late = ask("status")
expect("it had its time with the context", late.get("state") == "stopped" and 0.4e9 < late.get("recorded_ns", 0) < 1.5e9)
late = end("late")
expect(f"the window began with the context: {late}", late["launches"] > 0 and late["notes"] == ["asked_window"])
program, pid = begin("--full", "-o", "again.plprof", "--", "python3", "steps.py")
expect("to stop is not warned of", "warning" not in ask("stop"))
expect("to start again is", "--idle" in ask("start").get("warning", ""))
time.sleep(1)
again = end("again")
expect(f"the profile says so, too: {again}", "threads_lost" in again["notes"])
if os.environ.get("OUT"):
    json.dump(summary, open(os.environ["OUT"] + "/capture_control.json", "w"), indent=1)
print({k: v for k, v in summary.items() if k != "asked"})
print("capture control:", "FAILED" if problems else "ok")
sys.exit(1 if problems else 0)
PY
timeout 100 python3 drive.py
