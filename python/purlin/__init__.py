# SPDX-License-Identifier: Apache-2.0
"""Purlin from Python: look up tuned configs, tune kernels, profile programs.

    import purlin
    gemm = purlin.Cache().op("gemm", ["M", "N", "K"], purlin.Cache().device("cuda:0"))
    config = gemm.find(M=4096, N=4096, K=4096)      # a mapping; empty on a miss

    @purlin.autotune(configs=[...], key=["M", "N", "K"])   # in place of @triton.autotune
    @triton.jit
    def matmul(...): ...
"""
from ._cache import Cache, Hit, Op
from ._command import command, profile, report, run, tune
from ._library import PurlinError
from ._range import Range

__version__ = "0.1.0"
__all__ = ["Cache", "Hit", "Op", "PurlinError", "Range", "autotune", "command", "profile", "report", "run", "tune"]


def autotune(*arguments, **keywords):
    """@triton.autotune with stored results; see purlin.triton_autotune. Needs Triton."""
    from .triton_autotune import autotune as decorate

    return decorate(*arguments, **keywords)
