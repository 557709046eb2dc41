# SPDX-License-Identifier: Apache-2.0
"""The data flow of some steps after a trace: PyTorch's execution trace (docs/design/data-flow.md).

Its observer writes each op with the ids of its tensors. It has two faults (PyTorch 2.11), and each
may crash the program. An op whose inputs it cannot describe, such as a sparse tensor, takes its
caller from the observer's stack. A backward pass looks at the stack of the forward pass's thread,
which may be empty. So only tensors with strides may be in use (check), and the stack gets a ballast
of entries that nothing takes.
"""
import ctypes
import os
import threading
import time


MOST_OPS = 20000  # of a step, or of a recording by time; each takes the observer 10 us and 1 kB
OP_S = 10e-6
LONGEST_S = 5.0  # of a recording by time


_LEFT = []


class Unfit(Exception):
    """No execution trace is recorded. The program is as before."""


class FlowTrace:
    BALLAST = 200
    PAUSE_S = 0.005
    # Which warnings PyTorch prints; 2: errors alone.
    SYMBOLS = ("_ZN3c1022FLAGS_caffe2_log_levelE", "FLAGS_caffe2_log_level")

    def __init__(self, torch, path, steps, window):
        """`steps`: 0 for a recording by time, which has no marks."""
        self.torch, self.path, self.steps, self.window = torch, path, steps, window
        self.op_share = 0  # of the time of a recording by time: what the observer takes
        self.began = 0
        self.done = 0
        self.thread = threading.get_ident()
        self.recording = False
        self._mark = None
        self._ballast = []

    def start(self):
        profiler = self._observer()
        level = self._level()
        if os.environ.get("ENABLE_PYTORCH_EXECUTION_TRACE", "0") not in ("", "0"):
            raise Unfit("the program has an execution trace of its own")
        with _Quiet(level):
            added = profiler._add_execution_trace_observer(self.path)
            if not added or not os.path.exists(self.path):  # another one is registered
                raise Unfit("the program has an execution trace of its own")
            profiler._enable_execution_trace_observer()
        self.recording = True
        self._ballast = [self._range("purlin") for _ in range(self.BALLAST)]
        if self.steps > 0:
            self._mark = self._range("ProfilerStep#0")
        self.began = time.perf_counter_ns()

    def step(self):
        """At the end of a step. True where it was the last one."""
        if self.steps == 0:
            return False
        self.done += 1
        self._close_mark()
        if self.done >= self.steps:
            return True
        self._mark = self._range("ProfilerStep#%d" % self.done)
        return False

    def stop(self):
        """Ends the recording and completes the file. May be called again."""
        if not self.recording:
            return
        self.recording = False
        profiler = self._observer()
        with _Quiet(self._level()):
            profiler._disable_execution_trace_observer()
            time.sleep(self.PAUSE_S)  # another thread may be inside the observer, which goes away
            profiler._remove_execution_trace_observer()
        if self.thread == threading.get_ident():
            del self._ballast[:]  # after the end: not written
        else:
            _LEFT.append(self._ballast)  # a range ends on the thread that began it, or not at all
        self._close_mark()

    def cost_ns(self):
        """What the program waited while it was recorded, up to now."""
        took = time.perf_counter_ns() - self.began
        if self.steps == 0:
            return int(took * self.op_share)
        return max(0, took - self.done * self.window.usual_ns)

    def drop(self):
        """Ends the recording, and removes the file."""
        try:
            self.stop()
            os.unlink(self.path)
        except OSError:
            pass

    @staticmethod
    def _observer():
        from torch._C import _profiler

        return _profiler

    def _range(self, name):
        out = self.torch.autograd.profiler.record_function(name)
        out.__enter__()
        return out

    def _close_mark(self):
        mark, self._mark = self._mark, None
        if mark is not None:
            mark.__exit__(None, None, None)

    def _level(self):
        library = os.path.join(os.path.dirname(self.torch.__file__), "lib", "libc10.so")
        for symbol in self.SYMBOLS:
            try:
                return ctypes.c_int.in_dll(ctypes.CDLL(library), symbol)
            except (OSError, ValueError):
                pass
        raise Unfit("this PyTorch would print a warning")


class _Quiet:
    """The observer prints a warning when it starts and when it ends."""

    def __init__(self, level):
        self.level = level

    def __enter__(self):
        self.before, self.level.value = self.level.value, max(2, self.level.value)

    def __exit__(self, *fault):
        self.level.value = self.before
        return False


def check(torch, results, since_ns):
    """Unfit, where the observer could crash the program, or has too much to write.

    `results`: _ProfilerResult of a trace. The ops since that time stand for those to come.
    """
    forward = {event.fwd_thread_id() for event in _events(results) if event.fwd_thread_id() > 0}
    if len(forward) > 1:
        raise Unfit("forward passes on several threads")
    ops = _count_ops(torch, results, since_ns)
    if ops == 0 or ops > MOST_OPS:
        raise Unfit("%d ops in a step, where 1 to %d are possible" % (ops, MOST_OPS))


def seconds_by_time(torch, results, since_ns, until_ns):
    """The same for a recording by time: how long it may be, and the observer's share of it.

    All ops come from the main thread: the ballast is on its stack.
    """
    main = threading.main_thread().native_id
    cpu = torch.autograd.DeviceType.CPU
    for event in _events(results):
        if event.fwd_thread_id() > 0:
            raise Unfit("a backward pass, but no optimizer")
        if event.device_type() == cpu and "::" in event.name() and event.device_resource_id() != main:
            raise Unfit("ops on another thread than the main one")
    ops = _count_ops(torch, results, since_ns)
    if ops == 0:
        raise Unfit("no op in the trace")
    each_s = (until_ns - since_ns) * 1e-9 / ops
    return min(LONGEST_S, MOST_OPS * (each_s + OP_S)), OP_S / (each_s + OP_S)


def _events(results):
    for event in results.events():
        name = event.name()
        if "nested" in name or "sparse" in name or "compile_inner" in name:
            raise Unfit("sparse or nested tensors, or a compiler at work (%s)" % name[:80])
        yield event


def _count_ops(torch, results, since_ns):
    strided = torch.strided
    stack = [event for event in results.experimental_event_tree() if event.end_time_ns >= since_ns]
    ops = 0
    while stack:
        event = stack.pop()
        values = getattr(event.extra_fields, "inputs", None)
        if values is not None:
            ops += 1
            for value in values:
                for one in value if isinstance(value, list) else (value,):
                    if getattr(one, "layout", strided) not in (None, strided):
                        raise Unfit("a tensor without strides")
        stack.extend(event.children)
    return ops
