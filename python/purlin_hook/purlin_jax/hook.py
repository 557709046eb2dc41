# SPDX-License-Identifier: Apache-2.0
"""The hook of one process: when it reads, and what it leaves (docs/design/jax-programs.md)."""
import atexit
import json
import os
import sys
import threading
import time
import zlib


def _number(name, default):
    try:
        return float(os.environ.get(name, default))
    except ValueError:
        return float(default)


class _PluginFinder(object):
    """Finds nothing. jax looks for its plugins when it begins to use devices, not before: only then
    is there a thread, as a program without one may fork."""

    def __init__(self, begin):
        self.begin = begin

    def find_spec(self, name, path=None, target=None):
        if name.startswith("jax_plugins."):
            try:
                if self in sys.meta_path:
                    sys.meta_path.remove(self)
                self.begin()
            except Exception:
                pass
        return None


class Hook:
    MOST_MODULES, MOST_BYTES, LOOKS = 2000, 128 << 20, 8
    PLATFORMS = ("gpu", "cuda", "rocm")

    def __init__(self, jax):
        self.jax = jax
        self.folder = os.environ.get("PURLIN_SPOOL", "")
        self.settle_s = _number("PURLIN_JAX_SETTLE", 3)  # without a new program, to the first look
        self.most_s = _number("PURLIN_JAX_SECONDS", 0.3)  # of the program's time, for each look
        self._pid = os.getpid()
        self._lock = threading.Lock()  # held while a client is asked: none goes away meanwhile
        self._wake = threading.Event()
        self._thread = None
        self._ending = self._forked = False
        self._seen, self._counted = set(), -1
        self.modules = self.bytes = self.left_out = self.cost_ns = 0
        self.reason, self.detail = "", ""

    def arm(self):
        os.register_at_fork(after_in_child=self._in_child)
        # Handlers run in the opposite order: those of jax, which it has registered, come after it.
        atexit.register(self._at_exit)
        sys.meta_path.insert(0, _PluginFinder(self._begin))

    def _in_child(self):
        self._forked = True
        self._lock = threading.Lock()

    def _begin(self):
        if self._thread is None and not self._forked:
            self._thread = threading.Thread(target=self._watch, daemon=True, name="purlin-jax")
            self._thread.start()

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

    def _watch(self):
        """Reads once the number of programs has been the same for a while, and again where it changed."""
        since, count, pause, looks = time.monotonic(), -1, self.settle_s, 0
        try:
            while looks < self.LOOKS and os.path.isdir(self.folder):
                self._wake.wait(min(1.0, self.settle_s / 3))
                with self._lock:
                    if self._ending or self._forked or sys.is_finalizing():
                        return
                    began = time.perf_counter_ns()
                    now = len(self._executables())
                    self.cost_ns += time.perf_counter_ns() - began
                if now != count:
                    since, count = time.monotonic(), now
                elif now > 0 and now != self._counted and time.monotonic() - since >= pause:
                    self._look(in_thread=True)
                    looks, pause = looks + 1, pause * 2
        except Exception as fault:
            self._fail(fault)

    def _at_exit(self):
        if self._forked or self._pid != os.getpid():
            return
        try:
            free = self._lock.acquire(timeout=2)
            self._ending = True
            if not free:
                self.reason = "busy"
                self._note()
                return
            self._lock.release()
            self._wake.set()
            if self._clients() and os.path.isdir(self.folder):
                self._look(in_thread=False)
        except Exception as fault:
            self._fail(fault)

    def _fail(self, fault):
        self.reason = "fault"
        self.detail = "%s: %s" % (type(fault).__name__, str(fault)[:300])
        self._note()

    # --- one look

    def _look(self, in_thread):
        began = time.perf_counter_ns()
        spent, texts, left_out = 0, [], 0
        with self._lock:
            if in_thread and self._ending:
                return
            found = self._executables()
            spent = time.perf_counter_ns() - began
        self._counted = len(found)
        for at, each in enumerate(found):
            full = self.modules >= self.MOST_MODULES or self.bytes >= self.MOST_BYTES
            if full or spent > self.most_s * 1e9:
                left_out = len(found) - at
                self._counted = -1 if not full else self._counted
                break
            if in_thread:
                time.sleep(0.002)  # the program's threads first
            with self._lock:
                if in_thread and (self._ending or sys.is_finalizing()):
                    return
                start = time.perf_counter_ns()
                self._read(each, texts)
                spent += time.perf_counter_ns() - start
        del found
        self._write(texts)
        self.left_out = left_out
        self.cost_ns += spent if in_thread else time.perf_counter_ns() - began
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
        """A member of a gzip file for each look: what is there stays whole."""
        if not texts:
            return
        packer = zlib.compressobj(1, zlib.DEFLATED, 31)
        packed = b"".join(packer.compress((text + "\n").encode("utf-8", "replace")) for text in texts)
        packed += packer.flush()
        place = os.path.join(self.folder, "jax-%d.hlo.gz" % self._pid)
        file = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
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
            "cost_ns": self.cost_ns,
        }
        place = os.path.join(self.folder, "jax-%d.note" % self._pid)
        try:
            with open(place + ".part", "w") as file:
                json.dump(note, file)
            os.replace(place + ".part", place)
        except OSError:
            pass  # the spool is gone: no command waits for the note
