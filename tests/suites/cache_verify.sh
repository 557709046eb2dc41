#!/usr/bin/env bash
# `purlin cache verify`: winners checked again on a scripted device, whose times and mistakes are exact:
# validated, validated under another driver, replaced, demoted, quarantined; and a damaged file.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cp -r "$PURLIN_SOURCE/tests/data/tune" "$tmp/specs"
spec=$tmp/specs/scale.toml
sed -i 's/^MISTAKE = .*/MISTAKE = [0]/; s/^ITEMS = .*/ITEMS = [1]/' "$spec"

# device NAME DRIVER TIME_MS [MORE]: a script; all are the same device by its facts.
device() {
  printf '{"device": {"name": "Toy", "driver": "%s"}, "time_ms": "%s"%s}\n' "$2" "$3" "${4:+, $4}" >"$tmp/$1.json"
}
device tuned 1 "0.5 if BLOCK == 64 else 0.6 if BLOCK == 128 else 1"
device driver2 2 "0.4 if BLOCK == 64 else 0.6 if BLOCK == 128 else 1"
device runner_up 1 "0.55 if BLOCK == 128 else 0.6 if BLOCK == 64 else 1"
device defaults 1 "0.3 if BLOCK == 32 else 0.6"
device wrong 1 "0.5" '"wrong_if": "BLOCK == 64"'
tune() { expect_exit 0 purlin tune "$spec" --device "fake:$tmp/tuned.json" --strategy exhaustive --cache "$1"; }
verify() { local code=$1 cache=$2 script=$3; shift 3
  expect_exit "$code" purlin cache verify "$spec" --cache "$cache" --device "fake:$tmp/$script.json" --json "$@"; }
verdict() { expect_json "$tmp/out" "[w['verdict'] for w in d['winners']] == ['$1']"; }
config() { expect_json "$tmp/out" "d['entry']['config']['BLOCK'] == $1"; }
get() { purlin cache get "$spec" --cache "$1" --device "fake:$tmp/$2.json" --json >"$tmp/out"; }

# An empty cache, and one that is whole; nothing is measured without a spec or with --dry-run.
expect_exit 0 purlin cache verify --cache "$tmp/none" --json
expect_json "$tmp/out" 'd["schema"] == "purlin.cache-verify/1" and d["records"] == 0'
[ ! -e "$tmp/none" ] || fail "looking created a cache"
tune "$tmp/a"
expect_exit 0 purlin cache verify --cache "$tmp/a"
expect_contains "$tmp/out" "0 damaged"
verify 0 "$tmp/a" tuned --dry-run
expect_json "$tmp/out" '[w["config"]["BLOCK"] for w in d["winners"]] == [64] and "verdict" not in d["winners"][0]'

# It stands here; it stands under a new driver, whose lookups then get it.
verify 0 "$tmp/a" tuned
verdict validated
expect_json "$tmp/out" 'd["winners"][0]["default_ns"] == 2 * d["winners"][0]["winner_ns"]'
expect_exit 3 purlin cache get "$spec" --cache "$tmp/a" --device "fake:$tmp/driver2.json"
verify 0 "$tmp/a" tuned --changed
expect_json "$tmp/out" 'd["winners"] == []'
verify 0 "$tmp/a" driver2 --changed
verdict validated
get "$tmp/a" driver2
config 64
verify 0 "$tmp/a" driver2 --changed
expect_json "$tmp/out" 'd["winners"] == []'

# The runner-up overtook it: it is the entry now, with its times.
verify 1 "$tmp/a" runner_up
verdict replaced
get "$tmp/a" tuned
config 128
expect_json "$tmp/out" 'd["entry"]["time_ms"] == 0.55 and d["entry"]["verified"] and d["entry"]["strategy"] == "verify"'

expect_exit 0 purlin cache ls --cache "$tmp/a" --history --json
expect_json "$tmp/out" '[(e["served"], e["state"], e["config"]["BLOCK"]) for e in d["entries"]] == [(True, "active", 128), (False, "demoted", 64)]'
expect_json "$tmp/out" '[s["status"] for s in d["entries"][1]["statuses"]] == ["validated", "validated", "demoted"]'

# The default overtook it, or its outputs are wrong: withdrawn, and a re-tune is queued.
tune "$tmp/b"
verify 1 "$tmp/b" defaults
verdict demoted
expect_exit 3 purlin cache get "$spec" --cache "$tmp/b" --device "fake:$tmp/tuned.json"
expect_exit 0 purlin backlog --cache "$tmp/b" --json
expect_json "$tmp/out" '[t["kind"] for t in d["tasks"]] == ["retune"] and "slower than the default" in d["tasks"][0]["reason"]'
tune "$tmp/c"
verify 1 "$tmp/c" wrong
verdict quarantined
expect_exit 3 purlin cache get "$spec" --cache "$tmp/c" --device "fake:$tmp/tuned.json"
expect_exit 0 purlin cache ls --cache "$tmp/c" --json
expect_json "$tmp/out" 'd["entries"] == []'
expect_exit 0 purlin cache ls --cache "$tmp/c" --history
expect_contains "$tmp/out" quarantined "element"
# Its withdrawal goes where it goes.
expect_exit 0 purlin cache push "$tmp/share" --cache "$tmp/c"
tune "$tmp/d"
expect_exit 0 purlin cache merge "$tmp/c" --cache "$tmp/d"
expect_exit 0 purlin cache pull "$tmp/share" --cache "$tmp/e"
expect_exit 3 purlin cache get "$spec" --cache "$tmp/e" --device "fake:$tmp/tuned.json"

# What cannot be measured is said: another source, a kernel without its spec, another device.
tune "$tmp/tuned"
get "$tmp/tuned" tuned
sed 's/"source_hash": "./"source_hash": "x/' "$tmp/out" >"$tmp/changed.entry.json"
expect_exit 0 purlin cache put --entry "$tmp/changed.entry.json" --cache "$tmp/f"
verify 3 "$tmp/f" tuned
expect_contains "$tmp/err" "changed since"
expect_exit 3 purlin cache verify "$PURLIN_SOURCE/kernels/gemm" --cache "$tmp/f" --device "fake:$tmp/tuned.json"
expect_contains "$tmp/err" "no spec of this kernel"
printf '{"device": {"name": "Other"}}\n' >"$tmp/other.json"
verify 0 "$tmp/f" other
expect_json "$tmp/out" 'd["elsewhere"] == 1 and d["winners"] == []'
for bad in --limit=-1 --time-limit=soon; do
  expect_exit 2 purlin cache verify "$spec" --cache "$tmp/f" "$bad"
  expect_contains "$tmp/err" "${bad%%=*}"
  [ ! -s "$tmp/out" ] || fail "it says what it checked before it refuses $bad"
done
mkdir "$tmp/empty"
expect_exit 2 purlin cache verify "$tmp/empty" --cache "$tmp/f"
expect_contains "$tmp/err" "no spec is in"

# A damaged record.
python3 - "$tmp/a/entries.log" <<'PYTHON'
import sys
with open(sys.argv[1], "r+b") as file:
    file.seek(100)
    file.write(b"?")
PYTHON
expect_exit 1 purlin cache verify --cache "$tmp/a" --json
expect_json "$tmp/out" 'd["damaged_records"] >= 1 and d["records"] >= 1'
echo "cache_verify: every verdict, its record, and what cannot be checked"
