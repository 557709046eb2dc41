// SPDX-License-Identifier: Apache-2.0
#include "cache/hot/huge_page_buffer.h"

#include "cache/hot/lookup_memo.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace purlin::cache {
namespace {

bool begins_at(const HugePageBuffer& memory, std::size_t unit) {
  return reinterpret_cast<std::uintptr_t>(memory.data()) % unit == 0;
}

TEST(HugePageBuffer, IsWholeLinesOrHugePagesOfNothing) {
  struct Case {
    std::size_t asked, given, unit;
  };
  constexpr std::size_t kLine = HugePageBuffer::kLine, kPage = HugePageBuffer::kHugePage;
  for (const auto& [asked, given, unit] :
       {Case{1, kLine, kLine}, Case{kLine, kLine, kLine}, Case{kLine + 1, 2 * kLine, kLine},
        Case{kPage - 1, kPage, kLine}, Case{kPage, kPage, kPage},
        Case{kPage + 1, 2 * kPage, kPage}}) {
    const HugePageBuffer memory(asked);
    EXPECT_EQ(memory.bytes(), given) << asked;
    EXPECT_TRUE(begins_at(memory, unit)) << asked;
    EXPECT_TRUE(std::all_of(memory.data(), memory.data() + memory.bytes(), [](char byte) {
      return byte == 0;
    })) << asked;
  }
}

// A memo keeps the number of lines together with their address.
TEST(HugePageBuffer, AMemoOfAHugePageKeepsAnswersInAllOfIt) {
  LookupMemo memo(HugePageBuffer::kHugePage / HugePageBuffer::kLine);
  EXPECT_EQ(memo.bytes(), HugePageBuffer::kHugePage);
  EXPECT_EQ(memo.count(), HugePageBuffer::kHugePage / HugePageBuffer::kLine);
  const AnswerLines read = memo;
  constexpr std::int64_t kShapes = 4000;
  for (std::int64_t i = 0; i < kShapes; ++i)
    memo.keep<3>(std::array<std::int64_t, 3>{i, 2 * i, 7}.data(), 8 * (i + 1), 2);
  int found = 0;
  for (std::int64_t i = 0; i < kShapes; ++i)
    found += read.find<3>(std::array<std::int64_t, 3>{i, 2 * i, 7}.data(), 2) ==
             static_cast<std::uint64_t>(8 * (i + 1));
  EXPECT_GE(found, kShapes - 4) << "a few may have no room";
}

}  // namespace
}  // namespace purlin::cache
