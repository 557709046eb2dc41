#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The gate of a CI job. What to do comes from variables, so no text of a request becomes a command:
#
#   PURLIN_MODE          compare (two revisions), check (against a baseline) or baseline (record one)
#   PURLIN_SUITE         the suite's path
#   PURLIN_BASE          compare: the revision before             PURLIN_BUILD  its build command
#   PURLIN_BASELINE      check, baseline: file or folder of the baseline
#   PURLIN_TAG, PURLIN_TIME_LIMIT, PURLIN_NOTE                    optional
#   PURLIN_INCONCLUSIVE  warn (exit code 0) or fail (exit code 3)
#
# Reports go to purlin-gate/. The exit code is purlin's, but for `warn`.
set -euo pipefail
mode=${PURLIN_MODE:-compare} suite=${PURLIN_SUITE:?the suite} out=purlin-gate
options=()
[ -z "${PURLIN_TAG:-}" ] || options+=(--tag "$PURLIN_TAG")
purlin doctor || true  # evidence for whoever reads the log of a failure

if [ "$mode" = baseline ]; then
  baseline=${PURLIN_BASELINE:-purlin-baseline/}
  mkdir -p "$baseline"
  exec purlin guard baseline "$suite" -o "$baseline" --replace --note "${PURLIN_NOTE:-recorded by CI}" "${options[@]}"
fi

mkdir -p "$out"
options+=(--time-limit "${PURLIN_TIME_LIMIT:-15m}" --junit "$out/gate.xml" --sarif "$out/gate.sarif"
  --markdown "$out/gate.md" --benchmark "$out/action-benchmark.json" --bencher "$out/bencher.json"
  --profiles "$out/profiles")
[ -z "${GITHUB_ACTIONS:-}" ] || options+=(--github)
code=0
case $mode in
  compare)
    purlin guard compare "${PURLIN_BASE:?the revision before}" HEAD --suite "$suite" --build "${PURLIN_BUILD:-}" "${options[@]}" || code=$?
    ;;
  check)
    [ -z "${PURLIN_BASELINE:-}" ] || options+=(--baseline "$PURLIN_BASELINE")
    purlin guard check "$suite" "${options[@]}" || code=$?
    ;;
  *)
    echo "gate.sh: PURLIN_MODE '$mode': give compare, check or baseline" >&2
    exit 2
    ;;
esac
[ -z "${GITHUB_OUTPUT:-}" ] || echo "exit-code=$code" >>"$GITHUB_OUTPUT"
if [ "$code" -eq 3 ] && [ "${PURLIN_INCONCLUSIVE:-warn}" = warn ]; then
  message="inconclusive; $out/gate.md has the reason"
  if [ -n "${GITHUB_ACTIONS:-}" ]; then echo "::warning title=purlin gate::$message"; else echo "purlin gate: $message" >&2; fi
  exit 0
fi
exit "$code"
