#!/usr/bin/env bash
# Pipes, devices and links where files are expected: refused at once. SIGTERM ends what waits.
# labels: opencl
source "$(dirname "$0")/lib.sh"
cd "$tmp"
# soon CODE COMMAND…: it ends by itself, long before anybody would interrupt it.
soon() { local code=$1; shift; expect_exit "$code" timeout -s KILL 60 "$@"; }

cat >fifo.toml <<'END'
schema = "purlin.spec/1"
name = "good"
op = "elementwise"
[problem]
N = 65536
[kernel]
entry = "scale"
[kernel.opencl]
file = "source.cl"
[parameters]
BLOCK = {values = [16, 32], default = 32}
[launch]
grid = ["ceil_div(N, BLOCK)"]
block = ["BLOCK"]
[[arguments]]
name = "out"
role = "output"
dtype = "f32"
shape = ["N"]
END
mkfifo source.cl
soon 2 "$PURLIN" tune fifo.toml --device opencl:0 --no-store
expect_contains "$tmp/err" "a named pipe" "name a regular file"
rm source.cl
ln -s /dev/zero source.cl
soon 2 "$PURLIN" tune fifo.toml --device opencl:0 --no-store
expect_contains "$tmp/err" "a device"
mkfifo spec.toml
soon 2 "$PURLIN" tune spec.toml --device opencl:0
expect_contains "$tmp/err" "a named pipe"
soon 2 "$PURLIN" space /dev/zero --device opencl:0
expect_contains "$tmp/err" "a device"

# In a cache: the log, its lock, its index.
for name in entries.log entries.log.lock entries.index worklist.json backlog.jsonl; do
  rm -rf cache && mkdir cache && mkfifo "cache/$name"
  code=0
  timeout -s KILL 60 "$PURLIN" cache ls --cache cache >out 2>err || code=$?
  [ "$code" -le 2 ] || fail "cache ls with a pipe as $name ended with $code"
  code=0
  timeout -s KILL 60 "$PURLIN" backlog --cache cache >out 2>err || code=$?
  [ "$code" -le 3 ] || fail "backlog with a pipe as $name ended with $code"
done
# A link to nothing makes no file where it points.
rm -rf cache && mkdir cache
ln -s "$tmp/elsewhere" cache/entries.log
printf '{"schema": "purlin.cache/1", "entries": []}' >none.json
spec=$PURLIN_SOURCE/kernels/gemm/gemm.toml
config=BM=32,BN=32,BK=16,TM=4,TN=4,LANES=8,VECTOR=4,PAD=0,STAGES=1,UNROLL=true,GROUP=1,MIN_BLOCKS=1
expect_exit 2 purlin cache put "$spec" --device opencl:0 --cache cache --shape M=256,N=256,K=256 --config "$config"
expect_contains "$tmp/err" "a link to nothing"
[ ! -e elsewhere ] || fail "a file was made through a link"

# In the spool of a run: a pipe, a device and a link of the profiled program.
loop=$PURLIN_BUILD/tests/opencl_loop
soon 0 "$PURLIN" profile -o a.plprof -- sh -c '
  mkfifo "$PURLIN_SPOOL/opencl-1-1.plprof"
  ln -s /dev/zero "$PURLIN_SPOOL/opencl-1-2.plprof"
  ln -s /etc/passwd "$PURLIN_SPOOL/opencl-1-3.plprof"
  exec "$0" launches 7' "$loop"
purlin report a.plprof --json >report.json
expect_json report.json 'sum(k["count"] for k in d["kernels"] if k["name"] == "scale") == 7'
expect_json report.json 'sum(n["cause"] == "unreadable_process_file" for n in d["coverage"]["notes"]) >= 1'

# SIGTERM, while a config hangs.
printf '{"time_ms": 1, "hang_if": "True", "device": {"name": "Stuck"}}' >stuck.json
"$PURLIN" tune "$PURLIN_SOURCE/tests/data/tune/scale.toml" --device fake:stuck.json --timeout 10m --no-store >out 2>err &
pid=$!
wait_until 'the first evaluation' grep -q 'evaluation 1 of' err
kill -TERM "$pid"
has_ended() { ! kill -0 "$pid"; }
wait_until 'SIGTERM to end a session whose config hangs' has_ended
wait "$pid" || true
echo "trust_files: pipes, devices and links are refused at once"
