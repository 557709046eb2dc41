#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hostile clients of a real server, while honest ones ask it.

fleet_attacks.py [--connections N] [--seconds S] [--most-mib M] [--json FILE]

N idle connections, slow heads, slow bodies, endless chunks, oversized bodies, zstd frames that state
gigabytes, deep JSON, long targets and random bytes, all at once. Exit 1 where an honest request is not
answered within its limit, where an attack is answered 2xx, or where the server takes more memory
than M MiB. The suite tests/suites/fleet.sh runs a short one.

Variables: PURLIN (the program).
"""
import argparse
import json
import os
import random
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

PURLIN = os.environ["PURLIN"]
# A zstd frame whose head states 1 TiB of contents.
BOMB = bytes.fromhex("28b52ffd") + b"\xe0" + (1 << 40).to_bytes(8, "little") + b"\x01\x00\x00"


class Attack:
    def __init__(self, port, seconds):
        self.port, self.end = port, time.monotonic() + seconds
        self.accepted, self.done, self.lock = [], {}, threading.Lock()

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), 5)

    def count(self, name, answer=b""):
        with self.lock:
            self.done[name] = self.done.get(name, 0) + 1
            if answer.startswith(b"HTTP/1.1 2"):
                self.accepted.append((name, answer[:80]))

    def loop(self, name, attack):
        rng = random.Random(name)
        while time.monotonic() < self.end:
            try:
                self.count(name, attack(rng) or b"")
            except OSError:
                self.count(name)

    def ask(self, head, body=b"", close=True):
        with self.connect() as sock:
            sock.settimeout(5)
            sock.sendall(head + body)
            return sock.recv(4096)

    def post(self, target, body, more=""):
        head = f"POST {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n{more}\r\n".encode()
        return self.ask(head, body)

    def slow_head(self, _rng):
        with self.connect() as sock:
            sock.sendall(b"GET /v1/nodes HTTP/1.1\r\n")
            while time.monotonic() < self.end:
                time.sleep(1)
                sock.sendall(b"X: y\r\n")

    def slow_body(self, _rng):
        with self.connect() as sock:
            sock.sendall(b"POST /v1/batches HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 8000000\r\n\r\n")
            while time.monotonic() < self.end:
                time.sleep(1)
                sock.sendall(b"x")

    def chunks(self, _rng):
        with self.connect() as sock:
            sock.settimeout(5)
            sock.sendall(b"POST /v1/batches HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n")
            for _ in range(1000):
                sock.sendall(b"10000\r\n" + b"x" * 65536 + b"\r\n")
            return sock.recv(4096)

    def oversized(self, _rng):
        return self.ask(b"POST /v1/batches HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9999999999\r\n\r\n")

    def bomb(self, rng):
        import hashlib
        body = BOMB + rng.randbytes(rng.randrange(100))
        return self.post("/v1/batches", body, f"X-Purlin-Batch: {hashlib.sha256(body).hexdigest()}\r\n")

    def deep_json(self, _rng):
        return self.post("/v1/guard", b"[" * 4_000_000)

    def long_target(self, _rng):
        return self.ask(b"GET /v1/query/top?kernel=" + b"a" * 15000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")

    def noise(self, rng):
        return self.ask(rng.randbytes(2000) + b"\r\n\r\n")

    def half(self, _rng):
        with self.connect() as sock:
            sock.sendall(b"POST /v1/batches HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 4000000\r\n\r\n" + b"x" * 2_000_000)


def honest(port, end, latencies, failures):
    while time.monotonic() < end:
        began = time.monotonic()
        try:
            with socket.create_connection(("127.0.0.1", port), 60) as sock:
                sock.sendall(b"GET /v1/nodes HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
                answer = b""
                while piece := sock.recv(65536):
                    answer += piece
            if not answer.startswith(b"HTTP/1.1 200"):
                failures.append(answer[:60])
        except OSError as error:
            failures.append(str(error))
        latencies.append(time.monotonic() - began)
        time.sleep(0.05)


def peak_mib(pid):
    for line in open(f"/proc/{pid}/status"):
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connections", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--most-mib", type=float, default=640)  # 512 MiB of bodies, and the rest
    parser.add_argument("--json")
    options = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    folder = tempfile.mkdtemp(prefix="purlin-attacks.")
    out = open(os.path.join(folder, "serving"), "w+")
    server = subprocess.Popen([PURLIN, "serve", "--data", os.path.join(folder, "data"), "--listen", "127.0.0.1:0",
                               "--json"], stdout=out, stderr=subprocess.DEVNULL)
    try:
        url = None
        while url is None:
            time.sleep(0.05)
            try:
                url = json.load(open(out.name))["url"]
            except (ValueError, KeyError):
                if server.poll() is not None:
                    sys.exit("fleet_attacks: the server does not start")
        port = int(url.rsplit(":", 1)[1])
        attack = Attack(port, options.seconds)
        idle = []
        for _ in range(options.connections):
            try:
                idle.append(attack.connect())
            except OSError:
                break
        attack.end = time.monotonic() + options.seconds  # the idle connections took some of it
        latencies, failures, threads = [], [], []
        for name in ("slow_head", "slow_body", "chunks", "oversized", "bomb", "deep_json", "long_target", "noise", "half"):
            threads += [threading.Thread(target=attack.loop, args=(name, getattr(attack, name))) for _ in range(3)]
        threads.append(threading.Thread(target=honest, args=(port, attack.end, latencies, failures)))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        latencies.sort()
        result = {"idle_connections": len(idle), "seconds": options.seconds, "attacks": attack.done,
                  "accepted": len(attack.accepted), "honest": len(latencies), "failures": len(failures),
                  "p50_ms": round(1e3 * latencies[len(latencies) // 2], 1),
                  "longest_ms": round(1e3 * latencies[-1], 1), "peak_mib": round(peak_mib(server.pid), 1)}
        print(json.dumps(result))
        if options.json:
            json.dump(result, open(options.json, "w"))
        bad = attack.accepted[:3] + failures[:3]
        if bad or result["peak_mib"] > options.most_mib or server.poll() is not None:
            print(f"fleet_attacks: {bad}, {result['peak_mib']} MiB")
            return 1
        return 0
    finally:
        server.kill()
        server.wait()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
