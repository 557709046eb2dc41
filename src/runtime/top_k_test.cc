// SPDX-License-Identifier: Apache-2.0
#include "runtime/top_k.h"

#include "base/random.h"

#include <gtest/gtest.h>

#include <map>

namespace purlin::runtime {
namespace {

std::uint64_t hash(int key) { return static_cast<std::uint64_t>(key) * 0x9E3779B97F4A7C15u; }

TEST(TopK, CountsExactlyWhileThereIsRoom) {
  TopK<int> top(4);
  for (const int key : {1, 2, 1, 3, 1}) top.add(key, hash(key), 2);
  ASSERT_EQ(top.counters().size(), 3u);
  EXPECT_EQ(top.counters()[0].key, 1);
  EXPECT_EQ(top.counters()[0].count, 6u);
  EXPECT_EQ(top.counters()[0].error, 0u);
  EXPECT_EQ(top.total(), 10u);
}

TEST(TopK, KeysOfOneHashStayApart) {
  TopK<int> top(4);
  top.add(1, 7, 1);
  top.add(2, 7, 1);
  EXPECT_EQ(top.counters().size(), 2u);
}

// The guarantee of the algorithm, on a stream of a few hot keys among many rare ones.
TEST(TopK, BoundsEveryCountAndHoldsTheFrequent) {
  constexpr std::size_t kCapacity = 64;
  TopK<int> top(kCapacity);
  std::map<int, std::uint64_t> truth;
  Random random(1);
  for (int i = 0; i < 50'000; ++i) {
    const int key = random.below(10) < 4 ? static_cast<int>(random.below(8))
                                         : 100 + static_cast<int>(random.below(20'000));
    ++truth[key];
    top.add(key, hash(key), 1);
  }
  std::map<int, bool> held;
  for (const auto& counter : top.counters()) {
    held[counter.key] = true;
    EXPECT_LE(truth[counter.key], counter.count);
    EXPECT_GE(truth[counter.key], counter.count - counter.error);
  }
  EXPECT_EQ(top.counters().size(), kCapacity);
  for (const auto& [key, count] : truth) {
    if (count > top.total() / kCapacity) {
      EXPECT_TRUE(held[key]) << key;
    }
  }
}

}  // namespace
}  // namespace purlin::runtime
