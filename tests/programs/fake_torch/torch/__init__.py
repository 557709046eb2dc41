# SPDX-License-Identifier: Apache-2.0
"""As much of PyTorch as Purlin's hook touches, with a GPU that exists on paper only.

`mm(m, n, k)` is an op that launches the kernel `scale` of tests/programs/opencl_loop.c with one
grid for all shapes. Events go into a Kineto trace while a profiler is on. The environment makes
faults: FAKE_TORCH_FAULT=start|step|stop|export raises there.
"""
import os
import threading
import time

from . import _C, version  # noqa: F401
from ._state import OBSERVER, STATE, fault  # noqa: F401

__version__ = "2.11.0+fake"
strided = "strided"
WEIGHT = (OBSERVER.new(), 4)

from . import autograd, cuda, distributed, optim, profiler  # noqa: E402,F401


product = active = WEIGHT


def update():
    """Of the optimizer: it changes the weights."""
    OBSERVER.op("aten::add_", "aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1)"
                " -> Tensor(a!)", [WEIGHT, active], [WEIGHT])


def __getattr__(name):
    """The real one imports such modules, which takes seconds."""
    if name == "_inductor":
        print("fake torch: _inductor was imported", flush=True)
        return None
    raise AttributeError(name)


def mm(m, n, k):
    global product
    product = (10**9 + k, m * n)  # its memory was given back since the step before
    OBSERVER.op("aten::mm", "aten::mm(Tensor self, Tensor mat2) -> Tensor",
                [(OBSERVER.new(), m * k), (OBSERVER.new(), k * n)], [product])
    cuda.launch()
    began = time.time_ns()
    STATE.clock += 1
    correlation = STATE.clock
    STATE.record(
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "dur": 20,
         "args": {"External id": correlation, "Input Dims": [[m, k], [k, n]],
                  "Input type": ["c10::BFloat16", "c10::BFloat16"]}}, began)
    STATE.record(
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "dur": 5,
         "args": {"External id": correlation, "correlation": correlation}}, began + 2000)
    STATE.record(
        {"ph": "X", "cat": "kernel", "name": "scale", "pid": 0, "tid": 7, "dur": k / 10,
         "args": {"External id": correlation, "device": 0, "stream": 7, "correlation": correlation,
                  "grid": [64, 1, 1], "block": [16, 1, 1], "shared memory": 0,
                  "registers per thread": 0}}, began + 30000)
    time.sleep(2e-4)


def relu(n):
    """An op whose kernel only the trace knows. It reads the last product."""
    global active
    active = (2 * 10**9, n)
    OBSERVER.op("aten::relu", "aten::relu(Tensor self) -> Tensor", [product], [active])
    cuda.launch()
    began = time.time_ns()
    STATE.clock += 1
    STATE.record(
        {"ph": "X", "cat": "cpu_op", "name": "aten::relu", "dur": 20,
         "args": {"External id": STATE.clock, "Input Dims": [[n]], "Input type": ["float"]}}, began)
    STATE.record(
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "dur": 5,
         "args": {"External id": STATE.clock, "correlation": STATE.clock}}, began + 2000)
    STATE.record(
        {"ph": "X", "cat": "kernel", "name": "only_in_trace", "pid": 0, "tid": 7, "dur": 3,
         "args": {"External id": STATE.clock, "device": 0, "stream": 7, "correlation": STATE.clock,
                  "grid": [2, 1, 1], "block": [32, 1, 1]}}, began + 30000)


if os.environ.get("FAKE_TORCH_THREADS"):
    threading.Thread(target=time.sleep, args=(0.01,)).start()
