#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""runtime_cuda.py LIBPURLIN SPEC: the dispatcher through the C ABI on CUDA device 0, with nothing but ctypes.

Checks products bit by bit against integers, a captured graph, and shadowed launches; prints as JSON what a
dispatch takes beside cuLaunchKernel's share of it."""
import ctypes as c
import json
import sys
import time

cuda = c.CDLL("libcuda.so.1")
purlin = c.CDLL(sys.argv[1])
purlin.purlin_last_error.restype = c.c_char_p
for name in ("purlin_dispatch", "purlin_dispatcher_close", "purlin_cache_close"):  # pointers, not ints
    getattr(purlin, name).argtypes = [c.c_void_p] * (2 if name == "purlin_dispatch" else 1)


class Desc(c.Structure):
    _fields_ = [("size", c.c_size_t), ("spec", c.c_char_p), ("spec_text", c.c_char_p), ("sources", c.c_void_p),
                ("source_count", c.c_size_t), ("backend", c.c_char_p), ("context", c.c_void_p), ("device", c.c_void_p),
                ("binaries", c.c_char_p), ("policy", c.c_char_p), ("flags", c.c_uint), ("shadow_interval", c.c_uint)]


class Launch(c.Structure):
    _fields_ = [("size", c.c_size_t), ("extents", c.POINTER(c.c_int64)), ("extent_count", c.c_size_t),
                ("arguments", c.POINTER(c.c_void_p)), ("argument_count", c.c_size_t), ("queue", c.c_void_p),
                ("wait_list", c.c_void_p), ("wait_count", c.c_size_t), ("event", c.c_void_p)]


class Choice(c.Structure):
    _fields_ = [("size", c.c_size_t), ("outcome", c.c_int), ("demoted", c.c_int), ("entry", c.c_char_p),
                ("options", c.c_char_p), ("reason", c.c_char_p), ("grid", c.c_uint * 3), ("block", c.c_uint * 3),
                ("shadow_samples", c.c_uint64), ("shadow_ratio", c.c_double)]


def driver(code, what):
    assert code == 0, f"{what}: CUDA error {code}"


def ok(status, what):
    assert status == 0, f"{what}: {purlin.purlin_last_error().decode()}"


def shape_of(*extents):
    return (c.c_int64 * len(extents))(*extents)


class Gemm:
    """One product: its buffers, its arguments, what must come out."""

    def __init__(self, m, n, k, stream):
        self.extents, self.count = shape_of(m, n, k), m * n
        a = [(i * 7 + 3) % 5 - 2 for i in range(m * k)]
        b = [(i * 11 + 1) % 7 - 3 for i in range(k * n)]
        self.expected = [float(sum(a[r * k + l] * b[l * n + s] for l in range(k))) for r in range(m) for s in range(n)]
        self.buffers = [self.upload(a), self.upload(b), self.upload([0.0] * self.count)]
        self.scalars = [c.c_int32(m), c.c_int32(n), c.c_int32(k)]
        self.arguments = (c.c_void_p * 6)(*[c.cast(c.byref(x), c.c_void_p) for x in self.buffers + self.scalars])
        self.launch = Launch(c.sizeof(Launch), self.extents, 3, self.arguments, 6, stream, None, 0, None)
        # The stream does not wait for the default one, on which copies and fills are made.
        driver(cuda.cuCtxSynchronize(), "the copies")

    @staticmethod
    def upload(values):
        data, address = (c.c_float * len(values))(*values), c.c_uint64()
        driver(cuda.cuMemAlloc_v2(c.byref(address), c.c_size_t(c.sizeof(data))), "cuMemAlloc")
        driver(cuda.cuMemcpyHtoD_v2(address, data, c.c_size_t(c.sizeof(data))), "cuMemcpyHtoD")
        return address

    def clear(self):
        driver(cuda.cuMemsetD8_v2(self.buffers[2], c.c_ubyte(0), c.c_size_t(4 * self.count)), "cuMemsetD8")
        driver(cuda.cuCtxSynchronize(), "cuMemsetD8")

    def check(self, what):
        driver(cuda.cuCtxSynchronize(), what)
        out = (c.c_float * self.count)()
        driver(cuda.cuMemcpyDtoH_v2(out, self.buffers[2], c.c_size_t(c.sizeof(out))), "cuMemcpyDtoH")
        assert list(out) == self.expected, f"{what}: a wrong product"


def open_dispatcher(cache, shadow=0):
    desc, dispatcher = Desc(c.sizeof(Desc)), c.c_void_p()
    desc.spec, desc.backend, desc.shadow_interval = sys.argv[2].encode(), b"cuda", shadow
    ok(purlin.purlin_dispatcher_open(cache, c.byref(desc), c.byref(dispatcher)), "purlin_dispatcher_open")
    return dispatcher


def choice(dispatcher, gemm):
    found = Choice(c.sizeof(Choice))
    ok(purlin.purlin_dispatcher_choice(dispatcher, gemm.extents, c.c_size_t(3), c.byref(found)), "choice")
    return found


def main():
    context, stream, cache = c.c_void_p(), c.c_void_p(), c.c_void_p()
    driver(cuda.cuInit(0), "cuInit")
    driver(cuda.cuDevicePrimaryCtxRetain(c.byref(context), 0), "cuDevicePrimaryCtxRetain")
    driver(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent")
    driver(cuda.cuStreamCreate(c.byref(stream), 1), "cuStreamCreate")
    ok(purlin.purlin_cache_open(None, c.byref(cache)), "purlin_cache_open")
    dispatcher = open_dispatcher(cache)
    tuned, other, untuned = Gemm(128, 128, 64, stream), Gemm(256, 128, 64, stream), Gemm(40, 24, 16, stream)
    dispatch = purlin.purlin_dispatch

    for gemm, tuned_options in ((tuned, True), (untuned, False)):
        ok(dispatch(dispatcher, c.byref(gemm.launch)), "purlin_dispatch")
        gemm.check("a launch")
        assert (choice(dispatcher, gemm).options.startswith(b"-DBM=64")) == tuned_options
    print("results: right")

    # A graph: the prepared shape is recorded with its winner, the other, tuned but not prepared, with the default.
    graph, executable = c.c_void_p(), c.c_void_p()
    driver(cuda.cuStreamBeginCapture_v2(stream, 0), "cuStreamBeginCapture")
    ok(dispatch(dispatcher, c.byref(tuned.launch)), "purlin_dispatch under capture")
    ok(dispatch(dispatcher, c.byref(other.launch)), "purlin_dispatch under capture, not prepared")
    driver(cuda.cuStreamEndCapture(stream, c.byref(graph)), "cuStreamEndCapture")
    driver(cuda.cuGraphInstantiateWithFlags(c.byref(executable), graph, c.c_ulonglong(0)), "cuGraphInstantiate")
    for gemm in (tuned, other):
        gemm.clear()
    driver(cuda.cuGraphLaunch(executable, stream), "cuGraphLaunch")
    for gemm in (tuned, other):
        gemm.check("a graph")
    print("graph: captured and right")

    # Shadowed launches give the same product, and pairs are timed.
    shadowed = open_dispatcher(cache, shadow=4)
    for _ in range(2000):
        ok(dispatch(shadowed, c.byref(tuned.launch)), "a shadowed launch")
    tuned.check("shadowed launches")
    found = choice(shadowed, tuned)
    assert found.shadow_samples > 50 or found.demoted, f"only {found.shadow_samples} pairs were timed"
    print(f"shadow: {found.shadow_samples} pairs, ratio {found.shadow_ratio:.3f}, demoted {found.demoted}")

    # What a call takes from here, ctypes included, beside an empty call into the library.
    def ns_per_call(call, count=20000):
        begin = time.perf_counter_ns()
        for i in range(count):
            call()
            if i % 512 == 511:
                cuda.cuStreamSynchronize(stream)
        return (time.perf_counter_ns() - begin) / count

    reference = c.byref(tuned.launch)
    print(json.dumps({"dispatch_ns": ns_per_call(lambda: dispatch(dispatcher, reference)),
                      "ctypes_call_ns": ns_per_call(purlin.purlin_abi_version)}))
    purlin.purlin_dispatcher_close(shadowed)
    purlin.purlin_dispatcher_close(dispatcher)
    purlin.purlin_cache_close(cache)


main()
