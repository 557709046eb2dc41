#!/usr/bin/env bash
# timeout: 600
# Caches that are shared: push, pull, merge, export, import and gc; over a directory and over S3 (our own
# small server, which checks signatures and injects faults). Pushers at once, killed and on a full disk.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
spec=$PURLIN_SOURCE/kernels/gemm/gemm.toml
export PURLIN_DEVICE=opencl:0
config=BM=32,BN=32,BK=16,TM=4,TN=4,LANES=8,VECTOR=4,PAD=0,STAGES=1,UNROLL=true,GROUP=1,MIN_BLOCKS=1
servers=()
trap 'for pid in "${servers[@]}"; do kill "$pid" 2>/dev/null || true; done; rm -rf "$tmp"' EXIT

# Entries to move around: $tmp/entries/N.json, each of a key of its own.
expect_exit 0 purlin cache put "$spec" --cache "$tmp/seed" --shape M=256,N=256,K=256 --config "$config" --time-ms 2.5
expect_exit 0 purlin cache get "$spec" --cache "$tmp/seed" --shape M=256,N=256,K=256 --json
cp "$tmp/out" "$tmp/winner.json"
python3 - "$tmp" <<'PYTHON'
import json, os, sys
folder = sys.argv[1]
os.mkdir(folder + "/entries")
for n in range(100):
    entry = json.load(open(folder + "/winner.json"))["entry"]
    entry["problem"]["M"] = n + 1
    entry["key"]["bucket"] = f"M={n + 1},N=256,K=256"
    entry["bucket_rules"]["M"] = "exact"
    json.dump(entry, open(f"{folder}/entries/{n}.json", "w"))
PYTHON

# ids CACHE: the ids of its records, sorted.
ids() { purlin cache export --cache "$1" | python3 -c 'import json,sys
print("\n".join(sorted(r["id"] for r in json.load(sys.stdin)["records"])))'; }
same() { [ "$(ids "$1")" = "$(ids "$2")" ] || fail "$1 and $2 do not hold the same records"; }
entries() { local cache=$1; shift; purlin cache import --cache "$cache" "${@/#/$tmp/entries/}" >/dev/null; }

# pusher CACHE TARGET FIRST ROUNDS: rounds of an entry more and a push.
pusher() {
  local n
  for n in $(seq "$3" $(($3 + $4 - 1))); do
    entries "$1" "$n.json" && purlin cache push --cache "$1" "$2" >>"$1.log" 2>&1 || return 1
  done
}
# two_pushers TARGET NAME ROUNDS: both at once, each with entries of its own; nothing may be lost.
two_pushers() {
  local name=$2 rounds=$3 first second
  pusher "$tmp/$name-a" "$1" 0 "$rounds" & first=$!
  pusher "$tmp/$name-b" "$1" 50 "$rounds" & second=$!
  wait $first || { tail -5 "$tmp/$name-a.log" >&2; fail "the first pusher failed"; }
  wait $second || { tail -5 "$tmp/$name-b.log" >&2; fail "the second pusher failed"; }
  expect_exit 0 purlin cache pull --cache "$tmp/$name-all" "$1" --json
  expect_json "$tmp/out" 'd["added"] == '$((2 * rounds))' and d["problems"] == [] and d["refused"] == 0'
  expect_exit 0 purlin cache pull --cache "$tmp/$name-all" "$1" --json
  expect_json "$tmp/out" 'd["added"] == 0 and d["fetched"] == 0'
  purlin cache merge --cache "$tmp/$name-union" "$tmp/$name-a" "$tmp/$name-b" >/dev/null
  same "$tmp/$name-all" "$tmp/$name-union"
}

# --- A directory.
share=$tmp/share
expect_exit 2 purlin cache pull "$share" --cache "$tmp/x"
expect_contains "$tmp/err" "there is no shared cache at" "purlin cache push"
two_pushers "$share" dir 20
expect_exit 0 purlin cache push "$share" --cache "$tmp/dir-union" --json
expect_json "$tmp/out" 'd["schema"] == "purlin.cache-push/1" and d["pushed"] == 0 and d["known"] == 40'

# A segment that is damaged is named; the rest is used; a machine that has its records restores them.
segment=$(json "$share/index.json" 'd["segments"][3]["name"]')
python3 - "$share/segments/$segment.bundle" <<'PYTHON'
import sys
with open(sys.argv[1], "r+b") as file:
    file.seek(-20, 2)
    file.write(b"?")
PYTHON
expect_exit 0 purlin cache pull "$share" --cache "$tmp/fresh" --json
expect_json "$tmp/out" 'd["added"] == 39 and len(d["problems"]) == 1'
expect_contains "$tmp/err" "$segment" "hash that is its name"
rm -rf "$tmp/dir-union/segments"  # what it remembers of the segment, from when it was well
expect_exit 0 purlin cache push "$share" --cache "$tmp/dir-union" --json
expect_json "$tmp/out" 'd["pushed"] == 1'
expect_exit 0 purlin cache gc --share "$share" --cache "$tmp/fresh" --drop-unreadable --grace 0s --json
expect_json "$tmp/out" 'd["dropped"] == 1 and d["merged"] == 40 and d["segments_after"] == 1 and d["removed_objects"] == 41'
expect_exit 0 purlin cache pull "$share" --cache "$tmp/fresh2" --json
expect_json "$tmp/out" 'd["added"] == 40 and d["problems"] == []'
same "$tmp/fresh2" "$tmp/dir-union"

# A full disk and a killed push leave what was there, and the next push completes.
index=$(cksum <"$share/index.json")
entries "$tmp/dir-a" {20..49}.json {70..79}.json
expect_exit 2 bash -c "trap '' XFSZ; ulimit -f 1; exec '$PURLIN' cache push '$share' --cache '$tmp/dir-a'"
[ "$index" = "$(cksum <"$share/index.json")" ] || fail "a failed push changed the index"
for delay in 0.005 0.01 0.015 0.02 0.03 0.04 0.06 0.08; do
  rm -rf "$tmp/dir-a/segments"
  { timeout -s KILL $delay "$PURLIN" cache push "$share" --cache "$tmp/dir-a" || true; } &>/dev/null
  expect_exit 0 purlin cache pull "$share" --cache "$tmp/killed-$delay" --json
  expect_json "$tmp/out" 'd["problems"] == [] and d["added"] in (40, 80)'
done
# gc on a full disk: unused segments are removed, and a merge fails.
expect_exit 0 purlin cache push "$share" --cache "$tmp/dir-a"
cp -r "$share" "$tmp/full"
left=$tmp/full/segments/$(printf '0%.0s' {1..64}).bundle
echo "of a killed push" >"$left" && touch -d '3 days ago' "$left"
index=$(cksum <"$tmp/full/index.json")
expect_exit 2 bash -c "trap '' XFSZ; ulimit -f 1; exec '$PURLIN' cache gc --share '$tmp/full' --cache '$tmp/dir-a' --json"
expect_json "$tmp/out" 'd["removed_objects"] >= 1 and d["merged"] == 0 and "File too large" in d["problems"][-1]'
expect_contains "$tmp/err" "merging: " "File too large"
[ ! -e "$left" ] || fail "gc on a full disk left an unused segment"
[ "$index" = "$(cksum <"$tmp/full/index.json")" ] || fail "a failed gc changed the index"
expect_exit 0 purlin cache pull "$tmp/full" --cache "$tmp/from-full" --json
expect_json "$tmp/out" 'd["problems"] == [] and d["added"] == 80'

expect_exit 0 purlin cache pull "$share" --cache "$tmp/fresh2"
expect_exit 0 purlin cache merge "$tmp/dir-a" --cache "$tmp/dir-union"
same "$tmp/fresh2" "$tmp/dir-union"

# A newer index is refused and left alone; a cache is no share and a share no cache.
cp -r "$share" "$tmp/newer"
sed -i 's,purlin.share/1,purlin.share/2,' "$tmp/newer/index.json"
for verb in push pull; do
  expect_exit 2 purlin cache $verb "$tmp/newer" --cache "$tmp/dir-a"
  expect_contains "$tmp/err" "newer Purlin"
done
expect_exit 2 purlin cache push "$tmp/seed" --cache "$tmp/dir-a"
expect_contains "$tmp/err" "is a cache, not a shared one"
expect_exit 2 purlin cache merge "$share" --cache "$tmp/dir-a"
expect_contains "$tmp/err" "purlin cache pull"
expect_exit 2 purlin cache push ftp://host/x --cache "$tmp/dir-a"
expect_contains "$tmp/err" "is not supported"

# --- S3.
serve() {  # OPTIONS…: starts a server, sets AWS_ENDPOINT_URL
  rm -f "$tmp/port"
  python3 "$PURLIN_SOURCE/tests/suites/s3_fake.py" "$tmp/port" "$@" &
  servers+=($!)
  wait_until 'the S3 server' test -s "$tmp/port"
  AWS_ENDPOINT_URL=http://127.0.0.1:$(cat "$tmp/port")
}
unset "${!AWS_@}" http_proxy HTTP_PROXY all_proxy ALL_PROXY || true
export AWS_EC2_METADATA_DISABLED=true
expect_exit 2 purlin cache push s3://team/purlin --cache "$tmp/dir-a"
expect_contains "$tmp/err" "AWS_ACCESS_KEY_ID"
export AWS_ACCESS_KEY_ID=purlin-test AWS_SECRET_ACCESS_KEY='a secret/with+signs' AWS_REGION=eu-test-1 AWS_ENDPOINT_URL
serve
if ! purlin cache pull s3://team/none --cache "$tmp/x" 2>"$tmp/err" && grep -q "need libcurl" "$tmp/err"; then
  echo "cache_share: no libcurl here, S3 is left out"
  exit 0
fi
two_pushers s3://team/purlin s3 20
expect_exit 0 purlin cache gc --share s3://team/purlin --cache "$tmp/s3-all" --grace 0s --json
expect_json "$tmp/out" 'd["segments_after"] == 1 and d["removed_objects"] == 40'
expect_exit 0 purlin cache pull s3://team/purlin --cache "$tmp/s3-again"
same "$tmp/s3-again" "$tmp/s3-union"
# Beside it under another prefix, nothing of this is seen.
expect_exit 0 purlin cache push s3://team/purlin/deeper --cache "$tmp/seed" --json
expect_json "$tmp/out" 'd["pushed"] == 1 and d["generation"] == 1'

AWS_SECRET_ACCESS_KEY=wrong expect_exit 2 purlin cache push s3://team/purlin --cache "$tmp/dir-a"
expect_contains "$tmp/err" SignatureDoesNotMatch "'purlin-test'"
expect_exit 2 purlin cache push s3://nobody/purlin --cache "$tmp/dir-a"
expect_contains "$tmp/err" "create the bucket first"
expect_exit 2 purlin cache push 's3://Team/a b' --cache "$tmp/dir-a"
expect_contains "$tmp/err" "is not s3://BUCKET/PREFIX"
mkdir -p "$HOME/.aws"
printf '[ci]\naws_access_key_id = purlin-test\naws_secret_access_key = a secret/with+signs\n' >"$HOME/.aws/credentials"
printf '[profile ci]\nregion = eu-test-1\nendpoint_url = %s\n' "$AWS_ENDPOINT_URL" >"$HOME/.aws/config"
expect_exit 0 env -u AWS_ACCESS_KEY_ID -u AWS_SECRET_ACCESS_KEY -u AWS_REGION -u AWS_ENDPOINT_URL \
  AWS_PROFILE=ci "$PURLIN" cache pull s3://team/purlin --cache "$tmp/s3-again"

# Faults: nothing is lost, nobody is told of success where there was none.
serve --faults 500:7,503:11,drop:13,cut:17,slow:19
two_pushers s3://team/purlin faulty 8
counters=$(python3 -c 'import sys,urllib.request; print(urllib.request.urlopen(sys.argv[1] + "/-/counters").read().decode())' "$AWS_ENDPOINT_URL")
echo "$counters" >"$tmp/counters"
expect_json "$tmp/counters" 'd["faults"] > 10 and d["unsigned"] == 0'

# A service that ignores conditions would lose updates: it is refused before anything is written.
serve --ignore-conditions
expect_exit 2 purlin cache push s3://team/purlin --cache "$tmp/seed"
expect_contains "$tmp/err" "ignores conditional writes"
expect_exit 2 purlin cache pull s3://team/purlin --cache "$tmp/x"
expect_contains "$tmp/err" "there is no shared cache"
AWS_ENDPOINT_URL=http://127.0.0.1:1 expect_exit 2 purlin cache pull s3://team/purlin --cache "$tmp/x"
expect_contains "$tmp/err" "does not answer (6 attempts)"

# --- Files.
echo "a secret of the team" >"$tmp/key"
echo "a secret of others  " >"$tmp/other-key"
expect_exit 0 purlin cache export --cache "$tmp/dir-union" -o "$tmp/all.bundle" --sign-key "$tmp/key"
expect_exit 0 purlin cache export --cache "$tmp/dir-union" -o "$tmp/all.json"
expect_json "$tmp/all.json" 'd["schema"] == "purlin.cache-export/1" and len(d["records"]) == 80'
expect_exit 0 purlin cache import --cache "$tmp/from-bundle" "$tmp/all.bundle" --sign-key "$tmp/key" --json
expect_json "$tmp/out" 'd["added"] == 80 and d["refused"] == 0'
expect_exit 0 purlin cache import --cache "$tmp/from-json" "$tmp/all.json" "$tmp/all.bundle" --json
expect_json "$tmp/out" 'd["added"] == 80 and d["known"] == 80'
same "$tmp/from-bundle" "$tmp/from-json"
expect_exit 0 purlin cache import --cache "$tmp/from-segment" "$share"/segments/*.bundle
same "$tmp/from-segment" "$tmp/from-json"
expect_exit 0 purlin cache ls --cache "$tmp/from-json" --json
cp "$tmp/out" "$tmp/ls.json"
expect_exit 0 purlin cache import --cache "$tmp/from-ls" "$tmp/ls.json" "$tmp/winner.json" --json
expect_json "$tmp/out" 'd["added"] == 81'
expect_exit 0 purlin cache export --cache "$tmp/dir-union" --arch no-such-arch
expect_json "$tmp/out" 'd["records"] == []'
refused() { local text=$1; shift; expect_exit 2 purlin cache import --cache "$tmp/x" "$@"; expect_contains "$tmp/err" "$text"; }
refused "is asked for" "$tmp/all.bundle" --sign-key "$tmp/other-key"
refused "only a bundle can be signed" "$tmp/all.json" --sign-key "$tmp/key"
head -c 3000 "$tmp/all.bundle" >"$tmp/cut.bundle"
refused "cut short" "$tmp/cut.bundle"
refused "neither a bundle" "$PURLIN_SOURCE/CMakePresets.json"
refused "neither a bundle" "$PURLIN_SOURCE/README.md"
[ ! -e "$tmp/x" ] || fail "a refused file made a cache"
# A signed share: those without the key's signature are not taken.
expect_exit 0 purlin cache push "$tmp/signed" --cache "$tmp/seed" --sign-key "$tmp/key"
expect_exit 0 purlin cache push "$tmp/signed" --cache "$tmp/from-json"
expect_exit 0 purlin cache pull "$tmp/signed" --cache "$tmp/trusting" --sign-key "$tmp/key" --json
expect_json "$tmp/out" 'd["added"] == 1 and len(d["problems"]) == 1'

# --- gc: history goes, what is served stays.
python3 - "$tmp" <<'PYTHON'
import json, sys
entry = json.load(open(sys.argv[1] + "/winner.json"))["entry"]
for time_ms in (2.0, 3.0, 4.0):
    entry["time_ms"] = time_ms
    json.dump(entry, open(f"{sys.argv[1]}/time-{time_ms}.json", "w"))
PYTHON
expect_exit 0 purlin cache import --cache "$tmp/seed" "$tmp"/time-*.json
expect_exit 2 purlin cache gc --cache "$tmp/seed"
expect_contains "$tmp/err" "say what may go"
for bad in --history=-5 --history=some --max-entries=0; do
  expect_exit 2 purlin cache gc --cache "$tmp/seed" "$bad" --older-than 90d
  expect_contains "$tmp/err" "${bad%%=*} '${bad#*=}' is not a count"
done
expect_exit 0 purlin cache gc --cache "$tmp/seed" --history 1 --dry-run --json
expect_json "$tmp/out" 'd["removed_entries"] == 2 and d["left"] == 2'
expect_exit 0 purlin cache gc --cache "$tmp/seed" --history 0 --older-than 90d --max-entries 1
expect_contains "$tmp/out" "removed 3 entries" "1 left"
expect_exit 0 purlin cache get "$spec" --cache "$tmp/seed" --shape M=256,N=256,K=256 --json
expect_json "$tmp/out" 'd["outcome"] == "exact" and d["entry"]["time_ms"] == 2.0'

# --- A quota: by hand, and one that holds by itself.
expect_exit 2 purlin cache gc --cache "$tmp/seed" --max-bytes plenty
expect_contains "$tmp/err" "--max-bytes 'plenty' is not a size"
expect_exit 0 purlin cache import --cache "$tmp/seed" "$tmp"/time-*.json
expect_exit 0 purlin cache gc --cache "$tmp/seed" --max-bytes 1 --json
expect_json "$tmp/out" 'd["left"] == 1 and d["removed_current"] == 0 and 1 < d["bytes_left"] < d["bytes"]'
one=$(stat -c %s "$tmp/seed/entries.log")
expect_exit 2 env PURLIN_CACHE_QUOTA=plenty "$PURLIN" cache import --cache "$tmp/seed" "$tmp/time-4.0.json"
expect_contains "$tmp/err" "PURLIN_CACHE_QUOTA 'plenty' is not a size"
expect_exit 0 env PURLIN_CACHE_QUOTA=$((3 * one)) "$PURLIN" cache import --cache "$tmp/seed" "$tmp"/time-*.json
expect_exit 0 env PURLIN_CACHE_QUOTA=$((3 * one)) "$PURLIN" cache ls --cache "$tmp/seed" --json
expect_json "$tmp/out" "d['bytes'] <= d['quota_bytes'] == 3 * $one and [e['time_ms'] for e in d['entries']] == [2.0]"
expect_exit 0 env PURLIN_CACHE_QUOTA=$((3 * one)) "$PURLIN" cache ls --cache "$tmp/seed"
expect_contains "$tmp/err" "of a quota of"

echo "cache_share: two pushers at once on a directory and on S3 lose nothing, also under faults, kills and a full disk"
