#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Awkward programs on a real GPU under `purlin profile`, and what each profile says of its coverage.

    python3 tests/gpu/capture_faults.py --purlin DIR/bin/purlin --program capture_faults [--only NAME,…] [--jobs 4]

Every case runs the program under a watchdog: with --full, by default, and with very short windows; several at a time, as
nothing here is timed. Under --full the profile has to hold what the program counted, kernel by kernel, or say in its
coverage what is missing and why; in the other modes the program has to end as it would alone. OUT, if set, gets
capture_faults.json, after every case anew, and capture_faults.md. Windows by the thousand: capture_cycles.py.
"""

import argparse
import concurrent.futures
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

# Name, arguments, exit code, notes that must be there, notes that may be there, share of launches that must be recorded
# under --full.
CASES = [
    ("loop", ["loop", "20000"], 0, [], [], 1.0),
    ("64 threads and streams", ["threads", "2000", "64"], 0, [], [], 1.0),
    ("64 threads for a while", ["threads", "15000", "64"], 0, [], [], 1.0),
    ("threads that come and go", ["thread-churn", "500"], 0, [], [], 1.0),
    ("never synchronises", ["never-synchronises", "50000"], 0, [], ["unfinished_launches", "estimated_durations"], 0.9),
    ("modules loaded and unloaded", ["modules", "400"], 0, [], [], "names"),  # CUPTI 13.0 mixes them up
    ("exit inside a kernel", ["exit-in-kernel", "2"], 0, [], ["unfinished_launches", "estimated_durations"], 0.99),
    ("_exit inside a kernel", ["_exit-in-kernel", "2"], 0, ["ended_without_seal"], ["unfinished_launches", "estimated_durations", "no_launches"], 0.0),
    ("cudaDeviceReset", ["reset", "5000"], 0, [], [], 1.0),
    ("three contexts", ["contexts", "2000"], 0, [], [], 1.0),
    ("graph replayed", ["graph", "3"], 0, [], [], 1.0),
    ("graphs made anew", ["graph-fresh", "3"], 0, [], [], 1.0),
    ("fork and exec", ["fork", "3000"], 0, [], [], 1.0),
    ("fork, CUDA in the child", ["fork-early", "3000"], 0, [], [], 1.0),
    ("exec", ["exec", "3000"], 0, ["ended_without_seal"], [], 0.5),
    ("abort", ["abort", "3000"], 134, ["ended_without_seal"], ["no_launches"], 0.0),
    ("abort a tenth of a second later", ["abort", "3000", "100"], 134, ["ended_without_seal"], [], 1.0),
    ("idle for a while", ["idle", "4"], 0, [], [], 1.0),
    ("own profiler, 50 runs", ["own-profiler", "50", "200"], 0, ["stood_aside"], ["threads_lost"], 0.0),
    ("own profiler shuts CUPTI down", ["finalizes", "20", "200"], 0, ["cupti_finalized"], ["stood_aside"], 0.0),
    ("CUPTI resolved before cuInit", ["dlsym-early", "200"], 0, [], ["client_unseen", "no_launches"], 0.0),
]


def lines_of(text):
    found = []
    for line in text.splitlines():
        if line.startswith("{"):
            found.append(json.loads(line))
    return found


def merged(documents):
    total = {}
    for document in documents:
        for name, count in document["launches"].items():
            total[name] = total.get(name, 0) + count
    return total


class Bench:
    def __init__(self, arguments, folder):
        self.purlin, self.program, self.folder = arguments.purlin, arguments.program, Path(folder)
        self.watchdog = arguments.watchdog
        self.rows = []
        self.lock = threading.Lock()

    def run(self, options, command, kill_after=None, environment=None):
        profile = Path(tempfile.mkdtemp(dir=self.folder)) / "run.plprof"
        whole = [self.purlin, "profile", "--quiet", "--torch", "off", *options, "-o", str(profile), "--", *command] if options is not None else command
        began = time.monotonic()
        process = subprocess.Popen(whole, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env={**os.environ, **(environment or {})}, start_new_session=True)
        out = err = ""
        hung = False
        try:
            if kill_after is not None:
                out = process.stdout.readline()
                time.sleep(kill_after)
                child = next(int(p) for p in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split())
                os.kill(child, signal.SIGKILL)
            rest, err = process.communicate(timeout=self.watchdog)
            out += rest
        except subprocess.TimeoutExpired:
            hung = True
            os.killpg(process.pid, signal.SIGKILL)  # of the session begun above
            rest, err = process.communicate()
            out += rest
        report = None
        if profile.exists():
            done = subprocess.run([self.purlin, "report", str(profile), "--json"], capture_output=True, text=True)
            report = json.loads(done.stdout) if done.returncode == 0 else None
        return {"code": process.returncode, "hung": hung, "out": lines_of(out), "err": err[-1500:], "report": report,
                "seconds": time.monotonic() - began}

    def judge(self, name, mode, done, code, needed, allowed, share, more=()):
        problems = list(more)
        counted = merged(done["out"])
        judged = {k: v for k, v in counted.items() if "own " not in k}
        seen, notes, coverage = {}, {}, {}
        if done["hung"]:
            problems.append(f"hung: no end within {self.watchdog} s")
        elif done["code"] != code:
            problems.append(f"exit code {done['code']} where {code} was expected; stderr: {done['err'][-400:]!r}")
        if done["report"] is None:
            problems.append("no profile that can be read")
        else:
            coverage = done["report"]["coverage"]
            notes = {n["cause"]: n for n in coverage["notes"]}
            for row in done["report"]["kernels"]:
                seen[row["name"]] = seen.get(row["name"], 0) + row["count"]
            if mode == "full":
                problems += [f"no note {cause}" for cause in needed if cause not in notes]
                problems += [f"note {cause}: {notes[cause]['text']}" for cause in notes if cause not in [*needed, *allowed]]
                lost = coverage.get("launches_lost", 0)
                if share == "names":
                    judged, seen, share = {"all": sum(judged.values())}, {"all": sum(seen.values())}, 1.0
                for kernel, count in judged.items():
                    recorded = sum(v for k, v in seen.items() if k.split("(")[0] == kernel.split("(")[0])
                    if recorded > count:
                        problems.append(f"{kernel}: {recorded:.0f} recorded of {count} made")
                    if recorded + lost < share * count:
                        problems.append(f"{kernel}: {recorded:.0f} recorded and {lost:.0f} counted as lost of {count}")
                strange = [k for k in seen if k.split("(")[0] not in {j.split("(")[0] for j in judged}]
                if strange:
                    problems.append(f"kernels that the program does not have: {strange[:5]}")
        if counted.get("own profiler should see", 0) != counted.get("own profiler saw", 0) and "resolved" not in name:
            problems.append(f"the program's own profiler saw {counted['own profiler saw']} of {counted['own profiler should see']}")
        row = {"case": name, "capture": mode, "ok": not problems, "problems": problems, "made": counted, "recorded": seen,
               "notes": notes, "coverage": {k: v for k, v in coverage.items() if k != "notes"},
               "rss_kb": [d.get("rss_kb", []) for d in done["out"]], "seconds": round(done["seconds"], 2)}
        with self.lock:
            self.rows.append(row)
            print(f"{'ok    ' if not problems else 'FAILED'} {mode:7s} {name:32s} {done['seconds']:6.1f} s  "
                  f"made {sum(judged.values())}, recorded {sum(seen.values()):.0f}, notes {sorted(notes)}", flush=True)
            for problem in problems:
                print(f"         {problem}", flush=True)
            if os.environ.get("OUT"):
                Path(os.environ["OUT"], "capture_faults.json").write_text(json.dumps(self.rows, indent=1) + "\n")


def markdown(rows):
    """One line a case and mode."""
    lines = ["| program | capture | made | recorded | its notes | |", "|---|---|--:|--:|---|---|"]
    for row in rows:
        made = sum(v for k, v in row["made"].items() if "own " not in k)
        notes = ", ".join(f"`{n}`" for n in sorted(row["notes"])) or "none"
        lines.append(f"| {row['case']} | {row['capture']} | {made} | {sum(row['recorded'].values()):.0f} | {notes} | "
                     f"{'' if row['ok'] else '**' + '; '.join(row['problems'])[:200] + '**'} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--purlin", default="purlin")
    parser.add_argument("--program", default="./capture_faults")
    parser.add_argument("--cupti", default="/usr/local/cuda/lib64/libcupti.so.13")
    parser.add_argument("--only", default="")
    parser.add_argument("--window", default="10ms@20ms", help="windows of the third mode: as short as they go")
    parser.add_argument("--profiler-runs", type=int, default=2000, help="of a program's own profiler that comes and goes")
    parser.add_argument("--modes", default="full,default,windows")
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--watchdog", type=float, default=60)
    arguments = parser.parse_args()
    only = [o for o in arguments.only.split(",") if o]
    options_of = {"full": ["--full"], "default": [], "windows": ["--window", arguments.window]}
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(arguments, folder)

        def case(name, command, code, needed, allowed, share, mode):
            command = [arguments.program, *command]
            if "own profiler" in name or "resolved" in name:
                command.append(arguments.cupti)
            done = bench.run([*options_of[mode], "--seal-period", "100ms"], command)
            bench.judge(name, mode, done, code, needed, allowed, share)

        def killed():
            done = bench.run(["--full", "--seal-period", "100ms"], [arguments.program, "hang", "20000"], kill_after=1.0)
            bench.judge("kill -9", "full", done, 137, ["ended_without_seal"], [], 1.0)

        def comes_and_goes():
            # Purlin stands aside each time, and comes back in between whenever it can.
            done = bench.run(["--full", "--seal-period", "10ms"],
                             [arguments.program, "own-profiler", str(arguments.profiler_runs), "2", arguments.cupti],
                             environment={"PURLIN_CUPTI_GRACE_MS": "0"})
            marks = done["out"][0]["rss_kb"] if done["out"] else [0]
            grown = [f"memory grew: {marks} kB"] if max(marks) - marks[0] > 16384 else []
            bench.judge(f"own profiler, {arguments.profiler_runs} runs", "full", done, 0, ["stood_aside"], ["threads_lost"], 0.0, grown)

        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            tasks = []
            if not only or "comes and goes" in only:
                tasks.append(pool.submit(comes_and_goes))
            for each in CASES:
                if not only or each[0] in only:
                    tasks += [pool.submit(case, *each, mode) for mode in arguments.modes.split(",")]
            if not only or "kill -9" in only:
                tasks.append(pool.submit(killed))
            for task in tasks:
                task.result()
    if os.environ.get("OUT"):
        Path(os.environ["OUT"], "capture_faults.md").write_text(markdown(bench.rows))
    failed = [f"{r['case']} ({r['capture']})" for r in bench.rows if not r["ok"]]
    print(f"capture faults: {len(bench.rows) - len(failed)} ok, {len(failed)} failed{': ' + ', '.join(failed) if failed else ''}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
