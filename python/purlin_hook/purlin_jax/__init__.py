# SPDX-License-Identifier: Apache-2.0
"""The texts of the programs that XLA compiled for a process, without a change of the program.

Loaded by sitecustomize.py of this folder when the program imports jax. Python 3.8 or newer, the
standard library only. docs/design/jax-programs.md has the rules:

- Nothing of jax is imported or initialised. What exists is read from the clients that exist.
- They are read at exit, on the thread that ends the program. Only daemon threads still run then.
- Forked children read nothing. No fault of this file reaches the program. Each process with a GPU
  leaves a note, purlin.jax/1, next to the texts in the spool.
"""
from .hook import Hook


def before_import():
    pass


def after_import(jax):
    try:
        Hook(jax).arm()
    except Exception:
        pass
