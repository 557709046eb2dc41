// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/training_log.h"

#include <gtest/gtest.h>

namespace purlin::analyze {
namespace {

TEST(TrainingLog, TwoStepsOfGradScaler) {
  const TrainingLog log = read_training_log(
      "step 1 loss 2.31 scale 65536.0\nstep 2 loss inf scale 65536.0\n"
      "step 3 loss 2.30 scale 32768.0\nstep 4 loss nan scale 32768.0\n"
      "step 5 loss 2.29 scale 16384.0\n");
  EXPECT_EQ(log.skipped, 2u);
  EXPECT_EQ(to_text(log).substr(0, 38), "2 skipped steps, scale 65536 -> 16384:");
}

TEST(TrainingLog, JsonLinesAndOtherLibraries) {
  EXPECT_EQ(to_text(read_training_log(R"({"step":1,"grad_scale":65536,"loss":2.0}
{"step":2,"grad_scale":3.2768e+04,"loss":2.0})"))
                .substr(0, 37),
            "1 skipped step, scale 65536 -> 32768:");
  EXPECT_EQ(read_training_log("Gradient overflow.  Skipping step, loss scaler 0 reducing loss "
                              "scale to 32768.0\n")
                .first_scale,
            65536);
  const TrainingLog deepspeed = read_training_log(
      "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to "
      "32768\n[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 32768, reducing "
      "to 16384\n");
  EXPECT_EQ(deepspeed.skipped, 2u);
  EXPECT_EQ(deepspeed.last_scale, 16384);
}

TEST(TrainingLog, OtherLinesCountForNothing) {
  EXPECT_EQ(to_text(read_training_log("epoch 1\ninformation: infra nancy 12\nscale\n")), "");
  EXPECT_EQ(to_text(read_training_log("step 1 scale 1024\nstep 2 scale 2048\n")),
            "0 skipped steps, scale 1024 -> 2048");
}

}  // namespace
}  // namespace purlin::analyze
