#!/usr/bin/env bash
# A program that tunes its own kernel while it works, on a real device: its outputs are right throughout,
# though some candidates are wrong, and what it found is there for its next start and for `purlin cache`.
# labels: opencl
# timeout: 600
source "$(dirname "$0")/lib.sh"
example=${PURLIN_BUILD:-}/examples/self_tuning_opencl
[ -x "$example" ] || fail "no $example"

expect_exit 0 "$example" 3000
expect_contains "$tmp/out" 'the winner of 12 configs is' '3000 calls, 0 of them with a wrong output'
if grep -q 'winner.*SKEW=1' "$tmp/out"; then fail 'a wrong config won'; fi
winner=$(sed -n 's/.*configs is \(.*\): .* us, .*/\1/p' "$tmp/out")
expect_exit 0 "$example" 1
expect_contains "$tmp/out" "an earlier run found: $winner" '1 calls, 0 of them'
expect_exit 0 purlin cache ls --json
expect_json "$tmp/out" 'len(d["entries"]) == 1 and d["entries"][0]["key"]["op"] == "blur"'
# The entry is the same kind as that of `purlin tune`: the default and the second best are in it.
expect_json "$tmp/out" 'd["entries"][0]["default_config"] and d["entries"][0]["runner_up"]'
echo 'self_tuning: all checks passed'
