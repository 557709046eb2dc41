#!/usr/bin/env bash
# Which op a launch belongs to, on a fake CUPTI: ranges of NVTX, products asked of a fake cuBLAS, and the
# links from calls to their work in what is exported.
# labels: profile
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
export CUDA_INJECTION64_PATH= NVTX_INJECTION64_PATH=
unset CUDA_INJECTION64_PATH NVTX_INJECTION64_PATH
export PURLIN_CUPTI=$PURLIN_BUILD/tests/fake_cupti/libcupti.so.13
client=$PURLIN_BUILD/tests/ops_client
[ -x "$client" ] || skip "built without CUDA's headers"
cd "$tmp"

# rows FILE: "kernel op shape dtype count", one a line, sorted.
rows() {
  purlin report "$1" --by launch --phase all --json >report.json
  json report.json "'\n'.join(sorted(' '.join([k['name'], k['op'].replace(' ', '_') or '-', k['shape'] or '-', k['dtype'] or '-', str(int(k['count']))]) for k in d['kernels']))"
}
is() { [ "$2" = "$3" ] || { printf -- '--- wanted\n%s\n--- got\n%s\n' "$3" "$2" >&2; fail "$1"; }; }
notes() { json report.json "' '.join(n['cause'] for n in d['coverage']['notes'])"; }

# --- ranges of NVTX, as PyTorch's emit_nvtx names them, and a person's
step='outside - - - 100
product aten::addmm M=8,N=128,K=64 - 100
softmax own_softmax - - 100'
expect_exit 0 purlin profile --ops on -o a.plprof -- "$client" step 100
expect_contains out "depth 0"
is "ops of a step" "$(rows a.plprof)" "$step"
is "notes" "$(notes)" ""
expect_exit 0 purlin profile --ops on -o a.plprof -- "$client" threads 50
is "ops of 8 threads" "$(rows a.plprof)" "${step//100/400}"
expect_exit 0 purlin profile --ops on -o a.plprof -- "$client" domains 5
is "domains, registered and wide names" "$(rows a.plprof)" "of_a_registered_name aten::sum n=16 - 5
of_a_wide_name aten::mm M=4,N=3,K=2 - 10"
expect_exit 0 purlin profile --ops on -o a.plprof -- "$client" graph 4
is "a graph inside a range" "$(rows a.plprof)" "node aten::replay - - 12"

# --- ranges that end on another thread than they began on: no ops, but in the timeline, and they cut it into steps
expect_exit 0 purlin profile --full -o a.plprof -- "$client" spans 20
is "no ops of spans" "$(rows a.plprof)" "work - - - 20"
expect_json report.json "len(d['timeline']['steps']['list'] if isinstance(d['timeline']['steps'], dict) else d['timeline']['steps']) == 20"
expect_exit 0 purlin export --format chrome -o a.json a.plprof
python3 - a.json <<'END' || fail "spans in the exported timeline"
import collections, json, sys
events = json.load(open(sys.argv[1]))["traceEvents"]
names = collections.Counter(e["name"].split(" ")[0] for e in events if e.get("cat") == "user_annotation")
names.pop("end", None)  # the program's only range of a thread: calls may be recorded by then, or not yet
assert names == {"step": 20, "upload": 20, "still": 1}, names
tracks = {e["args"]["name"] for e in events if e.get("name") == "thread_name"}
assert any(t.startswith("ranges across threads") for t in tracks), tracks
END
expect_exit 0 purlin profile --full --ops off -o a.plprof -- "$client" spans 2
expect_exit 0 purlin export --format chrome -o a.json a.plprof
grep -q upload a.json && fail "--ops off leaves NVTX alone"

# --- off; auto: once the program names ranges of its own
expect_exit 0 purlin profile --ops off -o a.plprof -- "$client" step 10
is "--ops off" "$(rows a.plprof)" "outside - - - 10
product - - - 10
softmax - - - 10"
expect_exit 0 purlin profile --seal-period 20ms -o a.plprof -- "$client" auto 10
is "--ops auto" "$(rows a.plprof)" "${step//100/10}"
expect_exit 0 purlin profile -o a.plprof -- "$client" nccl 10
is "NCCL's ranges ask for nothing" "$(rows a.plprof)" "all_reduce - - - 10"
expect_exit 2 purlin profile --ops sometimes -o a.plprof -- true
expect_contains err "--ops 'sometimes': give auto, on or off"

# --- another reader of NVTX stays in place
NVTX_INJECTION64_PATH=/other/reader.so expect_exit 0 purlin profile --ops on -o a.plprof -- sh -c 'echo "$NVTX_INJECTION64_PATH"'
expect_contains out /other/reader.so
purlin report a.plprof --json >report.json
notes | grep -q nvtx_injection_taken || fail "a taken NVTX_INJECTION64_PATH must be noted: $(notes)"

# --- products asked of cuBLAS: as row-major memory sees them, and one where cuBLAS asks cuBLASLt
products='dgemm_of_cublas gemm B=6,M=128,N=96,K=64 f64 10
matmul_of_cublaslt gemm M=512,N=384,K=256 bf16 5
matmul_of_cublaslt gemm M=512,N=384,K=256 f8e4m3 5
sgemm_of_cublas gemm M=20,N=30,K=10 f32 5'
expect_exit 0 purlin profile --gemm-shapes -o a.plprof -- "$client" gemm 5
is "products" "$(rows a.plprof)" "$products"
expect_json report.json "all(k['flops'] > 0 for k in d['kernels'])"
expect_exit 0 purlin profile --gemm-shapes --ops off --seal-period 20ms -o a.plprof -- "$client" loaded 5
is "products of a cuBLAS that came late" "$(rows a.plprof | grep -v before)" "$products"
expect_exit 0 purlin profile --gemm-shapes --ops off -o a.plprof -- "$client" mistaken 5
is "a product without descriptors is cuBLASLt's to refuse" "$(rows a.plprof | cut -d' ' -f1,5)" "matmul_of_cublaslt 5"
expect_exit 0 purlin profile -o a.plprof -- "$client" gemm 5
is "without --gemm-shapes" "$(rows a.plprof | cut -d' ' -f2 | sort -u)" "-"
expect_exit 0 purlin profile --ops on --gemm-shapes -o a.plprof -- "$client" both 5
is "a product inside an op" "$(rows a.plprof)" "matmul_of_cublaslt aten::mm M=512,N=384,K=256 bf16 5"

# --- a timeline: ops, calls, and a link from each call to its work
expect_exit 0 purlin profile --full --ops on --gemm-shapes -o full.plprof -- "$client" step 20
is "rows of a timeline" "$(rows full.plprof)" "${step//100/20}"
expect_exit 0 purlin export full.plprof --format chrome -o full.json
expect_json full.json "sum(e['ph'] == 's' for e in d['traceEvents']) == 80"
expect_json full.json "sum(e['ph'] == 'f' for e in d['traceEvents']) == 80"
expect_json full.json "sorted({e['name'] for e in d['traceEvents'] if e.get('cat') == 'cpu_op'}) == ['aten::addmm', 'aten::linear']"
expect_json full.json "sum(e.get('cat') == 'cuda_runtime' for e in d['traceEvents']) == 80"
# An arrow goes from a call to what began later, and calls lie within their ops.
cat >arrows.py <<'PY'
import json
events = json.load(open("full.json"))["traceEvents"]
ends = {e["id"]: e for e in events if e["ph"] == "f"}
begins = [e for e in events if e["ph"] == "s"]
assert all(b["ts"] <= ends[b["id"]]["ts"] for b in begins)
ops = [e for e in events if e.get("name") == "aten::addmm"]
calls = [e for e in events if e.get("cat") == "cuda_runtime"]
inside = lambda c: any(o["tid"] == c["tid"] and o["ts"] <= c["ts"] and c["ts"] + c["dur"] <= o["ts"] + o["dur"] for o in ops)
assert sum(map(inside, calls)) == 20, sum(map(inside, calls))
PY
python3 arrows.py || fail "arrows from calls to their work"
expect_exit 0 purlin export full.plprof --format perfetto -o full.perfetto
expect_contains err "80 links from calls to their work"
expect_exit 0 purlin profile --full --ops on --gemm-shapes -o full.plprof -- "$client" gemm 2
expect_exit 0 purlin export full.plprof --format chrome -o full.json
expect_json full.json "'cublasLtMatmul, layout = nt, ld = 256,256,384, out = bf16, compute = f32, epilogue = gelu_bias' in {e['name'] for e in d['traceEvents']}"
echo "ops: ok"
