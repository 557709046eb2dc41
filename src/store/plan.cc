// SPDX-License-Identifier: Apache-2.0
#include "store/plan.h"

#include <algorithm>
#include <limits>

namespace purlin::store {
namespace {

constexpr std::int64_t kPlanHourNs = 3'600'000'000'000, kPlanDayNs = 24 * kPlanHourNs;
constexpr std::int64_t kDaysFromNs = 3 * kPlanDayNs, kMonthsFromNs = 93 * kPlanDayNs;

class Planner {
 public:
  Planner(const FoldState& state, const Filter& filter, Step step, bool per_gpu) : state_(state) {
    begin_ = filter.begin_ns - filter.begin_ns % kPlanHourNs;
    end_ = filter.end_ns > 0 ? filter.end_ns : std::numeric_limits<std::int64_t>::max();
    const bool is_long = end_ - begin_ > kDaysFromNs, is_longer = end_ - begin_ > kMonthsFromNs;
    days_wanted_ =
        !per_gpu && (step == Step::kDay || step == Step::kMonth || (step == Step::kAll && is_long));
    months_wanted_ = !per_gpu && (step == Step::kMonth || (step == Step::kAll && is_longer));
    days_possible_ = !per_gpu && step != Step::kHour;
  }

  Result<std::vector<Part>> parts() {
    std::set<std::int64_t> all = state_.months;
    for (const std::int64_t day : state_.days) all.insert(month_begin(day));
    for (const std::int64_t month : all) {
      if (month >= end_ || month_end(month) <= begin_) continue;
      PURLIN_ASSIGN(const bool done, add_month(month));
      if (done) continue;
      for (std::int64_t day = month; day < month_end(month); day += kPlanDayNs)
        if (day < end_ && day + kPlanDayNs > begin_) PURLIN_TRY(add_day(day));
    }
    return std::move(parts_);
  }

 private:
  bool whole(std::int64_t begin, std::int64_t end) const { return begin >= begin_ && end <= end_; }

  // Whether the row of a slot holds what the finer files have now.
  Result<bool> current(Level level, std::int64_t slot_ns, std::int64_t finer_ns) {
    PURLIN_ASSIGN(const std::optional<std::int64_t> folded, state_.folded(level, slot_ns));
    if (!folded) return false;
    const Level finer = level == Level::kMonths ? Level::kDays : Level::kHours;
    if ((finer == Level::kDays ? state_.months : state_.days).count(finer_ns) == 0) return true;
    PURLIN_ASSIGN(const std::int64_t revision, state_.revision(finer, finer_ns));
    return revision == *folded;
  }
  Result<bool> add_month(std::int64_t month) {
    if (!months_wanted_ || !whole(month, month_end(month))) return false;
    PURLIN_ASSIGN(const bool is_current, current(Level::kMonths, month, month));
    if (!is_current) return false;
    for (std::int64_t day = month; day < month_end(month); day += kPlanDayNs) {
      if (state_.days.count(day) == 0) continue;
      PURLIN_ASSIGN(const bool day_is, current(Level::kDays, day, day));
      if (!day_is) return false;
    }
    const int slot = slot_of(Level::kMonths, month);
    parts_.push_back({Level::kMonths,
                      *period_begin(Level::kMonths, period_name(Level::kMonths, month)), slot,
                      slot});
    return true;
  }
  Status add_day(std::int64_t day) {
    const bool has_hours = state_.days.count(day) > 0;
    const bool starts_in = day >= begin_;
    bool use_day = false;
    if (days_possible_ && starts_in &&
        (!has_hours || (days_wanted_ && whole(day, day + kPlanDayNs)))) {
      PURLIN_ASSIGN(use_day, current(Level::kDays, day, day));
    }
    if (use_day) {
      const int slot = slot_of(Level::kDays, day);
      parts_.push_back({Level::kDays, month_begin(day), slot, slot});
    } else if (has_hours) {
      const std::int64_t first = std::max(day, begin_), last = std::min(day + kPlanDayNs, end_) - 1;
      parts_.push_back(
          {Level::kHours, day, slot_of(Level::kHours, first), slot_of(Level::kHours, last)});
    }
    return Status::ok();
  }

  const FoldState& state_;
  std::int64_t begin_ = 0, end_ = 0;
  bool days_wanted_ = false, months_wanted_ = false, days_possible_ = false;
  std::vector<Part> parts_;
};

}  // namespace

Result<std::vector<Part>> plan(const FoldState& state, const Filter& filter, Step step,
                               bool per_gpu) {
  return Planner(state, filter, step, per_gpu).parts();
}

}  // namespace purlin::store
