// SPDX-License-Identifier: Apache-2.0
// PeriodWriter: the one writer of a period's file. A day's hours take batches; a month's days and a
// year's months take what was folded.
//
// begin(), some add() or replace_slot(), commit(). What a commit() or roll_back() did not end is
// undone with the object. One thread. Failure: see Database; the transaction is then of no use.
#pragma once

#include "store/calendar.h"
#include "store/labels.h"
#include "store/sketch_bytes.h"
#include "store/sqlite/database.h"
#include "store/sqlite/live_slots.h"
#include "store/store.h"

#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace purlin::store {

// A row with its texts: of the slot that replace_slot() writes.
struct LabelledRow {
  std::array<std::string, kSeriesKinds> texts;  // by Kind
  double launches = 0, recorded = 0;
  BucketSum sketch;
};
using CoverageAmounts = std::array<double, 7>;  // in the order of the table's columns
struct LabelledCoverage {
  std::string platform, unit, why;
  CoverageAmounts amounts = {};
};

class PeriodWriter {
 public:
  static Result<PeriodWriter> open(const std::string& path);

  Status begin();
  // The rows of the batch that are in this file's day; false: the batch is in the file already.
  Result<bool> add(const HashedBatch& batch, const BatchLabels& labels, std::int64_t day_ns);
  Status replace_slot(int slot, const std::vector<LabelledRow>& rows,
                      const std::vector<LabelledCoverage>& coverage, std::int64_t revision);
  Status commit();
  void roll_back();
  // Of these slots, what the next add() calls bring is collected for take_added().
  void watch(std::set<int> slots) { watched_ = std::move(slots); }
  // The slots that the last commit changed, with their revisions after it.
  struct Change {
    int slot = 0;
    std::int64_t revision = 0;
    std::optional<std::vector<LiveSlots::Added>> added;  // nullopt: not watched
  };
  std::vector<Change> take_changes() { return std::exchange(changes_, {}); }
  bool is_open() const { return transaction_.has_value(); }
  const std::string& path() const { return database_.path(); }

 private:
  using SeriesKey = std::array<std::int64_t, kSeriesKinds>;
  struct SeriesHash {
    std::size_t operator()(const SeriesKey& key) const;
  };
  struct Pending {
    double launches = 0, recorded = 0;
    BucketSum sketch;
  };
  explicit PeriodWriter(Database database) : database_(std::move(database)) {}
  Status prepare();
  Result<std::int64_t> text_id(Kind kind, const std::string& text);
  Result<std::int64_t> series_id(const SeriesKey& key);
  Result<std::int64_t> source_id(const Batch& batch);
  Status add_coverage(int slot, std::int64_t platform, std::int64_t unit, std::int64_t why,
                      const CoverageAmounts& amounts);
  Status update_source(std::int64_t source, const Batch& batch, bool home);
  void collect(int slot, SeriesKey key, const BatchRow& row);
  Result<std::int64_t> raise_revision(const std::string& key);
  Change change_of(int slot, std::int64_t revision);
  Status flush();
  Status put(int slot, std::int64_t series, const Pending& row);

  Database database_;
  Statement find_text_, add_text_, find_series_, add_series_, find_source_, add_source_,
      update_source_, count_batch_, add_batch_, find_row_, put_row_, put_coverage_, raise_;
  std::optional<Transaction> transaction_;
  // Ids of committed texts and of those of the transaction: cleared where it is undone.
  std::unordered_map<std::string, std::int64_t> texts_;
  std::unordered_map<SeriesKey, std::int64_t, SeriesHash> series_;
  std::set<int> changed_;  // slots
  std::set<int> watched_;
  std::map<int, std::unordered_map<SeriesKey, Pending, SeriesHash>> added_;  // of watched slots
  std::vector<Change> changes_;
  std::map<std::pair<int, std::int64_t>, Pending> pending_;  // by slot and series: the file's order
};

}  // namespace purlin::store
