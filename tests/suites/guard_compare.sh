#!/usr/bin/env bash
# Two revisions, commands, environments and caches, compared as pairs of processes; and a comparison that
# is killed. The commands make their times up, so nothing here depends on how busy the machine is.
source "$(dirname "$0")/lib.sh"
cd "$tmp"
begin_made_up

# bench [FACTOR]: a "benchmark" of two kernels whose second takes FACTOR times as long, with 1 % noise.
cat >bench.in <<'END'
#!/bin/sh
exec "$PURLIN_SOURCE/tests/suites/made_up" -v factor="${1:-${FACTOR:-@FACTOR@}}" 'BEGIN {
  print "kernel,time_us,sm_clock_mhz"
  for (i = 0; i < 20; ++i) {
    printf "steady,%.3f,1980\n", 50 * noise()
    printf "\"f<int, 2>\",%.3f,1980\n", 20 * factor * noise()
  }
}'
END

# Revisions: a repository whose last commit is 20 % slower; `make` produces the benchmark.
git init -q repo
cd repo
git config user.email a@b && git config user.name a
cp ../bench.in bench.in
printf 'bench: bench.in factor\n\tsed "s/@FACTOR@/$$(cat factor)/" bench.in >bench && chmod +x bench\n' >Makefile
echo 1 >factor && git add -A && git commit -qm fast
echo '# no change' >>Makefile && git commit -qam same
echo 1.2 >factor && git commit -qam slow
expect_exit 1 purlin guard compare HEAD~1 HEAD --build 'make bench' --json --markdown "$tmp/c.md" --otlp "$tmp/c.otlp" -- ./bench
python3 "$PURLIN_SOURCE/tests/suites/otlp_check.py" "$tmp/c.otlp" purlin.guard.verdict purlin.guard.ratio ||
  fail "no OTLP that a collector takes"
expect_json "$tmp/out" '[i["verdict"] for i in d["items"]] == ["pass", "regression"]'
expect_json "$tmp/out" 'd["items"][1]["kernel"] == "f<int, 2>" and d["items"][1]["cause"] == "code"'
expect_json "$tmp/out" 'abs(d["items"][1]["ratio"]["estimate"] - 1.2) < 0.02 and d["items"][1]["pairs"] == 10'
expect_json "$tmp/out" 'abs(d["items"][1]["cycle_ratio"]["estimate"] - 1.2) < 0.02'
expect_json "$tmp/out" 'd["arms"][0]["code"].endswith("make bench") and d["arms"][0]["commands"][0]["argv"] == ["./bench"]'
expect_contains "$tmp/c.md" 'regression'
expect_exit 0 purlin guard compare HEAD~2 HEAD~1 --build 'make bench' -- ./bench
expect_exit 0 purlin guard compare HEAD HEAD~1 --build 'make bench' -- ./bench   # an improvement
expect_contains "$tmp/out" 'improvement'
[ -z "$(git status --porcelain)" ] || fail "the user's tree was touched"
[ "$(git worktree list | wc -l)" = 1 ] || fail 'a worktree was left behind'
# A build that fails, a revision that is none, nothing to run.
expect_exit 2 purlin guard compare HEAD~1 HEAD --build 'echo ld: cannot find -lfoo; false' -- ./bench
expect_contains "$tmp/err" 'cannot find -lfoo'
expect_exit 2 purlin guard compare HEAD~1 nonesuch -- ./bench
expect_contains "$tmp/err" "'nonesuch' names no commit"
expect_exit 2 purlin guard compare HEAD~1 HEAD
expect_contains "$tmp/err" 'say what to run'
cd ..

# Commands, and environments of one command.
sed 's/@FACTOR@/1/' bench.in >bench && chmod +x bench
# A verdict is not lost to a folder that its evidence cannot be kept in.
expect_exit 1 purlin guard compare --commands './bench 1' './bench 1.1' --profiles /proc/none --json
expect_json "$tmp/out" 'd["verdict"] == "regression" and any("no profiles" in n for n in d["notes"])'
expect_exit 1 purlin guard compare --commands './bench 1' './bench 1.1' --json
expect_json "$tmp/out" '[i["cause"] for i in d["items"]] == ["", "command"]'
expect_exit 0 purlin guard compare --commands './bench 1' './bench 1' --json
expect_exit 1 purlin guard compare --environments FACTOR=1 FACTOR=1.1 --filter 'f<*' --json -- ./bench
expect_json "$tmp/out" 'len(d["items"]) == 1 and d["items"][0]["cause"] == "environment variables"'
printf '# B\nFACTOR=0.9\n' >b.env
expect_exit 0 purlin guard compare --environments FACTOR=1 b.env --json -- ./bench
expect_json "$tmp/out" 'd["verdict"] == "improvement"'
expect_exit 2 purlin guard compare --commands ./bench 'echo segfault >&2; exit 139' --json
expect_contains "$tmp/err" 'segfault'

# A scan under one name: three items, and the third is slower. States that skip themselves are named.
cat >scan.sh <<'END'
printf '{"results": ['
for n in 1 2 3; do
  factor=$n
  [ "$n" = 3 ] && factor=$((3 * ${1:-1}))
  [ "$n" = 1 ] || printf ','
  printf '{"command": "solve", "parameters": {"n": "%s"}, "exit_codes": [0, 0, 0], "times": [' "$n"
  "$PURLIN_SOURCE/tests/suites/made_up" -v f="$factor" 'BEGIN { printf "%f, %f, %f", f * noise(), f * noise(), f * noise() }'
  printf ']}'
done
printf ']}'
END
expect_exit 1 purlin guard compare --commands 'sh scan.sh 1' 'sh scan.sh 2' --format hyperfine --json --no-profiles
expect_json "$tmp/out" '[i["kernel"] for i in d["items"]] == ["solve n=1", "solve n=2", "solve n=3"]'
expect_json "$tmp/out" '[i["verdict"] for i in d["items"]] == ["pass", "pass", "regression"]'
cat >states.sh <<'END'
printf '{"benchmarks": [{"name": "convert", "states": ['
printf '{"name": "In=I8", "is_skipped": true, "skip_reason": "not a conversion", "summaries": []},'
printf '{"name": "In=I16", "is_skipped": false, "summaries": [{"tag": "nv/cold/time/gpu/mean",'
printf ' "data": [{"name": "value", "value": "'
"$PURLIN_SOURCE/tests/suites/made_up" 'BEGIN { printf "%f", 0.001 * noise() }'
printf '"}]}]}]}]}'
END
expect_exit 0 purlin guard compare --commands 'sh states.sh' 'sh states.sh ' --format nvbench --json --no-profiles
expect_json "$tmp/out" '[i["kernel"] for i in d["items"]] == ["convert In=I16"]'
expect_json "$tmp/out" 'any("convert In=I8" in n and "not a conversion" in n for n in d["notes"])'

# Killed in the second process of the fifth pair: what was measured is not measured again.
compare=("$PURLIN" guard compare --commands './bench 1' './bench 1.1' --json --journal pairs.jsonl --no-profiles)
begin_made_up
mkdir scratch
TMPDIR=$tmp/scratch MADE_UP_HANG=12 "${compare[@]}" >/dev/null 2>"$tmp/err" &   # two find the items, eight make four pairs
pid=$!
wait_until 'the fifth pair' test -e "$MADE_UP.hangs"
kill -9 $pid
wait $pid 2>/dev/null || true
rm "$MADE_UP.hangs"
wait_until 'the end of its folder' rmdir scratch
printf '{"events": [{"item": 0, "base' >>pairs.jsonl   # and torn in the middle of a line
kept=$(grep -c '"current":\[' pairs.jsonl || true)
[ "$kept" -eq 4 ] || fail "$kept pairs were in the journal"
begin_made_up
expect_exit 1 "${compare[@]}"
expect_json "$tmp/out" "d['measurement']['replayed_pairs'] == 2 * $kept"
expect_json "$tmp/out" 'd["items"][1]["pairs"] == 10 and d["items"][1]["verdict"] == "regression"'
# Two more than the pairs that were left: each arm runs once to find its items.
launches=$(wc -l <"$MADE_UP")
[ "$launches" -eq $((2 + 2 * (10 - kept))) ] || fail "$launches processes after $kept pairs"
expect_exit 2 purlin guard compare --commands './bench 1' './bench 1.3' --journal pairs.jsonl
expect_contains "$tmp/err" 'journal of another comparison'

# A suite of kernels at two revisions, on the real device. Identical sources are never red.
mkdir repo/kernels && cp "$PURLIN_SOURCE"/tests/data/guard/scale* repo/kernels/
cat >repo/gate.toml <<'END'
schema = "purlin.suite/1"
name = "gate"
device = "opencl:0"
[thresholds]
detectable = 1.0
floor = 0.4
[measure]
max_samples = 9
budget_s = 0.05
[[items]]
spec = "kernels/scale.toml"
config = "default"
END
cd repo
git add -A && git commit -qm kernel
sed -i 's/i < steps/i < 6 * steps/' kernels/scale.h && git commit -qam slower
expect_decided 1 purlin guard compare HEAD~1 HEAD --suite gate.toml --json
expect_json "$tmp/out" 'd["items"][0]["kernel"] == "scale" and d["items"][0]["cause"] == "code"'
expect_json "$tmp/out" 'd["items"][0]["ratio"]["estimate"] > 1.4'
expect_exit 3 purlin guard compare HEAD~2 HEAD --suite gate.toml --json   # the old one has no such kernel
expect_json "$tmp/out" '"does not run here" in d["items"][0]["reason"] and "scale.toml" in d["items"][0]["reason"]'
expect_exit 2 purlin guard compare --caches "$tmp/none" "$tmp/none" --suite gate.toml
expect_contains "$tmp/err" 'there is no cache'
echo 'guard_compare: all checks passed'
