#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""chdb_server.py LIBCHDB FOLDER: ClickHouse's HTTP interface over libchdb.so, as far as Purlin's store uses it.

libchdb.so is a current ClickHouse as a library (npm: @chdb/lib-linux-x64-gnu). With it, the store's tests run
against a second dialect:

  npm pack @chdb/lib-linux-x64-gnu && tar xzf chdb-lib-*.tgz
  python3 tests/suites/chdb_server.py package/libchdb.so /tmp/chdb &       # prints its address
  PURLIN_TEST_CLICKHOUSE=http://127.0.0.1:PORT build/ci/src/store/store_test --gtest_filter='*Clickhouse*'

One question at a time. Settings in the URL are ignored: there is one server, and an insert is done when it returns.
"""
import ctypes
import http.server
import os
import re
import sys
import threading
import urllib.parse


class Chdb:
    def __init__(self, library, folder):
        self.lib = ctypes.CDLL(library)
        self.lib.chdb_connect.restype = ctypes.POINTER(ctypes.c_void_p)
        self.lib.chdb_query_n.restype = ctypes.c_void_p
        self.lib.chdb_query_n.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
        for name, kind in (("buffer", ctypes.c_void_p), ("length", ctypes.c_size_t), ("error", ctypes.c_char_p)):
            function = getattr(self.lib, f"chdb_result_{name}")
            function.restype, function.argtypes = kind, [ctypes.c_void_p]
        self.lib.chdb_destroy_query_result.argtypes = [ctypes.c_void_p]
        arguments = [b"clickhouse", f"--path={folder}".encode()]
        self.connection = self.lib.chdb_connect(len(arguments), (ctypes.c_char_p * len(arguments))(*arguments))
        if not self.connection:
            sys.exit("chdb_server: the library cannot open the folder")
        self.lock = threading.Lock()
        self.rows = os.path.join(folder, "insert.rows")

    def ask(self, text, rows):
        """The bytes of the answer, or an error's text."""
        with self.lock:
            if rows is not None:
                with open(self.rows, "wb") as file:
                    file.write(rows)
                text = re.sub(rb"FORMAT RowBinary\s*$", b"", text).rstrip()
                text += b" FROM INFILE '" + self.rows.encode() + b"' FORMAT RowBinary"
            result = self.lib.chdb_query_n(self.connection[0], text, len(text), b"TabSeparated", 12)
            if not result:
                return b"", "Code: 999, e.displayText() = no result"
            error = self.lib.chdb_result_error(result)
            size = self.lib.chdb_result_length(result)
            answer = ctypes.string_at(self.lib.chdb_result_buffer(result), size) if size else b""
            self.lib.chdb_destroy_query_result(result)
            return answer, error.decode(errors="replace") if error else ""


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    chdb = None

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query).get("query")
        answer, error = self.chdb.ask(query[0].encode() if query else body, body if query else None)
        if error and "Code:" not in error:
            error = f"Code: 1000, e.displayText() = {error}"
        answer = error.encode() if error else answer
        self.send_response(500 if error else 200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    os.makedirs(sys.argv[2], exist_ok=True)
    Handler.chdb = Chdb(sys.argv[1], sys.argv[2])
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
