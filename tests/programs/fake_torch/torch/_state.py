# SPDX-License-Identifier: Apache-2.0
"""The one profiler that a process can have, and its events."""
import os
import threading


class State:
    def __init__(self):
        self.clock = 0
        self.recording = self.prepared = None  # the thread that did it
        self.everywhere = False
        self.events = []
        self.record_function = True
        self.teardowns = []  # TEARDOWN_CUPTI at the end of each trace
        self.leaving = False  # CUPTI is shut down in the next call of CUDA

    def record(self, event, at_ns):
        if self.recording is None or not self.record_function:
            return
        if not self.everywhere and self.recording != threading.get_ident():
            return
        event.setdefault("pid", os.getpid())
        event.setdefault("tid", os.getpid())
        event["ts"] = at_ns / 1000
        self.events.append(event)


STATE = State()


def fault(place):
    if os.environ.get("FAKE_TORCH_FAULT") == place:
        raise RuntimeError(os.environ.get("FAKE_TORCH_FAULT_TEXT", "made-up fault of " + place))
