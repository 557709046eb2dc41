// SPDX-License-Identifier: Apache-2.0
// Cell: the durations of one kernel at one shape on one node during one step of time. Every
// function of fleet/analysis takes these plain types, so that each engine of the store gives equal
// answers.
//
// Value types, safe on any thread. Cannot fail.
#pragma once

#include "model/profile/sketch.h"

#include <cstdint>
#include <string>
#include <vector>

namespace purlin::fleet::analysis {

struct Cell {
  std::string kernel, shape, dtype, gpu;  // gpu: the model
  std::string op;                         // operator or NVTX range, "" where not known
  std::string role;                       // "" = analysis::role_of(kernel, op)
  std::string build, driver, runtime;
  std::string node, device;   // device: UUID, "" where the store has no such detail
  std::string raw{};          // the kernel's name as recorded, "" where not asked for
  std::int64_t begin_ns = 0;  // of its step, UTC
  Sketch time;                // weighted: a launch seen once in N counts as N
};

struct CoverageCell {
  std::string node, device;
  std::int64_t begin_ns = 0;
  double busy_ns = 0;  // the GPU was busy
  double seen_ns = 0;  // of it, while launches were recorded
  double launches_seen = 0, launches_lost = 0;
  double overhead_ns = 0;
  double bad_timestamps = 0;
  std::string why;  // of what is missing
};

inline constexpr std::int64_t kHourNs = 3'600'000'000'000;
inline constexpr std::int64_t kDayNs = 24 * kHourNs;

}  // namespace purlin::fleet::analysis
