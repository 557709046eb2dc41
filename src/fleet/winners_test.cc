// SPDX-License-Identifier: Apache-2.0
#include "fleet/winners.h"

#include "base/files.h"
#include "blobs/directory_blobs.h"
#include "cache/share/share.h"
#include "cache/testing.h"

#include <gtest/gtest.h>

namespace purlin::fleet {
namespace {

cache::CacheRecord winner(const std::string& kernel, double time_ms) {
  cache::Entry entry = cache::sample_entry();
  entry.key.kernel = kernel;
  entry.time_ms = time_ms;
  return cache::make_record(entry);
}

TEST(WinnersTest, WhatTheSharedCacheServesNow) {
  const std::string root = *make_temporary_directory("purlin-winners");
  const std::string shares = join_path(root, "caches");
  Winners winners(shares, system_clock());
  EXPECT_EQ(winners.of("team", "", 10).status().code(), Code::kNotFound);
  const auto blobs = blobs::make_directory_blobs(join_path(shares, "team"));
  cache::Share share(*blobs, system_clock(), 1);
  ASSERT_TRUE(share.push({winner("softmax", 2), winner("gemm", 5)}).is_ok());
  Result<Json> found = winners.of("team", "softmax", 10);
  ASSERT_TRUE(found.is_ok()) << found.status().message();
  ASSERT_EQ(found->size(), 1u);
  EXPECT_EQ(found->items()[0]["time_ms"].as_double(), 2);
  EXPECT_EQ(found->items()[0]["state"].as_string(), "active");
  // A faster one that was pushed since takes its place.
  ASSERT_TRUE(share.push({winner("softmax", 1)}).is_ok());
  found = winners.of("team", "softmax", 10);
  ASSERT_EQ(found->size(), 1u);
  EXPECT_EQ(found->items()[0]["time_ms"].as_double(), 1);
  EXPECT_EQ(winners.of("team", "", 10)->size(), 2u);
  EXPECT_EQ(winners.of("team", "", 1)->size(), 1u);
  ASSERT_TRUE(remove_tree(root).is_ok());
}

}  // namespace
}  // namespace purlin::fleet
