# SPDX-License-Identifier: Apache-2.0
"""The table of counters_gpu.sh: counters_compare.py OUT ncu.csv alone.json"""
import collections
import csv
import json
import os
import sys

out, ncu_file, alone_file = sys.argv[1:4]
FACTOR = {"Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "Tbyte": 1e12, "byte": 1, "us": 1e3, "usecond": 1e3, "ms": 1e6,
          "msecond": 1e6, "ns": 1, "nsecond": 1, "second": 1e9, "s": 1e9}
KERNELS = ["copy", "fma_fp32", "tensor_bf16", "reduce", "transpose", "l2_resident"]


def read_ncu():
    lines = [line for line in open(ncu_file) if line.startswith('"')]
    rows = list(csv.reader(lines))
    names, units = rows[0], rows[1]
    place = names.index("Kernel Name")
    found = collections.defaultdict(lambda: collections.defaultdict(list))
    for row in rows[2:]:
        for name, unit, value in zip(names, units, row):
            if "__" in name and value:
                try:
                    found[row[place].split("(")[0]][name].append(float(value.replace(",", "")) * FACTOR.get(unit, 1))
                except ValueError:
                    pass
    # The first launch of each kernel is colder.
    return {k: {m: sum(v[1:]) / len(v[1:]) for m, v in metrics.items() if len(v) > 1} for k, metrics in found.items()}


def read_purlin(name):
    report = json.load(open(os.path.join(out, f"counters_{name}.json")))
    rows = {}
    for row in report["kernels"]:
        for kernel in KERNELS:
            if kernel in row["name"]:
                counters = {c["name"]: c["value"] for c in row["counters"]}
                launches = {c["name"]: c["launches"] for c in row["counters"]}
                rows[kernel] = (row, counters, launches)
    return report, rows


def flops(counters):
    op = "smsp__sass_thread_inst_executed_op_%s_pred_on.sum"
    vector = [counters.get(op % o) for o in ("ffma", "fadd", "fmul")]
    total = None if None in vector else 2 * vector[0] + vector[1] + vector[2]
    tensor = counters.get("sm__ops_path_tensor_src_bf16_dst_fp32.sum")
    return total, tensor


def dram(counters):
    read, write = counters.get("dram__bytes_read.sum"), counters.get("dram__bytes_write.sum")
    return None if read is None or write is None else read + write


ncu = read_ncu()
report, purlin = read_purlin("work")
table, bad = [], []
for kernel in KERNELS:
    row, counters, launches = purlin.get(kernel, ({}, {}, {}))
    theirs = ncu.get(kernel, {})
    hit, miss = counters.get("lts__t_sectors_lookup_hit.sum"), counters.get("lts__t_sectors_lookup_miss.sum")
    ours_flops, ours_tensor = flops(counters)
    ncu_flops, ncu_tensor = flops(theirs)
    facts = [
        ("dram_bytes", dram(counters), dram(theirs), 0.02),
        ("occupancy_pct", counters.get("sm__warps_active.avg.pct_of_peak_sustained_active"),
         theirs.get("sm__warps_active.avg.pct_of_peak_sustained_active"), 0.02),
        ("vector_flops", ours_flops, ncu_flops, 0.02),
        ("tensor_flops", ours_tensor if ours_tensor is not None else (0 if kernel != "tensor_bf16" else None), ncu_tensor, 0.02),
        ("l2_bytes", counters.get("lts__t_bytes.sum"), theirs.get("lts__t_bytes.sum"), 0.05),
        ("l2_hit_pct", 100 * hit / (hit + miss) if hit is not None and miss is not None else None,
         theirs.get("lts__t_sector_hit_rate.pct"), 0.05),
        ("time_ns", row.get("p50_ns"), theirs.get("gpu__time_duration.sum"), 0.10),
    ]
    for what, ours, reference, bound in facts:
        entry = {"kernel": kernel, "what": what, "purlin": ours, "ncu": reference, "bound": bound,
                 "launches": launches.get("dram__bytes_read.sum")}
        if ours is None or reference is None:
            entry["verdict"] = "missing"
        else:
            # Of what hardly touches memory, the counts are of the neighbourhood.
            slack = {"dram_bytes": 2e6, "l2_hit_pct": 2, "occupancy_pct": 0.5}.get(what, 0)
            entry["ratio"] = ours / reference if reference else None
            entry["verdict"] = "ok" if abs(ours - reference) <= max(bound * abs(reference), slack) else "differs"
        table.append(entry)
        if entry["verdict"] != "ok" and what in ("dram_bytes", "occupancy_pct", "vector_flops", "tensor_flops"):
            bad.append(f"{kernel} {what}")
for e in table:
    print("{kernel:12} {what:14} {p:>16} {n:>16} {r:>8} {verdict}".format(
        p="-" if e["purlin"] is None else f"{e['purlin']:.6g}", n="-" if e["ncu"] is None else f"{e['ncu']:.6g}",
        r="-" if e.get("ratio") is None else f"{e['ratio']:.4f}", **e))
result = {"table": table, "bad": bad, "alone": json.load(open(alone_file)), "notes": report["coverage"]["notes"],
          "coverage": {k: v for k, v in report["coverage"].items() if k != "notes"},
          "readings": {k: v[2] for k, v in purlin.items()}}
for what in ("full", "captures", "waits", "threads"):
    try:
        other, rows = read_purlin(what)
        result[what] = {"notes": other["coverage"]["notes"],
                        "counters": {k: {"n": len(v[1]), "dram": dram(v[1]), "sm_throughput": v[1].get("sm__throughput.avg.pct_of_peak_sustained_elapsed"),
                                         "duration": v[1].get("gpu__time_duration.sum"), "p50_ns": v[0].get("p50_ns"), "count": v[0].get("count")} for k, v in rows.items()}}
    except (OSError, ValueError) as problem:
        result[what] = str(problem)
json.dump(result, open(os.path.join(out, "counters_gpu.json"), "w"), indent=1)
print("notes:", [n["cause"] for n in result["notes"]])
print("counters against ncu:", "ok" if not bad else "DIFFER: " + ", ".join(bad))
sys.exit(1 if bad else 0)
