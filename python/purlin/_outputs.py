# SPDX-License-Identifier: Apache-2.0
"""The outputs of a kernel's configs, compared with those of the first config on the same tensors.

Belongs to one tuning or one shadowed launch. Failure: none; `able` is false if the copies would not fit.
"""
import torch

# The check copies the tensors. If the copies exceed this, it is left out.
VERIFY_BYTES = 4 << 30
TOLERANCE = {torch.float64: 1e-8, torch.float32: 1e-3, torch.float16: 1e-2, torch.bfloat16: 4e-2}
TOLERANCE.update((getattr(torch, name), 0.13) for name in (
    "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz") if hasattr(torch, name))


class Outputs:
    """Compares the outputs of configs. The first config that runs is the reference.

    A tensor that it leaves unchanged is an input. A tensor whose result does not depend on its old
    contents is an output. It is poisoned before every run, which finds a config that writes only a
    part of it. The other tensors are changed in place, and are restored before every run.
    """

    def __init__(self, values, tolerance):
        self.tensors = [v for v in values if isinstance(v, torch.Tensor) and v.is_cuda]
        self.tolerance = tolerance
        size = sum(t.numel() * t.element_size() for t in self.tensors)
        free = torch.cuda.mem_get_info()[0] if self.tensors else 0
        self.able = bool(self.tensors) and 3 * size <= min(free // 2, VERIFY_BYTES)
        self.compared = False
        self.original = [t.clone() for t in self.tensors] if self.able else []
        self.expected = None
        self.written, self.pure = [], []

    def idempotent(self, launch):
        """Whether launching again gives the same outputs: no tensor is changed in place. The tensors
        are restored."""
        if not self.able:
            return False
        self.check(launch)
        self.restore()
        return len(self.pure) == len(self.written)

    def restore(self):
        for tensor, original in zip(self.tensors, self.original):
            tensor.copy_(original)

    def _prepare(self):
        for i in self.written:
            if i in self.pure:
                _poison(self.tensors[i])
            else:
                self.tensors[i].copy_(self.original[i])

    def check(self, launch):
        if not self.able:
            launch()
            torch.cuda.synchronize()
            return None
        if self.expected is None:
            self.restore()
            launch()
            torch.cuda.synchronize()
            self.written = [i for i, t in enumerate(self.tensors)
                            if not _same(t, self.original[i], 0.0)]
            self.written += [i for i in range(len(self.tensors))
                             if i not in self.written and self._is_written_unchanged(i, launch)]
            self.restore()
            launch()
            torch.cuda.synchronize()
            self.expected = {i: self.tensors[i].clone() for i in self.written}
            self._find_pure(launch)
            return None
        self._prepare()
        launch()
        torch.cuda.synchronize()
        for i in self.written:
            tensor = self.tensors[i]
            tolerance = self.tolerance if self.tolerance is not None else TOLERANCE.get(tensor.dtype, 0.0)
            if not _same(tensor, self.expected[i], tolerance):
                return "its output differs from the first config's" + _tolerance_text(tensor, self.expected[i])
        # A kernel that writes none of its arguments (through a table of addresses) was not compared, and neither
        # was one of which the first config makes NaN alone.
        self.compared = any(not _is_all_nan(self.expected[i]) for i in self.written)
        return None

    def _is_written_unchanged(self, i, launch):
        """Whether an output had its contents before, from an earlier launch. Integers may be places to read from,
        so they are not poisoned."""
        tensor = self.tensors[i]
        if not tensor.is_floating_point():
            return False
        self.restore()
        _poison(tensor)
        launch()
        torch.cuda.synchronize()
        return not bool((tensor != tensor).all())

    def _find_pure(self, launch):
        for i in self.written:
            self.restore()
            _poison(self.tensors[i])
            launch()
            torch.cuda.synchronize()
            if _same(self.tensors[i], self.expected[i], 0.0):
                self.pure.append(i)


def _poison(tensor):
    if tensor.is_floating_point():
        tensor.fill_(float("nan"))
    else:
        tensor.view(torch.uint8).fill_(0xA5) if tensor.is_contiguous() else tensor.fill_(0)


def _is_all_nan(tensor):
    return bool((tensor != tensor).all())


def _tolerance_text(actual, expected):
    """Names the tolerance where it may be what is wrong: the difference is small everywhere."""
    if not actual.is_floating_point():
        return ""
    a, b = actual.to(torch.float32), expected.to(torch.float32)
    scale, largest = float(b.abs().max()), float((a - b).abs().max())
    if not 0 < largest < 0.1 * scale:  # nor with a NaN
        return ""
    return ", by at most %.2g of its largest element: tolerance=%.1g would accept it" % (
        largest / scale, 20 * largest / scale)


def _same(actual, expected, tolerance):
    if actual.is_floating_point() and actual.element_size() == 1:
        # PyTorch compares no float8.
        actual, expected = actual.to(torch.float32), expected.to(torch.float32)
    if not actual.is_floating_point() or tolerance == 0.0:
        return bool(torch.equal(torch.nan_to_num(actual), torch.nan_to_num(expected))
                    and torch.equal(actual != actual, expected != expected))
    # The scale is that of the whole output: an element of terms that cancel is as exact as the terms.
    wide = torch.float64 if actual.dtype == torch.float64 else torch.float32
    a, b = actual.to(wide), expected.to(wide)
    if not torch.equal(torch.isnan(a), torch.isnan(b)):
        return False
    scale = torch.nan_to_num(b, posinf=0.0, neginf=0.0).abs().max()
    limit = tolerance * (torch.nan_to_num(b).abs() + 0.1 * scale)
    near = (a - b).abs() <= limit
    return bool((near | (a == b) | torch.isnan(a)).all())
