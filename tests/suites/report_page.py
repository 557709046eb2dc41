#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""report_page.py PAGE.html REPORT.json REPORT.csv: the three say the same.

The page is read as a browser would split it: one style, data blocks, one script and one that is
inert until it is needed. The policy names the hashes of these three, and nothing could load anything.
"""
import base64
import csv
import gzip
import hashlib
import html.parser
import io
import json
import sys


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.texts, self.policy, self.open = [], {}, "", None

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.tags.append(tag)
        for name in attributes:
            assert not name.startswith("on") and name not in ("src", "href", "style", "srcset"), (tag, name)
        if attributes.get("http-equiv") == "Content-Security-Policy":
            self.policy = attributes["content"]
        if tag in ("script", "style"):
            self.open = attributes["id"] if "type" in attributes else tag
            assert self.open not in self.texts, f"two {self.open} elements"
            self.texts[self.open] = ""

    def handle_endtag(self, tag):
        if tag in ("script", "style"):
            self.open = None

    def handle_data(self, data):
        if self.open:
            self.texts[self.open] += data


def read(path):
    with open(path, encoding="utf-8", newline="") as file:
        return file.read()


page_path, json_path, csv_path = sys.argv[1:]
page = Page()
page.feed(read(page_path))
allowed = {"html", "head", "meta", "title", "style", "body", "noscript", "p", "script"}
assert set(page.tags) <= allowed, set(page.tags) - allowed
assert "default-src 'none'" in page.policy and "unsafe" not in page.policy and "connect-src 'none'" in page.policy, page.policy
def digest(text):
    return "'sha256-" + base64.b64encode(hashlib.sha256(page.texts[text].encode()).digest()).decode() + "'"


assert f"style-src {digest('style')};" in page.policy, "the policy does not name the style"
assert f"script-src {digest('script')} {digest('purlin-more')};" in page.policy, "the policy does not name the scripts"

index = json.loads(page.texts["purlin-page"])
assert index["schema"] == "purlin.page/1", index["schema"]
for document in index["documents"]:
    head = json.loads(page.texts["purlin-" + document["name"]])
    assert head["schema"] == document["schema"], document
    chunks, number = b"", 0
    while f"purlin-{document['name']}.{number}" in page.texts:
        chunks += base64.b64decode(page.texts[f"purlin-{document['name']}.{number}"], validate=True)
        number += 1
    arrays = gzip.decompress(chunks) if chunks else b""
    assert len(arrays) == document["bytes"], document
    for name, place in head.get("arrays", {}).items():
        size = {"f64": 8, "u32": 4, "u8": 1}[place["type"]]
        assert place["at"] % 8 == 0 and place["at"] + size * place["count"] <= len(arrays), (name, place)

report = json.loads(read(json_path))
shown = json.loads(page.texts["purlin-report"])
details = shown.pop("page")
assert details["rows"] == len(report["kernels"]), (details["rows"], len(report["kernels"]))
assert len(shown["kernels"]) + details["other"]["rows"] == len(report["kernels"])
assert len(details["details"]) == len(shown["kernels"])
for kernel, wanted, detail in zip(shown["kernels"], report["kernels"], details["details"]):
    assert kernel == wanted, (kernel, wanted)
    assert abs(sum(detail["histogram"]["count"]) - kernel["count"]) < 1e-6 * max(1, kernel["count"])
shares = sum(k["share"] for k in shown["kernels"]) + details["other"]["share"]
assert report["kernel_ns"] == 0 or report["filter"] or abs(shares - 1) < 1e-6, shares
for key in report:
    assert key == "kernels" or shown[key] == report[key], key

text = read(csv_path)
assert text.endswith("\r\n") and text.count("\n") == text.count("\r\n"), "lines end in CR LF"
rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
header, rows = rows[0], rows[1:]
assert len(set(header)) == len(header) and all(len(row) == len(header) for row in rows)
assert len(rows) == len(report["kernels"])
for row, kernel in zip(rows, report["kernels"]):
    cells = dict(zip(header, row))
    for key in ("name", "label", "family", "op_class", "op", "shape", "dtype", "device", "bound"):
        text = kernel[key]
        if text and text[:1] in "=+-@":  # no formula for a spreadsheet
            text = "'" + text
        assert cells[key] == text, (key, cells[key], text)
    for key in ("count", "total_ns", "p50_ns", "p95_ns", "share", "utilization", "flops", "bytes"):
        value = float(cells[key]) if cells[key] else None
        assert value == kernel[key], (key, cells[key], kernel[key])
