#!/usr/bin/env bash
# tune_gemm.sh [BUILD]: what a tuning session is worth on this GPU, in about three minutes (tune_gemm.py).
# Writes tune_gemm.json and every session's document to $OUT.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
exec python3 "$here/tune_gemm.py" --purlin "${1:-build/release}/bin/purlin"
