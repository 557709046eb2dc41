# SPDX-License-Identifier: Apache-2.0
"""@purlin.autotune(space=...): a Triton kernel's configs are searched, not listed.

The search is that of `purlin tune`, through libpurlin: strategy `auto`, races, finals and a journal. Configs
that are likely to be next compile on threads while earlier ones are timed. Each run is chosen by all results before it.
A config is out, without a launch, if it does not compile, needs too much shared memory, spills heavily or breaks a
limit. The budget does not count these. Others are verified against the default config. The search starts from
results of the same kernel in the cache: of other shapes, dtypes and GPUs. It leaves its own there.

A process that is ended leaves a journal next to the cache (sessions/triton); the next process goes on with it.
Thread-safety and failure: as purlin.triton_autotune. An error of the default config is raised.
"""
import concurrent.futures
import os
import statistics
import sys
import time
import warnings

import torch
import triton

from . import _tuner
from ._cache import op_desc
from ._library import PurlinError
from .triton_autotune import Autotuner, known_failure, timed_out_of_cache

_OF_TRITON = ("num_warps", "num_stages", "num_ctas", "maxnreg")
_SAMPLES = 5
_SWITCH_S = 2e-4
_LIMIT_NAMES = ("registers", "spills", "shared_bytes")
# Registers that a thread of a config may spill beyond those of the default. On three recorded spaces, the fastest
# config beyond it has two thirds of the best speed (bench/results/triton_spaces_h100.md).
_HEAVY_SPILLS = 64


class Space:
    """What the decorator was given: parameters, constraints, limits, default, budget, strategy and seed."""

    def __init__(self, parameters, constraints=(), limits=(), default=None, budget=60, strategy="auto", seed=1):
        self.parameters = {name: list(values) for name, values in parameters.items()}
        if not all(self.parameters.values()) or not self.parameters:
            raise ValueError("purlin.autotune: each parameter of the space needs values")
        self.constraints, self.budget, self.strategy = list(constraints), str(budget), strategy
        self.seed = seed
        self.limits = [(text, compile(text, text, "eval")) for text in limits]
        self.default = {name: values[0] for name, values in self.parameters.items()}
        for name, value in (default or {}).items():
            if value not in self.parameters.get(name, ()):
                raise ValueError("purlin.autotune: default: %s=%r is not in the space" % (name, value))
            self.default[name] = value

    def config(self, values):
        """Triton's config of these values."""
        return triton.Config({n: v for n, v in values.items() if n not in _OF_TRITON},
                             **{n: v for n, v in values.items() if n in _OF_TRITON})

    def values_of(self, hit):
        """A stored config as values of this space; None if it has another."""
        values = {}
        for name, given in self.parameters.items():
            stored = hit.get(name, None)
            match = [value for value in given if value == stored or (stored is None and value in (None, 0, 1))]
            if not match:
                return None
            values[name] = match[0]
        return values

    def broken_limit(self, compiled, usual_spills=lambda: None):
        """The first limit that a compiled config breaks, as text; None without one. Unknown facts break none.
        `usual_spills` compiles the default, for the rule that holds where no limit names spills."""
        facts = {"registers": getattr(compiled, "n_regs", None), "spills": getattr(compiled, "n_spills", None),
                 "shared_bytes": getattr(getattr(compiled, "metadata", None), "shared", None)}
        for text, code in self.limits:
            if all(facts.get(name) is not None for name in code.co_names):
                if not eval(code, {"__builtins__": {}}, facts):
                    return "%s is not met: %s" % (text, ", ".join(
                        "%s = %s" % (name, facts[name]) for name in _LIMIT_NAMES if name in code.co_names))
        if (facts["spills"] or 0) > _HEAVY_SPILLS and not any("spills" in code.co_names for _, code in self.limits):
            usual = usual_spills()
            if usual is not None and facts["spills"] > usual + _HEAVY_SPILLS:
                return ("%d registers of a thread are spilled, %d with the default; a limit on spills replaces the rule"
                        % (facts["spills"], usual))
        return None


class SpaceAutotuner(Autotuner):
    """The kernel object. `purlin_search` has the figures of the latest search."""

    purlin_search = None

    def _choose(self, args, kwargs):
        space = self._purlin.space
        default = self.configs[0]
        op, key, cache, problem = self._open(args, kwargs)
        uses, hit = self._look_up(op, problem)
        values = space.values_of(hit) if hit else None
        if values is not None and self._allowed(values, problem):
            config = space.config(values)
            self.purlin_log.append("%s: %s" % (hit.outcome, config))
            return config, True, uses, op, problem
        if torch.cuda.is_current_stream_capturing():
            self.purlin_log.append("capture: %s" % default)
            return default, False, uses, op, problem
        config = self._search(args, kwargs, key, cache, problem)
        self.purlin_log.append("tuned: %s" % config)
        return config, True, uses, op, problem

    def _tunable(self):
        return True

    def _new_tuner(self, key, problem, parameters, default, **options):
        """`problem` has the dimensions that constraints may name."""
        return _tuner.Tuner(
            key["kernel"] if key else self._kernel_name(), "triton", parameters, default,
            self._purlin.space.constraints, problem, self._purlin.buckets, **options)

    def _allowed(self, values, problem):
        """Whether a stored config fulfils the constraints of this source: a space of it alone is not empty."""
        try:
            tuner = self._new_tuner(None, problem, {n: [v] for n, v in values.items()}, values)
            tuner.start()
            return tuner.space_size == 1
        except PurlinError:
            return False

    def _search(self, args, kwargs, key, cache, problem):
        space, jobs = self._purlin.space, self._purlin.jobs or min(os.cpu_count() or 1, 16)
        options = {"budget": space.budget, "strategy": space.strategy, "lookahead": jobs, "seed": space.seed}
        desc = None
        if key is not None:
            device = dict({n: key[n] for n in ("backend", "arch", "toolkit", "driver")}, model=key["device"])
            desc = op_desc("triton", list(problem), device, key["kernel"], key["dtype"], key["source_hash"],
                           key["policy"], layout=key["layout"])
            options["session"] = os.path.join(cache.directory, "sessions", "triton")
            # A journal is of one source, dtype and device.
            options["device"] = " ".join(str(key[name]) for name in sorted(key))
        tuner = self._new_tuner(key, problem, space.parameters, space.default, **options)
        if desc is not None:
            tuner.transfer(cache.directory, desc)
        tuner.start()
        run = _Search(self, tuner, args, kwargs, jobs)
        try:
            run.run()
        finally:
            run.close()
        self.purlin_search = {
            "space": tuner.space_size, "evaluations": tuner.evaluations, "best_ms": tuner.best_time_ms,
            "default_ms": tuner.default_time_ms, "rejected": run.rejected, "verified": run.verified,
            "compiled": run.compiled}
        if desc is not None:
            try:
                tuner.store(cache.directory, desc, run.verified)
                cache.reload()
            except PurlinError as problem_:
                warnings.warn("purlin: the winner could not be kept: %s" % problem_)
        return space.config(tuner.best)


class _Search:
    """One search: compiles ahead, verifies, times and reports, until the budget is spent."""

    def __init__(self, kernel, tuner, args, kwargs, jobs):
        self._kernel, self._tuner, self._args, self._kwargs = kernel, tuner, args, kwargs
        self._space = kernel._purlin.space
        self._pool = concurrent.futures.ThreadPoolExecutor(jobs)
        # Compiling threads hold the interpreter for this long before a measurement goes on.
        self._interval = sys.getswitchinterval()
        sys.setswitchinterval(min(self._interval, _SWITCH_S))
        self.compiling = {}  # a config's text -> future of the compiled kernel
        self._tried = set()
        self._outputs = kernel._outputs(args, kwargs) if kernel._purlin.verify else None
        self._shared, self._device = _shared_memory(), torch.cuda.current_device()
        self.rejected = {}  # reason's kind -> count

    @property
    def verified(self):
        return self._outputs is not None and self._outputs.compared

    @property
    def compiled(self):
        """How many configs a compilation was begun of. Those that still wait when a search ends are cancelled."""
        return sum(not future.cancelled() for future in self.compiling.values())

    def close(self):
        self._pool.shutdown(wait=False, cancel_futures=True)
        sys.setswitchinterval(self._interval)
        if self._outputs is not None:
            self._outputs.restore()

    def run(self):
        tuner = self._tuner
        values = tuner.next()
        while not tuner.over:
            for later in tuner.announced():
                self._begin(later)
            config, text = self._space.config(values), repr(values)
            if text not in self._tried:
                problem = self._prepare(config, values)
                if problem is not None:
                    how, why = problem
                    self.rejected[how] = self.rejected.get(how, 0) + 1
                    tuner.reject(how, why)
                    values = tuner.next()
                    continue
                self._tried.add(text)
            before = values
            for time_ms in _middle_first(timed_out_of_cache(
                    lambda: self._kernel._run_once(config, self._args, self._kwargs), _SAMPLES)):
                tuner.report(max(time_ms, 1e-6))
                values = tuner.next()
                if tuner.over or values != before:
                    break

    def _begin(self, values):
        text = repr(values)
        if text not in self.compiling:
            config = self._space.config(values)
            # The first compilation of a process also fills Triton's tables, which threads then only read.
            if self.compiling:
                self.compiling[text] = self._pool.submit(self._compile, config)
            else:
                self.compiling[text] = done = concurrent.futures.Future()
                try:
                    done.set_result(self._compile(config))
                except Exception as problem:
                    done.set_exception(problem)
        return self.compiling[text]

    def _compile(self, config):
        fn = self._kernel.fn
        if not hasattr(fn, "warmup"):
            return None
        launch = {n: v for n, v in self._kwargs.items() if n not in ("grid", "warmup")}
        with torch.cuda.device(self._device):  # each thread begins on the first one
            return fn.warmup(*self._args, grid=self._kwargs.get("grid", (1,)), **launch, **config.all_kwargs())

    def _prepare(self, config, values):
        """Compiles, checks and verifies a config; (how, why) if it is out."""
        try:
            compiled = self._compiled(values)
        except Exception as problem:
            return self._failed(values, _tuner.NO_COMPILE, problem)
        shared = getattr(getattr(compiled, "metadata", None), "shared", 0) or 0
        if self._shared and shared > self._shared:
            return _tuner.NO_LAUNCH, "%d bytes of shared memory; %d are available" % (shared, self._shared)
        try:
            broken = self._space.broken_limit(_loaded(compiled), self._usual_spills)
            if broken:
                return _tuner.UNFIT, broken
            reason = self._kernel._try(config, self._args, self._kwargs, self._outputs)
        except Exception as problem:
            return self._failed(values, _tuner.NO_LAUNCH, problem)
        if reason is None:
            return None
        return (_tuner.WRONG, reason) if reason else (_tuner.NO_LAUNCH, "out of resources")

    def _compiled(self, values):
        begin = time.monotonic()
        try:
            return self._awaited(values)
        finally:
            self._tuner.waited(time.monotonic() - begin)

    def _awaited(self, values):
        future = self._begin(values)
        if future.cancel():  # it waits behind configs that are only likely to be run
            self.compiling[repr(values)] = future = concurrent.futures.Future()
            try:
                future.set_result(self._compile(self._space.config(values)))
            except Exception as problem:
                future.set_exception(problem)
        compiled = future.result()
        return compiled.result() if hasattr(compiled, "result") else compiled

    def _usual_spills(self):
        return getattr(_loaded(self._awaited(self._space.default)), "n_spills", None)

    def _failed(self, values, how, problem):
        # A bug of the kernel shows in the default config. What other configs may do is not known ahead.
        if values == self._space.default and not known_failure(problem):
            raise problem
        if "illegal" in str(problem) or "misaligned" in str(problem):
            raise problem  # the context is lost
        return how, "%s: %s" % (type(problem).__name__, str(problem)[:500])


def _middle_first(times):
    """By their distance from the median: a race may end after one, and the first launch of a set is slower."""
    middle = statistics.median(times)
    return sorted(times, key=lambda time_ms: abs(time_ms - middle))


def _loaded(compiled):
    """The compiled kernel, whose registers are known once its binary is loaded."""
    if hasattr(compiled, "_init_handles"):
        compiled._init_handles()
    return compiled


def _shared_memory():
    """Bytes of a block's shared memory on the current device; 0 if Triton does not report it."""
    try:
        properties = triton.runtime.driver.active.utils.get_device_properties(torch.cuda.current_device())
        return properties["max_shared_mem"]
    except (AttributeError, KeyError):
        return 0
