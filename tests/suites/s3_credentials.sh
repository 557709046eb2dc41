#!/usr/bin/env bash
# Credentials that the machine gives, against fakes of the metadata service, a container's agent and the token
# service: each is used, renewed when it ends, and its failure is explained.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
unset "${!AWS_@}" http_proxy HTTP_PROXY all_proxy ALL_PROXY || true
python3 "$PURLIN_SOURCE/tests/suites/s3_fake.py" "$tmp/port" --key-uses 3 &
server=$!
trap 'kill $server 2>/dev/null; rm -rf "$tmp"' EXIT
wait_until "the fake of S3" test -s "$tmp/port"
url=http://127.0.0.1:$(cat "$tmp/port")
export AWS_REGION=eu-test-1 AWS_ENDPOINT_URL_S3=$url
keys() { python3 -c 'import json,sys,urllib.request
print(json.load(urllib.request.urlopen(sys.argv[1] + "/-/counters"))["keys"])' "$url"; }
expect_exit 0 purlin cache put "$PURLIN_SOURCE/kernels/gemm/gemm.toml" --cache "$tmp/seed" --device opencl:0 \
  --shape M=256,N=256,K=256 --time-ms 2.5 \
  --config BM=32,BN=32,BK=16,TM=4,TN=4,LANES=8,VECTOR=4,PAD=0,STAGES=1,UNROLL=true,GROUP=1,MIN_BLOCKS=1
printf 'a+b/c=\n' >"$tmp/token"
printf "agent's token" >"$tmp/agent"
if ! purlin cache pull s3://team/none --cache "$tmp/x" 2>"$tmp/err" && grep -q "need libcurl" "$tmp/err"; then
  skip "built without libcurl"
fi

# A key ends after three requests, and a push takes more: each place is asked again.
as_instance=(AWS_EC2_METADATA_SERVICE_ENDPOINT="$url/")
as_container=(AWS_CONTAINER_CREDENTIALS_FULL_URI="$url/container" AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE="$tmp/agent")
as_identity=(AWS_WEB_IDENTITY_TOKEN_FILE="$tmp/token" AWS_ROLE_ARN=arn:aws:iam::1:role/r AWS_ENDPOINT_URL_STS="$url")
for place in instance container identity; do
  declare -n settings=as_$place
  before=$(keys)
  expect_exit 0 env "${settings[@]}" "$PURLIN" cache push "s3://team/$place" --cache "$tmp/seed" --json
  expect_json "$tmp/out" 'd["pushed"] == 1'
  [ "$(keys)" -gt $((before + 1)) ] || fail "$place: the keys were not renewed"
  expect_exit 0 env "${settings[@]}" "$PURLIN" cache pull "s3://team/$place" --cache "$tmp/$place"
done

# The order: variables before an identity, an identity before a container.
before=$(keys)
expect_exit 0 env "${as_identity[@]}" "${as_container[@]}" AWS_ACCESS_KEY_ID=purlin-test \
  AWS_SECRET_ACCESS_KEY='a secret/with+signs' "$PURLIN" cache pull s3://team/identity --cache "$tmp/x"
[ "$(keys)" -eq "$before" ] || fail "variables come first"

# Failures name the place and the remedy, and hold no token.
printf 'wrong' >"$tmp/token"
expect_exit 2 env "${as_identity[@]}" "$PURLIN" cache pull s3://team/identity --cache "$tmp/x"
expect_contains "$tmp/err" "the token service: HTTP 403 InvalidIdentityToken" AWS_ACCESS_KEY_ID
printf 'wrong' >"$tmp/agent"
expect_exit 2 env "${as_container[@]}" "$PURLIN" cache pull s3://team/container --cache "$tmp/x"
expect_contains "$tmp/err" "the container's credentials: HTTP 401"
! grep -q wrong "$tmp/err" || fail "a token is in the message"
expect_exit 2 env AWS_CONTAINER_CREDENTIALS_FULL_URI=http://elsewhere.example/x "$PURLIN" cache pull s3://team/x --cache "$tmp/x"
expect_contains "$tmp/err" "give an https URL"
expect_exit 2 env AWS_EC2_METADATA_SERVICE_ENDPOINT=http://127.0.0.1:1 "$PURLIN" cache pull s3://team/x --cache "$tmp/x"
expect_contains "$tmp/err" "or give the machine a role"
expect_exit 2 env AWS_EC2_METADATA_DISABLED=true "$PURLIN" cache pull s3://team/x --cache "$tmp/x"
expect_contains "$tmp/err" AWS_ACCESS_KEY_ID
echo "s3_credentials: ok"
