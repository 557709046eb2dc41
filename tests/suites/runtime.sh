#!/usr/bin/env bash
# A program that launches through libpurlin on PoCL: default, tuned, disabled, threads, shadowed; and the
# loop from what it launched untuned to an entry it picks up.
# labels: runtime
# timeout: 300
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
program="$PURLIN_BUILD/tests/dispatch_gemm"
[ -x "$program" ] || skip "built without OpenCL"
spec="$PURLIN_SOURCE/kernels/gemm/gemm.toml"
config=BM=32,BN=32,BK=16,TM=4,TN=4,LANES=8,VECTOR=4,PAD=0,STAGES=1,UNROLL=true,GROUP=1,MIN_BLOCKS=1

# Untuned: the default, right results, and a line in the work list for the shape.
expect_exit 0 "$program" "$spec" 96 80 64 5
expect_contains "$tmp/out" "miss -DBM=16"
expect_exit 0 purlin backlog --json
expect_json "$tmp/out" "[(t['kind'], t['kernel'], t['shape'], t['launches']) for t in d['tasks']] == [('tune', 'gemm', 'M=96,N=80,K=64', 5)]"
expect_exit 0 purlin backlog
expect_contains "$tmp/out" tune gemm M=96,N=80,K=64 "programs launch it untuned"
grep -q "$spec" "$XDG_CACHE_HOME/purlin/configs/worklist.json" || fail "the work list does not know the spec"

# The first of the backlog is tuned, and the program picks it up, another shape of the bucket included.
expect_exit 0 purlin tune --backlog 1 --device opencl:0 --strategy random --budget 4 --finals 0 --samples 2
expect_exit 0 "$program" "$spec" 96 80 64 2 prepare
expect_contains "$tmp/out" "exact "
expect_exit 0 "$program" "$spec" 92 80 64 2
expect_contains "$tmp/out" "bucket "
expect_exit 0 purlin backlog
expect_contains "$tmp/out" "nothing to do"

# A config of one's own; four threads on queues of their own; the binaries are compiled once.
export PURLIN_CACHE="$tmp/configs"
expect_exit 0 purlin cache put "$spec" --device opencl:0 --shape M=128,N=128,K=64 --config "$config"
PURLIN_LOG=info:$tmp/log expect_exit 0 "$program" "$spec" 128 128 64 20 threads
expect_contains "$tmp/out" "exact -DBM=32 -DBN=32"
expect_contains "$tmp/log" "compiled -DBM=32" "gemm M=128,N=128,K=64: exact, entry "
[ "$(grep -c 'M=128,N=128,K=64' "$tmp/log")" -eq 1 ] || fail "a choice was logged more than once"
PURLIN_LOG=info:$tmp/log2 expect_exit 0 "$program" "$spec" 128 128 64 2
! grep -q compiled "$tmp/log2" || fail "a kept binary was compiled again"

# Shadow launches change nothing that the program sees (it compares each result bit by bit). Twenty are too few for
# a verdict on either config.
expect_exit 0 "$program" "$spec" 128 128 64 20 shadow 2
expect_contains "$tmp/out" "exact -DBM=32" "samples="
! grep -q "samples=0" "$tmp/out" || fail "no launch was shadowed"

# Switched off: defaults, and nothing is written.
before=$(cat "$PURLIN_CACHE/worklist.json")
PURLIN_DISABLE=1 expect_exit 0 "$program" "$spec" 128 128 64 2
expect_contains "$tmp/out" "miss -DBM=16"
PURLIN_RECORD=0 expect_exit 0 "$program" "$spec" 128 128 64 2
[ "$before" = "$(cat "$PURLIN_CACHE/worklist.json")" ] || fail "the work list was written all the same"

# A damaged work list costs the list, not the program.
echo '{' >"$PURLIN_CACHE/worklist.json"
PURLIN_LOG=warning expect_exit 0 "$program" "$spec" 128 128 64 2
expect_contains "$tmp/err" "worklist.json"
echo "dispatched, recorded, tuned from the backlog, picked up, shadowed"
