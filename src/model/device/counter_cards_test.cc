// SPDX-License-Identifier: Apache-2.0
// The capture library's tests check that CUPTI knows the counters and counts them in one pass.
#include "model/device/counter_cards.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace purlin {
namespace {

TEST(CounterCards, CoverEveryTopicAndSayHowLong) {
  for (const char* chip : {"TU102", "GA100", "GA102", "AD102", "GH100", "GB100", "GB202"}) {
    std::set<std::string_view> topics;
    for (const CounterCard& card : counter_cards(chip)) {
      topics.insert(card.topic);
      std::set<std::string_view> once(card.metrics.begin(), card.metrics.end());
      EXPECT_EQ(once.size(), card.metrics.size()) << chip;
      EXPECT_EQ(once.count("sm__cycles_active.max") == 1, card.topic != kInstrumentedTopic);
    }
    EXPECT_EQ(topics,
              std::set<std::string_view>(std::begin(kCounterTopics), std::end(kCounterTopics)));
  }
  EXPECT_TRUE(counter_cards("GX999").empty());
  EXPECT_TRUE(full_counters("GX999").empty());
}

TEST(CounterCards, TheInstrumentedTopicIsOnlyThereWhenNamed) {
  std::vector<std::string_view> topics;
  ASSERT_TRUE(parse_counter_topics("", topics));
  EXPECT_EQ(std::count(topics.begin(), topics.end(), kInstrumentedTopic), 0);
  EXPECT_EQ(topics.size(), std::size(kCounterTopics) - 1);
  ASSERT_TRUE(parse_counter_topics("flops,memory,flops", topics));
  EXPECT_EQ(topics, (std::vector<std::string_view>{"flops", "memory"}));
  ASSERT_TRUE(parse_counter_topics("all", topics));
  EXPECT_EQ(topics.size(), std::size(kCounterTopics));
  EXPECT_FALSE(parse_counter_topics("memory,everything", topics));
  EXPECT_FALSE(parse_counter_topics(",", topics));
}

}  // namespace
}  // namespace purlin
