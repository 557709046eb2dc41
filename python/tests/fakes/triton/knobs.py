# SPDX-License-Identifier: Apache-2.0
"""The knobs that a launch reads."""
import os


class env_str:
    def __init__(self, key, default):
        self.key, self.default = key, default

    def __set_name__(self, _, name):
        self.name = name

    def __get__(self, knobs, _):
        return knobs.__dict__.get(self.name, os.environ.get(self.key, self.default))

    def __set__(self, knobs, value):
        knobs.__dict__[self.name] = value


class HookChain:
    def __init__(self):
        self.calls = []

    def add(self, call):
        self.calls.append(call)

    def remove(self, call):
        self.calls.remove(call)

    def __call__(self, metadata):
        for call in self.calls:
            call(metadata)


class compilation_knobs:
    instrumentation_mode = env_str("TRITON_INSTRUMENTATION_MODE", "")


class runtime_knobs:
    debug = False
    launch_enter_hook = HookChain()
    launch_exit_hook = HookChain()
    jit_cache_hook = None


compilation, runtime = compilation_knobs(), runtime_knobs()
