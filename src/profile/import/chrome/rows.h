// SPDX-License-Identifier: Apache-2.0
// RowBuilder: one row per kernel, launch shape, device, op and problem shape out of the launches of
// a trace. Part of trace_link; borrows its records. Rows are bounded. Not thread-safe.
#pragma once

#include "model/profile/sketch_budget.h"
#include "profile/import/chrome/link.h"

#include <array>
#include <cstdint>
#include <vector>

namespace purlin::profile {

class RowBuilder {
 public:
  RowBuilder(Records& records, const LinkOptions& options, LinkStats& stats);

  // One launch, whose innermost op is known or kNone; sets Activity::row to its row.
  void add(DeviceRecord& work, std::uint32_t op);
  void add_overflow();  // launches beyond the timeline's bound: neither op nor time
  void add_counters();
  std::vector<KernelRow> take();

 private:
  struct Place {  // what the program says the kernel is for
    std::uint32_t op = 0, shape = 0, dtype = 0;
  };
  static constexpr std::size_t kFigures = 3;
  struct Figures {
    std::array<double, kFigures> sum = {}, count = {};
  };

  Place place_of(std::uint32_t op) const;
  std::uint32_t launched_spec(const DeviceRecord& work);
  std::uint64_t hash_of(std::uint32_t spec);
  std::uint32_t row_of(std::uint32_t spec, const Place& place, double launches);
  std::uint32_t other_row(std::uint32_t spec);
  void add_counter(KernelRow& row, std::uint32_t name, double value);
  void counters_by_launch(const std::vector<std::uint32_t>& row_of_launch);
  std::vector<std::uint32_t> rows_from_launch_calls();

  Records& records_;
  const LinkOptions& options_;
  LinkStats& stats_;
  std::vector<KernelRow> rows_;
  std::vector<Figures> figures_;
  std::vector<std::uint64_t> spec_hashes_;
  IdTable row_ids_, merged_specs_;
  std::uint32_t other_row_ = kNone;
  SketchBudget sketches_;
};

}  // namespace purlin::profile
