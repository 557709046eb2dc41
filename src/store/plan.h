// SPDX-License-Identifier: Apache-2.0
// Which rows answer a question: hours, or the days and months that were made of them.
//
// A pure function of what the store has. Both engines use it. Failure: that of FoldState.
#pragma once

#include "base/status.h"
#include "store/calendar.h"
#include "store/filter.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <vector>

namespace purlin::store {

// Slots of one period.
struct Part {
  Level level = Level::kHours;
  std::int64_t period_ns = 0;
  int first_slot = 0, last_slot = 0;
};

// What a store has. A period's revision changes with its rows.
struct FoldState {
  std::set<std::int64_t> days;    // with hours: their begins
  std::set<std::int64_t> months;  // with days
  // Of a period of hours or days.
  std::function<Result<std::int64_t>(Level level, std::int64_t period_ns)> revision;
  // The revision that the row of a day or month was made of; nullopt: there is none.
  std::function<Result<std::optional<std::int64_t>>(Level level, std::int64_t slot_ns)> folded;
};

// The parts, ascending in time. Days answer for their hours where the question is per day or over
// more than 3 days, where they hold all of the hours, and where the hours are removed. Months
// likewise, from 93 days on. `per_gpu`: hours only.
Result<std::vector<Part>> plan(const FoldState& state, const Filter& filter, Step step,
                               bool per_gpu);

}  // namespace purlin::store
