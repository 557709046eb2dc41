# SPDX-License-Identifier: Apache-2.0
"""The launch of a known key of @purlin.autotune, in one frame.

`write` writes two functions for calls of one form: the key of its config, and the whole launch. A call of another
form takes the long path. With a Triton that `known_triton` knows, the launch calls the compiled kernel itself. Its
memo maps all that decides on the compiled kernel to the one that JITFunction.run returned for the same:

* of each tensor its type, dtype, layout, alignment to 16 bytes, and whether a GPU has it;
* of each integer its width, and whether it is 1 or a multiple of 16; of key arguments and constants their value;
* the current device, debug and instrumentation modes, and the options of the config.

JITFunction.run launches instead if it would do other things. That is with a launch hook, a pre-run hook, a changed
global or driver, a cleared kernel cache, or a replaced function of Triton. It also launches a call with a value whose
specialisation is not certain. A grid function gets a new dict: what it writes there reaches no kernel.

Thread-safety: entries of the memo never change. Failure: none but what Triton raises in the launch.
"""
import functools
import hashlib
import importlib
import inspect
import os
import re

import torch
import triton

# Digests of the sources that this file repeats or relies on, without comments and white space: Triton 3.6.0.
KNOWN_SOURCES = {"45e642408f6ecc33ac259e3fc8df89c87240123cf4509e3ffb6791a5c45b7471"}
_MOST_ENTRIES = 1 << 14
NONE = object()
_TEXT = """
def _key({signature}):
    return {key}


def _launch(_grid, {parameters}):
    if {missing}:
        return _long(_grid, {args}, _more, {keywords}, _named)
{again}{direct}    try:
        _known = _get({key})
    except (TypeError, AttributeError):
        _known = None
    if _known is None:
        return _long(_grid, {args}, _more, {keywords}, _named)
    _tuner.best_config = _known.config
    _known.uses[0] += 1
{shadow}    {launch}
"""
_PLAIN = "return _fn.run({passed}, grid=_grid, warmup=False, **_known.keywords)"
_KEPT = """_constants = _known.keywords
    _kernel = _fn.run({passed}, grid=_grid, warmup=False, **_constants)
    if _ready is None:
        _keep(_exact, _kernel, _known, _constants, {args}, {keywords})
    return _kernel"""
# `_ready` is a Ready; None if the call is not in the memo.
_DIRECT = """    try:
        _knob, _device = _knobs.runtime, _get_device()
{pointers}        _exact = ({exact})
        _ready = _find(_exact)
    except Exception:
        _ready = _declined
    if _ready is not None and _ready.parts is not None:
        _known, _enter, _exit = _ready.known, _knob.launch_enter_hook, _knob.launch_exit_hook
        if _ready.keywords is not _known.keywords \\
                or _fn.device_caches[_device][0].get(_ready.name) is not _ready.kernel:
            _ready = None
        elif _jit.run is _jit_run and _launcher.__call__ is _launcher_call \
                and (_enter is None or _type(_enter) is _chain and not _enter.calls) \\
                and (_exit is None or _type(_exit) is _chain and not _exit.calls) \\
                and not _fn.pre_run_hooks and _driver.active is _active and _grid is not None \\
                and (not _fn.used_global_vals or _unchanged(_fn.used_global_vals)):
            _tuner.best_config = _known.config
            _known.uses[0] += 1
{shadow_direct}            _go, _function, _cooperative, _dependent, _metadata, {rest} = _ready.parts
            _stream = _get_stream(_device)
            if _callable(_grid):
                _grid = _grid({bound})
            _size = _len(_grid)
            _go(_grid[0], _grid[1] if _size > 1 else 1, _grid[2] if _size > 2 else 1, _stream, _function,
                _cooperative, _dependent, None, None, _metadata, None, None, None, {values})
            return _ready.kernel
"""
_SHADOW_DIRECT = """            _shadow.count(_known, {args}, {all_keywords})
            if _ready.keywords is not _known.keywords:  # demoted
                return _fn.run({passed}, grid=_grid, warmup=False, **_known.keywords)
"""


class Ready:
    """A compiled kernel and what its launcher takes. `parts` is None for a key that JITFunction.run launches."""

    __slots__ = ("known", "keywords", "kernel", "name", "parts")

    def __init__(self, known=None, keywords=None, kernel=None, name=None, parts=None):
        self.known, self.keywords, self.kernel, self.name, self.parts = known, keywords, kernel, name, parts


_DECLINED = Ready()


# -- What is known of Triton ----------------------------------------------------------------------


class Modules:
    """The parts of a Triton whose launch is known."""

    def __init__(self):
        self.jit, self.compiler, self.nvidia = (importlib.import_module("triton." + name) for name in (
            "runtime.jit", "compiler.compiler", "backends.nvidia.driver"))
        self.knobs, self.driver = self.jit.knobs, self.jit.driver
        self.chain = getattr(self.knobs, "HookChain", Ready)  # a Ready is never a hook
        # Some versions read the environment for the mode on each launch. os.environ has the same in its dict.
        mode = type(self.knobs.compilation).__dict__["instrumentation_mode"]
        self.environment, self.mode_key = os.environ._data, os.environ.encodekey(getattr(mode, "key", ""))
        self.mode = ["_knobs.compilation.__dict__.get('instrumentation_mode')", "_environment.get(_mode)"] \
            if hasattr(mode, "key") else ["_knobs.compilation.instrumentation_mode"]

    def sources(self):
        launcher = self.nvidia.CudaLauncher
        return [inspect.getsource(part) for part in (
            self.jit.JITFunction.run, self.jit.create_function_from_signature, self.jit.compute_cache_key,
            self.compiler.CompiledKernel.run.fget, self.compiler.CompiledKernel.launch_metadata,
            launcher.__init__, launcher.__call__, self.nvidia.make_launcher)]

    def digest(self):
        return digest(self.sources() + [self.nvidia._BASE_ARGS_FORMAT])

    def same_rules(self):
        """Whether Triton specialises all integers and all addresses of a kind alike."""
        kinds, specialize = {}, self.jit.native_specialize_impl
        for edge in (0, 1 << 31, 1 << 32, 1 << 63, -(1 << 31)):
            for value in range(edge - 17, edge + 18):
                if -(1 << 63) <= value < 1 << 64:
                    kinds.setdefault(not value & 15 if 1 < value < 1 << 31 else kind(value), set()).add(
                        tuple(specialize(self.jit.BaseBackend, value, False, True, True)))
        for address in (*range(64), *range(1 << 40, (1 << 40) + 64)):
            kinds.setdefault(("tensor", not address & 15), set()).add(
                tuple(specialize(self.jit.BaseBackend, _Probe(address), False, True, True)))
        return all(len(found) == 1 for found in kinds.values())


class _Probe:
    """As much of a tensor as its specialisation asks for."""

    dtype = torch.float32

    def __init__(self, address):
        self._address = address

    def data_ptr(self):
        return self._address


def digest(sources):
    text = "\n".join(re.sub(r"#.*|\s+", "", source) for source in sources)
    return hashlib.sha256(text.encode()).hexdigest()


@functools.lru_cache(maxsize=None)
def known_triton():
    """The modules of a Triton whose launch is known; None for another one."""
    try:
        modules = Modules()
        return modules if modules.digest() in KNOWN_SOURCES and modules.same_rules() else None
    except Exception:  # it lacks a part
        return None


# -- The memo -------------------------------------------------------------------------------------

_KEY_TYPES = (int, bool, float, type(None))  # of arguments that are no constants
_TENSORS = (torch.Tensor, torch.nn.Parameter)


def kind(value):
    """What Triton's specialisation sees of an integer outside of 2 to 2^31 - 1."""
    if value == 1:
        return "1"
    if not -(1 << 63) <= value < 1 << 64:
        raise OverflowError(value)
    width = "i32" if -(1 << 31) <= value < 1 << 31 else "i64" if value < 1 << 63 else "u64"
    return width if value & 15 else width + "D"


def unchanged(used):
    """Whether the globals of a kernel have the values that it was compiled with."""
    for (name, _), (value, scope) in used.items():
        if scope.get(name, NONE) != value:
            return False
    return True


def _with_scratch(launcher):
    """As CudaLauncher.launch, for a kernel that needs scratch memory: the launcher allocates it."""
    def go(x, y, z, stream, function, _cooperative, _dependent, _global, _profile, *rest):
        launcher(x, y, z, stream, function, *rest)

    return go


class Memo:
    """The compiled kernels of one form of call. `slots` maps the given arguments, in the call's order, to the part
    that each has in the key: "tensor", "optional" (or None), "value", "integer" or "type"."""

    def __init__(self, modules, fn, slots):
        self.modules, self.fn, self.slots = modules, fn, slots
        self.rest = [p for p in fn.params if p.name not in slots]
        self.ready = {}  # exact key -> Ready

    def keep(self, exact, kernel, known, constants, args, keywords):
        """Keeps what JITFunction.run returned, for later calls with the same key."""
        given = dict(zip(self.slots, (*args, *keywords.values())))
        values = [name for name, slot in self.slots.items() if slot == "value"]
        # Such a key would keep an object alive.
        if type(kernel) is not self.modules.compiler.CompiledKernel \
                or not all(self._certain(name, given[name]) for name in values):
            return
        if len(self.ready) >= _MOST_ENTRIES:
            self.ready.clear()
        try:
            found = self._prepare(kernel, known, constants, args, keywords, given)
        except Exception:  # the launch is done; the next one is Triton's
            found = None
        self.ready[exact] = found or _DECLINED

    def _certain(self, name, value):
        """Whether the key has all that the specialisation of this argument depends on."""
        slot, parameter = self.slots.get(name, "value"), next((p for p in self.fn.params if p.name == name), None)
        if slot in ("tensor", "optional"):
            return value is None and slot == "optional" or type(value) in _TENSORS and value.is_cuda
        if slot != "value":
            return type(value) in (_KEY_TYPES[:3] if slot == "integer" else _KEY_TYPES[1:])
        if parameter is None:  # an option of Triton
            return type(value) in (int, bool, str, type(None))
        return type(value) in _KEY_TYPES or parameter.is_constexpr and type(value) in (str, triton.language.dtype)

    def _prepare(self, kernel, known, constants, args, keywords, given):
        """None if it is not certain that this kernel is the one for every call with this key."""
        fn, modules = self.fn, self.modules
        if not all(self._certain(name, value) for name, value in given.items()):
            return None
        device = modules.driver.active.get_current_device()
        compiled, names, target, backend, binder = fn.device_caches[device]
        if target.backend != "cuda" or not getattr(backend, "supports_native_tensor_specialization", True):
            return None
        # As JITFunction.run does it. The kernel must be in Triton's cache by this name.
        options = {**keywords, **constants}
        options["debug"] = options.get("debug", fn.debug) or modules.knobs.runtime.debug
        options["instrumentation_mode"] = modules.knobs.compilation.instrumentation_mode
        bound, specialization, options = binder(*args, **options)
        name = modules.jit.compute_cache_key(names, specialization, options)
        if compiled.get(name) is not kernel or list(bound) != [p.name for p in fn.params]:
            return None
        launcher = kernel.run
        if type(launcher) is not modules.nvidia.CudaLauncher \
                or not all(self._certain(p.name, bound[p.name]) for p in self.rest):
            return None
        scratch = launcher.global_scratch_size > 0 or launcher.profile_scratch_size > 0
        return Ready(known, constants, kernel, name, (
            _with_scratch(launcher) if scratch else launcher.launch, kernel.function,
            launcher.launch_cooperative_grid, launcher.launch_pdl, kernel.packed_metadata,
            *(bound[p.name] for p in self.rest)))


# -- The functions --------------------------------------------------------------------------------


def write(tuner, args, kwargs, layout_of):
    """The key function and the launch function for calls of this form, the form, and its slots; None if it has
    none."""
    # One device: it is no part of the key of a config.
    several = torch.cuda.device_count() > 1
    keywords = sorted(set(kwargs) - {"grid", "warmup"})
    if not all(name.isidentifier() and not name.startswith("_") for name in keywords):
        return None
    names = ["_a%d" % at for at in range(len(args))]
    given = [(name, tuner.arg_names[at] if at < len(tuner.arg_names) else "", value)
             for at, (name, value) in enumerate(zip(names, args))]
    given += [("_k_" + name, name, kwargs[name]) for name in keywords]
    parts, slots, device, maybe = [], [], "", ""
    tensors = _tensor_names(tuner)
    for name, argument, value in given:
        slots.append("")
        if argument in tensors and (value is None or torch.is_tensor(value) and argument in tuner._optional):
            slots[-1] = "optional"
            parts.append("None if {0} is None else ({0}.dtype, {0}.is_contiguous() or _layout({0}))".format(name))
            maybe = maybe or "None if {0} is None else {0}.device".format(name)
        elif torch.is_tensor(value):
            slots[-1] = "tensor"
            parts.append("{0}.dtype, {0}.is_contiguous() or _layout({0})".format(name))
            device = device or "%s.device" % name
        elif hasattr(value, "dtype"):
            return None  # a wrapper of a tensor: its type would be missing
        elif argument in tuner.keys:
            parts.append("{0}, {0}.__class__".format(name))
        else:
            parts.append("%s.__class__" % name)
    device = (device or maybe) if several else ""
    fields = {
        "key": "(%s,)" % ", ".join(parts + ([device] if device else [])),
        "parameters": ", ".join(["%s=_none" % n for n in names] + ["*_more"] + ["%s=_none" % n for n in keywords]
                                + ["**_named"]),
        "again": "".join("    _k_{0} = {0}\n".format(n) for n in keywords),
        "missing": " or ".join(["_more", "_named"] + ["%s is _none" % n for n in names[-1:] + keywords]),
        "args": "(%s)" % "".join(n + ", " for n in names),
        "keywords": "{%s}" % ", ".join("%r: %s" % (n, n) for n in keywords),
        "passed": ", ".join(names + ["%s=_k_%s" % (name, name) for name in keywords]),
        "signature": ", ".join(names + ["_k_" + n for n in keywords])}
    fields["all_keywords"] = "{%s}" % ", ".join(
        ["'grid': _grid, 'warmup': False"] + ["%r: %s" % (n, n) for n in keywords])
    fields["shadow"] = "    _shadow.count(_known, {args}, {all_keywords})\n".format(**fields) \
        if tuner._shadow.every else ""
    scope = {"_layout": layout_of, "_tuner": tuner, "_get": tuner._direct_warm.get, "_fn": tuner.fn,
             "_long": tuner._long, "_shadow": tuner._shadow, "_none": NONE}
    direct = _direct(tuner, given, slots, device, fields, scope)
    text = _TEXT.format(**fields, direct=direct or "",
                        launch=(_KEPT if direct else _PLAIN).format(**fields))
    exec(text, scope)
    return scope["_key"], scope["_launch"], (len(args), keywords), slots


def _tensor_names(tuner):
    """The arguments that may be a tensor or None: neither constants nor parts of the key by value."""
    fn = tuner.fn
    while not hasattr(fn, "params") and hasattr(fn, "fn"):
        fn = fn.fn
    constants = {p.name for p in getattr(fn, "params", ()) if p.is_constexpr}
    return set(tuner.arg_names) - set(tuner.keys) - constants


def _direct(tuner, given, kinds, device, fields, scope):
    """The text of the launch that calls the compiled kernel; None without one. `scope` gets the names it uses."""
    modules, fn = known_triton(), tuner.fn
    if modules is None or type(fn) is not modules.jit.JITFunction or "run" in fn.__dict__:
        return None
    parameters, slots, exact, pointers, reads, names = {p.name: p for p in fn.params}, {}, [], [], [], {}
    for (name, argument, value), slot in zip(given, kinds):
        parameter = parameters.get(argument)
        if not argument or argument in slots or torch.is_tensor(value) and parameter is None:
            return None
        names[argument] = name
        if slot:
            slots[argument], pointer = slot, "_p_" + argument
            names[argument] = pointer
            key = "_type({0}), {0}.dtype, {0}.is_cuda, {0}.is_contiguous() or _layout({0})".format(name)
            get = "%s.data_ptr()" % name
            if slot == "optional":
                key, get = ("None if %s is None else %s" % (name, text) for text in ("(%s)" % key, get))
                pointers.append("(%s or 0)" % pointer)
            else:
                pointers.append(pointer)
            exact.append(key)
            reads.append("        %s = %s\n" % (pointer, get))
        elif argument in tuner.keys or parameter is None or parameter.is_constexpr:
            slots[argument] = "value"
            exact.append("_type({0}), {0}".format(name))
        elif type(value) is int:
            slots[argument] = "integer"
            exact.append("_type({0}), not {0} & 15 if 1 < {0} < 2147483648 else _kind({0})".format(name))
        else:
            slots[argument] = "type"
            exact.append("_type(%s)" % name)
    if pointers:
        exact.append("not (%s) & 15 or (%s)" % (
            " | ".join(pointers), "".join("not %s & 15, " % name for name in pointers)))
    exact += [device] if device else []
    exact += ["_device", "_fn.debug", "_knob.debug", *modules.mode]
    memo, active = Memo(modules, fn, slots), modules.driver.active
    rest = {p.name: "_c%d" % at for at, p in enumerate(memo.rest)}
    values = {**names, **rest}
    seen = {**{argument: name for name, argument, _ in given}, **rest}
    get_device = active.get_current_device
    if get_device is torch.cuda.current_device:  # without its check that CUDA is initialised
        get_device = getattr(getattr(torch, "_C", None), "_cuda_getDevice", get_device)
    tuner._memo = memo
    scope.update(
        _knobs=modules.knobs, _get_device=get_device, _get_stream=active.get_current_stream, _active=active,
        _driver=modules.driver, _jit=modules.jit.JITFunction, _jit_run=modules.jit.JITFunction.run,
        _launcher=modules.nvidia.CudaLauncher, _launcher_call=modules.nvidia.CudaLauncher.__call__,
        _find=memo.ready.get, _keep=memo.keep, _declined=_DECLINED,
        _chain=modules.chain, _unchanged=unchanged, _kind=kind, _environment=modules.environment,
        _mode=modules.mode_key, _type=type, _len=len, _callable=callable)
    return _DIRECT.format(
        **{**fields, "shadow": ""}, exact=", ".join(exact), rest=", ".join(rest.values()),
        pointers="".join(reads),
        shadow_direct=_SHADOW_DIRECT.format(**fields) if fields["shadow"] else "",
        bound="{%s}" % ", ".join("%r: %s" % (p.name, seen[p.name]) for p in fn.params),
        values=", ".join(values[p.name] for p in fn.params))
