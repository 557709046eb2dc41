#!/usr/bin/env bash
# Other users and privileged programs. It needs root, to become others; elsewhere it is skipped.
# labels: opencl
source "$(dirname "$0")/lib.sh"
if [ "$(id -u)" -ne 0 ] || ! command -v setpriv >/dev/null; then
  echo "trust_privilege: skipped: it needs root and setpriv"
  exit 0
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
