// SPDX-License-Identifier: Apache-2.0
// Retention: which records a cache may forget: history first, what is served last.
//
// A key's current entry is kept unless that is asked for. What was said against an entry (demoted,
// quarantined) outlives the entry: should it come back by a merge, it stays withdrawn. A store that
// grows beyond its quota forgets by the same rules (Store::put, Store::absorb). Pure but for
// reading the store. Failure: the store's.
#pragma once

#include "base/status.h"
#include "cache/store/store.h"

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>

namespace purlin::cache {

struct Retention {
  int history = -1;             // entries kept of a key besides its current one; -1 = all
  double older_than_s = 0;      // >0: entries recorded longer ago go
  std::size_t max_entries = 0;  // >0: the oldest go until so many are left
  std::uint64_t max_bytes = 0;  // >0: the oldest go until the file of records is no larger
  bool even_current = false;    // age, number and bytes apply to what is served, too
  Id128 spare{};                // an entry record that stays whatever the rest says
};

struct RetentionPlan {
  std::set<std::string> drop;             // ids of records
  std::size_t entries = 0, statuses = 0;  // among them
  std::size_t current = 0;                // of the entries, those that are served today
  std::size_t left = 0;                   // entries that stay
  std::uint64_t bytes = 0;                // of the file of records, as it is
  std::uint64_t bytes_left = 0;           // and without what is dropped
};

Result<RetentionPlan> plan_retention(const Store& store, const Retention& retention,
                                     std::int64_t now_ns);

// PURLIN_CACHE_QUOTA: how many bytes the file of records may have ("64M"); 0 = no limit. kInvalid
// for a text that is no size.
Result<std::uint64_t> cache_quota();
// Of the store's file of records; 0 where there is none.
std::uint64_t bytes_in_use(const Store& store);
// After a write: where the file is beyond `quota`, forgets history first and then the oldest
// entries, those that are served too, until an eighth of the quota is free (a full cache is not to
// be rewritten at each write). `written` stays.
Status hold_quota(Store& store, std::uint64_t quota, const Id128& written);

}  // namespace purlin::cache
