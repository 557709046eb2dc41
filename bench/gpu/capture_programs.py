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
import signal
import socket
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


def _transformer(capturable, width=256, length=64, foreach=False):
    import torch

    layers = torch.nn.Sequential(
        *[torch.nn.TransformerEncoderLayer(width, width // 64, 2 * width, dropout=0.0, batch_first=True) for _ in range(4)]
    ).cuda()
    optimizer = torch.optim.AdamW(layers.parameters(), lr=1e-4, foreach=foreach, capturable=capturable)
    data = torch.randn(8, length, width, device="cuda")

    def step():
        optimizer.zero_grad(set_to_none=True)
        layers(data).square().mean().backward()
        optimizer.step()

    return step


def training_step():
    """A launch-bound transformer training step: four small layers, an optimizer kernel by kernel."""
    return _transformer(False)


def medium_step():
    """The same with layers that keep the device busy: some thousand launches a second."""
    return _transformer(False, width=2048, length=256, foreach=True)


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


PROGRAMS = {"tiny": tiny_launches, "training": training_step, "medium": medium_step, "gemm": gemm, "graph": graph_replay, "cpu": cpu_only}


class Stepper:
    """A program that takes its turns: runs steps when told to, over a socket, and says how long they took.

    Requests and answers are lines of JSON: {"do": "pin", "cores": [...]}, {"do": "turn", "seconds": S, "skip": S} which
    answers with `steps` and their `seconds` after the skipped ones, {"do": "stretch", "seconds": S, "bin": S} with
    [steps, seconds] of each bin, {"do": "end"}."""

    def __init__(self, program, profiler):
        began = time.perf_counter()
        if program == "cpu":
            self.synchronize = lambda: None
        else:
            import torch

            self.synchronize = torch.cuda.synchronize
            torch.manual_seed(1)
        self.step = PROGRAMS[program]()
        for _ in range(5):
            self.step()
            self.synchronize()
        self.around = None
        if profiler:
            from torch.profiler import ProfilerActivity, profile

            self.around = profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])
            self.around.__enter__()
        gc.collect()
        gc.freeze()
        gc.disable()
        self.ready_s = time.perf_counter() - began

    def pin(self, cores):
        """The threads that launch to the first of the cores, all others (CUPTI's, a capture library's) to the rest: of two
        cores one may be a third slower for a while, and which of them a thread got must not tell the rows apart."""
        threads = os.listdir("/proc/self/task")
        for thread in threads:
            try:
                name = open(f"/proc/self/task/{thread}/comm").read().strip()
                launches = int(thread) == os.getpid() or name.startswith("pt_autograd")
                os.sched_setaffinity(int(thread), cores[:1] if launches else cores[1:] or cores)
            except (FileNotFoundError, ProcessLookupError):
                pass
        return {"threads": len(threads)}

    def turn(self, seconds, skip):
        step, synchronize, clock = self.step, self.synchronize, time.perf_counter
        until = clock() + skip
        while clock() < until:
            step()
            synchronize()
        steps, start = 0, clock()
        now, until = start, start + seconds
        while now < until:
            step()
            synchronize()
            now = clock()
            steps += 1
        return {"steps": steps, "seconds": now - start}

    def stretch(self, seconds, width):
        start, bins = time.perf_counter(), []
        while time.perf_counter() - start < seconds:
            done = self.turn(width, 0)
            bins.append([done["steps"], done["seconds"]])
        return {"bins": bins}

    def serve(self, file):
        file.write(json.dumps({"pid": os.getpid(), "ready_s": self.ready_s}) + "\n")
        file.flush()
        for line in file:
            request = json.loads(line)
            if request["do"] == "end":
                return
            answer = (
                self.pin(request["cores"])
                if request["do"] == "pin"
                else self.turn(request["seconds"], request["skip"])
                if request["do"] == "turn"
                else self.stretch(request["seconds"], request["bin"])
            )
            file.write(json.dumps(answer) + "\n")
            file.flush()


def take_turns(program, path, row):
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    file = connection.makefile("rw")
    file.write(json.dumps({"row": row}) + "\n")
    file.flush()
    stepper = Stepper(program, row == "torch")
    stepper.serve(file)
    if row == "torch":  # its events are of no interest, and take long to sort
        os._exit(0)


def make_steps(program, steps, out):
    """So many steps after the first five, the same work each time; how long one took goes to the file `out`."""
    stepper = Stepper(program, False)
    began = time.perf_counter()
    for _ in range(steps):
        stepper.step()
        stepper.synchronize()
    with open(out, "w") as file:
        json.dump({"steps": steps, "mean_ms": (time.perf_counter() - began) / steps * 1e3}, file)


# ---- the server, its forked programs, and the shim that stands for one of them


def _receive(connection):
    size = struct.unpack("!I", connection.recv(4, socket.MSG_WAITALL))[0]
    return json.loads(connection.recv(size, socket.MSG_WAITALL))


def _send(connection, document):
    data = json.dumps(document).encode()
    connection.sendall(struct.pack("!I", len(data)) + data)


def serve(path):
    """Until the socket's file is gone. Returns in a forked child with its work to do, else None. Any number at a time."""
    import torch  # noqa: F401  the point of this process

    assert not torch.cuda.is_initialized()
    gc.collect()
    gc.freeze()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path + ".new")
    listener.listen(8)
    os.rename(path + ".new", path)
    listener.settimeout(1.0)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while os.path.exists(path):
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            continue
        connection.settimeout(None)
        request = _receive(connection)
        if os.fork() != 0:
            connection.close()
            continue
        # The one that waits for the program, and says how it ended.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        listener.close()
        pid = os.fork()
        if pid == 0:
            os.environ.clear()
            os.environ.update(request["environment"])
            return connection, request
        _, status = os.waitpid(pid, 0)
        try:
            _send(connection, {"status": os.waitstatus_to_exitcode(status)})
        except OSError:
            pass
        os._exit(0)
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
    try:
        if arguments[0] == "steps":
            make_steps(arguments[1], int(arguments[2]), arguments[3])
        else:
            take_turns(*arguments[:3])  # program, the socket of whoever gives turns, row
    except BaseException:
        traceback.print_exc()
        return 1
    return 0  # by way of exit handlers: an injected library seals its file there


if __name__ == "__main__":
    sys.exit(main())
