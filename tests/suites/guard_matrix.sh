#!/usr/bin/env bash
# A matrix of builds, environments and a driver that another machine has. The command makes its times up,
# so nothing here depends on how busy the machine is.
source "$(dirname "$0")/lib.sh"
cd "$tmp"
begin_made_up

git init -q repo
cd repo
git config user.email a@b && git config user.name a
cat >bench <<'END'
#!/bin/sh
exec "$PURLIN_SOURCE/tests/suites/made_up" -v code="$(cat factor)" -v lib="${LIBRARY:-1}" -v driver="${DRIVER:-1}" 'BEGIN {
  print "kernel,time_us,sm_clock_mhz"
  for (i = 0; i < 10; ++i) {
    printf "steady,%.3f,1980\n", 50 * noise()
    printf "gemm,%.3f,1980\n", 20 * code * lib * driver * noise()
  }
}'
END
chmod +x bench
echo 1 >factor && git add -A && git commit -qm v1 && git tag v1
echo 1.1 >factor && git commit -qam v2 && git tag v2
cat >"$tmp/m.toml" <<'END'
schema = "purlin.matrix/1"
name = "upgrade"
rounds = 8
[command]
run = ["./bench"]
format = "csv"
name_column = "kernel"
time_column = "time_us"
clock_column = "sm_clock_mhz"
[[factors]]
name = "build"
kind = "code"
levels = [{name = "v1", revision = "v1"}, {name = "v2", revision = "v2"}]
[[factors]]
name = "library"
kind = "compiler"
levels = [{name = "12.8", environment = {LIBRARY = "1"}}, {name = "13.0", environment = {LIBRARY = "1.0"}}]
END
expect_exit 1 purlin guard matrix "$tmp/m.toml" --json
expect_json "$tmp/out" 'd["items"][0]["kernel"] == "gemm" and d["items"][0]["cause"] == "code" and d["items"][1]["cause"] == ""'
expect_json "$tmp/out" 'd["items"][0]["shares"][0]["factor"] == "build" and abs(d["items"][0]["shares"][0]["ratio"] - 1.1) < 0.01 and d["items"][0]["shares"][0]["low"] > 1.05'
expect_json "$tmp/out" 'len(d["cells"]) == 4 and all(i["rounds"] == 8 for c in d["cells"] for i in c["items"])'
[ "$(git worktree list | wc -l)" = 1 ] || fail 'a worktree was left behind'
sed -i 's/LIBRARY = "1.0"/LIBRARY = "0.8"/' "$tmp/m.toml"
expect_exit 0 purlin guard matrix "$tmp/m.toml"   # slower code, faster library: the whole got faster
expect_contains "$tmp/out" 'library did it: 0.8' 'build 1.'

# A driver that this machine does not have: recorded there, read here.
sed 's/LIBRARY = "0.8"/LIBRARY = "1"/' "$tmp/m.toml" >"$tmp/d.toml"
cat >>"$tmp/d.toml" <<'END'
[[factors]]
name = "driver"
kind = "driver"
here = "570"
levels = ["570", "580"]
END
# Without the other driver's cells the last levels are missing, and that is said.
expect_exit 3 purlin guard matrix "$tmp/d.toml" --journal "$tmp/rounds.jsonl"
expect_contains "$tmp/out" 'all last levels was not measured'
DRIVER=1.2 expect_exit 3 purlin guard matrix "$tmp/d.toml" --here driver=580 --record "$tmp/there"
for cell in "$tmp"/there/*.csv; do
  levels=$(basename "$cell" .csv | sed 's/=/ = "/g; s/,/", /g; s/$/"/')
  printf '[[cells]]\nlevels = {%s}\nsamples = "there/%s"\n' "$levels" "$(basename "$cell")" >>"$tmp/d.toml"
done
sed -i 's/revision = "v2"/revision = "v1"/' "$tmp/d.toml"
expect_exit 1 purlin guard matrix "$tmp/d.toml" --json
expect_json "$tmp/out" '{i["kernel"]: i["cause"] for i in d["items"]}["gemm"] in ("driver", "mixed")'
expect_json "$tmp/out" 'any(s["factor"] == "driver" and abs(s["ratio"] - 1.2) < 0.06 for s in d["items"][0]["shares"])'
expect_contains "$tmp/out" 'proves less'

# A killed run goes on: a journal of whole rounds is not run again.
sed 's/LIBRARY = "0.8"/LIBRARY = "1.0"/' "$tmp/m.toml" >"$tmp/m2.toml"
expect_exit 1 purlin guard matrix "$tmp/m2.toml" --journal "$tmp/j.jsonl" --work "$tmp/work"
[ "$(wc -l <"$tmp/j.jsonl")" = 9 ] || fail 'the journal has not one line a round'
head -n 5 "$tmp/j.jsonl" >"$tmp/j2.jsonl"
printf '{"torn' >>"$tmp/j2.jsonl"
expect_exit 1 purlin guard matrix "$tmp/m2.toml" --journal "$tmp/j2.jsonl" --work "$tmp/work"
[ "$(wc -l <"$tmp/j2.jsonl")" = 9 ] || fail 'the run did not go on'
cmp <(head -n 5 "$tmp/j.jsonl") <(head -n 5 "$tmp/j2.jsonl") || fail 'old rounds were changed'
expect_exit 2 purlin guard matrix "$tmp/m.toml" --journal "$tmp/j2.jsonl" --work "$tmp/work"
expect_contains "$tmp/err" 'journal of another matrix'

# A kernel that fails in one cell has no time there; the others are measured.
cat >gbench <<'END'
#!/bin/sh
fail=false
[ "$(cat factor)" = 1 ] || fail=true
cat <<JSON
{"benchmarks": [{"name": "steady", "run_type": "iteration", "real_time": 50, "time_unit": "us"},
 {"name": "gemm", "run_type": "iteration", "real_time": 20, "time_unit": "us", "error_occurred": $fail, "error_message": "wrong result"}]}
JSON
END
chmod +x gbench && cp gbench "$tmp/"
cat >"$tmp/g.toml" <<END
schema = "purlin.matrix/1"
name = "failing"
rounds = 8
command = {run = ["$tmp/gbench"], format = "google-benchmark"}
[[factors]]
name = "build"
kind = "code"
levels = [{name = "v1", revision = "v1"}, {name = "v2", revision = "v2"}]
END
expect_exit 3 purlin guard matrix "$tmp/g.toml" --json
expect_json "$tmp/out" '[[f["item"] for f in c["failures"]] for c in d["cells"]] == [[], ["gemm"]]'
expect_json "$tmp/out" 'd["cells"][1]["failures"][0]["reason"].endswith("with an error: wrong result")'
expect_json "$tmp/out" '{i["kernel"]: len(i["shares"]) for i in d["items"]} == {"steady": 1, "gemm": 0}'
expect_json "$tmp/out" '[len(c["items"]) for c in d["cells"]] == [2, 1]'

# Mistakes.
expect_exit 2 purlin guard matrix missing.toml
expect_contains "$tmp/err" "there is no matrix 'missing.toml'"
sed 's/^rounds = 8/rounds = 7/' "$tmp/m.toml" >bad.toml
expect_exit 2 purlin guard matrix bad.toml
expect_contains "$tmp/err" "'rounds' must lie between 8 and 1000"
sed 's/kind = "code"/kind = "weather"/' "$tmp/m.toml" >bad.toml
expect_exit 2 purlin guard matrix bad.toml
expect_contains "$tmp/err" 'bad.toml:' 'must be one of code, compiler'
expect_exit 2 purlin guard matrix "$tmp/m.toml" --here driver=580
expect_contains "$tmp/err" "there is no factor 'driver'"
echo 'guard_matrix: all checks passed'
