// SPDX-License-Identifier: Apache-2.0
#include "analyze/kernel_name/kernel_name.h"

#include "base/files.h"
#include "base/text.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace purlin::analyze {
namespace {

constexpr std::string_view kHeader =
    "name,brief,family,op_class,dtype,tile,stages,layout,arch,tensor,split_k";

std::string field(std::string_view text) {
  if (text.find_first_of(",\"") == std::string_view::npos) return std::string(text);
  std::string out = "\"";
  for (char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

// The recorded name is the first field of its line.
std::string first_field(const std::string& line) {
  if (line[0] != '"') return line.substr(0, line.find(','));
  std::string out;
  for (std::size_t at = 1; at < line.size(); ++at) {
    if (line[at] == '"' && (at + 1 == line.size() || line[++at] != '"')) break;
    out += line[at];
  }
  return out;
}

std::string line_of(const std::string& recorded) {
  const KernelName name = describe_kernel(recorded);
  const std::string stages = name.stages > 0 ? std::to_string(name.stages) : "";
  const std::vector<std::string> rest = {std::string(name.family),
                                         std::string(name.op_class),
                                         std::string(name.dtype),
                                         name.tile,
                                         stages,
                                         name.layout,
                                         name.arch,
                                         std::string(to_text(name.tensor)),
                                         name.split_k ? "yes" : ""};
  std::string out = field(recorded) + "," + field(name.brief);
  for (const std::string& each : rest) out += "," + each;
  return out;
}

// tests/data/kernel_names.csv: what every name must be read as. PURLIN_UPDATE_GOLDEN=1 writes what
// they are read as now; review the difference.
TEST(KernelName, RealNamesAreReadAndClassified) {
  const std::string path = join_path(PURLIN_SOURCE_DIR, "tests/data/kernel_names.csv");
  const auto table = read_file(path);
  ASSERT_TRUE(table.is_ok());
  std::string written;
  int checked = 0;
  for (const std::string& line : split(*table, '\n')) {
    if (line.empty() || line[0] == '#' || line == kHeader) {
      if (!line.empty()) written += line + "\n";
      continue;
    }
    const std::string now = line_of(first_field(line));
    EXPECT_EQ(now, line);
    written += now + "\n";
    ++checked;
  }
  EXPECT_GE(checked, 240);
  if (std::getenv("PURLIN_UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(write_atomic(path, written).is_ok());
  }
}

TEST(KernelName, LibraryNamesFitAReportOf100Columns) {
  for (const char* name :
       {"nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_bias_TNT",
        "void "
        "cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x128_32x5_nn_align8>"
        "(int)",
        "sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize192x128x32_stage3_warpsize4x2x1_"
        "tensor16x8x16_"
        "kernel"})
    EXPECT_LE(describe_kernel(name).brief.size(), 40u) << name;
}

TEST(KernelName, MangledNamesAreDemangled) {
  const KernelName name = describe_kernel("_Z6reduceILi4EfEvPT0_");
  EXPECT_EQ(name.full, "void reduce<4, float>(float*)");
  EXPECT_EQ(name.brief, "reduce");
  EXPECT_EQ(name.arguments, "4, float");
}

TEST(KernelName, ElementTypesOfEveryVendorsSpelling) {
  const auto type = [](const std::string& name) {
    return std::string(describe_kernel("void k<" + name + ">(" + name + "*, float)").dtype);
  };
  for (const char* bf16 : {"__nv_bfloat16", "__hip_bfloat16", "hip_bfloat16", "rocblas_bfloat16",
                           "c10::BFloat16", "__nv_bfloat162", "__hip_bfloat162"})
    EXPECT_EQ(type(bf16), "bf16") << bf16;
  for (const char* f16 : {"__half", "__half2", "half2", "rocblas_half", "c10::Half", "_Float16"})
    EXPECT_EQ(type(f16), "f16") << f16;
  for (const char* f8 : {"__nv_fp8_e4m3", "__hip_fp8_e4m3", "__hip_fp8_e4m3_fnuz",
                         "c10::Float8_e4m3fn", "c10::Float8_e4m3fnuz"})
    EXPECT_EQ(type(f8), "f8e4m3") << f8;
  EXPECT_EQ(type("__hip_fp8_e5m2_fnuz"), "f8e5m2");
  EXPECT_EQ(type("thrust::complex<float>"), "c64");
  EXPECT_EQ(type("cuda::std::complex<double>"), "c128");
  EXPECT_EQ(type("float4"), "f32");
  EXPECT_EQ(type("double2"), "f64");
  EXPECT_EQ(type("uint4"), "");           // 16 bytes of anything
  EXPECT_EQ(type("unsigned short"), "");  // f16 or bf16
  // The scales at the end are of f32, the cache is not.
  EXPECT_EQ(describe_kernel("void vllm::reshape_and_cache_flash_kernel<__hip_bfloat16, "
                            "__hip_bfloat16, (vllm::Fp8KVCacheDataType)0>(__hip_bfloat16 const*, "
                            "__hip_bfloat16*, long const*, float const*)")
                .dtype,
            "bf16");
}

TEST(KernelName, ElementTypesInNamesWithoutParameters) {
  const auto type = [](std::string_view name) { return std::string(describe_kernel(name).dtype); };
  EXPECT_EQ(type("scale_kernel_f16"), "f16");
  EXPECT_EQ(type("_fwd_kernel_stage1_bf16"), "bf16");
  EXPECT_EQ(type("_w8a8_block_fp8_matmul"), "f8e4m3");
  EXPECT_EQ(type("convert_f32_to_f16"), "");  // of both
  EXPECT_EQ(type("qk_int8_sv_f16_accum_f32_attn_inst_buf"), "i8");
  EXPECT_EQ(type("_sum_bitmatrix_rows"), "i32");
  EXPECT_EQ(type("kernel_unified_attention_3d"), "");  // the name does not tell
  EXPECT_EQ(type("ncclSymDevKernel_AllReduce_AGxLL_R_sum_bf16"), "bf16");
  EXPECT_EQ(type("kernel_cutlass_kernel_flash_attncuteflash_fwd_sm100FlashAttentionForwardSm100_"
                 "object_at__tensorptrbf16gmemalign16odiv8i64"),
            "bf16");
}

TEST(KernelName, ClassesOfServingLibraries) {
  const auto group = [](std::string_view name) {
    return std::string(describe_kernel(name).op_class);
  };
  EXPECT_EQ(group("void flashinfer::BatchDecodeWithPagedKVCacheKernel<__nv_bfloat16>(int)"),
            "attention");
  EXPECT_EQ(group("chunk_gated_delta_rule_fwd_kernel_h_blockdim64"), "attention");
  EXPECT_EQ(group("triton_mm_persistent"), "gemm");
  EXPECT_EQ(group("triton_poi_fused_addmm_relu_1"), "elementwise");
}

TEST(KernelName, RegionsKeepTheirFunctionInEveryBuild) {
  const auto outlined = [](std::string_view name) { return describe_kernel(name).outlined; };
  EXPECT_EQ(outlined("__omp_offloading_32_2f3c6__QMnorm_modPnorm_l26"), "norm_mod::norm");
  EXPECT_EQ(outlined("__omp_offloading_30_57b9f__QMnorm_modPnorm_l23"), "norm_mod::norm");
  EXPECT_EQ(outlined("__omp_offloading_10_2a__QQmain_l8"), "main");
  EXPECT_EQ(outlined("__omp_offloading_10_2a_solve_lower_l8_debug__"), "solve_lower");
  EXPECT_EQ(outlined("__omp_offloading_10_2a___norm_mod_MOD_norm_l8"), "norm_mod::norm");
  EXPECT_EQ(outlined("nvkernel_solve_F1L204_2"), "solve");
  EXPECT_EQ(outlined("nvkernel_solve_F1L210_2"), "solve");
  EXPECT_EQ(outlined("nvkernel__ZN1a4stepEv_F12L7_4"), "a::step");
  for (const char* other :
       {"__omp_offloading_", "__omp_offloading_32_x", "nvkernel_solve", "nvkernel_F1L2_3", "_gpu",
        "7_gpu", "saxpy", "__omp_offloading_1_2__l3"})
    EXPECT_EQ(outlined(other), "") << other;
}

TEST(KernelName, CutSymbolsKeepTheirName) {
  const std::string whole =
      "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEEEEvi";
  EXPECT_EQ(describe_kernel(whole.substr(0, 50)).brief, "vectorized_elementwise_kernel");
  for (std::size_t cut = 0; cut <= whole.size(); ++cut)
    EXPECT_FALSE(describe_kernel(whole.substr(0, cut) + "x").brief.empty());
}

std::vector<std::string> labels(const std::vector<std::string>& recorded) {
  std::vector<KernelName> names;
  for (const std::string& each : recorded) names.push_back(describe_kernel(each));
  std::vector<const KernelName*> pointers;
  for (const KernelName& name : names) pointers.push_back(&name);
  return tell_apart(pointers);
}

TEST(KernelName, NamesakesAreToldApartByWhatDiffers) {
  using Labels = std::vector<std::string>;
  EXPECT_EQ(labels({"void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, "
                    "float, false>(int)",
                    "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<"
                    "c10::BFloat16, float, false>(int)"}),
            (Labels{"vectorized_layer_norm_kernel<float>", "vectorized_layer_norm_kernel<bf16>"}));
  EXPECT_EQ(labels({"void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, "
                    "at::native::MeanOps<float, float>, unsigned int, float, 4> >(int)",
                    "void at::native::reduce_kernel<128, 4, at::native::ReduceOp<float, "
                    "at::native::MeanOps<float, float>, unsigned int, float, 4> >(int)"}),
            (Labels{"reduce mean<float> <512, 1>", "reduce mean<float> <128, 4>"}));
  EXPECT_EQ(labels({"void at::native::vectorized_elementwise_kernel<4, at::native::BinaryFunctor<"
                    "float, float, float, at::native::MulFunctor<float> >, int>(int)",
                    "void at::native::vectorized_elementwise_kernel<4, at::native::AUnaryFunctor<"
                    "float, float, float, at::native::MulFunctor<float> >, int>(int)"}),
            (Labels{"vectorized_elementwise mul<float> <BinaryFunctor>",
                    "vectorized_elementwise mul<float> <AUnaryFunctor>"}));
  // Library kernels by the properties their brief names leave out.
  EXPECT_EQ(
      labels({"nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_TNT",
              "nvjet_sm90_tst_256x128_64x4_2x1_v_bz_coopA_bias_TNT"}),
      (Labels{"nvjet bf16 256x128x64 TNT <1x2, h>", "nvjet bf16 256x128x64 TNT <2x1, v, bias>"}));
  EXPECT_EQ(labels({"f<(Kind)1>(int)", "f<(Kind)2>(int)", "f(int)"}),
            (Labels{"f<1>", "f<2>", "f"}));
  EXPECT_EQ(labels({"g(int)", "g(float)"}), (Labels{"g", "g #2"}));
  EXPECT_EQ(labels({"<,>", "<", ""}).size(), 3u);
}

TEST(KernelName, StrangeNamesStayReadable) {
  for (const char* odd : {"",
                          "(",
                          "<",
                          ">",
                          "a<b",
                          "a(b",
                          "::",
                          "void ",
                          "f<>()",
                          "_Z",
                          "a->b",
                          "operator()",
                          "x<(anonymous namespace)::y>",
                          "{lambda()#1}",
                          "nvjet_",
                          "nvjet____",
                          "_",
                          "__",
                          "sm80_xmma_",
                          "Cijk_Alik_Bljk_",
                          "cutlass_gemm",
                          "bmm_E4m3__Fp32_t",
                          "igemm_",
                          "fmha_cutlassF_f16",
                          "cudnn_sdpa",
                          "elementwise_kernel<,add<,>>",
                          "reduce_kernel<ReduceOp<,>>",
                          "f<",
                          "flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128,",
                          "cutlass::device_kernel<Collective"
                          "Mma<,,>>",
                          "deep_gemm::fp8_gemm_kernel<,,,,>",
                          "ck::k<>",
                          "void elementwise_kernel<,>(",
                          "elementwise_kernel<gpu_kernel_impl<>>",
                          "reduce_kernel<func<{lambda(>"})
    EXPECT_EQ(describe_kernel(odd).brief.empty(), std::string_view(odd).empty()) << odd;
  // Nesting without end neither overflows the stack nor takes forever.
  std::string deep = "elementwise_kernel<";
  for (int i = 0; i < 20000; ++i) deep += "gpu_kernel_impl<";
  EXPECT_FALSE(describe_kernel(deep).brief.empty());
}

}  // namespace
}  // namespace purlin::analyze
