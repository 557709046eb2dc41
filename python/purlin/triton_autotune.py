# SPDX-License-Identifier: Apache-2.0
"""@purlin.autotune: @triton.autotune whose winners are verified, kept and shared.

The arguments are those of @triton.autotune. The differences:

* The winner of a key goes to Purlin's config cache. A new process finds it there and benchmarks
  nothing. The key holds the kernel's source with the functions that it calls, the dtypes and
  layouts of the tensors, the key arguments, GPU model, driver and Triton's version. It does not hold
  the list of configs: a new config keeps the old winners valid. A stored config that is no longer
  in the list is not used.
* Each config's outputs are compared with those of the first config, on fresh copies of every tensor
  that the kernel writes. A config with other outputs is left out, with a warning.
* The configs of a key are compiled in parallel before the first is timed.
* In place of a list, `space=` names a search space (purlin.triton_space).
* With `shadow=`, launches now and then test whether the winner still wins (purlin._shadow).
* A short benchmark times all configs. The configs near the best and the first get the full
  benchmark, in turns. The first stays, unless another is faster beyond what noise explains. The
  order in the list decides between near-equal ones, so all processes choose the same config.

Under CUDA-graph capture nothing is tuned: an unknown key runs with the first config. With
PURLIN_DISABLE=1 it is plain @triton.autotune.

Thread-safety: as Triton's. Failure: a cache that cannot be read or written causes a warning. The
launch still runs.
"""
import concurrent.futures
import functools
import json
import os
import threading
import time
import warnings

import torch
import triton
from triton.runtime.autotuner import Autotuner as TritonAutotuner

from . import _launch
from ._cache import Cache
from ._library import PurlinError
from ._outputs import Outputs
from ._shadow import Shadow

# The full benchmark is for configs this near to the best of the short one, at most this many.
REACH, FINALISTS = 1.25, 5
TIE = 0.01  # below this difference the earlier one in the list wins
SHORT_RUNS = 5
# Full benchmarks of each finalist; of those that noise keeps from being told apart, at most.
TURNS, MOST_TURNS = 3, 8
_lock = threading.RLock()


class Known:
    """The config of a key: `uses` counts the launches that are not yet passed to the work list."""

    __slots__ = ("config", "keywords", "uses", "duel")

    def __init__(self, config, uses):
        self.config, self.uses, self.duel = config, uses, None
        self.keywords = config.all_kwargs()


def autotune(configs=None, key=None, prune_configs_by=None, reset_to_zero=None, restore_value=None,
             pre_hook=None, post_hook=None, warmup=None, rep=None, use_cuda_graph=False,
             do_bench=None, cache_results=False, *, cache=None, buckets=None, verify=True,
             tolerance=None, jobs=None, shadow=None, space=None, constraints=(), limits=(),
             default=None, budget=60, strategy="auto", seed=1):
    """As @triton.autotune, and:

    cache      directory of the config cache (None: $PURLIN_CACHE, else the user's).
    buckets    key argument -> "exact", "pow2", "multiple:N": shapes that share a winner.
    verify     compare outputs. `tolerance` overrides the relative one of the dtype.
    jobs       threads that compile (None: by the number of cores).
    shadow     one launch in so many tests whether the winner still wins (None: $PURLIN_SHADOW, else
               never).

    In place of `configs`, a space to search (purlin.triton_space):

    space        parameter -> list of values. A parameter is an argument of the kernel, or one of
                 Triton's num_warps, num_stages, num_ctas and maxnreg.

    constraints  Expressions over parameters and key arguments that a config must fulfil.

    limits       Expressions over registers, spills and shared_bytes of a compiled config.

    default      the config of an untuned program (None: the first value of each list). It is
                 measured first, and the others are verified against it.
    budget       evaluations, or a text such as "60s" or "200,60s".
    strategy     as `purlin tune --strategy`; `seed` as its --seed.
    """
    if (configs is None) == (space is None):
        raise ValueError("purlin.autotune takes either configs or a space")
    options = Options(cache=cache, buckets=buckets or {}, verify=verify, tolerance=tolerance, jobs=jobs,
                      shadow=shadow)

    def decorate(fn):
        made, first = Autotuner, configs
        if space is not None:
            from .triton_space import Space, SpaceAutotuner

            options.space = Space(space, constraints, limits, default, budget, strategy, seed)
            made, first = SpaceAutotuner, [options.space.config(options.space.default)]
        return made(fn, fn.arg_names, first, key or [], reset_to_zero, restore_value, pre_hook=pre_hook,
                    post_hook=post_hook, prune_configs_by=prune_configs_by, warmup=warmup, rep=rep,
                    use_cuda_graph=use_cuda_graph, do_bench=do_bench, purlin=options)

    return decorate


class Options:
    """What the decorator was given beyond Triton's arguments."""

    def __init__(self, **given):
        self.__dict__.update(given)


def _disabled():
    return os.environ.get("PURLIN_DISABLE", "0") not in ("", "0")


def named(config):
    """A config in the form of the cache: text, integers, reals and booleans."""
    given = {name: value for name, value in config.kwargs.items()}
    given["num_warps"], given["num_stages"] = config.num_warps, config.num_stages
    for name in ("num_ctas", "maxnreg", "num_consumer_groups", "num_buffers_warp_spec"):
        value = getattr(config, name, None)
        if value not in (None, 0, 1):
            given[name] = value
    return {name: _plain(value) for name, value in given.items()}


def _plain(value):
    # Booleans are 0 and 1 in the C interface, so both sides have the integer.
    if isinstance(value, bool):
        return int(value)
    return value if isinstance(value, (int, float, str)) else str(value)


def _dtype_text(value):
    return str(value).replace("torch.", "")


def layout_of(value):
    """The layout of a tensor in memory, as far as it affects the speed of configs: without its strides,
    which differ with every shape."""
    contiguous = getattr(value, "is_contiguous", None)
    if contiguous is None or contiguous():
        return "row"
    if value.dim() >= 2 and value.transpose(-1, -2).is_contiguous():
        return "column"
    if value.dim() == 4 and value.is_contiguous(memory_format=torch.channels_last):
        return "nhwc"
    return "strided"


class Autotuner(TritonAutotuner):
    """The kernel object of @purlin.autotune. `purlin_log` has a line for each key with the origin of its
    config."""

    def __init__(self, *arguments, purlin=None, **keywords):
        super().__init__(*arguments, **keywords)
        self._purlin = purlin
        self._warm = {}  # fast key -> Known
        self._direct_warm = {}  # the same by keys of the usual arguments
        self._direct = self._fast = self._form = None  # these keys, and launches by them: compiled
        self._slots = ()  # "tensor", "optional" or "" for each argument of the form
        self._optional = set()  # arguments that were a tensor and None
        self._memo = None  # of launches that call the compiled kernel
        self._ops = {}   # the key without the shape -> (Op, key fields, cache)
        self._positions = {name: i for i, name in enumerate(self.arg_names)}
        self._shadow = Shadow(self, purlin.shadow)
        self.purlin_log = []
        if len({json.dumps(named(c), sort_keys=True) for c in self.configs}) != len(self.configs):
            # A stored config has no hooks: configs that differ only in these are not separable.
            self._purlin = None

    # -- The hot path ---------------------------------------------------------------------------

    def __getitem__(self, grid):
        if self._fast is not None:
            return functools.partial(self._fast, grid)
        return lambda *args, **kwargs: self.run(*args, grid=grid, warmup=False, **kwargs)

    def run(self, *args, **kwargs):
        try:
            known = self._warm.get(self._fast_key(args, kwargs))
        except (TypeError, AttributeError):  # a key argument that cannot be hashed, other arguments
            known = None
        if known is None:
            return self._first_run(args, kwargs)
        self.best_config = known.config
        known.uses[0] += 1
        if self._shadow.every:
            self._shadow.count(known, args, kwargs)
        return self.fn.run(*args, **kwargs, **known.keywords)

    def _make_direct(self, args, kwargs):
        """Writes the functions for calls with arguments of these kinds. The loop of _fast_key takes several
        microseconds."""
        before, self._direct_warm = self._direct_warm, {}
        written = _launch.write(self, args, kwargs, layout_of)
        if written is None:
            self._direct_warm = before
        else:
            self._direct, self._fast, self._form, self._slots = written

    def _long(self, grid, args, more, keywords, further):
        """A call that the compiled launch does not cover. One of its form with arguments of other types is known to
        it from then on."""
        whole = not more and not further and all(value is not _launch.NONE for value in (*args, *keywords.values()))
        args = tuple(value for value in args if value is not _launch.NONE) + more
        further.update((name, value) for name, value in keywords.items() if value is not _launch.NONE)
        launched = self.run(*args, grid=grid, warmup=False, **further)
        if whole:
            try:
                known = self._warm.get(self._fast_key(args, further))
            except (TypeError, AttributeError):
                known = None
            if known is not None:
                self._learn(known, args, keywords)
        return launched

    def _learn(self, known, args, keywords):
        names = (*self.arg_names[:len(args)], *keywords)
        absent = {name for name, slot, value in zip(names, self._slots, (*args, *keywords.values()))
                  if slot == "tensor" and value is None}
        with _lock:
            if absent - self._optional:
                self._optional |= absent
                self._make_direct(args, keywords)
            self._keep_direct(known, args, keywords)

    def _fast_key(self, args, kwargs):
        """Argument values for the key's names, the dtype of each tensor, and the device."""
        parts = []
        device = None
        for value in args:
            dtype = getattr(value, "dtype", None)
            parts.append(dtype)
            if dtype is not None:
                if device is None:
                    device = getattr(value, "device", None)
                contiguous = getattr(value, "is_contiguous", None)
                parts.append(contiguous is None or contiguous() or layout_of(value))
        for name in self.keys:
            at = self._positions.get(name)
            value = args[at] if at is not None and at < len(args) else kwargs.get(name)
            parts.append(value if getattr(value, "dtype", None) is None else None)
        if len(args) < len(self.arg_names):
            for name, value in kwargs.items():
                if name in self._positions:
                    parts.append((name, getattr(value, "dtype", None), layout_of(value)))
        parts.append(device)
        return tuple(parts)

    # -- The first launch of a key ----------------------------------------------------------------

    def _first_run(self, args, kwargs):
        if self._purlin is None or _disabled() or not self._tunable():
            return super().run(*args, **kwargs)
        fast = self._fast_key(args, kwargs)
        with _lock:
            known = self._warm.get(fast)
            if known is None:
                self.nargs = dict(zip(self.arg_names, args))
                try:
                    config, keep, uses, op, problem = self._choose(args, kwargs)
                finally:
                    self.nargs = None
                known = Known(config, uses)
                # A config with its own hook runs through Triton's path, which calls the hook.
                if keep and config.pre_hook is None:
                    self._warm[fast] = known
                    self._shadow.prepare(known, op, problem)
            if fast in self._warm and args:
                self._keep_direct(known, args, kwargs)
        config = known.config
        self.best_config = config
        if config.pre_hook is not None:
            config.pre_hook({**dict(zip(self.arg_names, args)), **kwargs, **known.keywords})
        return self.fn.run(*args, **kwargs, **known.keywords)

    def _tunable(self):
        return len(self.configs) > 1

    def _keep_direct(self, known, args, kwargs):
        if self._direct is None:
            self._make_direct(args, kwargs)
        keywords = sorted(set(kwargs) - {"grid", "warmup"})
        if self._form != (len(args), keywords):
            return
        values = (*args, *(kwargs[name] for name in keywords))
        # The dtype of a tensor is in the key where one is expected.
        if any(hasattr(value, "dtype") and not slot for value, slot in zip(values, self._slots)):
            return
        try:
            self._direct_warm[self._direct(*values)] = known
        except (TypeError, AttributeError):
            pass

    def _choose(self, args, kwargs):
        """Returns the config, whether it may be kept, the counter of its launches, and its op and problem
        (None without a cache)."""
        pruned = self.prune_configs(kwargs)
        if len(pruned) == 1:
            return pruned[0], True, [0], None, None
        op, key, cache, problem = self._open(args, kwargs)
        uses, hit = self._look_up(op, problem)
        for config in pruned:
            if hit and named(config) == dict(hit):
                self.purlin_log.append("%s: %s" % (hit.outcome, config))
                return config, True, uses, op, problem
        if torch.cuda.is_current_stream_capturing():
            self.purlin_log.append("capture: %s" % pruned[0])
            return pruned[0], False, uses, op, problem
        config, times, verified = self._tune(pruned, args, kwargs)
        self.purlin_log.append("tuned: %s" % config)
        if op is not None:
            self._store(cache, key, problem, config, pruned, times, verified)
        return config, True, uses, op, problem

    def _open(self, args, kwargs):
        """As _op; without a cache the op is None."""
        try:
            return self._op(args, kwargs)
        except PurlinError as problem:
            warnings.warn("purlin: %s; this kernel is tuned for this process alone" % problem)
            return None, None, None, {}

    def _look_up(self, op, problem):
        if op is None:
            return [0], None
        return op.uses(*problem.values()), op.find(*problem.values())

    def _outputs(self, args, kwargs):
        return Outputs({**dict(zip(self.arg_names, args)), **kwargs}.values(), self._purlin.tolerance)

    # -- The cache --------------------------------------------------------------------------------

    def _op(self, args, kwargs):
        """The op handle for these dtypes and options, and the problem shape."""
        given = {**dict(zip(self.arg_names, args)), **kwargs}
        tensors = [(n, v) for n, v in given.items() if n in self._positions and hasattr(v, "dtype")]
        problem, other = {}, []
        for name in self.keys:
            value = given.get(name)
            if type(value) is int and value > 0 and len(problem) < 8:
                problem[name] = value
            elif not hasattr(value, "dtype"):
                other.append("%s=%s" % (name, value))
        if not problem:
            problem = {"any": 1}
        index = next((v.device.index for _, v in tensors if getattr(v, "is_cuda", False)),
                     torch.cuda.current_device())
        dtype = ",".join([_dtype_text(v.dtype) for _, v in tensors] + other) or "none"
        layout = ",".join("%s=%s" % (n, layout_of(v)) for n, v in tensors) or "flat"
        signature = (dtype, layout, tuple(problem), index)
        known = self._ops.get(signature)
        if known is None:
            cache = Cache(self._purlin.cache)
            device = dict(cache.device("cuda:%d" % index), toolkit="triton " + triton.__version__)
            key = dict(device, op="triton", kernel=self._kernel_name(), dtype=dtype,
                       source_hash=self._source_hash(), policy="warm", layout=layout)
            key["device"] = key.pop("model")
            op = cache.op("triton", list(problem), device, kernel=key["kernel"], dtype=dtype,
                          source_hash=key["source_hash"], policy="warm", layout=layout)
            known = self._ops[signature] = (op, key, cache)
        return (*known, problem)

    def _kernel_name(self):
        return "%s.%s" % (self.base_fn.__module__, self.base_fn.__qualname__)

    def _source_hash(self):
        fn = self.fn
        while not hasattr(fn, "cache_key") and hasattr(fn, "fn"):
            fn = fn.fn
        return str(getattr(fn, "cache_key", ""))[:64]

    def _store(self, cache, key, problem, config, pruned, times, verified):
        median = lambda samples: sorted(samples)[len(samples) // 2]
        ordered = sorted((median(v), i) for i, v in times.items() if v)
        chosen = next(i for i, c in enumerate(pruned) if c is config)
        others = [time for time, i in ordered if i != chosen]
        try:
            cache.put(
                key, named(config), problem, median(times[chosen]),
                bucket_rules={n: self._purlin.buckets.get(n, "exact") for n in problem},
                samples_ms=list(times[chosen]), runner_up_ms=others[0] if others else 0,
                default_time_ms=median(times[0]) if times.get(0) else 0,
                evaluations=len(pruned), verified=verified, strategy="purlin.autotune")
        except PurlinError as problem_:
            warnings.warn("purlin: the winner could not be kept: %s" % problem_)

    # -- Tuning -----------------------------------------------------------------------------------

    def _tune(self, pruned, args, kwargs):
        """Returns the best config, the samples of the working ones by index, and whether outputs were
        compared. The tensors stay unchanged."""
        self._compile(pruned, args, kwargs)
        guard = self._outputs(args, kwargs) if self._purlin.verify else None
        usable = []
        try:
            for index, config in enumerate(pruned):
                reason = self._try(config, args, kwargs, guard)
                if reason is None:
                    usable.append(index)
                elif reason:
                    warnings.warn("purlin: %s of %s is out: %s" % (config, self._kernel_name(), reason))
            if not usable:
                raise RuntimeError("purlin: no config of %s works" % self._kernel_name())
            short = {i: self._short(pruned[i], args, kwargs) for i in usable}
            best = min(min(v) for v in short.values())
            finalists = sorted((i for i in usable if min(short[i]) <= best * REACH),
                               key=lambda i: min(short[i]))[:FINALISTS]
            winner, full = hold_finals(
                finalists, usable[0], lambda i: self._bench(*args, config=pruned[i], **kwargs)[0])
            times = {**short, **full}
            self.configs_timings = {pruned[i]: times[i] for i in times}
            return pruned[winner], times, guard is not None and guard.compared
        finally:
            if guard is not None:
                guard.restore()

    def _compile(self, pruned, args, kwargs):
        """Compiles every config in advance, on several threads if Triton can. A config that fails here
        fails again in its trial, which reports it."""
        jobs = self._purlin.jobs or min(os.cpu_count() or 1, 16)
        launch = {n: v for n, v in kwargs.items() if n not in ("grid", "warmup")}
        grid = kwargs.get("grid", (1,))

        def compile_one(config):
            try:
                self.fn.warmup(*args, grid=grid, **launch, **config.all_kwargs())
            except Exception:
                pass

        if jobs < 2 or not hasattr(self.fn, "warmup"):
            return
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            try:
                from triton.runtime._async_compile import AsyncCompileMode
            except ImportError:
                list(pool.map(compile_one, pruned))
                return
            try:
                with AsyncCompileMode(pool, ignore_errors=True):
                    for config in pruned:
                        compile_one(config)
            except Exception:  # another mode is active, or a Triton whose mode takes other arguments
                pass

    def _run_once(self, config, args, kwargs, checking=False):
        """One launch with the hooks of the benchmark. If the outputs are compared afterwards, Triton's own
        hook must not restore them."""
        full = {**dict(zip(self.arg_names, args)), **kwargs, **config.all_kwargs()}
        if config.pre_hook:
            config.pre_hook(full)
        if checking and not self.user_defined_pre_hook:
            for name in self.reset_to_zero:
                if full[name] is not None:
                    full[name].zero_()
        else:
            self.pre_hook(full)
        hooked = not checking or self.user_defined_post_hook
        try:
            self.fn.run(*args, **kwargs, **config.all_kwargs())
        except Exception as problem:
            if hooked:
                self.post_hook(full, exception=problem)
            raise
        if hooked:
            self.post_hook(full, exception=None)

    def _try(self, config, args, kwargs, guard):
        """None if it runs and its outputs are right, else the reason; "" = already reported."""
        try:
            if guard is not None:
                return guard.check(lambda: self._run_once(config, args, kwargs, checking=True))
            self._run_once(config, args, kwargs)
            torch.cuda.synchronize()
        except Exception as problem:
            if known_failure(problem):
                return ""
            raise
        return None

    def _short(self, config, args, kwargs):
        """Milliseconds of a few launches each between two events, after one that is not timed."""
        self._run_once(config, args, kwargs)
        samples = []
        for _ in range(SHORT_RUNS):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            self._run_once(config, args, kwargs)
            end.record()
            end.synchronize()
            samples.append(start.elapsed_time(end))
        return samples


def apart(fast, slow):
    """Whether noise does not explain that one is faster: their ranges lie apart. Few samples have to lie further
    apart, by a multiple of the wider range."""
    few = min(len(fast), len(slow))
    factor = 0 if few >= MOST_TURNS else 2.5 if few <= TURNS else 1
    return min(slow) - max(fast) > factor * max(max(fast) - min(fast), max(slow) - min(slow))


def hold_finals(finalists, default, measure):
    """Measures the finalists in turns; returns the winner and the samples of each. Only a config that is apart
    from the default takes its place, so the default is one of them."""
    times = {i: [] for i in dict.fromkeys([*finalists, default])}
    going = list(times)
    for turn in range(MOST_TURNS):
        for at in range(len(going)):
            i = going[(at + turn) % len(going)]
            times[i].append(measure(i))
        if turn + 1 < TURNS:
            continue
        medians = {i: sorted(v)[len(v) // 2] for i, v in times.items()}
        able = [i for i in times if i == default or apart(times[i], times[default])]
        going = [i for i in going if i == default or medians[i] * (1 + TIE) < medians[default]]
        if len(able) > 1 or len(going) == 1:
            break
    least = min(medians[i] for i in able)
    return min(i for i in able if medians[i] <= least * (1 + TIE)), times


def known_failure(problem):
    """Whether a config cannot work for a reason that says nothing of the kernel."""
    from triton.compiler.errors import CompileTimeAssertionFailure
    from triton.runtime.errors import OutOfResources

    return isinstance(problem, (OutOfResources, CompileTimeAssertionFailure)) \
        or type(problem).__name__ == "PTXASError"


# The device waits for so many seconds while the host queues a set of samples. Follows the host's pace.
_gate_s = [1e-3]
_LEAST_GATE_S, _MOST_GATE_S, _CYCLES_PER_S = 5e-4, 0.1, 2e9


def timed_out_of_cache(launch, count):
    """Milliseconds of launches that find their inputs in memory, as Triton's do_bench times them. The device
    waits until all are queued, so that the host's time does not count, even if other threads slow it down."""
    driver = getattr(getattr(triton.runtime, "driver", None), "active", None)
    empty = driver.get_empty_cache_for_benchmark() if hasattr(driver, "get_empty_cache_for_benchmark") else None
    wait = getattr(torch.cuda, "_sleep", None)
    while True:
        gate, begin = torch.cuda.Event(enable_timing=True), time.perf_counter()
        if wait is not None:
            wait(int(_gate_s[0] * _CYCLES_PER_S))
        gate.record()
        events = []
        for _ in range(count):
            if empty is not None:
                driver.clear_cache(empty) if hasattr(driver, "clear_cache") else empty.zero_()
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            launch()
            end.record()
            events.append((start, end))
        late, before = wait is not None and gate.query(), _gate_s[0]
        needed = 2 * (time.perf_counter() - begin)
        torch.cuda.synchronize()
        _gate_s[0] = min(max(needed, _LEAST_GATE_S), _MOST_GATE_S)
        if not late or before >= _MOST_GATE_S:
            return [start.elapsed_time(end) for start, end in events]
