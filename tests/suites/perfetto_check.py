#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A strict reader of Perfetto traces: perfetto_check.py TRACE REPORT.json

The fields are those of google/perfetto of 2026-11 (protos/perfetto/trace, trace/gpu,
common/gpu_counter_descriptor), not those of Purlin's writer. A field that is not among them, a wrong
wire type, or a reference to nothing is a fault. Where protoc is at hand, it decodes the trace too.
"""
import collections
import json
import shutil
import struct
import subprocess
import sys
import tempfile

# message: {number: (name, type)}; "*": repeated.
FIELDS = {
    "Trace": {1: ("packet", "*TracePacket")},
    "TracePacket": {8: ("timestamp", "uint64"), 10: ("trusted_packet_sequence_id", "uint32"), 11: ("track_event", "TrackEvent"),
                    12: ("interned_data", "InternedData"), 13: ("sequence_flags", "uint32"), 52: ("gpu_counter_event", "GpuCounterEvent"),
                    53: ("gpu_render_stage_event", "GpuRenderStageEvent"), 60: ("track_descriptor", "TrackDescriptor")},
    "TrackDescriptor": {1: ("uuid", "uint64"), 2: ("name", "string"), 5: ("parent_uuid", "uint64")},
    "TrackEvent": {4: ("debug_annotations", "*DebugAnnotation"), 9: ("type", "int32"), 10: ("name_iid", "uint64"), 11: ("track_uuid", "uint64"),
                   22: ("categories", "*string"), 47: ("flow_ids", "*fixed64")},
    "DebugAnnotation": {3: ("uint_value", "uint64"), 6: ("string_value", "string"), 10: ("name", "string")},
    "InternedData": {2: ("event_names", "*EventName"), 23: ("graphics_contexts", "*InternedGraphicsContext"),
                     24: ("gpu_specifications", "*InternedGpuRenderStageSpecification")},
    "EventName": {1: ("iid", "uint64"), 2: ("name", "string")},
    "InternedGraphicsContext": {1: ("iid", "uint64"), 2: ("pid", "int32"), 3: ("api", "int32")},
    "InternedGpuRenderStageSpecification": {1: ("iid", "uint64"), 2: ("name", "string"), 3: ("description", "string"), 4: ("category", "int32")},
    "GpuRenderStageEvent": {1: ("event_id", "uint64"), 2: ("duration", "uint64"), 5: ("context", "uint64"), 6: ("extra_data", "*ExtraData"),
                            11: ("gpu_id", "int32"), 13: ("hw_queue_iid", "uint64"), 14: ("stage_iid", "uint64")},
    "ExtraData": {1: ("name", "string"), 2: ("value", "string")},
    "GpuCounterEvent": {1: ("counter_descriptor", "GpuCounterDescriptor"), 2: ("counters", "*GpuCounter"), 3: ("gpu_id", "int32")},
    "GpuCounterDescriptor": {1: ("specs", "*GpuCounterSpec")},
    "GpuCounterSpec": {1: ("counter_id", "uint32"), 2: ("name", "string"), 3: ("description", "string"), 10: ("groups", "*int32")},
    "GpuCounter": {1: ("counter_id", "uint32"), 2: ("int_value", "int64"), 3: ("double_value", "double")},
}
COMPUTE, COMPUTE_GROUP, CLEARED, NEEDS = 2, 6, 1, 2


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
        assert shift < 70, "a varint without an end"


def decode(message, data, begin, end):
    """{name: value}, a list where a field is repeated."""
    out, fields = {}, FIELDS[message]
    while begin < end:
        key, begin = varint(data, begin)
        number, wire = key >> 3, key & 7
        assert number in fields, f"{message} has no field {number}"
        name, kind = fields[number]
        repeated, kind = kind[0] == "*", kind.lstrip("*")
        if kind in FIELDS or kind == "string":
            assert wire == 2, (message, name, wire)
            size, begin = varint(data, begin)
            assert begin + size <= end, (message, name, "beyond its message")
            value = data[begin:begin + size].decode() if kind == "string" else decode(kind, data, begin, begin + size)
            begin += size
        elif kind in ("double", "fixed64"):
            assert wire == 1, (message, name, wire)
            value = struct.unpack_from("<d" if kind == "double" else "<Q", data, begin)[0]
            begin += 8
        else:
            assert wire == 0, (message, name, wire)
            value, begin = varint(data, begin)
            assert value < 1 << (64 if kind in ("uint64", "int64") else 32), (message, name, value)
        if repeated:
            out.setdefault(name, []).append(value)
        else:
            assert name not in out, f"{message}.{name} twice"
            out[name] = value
    assert begin == end, message
    return out


class Sequence:
    """Interned data of one packet sequence."""
    def __init__(self):
        self.known = collections.defaultdict(dict)

    def take(self, packet):
        for kind, entries in packet.get("interned_data", {}).items():
            for entry in entries:
                assert entry["iid"] not in self.known[kind], (kind, entry)
                self.known[kind][entry["iid"]] = entry


def check(trace, report):
    sequences, tracks, counter_of, events = {}, {}, {}, set()
    stages, values, begun = [], [], {}
    for packet in trace["packet"]:
        sequence, flags = packet["trusted_packet_sequence_id"], packet.get("sequence_flags", 0)
        if flags & CLEARED:
            assert sequence not in sequences, f"sequence {sequence} begins twice"
            sequences[sequence] = Sequence()
        assert sequence in sequences, f"sequence {sequence} has no begin"
        sequences[sequence].take(packet)
        known = sequences[sequence].known
        if "track_descriptor" in packet:
            track = packet["track_descriptor"]
            assert track.get("parent_uuid", 0) in tracks or "parent_uuid" not in track, track
            tracks[track["uuid"]] = track
        if "track_event" in packet:
            event = packet["track_event"]
            assert event["track_uuid"] in tracks and event["type"] in (1, 2), event
            assert event["type"] == 2 or (flags & NEEDS and event["name_iid"] in known["event_names"]), event
        if "gpu_render_stage_event" in packet:
            event = packet["gpu_render_stage_event"]
            assert flags & NEEDS and "timestamp" in packet, packet
            specifications = known["gpu_specifications"]
            assert specifications[event["stage_iid"]]["name"] == "Kernel" and event["hw_queue_iid"] in specifications, event
            assert event["context"] in known["graphics_contexts"], event
            assert event["event_id"] not in events, "an event id twice"
            events.add(event["event_id"])
            extra = {e["name"]: e["value"] for e in event["extra_data"]}
            assert len(extra) == len(event["extra_data"]), "an argument twice"
            for name in ("kernel_name", "kernel_demangled_name", "launch__grid_size", "launch__block_size", "launch__thread_count"):
                assert extra.get(name), (name, extra)
            product = 1
            for axis in "xyz":
                product *= int(extra[f"launch__grid_size_{axis}"]) * int(extra[f"launch__block_size_{axis}"])
            assert int(extra["launch__thread_count"]) == product, extra
            stages.append((event["gpu_id"], packet["timestamp"], packet["timestamp"] + event["duration"], extra))
        if "gpu_counter_event" in packet:
            event = packet["gpu_counter_event"]
            gpu = event["gpu_id"]
            for spec in event.get("counter_descriptor", {}).get("specs", []):
                assert spec["counter_id"] not in counter_of, f"counter {spec['counter_id']} of two GPUs"
                assert COMPUTE_GROUP in spec["groups"], spec
                counter_of[spec["counter_id"]] = (gpu, spec["name"])
            for counter in event.get("counters", []):
                assert counter_of[counter["counter_id"]][0] == gpu, counter
                name = counter_of[counter["counter_id"]][1]
                # Perfetto gives a value to the time before it: 0 ends what was before, then the launch's own.
                if "int_value" in counter:
                    assert counter["int_value"] == 0
                    begun.setdefault((gpu, name), []).append(packet["timestamp"])
                else:
                    values.append((gpu, name, packet["timestamp"], counter["double_value"]))
    for entry in (e for s in sequences.values() for e in s.known["gpu_specifications"].values()):
        assert entry["category"] == COMPUTE and entry["name"], entry
    # Each stage has its counters at its end, and its duration is one of them.
    at = collections.defaultdict(list)
    for gpu, name, time, value in values:
        at[gpu, name, time].append(value)
    for gpu, begin, end, _ in stages:
        assert end - begin in at[gpu, "gpu__time_duration.sum", end], (begin, end)
        assert begin in begun[gpu, "gpu__time_duration.sum"], begin
    names = {extra["kernel_demangled_name"] for _, _, _, extra in stages}
    timed = {k["name"] for k in report["kernels"] if k["count"]}
    assert timed <= names, f"kernels without a stage: {sorted(timed - names)[:3]}"
    counted = {c["name"] for k in report["kernels"] if k["count"] for c in k.get("counters") or []}
    written = {name for _, name, _, _ in values} - {"gpu__time_duration.sum"}
    assert written >= counted - {"gpu__time_duration.sum"}, f"counters without a value: {sorted(counted - written)}"
    assert stages, "no render stage"
    return len(stages), len(values), sorted(written)


def with_protoc(path, stages):
    lines = ['syntax = "proto2";', "package p;"]
    for message, fields in FIELDS.items():
        lines.append(f"message {message} {{")
        lines += [f"  {'repeated' if kind[0] == '*' else 'optional'} {kind.lstrip('*')} {name} = {number};" for number, (name, kind) in fields.items()]
        lines.append("}")
    with tempfile.TemporaryDirectory() as folder, open(path, "rb") as trace:
        with open(f"{folder}/trace.proto", "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        text = subprocess.run(["protoc", f"-I{folder}", "--decode=p.Trace", "trace.proto"], stdin=trace, capture_output=True, text=True, check=True, cwd=folder).stdout
    found = text.count("gpu_render_stage_event {")
    assert found == stages, (found, stages)
    unknown = [line for line in text.splitlines() if line.strip().split(":")[0].rstrip(" {").isdigit()]
    assert not unknown, f"protoc does not know {unknown[:3]}"


def main():
    path, report = sys.argv[1:]
    with open(path, "rb") as file:
        data = file.read()
    with open(report, encoding="utf-8") as file:
        report = json.load(file)
    stages, values, counters = check(decode("Trace", data, 0, len(data)), report)
    tools = "python"
    if shutil.which("protoc"):
        with_protoc(path, stages)
        tools += " and protoc"
    print(f"{stages} render stages, {values} values of {len(counters)} counters and the duration, decoded by {tools}")


main()
