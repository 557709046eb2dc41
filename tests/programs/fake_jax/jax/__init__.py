# SPDX-License-Identifier: Apache-2.0
"""As much of jax as Purlin's hook meets: clients, their live programs, a clean-up at exit."""
import atexit
import os

from jax import monitoring
from jax._src import xla_bridge

__version__ = "0.0-fake"


@atexit.register
def clean_up():
    for client in xla_bridge._backends.values():
        client.gone = True
    xla_bridge._backends.clear()


def jit(text):
    """Compiles a program: it lives from now on."""
    xla_bridge.get_backend().compile(text)
    monitoring.compiled(cached=bool(os.environ.get("FAKE_JAX_CACHE")))
