// SPDX-License-Identifier: Apache-2.0
#include "analyze/report/notes.h"

#include <gtest/gtest.h>

#include <string>

namespace purlin::analyze {
namespace {

TEST(GroupNotes, AThousandAlikeAreOneWithTheirNumber) {
  std::vector<CoverageNote> notes = {{"no_windows", "recording ended", 0, 2}};
  for (int i = 0; i < 1000; ++i)
    notes.push_back({"unreadable_process_file", "file " + std::to_string(i), 2, 0.5});
  notes.push_back({"cuda_only", "of CUDA alone", 0, 0});
  const std::vector<CoverageNote> grouped = group_notes(notes);
  ASSERT_EQ(grouped.size(), 3u);
  EXPECT_EQ(grouped[0].text, "recording ended");
  EXPECT_EQ(grouped[1].text, "file 0; and 999 more notes of this kind");
  EXPECT_EQ(grouped[1].count, 2000);
  EXPECT_EQ(grouped[1].seconds, 500);
  EXPECT_EQ(grouped[2].cause, "cuda_only");
}

TEST(GroupNotes, AFewStaySeparate) {
  const std::vector<CoverageNote> notes = {{"a", "1", 0, 0}, {"a", "2", 0, 0}, {"a", "3", 0, 0}};
  EXPECT_EQ(group_notes(notes).size(), 3u);
}

}  // namespace
}  // namespace purlin::analyze
