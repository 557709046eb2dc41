#!/usr/bin/env bash
# Pushers at once to a bucket of moto's server (an S3 of other people's making): no update may be lost. Run by hand, for
# CI has no moto (tests/suites/cache_share.sh does the same with a server of our own): needs moto_server (pip install
# 'moto[server]') and libcurl, else exit code 2.
#   PURLIN=build/dev/bin/purlin PURLIN_SOURCE=$PWD MOTO_PUSHERS=8 MOTO_ROUNDS=20 bash bench/cache_moto.sh
source "$PURLIN_SOURCE/tests/suites/lib.sh"
pushers=${MOTO_PUSHERS:-4} rounds=${MOTO_ROUNDS:-3}
spec=$PURLIN_SOURCE/kernels/gemm/gemm.toml
export PURLIN_DEVICE=opencl:0
config=BM=32,BN=32,BK=16,TM=4,TN=4,LANES=8,VECTOR=4,PAD=0,STAGES=1,UNROLL=true,GROUP=1,MIN_BLOCKS=1
moto=$(command -v moto_server || true)
[ -n "$moto" ] && "$moto" --help &>/dev/null || { echo "cache_moto: no moto_server here, nothing was tried" >&2; exit 2; }
unset "${!AWS_@}" http_proxy HTTP_PROXY all_proxy ALL_PROXY || true
export AWS_ACCESS_KEY_ID=purlin AWS_SECRET_ACCESS_KEY=secret AWS_REGION=us-east-1
port=$(python3 -c 'import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])')
"$moto" -H 127.0.0.1 -p "$port" >"$tmp/moto.log" 2>&1 & server=$!
trap 'kill $server 2>/dev/null || true; rm -rf "$tmp"' EXIT
export AWS_ENDPOINT_URL=http://127.0.0.1:$port
bucket() { python3 - "$AWS_ENDPOINT_URL" <<'PYTHON'
import sys, urllib.request
request = urllib.request.Request(sys.argv[1] + "/team", method="PUT",
                                 headers={"Authorization": "AWS4-HMAC-SHA256 Credential=purlin/20261122/us-east-1/s3/aws4_request"})
urllib.request.urlopen(request, timeout=5)
PYTHON
}
wait_until "moto answers" bucket

expect_exit 0 purlin cache put "$spec" --cache "$tmp/seed" --shape M=256,N=256,K=256 --config "$config" --time-ms 2.5
if ! purlin cache push s3://team/tried --cache "$tmp/seed" >/dev/null 2>"$tmp/err" && grep -q "need libcurl" "$tmp/err"; then
  echo "cache_moto: no libcurl here, nothing was tried" >&2
  exit 2
fi
expect_exit 0 purlin cache get "$spec" --cache "$tmp/seed" --shape M=256,N=256,K=256 --json
cp "$tmp/out" "$tmp/winner.json"
python3 - "$tmp" $((pushers * rounds)) <<'PYTHON'
import json, os, sys
folder, count = sys.argv[1], int(sys.argv[2])
os.mkdir(folder + "/entries")
for n in range(count):
    entry = json.load(open(folder + "/winner.json"))["entry"]
    entry["problem"]["M"] = n + 1
    entry["key"]["bucket"] = f"M={n + 1},N=256,K=256"
    entry["bucket_rules"]["M"] = "exact"
    json.dump(entry, open(f"{folder}/entries/{n}.json", "w"))
PYTHON

pusher() {  # N: rounds of an entry more and a push
  local r
  for r in $(seq 0 $((rounds - 1))); do
    purlin cache import --cache "$tmp/c$1" "$tmp/entries/$(($1 * rounds + r)).json" >/dev/null &&
      purlin cache push --cache "$tmp/c$1" s3://team/purlin --json >>"$tmp/c$1.json" 2>"$tmp/c$1.err" || return 1
  done
}
running=()
for n in $(seq 0 $((pushers - 1))); do
  pusher "$n" & running+=($!)
done
for n in "${!running[@]}"; do
  wait "${running[$n]}" || { tail -3 "$tmp/c$n.err" "$tmp/moto.log" >&2; fail "pusher $n failed"; }
done
expect_exit 0 purlin cache pull --cache "$tmp/all" s3://team/purlin --json
expect_json "$tmp/out" 'd["added"] == '$((pushers * rounds))' and d["problems"] == [] and d["refused"] == 0'
conflicts=$(cat "$tmp"/c*.json | python3 -c '
import json, sys
text, total, decoder = sys.stdin.read().strip(), 0, json.JSONDecoder()
while text:
    document, end = decoder.raw_decode(text)
    total += document["conflicts"]
    text = text[end:].lstrip()
print(total)')
echo "cache_moto: $pushers pushers, $rounds pushes each of an entry more: $((pushers * rounds)) records, all there; $conflicts times another was faster"
