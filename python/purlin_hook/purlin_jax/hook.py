# SPDX-License-Identifier: Apache-2.0
"""The hook of one process: when it reads, and what it leaves (docs/design/jax-programs.md)."""
import atexit
import json
import os
import sys
import time
import zlib


def _number(name, default):
    try:
        return float(os.environ.get(name, default))
    except ValueError:
        return float(default)


class Hook:
    MOST_MODULES, MOST_BYTES = 2000, 128 << 20
    PLATFORMS = ("gpu", "cuda", "rocm")

    def __init__(self, jax):
        self.jax = jax
        self.folder = os.environ.get("PURLIN_SPOOL", "")
        self.most_s = _number("PURLIN_JAX_SECONDS", 0.3)  # of the program's time
        self._pid = os.getpid()
        self._forked = False
        self._seen = set()
        self.modules = self.bytes = self.left_out = self.cost_ns = 0
        self._compiled = self._from_cache = 0
        self.reason, self.detail = "", ""

    def arm(self):
        os.register_at_fork(after_in_child=self._in_child)
        # Handlers run in the opposite order: those of jax, which it has registered, come after it.
        atexit.register(self._at_exit)
        self._count_compilations()

    def _in_child(self):
        self._forked = True

    # --- compilations: XLA times kernels in each that its cache does not have

    def _count_compilations(self):
        if os.environ.get("PURLIN_IDLE") == "1":
            return  # nothing is recorded meanwhile
        monitoring = getattr(self.jax, "monitoring", None)
        listen = getattr(monitoring, "register_event_listener", None)
        listen_to_times = getattr(monitoring, "register_event_duration_secs_listener", None)
        if listen is not None and listen_to_times is not None:
            listen(self._heard)
            listen_to_times(self._heard_time)

    def _heard(self, event, *_, **__):
        if str(event).endswith("/cache_hits"):
            self._from_cache += 1

    def _heard_time(self, event, *_, **__):
        if str(event).endswith("/backend_compile_duration"):
            self._compiled += 1

    # --- the clients

    def _clients(self):
        """Those that exist. To ask jax for one would make it."""
        bridge = sys.modules.get("jax._src.xla_bridge")
        known = getattr(bridge, "_backends", None)
        found = list(known.values()) if isinstance(known, dict) else []
        return [each for each in found if getattr(each, "platform", "") in self.PLATFORMS]

    def _executables(self):
        return [each for client in self._clients() for each in client.live_executables()]

    # --- life

    def _at_exit(self):
        if self._forked or self._pid != os.getpid():
            return
        try:
            if self._clients() and os.path.isdir(self.folder):
                self._look()
        except Exception as fault:
            self._fail(fault)

    def _fail(self, fault):
        self.reason = "fault"
        self.detail = "%s: %s" % (type(fault).__name__, str(fault)[:300])
        self._note()

    def _look(self):
        began = time.perf_counter_ns()
        texts, left_out = [], 0
        found = self._executables()
        for at, each in enumerate(found):
            full = self.modules >= self.MOST_MODULES or self.bytes >= self.MOST_BYTES
            if full or time.perf_counter_ns() - began > self.most_s * 1e9:
                left_out = len(found) - at
                break
            self._read(each, texts)
        del found
        self._write(texts)
        self.left_out = left_out
        self.cost_ns += time.perf_counter_ns() - began
        self._note()

    def _read(self, executable, texts):
        key = getattr(executable, "fingerprint", None)
        if key is not None and key in self._seen:
            return
        for module in executable.hlo_modules():
            text = module.to_string()
            mark = hash(text)
            if mark in self._seen:
                continue
            self._seen.add(mark)
            texts.append(text)
            self.modules += 1
            self.bytes += len(text)
        if key is not None:
            self._seen.add(key)

    def _write(self, texts):
        if not texts:
            return
        packer = zlib.compressobj(1, zlib.DEFLATED, 31)
        packed = b"".join(packer.compress((text + "\n").encode("utf-8", "replace")) for text in texts)
        packed += packer.flush()
        place = os.path.join(self.folder, "jax-%d.hlo.gz" % self._pid)
        # A process of the same id may have left one: ids come again.
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(place, flags, 0o600)
        try:
            while packed:
                packed = packed[os.write(file, packed) :]
        finally:
            os.close(file)

    def _note(self):
        note = {
            "schema": "purlin.jax/1",
            "pid": self._pid,
            "reason": self.reason,
            "detail": self.detail,
            "jax": str(getattr(self.jax, "__version__", "")),
            "modules": self.modules,
            "bytes": self.bytes,
            "left_out": self.left_out,
            "compiled": max(0, self._compiled - self._from_cache),
            "cost_ns": self.cost_ns,
        }
        place = os.path.join(self.folder, "jax-%d.note" % self._pid)
        try:
            with open(place + ".part", "w") as file:
                json.dump(note, file)
            os.replace(place + ".part", place)
        except OSError:
            pass  # the spool is gone: no command waits for the note
