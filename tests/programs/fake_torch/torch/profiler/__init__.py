# SPDX-License-Identifier: Apache-2.0
import enum
import os
import signal
import sys
import time

from .. import autograd
from .._state import STATE, fault


class ProfilerActivity(enum.Enum):
    CPU = 0
    CUDA = 1


def schedule(wait, warmup, active, repeat):
    assert wait == 0 and repeat == 1

    def action(step):
        if step < warmup:
            return "warm"
        return "record" if step < warmup + active else "none"

    return action


class profile:
    def __init__(self, activities=None, record_shapes=False, schedule=None,
                 experimental_config=None, acc_events=False):
        self.schedule = schedule or (lambda step: "record")
        self.number = 0
        self.action = "none"
        self.config = experimental_config
        self.acc_events = acc_events
        self.profiler = None
        self.began = 0

    def _go(self, action):
        if action == "record" and self.action != "record":
            hasattr(sys.modules["torch"], "_inductor")
        if action == "none":
            if self.action == "warm":
                self.profiler._start_trace()
            if self.action != "none":
                if self.profiler.acc_events:  # PyTorch makes an object of each event: seconds
                    print("fake torch: events were parsed", file=sys.stderr)
                self.profiler.__exit__(None, None, None)
        elif self.action == "none":
            self.profiler = autograd.profiler.profile(self.config)
            self.profiler.acc_events = self.acc_events
            self.profiler._prepare_trace()
            if action == "record":
                self.profiler._start_trace()
        elif self.action == "warm" and action == "record":
            self.profiler._start_trace()
        self.action = action

    def start(self):
        fault("start")
        self._go(self.schedule(0))
        self.began = time.time_ns()

    def step(self):
        fault("step")
        if os.environ.get("FAKE_TORCH_FAULT") == "signal":
            signal.raise_signal(signal.SIGUSR1)
        STATE.record({"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#%d" % self.number,
                      "dur": (time.time_ns() - self.began) / 1000, "args": {}}, self.began)
        self.number += 1
        self.began = time.time_ns()
        self._go(self.schedule(self.number))

    def stop(self):
        self._go("none")

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *what):
        self.stop()

    def export_chrome_trace(self, path):
        self.profiler.export_chrome_trace(path)
