// SPDX-License-Identifier: Apache-2.0
// MergedView: the knowledge of several stores, upper layer first, about an entry.
//
// The union of all layers decides whether an entry is served and under which drivers it was
// validated, as after a merge. The order of the layers decides which of two entries represents a
// key. A view: the stores belong to the caller and outlive it. Thread-safety: the stores'. Cannot
// fail: records that cannot be read are skipped.
#pragma once

#include "cache/store/store.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

namespace purlin::cache {

class MergedView {
 public:
  explicit MergedView(std::span<const Store> stores) : stores_(stores) {}

  // The latest status about an entry record, and the store that has it; nulls without a status.
  struct Standing {
    const StatusSummary* summary = nullptr;
    const Store* store = nullptr;
  };
  Standing standing(const Id128& record) const;
  bool served(const Id128& record) const;
  bool validated(const Id128& record, std::uint32_t toolkit, std::uint32_t driver) const;
  // nullptr where no layer has the entry.
  const EntrySummary* entry(const Id128& record) const;

  // The entries served for a key, layer by layer, in each the best first; with every layer's
  // statuses. A record that several layers have counts as the uppermost's.
  struct Layered {
    StoredEntry stored;
    std::size_t layer = 0;
  };
  std::vector<Layered> served(std::uint64_t group, const Id128& key,
                              std::deque<EntryReader>& readers) const;
  // One for each store.
  std::deque<EntryReader> readers(EntryParts parts, ConstraintCache& constraints) const;

 private:
  std::span<const Store> stores_;
};

}  // namespace purlin::cache
