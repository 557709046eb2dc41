# SPDX-License-Identifier: Apache-2.0
"""TEARDOWN_CUPTI, by which Kineto leaves CUPTI after a trace. The program's own value wins."""
import os
import time

_NAME = "TEARDOWN_CUPTI"
_OURS = "PURLIN_TORCH_TEARDOWN"  # the value is ours, in processes that inherit it too
_CALLS, _CALLS_APART_S = 25, 0.002  # Kineto's thread flushes CUPTI before
_set_here = _requested = False


def prepare():
    """Before torch is imported."""
    global _set_here
    if _NAME not in os.environ or _OURS in os.environ:
        _set_here = True
        os.environ[_NAME] = os.environ[_OURS] = "1"


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
    """After its trace and at exit: Kineto shuts CUPTI down in a call of CUDA that follows the trace.

    These harmless calls are that, while this thread launches nothing and the devices are idle. Left
    to the program's next call, it would meet the launches of all its threads, and a profiler that the
    program starts. In the exit handlers of CUDA it hangs.
    """
    if not _requested:
        return
    for _ in range(_CALLS):
        torch.cuda.current_device()
        time.sleep(_CALLS_APART_S)


def restore():
    global _set_here
    if _set_here:
        os.environ.pop(_NAME, None)
        os.environ.pop(_OURS, None)
    _set_here = False
