#!/usr/bin/env bash
# timeout: 300
# labels: opencl
# A fleet of one node: a program is captured without `purlin profile`, a collector sends it, a server
# answers; then faults against a ledger, and hostile clients.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
unset "${!PURLIN_SERVER_@}" http_proxy HTTP_PROXY all_proxy ALL_PROXY || true
server= collector= program=
trap 'for p in $server $collector $program; do kill -9 "$p" 2>/dev/null || true; done; rm -rf "$tmp"' EXIT

"$PURLIN" serve --data "$tmp/data" --listen 127.0.0.1:0 --json >"$tmp/serving" 2>>"$tmp/log" &
server=$!
wait_until "the server to listen" grep -q '"tokens"' "$tmp/serving"
url=$(json "$tmp/serving" 'd["url"]')
get() { python3 -c 'import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=60).read().decode())' "$url$1"; }

# A program as it is, with the variables of `purlin env`.
mkdir -p "$tmp/spool" "$tmp/none"
eval "$("$PURLIN" env --spool "$tmp/spool" --build v7 --seal-period 200ms)"
[ -d "$tmp/spool/uid-$(id -u)" ] || fail "purlin env made no folder"
export PURLIN_DEVICE=opencl:0
"$PURLIN_BUILD/tests/opencl_loop" >"$tmp/program" 2>&1 || fail "the captured program failed: $(cat "$tmp/program")"
unset PURLIN_SPOOL OPENCL_LAYERS CUDA_INJECTION64_PATH NVTX_INJECTION64_PATH
ls "$tmp/spool/uid-$(id -u)"/*.plprof >/dev/null || fail "no capture was written"

collect() { purlin collect --server "$url" --spool "$tmp/spool" --temporary "$tmp/none" --state "$tmp/state" --kubelet-logs "" "$@"; }
expect_exit 0 collect --once --json
[ "$(json "$tmp/out" 'd["waiting"]')" = 0 ] || fail "a batch was not sent"
[ "$(json "$tmp/out" 'd["sent"]')" -ge 1 ] || fail "nothing was sent"
get "/v1/query/top?begin=-1d" >"$tmp/top"
[ "$(json "$tmp/top" 'd["launches"]')" != 0.0 ] || fail "the server knows no launch"
before=$(json "$tmp/top" 'd["launches"]')
# The whole capture went as a raw profile: by its hash, and by a kernel that its node ran.
kernel=$(json "$tmp/top" 'd["kernels"][0]["kernel"]')
get "/v1/raws?begin=-1d&kernel=$(python3 -c 'import sys, urllib.parse; print(urllib.parse.quote(sys.argv[1]))' "$kernel")" >"$tmp/raws"
[ "$(json "$tmp/raws" 'd["raws"][0]["build"]')" = v7 ] || fail "no raw profile: $(cat "$tmp/raws")"
curl -sSf -o "$tmp/raw.plprof" "$url$(json "$tmp/raws" 'd["raws"][0]["url"]')" || fail "the raw profile cannot be fetched"
[ "$(sha256sum <"$tmp/raw.plprof" | cut -d' ' -f1)" = "$(json "$tmp/raws" 'd["raws"][0]["sha256"]')" ] || fail "the raw profile's hash"
expect_exit 0 purlin report "$tmp/raw.plprof"
expect_contains "$tmp/out" "$kernel"
get "/v1/query/history?by=build,job&step=all&begin=-1d" >"$tmp/history"
[ "$(json "$tmp/history" 'd["points"][0]["build"]')" = v7 ] || fail "the build is lost"
# Read captures of ended programs are removed; a second look sends nothing.
expect_exit 0 collect --once
! ls "$tmp/spool/uid-$(id -u)"/*.plprof 2>/dev/null || fail "a capture that was read is still there"
get "/v1/query/top?begin=-1d" >"$tmp/top"
[ "$(json "$tmp/top" 'd["launches"]')" = "$before" ] || fail "launches were counted twice"

expect_exit 2 purlin collect
expect_contains "$tmp/err" "--server names where batches go"
expect_exit 2 purlin collect --server "$url" --period never
expect_exit 2 purlin collect --once --server "${url#http://}"
expect_contains "$tmp/err" "is not the address of a server"
printf 'a-token of-two-words\n' >"$tmp/two"
expect_exit 2 collect --once --token-file "$tmp/two"
expect_contains "$tmp/err" "holds no token"
expect_exit 2 collect --once --token-file "$tmp/absent"
expect_exit 2 collect --once --node "$(printf 'a\nb')"
expect_exit 0 collect --once --job-mapping "$tmp/absent"
expect_contains "$tmp/err" "there is no such folder now"
expect_exit 2 purlin env --format yaml
expect_exit 2 purlin serve --tls-cert "$tmp/none" --listen 127.0.0.1:0

# The daemon: health, metrics without kernels' names, one per state folder.
"$PURLIN" collect --server "$url" --spool "$tmp/spool" --temporary "$tmp/none" --state "$tmp/state" --kubelet-logs "" \
  --period 200ms --listen 0 --json >"$tmp/collecting" 2>>"$tmp/log" &
collector=$!
wait_until "the collector to listen" grep -q '"state"' "$tmp/collecting"
at=$(json "$tmp/collecting" 'd["url"]')
expect_exit 2 collect --once
expect_contains "$tmp/err" "another collector uses"
mkdir -p "$tmp/spool/made"
"$PURLIN_BUILD/tests/fleet_captures" "$tmp/spool/made" 2 5 100 9 >"$tmp/ledger"
healthy() { python3 -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1] + "/healthz", timeout=20)' "$at" 2>/dev/null; }
wait_until "the collector to be healthy" healthy
same() {
  get "/v1/query/top?limit=10000&begin=-1d" >"$tmp/top"
  python3 - "$tmp/ledger" "$tmp/top" <<'PYTHON'
import json, sys
ledger, top = (json.load(open(path)) for path in sys.argv[1:])
got = {k["kernel"]: k["launches"] for k in top["kernels"] if k["kernel"] in ledger}
sys.exit(got != ledger)
PYTHON
}
wait_until "the launches of the ledger" same
python3 -c 'import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1] + "/metrics", timeout=20).read().decode())' "$at" >"$tmp/metrics"
grep -q "^purlin_collect_sent_batches_total [1-9]" "$tmp/metrics" || fail "no sent batch in the metrics"
! grep -q "kernel_" "$tmp/metrics" || fail "the metrics name kernels"
# A timeline that a person requests: of a program that runs, by its job.
(
  eval "$("$PURLIN" env --spool "$tmp/spool" --build v8 --seal-period 200ms)"
  SLURM_JOB_ID=4711 exec "$PURLIN_BUILD/tests/opencl_loop" launches 600000 pause 1000 >"$tmp/program" 2>&1
) &
program=$!
is_seen() { get "/v1/query/values?dimension=job&begin=-1d" >"$tmp/jobs" && grep -q "slurm 4711" "$tmp/jobs"; }
wait_until "the running program at the server" is_seen
node=$(get /v1/nodes | python3 -c 'import json, sys; print(json.load(sys.stdin)["nodes"][0]["node"])')
expect_exit 0 purlin capture window --server "$url" --node "$node" --job 4711 --for 500ms --wait 4m -o "$tmp/now.plprof" --json
expect_json "$tmp/out" 'd["window"]["state"] == "arrived" and d["window"]["job"] == "4711"'
expect_exit 0 purlin report "$tmp/now.plprof" --json
expect_json "$tmp/out" '[k["name"] for k in d["kernels"]] == ["scale"] and 1 < d["kernels"][0]["count"] < 500'
expect_exit 2 purlin capture window --server "$url" --node "$node" --job none --for 1s --wait 4m
expect_contains "$tmp/err" "no captured process of this job"
expect_exit 3 purlin capture window --server "$url" --node nowhere --for 1s --wait 0s
expect_exit 2 purlin capture window --server "$url" --for 1s
expect_exit 0 purlin capture status --server "$url"
expect_contains "$tmp/out" arrived refused asked
grep -q '"kind":"ask_window".*job=4711' "$tmp/data/audit.log" || fail "the request is not in the audit log"
kill "$program"; wait "$program" 2>/dev/null || true; program=

kill "$collector"; wait "$collector" || fail "the collector did not end well"; collector=
kill "$server"; wait "$server" || fail "the server did not end well"; server=
[ -s "$tmp/data/store/catalog.sqlite" ] || fail "no store"

# Tokens become hashes and stay valid.
printf '# mine\nread 0123456789abcdef-reader fleet\n' >"$tmp/tokens"; chmod 600 "$tmp/tokens"
expect_exit 0 purlin serve --token-file "$tmp/tokens" --hash-tokens
! grep -q 0123456789abcdef-reader "$tmp/tokens" || fail "the token is still there"
[ "$(stat -c %a "$tmp/tokens")" = 600 ] || fail "the mode of the token file changed"

PURLIN="$PURLIN" PURLIN_BUILD="$PURLIN_BUILD" python3 "$PURLIN_SOURCE/tests/soak/fleet_soak.py" --rounds "${PURLIN_SOAK_ROUNDS:-1}" \
  --faults server,collector,cut,corrupt,duplicate --seed "${PURLIN_SOAK_SEED:-1}" || fail "a fault lost something, or doubled it"
python3 "$PURLIN_SOURCE/tests/soak/fleet_attacks.py" --connections 300 --seconds 4 || fail "an attack succeeded"
