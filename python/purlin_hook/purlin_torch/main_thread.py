# SPDX-License-Identifier: Apache-2.0
"""Runs a function on the main thread, between two instructions of the program.

Python runs handlers of signals in the same way. PyTorch's profiler starts in 20 ms on the thread that
launches work, and in 4 s on another one: both then compete for locks of CUPTI (H100, PyTorch 2.11).
"""
import ctypes
import threading

from .guards import Captures, is_the_programs


class MainThread:
    PATIENCE_S = 2  # then the calling thread does the work: the main one may wait for a request

    def __init__(self, captures):
        self._captures = captures
        self._kept = []  # what Python has yet to call

    def run(self, work):
        """Returns when the work is done; raises what it raised."""
        if threading.current_thread() is threading.main_thread():
            return work()
        call = _Call(work)
        try:
            self._kept.append(call)
            added = ctypes.pythonapi.Py_AddPendingCall(call.function, None) == 0
        except Exception:
            added = False
        if not (added and call.done.wait(self.PATIENCE_S)) and call.take():
            call.work_now()
        else:
            call.done.wait()
        if call.fault is not None:
            raise call.fault

    def run_outside_of_captures(self, work):
        """The same, while no CUDA graph is captured on any thread."""
        open_captures = True
        while open_captures:
            with self._captures.none():
                pass  # a capture that is open has ended

            def outside_of_captures():
                if threading.current_thread() is not threading.main_thread():
                    with self._captures.none():
                        work()
                elif self._captures.open == 0:
                    work()
                else:
                    raise Captures.Busy

            try:
                self.run(outside_of_captures)
                open_captures = False
            except Captures.Busy:
                pass


class _Call:
    def __init__(self, work):
        self.work = work
        self.done = threading.Event()
        self.fault = None
        self._free = threading.Lock()  # held by the one who does the work
        self.function = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(self._called)

    def take(self):
        return self._free.acquire(blocking=False)

    def _called(self, _):
        if self.take():
            self.work_now()
            if self.fault is not None and is_the_programs(self.fault):
                kind, self.fault = type(self.fault), RuntimeError("interrupted by the program")
                main = ctypes.c_ulong(threading.get_ident())
                ctypes.pythonapi.PyThreadState_SetAsyncExc(main, ctypes.py_object(kind))
            self.done.set()
        return 0

    def work_now(self):
        try:
            self.work()
        except BaseException as fault:  # the waiting thread decides
            self.fault = fault
