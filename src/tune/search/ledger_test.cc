// SPDX-License-Identifier: Apache-2.0
#include "tune/search/ledger.h"

#include "tune/space/build.h"
#include "tune/space/published_spaces.h"

#include <gtest/gtest.h>

namespace purlin::tune {
namespace {

Space convolution() {
  const PublishedSpace published = convolution_space();
  return build_space(published.parameters, published.constraints, Scope{}).value();
}

int differences(const Assignment& a, const Assignment& b) {
  int count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) count += a[i] != b[i];
  return count;
}

TEST(Ledger, DrawsNearWhileThereIsSomethingNear) {
  const Space space = convolution();
  Random random(1);
  Ledger ledger(space, random);
  ledger.take(100);
  for (int i = 0; i < 10; ++i) {
    const auto near = ledger.draw_near(100);
    ASSERT_TRUE(near);
    EXPECT_TRUE(ledger.knows(*near));
    EXPECT_LE(differences(ledger.values(100), ledger.values(*near)), 4);
  }
  while (ledger.draw()) continue;
  EXPECT_FALSE(ledger.draw_near(100));
}

TEST(Ledger, StepsToANeighbour) {
  const Space space = convolution();
  Random random(2);
  Ledger ledger(space, random);
  std::size_t at = 7;
  for (int i = 0; i < 200; ++i) {
    const std::size_t next = ledger.step(at);
    EXPECT_EQ(differences(ledger.values(at), ledger.values(next)), 1);
    at = next;
  }
}

TEST(Ledger, ApproachesATargetAndStaysInTheSpace) {
  const Space space = convolution();
  Random random(3);
  Ledger ledger(space, random);
  for (std::size_t from = 0; from < space.size(); from += 397) {
    const Assignment target = ledger.values(space.size() - 1 - from);
    const std::size_t reached = ledger.approach(from, target, 1);
    ASSERT_LT(reached, space.size());
    EXPECT_LE(differences(ledger.values(reached), target),
              differences(ledger.values(from), target));
    EXPECT_EQ(ledger.approach(from, target, 0), from);
  }
  // An invalid target too: every parameter at its last value.
  Assignment last;
  for (const Parameter& parameter : space.parameters())
    last.push_back(static_cast<std::uint16_t>(parameter.values.size() - 1));
  EXPECT_FALSE(space.find(last));
  EXPECT_LT(ledger.approach(0, last, 1), space.size());
}

}  // namespace
}  // namespace purlin::tune
