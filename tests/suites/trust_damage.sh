#!/usr/bin/env bash
# A log that is damaged under an intact index, and one whose end is gone: every verb that speaks of all
# records counts and names what is missing, none passes the rest on as if it were all, and it comes back.
source "$(dirname "$0")/lib.sh"
spec=$PURLIN_SOURCE/kernels/gemm/gemm.toml
export PURLIN_DEVICE=opencl:0
config=BM=32,BN=32,BK=16,TM=4,TN=4,LANES=8,VECTOR=4,PAD=0,STAGES=1,UNROLL=true,GROUP=1,MIN_BLOCKS=1
expect_exit 0 purlin cache put "$spec" --cache "$tmp/seed" --shape M=256,N=256,K=256 --config "$config" --time-ms 2.5
expect_exit 0 purlin cache get "$spec" --cache "$tmp/seed" --shape M=256,N=256,K=256 --json
python3 - "$tmp/out" "$tmp/all.json" <<'PYTHON'
import copy, json, sys
entry = json.load(open(sys.argv[1]))["entry"]
entries = []
for n in range(1100):
    one = copy.deepcopy(entry)
    one["problem"]["M"] = n + 1
    one["key"]["bucket"] = f"M={n + 1},N=256,K=256"
    one["bucket_rules"]["M"] = "exact"
    entries.append(one)
json.dump({"schema": "purlin.cache/1", "entries": entries}, open(sys.argv[2], "w"))
PYTHON
whole=$tmp/whole hurt=$tmp/hurt cut=$tmp/cut
expect_exit 0 purlin cache import "$tmp/all.json" --cache "$whole" --json
expect_json "$tmp/out" 'd["added"] == 1100 and d["damaged_records"] == 0'
[ -s "$whole/entries.index" ] || fail "1,100 records got no index"

cp -r "$whole" "$hurt"
python3 - "$hurt/entries.log" <<'PYTHON'
import sys
data = bytearray(open(sys.argv[1], "rb").read())
magic, at, frames = b"\xf5PRLNRC\n", 0, []
while (at := data.find(magic, at)) >= 0:
    frames.append(at)
    at += 1
for n in (40, 41, 500, 900):  # two of them neighbours
    data[frames[n] + 32 + 50] ^= 1
open(sys.argv[1], "wb").write(data)
PYTHON
expect_exit 0 purlin cache ls --cache "$hurt" --json
expect_json "$tmp/out" 'd["damaged_records"] == 4 and len(d["lost_records"]) == 4 and len(d["entries"]) == 1096'
lost=$(json "$tmp/out" '" ".join(r["record"] for r in d["lost_records"])')
expect_exit 0 purlin cache ls --cache "$hurt"
# shellcheck disable=SC2086
expect_contains "$tmp/err" "4 damaged record(s)" "purlin cache repair" $lost
expect_exit 3 purlin cache export --cache "$hurt" -o "$tmp/part.json"
expect_json "$tmp/part.json" 'd["partial"] and d["damaged_records"] == 4 and len(d["records"]) == 1096'
expect_exit 3 purlin cache export --cache "$hurt" -o "$tmp/part.bundle"
expect_exit 3 purlin cache import "$tmp/part.bundle" --cache "$tmp/imported" --json
expect_json "$tmp/out" 'd["added"] == 1096 and d["damaged_records"] == 4'
expect_exit 3 purlin cache push "$tmp/share" --cache "$hurt" --json
expect_json "$tmp/out" 'd["partial"] and d["damaged_records"] == 4 and d["pushed"] == 1096'
expect_exit 3 purlin cache merge "$hurt" --cache "$tmp/merged" --json
expect_json "$tmp/out" 'd["added"] == 1096 and d["damaged_records"] == 4'
expect_exit 1 purlin cache verify --cache "$hurt" --json
expect_json "$tmp/out" 'd["damaged_records"] == 4 and d["records"] == 1096'

# A writer that knows nothing of it does not hide it; what comes back is found.
expect_exit 0 purlin cache put "$spec" --cache "$hurt" --shape M=300,N=300,K=300 --config "$config" --time-ms 2.5
expect_exit 3 purlin cache repair --cache "$hurt" --json
expect_json "$tmp/out" 'd["damaged_records"] == 4 and len(d["lost_records"]) == 4'
expect_exit 0 purlin cache ls --cache "$hurt" --json
expect_json "$tmp/out" 'len(d["lost_records"]) == 4'
expect_exit 0 purlin cache repair --cache "$hurt" --cache-layers "$whole" --drop --json
expect_json "$tmp/out" 'd["restored_records"] == 4'
expect_exit 0 purlin cache push "$tmp/share" --cache "$hurt" --json
expect_json "$tmp/out" 'not d["partial"] and d["pushed"] == 5'

# A tail that is gone: the index still tells what it held.
cp -r "$whole" "$cut"
truncate -s $(($(stat -c %s "$cut/entries.log") / 4)) "$cut/entries.log"
expect_exit 0 purlin cache ls --cache "$cut" --json
expect_json "$tmp/out" 'len(d["entries"]) + len(d["lost_records"]) == 1100 and len(d["lost_records"]) > 800'
expect_exit 0 purlin cache merge "$whole" --cache "$cut"
expect_exit 0 purlin cache ls --cache "$cut" --json
expect_json "$tmp/out" 'len(d["entries"]) == 1100 and d["lost_records"] == []'
echo "trust_damage: what damage took is counted, named, and comes back"
