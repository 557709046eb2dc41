// SPDX-License-Identifier: Apache-2.0
#include "base/byte_size.h"

#include <gtest/gtest.h>

namespace purlin {
namespace {

TEST(ByteSize, ParsesWhatPeopleWrite) {
  EXPECT_EQ(parse_bytes("4096"), 4096u);
  EXPECT_EQ(parse_bytes("0B"), 0u);
  EXPECT_EQ(parse_bytes("64K"), 65536u);
  EXPECT_EQ(parse_bytes("1.5GiB"), 1610612736u);
  EXPECT_EQ(parse_bytes("500MB"), 500'000'000u);
  for (const char* bad : {"", "K", "-1", "10 K", "10k", "10KiBs", "1.2.3M", "10X", "9000000000T"})
    EXPECT_FALSE(parse_bytes(bad).has_value()) << bad;
}

}  // namespace
}  // namespace purlin
