# SPDX-License-Identifier: Apache-2.0
"""As much of PyTorch as purlin.triton_autotune uses, over lists, with a simulated clock."""
import contextlib
import itertools
import math
import weakref


class dtype:
    def __init__(self, name, floating, size):
        self.name, self.floating, self.size = name, floating, size

    def __repr__(self):
        return "torch." + self.name


float64, float32 = dtype("float64", True, 8), dtype("float32", True, 4)
float16, bfloat16 = dtype("float16", True, 2), dtype("bfloat16", True, 2)
int32, uint8, boolean = dtype("int32", False, 4), dtype("uint8", False, 1), dtype("bool", False, 1)


channels_last = "channels_last"


class device:
    def __init__(self, index=0):
        self.index = index

    def __hash__(self):
        return self.index

    def __eq__(self, other):
        return self.index == other.index


_blocks = itertools.count(1)
_addresses = weakref.WeakValueDictionary()


def at_address(address):
    """The tensor that begins there."""
    return _addresses[address]


class Tensor:
    is_cuda = True

    def __init__(self, values, dtype=float32, on=0, offset=0):
        self.values, self.dtype, self.device = list(values), dtype, device(on)
        self._address = (next(_blocks) << 20) + offset  # `offset` bytes behind an aligned address
        _addresses[self._address] = self

    def data_ptr(self):
        return self._address

    def clone(self):
        return Tensor(self.values, self.dtype)

    def copy_(self, other):
        self.values[:] = other.values

    def fill_(self, value):
        self.values[:] = [value] * len(self.values)

    def zero_(self):
        self.fill_(0)

    def numel(self):
        return len(self.values)

    def element_size(self):
        return self.dtype.size

    def is_floating_point(self):
        return self.dtype.floating

    transposed = False  # as x.t() of a matrix

    def is_contiguous(self, memory_format=None):
        return not self.transposed

    def dim(self):
        return 2

    def transpose(self, *_):
        other = Tensor(self.values, self.dtype)
        other.transposed = not self.transposed
        return other

    def view(self, _):
        return self

    def to(self, wanted):
        return Tensor(self.values, wanted)

    def _zip(self, other, operation, result=boolean):
        right = other.values if isinstance(other, Tensor) else [other] * len(self.values)
        return Tensor([operation(a, b) for a, b in zip(self.values, right)], result)

    def __ne__(self, other):
        return self._zip(other, lambda a, b: a != b)

    def __eq__(self, other):
        return self._zip(other, lambda a, b: a == b)

    def __le__(self, other):
        return self._zip(other, lambda a, b: a <= b)

    def __or__(self, other):
        return self._zip(other, lambda a, b: a or b)

    def __sub__(self, other):
        return self._zip(other, lambda a, b: a - b, self.dtype)

    def __add__(self, other):
        return self._zip(other, lambda a, b: a + b, self.dtype)

    def __mul__(self, other):
        return self._zip(other, lambda a, b: a * b, self.dtype)

    __rmul__ = __mul__

    def abs(self):
        return Tensor([abs(v) for v in self.values], self.dtype)

    def max(self):
        return max(self.values)

    def all(self):
        return all(self.values)

    __hash__ = object.__hash__


class nn:
    class Parameter(Tensor):
        pass


def equal(a, b):
    return a.values == b.values


def isnan(a):
    return Tensor([math.isnan(v) for v in a.values], boolean)


def nan_to_num(a, posinf=None, neginf=None):
    return Tensor([0.0 if math.isnan(v) else v for v in a.values], a.dtype)


class cuda:
    now_ms = 0.0
    capturing = False

    class Event:
        def __init__(self, enable_timing):
            assert enable_timing

        def record(self):
            self.at = cuda.now_ms

        def synchronize(self):
            pass

        def query(self):
            return True

        def elapsed_time(self, other):
            return other.at - self.at

    @staticmethod
    def synchronize():
        pass

    @staticmethod
    def mem_get_info():
        return 1 << 30, 1 << 30

    @staticmethod
    def is_current_stream_capturing():
        return cuda.capturing

    current, stream = 0, 0

    @staticmethod
    def current_device():
        return cuda.current

    @staticmethod
    def raw_stream(index):
        return 1000 * index + cuda.stream

    @staticmethod
    def device(index):
        return contextlib.nullcontext(index)

    devices = 2

    @staticmethod
    def device_count():
        return cuda.devices


def is_tensor(value):
    return isinstance(value, Tensor)
