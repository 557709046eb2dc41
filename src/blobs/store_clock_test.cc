// SPDX-License-Identifier: Apache-2.0
#include "blobs/store_clock.h"

#include <gtest/gtest.h>

#include <limits>

namespace purlin::blobs {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

TEST(HttpDate, IsReadInTheFormThatIsSent) {
  EXPECT_EQ(parse_http_date("Thu, 01 Jan 1970 00:00:01 GMT"), kSecond);
  EXPECT_EQ(parse_http_date("Fri, 20 Nov 2026 00:00:01 GMT"), 1795132801 * kSecond);
  EXPECT_EQ(parse_http_date("Thu, 29 Feb 2024 23:59:59 GMT"), 1709251199 * kSecond);
  for (const char* text : {"", "Fri, 20 Nov 2026 00:00:01", "Fri, 20 Nov 2026 00:00:01 CET",
                           "Fri, 20 Nov 2026 24:00:01 GMT", "Fri, 30 Feb 2026 00:00:01 GMT",
                           "Fri, 20 nov 2026 00:00:01 GMT", "Fri, 2x Nov 2026 00:00:01 GMT",
                           "Friday, 20-Nov-26 00:00:01 GMT", "Fri Nov 20 00:00:01 2026     ",
                           "Fri, 20 Nov 2026-00:00:01 GMT"})
    EXPECT_EQ(parse_http_date(text), std::nullopt) << text;
}

TEST(StoreClock, PutsTimesRightByTheDifference) {
  std::vector<BlobInfo> objects = {{"a", 1, 100 * kSecond}, {"b", 1, 0}, {"c", 1, 3 * kSecond}};
  to_local_clock(objects, 1000 * kSecond, 990 * kSecond);
  EXPECT_EQ(objects[0].modified_ns, 90 * kSecond);
  EXPECT_EQ(objects[1].modified_ns, 0) << "unknown stays so";
  EXPECT_EQ(objects[2].modified_ns, 0) << "before 1970 is unknown";
  objects[0].modified_ns = 100 * kSecond;
  to_local_clock(objects, 990 * kSecond, 1000 * kSecond);
  EXPECT_EQ(objects[0].modified_ns, 110 * kSecond);
  to_local_clock(objects, 1001 * kSecond, 1000 * kSecond);
  EXPECT_EQ(objects[0].modified_ns, 110 * kSecond) << "the grain of a date";
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  to_local_clock(objects, -kMax, kMax);
  EXPECT_EQ(objects[0].modified_ns, 0);
  objects[0].modified_ns = kMax;
  to_local_clock(objects, 0, kMax);
  EXPECT_EQ(objects[0].modified_ns, 0) << "overflow";
}

}  // namespace
}  // namespace purlin::blobs
