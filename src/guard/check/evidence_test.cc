// SPDX-License-Identifier: Apache-2.0
#include "guard/check/evidence.h"

#include "base/files.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace purlin::guard {
namespace {

class EvidenceTest : public testing::Test {
 protected:
  void SetUp() override { folder_ = *make_temporary_directory("purlin-evidence"); }
  void TearDown() override { (void)remove_tree(folder_); }
  std::string stem(const Item& item, const std::string& time) const {
    return profile_stem(folder_, "gate", item, time);
  }
  void put(const std::string& stem) const {
    ASSERT_TRUE(write_atomic(stem + ".before.plprof", "").is_ok());
    ASSERT_TRUE(write_atomic(stem + ".after.plprof", "").is_ok());
  }
  std::size_t files() const { return list_directory(folder_)->size(); }

  std::string folder_;
  const Item gemm_{"gemm", "M=64", "cached"};
};

TEST_F(EvidenceTest, ALaterCheckTakesOtherFiles) {
  const std::string first = stem(gemm_, "2026-11-20T12:00:00Z");
  EXPECT_EQ(first.find_first_of(" :*"), std::string::npos);
  put(first);
  EXPECT_LT(first, stem(gemm_, "2026-11-20T12:00:01Z"));
  EXPECT_EQ(stem(gemm_, "2026-11-20T12:00:00Z"), first + "-2");  // within the same second
  // Items whose names become alike do not share files.
  EXPECT_NE(stem({"a b", "", ""}, "t"), stem({"a*b", "", ""}, "t"));
}

TEST_F(EvidenceTest, OnlyTheNewestOfAnItemAreKept) {
  std::vector<std::string> stems;
  for (int day = 1; day <= 5; ++day) {
    stems.push_back(stem(gemm_, fmt::format("2026-11-{:02}T12:00:00Z", day)));
    put(stems.back());
  }
  const std::string other = stem({"gemm", "M=64", "default"}, "2026-10-01T12:00:00Z");
  put(other);
  ASSERT_TRUE(write_atomic(join_path(folder_, "notes.txt"), "").is_ok());
  ASSERT_TRUE(keep_newest_profiles(folder_, "gate", gemm_, 2).is_ok());
  EXPECT_EQ(files(), 2 * 2 + 2 + 1u);
  EXPECT_FALSE(file_exists(stems[2] + ".after.plprof"));
  EXPECT_TRUE(file_exists(stems[3] + ".before.plprof"));
  EXPECT_TRUE(file_exists(stems[4] + ".after.plprof"));
  EXPECT_TRUE(file_exists(other + ".before.plprof"));
  EXPECT_FALSE(keep_newest_profiles(folder_ + "/none", "gate", gemm_, 2).is_ok());
}

}  // namespace
}  // namespace purlin::guard
