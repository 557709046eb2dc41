// SPDX-License-Identifier: Apache-2.0
#include "analyze/roofline/work.h"

#include <gtest/gtest.h>

#include <string>

namespace purlin::analyze {
namespace {

Problem problem(std::string_view op_class, std::string_view shape, std::string_view dtype) {
  Problem out;
  out.op_class = op_class;
  out.dimensions = dimensions_from_text(shape);
  out.dtype = dtype;
  EXPECT_FALSE(out.empty()) << shape;
  return out;
}

KernelRow worked_row(const char* name, const char* op, const char* shape, const char* dtype) {
  KernelRow out;
  out.name = name;
  out.op = op;
  out.shape = shape;
  out.dtype = dtype;
  return out;
}

Work of_row(const KernelRow& r) { return work_of_kernel(r, describe_kernel(r.name)); }

constexpr char kAlexNetConv1[] =
    "N=128,C=3,H=224,W=224,K=64,R=11,S=11,P=55,Q=55,stride=4,padding=2";

TEST(Work, Gemm) {
  const Work work = work_of(problem("gemm", "M=4096,N=4096,K=1024", "bf16"));
  EXPECT_DOUBLE_EQ(*work.flops, 2.0 * 4096 * 4096 * 1024);
  EXPECT_DOUBLE_EQ(*work.bytes, 2.0 * (2 * 4096 * 1024 + 4096 * 4096));
  EXPECT_DOUBLE_EQ(*work_of(problem("gemm", "B=8,M=2,N=3,K=4", "f32")).flops, 8 * 48);
  // Sizes of another element type are in the shape.
  EXPECT_DOUBLE_EQ(*work_of(problem("gemm", "M=64,N=16,K=32,write=2048", "f8e4m3")).bytes,
                   64 * 32 + 32 * 16 + 2048);
}

TEST(Work, AlexNetsFirstConvolution) {
  const Work work = work_of(problem("conv", kAlexNetConv1, "f32"));
  EXPECT_NEAR(*work.flops / 1e9, 17.99, 0.005);
  EXPECT_DOUBLE_EQ(*work.bytes, 4.0 * (128 * 3 * 224 * 224 + 64 * 3 * 121 + 128.0 * 64 * 55 * 55));
}

TEST(Work, ConvolutionGradientsTakeAsMuchEach) {
  const std::string shape = "N=32,C=64,H=56,W=56,K=64,R=3,S=3,P=56,Q=56";
  const double forward = *work_of(problem("conv", shape, "f16")).flops;
  EXPECT_DOUBLE_EQ(*work_of(problem("conv", shape + ",gradients=2", "f16")).flops, 2 * forward);
  EXPECT_DOUBLE_EQ(*work_of(problem("conv", shape + ",groups=64", "f16")).flops, forward / 64);
  // One kernel makes one of them.
  EXPECT_DOUBLE_EQ(
      *of_row(worked_row("void cudnn::cnn::wgrad_alg0_engine<float>(int)",
                         "aten::convolution_backward", (shape + ",gradients=2").c_str(), "f32"))
           .flops,
      forward);
}

TEST(Work, Attention) {
  const std::string shape = "B=2,H=16,Sq=2048,Sk=2048,D=64";
  const double full = 4.0 * 2 * 16 * 2048 * 2048 * 64;
  EXPECT_DOUBLE_EQ(*work_of(problem("attention", shape, "bf16")).flops, full);
  EXPECT_DOUBLE_EQ(*work_of(problem("attention", shape + ",causal=1", "bf16")).flops, full / 2);
  EXPECT_DOUBLE_EQ(*work_of(problem("attention", shape + ",backward=1", "bf16")).flops, 2.5 * full);
  const double tensor = 2.0 * 2 * 2048 * 16 * 64, statistics = 4.0 * 2 * 2048 * 16;
  EXPECT_DOUBLE_EQ(*work_of(problem("attention", shape, "bf16")).bytes, 4 * tensor + statistics);
  // Grouped heads: fewer keys and values are read.
  EXPECT_DOUBLE_EQ(*work_of(problem("attention", shape + ",Hk=4", "bf16")).bytes,
                   2.5 * tensor + statistics);
  // Lengths of packed sequences are not known, and with them the FLOPs.
  const Work packed = work_of(problem("attention", "B=4,H=16,Tq=8192,Tk=8192,D=64", "bf16"));
  EXPECT_FALSE(packed.flops);
  EXPECT_TRUE(packed.bytes);
}

TEST(Work, RowsAndElements) {
  EXPECT_DOUBLE_EQ(*work_of(problem("norm", "rows=8,cols=1024,params=2048", "bf16")).flops,
                   8 * 8192);
  EXPECT_DOUBLE_EQ(*work_of(problem("norm", "rows=8,cols=1024,params=2048", "bf16")).bytes,
                   2 * 2 * 8192 + 4096);
  EXPECT_DOUBLE_EQ(*work_of(problem("norm", "rows=8,cols=1024,rms=1", "bf16")).flops, 5 * 8192);
  EXPECT_DOUBLE_EQ(*work_of(problem("softmax", "rows=8,cols=1024", "f32")).flops, 5 * 8192);
  EXPECT_DOUBLE_EQ(*work_of(problem("softmax", "rows=8,cols=1024", "f32")).bytes, 8 * 8192);
  EXPECT_DOUBLE_EQ(*work_of(problem("elementwise", "n=1000,inputs=2", "f32")).bytes, 12'000);
  // A broadcast input is read once.
  EXPECT_DOUBLE_EQ(*work_of(problem("elementwise", "n=1000,inputs=2,in=1010", "f32")).bytes, 8'040);
  EXPECT_DOUBLE_EQ(*work_of(problem("copy", "n=1000,inputs=1,write=2000", "f32")).bytes, 6'000);
  EXPECT_DOUBLE_EQ(*work_of(problem("copy", "n=1000,inputs=1", "f32")).flops, 0);
  EXPECT_DOUBLE_EQ(*work_of(problem("reduction", "n=1000,out=10", "f32")).bytes, 4'040);
  EXPECT_FALSE(work_of(problem("reduction", "n=1000", "f32")).bytes);
}

TEST(Work, AdamMovesTwentyEightBytesForEachParameter) {
  const Work work = work_of(problem("optimizer", "n=1000,inputs=4,outputs=3,tensors=7", "f32"));
  EXPECT_DOUBLE_EQ(*work.bytes, 28'000);
  EXPECT_DOUBLE_EQ(*work.flops, 12'000);
}

TEST(Work, EmbeddingFetchesWholeSectors) {
  const Work work = work_of(problem("embedding", "indices=100,cols=10,rows=50000", "f32"));
  EXPECT_DOUBLE_EQ(*work.bytes, 100 * 8 + 100 * 64 + 100 * 40);  // 40 B a row: two sectors
  // No more than the whole table.
  EXPECT_DOUBLE_EQ(*work_of(problem("embedding", "indices=1000,cols=8,rows=10", "f32")).bytes,
                   8'000 + 320 + 32'000);
}

TEST(Work, CollectivesMoveBusBytes) {
  const Problem p = problem("communication", "in=1000,out=1000,ranks=8", "f32");
  EXPECT_DOUBLE_EQ(*work_of(p, "nccl:all_reduce").bus_bytes, 2 * 7.0 / 8 * 4000);
  EXPECT_DOUBLE_EQ(*work_of(p, "nccl:broadcast").bus_bytes, 4000);
  EXPECT_FALSE(work_of(p, "").bus_bytes);  // which one is not known
  const Problem gather = problem("communication", "in=1000,out=8000,ranks=8", "f32");
  EXPECT_DOUBLE_EQ(*work_of(gather, "nccl:_all_gather_base").bus_bytes, 7.0 / 8 * 32'000);
  EXPECT_FALSE(work_of(p, "nccl:all_reduce").bytes);  // DRAM traffic is the library's business
}

TEST(Work, UnknownTypesHaveFlopsButNoBytes) {
  const Work work = work_of(problem("gemm", "M=8,N=8,K=8", ""));
  EXPECT_TRUE(work.flops);
  EXPECT_FALSE(work.bytes);
  EXPECT_FALSE(work_of(problem("other", "n=5", "f32")).flops);
  EXPECT_FALSE(work_of(problem("gemm", "M=8,N=8", "f32")).flops);
  EXPECT_DOUBLE_EQ(*work_of(problem("gemm", "M=-8,N=8,K=8", "f32")).flops, 0);
}

TEST(Work, AFusionOfXlaHasTheWorkOfItsShape) {
  // Its name says what it ends with: a reduction is a part of this softmax.
  const Work work = of_row(worked_row("input_reduce_fusion_7", "jit(step)/exp",
                                      "n=1024,out=1024,read=4096,write=2048", "f32"));
  EXPECT_DOUBLE_EQ(*work.bytes, 4096 + 2048);
  EXPECT_DOUBLE_EQ(*of_row(worked_row("gemm_fusion_dot_3", "jit(step)/dot_general",
                                      "M=64,N=16,K=32,read=5120,write=2048", "bf16"))
                        .flops,
                   2.0 * 64 * 16 * 32);
  EXPECT_FALSE(of_row(worked_row("sum_kernel_reduce", "jit(step)/exp", "n=1024", "f32")).flops);
}

TEST(Work, OnlyTheKernelThatDoesItGetsTheOpsWork) {
  const auto flops = [](const char* name, const char* op, const char* shape, const char* dtype) {
    return of_row(worked_row(name, op, shape, dtype)).flops.value_or(-1);
  };
  EXPECT_EQ(flops("nvjet_hsh_128x256_64x4_2x1_v_bz_TNT", "aten::mm", "M=8,N=8,K=8", "bf16"), 1024);
  EXPECT_EQ(flops("void cublasLt::splitKreduce_kernel<32, 16>(float*)", "aten::mm", "M=8,N=8,K=8",
                  "bf16"),
            -1);
  EXPECT_EQ(flops("void cudnn::ops::nchwToNhwcKernel<__half, __half>(int)",
                  "aten::cudnn_convolution", kAlexNetConv1, "f16"),
            -1);
  EXPECT_EQ(flops("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>"
                  ", std::array<char*, 1ul> >(int)",
                  "aten::mm", "M=8,N=8,K=8", "bf16"),
            -1);
  EXPECT_EQ(flops("my_kernel", "aten::mm", "M=8,N=8,K=8", "bf16"), 1024);  // a custom one may
}

TEST(Work, ATransformPassesOverItsPointsOnceForEachFactor) {
  const Work all = work_of(problem("fft", "B=64,n=4096", "c64"));
  EXPECT_DOUBLE_EQ(*all.flops, 5.0 * 64 * 4096 * 12);
  EXPECT_DOUBLE_EQ(*all.bytes, 16.0 * 64 * 4096);
  // Of real numbers: half of both, whichever side is real.
  for (const char* dtype : {"f32", "c64"}) {
    const Work real = work_of(problem("fft", "B=64,n=4096,real=1", dtype));
    EXPECT_DOUBLE_EQ(*real.flops, 2.5 * 64 * 4096 * 12);
    EXPECT_DOUBLE_EQ(*real.bytes, 8.0 * 64 * 4096);
  }
  // One launch of two, and what only packs.
  const auto of = [](const char* name) {
    return of_row(worked_row(name, "aten::_fft_c2c", "B=64,n=4096", "c64"));
  };
  EXPECT_DOUBLE_EQ(*of("void vector_fft<4096u, EPT<16u>>()").flops, *all.flops);
  EXPECT_DOUBLE_EQ(*of("void regular_fft_factor<64u, EPT<8u>>()").flops, *all.flops / 2);
  EXPECT_DOUBLE_EQ(*of("void regular_fft_factor<64u, EPT<8u>>()").bytes, *all.bytes);
  EXPECT_DOUBLE_EQ(*of("fft_rtc_fwd_len64_factors_8_8_wgs_64_sp_ip_CI").flops, *all.flops / 2);
  EXPECT_DOUBLE_EQ(*of("void preprocess_kernel<float, (loadstore_modifier_t)2>()").flops, 0);
  EXPECT_DOUBLE_EQ(*of("void regular_fft<99999999999999999999u>()").flops, *all.flops);
  EXPECT_DOUBLE_EQ(*of("void vector_fft_symm_r2c<4096u, EPT<16u>>()").flops, *all.flops);
  // A kernel that names no factor: only what it moves is known.
  EXPECT_FALSE(of("VkFFT_main").flops.has_value());
  EXPECT_DOUBLE_EQ(*of("VkFFT_main").bytes, *all.bytes);
  // Real points of an odd length pass as complex ones.
  const auto odd = [](const char* name) {
    return *of_row(worked_row(name, "aten::_fft_r2c", "B=2,n=1001,real=1", "f32")).bytes;
  };
  EXPECT_DOUBLE_EQ(odd("void multi_bluestein_fft<25u, EPT<5u>>()"), 16.0 * 2 * 1001);
  EXPECT_DOUBLE_EQ(odd("void vector_fft_r2c<1001u, EPT<5u>>()"), 8.0 * 2 * 1001);
  EXPECT_FALSE(of_row(worked_row("my_kernel", "aten::_fft_c2c", "B=64", "c64")).bytes);
}

TEST(Work, BytesOfKernelsThatNameTheSizeOfAnElement) {
  const auto of = [](const char* type) {
    const std::string name = std::string("void at::native::CatArrayBatchedCopy<") + type + ">(int)";
    return of_row(worked_row(name.c_str(), "aten::cat", "n=1000,inputs=1", "")).bytes;
  };
  EXPECT_EQ(of("at::native::OpaqueType<2u>, unsigned int, 3"), 4000);
  EXPECT_EQ(of("at::native::OpaqueType<16>, unsigned int, 3"), 32000);
  EXPECT_FALSE(of("at::native::OpaqueType<3u>").has_value());
}

TEST(Work, AVarianceIsAReductionWhoseKernelIsNamedAsANorm) {
  const KernelRow row = worked_row(
      "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, "
      "at::native::WelfordOps<float, float, int, thrust::pair<float, float> > > >(int)",
      "aten::var", "n=1000,out=10", "f32");
  EXPECT_EQ(describe_kernel(row.name).op_class, "norm");
  EXPECT_EQ(of_row(row).bytes, 4 * 1010);
}

}  // namespace
}  // namespace purlin::analyze
