# SPDX-License-Identifier: Apache-2.0
import ctypes
import json
import os
import sys
import threading
import time
from warnings import warn

from .._state import OBSERVER, STATE, fault

_is_profiler_enabled = False


def _waits_for_the_device():
    from .. import cuda

    cuda.synchronize()


def _switches_records():
    """What CUPTI's list of copies may not survive while some are in flight."""
    from .. import cuda

    if STATE.leaving:
        print("fake torch: a profiler started before CUPTI was shut down", file=sys.stderr)
    if cuda.in_flight:
        print("fake torch: records were switched while work was in flight", file=sys.stderr)


def _registers():
    """libkineto's line on C's stderr."""
    if threading.current_thread() is threading.main_thread():
        return
    libc = ctypes.CDLL(None)
    libc.fprintf(ctypes.c_void_p.in_dll(libc, "stderr"),
                 b"ERROR: External init callback must run in same thread as registerClient (1 != 2)\n")


def _prepare_profiler(config, activities):
    _registers()
    _switches_records()
    _waits_for_the_device()
    if STATE.prepared is not None or STATE.recording is not None:
        raise RuntimeError("Profiler is already enabled on this thread")
    STATE.prepared = threading.get_ident()


def _enable_profiler(config, activities):
    if STATE.recording is not None:
        raise RuntimeError("Profiler is already enabled on this thread")
    warn("a warning of the profiler")
    STATE.events = []
    STATE.everywhere = bool(config and config.profile_all_threads)
    STATE.recording = threading.get_ident()


def _disable_profiler():
    _waits_for_the_device()
    if STATE.recording != threading.get_ident():
        raise RuntimeError("Can't disable Kineto profiler when it's not running")
    STATE.recording = STATE.prepared = None
    STATE.teardowns.append(os.environ.get("TEARDOWN_CUPTI"))
    STATE.leaving = STATE.teardowns[-1] == "1"
    return _Results(STATE.events)


class record_function:
    def __init__(self, name):
        self.name, self.number = name, OBSERVER.new()

    def __enter__(self):
        self.open = OBSERVER.on
        self.outer, OBSERVER.parent = OBSERVER.parent, self.number
        return self

    def __exit__(self, *what):
        OBSERVER.parent = self.outer
        if self.open and OBSERVER.on:
            OBSERVER.nodes.append(OBSERVER.node(self.name, self.number, parent=self.outer))


class _Inputs:
    def __init__(self, layout):
        self.inputs = [type("Tensor", (), {"layout": layout})]


class _Event:
    def __init__(self, event):
        self.event = event
        self.end_time_ns = int(event["ts"] * 1000) + event["dur"] * 1000
        self.children = []
        self.extra_fields = _Inputs(os.environ.get("FAKE_TORCH_LAYOUT", "strided"))

    def fwd_thread_id(self):
        return 0

    def device_resource_id(self):
        other = os.environ.get("FAKE_TORCH_OPS") == "other_thread"
        return self.event["tid"] + 1 if other else threading.main_thread().native_id

    def name(self):
        return self.event["name"]

    def device_type(self):
        from . import DeviceType

        return DeviceType.CUDA if self.event["cat"] == "kernel" else DeviceType.CPU


class _Results:
    def __init__(self, events):
        self.list = events

    def events(self):
        return [_Event(event) for event in self.list]

    def experimental_event_tree(self):
        return [_Event(event) for event in self.list if event["cat"] == "cpu_op"]

    def save(self, path):
        document = {
            "schemaVersion": 1, "record_shapes": 1, "cuda_runtime_version": 13000,
            "deviceProperties": [{"id": 0, "name": "NVIDIA H100", "computeMajor": 9,
                                  "computeMinor": 0, "numSms": 132, "warpSize": 32}],
            "traceEvents": self.list,
        }
        with open(path, "w") as file:
            json.dump(document, file)


class profile:
    def __init__(self, config=None):
        self.config = config
        self.kineto_results = None

    def _prepare_trace(self):
        _prepare_profiler(self.config, None)

    def _start_trace(self):
        global _is_profiler_enabled
        _is_profiler_enabled = True
        _enable_profiler(self.config, None)

    def __enter__(self):
        self._prepare_trace()
        self._start_trace()
        return self

    def __exit__(self, *what):
        global _is_profiler_enabled
        time.sleep(float(os.environ.get("FAKE_TORCH_STOP_S", "0")))
        self.kineto_results = _disable_profiler()
        _is_profiler_enabled = False
        fault("stop")

    def export_chrome_trace(self, path):
        fault("export")
        self.kineto_results.save(path)
