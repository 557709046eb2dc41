// SPDX-License-Identifier: Apache-2.0
#include "fleet/collector/lookup_metrics.h"

#include "backlog/work_list.h"
#include "base/files.h"

#include <gtest/gtest.h>

namespace purlin::fleet {
namespace {

TEST(LookupMetrics, SumTheListsAndCountThoseThatCannotBeRead) {
  const std::string folder = *make_temporary_directory("lookups");
  const std::string good = join_path(folder, "a"), bad = join_path(folder, "b");
  backlog::WorkRow row;
  row.key.op = row.key.kernel = "gemm", row.key.backend = "cuda", row.key.arch = "sm_90";
  row.key.bucket = row.shape = "N=64", row.last_seen = "2026-11-20T12:00:00Z";
  row.hits = 7, row.misses = 2, row.stale = 1;
  ASSERT_TRUE(make_directories(good).is_ok() && make_directories(bad).is_ok());
  ASSERT_TRUE(backlog::WorkList::merge_into(good, {row}).is_ok());
  ASSERT_TRUE(write_atomic(backlog::WorkList::path(bad), "x").is_ok());
  const std::string text = lookup_metrics({good, bad, join_path(folder, "none")});
  EXPECT_NE(text.find("{outcome=\"hit\"} 7\n"), std::string::npos) << text;
  EXPECT_NE(text.find("{outcome=\"miss\"} 2\n"), std::string::npos);
  EXPECT_NE(text.find("purlin_config_unreadable 1\n"), std::string::npos);
  EXPECT_TRUE(remove_tree(folder).is_ok());
}

}  // namespace
}  // namespace purlin::fleet
