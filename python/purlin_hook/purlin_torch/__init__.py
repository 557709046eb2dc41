# SPDX-License-Identifier: Apache-2.0
"""One torch.profiler trace of a program's steady state, without a change of the program.

Loaded by sitecustomize.py of this folder when the program imports torch. Python 3.8 or newer, the
standard library only. docs/design/torch-hook.md has the rules:

- Steps come from a post hook of all optimizers. Once they are steady, torch.profiler records a few.
- Without optimizer steps, a thread records for a short time, some seconds after CUDA's start.
- The program's own profiler wins. Forked children never trace. No fault of this file reaches the
  program. Each process leaves a note, purlin.torch/1, next to its trace in the spool.
"""
from . import teardown
from .hook import Hook
from .settings import Settings


def before_import():
    try:
        teardown.prepare()
    except Exception:
        pass


def after_import(torch):
    hook = None
    try:
        hook = Hook(torch, Settings())
        hook.arm()
    except Exception as fault:
        if hook is not None:
            hook.fail(fault)
        else:
            teardown.restore()
