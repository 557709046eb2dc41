# SPDX-License-Identifier: Apache-2.0
"""Shadow timing: now and then, just before a live launch, the winner and its rival are launched and timed on the
same arguments. libpurlin's test (purlin_duel) decides from the pairs whether the winner still wins.

The live launch comes last and writes every output again. Times are read when the device has them, so no launch
waits for them. Thread-safety: a duel belongs to one thread at a time; a second thread skips its turn. Failure: a
rival that does not compile ends the duel.
"""
import ctypes
import os
import random
import threading
import warnings

import torch

from ._library import PurlinError, check, library

_MOST_PENDING = 16


def every_of(option):
    """One launch in so many: the option, else $PURLIN_SHADOW, else 0 for none."""
    if option is None:
        text = os.environ.get("PURLIN_SHADOW", "")
        option = int(text) if text.isdigit() else 0
    return max(0, int(option))


class Duel:
    """What is served against one rival, over all launches of a key."""

    def __init__(self, every, seed=None):
        self._handle = ctypes.c_void_p()
        check(library().purlin_duel_open(ctypes.byref(self._handle)))
        self._every, self._random = every, random.Random(seed)
        self._pending = []  # (three events, whether the served one came first)
        self._left = self._gap()
        self._lock = threading.Lock()

    def __del__(self):
        if getattr(self, "_handle", None):
            library().purlin_duel_close(self._handle)

    @property
    def ratio(self):
        """The time of the served one over the rival's, in the latest pairs."""
        return library().purlin_duel_ratio(self._handle)

    @property
    def samples(self):
        return library().purlin_duel_samples(self._handle)

    def _gap(self):
        # Uniform with mean `every`: a program's own rhythm must not pick the launches.
        return self._random.randrange(2 * self._every) + 1

    def due(self):
        """Counts a launch; whether it is to be shadowed."""
        self._left -= 1
        if self._left > 0:
            return False
        self._left = self._gap()
        return not torch.cuda.is_current_stream_capturing()

    def time(self, served, rival):
        """Launches both, in an order that a coin decides, after one launch that is not timed. Returns what the
        served one returned. True in `lost()` comes later."""
        if len(self._pending) >= _MOST_PENDING:
            return served()
        served_first = self._random.random() < 0.5
        first, second = (served, rival) if served_first else (rival, served)
        events = [torch.cuda.Event(enable_timing=True) for _ in range(3)]
        first()
        events[0].record()
        one = first()
        events[1].record()
        two = second()
        events[2].record()
        self._pending.append((events, served_first))
        return one if served_first else two

    def lost(self):
        """Reads the times that have arrived; True once the served one is slower."""
        if not self._lock.acquire(blocking=False):
            return False
        try:
            waiting, lost = [], False
            for events, served_first in self._pending:
                if not events[2].query():
                    waiting.append((events, served_first))
                    continue
                times = events[0].elapsed_time(events[1]), events[1].elapsed_time(events[2])
                served, rival = times if served_first else times[::-1]
                lost |= bool(library().purlin_duel_add(self._handle, served, rival))
            self._pending = waiting
            return lost
        finally:
            self._lock.release()


class Shadow:
    """The duels of one kernel of @purlin.autotune: each key's config against the default."""

    def __init__(self, tuner, every):
        self._tuner, self.every = tuner, every_of(every)

    def prepare(self, known, op, problem):
        """Begins the duel of a key. A kernel with hooks, or one that Triton resets, has none."""
        tuner = self._tuner
        if not self.every or tuner.reset_to_zero or tuner.restore_value or tuner.user_defined_pre_hook \
                or tuner.user_defined_post_hook:
            return
        rival = next((c for c in tuner.configs if c.all_kwargs() != known.keywords), None)
        if rival is not None and rival.pre_hook is None:
            known.duel = _KernelDuel(Duel(self.every), rival, op, tuple(problem.values()) if problem else ())

    def count(self, known, args, kwargs):
        """Counts a launch that comes next, and shadows it if its turn has come."""
        duel = known.duel
        if duel is None or not duel.test.due():
            return
        if duel.test.lost():
            self._demote(known, duel)
        elif duel.ready(self._tuner, known, args, kwargs):
            duel.test.time(lambda: self._run(args, kwargs, known.keywords),
                           lambda: self._run(args, kwargs, duel.keywords))

    def _run(self, args, kwargs, keywords):
        return self._tuner.fn.run(*args, **kwargs, **keywords)

    def _demote(self, known, duel):
        winner, ratio = known.config, duel.test.ratio
        reason = "%.3fx the time of %s on live launches (%d samples)" % (ratio, duel.rival, duel.test.samples)
        known.config, known.keywords, known.duel = duel.rival, duel.keywords, None
        self._tuner.purlin_log.append("demoted: %s, %s" % (winner, reason))
        warnings.warn("purlin: %s is demoted: %s" % (winner, reason))
        if duel.op is not None:
            try:
                duel.op.demote(duel.extents, ratio, reason)
            except PurlinError as problem:
                warnings.warn("purlin: the demotion is not kept for others: %s" % problem)


class _KernelDuel:
    def __init__(self, test, rival, op, extents):
        self.test, self.rival, self.op, self.extents = test, rival, op, extents
        self.keywords = rival.all_kwargs()
        self._compiling = self._idempotent = None

    def ready(self, tuner, known, args, kwargs):
        """Whether both can be launched: the rival is compiled, and a second launch changes nothing."""
        if self._compiling is None:
            self._compiling = threading.Thread(target=self._compile, daemon=True, args=(
                tuner, args, kwargs, torch.cuda.current_device()))
            self._compiling.start()
        if self._compiling.is_alive():
            return False
        if self._idempotent is None:
            outputs = tuner._outputs(args, kwargs)
            self._idempotent = outputs.idempotent(lambda: tuner.fn.run(*args, **kwargs, **known.keywords))
        if not self._idempotent:
            known.duel = None
        return self._idempotent

    def _compile(self, tuner, args, kwargs, device):
        launch = {name: value for name, value in kwargs.items() if name not in ("grid", "warmup")}
        try:
            with torch.cuda.device(device):
                tuner.fn.warmup(*args, grid=kwargs.get("grid", (1,)), **launch, **self.keywords)
        except Exception:  # no rival
            self._idempotent = False
