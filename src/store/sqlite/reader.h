// SPDX-License-Identifier: Apache-2.0
// SqliteReader: questions to the files of a folder. Keeps those it used last open, and up to 224
// MiB of their rows in memory: a slot that has not changed is not read again.
//
// One thread; next to a writer of any process. A question sees each file at one state. Failure: see
// Store.
#pragma once

#include "store/grouping.h"
#include "store/node_table.h"
#include "store/plan.h"
#include "store/sqlite/catalog.h"
#include "store/sqlite/folder.h"
#include "store/sqlite/period_reader.h"
#include "store/store.h"

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace purlin::store {

class SqliteReader : public Reader {
 public:
  explicit SqliteReader(std::string root) : folder_(std::move(root)) {}

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
  void limit_memory(const PeriodReader& last);
  Result<Catalog*> catalog();

  Folder folder_;
  std::list<std::unique_ptr<PeriodReader>> open_;  // the last used first
  std::optional<Catalog> catalog_;
};

}  // namespace purlin::store
