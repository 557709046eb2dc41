// SPDX-License-Identifier: Apache-2.0
// What a raw profile shows of one kernel, and a store of sketches cannot: advice, stalls, counters,
// occupancy. The profile is analysed as `purlin report` does by default, without this machine's own
// ceilings and outcomes.
//
// Pure functions over foreign bytes; thread-safe. Failure: kCorrupt and kInvalid of the reader.
#pragma once

#include "analyze/report/report.h"
#include "base/json/json.h"
#include "base/status.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace purlin::fleet::analysis {

struct RawAnalysis {
  analyze::Report report;  // without its timeline, which nothing here needs
  Json advice;             // purlin.advise/1
};

// `max_events`: of the timeline; what is beyond bounds the time that the replay may take.
Result<RawAnalysis> analyse_raw(std::string_view bytes, std::size_t max_events = 400'000);

// The row of `purlin.report/1`, and how many rows have that name; null where none has. `kernel`: as
// the store names it, or in full. `model`: of the GPU, "" = any. Of several rows, the one with most
// time.
Json row_of_kernel(const RawAnalysis& raw, const std::string& kernel, const std::string& model);

// What the advice says about the row with that label: `interventions`, `trades`, `no_gain`, with
// the `unit` of their savings.
Json advice_of_kernel(const RawAnalysis& raw, const std::string& label);

}  // namespace purlin::fleet::analysis
