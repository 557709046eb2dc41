# SPDX-License-Identifier: Apache-2.0
"""A named range of the program: `with purlin.profile("step") as p: ...`.

The range is pushed and popped through NVTX: by PyTorch if it is loaded, else by NVIDIA's library if it is
installed. `purlin profile --ops` reads it, as other tools do. Launches carry the range's name, and ranges named
"step 3" divide a timeline into steps.

A capture covers the whole process, so a range does not start or stop it. With capture=True, under
`purlin profile --idle`, the range starts the capture of this process at its begin and stops it at its end.
Outside of `purlin profile`, one warning explains how to get a profile. A capture that does not start is a
warning, too, and the range continues.
"""
import ctypes
import os
import subprocess
import sys
import threading
import time
import warnings

_lock = threading.Lock()
_library = None  # False: none
_warned = False


def captured():
    """Whether this process runs under `purlin profile`."""
    return bool(os.environ.get("PURLIN_SPOOL"))


def _nvtx():
    global _library
    with _lock:
        if _library is None:
            _library = False
            for name in ("libnvToolsExt.so.1", "libnvToolsExt.so"):
                try:
                    loaded = ctypes.CDLL(name)
                    loaded.nvtxRangePushA.argtypes = [ctypes.c_char_p]
                    _library = loaded
                    break
                except (OSError, AttributeError):
                    continue
        return _library


def _push(name):
    """Returns the library that took the range: "torch", "nvtx", or "" for none."""
    torch = sys.modules.get("torch")
    try:
        if torch is not None and torch.cuda.is_available():
            torch.cuda.nvtx.range_push(name)
            return "torch"
    except (AttributeError, RuntimeError):  # a PyTorch without CUDA or NVTX
        pass
    library = _nvtx()
    if not library:
        return ""
    library.nvtxRangePushA(name.encode("utf-8"))
    return "nvtx"


class Range:
    """One range. After it: `seconds` of wall time, `marked` ("torch", "nvtx" or ""), `captured`."""

    def __init__(self, name, command=None):
        """`command` finds the purlin command, for a range with its own capture; None for others."""
        self.name, self.seconds, self.marked, self.captured = name, 0.0, "", captured()
        self._command, self._started = command, False

    def __enter__(self):
        global _warned
        if not self.captured and not _warned:
            _warned = True
            warnings.warn("purlin.profile(%r): this process is not profiled; start it with: purlin profile -- %s"
                          % (self.name, " ".join([os.path.basename(sys.executable or "python3")] + sys.argv)),
                          stacklevel=2)
        self._started = self._command is not None and self.captured and self._capture("start")
        self.marked = _push(self.name)
        self._start = time.perf_counter()
        return self

    def __exit__(self, *_):
        self.seconds = time.perf_counter() - self._start
        if self.marked == "torch":
            sys.modules["torch"].cuda.nvtx.range_pop()
        elif self.marked == "nvtx":
            _nvtx().nvtxRangePop()
        if self._started:
            self._capture("stop")

    def _capture(self, word):
        try:
            done = subprocess.run([self._command(), "capture", word, str(os.getpid())], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, text=True)
            problem = done.stderr.strip() if done.returncode else ""
        except (OSError, RuntimeError) as failure:
            problem = str(failure)
        if problem:
            warnings.warn("purlin.profile(%r): capture did not %s: %s" % (self.name, word, problem), stacklevel=3)
        return not problem
