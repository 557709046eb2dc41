# SPDX-License-Identifier: Apache-2.0
"""One trace: its profiler and times, the steps before it, what Purlin's capture says of CUPTI."""
import json
import os
import socket
import threading
import time


def typical(durations):
    """The median of means of ten: one long step in some is part of it, a rare one is not."""
    means = sorted(
        sum(durations[at : at + 10]) / len(durations[at : at + 10])
        for at in range(0, len(durations), 10)
    )
    return int(means[len(means) // 2]) if means else 0


class Steps:
    """The times of the optimizer steps of one optimizer: when they are steady.

    Means are compared and not single steps: a program that waits for its device now and then has
    many short steps and a long one.
    """

    FEWEST, MANY, LONG_S, NEAR = 12, 200, 30, 0.2

    def __init__(self, settle_s):
        self.settle_s = settle_s
        self.count = 0
        self.first = self.last = None
        self.durations = []
        self._optimizer = None
        self._others = 0

    def is_round(self, optimizer):
        """Of several optimizers, the first one counts rounds, as long as it is in use."""
        if self._optimizer is None or self._others > self.MANY:
            self._optimizer = id(optimizer)
        self._others = 0 if id(optimizer) == self._optimizer else self._others + 1
        return self._others == 0

    def mark(self, now):
        if self.last is not None:
            self.durations.append(now - self.last)
            del self.durations[: -self.MANY]
        elif self.first is None:
            self.first = now
        self.last = now
        self.count += 1

    def too_long(self, longest_s):
        """Each of them, not a first one that compiles."""
        return len(self.durations) >= 3 and self.usual() > longest_s * 1e9

    def usual(self):
        """The mean of the last third."""
        third = max(1, len(self.durations) // 3)
        return sum(self.durations[-third:]) // third if self.durations else 0

    def typical(self):
        """Of the last two thirds, without what comes first."""
        return typical(self.durations[len(self.durations) // 3 :])

    def steady(self):
        if self.count < self.FEWEST or self.last - self.first < self.settle_s * 1e9:
            return False
        if self.count >= self.MANY or self.last - self.first > self.LONG_S * 1e9:
            return True
        third = len(self.durations) // 3
        before = sum(self.durations[-2 * third : -third]) / third
        return abs(self.usual() - before) <= self.NEAR * before


class StepsAfter:
    """The times of the steps after a trace is saved, when no profiler slows them down."""

    FEWEST, MANY, LONG_S = 10, 300, 30

    def __init__(self, window, settle_s):
        self.window = window
        self.settle_ns = int(settle_s * 1e9)
        self.since = self.last = None
        self.durations = []

    def mark(self, now):
        """True where there are enough."""
        if not self.window.written.is_set():
            return False
        self.since = self.since or now
        if now - self.since < self.settle_ns:
            return False
        if self.last is not None:
            self.durations.append(now - self.last)
        self.last = now
        return len(self.durations) >= self.MANY or now - self.since > self.LONG_S * 1e9

    def typical(self):
        return typical(self.durations) if len(self.durations) >= self.FEWEST else 0


class Window:
    """One trace: its profiler, its times, the thread that owns it."""

    def __init__(self, mode, number):
        self.mode = mode
        self.number = number
        self.profiler = None
        self.thread = threading.get_ident()
        self.start_ns = self.end_ns = 0  # wall clock
        self.last_step_ns = 0  # the same: when the last step began
        self.opened = self.recording_since = time.perf_counter_ns()
        self.closed = 0
        self.own_ns = self.export_ns = 0  # inside calls that start, step and stop; that save
        self.flow_ns = 0  # that the program waited for the data flow after it
        self.rounds = 0
        self.steps = self.wanted = 0
        self.usual_ns = 0  # a step before
        self.keeps_cupti = True
        self.given_up = ""  # the reason
        self.unwanted = False  # it ends CUPTI, and is dropped
        self.saved = {}  # members of its note, once the trace is saved
        self.over = threading.Event()  # nothing is recorded any more
        self.written = threading.Event()

    def keep_raw(self):
        """With acc_events PyTorch makes an object of each event at the end of a trace.

        That took 3 s of a ResNet-50 and 5 s of a GPT-2, and the saved trace does not need it.
        """
        inner = getattr(self.profiler, "profiler", None)
        if getattr(inner, "acc_events", False):
            inner.acc_events = False

    def stop(self):
        self.keep_raw()
        self.profiler.stop()

    def cost_ns(self):
        """What the program waited: steps took longer by this, and the trace was saved."""
        slower = 0
        if self.mode == "steps" and self.closed > 0 and self.usual_ns > 0:
            slower = self.closed - self.opened - self.rounds * self.usual_ns
        return max(self.own_ns, slower) + self.export_ns + self.flow_ns


class Own:
    """Purlin's own calls of the profiler: timed, and no start of the program's profiler."""

    def __init__(self, guard, window):
        self.guard, self.window = guard, window

    def __enter__(self):
        self.guard.ours.inside = True
        self.guard.hide_lazy_modules()
        self.began = time.perf_counter_ns()

    def __exit__(self, *fault):
        self.window.own_ns += time.perf_counter_ns() - self.began
        self.guard.show_lazy_modules()
        self.guard.ours.inside = False
        return False


class CaptureAnswer:
    """Whether Purlin's own capture needs CUPTI after a trace, and how much there is to record.

    Without an answer in time the options of the run decide.
    """

    PATIENCE_S = 1.5
    MOST_RECORDS, SHORTEST_S, FEWEST_STEPS = 10000, 0.1, 3

    def __init__(self, folder):
        self.folder = folder
        self.keeps_cupti = records_to_the_end(os.environ.get)
        self.records_per_s = 0
        self.computing = None  # launches of kernels that compute, so far; None: not known
        self.done = False
        self.began = time.perf_counter_ns()

    def ask(self):
        try:
            said = self._status()
            self.keeps_cupti = bool(said.get("needs_cupti", self.keeps_cupti))
            self.records_per_s = float(said.get("records_per_s", 0))
            if said.get("state") in ("recording", "governed"):
                self.computing = float(said["computing_launches"])
        except Exception:
            pass
        self.done = True

    def is_over(self, now):
        return self.done or now - self.began > self.PATIENCE_S * 1e9

    def length_s(self, longest):
        """Of a trace by time: the program stands still while it is saved, as long as it has records."""
        if self.records_per_s * longest <= self.MOST_RECORDS:
            return longest
        return min(longest, max(self.SHORTEST_S, self.MOST_RECORDS / self.records_per_s))

    def steps(self, most, usual_ns):
        """The same of a trace by steps."""
        records = self.records_per_s * usual_ns * 1e-9
        if records * most <= self.MOST_RECORDS:
            return most
        return min(most, max(self.FEWEST_STEPS, round(self.MOST_RECORDS / records)))

    def _status(self):
        name = "control-%d" % os.getpid()
        if not os.path.exists(os.path.join(self.folder, name)):
            injected = os.environ.get("CUDA_INJECTION64_PATH", "")  # another tool's needs it
            return {"needs_cupti": injected != "" and not injected.endswith("libpurlin_cuda.so")}
        folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:  # by the descriptor: the path of a socket is short
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
                connection.settimeout(self.PATIENCE_S)
                connection.connect("/proc/self/fd/%d/%s" % (folder, name))
                connection.send(b"purlin-control/1 status\n")
                return json.loads(connection.recv(4096).decode())
        finally:
            os.close(folder)


def records_to_the_end(variable):
    """By the options of `purlin profile`."""
    return (
        variable("PURLIN_FULL") == "1"
        or variable("PURLIN_WINDOWS") in ("1", "on")
        or variable("PURLIN_STALLS", "0") not in ("", "0")
        or any(variable(name) for name in ("PURLIN_WINDOW", "PURLIN_COUNTERS"))
    )


def compress(raw, place):
    import gzip
    import shutil

    with open(raw, "rb") as source, gzip.open(place + ".part", "wb", compresslevel=1) as target:
        shutil.copyfileobj(source, target, 1 << 20)
    os.replace(place + ".part", place)
