# shellcheck shell=bash
# labels: opencl
# What else `purlin tune` can be asked for than the shortest time: energy, limits on what is measured,
# rotating inputs. On fake devices, which say what they draw, and on OpenCL, which does not.
source "$(dirname "$0")/lib.sh"
spec=$PURLIN_SOURCE/tests/data/tune/scale.toml
export PURLIN_CACHE=$tmp/winners

# The faster a config is the more it draws: 1 ms of 900 W, or 2 ms of 300 W.
printf '{"time_ms": "1 if ITEMS > 2 else 2", "power_w": "900 if ITEMS > 2 else 300", "device": {"name": "Metered"}}' >"$tmp/metered.json"
tune() { purlin tune "$spec" --device "fake:$tmp/metered.json" --strategy random --budget 6 --seed 4 --finals 1 --json "$@"; }
expect_exit 0 tune --objective energy
expect_json "$tmp/out" 'd["objective"] == "energy" and d["policy"]["energy_s"] == 1'
expect_json "$tmp/out" 'abs(d["best"]["power_w"] - 300) < 30 and abs(d["best"]["energy_mj"] - 600) < 60 and d["best"]["time_ms"] == 2'
expect_json "$tmp/out" 'all(e["energy_mj"] > 0 and 0 <= e["energy_error"] < 1 for e in d["evaluations"] if e["status"] == "ok")'
expect_contains "$tmp/err" "not stored: the cache keeps the fastest"
[ "$(purlin cache ls --json | python3 -c 'import json,sys; print(len(json.load(sys.stdin)["entries"]))')" -eq 0 ] ||
  fail "a winner by energy was stored"
expect_exit 0 tune --objective edp
expect_json "$tmp/out" 'd["best"]["time_ms"] == 1'

# A limit on what is measured: the fast ones draw too much.
expect_exit 0 tune --limit 'power_w < 500' --no-store
expect_json "$tmp/out" 'd["objective"] == "time" and d["best"]["time_ms"] == 2'
expect_json "$tmp/out" '"power_w < 500" in d["failures"]["invalid"]["first_message"]'
expect_exit 2 tune --limit 'watts < 500'
expect_contains "$tmp/err" "there is no 'watts'" power_w
expect_exit 2 tune --objective fun
expect_contains "$tmp/err" "--objective is time, energy or edp"

# Where nothing counts the energy: an error before the work.
printf '{"time_ms": 1}' >"$tmp/plain.json"
for device in "fake:$tmp/plain.json" opencl:0; do
  expect_exit 2 purlin tune "$spec" --device "$device" --objective energy
  expect_contains "$tmp/err" "--objective energy takes the energy, which cannot be measured here" "does not count the energy"
  expect_exit 2 purlin tune "$spec" --device "$device" --limit 'energy_mj < 3'
  expect_contains "$tmp/err" "a limit on energy_mj or power_w"
done

# Rotating inputs: how each config was timed is in the record; a winner of another way is not stored.
expect_exit 0 purlin tune "$spec" --device opencl:0 --strategy random --budget 4 --finals 1 --inputs rotate --json
expect_json "$tmp/out" 'd["policy"]["inputs"] == "rotate"'
expect_json "$tmp/out" 'all(e["input_sets"] > 1 and e["how"].split()[0] in ("event", "batch") for e in d["evaluations"] if e["status"] == "ok")'
expect_contains "$tmp/err" "not stored: the spec measures otherwise than --inputs rotate"
expect_exit 0 purlin tune "$spec" --device opencl:0 --strategy random --budget 4 --finals 1 --json
expect_json "$tmp/out" 'all("input_sets" not in e for e in d["evaluations"])'
expect_exit 2 purlin tune "$spec" --device opencl:0 --inputs new
expect_contains "$tmp/err" "--inputs is reuse or rotate"
