#!/usr/bin/env bash
# timeout: 120
# Compiled kernels through a server: the second machine compiles nothing; only the secret's are used.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
export PURLIN_DEVICE=opencl:0
unset "${!PURLIN_SERVER_@}" http_proxy HTTP_PROXY all_proxy ALL_PROXY || true
server=
trap '[ -z "$server" ] || kill -9 "$server" 2>/dev/null || true; rm -rf "$tmp"' EXIT

spec=$PURLIN_SOURCE/kernels/elementwise/elementwise.toml

# tune MACHINE: how many of its configs were compiled there.
tune() {
  expect_exit 0 env XDG_CACHE_HOME="$tmp/$1" "$PURLIN" tune "$spec" --budget 2 --jobs 0 --finals 0 \
    --strategy random --seed 1 --fresh --cache "$tmp/$1-entries" --json
  json "$tmp/out" 'sum(not one.get("cached_binary", False) for one in d["evaluations"])'
}
# share VERB MACHINE KEY TARGET
share() {
  XDG_CACHE_HOME="$tmp/$2" purlin cache "$1" "$4" --cache "$tmp/$2-entries" --binaries --sign-key "$tmp/$3.key" --json
}

head -c 32 /dev/urandom | base64 >"$tmp/team.key"
head -c 32 /dev/urandom | base64 >"$tmp/other.key"
"$PURLIN" serve --data "$tmp/data" --json --listen 127.0.0.1:0 >"$tmp/serving" 2>"$tmp/server.log" &
server=$!
wait_until "the server to listen" grep -q '"tokens"' "$tmp/serving"
url=$(json "$tmp/serving" 'd["url"]')/team

[ "$(tune one)" = 2 ] || fail "the first machine compiles both configs"
expect_exit 2 purlin cache push "$url" --cache "$tmp/one-entries" --binaries
expect_contains "$tmp/err" "--binaries needs --sign-key"
if ! share push one team "$url" >"$tmp/pushed" 2>"$tmp/err" && grep -q "need libcurl" "$tmp/err"; then
  url=$tmp/shared
  share push one team "$url" >"$tmp/pushed"
fi
[ "$(json "$tmp/pushed" 'd["binaries"]["moved"]')" -ge 2 ] || fail "the push moved too few: $(cat "$tmp/pushed")"

share pull three other "$url" >"$tmp/pulled"
[ "$(json "$tmp/pulled" 'd["binaries"]["moved"]')" = 0 ] || fail "another secret took binaries"
share pull two team "$url" >"$tmp/pulled"
[ "$(json "$tmp/pulled" 'd["binaries"]["moved"]')" -ge 2 ] || fail "the pull moved too few"
[ "$(tune two)" = 0 ] || fail "the second machine compiled again"

# One byte of each object is changed where the server keeps them: none is taken.
folder=$tmp/data/caches/team/binaries
[ "$url" != "$tmp/shared" ] || folder=$tmp/shared/binaries
for object in "$folder"/*.bin; do printf 'X' | dd of="$object" bs=1 seek=200 conv=notrunc status=none; done
share pull four team "$url" >"$tmp/pulled" 2>"$tmp/err"
[ "$(json "$tmp/pulled" 'd["binaries"]["moved"]')" = 0 ] || fail "damaged binaries were taken"
expect_contains "$tmp/err" "refused: damaged, or not signed with this key"
