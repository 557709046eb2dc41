// SPDX-License-Identifier: Apache-2.0
// LiveSlots: hours of an open store in memory, summed over their GPUs, for questions that do not
// tell GPUs apart. The writer adds what each commit adds, so that an hour that changes is not read
// again for each question. All readers of a store share it.
//
// An hour is loaded from its file by the first question about it. Revisions of the file decide what
// is added: a commit that is missing makes the hour load again. Memory is bounded: an hour without
// room is read from the file. [MT]. Failure: that of `load` and `use`.
#pragma once

#include "base/status.h"
#include "model/profile/sketch.h"
#include "store/labels.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace purlin::store {

class LiveSlots {
 public:
  using Ids = std::array<std::uint32_t, kSeriesKinds>;  // of entries by Kind; the unit's is 0
  // Launches of one commit.
  struct Added {
    Ids ids = {};
    double launches = 0, recorded = 0;
    Sketch sketch;
  };
  struct Row {
    Ids ids = {};
    double launches = 0, recorded = 0, sum_ns = 0;
    std::string sketch;  // sketch_bytes
  };
  class Table {
   public:
    explicit Table(std::int64_t revision = 0) : revision_(revision) {}
    const std::vector<Row>& rows() const { return rows_; }
    std::uint32_t last_entry() const { return last_entry_; }  // the greatest id in the rows
    std::size_t bytes() const;
    // The sum of rows with these ids. False: a sketch is damaged.
    bool add(const Ids& ids, double launches, double recorded, std::string_view sketch);
    bool add(const Added& added);

   private:
    friend class LiveSlots;
    struct Hash {
      std::size_t operator()(const Ids& ids) const;
    };
    Row& row_of(const Ids& ids);
    std::int64_t revision_;
    std::vector<Row> rows_;
    std::unordered_map<Ids, std::size_t, Hash> places_;
    std::size_t sketch_bytes_ = 0;
    std::uint32_t last_entry_ = 0;
  };

  explicit LiveSlots(std::size_t max_bytes = std::size_t{192} << 20) : max_bytes_(max_bytes) {}

  // Calls use() with the hour's rows, which do not change meanwhile. `load` reads them from a
  // state of the file that is not older than the call. False: there is no room for them.
  Result<bool> use(const std::string& path, int slot, const std::function<Result<Table>()>& load,
                   const std::function<Status(const Table&)>& use);
  // The writer's three. The hours of a file whose additions it must collect.
  std::set<int> known(const std::string& path) const;
  // What a commit added, with the slot's revision after it; nullopt: it was not collected.
  void add(const std::string& path, int slot, std::int64_t revision,
           std::optional<std::vector<Added>> rows);
  void forget(const std::string& path);  // its hours are loaded again

 private:
  struct Commit {
    std::int64_t revision = 0;
    std::optional<std::vector<Added>> rows;
  };
  struct Slot {
    std::mutex mutex;  // of the table
    std::optional<Table> table;
    std::atomic<bool> too_large{false};
    std::mutex commits_mutex;
    std::vector<Commit> commits;  // that the table lacks
    std::int64_t used_ns = 0;     // of LiveSlots' mutex, as the next one
    std::size_t bytes = 0;
  };
  std::shared_ptr<Slot> slot_of(const std::string& path, int slot);
  static void catch_up(Slot& slot);
  bool make_room(const std::shared_ptr<Slot>& slot);

  const std::size_t max_bytes_;
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, std::shared_ptr<Slot>> slots_;
};

}  // namespace purlin::store
