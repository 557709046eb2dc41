# SPDX-License-Identifier: Apache-2.0
import os
import sys

from .._state import OBSERVER


class _ExperimentalConfig:
    def __init__(self, profile_all_threads=False):
        if os.environ.get("FAKE_TORCH_OLD"):
            raise TypeError("no profile_all_threads")
        self.profile_all_threads = profile_all_threads


def _level():
    """PyTorch prints a warning at each of these calls, unless the level of messages forbids it."""
    import ctypes

    import torch

    library = ctypes.CDLL(os.path.join(os.path.dirname(torch.__file__), "lib", "libc10.so"))
    if ctypes.c_int.in_dll(library, "FLAGS_caffe2_log_level").value < 2:
        print("fake torch: a warning of the observer", file=sys.stderr)


def _add_execution_trace_observer(path):
    _level()
    if OBSERVER.path is None:
        OBSERVER.register(path)
    return True


def _remove_execution_trace_observer():
    _level()
    OBSERVER.remove()


def _enable_execution_trace_observer():
    _level()
    OBSERVER.on = True


def _disable_execution_trace_observer():
    _level()
    OBSERVER.on = False
