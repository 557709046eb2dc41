# SPDX-License-Identifier: Apache-2.0
"""The block of block.py in a process that stays: PyTorch is imported once, not by each command.

    python3 server.py ROWS SOCKET &
    python3 ask.py SOCKET check|run mode=MODE NAME=0|1...

A request is a line of words, and so is the answer: "ok", "time: 0.12345 ms" or "failed: WHY". One request at a time.
"""
import copy
import os
import socket
import sys

import torch
import torch._inductor

import block as sample

SAMPLES = 30


class Server:
    def __init__(self, rows):
        for name in ("cache_size_limit", "recompile_limit"):  # one function has many compiled forms here
            if hasattr(torch._dynamo.config, name):
                setattr(torch._dynamo.config, name, 1000)
        torch.manual_seed(1)
        torch.set_float32_matmul_precision("high")
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        kind = torch.bfloat16 if self.device == "cuda" else torch.float32
        self.block = sample.Block(1024).to(self.device, kind).eval()
        self.x = torch.randn(rows, 1024, device=self.device, dtype=kind)
        with torch.no_grad():
            self.expected = self.block(self.x)
        self.built = {}

    def of(self, words):
        if words not in self.built:
            given = dict(word.split("=") for word in words)
            mode = given.pop("mode")
            if mode == "eager":
                self.built[words] = self.block
            else:
                options = dict(torch._inductor.list_mode_options(mode) or {})
                options.update((name, value == "1") for name, value in given.items())
                self.built[words] = torch.compile(copy.deepcopy(self.block), options=options)
            for _ in range(3):
                self.built[words](self.x)
        return self.built[words]

    def answer(self, verb, words):
        run = self.of(words)
        if verb == "check":
            error = (run(self.x).float() - self.expected.float()).abs().max().item()
            right = error <= 0.05 * self.expected.float().abs().max().item()
            return "ok" if right else "failed: it differs by %g" % error
        times = sorted(sample.timed(run, self.x, self.device) for _ in range(SAMPLES))
        return "time: %.5f ms" % times[SAMPLES // 2]


def reply(server, verb, words):
    try:
        return server.answer(verb, words)
    except Exception as problem:
        return "failed: %s: %s" % (type(problem).__name__, " ".join(str(problem).split())[:500])


def main():
    server = Server(int(sys.argv[1]))
    place = sys.argv[2]
    if os.path.exists(place):
        os.unlink(place)
    with socket.socket(socket.AF_UNIX) as listener, torch.no_grad():
        listener.bind(place)
        listener.listen()
        while True:
            client, _ = listener.accept()
            try:
                with client, client.makefile("rw") as stream:
                    verb, *words = stream.readline().split()
                    if verb == "stop":
                        return
                    stream.write(reply(server, verb, tuple(words)) + "\n")
            except (OSError, ValueError) as problem:  # a client that did not wait, or asked nothing
                print("a request was dropped: %s" % problem, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
    os._exit(0)  # spares the compiler's worker processes their orderly end
