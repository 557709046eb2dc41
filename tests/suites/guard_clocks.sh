#!/usr/bin/env bash
# The guard beside a driver that watches and locks: a fake libnvidia-ml, and a scripted device that it knows.
source "$(dirname "$0")/lib.sh"
cd "$tmp"
export LD_LIBRARY_PATH=$PURLIN_BUILD/tests/fake_nvml${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export FAKE_NVML_LOG=$tmp/nvml.log
[ -e "$PURLIN_BUILD/tests/fake_nvml/libnvidia-ml.so.1" ] || fail 'the fake NVML is not built'

echo '{"device": {"name": "Fake GPU", "uuid": "GPU-fake", "clock_mhz": 1980, "driver": "1", "toolkit": "none"}}' >gpu.json
printf '#!/bin/sh\nprintf "kernel,time_us,sm_clock_mhz\\nk,10,1500\\nk,10.1,1500\\nk,9.9,1500\\n"\n' >bench && chmod +x bench
compare=("$PURLIN" guard compare --commands ./bench ./bench --device fake:gpu.json --json)

# Watched, and never locked unless asked to.
expect_exit 0 "${compare[@]}"
expect_json "$tmp/out" 'd["measurement"]["device"]["sm_clock_mhz"] == [1500, 1500]'
expect_json "$tmp/out" 'd["measurement"]["device"]["highest_temperature_c"] == 50 and d["measurement"]["other_processes"] == 0'
[ ! -e nvml.log ] || fail "the clock was touched: $(cat nvml.log)"

# Locked for the time of the comparison, at the clock that was asked for.
expect_exit 0 "${compare[@]}" --lock-clocks 1500
expect_json "$tmp/out" 'd["measurement"]["locked_clock_mhz"] == 1500'
[ "$(cat nvml.log)" = $'lock 1500 1500\nreset' ] || fail "not locked and reset: $(cat nvml.log)"
rm nvml.log
expect_exit 0 "${compare[@]}" --lock-clocks base
[ "$(head -1 nvml.log)" = 'lock 4294967041 4294967041' ] || fail "not the base clock: $(cat nvml.log)"
rm nvml.log
expect_exit 2 "${compare[@]}" --lock-clocks fast
[ ! -e nvml.log ] || fail 'a clock that is none was locked'
FAKE_NVML_REFUSE=1 expect_exit 2 "${compare[@]}" --lock-clocks max
expect_contains "$tmp/err" '--lock-clocks' 'root'
rm -f nvml.log

# Given back when the comparison is killed, politely or not, and when it fails.
given_back() { [ "$(tail -1 nvml.log)" = reset ]; }
for signal in INT TERM KILL; do
  env --default-signal=INT "$PURLIN" guard compare --commands ./bench 'touch measuring; exec sleep 600' --device fake:gpu.json \
    --lock-clocks 1500 >/dev/null 2>&1 &
  pid=$!
  wait_until 'the comparison' test -e measuring
  kill -$signal $pid
  wait $pid 2>/dev/null || true
  wait_until "the clock to be given back after SIG$signal" given_back
  [ "$(cat nvml.log)" = $'lock 1500 1500\nreset' ] || fail "after SIG$signal: $(cat nvml.log)"
  rm nvml.log measuring
done
expect_exit 2 "$PURLIN" guard compare --commands ./bench false --device fake:gpu.json --lock-clocks 1500
[ "$(tail -1 nvml.log)" = reset ] || fail 'a failed comparison left the clock locked'

# A device that slows itself down measures nothing that counts.
FAKE_NVML_REASONS=0x40 expect_exit 2 "${compare[@]}"
expect_json "$tmp/out" 'd["verdict"] == "invalid" and "thermal" in d["items"][0]["reason"]'
expect_json "$tmp/out" 'd["measurement"]["rejected_pairs"] == 6 and d["items"][0]["pairs"] == 0'
# A power cap is the workload's own doing.
FAKE_NVML_REASONS=0x4 expect_exit 0 "${compare[@]}"
expect_json "$tmp/out" 'd["measurement"]["device"]["clock_limits"] == ["power cap"]'

# A tuning session says what held the clock down, and warns where the device protected itself.
tune=("$PURLIN" tune "$PURLIN_SOURCE/tests/data/tune/scale.toml" --device fake:gpu.json --budget 4 --finals 1 --no-store --fresh --json)
expect_exit 0 "${tune[@]}"
expect_json "$tmp/out" 'd["conditions"]["clock_limits"] == [] and d["conditions"]["sm_clock_mhz"] == [1500, 1500]'
FAKE_NVML_REASONS=0x4 expect_exit 0 "${tune[@]}"
expect_json "$tmp/out" 'd["conditions"]["clock_limits"] == ["power cap"]'
FAKE_NVML_REASONS=0x40 expect_exit 0 "${tune[@]}"
expect_contains "$tmp/err" 'something held the clock down meanwhile (thermal, hardware' 'the device protects itself'

# The other verbs that measure.
rm -f nvml.log
cat >m.toml <<'END'
schema = "purlin.matrix/1"
name = "watched"
rounds = 8
[command]
run = ["./bench"]
format = "csv"
name_column = "kernel"
time_column = "time_us"
clock_column = "sm_clock_mhz"
[[factors]]
name = "variable"
kind = "environment"
levels = [{name = "a", environment = {A = "1"}}, {name = "b", environment = {A = "2"}}]
END
matrix=("$PURLIN" guard matrix m.toml --device fake:gpu.json --json)
expect_exit 0 "${matrix[@]}" --lock-clocks 1500
expect_json "$tmp/out" 'd["measurement"]["locked_clock_mhz"] == 1500 and d["measurement"]["launches"] == 16'
expect_json "$tmp/out" 'd["measurement"]["device"]["sm_clock_mhz"] == [1500, 1500] and d["measurement"]["rejected_launches"] == 0'
[ "$(cat nvml.log)" = $'lock 1500 1500\nreset' ] || fail "not locked and reset: $(cat nvml.log)"
FAKE_NVML_REASONS=0x40 expect_exit 3 "${matrix[@]}"
expect_json "$tmp/out" 'd["items"] == [] and d["measurement"]["rejected_launches"] == d["measurement"]["launches"] == 48'
expect_json "$tmp/out" '"thermal" in d["measurement"]["rejected_because"][0] and d["measurement"]["locked_clock_mhz"] is None'

commit=0
git init -q repo
git -C repo config user.email a@b && git -C repo config user.name a
for factor in 1 1 2; do
  sed "s/10/$((10 * factor))/g" bench >repo/bench && chmod +x repo/bench
  echo "$((++commit))" >repo/number
  git -C repo add -A && git -C repo commit -qm "factor $factor"
done
bisect=("$PURLIN" guard bisect HEAD~2 HEAD --repo repo --device fake:gpu.json --json -- ./bench)
expect_exit 0 "${bisect[@]}"
expect_json "$tmp/out" 'd["outcome"] == "culprit" and d["measurement"]["device"]["sm_clock_mhz"] == [1500, 1500]'
expect_json "$tmp/out" 'd["measurement"]["rejected_pairs"] == 0 and d["measurement"]["launches"] >= 48'
FAKE_NVML_REASONS=0x40 expect_exit 3 "${bisect[@]}"
expect_json "$tmp/out" 'd["outcome"] == "nothing_to_find" and d["measurement"]["rejected_pairs"] == 6'
echo 'guard_clocks: all checks passed'
