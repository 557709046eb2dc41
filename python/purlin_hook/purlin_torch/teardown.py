# SPDX-License-Identifier: Apache-2.0
"""TEARDOWN_CUPTI, by which Kineto leaves CUPTI after a trace. The program's own value wins."""
import os
import time

_NAME = "TEARDOWN_CUPTI"
_set_here = _requested = False


def prepare():
    """Before torch is imported."""
    global _set_here
    if _NAME not in os.environ:
        _set_here = True
        os.environ[_NAME] = "1"


def choose(keeps_cupti):
    """Before a trace ends. Other values than ours are another's.

    Once in a process: a second shut-down of CUPTI breaks CUDA graphs (docs/design/cupti.md).
    """
    global _requested
    if not _set_here or os.environ.get(_NAME) not in ("0", "1"):
        return
    leaves = not keeps_cupti and not _requested
    _requested = _requested or leaves
    os.environ[_NAME] = "1" if leaves else "0"


def finish(torch):
    """At exit: Kineto leaves CUPTI at the next call of CUDA. In the exit handlers of CUDA that hangs."""
    if not _requested:
        return
    for _ in range(10):
        torch.cuda.current_device()
        time.sleep(0.01)


def restore():
    global _set_here
    if _set_here:
        os.environ.pop(_NAME, None)
    _set_here = False
