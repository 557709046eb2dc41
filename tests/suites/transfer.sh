# shellcheck shell=bash
# Starting from what others know: `tune --transfer`, what a session leaves for later ones, `export` of
# results. On fake devices and excerpts of recorded spaces.
# timeout: 120
source "$(dirname "$0")/lib.sh"
spec=$PURLIN_SOURCE/tests/data/tune/scale.toml
spaces=$PURLIN_SOURCE/tests/data/spaces
printf '{"time_ms": "1 + abs(BLOCK - 64) / 64 + 1 / ITEMS", "device": {"name": "First", "max_threads_per_block": 1024}}' >"$tmp/first.json"
printf '{"time_ms": "3 + abs(BLOCK - 64) / 20 + 1 / ITEMS", "device": {"name": "Second", "max_threads_per_block": 1024}}' >"$tmp/second.json"
printf '{"time_ms": "9 - abs(BLOCK - 64) / 20 - 1 / ITEMS", "device": {"name": "Contrary", "max_threads_per_block": 1024}}' >"$tmp/contrary.json"
tune=(purlin tune "$spec" --finals 0 --jobs 0 -q --json)

# Nothing is known at first; then a session on another device starts from this one's evaluations.
expect_exit 0 "${tune[@]}" --device "fake:$tmp/first.json" --strategy exhaustive --budget 100
cp "$tmp/out" "$tmp/first.doc.json"
expect_json "$tmp/out" '"transfer" not in d'
compgen -G "$XDG_CACHE_HOME/purlin/configs/evaluations/*.json.gz" >/dev/null || fail "no evaluations were kept"
expect_exit 0 "${tune[@]}" --device "fake:$tmp/second.json" --budget 8 --no-store
expect_json "$tmp/out" '[s["device"] for s in d["transfer"]["sources"]] == ["First"] and d["transfer"]["sources"][0]["configs"] == 31'
expect_json "$tmp/out" 'd["strategy_used"] == "transfer" and d["best"]["config"] == {"BLOCK": 64, "ITEMS": 16, "MISTAKE": 0}'
# So small a budget has the order of three configs checked, of which one is the default. Their best
# comes after a config that they only call good.
expect_json "$tmp/out" '[e["config"] for e in d["evaluations"]].index({"BLOCK": 64, "ITEMS": 16, "MISTAKE": 0}) == 4'
expect_exit 0 "${tune[@]}" --device "fake:$tmp/second.json" --budget 8 --no-store --no-transfer
expect_json "$tmp/out" '"transfer" not in d'

# Where it misleads it is dropped, and the report says why.
expect_exit 0 "${tune[@]}" --device "fake:$tmp/contrary.json" --budget 25 --no-store
expect_json "$tmp/out" 'd["transfer"]["state"] == "dropped" and d["transfer"]["why"]'

# A document as a file, an entry of the cache, a damaged file beside the cache.
export PURLIN_CACHE=$tmp/empty
expect_exit 0 "${tune[@]}" --device "fake:$tmp/second.json" --budget 8 --no-store --transfer "$tmp/first.doc.json"
expect_json "$tmp/out" 'd["transfer"]["sources"][0]["source"] == "first.doc.json" and d["transfer"]["proposed"] > 0'
expect_exit 0 purlin cache put "$spec" --device "fake:$tmp/first.json" --config BLOCK=64,ITEMS=16,MISTAKE=0
expect_exit 0 "${tune[@]}" --device "fake:$tmp/second.json" --budget 8 --no-store
expect_json "$tmp/out" 'd["transfer"]["sources"][0]["source"] == "cache entry"'
expect_json "$tmp/out" 'd["evaluations"][1]["config"] == {"BLOCK": 64, "ITEMS": 16, "MISTAKE": 0}'
mkdir -p "$PURLIN_CACHE/evaluations"
echo damaged >"$PURLIN_CACHE/evaluations/scale-0.json.gz"
expect_exit 0 purlin tune "$spec" --finals 0 --device "fake:$tmp/second.json" --budget 8 --no-store
expect_contains "$tmp/err" "not readable"
unset PURLIN_CACHE

# Export: there and back, and a replay of what was exported.
excerpt=$spaces/convolution_milo-A100.excerpt
expect_exit 0 purlin export "$excerpt.t4.json" --format kernel-tuner -o "$tmp/kt.json"
expect_exit 0 purlin export "$tmp/kt.json" --format t4 -o "$tmp/t4.json"
python3 - "$excerpt.t4.json" "$tmp/t4.json" <<'PY' || fail "T4 -> Kernel Tuner -> T4 is not the same"
import json, sys
a, b = (json.load(open(f))["results"] for f in sys.argv[1:])
close = lambda x, y: abs(x - y) <= 1e-12 * max(abs(x), 1)
assert len(a) == len(b)
for x, y in zip(a, b):
    for k in ("timestamp", "configuration", "invalidity", "correctness", "objectives"):
        assert x[k] == y[k], (k, x[k], y[k])
    assert x["times"].get("runtimes") == y["times"].get("runtimes")
    assert all(close(x["times"][k], y["times"][k]) for k in ("compilation", "framework", "search_algorithm", "validation"))
PY
expect_exit 0 purlin tune --device "replay:$tmp/kt.json" --budget 100 --json
expect_json "$tmp/out" 'len(d["evaluations"]) == 10'
expect_exit 0 purlin export "$tmp/first.doc.json" --format csv
[ "$(wc -l <"$tmp/out")" -eq 32 ] || fail "the CSV has $(wc -l <"$tmp/out") lines"
expect_exit 0 purlin export "$(dirname "$(echo "$XDG_CACHE_HOME"/purlin/sessions/*/journal.jsonl | cut -d' ' -f1)")" --format json
expect_contains "$tmp/out" "purlin.evaluations/1"

# Mistakes: a clear error, exit 2.
expect_exit 2 purlin export "$tmp/kt.json" --format xml
expect_contains "$tmp/err" "kernel-tuner"
expect_exit 2 "${tune[@]}" --device "fake:$tmp/second.json" --strategy random --transfer "$tmp/first.doc.json"
expect_contains "$tmp/err" "--transfer takes auto or transfer"
echo '{"schema": "purlin.report/1"}' >"$tmp/report.json"
expect_exit 2 "${tune[@]}" --device "fake:$tmp/second.json" --transfer "$tmp/report.json"
expect_contains "$tmp/err" "report.json" "no results of tuning"
expect_exit 0 purlin tune --device "replay:$excerpt.json" --budget 3 --transfer "$tmp/first.doc.json"
expect_contains "$tmp/err" "none of its 31 configs is one of this space"
echo "transfer: ok"
