// SPDX-License-Identifier: Apache-2.0
#include "cache/hot/lookup_memo.h"

#include "base/random.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <utility>
#include <vector>

namespace purlin::cache {
namespace {

using Shape = std::array<std::int64_t, 8>;

// body.template operator()<D>() for 1 to 8 dimensions.
template <class Body>
void with_each_number_of_dimensions(Body body) {
  [&]<std::size_t... I>(std::index_sequence<I...>) { (body.template operator()<I + 1>(), ...); }
  (std::make_index_sequence<8>());
}

TEST(LookupMemo, FindsByTheWholeOfTheExtentsAndTheEpoch) {
  with_each_number_of_dimensions([]<std::size_t D>() {
    LookupMemo memo(256);
    Shape extents = {};
    for (std::size_t i = 0; i < D; ++i) extents[i] = static_cast<std::int64_t>(100 + i);
    EXPECT_EQ(memo.find<D>(extents.data(), 2), 0u);
    memo.keep<D>(extents.data(), 8, 2);
    EXPECT_EQ(memo.find<D>(extents.data(), 2), 8u);
    EXPECT_EQ(memo.find<D>(extents.data(), 3), 0u) << "while answers change";
    EXPECT_EQ(memo.find<D>(extents.data(), 4), 0u) << "after it";
    for (std::size_t i = 0; i < D; ++i)
      for (int bit = 0; bit < 64; ++bit) {
        Shape other = extents;
        other[i] ^= static_cast<std::int64_t>(std::uint64_t{1} << bit);
        EXPECT_EQ(memo.find<D>(other.data(), 2), 0u) << "dimension " << i << ", bit " << bit;
      }
  });
}

// The memo keeps an extent in half of a word, and only an extent that fits there.
TEST(LookupMemo, LargeAndNegativeExtentsAreNotKept) {
  LookupMemo memo(2);
  for (const std::int64_t large : {std::int64_t{1} << 32, std::int64_t{1} << 62, std::int64_t{-1}})
    for (std::size_t i = 0; i < 3; ++i) {
      Shape extents = {7, 7, 7};
      extents[i] = large;
      EXPECT_FALSE(memo.has_room<3>(extents.data(), 2));
      memo.keep<3>(extents.data(), 8, 2);
      EXPECT_EQ(memo.find<3>(extents.data(), 2), 0u);
    }
  const Shape largest = {(std::int64_t{1} << 32) - 1, 7, (std::int64_t{1} << 32) - 1};
  memo.keep<3>(largest.data(), 8, 2);
  EXPECT_EQ(memo.find<3>(largest.data(), 2), 8u);
}

TEST(LookupMemo, ALineAndTheOneBesideItHoldFourAndThenDisplaceInTurn) {
  LookupMemo memo(2);
  const auto shape = [](std::int64_t m) { return Shape{m, 1}; };
  int with_room = 0, found = 0;
  for (std::int64_t m = 1; m <= 100; ++m) {
    with_room += memo.has_room<2>(shape(m).data(), 2) ? 1 : 0;
    memo.keep<2>(shape(m).data(), static_cast<std::uint64_t>(8 * m), 2);
    EXPECT_EQ(memo.find<2>(shape(m).data(), 2), static_cast<std::uint64_t>(8 * m));
  }
  EXPECT_EQ(with_room, 4);
  for (std::int64_t m = 1; m <= 100; ++m) found += memo.find<2>(shape(m).data(), 2) != 0 ? 1 : 0;
  EXPECT_EQ(found, 4);
  EXPECT_TRUE(memo.has_room<2>(shape(1).data(), 4)) << "answers of an older epoch are no answers";
}

// The lines of these shapes are at random. Some shapes meet more than one other in their line; the
// memo keeps those in the adjacent line.
TEST(LookupMemo, FewShapesDisplaceEachOther) {
  LookupMemo memo(512);
  std::vector<Shape> shapes;
  Random random(1);
  for (int i = 0; i < 300; ++i)
    shapes.push_back({static_cast<std::int64_t>(random.below(1 << 20)), 4096});
  for (const Shape& shape : shapes)
    if (memo.has_room<2>(shape.data(), 2)) memo.keep<2>(shape.data(), 8, 2);
  int found = 0;
  for (const Shape& shape : shapes) found += memo.find<2>(shape.data(), 2) != 0 ? 1 : 0;
  EXPECT_GE(found, 290);  // in one line each 280
}

// Lines are written all the time by two threads: what a reader finds is what was kept for it.
TEST(LookupMemo, ReadersNeverSeeHalfOfAnAnswer) {
  with_each_number_of_dimensions([]<std::size_t D>() {
    LookupMemo memo(2);
    const auto shape = [](std::uint64_t n) {
      Shape extents = {};
      for (std::size_t i = 0; i < D; ++i) extents[i] = static_cast<std::int64_t>(n * (i + 1));
      return extents;
    };
    const auto answer = [](std::uint64_t n, std::uint32_t epoch) { return n << 32 | epoch; };
    std::atomic<std::uint32_t> epoch{2};
    std::atomic<bool> stop{false};
    std::atomic<int> wrong{0};
    std::vector<std::thread> writers, readers;
    for (std::uint64_t t = 0; t < 2; ++t)
      writers.emplace_back([&, t] {
        for (std::uint64_t n = t; !stop.load(); ++n) {
          const std::uint32_t now = epoch.load();
          memo.keep<D>(shape(1 + n * 7 % 9).data(), answer(1 + n * 7 % 9, now), now);
          if (n % 100 == 0) epoch.store(now + 2);
        }
      });
    for (int t = 0; t < 2; ++t)
      readers.emplace_back([&] {
        for (std::uint64_t n = 1, found = 0; found < 2000; ++n) {
          const std::uint32_t now = epoch.load();
          const std::uint64_t kept = memo.find<D>(shape(1 + n % 9).data(), now);
          if (kept == 0) continue;
          ++found;
          if (kept != answer(1 + n % 9, now)) ++wrong;
        }
      });
    for (std::thread& thread : readers) thread.join();
    stop = true;
    for (std::thread& thread : writers) thread.join();
    EXPECT_EQ(wrong.load(), 0);
    memo.keep<D>(shape(3).data(), answer(3, epoch), epoch);
    EXPECT_EQ(memo.find<D>(shape(3).data(), epoch), answer(3, epoch)) << "no line is left locked";
  });
}

}  // namespace
}  // namespace purlin::cache
