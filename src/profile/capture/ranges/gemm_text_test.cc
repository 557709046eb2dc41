// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/ranges/gemm_text.h"

#include <gtest/gtest.h>

namespace purlin::profile::capture {
namespace {

// PyTorch's [512, 256] @ [256, 384] in bf16: cuBLAS is asked for the transposed product.
GemmFacts column_major() {
  GemmFacts facts;
  facts.entry = "cublasGemmEx";
  facts.m = 384, facts.n = 512, facts.k = 256;
  facts.lda = 384, facts.ldb = 256, facts.ldc = 384;
  facts.type_a = facts.type_b = facts.type_c = "bf16";
  facts.compute = "f32";
  return facts;
}

std::string written(const GemmFacts& facts) {
  OpText text;
  write_gemm(facts, text);
  return std::string(text.view());
}

TEST(GemmText, IsTheProductThatRowMajorMemorySees) {
  EXPECT_EQ(written(column_major()),
            "cublasGemmEx, shape = M=512,N=384,K=256, dtype = bf16, layout = nn, "
            "ld = 256,384,384, compute = f32");
  GemmFacts row = column_major();
  row.row_major = true;
  row.m = 512, row.n = 384, row.lda = 256, row.ldb = 384;
  EXPECT_EQ(written(row), written(column_major()));
}

TEST(GemmText, SaysWhatDiffers) {
  GemmFacts facts = column_major();
  facts.entry = "cublasLtMatmul";
  facts.transposed_a = true;  // a weight of [384, 256]
  facts.lda = 256;
  facts.batch = 6;
  facts.type_b = "f8e5m2", facts.type_a = "f8e4m3", facts.type_c = "bf16";
  facts.epilogue = "gelu_bias";
  EXPECT_EQ(written(facts),
            "cublasLtMatmul, shape = B=6,M=512,N=384,K=256, dtype = f8e5m2, layout = nt, "
            "ld = 256,256,384, right = f8e4m3, out = bf16, compute = f32, epilogue = gelu_bias");
}

TEST(GemmText, ReadsBack) {
  const std::string text = written(column_major());
  EXPECT_EQ(gemm_shape(text), "M=512,N=384,K=256");
  EXPECT_EQ(gemm_dtype(text), "bf16");
  EXPECT_EQ(gemm_shape("aten::mm"), "");
  GemmFacts odd = column_major();
  odd.m = -1;
  odd.type_a = odd.type_b = "";
  EXPECT_EQ(gemm_shape(written(odd)), "");
  EXPECT_EQ(gemm_dtype(written(odd)), "");
}

}  // namespace
}  // namespace purlin::profile::capture
