# SPDX-License-Identifier: Apache-2.0
"""Measures the pairs of pairs.py on a GPU: `python3 run.py OUT [NAME…]` writes OUT/pairs.json and OUT/traces/NAME.json.gz.
`--later` takes those of pairs_later.py, `--unseen` of pairs_unseen.py, `--practice` of pairs_practice.py, `--compiled` of
pairs_compiled.py, `--fourth` of pairs_fourth.py, `--fifth` of pairs_fifth.py, `--sixth` of pairs_sixth.py, `--seventh` of
pairs_seventh.py, `--eighth` of pairs_eighth.py, `--ninth` of pairs_ninth.py, `--tenth` of pairs_tenth.py, `--eleventh` of
pairs_eleventh.py, `--twelfth` of pairs_twelfth.py, `--thirteenth` of pairs_thirteenth.py, `--fourteenth` of
pairs_fourteenth.py, `--fifteenth` of pairs_fifteenth.py, `--sixteenth` of pairs_sixteenth.py, `--seventeenth` of
pairs_seventeenth.py, `--eighteenth` of pairs_eighteenth.py, `--nineteenth` of pairs_nineteenth.py, `--twentieth` of
pairs_twentieth.py. Of an odd hash of its name, a pair is set aside; all of pairs_unseen.py and pairs_fourth.py are, none of
pairs_compiled.py. `--rounds N` sets how many turns before and after take (7).

The time of a step is of the program without a profiler: before and after take turns in blocks of about a tenth of a
second, the device is waited for at the end of a block. The trace is torch.profiler's, with shapes, 12 steps of the
program as found, after everything was measured. Then PyTorch's execution trace of some more steps follows, in which the result of
each step is read. A pair that fails is kept with its error. A pair that its file lists in SYNCED is
measured and recorded a second time with the device waited for after each step (`synced` in pairs.json).
"""

import gc
import gzip
import hashlib
import importlib
import json
import os
import platform
import shutil
import signal
import statistics
import subprocess
import sys
import time
import traceback

import torch
from torch.profiler import ExecutionTraceObserver, ProfilerActivity, profile, record_function, schedule

SETS = {"--later": "pairs_later", "--unseen": "pairs_unseen", "--practice": "pairs_practice", "--compiled": "pairs_compiled",
        "--fourth": "pairs_fourth", "--fifth": "pairs_fifth", "--sixth": "pairs_sixth", "--seventh": "pairs_seventh",
        "--eighth": "pairs_eighth", "--ninth": "pairs_ninth", "--tenth": "pairs_tenth", "--eleventh": "pairs_eleventh",
        "--twelfth": "pairs_twelfth", "--thirteenth": "pairs_thirteenth", "--fourteenth": "pairs_fourteenth",
        "--fifteenth": "pairs_fifteenth", "--sixteenth": "pairs_sixteenth", "--seventeenth": "pairs_seventeenth",
        "--eighteenth": "pairs_eighteenth", "--nineteenth": "pairs_nineteenth", "--twentieth": "pairs_twentieth"}
OF_SET = [option for option in SETS if option in sys.argv]
for option in OF_SET:
    sys.argv.remove(option)
ROUNDS = 7
if "--rounds" in sys.argv:
    AT = sys.argv.index("--rounds")
    ROUNDS = int(sys.argv[AT + 1])
    del sys.argv[AT:AT + 2]
MODULE = importlib.import_module(SETS[OF_SET[0]] if OF_SET else "pairs")
PAIRS, SYNCED = MODULE.PAIRS, getattr(MODULE, "SYNCED", [])

BLOCK_S, STEPS, FLOW_STEPS = 0.08, 12, 4
MOST_S = 45  # of one pair


def set_aside(name):
    if OF_SET and OF_SET[0] in ("--unseen", "--fourth", "--compiled"):
        return OF_SET[0] != "--compiled"
    return hashlib.sha256(name.encode()).digest()[0] % 2 == 1


def block(step, count):
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(count):
        step()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / count * 1e3


def measure(before, after):
    counts = []
    for step in (before, after):
        block(step, 3)
        counts.append(max(2, min(3000, int(BLOCK_S * 1e3 / block(step, 3)))))
    times = ([], [])
    for number in range(ROUNDS):
        for which in ((0, 1) if number % 2 == 0 else (1, 0)):
            times[which].append(block((before, after)[which], counts[which]))
    return times


def record(step, path):
    options = {"activities": [ProfilerActivity.CPU, ProfilerActivity.CUDA], "record_shapes": True}
    with profile(schedule=schedule(wait=0, warmup=1, active=STEPS, repeat=1), **options) as profiler:
        for _ in range(STEPS + 1):
            step()
            profiler.step()
        torch.cuda.synchronize()
    profiler.export_chrome_trace(path)


def read(result):
    """As the caller of a step reads what it returns."""
    if isinstance(result, torch.Tensor):
        result.detach().cpu()
    elif isinstance(result, dict):
        read(list(result.values()))
    elif isinstance(result, (list, tuple)):
        for one in result:
            read(one)


def record_flow(step, path):
    """PyTorch's execution trace of a few steps: which op reads and writes which tensor."""
    raw = path[:-len(".gz")]
    observer = ExecutionTraceObserver()
    observer.register_callback(raw)
    observer.start()
    try:
        for number in range(FLOW_STEPS):
            with record_function(f"ProfilerStep#{number}"):
                result = step()
            read(result)  # not in the step: the trace with times has none of these ops
        torch.cuda.synchronize()
    finally:
        observer.stop()
        observer.unregister_callback()
    with open(raw, "rb") as plain, gzip.open(path, "wb", compresslevel=6) as packed:
        shutil.copyfileobj(plain, packed)
    os.remove(raw)


def with_synchronisation(step):
    def both():
        step()
        torch.cuda.synchronize()
    return both


def measured(before, after, name, out):
    """The fields of a row: what was measured, then recorded."""
    row = {}
    times = measure(before, after)
    for which, values in zip(("before", "after"), times):
        row[which + "_ms"] = statistics.median(values)
        row[which + "_all_ms"] = values
    row["saved_share"] = 1 - row["after_ms"] / row["before_ms"]
    row["trace"] = f"traces/{name}.json.gz"
    record(before, os.path.join(out, row["trace"]))
    row["trace_bytes"] = os.path.getsize(os.path.join(out, row["trace"]))
    row["flow"] = f"traces/{name}.flow.json.gz"
    record_flow(before, os.path.join(out, row["flow"]))
    return row


def too_long(signum, frame):
    raise TimeoutError(f"over {MOST_S} s")


def one(name, entry, out):
    row = {"name": name, "rule": entry["rule"], "also": entry["also"], "null": entry["null"],
           "set_aside": set_aside(name)}
    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(MOST_S)
    try:
        before, after = entry["make"]()
        row.update(measured(before, after, name, out))
        if name in SYNCED:
            row["synced"] = measured(with_synchronisation(before), with_synchronisation(after), f"{name}.synced", out)
    except Exception as error:  # noqa: BLE001 - one pair's failure is not the others'
        row["error"] = f"{type(error).__name__}: {error}"
        traceback.print_exc(limit=4)
    finally:
        signal.alarm(0)
    return row


def environment():
    smi = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version,clocks.sm,clocks.max.sm", "--format=csv,noheader"],
                         capture_output=True, text=True, check=False).stdout.strip()
    return {"gpu": torch.cuda.get_device_name(), "smi": smi, "torch": torch.__version__, "cuda": torch.version.cuda,
            "python": platform.python_version(), "cpus": os.cpu_count(),
            "utc": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}


def main():
    out, names = sys.argv[1], sys.argv[2:] or list(PAIRS)
    os.makedirs(os.path.join(out, "traces"), exist_ok=True)
    document = {"schema": "purlin.advice_pairs/1", "command": "run.py OUT", "rounds": ROUNDS,
                "environment": environment(), "pairs": []}
    started = time.monotonic()
    for name in names:
        torch.manual_seed(0)
        row = one(name, PAIRS[name], out)
        document["pairs"].append(row)
        what = row.get("error") or f"{row['before_ms']:.3f} -> {row['after_ms']:.3f} ms, {row['trace_bytes'] / 1e3:.0f} kB"
        print(f"{time.monotonic() - started:6.1f} s  {name}: {what}", flush=True)
        with open(os.path.join(out, "pairs.json"), "w", encoding="utf-8") as file:
            json.dump(document, file, indent=1)
        gc.collect()
        torch.cuda.empty_cache()
    failed = [row["name"] for row in document["pairs"] if "error" in row]
    print(f"{len(document['pairs'])} pairs, {len(failed)} failed: {', '.join(failed)}")
    # Threads of a pair may still make batches.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
