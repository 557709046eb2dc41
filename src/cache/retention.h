// SPDX-License-Identifier: Apache-2.0
// Retention: which records a cache may forget: history first, what is served last.
//
// A key's current entry is kept unless that is asked for. What was said against an entry (demoted,
// quarantined) outlives the entry: should it come back by a merge, it stays withdrawn. Pure but for
// reading the store. Failure: the store's.
#pragma once

#include "base/status.h"
#include "cache/store.h"

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>

namespace purlin::cache {

struct Retention {
  int history = -1;             // entries kept of a key besides its current one; -1 = all
  double older_than_s = 0;      // >0: entries recorded longer ago go
  std::size_t max_entries = 0;  // >0: the oldest go until so many are left
  bool even_current = false;    // age and number apply to what is served, too
};

struct RetentionPlan {
  std::set<std::string> drop;             // ids of records
  std::size_t entries = 0, statuses = 0;  // among them
  std::size_t current = 0;                // of the entries, those that are served today
  std::size_t left = 0;                   // entries that stay
};

Result<RetentionPlan> plan_retention(const Store& store, const Retention& retention,
                                     std::int64_t now_ns);

}  // namespace purlin::cache
