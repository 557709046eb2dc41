# SPDX-License-Identifier: Apache-2.0
"""torch GEMMs with the cuBLASLt algorithms that `purlin tune` found.

    from purlin.torch import linear, matmul, Linear, use_in
    y = linear(x, weight, bias)          # in place of torch.nn.functional.linear
    y = matmul(a, b)                     # in place of torch.matmul, for 2-D (and batched 3-D) operands
    use_in(model)                        # every nn.Linear of a model

A product whose shape has an entry runs with the stored algorithm on torch's current stream. It uses the libcublasLt
that PyTorch has loaded. Torch computes all other products. A missing shape goes to the work list: `purlin backlog`
lists it, and `purlin tune --backlog N` tunes it. Under CUDA-graph capture it works as outside. Products of the
backward pass use tuned algorithms, too, if their shapes have entries.

log() has the choice for each product and shape. With PURLIN_DISABLE=1, read at import and by configure(), torch
computes everything. The preparation of a call happens once for each shape (_Prepared). A call then takes a
dictionary's lookup, one allocation and one call of ctypes.

Thread-safety: as torch's. Failure: torch computes a product that the library refuses, with one warning.
"""
import ctypes
import os
import struct
import threading
import warnings

import torch

from ._cache import Cache
from ._library import OUTCOMES, CublasLtDesc, CublasLtLaunch, Device, PurlinError, check, encoded, library
from ._shadow import Duel, every_of

WORKSPACE_BYTES = 32 << 20
TUNED_ONLY, ELSE_HEURISTIC, HEURISTIC = 0, 1, 2

_NAMES = {torch.bfloat16: b"bf16", torch.float16: b"f16", torch.float32: b"f32", torch.float64: b"f64"}
# Types whose data lies at data_ptr(). A subclass (DTensor, a quantized weight) may differ.
_PLAIN = (torch.Tensor, torch.nn.Parameter)
_MISSES_ASKED, _ASK_EVERY = 64, 16  # with gradients, where a query takes longer than a launch
_MOST_SHAPES = 4096  # limit for a program of ever new shapes: the table is cleared
_fill_in = struct.Struct("@7P").pack_into  # CublasLtLaunch from a to stream
_FIRST_POINTER = CublasLtLaunch.a.offset
_ALGORITHM_BYTES = 64  # sizeof(cublasLtMatmulAlgo_t)

_lock = threading.RLock()
_prepared = {}    # the key of a product's shape -> _Prepared
_products = {}    # (device index, dtype, transposes, batched, compute, epilogue) -> Product or None
_workspaces = {}  # (device index, stream) -> address, of a tensor in _held
_held = []
_log = {}         # (label, extents) -> outcome
_settings = {"cache": None, "stale": False, "policy": None, "shadow": None}
_caches = {}
_warned = set()

# The public functions for these three facts take microseconds.
_stream_of = getattr(torch._C, "_cuda_getCurrentRawStream", None) or (
    lambda device: torch.cuda.current_stream(device).cuda_stream)
_current_device = getattr(torch._C, "_cuda_getDevice", None) or (lambda: torch.cuda.current_device())
_tf32 = getattr(torch._C, "_get_cublas_allow_tf32", None) or (lambda: torch.backends.cuda.matmul.allow_tf32)
_autocast, _grad_enabled = torch.is_autocast_enabled, torch.is_grad_enabled
_autocast_dtype = (lambda: torch.get_autocast_dtype("cuda")) if hasattr(torch, "get_autocast_dtype") else (
    lambda: torch.get_autocast_gpu_dtype())


def _disabled():
    return os.environ.get("PURLIN_DISABLE", "0") not in ("", "0")


_off = _disabled()


def configure(cache=None, allow_stale=False, policy=None, shadow=None):
    """Sets the cache (a directory; None: $PURLIN_CACHE, else the user's), whether entries of another driver may be
    served, "warm" or "cold" measurements, and shadow timing. One product in `shadow` is then timed against torch's
    own (None: $PURLIN_SHADOW, else none). Open products are opened again."""
    global _off
    with _lock:
        _off = _disabled()
        _settings.update(cache=cache, stale=allow_stale, policy=policy, shadow=shadow)
        _prepared.clear()
        _products.clear()
        _caches.clear()
        _log.clear()


def log():
    """A line for each product and shape so far: "cublaslt-nt-bf16-bf16-f32 M=16,N=4096,K=4096: exact"."""
    with _lock:
        return ["%s %s: %s" % (label, ",".join("%s=%d" % pair for pair in zip(("M", "N", "K", "BATCH"), extents)),
                               outcome) for (label, extents), outcome in sorted(_log.items())]


def flush():
    """Writes the requests to the work list (this also happens at exit)."""
    for cache in list(_caches.values()):
        cache.flush()


def reload():
    """Reads the entries that other processes stored."""
    for cache in list(_caches.values()):
        cache.reload()


def library_path():
    """The libcublasLt that this process has loaded, "" for none. With this value in PURLIN_CUBLASLT, `purlin tune`
    tunes the version of PyTorch. `python -m purlin.torch` prints it."""
    try:
        with open("/proc/self/maps") as maps:
            for line in maps:
                if "/libcublasLt.so" in line:
                    return line.split(None, 5)[5].strip()
    except OSError:
        pass
    return ""


class Product:
    """One kind of product on one device."""

    def __init__(self, cache, device, facts, dtype, transpose_a, transpose_b, batched, compute, epilogue,
                 workspace_bytes=WORKSPACE_BYTES, stale=False, policy=None):
        self._cache, self._library = cache, library()
        self._facts = Device(size=ctypes.sizeof(Device), **{
            name: text.encode() for name, text in facts.items() if text})
        self.label = "cublaslt-%s%s-%s-%s-%s%s%s" % (
            "t" if transpose_a else "n", "t" if transpose_b else "n", _NAMES[dtype].decode(), _NAMES[dtype].decode(),
            compute, "-" + epilogue if epilogue else "", "-batched" if batched else "")
        self.device = device
        desc = CublasLtDesc(
            size=ctypes.sizeof(CublasLtDesc), a=_NAMES[dtype], transpose_a=transpose_a, transpose_b=transpose_b,
            batched=batched, compute=compute.encode(), epilogue=encoded(epilogue), workspace_bytes=workspace_bytes,
            device=ctypes.pointer(self._facts), policy=encoded(policy), flags=2 if stale else 0)
        handle = ctypes.c_void_p()
        with torch.cuda.device(device):  # cuBLASLt's handle is of the current device
            check(self._library.purlin_cublaslt_open(cache._handle, ctypes.byref(desc), ctypes.byref(handle)))
        self.handle = ctypes.c_void_p(handle.value)

    def __del__(self):
        if getattr(self, "handle", None):
            self._library.purlin_cublaslt_close(self.handle)
            self.handle = None


class _Prepared:
    """One shape of a product: the common data of its calls."""

    __slots__ = ("_kind", "_handle", "_device", "_extents", "_out_shape", "_array", "_algorithm", "_calls", "_matmul",
                 "_find", "_missed", "outcome", "gradients_served", "duel")

    def __init__(self, kind, extents, out_shape):
        self._kind, self._handle, self._device = kind, kind.handle, kind.device
        self._extents, self._out_shape = extents, out_shape
        self._array = (ctypes.c_int64 * len(extents))(*extents)
        self._algorithm = ctypes.create_string_buffer(_ALGORITHM_BYTES)  # written by any thread, read by none
        self._calls = []  # memory of launches that no thread uses
        self._matmul, self._find = library().purlin_cublaslt_matmul, library().purlin_cublaslt_algo
        self.outcome = None  # of the last call; 0 is a miss
        self._missed, self.gradients_served = 0, False
        every = every_of(_settings["shadow"])
        self.duel = Duel(every) if every else None  # against torch

    def run(self, like, a, b, bias):
        """The product of the operands at these addresses; None if torch is to compute it."""
        device = self._device
        if _current_device() != device:
            with torch.cuda.device(device):
                return self.run(like, a, b, bias)
        stream = _stream_of(device)
        workspace = _workspaces.get((device, stream)) or _new_workspace(device, stream)
        out = like.new_empty(self._out_shape)
        calls = self._calls
        try:
            launch, of_launch, outcome, of_outcome = call = calls.pop()
        except IndexError:
            launch, of_launch, outcome, of_outcome = call = self._new_call()
        _fill_in(launch, _FIRST_POINTER, a, b, bias, out.data_ptr(), workspace, WORKSPACE_BYTES, stream)
        status = self._matmul(self._handle, of_launch, of_outcome)
        found = outcome.value
        calls.append(call)
        if status:
            self._refused(status)
            return None
        if found != self.outcome:
            self._note(found)
        return out if found else None

    def contested(self, served, others):
        """The product by `served`, shadowed by torch's own if its turn has come. Both write new tensors, so a second
        one changes nothing."""
        duel = self.duel
        if not duel.due():
            return served()
        if duel.lost():
            self._demote()
            return others()
        return duel.time(served, others)

    def _demote(self):
        with _lock:
            for key, value in _prepared.items():
                if value is self:
                    _prepared[key] = False
        _log[(self._kind.label, self._extents)] = "demoted"
        _warn("purlin.torch: torch computes %s %s: the tuned algorithm took %.3fx the time on live launches (%d "
              "samples)" % (self._kind.label, self._extents, self.duel.ratio, self.duel.samples))
        self.duel = None

    def known(self, calls=1):
        """Looks for an algorithm while `outcome` is none. Counts this number of misses."""
        for _ in range(calls):
            outcome = self._find(self._handle, self._array, len(self._extents), None, self._algorithm,
                                 _ALGORITHM_BYTES, None)
        if outcome == 0 and self.outcome is None:
            self._note(0)
        return outcome != 0

    def calls_to_ask_for(self):
        """With gradients: the number of calls that the next query counts for; 0 = torch computes without a query. A
        product whose gradients have tuned algorithms is always queried. After many misses it is queried rarely."""
        if self.outcome or self.gradients_served:
            return 1
        self._missed += 1
        if self._missed <= _MISSES_ASKED:
            return 1
        return 0 if self._missed % _ASK_EVERY else _ASK_EVERY

    def _new_call(self):
        launch = CublasLtLaunch(size=ctypes.sizeof(CublasLtLaunch), extents=self._array,
                                extent_count=len(self._extents), fallback=TUNED_ONLY)
        outcome = ctypes.c_int()
        return launch, ctypes.byref(launch), outcome, ctypes.byref(outcome)

    def _note(self, outcome):
        self.outcome = outcome
        key = (self._kind.label, self._extents)
        if len(_log) < _MOST_SHAPES or key in _log:
            _log[key] = OUTCOMES[outcome]

    def _refused(self, status):
        try:
            check(status)
        except PurlinError as problem:
            _warn("purlin.torch: torch computes %s %s: %s" % (self._kind.label, self._extents, problem))


def _cache_for(directory):
    cache = _caches.get(directory)
    if cache is None:
        cache = _caches[directory] = Cache(directory)
    return cache


def product(device, dtype, transpose_a=False, transpose_b=False, batched=False, epilogue=None):
    """The Product for operands on a device; None, with one warning, if it cannot be opened."""
    compute = "f32"
    if dtype == torch.float64:
        compute = "f64"
    elif dtype == torch.float32 and _tf32():
        compute = "tf32"
    key = (device, dtype, transpose_a, transpose_b, batched, compute, epilogue)
    with _lock:
        if key in _products:
            return _products[key]
        made = None
        try:
            cache = _cache_for(_settings["cache"])
            facts = cache.device("cuda:%d" % device)
            made = Product(cache, device, facts, dtype, transpose_a, transpose_b, batched, compute, epilogue,
                           stale=_settings["stale"], policy=_settings["policy"])
        except PurlinError as problem:
            _warn("purlin.torch: torch computes alone: %s" % problem)
        _products[key] = made
        return made


def _prepare(key, device, dtype, extents, out_shape, **kind):
    """Fills `_prepared`; False if torch computes."""
    with _lock:
        made = product(device, dtype, **kind) if all(extents) and dtype in _NAMES else None
        if len(_prepared) >= _MOST_SHAPES:
            _prepared.clear()
        _prepared[key] = made = _Prepared(made, extents, out_shape) if made is not None else False
        return made


def _warn(text):
    if text not in _warned:
        _warned.add(text)
        warnings.warn(text, RuntimeWarning, stacklevel=3)


def _new_workspace(device, stream):
    # One for each stream: products on different streams run at once.
    with _lock:
        tensor = torch.empty(WORKSPACE_BYTES, dtype=torch.uint8, device="cuda:%d" % device)
        _held.append(tensor)
        _workspaces[(device, stream)] = tensor.data_ptr()
        return tensor.data_ptr()


def _alike(first, other, dtype):
    """Whether the library accepts this second operand together with the first."""
    return type(other) in _PLAIN and other.dtype is dtype and other.get_device() == first.get_device()


def _mm(a, b, transpose_a=False, calls=1):
    """a @ b (or the transpose of a, @ b) of two matrices by a tuned algorithm; None without one."""
    dtype, device = a.dtype, a.get_device()
    key = (a.shape, b.shape, a.stride(), b.stride(), dtype, device, transpose_a, dtype is torch.float32 and _tf32())
    known = _prepared.get(key)
    if known is None:
        (m, k), n = (a.shape[::-1] if transpose_a else a.shape), b.shape[1]
        (a_turned, a_ok), (b_turned, b_ok) = _as_stored(a), _as_stored(b)
        if not a_ok or not b_ok:
            _prepared[key] = False
            return None
        known = _prepare(key, device, dtype, (m, n, k), (m, n), transpose_a=a_turned != transpose_a,
                         transpose_b=b_turned)
    return _run(known, a, b, calls, transpose_a)


def _run(prepared, a, b, calls=1, transpose_a=False):
    # Without an entry no output is allocated.
    if not prepared or not (prepared.outcome or prepared.known(calls)):
        return None
    at, bt = a.data_ptr(), b.data_ptr()
    if (at | bt) & 15:
        return None
    if prepared.duel is None:
        return prepared.run(a, at, bt, 0)
    return prepared.contested(lambda: prepared.run(a, at, bt, 0),
                              lambda: torch.matmul(a.t() if transpose_a else a, b))


def _as_stored(matrix):
    """(transposed, ok): a packed matrix, or the transpose of one."""
    rows, columns = matrix.shape
    if matrix.is_contiguous():
        return False, True
    if matrix.stride() == (1, rows):
        return True, True
    return False, False


class _LinearFunction(torch.autograd.Function):
    @staticmethod
    def forward(context, x, weight, bias, prepared, calls):
        context.save_for_backward(x, weight)
        context.has_bias, context.prepared, context.calls = bias is not None, prepared, calls
        return _linear(x, weight, bias, prepared, calls)

    @staticmethod
    def backward(context, gradient):
        x, weight = context.saved_tensors
        of_x = of_weight = of_bias = None
        prepared, calls = context.prepared, context.calls
        differentiable = torch.is_grad_enabled()  # gradients of gradients are wanted
        flat = gradient if gradient.dim() == 2 else gradient.reshape(-1, gradient.shape[-1])
        if context.needs_input_grad[0]:
            of_x = None if differentiable else _mm(flat, weight, calls=calls)
            prepared.gradients_served |= of_x is not None
            if of_x is None:
                of_x = matmul(flat, weight) if differentiable else torch.mm(flat, weight)
            if x.dim() != 2:
                of_x = of_x.reshape(x.shape)
        if context.needs_input_grad[1]:
            inputs = x if x.dim() == 2 else x.reshape(-1, x.shape[-1])
            of_weight = None if differentiable else _mm(flat, inputs, transpose_a=True, calls=calls)
            prepared.gradients_served |= of_weight is not None
            if of_weight is None:
                of_weight = matmul(flat.t(), inputs) if differentiable else torch.mm(flat.t(), inputs)
        if context.has_bias and context.needs_input_grad[2]:
            of_bias = flat.sum(0)
        return of_x, of_weight, of_bias, None, None


def _direct(function):
    """function.apply without its Python code for functorch, unless a transform of functorch is active."""
    active = getattr(torch._C, "_are_functorch_transforms_active", None)
    plain = getattr(super(torch.autograd.Function, function), "apply", None)
    if active is None or plain is None:
        return function.apply
    return lambda *operands: function.apply(*operands) if active() else plain(*operands)


_apply_linear = _direct(_LinearFunction)


def _prepared_linear(x, weight, bias):
    """The _Prepared for a linear of these operands; False if torch computes it."""
    dtype, device, shape, weights = x.dtype, x.get_device(), x.shape, weight.shape
    key = (shape, weights, dtype, device, bias is None, dtype is torch.float32 and _tf32())
    known = _prepared.get(key)
    if known is None:
        n, k = weights
        if k and shape[-1] == k and (bias is None or bias.shape == (n,)):
            known = _prepare(key, device, dtype, (x.numel() // k, n, k), tuple(shape[:-1]) + (n,), transpose_b=True,
                             epilogue=None if bias is None else "bias")
    return known


def _linear(x, weight, bias, known, calls=1):
    if known and (known.outcome or known.known(calls)) and x.is_contiguous() and weight.is_contiguous():
        at, bt, extra = x.data_ptr(), weight.data_ptr(), 0
        if bias is not None:
            extra = bias.data_ptr() if bias.is_contiguous() and bias.numel() == weight.shape[0] else 1
        if not (at | bt | extra) & 15:
            if known.duel is None:
                out = known.run(x, at, bt, extra)
            else:
                out = known.contested(lambda: known.run(x, at, bt, extra),
                                      lambda: torch.nn.functional.linear(x, weight, bias))
            if out is not None:
                return out
    return torch.nn.functional.linear(x, weight, bias)


def linear(x, weight, bias=None):
    """torch.nn.functional.linear, by the tuned algorithm of its shape if there is one."""
    dtype = x.dtype
    if (_off or not x.is_cuda or type(x) not in _PLAIN or weight.dim() != 2
            or type(weight) not in _PLAIN or weight.dtype is not dtype or weight.get_device() != x.get_device()
            or (bias is not None and (not _alike(x, bias, dtype) or bias.dim() != 1))
            or (_autocast() and dtype is not _autocast_dtype())):  # autocast would compute in another type
        return torch.nn.functional.linear(x, weight, bias)
    known = _prepared_linear(x, weight, bias)
    if _grad_enabled() and (x.requires_grad or weight.requires_grad or
                            (bias is not None and bias.requires_grad)):
        calls = known.calls_to_ask_for() if known else 0
        return _apply_linear(x, weight, bias, known, calls) if calls else torch.nn.functional.linear(x, weight, bias)
    return _linear(x, weight, bias, known)


class _MatmulFunction(torch.autograd.Function):
    @staticmethod
    def forward(context, a, b):
        context.save_for_backward(a, b)
        return _matmul(a, b)

    @staticmethod
    def backward(context, gradient):
        a, b = context.saved_tensors
        times = matmul if torch.is_grad_enabled() else _matmul
        of_a = times(gradient, b.transpose(-1, -2)) if context.needs_input_grad[0] else None
        of_b = times(a.transpose(-1, -2), gradient) if context.needs_input_grad[1] else None
        return of_a, of_b


_apply_matmul = _direct(_MatmulFunction)


def _matmul(a, b):
    out = _mm(a, b) if a.dim() == 2 else _bmm(a, b)
    return torch.matmul(a, b) if out is None else out


def _bmm(a, b):
    if not a.is_contiguous() or not b.is_contiguous():
        return None
    dtype, device = a.dtype, a.get_device()
    key = (a.shape, b.shape, dtype, device, dtype is torch.float32 and _tf32())
    known = _prepared.get(key)
    if known is None:
        (batch, m, k), n = a.shape, b.shape[2]
        known = _prepare(key, device, dtype, (m, n, k, batch), (batch, m, n), batched=True)
    return _run(known, a, b)


def matmul(a, b):
    """torch.matmul for two matrices, or two equal batches of matrices; else torch's own."""
    dimensions, dtype = a.dim(), a.dtype
    if (_off or not a.is_cuda or type(a) not in _PLAIN or not _alike(a, b, dtype) or not 2 <= dimensions <= 3
            or b.dim() != dimensions or a.shape[-1] != b.shape[-2]
            or (dimensions == 3 and a.shape[0] != b.shape[0]) or (_autocast() and dtype is not _autocast_dtype())):
        return torch.matmul(a, b)
    if _grad_enabled() and (a.requires_grad or b.requires_grad):
        return _apply_matmul(a, b)
    return _matmul(a, b)


class Linear(torch.nn.Linear):
    """nn.Linear through linear()."""

    def forward(self, x):
        return linear(x, self.weight, self.bias)


def use_in(model):
    """Makes every nn.Linear of a model, and no subclass of it, a Linear. Returns how many."""
    count = 0
    for module in model.modules():
        if type(module) is torch.nn.Linear:
            module.__class__ = Linear
            count += 1
    return count


if __name__ == "__main__":
    if torch.cuda.is_available():
        one = torch.ones(16, 16, device="cuda", dtype=torch.bfloat16)
        torch.mm(one, one)
    print(library_path())
