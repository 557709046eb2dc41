#!/usr/bin/env bash
# `purlin init`: a spec from a kernel's source, read and tuned without an edit.
# labels: opencl tune
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$tmp"

# --- OpenCL C: the draft is tuned as it is
cat >saxpy.cl <<'END'
// y = a * x + y
#ifndef PER_THREAD
#define PER_THREAD 1  // elements of a thread
#endif
__kernel void saxpy(const int n, const float a, __global const float* restrict x, __global float* y) {
  const int first = get_global_id(0) * PER_THREAD;
  for (int i = first; i < first + PER_THREAD; ++i)
    if (i < n) y[i] = a * x[i] + y[i];
}
END
expect_exit 0 purlin init saxpy.cl
expect_contains out "saxpy.toml" "4 arguments" "2 parameters" "next: purlin tune saxpy.toml"
expect_contains saxpy.toml "ceil_div(n, BLOCK * PER_THREAD)" 'role = "inout"' 'role = "input"' 'config = "default"' "check:"
sed -i 's/^n = .*/n = 4096/' saxpy.toml
expect_exit 0 purlin tune saxpy.toml --device opencl:0 --budget 6 --finals 2 --json
expect_json out "d['schema'] == 'purlin.tune/1' or d['best']"
expect_exit 0 purlin cache get saxpy.toml --device opencl:0
expect_contains out "next: purlin cache verify saxpy.toml"
cp saxpy.toml before.toml
expect_exit 2 purlin init saxpy.cl
expect_contains err "exists and is not overwritten"
cmp -s saxpy.toml before.toml || fail "a spec was overwritten"

# --- every sample kernel that one signature describes can be drafted; dimensions are those of the arguments
for kernel in elementwise transpose stencil softmax layernorm reduction; do
  source=$(ls "$PURLIN_SOURCE/kernels/$kernel"/*.cl | grep -v reference | head -1)
  expect_exit 0 purlin init "$source" -o "$kernel.toml"
  expect_exit 0 purlin space "$kernel.toml" --device opencl:0
done

# --- several kernels in a file; what a spec cannot pass; other files
cat >two.cl <<'END'
/* __kernel void commented(__global float* out) {} */
__kernel void declared(__global float* out);
kernel void first(global float* out, uint rows, uint cols) {
  size_t r = get_global_id(1), c = get_global_id(0);
  if (r >= rows || c >= cols) return;
  out[r * cols + c] = 1.0f;
}
__kernel __attribute__((reqd_work_group_size(TILE, 1, 1)))
void second(__global const uchar4* in, __global int* sum, __local int* scratch) {
  atomic_add(&sum[0], in[get_global_id(0)].x);
}
END
expect_exit 2 purlin init two.cl
expect_contains err "several kernels" "--kernel first, --kernel second"
expect_exit 2 purlin init two.cl --kernel third
expect_contains err "it has first, second"
expect_exit 2 purlin init two.cl --kernel second
expect_contains err "local memory"
[ ! -e second.toml ] || fail "a spec was written for a kernel that none can describe"
expect_exit 0 purlin init two.cl --kernel first
sed -i 's/^rows = .*/rows = 16/; s/^cols = .*/cols = 32/' first.toml
expect_exit 0 purlin tune first.toml --device opencl:0 --budget 3 --finals 1 --no-store
expect_contains out "next: "
echo 'int main() {}' >none.cl
expect_exit 2 purlin init none.cl
expect_contains err "has no kernel"
expect_exit 2 purlin init saxpy.toml
expect_contains err ".cl (OpenCL C)"
expect_exit 2 purlin init absent.cl

# --- CUDA C++ and Triton: read without their tools
cat >scan.cu <<'END'
namespace ops {
template <typename T, int BLOCK = 256, int ITEMS = 4>
__global__ void __launch_bounds__(BLOCK) scale(const T* __restrict__ in, T* __restrict__ out, unsigned long long count) {
  const size_t i = blockIdx.x * blockDim.x * ITEMS + threadIdx.x;
  if (i < count) out[i] = in[i];
}
}  // namespace ops
END
expect_exit 0 purlin init scan.cu
expect_contains scale.toml 'entry = "ops::scale<float, BLOCK, ITEMS>"' "[kernel.cuda]" 'dtype = "u64"' "ceil_div(count, BLOCK * ITEMS)"
cat >matmul.py <<'END'
import triton
import triton.language as tl

@triton.autotune(configs=[
    triton.Config({'BLOCK_M': 128, 'BLOCK_N': 64, 'BLOCK_K': 32}, num_stages=3, num_warps=8),
    triton.Config({'BLOCK_M': 64, 'BLOCK_N': 64, 'BLOCK_K': 32}, num_stages=4, num_warps=4),
], key=['M', 'N', 'K'])
@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, BLOCK_M: tl.constexpr,
           BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """C = A @ B"""
    pid = tl.program_id(axis=0)
    offs = pid * BLOCK_M + tl.arange(0, BLOCK_M)
    a_ptrs = a_ptr + offs[:, None] * stride_am
    acc = tl.load(a_ptrs, mask=offs < M) + tl.load(b_ptr + offs)
    tl.store(c_ptr + offs, acc)
END
expect_exit 0 purlin init matmul.py
expect_contains matmul.toml "[kernel.triton]" "BLOCK_M = {values = [128, 64], default = 128}" "num_warps = {values = [8, 4], default = 8}" '"num_warps * 32"' 'shape = ["M", "K"]'
expect_exit 0 purlin space matmul.toml
expect_exit 2 purlin tune matmul.toml --device opencl:0 --budget 1
expect_contains err "@purlin.autotune"

# --- a source in place of a spec names the way
for verb in tune space "cache get"; do
  expect_exit 2 purlin $verb saxpy.cl
  expect_contains err "purlin init saxpy.cl"
done
echo "init: ok"
