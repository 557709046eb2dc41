# SPDX-License-Identifier: Apache-2.0
"""Initialised at the first use, as CUDA is."""
import sys
import types

from ._state import STATE

_ready = False
_queued = []
in_flight = False


def is_initialized():
    return _ready


def is_available():
    raise AssertionError("it would start CUDA before the program does")


def _lazy_call(function):
    function() if _ready else _queued.append(function)


def init():
    global _ready
    if _ready:
        return
    _ready = True
    for function in _queued:
        function()


def launch():
    global in_flight
    init()
    if STATE.leaving:
        print("fake torch: CUPTI was shut down among the program's launches", file=sys.stderr)
        STATE.leaving = False
    in_flight = True


def current_device():
    STATE.leaving = False
    return 0


def device_count():
    return 1


def synchronize(device=None):
    global in_flight
    CUDAGraph.broken = CUDAGraph.broken or CUDAGraph.capturing
    in_flight = False


class CUDAGraph:
    """A profiler that starts or stops while one is captured breaks it, as on a GPU."""

    capturing = broken = False

    def capture_begin(self):
        CUDAGraph.capturing = True

    def capture_end(self):
        CUDAGraph.capturing = False


graphs = types.SimpleNamespace(CUDAGraph=CUDAGraph)
