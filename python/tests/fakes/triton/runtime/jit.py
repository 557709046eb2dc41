# SPDX-License-Identifier: Apache-2.0
"""Kernels of Python functions, as far as a launch goes. A subclass of JITFunction has the work of the kernel."""
import collections
import inspect

from .. import knobs
from ..backends import BaseBackend
from .driver import driver


def native_specialize_impl(backend, arg, is_const, specialize, align):
    if type(arg) is int:
        if specialize and arg == 1:
            return "constexpr", 1
        width = "i32" if -(1 << 31) <= arg < 1 << 31 else "i64" if arg < 1 << 63 else "u64"
        return width, (("D" if align and arg % 16 == 0 else "") if specialize else None)
    if type(arg) in (bool, float):
        return "u1" if type(arg) is bool else "fp32", None
    if arg is None:
        return "constexpr", None
    if hasattr(arg, "data_ptr"):
        return "*" + arg.dtype.name, (("D" if align and arg.data_ptr() % 16 == 0 else "") if specialize else None)
    raise TypeError("failed to specialize argument of type: %s" % type(arg))


class KernelParam:
    def __init__(self, number, parameter):
        self.num, self.name, self.default = number, parameter.name, parameter.default
        self.is_constexpr = "constexpr" in str(parameter.annotation)


def create_function_from_signature(signature, params, backend):
    def binder(*args, **kwargs):
        names = [p.name for p in params]
        bound = dict(zip(names, args))
        bound.update((name, kwargs.pop(name)) for name in names if name in kwargs)
        for p in params:
            if p.name not in bound:
                if p.default is inspect.Parameter.empty:
                    raise TypeError("missing a required argument: " + p.name)
                bound[p.name] = p.default
        bound = {name: bound[name] for name in names}
        return bound, [("constexpr", bound[p.name]) if p.is_constexpr else native_specialize_impl(
            backend, bound[p.name], False, True, True) for p in params], kwargs

    return binder


def compute_cache_key(kernel_key_cache, specialization, options):
    return kernel_key_cache.setdefault((tuple(specialization), str(options)), str(specialization) + str(options))


class JITFunction:
    metadata = {}  # of the compiled kernels

    def __init__(self, fn, debug=None):
        self.fn, self.debug, self.signature = fn, debug, inspect.signature(fn)
        self.params = [KernelParam(i, p) for i, p in enumerate(self.signature.parameters.values())]
        self.arg_names = [p.name for p in self.params]
        self.cache_key = "source of " + fn.__name__
        self.used_global_vals, self.pre_run_hooks = {}, []
        self.device_caches = collections.defaultdict(self.create_binder)
        self.runs = 0  # how often `run` was called

    def work(self, *arguments, options):
        """What a launch does on the device."""
        return self.fn(*arguments)

    def create_binder(self):
        from ..compiler.compiler import ASTSource, CompiledKernel, compile, make_backend

        self.ASTSource, self.CompiledKernel, self.compile = ASTSource, CompiledKernel, compile
        target = driver.active.get_current_target()
        backend = make_backend(target)
        return {}, {}, target, backend, create_function_from_signature(self.signature, self.params, backend)

    def warmup(self, *args, grid, **kwargs):
        return self.run(*args, grid=grid, warmup=True, **kwargs)

    def run(self, *args, grid, warmup, **kwargs):
        self.runs += 1
        kwargs["debug"] = kwargs.get("debug", self.debug) or knobs.runtime.debug
        kwargs["instrumentation_mode"] = knobs.compilation.instrumentation_mode
        device = driver.active.get_current_device()
        stream = driver.active.get_current_stream(device)
        for hook in self.pre_run_hooks:
            hook(*args, **kwargs)
        kernel_cache, kernel_key_cache, target, backend, binder = self.device_caches[device]
        bound_args, specialization, options = binder(*args, **kwargs)
        key = compute_cache_key(kernel_key_cache, specialization, options)
        kernel = kernel_cache.get(key)
        if kernel is None:
            if knobs.runtime.jit_cache_hook and knobs.runtime.jit_cache_hook(key):
                return None
            signature = {p.name: kind for p, (kind, _) in zip(self.params, specialization)}
            kernel = kernel_cache[key] = self.compile(self.ASTSource(self, signature), target, options)
        for (name, _), (value, scope) in self.used_global_vals.items():
            if scope.get(name) != value:
                raise RuntimeError("Global variable %s has changed since we compiled this kernel" % name)
        if not warmup:
            assert grid is not None
            if callable(grid):
                grid = grid(bound_args)
            x, y, z = (tuple(grid) + (1, 1))[:3]
            launch_metadata = kernel.launch_metadata(grid, stream, *bound_args.values())
            kernel.run(x, y, z, stream, kernel.function, kernel.packed_metadata, launch_metadata,
                       knobs.runtime.launch_enter_hook, knobs.runtime.launch_exit_hook, *bound_args.values())
        return kernel
