// SPDX-License-Identifier: Apache-2.0
#include "analyze/text/layout.h"

#include "analyze/text/number.h"

#include <gtest/gtest.h>

#include <limits>

namespace purlin::analyze {
namespace {

TEST(TextLayout, IdentifiersBecomeWords) {
  EXPECT_EQ(spaced_words("host_launch"), "host launch");
  EXPECT_EQ(spaced_words("memory_efficiency"), "memory efficiency");
  EXPECT_EQ(spaced_words("other"), "other");
}

TEST(TextLayout, WholeNumbersOfDocumentsAreIntegers) {
  EXPECT_EQ(number(12).dump(), "12");
  EXPECT_EQ(number(-3).dump(), "-3");
  EXPECT_EQ(number(0.5).dump(), "0.5");
  EXPECT_EQ(number(std::numeric_limits<double>::infinity()).dump(), "null");
}

TEST(TextLayout, TheDriverOfATraceIsNamedByItsToolkit) {
  EXPECT_EQ(driver_text("580.95"), "driver 580.95");
  EXPECT_EQ(driver_text("CUDA 13.0"), "driver for CUDA 13.0");
}

}  // namespace
}  // namespace purlin::analyze
