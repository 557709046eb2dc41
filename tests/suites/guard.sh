#!/usr/bin/env bash
# The gate on a real device: green, red with the cause, and every way of not knowing.
# labels: opencl
# serial
source "$(dirname "$0")/lib.sh"

cp "$PURLIN_SOURCE"/tests/data/guard/scale* "$tmp"
cd "$tmp"
# Wide thresholds: this must hold on a busy shared CPU. The planted slowdowns are wider still.
cat >gate.toml <<'END'
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
spec = "scale.toml"
config = "default"
tags = ["quick"]
END

# No baseline yet: not an error, not green.
expect_exit 3 purlin guard check gate.toml --json
expect_json "$tmp/out" 'd["schema"] == "purlin.guard/1" and d["verdict"] == "inconclusive"'
expect_contains "$tmp/out" 'there is no baseline'

expect_exit 0 purlin guard baseline gate.toml -o baselines/ --rounds 3
expect_json baselines/gate.json 'd["schema"] == "purlin.baseline/1" and len(d["items"][0]["processes"]) == 3'
expect_json baselines/gate.json 'd["environment"]["devices"][0]["driver"] != "" and d["items"][0]["input_seed"] == 1'
expect_json baselines/gate.json '{f["path"] for s in d["snapshots"].values() for f in s["files"]} == {"scale.toml", "scale.cl", "scale.h", "scale_reference.cl"}'
cp baselines/gate.json kept.json
expect_exit 2 purlin guard baseline gate.toml -o baselines/ --rounds 3
expect_contains "$tmp/err" 'already holds a baseline' '--replace'
cmp baselines/gate.json kept.json
expect_exit 2 purlin guard baseline gate.toml -o baselines/ --rounds 3 --replace   # why?
expect_contains "$tmp/err" '--note'
cmp baselines/gate.json kept.json
expect_exit 0 purlin guard baseline gate.toml -o baselines/ --rounds 3 --replace --note 'new normal' --by ada
expect_json baselines/gate.json 'd["promoted_by"] == "ada" and d["recorded_at"] >= d["replaces"]'
cmp "baselines/$(json baselines/gate.json 'd["previous"]')" kept.json
expect_json baselines/gate.json 'd["replaces"] != "" and d["note"] == "new normal"'

expect_decided 0 purlin guard check gate.toml --baseline baselines/ --json
expect_json "$tmp/out" 'd["verdict"] in ("pass", "improvement") and d["items"][0]["pairs"] >= 8'

# A slower header of the kernel's source: red, and the code is named.
sed -i 's/i < steps/i < 6 * steps/' scale.h
expect_decided 1 purlin guard check gate.toml --baseline baselines/ --json --junit guard.xml --sarif guard.sarif --markdown guard.md --github
expect_json "$tmp/out" 'd["verdict"] == "regression" and d["items"][0]["cause"] == "code"'
expect_json "$tmp/out" 'd["items"][0]["ratio"]["low"] > 1.4 and d["items"][0]["p_value"] <= 0.002'
cp "$tmp/out" red.json
expect_contains guard.xml '<failure type="regression"' 'failures="1"'
expect_json guard.sarif 'd["runs"][0]["results"][0]["ruleId"] == "purlin/regression"'
expect_contains guard.md '| scale | N=65536 | regression |'
expect_contains "$tmp/err" '::error title=purlin guard%3A scale'
expect_exit 0 purlin report "$(json red.json 'd["items"][0]["profiles"]["before"]')" --json
expect_json "$tmp/out" 'd["kernels"][0]["name"].startswith("scale")'
expect_exit 0 purlin diff "$(json red.json 'd["items"][0]["profiles"]["before"]')" "$(json red.json 'd["items"][0]["profiles"]["after"]')"
# The next red check keeps its profiles beside those.
expect_decided 1 purlin guard check gate.toml --baseline baselines/ --json
first=$(json red.json 'd["items"][0]["profiles"]["after"]')
expect_json "$tmp/out" "d['items'][0]['profiles']['after'] != '$first'"
[ -s "$first" ] || fail 'the profile of the first red check is gone'
cp "$PURLIN_SOURCE"/tests/data/guard/scale.h .

# A kernel that no longer compiles, and one that is wrong, are never green.
echo 'int broken(' >>scale.cl
expect_exit 2 purlin guard check gate.toml --baseline baselines/ --json
expect_json "$tmp/out" 'd["verdict"] == "invalid" and "compile" in d["items"][0]["reason"]'
sed 's/y\[i\] = x\[i\]/y[i] = 2 * x[i]/' "$PURLIN_SOURCE/tests/data/guard/scale.cl" >scale.cl
expect_exit 2 purlin guard check gate.toml --baseline baselines/ --json
expect_json "$tmp/out" 'd["verdict"] == "invalid" and "wrong" in d["items"][0]["reason"]'
cp "$PURLIN_SOURCE"/tests/data/guard/scale.cl .

# Another environment proves nothing.
python3 - <<'END'
import json
d = json.load(open("baselines/gate.json"))
d["environment"]["devices"][0]["driver"] = "0.1"
json.dump(d, open("foreign.json", "w"))
END
expect_exit 3 purlin guard check gate.toml --baseline foreign.json --json
expect_json "$tmp/out" '"driver" in d["items"][0]["reason"] and d["items"][0]["pairs"] == 0'

# Measured without a judgement, and judged from the recording.
expect_exit 0 purlin guard run gate.toml --rounds 8 --samples a.csv --json
expect_json "$tmp/out" 'len(d["items"][0]["processes"]) == 8'
expect_exit 0 purlin guard compare --samples a.csv a.csv --json
awk -F, -v OFS=, '/^[0-9]/ {$(NF-1) *= 2} {print}' a.csv >b.csv
expect_exit 1 purlin guard compare --samples a.csv b.csv   # 2^-8 is below the level of one kernel
expect_contains "$tmp/out" 'slower, by 8 pairs'
awk -F, '/^[0-9]/ && $1 > 5 {next} {print}' b.csv >few.csv
expect_exit 3 purlin guard compare --samples a.csv few.csv
expect_contains "$tmp/out" 'only 5 pairs'

# Bad input: a clear complaint, exit 2.
expect_exit 2 purlin guard check missing.toml
expect_contains "$tmp/err" "there is no suite 'missing.toml'"
sed 's/config = "default"/confg = "default"/' gate.toml >typo.toml
expect_exit 2 purlin guard check typo.toml
expect_contains "$tmp/err" 'typo.toml:12' "did you mean 'config'"
expect_exit 2 purlin guard check gate.toml --tag slow
expect_contains "$tmp/err" 'its tags are: quick'
head -c 500 baselines/gate.json >cut.json
expect_exit 2 purlin guard check gate.toml --baseline cut.json
expect_contains "$tmp/err" 'cut.json'
sed 's/config = "default"/config = "cached"/' gate.toml >cached.toml
expect_exit 2 purlin guard baseline cached.toml --cache "$tmp/empty" -o none.json
expect_contains "$tmp/err" 'has no winner' 'purlin tune'
[ ! -e none.json ] || fail 'a failed baseline was written'

# Commands have no baseline that could be run again: refused with what to use, unless tags leave them
# out. They are measured, and what fails says so.
cat >bench <<'END'
#!/bin/sh
echo run >>launches
printf 'name,time_us\none,10\none,11\none,12\n"two, of two",20\n'
END
chmod +x bench
{ cat gate.toml; printf '[[commands]]\nname = "c"\nrun = ["./bench"]\nformat = "csv"\ntime_column = "time_us"\n'; } >mixed.toml
for verb in check baseline; do
  expect_exit 2 purlin guard $verb mixed.toml
  expect_contains "$tmp/err" 'guard compare A B --suite mixed.toml' '--tag'
done
[ ! -e launches ] || fail 'a command was run that could not be judged'
expect_exit 0 purlin guard run mixed.toml --rounds 3 --json --samples mixed.csv --record history.jsonl
[ "$(wc -l <launches)" -eq 4 ] || fail "$(wc -l <launches) launches for three rounds"
expect_json "$tmp/out" '[(i["kernel"], i["p50_ns"], len(i["processes"])) for i in d["items"][1:]] == [("c/one", 11000, 3), ("c/two, of two", 20000, 3)]'
expect_contains mixed.csv '"c/two, of two"' 'c/one'
expect_contains history.jsonl 'c/one'
expect_exit 0 purlin guard run mixed.toml --tag quick --json
expect_json "$tmp/out" 'len(d["items"]) > 0'
echo 'exit 3' >>bench
expect_exit 2 purlin guard run mixed.toml --json
expect_json "$tmp/out" '[i["status"] for i in d["items"]] == ["ok", "failed"] and "exit status 3" in d["items"][1]["message"]'
echo 'guard: all checks passed'
