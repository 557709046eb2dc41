# SPDX-License-Identifier: Apache-2.0
import importlib
import os
import pkgutil
import sys
import time

_backends = {}
FAULT = os.environ.get("FAKE_JAX_FAULT", "")


class Module:
    def __init__(self, text):
        self.text = text

    def to_string(self):
        if FAULT == "text":
            raise RuntimeError("made-up fault of a text")
        if FAULT == "slow":
            time.sleep(0.2)
        return self.text


class Executable:
    def __init__(self, client, text):
        self.client, self.text = client, text

    @property
    def fingerprint(self):
        return self.text.encode() if FAULT != "no_fingerprint" else None

    def hlo_modules(self):
        if self.client.gone:
            sys.stderr.write("asked for a program after the clean-up\n")
        return [Module(self.text)]


class Client:
    def __init__(self):
        self.platform = os.environ.get("FAKE_JAX_PLATFORM", "cuda")
        self.gone, self.programs = False, []

    def compile(self, text):
        self.programs.insert(0, Executable(self, text))

    def live_executables(self):
        if FAULT == "live":
            raise RuntimeError("made-up fault of a list")
        if self.gone:
            sys.stderr.write("asked for programs after the clean-up\n")
        return list(self.programs)


def get_backend():
    if not _backends:
        import jax_plugins

        for _, name, _ in pkgutil.iter_modules(jax_plugins.__path__, "jax_plugins."):
            importlib.import_module(name)
        _backends["cuda"] = Client()
    return next(iter(_backends.values()))
