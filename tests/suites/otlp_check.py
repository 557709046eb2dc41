#!/usr/bin/env python3
"""A strict reader of OTLP/JSON metrics: python3 otlp_check.py FILE [METRIC…] fails on what a collector
may refuse. Each METRIC must be there with at least one point."""
import json, math, sys

U64 = 1 << 64


def fail(where, what):
    sys.exit(f"{sys.argv[1]}: {where}: {what}")


def keys(value, where, required, optional=()):
    if not isinstance(value, dict):
        fail(where, "no object")
    for key in required:
        if key not in value:
            fail(where, f"'{key}' is missing")
    for key in value:
        if key not in required and key not in optional:
            fail(where, f"'{key}' is no field of the message")


def uint64(value, where):
    if not isinstance(value, str) or not value.isdigit() or int(value) >= U64:
        fail(where, f"{value!r} is no 64-bit integer as text")
    return int(value)


def double(value, where):
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        fail(where, f"{value!r} is no finite number")
    return value


def attributes(values, where):
    seen = set()
    for one in values:
        keys(one, where, ("key", "value"))
        keys(one["value"], where, ("stringValue",))
        if not one["key"] or one["key"] in seen:
            fail(where, f"attribute '{one['key']}' twice, or without a name")
        if not isinstance(one["value"]["stringValue"], str):
            fail(where, "an attribute is no text")
        seen.add(one["key"])
    return json.dumps(values, sort_keys=True)


def times(point, where, period):
    end = uint64(point["timeUnixNano"], where)
    if end < 10**18:
        fail(where, "no time of day")
    if period and uint64(point["startTimeUnixNano"], where) > end:
        fail(where, "ends before it starts")


def number(point, where, period):
    required = ["timeUnixNano"] + (["startTimeUnixNano"] if period else [])
    required.append("asInt" if "asInt" in point else "asDouble")
    keys(point, where, required, ("attributes",))
    times(point, where, period)
    uint64(point["asInt"], where) if "asInt" in point else double(point["asDouble"], where)


def histogram(point, where):
    keys(point, where, ("startTimeUnixNano", "timeUnixNano", "count", "sum", "scale", "zeroCount"),
         ("attributes", "positive", "zeroThreshold", "min", "max"))
    times(point, where, True)
    scale = point["scale"]
    if not isinstance(scale, int) or not -10 <= scale <= 20:
        fail(where, f"scale {scale}")
    count, inside = uint64(point["count"], where), uint64(point["zeroCount"], where)
    low, high = double(point["min"], where), double(point["max"], where)
    total = double(point["sum"], where)
    base = 2.0 ** (2.0 ** -scale)
    estimate = 0.0
    if "positive" in point:
        keys(point["positive"], where, ("offset", "bucketCounts"))
        offset = point["positive"]["offset"]
        if not isinstance(offset, int) or not -(1 << 31) <= offset < 1 << 31:
            fail(where, f"offset {offset}")
        for i, text in enumerate(point["positive"]["bucketCounts"]):
            n = uint64(text, where)
            inside += n
            estimate += n * base ** (offset + i + 0.5)
            if n and (base ** (offset + i) > high * 1.02 or base ** (offset + i + 1) < low * 0.98):
                fail(where, "a bucket outside of minimum and maximum")
    if inside != count:
        fail(where, f"the buckets have {inside} of {count}")
    if low > high or (count > 100 and abs(estimate - total) > 0.03 * total + count):
        fail(where, f"sum {total}, by the buckets {estimate}")


def metric(one):
    where = one.get("name", "?")
    data = [key for key in one if key not in ("name", "description", "unit")]
    keys(one, where, ("name", "description", "unit", *data))
    if len(data) != 1 or data[0] not in ("gauge", "sum", "exponentialHistogram"):
        fail(where, f"one kind of data, not {data}")
    kind, body = data[0], one[data[0]]
    keys(body, where, {"gauge": ("dataPoints",), "sum": ("dataPoints", "aggregationTemporality", "isMonotonic"),
                       "exponentialHistogram": ("dataPoints", "aggregationTemporality")}[kind])
    if kind != "gauge" and body["aggregationTemporality"] not in (1, 2):
        fail(where, "temporality")
    series = set()
    for point in body["dataPoints"]:
        identity = attributes(point.get("attributes", []), where)
        if identity in series:
            fail(where, f"two points of one series: {identity}")
        series.add(identity)
        histogram(point, where) if kind == "exponentialHistogram" else number(point, where, kind == "sum")
    if not series:
        fail(where, "no points")
    return where


def constant(text):
    fail("document", f"{text} is no JSON")


with open(sys.argv[1], encoding="utf-8", errors="strict") as file:
    request = json.load(file, parse_constant=constant)
keys(request, "request", ("resourceMetrics",))
names = []
for resource in request["resourceMetrics"]:
    keys(resource, "resource", ("resource", "scopeMetrics"))
    keys(resource["resource"], "resource", ("attributes",))
    if '"service.name"' not in attributes(resource["resource"]["attributes"], "resource"):
        fail("resource", "no service.name")
    for scoped in resource["scopeMetrics"]:
        keys(scoped, "scope", ("scope", "metrics"))
        keys(scoped["scope"], "scope", ("name", "version"))
        names += [metric(one) for one in scoped["metrics"]]
if len(names) != len(set(names)):
    fail("request", "a metric twice")
for wanted in sys.argv[2:]:
    if wanted not in names:
        fail("request", f"no metric '{wanted}': {names}")
