#!/usr/bin/env bash
# tuner_session.sh [BUILD]: what issue 27 still needs from a GPU, in one command of about ten minutes.
# Into $OUT: configs a minute and the GPU's busy share beside Kernel Tuner (kernel_tuner_vs_purlin.py), and the
# searches of the four Triton kernels beside Triton's own list (triton_spaces.py). A part that cannot run here
# says why, and the next one follows.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=${1:-build/release}
export OUT=${OUT:-.}
failed=0
part() { echo "== $*"; timeout 420 "$@" || { echo "tuner_session: '$*' ended with $?" >&2; failed=1; }; }
part python3 "$here/kernel_tuner_vs_purlin.py" --purlin "$build/bin/purlin"
part python3 "$here/triton_spaces.py" --kernels matmul,grouped,attention,layernorm -o "$OUT/triton_spaces.jsonl"
exit "$failed"
