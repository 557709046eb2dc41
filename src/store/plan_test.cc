// SPDX-License-Identifier: Apache-2.0
#include "store/plan.h"

#include "store/testing.h"

#include <gtest/gtest.h>

namespace purlin::store {
namespace {

// Ten days of February with hours, all folded, and January without hours.
class Plan : public testing::Test {
 protected:
  void SetUp() override {
    for (int day = 0; day < 10; ++day) state_.days.insert(kMadeUpDayNs + day * kDayNs);
    state_.months = {month_begin(kMadeUpDayNs), january_};
    state_.revision = [](Level, std::int64_t) -> Result<std::int64_t> { return 5; };
    state_.folded = [this](Level, std::int64_t ns) -> Result<std::optional<std::int64_t>> {
      if (ns == changed_) return std::optional<std::int64_t>(4);
      return ns >= kMadeUpDayNs + 10 * kDayNs ? std::nullopt : std::optional<std::int64_t>(5);
    };
  }
  std::string text(Step step, std::int64_t begin, std::int64_t end, bool per_gpu = false) {
    Filter filter;
    filter.begin_ns = begin, filter.end_ns = end;
    const std::vector<Part> parts = plan(state_, filter, step, per_gpu).value();
    std::string out;
    for (const Part& part : parts)
      out += fmt::format("{}{}:{}-{} ",
                         part.level == Level::kHours  ? "h"
                         : part.level == Level::kDays ? "d"
                                                      : "m",
                         period_name(part.level, part.period_ns), part.first_slot, part.last_slot);
    return out;
  }
  FoldState state_;
  std::int64_t changed_ = -1;
  const std::int64_t january_ = *period_begin(Level::kDays, "2024-01");
};

TEST_F(Plan, HoursAnswerForAShortTime) {
  EXPECT_EQ(text(Step::kAll, kMadeUpDayNs + 3 * kHourNs, kMadeUpDayNs + kDayNs + kHourNs),
            "h2024-02-20:3-23 h2024-02-21:0-0 ");
}

TEST_F(Plan, DaysAnswerForALongTimeAndHoursForItsEnds) {
  EXPECT_EQ(text(Step::kAll, kMadeUpDayNs + 3 * kHourNs, kMadeUpDayNs + 4 * kDayNs + kHourNs),
            "h2024-02-20:3-23 d2024-02:21-21 d2024-02:22-22 d2024-02:23-23 h2024-02-24:0-0 ");
  EXPECT_EQ(text(Step::kDay, kMadeUpDayNs, kMadeUpDayNs + kDayNs), "d2024-02:20-20 ");
  changed_ = kMadeUpDayNs;
  EXPECT_EQ(text(Step::kDay, kMadeUpDayNs, kMadeUpDayNs + kDayNs), "h2024-02-20:0-23 ");
}

TEST_F(Plan, HoursAloneTellGpusApart) {
  EXPECT_EQ(text(Step::kDay, kMadeUpDayNs, kMadeUpDayNs + kDayNs, true), "h2024-02-20:0-23 ");
  EXPECT_EQ(text(Step::kAll, january_, january_ + kDayNs, true), "");
}

TEST_F(Plan, DaysAnswerForHoursThatAreRemoved) {
  EXPECT_EQ(text(Step::kAll, january_ + kHourNs, january_ + 2 * kDayNs), "d2024-01:2-2 ");
  EXPECT_EQ(text(Step::kHour, january_, january_ + 2 * kDayNs), "");
}

TEST_F(Plan, MonthsAnswerWhereTheyAreWholeAndCurrent) {
  EXPECT_EQ(text(Step::kMonth, 0, month_end(kMadeUpDayNs)), "m2024:1-1 m2024:2-2 ");
  changed_ = kMadeUpDayNs + kDayNs;
  const std::string mixed = text(Step::kMonth, month_begin(kMadeUpDayNs), month_end(kMadeUpDayNs));
  EXPECT_EQ(mixed.find("m2024"), std::string::npos) << mixed;
  EXPECT_NE(mixed.find("h2024-02-21:0-23"), std::string::npos) << mixed;
}

TEST(Calendar, NamesArePeriods) {
  for (const Level level : {Level::kHours, Level::kDays, Level::kMonths}) {
    const std::string name = period_name(level, kMadeUpDayNs + 5);
    EXPECT_EQ(period_name(level, *period_begin(level, name)), name);
    for (const char* wrong :
         {"", "2024-13", "2024-02-30", "24", "9999", "9999-01-01", "x", "2024-2-3"})
      EXPECT_FALSE(period_begin(level, wrong).has_value()) << wrong;
  }
  EXPECT_EQ(month_end(*period_begin(Level::kDays, "2024-12")),
            *period_begin(Level::kDays, "2025-01"));
}

}  // namespace
}  // namespace purlin::store
