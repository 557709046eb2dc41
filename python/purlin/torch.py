# SPDX-License-Identifier: Apache-2.0
"""torch GEMMs with the cuBLASLt algorithms that `purlin tune` found.

    from purlin.torch import linear, matmul, Linear, use_in
    y = linear(x, weight, bias)          # in place of torch.nn.functional.linear
    y = matmul(a, b)                     # in place of torch.matmul, for 2-D (and batched 3-D) operands
    use_in(model)                        # every nn.Linear of a model

A product of a shape that has an entry runs through libcublasLt, the one PyTorch has loaded, with the stored
algorithm, on torch's current stream; whatever else, torch computes. What was missing goes to the work list, so that
`purlin backlog` lists it and `purlin tune --backlog N` tunes it. Under CUDA-graph capture it works as outside.
Gradients: the products of the backward pass take tuned algorithms too where there are entries for their shapes.

log() says for each product and shape what was chosen. PURLIN_DISABLE=1 makes all of it plain torch.
Thread-safety: as torch's. Failure: a product the library refuses is torch's to compute, and said once as a warning.
"""
import ctypes
import os
import threading
import warnings

import torch

from ._cache import Cache
from ._library import OUTCOMES, CublasLtDesc, CublasLtLaunch, Device, PurlinError, check, encoded, library

WORKSPACE_BYTES = 32 << 20
TUNED_ONLY, ELSE_HEURISTIC, HEURISTIC = 0, 1, 2

_NAMES = {torch.bfloat16: b"bf16", torch.float16: b"f16", torch.float32: b"f32", torch.float64: b"f64"}
_lock = threading.RLock()
_products = {}    # (device index, dtype, transposes, batched, compute, epilogue) -> Product, or None where there is none
_workspaces = {}  # (device index, stream) -> tensor
_log = {}         # (label, extents) -> outcome
_settings = {"cache": None, "stale": False, "policy": None}
_caches = {}
_warned = set()


def configure(cache=None, allow_stale=False, policy=None):
    """Which cache to use (a directory; None: $PURLIN_CACHE, else the user's), whether entries of another driver may
    be served, and whether "warm" or "cold" measurements are wanted. Products opened before are opened anew."""
    with _lock:
        _settings.update(cache=cache, stale=allow_stale, policy=policy)
        _products.clear()
        _caches.clear()
        _log.clear()


def log():
    """A line for each product and shape so far: "cublaslt-nt-bf16-bf16-f32 M=16,N=4096,K=4096: exact"."""
    with _lock:
        return ["%s %s: %s" % (label, ",".join("%s=%d" % pair for pair in zip(("M", "N", "K", "BATCH"), extents)),
                               outcome) for (label, extents), outcome in sorted(_log.items())]


def flush():
    """Writes what was asked for to the work list (it happens by itself at exit)."""
    for cache in list(_caches.values()):
        cache.flush()


def reload():
    """Takes in what other processes tuned since."""
    for cache in list(_caches.values()):
        cache.reload()


def library_path():
    """The libcublasLt that this process has loaded, "" for none: what PURLIN_CUBLASLT should be for `purlin tune`, so
    that it tunes the version PyTorch brings. Run as a module, it is printed: python -m purlin.torch"""
    try:
        with open("/proc/self/maps") as maps:
            for line in maps:
                if "/libcublasLt.so" in line:
                    return line.split(None, 5)[5].strip()
    except OSError:
        pass
    return ""


def disabled():
    return os.environ.get("PURLIN_DISABLE", "0") not in ("", "0")


class Product:
    """One kind of product on one device; __call__ launches, and says whether a tuned algorithm was launched."""

    def __init__(self, cache, device, facts, dtype, transpose_a, transpose_b, batched, compute, epilogue,
                 workspace_bytes=WORKSPACE_BYTES, stale=False, policy=None):
        self._cache, self._library = cache, library()
        self._facts = Device(size=ctypes.sizeof(Device), **{
            name: text.encode() for name, text in facts.items() if text})
        self.label = "cublaslt-%s%s-%s-%s-%s%s%s" % (
            "t" if transpose_a else "n", "t" if transpose_b else "n", _NAMES[dtype].decode(), _NAMES[dtype].decode(),
            compute, "-" + epilogue if epilogue else "", "-batched" if batched else "")
        self._workspace_bytes = workspace_bytes
        desc = CublasLtDesc(
            size=ctypes.sizeof(CublasLtDesc), a=_NAMES[dtype], transpose_a=transpose_a, transpose_b=transpose_b,
            batched=batched, compute=compute.encode(), epilogue=encoded(epilogue), workspace_bytes=workspace_bytes,
            device=ctypes.pointer(self._facts), policy=encoded(policy), flags=2 if stale else 0)
        handle = ctypes.c_void_p()
        with torch.cuda.device(device):  # cuBLASLt's handle is of the current device
            check(self._library.purlin_cublaslt_open(cache._handle, ctypes.byref(desc), ctypes.byref(handle)))
        self._handle = handle.value
        self._local = threading.local()

    def __call__(self, extents, a, b, bias, d, stream, workspace, fallback=TUNED_ONLY):
        launch = getattr(self._local, "launch", None)
        if launch is None:
            array = (ctypes.c_int64 * 4)()
            launch = CublasLtLaunch(size=ctypes.sizeof(CublasLtLaunch), extents=array)
            self._local.launch, self._local.array = launch, array
            self._local.outcome = ctypes.c_int()
        self._local.array[:len(extents)] = extents
        launch.extent_count = len(extents)
        launch.a, launch.b, launch.bias, launch.d = a, b, bias, d
        launch.workspace, launch.workspace_bytes = workspace, self._workspace_bytes
        launch.stream, launch.fallback = stream, fallback
        check(self._library.purlin_cublaslt_matmul(self._handle, ctypes.byref(launch),
                                                   ctypes.byref(self._local.outcome)))
        outcome = OUTCOMES[self._local.outcome.value]
        key = (self.label, extents)
        if _log.get(key) != outcome and fallback != HEURISTIC and len(_log) < 4096:
            _log[key] = outcome
        return outcome != "miss"

    def __del__(self):
        if getattr(self, "_handle", None):
            self._library.purlin_cublaslt_close(self._handle)
            self._handle = None


def _cache_for(directory):
    cache = _caches.get(directory)
    if cache is None:
        cache = _caches[directory] = Cache(directory)
    return cache


def product(device, dtype, transpose_a=False, transpose_b=False, batched=False, epilogue=None):
    """The Product for operands on a device; None where it cannot be had, which is said once."""
    compute = "f32"
    if dtype == torch.float64:
        compute = "f64"
    elif dtype == torch.float32 and torch.backends.cuda.matmul.allow_tf32:
        compute = "tf32"
    key = (device, dtype, transpose_a, transpose_b, batched, compute, epilogue)
    found = _products.get(key, _products)
    if found is not _products:
        return found
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


def _warn(text):
    if text not in _warned:
        _warned.add(text)
        warnings.warn(text, RuntimeWarning, stacklevel=3)


def _workspace(device, stream):
    # One for each stream: products on different streams run at once.
    tensor = _workspaces.get((device, stream))
    if tensor is None:
        with _lock:
            tensor = torch.empty(WORKSPACE_BYTES, dtype=torch.uint8, device="cuda:%d" % device)
            _workspaces[(device, stream)] = tensor
    return tensor


def _launch(kind, extents, a, b, bias, out):
    """Whether `out` was computed by a tuned algorithm."""
    stream = torch.cuda.current_stream(out.device).cuda_stream
    try:
        return kind(extents, a.data_ptr(), b.data_ptr(), bias.data_ptr() if bias is not None else None,
                    out.data_ptr(), stream, _workspace(out.device.index, stream).data_ptr())
    except PurlinError as problem:
        _warn("purlin.torch: torch computes %s %s: %s" % (kind.label, extents, problem))
        return False


def _fits(*tensors):
    return all(t.data_ptr() % 16 == 0 for t in tensors if t is not None)


def _as_stored(matrix):
    """(transposed, ok): a packed matrix, or the transpose of one."""
    rows, columns = matrix.shape
    if matrix.is_contiguous():
        return False, True
    if matrix.stride() == (1, rows):
        return True, True
    return False, False


def _mm(a, b):
    """a @ b of two matrices by a tuned algorithm; None where there is none."""
    (m, k), n = a.shape, b.shape[1]
    if not m or not n or not k:
        return None
    (ta, a_ok), (tb, b_ok) = _as_stored(a), _as_stored(b)
    if not a_ok or not b_ok or not _fits(a, b):
        return None
    kind = product(a.device.index, a.dtype, ta, tb)
    if kind is None:
        return None
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    return out if _launch(kind, (m, n, k), a, b, None, out) else None


def _usable(*tensors):
    first = tensors[0]
    return (not disabled() and first.is_cuda and first.dtype in _NAMES
            and all(t is None or (t.dtype == first.dtype and t.device == first.device) for t in tensors))


class _LinearFunction(torch.autograd.Function):
    @staticmethod
    def forward(context, x, weight, bias):
        context.save_for_backward(x, weight)
        context.has_bias = bias is not None
        return _linear(x, weight, bias)

    @staticmethod
    def backward(context, gradient):
        x, weight = context.saved_tensors
        of_x = of_weight = of_bias = None
        flat = gradient.reshape(-1, gradient.shape[-1])
        if context.needs_input_grad[0]:
            of_x = _mm(flat, weight)
            of_x = (torch.mm(flat, weight) if of_x is None else of_x).reshape(x.shape)
        if context.needs_input_grad[1]:
            inputs = x.reshape(-1, x.shape[-1])
            of_weight = _mm(flat.t(), inputs)
            if of_weight is None:
                of_weight = torch.mm(flat.t(), inputs)
        if context.has_bias and context.needs_input_grad[2]:
            of_bias = flat.sum(0)
        return of_x, of_weight, of_bias


def _linear(x, weight, bias):
    n, k = weight.shape
    flat = x.reshape(-1, k)
    if flat.is_contiguous() and weight.is_contiguous() and flat.shape[0] and _fits(flat, weight, bias):
        kind = product(x.device.index, x.dtype, False, True, epilogue="bias" if bias is not None else None)
        if kind is not None:
            out = torch.empty(x.shape[:-1] + (n,), dtype=x.dtype, device=x.device)
            if _launch(kind, (flat.shape[0], n, k), flat, weight, bias, out):
                return out
    return torch.nn.functional.linear(x, weight, bias)


def linear(x, weight, bias=None):
    """torch.nn.functional.linear, by the tuned algorithm of its shape where there is one."""
    if not _usable(x, weight, bias) or weight.dim() != 2 or (bias is not None and bias.dim() != 1):
        return torch.nn.functional.linear(x, weight, bias)
    if torch.is_grad_enabled() and (x.requires_grad or weight.requires_grad or
                                    (bias is not None and bias.requires_grad)):
        return _LinearFunction.apply(x, weight, bias)
    return _linear(x, weight, bias)


class _MatmulFunction(torch.autograd.Function):
    @staticmethod
    def forward(context, a, b):
        context.save_for_backward(a, b)
        return _matmul(a, b)

    @staticmethod
    def backward(context, gradient):
        a, b = context.saved_tensors
        of_a = _matmul(gradient, b.transpose(-1, -2)) if context.needs_input_grad[0] else None
        of_b = _matmul(a.transpose(-1, -2), gradient) if context.needs_input_grad[1] else None
        return of_a, of_b


def _matmul(a, b):
    if a.dim() == 2 and b.dim() == 2:
        out = _mm(a, b)
        return torch.matmul(a, b) if out is None else out
    if a.is_contiguous() and b.is_contiguous() and a.numel() and b.numel() and _fits(a, b):
        batch, m, k = a.shape
        n = b.shape[2]
        kind = product(a.device.index, a.dtype, batched=True)
        if kind is not None:
            out = torch.empty((batch, m, n), dtype=a.dtype, device=a.device)
            if _launch(kind, (m, n, k, batch), a, b, None, out):
                return out
    return torch.matmul(a, b)


def matmul(a, b):
    """torch.matmul for two matrices, or two equal batches of matrices; else torch's own."""
    alike = a.dim() == b.dim() and (a.dim() == 2 or (a.dim() == 3 and a.shape[0] == b.shape[0]))
    if not alike or a.shape[-1] != b.shape[-2] or not _usable(a, b):
        return torch.matmul(a, b)
    if torch.is_grad_enabled() and (a.requires_grad or b.requires_grad):
        return _MatmulFunction.apply(a, b)
    return _matmul(a, b)


class Linear(torch.nn.Linear):
    """nn.Linear through linear()."""

    def forward(self, x):
        return linear(x, self.weight, self.bias)


def use_in(model):
    """Makes every nn.Linear of a model, and only that very class, a Linear. Returns how many."""
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
