// SPDX-License-Identifier: Apache-2.0
#include "profile/import/impossible_times.h"

#include <gtest/gtest.h>

namespace purlin::profile {
namespace {

using StreamWork = std::vector<std::pair<std::int64_t, std::int64_t>>;  // start, duration

std::vector<std::int64_t> possible(const StreamWork& work) {
  InOrderStreams streams;
  std::vector<std::int64_t> durations(work.size());
  for (std::size_t i = work.size(); i-- > 0;)
    durations[i] = streams.possible_duration(7, work[i].first, work[i].second);
  return durations;
}

using Durations = std::vector<std::int64_t>;

TEST(ImpossibleTimes, WorkThatOutlastsTheNextTwoOfItsStreamIsCut) {
  EXPECT_EQ(possible({{0, 100}, {110, 5'000'000}, {220, 100}, {330, 100}}),
            (Durations{100, 110, 100, 100}));
  // The last but one, by a gross excess only.
  EXPECT_EQ(possible({{0, 5'000'000}, {110, 100}}), (Durations{110, 100}));
  EXPECT_EQ(possible({{0, 300}, {110, 100}}), (Durations{300, 100}));
  // Two in a row.
  EXPECT_EQ(possible({{0, 9'000}, {10, 9'000'000}, {20, 5}, {30, 5}, {40, 5}}),
            (Durations{10, 10, 5, 5, 5}));
}

TEST(ImpossibleTimes, NeighboursMayOverlap) {
  EXPECT_EQ(possible({{0, 100}, {90, 100}, {180, 100}}), (Durations{100, 100, 100}));
  EXPECT_EQ(possible({{0, 100}, {0, 100}, {0, 100}}), (Durations{100, 100, 100}));
  EXPECT_EQ(possible({{0, 250}, {110, 100}, {220, 100}}), (Durations{250, 100, 100}));
}

TEST(ImpossibleTimes, StreamsDoNotOrderEachOther) {
  InOrderStreams streams;
  for (std::int64_t start = 900; start > 100; start -= 100)
    EXPECT_EQ(streams.possible_duration(1, start, 10), 10);
  EXPECT_EQ(streams.possible_duration(2, 0, 100'000), 100'000);
}

TEST(ImpossibleTimes, FarFromTheMiddle) {
  std::vector<std::int64_t> starts = {0, 1'419'247'000'000'000, 1'419'247'000'000'100,
                                      1'419'247'000'000'200, 0};
  const std::int64_t middle = middle_of(starts);
  EXPECT_EQ(middle, 1'419'247'000'000'000);
  EXPECT_TRUE(is_far(0, 0, middle));
  EXPECT_TRUE(is_far(middle, std::int64_t{1} << 60, middle));
  EXPECT_FALSE(is_far(middle + 3'600'000'000'000, 1000, middle));
  std::vector<std::int64_t> none;
  EXPECT_EQ(middle_of(none), 0);
}

}  // namespace
}  // namespace purlin::profile
