#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Histories of `purlin serve`, checked for linearizability while the server is killed and paused.

history.py [--seconds N] [--clients N] [--seed N] [--json FILE] | --self-test

Clients read the index of one cache and replace it by compare-and-swap (GET, PUT with If-Match or
If-None-Match). Meanwhile the server is killed (SIGKILL) and started again on the same folder, or
paused (SIGSTOP) for a moment. Each request is recorded with the times at which it began and ended
and what came back; a request without an answer may have had an effect or not.

Each body is unique, so an ETag names one write, and the tag that a write replaced names the one
before it: the order of the writes is known, and the check is exact (see `check`).

Variables: PURLIN (the program).
"""
import argparse
import collections
import hashlib
import http.client
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

# kind: "read" (value: what was there), "write" (of `value` over `before`), "refused" (412 over
# `before`). answered: False where no answer came. Values are tags; None is "no object".
Request = collections.namedtuple("Request", "kind value before begin end answered")
INFINITE = float("inf")


class NotLinear(Exception):
    pass


def order_of(history):
    """The writes that took effect, in order. Those without an answer count where they were seen."""
    writes = {one.value: one for one in history if one.kind == "write"}
    seen = {one.value for one in history if one.kind == "read"} | {one.before for one in history}
    seen |= {one.value for one in history if one.kind == "write" and one.answered}
    seen.discard(None)
    effective = set()
    for value in seen:
        while value is not None and value not in effective:
            if value not in writes:
                raise NotLinear(f"{value} was read, and nobody wrote it")
            effective.add(value)
            value = writes[value].before
    after = collections.defaultdict(list)
    for value in effective:
        after[writes[value].before].append(value)
    for before, values in after.items():
        if len(values) > 1:
            raise NotLinear(f"{' and '.join(sorted(values))} both replaced {before}: one is lost")
    order, value = [], None
    while value in after:
        value = after[value][0]
        order.append(writes[value])
    if len(order) != len(effective):
        raise NotLinear("some writes replaced what never was there")
    return order


def check(history):
    """Raises NotLinear unless moments exist, each within its request, at which the requests could
    have happened one after the other. t[k] is when write k takes effect: reads of it lie in
    [t[k], t[k+1]), refusals over it after t[k+1]."""
    order = order_of(history)
    place = {None: 0} | {one.value: i + 1 for i, one in enumerate(order)}
    count = len(order) + 1
    low, high = [-INFINITE] * (count + 1), [INFINITE] * (count + 1)
    high[0] = -INFINITE  # nothing is there from the start
    for i, one in enumerate(order):
        low[i + 1] = one.begin
        high[i + 1] = one.end if one.answered else INFINITE
    for one in history:
        if not one.answered:
            continue
        if one.kind == "read":
            at = place[one.value]
            if at > 0:
                high[at] = min(high[at], one.end)
            low[at + 1] = max(low[at + 1], one.begin)
        elif one.kind == "refused":
            at = place[one.before] + 1
            high[at] = min(high[at], one.end)
            if at == count:
                raise NotLinear(f"a write over {one.before} was refused, though nothing replaced it")
    for k in range(1, count):
        low[k] = max(low[k], low[k - 1])
    for k in range(count - 1, 0, -1):
        high[k] = min(high[k], high[k + 1])
    for k in range(1, count):
        if low[k] > high[k]:
            raise NotLinear(f"write {order[k - 1].value}: it cannot be before {high[k]:.6f} and "
                            f"after {low[k]:.6f}")
    return count - 1


def self_test():
    def of(*requests):
        return [Request(*one) for one in requests]

    good = of(("write", "a", None, 0, 1, True), ("read", "a", None, 2, 3, True),
              ("write", "b", "a", 2, 5, True), ("refused", "c", "a", 4, 6, True),
              ("read", "b", None, 4, 6, True))
    assert check(good) == 2
    # A write without an answer may be seen later, or never.
    assert check(of(("write", "a", None, 0, 1, False), ("read", "a", None, 2, 3, True))) == 1
    assert check(of(("write", "a", None, 0, 1, False), ("read", None, None, 2, 3, True))) == 0
    bad = {
        "a lost write": of(("write", "a", None, 0, 1, True), ("read", None, None, 2, 3, True)),
        "two over one": of(("write", "a", None, 0, 1, True), ("write", "b", "a", 2, 3, True),
                           ("write", "c", "a", 4, 5, True)),
        "a stale read": of(("write", "a", None, 0, 1, True), ("write", "b", "a", 2, 3, True),
                           ("read", "a", None, 4, 5, True)),
        "a read before the write": of(("read", "a", None, 0, 1, True), ("write", "a", None, 2, 3, True)),
        "a read of nothing written": of(("read", "x", None, 0, 1, True)),
        "back again": of(("write", "a", None, 0, 1, False), ("read", "a", None, 2, 3, True),
                         ("read", None, None, 4, 5, True)),
        "refused for nothing": of(("write", "a", None, 0, 1, True), ("refused", "b", "a", 2, 3, True)),
    }
    for name, history in bad.items():
        try:
            check(history)
        except NotLinear:
            continue
        sys.exit(f"history: the checker accepts {name}")


class Server:
    """`purlin serve` on one folder and port; killed, paused and started again."""

    def __init__(self, folder):
        self.folder, self.port, self.process = folder, 0, None
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [os.environ["PURLIN"], "serve", "--quiet", "--listen", f"127.0.0.1:{self.port}", "--data",
             self.folder], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        line = self.process.stdout.readline()
        found = re.search(r"127\.0\.0\.1:(\d+)", line)
        if not found:
            sys.exit(f"history: the server does not start: {line!r}")
        self.port = int(found.group(1))

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.start()

    def pause(self, seconds):
        self.process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self.process.send_signal(signal.SIGCONT)


class Client(threading.Thread):
    def __init__(self, name, server, ends, seed):
        super().__init__(daemon=True)
        self.label, self.server, self.ends, self.rng = name, server, ends, random.Random(seed)
        self.history, self.known, self.serial = [], None, 0

    def run(self):
        while time.monotonic() < self.ends:
            if self.rng.random() < 0.5:
                self.read()
            else:
                self.write()

    def send(self, method, body=None, headers=None):
        """Status, tag and times; status 0: no answer; -1: it was never sent."""
        begin, status, tag = time.monotonic(), 0, None
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=5)
        try:
            connection.connect()
        except OSError:
            time.sleep(0.01)
            return -1, None, begin, begin
        try:
            connection.request(method, "/v1/caches/team/objects/index.json", body, headers or {})
            answer = connection.getresponse()
            answer.read()
            status, tag = answer.status, (answer.getheader("ETag") or "").strip('"') or None
        except (OSError, http.client.HTTPException):
            status = 0
        connection.close()
        return status, tag, begin, time.monotonic()

    def read(self):
        status, tag, begin, end = self.send("GET")
        if status in (200, 404):
            self.known = tag if status == 200 else None
            self.history.append(Request("read", self.known, None, begin, end, True))

    def write(self):
        self.serial += 1
        body = json.dumps({"schema": "purlin.share/99", "mark": f"{self.label}-{self.serial}"}).encode()
        value, before = hashlib.sha256(body).hexdigest(), self.known
        condition = {"If-Match": f'"{before}"'} if before else {"If-None-Match": "*"}
        status, _, begin, end = self.send("PUT", body, condition)
        if status == 201:
            self.known = value
            self.history.append(Request("write", value, before, begin, end, True))
        elif status == 412:
            self.history.append(Request("refused", value, before, begin, end, True))
            self.known = before
            self.read()
        elif status in (0, 500, 503):
            self.history.append(Request("write", value, before, begin, end, False))
        elif status != -1:
            print(f"history: a PUT was answered with {status}", file=sys.stderr, flush=True)
            os._exit(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json")
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    self_test()
    if options.self_test:
        return
    rng, kills, pauses = random.Random(options.seed), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        server = Server(folder)
        ends = time.monotonic() + options.seconds
        clients = [Client(f"c{i}", server, ends, options.seed * 1000 + i) for i in range(options.clients)]
        for client in clients:
            client.start()
        while time.monotonic() < ends:
            time.sleep(rng.uniform(0, 0.3))
            if rng.random() < 0.6:
                server.kill()
                kills += 1
            else:
                server.pause(rng.uniform(0, 0.2))
                pauses += 1
        for client in clients:
            client.join()
        # What is there in the end is part of the history.
        last = Client("last", server, ends, 0)
        last.read()
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
    history = [one for client in clients + [last] for one in client.history]
    unknown = sum(not one.answered for one in history)
    try:
        writes = check(history)
    except NotLinear as wrong:
        sys.exit(f"history: not linearizable (seed {options.seed}): {wrong}")
    if not writes:
        sys.exit("history: no write took effect, so nothing was checked")
    record = {"seconds": options.seconds, "clients": options.clients, "seed": options.seed,
              "requests": len(history), "writes": writes, "unanswered": unknown, "kills": kills,
              "pauses": pauses, "linearizable": True}
    print("history: " + ", ".join(f"{key} {value}" for key, value in record.items()))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(record, file)


if __name__ == "__main__":
    main()
