#!/usr/bin/env bash
# run_all.sh DIR [TEST…]: every test that needs a real GPU, or those named. DIR is an unpacked bundle or a build folder.
# Prints one line per test and a closing line; exit 1 if any failed. OUT, if set, gets the logs. LIMIT (300): seconds a test.
set -uo pipefail
where=$(cd "$1" && pwd)
shift
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export PATH=$where/bin:$PATH
export RUNS=${RUNS:-4}   # of guard_gpu.sh; by itself it makes forty of each kind
logs=${OUT:-$(mktemp -d)}
mkdir -p "$logs"
nvidia-smi >/dev/null 2>&1 || { echo "test-gpu: no NVIDIA GPU on this machine (nvidia-smi fails)" >&2; exit 2; }
passed=0 failed=0
run() {  # NAME COMMAND…
  local name=$1 began=$SECONDS code=0
  shift
  timeout -k 5 "${LIMIT:-300}" "$@" >"$logs/$name.log" 2>&1 || code=$?
  if [ "$code" -eq 0 ]; then
    passed=$((passed + 1)); echo "ok      $name ($((SECONDS - began)) s)"
  else
    failed=$((failed + 1)); echo "FAILED  $name (exit $code, $((SECONDS - began)) s)"; tail -25 "$logs/$name.log" | sed 's/^/        /'
  fi
}
[ $# -gt 0 ] || { cd "$here" && set -- [a-z]*_gpu.sh; }
for test in "$@"; do
  name=$(basename "$test" .sh)
  run "$name" bash "$here/$name.sh" "$where"
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
