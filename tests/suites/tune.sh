# shellcheck shell=bash
# `purlin space` and `purlin tune` end to end: on a real device (OpenCL on the CPU), on fake ones that
# crash and hang, and killed at work.
source "$(dirname "$0")/lib.sh"
spec=$PURLIN_SOURCE/tests/data/tune/scale.toml
trap 'jobs -p | xargs -r kill -9 2>/dev/null; rm -rf "$tmp"' EXIT

# Space: counts, pruning, export. MISTAKE != 0 needs ITEMS == 1.
printf '{"time_ms": "1 + abs(BLOCK - 64) / 64 + 1 / ITEMS", "device": {"max_threads_per_block": 1024}}' >"$tmp/fast.json"
expect_exit 0 purlin space "$spec" --device "fake:$tmp/fast.json" --json --sample 3
expect_json "$tmp/out" 'd["cartesian"] == 80 and d["valid"] == 31 and len(d["sample"]) == 3'
expect_json "$tmp/out" 'sum(p["configs"] for p in d["pruned"]) == 49'
expect_exit 0 purlin space "$spec" --device "fake:$tmp/fast.json" --export csv
[ "$(wc -l <"$tmp/out")" -eq 32 ] || fail "the CSV has $(wc -l <"$tmp/out") lines"

# A fake device: the best config is known, the default is first, the winner is stored.
expect_exit 0 purlin tune "$spec" --device "fake:$tmp/fast.json" --budget 100 --json
expect_json "$tmp/out" 'd["schema"] == "purlin.tune/1" and len(d["evaluations"]) == 31'
expect_json "$tmp/out" 'd["best"]["config"] == {"BLOCK": 64, "ITEMS": 16, "MISTAKE": 0}'
expect_json "$tmp/out" 'd["evaluations"][0]["config"]["BLOCK"] == 32 and d["default"]["time_ms"] > d["best"]["time_ms"]'
expect_json "$tmp/out" 'abs(d["evaluations"][-1]["cumulative_cost_s"] - sum(e["cost_s"] for e in d["evaluations"])) < 1e-6'
expect_contains "$tmp/err" "stored in"
expect_exit 0 purlin cache get "$spec" --device "fake:$tmp/fast.json" --json
expect_json "$tmp/out" 'd["entry"]["config"]["ITEMS"] == 16'

# A shape at which the default config breaks a constraint: the nearest one that does not is measured in its place.
mkdir "$tmp/nearest"
cp "$PURLIN_SOURCE"/tests/data/tune/scale* "$tmp/nearest"
sed -i 's/^constraints = \[/&"BLOCK * 2048 >= N", /' "$tmp/nearest/scale.toml"
nearest=(purlin tune "$tmp/nearest/scale.toml" --device "fake:$tmp/fast.json" --budget 8 --jobs 0 --no-store --json)
expect_exit 0 "${nearest[@]}"
expect_json "$tmp/out" 'd["evaluations"][0]["config"] == {"BLOCK": 32, "ITEMS": 1, "MISTAKE": 0}'
! grep -q "takes its place" "$tmp/err" || fail "the default works at this shape"
expect_exit 0 "${nearest[@]}" --shape N=131072
expect_json "$tmp/out" 'd["evaluations"][0]["config"] == {"BLOCK": 64, "ITEMS": 1, "MISTAKE": 0} and d["default"]["time_ms"] > 0'
expect_contains "$tmp/err" "scale at N=131072: the default config breaks a constraint or a limit of the device; BLOCK=64 ITEMS=1 MISTAKE=0 takes its place"

# `purlin cache verify` compares the winner with it.
expect_exit 0 "${nearest[@]/--no-store/--fresh}" --shape N=131072 --cache "$tmp/nearest/cache"
expect_exit 0 purlin cache verify "$tmp/nearest/scale.toml" --device "fake:$tmp/fast.json" --cache "$tmp/nearest/cache" --json
expect_json "$tmp/out" 'd["winners"][0]["default_ns"] > d["winners"][0]["winner_ns"] > 0 and d["winners"][0]["verdict"] == "validated"'
# And it is the reference, where the default is.
sed -i '/^\[reference/,/^block = \[64\]/d' "$tmp/nearest/scale.toml"
printf '\n[reference]\nconfig = "default"\n' >>"$tmp/nearest/scale.toml"
expect_exit 0 purlin tune "$tmp/nearest/scale.toml" --device opencl:0 --shape N=131072 --strategy exhaustive --budget 12 --jobs 0 --no-store --json
expect_json "$tmp/out" 'd["evaluations"][0]["config"] == {"BLOCK": 64, "ITEMS": 1, "MISTAKE": 0} and d["evaluations"][0]["status"] == "ok"'
expect_json "$tmp/out" 'all(e["status"] == "ok" for e in d["evaluations"] if e["config"]["MISTAKE"] == 0)'

# What a bucket costs: here the best number of blocks does not depend on the problem, so the winner of the
# largest shape is a poor one at the smallest.
mkdir "$tmp/regret"
cp "$PURLIN_SOURCE"/tests/data/tune/scale* "$tmp/regret"
printf '\n[bucket]\nN = "pow2"\n' >>"$tmp/regret/scale.toml"
printf '{"time_ms": "1 + abs(blocks - 64) / 64", "device": {"name": "Regret", "max_threads_per_block": 1024}}' >"$tmp/regret.json"
expect_exit 0 purlin tune "$tmp/regret/scale.toml" --device "fake:$tmp/regret.json" --budget 100 --bucket-regret 2 --jobs 0 --json
expect_json "$tmp/out" 'len(d["bucket_regret"]) == 2 and max(d["bucket_regret"].values()) > 1.2'
expect_json "$tmp/out" 'all(32768 < int(s[2:]) <= 65536 and r >= 1 for s, r in d["bucket_regret"].items())'
expect_contains "$tmp/err" 'a finer rule would help: [bucket] N = "multiple:8192"'
expect_exit 0 purlin cache get "$tmp/regret/scale.toml" --device "fake:$tmp/regret.json" --explain
expect_contains "$tmp/out" 'bucket: of 2 other shapes measured' 'finer rule' "layout: 'flat'"
expect_exit 0 purlin cache ls
expect_contains "$tmp/out" regret
expect_exit 0 purlin tune "$spec" --device "fake:$tmp/fast.json" --budget 3 --bucket-regret 2 --jobs 0
expect_contains "$tmp/err" 'has no other shape'
expect_exit 2 purlin tune "$spec" --device "fake:$tmp/fast.json" --no-store --bucket-regret 2

# Two devices of one model share the work and the compilers; each config is evaluated once.
cp "$tmp/fast.json" "$tmp/fast2.json"
expect_exit 0 purlin tune "$spec" --device "fake:$tmp/fast.json,fake:$tmp/fast2.json" --strategy exhaustive --no-store --json
expect_json "$tmp/out" 'len({str(e["config"]) for e in d["evaluations"]}) == len(d["evaluations"]) == 31'
expect_json "$tmp/out" 'd["best"]["config"] == {"BLOCK": 64, "ITEMS": 16, "MISTAKE": 0}'
printf '{"device": {"name": "Another"}}' >"$tmp/other.json"
expect_exit 2 purlin tune "$spec" --device "fake:$tmp/fast.json,fake:$tmp/other.json" --no-store
expect_contains "$tmp/err" 'their times do not compare'

# Candidates that crash or hang cost themselves only.
printf '{"time_ms": 1, "crash_if": "BLOCK == 16", "hang_if": "BLOCK == 128 and ITEMS == 2"}' >"$tmp/bad.json"
expect_exit 0 purlin tune "$spec" --device "fake:$tmp/bad.json" --strategy exhaustive --budget 100 --timeout 8s --no-store --json
expect_json "$tmp/out" 'd["failures"]["crash"]["count"] == 8 and d["failures"]["timeout"]["count"] == 1'

# Killed with -9 again and again: no evaluation is repeated, and none is missing in the end.
# (A name of its own, for binaries are kept by device, and a kept one takes no time to compile.)
printf '{"time_ms": "1 + BLOCK / 64", "compile_s": 0.3, "device": {"name": "Slow"}}' >"$tmp/slow.json"
run=("$PURLIN" tune "$spec" --device "fake:$tmp/slow.json" --strategy random --budget 100 --jobs 0 --session "$tmp/session" --no-store --finals 0 -q)
evaluations() { cat "$tmp"/session/*/journal.jsonl 2>/dev/null | grep -c '"evaluation"' || true; }
has_evaluations() { [ "$(evaluations)" -ge "$1" ]; }
for more in 2 4 3; do
  wanted=$(($(evaluations) + more))
  "${run[@]}" --json >/dev/null 2>&1 &
  pid=$!
  wait_until "$wanted evaluations" has_evaluations "$wanted"
  kill -9 "$pid" 2>/dev/null || true
  wait "$pid" 2>/dev/null || true
done
journal=$(echo "$tmp"/session/*/journal.jsonl)
before=$(evaluations)
expect_exit 0 "${run[@]}" --json
expect_json "$tmp/out" "d['resumed'] == $before and len(d['evaluations']) == 31"
[ "$(grep -o '"config":{[^}]*}' "$journal" | sort | uniq -d | wc -l)" -eq 0 ] || fail "an evaluation was repeated"

# Ctrl-C: the best so far, exit code 3, and the same command goes on.
rm -rf "$tmp/session" "$XDG_CACHE_HOME/purlin/binaries"
"${run[@]}" --json >"$tmp/stopped" 2>"$tmp/err" &
pid=$!
wait_until '3 evaluations' has_evaluations 3
kill -TERM "$pid"
code=0
wait "$pid" || code=$?
[ "$code" -eq 3 ] || fail "an interrupted session ended with $code"
expect_json "$tmp/stopped" 'd["end"] == "stopped" and d["best"]["config"]'
expect_exit 0 "${run[@]}" --json
expect_json "$tmp/out" 'd["resumed"] >= 3 and len(d["evaluations"]) == 31'

# Before the first config, too: the reference of so large a shape takes minutes on a CPU.
"$PURLIN" tune "$PURLIN_SOURCE/kernels/gemm/gemm.toml" --device opencl:0 --shape M=8192,N=8192,K=8192 2>"$tmp/err" &
pid=$!
wait_until 'the worker' pgrep -P "$pid"
kill -TERM "$pid"
code=0
wait "$pid" || code=$?
[ "$code" -eq 3 ] || fail "a session that was stopped while setting up ended with $code"
expect_contains "$tmp/err" "interrupted before the first config"

# While the first config hangs, too.
printf '{"time_ms": 1, "hang_if": "True", "device": {"name": "Stuck"}}' >"$tmp/stuck.json"
"$PURLIN" tune "$spec" --device "fake:$tmp/stuck.json" --no-store >"$tmp/out" 2>"$tmp/err" &
pid=$!
wait_until 'the first evaluation' grep -q 'evaluation 1 of 31' "$tmp/err"
expect_contains "$tmp/err" "runs the reference"
kill -INT "$pid"
code=0
wait "$pid" || code=$?
[ "$code" -eq 3 ] || fail "a session that was stopped in its first evaluation ended with $code"

# A budget in seconds is that of the whole session: a config that hangs is cut off, and is no failure.
printf '{"time_ms": 1, "hang_if": "BLOCK == 128", "device": {"name": "Stuck"}}' >"$tmp/stuck.json"
expect_exit 0 purlin tune "$spec" --device "fake:$tmp/stuck.json" --strategy exhaustive --budget 5s --timeout 10m --no-store --json
expect_json "$tmp/out" 'd["end"] == "budget" and d["failures"] == {} and d["best"]["config"]'

# A loaded machine: samples that scatter over ten times their median are noise and no error, also when
# the session goes on.
printf '{"time_ms": 0.25, "noise": 40, "seed": 2, "device": {"name": "Loaded"}}' >"$tmp/loaded.json"
for budget in 20 31; do
  expect_exit 0 purlin tune "$spec" --device "fake:$tmp/loaded.json" --budget "$budget" --no-store --json
  expect_contains "$tmp/err" "too noisy"
done
expect_json "$tmp/out" 'd["resumed"] == 20 and d["noise"] <= 10'

# Equal configs: noise names no winner, and claims no gain.
for seed in 1 2 3 4 5 6; do
  printf '{"time_ms": 0.25, "noise": 0.1, "seed": %d, "device": {"name": "Equal"}}' "$seed" >"$tmp/equal.json"
  expect_exit 0 purlin tune "$spec" --device "fake:$tmp/equal.json" --budget 100 --seed "$seed" --no-store --html "$tmp/page.html" --json
  expect_json "$tmp/out" 'd["best"]["is_default"] and d["speedup_over_default"] == 1'
done
# One order and one time of a config, in the document and on the page.
expect_json "$tmp/out" 'next(e for e in d["evaluations"] if e["rank"] == 1)["time_ms"] == d["best"]["time_ms"]'
expect_json "$tmp/out" 'sorted(e["rank"] for e in d["evaluations"] if e["status"] == "ok") == list(range(1, 32))'
sed -n 's|.*id="purlin-tune">\(.*\)</script>.*|\1|p' "$tmp/page.html" >"$tmp/page.json"
python3 -c 'import json, sys; a, b = (json.load(open(p)) for p in sys.argv[1:]); sys.exit(a != b)' "$tmp/page.json" "$tmp/out" ||
  fail "the page holds another document"

# Another reference judges a config anew: what the old one said is not gone on with.
cp -r "$PURLIN_SOURCE/tests/data/tune" "$tmp/edited"
edited=("$PURLIN" tune "$tmp/edited/scale.toml" --device "fake:$tmp/slow.json" --session "$tmp/edits" --finals 0 --budget 3 -q --json)
expect_exit 0 "${edited[@]}"
sed -i '$d' "$tmp"/edits/*/journal.jsonl  # as if interrupted before the end was noted
expect_exit 0 "${edited[@]}"
expect_json "$tmp/out" 'd["resumed"] == 3'
sed -i '$d' "$tmp"/edits/*/journal.jsonl
echo '// corrected' >>"$tmp/edited/scale_reference.cl"
expect_exit 0 "${edited[@]}"
expect_json "$tmp/out" 'd["resumed"] == 0'

# A winner that cannot be stored in the end is told of all the same.
printf '{"time_ms": 1, "compile_s": 5, "device": {"name": "Slower"}}' >"$tmp/slower.json"
"$PURLIN" tune "$spec" --device "fake:$tmp/slower.json" --session "$tmp/fails.sessions" --cache "$tmp/fails" \
  --jobs 0 --finals 0 --budget 2 -q --json >"$tmp/out" 2>"$tmp/err" &
pid=$!
is_open() { [ -e "$tmp/fails/entries.log" ] && compgen -G "$tmp/fails.sessions/*/journal.jsonl" >/dev/null; }
wait_until 'the session to begin' is_open
rm "$tmp/fails/entries.log"
mkdir "$tmp/fails/entries.log"
code=0
wait "$pid" || code=$?
[ "$code" -eq 2 ] || fail "exit code $code where a winner could not be stored"
expect_json "$tmp/out" 'd["best"]["config"]'
expect_contains "$tmp/err" "not stored" "$tmp/fails"

# A real device: planted mistakes are found, the winner is right, the text is for people.
expect_exit 0 purlin tune "$spec" --device opencl --strategy exhaustive --budget 100 --samples 7 --json
expect_json "$tmp/out" 'd["failures"]["wrong"]["count"] == 4 and d["failures"]["out_of_bounds"]["count"] == 4'
expect_json "$tmp/out" 'd["failures"]["compile"]["count"] == 4 and "error" in d["failures"]["compile"]["first_message"]'
expect_json "$tmp/out" 'd["best"]["config"]["MISTAKE"] == 0 and d["best"]["gbytes_per_s"] > 0'
expect_exit 0 purlin tune "$spec" --device opencl --budget 6 --shape N=4096 --shape N=8192 --no-store
expect_contains "$tmp/out" "N=4096" "N=8192" "default"

# --missing: the second call looks up and neither compiles nor measures.
for call in 1 2; do
  expect_exit 0 purlin tune "$spec" --device "fake:$tmp/fast.json" --budget 5 --missing --cache "$tmp/missing" --json
  if [ "$call" = 1 ]; then
    expect_json "$tmp/out" 'd["best"]["config"]'
    expect_contains "$tmp/err" ": miss"
  else
    expect_json "$tmp/out" 'd["schema"] == "purlin.tune-set/1" and d["results"] == []'
    expect_contains "$tmp/err" "exact; nothing is measured"
  fi
done
expect_exit 2 purlin tune --backlog 1 --missing

# Bad input: a clear error, exit 2.
expect_exit 2 purlin tune
expect_contains "$tmp/err" "no spec given"
expect_exit 2 purlin tune "$spec" --device "fake:$tmp/fast.json" --strategy locl
expect_contains "$tmp/err" "did you mean 'local'"
expect_exit 2 purlin tune "$spec" --device "fake:$tmp/fast.json" --budget soon
expect_contains "$tmp/err" "--budget takes"
cp -r "$PURLIN_SOURCE/tests/data/tune" "$tmp/spec"
sed -i 's/^constraints = .*/constraints = ["BLOCK > 0", "ITEMS > 16"]/' "$tmp/spec/scale.toml"
expect_exit 2 purlin space "$tmp/spec/scale.toml" --device "fake:$tmp/fast.json"
expect_contains "$tmp/err" "no config satisfies" "ITEMS > 16" "scale.toml:5:"
printf '{"compile_error_if": "BLOCK > 0", "device": {"name": "Refuser"}}' >"$tmp/none.json"
expect_exit 2 purlin tune "$spec" --device "fake:$tmp/none.json" --no-store
expect_contains "$tmp/err" "none of the 31 configs evaluated works" "compile"
touch "$tmp/file"
expect_exit 2 purlin tune "$spec" --device "fake:$tmp/fast.json" --cache "$tmp/file/cache"
echo "tune: ok"
