# Sourced by every suite: a private folder, and checks that say what they saw.
# shellcheck shell=bash
set -euo pipefail
: "${PURLIN:?the purlin binary}" "${PURLIN_SOURCE:?the source tree}"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export HOME=$tmp/home XDG_CACHE_HOME=$tmp/cache XDG_CONFIG_HOME=$tmp/config
mkdir -p "$HOME"
unset PURLIN_CACHE NO_COLOR CLICOLOR_FORCE || true
purlin() { "$PURLIN" "$@"; }

fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }

# begin_made_up: from here on benchmarks that use `made_up` (see there) count their launches anew.
begin_made_up() {
  made_up_begun=$((${made_up_begun:-0} + 1))
  export MADE_UP=$tmp/made_up.$made_up_begun
  : >"$MADE_UP"
}
made_up() { "$PURLIN_SOURCE/tests/suites/made_up" "$@"; }

# wait_until WHAT COMMAND…: until the command succeeds; after two minutes the suite fails, saying WHAT it
# waited for. For what takes a moment: no verdict may rest on how long.
wait_until() {
  local what=$1 end=$((SECONDS + 120))
  shift
  until "$@" 2>/dev/null; do
    [ $SECONDS -lt $end ] || fail "waited 120 s in vain: $what"
    sleep 0.05
  done
}

# expect_exit CODE COMMAND…: runs it, keeps stdout in $tmp/out and stderr in $tmp/err.
expect_exit() {
  local wanted=$1 code=0
  shift
  "$@" >"$tmp/out" 2>"$tmp/err" || code=$?
  [ "$code" -eq "$wanted" ] || {
    printf -- '--- stdout\n' >&2; head -c 4000 "$tmp/out" >&2
    printf -- '--- stderr\n' >&2; head -c 4000 "$tmp/err" >&2
    fail "exit code $code where $wanted was expected: $*"
  }
}

# expect_decided CODE COMMAND…: as expect_exit, for a gate on live times: a machine that something else
# keeps busy may leave it undecided (3), so it is asked up to four times.
expect_decided() {
  local code=0 attempt
  for attempt in 1 2 3; do
    code=0
    "${@:2}" >"$tmp/out" 2>"$tmp/err" || code=$?
    [ "$code" -eq 3 ] || break
    echo "undecided, attempt $attempt: ${*:2}" >&2
  done
  [ "$code" -eq "$1" ] || expect_exit "$@"
}

# expect_estimate FILE WITHIN COMMAND…: the command profiles a program to FILE, which prints "made N launches". The report
# has them to within that part, or to within the error that it states itself: windows that are known by time alone are few
# of a quiet machine's, and say so on a busy one. Launches that are in no row are a note's; PER_ID kernels are a replay's.
# $tmp/report.json is the report.
expect_estimate() {
  local file=$1 within=$2 made
  shift 2
  expect_exit 0 "$@"
  "$PURLIN" report "$file" --json >"$tmp/report.json"
  made=$(sed -n 's/^made \([0-9]*\) launches.*/\1/p' "$tmp/out")
  python3 -c 'import json, sys
d, within, made, per_id = json.load(open(sys.argv[1])), float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
noted = sum(n["count"] for n in d["coverage"]["notes"] if n["cause"] == "ended_before_window")
total = d["launches"] + per_id * noted
error = d["coverage"]["sampling"]["total_error"] or 0
print(f"{total:.0f} of {made} launches, stated error {error:.3f}", file=sys.stderr)
sys.exit(abs(total / made - 1) > max(within, error))' \
    "$tmp/report.json" "$within" "$made" "${PER_ID:-1}" || {
    head -c 3000 "$tmp/report.json" >&2
    fail "$file: not within $within, and the report does not say so"
  }
}

# expect_contains FILE TEXT…: every text occurs in the file.
expect_contains() {
  local file=$1 text
  shift
  for text in "$@"; do
    grep -qF -- "$text" "$file" || { head -c 4000 "$file" >&2; fail "'$text' is not in $(basename "$file")"; }
  done
}

# json FILE EXPRESSION: evaluates a Python expression over the document `d`; prints it.
json() { python3 -I -S -c 'import json,sys; d=json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$1" "$2"; }

# expect_json FILE EXPRESSION: the expression over the document `d` is true.
expect_json() {
  python3 -I -S -c 'import json,sys
d=json.load(open(sys.argv[1]))
sys.exit(0 if eval(sys.argv[2]) else 1)' "$1" "$2" || { head -c 3000 "$1" >&2; fail "not true of $(basename "$1"): $2"; }
}

# skip WHY: ends the suite; CTest lists it as skipped, not as passed. For what the machine lacks.
skip() { printf 'skipped: %s\n' "$*"; exit 77; }

# look_at PART: the page's tests of that part in a browser (web/test/run.mjs), each with a line when it ends.
look_at() {
  local web=$PURLIN_SOURCE/web
  if ! command -v node >/dev/null || [ ! -d "$web/node_modules/playwright-core" ] || [ ! -x /usr/bin/chromium ]; then
    skip "the page was not looked at, for node, web/node_modules or chromium is not there (./dev setup page)"
  fi
  node "$web/test/run.mjs" "$1" || fail "the page's tests of $1"
}
