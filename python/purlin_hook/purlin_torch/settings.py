# SPDX-License-Identifier: Apache-2.0
"""What `purlin profile` asks of the hook, from the environment, and the hook's own limits."""
import os


def _number(name, default):
    try:
        return float(os.environ.get(name, default))
    except ValueError:
        return float(default)


class Settings:
    def __init__(self):
        self.folder = os.environ.get("PURLIN_SPOOL", "")
        self.on_request = os.environ.get("PURLIN_TORCH") == "idle"
        self.sampled = os.environ.get("PURLIN_SAMPLE", "1") not in ("", "1")
        self.rank = int(_number("PURLIN_TORCH_RANK", 0))
        self.steps = max(1, int(_number("PURLIN_TORCH_STEPS", 10)))
        self.warm_up = 2
        self.settle_s = _number("PURLIN_TORCH_SETTLE", 3)  # from the first step to the trace
        self.wait_s = _number("PURLIN_TORCH_WAIT", 10)  # without steps, to a trace by time
        self.window_s = _number("PURLIN_TORCH_SECONDS", 1)  # of a trace by time
        self.after_s = _number("PURLIN_TORCH_AFTER", 1)  # from the saved trace to the steps after it
        self.flow_steps = 3
        self.longest_s = 2.0  # of a trace by steps; longer steps are traced by time
        self.most_bytes = int(_number("PURLIN_TORCH_BYTES", 1 << 30))

    def path(self, what):
        """Of this process's own file in the spool."""
        return os.path.join(self.folder, "torch-%s-%d" % (what, os.getpid()))
