// SPDX-License-Identifier: Apache-2.0
#include "fleet/analysis/role.h"

#include <gtest/gtest.h>

namespace purlin::fleet::analysis {
namespace {

TEST(Role, ComesFromTheKernelsName) {
  EXPECT_EQ(role_of("flash_fwd_kernel<Traits>", ""), "attention");
  EXPECT_EQ(role_of("void vllm::reshape_and_cache_flash_kernel<c10::Half>(...)", ""), "kv_cache");
  EXPECT_EQ(role_of("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", ""), "communication");
  EXPECT_EQ(role_of("void vectorized_layer_norm_kernel<float>(...)", ""), "norm");
  EXPECT_EQ(role_of("void vllm::silu_and_mul_kernel<c10::BFloat16>(...)", ""), "mlp");
  EXPECT_EQ(role_of("my_kernel", ""), "other");
}

TEST(Role, OfAMatrixProductComesFromItsRange) {
  const char* const kernel = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64";
  EXPECT_EQ(role_of(kernel, ""), "matmul");
  EXPECT_EQ(role_of(kernel, "layers.3.mlp.down_proj"), "mlp");
  EXPECT_EQ(role_of(kernel, "layers.3.self_attn.q_proj"), "attention");
}

TEST(Role, OfANormIgnoresItsRange) {
  EXPECT_EQ(role_of("rms_norm_kernel", "layers.3.self_attn"), "norm");
}

TEST(Role, CommunicationIsNotTuned) {
  EXPECT_FALSE(can_be_tuned("communication"));
  EXPECT_TRUE(can_be_tuned("other"));
}

}  // namespace
}  // namespace purlin::fleet::analysis
