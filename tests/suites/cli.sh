# What every verb shares: suggestions, exit codes, streams, help, settings.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

expect_exit 2 purlin
expect_contains "$tmp/err" "Usage: purlin VERB"
expect_exit 0 purlin --help
expect_contains "$tmp/out" "profile" "tune" "cache get" "guard check" "doctor" "demo"
expect_exit 0 purlin --version
grep -Eq '^purlin [0-9]+\.[0-9]+\.[0-9]+$' "$tmp/out" || fail "version line"
cp "$tmp/out" "$tmp/version"
expect_exit 0 purlin version
diff "$tmp/version" "$tmp/out" >&2 || fail "version and --version differ"
expect_exit 0 purlin help version
expect_contains "$tmp/out" "Usage: purlin VERB" "purlin version"
expect_exit 0 purlin help help

expect_exit 2 purlin tnue
expect_contains "$tmp/err" "unknown verb 'tnue'" "did you mean 'tune'?"
[ ! -s "$tmp/out" ] || fail "an error wrote to stdout"
expect_exit 2 purlin cache gte
expect_contains "$tmp/err" "did you mean 'cache get'?"
expect_exit 0 purlin cache --help
expect_contains "$tmp/out" "Usage: purlin cache VERB" "cache pull"
! grep -q doctor "$tmp/out" || fail "the help of a group lists other verbs"
expect_exit 2 purlin cahce --help
expect_exit 2 purlin guard
expect_contains "$tmp/err" "guard check"
expect_exit 2 purlin tune spec.toml --bugdet 10s
expect_contains "$tmp/err" "unknown option '--bugdet'" "did you mean '--budget'?"
expect_exit 2 purlin doctor --jsn
expect_contains "$tmp/err" "did you mean '--json'?"
expect_exit 2 purlin doctor --color sometimes
expect_contains "$tmp/err" "--color takes"
expect_exit 2 purlin report
expect_exit 2 purlin report trace.json --top
expect_contains "$tmp/err" "--top needs a value: N; see 'purlin report --help'"
expect_exit 2 purlin report trace.json --top 1 --top 2
expect_contains "$tmp/err" "--top is given 2 times, but takes one value"
expect_exit 2 purlin report trace.json --top many
expect_contains "$tmp/err" "--top takes an integer, not 'many'"
expect_exit 2 purlin cache get spec.toml --nearest far
expect_contains "$tmp/err" "--nearest takes a number, not 'far'"
expect_exit 2 purlin export trace.json
expect_contains "$tmp/err" "say what to write: --format"
expect_exit 2 purlin capture start
expect_contains "$tmp/err" "an action and a process or several"
expect_exit 2 purlin capture start 1 two
expect_contains "$tmp/err" "'two' is no process"
expect_exit 2 purlin profile --budget 1 -- true
expect_contains "$tmp/err" "--budget '1': give a share"
expect_exit 2 purlin profile
expect_contains "$tmp/err" "-- COMMAND"
expect_exit 2 purlin doctor -- true
expect_contains "$tmp/err" "takes no command"

# Output that cannot be written is an error.
if [ -e /dev/full ]; then
  code=0
  purlin doctor --json >/dev/full 2>"$tmp/err" || code=$?
  [ "$code" -eq 2 ] || fail "doctor into a full disk exited with $code"
  expect_contains "$tmp/err" "cannot write the output"
fi

# A reader that has had enough, as head has: the end of other tools, without a word.
mkfifo "$tmp/pipe"
exec 4<>"$tmp/pipe" 5>"$tmp/pipe" 4<&-
code=0
"$PURLIN" report "$PURLIN_SOURCE/tests/data/imports/ncu_raw_h200.csv" >&5 2>"$tmp/err" 5>&- || code=$?
exec 5>&-
[ "$code" -eq 141 ] || fail "report into a closed pipe exited with $code"
[ ! -s "$tmp/err" ] || fail "report into a closed pipe says: $(cat "$tmp/err")"
# Also where the verb itself meets it, in the midst of writing.
exec 4<>"$tmp/pipe" 5>"$tmp/pipe" 4<&-
code=0
"$PURLIN" export "$PURLIN_SOURCE/tests/data/traces/kineto_h200_transformer.json.gz" --format csv \
  >&5 2>"$tmp/err" 5>&- || code=$?
exec 5>&-
[ "$code" -eq 141 ] || fail "export into a closed pipe exited with $code"
[ ! -s "$tmp/err" ] || fail "export into a closed pipe says: $(cat "$tmp/err")"

# Settings: environment over project file over default, each with its origin.
mkdir -p "$tmp/project/sub"
printf 'device = "opencl:0"\n' >"$tmp/project/purlin.toml"
cd "$tmp/project/sub"
expect_exit 0 purlin config --json
expect_json "$tmp/out" "next(s for s in d['settings'] if s['name'] == 'device')['value'] == 'opencl:0'"
PURLIN_DEVICE=opencl:9 expect_exit 0 purlin config
expect_contains "$tmp/out" "opencl:9" "environment PURLIN_DEVICE"
printf 'divice = 1\n' >"$tmp/project/purlin.toml"
expect_exit 2 purlin config
expect_contains "$tmp/err" "purlin.toml:1:" "did you mean 'device'?"
rm "$tmp/project/purlin.toml"
cd /

# Tables fit the columns of the reader, and keep what they say.
for verb in doctor config; do
  COLUMNS=60 expect_exit 0 purlin $verb
  wide=$(python3 -c 'import sys; print(max(len(line.rstrip("\n")) for line in open(sys.argv[1])))' "$tmp/out")
  [ "$wide" -le 60 ] || fail "purlin $verb is $wide columns wide where there are 60: $(cat "$tmp/out")"
done
expect_exit 0 purlin config
expect_contains "$tmp/out" "Label of the code under test, stored in profiles"

# Each verb explains itself, and the reference is what the binary says.
"$PURLIN_SOURCE/scripts/make_cli_reference.sh" "$PURLIN" >"$tmp/cli.md"
diff -u "$PURLIN_SOURCE/docs/reference/cli.md" "$tmp/cli.md" >&2 ||
  fail "docs/reference/cli.md is stale: scripts/make_cli_reference.sh BINARY > docs/reference/cli.md"
"$PURLIN_SOURCE/scripts/make_cli_reference.sh" "$PURLIN" environment >"$tmp/environment.md"
diff -u "$PURLIN_SOURCE/docs/reference/environment.md" "$tmp/environment.md" >&2 ||
  fail "docs/reference/environment.md is stale: scripts/make_cli_reference.sh BINARY environment > docs/reference/environment.md"

# Every variable is in `config`, secrets without their value.
PURLIN_SERVER_TOKEN=of-mine-alone PURLIN_CUPTI=/opt/cupti expect_exit 0 purlin config
expect_contains "$tmp/out" "PURLIN_CUPTI" "/opt/cupti" "(hidden)"
! grep -q of-mine-alone "$tmp/out" || fail "config shows a token"
PURLIN_SERVER_TOKEN=of-mine-alone expect_exit 0 purlin config --json
expect_json "$tmp/out" "{v['variable']: v['value'] for v in d['variables']}['PURLIN_SERVER_TOKEN'] == '(hidden)'"
expect_json "$tmp/out" "{v['variable']: v['value'] for v in d['variables']}['PURLIN_CUPTI'] is None"
