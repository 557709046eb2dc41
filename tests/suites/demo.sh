# The whole loop, as a new user meets it.
# timeout: 600
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

expect_exit 0 purlin demo --device opencl:0 --budget 12s -o "$tmp/demo" --json
cp "$tmp/out" "$tmp/summary.json"
expect_json "$tmp/summary.json" "d['schema'] == 'purlin.demo/1' and d['profile']['share'] > 0"
expect_json "$tmp/summary.json" "d['tune']['speedup'] >= 1 and d['tune']['measured'] >= 2"
expect_json "$tmp/summary.json" "d['green']['verdict'] == 'pass' and d['red']['verdict'] == 'regression'"
expect_json "$tmp/summary.json" "d['red']['items'][0]['ratio']['low'] > 1"
cmp <(json "$tmp/demo/demo.json" "d['tune']['best_ms']") <(json "$tmp/summary.json" "d['tune']['best_ms']") || fail "demo.json differs"
expect_exit 2 purlin demo --device cuda:99
expect_contains "$tmp/err" "cuda"
expect_exit 2 purlin demo --budget soon
expect_contains "$tmp/err" "--budget takes"
