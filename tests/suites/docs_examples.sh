#!/usr/bin/env bash
# Every command block of README, the first steps, the guides and the tutorials, on files of this repository.
# labels: opencl docs
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$tmp"
begin_made_up
mkdir bin sandbox
ln -s "$PURLIN" bin/purlin
ln -s "$PURLIN_BUILD/tests/opencl_loop" bin/opencl_loop
ln -s "$(dirname "$PURLIN")/../lib" lib
export PATH=$tmp/bin:$PATH JOB=1

# --- the files that the pages name
cd sandbox
data=$PURLIN_SOURCE/tests/data
ln -s "$PURLIN_SOURCE/kernels" kernels
ln -s "$PURLIN_SOURCE/tests" tests
mkdir profiles
for name in run before after monday tuesday; do
  "$PURLIN" profile --quiet -o "$name.plprof" -- opencl_loop launches 20 >/dev/null
done
"$PURLIN" profile --quiet --full -o timeline.plprof -- opencl_loop launches 20 >/dev/null
cp "$data/traces/kineto_h200_fusion_before.json.gz" trace.json.gz
cp "$data/traces/kineto_h200_fusion_before.json.gz" rank0.json.gz
cp "$data/traces/kineto_h200_fusion_after.json.gz" rank1.json.gz
cp rank0.json.gz before.json.gz
gunzip -c "$data/imports/attention_training.et.json.gz" >step.et.json
cp rank1.json.gz after.json.gz
python3 -c 'import sqlite3, sys; sqlite3.connect("report.sqlite").executescript(open(sys.argv[1]).read())' "$data/imports/nsys_2025.sql"
cp "$PURLIN_SOURCE"/kernels/gemm/gemm* .
cp "$PURLIN_SOURCE"/kernels/transpose/transpose* .
cp "$PURLIN_SOURCE"/kernels/elementwise/elementwise* .
mv elementwise.toml my_kernel.toml
cp "$data"/guard/scale* .
for name in gate suite; do
  cat >$name.toml <<'END'
schema = "purlin.suite/1"
name = "gate"
device = "opencl:0"
[thresholds]
detectable = 1.0
floor = 0.4
[measure]
max_samples = 9
budget_s = 0.05
[[items]]
spec = "scale.toml"
config = "default"
END
done
"$PURLIN" guard baseline --quiet suite.toml -o baseline >/dev/null
cp "$PURLIN_SOURCE/tests/data/spaces/convolution_milo-A100.excerpt.json.gz" gemm-A100.json.gz
cp gemm-A100.json.gz gemm-RTX_3090.json.gz
cp gemm-A100.json.gz gemm-RTX_Titan.json.gz
cp gemm-A100.json.gz old.json
cat >saxpy.cl <<'END'
__kernel void saxpy(const int n, const float a, __global const float* x, __global float* y) {
  const int i = get_global_id(0);
  if (i < n) y[i] = a * x[i] + y[i];
}
END
# A benchmark whose times are made up, at two revisions.
cat >bench <<'END'
#!/bin/sh
exec "$PURLIN_SOURCE/tests/suites/made_up" 'BEGIN {
  print "kernel,time_us,sm_clock_mhz"
  for (i = 0; i < 20; ++i) printf "steady,%.3f,1980\n", 50 * noise()
}'
END
chmod +x bench
mkdir old new
cp bench old
cp bench new
printf 'all:\n\t@true\n' >Makefile
cat >upgrade.toml <<'END'
schema = "purlin.matrix/1"
name = "upgrade"
rounds = 8
[command]
run = ["./bench"]
format = "csv"
name_column = "kernel"
time_column = "time_us"
clock_column = "sm_clock_mhz"
[[factors]]
name = "library"
kind = "compiler"
levels = [{name = "old", environment = {LIBRARY = "1"}}, {name = "new", environment = {LIBRARY = "2"}}]
END
for name in before after; do
  for process in $(seq 12); do
    ./bench | awk -F, -v p="$process" 'NR > 1 {print p "," $1 "," NR - 1 "," $2}'
  done | sed '1i process,kernel,iteration,time_us' >$name.csv
done
# Winners of other tools.
printf '{"triton_version": "3.6.0", "16": {"BLOCK_SIZE_M": 16, "num_warps": 4}}' >'E=8,N=7168,device_name=NVIDIA_H200.json'
printf 'Validator,PT_VERSION,2.11.0\nGemmTunableOp_BFloat16_TN,tn_512_256_4096_ld_4096_4096_512,Gemm_Cublas_3,0.01\n' >tunableop_results0.csv
printf '{"key": [64, 64, 64, "torch.float16"], "configs_timings": [[{"kwargs": {"BLOCK": 32}, "num_warps": 2, "num_stages": 1}, [0.5, 0.5, 0.6]]]}' >matmul.autotune.json
mkdir old-cache new-cache node1 node2
for folder in old-cache new-cache node1/configs node2/configs; do
  "$PURLIN" tune --quiet my_kernel.toml --shape small --device opencl:0 --budget 2 --finals 1 --cache "$folder" >/dev/null 2>&1
done
git init -q -b main .
git config user.email a@b
git config user.name Ada
printf 'kernels\ntests\n*.plprof\n' >.gitignore
git add -A
git commit -qm first
git tag v1.2
echo '# no change' >>Makefile
git commit -qam second
cd ..

pages=(README.md docs/getting-started.md)
for page in "$PURLIN_SOURCE"/docs/{guide,tutorials,concepts,formats}/*.md; do
  pages+=("${page#"$PURLIN_SOURCE"/}")
done
[ -z "${DOCS_PAGES:-}" ] || read -ra pages <<<"$DOCS_PAGES"  # some pages alone
python3 "$PURLIN_SOURCE/tests/suites/docs_examples.py" run "$tmp/sandbox" "${pages[@]}" || fail "a block of the documentation does not run"
echo "docs_examples: ok"
