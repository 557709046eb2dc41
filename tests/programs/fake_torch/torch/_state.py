# SPDX-License-Identifier: Apache-2.0
"""The one profiler that a process can have, and its events."""
import json
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


class Observer:
    """PyTorch's execution trace. Each op has a tensor of its own for each input and output."""

    def __init__(self):
        self.path = None
        self.on = False
        self.nodes, self.number, self.parent = [], 1, 1

    def register(self, path):
        self.path, self.nodes = path, []
        open(path, "w").close()

    def remove(self):
        self.nodes.append(self.node("[pytorch|profiler|execution_trace|process]", 1))
        with open(self.path, "w") as file:
            json.dump({"schema": "1.1.1-chakra.0.0.4", "pid": os.getpid(), "nodes": self.nodes}, file)
        self.path = None

    def new(self):
        self.number += 1
        return self.number

    def op(self, name, schema, inputs, outputs):
        """Tensors are (storage, elements)."""
        if self.on:
            self.nodes.append(self.node(name, self.new(), schema, inputs, outputs, self.parent))

    @staticmethod
    def node(name, number, schema="", inputs=(), outputs=(), parent=1):
        def values(tensors):
            return {
                "values": [[each, each, 0, count, 4, "cuda:0"] for each, count in tensors],
                "shapes": [[count] for _, count in tensors],
                "types": ["Tensor(float)"] * len(tensors),
                "strides": [[1]] * len(tensors),
            }

        attributes = {"rf_id": 1, "fw_parent": 0, "seq_id": -1, "scope": 0, "tid": 1, "fw_tid": 0}
        return {
            "id": number, "name": name, "ctrl_deps": parent, "inputs": values(inputs),
            "outputs": values(outputs),
            "attrs": [{"name": key, "type": "int64", "value": value} for key, value in attributes.items()]
            + [{"name": "op_schema", "type": "string", "value": schema}],
        }


STATE = State()
OBSERVER = Observer()


def fault(place):
    if os.environ.get("FAKE_TORCH_FAULT") == place:
        raise RuntimeError(os.environ.get("FAKE_TORCH_FAULT_TEXT", "made-up fault of " + place))
