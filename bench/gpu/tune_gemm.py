#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a tuning session is worth on a GPU: gemm in fp32 and in bf16, three shapes each.

    OUT=out python3 bench/gpu/tune_gemm.py --purlin build/release/bin/purlin

For each: configs evaluated per minute, the share of that time in which the GPU was busy (by
nvidia-smi, every 100 ms), the best against cuBLAS (through torch, warm caches, before and after), and
worst to best. Then a gemm with planted mistakes: a wrong one, one that writes past its output and one
that never ends must each be rejected, and the good one among them must win.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import gemm_vs_cublas as peer  # noqa: E402
from gpu_busy import Busy  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
SHAPES = ["M=4096,N=4096,K=4096", "M=1024,N=4096,K=4096", "M=128,N=8192,K=4096"]
LIKE = {"gemm": "cublas_fp32", "gemm_bf16": "cublas_bf16"}


def tune(arguments, spec, shape, out):
    command = [arguments.purlin, "tune", str(spec), "--device", "cuda:0", "--budget", arguments.budget,
               "--no-store", "--no-transfer", "--fresh", "--json", "-q", *(["--shape", shape] if shape else [])]
    start = time.monotonic()
    with Busy() as busy, open(out, "w") as file:
        done = subprocess.run(command, stdout=file, check=False)
    wall_s = time.monotonic() - start
    if done.returncode != 0:
        sys.exit(f"tune_gemm: {' '.join(command)} ended with {done.returncode}")
    return json.loads(Path(out).read_text()), wall_s, busy


def row_of(name, shape_text, document, wall_s, busy, cublas):
    shape = peer.parse_shape(shape_text)
    row = peer.summarize(shape, document, cublas)
    evaluations = document["evaluations"]
    on_device_s = sum(e["measure_s"] + e["verify_s"] for e in evaluations)
    search_s = document["elapsed_s"]
    row.update({
        "kernel": name, "wall_s": wall_s, "search_s": search_s,
        "evaluations": len(evaluations), "evaluations_per_minute": len(evaluations) / search_s * 60,
        "gpu_busy": busy.mean(0) / 100 if busy.rows else None, "sm_clock_mhz": busy.mean(1),
        "power_w": busy.mean(2), "temperature_c": busy.mean(3),
        "verifying_or_measuring": on_device_s / search_s,
        "compile_s_per_config": statistics.fmean(e["compile_s"] for e in evaluations),
        "cached_binaries": sum(e["cached_binary"] for e in evaluations),
        "over_cublas": row["cublas"][LIKE[name]]["tuned_over_it"],
    })
    return row


def planted(arguments, out):
    """gemm with a parameter BUG: 1 wrong, 2 writes one row further, 3 never ends."""
    folder = out / "planted"
    folder.mkdir(parents=True, exist_ok=True)
    source = ROOT / "kernels" / "gemm"
    kernel = (source / "gemm.cu").read_text()
    for old, new in (
            ("sum[i][j * VECTOR + v];", "sum[i][j * VECTOR + v] * (BUG == 1 ? 1.01f : 1.0f);"),
            ("C + (size_t)row * N + column)", "C + (size_t)(row + (BUG == 2)) * N + column)"),
            ("  float sum[TM][TN] = {};", "#if BUG == 3\n  for (;;) asm volatile(\"nanosleep.u32 1000;\" "
             "::: \"memory\");\n#endif\n  float sum[TM][TN] = {};")):
        if kernel.count(old) != 1:
            sys.exit(f"tune_gemm: gemm.cu no longer has one '{old}' to plant a mistake in")
        kernel = kernel.replace(old, new)
    (folder / "gemm.cu").write_text(kernel)
    (folder / "gemm_reference.cu").write_text((source / "gemm_reference.cu").read_text())
    spec = (source / "gemm.toml").read_text()
    spec = re.sub(r"values = \[[^\]]*\], default = (\w+)", r"values = [\1]", spec)
    spec = re.sub(r"\[(kernel|reference)\.opencl\]\n(\w+ = .*\n)+", "", spec)
    spec = spec.replace("[parameters]", "[parameters]\nBUG = [0, 1, 2, 3]\n#", 1)
    (folder / "gemm.toml").write_text(spec)
    result = out / "planted.json"
    command = [arguments.purlin, "tune", str(folder / "gemm.toml"), "--device", "cuda:0", "--strategy", "exhaustive",
               "--timeout", "5s", "--no-store", "--fresh", "--json", "-q", "--shape", "M=1024,N=1024,K=1024"]
    with open(result, "w") as file:
        done = subprocess.run(command, stdout=file, check=False)
    document = json.loads(result.read_text())
    statuses = {e["config"]["BUG"]: e["status"] for e in document["evaluations"]}
    wanted = {0: "ok", 1: "wrong", 2: "out_of_bounds", 3: "timeout"}
    good = done.returncode == 0 and statuses == wanted and document["best"]["config"]["BUG"] == 0
    print(f"planted: {'rejected, the good one wins' if good else 'NOT AS WANTED'}: {statuses}")
    for evaluation in document["evaluations"]:
        if evaluation["status"] != "ok":
            print(f"  {evaluation['status']}: {evaluation.get('message', '').splitlines()[0][:200]}")
    return {"good": good, "statuses": statuses,
            "messages": {e["config"]["BUG"]: e.get("message", "") for e in document["evaluations"]}}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--purlin", default="build/release/bin/purlin")
    parser.add_argument("--budget", default="600,18s", help="of each of the six tunings")
    parser.add_argument("--kernel", action="append", choices=sorted(LIKE), default=[])
    parser.add_argument("--shape", action="append", default=[])
    arguments = parser.parse_args()
    out = Path(os.environ.get("OUT", "."))
    out.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("XDG_CACHE_HOME", str((out / "caches").resolve()))

    rows = []
    for name in arguments.kernel or ["gemm", "gemm_bf16"]:
        for shape in arguments.shape or SHAPES:
            before = peer.time_cublas(peer.parse_shape(shape))
            document, wall_s, busy = tune(arguments, ROOT / "kernels" / name / f"{name}.toml", shape,
                                          out / f"tune_{name}_{shape.replace(',', '_')}.json")
            after = peer.time_cublas(peer.parse_shape(shape))
            cublas = {kind: min(before[kind], after[kind]) for kind in before}
            rows.append(row_of(name, shape, document, wall_s, busy, cublas))
            row = rows[-1]
            print(f"{name:10s} {shape:26s} {row['evaluations']:4d} configs, {row['evaluations_per_minute']:6.0f}/min, "
                  f"GPU busy {row['gpu_busy'] or 0:5.1%} (verifying or measuring {row['verifying_or_measuring']:5.1%}), "
                  f"best {row['best']['tflops']:6.1f} TFLOP/s = {row['over_cublas']:.3f} of cuBLAS, "
                  f"worst/best {row['worst_over_best']:.1f}", flush=True)
    bad = planted(arguments, out)
    (out / "tune_gemm.json").write_text(json.dumps({
        "schema": "purlin.bench.tune_gemm/1",
        "recorded_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "environment": {"device": peer.torch.cuda.get_device_name(), "driver": peer.nvidia_smi("driver_version"),
                        "torch": peer.torch.__version__, "cpus": os.cpu_count()},
        "budget": arguments.budget, "rows": rows, "planted": bad}, indent=1) + "\n")
    sys.exit(0 if bad["good"] else 1)


if __name__ == "__main__":
    main()
