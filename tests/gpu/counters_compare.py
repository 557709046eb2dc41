# SPDX-License-Identifier: Apache-2.0
"""The tables of counters_gpu.sh: counters_compare.py RAW ncu.csv OUT. Writes OUT/counters_h200.{md,json}."""
import collections
import csv
import glob
import json
import os
import re
import statistics
import sys

raw, ncu_file, out = sys.argv[1:4]
FACTOR = {"Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "Tbyte": 1e12, "byte": 1, "us": 1e3, "usecond": 1e3, "ms": 1e6,
          "msecond": 1e6, "ns": 1, "nsecond": 1, "second": 1e9, "s": 1e9}
KERNELS = ["copy", "fma_fp32", "tensor_bf16", "reduce", "transpose", "l2_resident"]
HIT, MISS = "lts__t_sectors_lookup_hit.sum", "lts__t_sectors_lookup_miss.sum"
TENSOR = "sm__ops_path_tensor_src_bf16_dst_fp32.sum"
# Of what the memory could have moved, or the GPU computed, in the kernel's time: less than this is neither
# side's to tell from its neighbours' traffic and the profilers' own.
TINY = 0.002
BYTES_PER_NS, L2_BYTES_PER_NS, FLOPS_PER_NS = 4.8e3, 1e4, 67e3
JUDGED = ("dram_bytes", "occupancy_pct", "vector_flops", "tensor_flops", "time_ns")


def read_ncu():
    rows = list(csv.reader(line for line in open(ncu_file) if line.startswith('"')))
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
    # The first launches of each kernel are colder. What varies from launch to launch says how much is noise.
    return ({k: {m: statistics.median(v[2:]) for m, v in metrics.items() if len(v) > 2} for k, metrics in found.items()},
            {k: {m: max(v[2:]) - min(v[2:]) for m, v in metrics.items()
                 if len(v) > 2 and m.endswith((".sum", ".pct_of_peak_sustained_active")) and "attribute" not in m} for k, metrics in found.items()})


def read_purlin(name):
    report = json.load(open(os.path.join(raw, f"counters_{name}.json")))
    rows = {}
    for row in report["kernels"]:
        for kernel in KERNELS:
            if kernel in row["name"]:
                rows[kernel] = (row, {c["name"]: c["value"] for c in row["counters"]},
                                {c["name"]: c["launches"] for c in row["counters"]})
    return report, rows


def facts(counters):
    op = "smsp__sass_thread_inst_executed_op_%s_pred_on.sum"
    vector = [counters.get(op % o) for o in ("ffma", "fadd", "fmul")]
    read, write = counters.get("dram__bytes_read.sum"), counters.get("dram__bytes_write.sum")
    hit, miss = counters.get(HIT), counters.get(MISS)
    return {"dram_bytes": None if read is None or write is None else read + write,
            "occupancy_pct": counters.get("sm__warps_active.avg.pct_of_peak_sustained_active"),
            "vector_flops": None if None in vector else 2 * vector[0] + vector[1] + vector[2],
            "tensor_flops": counters.get(TENSOR),
            "l2_bytes": counters.get("lts__t_bytes.sum"),
            "l2_hit_pct": None if hit is None or miss is None or hit + miss == 0 else 100 * hit / (hit + miss)}


def tolerances(time_ns):
    """What: (share, absolute)"""
    return {"dram_bytes": (0.02, TINY * BYTES_PER_NS * time_ns), "occupancy_pct": (0.02, 0.5),
            "vector_flops": (0.02, TINY * FLOPS_PER_NS * time_ns), "tensor_flops": (0.02, 0),
            "l2_bytes": (0.05, TINY * L2_BYTES_PER_NS * time_ns), "l2_hit_pct": (0.05, 2), "time_ns": (0.05, 1500)}


def rate(name):
    found = re.search(r'"us_per_round": ([\d.]+)', open(os.path.join(raw, name + ".err")).read())
    return float(found.group(1)) if found else None


def told(name):
    try:
        report, rows = read_purlin(name)
    except (OSError, ValueError) as problem:
        return {"problem": str(problem)}
    said = open(os.path.join(raw, name + ".err")).read().splitlines()
    return {"said": [line for line in said if "ok" in line or "BROKEN" in line],
            "notes": [{k: n[k] for k in ("cause", "count", "text")} for n in report["coverage"]["notes"]],
            "counters": {k: len(v[1]) for k, v in rows.items()}}


ncu, spread = read_ncu()
report, purlin = read_purlin("work")
table, bad = [], []
for kernel in KERNELS:
    row, counters, launches = purlin.get(kernel, ({}, {}, {}))
    theirs = facts(ncu.get(kernel, {})) | {"time_ns": ncu.get(kernel, {}).get("gpu__time_duration.sum")}
    ours = facts(counters) | {"time_ns": row.get("p50_ns")}
    if ours["tensor_flops"] is None and counters.get("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active") == 0:
        ours["tensor_flops"] = 0  # not asked for of a kernel that leaves the tensor cores alone
    for what, (share, absolute) in tolerances(ours["time_ns"] or 0).items():
        mine, reference = ours[what], theirs[what]
        entry = {"kernel": kernel, "what": what, "purlin": mine, "ncu": reference, "share": share, "absolute": absolute,
                 "judged": what in JUDGED}
        if mine is None or reference is None:
            entry["verdict"] = "missing"
        else:
            difference = abs(mine - reference)
            entry["ratio"] = mine / reference if reference else None
            entry["verdict"] = ("ok" if difference <= share * abs(reference) else
                                "tiny" if difference <= absolute else "differs")
        table.append(entry)
        if entry["judged"] and entry["verdict"] in ("missing", "differs"):
            bad.append(f"{kernel} {what}")

cost = {}
for what in ("alone", "plain", "default"):
    rates = [r for r in (rate(os.path.basename(f)[:-4]) for f in sorted(glob.glob(os.path.join(raw, what + "[0-9].err")))) if r]
    cost[what] = {"us_per_round": rates, "median": statistics.median(rates) if rates else None}
cost["much"] = {"us_per_round": [rate("work")], "median": rate("work")}
for what, entry in cost.items():
    if entry["median"] and cost["alone"]["median"]:
        entry["cost"] = entry["median"] / cost["alone"]["median"] - 1
overhead = {name: read_purlin(name)[0]["coverage"]["overhead_ns"] / read_purlin(name)[0]["wall_ns"]
            for name in ("work", "default1", "default2", "plain1") if os.path.exists(os.path.join(raw, f"counters_{name}.json"))}
others = {name: told(name) for name in ("work", "default1", "full", "captures", "waits", "threads")}
full = read_purlin("full")[1] if "problem" not in others["full"] else {}
deep = {k: facts(v[1]) | {"duration_ns": v[1].get("gpu__time_duration.sum"), "counters": len(v[1]),
                          "sm_throughput_pct": v[1].get("sm__throughput.avg.pct_of_peak_sustained_elapsed"),
                          "dram_throughput_pct": v[1].get("gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed")}
        for k, v in full.items() if v[1]}
result = {"schema": "purlin.bench.counters/1", "environment": report["environment"], "ncu": "application replay, clock and cache control none",
          "tiny": TINY, "table": table, "bad": bad, "cost": cost, "overhead_told": overhead, "programs": others, "deep_dive": deep,
          "ncu_spread": spread, "readings": {k: v[2] for k, v in purlin.items()}}
json.dump(result, open(os.path.join(out, "counters_h200.json"), "w"), indent=1)


def number(value):
    return "–" if value is None else f"{value:.4g}" if abs(value) < 1e4 else f"{value:.5g}"


lines = ["# Hardware counters against Nsight Compute", "",
         f"{report['environment']['devices'][0]['name']}, driver {report['environment']['devices'][0]['driver']}, "
         f"{report['environment']['recorded_at']}; `tests/gpu/counters_gpu.sh`.", "",
         "Purlin: means over the launches it read of `counters work`, six kernels in turn (`--counters memory,tensor,caches,flops --budget 100%`); time: the",
         "median of all launches' records. Nsight Compute: medians over launches 3 to 8 of the same program, application replay (each run",
         "measures one pass of every launch: kernels keep their neighbours and caches), clocks and caches uncontrolled.", "",
         f"*ok*: within 2 % (times and L2: 5 %). *tiny*: it differs by less than {TINY:.1%} of what the GPU could have moved or computed in",
         "the kernel's time, or by 1.5 µs (ncu's times of short kernels are 0.5 to 1.6 µs longer, of every one), or half a percent of occupancy. L2 is shown and not judged.", "",
         "| kernel | what | Purlin | ncu | ratio | |", "|---|---|--:|--:|--:|---|"]
for e in table:
    ratio = "–" if e.get("ratio") is None else f"{e['ratio']:.4f}"
    lines.append(f"| {e['kernel']} | {e['what']} | {number(e['purlin'])} | {number(e['ncu'])} | {ratio} | {e['verdict']}{'' if e['judged'] else ' (not judged)'} |")
lines += ["", "What it costs: µs for the six kernels, medians of processes in turn", "", "| | µs | cost | told as overhead |", "|---|--:|--:|--:|"]
for what, label, run in (("alone", "no capture", ""), ("plain", "`purlin profile`", "plain1"), ("default", "`--counters`, 8 s", "default1"), ("much", "`--counters memory,tensor,caches,flops --budget 100%`", "work")):
    e = cost[what]
    lines.append(f"| {label} | {number(e['median'])} | {'–' if e.get('cost') is None else format(e['cost'], '.1%')} | {format(overhead[run], '.1%') if run in overhead else '–'} |")
lines += ["", "Programs that reading must not break", "", "| program | said | counters read | notes |", "|---|---|--:|---|"]
for name in ("captures", "waits", "threads"):
    o = others[name]
    notes = ", ".join("{cause} {count:g}".format(**n) for n in o.get("notes", []))
    lines.append(f"| {name} | {'; '.join(o.get('said', [o.get('problem', '')]))} | {sum(o.get('counters', {}).values())} | {notes} |")
lines += ["", "`--counters full` (kernel replay: caches are as the kernel's last pass left them)", "",
          "| kernel | counters | duration µs | DRAM bytes | SM % | DRAM % | vector FLOPs | tensor FLOPs |", "|---|--:|--:|--:|--:|--:|--:|--:|"]
for k, d in deep.items():
    lines.append(f"| {k} | {d['counters']} | {number((d['duration_ns'] or 0) / 1e3)} | {number(d['dram_bytes'])} | {number(d['sm_throughput_pct'])} | {number(d['dram_throughput_pct'])} | {number(d['vector_flops'])} | {number(d['tensor_flops'])} |")
text = "\n".join(lines) + "\n"
open(os.path.join(out, "counters_h200.md"), "w").write(text)
print(text)
print("notes of work:", [n["cause"] for n in others["work"].get("notes", [])], "of --counters:", [n["cause"] for n in others["default1"].get("notes", [])])
print("counters against ncu:", "ok" if not bad else "DIFFER: " + ", ".join(bad))
sys.exit(1 if bad else 0)
