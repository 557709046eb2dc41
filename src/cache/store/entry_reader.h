// SPDX-License-Identifier: Apache-2.0
// EntryReader: reads the entries of one store's log, many in a summary: the file is opened once,
// and what entries have in common is parsed once.
//
// A record is believed where its bytes have the checksum of its frame and its contents the id of
// its summary. Made for a while: it reads the file that stood there when it was made.
// Thread-safety: one thread. Failure: kCorrupt for a record that is damaged or another than the
// summary's; kIo.
#pragma once

#include "base/json/json_view.h"
#include "cache/entry/constraint_cache.h"
#include "cache/store/record_log.h"
#include "cache/store/record_summary.h"

#include <string>

namespace purlin::cache {

class EntryReader {
 public:
  // The texts belong to the caller and outlive it.
  EntryReader(const std::string& log, EntryParts parts, ConstraintCache& constraints)
      : log_(log), file_(log), parts_(parts), constraints_(constraints) {}
  Result<Entry> read(const EntrySummary& summary);

 private:
  const std::string log_;
  RecordReader file_;
  const EntryParts parts_;
  ConstraintCache& constraints_;
  JsonScan scan_;
  RecordIds ids_;
};

// What Json makes of a payload, where it is the one of that id.
Result<Json> checked_json(std::string_view payload, const Id128& record, const std::string& log,
                          std::uint64_t offset);

}  // namespace purlin::cache
