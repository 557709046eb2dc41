#!/usr/bin/env bash
# --json-lines of tune, guard and serve, OpenMetrics, and the pages of diff and history.
# labels: opencl
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$tmp"
# lines FILE EXPRESSION: the expression over the list `d` of the file's JSON lines is true.
lines() { python3 -c 'import json,sys
d=[json.loads(line) for line in open(sys.argv[1])]
sys.exit(0 if eval(sys.argv[2]) else 1)' "$1" "$2" || { head -c 3000 "$1" >&2; fail "not true of $(basename "$1"): $2"; }; }

# --- tune
space=$PURLIN_SOURCE/tests/data/spaces/convolution_milo-A100.excerpt.json.gz
expect_exit 0 purlin tune --device "replay:$space" --budget 20 --strategy random --json-lines
cp out tuned
lines tuned 'd[0]["event"] == "begin" and d[0]["schema"] == "purlin.events/1" and d[0]["verb"] == "tune"'
lines tuned 'd[-1]["event"] == "result" and d[-1]["document"]["schema"] == "purlin.tune/1" and d[-1]["exit_code"] == 0'
lines tuned 'sum(e["event"] == "progress" for e in d) >= 20 and d[-2]["best_ms"] > 0'
lines tuned 'all(a["seconds"] <= b["seconds"] for a, b in zip(d, d[1:]))'
expect_exit 2 purlin tune --device "replay:$space" --json --json-lines
expect_contains err 'one of --json and --json-lines'

# --- guard
cp "$PURLIN_SOURCE"/tests/data/guard/scale* .
printf 'schema = "purlin.suite/1"\nname = "gate"\ndevice = "opencl:0"\n[[items]]\nspec = "scale.toml"\nconfig = "default"\n' >gate.toml
expect_exit 3 purlin guard check gate.toml --json-lines
lines out '[e["event"] for e in d] == ["begin", "result"] and d[-1]["document"]["verdict"] == "inconclusive"'

# --- serve: its address, a request, OpenMetrics, the end
"$PURLIN" serve --listen 127.0.0.1:0 --data served --json-lines >served.lines 2>served.log &
server=$!
trap 'kill $server 2>/dev/null || true; rm -rf "$tmp"' EXIT
wait_until "the server's address" grep -q listening served.lines
url=$(python3 -c 'import json
for line in open("served.lines"):
    event = json.loads(line)
    if event["event"] == "listening": print(event["document"]["url"])')
python3 - "$url" >metrics <<'PYTHON'
import sys, urllib.request
request = urllib.request.Request(sys.argv[1] + "/metrics", headers={
    "Accept": "application/openmetrics-text;version=1.0.0,text/plain;q=0.5"})
with urllib.request.urlopen(request) as answer:
    print(answer.headers["Content-Type"])
    print(answer.read().decode(), end="")
with urllib.request.urlopen(sys.argv[1] + "/metrics") as answer:
    assert answer.headers["Content-Type"].startswith("text/plain"), answer.headers["Content-Type"]
    assert "# EOF" not in answer.read().decode()
PYTHON
expect_contains metrics 'application/openmetrics-text; version=1.0.0' 'purlin_build_info{version=' '# TYPE purlin_build info'
[ "$(tail -1 metrics)" = '# EOF' ] || fail "no end"
! grep -q '^# TYPE .*_total' metrics || fail "a family with _total"
kill -TERM $server
wait $server || fail "serve ended with $?"
lines served.lines '[e["event"] for e in d] == ["begin", "listening", "request", "request", "result"]'
lines served.lines 'd[2]["request"]["target"] == "/metrics" and d[2]["request"]["status"] == 200'

# --- pages: nothing loads, nothing runs
page() {
  expect_contains "$1" "default-src 'none'; style-src 'sha256-" '</html>'
  ! grep -q -i -e '<script' -e 'src=' -e 'http://' -e 'https://' -e 'unsafe-inline' "$1" || fail "$1 can load or run something"
}
traces=$PURLIN_SOURCE/tests/data/traces
expect_exit 0 purlin diff "$traces/kineto_h200_fusion_before.json.gz" "$traces/kineto_h200_fusion_after.json.gz" --html diff.html
expect_contains diff.html "default-src 'none'; style-src 'sha256-" "connect-src 'none'" 'id="purlin-diff"' '</html>'
! grep -q -e "unsafe-" -e ' src=' diff.html || fail "diff.html can load or run something else"
for build in a b c d e f g h; do
  expect_exit 0 purlin guard run gate.toml --rounds 1 --record nightly.jsonl --build "$build<i>"
done
expect_exit 0 purlin guard history nightly.jsonl --html history.html
page history.html
expect_contains history.html 'b&lt;i&gt;' '<svg'
echo "events: ok"
