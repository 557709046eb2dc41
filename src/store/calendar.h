// SPDX-License-Identifier: Apache-2.0
// Hours, days and months of UTC, as the store's files and rows have them. Pure functions.
#pragma once

#include "store/filter.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace purlin::store {

// What a row or file is of, the finest first.
enum class Level { kHours, kDays, kMonths };
constexpr int scale_of(Level level) { return 7 - static_cast<int>(level); }

// "2026-11-26", "2026-11", "2026": a day's hours, a month's days, a year's months.
std::string period_name(Level level, std::int64_t ns);
// Its begin; nullopt for another text.
std::optional<std::int64_t> period_begin(Level level, std::string_view name);
// Within its period: the hour from 0, the day from 1, the month from 1.
int slot_of(Level level, std::int64_t ns);
// The begin of a slot of the period that begins at `period_ns`, and that of the next slot.
std::int64_t slot_begin(Level level, std::int64_t period_ns, int slot);
std::int64_t slot_end(Level level, std::int64_t period_ns, int slot);

std::int64_t day_begin(std::int64_t ns);
std::int64_t month_begin(std::int64_t ns);
std::int64_t month_end(std::int64_t ns);
// The begin of the step that holds `ns`; 0 for kAll.
std::int64_t point_of(Step step, std::int64_t ns);

}  // namespace purlin::store
