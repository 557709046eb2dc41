// SPDX-License-Identifier: Apache-2.0
// SqliteReader: questions to the files of a folder. Keeps those it used last open, and up to 80
// MiB of their rows in memory: a slot that has not changed is not read again. A reader of an open
// store answers what does not tell GPUs apart from the hours that its writer keeps up to date.
//
// One thread; next to a writer of any process. A question sees each file at one state. Failure: see
// Store.
#pragma once

#include "store/grouping.h"
#include "store/node_table.h"
#include "store/plan.h"
#include "store/sqlite/catalog.h"
#include "store/sqlite/folder.h"
#include "store/sqlite/live_slots.h"
#include "store/sqlite/period_reader.h"
#include "store/store.h"

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace purlin::store {

class SqliteReader : public Reader {
 public:
  // `live`: of the store in this process that writes to the folder; nullptr: there is none.
  explicit SqliteReader(std::string root, std::shared_ptr<LiveSlots> live = nullptr)
      : folder_(std::move(root)), live_(std::move(live)) {}

  Result<std::vector<Cell>> cells(const Filter& filter, const std::vector<Dimension>& by,
                                  Step step) override;
  Result<TopKernels> top(const Filter& filter, std::size_t limit) override;
  Result<std::vector<CoverageCell>> coverage(const Filter& filter, Step step) override;
  Result<std::vector<NodeState>> nodes() override;
  Result<std::vector<std::string>> values(Dimension dimension, const Filter& filter) override;
  Result<std::vector<RawInfo>> raws(const Filter& filter) override;
  Result<std::vector<GuardResult>> guard_history(const std::string& kernel,
                                                 std::size_t limit) override;
  Status check(StoreCheck& result);
  // The file of a period, open; valid until another question. nullptr: there is none.
  Result<PeriodReader*> period(Level level, std::int64_t ns);
  Result<std::optional<std::int64_t>> folded(Level level, std::int64_t slot_ns);
  Result<std::int64_t> revision(Level level, std::int64_t period_ns);
  // Before a file is removed.
  void close(Level level, std::int64_t period_ns);

 private:
  Result<std::vector<Part>> plan_of(const Filter& filter, Step step, bool per_gpu);
  struct Wanted {
    bool totals, sketches;
    const std::vector<char>* groups;  // a byte for each, of Step::kAll; nullptr: all
  };
  Status walk(const std::vector<Part>& parts, const Filter& filter, Grouping& grouping,
              const Wanted& wanted);
  Status walk_part(PeriodReader& reader, const Part& part, const Filter& filter, Grouping& grouping,
                   const Wanted& wanted);
  Status walk_file(PeriodReader& reader, const Part& part, const Filter& filter, Grouping& grouping,
                   const Wanted& wanted);
  // False: the slot is to be read from the file.
  Result<bool> use_live(PeriodReader& reader, const Part& part, int slot,
                        const std::function<Status(const LiveSlots::Table&)>& use);
  bool may_be_live(const Part& part, const Filter& filter, bool needs_unit) const {
    return live_ && part.level == Level::kHours && !needs_unit && !filter.per_gpu();
  }
  void limit_memory(const PeriodReader& last);
  Result<Catalog*> catalog();

  Folder folder_;
  const std::shared_ptr<LiveSlots> live_;
  std::list<std::unique_ptr<PeriodReader>> open_;  // the last used first
  std::optional<Catalog> catalog_;
};

}  // namespace purlin::store
