// SPDX-License-Identifier: Apache-2.0
#include "runtime/hit_counters.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <thread>
#include <vector>

namespace purlin::runtime {
namespace {

struct Counted {
  double what = 0;
};

std::map<const Counted*, std::uint64_t> taken(HitCounters<Counted>& counters) {
  std::map<const Counted*, std::uint64_t> counts;
  counters.take([&](const Counted& entry, std::uint64_t count) { counts[&entry] += count; });
  return counts;
}

TEST(HitCounters, WhatIsNotedSoonIsThereWhenItIsTaken) {
  const auto counters = std::make_unique<HitCounters<Counted>>();
  const std::vector<Counted> entries(3);
  EXPECT_TRUE(counters->note(&entries[0], 5));
  EXPECT_FALSE(counters->note(&entries[0], 1));
  counters->note_soon(&entries[1], 64);
  counters->note_soon(&entries[0], 1);
  counters->note_soon(&entries[1], 16384);
  EXPECT_EQ(taken(*counters),
            (std::map<const Counted*, std::uint64_t>{{&entries[0], 7}, {&entries[1], 16448}}));
  EXPECT_TRUE(taken(*counters).empty());
  counters->note_soon(&entries[2], 4);
  EXPECT_EQ(taken(*counters), (std::map<const Counted*, std::uint64_t>{{&entries[2], 4}}));
  EXPECT_EQ(counters->others(), 0u);
}

// Threads more than there are places for their last samples, and somebody who takes meanwhile.
TEST(HitCounters, CountsNoneTwiceAndLosesNone) {
  const auto counters = std::make_unique<HitCounters<Counted>>();
  const std::vector<Counted> entries(100);
  constexpr std::uint64_t kThreads = 24, kNotes = 3000;
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < kNotes; ++i)
        counters->note_soon(&entries[(i * 7 + t) % entries.size()],
                            std::uint64_t{1} << (2 * (i % 8)));
    });
  std::uint64_t total = 0;
  const auto take = [&] {
    for (const auto& [entry, count] : taken(*counters)) total += count;
  };
  for (int i = 0; i < 20; ++i) take();
  for (std::thread& thread : threads) thread.join();
  take();
  EXPECT_EQ(total + counters->others(), kThreads * kNotes / 8 * 21845);
}

// Two ops that take turns, as in a program's loop, have half of the lookups each. The first lookups
// are all noted. Later, the noted lookups represent the others.
TEST(HitCounters, SamplesStandForAllLookups) {
  std::thread([] {  // whose sampling begins
    std::uint64_t noted = 0, first = 0, counted[2] = {};
    constexpr int kLookups = 16'000'000;
    for (int i = 0; i < kLookups; ++i)
      if (const std::uint64_t weight = sample_weight(); weight > 0) {
        ++noted, counted[i % 2] += weight;
        if (i < int{kNotedOfEach}) first += weight;
      }
    EXPECT_EQ(first, kNotedOfEach);
    EXPECT_LT(noted, kLookups / 1000) << "so few that they are beyond the 99.9th percentile";
    EXPECT_NEAR(static_cast<double>(counted[0]), kLookups / 2, kLookups / 20);
    EXPECT_NEAR(static_cast<double>(counted[1]), kLookups / 2, kLookups / 20);
  })
      .join();
}

}  // namespace
}  // namespace purlin::runtime
