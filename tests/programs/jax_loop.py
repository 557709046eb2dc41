# SPDX-License-Identifier: Apache-2.0
"""A program over the fake jax of this folder: jax_loop.py MODE…, in this order."""
import os
import random
import signal
import subprocess
import sys
import threading
import warnings

SPOOL = os.environ.get("PURLIN_SPOOL", "")
random.seed(1)
import jax  # noqa: E402

STEP = """HloModule jit_step, is_scheduled=true

%add (p: f32[1024]) -> f32[1024] {
  %p = f32[1024]{0} parameter(0)
  ROOT %a = f32[1024]{0} add(%p, %p)
}

ENTRY %main (x: f32[1024]) -> f32[1024] {
  %x = f32[1024]{0} parameter(0)
  %scale = f32[1024]{0} fusion(%x), kind=kLoop, calls=%add, metadata={op_name="jit(step)/mul"}
  ROOT %shift = f32[1024]{0} fusion(%scale), kind=kInput, calls=%add, metadata={op_name="jit(step)/add"}
}
"""


def launch():
    """Kernels `scale` and `shift` in this process."""
    import ctypes

    words = [b"loop", b"launches", b"1"]
    library = ctypes.CDLL(os.environ["LOOP_LIBRARY"])
    for _ in range(20):
        library.run_loop(3, (ctypes.c_char_p * 4)(*words, None))


def threads():
    return sorted(each.name for each in threading.enumerate())


for mode in sys.argv[1:]:
    if mode == "step":
        jax.jit(STEP)
    elif mode == "many":
        for number in range(12):
            jax.jit(STEP.replace("jit_step", "jit_%d" % number))
    elif mode == "launch":
        launch()
    elif mode == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif mode == "exit7":
        sys.exit(7)
    elif mode == "raise":
        raise ValueError("of the program")
    elif mode == "threads":  # before a device is used there is no thread: the program may fork
        print(threads())
    elif mode == "fork":
        warnings.simplefilter("always")
        child = os.fork()
        if child == 0:
            jax.jit(STEP.replace("jit_step", "jit_child"))
            sys.exit(3)  # not os._exit: the handlers of exit run, and Purlin's does nothing
        print(os.waitpid(child, 0)[1])
    elif mode == "spawn":
        print(subprocess.run([sys.executable, __file__, "step"]).returncode)
    elif mode == "path":
        print([each for each in sys.path if "purlin/python" in each], "_purlin_jax" in sys.modules and not SPOOL)
    elif mode == "random":
        print(random.random())
