#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Other tools in, around and under `purlin profile` on a real GPU: each has to work as it does without Purlin.

    python3 tests/gpu/capture_coexist.py --purlin DIR/bin/purlin [--program capture_faults] [--only TEXT]

PyTorch's and JAX's profilers, Nsight Compute, compute-sanitizer, a program with two copies of libcupti, two captured
programs at once, clients of MPS. A profiler in the program must have the events it has alone, and the profile must say
that Purlin stood aside and for how long. What is not installed is skipped, and said. Rows are printed as they come; OUT,
if set, gets capture_coexist.json, written anew after each, and capture_coexist.md.
"""

import argparse
import concurrent.futures
import glob
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent


class Bench:
    def __init__(self, arguments, folder):
        self.purlin, self.program = arguments.purlin, arguments.program
        self.folder, self.limit = Path(folder), arguments.limit
        self.rows, self.lock = [], threading.Lock()
        self.tries = threading.Semaphore(arguments.jobs)

    def row(self, case, result, text):
        with self.lock:
            self.rows.append({"case": case, "result": result, "text": text})
            print(f"{result:8s} {case:44s} {text}", flush=True)
            if os.environ.get("OUT"):
                out = Path(os.environ["OUT"])
                (out / "capture_coexist.json").write_text(json.dumps(self.rows, indent=1) + "\n")
                lines = ["| tools | result | what was seen |", "|---|---|---|"]
                lines += [f"| {r['case']} | {r['result']} | {r['text']} |" for r in self.rows]
                (out / "capture_coexist.md").write_text("\n".join(lines) + "\n")

    def run(self, options, command, around=(), environment=None):
        """The command under `purlin profile OPTIONS` (None: alone), in a folder of its own."""
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        whole = [*around, *command] if options is None else \
            [*around, self.purlin, "profile", "--quiet", "--torch", "off", *options, "-o", "run.plprof", "--", *command]
        with self.tries:
            process = subprocess.Popen(whole, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                       env={**os.environ, **(environment or {})}, start_new_session=True)
            try:
                out, _ = process.communicate(timeout=self.limit)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)  # of the session begun above
                out, _ = process.communicate()
                out += f"\n(killed after {self.limit} s)"
        done = {"code": process.returncode, "out": out, "folder": folder, "launches": 0, "notes": {}}
        if (folder / "run.plprof").exists():
            report = subprocess.run([self.purlin, "report", str(folder / "run.plprof"), "--json"], capture_output=True, text=True)
            if report.returncode == 0:
                document = json.loads(report.stdout)
                done["launches"] = int(sum(k["count"] for k in document["kernels"]))
                done["notes"] = {n["cause"]: n["seconds"] for n in document["coverage"]["notes"]}
        return done

    def judge(self, case, good, text, done):
        noted = ", ".join(f"{cause} {seconds:.1f} s" if seconds else cause for cause, seconds in done["notes"].items())
        tail = "" if good else " … " + done["out"][-300:].replace("\n", " / ")
        self.row(case, "ok" if good else "FAILED", f"{text}; Purlin: {done['launches']} launches, notes: {noted or 'none'}{tail}")


def pytorch(bench):
    probe = subprocess.run([sys.executable, "-c", "import torch; assert torch.cuda.is_available()"], capture_output=True)
    if probe.returncode != 0:
        return bench.row("torch.profiler", "skipped", "no PyTorch with CUDA")

    def counts(done):
        file = done["folder"] / "counts.json"
        return json.loads(file.read_text()) if file.exists() else {"total": "none"}

    def mode(name):
        command = [sys.executable, str(HERE / "profile_pytorch.py"), name, "12", "counts.json"]
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            alone = pool.submit(bench.run, None, command)
            under = {"default": pool.submit(bench.run, [], command), "--full": pool.submit(bench.run, ["--full"], command)}
            expected = counts(alone.result())
            for options, task in under.items():
                done = task.result()
                got = counts(done)
                bench.judge(f"torch.profiler {name}, Purlin {options}",
                            done["code"] == 0 and got == expected and expected["total"] != 0 and done["notes"].get("stood_aside", 0) > 0,
                            f"its events: {got['total']}, alone {expected['total']}", done)

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        list(pool.map(mode, ["own", "middle", "often"]))


def jax(bench):
    if importlib.util.find_spec("jax") is None:
        return bench.row("jax.profiler", "skipped", "no JAX")
    for mode in ("late", "early"):
        command = [sys.executable, str(HERE / "profile_jax.py"), mode]
        environment = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
        alone, done = bench.run(None, command, environment=environment), bench.run([], command, environment=environment)
        events = [re.findall(r"^events .*", d["out"], re.M) for d in (alone, done)]
        bench.judge(f"jax.profiler {mode}", done["code"] == 0 and events[0] == events[1] != [], f"{events[1]}, alone {events[0]}", done)


def nsight_compute(bench):
    if not shutil.which("ncu"):
        return bench.row("ncu", "skipped", "not installed")
    ncu = ["ncu", "--clock-control", "none", "--metrics", "gpu__time_duration.sum", "--launch-count", "20"]
    loop = [bench.program, "loop", "200"]

    def kernels(done):
        return len(re.findall(r"fault_empty.*(?:Context|\(1, 1, 1\))", done["out"]))

    alone = bench.run(None, loop, around=ncu)
    around = bench.run([], loop, around=ncu)
    bench.judge("ncu around purlin", around["code"] == 0 and kernels(around) == kernels(alone) > 0,
                f"kernels it measured: {kernels(around)}, alone {kernels(alone)}", around)
    under = bench.run([], [*ncu, *loop])
    bench.judge("ncu under purlin", under["code"] == 0 and kernels(under) == kernels(alone) and "nsight_compute" in under["notes"],
                f"kernels it measured: {kernels(under)}, alone {kernels(alone)}", under)


def sanitizer(bench):
    if not shutil.which("compute-sanitizer"):
        return bench.row("compute-sanitizer", "skipped", "not installed")
    loop = [bench.program, "loop", "200"]
    for case, done in (("around", bench.run([], loop, around=["compute-sanitizer"])),
                       ("under", bench.run([], ["compute-sanitizer", *loop]))):
        good = done["code"] == 0 and "ERROR SUMMARY: 0 errors" in done["out"] and '"fault_empty()": 200' in done["out"]
        bench.judge(f"compute-sanitizer {case} purlin", good, f"exit code {done['code']}", done)


def own_profilers(bench):
    kit = next((p for p in ("/usr/local/cuda/lib64/libcupti.so.13", "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.13")
                if os.path.exists(p)), "")
    wheel = next((p for s in sys.path for p in glob.glob(s + "/nvidia/*/lib/libcupti.so.13")), "")

    def saw(done):
        document = next((json.loads(line) for line in done["out"].splitlines() if line.startswith('{"mode"')), {"launches": {}})
        return [document["launches"].get(f"own profiler {what}", -1) for what in ("saw", "should see")]

    def check(case, done):
        seen, expected = saw(done)
        bench.judge(case, done["code"] == 0 and seen == expected, f"its records: {seen} of {expected}", done)

    if kit:
        # Purlin records a thousand launches before it comes.
        check("another CUPTI client, in the middle", bench.run(["--full"], [bench.program, "own-profiler", "5", "100", kit]))
        check("another CUPTI client, shuts CUPTI down", bench.run(["--full"], [bench.program, "finalizes", "5", "100", kit]))
    if not kit or not wheel:
        return bench.row("two copies of libcupti", "skipped", f"toolkit's '{kit}', wheel's '{wheel}'")
    for first, second, whose in ((kit, wheel, "the wheel's"), (wheel, kit, "the toolkit's")):
        # Loaded before CUDA is initialised, as a linked library is: both are there when Purlin comes.
        check(f"two copies of libcupti, the program's {whose}",
              bench.run(["--full"], [bench.program, "own-profiler", "5", "100", second], environment={"LD_PRELOAD": f"{first} {second}"}))
    check("a copy of libcupti loaded later", bench.run(["--full"], [bench.program, "own-profiler-late", "5", "100", wheel]))


def two_programs(bench):
    command = [bench.program, "loop", "50000"]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for number, done in enumerate(pool.map(lambda _: bench.run(["--full"], command), range(2))):
            bench.judge(f"two captured programs at once, {number + 1}", done["code"] == 0 and done["launches"] == 50000,
                        f"{done['launches']} of 50000 recorded", done)


def mps(bench):
    control = shutil.which("nvidia-cuda-mps-control")
    if not control:
        return bench.row("MPS", "skipped", "no nvidia-cuda-mps-control")
    folder = Path(tempfile.mkdtemp(dir=bench.folder))
    environment = {"CUDA_MPS_PIPE_DIRECTORY": str(folder), "CUDA_MPS_LOG_DIRECTORY": str(folder)}
    started = subprocess.run([control, "-d"], env={**os.environ, **environment}, capture_output=True, text=True)
    if started.returncode != 0:
        return bench.row("MPS", "skipped", f"its daemon does not start: {(started.stdout + started.stderr).strip()[:200]}")
    try:
        time.sleep(0.5)
        command = [bench.program, "loop", "5000"]
        alone = bench.run(None, command, environment=environment)
        if alone["code"] != 0:
            return bench.row("MPS", "skipped", f"programs do not run under it here, with or without Purlin: {alone['out'][-200:].strip()}")
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for number, done in enumerate(pool.map(lambda _: bench.run(["--full"], command, environment=environment), range(2))):
                bench.judge(f"client of MPS, {number + 1} of 2", done["code"] == 0 and done["launches"] == 5000 and "shared_device" in done["notes"],
                            f"{done['launches']} of 5000 recorded", done)
    finally:
        try:
            subprocess.run([control], input="quit\n", env={**os.environ, **environment}, text=True, capture_output=True, timeout=20)
        except subprocess.TimeoutExpired:
            bench.row("MPS's daemon", "FAILED", "does not quit within 20 s")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--purlin", default="purlin")
    parser.add_argument("--program", default="", help="capture_faults, built; without it PyTorch and JAX only")
    parser.add_argument("--only", default="", help="pytorch, jax, nsight_compute, sanitizer, own_profilers, two_programs or mps")
    parser.add_argument("--jobs", type=int, default=6, help="programs at a time: nothing here is timed")
    parser.add_argument("--limit", type=float, default=60, help="seconds for each program")
    arguments = parser.parse_args()
    arguments.purlin = str(Path(arguments.purlin).resolve())
    groups = [pytorch, jax]
    if arguments.program:
        arguments.program = str(Path(arguments.program).resolve())
        groups += [nsight_compute, sanitizer, own_profilers, two_programs]
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(arguments, folder)
        wanted = [g for g in [*groups, *([mps] if arguments.program else [])] if arguments.only in ("", g.__name__)]
        with concurrent.futures.ThreadPoolExecutor(len(groups) or 1) as pool:
            for group, task in [(g, pool.submit(g, bench)) for g in wanted if g is not mps]:
                try:
                    task.result()
                except Exception as failure:  # of one group: the others' rows stand
                    bench.row(group.__name__, "FAILED", repr(failure))
        if mps in wanted:  # last: nothing else is to become its client
            mps(bench)
    failed = [r["case"] for r in bench.rows if r["result"] == "FAILED"]
    print(f"coexistence: {len(failed)} failed of {len(bench.rows)}, {time.monotonic() - began:.0f} s{': ' + ', '.join(failed) if failed else ''}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
