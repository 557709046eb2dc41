# SPDX-License-Identifier: Apache-2.0
"""As much of PyTorch as purlin.torch uses: float32 matrices in host memory that call themselves CUDA tensors."""
import contextlib
import ctypes
import types


class dtype:
    itemsize = 4


bfloat16, float16, float32, float64, uint8 = (dtype() for _ in range(5))


class device:
    def __init__(self, index=0):
        self.index = index

    def __eq__(self, other):
        return self.index == other.index

    def __hash__(self):
        return self.index


def _packed(shape):
    strides, step = [], 1
    for extent in reversed(shape):
        strides.insert(0, step)
        step *= extent
    return tuple(strides)


class Tensor:
    is_cuda, dtype, device = True, float32, device(0)

    def __init__(self, memory, shape, strides=None, requires_grad=False):
        self.memory, self.shape = memory, tuple(shape)
        self._strides = strides or _packed(self.shape)
        self.requires_grad, self.made_by, self.grad = requires_grad, None, None

    def data_ptr(self):
        return ctypes.addressof(self.memory)

    def dim(self):
        return len(self.shape)

    def get_device(self):
        return self.device.index

    def new_empty(self, shape):
        return empty(shape)

    def stride(self):
        return self._strides

    def is_contiguous(self):
        return self._strides == _packed(self.shape)

    def numel(self):
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    def at(self, *index):
        return self.memory[sum(i * s for i, s in zip(index, self._strides))]

    def values(self):
        def walk(index):
            if len(index) == len(self.shape):
                return self.at(*index)
            return [walk(index + [i]) for i in range(self.shape[len(index)])]
        return walk([])

    def contiguous(self):
        flat = []

        def walk(index):
            if len(index) == len(self.shape):
                flat.append(self.at(*index))
                return
            for i in range(self.shape[len(index)]):
                walk(index + [i])
        walk([])
        return Tensor(_memory(flat), self.shape)

    def reshape(self, *shape):
        shape = list(shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape)
        if -1 in shape:
            known = 1
            for extent in shape:
                known *= extent if extent != -1 else 1
            shape[shape.index(-1)] = self.numel() // known
        source = self if self.is_contiguous() else self.contiguous()
        return Tensor(source.memory, shape)

    def t(self):
        return self.transpose(0, 1)

    def transpose(self, a, b):
        shape, strides = list(self.shape), list(self._strides)
        shape[a], shape[b] = shape[b], shape[a]
        strides[a], strides[b] = strides[b], strides[a]
        return Tensor(self.memory, shape, tuple(strides))

    def sum(self, axis):
        rows, columns = self.shape
        return tensor([sum(self.at(i, j) for i in range(rows)) for j in range(columns)])


def _memory(flat):
    return (ctypes.c_float * (len(flat) + 4))(*flat)


def tensor(values, requires_grad=False):
    shape, flat = [], values
    while isinstance(flat, list):
        shape.append(len(flat))
        flat = flat[0]

    def flatten(part):
        return [part] if not isinstance(part, list) else [x for p in part for x in flatten(p)]
    return Tensor(_memory(flatten(values)), shape, requires_grad=requires_grad)


def empty(shape, dtype=None, device=None):
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    count = 1
    for extent in shape:
        count *= extent
    if dtype is uint8:
        return _Bytes(count)
    return Tensor((ctypes.c_float * (count + 4))(), shape)


class _Bytes:
    def __init__(self, count):
        self._memory = (ctypes.c_uint8 * count)()

    def data_ptr(self):
        return ctypes.addressof(self._memory)


calls = []  # what torch itself computed
state = {"grad": True, "autocast": None, "device": 0, "tf32": False}


def mm(a, b):
    calls.append("mm")
    rows = [[sum(a.at(i, l) * b.at(l, j) for l in range(a.shape[1])) for j in range(b.shape[1])]
            for i in range(a.shape[0])]
    return tensor(rows)


def matmul(a, b):
    if a.dim() == 2:
        return mm(a, b)
    calls.append("bmm")
    return tensor([[[sum(a.at(z, i, l) * b.at(z, l, j) for l in range(a.shape[2])) for j in range(b.shape[2])]
                    for i in range(a.shape[1])] for z in range(a.shape[0])])


def _linear(x, weight, bias=None):
    calls.append("linear")
    flat = x.reshape(-1, x.shape[-1])
    rows = [[sum(flat.at(i, l) * weight.at(j, l) for l in range(flat.shape[1])) + (bias.at(j) if bias else 0)
             for j in range(weight.shape[0])] for i in range(flat.shape[0])]
    return tensor(rows).reshape(x.shape[:-1] + (weight.shape[0],))


class _Context:
    def save_for_backward(self, *tensors):
        self.saved_tensors = tensors


class _Function:
    @classmethod
    def apply(cls, *arguments):
        context = _Context()
        context.needs_input_grad = [isinstance(a, Tensor) and a.requires_grad for a in arguments]
        out = cls.forward(context, *arguments)
        out.made_by = lambda gradient: cls.backward(context, gradient)
        return out


class _Module:
    def modules(self):
        yield self
        for child in vars(self).values():
            if isinstance(child, _Module):
                yield from child.modules()


class _Linear(_Module):
    def __init__(self, weight, bias=None):
        self.weight, self.bias = weight, bias


def is_grad_enabled():
    return state["grad"]


def is_autocast_enabled():
    return state["autocast"] is not None


def get_autocast_dtype(kind):
    return state["autocast"]


class _Parameter(Tensor):
    def __init__(self, tensor):
        super().__init__(tensor.memory, tensor.shape, requires_grad=True)



autograd = types.SimpleNamespace(Function=_Function)
nn = types.SimpleNamespace(Linear=_Linear, Module=_Module, Parameter=_Parameter, functional=types.SimpleNamespace(linear=_linear))


@contextlib.contextmanager
def _on(index):
    before, state["device"] = state["device"], index
    yield
    state["device"] = before


_C = types.SimpleNamespace(_cuda_getCurrentRawStream=lambda device: 0, _cuda_getDevice=lambda: state["device"],
                           _get_cublas_allow_tf32=lambda: state["tf32"])
cuda = types.SimpleNamespace(device=_on)
