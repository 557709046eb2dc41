#!/usr/bin/env bash
# `purlin cache`: put, get, ls over a directory; each outcome; bad input; and a program that uses the
# stored config through the C interface.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
spec=$PURLIN_SOURCE/kernels/gemm/gemm.toml
export PURLIN_CACHE=$tmp/configs PURLIN_DEVICE=opencl:0
config=BM=32,BN=32,BK=16,TM=4,TN=4,LANES=8,VECTOR=4,PAD=0,STAGES=1,UNROLL=true,GROUP=1,MIN_BLOCKS=1

# Empty: a miss with exit code 3, and nothing is created by looking.
expect_exit 3 purlin cache get "$spec"
expect_contains "$tmp/out" miss
expect_exit 0 purlin cache ls --json
expect_json "$tmp/out" 'd["schema"] == "purlin.cache/1" and d["entries"] == []'
[ ! -e "$PURLIN_CACHE" ] || fail "reading created $PURLIN_CACHE"

# Stored, and found: exact, bucket, and a miss where the bucket's config would not be valid.
expect_exit 0 purlin cache put "$spec" --shape M=256,N=256,K=256 --config "$config" --time-ms 2.5
expect_exit 0 purlin cache get "$spec" --shape M=256,N=256,K=256 --json
expect_json "$tmp/out" 'd["outcome"] == "exact" and d["entry"]["config"]["BM"] == 32 and d["entry"]["verified"] is False'
expect_json "$tmp/out" 'len(d["explain"]) >= 11 and d["entry"]["time_ms"] == 2.5'
cp "$tmp/out" "$tmp/winner.json"
expect_exit 0 purlin cache get "$spec" --shape M=200,N=256,K=256 --explain
expect_contains "$tmp/out" bucket "same bucket"
expect_exit 3 purlin cache get "$spec" --shape M=200,N=250,K=256 --explain
expect_contains "$tmp/out" miss "N % VECTOR == 0"
expect_exit 3 purlin cache get "$spec" --shape M=1000,N=256,K=256 --explain
expect_contains "$tmp/out" "bucket: 'M=1024,N=256,K=256' wanted"
expect_exit 3 purlin cache get "$spec" --cold --shape M=256,N=256,K=256 --explain
expect_contains "$tmp/out" "policy: 'cold' wanted, 'warm' stored"

# A changed source is another kernel.
cp -r "$PURLIN_SOURCE/kernels/gemm" "$tmp/gemm"
printf '\n// changed\n' >>"$tmp/gemm/gemm.cl"
expect_exit 3 purlin cache get "$tmp/gemm/gemm.toml" --shape M=256,N=256,K=256 --explain
expect_contains "$tmp/out" "source_hash:" "changed since"

# Another driver: only on request. Another arch: never.
python3 - "$tmp" <<'PYTHON'
import json, sys
folder = sys.argv[1]
for name, field in (("driver", "driver"), ("arch", "arch")):
    entry = json.load(open(folder + "/winner.json"))["entry"]
    entry["key"][field] = "another"
    json.dump(entry, open(f"{folder}/{name}.json", "w"))
PYTHON
for case in driver arch; do
  expect_exit 0 purlin cache put --cache "$tmp/$case" --entry "$tmp/$case.json"
  expect_exit 3 purlin cache get "$spec" --cache "$tmp/$case" --shape M=256,N=256,K=256
done
expect_exit 0 purlin cache get "$spec" --cache "$tmp/driver" --shape M=256,N=256,K=256 --allow-transferred
expect_contains "$tmp/out" transferred
expect_exit 3 purlin cache get "$spec" --cache "$tmp/arch" --shape M=256,N=256,K=256 --allow-transferred --explain
expect_contains "$tmp/out" "never served"

# The whole output of a lookup is an entry to put elsewhere.
expect_exit 0 purlin cache put --cache "$tmp/copy" --entry "$tmp/winner.json"
expect_exit 0 purlin cache ls --cache "$tmp/copy"
expect_contains "$tmp/out" "M=256,N=256,K=256" unverified "BM=32"

# Bad input: exit code 2, the reason named, nothing stored.
bad() { local text=$1; shift; expect_exit 2 purlin cache put "$@"; expect_contains "$tmp/err" "$text"; }
bad "did you mean 'BM'" "$spec" --config "BMM=32"
bad "lacks BN" "$spec" --config "BM=32"
bad "not in the space" "$spec" --config "${config/BM=32/BM=33}"
bad "is not met" "$spec" --config "${config/TM=4/TM=1}"
bad "give a SPEC" --time-ms 1
bad "is not a time" "$spec" --shape M=256,N=256,K=256 --config "$config" --time-ms inf
bad "nowhere.toml" "$tmp/nowhere.toml" --config "$config"
echo '{"schema": "purlin.report/1"}' >"$tmp/report.json"
bad "report.json" --entry "$tmp/report.json"
echo '{' >"$tmp/broken.json"
bad "broken.json" --entry "$tmp/broken.json"
expect_exit 2 purlin cache gte "$spec"
expect_contains "$tmp/err" "did you mean 'cache get'"
echo "not a directory" >"$tmp/plain"
bad "not a directory" "$spec" --config "$config" --cache "$tmp/plain"
expect_exit 0 purlin cache ls --json
expect_json "$tmp/out" 'len(d["entries"]) == 1 and d["damaged_records"] == 0'

# A cache of a newer version is refused, and left alone.
mkdir "$tmp/newer"
python3 - "$PURLIN_CACHE/entries.log" "$tmp/newer/entries.log" <<'PYTHON'
import sys
data = bytearray(open(sys.argv[1], "rb").read())
data[8] = 9
open(sys.argv[2], "wb").write(data)
PYTHON
sum=$(cksum <"$tmp/newer/entries.log")
bad "header" "$spec" --config "$config" --cache "$tmp/newer"
[ "$sum" = "$(cksum <"$tmp/newer/entries.log")" ] || fail "a refused file was changed"

# A full disk: the error is said, and what was there stays.
size=$(stat -c %s "$PURLIN_CACHE/entries.log")
expect_exit 2 bash -c "trap '' XFSZ; ulimit -f 1; exec '$PURLIN' cache put '$spec' --shape M=512,N=256,K=256 --config '$config'"
[ "$(stat -c %s "$PURLIN_CACHE/entries.log")" -eq "$size" ] || fail "a failed put changed the file"
expect_exit 0 purlin cache get "$spec" --shape M=256,N=256,K=256

# A damaged record in the middle: skipped, said, and nothing else lost.
expect_exit 0 purlin cache put "$spec" --shape M=512,N=256,K=256 --config "$config"
python3 - "$PURLIN_CACHE/entries.log" <<'PYTHON'
import sys
with open(sys.argv[1], "r+b") as file:
    file.seek(100)
    file.write(b"?")
PYTHON
expect_exit 3 purlin cache get "$spec" --shape M=256,N=256,K=256
expect_contains "$tmp/err" "1 damaged record"
expect_exit 0 purlin cache get "$spec" --shape M=512,N=256,K=256

# A newer but slower measurement does not displace, unless asked to.
export PURLIN_CACHE=$tmp/order
other=${config/BM=32/BM=64}
expect_exit 0 purlin cache put "$spec" --shape M=256,N=256,K=256 --config "$config" --time-ms 2.5
expect_exit 0 purlin cache put "$spec" --shape M=256,N=256,K=256 --config "$other" --time-ms 9
expect_contains "$tmp/err" "--replace"
expect_exit 0 purlin cache get "$spec" --shape M=256,N=256,K=256 --json
expect_json "$tmp/out" 'd["entry"]["config"]["BM"] == 32 and len(d["record"]) == 32'
expect_exit 0 purlin cache put "$spec" --shape M=256,N=256,K=256 --config "$other" --time-ms 9 --replace --reason quieter
expect_exit 0 purlin cache get "$spec" --shape M=256,N=256,K=256 --json
expect_json "$tmp/out" 'd["entry"]["config"]["BM"] == 64'

# The nearest within a bound, on request; the field that decided is named.
expect_exit 3 purlin cache get "$spec" --shape M=1024,N=256,K=256 --explain
expect_contains "$tmp/out" "decided by: bucket"
expect_exit 3 purlin cache get "$spec" --shape M=1024,N=256,K=256 --nearest 1
expect_exit 0 purlin cache get "$spec" --shape M=1024,N=256,K=256 --nearest 2 --explain
expect_contains "$tmp/out" nearest "2.00 away"
expect_exit 2 purlin cache get "$spec" --nearest -1

# Layers: read through, the layer named; what damage cost the first comes back from below.
expect_exit 0 purlin cache get "$spec" --cache "$tmp/mine" --cache-layers "$tmp/none:$tmp/order" --shape M=256,N=256,K=256 --explain
expect_contains "$tmp/out" exact "layer: '$tmp/order'"
expect_exit 0 env PURLIN_CACHE_LAYERS="$tmp/order" "$PURLIN" cache get "$spec" --cache "$tmp/mine" --shape M=256,N=256,K=256
cp -r "$tmp/order" "$tmp/hurt"
python3 - "$tmp/hurt/entries.log" <<'PYTHON'
import sys
with open(sys.argv[1], "r+b") as file:
    file.seek(100)
    file.write(b"?")
PYTHON
expect_exit 3 purlin cache repair --cache "$tmp/hurt"
expect_contains "$tmp/err" "purlin cache merge DIR"
expect_exit 0 purlin cache ls --cache "$tmp/order" --op nonesuch
expect_contains "$tmp/err" "no winner of op 'nonesuch'"
expect_exit 0 purlin cache repair --cache "$tmp/hurt" --cache-layers "$tmp/order" --drop --json
expect_json "$tmp/out" 'd["damaged_records"] == 1 and d["restored_records"] == 1 and d["records"] >= 3'
expect_exit 0 purlin cache repair --cache "$tmp/hurt"
export PURLIN_CACHE=$tmp/configs

# The example program launches what is stored, and its default where nothing is.
example=${PURLIN_BUILD:-}/examples/tuned_gemm_opencl
if [ -x "$example" ]; then
  expect_exit 0 "$example" "$PURLIN_SOURCE/kernels/gemm/gemm.cl" 512 256 256
  expect_contains "$tmp/out" "lookup: exact" "-DBM=32" "check:  ok"
  expect_exit 0 "$example" "$PURLIN_SOURCE/kernels/gemm/gemm.cl" 64 48 32
  expect_contains "$tmp/out" "lookup: miss" "-DBM=16" "check:  ok"
fi
# Winners of other tools: taken in as what they are, told by name or contents, and written again.
moe='E=8,N=64,device_name=NVIDIA_H200,dtype=fp8_w8a8.json'
printf '{"triton_version": "3.6.0", "16": {"BLOCK_SIZE_M": 16, "num_warps": 4}, "64": {"BLOCK_SIZE_M": 64, "num_warps": 8}}' >"$tmp/$moe"
printf 'Validator,PT_VERSION,2.11.0\nGemmTunableOp_BFloat16_TN,tn_512_256_4096_ld_4096_4096_512,Gemm_Cublas_3,0.01\nGemmTunableOp_BFloat16_TN,tn_x,a,1\n' >"$tmp/tunable.csv"
expect_exit 0 purlin cache import "$tmp/$moe" --cache "$tmp/foreign" --json
expect_json "$tmp/out" 'd["added"] == 2'
expect_exit 2 purlin cache import "$tmp/tunable.csv" --cache "$tmp/foreign"
expect_contains "$tmp/err" 'state it: --with arch=sm_90' tunable.csv
expect_exit 2 purlin cache import "$tmp/tunable.csv" --cache "$tmp/foreign" --with ach=sm_90
expect_contains "$tmp/err" "did you mean 'arch'"
expect_exit 0 purlin cache import "$tmp/tunable.csv" --cache "$tmp/foreign" --with arch=sm_90
expect_contains "$tmp/err" 'tunable.csv: left out: line 3'
expect_exit 0 purlin cache ls --cache "$tmp/foreign" --json
expect_json "$tmp/out" 'sorted((e["strategy"], e["verified"]) for e in d["entries"]) == [("import tunableop", False), ("import vllm-moe", False), ("import vllm-moe", False)]'
expect_exit 0 purlin cache export --format vllm-moe --cache "$tmp/foreign" -o "$tmp/written"
expect_json "$tmp/written/$moe" 'd["64"] == {"BLOCK_SIZE_M": 64, "num_warps": 8} and d["triton_version"] == "3.6.0"'
expect_exit 0 purlin cache export --format tunableop --cache "$tmp/foreign" -o "$tmp/written"
expect_contains "$tmp/written/tunableop_results.csv" 'GemmTunableOp_BFloat16_TN,tn_512_256_4096_ld_4096_4096_512,Gemm_Cublas_3,0.01' 'Validator,PT_VERSION,2.11.0'
expect_exit 2 purlin cache import "$tmp/tunable.csv" --format vllm-moe --cache "$tmp/foreign"
expect_exit 2 purlin cache export --format triton --cache "$tmp/foreign" -o "$tmp/written"
expect_contains "$tmp/err" "no entry of op triton"
mkdir "$tmp/hash"
printf '{"key": [64, "torch.float16"], "configs_timings": [[{"kwargs": {"BLOCK": 32}, "num_warps": 2, "num_stages": 1}, [0.5, 0.5, 0.6]], [{"kwargs": {"BLOCK": 64}, "num_warps": 4, "num_stages": 2}, [0.25, 0.24, 0.3]]]}' >"$tmp/hash/add.autotune.json"
expect_exit 0 purlin cache import "$tmp/hash/add.autotune.json" --cache "$tmp/foreign" --dimensions N --with arch=sm_90 --with kernel=model.add
expect_exit 0 purlin cache export --format triton --cache "$tmp/foreign" -o "$tmp/written" --op triton
expect_json "$(cat "$tmp/out")" 'd["key"] == [64, "torch.float16"] and [c["kwargs"]["BLOCK"] for c, t in d["configs_timings"]] == [64, 32]'
echo "cache: every outcome, bad input, damage, a full disk, and a program that uses it"
