// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/ranges/span_log.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace purlin::profile::capture {
namespace {

TEST(SpanLog, NothingIsKeptUntilItIsWanted) {
  SpanLog log;
  const std::uint64_t early = log.start("early");
  log.keep(true);
  const std::uint64_t kept = log.start("kept");
  EXPECT_NE(early, kept);
  log.end(early);
  log.end(kept);
  log.end(kept);
  log.end(4711);
  const std::vector<SpanLog::Span> spans = log.take(false);
  ASSERT_EQ(spans.size(), 1u);
  EXPECT_EQ(spans[0].name, "kept");
  EXPECT_LE(spans[0].begin_ns, spans[0].end_ns);
  EXPECT_TRUE(log.take(true).empty());
}

TEST(SpanLog, WhatIsOpenWhenKeepingEndsIsKeptToItsEnd) {
  SpanLog log;
  log.keep(true);
  const std::uint64_t one = log.start("one");
  (void)log.start("two");
  log.keep(false);
  (void)log.start("three");
  log.end(one);
  const std::vector<SpanLog::Span> ended = log.take(false);
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].name, "one");
  const std::vector<SpanLog::Span> rest = log.take(true);
  ASSERT_EQ(rest.size(), 1u);
  EXPECT_EQ(rest[0].name, "two");
}

TEST(SpanLog, MemoryIsBoundedAndWhatDoesNotFitIsCounted) {
  SpanLog log;
  log.keep(true);
  for (std::size_t i = 0; i < SpanLog::kMaxOpen + 10; ++i) (void)log.start("never ended");
  EXPECT_EQ(log.take_lost(), 10u);
  EXPECT_EQ(log.take(true).size(), SpanLog::kMaxOpen);
  for (std::size_t i = 0; i < SpanLog::kMaxEnded + 7; ++i) log.end(log.start("ended"));
  EXPECT_EQ(log.take_lost(), 7u);
  EXPECT_EQ(log.take(false).size(), SpanLog::kMaxEnded);
}

TEST(SpanLog, ThreadsStartAndEndAtOnce) {
  SpanLog log;
  log.keep(true);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) log.end(log.start("span"));
    });
  std::size_t taken = 0;
  for (int i = 0; i < 10; ++i) taken += log.take(false).size();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(taken + log.take(true).size() + log.take_lost(), 4000u);
}

}  // namespace
}  // namespace purlin::profile::capture
