#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Windows by the thousand over one running program of many threads, streams and graphs.

    python3 tests/gpu/capture_cycles.py --purlin DIR/bin/purlin --program capture_faults [--cycles 10000]

The control socket is asked again and again to stop and, at once after, for a window, which closes by itself unless the
next stop comes first; now and then to govern; PURLIN_WINDOW has the governor open windows of its own. At a tenth, half
and the whole of the cycles the program's memory is read. It fails
where cycles cease to come, where the program ends otherwise than alone or not at all, where memory goes on growing, or
where the profile holds what the program did not do. CUPTI 13.0 itself gets stuck now and then where graphs are replayed
while its kinds are switched (bench/results/capture_faults_h200.md): capture then has to end by itself, with a note. That
is fewer cycles than were to come, so it fails, too; the row says which it was (`stuck_after`), and whether memory stayed.
OUT, if set, gets capture_cycles.json, or capture_cycles_MODE.json. The suite
tests/suites/capture_faults.sh does the same, smaller, on the fake CUPTI.
"""

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path


class Control:
    """The capture's socket in one process: docs/formats/profile.md, "Control"."""

    def __init__(self, pid):
        environment = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace").split("\0")
        spool = next(v for v in environment if v.startswith("PURLIN_SPOOL=")).split("=", 1)[1]
        self.path = f"{spool}/control-{pid}"
        self.asked = {"status": 0, "start": 0, "stop": 0, "window": 0}

    def say(self, verb, milliseconds=None):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        connection.settimeout(20)
        connection.connect(self.path)
        connection.send(f"purlin-control/1 {verb}{'' if milliseconds is None else f' {milliseconds}'}\n".encode())
        return connection

    def ask(self, *requests):
        """What is answered to the last of several that are made at once; they are served in their order."""
        for _ in range(50):  # it hangs up on who is slow to say what it wants
            connections, answer = [], b""
            try:
                for request in requests:
                    connections.append(self.say(*request))
                for connection in connections:
                    answer = connection.recv(4096)
                    if not answer:
                        break
            except (BrokenPipeError, ConnectionResetError):
                answer = b""
            finally:
                for connection in connections:
                    connection.close()
            if answer:
                for request in requests:
                    self.asked[request[0]] += 1
                return json.loads(answer)
        raise OSError("nobody answers")


def rss_kb(pid):
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1])
    return 0


def memory_of(pid):
    """Resident kB of a process by what maps it: a pool of buffers, glibc's heaps and a driver's own look different."""
    kinds, kind = {}, "other"
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        words = line.split()
        if "-" in words[0] and not words[0].endswith(":"):
            name = words[5] if len(words) > 5 else ""
            begin, end = (int(part, 16) for part in words[0].split("-"))
            kind = ("heap" if name == "[heap]" else "arena" if not name and begin % (64 << 20) == 0 else
                    "anonymous" if not name and end - begin >= 1 << 20 else "small" if not name else "stack" if name.startswith("[stack") else "files")
        elif words[0] == "Rss:":
            kinds[kind] = kinds.get(kind, 0) + int(words[1])
        elif words[0] == "AnonHugePages:":
            kinds["of it in huge pages"] = kinds.get("of it in huge pages", 0) + int(words[1])
    return kinds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--purlin", default="purlin")
    parser.add_argument("--program", default="./capture_faults")
    parser.add_argument("--mode", default="mixed", choices=["mixed", "mixed-streams"], help="with graphs, without")
    parser.add_argument("--cycles", type=int, default=10000)
    parser.add_argument("--seconds", type=float, default=90, help="at most")
    parser.add_argument("--window", default="2@100", help="of the governor, in milliseconds; shorter than --window may be")
    parser.add_argument("--growth-mb", type=float, default=32, help="of memory, from a tenth of the cycles to the end")
    arguments = parser.parse_args()
    problems, memory, by_kind, answers = [], {}, {}, []
    with tempfile.TemporaryDirectory() as folder:
        profile, stop = Path(folder, "run.plprof"), Path(folder, "stop")
        began = time.monotonic()
        process = subprocess.Popen([arguments.purlin, "profile", "--quiet", "--torch", "off", "--seal-period", "100ms", "-o", str(profile), "--",
                                    "env", f"PURLIN_WINDOW={arguments.window}", arguments.program, arguments.mode, str(int(arguments.seconds) + 30), str(stop)],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
        windows, status, round_number, stuck_after, rss_first = 0, {}, 0, None, 0
        try:
            while (line := process.stdout.readline()) and line != "ready\n":
                pass
            child = int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0])
            control = Control(child)
            marks = [arguments.cycles // 10, arguments.cycles // 2, arguments.cycles]
            last_progress = time.monotonic()
            first_window = last_progress
            next_word = last_progress
            while windows < arguments.cycles:
                round_number += 1
                requests = [("start",), ("status",)] if round_number % 10 == 0 else [("stop",), ("window", 3)]
                asked = time.monotonic()
                status = control.ask(*requests)
                now = time.monotonic()
                answers.append(now - asked)
                if "capture has ended" in status.get("error", ""):  # the profile has to say why
                    stuck_after = windows
                    if not memory:
                        memory["1"] = rss_first
                    memory["ended"] = rss_kb(child)
                    time.sleep(5)
                    memory["later"] = rss_kb(child)
                    break
                if "error" in status:
                    problems.append(f"{requests}: {status['error']}")
                    break
                if status["windows"] > windows:
                    last_progress = now
                windows = status["windows"]
                rss_first = rss_first or rss_kb(child)
                while marks and windows >= marks[0]:
                    by_kind[str(marks[0])] = {**memory_of(child), "buffers_kb": status.get("buffer_bytes", 0) / 1024, "lent": status.get("buffers_lent")}
                    memory[str(marks.pop(0))] = rss_kb(child)
                if now >= next_word:
                    next_word = now + 5
                    print(f"{now - first_window:6.1f} s: {windows:.0f} windows, {rss_kb(child)} kB, state {status['state']}, "
                          f"buffers {status.get('buffer_bytes', 0) / 2**20:.0f} MiB, {status.get('buffers_lent')} lent", flush=True)
                if now - last_progress > 20:
                    problems.append(f"no window for 20 s, after {windows:.0f}")
                    break
                if now - began > arguments.seconds:
                    problems.append(f"only {windows:.0f} windows within {arguments.seconds} s")
                    break
            last_window = time.monotonic()
        except (OSError, StopIteration, ValueError, IndexError) as failure:
            problems.append(f"the program is gone or does not answer: {failure!r}")
            first_window = last_window = time.monotonic()
        stop.touch()
        try:
            out, err = process.communicate(timeout=40)
        except subprocess.TimeoutExpired:
            problems.append("the program did not end within 40 s")
            os.killpg(process.pid, signal.SIGKILL)  # of the session begun above
            out, err = process.communicate()
        if process.returncode != 0:
            problems.append(f"exit code {process.returncode}: {err[-600:]}")
        report = None
        size = profile.stat().st_size if profile.exists() else 0
        if profile.exists():
            done = subprocess.run([arguments.purlin, "report", str(profile), "--json"], capture_output=True, text=True)
            report = json.loads(done.stdout) if done.returncode == 0 else None
    made = next((json.loads(line) for line in out.splitlines() if line.startswith("{")), {})
    row = {"cycles": windows, "seconds": round(last_window - first_window, 1), "asked": control.asked if answers else {},
           "answer_ms": {"median": round(1e3 * sorted(answers)[len(answers) // 2], 2), "longest": round(1e3 * max(answers), 1)} if answers else {},
           "rss_kb": memory, "rss_by_kind_kb": by_kind, "made": made, "profile_bytes": size}
    if report is None:
        problems.append("no profile that can be read")
    else:
        coverage = report["coverage"]
        row["coverage"] = {k: v for k, v in coverage.items() if k != "notes"}
        row["notes"] = {n["cause"]: {"count": n["count"], "seconds": n["seconds"]} for n in coverage["notes"]}
        row["recorded"] = coverage["launches_seen"]
        row["stuck_after"] = stuck_after
        if stuck_after is not None:
            why = "CUPTI got stuck" if "cupti_stuck" in row["notes"] else "the profile does not say why"
            problems.append(f"capture ended after {stuck_after:.0f} windows of {arguments.cycles}: {why}")
        total = sum(made["launches"].values()) if "launches" in made else made.get("work", 0)
        if coverage["launches_seen"] <= 0 or coverage["launches_seen"] > total:
            problems.append(f"{coverage['launches_seen']} launches seen of {total} made")
        if coverage["launches_lost"]:
            problems.append(f"{coverage['launches_lost']} launches lost")
        strange = {k["name"] for k in report["kernels"]} - {"fault_empty()", "fault_node()", "work", "node", "module"}
        if strange:
            problems.append(f"kernels that the program does not have: {sorted(strange)[:5]}")
    if len(memory) > 1 and max(memory.values()) - min(memory.values()) > arguments.growth_mb * 1024:
        problems.append(f"memory grew: {memory} kB")
    row["ok"], row["problems"] = not problems, problems
    if os.environ.get("OUT"):
        suffix = "" if arguments.mode == "mixed" else f"_{arguments.mode}"
        Path(os.environ["OUT"], f"capture_cycles{suffix}.json").write_text(json.dumps(row, indent=1) + "\n")
    print(f"{'ok' if not problems else 'FAILED'}, {arguments.mode}{'' if stuck_after is None else ', CUPTI stuck'}: {windows:.0f} windows in {row['seconds']} s, asked {row['asked']}, memory {memory} kB, "
          f"recorded {row.get('recorded')} of {made.get('launches', made.get('work'))}, profile {size} bytes, notes {sorted(row.get('notes', {}))}")
    for problem in problems:
        print(f"    {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
