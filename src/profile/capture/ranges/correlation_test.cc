// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/ranges/correlation.h"

#include <gtest/gtest.h>

#include <ctime>
#include <pthread.h>
#include <thread>
#include <vector>

namespace purlin::profile::capture {
namespace {

std::int64_t now() {
  timespec time = {};
  clock_gettime(CLOCK_REALTIME, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

std::uint32_t self() {
  return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(pthread_self()));
}

// Ranges are entered for real; calls are made at the time they are asked about.
class CorrelationTest : public ::testing::Test {
 protected:
  void SetUp() override {
    log->stop_listening();
    correlation.drain({});
    open();
  }
  void TearDown() override { log->stop_listening(); }
  void open() {
    correlation.open_window(now());
    log->start_listening();
  }
  void close() {
    log->stop_listening();
    correlation.close_window(now(), {});
  }
  std::string op_at(std::int64_t time) { return op_at(time, self()); }
  std::string op_at(std::int64_t time, std::uint32_t thread) {
    correlation.drain({});
    const OpFacts facts = correlation.facts_of(correlation.context_of(thread, time));
    std::string all = facts.op + (facts.shape.empty() ? "" : " " + facts.shape + " " + facts.dtype);
    for (char& c : all) c = c == kInside ? '>' : c;
    return all;
  }
  RangeLog* log = RangeLog::instance();
  Correlation correlation{log};
};

TEST_F(CorrelationTest, ALaunchIsOfTheOpsAroundIt) {
  const std::int64_t before = now();
  log->enter("step 7", 0);
  log->enter("aten::linear, seq = 1, op_id = 2, sizes = [[8, 4], [2, 4], []]", 0);
  const std::int64_t in_linear = now();
  log->enter("a person's", 0);
  log->enter("aten::addmm, seq = 1, op_id = 3, sizes = [[2], [8, 4], [4, 2]]", 0);
  const std::int64_t in_addmm = now();
  log->leave(0);
  const std::int64_t after_addmm = now();
  log->leave(0);
  log->leave(0);
  const std::int64_t in_step = now();
  log->leave(0);
  EXPECT_EQ(op_at(before), "");
  EXPECT_EQ(op_at(in_linear), "aten::linear, sizes = [[8, 4], [2, 4], []]");
  EXPECT_EQ(
      op_at(in_addmm),
      "aten::linear, sizes = [[8, 4], [2, 4], []]>aten::addmm, sizes = [[2], [8, 4], [4, 2]]");
  EXPECT_EQ(op_at(after_addmm), "aten::linear, sizes = [[8, 4], [2, 4], []]");
  EXPECT_EQ(op_at(in_step), "") << "a numbered range is no op";
  EXPECT_EQ(op_at(in_addmm, self() + 1), "") << "another thread's";
}

TEST_F(CorrelationTest, APersonsRangeIsAnOpWhereThereIsNoOther) {
  log->enter("attention", 0);
  const std::int64_t inside = now();
  log->enter("scores", 0);
  const std::int64_t deeper = now();
  log->leave(0);
  log->leave(0);
  const std::int64_t after = now();
  EXPECT_EQ(op_at(inside), "attention");
  EXPECT_EQ(op_at(deeper), "scores");
  EXPECT_EQ(op_at(after), "");
}

TEST_F(CorrelationTest, AProductIsPartOfTheOpThatAskedForIt) {
  const std::string_view product =
      "cublasGemmEx, shape = M=8,N=2,K=4, dtype = bf16, layout = nn, ld = 4,2,2";
  log->enter(NameKind::kGemm, product, kLibraryDomain);
  const std::int64_t alone = now();
  log->leave(kLibraryDomain);
  log->enter("aten::mm, sizes = [[8, 4], [4, 2]]", 0);
  log->enter(NameKind::kGemm, product, kLibraryDomain);
  const std::int64_t within = now();
  log->leave(kLibraryDomain);
  log->leave(0);
  EXPECT_EQ(op_at(alone), "gemm M=8,N=2,K=4 bf16");
  EXPECT_EQ(op_at(within), "aten::mm, sizes = [[8, 4], [4, 2]] M=8,N=2,K=4 bf16");
}

TEST_F(CorrelationTest, WhatAWindowLeftOpenIsNotOpenInTheNext) {
  log->enter("aten::mm", 0);
  const std::int64_t first = now();
  close();
  log->leave(0);
  open();
  const std::int64_t second = now();
  log->enter("aten::add", 0);
  const std::int64_t third = now();
  log->leave(0);
  EXPECT_EQ(op_at(first), "aten::mm");
  EXPECT_EQ(op_at(second), "");
  EXPECT_EQ(op_at(third), "aten::add");
}

TEST_F(CorrelationTest, CallsThatComeLateStillFindTheirOp) {
  std::uint32_t thread = 0;
  std::int64_t time = 0;
  std::thread([&] {
    thread = self();
    log->enter("aten::sum", 0);
    time = now();
    log->leave(0);
  }).join();
  correlation.drain({});
  close();
  EXPECT_EQ(op_at(time, thread), "aten::sum") << "the thread has ended, the window is closed";
  correlation.forget_before(time - 1);
  EXPECT_EQ(op_at(time, thread), "aten::sum");
  correlation.forget_before(now());
  EXPECT_EQ(op_at(time, thread), "");
}

TEST_F(CorrelationTest, LaunchesFindTheirCallOnceAndGraphsOften) {
  correlation.add_call(7, {3, 11, 0, false});
  correlation.add_call(7, {4, 12, 0, false});  // the driver's record of the same call
  EXPECT_FALSE(correlation.find(8, false).has_value());
  const auto again = correlation.find(7, true);
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->context, 3u);
  EXPECT_EQ(again->call, 11u);
  EXPECT_TRUE(correlation.find(7, false).has_value());
  EXPECT_FALSE(correlation.find(7, false).has_value());
  correlation.add_call(0, {3, 11, 0, false});
  EXPECT_FALSE(correlation.find(0, false).has_value());
}

TEST_F(CorrelationTest, CallsWithoutLaunchAreForgottenInTime) {
  for (std::uint32_t i = 1; i <= 3 * Correlation::kMaxCalls; ++i)
    correlation.add_call(i, {1, 0, 0, false});
  EXPECT_FALSE(correlation.find(1, false).has_value());
  EXPECT_TRUE(correlation.find(3 * Correlation::kMaxCalls, false).has_value());
}

TEST_F(CorrelationTest, DeepStacksAndLongNamesAreBounded) {
  for (int i = 0; i < 1000; ++i) log->enter("aten::deep" + std::string(150, 'x'), 0);
  const std::int64_t time = now();
  for (int i = 0; i < 1000; ++i) log->leave(0);
  const std::int64_t after = now();
  EXPECT_LE(op_at(time).size(), Correlation::kMaxOpsText);
  EXPECT_NE(op_at(time), "");
  EXPECT_EQ(op_at(after), "");
}

TEST_F(CorrelationTest, SpansAreReportedWhenTheyEndOrTheWindowDoes) {
  std::vector<std::string> spans;
  const Correlation::Ended note = [&](const Correlation::Span& span) {
    spans.push_back(correlation.name_of(span.name).text);
    EXPECT_LE(span.begin_ns, span.end_ns);
    EXPECT_EQ(span.thread, static_cast<std::uint32_t>(gettid()));
  };
  log->enter("outer", 0);
  log->enter("inner", 0);
  log->leave(0);
  correlation.drain(note);
  EXPECT_EQ(spans, std::vector<std::string>{"inner"});
  log->stop_listening();
  correlation.close_window(now(), note);
  EXPECT_EQ(spans, (std::vector<std::string>{"inner", "outer"}));
  log->leave(0);
}

}  // namespace
}  // namespace purlin::profile::capture
