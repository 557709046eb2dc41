#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills Purlin at random moments, again and again, and compares with what must be there.

soak.py [--rounds N] [--parts cache,share,server,spool] [--seed N] [--json FILE]

Each round starts a writer, kills it (kill -9) after a random time, and reads everything back. The
ledger holds what was acknowledged: a writer that ended with exit code 0. It must all be there, once,
and nothing that nobody wrote. The suite tests/suites/soak.sh runs some rounds in CI;
bench/results/trust.md has 1,000.

Variables: PURLIN (the program), PURLIN_SOURCE, PURLIN_BUILD (for part spool).
"""
import argparse
import copy
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

PURLIN = os.environ["PURLIN"]
SOURCE = os.environ["PURLIN_SOURCE"]
CONFIG = "BM=32,BN=32,BK=16,TM=4,TN=4,LANES=8,VECTOR=4,PAD=0,STAGES=1,UNROLL=true,GROUP=1,MIN_BLOCKS=1"
FRESH = 60  # rounds with one directory: each read takes longer than the one before


def run(*arguments, check=True, **options):
    done = subprocess.run([PURLIN, *arguments], capture_output=True, text=True, timeout=300, check=False, **options)
    if check and done.returncode != 0:
        sys.exit(f"soak: purlin {' '.join(arguments)} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return done


class Part:
    """One kind of writer. `begin` starts it and returns the process and what it will have written."""

    def __init__(self, folder, rng):
        self.folder, self.rng = folder, rng
        self.serial = self.kills = self.lost = self.doubled = self.foreign = self.damaged = 0
        self.ledger, self.tried = set(), set()

    def path(self, name):
        return os.path.join(self.folder, name)

    def round(self, number):
        if number % FRESH == 0:
            self.fresh()
        process, marks = self.begin()
        self.tried |= marks
        began = time.monotonic()
        try:
            process.wait(self.rng.uniform(0, 1.5 * self.usual_s))
        except subprocess.TimeoutExpired:
            self.kills += 1
            self.kill(process)
        code = process.wait()
        if code == 0:
            self.ledger |= marks
            self.usual_s = 0.7 * self.usual_s + 0.3 * (time.monotonic() - began)
        elif code != -signal.SIGKILL and not self.was_killed(code):
            sys.exit(f"soak: a writer ended with {code}: {self.errors()}")
        self.compare()

    def was_killed(self, code):
        return False

    def kill(self, process):
        process.send_signal(signal.SIGKILL)

    def errors(self):
        with open(self.path("stderr"), encoding="utf-8", errors="replace") as file:
            return file.read()[-2000:]

    def start(self, *arguments, **options):
        with open(self.path("stderr"), "w", encoding="utf-8") as err:
            return subprocess.Popen([PURLIN, *arguments], stdout=subprocess.DEVNULL, stderr=err, **options)

    def judge(self, there):
        """`there`: marks as they were read, each as often as it was."""
        self.lost += len(self.ledger - set(there))
        self.doubled += len(there) - len(set(there))
        self.foreign += len(set(there) - self.tried)
        if self.lost or self.doubled or self.foreign or self.damaged:
            sys.exit(f"soak: {type(self).__name__}: {self.record()} in {self.folder}")

    def record(self):
        return {"kills": self.kills, "acknowledged": self.acknowledged + len(self.ledger), "lost": self.lost,
                "doubled": self.doubled, "foreign": self.foreign, "damaged": self.damaged}

    acknowledged = 0  # in directories before this one
    usual_s = 0.05    # what a writer takes

    def forget(self):
        self.acknowledged += len(self.ledger)
        self.ledger, self.tried = set(), set()


class Entries(Part):
    """Writers of cache entries. A mark is the extent M of a problem of its own."""

    seed_entry = None

    def document(self, count):
        if Entries.seed_entry is None:
            seed = self.path("seed")
            run("cache", "put", f"{SOURCE}/kernels/gemm/gemm.toml", "--device", "opencl:0", "--cache", seed, "--shape",
                "M=256,N=256,K=256", "--config", CONFIG, "--time-ms", "2.5")
            listed = json.loads(run("cache", "ls", "--cache", seed, "--json").stdout)
            Entries.seed_entry = listed["entries"][0]
        marks, entries = set(), []
        for _ in range(count):
            self.serial += 1
            entry = copy.deepcopy(Entries.seed_entry)
            entry["problem"]["M"] = self.serial
            entry["key"]["bucket"] = f"M={self.serial},N=256,K=256"
            entry["bucket_rules"]["M"] = "exact"
            # Records of very different sizes: writes meet the borders of pages everywhere.
            entry["strategy"] = "x" * (self.serial * 331 % 4000)
            entries.append(entry)
            marks.add(self.serial)
        with open(self.path("batch.json"), "w", encoding="utf-8") as out:
            json.dump({"schema": "purlin.cache/1", "entries": entries}, out)
        return marks

    def read_cache(self, directory):
        listed = json.loads(run("cache", "ls", "--cache", directory, "--json").stdout)
        self.damaged += listed["damaged_records"]
        self.judge([entry["problem"]["M"] for entry in listed["entries"]])


class Cache(Entries):
    def fresh(self):
        self.forget()
        shutil.rmtree(self.path("cache"), ignore_errors=True)

    def begin(self):
        marks = self.document(self.rng.choice([1, 3, 40]))
        return self.start("cache", "import", self.path("batch.json"), "--cache", self.path("cache")), marks

    def compare(self):
        self.read_cache(self.path("cache"))


class Share(Entries):
    def fresh(self):
        self.forget()
        for name in ("local", "share", "read"):
            shutil.rmtree(self.path(name), ignore_errors=True)

    def target(self):
        return self.path("share")

    def begin(self):
        marks = self.document(self.rng.choice([1, 5]))
        run("cache", "import", self.path("batch.json"), "--cache", self.path("local"))
        if self.rng.random() < 0.1:  # what a push leaves, a compaction must not lose
            return self.start("cache", "gc", "--share", self.target(), "--grace", "0s", "--cache",
                              self.path("read")), marks & set()
        # A push passes on all that the cache has, also of rounds that were killed.
        marks = {entry["problem"]["M"] for entry in
                 json.loads(run("cache", "ls", "--cache", self.path("local"), "--json").stdout)["entries"]}
        self.tried |= marks
        return self.start("cache", "push", self.target(), "--cache", self.path("local")), marks

    def was_killed(self, code):
        return code == 2 and "there is no shared cache at" in self.errors()

    def compare(self):
        done = run("cache", "pull", self.target(), "--cache", self.path("read"), "--json", check=False)
        if done.returncode == 2 and "there is no shared cache at" in done.stderr:
            self.judge([])
            return
        pulled = json.loads(done.stdout)
        self.damaged += len(pulled["problems"])
        self.tried |= self.ledger
        self.read_cache(self.path("read"))


class Server(Share):
    """The server is what is killed; the client repeats its requests until the next one answers."""

    server = None
    port = 0

    def fresh(self):
        self.stop()
        super().fresh()
        shutil.rmtree(self.path("data"), ignore_errors=True)
        self.serve()

    def serve(self):
        self.server = subprocess.Popen([PURLIN, "serve", "--listen", f"127.0.0.1:{self.port}", "--data",
                                        self.path("data")], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        line = self.server.stdout.readline()
        self.port = int(line.split("http://127.0.0.1:")[1].split()[0].rstrip("/"))

    def stop(self):
        if self.server is not None:
            self.server.kill()
            self.server.wait()
            self.server.stdout.close()

    def target(self):
        return f"http://127.0.0.1:{self.port}/team"

    def kill(self, process):
        self.stop()
        self.serve()
        process.wait(240)

    def was_killed(self, code):
        return code == 2  # it gave up: nothing was acknowledged


class Spool(Part):
    """A profiled program is killed: what was sealed is read, and no launch is counted that was not made."""

    launches = 200
    usual_s = 1.0

    def fresh(self):
        self.forget()

    def begin(self):
        self.serial += 1
        loop = os.path.join(os.environ["PURLIN_BUILD"], "tests", "opencl_loop")
        for name in ("pid", "run.plprof"):
            if os.path.exists(self.path(name)):
                os.remove(self.path(name))
        command = f"echo $$ >'{self.path('pid')}'; exec '{loop}' launches {self.launches}"
        return self.start("profile", "--seal-period", "10ms", "-q", "-o", self.path("run.plprof"), "--", "sh", "-c",
                          command), set()

    def kill(self, process):
        try:
            with open(self.path("pid"), encoding="utf-8") as file:
                os.kill(int(file.read()), signal.SIGKILL)
        except (OSError, ValueError):
            pass  # it has not begun, or is over

    def was_killed(self, code):
        return code == 128 + signal.SIGKILL

    def compare(self):
        report = json.loads(run("report", self.path("run.plprof"), "--json").stdout)
        count = sum(kernel["count"] for kernel in report["kernels"] if kernel["name"] == "scale")
        whole = report.get("exit_code", 0) == 0 and not any(
            note["cause"] == "ended_without_seal" for note in report["coverage"]["notes"])
        if count > self.launches:
            self.doubled += 1
        if whole and report["kernels"] and count != self.launches:
            self.lost += 1
        self.judge([])


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    options.add_argument("--rounds", type=int, default=20)
    options.add_argument("--parts", default="cache,share,server,spool")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--json", default="")
    chosen = options.parse_args()
    kinds = {"cache": Cache, "share": Share, "server": Server, "spool": Spool}
    records = {}
    for name in chosen.parts.split(","):
        with tempfile.TemporaryDirectory(prefix="purlin-soak.") as folder:
            part = kinds[name](folder, random.Random(chosen.seed))
            began = time.monotonic()
            try:
                for number in range(chosen.rounds):
                    part.round(number)
            finally:
                if name == "server":
                    part.stop()
            records[name] = {"rounds": chosen.rounds, **part.record(), "seconds": round(time.monotonic() - began, 1)}
            print(f"soak: {name}: {records[name]}", flush=True)
    if chosen.json:
        with open(chosen.json, "w", encoding="utf-8") as out:
            json.dump({"seed": chosen.seed, "parts": records}, out, indent=1)


main()
