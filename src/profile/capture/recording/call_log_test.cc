// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/recording/call_log.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

namespace purlin::profile::capture {
namespace {

TEST(CallLog, HandsCallsOverInTheirOrder) {
  const auto log = std::make_unique<CallLog>();
  for (std::uint32_t round = 0; round < 3; ++round) {
    for (std::uint32_t i = 0; i < CallLog::kSlots; ++i) EXPECT_TRUE(log->add({i, 7, i, i + 1}));
    EXPECT_FALSE(log->add({0, 7, 0, 1})) << "it is full";
    std::uint32_t next = 0;
    log->drain([&](const LoggedCall& call) { EXPECT_EQ(call.call, next++); });
    EXPECT_EQ(next, CallLog::kSlots);
  }
}

TEST(CallLog, LosesNothingOfSeveralThreads) {
  constexpr std::uint32_t kThreads = 4, kEach = 20'000;
  const auto log = std::make_unique<CallLog>();
  std::vector<std::uint32_t> next(kThreads, 0);
  const auto take = [&](const LoggedCall& call) {
    EXPECT_EQ(call.call, next[call.thread]);
    ++next[call.thread];
  };
  std::vector<std::thread> threads;
  for (std::uint32_t thread = 0; thread < kThreads; ++thread)
    threads.emplace_back([&, thread] {
      for (std::uint32_t i = 0; i < kEach;)
        if (log->add({i, thread, 0, 0})) ++i;
    });
  std::uint32_t seen = 0;
  while (seen < kThreads * kEach)
    log->drain([&](const LoggedCall& call) {
      take(call);
      ++seen;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(next, std::vector<std::uint32_t>(kThreads, kEach));
}

}  // namespace
}  // namespace purlin::profile::capture
