#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A ClickHouse shard that is lost and returns, under a running server and collector.

shard_loss.py [--rounds N] [--seed N] [--down SECONDS] [--json FILE]

Two servers of Debian's clickhouse-server are two shards. In each round one of them is killed while captures
are written, the first or the second by turns, and started again. While it is gone, questions must fail and
name it, never answer too little; the collector's batches wait. After it is back, the totals must equal the
ledger, kernel by kernel. The record: bench/results/fleet_faults.md.

Variables: PURLIN (the program), PURLIN_BUILD (its build folder).
"""
import argparse
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

import fleet_soak

CLICKHOUSE = "/usr/sbin/clickhouse-server"
TABLES = ["dict", "hours", "days", "months", "folds", "source", "raw", "guard", "quarantine", "too_old", "meta"]
USERS = """<yandex><profiles><default/></profiles><users><default><password/><networks><ip>127.0.0.1</ip>
</networks><profile>default</profile><quota>default</quota></default></users><quotas><default/></quotas></yandex>"""


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


class Shard:
    def __init__(self, root):
        self.root, self.http, self.tcp, self.process = root, free_port(), free_port(), None
        os.makedirs(root)

    def configure(self, shards):
        cluster = "".join(f"<shard><replica><host>127.0.0.1</host><port>{one.tcp}</port></replica></shard>"
                          for one in shards)
        with open(os.path.join(self.root, "users.xml"), "w") as file:
            file.write(USERS)
        with open(os.path.join(self.root, "config.xml"), "w") as file:
            file.write(f"""<yandex><logger><level>error</level><log>{self.root}/log</log>
<errorlog>{self.root}/errors</errorlog></logger><http_port>{self.http}</http_port><tcp_port>{self.tcp}</tcp_port>
<listen_host>127.0.0.1</listen_host><path>{self.root}/data/</path><tmp_path>{self.root}/tmp/</tmp_path>
<user_files_path>{self.root}/files/</user_files_path><format_schema_path>{self.root}/schemas/</format_schema_path>
<users_config>users.xml</users_config><default_profile>default</default_profile>
<default_database>default</default_database><mark_cache_size>268435456</mark_cache_size>
<remote_servers><fleet>{cluster}</fleet></remote_servers></yandex>""")

    def url(self, more=""):
        return f"http://127.0.0.1:{self.http}/{more}"

    def ask(self, query):
        with urllib.request.urlopen(self.url(), data=query.encode(), timeout=60) as answer:
            return answer.read().decode()

    def start(self):
        self.process = subprocess.Popen([CLICKHOUSE, f"--config-file={self.root}/config.xml"], cwd=self.root,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(600):
            try:
                return self.ask("SELECT 1")
            except OSError:
                time.sleep(0.1)
        sys.exit("shard_loss: ClickHouse does not start")

    def kill(self):
        self.process.kill()
        self.process.wait()


class ShardedFleet(fleet_soak.Fleet):
    """The fleet of fleet_soak.py over a cluster."""

    target = ""

    def server_options(self):
        return ["--store", self.target]

    def answer(self, target):
        """Status and text of a question."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{target}", timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()


def one_round(fleet, shard, down_s, found):
    """Kills the shard while captures are written, and asks meanwhile."""
    before = dict(fleet.ledger)
    writer = fleet.write_captures()
    time.sleep(fleet.rng.uniform(0.05, 0.5))
    shard.kill()
    end = time.monotonic() + down_s
    while time.monotonic() < end or writer.poll() is None:
        status, text = fleet.answer("/v1/query/top?limit=10000&begin=-2d")
        found["refused" if status == 503 else "answered"] += 1
        if status == 200:
            # An answer that began before the kill has all of what was counted then.
            got = {kernel["kernel"]: kernel["launches"] for kernel in json.loads(text)["kernels"]}
            if any(got.get(kernel, 0) < count for kernel, count in before.items()):
                sys.exit(f"shard_loss: an answer without the lost shard: {got} instead of {before}")
        else:
            found["texts"].add(f"{status} {json.loads(text)['error']['message']}"
                               .replace(str(shard.tcp), "PORT").replace(str(shard.http), "PORT")[:300])
        time.sleep(0.2)
    shard.start()
    fleet.add_ledger(writer)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--down", type=float, default=4, help="seconds that a shard is gone")
    parser.add_argument("--json")
    options = parser.parse_args()
    if not os.path.exists(CLICKHOUSE):
        print("shard_loss: no ClickHouse: ./dev setup clickhouse")
        return 0
    folder = tempfile.mkdtemp(prefix="purlin-shard-loss.")
    shards = [Shard(os.path.join(folder, f"shard{i}")) for i in range(2)]
    fleet = None
    began = time.monotonic()
    try:
        for shard in shards:
            shard.configure(shards)
            shard.start()
        target = shards[0].url("fleet?cluster=fleet")
        for made in (target, shards[1].url("fleet")):
            subprocess.run([fleet_soak.PURLIN, "store", "init", made], check=True, stdout=subprocess.DEVNULL)
        for table in TABLES:  # the second shard has rows only
            shards[1].ask(f"RENAME TABLE fleet.{table} TO fleet.{table}_local")
        os.makedirs(os.path.join(folder, "fleet"))
        fleet = ShardedFleet(os.path.join(folder, "fleet"), random.Random(options.seed), None)
        fleet.target = target
        fleet.start_server()
        fleet.start_collector()
        fleet.add_ledger(fleet.write_captures())
        if not fleet.settle():
            sys.exit("shard_loss: the totals are not equal before a fault")
        found = {"answered": 0, "refused": 0, "texts": set()}
        for number in range(options.rounds):
            one_round(fleet, shards[number % 2], options.down, found)
            right = fleet.settle()
            print(f"round {number + 1}: {'equal' if right else 'NOT EQUAL'}, {int(sum(fleet.ledger.values()))} "
                  f"launches, {found['refused']} questions refused, {time.monotonic() - began:.0f} s", flush=True)
            if not right:
                print(fleet.totals(), fleet.ledger, open(fleet.log.name).read()[-3000:])
                return 1
        nodes = fleet.ask("/v1/nodes")["nodes"]
        results = {"rounds": options.rounds, "launches": int(sum(fleet.ledger.values())),
                   "batches": nodes[0]["batches"], "missing_batches": nodes[0]["missing_batches"],
                   "dead": len(os.listdir(os.path.join(folder, "fleet", "state", "dead"))),
                   "questions_refused": found["refused"], "questions_answered": found["answered"],
                   "texts": sorted(found["texts"]), "seconds": round(time.monotonic() - began)}
        print(json.dumps(results, indent=1))
        if options.json:
            json.dump(results, open(options.json, "w"))
        return 0 if found["refused"] > 0 and results["dead"] == 0 else 1
    finally:
        for process in ([fleet.collector, fleet.server] if fleet else []) + [shard.process for shard in shards]:
            if process is not None and process.poll() is None:
                process.kill()
                process.wait()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    sys.exit(main())
