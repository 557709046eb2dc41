# SPDX-License-Identifier: Apache-2.0
"""As much of Triton as purlin.triton_autotune builds on, written for its tests."""
from . import language  # noqa: F401

__version__ = "0.fake"


class Config:
    def __init__(self, kwargs, num_warps=4, num_stages=3, pre_hook=None):
        self.kwargs, self.num_warps, self.num_stages, self.pre_hook = kwargs, num_warps, num_stages, pre_hook

    def all_kwargs(self):
        return dict(self.kwargs, num_warps=self.num_warps, num_stages=self.num_stages)

    def __repr__(self):
        return "Config(%s)" % self.all_kwargs()


class Kernel:
    """What @triton.jit makes of a function: `body(arguments)` does its work and returns milliseconds."""

    def __init__(self, body, arg_names, cache_key="source1"):
        self.fn, self.arg_names, self.cache_key = body, arg_names, cache_key
        self.launches, self.compiled = [], []

    def run(self, *args, grid=None, warmup=False, **kwargs):
        from torch import cuda

        options = {n: v for n, v in kwargs.items() if n not in self.arg_names}
        self.launches.append(options)
        spent_ms = self.fn(**dict(zip(self.arg_names, args)),
                           **{n: v for n, v in kwargs.items() if n in self.arg_names}, options=options)
        cuda.now_ms += spent_ms

    def warmup(self, *args, grid, **kwargs):
        self.compiled.append({n: v for n, v in kwargs.items() if n not in self.arg_names})
