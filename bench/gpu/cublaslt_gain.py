#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cublaslt_gain.py: what tuned cuBLASLt algorithms gain over the heuristic's first choice, for GEMM shapes of LLMs.

Two steps, each timed:
 1. `purlin tune` of each shape on one GPU, inputs rotating so that weights come from memory as they do in a model;
    what is stored was confirmed by the tool in fresh processes, else the library's own choice stays.
 2. Fresh Python processes, which share nothing with the tuner but the cache, run each product both ways through the
    C interface (tuned; the heuristic's first choice): CUDA graphs of products over rotating weights, in turns.

  python3 bench/gpu/cublaslt_gain.py --purlin build/release/bin/purlin -o bench/results/cublaslt_gain.json
  python3 bench/gpu/cublaslt_gain.py --measure RESULTS.json      (what step 2 runs)
  python3 bench/gpu/cublaslt_gain.py --merge A.json B.json -o bench/results/cublaslt_gain_h200.json
      --report bench/results/cublaslt_gain_h200.md      (of parts that ran side by side; the report is the table)
  options: --gpus 0,1 (tunes and measures on several at once; of those CUDA_VISIBLE_DEVICES lists), --seconds 200 (of
  step 1), --part 0/2 (every second shape), --only REGEX, --budget 120 (half of it for outputs of many elements)
"""
import argparse
import concurrent.futures
import ctypes
import ctypes
import json
import math
import os
import random
import re
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

# (N, K) of the projections: outputs and inputs of a layer's weight.
MODELS = {
    "llama3-8b": {"qkv": (6144, 4096), "o": (4096, 4096), "gate_up": (28672, 4096), "down": (4096, 14336)},
    "llama3-70b/tp8": {"qkv": (1280, 8192), "o": (8192, 1024), "gate_up": (7168, 8192), "down": (8192, 3584)},
    "qwen3-32b/tp4": {"qkv": (2560, 5120), "gate_up": (12800, 5120), "down": (5120, 6400)},
    "deepseek-v3": {"q_a": (1536, 7168), "kv_b": (4096, 512), "o/tp8": (7168, 2048)},
}


PREFILL = [
    ("bf16", 2048, "llama3-8b", "o"), ("bf16", 4096, "llama3-70b/tp8", "qkv"), ("f8e4m3", 2048, "llama3-8b", "qkv"),
    ("f16", 2048, "llama3-8b", "down"), ("bf16", 8192, "llama3-70b/tp8", "qkv"), ("bf16", 2048, "qwen3-32b/tp4", "qkv"),
    ("f16", 4096, "qwen3-32b/tp4", "qkv"), ("bf16", 8192, "deepseek-v3", "q_a"),
    ("f8e4m3", 4096, "llama3-70b/tp8", "qkv"), ("bf16", 4096, "llama3-8b", "o"),
]


def shapes():
    """(name, dtype, M, N, K)."""
    listed = []
    for m in (16, 64, 1, 128, 32, 8, 512):
        for model, projections in MODELS.items():
            for name, (n, k) in projections.items():
                if m in (1, 8, 32) and name not in ("qkv", "down", "q_a"):
                    continue
                if m == 512 and name not in ("o", "qkv"):
                    continue
                listed.append(("%s %s" % (model, name), "bf16", m, n, k))
    for m in (16, 128):
        for model, name in (("llama3-8b", "o"), ("llama3-8b", "down"), ("llama3-70b/tp8", "qkv")):
            listed.append(("%s %s" % (model, name), "f16", m, *MODELS[model][name]))
            listed.append(("%s %s" % (model, name), "f8e4m3", m, *MODELS[model][name]))
    # Mixed by a fixed seed: a run that ends early has some of each. Those of long prompts come first.
    random.Random(5).shuffle(listed)
    return [("%s %s" % (model, name), dtype, m, *MODELS[model][name]) for dtype, m, model, name in PREFILL] + listed


def visible(options):
    """The device each worker gets, in the numbering of the driver."""
    of = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    return [of.split(",")[int(g)] if of else g for g in options.gpus.split(",")]


SPEC = """schema = "purlin.spec/1"
[problem]
M = 16
N = 4096
K = 4096
[library]
name = "cublaslt"
a = "%s"
transpose_b = true
"""


def torch_library():
    """The libcublasLt that PyTorch loads, which step 2 uses: step 1 has to tune that very version."""
    done = subprocess.run([sys.executable, "-m", "purlin.torch"], capture_output=True, text=True,
                          env=dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python")))
    return done.stdout.strip() if done.returncode == 0 else ""


def tune_one(options, folder, gpu, shape):
    name, dtype, m, n, k = shape
    # Every output is checked on the host, which for these takes as long as compiling does elsewhere.
    budget = options.budget if m * n < 6 << 20 else str(max(1, int(options.budget) // 2))
    spec = os.path.join(folder, dtype + ".toml")
    start = time.time()
    line = [options.purlin, "tune", spec, "--shape", "M=%d,N=%d,K=%d" % (m, n, k), "--device", "cuda:0", "--budget",
            budget, "--samples", "12", "--finals", "3", "--cache", options.cache, "--json", "-q"]
    done = subprocess.run(line, capture_output=True, text=True,
                          env=dict(os.environ, CUDA_VISIBLE_DEVICES=str(gpu),
                                   XDG_CACHE_HOME=os.path.join(folder, "cache")))
    row = {"name": name, "dtype": dtype, "M": m, "N": n, "K": k, "gpu": gpu, "tune_s": round(time.time() - start, 2)}
    if done.returncode != 0:
        row["error"] = done.stderr[-300:]
        return row
    d = json.loads(done.stdout)
    statuses = {}
    for e in d["evaluations"]:
        statuses[e["status"]] = statuses.get(e["status"], 0) + 1
    row.update(library=d["environment"]["devices"][0]["toolkit"], algorithms=d["space"]["valid"], evaluations=statuses, best=d["best"]["config"],
               is_default=d["best"]["config"] == d["default"]["config"],
               tuner_gain=d["default"]["time_ms"] / d["best"]["time_ms"], default=d["default"]["config"],
               default_us=d["default"]["time_ms"] * 1e3,
               confirmations=[{"gain_by_process": c["gain_by_process"], "holds": c["holds"]}
                              for c in d.get("confirmations", [])])
    return row


def tune(options):
    gpus = visible(options)
    part, parts = map(int, options.part.split("/"))
    chosen = [s for s in shapes()[part::parts] if re.search(options.only, "%s %s M=%d" % (s[0], s[1], s[2]))]
    folder = tempfile.mkdtemp(prefix="cublaslt-gain-")
    if "PURLIN_CUBLASLT" not in os.environ and torch_library():
        os.environ["PURLIN_CUBLASLT"] = torch_library()
    print("cuBLASLt: %s" % os.environ.get("PURLIN_CUBLASLT", "as found"), file=sys.stderr)
    for dtype in ("bf16", "f16", "f8e4m3"):
        with open(os.path.join(folder, dtype + ".toml"), "w") as file:
            file.write(SPEC % dtype)
    start, rows, queue = time.time(), [], list(chosen)

    def serve(gpu):
        while queue and time.time() - start < options.seconds:
            shape = queue.pop(0)
            row = tune_one(options, folder, gpu, shape)
            rows.append(row)
            print("%-24s %-6s M=%-5d %5.1f s  %s" % (row["name"], row["dtype"], row["M"], row["tune_s"],
                  row.get("error") or "%.3f x%s" % (row["tuner_gain"], " (default)" if row["is_default"] else "")),
                  file=sys.stderr, flush=True)

    with concurrent.futures.ThreadPoolExecutor(len(gpus)) as pool:
        list(pool.map(serve, gpus))
    return {"rows": rows, "tune_s": time.time() - start, "left_out": len(queue)}


# --- Step 2: in a process of its own ---------------------------------------------------------------------------


def measure(path, output, cache):
    """Each product tuned and by the heuristic's first choice, in turns; prints gains as JSON."""
    sys.path.insert(0, os.path.join(ROOT, "python"))
    import torch
    from purlin import torch as ours
    from purlin._cache import Cache
    from purlin._library import CublasLtLaunch, check, library
    from purlin._library import CublasLtLaunch, check, library

    rows = json.load(open(path))["rows"]
    opened = Cache(cache)
    facts = opened.device("cuda:0")
    names = {"bf16": torch.bfloat16, "f16": torch.float16, "f8e4m3": torch.float8_e4m3fn}
    ours._NAMES.setdefault(torch.float8_e4m3fn, b"f8e4m3")
    products, results, outcome = {}, [], ctypes.c_int()
    workspace = torch.empty(32 << 20, dtype=torch.uint8, device="cuda")
    torch.manual_seed(int.from_bytes(os.urandom(2), "little"))
    for row in rows:
        if "error" in row:
            continue
        m, n, k, dtype = row["M"], row["N"], row["K"], names[row["dtype"]]
        if dtype not in products:
            products[dtype] = ours.Product(opened, 0, facts, dtype, False, True, False, "f32", None)
        product = products[dtype]
        result = torch.float8_e4m3fn
        result = torch.bfloat16 if dtype is result else dtype
        # Enough copies of the weights that none is found in L2 (50 MB on an H200).
        copies = max(1, min(64, (160 << 20) // (n * k * dtype.itemsize) + 1))
        x = (torch.rand(m, k, device="cuda") * 2 - 1).to(dtype)
        weights = [(torch.rand(n, k, device="cuda") * 2 - 1).to(dtype) for _ in range(copies)]
        y = torch.empty(m, n, dtype=result, device="cuda")
        launches = max(3, min(24, int(1.5e-3 / (row["default_us"] * 1e-6))))

        def graph_of(fallback):
            graph, side = torch.cuda.CUDAGraph(), torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())

            launch = CublasLtLaunch(size=ctypes.sizeof(CublasLtLaunch), extents=(ctypes.c_int64 * 3)(m, n, k),
                                    extent_count=3, a=x.data_ptr(), d=y.data_ptr(), workspace=workspace.data_ptr(),
                                    workspace_bytes=workspace.numel(), fallback=fallback)

            def run(weight):
                launch.b, launch.stream = weight.data_ptr(), torch.cuda.current_stream().cuda_stream
                check(library().purlin_cublaslt_matmul(product.handle, ctypes.byref(launch), ctypes.byref(outcome)))
                return outcome.value

            with torch.cuda.stream(side):
                tuned = run(weights[0])
            torch.cuda.current_stream().wait_stream(side)
            torch.cuda.synchronize()
            with torch.cuda.graph(graph):
                for i in range(launches):
                    run(weights[i % copies])
            return graph, tuned

        heuristic, _ = graph_of(ours.HEURISTIC)
        tuned, hit = graph_of(ours.TUNED_ONLY)
        if not hit:  # a program would run the heuristic's choice
            results.append({"name": row["name"], "dtype": row["dtype"], "M": m, "N": n, "K": k, "hit": False,
                            "gain": 1.0, "tuned_us": 0, "heuristic_us": 0, "worst_difference": 0})
            continue
        tuned.replay()
        heuristic.replay()
        torch.cuda.synchronize()
        wanted = y.float().clone()  # of the heuristic, on the last weights
        tuned.replay()
        torch.cuda.synchronize()
        scale = wanted.abs().mean().item() + 1e-6
        worst = ((y.float() - wanted).abs().max().item()) / scale
        times = {"tuned": [], "heuristic": []}
        order = [("tuned", tuned), ("heuristic", heuristic)]
        for turn in range(16):
            for label, graph in (order if turn % 2 else order[::-1]):
                first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                first.record()
                graph.replay()
                last.record()
                last.synchronize()
                times[label].append(first.elapsed_time(last) * 1e3 / launches)
        # In pairs, so that drifting clocks fall on both alike.
        gain = statistics.median(h / t for h, t in zip(times["heuristic"], times["tuned"]))
        results.append({"name": row["name"], "dtype": row["dtype"], "M": m, "N": n, "K": k, "hit": hit, "gain": gain,
                        "tuned_us": statistics.median(times["tuned"]),
                        "heuristic_us": statistics.median(times["heuristic"]), "worst_difference": worst})
        del weights
    json.dump(results, open(output, "w"))


def remeasure(options, found, path):
    json.dump(found, open(path, "w"))
    gpus = visible(options)
    start, runs = time.time(), []

    def launch(number):
        output = "%s.%d" % (path, number)
        done = subprocess.run([sys.executable, os.path.abspath(__file__), "--measure", path, "--measured", output,
                               "--cache", options.cache], capture_output=True, text=True,
                              env=dict(os.environ, CUDA_VISIBLE_DEVICES=str(gpus[number % len(gpus)]),
                                       PURLIN_RECORD="0"))
        if done.returncode != 0:
            print(done.stderr[-1500:], file=sys.stderr)
            return None
        return json.load(open(output))

    with concurrent.futures.ThreadPoolExecutor(len(gpus)) as pool:
        runs = [r for r in pool.map(launch, range(options.processes)) if r]
    for row in found["rows"]:
        gains = [r for run in runs for r in run
                 if (r["name"], r["dtype"], r["M"]) == (row["name"], row["dtype"], row["M"])]
        if not gains:
            continue
        row["gain_by_process"] = [round(g["gain"], 4) for g in gains]
        row["gain"] = statistics.median(g["gain"] for g in gains)
        row["hit"] = all(g["hit"] for g in gains)
        row["tuned_us"] = statistics.median(g["tuned_us"] for g in gains)
        row["heuristic_us"] = statistics.median(g["heuristic_us"] for g in gains)
        row["worst_difference"] = max(g["worst_difference"] for g in gains)
    found["measure_s"] = time.time() - start
    found["processes"] = len(runs)
    return found


def summary(found):
    rows = [r for r in found["rows"] if "gain" in r]
    geomean = lambda values: math.exp(sum(map(math.log, values)) / len(values)) if values else 0
    gains = [r["gain"] for r in rows]
    changed = [r["gain"] for r in rows if not r["is_default"]]
    by_m = {}
    for r in rows:
        by_m.setdefault(r["M"], []).append(r["gain"])
    return {"shapes": len(rows), "geomean": geomean(gains), "max": max(gains, default=0), "min": min(gains, default=0),
            "below_0.99": sum(g < 0.99 for g in gains), "changed": len(changed), "geomean_changed": geomean(changed),
            "by_m": {str(m): {"shapes": len(g), "geomean": geomean(g), "max": max(g)} for m, g in sorted(by_m.items())},
            "misses": sum(not r["hit"] for r in rows), "errors": sum("error" in r for r in found["rows"]),
            "tune_s": found["tune_s"], "measure_s": found.get("measure_s")}


def report(found, gpus, raw):
    """The table as Markdown."""
    total, rows = found["summary"], [r for r in found["rows"] if "gain" in r]
    libraries = ", ".join(sorted({r["library"] for r in rows if "library" in r}))
    commands = found["command"] if isinstance(found["command"], list) else [found["command"]]
    low = [r for r in rows if r["gain"] < 0.99]
    by_m = " · ".join("M=%s: %.3f (%d shapes, max %.3f)" % (m, g["geomean"], g["shapes"], g["max"])
                      for m, g in total["by_m"].items())
    lines = [
        "# Tuned cuBLASLt algorithms against the heuristic's first choice", "",
        "%d × %s, clocks untouched, %s; %d shapes. Raw: `%s`." % (gpus, found.get("gpu", "?"), libraries, len(rows), raw), "",
        *("    python3 %s" % c for c in commands), "",
        "y = x · wᵀ, weights from memory. Step 1, `purlin tune` of each shape, every output checked: %.1f s a shape (median; %.0f s"
        " of GPU time in all). What is stored was no slower than the default in" % (
            statistics.median(r["tune_s"] for r in rows), total["tune_s"]),
        "each of three fresh processes, with inputs from memory and, within 0.5 %%, with inputs in the cache; else the library's"
        " own choice stays. Step 2, %d fresh Python processes, which share only" % found["processes"],
        "the cache with the tuner: CUDA graphs of tuned and heuristic products over rotating weights, in turns, through"
        " `purlin_cublaslt_matmul`. The gain is the median over the processes.", "",
        "**Geomean %.4f, max %.3f, min %.3f** over %d shapes; %d take another algorithm than the heuristic's, with a geomean of"
        " %.3f; for the others the library's choice stayed." % (
            total["geomean"], total["max"], total["min"], len(rows), total["changed"], total["geomean_changed"]),
        "By rows: %s." % by_m, "",
        "Below 0.99: %s." % (", ".join("%s %s M=%d (%.3f)" % (r["name"], r["dtype"], r["M"], r["gain"]) for r in low) or "none"),
        "Products that failed to tune: %d; served without a stored winner: %d." % (total["errors"], total["misses"]), "",
        "| product | type | M | N | K | algorithms | heuristic, µs | tuned, µs | gain | by process | tuner's own |",
        "|---|---|---|---|---|---|---|---|---|---|---|"]
    for r in sorted(rows, key=lambda row: -row["gain"]):
        lines.append("| %s | %s | %d | %d | %d | %s | %.2f | %.2f | **%.3f** | %s | %s |" % (
            r["name"], r["dtype"], r["M"], r["N"], r["K"], format(r["algorithms"], ","), r["heuristic_us"], r["tuned_us"],
            r["gain"], ", ".join("%.3f" % g for g in r["gain_by_process"]),
            "default kept" if r["is_default"] else "%.3f" % r["tuner_gain"]))
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--purlin", default=os.path.join(ROOT, "build/release/bin/purlin"))
    parser.add_argument("-o", "--output", default="cublaslt_gain.json")
    parser.add_argument("--gpus", default="0")
    parser.add_argument("--seconds", type=float, default=200)
    parser.add_argument("--budget", default="120")
    parser.add_argument("--part", default="0/1")
    parser.add_argument("--merge", nargs="+")
    parser.add_argument("--report")
    parser.add_argument("--only", default="")
    parser.add_argument("--processes", type=int, default=3)
    parser.add_argument("--cache")
    parser.add_argument("--measure")
    parser.add_argument("--measured")
    options = parser.parse_args()
    if options.measure:
        return measure(options.measure, options.measured, options.cache)
    if options.merge:
        parts = [json.load(open(path)) for path in options.merge]
        found = dict(parts[0], rows=[row for part in parts for row in part["rows"]],
                     tune_s=sum(p["tune_s"] for p in parts), measure_s=sum(p["measure_s"] for p in parts),
                     left_out=parts[0]["left_out"], command=[p["command"] for p in parts])
        found["summary"] = summary(found)
        with open(options.output, "w") as file:
            file.write(json.dumps(found, indent=1) + "\n")
        if options.report:
            with open(options.report, "w") as file:
                file.write(report(found, len(parts), os.path.basename(options.output)))
        return print(json.dumps(found["summary"], indent=1))
    options.purlin = os.path.abspath(options.purlin)
    options.cache = os.path.abspath(options.cache or options.output + ".cache")
    os.environ.setdefault("PURLIN_LIBRARY", os.path.join(os.path.dirname(os.path.dirname(options.purlin)),
                                                         "lib/libpurlin.so"))
    found = tune(options)
    json.dump(found, open(options.output, "w"), indent=1)
    with tarfile.open(options.output + ".cache.tgz", "w:gz") as archive:  # so that step 2 can be made again
        archive.add(options.cache, "cache")
    found = remeasure(options, found, options.output + ".rows")
    found["summary"] = summary(found)
    try:
        found["gpu"] = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
                                      capture_output=True, text=True).stdout.split("\n")[0]
    except OSError:
        pass
    found["command"] = " ".join(sys.argv)
    json.dump(found, open(options.output, "w"), indent=1)
    print(json.dumps(found["summary"], indent=1))


if __name__ == "__main__":
    main()
