#!/usr/bin/env bash
# Other tools' files: found by what is in them, imported, reported, merged; damaged and foreign ones.
# shellcheck source=tests/suites/lib.sh
. "$(dirname "$0")/lib.sh"

data=$PURLIN_SOURCE/tests/data/imports
for age in nsys_2019 nsys_2022 nsys_2025 nvprof; do
  python3 - "$data/$age.sql" "$tmp/$age.db" <<'PY'
import sqlite3, sys
db = sqlite3.connect(sys.argv[2])
db.executescript("PRAGMA synchronous = OFF; BEGIN;" + open(sys.argv[1]).read() + "COMMIT;")
PY
done

# The same program in every age of Nsight Systems' schema; names of files mean nothing.
for age in nsys_2019 nsys_2022 nsys_2025; do
  mv "$tmp/$age.db" "$tmp/$age.txt"
  expect_exit 0 purlin import "$tmp/$age.txt" -o "$tmp/$age.plprof" --json
  [ ! -s "$tmp/err" ] || fail "no progress where there is no terminal"
  expect_json "$tmp/out" 'd["schema"] == "purlin.import/1" and d["source"] == "nsys" and not d["partial"]'
  expect_json "$tmp/out" 'd["inputs"][0]["format"] == "nsys-sqlite" and d["kernel_rows_with_shape"] == 2'
  expect_exit 0 purlin report --json --by launch "$tmp/$age.plprof"
  cp "$tmp/out" "$tmp/imported.json"
  expect_json "$tmp/out" 'any(k["shape"] == "M=64,N=128,K=32" and k["op"] == "aten::mm" and k["total_ns"] == 2000 for k in d["kernels"])'
  expect_json "$tmp/out" 'd["timeline"]["devices"][0]["busy_ns"] == 5650'
  # The report of the file itself is the report of what was imported.
  expect_exit 0 purlin report --json --by launch "$tmp/$age.txt"
  python3 - "$tmp/imported.json" "$tmp/out" <<'PY' || fail "imported and read in place differ"
import json, sys
a, b = (json.load(open(path)) for path in sys.argv[1:])
sys.exit(0 if (a["kernels"], a["timeline"], a["copies"]) == (b["kernels"], b["timeline"], b["copies"]) else 1)
PY
done
expect_exit 0 purlin import "$tmp/nsys_2025.txt"
expect_contains "$tmp/out" "NVIDIA H200" "9 calls" "Record with --cuda-graph-trace=node" "not written: give -o FILE"
expect_exit 0 purlin import "$tmp/nvprof.db" --json
expect_json "$tmp/out" 'd["launches"] == 1 and d["output"] is None'
expect_exit 0 purlin export --format csv "$tmp/nsys_2022.txt"
expect_contains "$tmp/out" "cudaLaunchKernel"

# An execution trace of PyTorch next to its trace: the data flow of a step. Any verb takes both.
flow=$data/attention_training.et.json.gz
expect_exit 0 purlin import "$flow" "$PURLIN_SOURCE/tests/data/traces/kineto_h200_transformer.json.gz" -o "$tmp/flow.plprof" --json
expect_json "$tmp/out" 'd["inputs"][0]["format"] == "execution-trace" and d["data_flow"] == {"steps": 3, "ops": 24, "same_data": True, "facts": 1}'
expect_exit 0 purlin import "$tmp/flow.plprof"
expect_contains "$tmp/out" "data flow 1 fact of 24 ops in a step, from 3 steps"
expect_exit 0 purlin advise --json "$PURLIN_SOURCE/tests/data/traces/kineto_h200_transformer.json.gz" "$flow"
expect_exit 0 purlin import "$data/ncu_raw_h200.csv" --json
expect_json "$tmp/out" 'd["data_flow"] is None'
gunzip -c "$flow" >"$tmp/whole.et.json"
head -c 30000 "$tmp/whole.et.json" >"$tmp/cut.et.json"
expect_exit 2 purlin import "$tmp/cut.et.json"
expect_contains "$tmp/err" cut.et.json "cut at byte 30000" "unregister"

# Nsight Compute: counters, behind what the program printed; gzip is undone.
gzip -c "$data/ncu_raw_h200.csv" >"$tmp/ncu"
expect_exit 0 purlin import --build v7 "$tmp/ncu" -o "$tmp/ncu.plprof" --json
expect_json "$tmp/out" 'd["inputs"][0]["format"] == "ncu-csv" and d["launches"] == 4 and d["kernel_rows_with_counters"] == 2'
expect_json "$tmp/out" 'any(n["cause"] == "replayed" for n in d["coverage"]["notes"])'
expect_exit 0 purlin report --json "$tmp/ncu.plprof"
expect_json "$tmp/out" 'd["environment"]["build"] == "v7" and d["environment"]["devices"][0]["name"] == "NVIDIA H200"'

# A pipe is read like a file: standard input, or a name that is one. All formats, in each verb.
mkdir "$tmp/streams"
for file in "$tmp/nsys_2025.txt" "$tmp/ncu" "$tmp/ncu.plprof" "$PURLIN_SOURCE/tests/data/traces/kineto_h200_transformer.json.gz"; do
  expect_exit 0 purlin report --json --by launch "$file"
  cp "$tmp/out" "$tmp/of_file.json"
  TMPDIR=$tmp/streams expect_exit 0 purlin report --json --by launch - < <(cat "$file")
  cp "$tmp/out" "$tmp/of_stdin.json"
  TMPDIR=$tmp/streams expect_exit 0 purlin report --json --by launch <(cat "$file")
  python3 - "$tmp/of_file.json" "$tmp/of_stdin.json" "$tmp/out" <<'PY' || fail "$file from a pipe differs"
import json, sys
file, stdin, pipe = (json.load(open(path)) for path in sys.argv[1:])
same = all(d["kernels"] == file["kernels"] and d["timeline"] == file["timeline"] for d in (stdin, pipe))
sys.exit(0 if same and stdin["profile"]["files"] == ["-"] else 1)
PY
  for verb in advise import; do
    TMPDIR=$tmp/streams expect_exit 0 purlin $verb - <"$file"
    grep -v '^next: ' "$tmp/out" >"$tmp/of_stdin"
    expect_exit 0 purlin $verb "$file"
    grep -v '^next: ' "$tmp/out" | sed "s|^$file  |-  |" | diff - "$tmp/of_stdin" >&2 || fail "$verb - of $file"
  done
done
TMPDIR=$tmp/streams expect_exit 0 purlin export --format csv - <"$tmp/nsys_2025.txt"
expect_contains "$tmp/out" "cudaLaunchKernel"
expect_exit 2 purlin report - < <(printf '\x28\xb5\x2f\xfdxxxx')
expect_contains "$tmp/err" "-: this is compressed with zstd; unpack it first: zstd -d -"
expect_exit 2 purlin report - </dev/null
expect_contains "$tmp/err" "-: the file is empty"
expect_exit 2 purlin diff - - <"$tmp/ncu"
expect_contains "$tmp/err" "standard input can be read once"
[ -z "$(ls "$tmp/streams")" ] || fail "copies of pipes stay: $(ls "$tmp/streams")"

# rocprofv3: a folder is one run; its files together know the calls.
run=$tmp/rocprof/host
mkdir -p "$run"
cat >"$run/9_kernel_trace.csv" <<'CSV'
"Kind","Agent_Id","Queue_Id","Stream_Id","Thread_Id","Dispatch_Id","Kernel_Id","Kernel_Name","Correlation_Id","Start_Timestamp","End_Timestamp","LDS_Block_Size","Scratch_Size","VGPR_Count","Accum_VGPR_Count","SGPR_Count","Workgroup_Size_X","Workgroup_Size_Y","Workgroup_Size_Z","Grid_Size_X","Grid_Size_Y","Grid_Size_Z"
"KERNEL_DISPATCH","Agent 1",1,0,9,1,7,"scale(float*, int)",3,1000,3000,0,0,8,0,16,64,1,1,1024,1,1
CSV
cat >"$run/9_hip_api_trace.csv" <<'CSV'
"Domain","Function","Process_Id","Thread_Id","Correlation_Id","Start_Timestamp","End_Timestamp"
"HIP_RUNTIME_API","hipLaunchKernel",9,9,3,700,800
CSV
expect_exit 0 purlin import "$tmp/rocprof" --json
expect_json "$tmp/out" 'd["launches"] == 1 and d["timeline"]["calls"] == 1 and d["processes"] == 1'
expect_exit 0 purlin import "$run/9_hip_api_trace.csv" "$run/9_kernel_trace.csv" --json
expect_json "$tmp/out" 'd["launches"] == 1 and d["timeline"]["calls"] == 1'
expect_exit 0 purlin report --json --by launch "$tmp/rocprof"
expect_json "$tmp/out" 'd["kernels"][0]["launch"]["grid"] == [16, 1, 1]'

# Several files merge, and so does what was imported before.
expect_exit 0 purlin import "$tmp/nsys_2019.txt" "$tmp/ncu" "$tmp/rocprof" "$tmp/nsys_2022.plprof" -o "$tmp/all.plprof" --json
expect_json "$tmp/out" 'd["launches"] == 3 + 4 + 1 + 3 and len(d["environment"]["devices"]) == 4'

# Damaged files: a part, marked so, and a warning.
head -c -700 "$data/ncu_raw_h200.csv" >"$tmp/cut.csv"
expect_exit 0 purlin import "$tmp/cut.csv" --json
expect_json "$tmp/out" 'd["partial"] and d["launches"] == 3'
expect_contains "$tmp/err" "damaged or cut short" cut.csv
head -c -60 "$run/9_kernel_trace.csv" >"$tmp/cut_kernel_trace.csv"
expect_exit 2 purlin report "$tmp/cut_kernel_trace.csv"
expect_contains "$tmp/err" "line 2" "cut short"

# What is none of these says what to do; nothing on stdout.
printf 'NVR\0xxxx' >"$tmp/a.bin"
printf 'PERFILE2xxxx' >"$tmp/b.bin"
printf 'something' >"$tmp/report.nsys-rep"
printf '{"a": 1}' >"$tmp/d.json"
printf '==PROF== Connected\n==ERROR== ERR_NVGPUCTRPERM\n' >"$tmp/e.csv"
: >"$tmp/empty"
python3 -c 'import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute("CREATE TABLE rocpd_op (id)")' "$tmp/f.db"
foreign() { expect_exit 2 purlin import "$tmp/$1" -o "$tmp/none.plprof"; [ ! -s "$tmp/out" ] || fail "output for $1"; expect_contains "$tmp/err" "$2"; }
foreign a.bin "ncu --import $tmp/a.bin --csv --page raw"
foreign b.bin "perf"
foreign report.nsys-rep "nsys export --type sqlite"
foreign d.json "no trace"
foreign e.csv "without a table"
foreign empty "is empty"
foreign f.db "rpd2tracing.py"
foreign absent "no such file"
expect_exit 2 purlin import "$tmp/ncu" -o "$tmp/ncu"
expect_contains "$tmp/err" "also read"
expect_exit 2 purlin import "$tmp/ncu" -o "$tmp/no/such/folder/x"
expect_exit 2 purlin import
[ ! -e "$tmp/none.plprof" ] || fail "a file was written for none"
