// SPDX-License-Identifier: Apache-2.0
#include "cli/tune/progress_line.h"

#include <gtest/gtest.h>

namespace purlin::cli {
namespace {

TEST(ProgressLine, SaysWhatIsDoneNowAndWhatTimeIsLeft) {
  tune::SessionState state;
  Config config;
  config.set("BM", std::int64_t{64});
  state.current = &config;
  EXPECT_EQ(progress_line(state, {200, 0}, 150), "evaluation 1 of 150  BM=64");
  Evaluation best;
  best.time_ms = 0.5;
  state.best = state.last = &best;
  state.done = 50;
  state.elapsed_s = 10;
  state.by_status[static_cast<std::size_t>(EvaluationStatus::kTimeout)] = 2;
  EXPECT_EQ(progress_line(state, {200, 14}, 150),
            "evaluation 51 of 150  best 500.00 us  last 500.00 us  2 timeout  4 s left  BM=64");
  state.spent = 0.25;
  state.finals_round = 2;
  state.finals_rounds = 5;
  state.current = nullptr;
  EXPECT_EQ(progress_line(state, {200, 0}, 200),
            "finals 2 of 5  best 500.00 us  last 500.00 us  2 timeout  about 30 s left");
}

}  // namespace
}  // namespace purlin::cli
