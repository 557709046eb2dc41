// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/rules/testing.h"

#include <gtest/gtest.h>

namespace purlin::analyze {
namespace {

// 32 MiB at 1 GB/s, after as long a product.
Advice copied(const char* kind, std::uint64_t bytes = 33'554'432) {
  return Program()
      .steps(kSteps,
             [=](Program& program) {
               program.kernel(product("M=8192,N=8192,K=8192"), 1.5e6);
               program.copy(kind, 33'554'432, bytes).wait();
             })
      .advice();
}

TEST(Pinned, BothDirectionsArePinned) {
  for (const char* kind : {"h2d pageable", "d2h pageable"}) {
    const Advice advice = copied(kind);
    const Intervention* one = find(advice, "pin_memory");
    ASSERT_NE(one, nullptr) << kind;
    // At 45 GB/s on a Hopper GPU.
    EXPECT_NEAR(one->saved_share.mid, (1 - 1.0 / 45) * 33.55 / 35.06, 0.03) << kind;
    EXPECT_TRUE(says(one, kind[0] == 'h' ? "copies to the device" : "copies to the host")) << kind;
  }
}

TEST(Pinned, SilentWhereItIsPinnedOrSmall) {
  EXPECT_EQ(find(copied("d2h pinned"), "pin_memory"), nullptr);
  EXPECT_EQ(find(copied("d2h"), "pin_memory"), nullptr);              // the memory is not known
  EXPECT_EQ(find(copied("d2h pageable", 4), "pin_memory"), nullptr);  // .item()
}

}  // namespace
}  // namespace purlin::analyze
