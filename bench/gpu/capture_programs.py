# SPDX-License-Identifier: Apache-2.0
"""The programs whose capture is measured, and a server that starts them quickly.

A program is a function that, once CUDA may be used, returns a step; a step ends with nothing pending only when
torch.cuda.synchronize() is called after it. `Zygote` imports PyTorch once, without touching CUDA, and forks a fresh
process for each measurement: cuInit, and with it an injected library, comes after the fork, in an environment that a
shim hands over. What takes four seconds otherwise takes one, and both processes of a pair have the same
addresses, which are a good part of the noise between processes.
"""

import gc
import json
import os
import socket
import statistics
import struct
import sys
import time
import traceback


def tiny_launches():
    """A loop of tiny launches: one elementwise kernel, 1,000 times."""
    import torch

    x = torch.zeros(256, device="cuda")

    def step():
        for _ in range(1000):
            x.add_(1.0)

    return step


def _transformer(capturable):
    import torch

    layers = torch.nn.Sequential(
        *[torch.nn.TransformerEncoderLayer(256, 4, 512, dropout=0.0, batch_first=True) for _ in range(4)]
    ).cuda()
    optimizer = torch.optim.AdamW(layers.parameters(), lr=1e-4, foreach=False, capturable=capturable)
    data = torch.randn(8, 64, 256, device="cuda")

    def step():
        optimizer.zero_grad(set_to_none=True)
        layers(data).square().mean().backward()
        optimizer.step()

    return step


def training_step():
    """A launch-bound transformer training step: four small layers, an optimizer kernel by kernel."""
    return _transformer(False)


def gemm():
    """A GEMM-bound program: 8192³ in bf16, ten at a time, on random inputs."""
    import torch

    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)

    def step():
        for _ in range(10):
            torch.matmul(a, b)

    return step


def graph_replay():
    """The training step as one CUDA graph, replayed."""
    import torch

    step = _transformer(True)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def cpu_only():
    """No GPU at all: what the machine and this harness do to a pair by themselves."""

    def step():
        total = 0
        for i in range(100_000):
            total += i
        return total

    return step


PROGRAMS = {"tiny": tiny_launches, "training": training_step, "gemm": gemm, "graph": graph_replay, "cpu": cpu_only}


def measure(program, seconds, warm_up=0.5, profiler=False):
    """Steps for `seconds` after at least `warm_up` of them, timed as a whole: a duty cycle's windows are a part of the mean."""
    began = time.perf_counter()
    if program == "cpu":
        synchronize = lambda: None  # noqa: E731
    else:
        import torch

        synchronize = torch.cuda.synchronize
        torch.manual_seed(1)
    step = PROGRAMS[program]()
    warm_until = time.perf_counter() + warm_up
    warm = 0
    while warm < 10 or time.perf_counter() < warm_until:
        step()
        synchronize()
        warm += 1
    gc.collect()
    ready = time.perf_counter() - began
    around = None
    if profiler:
        from torch.profiler import ProfilerActivity, profile

        around = profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])
        around.__enter__()
    times = []
    start = now = time.perf_counter()
    while now - start < seconds:
        step()
        synchronize()
        then, now = now, time.perf_counter()
        times.append(now - then)
    if around is not None:
        around.__exit__(None, None, None)
    return {
        "warm_up_s": ready,
        "warm_up_steps": warm,
        "steps": len(times),
        "mean_ms": (now - start) / len(times) * 1e3,
        "median_ms": statistics.median(times) * 1e3,
        "p99_ms": sorted(times)[int(0.99 * (len(times) - 1))] * 1e3,
    }


# ---- the server, its forked programs, and the shim that stands for one of them


def _receive(connection):
    size = struct.unpack("!I", connection.recv(4, socket.MSG_WAITALL))[0]
    return json.loads(connection.recv(size, socket.MSG_WAITALL))


def _send(connection, document):
    data = json.dumps(document).encode()
    connection.sendall(struct.pack("!I", len(data)) + data)


def serve(path):
    """Until the socket's file is gone. Returns in a forked child with its work to do, else None."""
    import torch  # noqa: F401  the point of this process

    assert not torch.cuda.is_initialized()
    gc.collect()
    gc.freeze()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path + ".new")
    listener.listen(8)
    os.rename(path + ".new", path)
    listener.settimeout(1.0)
    while os.path.exists(path):
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            continue
        connection.settimeout(None)
        request = _receive(connection)
        pid = os.fork()
        if pid == 0:
            listener.close()
            os.environ.clear()
            os.environ.update(request["environment"])
            return connection, request
        _, status = os.waitpid(pid, 0)
        try:
            _send(connection, {"status": os.waitstatus_to_exitcode(status)})
        except OSError:
            pass
        connection.close()
    return None


def shim(path, arguments):
    """What a launcher such as `purlin profile` starts: has the server do it in this environment."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    _send(connection, {"environment": dict(os.environ), "arguments": arguments})
    return _receive(connection)["status"]


def main():
    if sys.argv[1] == "shim":
        return shim(sys.argv[2], sys.argv[3:])
    if sys.argv[1] == "serve":
        work = serve(sys.argv[2])
        if work is None:
            return 0
        arguments = work[1]["arguments"]
    else:
        arguments = sys.argv[2:]
    program, seconds, warm_up, out = arguments[:4]
    try:
        result = measure(program, float(seconds), float(warm_up), profiler="profiler" in arguments[4:])
    except BaseException:
        traceback.print_exc()
        return 1
    with open(out, "w") as file:
        json.dump(result, file)
    return 0  # by way of exit handlers: an injected library seals its file there


if __name__ == "__main__":
    sys.exit(main())
