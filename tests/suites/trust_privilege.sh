#!/usr/bin/env bash
# Other users and privileged programs. It needs root, to become others; elsewhere it is skipped.
# labels: opencl
source "$(dirname "$0")/lib.sh"
if [ "$(id -u)" -ne 0 ] || ! command -v setpriv >/dev/null; then
  skip "it needs root and setpriv"
fi
chmod 711 "$tmp"
cd "$tmp"
loop=$PURLIN_BUILD/tests/opencl_loop
as_nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }

# --- A privileged program is not captured, whatever its caller's environment says; and that is said.
# Setgid, so that the driver finds its files.
install -m 755 "$loop" plain
install -m 755 "$loop" privileged
chgrp 65534 privileged && chmod 2755 privileged
mkdir -m 777 spool
capture=(env PURLIN_SPOOL="$tmp/spool" OPENCL_LAYERS="$PURLIN_BUILD/lib/purlin/libpurlin_opencl.so")
expect_exit 0 "${capture[@]}" ./plain launches 5
[ -n "$(ls spool)" ] || fail "the layer does not record a plain program"
rm -f spool/*
expect_exit 0 "${capture[@]}" ./privileged launches 5
[ -z "$(ls spool)" ] || fail "a privileged program writes where its caller says"
expect_exit 0 purlin profile -o a.plprof -- ./privileged launches 5
expect_exit 0 purlin report a.plprof --json
expect_json "$tmp/out" '{"privileged_program", "no_gpu_use"} & {n["cause"] for n in d["coverage"]["notes"]} == {"privileged_program"}'

# So is a privileged program that the command starts, next to what was captured.
expect_exit 0 purlin profile -o a.plprof -- sh -c './privileged launches 5; exit 0'
expect_exit 0 purlin report a.plprof --json
expect_json "$tmp/out" '{"privileged_process", "no_gpu_use"} & {n["cause"] for n in d["coverage"]["notes"]} == {"privileged_process"}'
expect_json "$tmp/out" 'any("privileged" in n["text"] and "setgid" in n["text"] for n in d["coverage"]["notes"])'
expect_exit 0 purlin profile -o a.plprof -- sh -c './plain launches 5; ./privileged launches 5; exit 0'
expect_exit 0 purlin report a.plprof --json
expect_json "$tmp/out" 'd["coverage"]["launches_seen"] >= 5 and "privileged_process" in {n["cause"] for n in d["coverage"]["notes"]}'

# --- CUDA's capture library, on the fake CUPTI: it records a plain program and stays off in a
# privileged one, whatever PURLIN_SPOOL and PURLIN_CUPTI name.
program=$PURLIN_BUILD/tests/capture_faults
if [ -x "$program" ]; then
  install -m 755 "$program" cuda_plain
  install -m 755 "$program" cuda_privileged
  chgrp 65534 cuda_privileged && chmod 2755 cuda_privileged
  fake=$PURLIN_BUILD/tests/fake_cupti/libcupti.so.13
  cuda=(env PURLIN_SPOOL="$tmp/spool" PURLIN_CUPTI="$fake" FAKE_CUPTI="$fake" PURLIN_CUPTI_GRACE_MS=10
    CUDA_INJECTION64_PATH="$PURLIN_BUILD/lib/purlin/libpurlin_cuda.so")
  rm -f spool/*
  expect_exit 0 "${cuda[@]}" ./cuda_plain loop 200
  [ -n "$(ls spool)" ] || fail "the CUDA library does not record a plain program"
  rm -f spool/*
  expect_exit 0 "${cuda[@]}" ./cuda_privileged loop 200
  [ -z "$(ls spool)" ] || fail "CUDA's capture writes where the caller of a privileged program says"
fi

# --- libpurlin.so in a privileged program: PURLIN_CACHE, PURLIN_LOG and its like are its caller's. The
# home is a new one, because a privileged program uses the account's.
dispatch=$PURLIN_BUILD/tests/dispatch_gemm
spec=$PURLIN_SOURCE/kernels/gemm/gemm.toml
if [ -x "$dispatch" ] && unshare --mount sh -c 'mount -t tmpfs none /root' 2>/dev/null; then
  install -m 755 "$dispatch" own_plain
  install -m 755 "$dispatch" own_privileged
  chgrp 65534 own_privileged && chmod 2755 own_privileged
  expect_exit 0 purlin cache put "$spec" --device opencl:0 --cache theirs --shape M=64,N=64,K=64 \
    --config BM=32,BN=32,BK=16,TM=4,TN=4,LANES=8,VECTOR=4,PAD=0,STAGES=1,UNROLL=true,GROUP=1,MIN_BLOCKS=1
  theirs=(env PURLIN_CACHE="$tmp/theirs" PURLIN_LOG="info:$tmp/own.log" PURLIN_CACHE_LAYERS="$tmp/theirs")
  expect_exit 0 "${theirs[@]}" ./own_plain "$spec" 64 64 64 1
  expect_contains "$tmp/out" "exact -DBM=32"
  [ -s own.log ] || fail "libpurlin does not log where PURLIN_LOG says"
  rm -f own.log theirs/worklist.json
  # shellcheck disable=SC2016  # the inner shell expands it
  expect_exit 0 unshare --mount sh -c 'mount -t tmpfs none /root && exec "$@"' sh \
    "${theirs[@]}" ./own_privileged "$spec" 64 64 64 1
  expect_contains "$tmp/out" "miss -DBM=16"
  [ ! -e own.log ] || fail "a privileged program logs where its caller says"
  [ ! -e theirs/worklist.json ] || fail "a privileged program writes into its caller's cache"
fi

# --- A folder under /tmp that somebody else made for us is not used.
mkdir -m 1777 shared
mkdir -m 755 shared/purlin-65534   # root's
none=(env -u HOME -u XDG_CACHE_HOME -u PURLIN_CACHE TMPDIR="$tmp/shared" PURLIN_DEVICE=opencl:0)
spec=$PURLIN_SOURCE/kernels/gemm/gemm.toml
if as_nobody test -r "$spec" -a -x "$PURLIN" 2>/dev/null; then
  code=0
  as_nobody "${none[@]}" "$PURLIN" cache ls >out 2>err || code=$?
  [ -z "$(ls -A shared/purlin-65534)" ] || fail "a folder of another user was written to"
fi

# --- A directory that may be read alone, and one of another group.
mkdir -m 755 store
expect_exit 0 purlin cache put "$spec" --device opencl:0 --cache store --shape M=256,N=256,K=256 \
  --config BM=32,BN=32,BK=16,TM=4,TN=4,LANES=8,VECTOR=4,PAD=0,STAGES=1,UNROLL=true,GROUP=1,MIN_BLOCKS=1
if as_nobody test -x "$PURLIN" 2>/dev/null; then
  as_nobody env HOME="$tmp/nowhere" "$PURLIN" cache ls --cache store --json >out 2>err || fail "a cache of another user cannot be read: $(cat err)"
  expect_json out 'len(d["entries"]) == 1'
  ! as_nobody env HOME="$tmp/nowhere" "$PURLIN" cache repair --cache store --drop >out 2>err || fail "another's cache was rewritten"
  expect_exit 0 purlin cache ls --cache store --json
  expect_json "$tmp/out" 'len(d["entries"]) == 1 and d["damaged_records"] == 0'
fi
echo "trust_privilege: privileged programs, other users' folders, read-only caches"
