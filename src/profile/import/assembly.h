// SPDX-License-Identifier: Apache-2.0
// Assembly: a profile being built from another tool's records: rows found by what tells them apart,
// texts interned, memory bounded as ImportOptions says. What goes beyond a bound is counted, kept
// in sums, and said in a coverage note by finish().
//
// Add calls, ops and ranges before the activities that refer to them. Owned by one importer; not
// thread-safe.
#pragma once

#include "model/profile/sketch_budget.h"
#include "profile/import/import.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

namespace purlin::profile {

// What makes launches one row.
struct LaunchIdentity {
  std::string_view name;
  LaunchShape launch = {{0, 0, 0}, {0, 0, 0}};  // not known
  std::uint32_t registers = 0, static_shared_bytes = 0, local_bytes = 0;
  int device = 0;
  std::string_view op, shape, dtype;
};

class Assembly {
 public:
  Assembly(Profile& profile, const ImportOptions& options)
      : profile_(profile), options_(options), sketches_(options.max_sketch_buckets) {}

  std::uint32_t text(std::string_view text);  // index into Timeline::names
  // Index into Profile::processes, added when new. `key` is what the file tells processes by.
  std::uint32_t process(std::uint64_t key, std::int64_t pid);
  std::uint32_t kernel_row(const LaunchIdentity& identity);
  std::uint32_t copy_row(std::string_view kind, int device);

  // Adds to the row's sums and, while there is room, to the timeline. The rest of an activity
  // without a time (duration only) goes to the rows alone: add_untimed.
  void add(Activity activity);
  void add_untimed(std::uint32_t kernel_row, double duration_ns, double launches = 1);
  // Into the mean of a row's counter. `at` is where the last one was found, and so where the next
  // one is looked for first: launches of a file have the same counters in the same order.
  void add_counter(std::uint32_t kernel_row, std::string_view name, double value, double launches,
                   std::size_t& at);
  // kNone where there is no room. `reserve` slots are left for activities.
  std::uint32_t add(const Call& call, std::size_t reserve = 0);
  std::uint32_t add(const Op& op, std::size_t reserve = 0);
  bool add(const Range& range, std::size_t reserve = 0);

  void note(std::string_view cause, std::string text, double count = 0, double seconds = 0);
  // Sorts the timeline, notes what was left out.
  void finish();

 private:
  std::uint32_t other_row(int device);
  std::uint32_t add_duration(std::uint32_t row, double ns, double launches);
  bool room(std::size_t reserve) const { return events_ + reserve < options_.max_timeline_events; }

  Profile& profile_;
  const ImportOptions& options_;
  std::unordered_map<std::string, std::uint32_t> texts_, rows_;
  std::unordered_map<std::uint64_t, std::uint32_t> processes_;
  std::string key_;
  SketchBudget sketches_;
  std::size_t events_ = 0;
  std::size_t counters_ = 0;
  double host_left_out_ = 0, rows_left_out_ = 0, sketches_left_out_ = 0, counters_left_out_ = 0;
};

}  // namespace purlin::profile
