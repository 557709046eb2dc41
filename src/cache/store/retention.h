// SPDX-License-Identifier: Apache-2.0
// Retention: which records a cache may forget: history first, served entries last.
//
// A key's current entry stays unless the caller asks to drop it too. A status against an entry
// (demoted, quarantined) outlives the entry, so an entry that a merge brings back stays withdrawn.
// A store that grows beyond its quota forgets by the same rules (Store::put, Store::absorb). Pure,
// except that it reads the store. Failure: the store's.
#pragma once

#include "base/status.h"
#include "cache/store/store.h"

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>

namespace purlin::cache {

struct Retention {
  int history = -1;             // Entries kept of a key in addition to its current one; -1 = all.
  double older_than_s = 0;      // Drops the entries recorded longer ago; 0 = none.
  std::size_t max_entries = 0;  // Drops the oldest until this number is left; 0 = none.
  std::uint64_t max_bytes = 0;  // The same for the bytes of the file of records; 0 = none.
  bool even_current = false;    // Age, number and bytes apply to served entries too.
  Id128 spare{};                // An entry record that always stays.
};

struct RetentionPlan {
  std::set<std::string> drop;             // ids of records
  std::size_t entries = 0, statuses = 0;  // among them
  std::size_t current = 0;                // of the entries, those that are served today
  std::size_t left = 0;                   // entries that stay
  std::uint64_t bytes = 0;                // of the file of records today
  std::uint64_t bytes_left = 0;           // and without what is dropped
};

Result<RetentionPlan> plan_retention(const Store& store, const Retention& retention,
                                     std::int64_t now_ns);

// PURLIN_CACHE_QUOTA: how many bytes the file of records may have ("64M"); 0 = no limit. kInvalid
// for a text that is no size.
Result<std::uint64_t> cache_quota();
// Of the store's file of records; 0 without a file.
std::uint64_t bytes_in_use(const Store& store);
// After a write: if the file is larger than `quota`, forgets history first and then the oldest
// entries, also served ones, until an eighth of the quota is free. Without that reserve, each write
// to a full cache would rewrite it. `written` stays.
Status hold_quota(Store& store, std::uint64_t quota, const Id128& written);

}  // namespace purlin::cache
