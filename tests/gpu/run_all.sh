#!/usr/bin/env bash
# run_all.sh DIR: every test that needs a real GPU. DIR is an unpacked bundle or a build folder.
# Prints one line per test and a closing line; exit 1 if any failed. OUT, if set, gets the logs.
set -uo pipefail
where=$(cd "$1" && pwd)
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export PATH=$where/bin:$PATH
export RUNS=${RUNS:-4}   # of guard_gpu.sh; by itself it makes forty of each kind
logs=${OUT:-$(mktemp -d)}
mkdir -p "$logs"
nvidia-smi >/dev/null 2>&1 || { echo "test-gpu: no NVIDIA GPU on this machine (nvidia-smi fails)" >&2; exit 2; }
passed=0 failed=0
run() {  # NAME COMMAND…
  local name=$1
  shift
  if "$@" >"$logs/$name.log" 2>&1; then
    passed=$((passed + 1)); echo "ok      $name"
  else
    failed=$((failed + 1)); echo "FAILED  $name (exit $?)"; tail -25 "$logs/$name.log" | sed 's/^/        /'
  fi
}
for script in "$here"/[a-z]*_gpu.sh; do
  [ -e "$script" ] && run "$(basename "$script" .sh)" bash "$script" "$where"
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
