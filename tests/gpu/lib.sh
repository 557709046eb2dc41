# Sourced by the scripts of this folder; they set `tmp` and may set `python` and `limit` (seconds a command).
fail() { echo "$(basename "$0" .sh): $*" >&2; exit 1; }
run() {  # EXPECTED-CODES COMMAND…: stdout to $tmp/out
  local codes=$1 code=0
  shift
  timeout "${limit:-60}" "$@" >"$tmp/out" 2>"$tmp/err" || code=$?
  case " $codes " in *" $code "*) ;; *) cat "$tmp/out" "$tmp/err"; fail "exit code $code of $*" ;; esac
}
json() { "${python:-python3}" -c "import json; d = json.load(open('$tmp/out')); assert $1, d" || fail "not so: $1"; }
