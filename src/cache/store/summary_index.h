// SPDX-License-Identifier: Apache-2.0
// SummaryIndex: the summaries of the first part of a log, sorted, so that opening a cache of a
// million entries parses none of them.
//
// An image is one block of bytes, from memory or mapped from entries.index next to the log; its
// format is in docs/formats/cache.md. It is derived: a reader that finds it absent, damaged or of
// another log reads the log instead. Immutable, so safe from any thread. A mapped file is replaced
// by renaming, never changed in place. A small file is read, not mapped. Failure: kCorrupt for
// bytes that are not a whole image.
#pragma once

#include "base/status.h"
#include "cache/store/record_log.h"
#include "cache/store/record_summary.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::cache {

// What the image covers, and what was skipped on the way.
struct IndexHead {
  LogMark mark;
  std::uint64_t unreadable = 0, newer = 0;
};

class SummaryIndex {
 public:
  // Sorts the summaries in place.
  static std::string encode(const IndexHead& head, std::vector<EntrySummary>& entries,
                            std::vector<StatusSummary>& statuses);
  static Result<std::shared_ptr<const SummaryIndex>> parse(std::string bytes);
  // kNotFound where there is no such file.
  static Result<std::shared_ptr<const SummaryIndex>> map(const std::string& path);
  ~SummaryIndex();
  SummaryIndex(const SummaryIndex&) = delete;
  SummaryIndex& operator=(const SummaryIndex&) = delete;

  const IndexHead& head() const { return head_; }
  std::span<const EntrySummary> entries() const { return entries_; }
  std::span<const StatusSummary> statuses() const { return statuses_; }
  const EntrySummary* entry(const Id128& record) const;
  const StatusSummary* status(const Id128& record) const;
  std::span<const EntrySummary> of_group(std::uint64_t group) const;
  std::span<const EntrySummary> of_key(std::uint64_t group, const Id128& key) const;
  std::span<const StatusSummary> of_target(const Id128& record) const;

 private:
  SummaryIndex() = default;
  Status open(std::string_view bytes);
  std::string owned_;
  void* mapped_ = nullptr;
  std::size_t mapped_bytes_ = 0;
  IndexHead head_;
  std::span<const EntrySummary> entries_;                        // by group, key, record
  std::span<const StatusSummary> statuses_;                      // by target, time, record
  std::span<const std::uint32_t> by_record_, status_by_record_;  // positions, by record id
};

}  // namespace purlin::cache
