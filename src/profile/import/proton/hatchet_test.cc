// SPDX-License-Identifier: Apache-2.0
#include "profile/import/proton/hatchet.h"

#include <gtest/gtest.h>

namespace purlin::profile {
namespace {

Result<Profile> import_tree(std::string_view text) {
  return import_hatchet(Input::from_bytes(text), "p.hatchet", {});
}

constexpr std::string_view kTree = R"x([
 {"children": [
   {"children": [
      {"children": [], "frame": {"name": "gemm_kernel", "type": "function"},
       "metrics": {"count": 4, "device_id": "1", "device_type": "CUDA", "time (ns)": 4000}},
      {"children": [], "frame": {"name": "copy", "type": "function"},
       "metrics": {"count": 1, "device_id": "1", "device_type": "CUDA", "time (ns)": 250.5}}],
    "frame": {"name": "forward", "type": "function"}, "metrics": {"flops16": NaN}},
   {"children": [], "frame": {"name": "gemm_kernel", "type": "function"},
    "metrics": {"count": 0, "device_id": "1", "time (ns)": 7}}],
  "frame": {"name": "ROOT", "type": "function"}, "metrics": {"count": 0}},
 {"CUDA": {"1": {"arch": "90", "bus_width": 6144, "clock_rate": 1980000,
                 "memory_clock_rate": 3201000, "num_sms": 132}}}])x";

TEST(Hatchet, TotalsPerKernelAndScope) {
  EXPECT_TRUE(looks_like_hatchet(kTree));
  EXPECT_FALSE(looks_like_hatchet("[{\"ph\": \"X\"}]"));
  const Result<Profile> read = import_tree(kTree);
  ASSERT_TRUE(read.is_ok()) << read.status().message();
  EXPECT_EQ(read->source, "proton");
  ASSERT_EQ(read->kernels.size(), 2u);
  EXPECT_EQ(read->kernels[0].name, "gemm_kernel");
  EXPECT_EQ(read->kernels[0].op, "forward");
  EXPECT_FALSE(is_known(read->kernels[0].launch.block)) << "a tree has no launch shapes";
  EXPECT_EQ(read->kernels[0].duration.count(), 4);
  EXPECT_DOUBLE_EQ(read->kernels[0].duration.total_ns(), 4000);
  EXPECT_DOUBLE_EQ(read->kernels[1].duration.total_ns(), 250.5);
  ASSERT_EQ(read->environment.devices.size(), 1u);
  EXPECT_EQ(read->environment.devices[0].id, "cuda:1");
  EXPECT_EQ(read->environment.devices[0].arch, "sm_90");
  EXPECT_EQ(read->environment.devices[0].compute_units, 132);
  EXPECT_EQ(read->environment.devices[0].clock_mhz, 1980);
}

TEST(Hatchet, WhatHoldsNoTimesIsRefused) {
  for (const std::string_view text :
       {"", "[]", "{}", "[{\"frame\": 1}]", "[{\"frame\": {\"name\": \"k\"}, \"metrics\": {}}]",
        "[{\"frame\": {\"name\": \"k\"}, \"metrics\": {\"time (ns)\": -1}}]", "[{\"frame\""})
    EXPECT_EQ(import_tree(text).status().code(), Code::kInvalid) << text;
}

TEST(Hatchet, ADeepTreeIsRefusedAndNotFollowed) {
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "[{\"frame\":{},\"children\":";
  EXPECT_FALSE(import_tree(deep).is_ok());
}

}  // namespace
}  // namespace purlin::profile
