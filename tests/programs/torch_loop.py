#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program over the fake torch of this folder: torch_loop.py MODE…, in this order.

Its output does not depend on how many steps it makes. Under `purlin profile` it goes on until its
trace is in the spool (wait), or its process has a note with a reason (note); alone, for 30 steps.
"""
import glob
import hashlib
import json
import multiprocessing
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time

SPOOL = os.environ.get("PURLIN_SPOOL", "")
random.seed(1)
import torch  # noqa: E402

optimizer = None


def step(train=True):
    global optimizer
    torch.mm(8, 16, 100)
    torch.mm(8, 16, 300)
    torch.relu(5)
    time.sleep(0.002)
    if train:
        optimizer = optimizer or torch.optim.SGD()
        optimizer.step()


def notes():
    for place in glob.glob(os.path.join(SPOOL, "torch-%d-*.note" % os.getpid())):
        with open(place) as file:
            yield json.load(file)


def until(reached, train=True):
    end = time.time() + 300
    for number in range(10**6):
        step(train)
        if (number >= 30 and not SPOOL) or (number % 5 == 0 and reached()):
            return
        assert time.time() < end, list(notes())


def traced():
    return bool(glob.glob(os.path.join(SPOOL, "torch-%d-*.json.gz" % os.getpid())))


def reasoned():
    return any(note["reason"] not in ("not_steady", "unfinished") for note in notes())


def window_open():
    return torch.autograd.profiler._prepare_profiler.__name__ == "starting"


def kernels(profiler):
    return sum(e["cat"] == "kernel" for e in profiler.profiler.kineto_results.list)


def flow_ended():
    """An execution trace is in the spool, or none is to come."""
    return any("flow" in note or "no_flow" in note for note in notes())


def flow():
    """Goes on until its execution trace is in the spool, or is not to come."""
    until(traced)
    until(flow_ended)


def flow_of_longer_steps():
    """Each step of the trace is longer than the one before, and its ops are at its beginning."""
    end = time.time() + 60
    longer = 0
    step()
    while SPOOL and time.time() < end and not flow_ended():
        step(train=False)
        if window_open():
            longer += 0.004
            time.sleep(longer)
        optimizer.step()


def infer_flow():
    """The same without an optimizer."""
    until(traced, train=False)
    until(flow_ended, train=False)


def flow_fork():
    """Forks in each step."""
    end = time.time() + 60
    while SPOOL and time.time() < end and not any("no_flow" in note for note in notes()):
        step()
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)


def own_observer():
    """The program has an execution trace of its own."""
    from torch._C import _profiler

    _profiler._add_execution_trace_observer("own.et.json")
    flow()
    _profiler._remove_execution_trace_observer()
    with open("own.et.json") as file:
        print("own nodes", len(json.load(file)["nodes"]))


def after():
    """Goes on for some steps after its trace."""
    until(traced)
    for _ in range(100):
        step()


def own_profiler():
    """Records ten steps; with `held`, until Purlin has given way."""
    torch.cuda.synchronize()
    with torch.profiler.profile() as profiler:
        if SPOOL and "held" in sys.argv:
            until(reasoned)
        profiler.stop()
        profiler.start()
        for _ in range(10):
            step()
    print("own kernels", kernels(profiler))


def fork():
    child = os.fork()
    if child == 0:
        for _ in range(40):
            step()
        events = len(torch.STATE.events)
        step()
        os._exit(0 if events == len(torch.STATE.events) else 9)
    print("child", os.waitpid(child, 0)[1])


def spawn():
    """Two processes of their own; together they have one trace."""
    context = multiprocessing.get_context("spawn")
    children = [context.Process(target=until, args=(any_settled,)) for _ in range(2)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    print("children", [child.exitcode for child in children])


def any_settled():
    return traced() or reasoned()


def capture():
    """For longer than Purlin waits for a trace by time; then until there is one."""
    graph = torch.cuda.CUDAGraph()
    for train in (False, True):
        graph.capture_begin()
        end = time.time() + 1.2
        while time.time() < end:
            step(train)
        graph.capture_end()
    print("broken", graph.broken)


def load(seconds):
    """Kernels, but none that computes, as while a model is loaded."""
    end = time.time() + seconds
    while time.time() < end:
        torch.relu(5)
        time.sleep(0.002)


def late():
    """An optimizer, and steps only after other work."""
    global optimizer
    optimizer = torch.optim.SGD()
    end = time.time() + 2
    while time.time() < end:
        step(train=False)
    until(traced)


def in_thread():
    """Trains on another thread than the one that imported torch."""
    thread = threading.Thread(target=until, args=(traced,))
    thread.start()
    thread.join()


def capture_answers(needs_cupti, **more):
    """Answers as Purlin's capture in this process would."""
    if not SPOOL:
        return
    server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    os.chdir(SPOOL)
    server.bind("control-%d" % os.getpid())
    server.listen()

    def answer():
        while True:
            client = server.accept()[0]
            client.recv(128)
            said = {"needs_cupti": needs_cupti, "state": "governed"}
            said.update((name, value()) for name, value in more.items())
            client.send(json.dumps(said).encode())
            client.close()

    threading.Thread(target=answer, daemon=True).start()


def capture_says(needs_cupti, teardown):
    """What the trace then does with CUPTI."""
    capture_answers(needs_cupti)
    until(traced)
    print("teardown", torch.STATE.teardowns[-1] if SPOOL else teardown)


def not_traced(needs_cupti, expected, train=True):
    """Another rank than the traced one: TEARDOWN_CUPTI at the end of what it records."""
    capture_answers(needs_cupti)
    until(reasoned, train=train)
    if SPOOL:  # a window that is requested later attaches CUPTI for nothing
        request = os.path.join(SPOOL, "torch-request-%d" % os.getpid())
        open(request, "w").close()
        until(lambda: not os.path.exists(request))
        for _ in range(100):
            step(train=train)
    print("teardowns", torch.STATE.teardowns if SPOOL else expected)


def load_and_infer():
    """For longer than several tries wait, nothing computes. Purlin's capture sees that."""
    work = [0]
    capture_answers(False, computing_launches=lambda: work[0])
    load(2)
    end = time.time() + 120
    while SPOOL and not traced() and time.time() < end:
        work[0] += 2
        step(train=False)


def pause(seconds):
    """Some steps, of which the first one compiles, then work without a step."""
    for number in range(5):
        step()
        if number == 0:
            time.sleep(2.5)
    end = time.time() + seconds
    while time.time() < end:
        step(train=False)


def teardowns(expected):
    """TEARDOWN_CUPTI at the end of each trace. After the last one, steps have no trace."""
    for _ in range(200):
        step()
    print("teardowns", torch.STATE.teardowns if SPOOL else expected)


class Interrupt(Exception):
    pass


def on_signal(number, frame):
    raise Interrupt()


def interrupted():
    signal.signal(signal.SIGUSR1, on_signal)
    try:
        until(traced)
    except Interrupt:
        print("interrupted")
    else:
        print("interrupted" if not SPOOL else "not interrupted")


MODES = {
    "wait": lambda: until(traced),
    "note": lambda: until(reasoned),
    "infer": lambda: until(traced, train=False),
    "infer_note": lambda: until(reasoned, train=False),
    "after": after,
    "flow": flow,
    "infer_flow": infer_flow,
    "flow_fork": flow_fork,
    "flow_of_longer_steps": flow_of_longer_steps,
    "own_observer": own_observer,
    "open": lambda: until(window_open),
    "some": lambda: [step() for _ in range(9)],
    "cuda": torch.cuda.init,
    "own": own_profiler,
    "held": own_profiler,
    "fork": fork,
    "interrupted": interrupted,
    "launch": lambda: subprocess.run([os.environ["LOOP"], "launches", "100"], check=True),
    "path": lambda: print([p for p in sys.path if "purlin" in p and "hook" in p]),
    "teardown": lambda: print("teardown", os.environ.get("TEARDOWN_CUPTI")),
    "done": lambda: until(lambda: os.path.exists(os.environ["DONE"])),
    "infer_done": lambda: until(lambda: os.path.exists(os.environ["DONE"]), train=False),
    "spawn": spawn,
    "load": lambda: load(2),
    "late": late,
    "thread": in_thread,
    "recording": lambda: capture_says(True, "0"),
    "ended": lambda: capture_says(False, "1"),
    "rank_leaves": lambda: not_traced(False, ["1"]),
    "rank_stays": lambda: not_traced(True, []),
    "infer_rank_leaves": lambda: not_traced(False, ["1"], train=False),
    "infer_rank_stays": lambda: not_traced(True, [], train=False),
    "load_and_infer": load_and_infer,
    "pause": lambda: pause(1.5),
    "teardowns": lambda: teardowns(["1"]),
    "capture": capture,
    "term": lambda: os.kill(os.getpid(), signal.SIGTERM),
    "exit7": lambda: sys.exit(7),
}

if __name__ == "__main__":
    for mode in sys.argv[1:]:
        MODES[mode]()
    print("random", hashlib.sha256(repr(random.getstate()).encode()).hexdigest()[:16])
