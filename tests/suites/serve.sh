#!/usr/bin/env bash
# timeout: 300
# A Purlin server: two pushers at once, also while it is killed; tokens; what it refuses.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
spec=$PURLIN_SOURCE/kernels/gemm/gemm.toml
export PURLIN_DEVICE=opencl:0
unset "${!PURLIN_SERVER_@}" http_proxy HTTP_PROXY all_proxy ALL_PROXY || true
config=BM=32,BN=32,BK=16,TM=4,TN=4,LANES=8,VECTOR=4,PAD=0,STAGES=1,UNROLL=true,GROUP=1,MIN_BLOCKS=1
server=
trap '[ -z "$server" ] || kill -9 "$server" 2>/dev/null || true; rm -rf "$tmp"' EXIT

# serve OPTIONS…: starts a server, sets `server` and `url`.
serve() {
  rm -f "$tmp/serving"
  "$PURLIN" serve --data "$tmp/data" --json "$@" >"$tmp/serving" 2>>"$tmp/server.log" &
  server=$!
  wait_until "the server to listen" grep -q '"tokens"' "$tmp/serving"
  url=$(json "$tmp/serving" 'd["url"]')
}
stop() { kill "$server"; wait "$server" || fail "the server did not end well"; server=; }

expect_exit 2 purlin serve --listen 0.0.0.0:0
expect_contains "$tmp/err" "others can reach 0.0.0.0" "--token-file"
expect_exit 2 purlin serve --listen somewhere
expect_contains "$tmp/err" "is not ADDRESS:PORT"
expect_exit 2 purlin serve --listen 127.0.0.1:0 --quota plenty
expect_contains "$tmp/err" "is not a size"
printf 'write 0123456789abcdef-writer ci\nread 0123456789abcdef-reader fleet\n' >"$tmp/tokens"
chmod 644 "$tmp/tokens"
expect_exit 2 purlin serve --listen 127.0.0.1:0 --token-file "$tmp/tokens"
expect_contains "$tmp/err" "chmod"
chmod 600 "$tmp/tokens"

# Entries, each of a key of its own.
expect_exit 0 purlin cache put "$spec" --cache "$tmp/seed" --shape M=256,N=256,K=256 --config "$config" --time-ms 2.5
expect_exit 0 purlin cache get "$spec" --cache "$tmp/seed" --shape M=256,N=256,K=256 --json
python3 - "$tmp" <<'PYTHON'
import json, os, sys
folder = sys.argv[1]
entry = json.load(open(folder + "/out"))["entry"]
os.mkdir(folder + "/entries")
for n in range(2000):
    entry["problem"]["M"] = n + 1
    entry["key"]["bucket"] = f"M={n + 1},N=256,K=256"
    entry["bucket_rules"]["M"] = "exact"
    json.dump(entry, open(f"{folder}/entries/{n}.json", "w"))
PYTHON
# pusher NAME TARGET FIRST: one record after the other until $tmp/enough is there.
pusher() {
  local n
  for n in $(seq "$3" $(($3 + 999))); do
    [ ! -e "$tmp/enough" ] || return 0
    "$PURLIN" cache import --cache "$tmp/$1" "$tmp/entries/$n.json" >/dev/null &&
      "$PURLIN" cache push --cache "$tmp/$1" "$2" >>"$tmp/$1.log" 2>&1 || return 1
  done
}

serve --listen 127.0.0.1:0
if ! purlin cache pull "$url/none" --cache "$tmp/x" 2>"$tmp/err" && grep -q "need libcurl" "$tmp/err"; then
  echo "serve: no libcurl here, clients are left out"
  exit 0
fi
expect_contains "$tmp/err" "there is no shared cache" "purlin cache push"
port=${url##*:}
expect_exit 2 purlin serve --listen "$port" --data "$tmp/other"
expect_contains "$tmp/err" "cannot listen"
expect_exit 2 purlin serve --listen 127.0.0.1:0 --data "$tmp/data"
expect_contains "$tmp/err" "another server keeps '$tmp/data'"
# Killed and started again while two push: nothing that was acknowledged is lost, no pusher fails.
pusher a "$url/team" 0 & first=$!
pusher b "$url/team" 1000 & second=$!
pushed() { cat "$tmp/a.log" "$tmp/b.log" 2>/dev/null | grep -c "pushed" || true; }
some_more_pushed() { [ "$(pushed)" -gt "$before" ]; }
for _ in 1 2 3; do
  before=$(pushed)
  wait_until "another push" some_more_pushed
  kill -9 "$server"; wait "$server" || true
  serve --listen "$port"
done
before=$(pushed)
wait_until "a push after the last kill" some_more_pushed
touch "$tmp/enough"
wait $first || { tail -5 "$tmp/a.log" >&2; fail "the first pusher failed"; }
wait $second || { tail -5 "$tmp/b.log" >&2; fail "the second pusher failed"; }
all=$(pushed)
expect_exit 0 purlin cache pull "$url/team" --cache "$tmp/all" --json
expect_json "$tmp/out" 'd["added"] == '"$all"' and d["problems"] == [] and d["refused"] == 0'
expect_exit 0 purlin cache gc --share "$url/team" --cache "$tmp/all" --grace 0s --json
expect_json "$tmp/out" 'd["segments_after"] == 1'
expect_exit 0 purlin cache pull "$tmp/data/caches/team" --cache "$tmp/folder" --json
expect_json "$tmp/out" 'd["added"] == '"$all"' and d["problems"] == []'

# What is no request, or no object of a shared cache, is refused.
python3 - "$url" <<'PYTHON'
import http.client, socket, sys
host = sys.argv[1].split("//")[1]
def ask(method, path, body=None, headers={}):
    connection = http.client.HTTPConnection(host, timeout=60)
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    answer.read()
    return answer.status
objects = "/v1/caches/team/objects/"
absent = {"If-None-Match": "*"}
def expect(status, *request):
    seen = ask(*request)
    assert seen == status, (seen, status, request[:2])
expect(200, "GET", "/healthz")
expect(200, "GET", "/metrics")
expect(200, "GET", "/v1/caches/team")
expect(428, "PUT", objects + "index.json", b"{}")
expect(400, "PUT", objects + "segments/" + "a" * 64 + ".bundle", b"other bytes", absent)
expect(400, "PUT", objects + "notes.txt", b"x", absent)
expect(400, "GET", objects + "../../../tokens")
expect(400, "GET", objects + "..%2f..%2ftokens")
expect(403, "DELETE", objects + "index.json")
expect(421, "GET", "/v1/caches", None, {"Host": "evil.example"})
expect(405, "POST", "/v1/caches")
expect(413, "GET", "/healthz", b"a body")
expect(200, "HEAD", "/healthz")
def raw(text):
    name, port = host.split(":")
    with socket.create_connection((name, int(port)), timeout=60) as client:
        client.sendall(text)
        return client.recv(100).split(b"\r\n")[0]
for text, status in ((b"garbage\r\n\r\n", b"400"), (b"GET / HTTP/1.1\r\nX: " + b"a" * 20000, b"431"),
                     (b"PUT " + objects.encode() + b"probe-1 HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 70000000\r\n\r\n", b"413"),
                     (b"PUT " + objects.encode() + b"probe-1 HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n", b"411")):
    line = raw(text)
    assert status in line, (text[:40], line)
PYTHON
stop

# Tokens: who may read, who may write.
serve --listen 127.0.0.1:0 --token-file "$tmp/tokens"
expect_exit 2 purlin cache pull "$url/team" --cache "$tmp/reader"
expect_contains "$tmp/err" "wants a token" "PURLIN_SERVER_TOKEN"
expect_exit 2 env PURLIN_SERVER_TOKEN=0123456789abcdef-nobody "$PURLIN" cache pull "$url/team" --cache "$tmp/reader"
expect_contains "$tmp/err" "does not know that token"
export PURLIN_SERVER_TOKEN=0123456789abcdef-reader
expect_exit 0 purlin cache pull "$url/team" --cache "$tmp/reader" --json
expect_json "$tmp/out" 'd["added"] == '"$all"
expect_exit 2 purlin cache push "$url/team" --cache "$tmp/seed"
expect_contains "$tmp/err" "'fleet' may read, not write"
echo 0123456789abcdef-writer >"$tmp/token"
expect_exit 0 env -u PURLIN_SERVER_TOKEN PURLIN_SERVER_TOKEN_FILE="$tmp/token" "$PURLIN" cache push "$url/team" --cache "$tmp/seed" --json
expect_json "$tmp/out" 'd["pushed"] == 1'
# The file is read again when it changes; one that cannot be used changes nothing.
cp "$tmp/tokens" "$tmp/tokens.new"
printf 'write 0123456789abcdef-person ann person\n' >>"$tmp/tokens.new"
mv "$tmp/tokens.new" "$tmp/tokens"
as_ann() { env PURLIN_SERVER_TOKEN=0123456789abcdef-person "$PURLIN" "$@"; }
wait_until "ann's token to count" as_ann cache push "$url/person" --cache "$tmp/seed" >/dev/null
expect_exit 2 as_ann cache pull "$url/team" --cache "$tmp/ann"
expect_contains "$tmp/err" "'ann' is not for 'team'"
expect_exit 0 as_ann cache pull "$url/person" --cache "$tmp/ann"
grep -v -e -person "$tmp/tokens" >"$tmp/tokens.new"
chmod 600 "$tmp/tokens.new"
mv "$tmp/tokens.new" "$tmp/tokens"
ann_is_refused() { ! as_ann cache pull "$url/person" --cache "$tmp/ann" >"$tmp/out" 2>"$tmp/err"; }
wait_until "ann's token to be taken back" ann_is_refused
expect_contains "$tmp/err" "does not know that token"
printf 'nonsense\n' >"$tmp/tokens"
wait_until "the server to say so" grep -q "the earlier tokens stay" "$tmp/server.log"
expect_exit 0 purlin cache pull "$url/team" --cache "$tmp/reader" --json
stop
unset PURLIN_SERVER_TOKEN

# A quota, and a disk that takes no more: said, and what is there stays.
serve --listen 127.0.0.1:0 --quota 1K
expect_exit 2 purlin cache push "$url/more" --cache "$tmp/all"
expect_contains "$tmp/err" "HTTP 507" "quota"
# Unused objects can be removed with the quota used up.
echo left over >"$tmp/data/caches/team/segments/$(printf '%064d' 0).bundle"
"$PURLIN" cache gc --share "$url/team" --cache "$tmp/all" --grace 0s >/dev/null 2>&1 || true
[ ! -e "$tmp/data/caches/team/segments/$(printf '%064d' 0).bundle" ] || fail "gc freed nothing at a full quota"
stop
(trap '' XFSZ; ulimit -f 1; exec "$PURLIN" serve --data "$tmp/data" --listen 127.0.0.1:0 --json >"$tmp/serving" 2>>"$tmp/server.log") &
server=$!
wait_until "the server to listen" grep -q '"tokens"' "$tmp/serving"
url=$(json "$tmp/serving" 'd["url"]')
expect_exit 2 purlin cache push "$url/full" --cache "$tmp/all"
expect_contains "$tmp/err" "HTTP 507"
expect_exit 0 purlin cache pull "$url/team" --cache "$tmp/again" --json
expect_json "$tmp/out" 'd["added"] == '"$((all + 1))"' and d["problems"] == []'
stop

echo "serve: two pushers lose nothing though the server is killed under them; tokens, quota and a full disk are said"
