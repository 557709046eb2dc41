// SPDX-License-Identifier: Apache-2.0
#include "analyze/diff/build_changes.h"

#include <gtest/gtest.h>

namespace purlin::analyze {
namespace {

KernelStat made_up_kernel() {
  KernelStat stat;
  stat.name.family = "cublas";
  stat.name.layout = "TNT";
  stat.name.tensor = TensorCores::kYes;
  stat.registers = 96;
  stat.roof.occupancy_achieved = 0.5;
  return stat;
}

TEST(BuildChanges, WhatDiffersIsNamed) {
  const KernelStat a = made_up_kernel();
  KernelStat b = a;
  EXPECT_TRUE(build_changes(a, b).empty());
  b.name.family = "cutlass";
  b.name.layout = "NNT";
  b.name.tensor = TensorCores::kNo;
  b.registers = 168;
  b.local_bytes = 32;
  b.roof.occupancy_achieved = 0.25;
  EXPECT_EQ(build_changes(a, b),
            (std::vector<std::string>{"library cublas -> cutlass", "layout TNT -> NNT",
                                      "no tensor cores any more", "registers 96 -> 168",
                                      "local memory 0 -> 32 B a thread", "occupancy 50% -> 25%"}));
}

// S81: of the same kernel the time says it, of two kernels the shares of the roofs compare them.
TEST(BuildChanges, AnotherKernelHasItsRoofs) {
  KernelStat a = made_up_kernel();
  a.roof.compute_share = 0.09;
  a.roof.memory_share = 0.02;
  KernelStat b = a;
  b.roof.compute_share = 0.78;
  b.roof.memory_share = 0.17;
  EXPECT_TRUE(build_changes(a, b).empty());
  b.name.full = "another";
  EXPECT_EQ(build_changes(a, b),
            (std::vector<std::string>{"arithmetic 9% -> 78%", "bandwidth 2% -> 17%"}));
}

TEST(BuildChanges, WhatOneSideDoesNotKnowIsLeftOut) {
  KernelStat b = made_up_kernel();
  b.name.layout = "";
  b.name.tensor = TensorCores::kUnknown;
  b.registers = 0;
  b.roof.occupancy_achieved = 0;
  EXPECT_TRUE(build_changes(made_up_kernel(), b).empty());
}

}  // namespace
}  // namespace purlin::analyze
