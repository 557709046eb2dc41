# SPDX-License-Identifier: Apache-2.0
"""Names that a file may give to what is in it, and strict readers of each output that shows them.

evil_names.py make FOLDER          writes trace.json, other.json, a.csv and b.csv
evil_names.py check KIND FILE…     KIND: text, csv, json, html, xml, markdown, annotations
"""
import csv
import html.parser
import io
import json
import re
import sys
import xml.dom.minidom

NAMES = [
    "esc\x1b[2J\x1b]0;pwn\x07\x1b[31mred", "c1\u009b31mX", "bell\x07\b\x7f", "line\nsecond", "line\n::error::forged",
    "::error::pwn", "  ::warning title=x::pwn", "##[error]pwn", "%0A::warning::x", "carriage\rover",
    "bidi\u202egnp.exe", "<img src=x onerror=alert(1)>", "</script><script>alert(1)</script>", "&quot;", "]]>",
    "[x](javascript:alert(1))", "![p](http://evil/p.png)", "@everyone", "#1", "\\| x |", "a|b", "`x`", "=1+1",
    "+cmd|' /C calc'!A0", "\"quoted\",cell", "gemm<float>",
]
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def make(folder):
    for factor, file in ((1, "trace.json"), (2, "other.json")):
        events = []
        for index, name in enumerate(NAMES):
            start = 100 + 500 * index
            common = {"pid": 0, "tid": 7}
            events.append({"ph": "X", "cat": "kernel", "name": name, "ts": start, "dur": 50 * factor, **common,
                           "args": {"device": 0, "stream": 7, "correlation": index + 1, "grid": [1, 1, 1],
                                    "block": [32, 1, 1], "External id": index + 1}})
            events.append({"ph": "X", "cat": "cpu_op", "name": "op " + name, "ts": start - 20, "dur": 10, "pid": 1,
                           "tid": 1, "args": {"External id": index + 1}})
            events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": start - 15, "dur": 2,
                           "pid": 1, "tid": 1, "args": {"correlation": index + 1, "External id": index + 1}})
        device = {"id": 0, "name": "NVIDIA H200" + NAMES[0] + NAMES[11], "totalGlobalMem": 1, "computeMajor": 9,
                  "computeMinor": 0}
        with open(f"{folder}/{file}", "w", encoding="utf-8") as out:
            json.dump({"schemaVersion": 1, "deviceProperties": [device], "traceEvents": events}, out)
    for factor, file in ((1, "a.csv"), (2, "b.csv")):
        with open(f"{folder}/{file}", "w", encoding="utf-8", newline="") as out:
            # What the reader of such files takes: no cell spans lines.
            rows = csv.writer(out)
            rows.writerow(["process", "kernel", "time_us"])
            for process in range(8):
                for name in NAMES:
                    if "\n" not in name and "\r" not in name:
                        for sample in range(3):
                            rows.writerow([process, name, factor * (100 + 0.01 * sample)])


def commands(text):
    return [line for line in text.split("\n") if line.strip().startswith("::") or "##[" in line]


class Strict(html.parser.HTMLParser):
    """Collects the tags and attributes; a name must have made none."""

    def __init__(self):
        super().__init__()
        self.bad = []

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        if tag == "img" or any(name.startswith("on") and name != "on" for name in names):
            self.bad.append((tag, names))


def check(kind, path, text):
    if kind == "json":
        json.loads(text)
        assert not CONTROL.search(text), f"{path}: a control character in JSON"
        return
    if kind == "html":
        parser = Strict()
        parser.feed(text)
        assert not parser.bad, f"{path}: {parser.bad[:3]}"
        assert "alert(1)</script>" not in text.replace("\\u003c", "<").replace("</script><script>alert(1)<", ""), path
        assert text.count("<script") == text.count("</script>"), f"{path}: a name ends a script"
        return
    if kind == "annotations":
        for line in text.split("\n"):
            if line and not line.startswith("purlin:"):
                assert re.match(r"^::(error|warning) title=[^:,]*(,file=[^:,]*)?::[^\n]*$", line), f"{path}: {line!r}"
        assert not CONTROL.search(text), f"{path}: a control character"
        return
    if kind == "csv":
        text = text.replace("\r\n", "\n")
    found = CONTROL.search(text)
    assert not found, f"{path}: {text[max(0, found.start() - 30):found.end() + 30]!r}"
    if kind == "text":
        assert not commands(text), f"{path}: {commands(text)[:3]}"
    if kind == "csv":
        rows = list(csv.reader(io.StringIO(text), strict=True))
        assert len(rows) > 2 and len({len(row) for row in rows}) == 1, f"{path}: rows of several lengths"
        assert len(rows) == len(text.strip("\n").split("\n")), f"{path}: a row of several lines"
        for row in rows:
            for cell in row:
                number = re.fullmatch(r"[-+]?[0-9.]+(e[-+]?[0-9]+)?", cell)
                assert number or not cell or cell[0] not in "=+-@", f"{path}: a formula {cell!r}"
    if kind == "xml":
        xml.dom.minidom.parseString(text.encode())
    if kind == "markdown":
        own = re.sub(r"</?code>|&#[0-9]+;", "", text)
        own = re.sub(r"^(### |\|---.*|- )", "", own, flags=re.M)
        own = re.sub(r"^\| | \| | \|$", " ", own, flags=re.M)
        # "ratio [95 %]" and intervals are the report's own.
        own = re.sub(r"\[(95 %|[0-9.]+, [0-9.]+)\]", "", own)
        found = re.search(r".{0,40}[<>!`*\\@#\[\]].{0,40}", own)
        assert not found, f"{path}: {found}"
        rows = [line for line in text.split("\n") if line.startswith("|")]
        assert len({row.count("|") for row in rows}) == 1, f"{path}: a name divides a cell"


if sys.argv[1] == "make":
    make(sys.argv[2])
else:
    for file in sys.argv[3:]:
        with open(file, encoding="utf-8", newline="") as opened:
            check(sys.argv[2], file, opened.read())
