// SPDX-License-Identifier: Apache-2.0
#include "cli/frame/interrupt.h"

#include <gtest/gtest.h>

namespace purlin::cli {
namespace {

// Slurm and systemd signal a pool and its child, and the pool then signals the child too.
TEST(Interrupt, TwoSignalsAtOnceAreOneRequest) {
  const Interrupt interrupt;
  EXPECT_FALSE(Interrupt::requested());
  ::raise(SIGTERM);
  ::raise(SIGTERM);
  ::raise(SIGINT);
  EXPECT_TRUE(Interrupt::requested());
}

}  // namespace
}  // namespace purlin::cli
