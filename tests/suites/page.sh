#!/usr/bin/env bash
# The page in a browser: the views of documents, from files and served, with axe-core (web/test/run.mjs).
# timeout: 420
# shellcheck source=tests/suites/lib.sh
. "$(dirname "$0")/lib.sh"

# Served on this machine only, read only, and not by another name.
expect_exit 0 purlin report --html "$tmp/page.html" "$PURLIN_SOURCE/tests/data/traces/kineto_h200_fusion_before.json.gz"
"$PURLIN" view --no-open --json "$PURLIN_SOURCE/tests/data/traces/kineto_h200_fusion_before.json.gz" >"$tmp/view.json" 2>"$tmp/view.err" &
view=$!
trap 'kill "$view" 2>/dev/null || true; rm -rf "$tmp"' EXIT
wait_until "purlin view tells its address" test -s "$tmp/view.json"
url=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["url"])' "$tmp/view.json")
python3 - "$url" <<'EOP' || fail "purlin view answers what it should not"
import gzip, json, sys, urllib.error, urllib.request
url = sys.argv[1]

def get(path, **headers):
    request = urllib.request.Request(url + path, headers=headers, method=headers.pop("method", "GET"))
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read()

assert url.startswith("http://127.0.0.1:"), url
status, headers, body = get("")
assert status == 200 and b"purlin-page" in body and b"octet-stream" not in body
policy = headers["Content-Security-Policy"]
assert "default-src 'none'" in policy and "unsafe" not in policy and "connect-src 'self'" in policy, policy
status, headers, body = get("documents/report.json")
report = json.loads(gzip.decompress(body) if headers["Content-Encoding"] == "gzip" else body)
assert status == 200 and report["schema"] == "purlin.report/1"
assert get("documents/timeline.bin")[0] == 200
assert get("documents/nothing.json")[0] == 404 and get("../etc/passwd")[0] == 404
assert get("", Host="evil.example")[0] == 403
assert get("", method="POST")[0] in (405, 411)
EOP
kill -INT "$view"
wait "$view" || fail "purlin view did not end well: $(cat "$tmp/view.err")"
expect_exit 2 purlin view "$tmp/absent.plprof"
# The own export is a profile again.
purlin export "$PURLIN_SOURCE/tests/data/traces/kineto_h200_fusion_before.json.gz" --format chrome -o "$tmp/own.json"
"$PURLIN" view --no-open --json "$tmp/own.json" >"$tmp/own.out" 2>"$tmp/own.err" &
view=$!
wait_until "purlin view reads an exported timeline" test -s "$tmp/own.out"
kill -INT "$view"
wait "$view" || fail "purlin view of an exported timeline: $(cat "$tmp/own.err")"
printf '{"schema": "purlin.entry/1"}' >"$tmp/entry.json"
expect_exit 2 purlin view --no-open "$tmp/entry.json"
expect_contains "$tmp/err" "no view"

look_at documents
