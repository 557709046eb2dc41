# SPDX-License-Identifier: Apache-2.0
"""One request to server.py: python3 ask.py SOCKET VERB [WORD...]. Exit status 1 if it failed."""
import socket
import sys

with socket.socket(socket.AF_UNIX) as server:
    server.connect(sys.argv[1])
    with server.makefile("rw") as stream:
        stream.write(" ".join(sys.argv[2:]) + "\n")
        stream.flush()
        answer = stream.readline().strip()
print(answer)
sys.exit(0 if answer == "ok" or answer.startswith("time:") else 1)
