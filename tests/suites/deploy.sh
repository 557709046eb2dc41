#!/usr/bin/env bash
# shellcheck shell=bash
# The files of deploy/: strict YAML, options that exist, metrics that exist; a demo fleet shows its
# planted truths, Prometheus can read it, and a worker pool drains its backlog.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
unset "${!PURLIN_SERVER_@}" http_proxy HTTP_PROXY all_proxy ALL_PROXY || true
server=
trap '[ -z "$server" ] || kill -9 "$server" 2>/dev/null || true; rm -rf "$tmp"' EXIT

# With PURLIN_TEST_GO=1 the chart is rendered by Go's templates as well, which helm uses (packages golang-go,
# golang-github-masterminds-sprig-dev and golang-gopkg-yaml.v3-dev; half a minute to compile).
renderer=
if [ "${PURLIN_TEST_GO:-}" = 1 ]; then
  renderer=$tmp/helm_template
  GO111MODULE=off GOPATH=/usr/share/gocode GOCACHE=$tmp/go go build -o "$renderer" "$PURLIN_SOURCE/tests/suites/helm_template.go" ||
    fail "helm_template.go"
fi
if command -v helm >/dev/null; then helm lint --strict "$PURLIN_SOURCE/deploy/helm/purlin" || fail "helm lint"; fi
python3 "$PURLIN_SOURCE/tests/suites/deploy_files.py" "$PURLIN_SOURCE" "$PURLIN" $renderer || fail "deploy/"
# What can be run here: units as systemd reads them, and the job of Slurm with a stand-in for purlin.
if command -v systemd-analyze >/dev/null; then
  for unit in "$PURLIN_SOURCE"/deploy/systemd/*.service; do
    sed "s|/usr/bin/purlin|$PURLIN|" "$unit" >"$tmp/${unit##*/}"
    systemd-analyze verify --man=no "$tmp/${unit##*/}" 2>"$tmp/verify" || fail "${unit##*/}: $(cat "$tmp/verify")"
    [ ! -s "$tmp/verify" ] || fail "${unit##*/}: $(cat "$tmp/verify")"
  done
fi
if command -v shellcheck >/dev/null; then
  shellcheck --shell=sh "$PURLIN_SOURCE/deploy/slurm/tune-backlog.sbatch" || fail "the script for Slurm"
fi
mkdir -p "$tmp/bin"
printf '#!/bin/sh\necho "$PURLIN_SERVER_TOKEN_FILE" "$@"\n' >"$tmp/bin/purlin"
chmod +x "$tmp/bin/purlin"
sbatch() { env -u PURLIN_POOL_SERVER PATH="$tmp/bin:$PATH" SLURM_JOB_ID=7 "$@" sh "$PURLIN_SOURCE/deploy/slurm/tune-backlog.sbatch"; }
expect_exit 0 sbatch PURLIN_POOL_SERVER=https://fleet:8717
expect_contains "$tmp/out" "$HOME/.config/purlin/pool-token worker-pool --drain --device cuda:0 --server https://fleet:8717"
if sbatch >"$tmp/out" 2>&1; then fail "the job of Slurm runs without a server"; fi
expect_contains "$tmp/out" "PURLIN_POOL_SERVER"
if command -v promtool >/dev/null; then
  promtool check rules "$PURLIN_SOURCE/deploy/prometheus/alerts.yml" || fail "the alert rules"
fi

# A receiver of webhooks that keeps each body as a line.
cat >"$tmp/receiver.py" <<'PY'
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with open(sys.argv[1] + "/hooks", "ab") as out:
            out.write(self.path.encode() + b" " + body + b"\n")
        self.send_response(200); self.end_headers()
    def log_message(self, *_): pass
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
open(sys.argv[1] + "/port", "w").write(str(server.server_port) + "\n")
server.serve_forever()
PY
python3 "$tmp/receiver.py" "$tmp" & receiver=$!
trap '[ -z "$server" ] || kill -9 "$server" 2>/dev/null || true; kill "$receiver" 2>/dev/null || true; rm -rf "$tmp"' EXIT
wait_until "the receiver" test -s "$tmp/port"
cat >"$tmp/alerts.toml" <<TOML
schema = "purlin.alerts/1"
url = "https://purlin.example"
[[webhooks]]
name = "all"
url = "http://127.0.0.1:$(cat "$tmp/port")/hook"
TOML

"$PURLIN" serve --demo --data "$tmp/demo" --listen 127.0.0.1:0 --alerts "$tmp/alerts.toml" --json \
  >"$tmp/serving" 2>"$tmp/server.log" & server=$!
wait_until "the demo to be served" grep -q '"tokens"' "$tmp/serving"
url=$(json "$tmp/serving" 'd["url"]')
ask() { curl -sS --fail-with-body "$url$1" >"$tmp/out" 2>"$tmp/err" || fail "$1: $(cat "$tmp/out" "$tmp/err")"; }

ask /v1/query/top
expect_json "$tmp/out" 'len(d["kernels"]) >= 20'
ask /v1/query/slower
expect_json "$tmp/out" 'sorted(k["kernel"][:8] for k in d["kernels"] if k["certainty"] == "alarm") == ["paged_at", "rms_norm"]'
expect_json "$tmp/out" '[k["bisect"] for k in d["kernels"] if k["kernel"] == "rms_norm_kernel" and k["certainty"] == "alarm"] == ["purlin guard bisect v1.8 v1.9 --suite SUITE"]'
ask /v1/query/stragglers
expect_json "$tmp/out" '[s["device"] for s in d["stragglers"]] == ["GPU-h100-07-1"]'
metrics() { ask /metrics; grep -q "$1" "$tmp/out"; }
wait_until "the look at the fleet" metrics '^purlin_slower_kernels{certainty="alarm"} 2'
metrics '^purlin_thin_nodes 1' || fail "the node that is hardly seen"
wait_until "four findings" sh -c "[ \$(wc -l <'$tmp/hooks') -ge 4 ]"
grep -q 'purlin.alert/1.*rms_norm_kernel' "$tmp/hooks" || fail "the webhook: $(cat "$tmp/hooks")"
grep -q 'https://purlin.example/#1/kernels?begin=-30d&kernel=rms_norm_kernel&model=' "$tmp/hooks" || fail "no link to the page: $(cat "$tmp/hooks")"

# The backlog has the fleet's tasks. A worker of this machine finds none for its device.
ask /v1/backlog
expect_json "$tmp/out" 'len(d["tasks"]) > 30 and sorted(t["state"] for t in d["tasks"] if t["state"] != "open") == ["done"] * 4 + ["failed"] + ["leased"] * 2 and d["tuning_gpu_s"] > 1000'
expect_json "$tmp/out" 'any(not t["headroom_assumed"] and "of its roof" in t["reason"] for t in d["tasks"])'
expect_exit 3 purlin tune --from-backlog 1 --server "$url" --device opencl:0 --cache "$tmp/cache"
kill "$server"; wait "$server" || fail "the server did not end well"; server=

# The server's tasks as a suite: names are quoted, what no spec computes is a comment.
# (The server is started again: its data was kept.)
"$PURLIN" serve --data "$tmp/demo" --listen 127.0.0.1:0 --json >"$tmp/serving" 2>>"$tmp/server.log" & server=$!
wait_until "the server" grep -q '"tokens"' "$tmp/serving"
expect_exit 0 purlin backlog --server "$(json "$tmp/serving" 'd["url"]')" --suite "$tmp/fleet.toml" --cache "$tmp/cache"
grep -q '^schema = "purlin.suite/1"' "$tmp/fleet.toml" || fail "the suggested suite"
kill "$server"; wait "$server" || fail "the server did not end well"; server=

# A pool drains what programs of this machine queued, each task once.
expect_exit 0 purlin doctor --json
device=$(json "$tmp/out" 'next(x["name"] for x in d["environment"]["devices"] if x["id"] == "opencl:0")')
mkdir -p "$tmp/cache"
for extent in 64 128; do
  printf '{"schema":"purlin.backlog/1","kind":"retune","kernel":"transpose","shape":"X=%d,Y=%d","spec":"%s","device":"%s"}\n' \
    $extent $extent "$PURLIN_SOURCE/kernels/transpose/transpose.toml" "$device"
done >"$tmp/cache/backlog.jsonl"
expect_exit 0 purlin worker-pool --drain --device opencl:0 --cache "$tmp/cache" --budget 4 \
  --hours "$tmp/hours.json" --poll 1s
expect_contains "$tmp/err" "no free task"
python3 - "$tmp/cache/leases.db" <<'PY' || fail "the tasks are not done: $(cat "$tmp/err")"
import sqlite3, sys
rows = sqlite3.connect(sys.argv[1]).execute("SELECT done, attempts, outcome FROM task").fetchall()
assert len(rows) == 2 and all(done == 1 and attempts == 1 for done, attempts, _ in rows), rows
PY
expect_json "$tmp/hours.json" 'd["seconds"]["opencl:0"] > 0'
expect_exit 0 purlin backlog --cache "$tmp/cache"
expect_contains "$tmp/out" "nothing to do"
# A device that is in use is left alone; SIGTERM ends the pool.
"$PURLIN" worker-pool --device opencl:0 --cache "$tmp/cache" --idle-command false \
  --hours "$tmp/hours.json" 2>"$tmp/pool.log" & pool=$!
wait_until "the pool to look" grep -q "not idle" "$tmp/pool.log"
kill "$pool"; wait "$pool" || fail "the pool did not end well"
