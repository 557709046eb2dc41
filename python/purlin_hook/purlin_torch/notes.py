# SPDX-License-Identifier: Apache-2.0
"""The notes of a process: purlin.torch/1, one per trace and one of the process (docs/design/torch-hook.md)."""
import json
import os
import threading

from .profiler import uses_cuda


class Notes:
    def __init__(self, torch, settings, steps):
        self.torch, self.settings, self.steps = torch, settings, steps
        self._writing = threading.Lock()

    def write(self, mode, reason, detail="", window=None, **more):
        note = {
            "schema": "purlin.torch/1",
            "pid": os.getpid(),
            "mode": mode,
            "reason": reason,
            "detail": detail,
            "torch": str(getattr(self.torch, "__version__", "")),
            "optimizer_steps": self.steps.count,
            "usual_step_ns": self.steps.typical(),
            "cuda": uses_cuda(self.torch),
        }
        if window is not None:
            note.update(
                number=window.number,
                start_ns=window.start_ns,
                end_ns=window.end_ns,
                steps=window.steps,
                usual_step_ns=window.usual_ns,
                cost_ns=window.cost_ns(),
                keeps_cupti=window.keeps_cupti,
            )
        note.update(more)
        number = 0 if window is None else window.number
        place = os.path.join(self.settings.folder, "torch-%d-%d.note" % (os.getpid(), number))
        try:
            with self._writing, open(place + ".part", "w") as file:
                json.dump(note, file)
                file.flush()
                os.replace(place + ".part", place)
        except OSError:
            pass  # the spool is gone: no command waits for the note


def text_of(fault):
    return "%s: %s" % (type(fault).__name__, str(fault)[:300])
