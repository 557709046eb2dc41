#!/usr/bin/env bash
# Kernels and specs with planted mistakes: each is named for what it is, exits with 2, and costs
# neither the session nor the cache.
. "$(dirname "$0")/lib.sh"
data=$PURLIN_SOURCE/tests/data/bad_kernels
export PURLIN_CACHE=$tmp/winners

tune() { purlin tune "$data/$1.toml" --device opencl:0 --strategy exhaustive "${@:2}"; }

# expect_failure SPEC TEXT…: tuning ends with 2 and says TEXT on stderr.
expect_failure() {
  local spec=$1
  shift
  expect_exit 2 tune "$spec" -q
  expect_contains "$tmp/err" "$@"
}

# A spec that is malformed: the file, the line and the column, and what to write instead.
expect_failure syntax_error syntax_error.toml:20:
expect_failure expression_error expression_error.toml:21:9
expect_failure unknown_name unknown_name.toml:21:9 BLOCKS "did you mean 'BLOCK'"
expect_failure unknown_key unknown_key.toml:56: rtoll "did you mean 'rtol'"
expect_failure bad_dtype bad_dtype.toml:27:9 f33 f32
expect_failure bad_role bad_role.toml:36: result output
expect_failure future_schema future_schema.toml:1: purlin.spec/9 purlin.spec/1
expect_failure missing_source missing_source.toml:12: nowhere.cl
expect_exit 2 purlin tune "$data/no_such_file.toml" --device opencl:0
expect_contains "$tmp/err" no_such_file.toml

# A spec that is well formed but cannot be laid out or leaves nothing to try.
expect_failure bad_reference no_reference add_reference
expect_failure huge_buffer "smaller problem shape"
expect_failure no_config "BLOCK < 64"

# No such device. None of the above has left anything behind.
expect_exit 2 purlin tune "$data/mixed.toml" --device cuda:99 -q
expect_contains "$tmp/err" error:
expect_exit 2 purlin tune "$data/mixed.toml" --device opencl:99 -q
expect_contains "$tmp/err" opencl:99
[ ! -s "$tmp/out" ] || fail "an error wrote to stdout"
[ ! -e "$PURLIN_CACHE" ] || fail "a mistake in the command made a cache"

# Kernels that fail in every config: the first one's reason.
expect_failure division_by_zero division_by_zero.toml:21:9 "division by zero"
expect_failure compile_error "the planted compile error"
# A message is printed once, though it is that of the default, of the first config and of the end.
expect_exit 2 tune compile_error
[ "$(cat "$tmp/out" "$tmp/err" | grep -c 'does not compile')" -eq 1 ] ||
  fail "the compile error is not printed once: $(cat "$tmp/out" "$tmp/err")"
expect_failure missing_entry subtract "it has: add"
expect_failure wrong_result "element 500"
expect_failure unwritten "element 999 was not written"
expect_failure out_of_bounds "outside its buffers" "'out'"
expect_failure input_changed "input 'a' was changed"
expect_failure not_a_number "element 3 is nan"
expect_exit 2 tune crash -q
expect_contains "$tmp/err" crash
expect_exit 2 tune endless_loop -q --timeout 2s
expect_contains "$tmp/err" timeout

# The document says what failed; a file of an earlier success is left alone.
echo kept >"$tmp/result.json"
expect_exit 2 tune wrong_result --json -q -o "$tmp/result.json"
expect_json "$tmp/out" 'd["best"] is None and d["failures"]["wrong"]["count"] > 0'
[ "$(cat "$tmp/result.json")" = kept ] || fail "a failure replaced the result of a success"

# One bad config among good ones costs itself only.
expect_exit 0 tune mixed --json -q
expect_json "$tmp/out" 'd["best"]["config"]["BUG"] == 0'
expect_json "$tmp/out" 'len(d["evaluations"]) == 12'
expect_json "$tmp/out" '{e["config"]["BUG"]: e["status"] for e in d["evaluations"]} == {
  0: "ok", 1: "wrong", 2: "wrong", 3: "out_of_bounds", 4: "compile", 8: "wrong"}'

# Output that cannot be written: known before the work where it can be, and else no loss.
expect_exit 2 tune mixed -q --no-store -o "$tmp/nowhere/result.json"
expect_contains "$tmp/err" "there is no folder"
[ ! -s "$tmp/out" ] || fail "tuned although the output's folder does not exist"
expect_exit 2 tune mixed -q --no-store --html "$tmp/nowhere/page.html"
expect_contains "$tmp/err" "there is no folder"
[ ! -s "$tmp/out" ] || fail "tuned although the page's folder does not exist"
# So are mistakes in what is named: the reference may take long.
expect_exit 2 tune mixed --no-store --transfer "$tmp/nowhere.json"
expect_contains "$tmp/err" "nowhere.json': there is no such file"
! grep -q "reference" "$tmp/err" || fail "the reference ran before a mistake was found"
expect_exit 2 tune mixed --no-store --limit 'tme_ms < 1'
expect_contains "$tmp/err" "there is no 'tme_ms'"
! grep -q "reference" "$tmp/err" || fail "the reference ran before a mistake was found"
expect_exit 2 tune mixed -q --json --no-store -o "$tmp"
expect_json "$tmp/out" 'd["best"]["config"]["BUG"] == 0'

# A cache that may be read but not written, as root's is for others.
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
  other=$tmp/other
  mkdir -m 777 "$other"
  chmod 755 "$tmp"
  as_other() { XDG_CACHE_HOME=$other setpriv --reuid=65534 --clear-groups "$PURLIN" "$@"; }
  expect_exit 2 as_other tune "$data/mixed.toml" --device opencl:0 -q
  expect_contains "$tmp/err" "$PURLIN_CACHE" "Permission denied"
  expect_exit 0 as_other cache ls --json
fi

# Nothing but mixed had a winner to keep.
entries=$(purlin cache ls --json | python3 -c 'import json,sys; print(len(json.load(sys.stdin)["entries"]))')
[ "$entries" -eq 1 ] || fail "$entries cache entries where one was expected"
