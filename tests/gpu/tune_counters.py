"""Judges the sessions of tune_counters_gpu.sh: FOLDER OUTPUT."""
import json
import statistics
import sys

folder, output = sys.argv[1:]
names = ["plain", "counted", "again", "cold", "plain_small", "counted_small"]
documents = {name: json.load(open(f"{folder}/{name}.json")) for name in names}
wanting = []
summary = {"schema": "purlin.bench.tune-counters/1", "environment": documents["plain"]["environment"], "sessions": {}}


def check(holds, what):
    if not holds:
        wanting.append(what)
        print("WANTING:", what)


def key(evaluation):
    return json.dumps(evaluation["config"], sort_keys=True)


def counted_of(document):
    return [e for e in document["evaluations"] if "dram_read_bytes" in e.get("counters", {})]


def per_minute(document):
    return 60 * len(document["evaluations"]) / document["elapsed_s"]


for name, document in documents.items():
    counted = counted_of(document)
    seconds = [e["counters_s"] for e in counted]
    row = {"evaluations": len(document["evaluations"]), "per_minute": per_minute(document), "best_ms": document["best"]["time_ms"],
           "default_ms": document["default"]["time_ms"], "counted": len(counted), "counting_s": sum(seconds)}
    if seconds:
        row["first_s"], row["median_s"] = seconds[0], statistics.median(seconds[1:] or seconds)
        row["share"] = sum(seconds) / document["elapsed_s"]
        row["example"] = counted[-1]["counters"]
    summary["sessions"][name] = row
    print(name, json.dumps({k: v for k, v in row.items() if k != "example"}))
    if name in ("plain", "plain_small", "again"):
        check(not counted and "hardware_counters" not in document, f"{name}: counters were read though nobody asked")
        continue
    check("problem" not in document["hardware_counters"], f"{name}: {document['hardware_counters'].get('problem')}")
    check(len(counted) >= 8, f"{name}: counters of {len(counted)} configs only")
    for e in counted:
        c = e["counters"]
        for what in ("achieved_occupancy_pct", "dram_busy_pct", "issue_busy_pct", "l2_hit_pct", "l1_hit_pct", "fma_busy_pct", "active_sm_pct"):
            check(0 <= c.get(what, -1) <= 105, f"{name}: {what} is {c.get(what)} in {key(e)}")
        check(c["instructions"] > 0 and c["l2_bytes"] > 0, f"{name}: nothing was executed in {key(e)}")
        # What it took while it was counted is near what it took while it was timed.
        if not e.get("raced_out"):
            check(0.6 < c["counted_us"] / (1e3 * e["time_ms"]) < 1.4, f"{name}: {c['counted_us']} us counted, {e['time_ms']} ms timed: {key(e)}")
        check(c["achieved_occupancy_pct"] <= 100 * c["occupancy"] + 3, f"{name}: {c['achieved_occupancy_pct']} % of the warps where {c['occupancy']} fit")
    if name == "cold":  # the flushed L2 holds nothing of A and B: 4 bytes of each element at least
        least = 2 * 2048 * 2048 * 4
        for e in counted:
            check(e["counters"]["dram_read_bytes"] >= 0.97 * least, f"cold: {e['counters']['dram_read_bytes']} bytes read, {least} must be: {key(e)}")
if counted_of(documents["cold"]):
    print("counters of one config:", json.dumps(counted_of(documents["cold"])[0]["counters"]))

# Timing is not disturbed: the same configs took as long in either session. (Winners are those of unlike numbers of
# evaluations, by chance among the first: their ratio is told, not judged.)
for plain, counted in (("plain", "counted"), ("plain_small", "counted_small")):
    before = {key(e): e["time_ms"] for e in documents[plain]["evaluations"] if e["status"] == "ok" and not e.get("raced_out")}
    ratios = [e["time_ms"] / before[key(e)] for e in documents[counted]["evaluations"] if key(e) in before and e["status"] == "ok" and not e.get("raced_out")]
    default = documents[counted]["default"]["time_ms"] / documents[plain]["default"]["time_ms"]
    best = documents[counted]["best"]["time_ms"] / documents[plain]["best"]["time_ms"]
    middle = statistics.median(ratios) if ratios else None
    print(f"{counted} over {plain}: default {default:.4f}, best {best:.4f}, {len(ratios)} configs of both: median {middle}")
    summary[counted + "_over_" + plain] = {"default": default, "best": best, "common": len(ratios), "median": middle}
    check(0.98 < default < 1.02, f"{counted}: the default took {default:.3f} times as long")
    check(middle is None or 0.98 < middle < 1.02, f"{counted}: the same configs took {middle} times as long")
# Its fastest configs once more, in a session that counts nothing.
searched = {key(e): e["time_ms"] for e in documents["counted"]["evaluations"] if e["status"] == "ok" and not e.get("raced_out")}
ratios = [searched[key(e)] / e["time_ms"] for e in documents["again"]["evaluations"] if key(e) in searched and e["status"] == "ok" and not e.get("raced_out")]
print(f"counted over again: {len(ratios)} configs of both:", [round(ratio, 4) for ratio in ratios])
summary["counted_over_again"] = ratios
check(len(ratios) >= 2 and 0.97 < statistics.median(ratios) < 1.03, f"the fastest configs took {ratios} times as long as where nobody counts")
summary["wanting"] = wanting
json.dump(summary, open(output, "w"), indent=1)
print("tune_counters_gpu:", f"{len(wanting)} found wanting" if wanting else "as it should be")
sys.exit(1 if wanting else 0)
