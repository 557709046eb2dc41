# SPDX-License-Identifier: Apache-2.0
"""What keeps a trace from changing the program: its profiler, CUDA graphs, signals and stderr."""
import functools
import os
import signal
import sys
import threading


class Guard:
    """While a trace of Purlin is open: a profiler that the program starts ends it first.

    Replaces the functions by which torch.autograd.profiler starts every profiler, and has the
    warnings of Purlin's own calls left out.
    """

    STARTS = ("_prepare_profiler", "_enable_profiler")
    WARNINGS = ("warn", "_warn_once", "warn_once")

    def __init__(self, torch, give_way):
        self._torch = torch
        self._lookup = None
        self._module = torch.autograd.profiler
        self._give_way = give_way
        self._before = []
        self.ours = threading.local()

    def install(self):
        for name in self.STARTS:
            start = getattr(self._module, name, None)
            if start is not None:
                self._replace(self._module, name, self._wrapped(start))
        for module in (self._module, sys.modules.get("torch.profiler.profiler")):
            for name in self.WARNINGS:
                warn = getattr(module, name, None)
                if warn is not None:
                    self._replace(module, name, self._silent(warn))

    def remove(self):
        for module, name, value in self._before:
            setattr(module, name, value)
        del self._before[:]

    def hide_lazy_modules(self):
        """A starting profiler asks for torch._inductor, which imports it: seconds. What the program
        has not imported cannot be in use. On this thread only."""
        lookup = vars(self._torch).get("__getattr__")
        if lookup is None or self._lookup is not None or "torch._inductor" in sys.modules:
            return
        thread = threading.get_ident()

        def without_inductor(name):
            if name == "_inductor" and threading.get_ident() == thread:
                raise AttributeError(name)
            return lookup(name)

        self._lookup, self._torch.__getattr__ = lookup, without_inductor

    def show_lazy_modules(self):
        if self._lookup is not None:
            self._torch.__getattr__, self._lookup = self._lookup, None

    def _is_ours(self):
        return getattr(self.ours, "inside", False)

    def _replace(self, module, name, value):
        self._before.append((module, name, getattr(module, name)))
        setattr(module, name, value)

    def _silent(self, warn):
        return lambda *a, **k: None if self._is_ours() else warn(*a, **k)

    def _wrapped(self, start):
        def starting(*arguments, **named):
            if not self._is_ours():
                self._give_way()
            return start(*arguments, **named)

        return starting


class Captures:
    """Captures of CUDA graphs. To start or stop a profiler waits for the device, which breaks one."""

    class Busy(Exception):
        """One is open."""

    def __init__(self):
        self.open = 0
        self._idle = threading.Condition()

    def watch(self, torch):
        graph = getattr(getattr(torch.cuda, "graphs", None), "CUDAGraph", None)
        begin, end = (getattr(graph, name, None) for name in ("capture_begin", "capture_end"))
        if begin is None or end is None:
            return

        def capture_begin(*arguments, **named):
            self._count(1)
            try:
                return begin(*arguments, **named)
            except BaseException:
                self._count(-1)
                raise

        def capture_end(*arguments, **named):
            try:
                return end(*arguments, **named)
            finally:
                self._count(-1)

        graph.capture_begin = functools.wraps(begin)(capture_begin)
        graph.capture_end = functools.wraps(end)(capture_end)

    def forget(self):
        """In a forked child: another thread may have held the lock."""
        self.open = 0
        self._idle = threading.Condition()

    def _count(self, change):
        with self._idle:
            self.open = max(0, self.open + change)
            self._idle.notify_all()

    def none(self):
        """For `with`: no capture is open, and none begins."""
        return _NoCapture(self._idle, self)


def wait_for_devices(torch):
    """Before a profiler starts, until the program's work so far is done.

    To switch CUPTI's records while copies are in flight has damaged CUPTI's list of them
    (bench/results/cupti_windows_crash.md). The end of a trace waits in the same way.
    """
    cuda = torch.cuda
    has_context = getattr(torch._C, "_cuda_hasPrimaryContext", None)
    capturing = getattr(cuda, "is_current_stream_capturing", None)
    if capturing is not None and capturing():
        return
    if has_context is None:
        cuda.synchronize()
        return
    for device in range(cuda.device_count()):
        if has_context(device):
            cuda.synchronize(device)


class _NoCapture:
    def __init__(self, idle, captures):
        self.idle, self.captures = idle, captures

    def __enter__(self):
        self.idle.acquire()
        while self.captures.open > 0:
            self.idle.wait()

    def __exit__(self, *fault):
        self.idle.release()
        return False


class WithoutKinetosLine:
    """libkineto prints an error, of no consequence, where another thread than that which imported
    torch starts it. Meanwhile C's stderr is a buffer; all else in it goes to the real one.

    Only glibc's stderr can be replaced. Its descriptor, Python's sys.stderr and C++ stay as they are.
    """

    LINE = b"External init callback must run in same thread"
    KEPT = []  # another thread may still hold the buffer

    def __init__(self, importer):
        self.needed = importer != threading.get_ident()

    def __enter__(self):
        self.pointer = None
        try:
            import ctypes

            if not self.needed or not os.confstr("CS_GNU_LIBC_VERSION"):
                return
            self.libc = ctypes.CDLL(None)
            self.libc.open_memstream.restype = ctypes.c_void_p
            self.text, self.size = ctypes.c_void_p(), ctypes.c_size_t()
            stream = self.libc.open_memstream(ctypes.byref(self.text), ctypes.byref(self.size))
            if not stream:
                return
            self.KEPT.append(self)
            self.stream = ctypes.c_void_p(stream)
            self.read = ctypes.string_at
            pointer = ctypes.c_void_p.in_dll(self.libc, "stderr")
            self.before, pointer.value = pointer.value, stream
            self.pointer = pointer
        except Exception:
            pass

    def __exit__(self, *fault):
        if self.pointer is not None:
            self.pointer.value = self.before
            self.libc.fflush(self.stream)
            lines = self.read(self.text.value, self.size.value).splitlines(True)
            rest = b"".join(line for line in lines if self.LINE not in line)
            if rest:
                os.write(2, rest)
        return False


def is_the_programs(fault):
    """Raised by a handler of a signal, which Python runs between any two lines of the main thread."""
    handlers = set()
    for number in signal.valid_signals():
        handler = signal.getsignal(number)
        handler = getattr(handler, "__func__", handler)
        code = getattr(handler, "__code__", None) or getattr(
            getattr(type(handler), "__call__", None), "__code__", None
        )
        handlers.add(code)
    trace = fault.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code in handlers:
            return True
        trace = trace.tb_next
    return False
