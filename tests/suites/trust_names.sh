#!/usr/bin/env bash
# Names of kernels, ops and devices are hostile: one list of them through each verb and format, each output
# read by a strict reader.
source "$(dirname "$0")/lib.sh"
cd "$tmp"
evil() { python3 "$PURLIN_SOURCE/tests/suites/evil_names.py" "$@" || fail "$*"; }
evil make .

# shown KIND NAME COMMAND…: what the command writes to stdout is of that kind; stderr is always text.
shown() {
  local kind=$1 name=$2 code=0
  shift 2
  "$PURLIN" "$@" >"$name.out" 2>"$name.err" || code=$?
  [ "$code" -ne 2 ] && [ "$code" -lt 128 ] || { head -c 2000 "$name.err" >&2; fail "exit code $code: $*"; }
  evil check "$kind" "$name.out"
  evil check text "$name.err"
}

shown text import import trace.json -o trace.plprof
shown json import_json import trace.json -o trace2.plprof --json
for file in trace.json trace.plprof; do
  shown text report report "$file"
  COLUMNS=80 shown text report_narrow report "$file"
  shown json report_json report "$file" --json
  shown csv report_csv report "$file" --csv
  shown html report_html report "$file" --html -
  shown text kernel report "$file" --kernel esc
  shown text advise advise "$file"
  shown json advise_json advise "$file" --json
  shown text diff diff "$file" other.json
  shown json diff_json diff "$file" other.json --json
  shown csv diff_csv diff "$file" other.json --csv
  shown html diff_html diff "$file" other.json --html -
done
shown csv export_csv export trace.json --format csv
shown json export_chrome export trace.json --format chrome

shown text guard guard compare --commands 'cat a.csv' 'cat b.csv' --junit g.xml --sarif g.sarif --markdown g.md \
  --no-profiles
expect_exit 1 env GITHUB_STEP_SUMMARY="$tmp/summary.md" "$PURLIN" guard compare --commands 'cat a.csv' 'cat b.csv' \
  --github --no-profiles -q
evil check annotations "$tmp/err"
evil check markdown summary.md
evil check xml g.xml
evil check json g.sarif
evil check markdown g.md
shown json guard_json guard compare --commands 'cat a.csv' 'cat b.csv' --json --no-profiles
echo "trust_names: no name is obeyed by a terminal, a runner, a page, a sheet or a reader of XML"
