# SPDX-License-Identifier: Apache-2.0
"""Initialised at the first use, as CUDA is."""
import types

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
    in_flight = True


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
