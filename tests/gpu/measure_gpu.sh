#!/usr/bin/env bash
# measure_gpu.sh DIR [PART...]: how kernels are timed on a real GPU, in about two minutes: short kernels beside a
# profiler's durations, rotating inputs, energy, a kernel that takes nvcc. DIR is an unpacked bundle or a
# build folder; OUT, if set, gets measure_gpu.json. Parts: short_kernels, energy, nvcc, rotating.
set -euo pipefail
where=$(cd "$1" && pwd)
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export XDG_CACHE_HOME=$(mktemp -d)
trap 'rm -rf "$XDG_CACHE_HOME"' EXIT
python3 "$here/measure/measure_gpu.py" "$where/bin/purlin" "${@:2}"
