#!/usr/bin/env bash
# Advice on recorded traces: text, document and lists; exit codes; what it says where it knows nothing.
# shellcheck source=tests/suites/lib.sh
. "$(dirname "$0")/lib.sh"

traces=$PURLIN_SOURCE/tests/data/traces
suites=$PURLIN_SOURCE/tests/suites
golden=$PURLIN_SOURCE/tests/golden
schema=$PURLIN_SOURCE/docs/formats/advise.schema.json

# Text and document are as recorded; PURLIN_UPDATE_GOLDEN=1 writes them anew.
for name in fusion_before decode_before; do
  expect_exit 0 purlin advise "$traces/kineto_h200_$name.json.gz"
  cp "$tmp/out" "$tmp/advise_$name.txt"
  expect_exit 0 purlin advise --json "$traces/kineto_h200_$name.json.gz"
  cp "$tmp/out" "$tmp/$name.json"
  expect_exit 0 python3 "$suites/json_schema.py" --closed "$schema" "$tmp/$name.json"
  python3 - "$tmp/$name.json" "$tmp/advise_$name.json" <<'PY'
import json, sys
document = json.load(open(sys.argv[1]))
document["tool_version"] = "0"
document["profile"]["files"] = []
json.dump(document, open(sys.argv[2], "w"), indent=2, ensure_ascii=False)
PY
  sed -i "s|$traces/||" "$tmp/advise_$name.txt"
  for file in "advise_$name.txt" "advise_$name.json"; do
    if [ -n "${PURLIN_UPDATE_GOLDEN:-}" ]; then cp "$tmp/$file" "$golden/$file"; fi
    diff "$golden/$file" "$tmp/$file" >&2 || fail "$file is not the golden one"
  done
done

# The measured gain is in the interval, in time and in share (tests/data/traces/measured.json).
held() {  # TRACE PROGRAM INTERVENTION
  expect_exit 0 purlin advise --json "$traces/$1"
  python3 - "$tmp/out" "$traces/measured.json" "$2" "$3" <<'PY' || fail "$2: the gain is not in the interval"
import json, sys
advice, measured = (json.load(open(path)) for path in sys.argv[1:3])
truth = measured[sys.argv[3]]
one = next(one for one in advice["interventions"][:2] if one["id"] == sys.argv[4])
saved = truth["saved_ms"] * 1e6
assert one["saved_ns"]["low"] <= saved <= one["saved_ns"]["high"], (one["saved_ns"], saved)
share = truth["saved_ms"] / truth["before_ms"]
assert one["saved_share"]["low"] <= share <= one["saved_share"]["high"], (one["saved_share"], share)
PY
}
held kineto_h200_fusion_before.json.gz fusion_pointwise fuse_pointwise
held kineto_h200_decode_before.json.gz graphs_decode cuda_graphs

# The report has the first of it, and says where the rest is.
expect_exit 0 purlin report "$traces/kineto_h200_decode_before.json.gz"
expect_contains "$tmp/out" "CU" "purlin advise" "shows reasons"
expect_exit 0 purlin report --json "$traces/kineto_h200_decode_before.json.gz"
expect_json "$tmp/out" '"cuda_graphs" in [a["id"] for a in d["advice"][:2]] and d["verdict"] == "scheduling"'
expect_json "$tmp/out" 'len({k["id"] for k in d["kernels"]}) == len(d["kernels"])'
expect_json "$tmp/out" 'all(a["profile"] == d["profile"]["id"] for a in d["alerts"])'
expect_json "$tmp/out" 'all(k["target"]["fraction"] == 0.92 for k in d["kernels"] if k["bound"] == "memory")'
expect_exit 0 purlin report --json --target-memory 0.5 "$traces/kineto_h200_fusion_before.json.gz"
expect_json "$tmp/out" 'all(k["target"]["fraction"] == 0.5 for k in d["kernels"])'
printf 'target-memory = "0.6"\n' >"$tmp/purlin.toml"
(cd "$tmp" && expect_exit 0 purlin report --json "$traces/kineto_h200_fusion_before.json.gz" &&
  expect_json "$tmp/out" 'all(k["target"]["fraction"] == 0.6 for k in d["kernels"])')
rm "$tmp/purlin.toml"

# Stall samples: on their own, and beside the profile they belong to.
printf 'kernel,stall_reason,samples\nk,barrier,60\nk,long_scoreboard,30\nk,selected,10\n' >"$tmp/stalls.csv"
expect_exit 0 purlin advise --json "$tmp/stalls.csv"
expect_json "$tmp/out" 'd["stalls"][0]["reason"] == "barrier" and d["interventions"] == [] and d["nothing"]'
expect_exit 0 purlin report --json "$tmp/stalls.csv"
expect_json "$tmp/out" 'any(f["kind"] == "stall" and "barrier" in f["text"] for f in d["findings"])'
expect_exit 0 purlin report --kernel k "$tmp/stalls.csv"
expect_contains "$tmp/out" "barrier" "More occupancy does not help"
expect_exit 2 purlin advise --stalls "$tmp/stalls.csv" "$traces/kineto_h200_fusion_before.json.gz"
expect_contains "$tmp/err" "no sampled kernel is in the profile (of 1 kernel)"

# Two lists: against itself nothing got slower; against the program after its fusion, nothing that was
# there before did.
expect_exit 0 purlin advise --json --list 1 --against "$traces/kineto_h200_fusion_before.json.gz" "$traces/kineto_h200_fusion_before.json.gz"
expect_json "$tmp/out" 'd["got_slower"] == [] and len(d["tune"]) <= 1 and d["against"].endswith("before.json.gz")'

# No advice without a profile, and mistakes are named.
printf '{"traceEvents": [], "schemaVersion": 1, "deviceProperties": []}' >"$tmp/empty.json"
expect_exit 3 purlin advise "$tmp/empty.json"
expect_contains "$tmp/out" "no profile"
expect_exit 2 purlin advise --target-memory 2 "$tmp/stalls.csv"
expect_exit 2 purlin advise --smallest 3 "$tmp/stalls.csv"
expect_exit 2 purlin advise "$tmp/none.plprof"

# What a change saved is recorded once, shown beside the rule, and believed from five on.
export PURLIN_STATE=$tmp/state
before=$traces/kineto_h200_fusion_before.json.gz after=$traces/kineto_h200_fusion_after.json.gz
expect_exit 0 purlin advise --outcome "$before" "$after" --id fuse_pointwise
expect_contains "$tmp/out" "measured" "inside the interval" "advice_outcomes.jsonl"
expect_exit 2 purlin advise --outcome "$before" "$after" --id fuse_pointwise
expect_contains "$tmp/err" "recorded already"
expect_exit 2 purlin advise --outcome "$before" "$after" --id cuda_graphs
expect_contains "$tmp/err" "not advised" "fuse_pointwise"
expect_exit 2 purlin advise --outcome "$before" --id fuse_pointwise
expect_exit 2 purlin advise --id fuse_pointwise "$before"
line=$(cat "$tmp/state/advice_outcomes.jsonl")
printf '{"schema":"purlin.outcome/1","rule":"\\u001b[2J"}\nno json\n' >>"$tmp/state/advice_outcomes.jsonl"
expect_exit 0 purlin advise --json "$before"
expect_contains "$tmp/err" "2 lines left out"
expect_json "$tmp/out" 'd["interventions"][0]["record"]["outcomes"] == 1 and d["interventions"][0]["record"]["factor"] is None'
expect_json "$tmp/out" 'd["interventions"][0]["doc"] == "docs/guide/playbook.md#fuse-pointwise"'
expect_json "$tmp/out" '{c["id"]: c["state"] for c in d["checklist"]}["fusion"] == "found"'
for i in 1 2 3 4; do printf '%s\n' "$line" >>"$tmp/state/advice_outcomes.jsonl"; done
expect_exit 0 purlin advise --json "$before"
expect_json "$tmp/out" 'd["interventions"][0]["record"]["factor"]["mid"] > 0'
cp "$tmp/out" "$tmp/learned.json"
expect_exit 0 python3 "$suites/json_schema.py" --closed "$schema" "$tmp/learned.json"
expect_exit 0 purlin advise "$before"
expect_contains "$tmp/out" "5 outcomes of this rule" "checklist"
