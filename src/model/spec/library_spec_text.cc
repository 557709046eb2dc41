// SPDX-License-Identifier: Apache-2.0
// The rest of the spec that a [library] represents: the operands of row-major matrices, and a plain
// CUDA kernel that computes the expected result. The reference uses no header, so that it compiles
// where only NVRTC is installed.
#include "base/replace.h"
#include "base/text.h"
#include "model/spec/library_operation.h"

namespace purlin {
namespace {

constexpr const char* kReference = R"cuda(
typedef unsigned char u8;
typedef unsigned short u16;

__device__ float from_f16(u16 x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
  return y;
}
__device__ u16 to_f16(float x) {
  u16 y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
}
__device__ float from_bf16(u16 x) { return __uint_as_float((unsigned)x << 16); }
__device__ u16 to_bf16(float x) {
  unsigned bits = __float_as_uint(x);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return 0x7FFF;
  return (u16)((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}
// An 8-bit real of MANTISSA bits of fraction; ours never hold a NaN or an infinity.
template <int MANTISSA>
__device__ float from_f8(u8 x) {
  const int bias = MANTISSA == 3 ? 7 : 15;
  const int exponent = (x & 0x7F) >> MANTISSA, fraction = x & ((1 << MANTISSA) - 1);
  const float size = exponent == 0 ? ldexpf((float)fraction, 1 - bias - MANTISSA)
                                   : ldexpf((float)(fraction + (1 << MANTISSA)),
                                            exponent - bias - MANTISSA);
  return x & 0x80 ? -size : size;
}
@TYPES@
__device__ SUM finish(SUM x) {
@FINISH@
  return x;
}

// A tile of 64 x 64 of D for 256 threads, 4 x 4 each.
extern "C" __global__ void library_reference(const A_T* a, const B_T* b, @BIAS_PARAMETER@ D_T* d,
                                             long long M, long long N, long long K,
                                             long long BATCH) {
  __shared__ SUM as[16][65], bs[16][65];
  const int t = threadIdx.x;
  const long long row = (long long)blockIdx.y * 64, column = (long long)blockIdx.x * 64;
  a += (long long)blockIdx.z * M * K;
  b += (long long)blockIdx.z * K * N;
  d += (long long)blockIdx.z * M * N;
  SUM sum[4][4] = {};
  for (long long k = 0; k < K; k += 16) {
    for (int i = t; i < 1024; i += 256) {
      const int depth_a = @A_DEPTH@, row_a = @A_ROW@, depth_b = @B_DEPTH@, column_b = @B_COLUMN@;
      const long long m = row + row_a, n = column + column_b, ka = k + depth_a, kb = k + depth_b;
      as[depth_a][row_a] = m < M && ka < K ? LOAD_A(a[@A_INDEX@]) : (SUM)0;
      bs[depth_b][column_b] = n < N && kb < K ? LOAD_B(b[@B_INDEX@]) : (SUM)0;
    }
    __syncthreads();
    for (int l = 0; l < 16; ++l)
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j)
          sum[i][j] += as[l][(t / 16) + 16 * i] * bs[l][(t % 16) + 16 * j];
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) {
      const long long m = row + t / 16 + 16 * i, n = column + t % 16 + 16 * j;
      if (m < M && n < N) d[m * N + n] = STORE_D(finish(sum[i][j] @ADD_BIAS@));
    }
}
)cuda";

struct CudaType {
  const char *type, *load, *store;
};

CudaType cuda_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::kF16:
      return {"u16", "from_f16(x)", "to_f16(x)"};
    case Dtype::kBf16:
      return {"u16", "from_bf16(x)", "to_bf16(x)"};
    case Dtype::kF64:
      return {"double", "(x)", "(x)"};
    case Dtype::kI8:
      return {"signed char", "((int)(x))", "(x)"};
    case Dtype::kI32:
      return {"int", "(x)", "(x)"};
    case Dtype::kF8E4m3:
      return {"u8", "from_f8<3>(x)", "(x)"};
    case Dtype::kF8E5m2:
      return {"u8", "from_f8<2>(x)", "(x)"};
    default:
      return {"float", "(x)", "(x)"};
  }
}

std::string reference_of(const LibraryOperation& operation) {
  const CudaType a = cuda_type(operation.a), b = cuda_type(operation.b), d = cuda_type(operation.d);
  const char* sum = operation.a == Dtype::kI8    ? "int"
                    : operation.a == Dtype::kF64 ? "double"
                                                 : "float";
  std::string types =
      fmt::format("typedef {} A_T;\ntypedef {} B_T;\ntypedef {} D_T;\ntypedef {} SUM;\n", a.type,
                  b.type, d.type, sum);
  types += fmt::format(
      "#define LOAD_A(x) {}\n#define LOAD_B(x) {}\n#define LOAD_D(x) {}\n#define STORE_D(x) {}\n",
      a.load, b.load, d.load, d.store);
  std::string finish;
  if (starts_with(operation.epilogue, "relu")) finish = "  x = x > 0 ? x : 0;";
  if (starts_with(operation.epilogue, "gelu"))
    finish = "  x = 0.5f * x * (1.0f + tanhf(0.7978845608f * (x + 0.044715f * x * x * x)));";
  // Neighbouring threads read neighbouring elements, whichever way a matrix lies.
  std::string text = "// " + operation.text() + kReference;
  const auto put = [&](std::string_view what, std::string_view with) {
    text = replace_all(std::move(text), what, with);
  };
  put("@TYPES@", types);
  put("@FINISH@", finish);
  put("@BIAS_PARAMETER@", operation.has_bias() ? "const D_T* bias," : "");
  put("@ADD_BIAS@", operation.has_bias() ? "+ LOAD_D(bias[n])" : "");
  put("@A_DEPTH@", operation.transpose_a ? "i / 64" : "i % 16");
  put("@A_ROW@", operation.transpose_a ? "i % 64" : "i / 16");
  put("@A_INDEX@", operation.transpose_a ? "ka * M + m" : "m * K + ka");
  put("@B_DEPTH@", operation.transpose_b ? "i % 16" : "i / 64");
  put("@B_COLUMN@", operation.transpose_b ? "i / 16" : "i % 64");
  put("@B_INDEX@", operation.transpose_b ? "n * K + kb" : "kb * N + n");
  return text;
}

std::string buffer(std::string_view name, std::string_view role, std::string_view dtype,
                   std::string_view shape) {
  return fmt::format("[[arguments]]\nname = \"{}\"\nrole = \"{}\"\ndtype = \"{}\"\nshape = [{}]\n",
                     name, role, dtype, shape);
}

}  // namespace

LibrarySpecText library_spec_text(const LibraryOperation& operation) {
  const std::string batch = operation.batched ? "BATCH" : "1";
  const std::string lead = operation.batched ? "\"BATCH\", " : "";
  const auto size = [](Dtype dtype) { return size_of(dtype); };
  const bool bias = operation.has_bias();
  std::string toml = fmt::format("[kernel]\nentry = \"{}\"\n[kernel.cuda]\nfile = \"{}\"\n",
                                 operation.library, kLibraryOperationFile);
  toml += "[parameters]\n";  // their values are enumerated on the device
  for (const std::string& name : library_parameters())
    toml += fmt::format("{} = [{}]\n", name, name == "split_k" ? 1 : 0);
  toml += "[launch]\ngrid = [1]\nblock = [1]\n";
  toml += buffer("A", "input", name_of(operation.a),
                 lead + (operation.transpose_a ? "\"K\", \"M\"" : "\"M\", \"K\""));
  toml += buffer("B", "input", name_of(operation.b),
                 lead + (operation.transpose_b ? "\"N\", \"K\"" : "\"K\", \"N\""));
  if (bias) toml += buffer("bias", "input", name_of(operation.d), "\"N\"");
  toml += buffer("D", "output", name_of(operation.d), lead + "\"M\", \"N\"");
  // One byte at least: a buffer is never empty.
  toml += buffer("workspace", "scratch", "u8",
                 std::to_string(std::max<std::int64_t>(operation.workspace_bytes, 1)));
  for (const char* name : {"M", "N", "K", "BATCH"})
    toml += fmt::format(
        "[[arguments]]\nname = \"extent_{}\"\nrole = \"scalar\"\ndtype = \"i64\"\nvalue = \"{}\"\n",
        name, std::string_view(name) == "BATCH" ? batch : name);
  toml += fmt::format(
      "[reference]\nentry = \"library_reference\"\narguments = [\"A\", \"B\", {}\"D\", "
      "\"extent_M\", "
      "\"extent_N\", \"extent_K\", \"extent_BATCH\"]\n[reference.cuda]\nfile = \"{}\"\n"
      "[reference.launch]\ngrid = [\"ceil_div(N, 64)\", \"ceil_div(M, 64)\", \"{}\"]\nblock = "
      "[256]\n",
      bias ? "\"bias\", " : "", kLibraryReferenceFile, batch);
  toml += fmt::format(
      "[work]\nflops = \"2 * {0} * M * N * K\"\nbytes = \"{0} * ({1} * M * K + {2} * K * N + {3} * "
      "M * "
      "N)\"\n",
      batch, size(operation.a), size(operation.b), size(operation.d));
  return {std::move(toml), reference_of(operation)};
}

}  // namespace purlin
