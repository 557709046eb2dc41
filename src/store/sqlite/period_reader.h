// SPDX-License-Identifier: Apache-2.0
// PeriodReader: a period's file, read. Its dictionary and series are held in memory, so that a
// question walks rows of numbers only.
//
// Between begin() and end() all reads see one state of the file. One thread. Failure: see Database;
// kCorrupt also where rows name what is not there.
#pragma once

#include "store/calendar.h"
#include "store/labels.h"
#include "store/sqlite/database.h"
#include "store/store.h"

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace purlin::store {

class PeriodReader {
 public:
  struct Entry {
    Kind kind = Kind::kKernel;
    Fields fields;
    bool present = false;
  };
  using SeriesRow = std::array<std::uint32_t, kSeriesKinds>;  // entry ids by Kind
  struct Row {
    int slot = 0;
    std::uint32_t series = 0;
    double launches = 0, recorded = 0, sum_ns = 0;
    std::string_view sketch;  // valid until the next row
  };

  static Result<PeriodReader> open(const std::string& path, Level level, std::int64_t period_ns);

  Status begin();  // also reads what was added to dictionary and series
  void end();
  Status renew();  // a newer state, if there is one

  Level level() const { return level_; }
  std::int64_t period_ns() const { return period_ns_; }
  const std::string& path() const { return database_.path(); }
  const std::vector<Entry>& entries() const { return entries_; }  // by id; 0 is none
  const std::vector<SeriesRow>& series() const { return series_; }
  Result<std::int64_t> revision();
  Result<std::vector<std::pair<int, std::int64_t>>> folded();  // slot, revision
  // Of what it remembers of slots. They are read again only where they changed.
  std::size_t cached_bytes() const { return cached_bytes_; }
  void forget();
  // Which series match: a byte for each.
  std::vector<char> matching(const Filter& filter) const;
  // Which entries match, by kind; empty: all do.
  using MatchingEntries = std::array<std::vector<char>, kSeriesKinds>;
  MatchingEntries matching_entries(const Filter& filter) const;

  // Calls use(row) for each row of the slots whose series matches; an error it returns ends it.
  template <class Use>
  Status scan(int first_slot, int last_slot, const std::vector<char>& matching, Use use);
  // All rows of a slot, which is not remembered.
  template <class Use>
  Status scan_file(int slot, const std::vector<char>& matching, Use use);
  Result<std::int64_t> slot_revision(int slot);
  template <class Use>
  Status scan_coverage(int first_slot, int last_slot, Use use);
  Result<std::vector<NodeState>> sources();
  Status check(StoreCheck& result);

 private:
  PeriodReader(Database database, Level level, std::int64_t period_ns)
      : database_(std::move(database)), level_(level), period_ns_(period_ns) {}
  // The rows of a slot, at one of the slot's revisions.
  struct Slot {
    std::int64_t revision = 0;
    std::vector<Row> rows;  // without sketches
    std::string sketches;
    std::vector<std::size_t> sketch_ends;
    std::size_t bytes() const {
      return rows.size() * (sizeof(Row) + sizeof(std::size_t)) + sketches.size();
    }
  };
  // nullptr: it is not remembered, or has changed.
  Result<const Slot*> remembered(int slot);
  // nullptr: it is too large to remember.
  Result<const Slot*> remember(int slot);
  template <class Use>
  Status scan_slot(const Slot& slot, const std::vector<char>& matching, Use use);
  template <class Use>
  Status look_up(int slot, const std::vector<std::uint32_t>& wanted, Use use);
  Status refresh();
  Result<bool> next_row(Statement& statement, Row& row);
  Status check_rows(StoreCheck& result);

  Database database_;
  Level level_;
  std::int64_t period_ns_;
  bool in_snapshot_ = false;
  Statement slot_rows_, one_row_, slot_revision_;
  std::map<int, Slot> slots_;
  std::size_t cached_bytes_ = 0;
  std::vector<Entry> entries_ = std::vector<Entry>(1);
  std::vector<SeriesRow> series_ = std::vector<SeriesRow>(1);
};

// Where few series match, their rows are looked up one by one.
constexpr std::size_t kLookupBelow = 10;

template <class Use>
Status PeriodReader::scan(int first_slot, int last_slot, const std::vector<char>& matching,
                          Use use) {
  std::vector<std::uint32_t> wanted;
  for (std::uint32_t id = 0; id < matching.size(); ++id)
    if (matching[id] != 0) wanted.push_back(id);
  if (wanted.empty()) return Status::ok();
  for (int slot = first_slot; slot <= last_slot; ++slot) {
    PURLIN_ASSIGN(const Slot* known, remembered(slot));
    if (known == nullptr && wanted.size() * kLookupBelow < matching.size()) {
      PURLIN_TRY(look_up(slot, wanted, use));
      continue;
    }
    if (known == nullptr) {
      PURLIN_ASSIGN(known, remember(slot));
    }
    PURLIN_TRY(known != nullptr ? scan_slot(*known, matching, use)
                                : scan_file(slot, matching, use));
  }
  return Status::ok();
}

template <class Use>
Status PeriodReader::scan_slot(const Slot& slot, const std::vector<char>& matching, Use use) {
  std::size_t begin = 0;
  for (std::size_t i = 0; i < slot.rows.size(); ++i) {
    const std::size_t end = slot.sketch_ends[i];
    if (matching[slot.rows[i].series] != 0) {
      Row row = slot.rows[i];
      row.sketch = std::string_view(slot.sketches).substr(begin, end - begin);
      PURLIN_TRY(use(row));
    }
    begin = end;
  }
  return Status::ok();
}

template <class Use>
Status PeriodReader::look_up(int slot, const std::vector<std::uint32_t>& wanted, Use use) {
  Row row;
  for (const std::uint32_t id : wanted) {
    one_row_.bind(1, std::int64_t{slot}).bind(2, std::int64_t{id});
    PURLIN_ASSIGN(const bool found, next_row(one_row_, row));
    if (!found) continue;
    PURLIN_TRY(use(row));
    one_row_.reset();
  }
  return Status::ok();
}

template <class Use>
Status PeriodReader::scan_file(int slot, const std::vector<char>& matching, Use use) {
  Row row;
  slot_rows_.bind(1, std::int64_t{slot});
  while (true) {
    PURLIN_ASSIGN(const bool found, next_row(slot_rows_, row));
    if (!found) return Status::ok();
    if (matching[row.series] != 0) PURLIN_TRY(use(row));
  }
}

struct CoverageRow {
  int slot = 0;
  std::uint32_t platform = 0, unit = 0, why = 0;
  std::array<double, 7> amounts = {};
};

template <class Use>
Status PeriodReader::scan_coverage(int first_slot, int last_slot, Use use) {
  PURLIN_ASSIGN(Statement rows,
                database_.prepare("SELECT slot, platform, unit, why, busy_ns, seen_ns, seen, lost, "
                                  "sampled_out, overhead_ns, bad_timestamps FROM coverage WHERE "
                                  "slot BETWEEN ?1 AND ?2"));
  rows.bind(1, std::int64_t{first_slot}).bind(2, std::int64_t{last_slot});
  while (true) {
    PURLIN_ASSIGN(const bool found, rows.step());
    if (!found) return Status::ok();
    CoverageRow row;
    row.slot = static_cast<int>(rows.integer(0));
    std::uint32_t* const ids[] = {&row.platform, &row.unit, &row.why};
    for (int i = 0; i < 3; ++i) {
      *ids[i] = static_cast<std::uint32_t>(rows.integer(i + 1));
      if (*ids[i] >= entries_.size())
        return error(Code::kCorrupt, "{}: coverage names entry {}, which is not there", path(),
                     *ids[i]);
    }
    for (int i = 0; i < 7; ++i) row.amounts[static_cast<std::size_t>(i)] = rows.real(i + 4);
    PURLIN_TRY(use(row));
  }
}

}  // namespace purlin::store
