# SPDX-License-Identifier: Apache-2.0
"""The compilations of a process, and what Purlin records meanwhile (docs/design/jax-programs.md).

XLA's autotuner times kernels while it compiles, and keeps the fastest: recording changes which one that is. With
PURLIN_JAX_COMPILE=skip no kernel is recorded meanwhile, and no copy at all. The listeners of jax.monitoring tell when a
compilation begins and ends. They run on the thread that compiles, between its calls of CUDA, where records can safely be
switched. One that fails tells no end, nor does a lowering without one. So while one goes on, a thread looks for it on the
stacks.
"""
import ctypes
import os
import sys
import threading
import time

LIBRARY = "libpurlin_cuda.so"
LOOK_S = 0.25
LOOKS = 2  # without a compilation on the stack, after which it is taken to be over


def skips():
    return os.environ.get("PURLIN_JAX_COMPILE") == "skip" and os.environ.get("PURLIN_FULL") != "1"


def capture_library():
    """Purlin's capture in this process, without the power to load it; None: there is none."""
    path = os.environ.get("CUDA_INJECTION64_PATH", "")
    if os.path.basename(path) != LIBRARY:
        return None
    try:
        # Python's lock is kept during its calls, so no thread of Python launches meanwhile.
        library = ctypes.PyDLL(path, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
        library.purlin_compiler_begins.restype = ctypes.c_int
        library.purlin_compiler_ends.restype = None
        return library
    except (OSError, AttributeError):
        return None


def compiles(frame):
    part = os.path.join("jax", "_src", "")
    while frame is not None:
        code = frame.f_code
        if "compil" in code.co_name and part in code.co_filename:
            return True
        frame = frame.f_back
    return False


class Compilations:
    def __init__(self, skip):
        self.recorded = 0  # that were, and were not in jax's cache
        self._skip = skip
        self._copies = os.environ.get("PURLIN_COPIES") == "on"
        self._lock = threading.Lock()
        self._misses = {}  # by the thread that compiles: looks that did not find it
        self._paused = False
        self._library = self._watcher = None

    def begins(self):
        """Of this thread."""
        if not self._skip:
            return
        with self._lock:
            self._misses[threading.get_ident()] = 0
            if self._library is None:
                self._library = capture_library()
            if self._library is None or self._paused:
                return
            self._paused = self._library.purlin_compiler_begins() == 1
            if self._paused and (self._watcher is None or not self._watcher.is_alive()):
                self._watcher = threading.Thread(target=self._watch, name="purlin-jax", daemon=True)
                self._watcher.start()

    def ends(self, from_cache):
        with self._lock:
            recorded = self._copies or not self._paused
            self.recorded += 1 if recorded and not from_cache else 0
            self._misses.pop(threading.get_ident(), None)
            self._resume_if_none()

    def _resume_if_none(self):
        if self._paused and not self._misses:
            self._paused = False
            self._library.purlin_compiler_ends()

    def _watch(self):
        while True:
            time.sleep(LOOK_S)
            stacks = sys._current_frames()
            with self._lock:
                for thread in list(self._misses):
                    found = compiles(stacks.get(thread))
                    self._misses[thread] = 0 if found else self._misses[thread] + 1
                    if self._misses[thread] >= LOOKS:
                        del self._misses[thread]
                del stacks
                self._resume_if_none()
                if not self._paused:
                    self._watcher = None
                    return
