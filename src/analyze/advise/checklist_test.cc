// SPDX-License-Identifier: Apache-2.0
// A tick says that nothing was found, so nothing else in the advice may say the contrary.
#include "analyze/advise/rules/testing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

namespace purlin::analyze {
namespace {

CheckItem check_item(const Advice& advice, std::string_view id) {
  for (const CheckItem& one : advice.checklist)
    if (one.id == id) return one;
  return {};
}

TEST(Checklist, AnIdleDeviceIsNoHostInTime) {
  Program program;
  program.steps(kSteps, [](Program& inner) {
    for (int i = 0; i < 8; ++i)
      inner.late_kernel(product("M=4096,N=4096,K=4096"), 180'000, 150'000);
  });
  EXPECT_EQ(check_item(program.advice(), "launches").state, "found");
  // The host's calls were not recorded: no rule knows the cause.
  Timeline& timeline = program.builder().profile.timeline;
  timeline.calls.clear();
  for (Activity& one : timeline.activities) one.call = kNone;
  const Advice advice = program.advice();
  EXPECT_EQ(advice.verdict, "scheduling");
  EXPECT_EQ(check_item(advice, "launches").state, "open");
  EXPECT_NE(check_item(advice, "launches").why.find("the device idles"), std::string::npos);
}

TEST(Checklist, ASlowOperatorIsWhyTheHostIsLate) {
  const Advice advice =
      Program()
          .steps(kSteps,
                 [](Program& program) {
                   program.kernel(product("M=4096,N=4096,K=4096"), 500'000);
                   program.within("aten::_cudnn_attention_forward", [](Program& inner) {
                     inner.work(2'000'000).kernel(product("M=4096,N=4096,K=4096"), 500'000);
                   });
                 })
          .advice();
  ASSERT_NE(find(advice, "slow_op"), nullptr);
  EXPECT_EQ(check_item(advice, "launches").state, "found");
}

TEST(Checklist, AMemoryBoundKernelFarFromItsRoofIsNotDone) {
  KernelRow row =
      advised_row("void at::native::indexSelectLargeIndex<float, long, unsigned int, 2, 2, -2>()",
                  "aten::index_select", "indices=8000000,cols=64", "f32");
  const double ns = 8e6 * (8 + 2 * 4 * 64) / kBandwidth * 1e9;
  const auto of = [&](double share) {
    return Program()
        .steps(kSteps, [&](Program& program) { program.kernel(row, ns / share); })
        .advice();
  };
  EXPECT_EQ(check_item(of(0.55), "bandwidth").state, "open");
  EXPECT_EQ(check_item(of(0.9), "bandwidth").state, "done");
}

}  // namespace
}  // namespace purlin::analyze
