#!/usr/bin/env bash
# `--sample auto` on a fake CUPTI: which runs are recorded by what earlier ones cost, what is kept for that,
# and what happens where it cannot be used.
# labels: profile
# serial
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
unset CUDA_INJECTION64_PATH OPENCL_LAYERS RANK PURLIN_RUN_ID SLURM_JOB_ID SLURM_PROCID || true
client=$PURLIN_BUILD/tests/paced_client
[ -x "$client" ] || skip "built without CUDA's headers"
export PURLIN_CUPTI=$PURLIN_BUILD/tests/fake_cupti/libcupti.so.13 XDG_STATE_HOME=$tmp/state
unset PURLIN_STATE || true
records=$tmp/state/purlin/capture-cost
cd "$tmp"

report() { purlin report "$1" --json >"$tmp/report.json"; }
notes() { report "$1"; json "$tmp/report.json" "' '.join(n['cause'] for n in d['coverage']['notes'])"; }
made() { sed -n 's/^made \([0-9]*\) launches/\1/p' "$1"; }
# Each run of a test finds the same record: those that are recorded would change it.
keep() { cp "$record" kept; }
again() { cp kept "$record"; }
set_costs() { sed -i "s/^presence_ppm .*/presence_ppm $1/; s/^rest_ppm .*/rest_ppm $2/; s/^budget_ppm .*/budget_ppm 10000/" "$record"; keep; }

# --- a program without a record is recorded, says so, and leaves one
expect_exit 0 purlin profile --sample auto -o first.plprof -- "$client" 1 100
[ "$(notes first.plprof)" = "cupti_presence launch_bound sample_auto" ] || fail "notes: $(notes first.plprof)"
expect_json report.json "'has no record' in d['coverage']['notes'][2]['text']"
expect_json report.json "d['processes'][0]['stands_for'] == 1 and d['coverage']['sampling']['presence'] > 0.015"
[ "$(ls "$records" | wc -l)" = 1 ] || fail "records: $(ls "$records")"
record=$records/$(ls "$records")
expect_contains "$record" "purlin-cost/3" "program $client" "capture governed" "budget_ppm 10000" "runs 1"
# What the profile says of itself is what the record has.
python3 - "$record" "$tmp/report.json" <<'END' || fail "record and profile differ"
import json, math, sys
record = dict(line.split(" ", 1) for line in open(sys.argv[1]).read().splitlines()[1:-1])
sampling = json.load(open(sys.argv[2]))["coverage"]["sampling"]
assert abs(int(record["presence_ppm"]) / 1e6 - sampling["presence"]) < 2e-6
cost = (int(record["presence_ppm"]) + int(record["rest_ppm"])) / 1e6
assert sampling["one_in"] == min(64, math.ceil(1.5 * cost / 0.01 - 1e-4)), (cost, sampling)
END

# --- with one, as many runs are recorded as hold the budget: the same ones in each decision
set_costs 25000 0
drawn=0 expected=0
for run in $(seq 1 12); do
  again
  place=$(python3 -c 'import sys
h = 14695981039346656037
for b in sys.argv[1].encode(): h = ((h ^ b) * 1099511628211) % 2**64
print((h ^ (h >> 32)) % 4)' "run-$run")
  code=5
  PURLIN_RUN_ID=run-$run FAKE_CUPTI_LOG=$tmp/calls-$run.json \
    expect_exit $code purlin profile --sample auto -o run-$run.plprof -- sh -c "'$client' 0.05 2; exit $code"
  report run-$run.plprof
  if [ "$place" = 0 ]; then
    expected=$((expected + 1))
    expect_json report.json "d['launches'] == $(made out) and d['processes'][0]['stands_for'] == 4"
    expect_contains out "represents 4" "process sample: 1 process recorded of an estimated 4"
    cmp -s kept "$record" && fail "a recorded run left no record"
  else
    expect_json report.json "d['launches'] == 0 and d['processes'][0]['stands_for'] == 0"
    expect_contains err "not recorded: one run in 4" "2.5 % of" "the budget is 1 %" "$record" "Without --sample every run"
    expect_json calls-$run.json "d['calls'] == {}"  # CUPTI is not touched
    cmp -s kept "$record" || fail "a run that was left out wrote a record"
  fi
  grep -q not_sampled report.json || drawn=$((drawn + 1))
done
[ "$drawn" = "$expected" ] && [ "$drawn" -gt 0 ] && [ "$drawn" -lt 9 ] || fail "$drawn of 12 runs, $expected expected"

ranks() {  # how many of eight ranks are recorded
  local rank count=0
  for rank in 0 1 2 3 4 5 6 7; do
    again
    RANK=$rank PURLIN_RUN_ID=job-17 expect_exit 0 purlin profile --sample auto "$@" -o rank-$rank.plprof -- "$client" 0.05 2
    case $(notes rank-$rank.plprof) in *not_sampled*) ;; *) count=$((count + 1)) ;; esac
  done
  echo $count
}
[ "$(ranks)" = 2 ] || fail "ranks at 1 %"
expect_exit 0 purlin report rank-*.plprof
expect_contains out "process sample: 2 processes recorded of an estimated 8"
expect_exit 0 purlin report rank-*.plprof --json
expect_json out "sum(p['stands_for'] for p in d['processes']) == 8"
# --- another budget, another number; what one run holds, every run is recorded for, and nothing is said
[ "$(ranks --budget 2%)" = 4 ] || fail "ranks at 2 %"
[ "$(ranks --budget 4%)" = 8 ] || fail "ranks at 4 %"
[ "$(notes rank-3.plprof)" = "no_copies" ] || fail "notes: $(notes rank-3.plprof)"
again
expect_exit 0 purlin profile -o asked.plprof -- "$client" 0.05 2
[ "$(notes asked.plprof)" = "" ] || fail "without --sample: $(notes asked.plprof)"
cmp -s kept "$record" || fail "a run without --sample auto wrote a record"
# What is recorded otherwise has a record of its own; a program called something else, too.
expect_exit 0 purlin profile --sample auto --full -o full.plprof -- "$client" 0.05 2
[ "$(notes full.plprof)" = sample_auto ] || fail "notes: $(notes full.plprof)"
PURLIN_PROGRAM=another expect_exit 0 purlin profile --sample auto -o other.plprof -- "$client" 0.05 2
[ "$(notes other.plprof)" = sample_auto ] || fail "notes: $(notes other.plprof)"
[ "$(ls "$records" | wc -l)" = 3 ] || fail "records: $(ls "$records")"

# --- a program that is too much for the budget as a whole, and not launch-bound, is recorded in windows from then on: its
#     beginning only at first
windowed() {  # WITHIN OPTIONS…
  FAKE_CUDA=$PURLIN_BUILD/tests/fake_cuda/libcuda.so.1 PURLIN_LASTING_LAUNCH_NS=0 PURLIN_PROGRAM=roomy \
    expect_estimate roomy.plprof "$1" purlin profile --sample auto -o roomy.plprof "${@:2}" -- "$client" 4 100
}
windowed 1
[ "$(notes roomy.plprof)" = "cupti_presence no_windows sample_auto" ] || fail "notes: $(notes roomy.plprof)"
roomy=$(grep -l "program roomy" "$records"/*)
expect_contains "$roomy" "ended 1" "launch_bound 0"
hold() { sed -i "s/^presence_ppm .*/presence_ppm 100/; s/^rest_ppm .*/rest_ppm 100/; s/^launch_bound .*/launch_bound $1/" "$roomy"; }
hold 0
windowed 0.1
expect_json report.json "d['coverage']['sampling']['windows'] > 1"
expect_contains "$roomy" "ended 1" "launch_bound 0"
for without in "1 --windows=auto" "0 --windows=off"; do
  hold ${without% *}
  windowed 1 ${without#* }
  expect_json report.json "d['coverage']['sampling']['windows'] == 1 and d['launches'] < $(made out)"
done
rm "$roomy"

# --- what cannot be read is none, and is replaced
for bad in '' 'purlin-cost/4\n' 'purlin-cost/3\nprogram x\n' "$(head -c 6000 /dev/zero | tr '\0' x)"; do
  printf "$bad" >"$record"
  PURLIN_RUN_ID=run-1 expect_exit 0 purlin profile --sample auto -o bad.plprof -- "$client" 0.05 2
  [ "$(notes bad.plprof)" = sample_record ] || fail "notes: $(notes bad.plprof)"
  expect_json report.json "d['launches'] == $(made out) and '$record' in d['coverage']['notes'][0]['text']"
  expect_contains "$record" "runs 1"
done
PURLIN_STATE=/dev/null/nowhere expect_exit 0 purlin profile --sample auto -o nowhere.plprof -- "$client" 0.05 2
notes nowhere.plprof | grep -q sample_record || fail "notes: $(notes nowhere.plprof)"
expect_json report.json "d['launches'] == $(made out)"

# --- a program that is killed leaves a record, too
rm -r "$records"
"$PURLIN" profile --sample auto -o killed.plprof -- "$client" 60 100 >ready 2>err &
purlin_pid=$!
has_record() { [ "$(ls "$records" 2>/dev/null | wc -l)" = 1 ]; }
wait_until 'a record is kept while the program runs' has_record
kill -9 "$(pgrep -P "$purlin_pid")"
code=0; wait "$purlin_pid" || code=$?
[ "$code" = 137 ] || fail "exit code $code of a killed program"
expect_contains "$record" "runs 1" "end"

# --- many at once
pids=
for rank in 0 1 2 3 4 5 6 7; do
  RANK=$rank PURLIN_RUN_ID=many "$PURLIN" profile --sample auto --budget 100% -o many-$rank.plprof -- "$client" 0.2 2 >/dev/null 2>&1 &
  pids="$pids $!"
done
for pid in $pids; do wait "$pid" || fail "a run among many"; done
[ "$(ls "$records")" = "$(basename "$record")" ] || fail "left behind: $(ls "$records")"
expect_contains "$record" "end"

# --- injected without `purlin profile`, nothing says how many: auto
set_costs 640000 0
mkdir spool
for run in 1 2 3 4 5 6; do
  again
  env CUDA_INJECTION64_PATH="$(dirname "$PURLIN")/../lib/purlin/libpurlin_cuda.so" PURLIN_SPOOL=$tmp/spool PURLIN_RUN_ID=alone-$run "$client" 0.05 2 >/dev/null
done
purlin report spool/*.plprof --json >report.json
expect_json report.json "len(d['processes']) == 6 and all(p['stands_for'] in (0, 64) for p in d['processes'])"
expect_json report.json "sum(p['stands_for'] == 0 for p in d['processes']) >= 4"

echo "capture_auto: ok"
