// SPDX-License-Identifier: Apache-2.0
// Selection: which rows of a report are shown, and in what order. Shares and totals stay those of
// the whole report. Errors are the user's: a pattern that is none, a device that is not there.
#pragma once

#include "analyze/report/report.h"
#include "base/status.h"

#include <string>
#include <string_view>

namespace purlin::analyze {

enum class SortBy { kTotal, kCount, kP95, kHeadroom };
Result<SortBy> sort_from_text(std::string_view text);  // "total", "count", "p95", "headroom"

// Time that a row would not take at its roof: total x (1 - utilisation). Negative where the
// utilisation is not known.
double headroom_ns(const KernelStat& kernel);

// Largest first; rows whose headroom is not known come last. Equal rows keep their order.
void sort_rows(Report& report, SortBy by);

// Keeps the rows whose name, label, op or op class the pattern matches: a POSIX extended regular
// expression, upper and lower case alike.
Status filter_rows(Report& report, const std::string& pattern);

// What the rows by launch shape that make up a row have in common with it, and no others:
// row_key(launch row, by) == row_key(row, by).
std::string row_key(const KernelStat& kernel, GroupBy by);

// Keeps what ran on one device: its id ("cuda:0"), its index ("0"), or a model's whole name.
Status keep_device(Profile& profile, const std::string& which);

}  // namespace purlin::analyze
