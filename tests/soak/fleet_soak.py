#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A real collector and a real server under faults, against a ledger of launches.

fleet_soak.py [--faults server,collector,cut,corrupt,duplicate,full_state,full_server,netns] [--rounds N]
              [--seed N] [--json FILE]

In each round, captures are written while one fault happens. At the end all batches must have arrived,
and the server's totals must equal the ledger, kernel by kernel: nothing lost, nothing doubled. The
suite tests/suites/fleet.sh runs some rounds; bench/results/fleet_faults.md has the long run.

With the fault netns, the collector runs in its own network namespace, whose only link is taken down
and up again.

Variables: PURLIN (the program), PURLIN_BUILD (its build folder). The faults full_* and netns need root.
"""
import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

PURLIN = os.environ["PURLIN"]
CAPTURES = os.path.join(os.environ["PURLIN_BUILD"], "tests", "fleet_captures")
ALL = ["server", "collector", "both", "cut", "corrupt", "duplicate", "full_state", "full_server", "stopped", "netns"]


class Proxy:
    """Between collector and server. It cuts, damages and remembers requests."""

    def __init__(self, address):
        self.listener = socket.create_server((address, 0))
        self.port = self.listener.getsockname()[1]
        self.target = 0
        self.mode, self.rng = "", random.Random(1)
        self.requests = []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        server = None
        try:
            while True:
                request = self.read_request(client)
                if request is None:
                    return
                head, body = request
                if body:
                    self.requests.append((head, body))
                if self.mode == "cut" and self.rng.random() < 0.5:
                    return  # before the server has it
                if self.mode == "corrupt" and body and self.rng.random() < 0.7:
                    at = self.rng.randrange(len(body))
                    body = body[:at] + bytes([body[at] ^ 0x10]) + body[at + 1:]
                if server is None:
                    server = socket.create_connection(("127.0.0.1", self.target), 10)
                server.sendall(head + body)
                answer = self.read_answer(server)
                if self.mode == "cut" and self.rng.random() < 0.5:
                    return  # the server has it, the answer is lost
                client.sendall(answer)
        except OSError:
            pass
        finally:
            client.close()
            if server is not None:
                server.close()

    @staticmethod
    def read_message(sock):
        data = b""
        while b"\r\n\r\n" not in data:
            piece = sock.recv(65536)
            if not piece:
                return None
            data += piece
        head, body = data.split(b"\r\n\r\n", 1)
        length = 0
        for line in head.split(b"\r\n")[1:]:
            name, value = line.split(b":", 1)
            if name.strip().lower() == b"content-length":
                length = int(value)
        while len(body) < length:
            piece = sock.recv(65536)
            if not piece:
                return None
            body += piece
        return head + b"\r\n\r\n", body

    def read_request(self, sock):
        return self.read_message(sock)

    def read_answer(self, sock):
        message = self.read_message(sock)
        if message is None:
            raise OSError("the server went")
        return message[0] + message[1]


class Namespace:
    """A network namespace with one link to this one. name is "" where none can be made."""

    def __init__(self):
        self.name, self.link = f"purlin-{os.getpid()}", f"pl{os.getpid() % 100000}"
        self.address = f"10.{200 + os.getpid() % 50}.{os.getpid() // 50 % 250}.1"
        inner = self.address[:-1] + "2"
        made = all(self.run(line) for line in (
            f"netns add {self.name}", f"link add {self.link}a type veth peer name {self.link}b",
            f"link set {self.link}b netns {self.name}", f"addr add {self.address}/30 dev {self.link}a",
            f"link set {self.link}a up", f"-n {self.name} addr add {inner}/30 dev {self.link}b",
            f"-n {self.name} link set {self.link}b up", f"-n {self.name} link set lo up"))
        if not made:
            self.remove()

    @staticmethod
    def run(line):
        return subprocess.run(["ip", *line.split()], check=False, stderr=subprocess.DEVNULL).returncode == 0

    def cut(self, seconds):
        self.run(f"link set {self.link}a down")
        time.sleep(seconds)
        self.run(f"link set {self.link}a up")

    def remove(self):
        self.run(f"link del {self.link}a")
        self.run(f"netns del {self.name}")
        self.name = ""


class Fleet:
    """One server, one collector, and what they have."""

    def __init__(self, folder, rng, namespace):
        self.folder, self.rng, self.namespace = folder, rng, namespace
        for name in ("spool", "tmp", "state", "server"):
            os.makedirs(os.path.join(folder, name), mode=0o700)
        self.proxy = Proxy(namespace.address if namespace else "127.0.0.1")
        self.server = self.collector = None
        self.port = 0
        self.ledger = {}
        self.kills = 0
        self.seed = 0
        self.log = open(os.path.join(folder, "log"), "a")

    def server_options(self):
        return []

    def start_server(self):
        out = os.path.join(self.folder, "serving")
        with open(out, "w") as file:
            self.server = subprocess.Popen(
                [PURLIN, "serve", "--data", os.path.join(self.folder, "server"), "--listen",
                 f"127.0.0.1:{self.port}", "--json", *self.server_options()], stdout=file, stderr=self.log)
        for _ in range(3000):
            try:
                url = json.load(open(out))["url"]
                break
            except (ValueError, KeyError):
                if self.server.poll() is not None:
                    sys.exit(f"fleet_soak: the server ended with {self.server.returncode}: "
                             + open(self.log.name).read()[-2000:])
                time.sleep(0.02)
        else:
            sys.exit("fleet_soak: the server does not start")
        self.port = int(url.rsplit(":", 1)[1])
        self.proxy.target = self.port

    def start_collector(self):
        at = self.namespace.address if self.namespace else "127.0.0.1"
        within = ["ip", "netns", "exec", self.namespace.name] if self.namespace else []
        self.collector = subprocess.Popen(
            [*within, PURLIN, "collect", "--server", f"http://{at}:{self.proxy.port}", "--spool",
             os.path.join(self.folder, "spool"), "--temporary", os.path.join(self.folder, "tmp"), "--state",
             os.path.join(self.folder, "state"), "--period", "200ms", "--listen", "-", "--stop-above", "0%",
             "--kubelet-logs", ""], stdout=self.log, stderr=self.log)

    def stop(self, process, how=signal.SIGTERM):
        process.send_signal(how)
        process.wait(60)

    def kill(self, which):
        process = getattr(self, which)
        self.kills += 1
        self.stop(process, signal.SIGKILL)
        getattr(self, f"start_{which}")()

    def write_captures(self):
        self.seed += 1
        return subprocess.Popen(
            [CAPTURES, os.path.join(self.folder, "spool"), "3", "12", "100", str(self.seed + 1000 * self.rng.randrange(1000)),
             "12", "40"], stdout=subprocess.PIPE, text=True)

    def add_ledger(self, writer):
        text, _ = writer.communicate(timeout=120)
        if writer.returncode != 0:
            sys.exit(f"fleet_soak: fleet_captures ended with {writer.returncode}")
        for kernel, count in json.loads(text).items():
            self.ledger[kernel] = self.ledger.get(kernel, 0) + count

    def ask(self, target):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{target}", timeout=60) as answer:
            return json.load(answer)

    def totals(self):
        try:
            top = self.ask("/v1/query/top?limit=10000&begin=-2d")
        except (OSError, urllib.error.URLError):
            return {}
        return {kernel["kernel"]: kernel["launches"] for kernel in top["kernels"]}

    def settle(self, limit_s=180):
        """Waits until the totals are the ledger's, and whether they stay."""
        end = time.monotonic() + limit_s
        while time.monotonic() < end:
            if self.totals() == self.ledger:
                break
            time.sleep(0.2)
        time.sleep(0.5)
        return self.totals() == self.ledger

    def raws(self):
        """The number of raw profiles; each pointer has its object, whole."""
        pointers = self.ask("/v1/raws?limit=1000&begin=-2d")["raws"]
        for raw in pointers:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{raw['url']}", timeout=60) as answer:
                if hashlib.sha256(answer.read()).hexdigest() != raw["sha256"]:
                    sys.exit(f"fleet_soak: the raw profile {raw['sha256']} is damaged")
        return len(pointers)

    def replay(self):
        """All requests again, in another order."""
        again = list(self.proxy.requests)
        self.rng.shuffle(again)
        for head, body in again:
            with socket.create_connection(("127.0.0.1", self.port), 10) as sock:
                sock.sendall(head + body)
                self.proxy.read_message(sock)

    def fill(self, name):
        """A disk that is full: the folder becomes a small file system, which other bytes take."""
        folder = os.path.join(self.folder, name)
        ballast = os.path.join(folder, "ballast")
        with open(ballast, "wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"x" * 4096)
            except OSError:
                pass
        return ballast


def mount(folder, size):
    return subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", folder], check=False).returncode == 0


def one_round(fleet, fault):
    rng = fleet.rng
    writer = fleet.write_captures()
    fleet.proxy.mode = fault if fault in ("cut", "corrupt") else ""
    ballast = None
    for _ in range(3):
        time.sleep(rng.uniform(0.05, 0.5))
        if fault in ("server", "both"):
            fleet.kill("server")
        if fault in ("collector", "both"):
            fleet.kill("collector")
        if fault == "duplicate":
            fleet.replay()
        if fault == "full_state" and ballast is None:
            ballast = fleet.fill("state")
        if fault == "full_server" and ballast is None:
            ballast = fleet.fill("server")
        if fault == "netns":
            fleet.namespace.cut(rng.uniform(0.1, 2))
        if fault == "stopped":
            fleet.server.send_signal(signal.SIGSTOP)
            time.sleep(0.5)
            fleet.server.send_signal(signal.SIGCONT)
    fleet.add_ledger(writer)
    if ballast is not None:
        time.sleep(1)
        os.remove(ballast)
    fleet.proxy.mode = ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", default="server,collector,both,cut,corrupt,duplicate")
    parser.add_argument("--rounds", type=int, default=1, help="of each fault")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json")
    options = parser.parse_args()
    faults = options.faults.split(",")
    unknown = [fault for fault in faults if fault not in ALL]
    if unknown:
        parser.error(f"unknown faults: {unknown}")
    folder = tempfile.mkdtemp(prefix="purlin-fleet-soak.")
    rng = random.Random(options.seed)
    namespace = Namespace() if "netns" in faults else None
    if namespace and not namespace.name:
        print("fleet_soak: no network namespace can be made here, netns is left out")
        faults.remove("netns")
        namespace = None
    fleet = Fleet(folder, rng, namespace)
    for name, fault in (("state", "full_state"), ("server", "full_server")):
        if fault in faults and not mount(os.path.join(folder, name), "24m"):
            print(f"fleet_soak: no file system can be mounted here, {fault} is left out")
            faults.remove(fault)
    results = []
    began = time.monotonic()
    try:
        fleet.start_server()
        fleet.start_collector()
        for number in range(options.rounds):
            for fault in faults:
                one_round(fleet, fault)
            right = fleet.settle()
            print(f"round {number + 1}: {'equal' if right else 'NOT EQUAL'}, "
                  f"{int(sum(fleet.ledger.values()))} launches, {fleet.kills} kills, "
                  f"{len(fleet.proxy.requests)} requests, {time.monotonic() - began:.0f} s", flush=True)
            fleet.proxy.requests = fleet.proxy.requests[-50:]
            if not right:
                got = fleet.totals()
                for kernel in sorted(set(got) | set(fleet.ledger)):
                    if got.get(kernel) != fleet.ledger.get(kernel):
                        print(f"  {kernel}: {got.get(kernel)} instead of {fleet.ledger.get(kernel)}")
                print(open(fleet.log.name).read()[-3000:])
                return 1
        nodes = fleet.ask("/v1/nodes")["nodes"]
        results = {"rounds": options.rounds, "faults": faults, "kills": fleet.kills,
                   "launches": int(sum(fleet.ledger.values())), "seconds": round(time.monotonic() - began),
                   "batches": nodes[0]["batches"], "raws": fleet.raws(), "missing_batches": nodes[0]["missing_batches"],
                   "dead": len(os.listdir(os.path.join(folder, "state", "dead")))}
        print(json.dumps(results))
        if options.json:
            json.dump(results, open(options.json, "w"))
        return 0
    finally:
        for process in (fleet.collector, fleet.server):
            if process is not None and process.poll() is None:
                process.kill()
                process.wait()
        if namespace:
            namespace.remove()
        for name in ("state", "server"):
            subprocess.run(["umount", os.path.join(folder, name)], check=False, stderr=subprocess.DEVNULL)
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
